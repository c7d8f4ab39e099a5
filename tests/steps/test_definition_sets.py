"""Definitions that many windows share go from landing when no window names them any more, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.landing import definitions
from cdc_core.landing.definitions import keep_definitions, kept_sets
from tests.oracle.embedded import running_oracle
from tests.stage.landed import orders_schema
from tests.steps.harness import Source, source_of


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """Two tables behind their snapshot, whose definitions are never small enough for a manifest."""
    monkeypatch.setattr(definitions, "INLINE_BYTES_MAX", 0)
    with running_oracle() as oracle:
        oracle.run(*(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY)" for name in "TU"))
        with source_of(oracle, tmp_path, "T", "U", retention={"window_days": 1}) as source:
            source.run()
            change(source, "INSERT INTO T VALUES (1)")
            yield source


def change(source: Source, *statements: str) -> None:
    source.oracle.run(*statements)
    source.run()


def sets(source: Source) -> set[str]:
    return kept_sets(source.pipeline.landing, "src")


def retire(source: Source, *, keep: int = 1) -> None:
    """Let all windows but the newest ones have ended two days ago, and go."""
    with source.pipeline.store._database.writing() as connection:
        connection.exec_driver_sql(
            f"UPDATE windows SET ended = ended - 200000 WHERE ordinal <= (SELECT MAX(ordinal) - {keep} FROM windows)"
        )
    source.pipeline.retire_windows()


def test_a_set_goes_with_the_last_window_that_names_it(source: Source) -> None:
    """It stays for windows that a replay, or a transaction that is open, may want."""
    [first] = sets(source)
    with source.oracle.owner() as other:
        other.cursor().execute("INSERT INTO U VALUES (7)")
        change(source, "INSERT INTO T VALUES (2)")
        change(source, "ALTER TABLE T ADD (N NUMBER(5))", "INSERT INTO T VALUES (3, 3)")
        change(source, "INSERT INTO T VALUES (4, 4)")
        [second] = sets(source) - {first}
        retire(source)
        list(source.pipeline.maintain())
        assert sets(source) == {first, second}, "rows of the open transaction are there"
        other.commit()
    change(source, "INSERT INTO T VALUES (5, 5)")
    retire(source, keep=2)
    assert sets(source) == {second}
    for record in source.pipeline.records.windows():
        source.pipeline.replay_window(record.window)
    change(source, "INSERT INTO T VALUES (6, 6)")
    source.check_current("T", "U")


def test_maintenance_removes_what_a_crash_left(source: Source) -> None:
    """A process that ended between a set and its manifest, or between a window and its set, leaves sets that no window names."""
    named, ctx = sets(source), source.pipeline
    left = keep_definitions(ctx.landing, "src", [orders_schema()])
    with ctx.lease("capture"):
        list(source.pipeline.maintain())
        assert sets(source) == {*named, left}, "who captures may be about to name it"
    list(source.pipeline.maintain())
    assert sets(source) == named


def test_nothing_is_removed_where_a_manifest_cannot_be_read(source: Source) -> None:
    before = sets(source)
    left = keep_definitions(source.pipeline.landing, "src", [orders_schema()])
    windows = sorted((source.path / "landing" / "src" / "windows").glob("*/manifest.json"))
    kept = windows[0].read_bytes()
    windows[0].write_bytes(kept[:-40])
    list(source.pipeline.maintain())
    assert sets(source) == {*before, left}
    windows[0].write_bytes(kept)
    list(source.pipeline.maintain())
    assert sets(source) == before
