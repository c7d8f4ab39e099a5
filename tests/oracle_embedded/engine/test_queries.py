"""Queries over tables."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from oracle_embedded.api import OracleError

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client


@pytest.fixture
def staff(sql: Client) -> Client:
    sql("create table dept (id number primary key, name varchar2(20))")
    sql(
        "create table emp (id number primary key, name varchar2(20), dept number, pay number(8,2), boss number, code char(4))"
    )
    sql.many("insert into dept values (:1, :2)", [(1, "sales"), (2, "lab"), (3, "empty")])
    sql.many(
        "insert into emp values (:1, :2, :3, :4, :5, :6)",
        [
            (1, "ann", 1, 100, 1, "a"),
            (2, "bob", 1, 200, 1, "bb"),
            (3, "cy", 2, 300, 1, "ccc"),
            (4, "dee", 4, 50, 3, "dddd"),
        ],
    )
    sql("update emp set boss = null where id = 1")
    sql.session.commit()
    return sql


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select e.name, d.name from emp e join dept d on d.id = e.dept order by e.id", [("ann", "sales"), ("bob", "sales"), ("cy", "lab")]),
        ("select e.name, d.name from emp e, dept d where e.dept = d.id(+) and e.id > 2 order by e.id", [("cy", "lab"), ("dee", None)]),
        ("select d.name, count(e.id) from dept d left join emp e on e.dept = d.id group by d.name order by 2 desc, 1", [("sales", "2"), ("lab", "1"), ("empty", "0")]),
        ("select count(*) from emp e full join dept d on e.dept = d.id", [("5",)]),
        ("select dept, sum(pay), avg(pay), min(name), max(name) from emp group by dept having count(*) > 1", [("1", "300", "150", "ann", "bob")]),
        ("select name from emp where dept in (select id from dept where name like 's%') order by name desc", [("bob",), ("ann",)]),
        ("select name from dept d where not exists (select 1 from emp e where e.dept = d.id)", [("empty",)]),
        ("select name from emp order by boss, id", [("bob",), ("cy",), ("dee",), ("ann",)]),
        ("select name from emp order by boss desc nulls last, id", [("dee",), ("bob",), ("cy",), ("ann",)]),
        ("select name from emp order by boss desc, id fetch first 1 row only", [("ann",)]),
        ("select name from emp order by id offset 1 rows fetch next 2 rows only", [("bob",), ("cy",)]),
        ("select name from (select name from emp order by pay desc) where rownum <= 2", [("cy",), ("bob",)]),
        ("select * from (select a.*, rownum rn from (select name from emp order by id) a where rownum <= 3) where rn > 1", [("bob", "2"), ("cy", "3")]),
        ("select count(*) from emp where rownum > 1", [("0",)]),
        ("select dept from emp union select id from dept order by 1", [("1",), ("2",), ("3",), ("4",)]),
        ("select dept from emp minus select id from dept", [("4",)]),
        ("select dept from emp intersect select id from dept order by dept desc", [("2",), ("1",)]),
        ("select distinct dept from emp where dept < 3 order by dept", [("1",), ("2",)]),
        ("with big as (select * from emp where pay > 100) select count(*), max(name) from big", [("2", "cy")]),
        ("with n (i) as (select 1 from dual union all select i + 1 from n where i < 4) select sum(i) from n", [("10",)]),
        ("select name, row_number() over (partition by dept order by pay desc) from emp order by id", [("ann", "2"), ("bob", "1"), ("cy", "1"), ("dee", "1")]),
        ("select name, sum(pay) over (order by id), lag(name) over (order by id) from emp order by id", [("ann", "100", None), ("bob", "300", "ann"), ("cy", "600", "bob"), ("dee", "650", "cy")]),
        ("select ntile(2) over (order by id) from emp order by id", [("1",), ("1",), ("2",), ("2",)]),
        ("select listagg(name, '-') within group (order by pay desc) from emp", [("cy-bob-ann-dee",)]),
        ("select listagg(name, '-' on overflow truncate) within group (order by pay desc) from emp", [("cy-bob-ann-dee",)]),
        ("select substr(t, -22), length(t) from (select listagg(rpad(name, 1500, '.'), ',' on overflow truncate) within group (order by id) t from emp)", [(".................,...(2)"[-22:], "3008")]),
        ("select substr(t, -6), length(t) from (select listagg(rpad(name, 1500, '.'), ',' on overflow truncate '~' without count) within group (order by id) t from emp)", [("....,~", "3003")]),
        ("select name from emp where code = 'bb'", [("bob",)]),
        ("select code || '|' from emp where id = 2", [("bb  |",)]),
        ("select name from emp where (dept, pay) in ((1, 200), (2, 300)) order by 1", [("bob",), ("cy",)]),
        ("select name from emp where pay > all (select pay from emp where dept = 1)", [("cy",)]),
        ("select name from emp where pay between 60 and 150 or name like '_e%'  order by 1", [("ann",), ("dee",)]),
        ("select (select d.name from dept d where d.id = e.dept) from emp e where id = 3", [("lab",)]),
        ("select count(distinct dept), count(boss), count(*) from emp", [("3", "3", "4")]),
        ("select max(pay) from emp where 1 = 0", [(None,)]),
        ("select id from emp where name = 'it''s' or id = '2'", [("2",)]),
        ("select dept, id from emp e join (select 1 dept from dual) using (dept) order by id", [("1", "1"), ("1", "2")]),
    ],
)  # fmt: skip
def test_a_query_gives_its_rows(staff: Client, query: str, rows: list[tuple[object, ...]]) -> None:
    assert staff(query) == rows


def test_a_view_is_its_query(staff: Client) -> None:
    staff("create view rich as select name, pay * 12 yearly from emp where pay > 100")
    assert staff("select name, yearly from rich order by 1") == [("bob", "2400"), ("cy", "3600")]
    staff("create or replace view rich (who) as select name from emp where id = 4")
    assert staff("select who from rich") == [("dee",)]


def test_char_is_padded_against_text_but_not_against_varchar2(staff: Client) -> None:
    assert staff("select id from emp where code = 'a'") == [("1",)]
    assert staff("select id from emp where code = :1", "a") == []


def test_rowid_ranges_cover_the_table(staff: Client) -> None:
    staff.many(
        "insert into emp (id, name) values (:1, :2)", [(n, f"name {n}") for n in range(10, 2000)]
    )
    extents = staff(
        "select dbms_rowid.rowid_create(1, o.data_object_id, e.relative_fno, e.block_id, 0),"
        " dbms_rowid.rowid_create(1, o.data_object_id, e.relative_fno, e.block_id + e.blocks - 1, 32767)"
        " from user_extents e join user_objects o on o.object_name = e.segment_name"
        " where e.segment_name = 'EMP' order by e.extent_id"
    )
    assert len(extents) > 1
    counts = [
        int(
            staff.one(
                "select count(*) from emp where rowid between chartorowid(:a) and chartorowid(:b)",
                low,
                high,
            )
        )
        for low, high in extents
    ]
    assert sum(counts) == int(staff.one("select count(*) from emp"))
    assert min(counts) > 0


def test_rowid_finds_its_row(staff: Client) -> None:
    rowid = staff.one("select rowid from emp where id = 3")
    assert len(rowid) == 18
    assert staff("select name from emp where rowid = :1", rowid) == [("cy",)]


def test_a_lob_column_gives_a_handle(sql: Client) -> None:
    sql("create table t (l clob, b blob)")
    sql("insert into t values ('some text', hextoraw('00ff'))")
    ((clob, blob),) = sql("select l, b from t")
    assert sql.session.read_lob(clob)[1] == b"some text"
    assert sql.session.read_lob(blob)[1] == b"\x00\xff"
    with pytest.raises(OracleError, match="ORA-22922"):
        sql.session.read_lob(b"no such handle")


def test_hundreds_of_set_operators_go_from_left_to_right(sql: Client) -> None:
    rows = " union all ".join(f"select {number} n from dual" for number in range(300))
    assert sql(f"select count(*), sum(n) from ({rows})") == [("300", "44850")]
    mixed = "select 1 from dual union all select 1 from dual minus select 2 from dual union all select 1.5 from dual"
    assert sorted(sql(mixed)) == [("1",), ("1.5",)]


def test_what_is_too_deep_is_refused_and_the_session_goes_on(sql: Client) -> None:
    with pytest.raises(OracleError, match="so many operators"):
        sql(f"select {'(1 + ' * 400}1{')' * 400} from dual")
    assert sql("select 1 from dual") == [("1",)]


@pytest.mark.parametrize("word", ["log", "sample", "return"])
def test_words_of_later_clauses_are_aliases_too(sql: Client, word: str) -> None:
    sql("create table t (id number(9), v number(9))")
    sql("insert into t values (1, 5)")
    assert sql(f"select {word}.v {word} from t {word} where {word}.id = 1") == [("5",)]
    assert sql(f"select * from (select id {word} from t) {word}, t") == [("1", "1", "5")]
    assert sql(f"update t {word} set {word}.v = 6") == 1
    assert sql(f"delete from t {word} where {word}.v = 6") == 1


def test_a_sample_is_some_of_the_rows_or_blocks(sql: Client) -> None:
    sql("create table t (id number, v varchar2(300))")
    sql.many("insert into t values (:1, :2)", [(number, "x" * 300) for number in range(3000)])
    sql.session.commit()
    [(rows,)] = sql("select count(*) from t sample (20) x")
    assert 400 < int(rows) < 800
    blocks = "substr(rowidtochar(rowid), 1, 15)"
    query = (
        f"select {blocks}, count(*) from t sample block (20) seed (7) group by {blocks} order by 1"
    )
    chosen = sql(query)
    assert chosen == sql(query), "the same seed, the same blocks"
    [(all_blocks,)] = sql(f"select count(distinct {blocks}) from t")
    assert 0.1 * int(all_blocks) < len(chosen) < 0.3 * int(all_blocks)
    whole = dict(sql(f"select {blocks}, count(*) from t group by {blocks}"))
    assert all(whole[block] == count for block, count in chosen), "of a block all rows"
    assert chosen != sql(query.replace("(7)", "(8)"))
    with pytest.raises(OracleError, match="ORA-30562"):
        sql("select id from t sample (100)")


@pytest.mark.parametrize(
    ("order", "frame", "sums"),
    [
        pytest.param("n", "1 preceding and current row", "1 3 4 10", id="numbers"),
        pytest.param("n", "0.5 preceding and 1.5 following", "3 2 10 6", id="fractions"),
        pytest.param("n desc", "1 preceding and current row", "3 2 10 6", id="descending"),
        pytest.param("d", "1 preceding and current row", "1 3 4 10", id="days"),
        pytest.param("d", "interval '36' hour preceding and current row", "1 3 4 10", id="interval"),
    ],
)  # fmt: skip
def test_a_range_counts_from_the_value_of_its_row(
    sql: Client, order: str, frame: str, sums: str
) -> None:
    sql("create table r (n number, d date, v number)")
    for number, value in ((1, 1), (2, 2), (4, 4), (5, 6)):
        sql("insert into r values (:1, date '2020-01-01' + :2, :3)", number, number, value)
    query = f"select sum(v) over (order by {order} range between {frame}) from r order by n"
    assert " ".join(value for (value,) in sql(query)) == sums


def test_a_range_with_an_offset_has_one_key(sql: Client) -> None:
    sql("create table r (n number, v varchar2(9))")
    for order in ("n, v", "v"):
        with pytest.raises(OracleError, match="ORA-30486"):
            sql(f"select sum(n) over (order by {order} range 1 preceding) from r")


def test_rows_that_are_counted_off_are_not_locked(sql: Client) -> None:
    sql("create table t (id number primary key)")
    for limit in ("fetch first 1 rows only", "offset 1 rows"):
        with pytest.raises(OracleError, match="ORA-02014"):
            sql(f"select id from t order by id {limit} for update")


@pytest.mark.parametrize(
    ("order", "frame", "low", "high", "sums"),
    [
        ("n", "rows between :1 preceding and :2 following", 1, 0, "1 3 6 10"),
        ("n", "range between :1 preceding and :2 following", 1, 0, "1 3 4 10"),
        ("d", "range between :1 preceding and :2 following", 0.5, 1, "3 2 10 6"),
    ],
)
def test_a_frame_has_binds_for_its_ends(
    sql: Client, order: str, frame: str, low: float, high: float, sums: str
) -> None:
    sql("create table r (n number, d date, v number)")
    for number, value in ((1, 1), (2, 2), (4, 4), (5, 6)):
        sql("insert into r values (:1, date '2020-01-01' + :2, :3)", number, number, value)
    query = f"select sum(v) over (order by {order} {frame}) from r order by n"
    found = sql(query, Decimal(str(low)), Decimal(str(high)))
    assert " ".join(value for (value,) in found) == sums
    with pytest.raises(OracleError, match="ORA-01428: argument '-1'"):
        sql(query, -1, 0)


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("object_type in ('TABLE', 'VIEW')", ["T", "V"]),
        ("object_type in ('INDEX', null, 'TABLE')", ["T", "T_PK"]),
        ("object_type in (:1, 'VIEW')", ["T_PK", "V"]),
        ("object_type in ('TABLE', 'VIEW') and object_type in ('INDEX', 'TABLE')", ["T"]),
        ("object_type not in ('INDEX', 'VIEW')", ["T"]),
        ("object_type in ('INDEX', 'VIEW') or object_name = 'T'", ["T", "T_PK", "V"]),
        ("(object_type, object_name) in (('TABLE', 'T'), ('VIEW', 'T'))", ["T"]),
        ("object_type in ('TABLE', object_type)", ["T", "T_PK", "V"]),
        ("exists (select 1 from user_objects i where i.object_type in ('INDEX', 'TYPE') and i.object_name like o.object_name || '%')", ["T", "T_PK"]),
    ],
)  # fmt: skip
def test_a_list_leaves_the_rows_of_a_view_of_the_dictionary_that_have_one_of_its_values(
    sql: Client, condition: str, names: list[str]
) -> None:
    sql("create table t (id number constraint t_pk primary key)")
    sql("create view v as select id from t")
    query = f"select object_name from user_objects o where {condition} order by 1"
    assert sql(query, *(["INDEX"] if ":1" in condition else [])) == [(name,) for name in names]
