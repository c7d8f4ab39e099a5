"""Two actors work on one source, and one of them is suspended at each of its steps while the other
one gets on: nobody ends, nobody fails, and the tables equal Oracle.

A step is every call of the metadata store and of landing, which is where a process learns what others
did and where it leaves what it did itself. Suspended means past its leases: the other one takes them.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.runs import RANGE_END_TAG, RANGE_START_TAG
from assets.settings import DagsterConfig, RetriesConfig
from tests.assets.site import MemorySite
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

PATIENT = DagsterConfig(retries=RetriesConfig(max=1, delay_seconds=0))


@dataclass
class Suspended:
    """Suspends an actor once, before the call of this number, and lets the other one work meanwhile."""

    at: int
    meanwhile: Callable[[], None]
    calls: int = 0
    name: str = ""
    owner: int = field(default_factory=threading.get_ident)

    def __call__(self, name: str) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.name = name
            self.meanwhile()


NO_WORK = frozenset({"machine", "holding", "fence"})
"""What notes something of this process, and asks nobody."""


class Watched:
    """A store, or a part of one, that says each of its calls first."""

    def __init__(self, watched: Any, on_call: Callable[[str], None]) -> None:
        self._watched, self._on_call = watched, on_call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._watched, name)
        if name in NO_WORK:
            return found
        if type(found).__module__.startswith("cdc_core.state."):
            return Watched(found, self._on_call)
        if not callable(found):
            return found

        def call(*args: Any, **named: Any) -> Any:
            self._on_call(name)
            return found(*args, **named)

        return call


@contextmanager
def watched(source: Source, on_call: Callable[[str], None]) -> Iterator[None]:
    """For the block, what the source's pipeline does can be met."""
    ctx = source.pipeline
    store, landing = ctx.store, ctx.landing
    ctx._store, ctx._landing = Watched(store, on_call), Watched(landing, on_call)  # type: ignore[assignment]
    try:
        yield
    finally:
        ctx._store, ctx._landing = store, landing


def expire_leases(folder: Path) -> None:
    """As if their holders had stood still for an hour."""
    with closing(sqlite3.connect(folder / "state.db", timeout=30)) as store, store:
        store.execute("UPDATE leases SET expires = 0, expires_uptime = 0")


class Site:
    """One source, two pipelines on it, and a Dagster of the second one or of the first."""

    def __init__(self, oracle: Oracle, one: Source, other: Source) -> None:
        self.oracle, self.one, self.other = oracle, one, other
        self.rows = 0

    def change(self) -> None:
        """A window with changes and an idle one."""
        self.rows += 1
        self.oracle.run(f"INSERT INTO T VALUES ({self.rows}, 'x')")
        if self.rows % 3 == 0:
            self.oracle.run(f"INSERT INTO ELSEWHERE VALUES ({self.rows})")

    def run(self, source: Source) -> None:
        """What `redolake run` does, and each round of its loop."""
        list(source.pipeline.run_once())

    def by_hand(self, source: Source) -> None:
        """`redolake capture`, `redolake apply`."""
        list(source.pipeline.run_capture())
        list(source.pipeline.run_apply())

    def snapshot(self, source: Source) -> None:
        """`redolake snapshot --table`, beside whatever else is done."""
        list(source.pipeline.run_snapshot([table_id("T")]))

    def dagster(self, source: Source) -> None:
        """A tick of the windows sensor and its run."""
        with dg.DagsterInstance.ephemeral() as instance:
            site = MemorySite(source, instance, PATIENT)
            for request in site.tick():
                self._run(site, request)

    def chunks(self, source: Source) -> None:
        """An ad hoc snapshot that somebody planned, a tick of the snapshots sensor, and its runs."""
        source.pipeline.start_snapshot([table_id("T")])
        with dg.DagsterInstance.ephemeral() as instance:
            site = MemorySite(source, instance, PATIENT)
            for request in site.tick("snapshots"):
                assert site.run(request).success

    def _run(self, site: MemorySite, request: dg.RunRequest) -> None:
        known = site.instance.get_dynamic_partitions("src_windows")
        assert request.tags[RANGE_START_TAG] in known, "a run over a partition that is not there"
        assert request.tags[RANGE_END_TAG] in known
        result = site.run(request)
        failed = [one.step_failure_data.error for one in result.all_events if one.is_step_failure]
        assert result.success, failed

    def backfill(self, source: Source) -> None:
        """A replay of all windows that Dagster shows, from its UI."""
        with dg.DagsterInstance.ephemeral() as instance:
            site = MemorySite(source, instance, PATIENT)
            from assets.history import add_partitions

            add_partitions(instance, source.pipeline.records, site.component.config, site.names)
            keys = instance.get_dynamic_partitions("src_windows")
            if keys:
                tags = {RANGE_START_TAG: keys[0], RANGE_END_TAG: keys[-1]}
                self._run(site, dg.RunRequest(tags=tags))


ACTORS = ("run", "by_hand", "dagster", "backfill")


PAIRS = [
    *((actor, other) for actor in ACTORS for other in ("run", "dagster")),
    *((actor, other) for actor in ("snapshot", "chunks") for other in ("snapshot", "run")),
]


@pytest.mark.parametrize(
    ("actor", "meanwhile", "stride"),
    [
        *(pytest.param(*pair, 23, id=f"{pair[0]}-{pair[1]}") for pair in PAIRS),
        *(
            pytest.param(*pair, 1, id=f"{pair[0]}-{pair[1]}-every-step", marks=pytest.mark.slow)
            for pair in PAIRS
        ),
    ],
)
def test_an_actor_that_is_suspended_at_any_step_goes_on_behind_the_other(
    tmp_path: Path, actor: str, meanwhile: str, stride: int
) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
            "CREATE TABLE ELSEWHERE (ID NUMBER(9))",
        )
        with (
            source_of(oracle, tmp_path, "T") as one,
            source_of(oracle, tmp_path, "T") as other,
        ):
            other.lake = one.lake
            one.run()
            site = Site(oracle, one, other)
            site.change()
            site.run(one)

            def get_on() -> None:
                expire_leases(tmp_path)
                site.change()
                getattr(site, meanwhile)(other)

            site.change()
            alone, met = Suspended(0, get_on), set[str]()
            with watched(one, alone):
                getattr(site, actor)(one)
            # Counted once: a backfill has more to do with each window that the rounds bring.
            for at in range(1 + PAIRS.index((actor, meanwhile)) % stride, alone.calls + 1, stride):
                site.change()
                suspended = Suspended(at, get_on)
                with watched(one, suspended):
                    getattr(site, actor)(one)
                met.add(suspended.name)
            assert met - {""}
            site.run(one)
            one.check_current("T")
