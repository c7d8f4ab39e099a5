"""An export of the root has the rows of several pluggable databases, whose XIDs and names can be equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import ConfigError
from diagnosis.explain.explaining import explained
from diagnosis.explain.outcomes import Outcome
from diagnosis.explain.tables import read_tables
from tests.explain.exports import Rows
from tests.explain.test_command import explain

COLUMNS = ("SCN", "OPERATION_CODE", "XID", "SEG_OWNER", "TABLE_NAME", "SQL_REDO", "ROLLBACK", "CSF", "STATUS", "ROW_ID", "SRC_CON_NAME")  # fmt: skip
XID, OTHER = "0A00010000000001", "0A00010000000002"
SCRIPT = "CREATE TABLE DEMO.ORDERS (ID NUMBER(9) PRIMARY KEY);"
Redo = tuple[object, ...]


def control(scn: int, code: int, container: str | None, xid: str = XID) -> Redo:
    return (scn, code, xid, None, None, None, 0, 0, 0, None, container)


def change(scn: int, number: int, container: str | None, xid: str = XID, **more: object) -> Redo:
    text = f'insert into "DEMO"."ORDERS"("ID") values (\'{number}\')'
    values = {"code": 1, "rollback": 0, "row_id": f"AAA{number:015d}", "text": text} | more
    return (scn, values["code"], xid, "DEMO", "ORDERS", values["text"], values["rollback"], 0, 0, values["row_id"], container)  # fmt: skip


MIXED = [
    control(10, 6, "ONE"), control(11, 6, "TWO"), change(12, 1, "ONE"), control(13, 36, "TWO"),
    control(20, 7, "ONE"), control(21, 6, "ONE", OTHER), change(22, 2, "ONE", OTHER), control(23, 7, "TWO", OTHER),
]  # fmt: skip
"""Another container's ROLLBACK has the XID of a committed transaction, and its COMMIT that of an open one."""


def written(rows: list[Redo], tmp_path: Path, *, without: str = "") -> Path:
    found = Rows(COLUMNS, rows)
    return (found.without(without) if without else found).write(tmp_path / "export.csv")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "tables.sql"
    path.write_text(SCRIPT)
    return path


def outcomes(export: Path, table: Path, container: str | None = None) -> tuple[dict[str, str], list[str], list[Outcome]]:  # fmt: skip
    with explained(export, read_tables(table, report=print), container=container) as found:
        states = {one.xid.upper(): str(one.state) for one in found.transactions()}
        rows = [one.outcome for one in found.rows() if one.table]
        return states, [one.message for one in found.findings], rows


def test_a_container_is_part_of_an_xid(table: Path, tmp_path: Path) -> None:
    states, findings, _ = outcomes(written(MIXED, tmp_path), table)
    assert states == {XID: "committed", OTHER: "open"}
    assert findings == []


def test_an_export_without_containers_names_what_contradicts_itself(
    table: Path, tmp_path: Path
) -> None:
    _, findings, _ = outcomes(written(MIXED, tmp_path, without="SRC_CON_NAME"), table)
    [finding] = findings
    assert XID.lower() in finding
    assert "several containers" in finding


def test_tables_of_one_name_in_two_containers_are_told_apart(table: Path, tmp_path: Path) -> None:
    both = [*MIXED, change(30, 3, "TWO", OTHER)]
    with pytest.raises(ConfigError, match="several containers have rows of the described tables"):
        outcomes(written(both, tmp_path), table)
    states, _, rows = outcomes(written(both, tmp_path), table, container="ONE")
    assert (states, len(rows)) == ({XID: "committed", OTHER: "open"}, 2)
    result = explain(written(both, tmp_path), "--tables", table, "--container", "TWO")
    assert "insert DEMO.ORDERS ID=3" in result.stdout
    assert "ID=1" not in result.stdout
    with pytest.raises(ConfigError, match="does not say which container"):
        outcomes(written(MIXED, tmp_path, without="SRC_CON_NAME"), table, container="ONE")


def test_rows_that_name_no_container_count_as_the_described_ones(
    table: Path, tmp_path: Path
) -> None:
    states, _, _ = outcomes(written([control(10, 6, None), change(12, 1, "ONE"), control(13, 7, None)], tmp_path), table)  # fmt: skip
    assert states == {XID: "committed"}


def test_a_row_that_an_undo_row_does_not_fit_is_not_taken_back(table: Path, tmp_path: Path) -> None:
    """A failed INSERT whose undo is printed as an INSERT, too: nobody knows what it takes back."""
    rows = [
        control(10, 6, "ONE"), change(11, 1, "ONE"),
        change(12, 1, "ONE", rollback=1, row_id=f"AAA{1:015d}"), control(13, 7, "ONE"),
    ]  # fmt: skip
    _, _, found = outcomes(written(rows, tmp_path), table)
    assert found == [Outcome.CHANGE, Outcome.UNDECODABLE]


def test_one_reason_of_many_rows_is_printed_once(table: Path, tmp_path: Path) -> None:
    texts = [f'insert into "DEMO"."ORDERS"("ID") values (\'{n}x\')' for n in range(40)]
    rows = [control(10, 6, "ONE"), *(change(11 + n, n, "ONE", text=text) for n, text in enumerate(texts)), control(90, 7, "ONE")]  # fmt: skip
    result = explain(written(rows, tmp_path), "--tables", table)
    assert result.exit_code == 1
    said = " ".join(result.stdout.split())
    assert "39 more rows, for the reason of row 2" in said
    assert "40 rows undecodable, the first at row 2" in said
    assert len(result.stdout.splitlines()) < 20
