"""Columns of JSON and VECTOR, which release 23ai has: what they take, what the dictionary says, what of them can be read."""

from __future__ import annotations

from collections.abc import Iterator

import oracledb
import pytest

from tests.oracle.embedded import running_oracle


@pytest.fixture
def owner() -> Iterator[oracledb.Connection]:
    with running_oracle(release="23ai") as oracle, oracle.owner() as connection:
        with connection.cursor() as cursor:
            cursor.execute("create table t (id number, j json, e vector, f vector(3))")
            cursor.execute("alter table t add (g vector(3, float32))")
        yield connection


def rows(connection: oracledb.Connection, sql: str, *binds: object) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(binds))
        return cursor.fetchall() if cursor.description else []


def test_the_dictionary_names_the_types(owner: oracledb.Connection) -> None:
    for view in ("all_tab_columns", "user_tab_cols"):
        found = rows(
            owner, f"select column_name, data_type from {view} where table_name = 'T' order by 1"
        )
        assert found == [
            ("E", "VECTOR"), ("F", "VECTOR"), ("G", "VECTOR"), ("ID", "NUMBER"), ("J", "JSON")
        ]  # fmt: skip
    [(text,)] = rows(owner, "select to_char(dbms_metadata.get_ddl('TABLE', 'T')) from dual")
    for part in ('"J" JSON', '"E" VECTOR(*, *)', '"F" VECTOR(3, *)', '"G" VECTOR(3, FLOAT32)'):
        assert part in str(text)


def test_documents_are_read_as_text_and_the_other_columns_as_ever(
    owner: oracledb.Connection,
) -> None:
    rows(
        owner, "insert into t values (1, '{\"a\": [1, 2]}', '[1]', '[1, 2.5, 3]', to_vector(:1))", "[1,2,3]"
    )  # fmt: skip
    rows(owner, "insert into t (id, j) values (2, json(:1))", "7")
    rows(owner, "insert into t (id) values (3)")
    rows(owner, "update t set j = :1 where id = 3", '"x"')
    rows(owner, "update t set j = null where id = 2")
    found = rows(
        owner,
        "select id, json_serialize(j), json_value(j, '$.a[1]') from t order by id",
    )
    assert found == [(1, '{"a":[1,2]}', "2"), (2, None, None), (3, '"x"', None)]
    assert rows(
        owner,
        "select x.n from t, json_table(t.j, '$.a[*]' columns (n number path '$')) x order by 1",
    ) == [(1,), (2,)]
    assert rows(owner, "select id from t where g is not null") == [(1,)]
    rows(owner, "create table copy as select * from t")
    assert rows(owner, "select count(*), count(j), count(f) from copy") == [(3, 2, 1)]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("insert into t (j) values ('{\"a\": }')", "ORA-40441"),
        ("insert into t (j) values ('[NaN]')", "ORA-40441"),
        ("insert into t (f) values ('[1, 2]')", "ORA-51803.*expected 3 dimensions, specified 2"),
        ("insert into t (f) values ('1, 2')", "ORA-51804"),
        ("insert into t (f) values ('[1, \"2\", 3]')", "ORA-51805"),
        ("insert into t (j) values (1)", "ORA-00932"),
        ("select * from t", "ORA-03001.*JSON"),
        ("select id, g from t", "ORA-03001.*VECTOR"),
        ("select cursor(select j from t) from dual", "ORA-03001.*JSON"),
        ("select id from t where j = '{}'", "ORA-03001.*JSON"),
        ("select id from t where f in ('[1]')", "ORA-03001.*VECTOR"),
        ("select id from t order by j", "ORA-03001.*JSON"),
        ("select max(f) from t", "ORA-03001.*VECTOR"),
        ("select count(distinct j) from t", "ORA-03001.*JSON"),
        ("select to_char(j) from t", "ORA-00932"),
        ("select json_serialize(j pretty) from t", "ORA-03001"),
        ("select json_serialize(j, '$.a') from t", "ORA-03001"),
        ("alter table t add primary key (j)", "ORA-02329"),
        ("create index i on t (j)", "ORA-02327"),
        ("alter table t modify (f vector(4))", "ORA-03001"),
        ("create table u (v vector(3, int8))", "ORA-03001.*INT8"),
        ("create table u (v vector(3, text))", "ORA-51802"),
        ("create type u as object (j json)", "ORA-00902"),
    ],
)
def test_what_is_refused(owner: oracledb.Connection, sql: str, error: str) -> None:
    with pytest.raises(oracledb.DatabaseError, match=error):
        rows(owner, sql)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("create table u (j json)", "ORA-00902"),
        ("create table u (v vector(3))", "ORA-00902"),
        ("create table u (a number, v json as ('{}'))", "ORA-00902"),
        ("select to_vector('[1]') from dual", "ORA-00904"),
    ],
)
def test_before_23ai_there_are_none(sql: str, error: str) -> None:
    with (
        running_oracle() as oracle,
        oracle.owner() as connection,
        pytest.raises(oracledb.DatabaseError, match=error),
    ):
        rows(connection, sql)


def test_binds_in_their_forms_on_the_wire_are_refused(owner: oracledb.Connection) -> None:
    with owner.cursor() as cursor:
        cursor.setinputsizes(oracledb.DB_TYPE_JSON)
        with pytest.raises(oracledb.DatabaseError, match="ORA-03001"):
            cursor.execute("insert into t (j) values (:1)", [{"a": 1}])
