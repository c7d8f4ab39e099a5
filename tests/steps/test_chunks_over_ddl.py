"""A DDL comes between the planning of a snapshot's chunks and their reading: no table stays behind for it, and no value is another column's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import TableStoppedError, WindowFirstError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.signals import Signal
from cdc_core.snapshot.present_names import present_names
from cdc_core.steps.snapshots.plan import start_snapshot
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, table_id

TABLE = "CREATE TABLE ITEMS (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), PRICE NUMBER(9), LABEL VARCHAR2(30))"
ROWS = "INSERT INTO ITEMS SELECT LEVEL, 'name ' || LEVEL, LEVEL * 10, 'label ' || LEVEL FROM DUAL CONNECT BY LEVEL <= 250"


@pytest.fixture(scope="module")
def database() -> Iterator[Oracle]:
    with running_oracle() as oracle:
        yield oracle


@pytest.fixture
def oracle(database: Oracle, monkeypatch: pytest.MonkeyPatch) -> Oracle:
    monkeypatch.setattr("cdc_core.oracle.after_ddl._WAIT_SECONDS", 0)
    database.run("BEGIN EXECUTE IMMEDIATE 'DROP TABLE ITEMS PURGE'; EXCEPTION WHEN OTHERS THEN NULL; END;")  # fmt: skip
    database.run(
        TABLE,
        ROWS,
    )
    return database


def _source(oracle: Oracle, path: Path, cut: str = "key") -> Source:
    chunks = {"chunk_rows": 100, "cut": cut}
    return Source.of(oracle, path, "ITEMS", snapshot=chunks, policies={"on_truncate": "follow"})


def _read(source: Source, keys: list[ChunkKey]) -> None:
    for key in keys:
        source.pipeline.snapshot_chunk(key)
        source.pipeline.apply_chunk(key)


RENAME = "ALTER TABLE ITEMS RENAME COLUMN {} TO {}".format
DDL = {
    "rename": [RENAME("NAME", "TITLE")],
    "rename the key": [RENAME("ID", "NUM")],
    "drop": ["ALTER TABLE ITEMS DROP COLUMN LABEL"],
    "unused": ["ALTER TABLE ITEMS SET UNUSED COLUMN LABEL"],
    "add": ["ALTER TABLE ITEMS ADD (NOTE VARCHAR2(9))"],
    "wider": ["ALTER TABLE ITEMS MODIFY (PRICE NUMBER(15))"],
    "check": ["ALTER TABLE ITEMS ADD CONSTRAINT POSITIVE CHECK (PRICE > 0)"],
    "move": ["ALTER TABLE ITEMS MOVE"],
    "truncate": ["TRUNCATE TABLE ITEMS", "INSERT INTO ITEMS VALUES (7, 'n', 1, 'l')", "INSERT INTO ITEMS VALUES (170, 'n', 1, 'l')"],
    "rename and drop": [RENAME("NAME", "TITLE"), "ALTER TABLE ITEMS DROP COLUMN LABEL"],
    "drop and add": ["ALTER TABLE ITEMS DROP COLUMN LABEL", "ALTER TABLE ITEMS ADD (EXTRA DATE)"],
}  # fmt: skip


@pytest.mark.parametrize("cut", ["key", "rowid"])
@pytest.mark.parametrize("ddl", DDL)
def test_a_snapshot_is_read_to_its_end_over_a_ddl(
    ddl: str, cut: str, oracle: Oracle, tmp_path: Path
) -> None:
    """Some chunks are applied, a DDL comes, rows change, and the next runs bring the table to where Oracle is."""
    source = _source(oracle, tmp_path, cut)
    keys = source.pipeline.start_snapshot()
    assert len(keys) == 3
    _read(source, keys[:1])
    oracle.run(*DDL[ddl])
    oracle.run("UPDATE ITEMS SET PRICE = PRICE + 1 WHERE PRICE < 1500")
    source.run()
    source.run()
    record = source.record("ITEMS")
    assert (record.state, record.reason) == ("ready", None)
    source.check_current("ITEMS")
    source.close()


def test_columns_that_swapped_their_names_keep_their_values(oracle: Oracle, tmp_path: Path) -> None:
    """A query by the names of the chunk's SCN would give each the other's values, and no error."""
    source = _source(oracle, tmp_path)
    keys = source.pipeline.start_snapshot()
    _read(source, keys[:1])
    oracle.run(RENAME("NAME", "X"), RENAME("LABEL", "NAME"), RENAME("X", "LABEL"))
    _read(source, keys[1:])
    rows = source.lake.image(table_id("ITEMS"))
    assert len(rows) == 250
    assert {(name.split()[0], label.split()[0]) for _, name, _, label in rows} == {("name", "label")}  # fmt: skip
    source.close()


def test_a_condition_is_about_the_columns_that_it_was_given_for(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = _source(oracle, tmp_path)
    source.run()
    condition = {table_id("ITEMS"): "name = 'name 7' OR \"LABEL\" = 'label NAME'"}
    context = source.pipeline
    keys = start_snapshot(context, [table_id("ITEMS")], conditions=condition)
    oracle.run(RENAME("NAME", "X"), RENAME("LABEL", "NAME"), RENAME("X", "LABEL"))
    assert [source.pipeline.snapshot_chunk(key).rows for key in keys] == [1]
    source.close()


def test_names_that_change_while_a_chunk_is_read_have_it_read_again(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query may have been compiled before or behind the DDL."""
    calls = []

    def names(session: Any, table: TableId) -> tuple[str, ...]:
        calls.append(table)
        found = present_names(session, table)
        if len(calls) == 1:
            oracle.run(RENAME("NAME", "X"), RENAME("LABEL", "NAME"), RENAME("X", "LABEL"))
        return found

    monkeypatch.setattr("cdc_core.snapshot.present_names.present_names", names)
    source = _source(oracle, tmp_path)
    _read(source, source.pipeline.start_snapshot())
    rows = source.lake.image(table_id("ITEMS"))
    assert len(rows) == 250
    assert {(name.split()[0], label.split()[0]) for _, name, _, label in rows} == {("name", "label")}  # fmt: skip
    source.close()


@pytest.mark.parametrize("cut", ["key", "rowid"])
def test_another_table_under_the_name_is_not_read(cut: str, oracle: Oracle, tmp_path: Path) -> None:
    """The policy for dropped tables decides."""
    source = _source(oracle, tmp_path, cut)
    keys = source.pipeline.start_snapshot()
    _read(source, keys[:1])
    oracle.run("DROP TABLE ITEMS PURGE", TABLE, "INSERT INTO ITEMS VALUES (170, 'n', 1, 'l')")
    with pytest.raises(TableStoppedError, match="dropped and created again"):
        _read(source, keys[1:])
    assert source.record("ITEMS").state == "failed"
    source.close()


def test_rows_that_moved_into_a_range_that_was_read_are_not_lost(
    oracle: Oracle, tmp_path: Path
) -> None:
    """MOVE gives all rows higher ROWIDs, so ranges that are still to be read would find none."""
    source = _source(oracle, tmp_path, "rowid")
    keys = source.pipeline.start_snapshot()
    _read(source, keys[2:])
    oracle.run("ALTER TABLE ITEMS MOVE")
    source.run()
    source.run()
    assert source.record("ITEMS").state == "ready"
    assert len(source.lake.image(table_id("ITEMS"))) == 250
    source.check_current("ITEMS")
    source.close()


def _asked_again(source: Source) -> list[ChunkKey]:
    """The chunks of an ad hoc snapshot that a signal asks for."""
    data = {"data-collections": [str(table_id("ITEMS"))]}
    source.pipeline.add_signal(Signal(id="s1", source="src", type="execute-snapshot", data=data))
    [(_, keys)] = source.pipeline.take_signals()
    return keys


@pytest.mark.parametrize(
    "ddl",
    [DDL["rename"], DDL["rename the key"], DDL["rename and drop"], DDL["drop and add"]],
    ids=["rename", "rename-the-key", "rename-and-drop", "drop-and-add"],
)
def test_a_chunk_behind_a_ddl_that_no_window_has_waits_for_it(
    oracle: Oracle, tmp_path: Path, ddl: list[str]
) -> None:
    """The dictionary does not tell a renamed column from a dropped and an added one; the redo does."""
    source = _source(oracle, tmp_path)
    source.run()
    oracle.run(*ddl, "UPDATE ITEMS SET PRICE = PRICE + 1")
    keys = _asked_again(source)
    with pytest.raises(WindowFirstError, match="no window has captured yet"):
        _read(source, keys[:1])
    assert source.record("ITEMS").state == "ready"
    kinds = [report.kind for report in source.run()]
    assert kinds.index("window-captured") < kinds.index("chunk-applied")
    assert source.pipeline.pending_chunks() == []
    source.check_current("ITEMS")
    source.close()


def test_a_captured_window_is_enough(oracle: Oracle, tmp_path: Path) -> None:
    """It need not be applied; and what a chunk cannot be told from behind it stops the table as before."""
    source = _source(oracle, tmp_path)
    source.run()
    oracle.run(RENAME("NAME", "TITLE"), "UPDATE ITEMS SET PRICE = PRICE + 1")
    keys = _asked_again(source)
    source.pipeline.snapshot_chunk(keys[0])
    source.capture()
    source.pipeline.apply_chunk(keys[0])
    source.run()
    source.check_current("ITEMS")
    source.close()


def test_a_planned_window_is_not_enough(oracle: Oracle, tmp_path: Path) -> None:
    source = _source(oracle, tmp_path)
    source.run()
    oracle.run(RENAME("NAME", "TITLE"), "UPDATE ITEMS SET PRICE = PRICE + 1")
    keys = _asked_again(source)
    assert source.pipeline.plan_windows()
    with pytest.raises(WindowFirstError):
        _read(source, keys[:1])
    source.run()
    source.check_current("ITEMS")
    source.close()


def test_a_chunk_waits_as_long_as_the_redo_is_not_there(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends well, and the next one goes on."""
    source = _source(oracle, tmp_path)
    source.run()
    oracle.run(RENAME("NAME", "TITLE"), "UPDATE ITEMS SET PRICE = PRICE + 1")
    _asked_again(source)
    with monkeypatch.context() as patched:
        patched.setattr(source.pipeline, "plan_windows", lambda **_: [])
        reports = source.run()
    assert "chunk-landed" in {report.kind for report in reports}
    assert source.pipeline.pending_chunks()
    assert source.record("ITEMS").state == "ready"
    source.run()
    assert source.pipeline.pending_chunks() == []
    source.check_current("ITEMS")
    source.close()
