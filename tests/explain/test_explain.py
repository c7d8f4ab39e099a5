"""What `redolake explain` makes of exports of the embedded Oracle: each format, fewer columns, other forms of XIDs, damaged rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from diagnosis.explain.explaining import explained
from diagnosis.explain.outcomes import ExplainedRow, ExplainedTransaction, Finding, Outcome
from diagnosis.explain.tables import read_tables
from diagnosis.explain.writing import check_target, write_rows
from tests.explain.exports import FORMATS, SCRIPT, TABLES, Rows, described, exported
from tests.oracle.embedded import OWNER, running_oracle


class Found:
    """An explanation, read whole."""

    def __init__(self, export: Path, tables: Path, **more: Any) -> None:
        self.left_out: list[Finding] = []
        schemas = read_tables(tables, report=self.left_out.append, **more)
        with explained(export, schemas) as outcomes:
            self.transactions: list[ExplainedTransaction] = list(outcomes.transactions())
            self.of = {one.xid: list(outcomes.rows_of(one)) for one in self.transactions}
            self.rows: list[ExplainedRow] = list(outcomes.rows())
            self.findings = list(outcomes.findings)
            self.counts = outcomes.counts()

    def said(self) -> list[Any]:
        """All that does not depend on the file's form."""
        return [self.transactions, self.rows]

    def at(self, number: int) -> ExplainedRow:
        """The statement with that row."""
        [found] = [row for row in self.rows if row.first_row <= number <= row.last_row]
        return found


def number_of(redo: Rows, *texts: str, code: int | None = None) -> int:
    """The number of the only row with these texts."""
    sql, codes = redo.columns.index("SQL_REDO"), redo.columns.index("OPERATION_CODE")
    [found] = [
        number
        for number, row in enumerate(redo.rows, start=1)
        if all(text in (row[sql] or "") for text in texts) and code in (None, row[codes])
    ]
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_says_the_same(form: str, redo: Rows, script: Path, tmp_path: Path) -> None:
    found = Found(redo.write(tmp_path / f"export.{form}"), script)
    orders, notes, back, left = found.transactions
    assert [one.state for one in found.transactions] == ["committed", "committed", "rolled back", "open"]  # fmt: skip
    assert (orders.username, orders.rows, orders.changes) == (OWNER, 4, 2)
    assert [(row.outcome, row.op) for row in found.of[orders.xid]] == [
        (Outcome.CHANGE, "c"), (Outcome.TAKEN_BACK, None), (Outcome.TAKES_BACK, None), (Outcome.CHANGE, "u"),
    ]  # fmt: skip
    insert, *_, update = found.of[orders.xid]
    assert insert.last_row > insert.first_row, "a statement that Oracle split"
    assert insert.after == {
        "ID": 1, "LINE": 1, "AMOUNT": "10.50", "AT": "2026-01-02 00:00:00", "NOTE": "q" + "w" * 3989,
    }  # fmt: skip
    assert update.before is not None
    assert update.before["AMOUNT"] == "10.50"
    assert update.after is not None
    assert update.after["AMOUNT"] == "3.00"
    row, piece, whole, gone = found.of[notes.xid]
    assert [one.outcome for one in (row, piece, whole, gone)] == [Outcome.CHANGE, Outcome.JOINED, Outcome.CHANGE, Outcome.CHANGE]  # fmt: skip
    assert piece.part_of == whole.first_row
    assert whole.after == {"ID": 1, "BODY": "x" + "y" * 2999 + "z" * 3000}
    assert gone.op == "d"
    assert "BODY" not in (gone.before or {"BODY"})
    assert [one.outcome for one in found.of[back.xid]][:1] == [Outcome.ROLLED_BACK]
    assert [(one.outcome, one.op) for one in found.of[left.xid]][:1] == [(Outcome.WAITS, "c")]
    assert left.why == "the export has no COMMIT and no ROLLBACK of it"
    assert found.findings == []
    assert [one.message[:23] for one in found.left_out] == ["column EXTRA of DEMO.NO"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda redo: redo.renamed(str.lower), id="names in lower case"),
        pytest.param(lambda redo: redo.select(*reversed(redo.columns)), id="columns in another order"),
        pytest.param(lambda redo: redo.mapped("XID", str.lower), id="hex digits in lower case"),
        pytest.param(lambda redo: redo.mapped("XID", lambda xid: f"0x{xid}"), id="0x"),
        pytest.param(lambda redo: redo.mapped("XID", lambda xid: dotted(xid)), id="dotted"),
        pytest.param(lambda redo: by_parts(redo), id="XIDUSN, XIDSLT, XIDSQN"),
        pytest.param(lambda redo: by_operation(redo), id="OPERATION for OPERATION_CODE"),
        pytest.param(lambda redo: redo.without("SSN", "INFO", "DATA_OBJ#", "THREAD#", "RS_ID"), id="fewer columns"),
        pytest.param(lambda redo: redo.without("SEG_OWNER"), id="no owner"),
        pytest.param(lambda redo: redo.renamed(lambda name: {"TABLE_NAME": "SEG_NAME"}.get(name, name)), id="SEG_NAME"),
        pytest.param(lambda redo: redo.mapped("SCN", lambda scn: f" {scn}.0"), id="blanks and a decimal point"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMATS)
def test_other_forms_say_the_same(
    change: Callable[[Rows], Rows], form: str, redo: Rows, script: Path, tmp_path: Path
) -> None:
    plain = Found(redo.write(tmp_path / "plain.csv"), script)
    other = Found(change(redo).write(tmp_path / f"other.{form}"), script)
    assert other.said() == plain.said()
    assert other.findings == []


def dotted(xid: str) -> str:
    raw = bytes.fromhex(xid)
    return ".".join(str(int.from_bytes(part, "little")) for part in (raw[:2], raw[2:4], raw[4:]))


def by_parts(redo: Rows) -> Rows:
    at = redo.columns.index("XID")
    rows = [(*map(int, dotted(row[at]).split(".")), *row) for row in redo.rows]
    return Rows(("XIDUSN", "XIDSLT", "XIDSQN", *redo.columns), rows).without("XID")


NAMES = {
    1: "INSERT", 2: "DELETE", 3: "UPDATE", 5: "DDL", 6: "START", 7: "COMMIT", 9: "SELECT_LOB_LOCATOR", 10: "LOB_WRITE",
    36: "ROLLBACK",
}  # fmt: skip


def by_operation(redo: Rows) -> Rows:
    named = redo.mapped("OPERATION_CODE", NAMES.__getitem__)
    return named.renamed(lambda name: {"OPERATION_CODE": "OPERATION"}.get(name, name))


def test_raw_xids_of_parquet(redo: Rows, script: Path, tmp_path: Path) -> None:
    plain = Found(redo.write(tmp_path / "plain.csv"), script)
    raw = redo.mapped("XID", bytes.fromhex).write(tmp_path / "raw.parquet")
    assert Found(raw, script).said() == plain.said()


def test_other_delimiters_and_what_a_spool_adds(redo: Rows, script: Path, tmp_path: Path) -> None:
    plain = Found(redo.write(tmp_path / "plain.csv"), script)

    lines = ["\ufeff", '"' + '";"'.join(redo.columns) + '"']
    lines += ['"' + '";"'.join(str("" if one is None else one).replace('"', '""') for one in row) + '"' for row in redo.rows]  # fmt: skip
    spooled = tmp_path / "spooled.csv"
    spooled.write_text("\n".join([*lines, "", f"{len(redo.rows)} rows selected."]))
    assert Found(spooled, script).said() == plain.said()


@pytest.mark.parametrize("form", FORMATS)
def test_the_dictionary_describes_tables_as_a_script_does(
    form: str, redo: Rows, tmp_path: Path
) -> None:
    with running_oracle() as oracle:
        oracle.run(*(one for one in SCRIPT.replace(", EXTRA JSON", "").split(";") if one.strip()))  # fmt: skip
        rows = described(oracle, TABLES)
    path = tmp_path / "tables.sql"
    path.write_text(SCRIPT.replace(", EXTRA JSON", ""))
    assert read_tables(rows.write(tmp_path / f"rows.{form}"), report=print) == read_tables(path, report=print)  # fmt: skip
    few = rows.select("TABLE_NAME", "COLUMN_NAME", "DATA_TYPE").write(tmp_path / f"few.{form}")
    with pytest.raises(ConfigError, match="owner"):
        read_tables(few, report=print)
    with pytest.raises(ConfigError, match=r"--key DEMO\.NOTES=COLUMN"):
        read_tables(few, owner=OWNER, report=print)


def test_a_transaction_without_its_beginning_or_end(
    redo: Rows, script: Path, tmp_path: Path
) -> None:
    insert = number_of(redo, "insert into", '"ORDERS"', "10.5")
    rest = Rows(redo.columns, redo.rows[insert:]).without("START_SCN")
    found = Found(rest.write(tmp_path / "rest.csv"), script)
    assert found.transactions[0].why == (
        "its beginning was never seen; capture ends the streams of its tables before it"
    )
    codes = redo.columns.index("OPERATION_CODE")
    alone = Rows(redo.columns, [row for row in redo.rows if row[codes] not in (6, 7, 36)])
    found = Found(alone.write(tmp_path / "alone.csv"), script)
    assert {one.state for one in found.transactions} == {"open"}
    assert Outcome.CHANGE not in found.counts
    assert found.counts[Outcome.WAITS] >= 4


def test_a_rollback_that_may_have_closed_a_savepoint_of_a_lob_table_says_so(
    redo: Rows, script: Path, tmp_path: Path
) -> None:
    """Its ROLLBACK row does not name the transaction in full, as one of an online log may not."""
    codes, xid = redo.columns.index("OPERATION_CODE"), redo.columns.index("XID")
    names = redo.columns.index("TABLE_NAME")
    notes = next(row[xid] for row in redo.rows if row[codes] == 1 and row[names] == "NOTES")
    own = [at for at, row in enumerate(redo.rows, start=1) if row[xid] == notes]
    partial = redo.changed(
        own[-1], XID=f"{notes[:8]}FFFFFFFF", OPERATION_CODE=36, OPERATION="ROLLBACK"
    )
    found = Found(partial.only(*own).write(tmp_path / "lobs.csv"), script)
    [one] = found.transactions
    assert one.state == "open"
    assert "may have closed a savepoint only" in (one.why or "")


def test_a_transaction_that_began_before_the_export(
    redo: Rows, script: Path, tmp_path: Path
) -> None:
    """START_SCN says when it began, although the export has no START row of it."""
    insert = number_of(redo, "insert into", '"ORDERS"', "10.5")
    rest = Rows(redo.columns, redo.rows[insert + 1 :])
    found = Found(rest.write(tmp_path / "rest.csv"), script)
    assert found.transactions[0].why == (
        "it began before the redo that was read; capture ends the streams of its tables before it"
    )


DAMAGES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a bad XID": ({"XID": "0A00"}, "XID is neither", "RAWTOHEX(XID)"),
    "an XID out of range": ({"XID": "70000.1.1"}, "a part of the XID is too large", ""),
    "a rounded SCN": ({"SCN": "1.5E+06"}, "SCN was rounded", "SET NUMWIDTH 20"),
    "no SCN": ({"SCN": None}, "the row has no SCN", ""),
    "an SCN in words": ({"SCN": "many"}, "SCN is not a whole number", ""),
    "an unknown operation": ({"OPERATION_CODE": "x"}, "OPERATION_CODE is not a whole number", ""),
    "no operation": ({"OPERATION_CODE": None}, "no OPERATION_CODE", "Export SCN"),
    "a bad address": ({"RS_ID": "here"}, "RS_ID is not of the form", ""),
    "a status in words": ({"STATUS": "fine"}, "STATUS is not a whole number", ""),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_damaged_row_is_named_and_hides_no_other(
    damage: str, form: str, redo: Rows, script: Path, tmp_path: Path
) -> None:
    values, message, hint = DAMAGES[damage]
    number = number_of(redo, "delete from", '"NOTES"')
    path = redo.changed(number, **values).write(tmp_path / f"damaged.{form}")
    whole, found = Found(redo.write(tmp_path / "whole.csv"), script), Found(path, script)
    [finding] = found.findings
    assert finding.row == number
    assert finding.is_damage
    assert message in finding.message
    assert hint in finding.hint
    assert found.at(number).outcome == Outcome.DAMAGED
    others = [one for one in whole.rows if one.first_row != number]
    assert [one for one in found.rows if one.first_row != number] == others


def test_damage_of_lines(redo: Rows, script: Path, tmp_path: Path) -> None:
    lines = redo.write(tmp_path / "export.jsonl").read_text().splitlines()
    lines[3] = lines[3][: len(lines[3]) // 2]
    lines[4] = "[1, 2]"
    path = tmp_path / "cut.jsonl"
    path.write_text("\n".join(lines))
    assert [(one.row, one.message) for one in Found(path, script).findings] == [
        (4, "the line is not JSON"), (5, "the line is not a JSON object"),
    ]  # fmt: skip

    path = tmp_path / "short.csv"
    path.write_bytes(b"SCN,OPERATION,XID,SEG_OWNER,TABLE_NAME,SQL_REDO\n5,START\n6,INSERT,1.2.3,DEMO,NOTES,\xff\n")  # fmt: skip
    found = Found(path, script)
    assert [one.message for one in found.findings if one.row] == [
        "the row has 2 values, and the header 6 names", "SQL_REDO is not UTF-8",
    ]  # fmt: skip


def test_a_statement_whose_end_is_missing(redo: Rows, script: Path, tmp_path: Path) -> None:
    first = number_of(redo, "insert into", '"ORDERS"', "10.5")
    rows = [row for number, row in enumerate(redo.rows, start=1) if number != first + 1]
    found = Found(Rows(redo.columns, rows).write(tmp_path / "gap.csv"), script)
    [finding] = found.findings
    assert finding.row == first
    assert "continues in another row (CSF)" in finding.message
    assert found.at(first).outcome == Outcome.DAMAGED
    assert found.counts[Outcome.CHANGE] == 4


def test_what_cannot_be_decoded_says_why(redo: Rows, script: Path, tmp_path: Path) -> None:
    update = number_of(redo, "update", '"ORDERS"', "'8'")
    secret = redo.changed(update, SQL_REDO=f'delete from "{OWNER}"."ORDERS" where "SECRET" = 4711;')
    row = Found(secret.write(tmp_path / "a.csv"), script).at(update)
    assert row.outcome == Outcome.UNDECODABLE
    assert row.way_out
    assert row.why == "a redo row names a column that the table's definition does not have (column SECRET)"  # fmt: skip
    delete = number_of(redo, "delete from", '"NOTES"')
    secret = redo.changed(delete, SQL_REDO=f'delete from "{OWNER}"."NOTES" where "SECRET" = 4711;')
    row = Found(secret.write(tmp_path / "d.csv"), script).at(delete)
    assert row.outcome == Outcome.UNDECODABLE
    assert "the values of excluded or masked columns cannot be removed" in (row.why or "")
    assert row.way_out
    assert row.sql_redo == f'delete from "{OWNER}"."NOTES" where "SECRET" = 4711;'
    untranslated = redo.changed(delete, STATUS=2)
    row = Found(untranslated.write(tmp_path / "b.csv"), script).at(delete)
    assert row.why == "LogMiner could not translate a change (STATUS 2 or 3)"
    at = redo.columns.index("ROLLBACK")
    undo = next(number for number, one in enumerate(redo.rows, start=1) if one[at])
    lost = redo.changed(undo, ROW_ID="AAAAAAAAAAAAAAAAAB")
    row = Found(lost.write(tmp_path / "c.csv"), script).at(undo)
    assert row.why == "a partial rollback undoes a row that the transaction's redo does not have"


def test_rows_that_stop_capture_are_named(redo: Rows, script: Path, tmp_path: Path) -> None:
    hole = redo.changed(1, OPERATION_CODE=34).changed(2, RS_ID=" 0x000000.00000000.0000 ", OPERATION_CODE=1)  # fmt: skip
    found = Found(hole.write(tmp_path / "hole.csv"), script)
    assert [(one.row, one.message[:30]) for one in found.findings] == [
        (1, "LogMiner found a hole in the r"), (2, "the row has no place in the re"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "lacking"),
    [
        (("SCN", "XID"), "SQL_REDO, OPERATION_CODE, TABLE_NAME"),
        (("SQL_REDO", "OPERATION_CODE", "TABLE_NAME", "SCN"), "XID"),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_a_file_without_needed_columns_is_refused(
    columns: tuple[str, ...], lacking: str, form: str, redo: Rows, script: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"columns={lacking}"):
        Found(redo.select(*columns).write(tmp_path / f"few.{form}"), script)


def test_columns_whose_lack_is_told(redo: Rows, script: Path, tmp_path: Path) -> None:
    found = Found(redo.without("ROLLBACK", "ROW_ID").write(tmp_path / "few.csv"), script)
    assert [one.message.split(":")[0] for one in found.findings] == [
        "the export has no ROLLBACK", "the export has no ROW_ID",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"", "the file is empty"),
        ("x.csv", "SCN,XID\n1,2\n".encode("utf-16"), "the file is in UTF-16"),
        ("x.jsonl", b"\n", "the file is empty"),
        ("x.json", b'{"results": [{"items": []}]}', "does not hold JSON lines"),
        ("x.parquet", b"PAR1", "cannot be read as Parquet"),
        ("x.dmp", b"x", "does not say what it holds"),
    ],
)
def test_other_files_are_refused(
    name: str, content: bytes, message: str, script: Path, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        Found(path, script)
    with pytest.raises(ConfigError, match="no such file"):
        Found(tmp_path / "none.csv", script)


def test_what_is_written(redo: Rows, script: Path, tmp_path: Path) -> None:
    export = redo.write(tmp_path / "export.csv")
    with explained(export, read_tables(script, report=print)) as outcomes:
        rows = list(outcomes.rows())
        assert write_rows(tmp_path / "rows.jsonl", outcomes.rows()) == len(rows)
        assert write_rows(tmp_path / "rows.parquet", outcomes.rows()) == len(rows)
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [ExplainedRow(**line | {"outcome": Outcome(line["outcome"])}) for line in lines] == rows
    held = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [json.loads(one["after"]) if one["after"] else None for one in held] == [one.after for one in rows]  # fmt: skip
    with pytest.raises(ConfigError, match="exists already"):
        check_target(export.with_name("rows.jsonl"))
    with pytest.raises(ConfigError, match="what to write"):
        check_target(tmp_path / "rows.xlsx")


def test_rows_without_a_key_are_told_apart_by_their_rowids(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE LOOSE (A NUMBER(9), B VARCHAR2(9))")
        oracle.run("INSERT INTO LOOSE VALUES (1, 'same')", "INSERT INTO LOOSE VALUES (1, 'same')")
        oracle.run("DELETE FROM LOOSE WHERE ROWNUM = 1")
        redo = exported(oracle, ["LOOSE"])
    script = tmp_path / "script.sql"
    script.write_text(f"CREATE TABLE {OWNER}.LOOSE (A NUMBER(9), B VARCHAR2(9))")
    with pytest.raises(ConfigError, match=r"--key DEMO\.LOOSE=ROWID"):
        Found(redo.write(tmp_path / "export.csv"), script)
    keys = {TableId(OWNER, "LOOSE"): ["ROWID"]}
    found = Found(redo.write(tmp_path / "export.csv"), script, keys=keys)
    changes = [row for row in found.rows if row.outcome is Outcome.CHANGE]
    assert [row.op for row in changes] == ["c", "c", "d"]
    first, second, gone = (row.after or row.before or {} for row in changes)
    assert first["_cdc_row_id"] == gone["_cdc_row_id"] != second["_cdc_row_id"]
