"""``oracle.dsn`` leads to another database than the source's: a test system, a restored clone, a pluggable database that was replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdc_core.capture.source import LogMinerReader
from cdc_core.errors import NotYetError, OtherDatabaseError
from cdc_core.model.scn import Scn
from pipelines.cli import app
from pipelines.commands import data, tables
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

NAMES = ("ONE", "TWO")


def filled(number: int) -> list[str]:
    tables = [f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, N NUMBER(9))" for name in NAMES]
    return tables + [f"INSERT INTO {name} VALUES (1, {number})" for name in NAMES]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    with (
        running_oracle(*filled(1)) as oracle,
        source_of(oracle, tmp_path, *NAMES) as source,
    ):
        for module in (data, tables):
            monkeypatch.setattr(module, "opened", lambda *_, **__: nullcontext(source.pipeline))
        source.begin()
        yield source


@pytest.fixture
def other() -> Iterator[Oracle]:
    with running_oracle(*filled(7)) as oracle:
        oracle.database.redo.change_dbid(4711)
        for _ in range(30):  # its SCNs are ahead of the first one's
            oracle.run("UPDATE ONE SET N = N + 1", "UPDATE TWO SET N = N + 1")
        yield oracle


def redolake(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    "work",
    [
        lambda source: list(source.pipeline.run_snapshot([table_id("ONE")])),
        lambda source: source.pipeline.start_snapshot([table_id("ONE")]),
        lambda source: source.pipeline.plan_windows(),
        lambda source: source.run(),
        lambda source: source.pipeline.resnapshot_tables([table_id("ONE")]),
    ],
    ids=["snapshot", "plan-of-chunks", "plan-of-windows", "run", "resnapshot"],
)
def test_nothing_of_another_database_lands(
    source: Source, other: Oracle, work: Callable[[Source], object]
) -> None:
    """A wrong connect string for a while, and the right one again."""
    own, planned = source.oracle, len(source.pipeline.records.windows())
    source.close()
    source.oracle = other
    with pytest.raises(OtherDatabaseError, match=r"expected=.* current=4711"):
        work(source)
    assert len(source.pipeline.records.windows()) == planned
    source.close()
    source.oracle = own
    source.oracle.run("UPDATE ONE SET N = 2")
    source.run()
    source.check_followed("ONE")
    source.check_followed("TWO")


def test_a_chunk_that_was_planned_is_not_read_from_another_database(
    source: Source, other: Oracle
) -> None:
    [key] = source.pipeline.start_snapshot([table_id("ONE")])
    own = source.oracle
    source.close()
    source.oracle = other
    with pytest.raises(OtherDatabaseError):
        source.pipeline.snapshot_chunk(key)
    source.close()
    source.oracle = own
    source.run()
    source.check_followed("ONE")


def continued(source: Source) -> None:
    """What the error says is typed, and ends in equal tables, also for processes that come later."""
    with pytest.raises(OtherDatabaseError) as caught:
        source.run()
    assert "`redolake source skip-gap --replaced`" in caught.value.hint
    assert redolake("source", "skip-gap").exit_code != 0
    said = redolake("source", "skip-gap", "--replaced")
    assert said.exit_code == 0, said.output
    for name in NAMES:
        assert f"{name} left the stream" in said.output
        assert source.record(name).trouble == "redo_gone"
        assert redolake("table", "resnapshot", str(table_id(name))).exit_code == 0
    source.run()
    for number in (50, 60):
        source.close()
        for name in NAMES:
            source.oracle.run(f"INSERT INTO {name} VALUES ({number}, {number})")
        source.run()
        source.check_current(*NAMES)
    source.pipeline.rebuild_state(replace=True)
    source.oracle.run("UPDATE ONE SET N = 99")
    source.run()
    source.check_current(*NAMES)


@pytest.mark.parametrize("waits", [False, True], ids=["no-window-waits", "a-window-waits"])
def test_a_database_in_the_place_of_the_captured_one_is_a_gap(
    source: Source, other: Oracle, waits: bool
) -> None:
    if waits:
        source.oracle.run("UPDATE ONE SET N = 5")
        source.pipeline.plan_windows()
    source.close()
    source.oracle = other
    continued(source)


def test_a_restored_clone_with_a_dbid_of_its_own_is_a_gap(source: Source) -> None:
    source.oracle.run("UPDATE ONE SET N = 5")
    source.close()
    source.oracle.database.redo.change_dbid(4711)
    continued(source)


def test_a_pluggable_database_that_was_replaced_is_a_gap(source: Source) -> None:
    """Dropped and cloned anew under its name: the same names, numbers of objects, and redo."""
    source.oracle.run("UPDATE ONE SET N = 5")
    source.close()
    source.oracle.database.engine.container_dbid += 1
    with pytest.raises(OtherDatabaseError, match="the pluggable database is another one"):
        source.run()
    continued(source)


def test_no_policy_takes_another_database(source: Source, other: Oracle) -> None:
    """A wrong connect string must not exchange all rows of the lake."""
    source.close()
    source.more = {"policies": {"on_redo_gone": "resnapshot"}}
    source.oracle = other
    with pytest.raises(OtherDatabaseError):
        source.run()
    assert all(source.record(name).state == "ready" for name in NAMES)


def test_rows_that_a_later_snapshot_cannot_replace_are_waited_for(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot was read further than windows were planned, and the clone was made in between: a snapshot of it would lose against
    those rows."""
    source.oracle.run("UPDATE ONE SET N = N + 1")
    source.run()
    end = source.pipeline.records.windows()[-1].window.scn_high
    for _ in range(10):
        source.oracle.run("UPDATE ONE SET N = N + 1")
    source.pipeline.apply_chunk(source.read_chunk(table_id("ONE")))
    source.close()
    source.oracle.database.redo.change_dbid(4711)
    start = replace(
        source.pipeline.change_reader_now().read_start([]),
        snapshot_scn=Scn(end + 1),
        mining_low=end,
    )
    monkeypatch.setattr(LogMinerReader, "read_start", lambda *_, **__: start)
    with pytest.raises(NotYetError, match="will recur"):
        source.pipeline.skip_gap(is_replaced=True)
    assert source.record("ONE").state == "ready"
