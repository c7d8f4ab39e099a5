"""Tables with names that LogMiner does not take."""

from __future__ import annotations

from pathlib import Path

import oracledb
import pytest

from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.driver import live, run

LONG = "a_name_that_is_31_bytes_long_xx"


@pytest.mark.parametrize(
    "create",
    [
        pytest.param(f"create table {LONG} (id number)", id="table"),
        pytest.param(f"create table t (id number, {LONG} number)", id="column"),
        pytest.param("create table t (id number, \"ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ\" number)", id="in-bytes"),
    ],
)  # fmt: skip
def test_changes_of_a_table_with_a_long_name_have_no_statement(tmp_path: Path, create: str) -> None:
    name = create.split()[2]
    with live(tmp_path, Wart.UNSUPPORTED_ROWS) as running:
        owner = running.connect()
        run(owner, create, "create table short (id number)")
        run(owner, f"insert into {name} (id) values (1)", f"update {name} set id = 2")
        run(owner, "insert into short values (1)")
        owner.commit()
        rows = running.miner().mine(where=f"table_name = '{name.upper()}' and operation_code < 256")
        changes = [row for row in rows if row["OPERATION"] != "DDL"]
        assert [(row["OPERATION_CODE"], row["OPERATION"]) for row in changes] == [
            (255, "UNSUPPORTED"), (255, "UNSUPPORTED")
        ]  # fmt: skip
        assert {(row["SQL_REDO"], row["STATUS"]) for row in changes} == {("Unsupported", 2)}
        found = running.miner().mine(where="operation_code = 255")
        assert len(found) == 2
        [other] = running.miner().mine(where="operation_code = 1 and table_name = 'SHORT'")
        assert other["STATUS"] == 0


def test_names_of_30_bytes_are_taken(tmp_path: Path) -> None:
    with live(tmp_path, Wart.UNSUPPORTED_ROWS) as running:
        owner = running.connect()
        run(owner, f"create table t ({LONG[:30]} number)", "insert into t values (1)")
        owner.commit()
        [row] = running.miner().mine(where="operation_code = 1 and table_name = 'T'")
        assert row["STATUS"] == 0


def test_changes_of_a_table_with_a_boolean_have_no_statement(tmp_path: Path) -> None:
    """Also those that do not touch it; before 23ai there is no such column."""
    with live(tmp_path / "new", Wart.UNSUPPORTED_ROWS, release="23ai") as running:
        owner = running.connect()
        run(owner, "create table t (id number, b boolean)", "insert into t values (1, true)")
        run(
            owner, "insert into t (id) values (2)", "update t set id = 3 where id = 2 and b is null"
        )
        owner.commit()
        cursor = owner.cursor()
        cursor.execute("select id, b from t where b = true or id = 3 order by id")
        assert cursor.fetchall() == [(1, True), (3, None)]
        rows = running.miner().mine(where="operation_code = 255 and table_name = 'T'")
        assert [row["SQL_REDO"] for row in rows] == ["Unsupported"] * 3
    with live(tmp_path / "old") as running:
        owner = running.connect()
        with pytest.raises(oracledb.DatabaseError, match="ORA-00902"):
            run(owner, "create table t (id number, b boolean)")
        with pytest.raises(oracledb.DatabaseError, match="ORA-00904"):
            run(owner, "select true from dual")


def test_changes_of_a_table_with_json_or_a_vector_have_no_statement(tmp_path: Path) -> None:
    """As with a BOOLEAN, also those that do not touch it."""
    with live(tmp_path, Wart.UNSUPPORTED_ROWS, release="23ai") as running:
        owner = running.connect()
        run(owner, "create table j (id number, d json)", "create table v (id number)")
        run(owner, "insert into v values (1)")
        owner.commit()
        run(owner, "alter table v add (e vector(2, float32))")
        run(owner, "insert into j values (1, '{\"a\": 1}')", "update j set id = 2", "delete from j")
        run(owner, "insert into v values (2, '[1, 2.5]')", "update v set e = null where id = 2")
        owner.commit()
        rows = running.miner().mine(where="operation_code = 255 and table_name in ('J', 'V')")
        assert [(row["TABLE_NAME"], row["SQL_REDO"]) for row in rows] == [
            ("J", "Unsupported"), ("J", "Unsupported"), ("J", "Unsupported"), ("V", "Unsupported"), ("V", "Unsupported")
        ]  # fmt: skip
        [before] = running.miner().mine(where="operation_code = 1 and table_name = 'V'")
        assert before["STATUS"] == 0


def test_changes_of_a_table_with_a_nested_table_have_no_statement(tmp_path: Path) -> None:
    """Also those that do not touch it, from the DDL on that brings it; a VARRAY and an object do not do that."""
    with live(tmp_path, Wart.UNSUPPORTED_ROWS) as running:
        owner = running.connect()
        run(
            owner,
            "create type tags as table of varchar2(9)",
            "create type pair as varray(2) of number",
            "create table n (id number, c tags) nested table c store as n_c",
            "create table v (id number, c pair)",
            "insert into v values (1, pair(1, 2))",
        )
        run(owner, "insert into n values (1, tags('a'))", "update n set id = 2", "delete from n")
        owner.commit()
        run(owner, "alter table v add (d tags) nested table d store as v_d")
        run(owner, "update v set id = 2")
        owner.commit()
        rows = running.miner().mine(where="operation_code = 255 and table_name in ('N', 'V')")
        assert [(row["TABLE_NAME"], row["SQL_REDO"]) for row in rows] == [
            ("N", "Unsupported"), ("N", "Unsupported"), ("N", "Unsupported"), ("V", "Unsupported")
        ]  # fmt: skip
        [before] = running.miner().mine(where="operation_code = 1 and table_name = 'V'")
        assert (before["STATUS"], "Unsupported Type" in str(before["SQL_REDO"])) == (0, True)
