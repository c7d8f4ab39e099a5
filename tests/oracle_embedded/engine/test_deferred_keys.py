"""Deferrable keys: two rows may hold one until the end of the statement or of the transaction, and no longer."""

from __future__ import annotations

import threading
from typing import Any

import oracledb
import pytest

from oracle_embedded.api import OracleError
from tests.oracle_embedded.engine.conftest import Client, Connect
from tests.oracle_embedded.engine.test_transactions import wait_until, waits

DEFERRED = "deferrable initially deferred"
IMMEDIATE = "deferrable initially immediate"


@pytest.fixture
def table(sql: Client) -> Client:
    """Rows 1 and 2 under a primary key that is checked at the commit, and a unique one that is checked there when told so."""
    sql(
        f"create table t (id number(9) constraint t_pk primary key {DEFERRED}, v varchar2(9) constraint t_v unique {IMMEDIATE})"
    )
    sql("insert into t values (1, 'one')")
    sql("insert into t values (2, 'two')")
    sql("commit")
    return sql


def rows(sql: Client) -> Any:
    return sql("select id, v from t order by id, v")


def test_the_dictionary_says_when_a_key_is_checked(table: Client) -> None:
    assert table(
        "select constraint_name, deferrable, deferred from user_constraints order by constraint_name"
    ) == [("T_PK", "DEFERRABLE", "DEFERRED"), ("T_V", "DEFERRABLE", "IMMEDIATE")]
    assert set(table("select uniqueness from user_indexes where table_name = 'T'")) == {
        ("NONUNIQUE",)
    }


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(
            ("insert into t values (1, 'new')", "delete from t where id = 1 and v = 'one'"),
            id="insert-before-delete",
        ),
        pytest.param(
            ("update t set id = 2 where v = 'one'", "update t set id = 1 where v = 'two'"),
            id="swap",
        ),
    ],
)
def test_rows_share_a_key_until_the_commit(table: Client, statements: tuple[str, ...]) -> None:
    table(statements[0])
    assert "2" in {count for (count,) in table("select count(*) from t group by id")}
    for statement in statements[1:]:
        table(statement)
    table("commit")
    assert [row for (row,) in table("select id from t order by id")] == ["1", "2"]


def test_a_key_that_is_double_at_the_commit_takes_the_transaction_back(table: Client) -> None:
    table("update t set v = 'changed' where id = 2")
    table("insert into t values (1, 'new')")
    with pytest.raises(OracleError, match=r"(?s)ORA-02091.*ORA-00001.*DEMO\.T_PK"):
        table("commit")
    assert rows(table) == [("1", "one"), ("2", "two")]
    table("insert into t values (3, 'three')")
    table("commit")
    assert rows(table)[-1] == ("3", "three")


def test_the_driver_sees_that_a_commit_failed(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    cursor.execute(f"create table d (id number(9) primary key {DEFERRED})")
    cursor.executemany("insert into d values (:1)", [(1,), (1,)])
    with pytest.raises(oracledb.DatabaseError, match=r"(?s)ORA-02091.*ORA-00001"):
        driver.commit()
    assert cursor.execute("select count(*) from d").fetchone() == (0,)


def test_ddl_commits_before_it_runs_and_fails_with_that(table: Client) -> None:
    table("insert into t values (1, 'new')")
    with pytest.raises(OracleError, match="ORA-02091"):
        table("create table other (id number(9))")
    assert table("select count(*) from user_tables") == [("1",)]


def test_a_double_key_behind_a_savepoint_goes_with_it(table: Client) -> None:
    table("savepoint here")
    table("insert into t values (1, 'new')")
    table("rollback to savepoint here")
    table("commit")
    assert rows(table) == [("1", "one"), ("2", "two")]


def test_an_immediate_key_is_checked_with_the_statement(table: Client) -> None:
    with pytest.raises(OracleError, match=r"ORA-00001.*T_V"):
        table("insert into t values (3, 'one')")
    table("update t set v = case v when 'one' then 'two' else 'one' end")
    table("commit")
    assert rows(table) == [("1", "two"), ("2", "one")]


def test_set_constraints_lasts_for_a_transaction(table: Client) -> None:
    table("set constraint t_v deferred")
    table("insert into t values (3, 'one')")
    table("update t set v = 'three' where id = 3")
    table("commit")
    with pytest.raises(OracleError, match="ORA-00001"):
        table("insert into t values (4, 'one')")
    table("set constraints all immediate")
    with pytest.raises(OracleError, match="ORA-00001"):
        table("insert into t values (1, 'four')")
    table("rollback")
    table("insert into t values (1, 'four')")


def test_set_immediate_refuses_what_is_double_now(table: Client) -> None:
    table("insert into t values (1, 'new')")
    with pytest.raises(OracleError, match=r"ORA-00001.*T_PK"):
        table("set constraints all immediate")
    table("set constraints t_v immediate")
    table("delete from t where v = 'one'")
    table("set constraints demo.t_pk, t_v immediate")
    with pytest.raises(OracleError, match="ORA-00001"):
        table("insert into t values (1, 'newer')")


@pytest.mark.parametrize(
    ("name", "code"), [("no_such", "ORA-02448"), ("u_pk", "ORA-02447")], ids=["unknown", "rigid"]
)
def test_what_cannot_be_deferred_is_refused(table: Client, name: str, code: str) -> None:
    table("create table u (id number(9) constraint u_pk primary key)")
    with pytest.raises(OracleError, match=code):
        table(f"set constraint {name} deferred")


def test_the_key_of_an_index_organized_table_cannot_wait(sql: Client) -> None:
    with pytest.raises(OracleError, match="ORA-25188"):
        sql(f"create table i (id number(9) primary key {DEFERRED}) organization index")


def test_a_unique_index_cannot_keep_a_deferrable_key(sql: Client) -> None:
    sql("create table i (id number(9))")
    sql("create unique index i_id on i (id)")
    with pytest.raises(OracleError, match="ORA-01408"):
        sql(f"alter table i add constraint i_pk primary key (id) {DEFERRED}")


def test_a_key_that_another_session_holds_is_waited_for(table: Client, connect: Connect) -> None:
    other = connect()
    other("delete from t where id = 1")
    done: list[Any] = []
    waiter = threading.Thread(
        target=lambda: done.append(table("insert into t values (1, 'new')")), daemon=True
    )
    waiter.start()
    wait_until(lambda: waits(table))
    assert not done
    other("commit")
    waiter.join()
    table("commit")
    assert rows(table) == [("1", "new"), ("2", "two")]


def test_an_old_double_key_that_nobody_touches_is_left_alone(sql: Client) -> None:
    """ENABLE NOVALIDATE: rows from before may share a key."""
    sql("create table n (id number(9), v number(9))")
    sql("insert into n select 1, level from dual connect by level <= 2")
    sql(f"alter table n add constraint n_pk primary key (id) {DEFERRED} enable novalidate")
    sql("savepoint here")
    sql("insert into n values (1, 3)")
    sql("rollback to savepoint here")
    sql("insert into n values (2, 4)")
    sql("commit")
    sql("insert into n values (1, 5)")
    with pytest.raises(OracleError, match="ORA-02091"):
        sql("commit")


@pytest.fixture
def family(sql: Client) -> Client:
    """A foreign key that is checked at the commit, as those of Django are."""
    sql("create table parent (id number(9) primary key)")
    sql(
        "create table child (id number(9) primary key, parent_id number(9)"
        f" constraint child_fk references parent {DEFERRED})"
    )
    return sql


def test_a_child_may_come_before_its_parent(family: Client) -> None:
    family("insert into child values (1, 7)")
    family("insert into child values (2, null)")
    family("insert into parent values (7)")
    family("commit")
    family("update parent set id = 8")
    family("update child set parent_id = 8 where id = 1")
    family("commit")
    family("delete from parent")
    family("delete from child")
    family("commit")
    assert family("select count(*) from child") == [("0",)]


@pytest.mark.parametrize(
    "changes",
    [
        ["insert into child values (1, 7)"],
        ["insert into parent values (7)", "insert into child values (1, 7)", "delete from parent"],
        [
            "insert into parent values (7)",
            "insert into child values (1, 7)",
            "update parent set id = 9",
        ],
    ],
)
def test_a_child_without_a_parent_takes_the_transaction_back(
    family: Client, changes: list[str]
) -> None:
    for change in changes:
        family(change)
    with pytest.raises(
        OracleError, match=r"transaction rolled back\n.*CHILD_FK.*parent key not found"
    ) as caught:
        family("commit")
    assert caught.value.code == 2091
    assert family("select count(*) from child") == family("select count(*) from parent") == [("0",)]


def test_what_a_savepoint_takes_back_needs_no_parent(family: Client) -> None:
    family("savepoint s")
    family("insert into child values (1, 7)")
    family("rollback to s")
    family("insert into parent values (1)")
    family("commit")
    assert family("select count(*) from parent") == [("1",)]


def test_a_foreign_key_is_checked_at_once_when_told_so(family: Client) -> None:
    family("set constraints child_fk immediate")
    with pytest.raises(OracleError, match="parent key not found") as caught:
        family("insert into child values (1, 7)")
    assert caught.value.code == 2291
