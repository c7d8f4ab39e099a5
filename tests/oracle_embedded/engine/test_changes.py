"""INSERT, UPDATE, DELETE, MERGE, constraints, and what the redo is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oracle_embedded.api import BindMeta, OracleError, OraType, RowOp, Value
from oracle_embedded.database import OpenDatabase

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client


@pytest.fixture
def parts(sql: Client) -> Client:
    sql("create table parent (id number(4) primary key, name varchar2(5) not null)")
    sql(
        "create table child (id number primary key, parent number(4) references parent on delete cascade,"
        " qty number(3) default 1 check (qty > 0), constraint child_u unique (parent, qty))"
    )
    sql.many("insert into parent values (:1, :2)", [(1, "one"), (2, "two")])
    sql("insert into child (id, parent) values (10, 1)")
    sql.session.commit()
    return sql


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("insert into parent values (1, 'dup')", 1),
        ("insert into parent values (3, null)", 1400),
        ("insert into parent values (null, 'x')", 1400),
        ("update parent set name = ''", 1407),
        ("insert into parent values (3, 'toolong')", 12899),
        ("insert into parent values (12345, 'x')", 1438),
        ("insert into parent values ('x', 'x')", 1722),
        ("insert into parent values (3)", 947),
        ("insert into parent values (3, 'x', 1)", 913),
        ("insert into parent (id, nope) values (3, 'x')", 904),
        ("insert into child (id, parent) values (11, 9)", 2291),
        ("insert into child (id, qty) values (11, 0)", 2290),
        ("update child set qty = -1", 2290),
        ("update child set parent = 9", 2291),
        ("update parent set id = 7 where id = 1", 2292),
        ("insert into child (id, parent, qty) values (12, 1, 1)", 1),
        ("delete from nope", 942),
        ("update parent set nope = 1", 904),
        ("update parent set id = 1, id = 2", 957),
    ],
)
def test_a_refused_change_leaves_nothing_behind(parts: Client, statement: str, code: int) -> None:
    before = parts("select * from parent order by 1"), parts("select * from child")
    with pytest.raises(OracleError) as raised:
        parts(statement)
    assert raised.value.code == code
    assert (parts("select * from parent order by 1"), parts("select * from child")) == before


def test_error_texts_name_what_is_wrong(parts: Client) -> None:
    with pytest.raises(OracleError, match=r'"DEMO"."PARENT"."NAME" \(actual: 7, maximum: 5\)'):
        parts("insert into parent values (3, 'toolong')")
    with pytest.raises(OracleError, match=r"unique constraint \(DEMO.CHILD_U\) violated"):
        parts("insert into child (id, parent) values (11, 1)")


def test_keys_may_move_over_each_other_within_a_statement(sql: Client) -> None:
    sql("create table t (id number primary key)")
    sql.many("insert into t values (:1)", [(n,) for n in range(5)])
    assert sql("update t set id = id + 1") == 5
    assert sql("select min(id), max(id) from t") == [("1", "5")]


def test_a_parent_takes_its_children_along(parts: Client) -> None:
    assert parts("delete from parent where id = 1") == 1
    assert parts("select count(*) from child") == [("0",)]


def test_defaults_come_when_nothing_is_given(parts: Client) -> None:
    parts("insert into child (id, qty) values (11, default)")
    assert parts.one("select qty from child where id = 11") == "1"
    parts("insert into child (id, qty) values (12, null)")
    assert parts.one("select qty from child where id = 12") is None


def test_insert_from_a_query_and_update_from_a_subquery(parts: Client) -> None:
    assert parts("insert into parent select id + 10, name from parent") == 2
    parts("update parent p set (name) = (select max(name) from parent) where id > 10")
    assert parts("select name from parent where id > 10") == [("two",), ("two",)]


def test_merge_updates_inserts_and_deletes(parts: Client) -> None:
    changed = parts(
        "merge into parent p using (select 1 id, 'uno' n from dual union all select 5, 'five' from dual"
        " union all select 2, 'out' from dual) s on (p.id = s.id)"
        " when matched then update set p.name = s.n delete where name = 'out'"
        " when not matched then insert (id, name) values (s.id, s.n) where s.id < 10"
    )
    assert changed == 3
    assert parts("select id, name from parent order by id") == [("1", "uno"), ("5", "five")]
    with pytest.raises(OracleError, match="ORA-30926"):
        parts(
            "merge into parent p using (select 1 id from dual union all select 1 from dual) s on (p.id = s.id)"
            " when matched then update set name = 'x'"
        )


def test_array_dml_counts_each_execution_and_keeps_what_came_before_an_error(parts: Client) -> None:
    outcome = parts.many(
        "update parent set name = :1 where id <= :2", [("a", 1), ("b", 2), ("c", 0)]
    )
    assert outcome.row_counts == [1, 2, 0]
    with pytest.raises(OracleError) as raised:
        parts.many("insert into parent values (:1, :2)", [(8, "x"), (8, "y"), (9, "z")])
    assert raised.value.row_count == 1
    assert parts.one("select count(*) from parent") == "3"


def test_batch_errors_are_collected(parts: Client) -> None:
    statement = parts.session.parse("insert into parent (id, name) values (:1, 'x')")
    rows = [[b"8"], [b"8"], [b"9"]]
    outcome = parts.session.execute(
        statement, rows, bind_metas=[BindMeta(OraType.VARCHAR, 4, 1)], batch_errors=True
    )
    assert outcome.row_count == 2
    assert [(index, error.code) for index, error in outcome.batch_errors] == [(1, 1)]


def test_returning_gives_the_new_values(parts: Client) -> None:
    statement = parts.session.parse(
        "update parent set name = name || '!' returning id, name into :a, :b"
    )
    assert list(statement.returning) == [0, 1]
    outcome = parts.session.execute(statement)
    assert outcome.out_binds[1].values == [[b"one!", b"two!"]]
    assert outcome.last_rowid is not None


def test_values_are_kept_as_the_column_says(sql: Client) -> None:
    sql(
        "create table t (n number(5,2), m number(5,-2), f float(10), c char(3), d date, t timestamp(2), v nvarchar2(3))"
    )
    sql(
        "insert into t values (1.005, 12345, 12.3456, 'a', date '2024-01-01', timestamp '2024-01-01 00:00:00.126', 'é€x')"
    )
    assert sql("select * from t") == [
        (
            "1.01",
            "12300",
            "12.35",
            "a  ",
            "2024-01-01 00:00:00",
            "2024-01-01 00:00:00.130000",
            "é€x",
        )
    ]


def test_identity_columns_count(sql: Client) -> None:
    sql("create table t (id number generated always as identity, v varchar2(5))")
    sql("insert into t (v) values ('a')")
    sql("insert into t (v) values ('b')")
    assert sql("select id, v from t order by 1") == [("1", "a"), ("2", "b")]
    with pytest.raises(OracleError, match="ORA-32795"):
        sql("insert into t (id) values (5)")


def test_sequences_count_per_session(sql: Client) -> None:
    sql("create sequence s start with 5 increment by 5")
    with pytest.raises(OracleError, match="ORA-08002"):
        sql("select s.currval from dual")
    assert [sql.one("select s.nextval from dual") for _ in range(2)] == ["5", "10"]
    assert sql.one("select s.currval from dual") == "10"


class Recorder:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def begin(self, transaction: Any) -> None:
        self.events.append(("begin",))

    def change(self, change: Any) -> None:
        self.events.append(
            (
                RowOp(change.op).name,
                change.rollback,
                change.rowid,
                change.before,
                change.after,
                change.scn,
            )
        )

    def commit(self, transaction: Any, scn: int, when: float) -> None:
        self.events.append(("commit", scn))

    def undone(self, transaction: Any) -> None:
        self.events.append(("undone",))

    def commit_empty(self, transaction: Any, scn: int, when: float) -> None:
        self.events.append(("empty", scn))

    def rollback(self, transaction: Any, scn: int, when: float) -> None:
        self.events.append(("rollback", scn))

    def ddl(
        self,
        transaction: Any,
        scn: int,
        when: float,
        text: str,
        owner: str,
        table: str | None,
        object_id: int,
    ) -> None:
        self.events.append(("ddl", text, owner, table))

    def xid_at(self, scn: int) -> bytes | None:
        """No redo is kept."""
        return None

    def mined(self, number: int, column: str) -> tuple[OraType, Value] | None:
        """No redo is kept."""
        return None

    def flush(self) -> None:
        """Nothing is held back."""

    def reload(self) -> None:
        """Nothing is held back."""


def test_the_redo_is_told_of_changes_and_of_their_undoing(
    parts: Client, database: OpenDatabase
) -> None:
    database.engine.store.sink = sink = Recorder()
    parts("update parent set name = 'uno' where id = 1")
    parts("savepoint s")
    parts("delete from parent where id = 2")
    parts("rollback to s")
    with pytest.raises(OracleError):
        parts(
            "insert into parent select id + 5, decode(id, 1, 'ok', 'too long') from parent order by id"
        )
    parts.session.commit()
    kinds = [event[:2] for event in sink.events]
    assert kinds[0] == ("begin",)
    assert kinds[1:-1] == [
        ("UPDATE", False), ("DELETE", False), ("INSERT", True), ("undone",),
        ("INSERT", False), ("DELETE", True), ("undone",),
    ]  # fmt: skip
    changes = [event for event in sink.events[1:-1] if event != ("undone",)]
    update, delete, undelete, insert, uninsert = changes
    assert update[4] == {2: b"uno"}
    assert update[3][2] == b"one"
    assert (undelete[2], undelete[4]) == (delete[2], delete[3])
    assert (uninsert[2], uninsert[3]) == (insert[2], insert[4])
    scns = [event[-1] for event in (*changes, sink.events[-1])]
    assert scns == sorted(set(scns))


def test_a_whole_rollback_undoes_in_reverse(parts: Client, database: OpenDatabase) -> None:
    database.engine.store.sink = sink = Recorder()
    parts("insert into parent values (7, 'x')")
    parts("update parent set name = 'y' where id = 7")
    parts.session.rollback()
    assert [event[0] for event in sink.events] == [
        "begin",
        "INSERT",
        "UPDATE",
        "UPDATE",
        "DELETE",
        "rollback",
    ]
    assert parts.one("select count(*) from parent") == "2"


def test_data_is_changed_through_a_query_of_one_table(sql: Client) -> None:
    sql("create table t (id number(9) primary key, v varchar2(20), n number)")
    assert sql("insert into (select id, v from t where id > 5) (id, v) values (1, 'a')") == 1
    assert sql("insert into (select v, id from t) values ('b', 2)") == 1
    assert sql("update (select id, v from t where id > 1) set v = v || id") == 1
    assert sql("update (select t.* from t) set v = 'x' where rowid in (select rowid from t where id = 1)") == 1  # fmt: skip
    assert sql("select id, v from t order by id") == [("1", "x"), ("2", "b2")]
    assert sql("delete from (select id from t where id > 1) where id < 9") == 1
    assert sql("select id from t") == [("1",)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("update (select distinct id, v from t) set v = 'x'", "ORA-01732"),
        ("delete from (select count(*) c from t)", "ORA-01732"),
        ("update (select id, n + 1 as m from t) set m = 3", "ORA-01733"),
        ("update (select id from t) set v = 'x'", "ORA-00904"),
        ("update (select id, v from t) set v = 'x' where n = 1", "ORA-00904"),
        ("delete from (select a.id from t a, t b where a.id = b.id)", "ORA-03001"),
        ("merge into (select id, v from t) using dual on (1 = 0) when not matched then insert (id) values (1)", "ORA-03001"),
    ],
)  # fmt: skip
def test_a_query_whose_rows_are_no_rows_of_a_table_is_not_changed(
    sql: Client, statement: str, error: str
) -> None:
    sql("create table t (id number(9) primary key, v varchar2(20), n number)")
    with pytest.raises(OracleError, match=error):
        sql(statement)
