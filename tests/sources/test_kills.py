"""Redolake is killed at random instants, and so is what it reads from: nothing is lost, nothing is doubled, through each reader."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection as StoreConnection

from cdc_core.errors import CdcError, LogsNotReadyError
from cdc_core.landing.fenced import FencedLanding
from cdc_core.openlogreplicator.protocol import Connection, Request, request_bytes
from cdc_core.state.database import Database
from cdc_core.xstream.client import OciSource
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.sources.adapters import READERS, Reader
from tests.steps.harness import Source, source_of, table_id
from tests.steps.memory_lake import MemoryLake

KILLS, KILLS_LONG = 5, 200
SEEN = 8
"""So many kills are enough to see a wrong way of resuming."""
EFFECTS_MAX = 40

oracle = oracle_with(
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))", "INSERT INTO K VALUES (1, 'a')"
)


class ProcessEndedError(BaseException):
    """The end of the process, so to speak."""


@dataclass
class Killer:
    """Ends the process before or behind one of its effects: a commit to the metadata store, a manifest, a window in the lake, a
    confirmation."""

    left: int = 0
    kills: Counter[str] = field(default_factory=Counter)

    def effect(self, name: str) -> None:
        """Before or behind an effect."""
        self.left -= 1
        if self.left == 0:
            self.kills[name] += 1
            raise ProcessEndedError

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Around all effects."""
        for place, name in (
            (FencedLanding, "write_manifest"),
            (MemoryLake, "apply_window"),
            (Connection, "confirm"),
            (OciSource, "set_low_watermark"),
        ):
            patch.setattr(place, name, self._around(name, getattr(place, name)))
        writing = Database.writing

        @contextmanager
        def wrapped(database: Database, **options: bool) -> Iterator[StoreConnection]:
            # The lease of a process that has ended is taken over at once; this one has not really.
            is_work = not options.get("leases_only")
            if is_work:
                self.effect("a commit of the store")
            with writing(database, **options) as connection:
                yield connection
            if is_work:
                self.effect("a commit of the store")

        patch.setattr(Database, "writing", wrapped)

    def _around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        def killed(*args: Any, **named: Any) -> Any:
            self.effect(name)
            found = effect(*args, **named)
            self.effect(name)
            return found

        return killed


def live(oracle: Oracle, reader: Reader, source: Source, killer: Killer, kills: int) -> Counter[str]:  # fmt: skip
    """Transactions that overlap, deaths and kills; what committed, by operation."""
    rng, key, done = Random(17), 10, Counter[str]()
    open_since = [0, 0]
    with oracle.owner() as one, oracle.owner() as two:
        pending: list[list[str]] = [[], []]
        while killer.kills.total() < kills:
            for at, connection in enumerate((one, two)):
                key += 1
                cursor = connection.cursor()
                cursor.execute("INSERT INTO K VALUES (:1, 'x')", [key])
                cursor.execute("UPDATE K SET V = V || 'y' WHERE ID = :1", [key])
                pending[at] += "cu"
                if rng.random() < 0.2:
                    cursor.execute("DELETE FROM K WHERE ID = :1", [key])
                    pending[at] += "d"
                open_since[at] += 1
                if rng.random() < 0.4 or open_since[at] > 8:
                    connection.commit()
                    done.update(pending[at])
                elif rng.random() < 0.2:
                    connection.rollback()
                else:
                    continue
                pending[at], open_since[at] = [], 0
            if rng.random() < 0.3:
                reader.die(rng)
            reader.bring()
            killer.left = rng.randrange(1, EFFECTS_MAX)
            try:
                source.windows()
            except LogsNotReadyError:
                pass  # what it reads from died
            except ProcessEndedError:
                killer.left = 0
                source.close()
            killer.left = 0
        one.commit()
        two.commit()
        done.update(pending[0] + pending[1])
    return done


def check(oracle: Oracle, reader: Reader, source: Source, done: Counter[str]) -> None:
    """Every change that committed is in the change log once, and the mirror equals Oracle."""
    reader.live()
    for _ in range(3):
        reader.bring()
        try:
            source.windows()
        except LogsNotReadyError:
            source.close()
    changes = source.lake.tables[table_id("K")].changes
    assert Counter(one["_cdc_op"] for one in changes if one["_cdc_op"] != "r") == done
    source.check_exact("K")


@pytest.mark.parametrize("kills", [KILLS, pytest.param(KILLS_LONG, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
def test_kills_lose_and_double_nothing(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kills: int
) -> None:
    begun, killer = time.monotonic(), Killer()
    with (
        READERS[name](oracle, tmp_path) as reader,
        source_of(oracle, tmp_path / "source", "K", capture=reader.capture) as source,
    ):
        source.run()
        killer.install(monkeypatch)
        done = live(oracle, reader, source, killer, kills)
        check(oracle, reader, source, done)
    assert killer.kills.total() >= kills
    print(f"{name}: {dict(killer.kills)}, {done.total()} changes, {time.monotonic() - begun:.0f} s")


def test_debeziums_way_of_resuming_is_seen(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONTINUE from the beginning of the last transaction that was applied: the same load, and the same checks."""
    killer = Killer()
    with (
        READERS["olr_network"](oracle, tmp_path) as reader,
        source_of(oracle, tmp_path / "source", "K", capture=reader.capture) as source,
    ):

        def resume(self: Connection) -> Any:
            changes = source.lake.tables[table_id("K")].changes if source.lake.tables else []
            seen = [one["_cdc_start_scn"] for one in changes if one["_cdc_op"] != "r"]
            asked = request_bytes(Request.CONTINUE, self._name, c_scn=(seen or [1])[-1])
            return self._ask(asked)

        source.run()
        killer.install(monkeypatch)
        monkeypatch.setattr(Connection, "resume", resume)
        with pytest.raises((AssertionError, CdcError)):
            check(oracle, reader, source, live(oracle, reader, source, killer, SEEN))
