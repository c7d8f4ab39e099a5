"""Tables with JSON, BOOLEAN or VECTOR columns, of which LogMiner shows no row: what transactions changed is read from Oracle as of their commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from cdc_core.config import SourceConfig, TableConfig
from cdc_core.steps.source_checks import oracle_findings
from oracle_embedded.faults import Fault, FaultKind
from oracle_embedded.redo import DEFAULT_WARTS
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

T = table_id("T")
RESELECT = {"unsupported_columns": "reselect"}
ONE = (1, True, '{"a":1}', "[1.0E+000,2.5E+000]", "x")


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, B BOOLEAN, D JSON, V VECTOR(2, FLOAT32), N VARCHAR2(9))",
    "INSERT INTO T VALUES (1, TRUE, '{\"a\": 1}', '[1, 2.5]', 'x')",
    warts=DEFAULT_WARTS,
    release="23ai",
)


def opened(oracle: Oracle, folder: Path, name: str = "T", **own: Any) -> Source:
    source = source_of(oracle, folder, "T").__enter__()
    source.configure({"name": name, **RESELECT, **own})
    source.run()
    return source


def test_every_change_arrives_with_the_values_of_its_commit(oracle: Oracle, tmp_path: Path) -> None:
    """Several transactions of one window; one that writes a row often, one that takes all back, one that changes nothing."""
    source = opened(oracle, tmp_path)
    assert source.lake.image(T) == [ONE]
    oracle.run("INSERT INTO T VALUES (2, FALSE, '[1, 2]', NULL, 'y')")
    oracle.run("UPDATE T SET D = '{\"a\": 2}' WHERE ID = 1")
    oracle.run(
        "UPDATE T SET B = NULL, N = 'z' WHERE ID = 1", "UPDATE T SET V = '[3, 4]' WHERE ID = 1"
    )
    oracle.run("UPDATE T SET N = N WHERE ID = 2")
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO T (ID) VALUES (3)")
        cursor.execute("SAVEPOINT S")
        cursor.execute("DELETE FROM T WHERE ID = 2")
        cursor.execute("ROLLBACK TO SAVEPOINT S")
        connection.commit()
    oracle.run("DELETE FROM T WHERE ID = 3")
    windows = source.windows()
    assert source.record("T").state == "ready", source.record("T").reason
    assert source.lake.image(T) == [
        (1, None, '{"a":2}', "[3.0E+000,4.0E+000]", "z"),
        (2, False, "[1,2]", None, "y"),
    ]
    assert source.ops("T") == "cuucd"
    changes = source.lake.tables[T].history[-5:]
    assert [one["after"] and one["after"]["D"] for one in changes] == ["[1,2]", '{"a":2}', '{"a":2}', None, None]  # fmt: skip
    assert changes[2]["before"]["B"] is True
    assert changes[2]["_cdc_absent"] == []
    source.check_current("T")
    source.check_replayed("T", windows)
    assert windows


def test_keys_that_move_between_rows_end_where_oracle_has_them(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = opened(oracle, tmp_path)
    oracle.run(
        "INSERT INTO T (ID, N) VALUES (2, 'two')", "INSERT INTO T (ID, N) VALUES (3, 'three')"
    )
    oracle.run("UPDATE T SET ID = 3 - ID WHERE ID IN (1, 2)")
    oracle.run("UPDATE T SET ID = 4 WHERE ID = 3")
    oracle.run("UPDATE T SET ID = ID + 1")
    oracle.run("DELETE FROM T WHERE ID = 5", "INSERT INTO T (ID, N) VALUES (5, 'again')")
    windows = source.windows()
    source.check_current("T")
    assert [row[0] for row in source.lake.image(T)] == [2, 3, 5]
    source.check_replayed("T", windows)


def test_a_transaction_over_windows_and_a_large_one(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc_core.steps.windows.reselecting_rows.PART_ROWS", 3)
    source = opened(oracle, tmp_path)
    with oracle.owner() as connection:
        cursor = connection.cursor()
        for key in range(10, 20):
            cursor.execute("INSERT INTO T (ID, D) VALUES (:1, '{\"k\": 1}')", [key])
        oracle.run("INSERT INTO T (ID) VALUES (2)")
        source.windows()
        assert [row[0] for row in source.lake.image(T)] == [1, 2]
        cursor.execute("UPDATE T SET B = TRUE WHERE ID > 15")
        connection.commit()
    source.windows()
    source.check_current("T")
    assert len(source.lake.image(T)) == 12


def test_what_oracle_has_forgotten_stops_the_table_until_it_tells(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = opened(oracle, tmp_path)
    oracle.run("UPDATE T SET N = 'new' WHERE ID = 1")
    query = 'FROM "DEMO"."T" AS OF SCN'
    oracle.server.faults.arm(Fault(FaultKind.ORA_ERROR, sql_contains=query, code=1555))
    [window] = source.capture()
    source.windows()
    record = source.record("T")
    assert record.state == "failed"
    assert "Oracle did not tell what the transaction changed" in str(record.reason)
    assert "redolake recapture" in str(record.way_out)
    assert source.lake.image(T) == [ONE]
    list(source.pipeline.recapture(first=window))
    source.pipeline.resume_tables([T])
    source.windows()
    source.check_current("T")
    assert source.lake.image(T)[0][-1] == "new"


@pytest.mark.parametrize("part_rows", [1, 1000])
def test_an_address_at_which_oracle_has_no_row_stops_the_table(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_rows: int
) -> None:
    """The change would be lost; a row that came and went in one transaction is at no address either."""
    module = "cdc_core.steps.windows.reselecting_rows"
    monkeypatch.setattr(f"{module}.PART_ROWS", part_rows)
    source = opened(oracle, tmp_path)
    oracle.run(
        "INSERT INTO T (ID) VALUES (2)",
        "DELETE FROM T WHERE ID = 2",
        "UPDATE T SET N = 'b' WHERE ID = 1",
    )
    source.windows()
    source.check_current("T")
    assert source.record("T").state == "ready", source.record("T").reason
    elsewhere = ["AAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAC"]
    monkeypatch.setattr(
        f"{module}.known_row_ids", lambda row_ids: pa.array(elsewhere[: len(row_ids)])
    )
    oracle.run("INSERT INTO T (ID) VALUES (3)", "UPDATE T SET N = 'lost' WHERE ID = 1")
    source.windows()
    assert "Oracle did not tell" in str(source.record("T").reason)
    assert source.lake.image(T) == [(*ONE[:-1], "b")]


def test_without_rowids_the_version_query_says_which_rows_changed(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether LogMiner shows ROWIDs in such rows is unproved."""
    source = opened(oracle, tmp_path)
    monkeypatch.setattr(
        "cdc_core.steps.windows.reselecting_rows.known_row_ids",
        lambda row_ids: pa.nulls(len(row_ids), pa.string()),
    )
    oracle.run("INSERT INTO T (ID, D) VALUES (2, '[2]')", "INSERT INTO T (ID) VALUES (3)")
    oracle.run("UPDATE T SET ID = 4, B = FALSE WHERE ID = 1")
    oracle.run("DELETE FROM T WHERE ID = 3", "UPDATE T SET N = 'a' WHERE ID = 2")
    windows = source.windows()
    assert source.ops("T").replace("d", "u") == "ccuuu"
    source.check_current("T")
    source.check_replayed("T", windows)


def test_a_column_that_comes_with_a_ddl_is_captured(oracle: Oracle, tmp_path: Path) -> None:
    """Rows of one window from before the DDL, which LogMiner shows, and from behind it."""
    oracle.run(
        "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, N VARCHAR2(9))", "INSERT INTO U VALUES (1, 'a')"
    )
    source = opened(oracle, tmp_path, "U")
    oracle.run("INSERT INTO U VALUES (2, 'b')")
    oracle.run("ALTER TABLE U ADD (D JSON)")
    oracle.run("UPDATE U SET D = '[]' WHERE ID = 1")
    windows = source.windows()
    assert source.record("U").state == "ready", source.record("U").reason
    assert source.lake.image(table_id("U")) == [(1, "a", "[]"), (2, "b", None)]
    oracle.run("DELETE FROM U WHERE ID = 2")
    windows += source.windows()
    source.check_current("U")
    source.check_replayed("U", windows)


def test_a_truncate_is_followed(oracle: Oracle, tmp_path: Path) -> None:
    """Oracle tells no row from before it, so its window is captured first."""
    source = opened(oracle, tmp_path, on_truncate="follow")
    oracle.run("TRUNCATE TABLE T")
    oracle.run("INSERT INTO T (ID, D) VALUES (7, '[7]')")
    windows = source.windows()
    assert source.record("T").state == "ready", source.record("T").reason
    assert source.lake.image(T) == [(7, None, "[7]", None, None)]
    source.check_current("T")
    source.check_replayed("T", windows)


def test_a_pattern_and_a_kind_reselect_too(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE W (ID NUMBER(9) PRIMARY KEY, D JSON, L LONG)",
        "INSERT INTO W VALUES (1, '[]', 'long')",
    )
    source = opened(oracle, tmp_path, "*")
    oracle.run("UPDATE W SET D = '[1]'", "UPDATE T SET B = FALSE")
    source.windows()
    assert source.lake.image(table_id("W")) == [(1, "[1]")]
    assert source.lake.image(T)[0][1] is False
    with source_of(oracle, tmp_path / "kinds", "W") as other:
        other.configure({"name": "W", "unsupported_columns": {"JSON": "reselect", "LONG": "omit"}})
        other.run()
        assert other.lake.image(table_id("W")) == [(1, "[1]")]


def test_doctor_says_what_it_means(oracle: Oracle, tmp_path: Path) -> None:
    source = opened(oracle, tmp_path)
    findings, _ = oracle_findings(source.written())
    told = [one.problem for one in findings if "LogMiner does not show" in one.problem]
    assert told
    assert not any("translate" in one.problem for one in findings)
    assert source.status("T").columns_reselected == ("B BOOLEAN", "D JSON", "V VECTOR")


def test_by_row_id_and_what_cannot_be(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE R (N NUMBER(9), D JSON)", "INSERT INTO R VALUES (1, '[1]')")
    source = opened(oracle, tmp_path, "R", identity="rowid")
    oracle.run("UPDATE R SET N = 2", "INSERT INTO R VALUES (3, NULL)")
    source.windows()
    source.check_current("R")
    with pytest.raises(
        ValidationError, match="reselect is for JSON, BOOLEAN, VECTOR, not for LONG"
    ):
        TableConfig(name=f"{OWNER}.T", unsupported_columns={"LONG": "reselect"})
    written = source.written().model_dump() | {"capture": {"type": "xstream", "server": "OUT"}}
    with pytest.raises(ValidationError, match=r"is for capture\.type logminer"):
        SourceConfig.model_validate(written)
