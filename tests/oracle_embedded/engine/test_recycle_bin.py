"""Tables that are dropped and come back, rows that are flashed back, tables that change places online."""

from __future__ import annotations

import pytest

from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    "INSERT INTO T VALUES (1, 'one')",
    "INSERT INTO T VALUES (2, 'two')",
)


def rows(oracle: Oracle, query: str) -> list[tuple[object, ...]]:
    with oracle.owner() as connection:
        return list(connection.cursor().execute(query).fetchall())


def test_a_dropped_table_comes_back_as_the_object_that_it_was(oracle: Oracle) -> None:
    number = "SELECT OBJECT_ID FROM USER_OBJECTS WHERE OBJECT_NAME = 'T'"
    before = rows(oracle, number)
    oracle.run("DROP TABLE T")
    assert rows(oracle, number) == []
    [(name,)] = rows(oracle, "SELECT OBJECT_NAME FROM USER_RECYCLEBIN")
    assert (str(name)[:4], str(name)[-4:], len(str(name))) == ("BIN$", "==$0", 30)
    for view in (
        "USER_TABLES",
        "USER_TAB_COLS",
        "USER_TAB_COLUMNS",
        "USER_OBJECTS",
        "USER_INDEXES",
    ):
        assert rows(oracle, f"SELECT * FROM {view}") == [], "the bin's own views alone show it"
    assert rows(oracle, f'SELECT COUNT(*) FROM "{name}"') == [(2,)]
    oracle.run("CREATE TABLE T (ID NUMBER PRIMARY KEY)", "DROP TABLE T PURGE")
    oracle.run("FLASHBACK TABLE T TO BEFORE DROP")
    assert rows(oracle, number) == before
    assert rows(oracle, "SELECT * FROM T ORDER BY ID") == [(1, "one"), (2, "two")]


def test_what_is_purged_does_not_come_back(oracle: Oracle) -> None:
    oracle.run("DROP TABLE T", "PURGE TABLE T")
    with pytest.raises(Exception, match="ORA-38305"):
        oracle.run("FLASHBACK TABLE T TO BEFORE DROP")
    oracle.run("CREATE TABLE U (ID NUMBER)", "DROP TABLE U", "PURGE RECYCLEBIN")
    assert rows(oracle, "SELECT TABLE_NAME FROM USER_TABLES") == []


def test_the_bin_shows_what_is_in_it_and_keeps_it_as_it_is(oracle: Oracle) -> None:
    oracle.run("DROP TABLE T")
    wanted = "OBJECT_NAME, ORIGINAL_NAME, OPERATION, TYPE, CAN_UNDROP"
    [shown] = rows(oracle, f"SELECT {wanted} FROM RECYCLEBIN")
    name = str(shown[0])
    assert shown == (name, "T", "DROP", "TABLE", "YES")
    assert rows(oracle, f"SELECT {wanted} FROM USER_RECYCLEBIN") == [shown]
    assert rows(oracle, f'SELECT COUNT(*) FROM "{name}"') == [(2,)]
    for statement in (f'DELETE FROM "{name}"', f'ALTER TABLE "{name}" ADD (N NUMBER)', f'DROP TABLE "{name}"'):  # fmt: skip
        with pytest.raises(Exception, match="ORA-38301"):
            oracle.run(statement)
    oracle.run("PURGE RECYCLEBIN")
    assert rows(oracle, "SELECT * FROM USER_RECYCLEBIN") == []


def test_rows_come_back_as_dml(oracle: Oracle) -> None:
    [(scn,)] = rows(oracle, "SELECT DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER FROM DUAL")
    oracle.run(
        "DELETE FROM T WHERE ID = 1",
        "UPDATE T SET V = 'x' WHERE ID = 2",
        "INSERT INTO T VALUES (3, 'y')",
    )
    with pytest.raises(Exception, match="ORA-08189"):
        oracle.run(f"FLASHBACK TABLE T TO SCN {scn}")
    oracle.run("ALTER TABLE T ENABLE ROW MOVEMENT", f"FLASHBACK TABLE T TO SCN {scn}")
    assert rows(oracle, "SELECT * FROM T ORDER BY ID") == [(1, "one"), (2, "two")]


def test_a_redefined_table_is_another_object(oracle: Oracle) -> None:
    oracle.run("CREATE TABLE T_NEW (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(90))")
    number = "SELECT OBJECT_ID FROM USER_OBJECTS WHERE OBJECT_NAME = '{}'"
    before = [rows(oracle, number.format(name)) for name in ("T", "T_NEW")]
    call = f"BEGIN DBMS_REDEFINITION.{{}}('{OWNER}', 'T', 'T_NEW'); END;"
    oracle.run(
        call.format("START_REDEF_TABLE"),
        "UPDATE T SET V = 'changed' WHERE ID = 1",
        "DELETE FROM T WHERE ID = 2",
    )
    oracle.run(call.format("SYNC_INTERIM_TABLE"))
    assert rows(oracle, "SELECT * FROM T_NEW") == [(1, "changed")]
    oracle.run("INSERT INTO T VALUES (3, 'three')", call.format("FINISH_REDEF_TABLE"))
    assert rows(oracle, "SELECT * FROM T ORDER BY ID") == [(1, "changed"), (3, "three")]
    assert [rows(oracle, number.format(name)) for name in ("T_NEW", "T")] == before
