"""The apply rule as MERGE states it, and the order of windows: the conditions themselves, evaluated by SQLite. No Spark; that MERGE
follows them is shown by tests/lake/test_chunks.py and test_windows.py."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from cdc_core.errors import CdcError, NotYetError, WindowConflictError
from cdc_core.lake.apply.windows import _check_order
from cdc_core.lake.mirror.merge import KeyRule, merge_sql
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage.layout import chunk_ordinal

ID = Column("ID", "NUMBER", 22, 0, 10, 0, False)
V = Column("V", "VARCHAR2", 40, 10, None, None, True)
SCHEMA = TableSchema(TableId("HR", "EMP"), Scn(1), (ID, V), ("ID",))  # fmt: skip


def clauses(
    *, covered_scn: int = 0, is_truth: bool = False, read_scn: int | None = None
) -> dict[str, str]:
    """What MERGE does, and under which condition."""
    rule = KeyRule(
        schema=SCHEMA,
        absent=["V"],
        covered_scn=covered_scn,
        read_scn=read_scn,
        is_truth=is_truth,
    )
    sql = merge_sql("mirror", "source", rule)
    return {
        action: condition
        for condition, action in re.findall(r"MATCHED AND (.*) THEN (DELETE|UPDATE|INSERT)", sql)
    }


def holds(condition: str, *, row: tuple[int, int] = (0, 0), source: tuple[int, int], kind: str, missing: str = "", lost: bool = False) -> bool:  # fmt: skip
    """Does the condition hold for a mirror's row and a source's row at these positions (commit SCN, ordinal)?"""
    query = f"SELECT {condition} FROM (SELECT ? AS _cdc_commit_scn, ? AS _cdc_ordinal) t, (SELECT ? AS _cdc_commit_scn, ? AS _cdc_ordinal, ? AS _cdc_kind, ? AS _cdc_missing, ? AS _cdc_lost) s"  # fmt: skip
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function("SIZE", 1, len)
        [(found,)] = connection.execute(query, [*row, *source, kind, missing, lost]).fetchall()
    return bool(found)


@pytest.mark.parametrize(("action", "kind"), [("UPDATE", "row"), ("DELETE", "del")])
@pytest.mark.parametrize(
    ("source", "changes"),
    [
        pytest.param((11, 1), True, id="a-later-commit"),
        pytest.param((10, 6), True, id="a-later-change-of-the-same-commit"),
        pytest.param((10, 5), False, id="the-same-change"),
        pytest.param((10, 4), False, id="an-earlier-change-of-the-same-commit"),
        pytest.param((9, 9), False, id="an-earlier-commit"),
    ],
)
def test_a_matched_row_changes_only_where_the_change_is_newer(
    action: str, kind: str, source: tuple[int, int], *, changes: bool
) -> None:
    assert holds(clauses()[action], row=(10, 5), source=source, kind=kind) is changes
    assert holds(clauses(is_truth=True)[action], row=(10, 5), source=source, kind=kind)


@pytest.mark.parametrize(("scn", "comes"), [(20, False), (21, True)])
def test_a_key_that_was_gone_when_the_table_was_read_stays_gone(scn: int, *, comes: bool) -> None:
    condition = clauses(covered_scn=20)["INSERT"]
    assert holds(condition, source=(scn, 1), kind="row") is comes
    assert not holds(condition, source=(21, 1), kind="del")


@pytest.mark.parametrize(
    ("scn", "missing", "lost", "comes"),
    [
        pytest.param(150, "V", False, False, id="a-chunk-saw-the-row-gone"),
        pytest.param(201, "V", False, True, id="no-chunk-can-have-seen-it: an error"),
        pytest.param(150, "", False, True, id="all-columns-are-there"),
        pytest.param(150, "V", True, True, id="it-came-from-another-key: an error"),
        pytest.param(100, "V", True, False, id="it-came-before-all-chunks"),
    ],
)
def test_a_part_of_a_row_that_a_later_chunk_saw_gone_is_no_row(
    scn: int, missing: str, lost: bool, *, comes: bool
) -> None:
    """Chunks were read as of 100 and of 200; the row was changed at 150, and deleted before 200. One that came from the range of another
    chunk may be there still, though no chunk has it."""
    condition = clauses(covered_scn=100, read_scn=200)["INSERT"]
    assert holds(condition, source=(scn, 1), kind="row", missing=missing, lost=lost) is comes


@pytest.mark.parametrize(
    ("ordinal", "inserted_at", "is_double"),
    [
        pytest.param(chunk_ordinal(100, 140), 140, False, id="up-to-the-upper-watermark"),
        pytest.param(chunk_ordinal(100, 140), 141, True, id="behind-it"),
        pytest.param(chunk_ordinal(100, None), 101, True, id="a-chunk-of-one-moment"),
        pytest.param(7, 101, True, id="a-change"),
    ],
)
def test_an_insert_may_meet_its_own_row_that_was_read_between_two_watermarks(
    ordinal: int, inserted_at: int, *, is_double: bool
) -> None:
    """MERGE finds a row as of 100 under the key of an insert, which a later change of its window follows."""
    sql = merge_sql("mirror", "source", KeyRule(schema=SCHEMA))
    found = re.search(r"t\.`_cdc_commit_scn` = (IF\(.*\)), t\.`_cdc_ordinal`", sql)
    assert found is not None
    scn_sql = found[1].replace(r"\'", "''")
    query = f"SELECT {scn_sql} FROM (SELECT 100 AS _cdc_commit_scn, ? AS _cdc_ordinal) t, (SELECT 150 AS _cdc_commit_scn, TRUE AS _cdc_new, ? AS _cdc_new_scn) s"  # fmt: skip
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function("IF", 3, lambda condition, one, other: one if condition else other)  # fmt: skip
        connection.create_function("RAISE_ERROR", 1, lambda _error: -1)
        [(scn,)] = connection.execute(query, [ordinal, inserted_at]).fetchall()
    assert scn == (-1 if is_double else 150)


@pytest.mark.parametrize(
    ("mirror", "position", "error"),
    [
        pytest.param(100, 100, None, id="the-next-window"),
        pytest.param(None, None, None, id="the-first-window"),
        pytest.param(90, 150, None, id="windows-between-had-nothing"),
        pytest.param(90, 90, NotYetError, id="a-window-is-missing"),
        pytest.param(101, 100, WindowConflictError, id="it-overlaps"),
    ],
)
def test_the_lake_takes_windows_in_order(
    mirror: int | None, position: int | None, error: type[CdcError] | None
) -> None:
    if error is None:
        _check_order({}, mirror, position, 100)
        return
    with pytest.raises(error):
        _check_order({}, mirror, position, 100)
