"""Rows of tables with LOBs are cut into statements, and have the ROWID of what closes theirs, wherever batches cut them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from cdc_core.errors import DecodeError
from cdc_core.model.operations import Operation
from cdc_core.schema.table import ROW_ID_COLUMN, TableSchema
from cdc_core.stage.addresses import ADDRESS_UNKNOWN, with_addresses
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.rollback import find_undone
from cdc_core.stage.statements import UNKNOWN_ROW_ID
from tests.decode.golden_table import GOLDEN

INS, UPD, DEL, LOCATE, WRITE, CLOSE = (
    Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.SELECT_LOB_LOCATOR, Operation.LOB_WRITE, Operation.INTERNAL,
)  # fmt: skip
TABLE: TableSchema = replace(
    GOLDEN,
    columns=(ROW_ID_COLUMN, *(one for one in GOLDEN.columns if one.name in ("ID", "V", "L"))),
    key=(ROW_ID_COLUMN.name,),
    has_lobs=True,
)
INSERTED = """insert into "S"."T"("ID","V","L") values ('1','v',EMPTY_CLOB());"""
FILLED = """update "S"."T" set "L" = 'x' where "ID" = '1' and "V" = 'v';"""

Spec = tuple[Operation, str]
"""Operation, and the ROWID's letter (``?`` for the placeholder) with the RS_ID's number, ``-`` before an undo row's."""


def redo(*rows: tuple[str, Operation, str] | tuple[str, Operation, str, str | None]) -> pa.Table:
    """Rows: XID, operation, ``[-]ROWID[RS_ID]`` and, where it matters, the statement."""
    found = []
    for at, (xid, operation, where, *sql) in enumerate(rows):
        undo, letter, rs_id = where.startswith("-"), where.lstrip("-")[0], where.lstrip("-")[1:]
        found.append(
            {
                "ordinal": at, "scn": at + 10, "xid": xid, "operation_code": int(operation), "rollback": undo,
                "row_id": UNKNOWN_ROW_ID if letter == "?" else letter * 18, "sql_redo": sql[0] if sql else None, "status": 0,
                "timestamp": None, "thread": 1, "rs_id": rs_id or str(at), "commit_scn": 99, "has_rollback": True, "problem": None,
            }
        )  # fmt: skip
    kinds = {
        "operation_code": pa.int32(), "status": pa.int32(), "sql_redo": pa.large_string(), "timestamp": pa.timestamp("s"),
        "thread": pa.int32(), "problem": pa.string(), "row_id": pa.string(),
    }  # fmt: skip
    return pa.table(
        {name: pa.array([row[name] for row in found], kinds.get(name)) for name in found[0]}
    )


def addressed(rows: pa.Table, *, cut: int | None = None, ends: int = 1000) -> list[str]:
    """What became of each row: its place with the letter of its ROWID, or ``?`` where it is refused."""
    pieces = [rows] if cut is None else [rows.slice(0, cut), rows.slice(cut)]
    xids = set(rows["xid"].to_pylist())
    made = with_addresses(pieces, {(xid, 99): ends for xid in xids}, lambda _: TABLE)
    found = pa.concat_tables(made)
    assert found["ordinal"].to_pylist() == sorted(found["ordinal"].to_pylist()) or cut is not None
    order = found.sort_by("ordinal").select(["ordinal", "row_id", "problem"]).to_pylist()
    assert all((row["row_id"] is None) == (row["problem"] == ADDRESS_UNKNOWN) for row in order)
    return [f"{row['ordinal']}{(row['row_id'] or '?')[0]}" for row in order]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([(INS, "?"), (CLOSE, "R")], "0R", id="an-insert-that-is-closed"),
        pytest.param([(INS, "?1"), (LOCATE, "?1"), (WRITE, "?"), (CLOSE, "R")], "0R 1R 2R", id="with-lobs"),
        pytest.param([(UPD, "?1"), (LOCATE, "?1"), (WRITE, "?"), (UPD, "R")], "0R 1R 2R 3R", id="closed-by-an-update"),
        pytest.param([(LOCATE, "?"), (WRITE, "?"), (CLOSE, "R"), (UPD, "S")], "0R 1R 3S", id="lobs-alone"),
        pytest.param([(INS, "?"), (INS, "?"), (CLOSE, "R")], "0? 1?", id="row-pieces-that-stand-together"),
        pytest.param([(INS, "?"), (INS, "?"), (INS, "?"), (CLOSE, "R"), (CLOSE, "S")], "0? 1? 2?", id="three-row-pieces"),
        pytest.param([(INS, "?"), (INS, "?"), (UPD, "R")], "0? 1R 2R", id="what-nothing-closes"),
        pytest.param([(INS, "?"), (DEL, "R")], "0? 1R", id="a-delete-closes-nothing"),
        pytest.param([(INS, "?1"), (LOCATE, "?2"), (WRITE, "?"), (CLOSE, "R")], "0? 1? 2?", id="two-addresses-of-redo"),
        pytest.param([(LOCATE, "R"), (WRITE, "?"), (LOCATE, "S"), (WRITE, "?")], "0R 1R 2S 3S", id="calls-of-dbms-lob"),
        pytest.param([(LOCATE, "R"), (WRITE, "?"), (LOCATE, "?1"), (WRITE, "?"), (LOCATE, "?1"), (CLOSE, "S")], "0R 1R 2S 3S 4S", id="a-statement-behind-a-call"),
        pytest.param([(LOCATE, "R"), (WRITE, "?"), (LOCATE, "?1"), (WRITE, "?"), (UPD, "S")], "0R 1R 2S 3S 4S", id="an-update-closes-a-statement-behind-a-call"),
        pytest.param([(LOCATE, "R"), (WRITE, "?"), (CLOSE, "R"), (UPD, "S")], "0R 1R 3S", id="a-closed-call"),
        pytest.param([(LOCATE, "R"), (WRITE, "?"), (CLOSE, "S")], "0? 1?", id="a-call-that-another-row-closes"),
        pytest.param([(LOCATE, "R"), (WRITE, "?"), (UPD, "S")], "0R 1R 2S", id="an-update-behind-a-call"),
        pytest.param([(INS, "R"), (UPD, "R"), (CLOSE, "S"), (DEL, "S")], "0R 1R 3S", id="rowids-that-are-shown"),
        pytest.param([(INS, "?")], "0?", id="the-last-one"),
        pytest.param([(WRITE, "?"), (UPD, "S")], "0? 1S", id="a-call-without-its-beginning"),
        pytest.param([(WRITE, "?"), (CLOSE, "S"), (DEL, "T")], "0? 2T", id="a-call-and-the-close-of-what-is-left-out"),
        pytest.param([(WRITE, "?"), (LOCATE, "?"), (WRITE, "?"), (CLOSE, "R")], "0? 1R 2R", id="a-call-before-a-statement"),
    ],
)  # fmt: skip
def test_a_row_has_the_rowid_of_what_closes_its_statement(rows: list[Spec], expected: str) -> None:
    table = redo(*(("a", *row) for row in rows))
    assert " ".join(addressed(table)) == expected
    for cut in range(1, len(rows)):
        assert " ".join(addressed(table, cut=cut)) == expected


def test_transactions_in_between_are_others() -> None:
    rows = redo(
        ("a", INS, "?1"), ("b", INS, "?2"), ("a", LOCATE, "?1"), ("b", CLOSE, "S"), ("a", WRITE, "?"), ("a", CLOSE, "R"), ("b", DEL, "S")
    )  # fmt: skip
    for cut in range(1, 7):
        assert " ".join(addressed(rows, cut=cut)) == "0R 1S 2R 4R 6S"


def test_what_a_transaction_left_open_waits_no_longer_than_it_lasts() -> None:
    rows = redo(("a", LOCATE, "R"), ("a", WRITE, "?"), ("b", DEL, "S"), ("b", DEL, "T"))
    pieces = iter([rows.slice(0, 2), rows.slice(2, 1), rows.slice(3)])
    made = with_addresses(pieces, {("a", 99): 1, ("b", 99): 9}, lambda _: TABLE)
    assert next(made)["ordinal"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        pytest.param(FILLED, "0R 1R", id="its-own"),
        pytest.param(FILLED.replace("'1'", "'2'"), "0? 1?", id="of-another-row"),
        pytest.param(FILLED.replace('"L" =', """"V" = 'w', "L" ="""), "0? 1?", id="of-other-columns"),
        pytest.param(FILLED.replace(""" and "V" = 'v'""", ""), "0? 1?", id="that-does-not-name-all-columns"),
        pytest.param("update of another form", "0R 1R", id="that-is-refused-when-it-is-decoded"),
    ],
)  # fmt: skip
def test_an_update_closes_an_insert_whose_values_it_names(update: str, expected: str) -> None:
    rows = [("a", INS, "?", INSERTED), ("a", UPD, "R", update)]
    fine = [("b", INS, "?", INSERTED), ("b", UPD, "S", FILLED)]
    assert " ".join(addressed(redo(*rows, *fine))) == f"{expected} 2S 3S"


def test_a_row_without_an_address_is_refused_with_a_way_out() -> None:
    rows = redo(("a", INS, "?", INSERTED))
    [found] = with_addresses([rows], {}, lambda _: TABLE)
    more = {
        "commit_timestamp": pa.timestamp("s"), "username": pa.string(), "client_id": pa.string(), "ssn": pa.int64(),
        "start_scn": pa.int64(), "start_timestamp": pa.timestamp("s"),
    }  # fmt: skip
    for name, kind in more.items():
        found = found.append_column(name, pa.nulls(1, kind))
    with pytest.raises(DecodeError, match="does not show the ROWID") as raised:
        ChangeDecoder(TABLE, 99)(found)
    assert "under the table's key" in raised.value.hint


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        pytest.param([(INS, "?"), (UPD, "R"), (DEL, "-R")], "", id="an-insert-and-what-closes-it"),
        pytest.param([(UPD, "R"), (UPD, "?1"), (LOCATE, "?1"), (CLOSE, "R"), (UPD, "-R")], "0", id="an-update-with-lobs"),
        pytest.param([(LOCATE, "?"), (CLOSE, "R"), (LOCATE, "?"), (CLOSE, "R"), (UPD, "-R")], "0 1", id="one-of-two"),
        pytest.param([(INS, "?"), (CLOSE, "R"), (UPD, "R"), (UPD, "-R"), (DEL, "-R")], "", id="newest-first"),
        pytest.param([(DEL, "R"), (INS, "-R"), (DEL, "R")], "2", id="a-delete"),
        pytest.param([(UPD, "R"), (INS, "?1"), (LOCATE, "?1"), (DEL, "-S")], "0", id="one-that-failed-in-its-middle"),
        pytest.param([(LOCATE, "R"), (WRITE, "?"), (UPD, "R"), (UPD, "-R")], "0 1", id="an-update-behind-a-call"),
    ],
)  # fmt: skip
def test_an_undo_row_takes_back_the_newest_statement_of_its_row(
    rows: list[Spec], left: str
) -> None:
    table = redo(*(("a", *row) for row in rows), ("b", DEL, "T"))
    undone = find_undone(table, closes_shown=True)
    assert not undone.problems
    kept = undone.left_of(table.drop_columns(["problem"]))["ordinal"].to_pylist()
    assert " ".join(map(str, kept)) == f"{left} {len(rows)}".strip()


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(UPD, "-R")], id="nothing"),
        pytest.param([(INS, "?"), (CLOSE, "R"), (UPD, "-R")], id="an-insert-by-an-update"),
        pytest.param(
            [(UPD, "R"), (CLOSE, "R"), (UPD, "-R")], id="what-is-not-there-but-for-its-close"
        ),
        pytest.param(
            [(UPD, "R"), (INS, "?"), (DEL, "S"), (UPD, "-R")], id="over-one-that-nothing-closes"
        ),
        pytest.param([(UPD, "R"), (UPD, "-?")], id="without-a-rowid"),
        pytest.param(
            [(WRITE, "?"), (WRITE, "?"), (UPD, "-R")], id="calls-of-which-nobody-knows-how-many"
        ),
    ],
)
def test_what_cannot_be_told_is_a_problem_of_the_undo_row(rows: list[Spec]) -> None:
    undone = find_undone(redo(*(("a", *row) for row in rows)), closes_shown=True)
    assert list(undone.problems) == [len(rows) - 1]
    assert len(undone.ordinals) == 0
