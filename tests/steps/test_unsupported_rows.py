"""A captured table gets a name that LogMiner does not take: its rows come without a statement."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import PreflightError
from oracle_embedded.redo import DEFAULT_WARTS
from tests.oracle.embedded import ADMIN, running_oracle
from tests.steps.harness import source_of, table_id


def test_the_table_stops_with_its_first_change_and_the_others_go_on(tmp_path: Path) -> None:
    with running_oracle(warts=DEFAULT_WARTS) as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)"
        )
        with source_of(oracle, tmp_path, "T", "U") as source:
            source.run()
            oracle.run("INSERT INTO T VALUES (1)")
            source.windows()
            oracle.run("ALTER TABLE T ADD (A_NAME_THAT_IS_31_BYTES_LONG_XX NUMBER(9))")
            oracle.run("INSERT INTO T VALUES (2, 2)", "INSERT INTO U VALUES (2)")
            source.windows()
            stopped = source.record("T")
            assert stopped.state == "failed"
            assert "UNSUPPORTED" in (stopped.reason or "")
            assert list(source.lake.tables[table_id("T")].rows) == [(1,)]
            source.check_current("U")


def test_a_schema_with_a_long_name_is_refused_by_name_and_left_out_by_a_pattern(
    tmp_path: Path,
) -> None:
    """The same name with 30 bytes is captured."""
    short = "AN_OWNER_WITH_A_NAME_OF_30_BYT"
    long = f"{short}E"
    with running_oracle(warts=DEFAULT_WARTS) as oracle:
        for owner in (short, long):
            oracle.run(
                f'CREATE USER {owner} IDENTIFIED BY "xY12345678"',
                f"GRANT CREATE SESSION, CREATE TABLE, UNLIMITED TABLESPACE TO {owner}",
                f"CREATE TABLE {owner}.T (ID NUMBER(9) PRIMARY KEY)",
                user=ADMIN,
            )
        with source_of(oracle, tmp_path) as source:
            source.close()
            source.tables = [{"name": f"{long}.T"}]
            with pytest.raises(PreflightError, match=f"longer than 30 bytes: {long}\\b"):
                source.run()
            source.close()
            source.tables = [{"name": "AN_OWNER_*.T"}]
            found = {one.table.owner: one.left_out for one in source.pipeline.find_tables()}
            assert found[short] == ""
            assert found[long].endswith(f"longer than 30 bytes: {long}")


@pytest.mark.parametrize(
    ("datatype", "shown", "value"),
    [
        pytest.param("BOOLEAN", "BOOLEAN", "TRUE", id="boolean"),
        pytest.param("JSON", "JSON", "'{\"a\": 1}'", id="json"),
        pytest.param("VECTOR(3, FLOAT32)", "VECTOR", "'[1, 2.5, 3]'", id="vector"),
    ],
)
def test_a_table_with_a_type_of_23ai_stops_also_where_the_column_is_left_out(
    tmp_path: Path, datatype: str, shown: str, value: str
) -> None:
    """It is refused with the column. Without, its snapshot has the other columns; no row of the redo has any."""
    with running_oracle(warts=DEFAULT_WARTS, release="23ai") as oracle:
        oracle.run(
            f"CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, B {datatype})",
            f"INSERT INTO T VALUES (1, {value})",
        )
        with source_of(oracle, tmp_path, "T") as source:
            with pytest.raises(PreflightError, match=f"B {shown}"):
                source.run()
            source.configure({"name": "T", "columns_exclude": ["B"]})
            source.run()
            assert list(source.lake.tables[table_id("T")].rows) == [(1,)]
            oracle.run("INSERT INTO T (ID) VALUES (2)")
            source.windows()
            assert source.record("T").state == "failed"
            assert "UNSUPPORTED" in (source.record("T").reason or "")
