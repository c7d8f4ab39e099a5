"""Partitioned and index-organized tables: where rows go, and what DDL makes of their segments."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oracle_embedded.api import Logon, OracleError
from oracle_embedded.database import open_database
from tests.oracle_embedded.engine.conftest import Client

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Connect

RANGE = "create table t (id number primary key, v varchar2(10)) partition by range (id) (partition p1 values less than (10), partition p2 values less than (20), partition p3 values less than (maxvalue))"
LIST = "create table t (id number primary key, v varchar2(10)) partition by list (v) (partition p1 values ('a', 'b'), partition p2 values (null), partition p3 values (default))"
HASH = "create table t (id number primary key, v varchar2(10)) partition by hash (id) partitions 3"
INTERVAL = "create table t (id number primary key, v varchar2(10)) partition by range (id) interval (10) (partition p1 values less than (10))"
COMPOSITE = "create table t (id number primary key, v varchar2(10)) partition by range (id) subpartition by hash (v) subpartitions 2 (partition p1 values less than (10), partition p2 values less than (maxvalue))"
RANGE_LIST = "create table t (id number primary key, v varchar2(10)) partition by range (id) subpartition by list (v) subpartition template (subpartition a values ('x', 'y'), subpartition b values (default)) (partition p1 values less than (10), partition p2 values less than (maxvalue))"
LIST_RANGE = "create table t (id number primary key, v varchar2(10)) partition by list (id) subpartition by range (v) subpartition template (subpartition a values less than ('m'), subpartition b values less than (maxvalue)) (partition p1 values (1, 2), partition p2 values (default))"
IOT = "create table t (id number primary key, v varchar2(10)) organization index including id overflow"


def names(sql: Client) -> list[str]:
    return [
        row[0]
        for row in sql("select partition_name from user_tab_partitions order by partition_position")
    ]


def ids(sql: Client, partition: str) -> list[int]:
    return [int(row[0]) for row in sql(f"select id from t partition ({partition}) order by id")]


def numbers(sql: Client) -> dict[str, tuple[int, int]]:
    rows = sql(
        "select subobject_name, object_id, data_object_id from user_objects where object_type = 'TABLE PARTITION'"
    )
    return {name: (int(number), int(data)) for name, number, data in rows}


def insert(sql: Client, *rows: tuple[int, str | None]) -> None:
    for row in rows:
        sql("insert into t values (:1, :2)", *row)
    sql.session.commit()


@pytest.mark.parametrize(
    ("create", "rows", "found"),
    [
        pytest.param(RANGE, [(9, "x"), (10, "x"), (19, "x"), (20, "x")], [[9], [10, 19], [20]], id="range"),
        pytest.param(LIST, [(1, "a"), (2, "b"), (3, None), (4, "z")], [[1, 2], [3], [4]], id="list"),
        pytest.param(INTERVAL, [(9, "x"), (35, "x"), (15, "x"), (30, "x")], [[9], [15], [30, 35]], id="interval"),
        pytest.param(COMPOSITE, [(9, "x"), (10, "y"), (20, "z")], [[9], [10, 20]], id="composite"),
        pytest.param(RANGE_LIST, [(9, "x"), (10, "y"), (20, "z")], [[9], [10, 20]], id="range-list"),
        pytest.param(LIST_RANGE, [(1, "a"), (2, "z"), (3, "z")], [[1, 2], [3]], id="list-range"),
    ],
)  # fmt: skip
def test_a_row_goes_into_its_partition(
    sql: Client, create: str, rows: list[tuple[int, str | None]], found: list[list[int]]
) -> None:
    sql(create)
    insert(sql, *rows)
    assert [ids(sql, name) for name in names(sql)] == found
    assert sorted(int(row[0]) for row in sql("select id from t")) == sorted(row[0] for row in rows)


def test_hash_partitions_share_the_rows(sql: Client) -> None:
    sql(HASH)
    insert(sql, *((number, "x") for number in range(60)))
    found = [ids(sql, name) for name in names(sql)]
    assert len(found) == 3
    assert all(found)
    assert sorted(chain(*found)) == list(range(60))


@pytest.mark.parametrize(
    ("ddl", "shown"),
    [
        pytest.param("add partition p4 values less than (40)", {"P1": [1, 5], "P2": [15], "P3": [25], "P4": []}, id="add"),
        pytest.param("drop partition p2", {"P1": [1, 5], "P3": [25]}, id="drop"),
        pytest.param("truncate partition p1 update indexes", {"P1": [], "P2": [15], "P3": [25]}, id="truncate"),
        pytest.param("drop partition for (19)", {"P1": [1, 5], "P3": [25]}, id="drop-for-a-value"),
        pytest.param("truncate partitions for (0), p3", {"P1": [], "P2": [15], "P3": []}, id="truncate-for-a-value"),
        pytest.param(
            "split partition p1 at (3) into (partition a, partition b)",
            {"A": [1], "B": [5], "P2": [15], "P3": [25]},
            id="split",
        ),
        pytest.param("merge partitions p1, p2 into partition m", {"M": [1, 5, 15], "P3": [25]}, id="merge"),
        pytest.param("move partition p1", {"P1": [1, 5], "P2": [15], "P3": [25]}, id="move"),
        pytest.param("rename partition p1 to q", {"Q": [1, 5], "P2": [15], "P3": [25]}, id="rename"),
        pytest.param(
            "exchange partition p1 with table s without validation", {"P1": [2], "P2": [15], "P3": [25]}, id="exchange"
        ),
    ],
)  # fmt: skip
def test_rows_are_where_ddl_puts_them(sql: Client, ddl: str, shown: dict[str, list[int]]) -> None:
    sql(RANGE.replace("(maxvalue)", "(30)"))
    sql("create table s (id number primary key, v varchar2(10))")
    sql("insert into s values (2, 'y')")
    insert(sql, (1, "x"), (5, "x"), (15, "x"), (25, "x"))
    sql(f"alter table t {ddl}")
    assert {name: ids(sql, name) for name in names(sql)} == shown
    assert sorted(chain(*shown.values())) == sorted(int(row[0]) for row in sql("select id from t"))
    left = [int(row[0]) for row in sql("select id from s order by id")]
    assert left == ([1, 5] if "exchange" in ddl else [2])
    insert(sql, (3, "z"), (16, "z"))
    assert sorted(int(row[0]) for row in sql("select id from t")) == sorted(
        [*chain(*shown.values()), 3, 16]
    )


@pytest.mark.parametrize(
    ("ddl", "keep_object", "keep_data"),
    [
        pytest.param("move partition p1", True, False, id="move"),
        pytest.param("truncate partition p1", True, False, id="truncate"),
        pytest.param("rename partition p1 to p9", True, True, id="rename"),
        pytest.param("split partition p1 at (3) into (partition p1, partition b)", False, False, id="split"),
        pytest.param("merge partitions p1, p2 into partition p1", False, False, id="merge"),
        pytest.param("exchange partition p1 with table s", False, False, id="exchange"),
    ],
)  # fmt: skip
def test_segments_keep_their_numbers_or_get_new_ones(
    sql: Client, ddl: str, keep_object: bool, keep_data: bool
) -> None:
    sql(RANGE)
    sql("create table s (id number primary key, v varchar2(10))")
    before = numbers(sql)["P1"]
    sql(f"alter table t {ddl}")
    after = numbers(sql)["P9" if "p9" in ddl else "P1"]
    assert (before[0] == after[0], before[1] == after[1]) == (keep_object, keep_data)


def test_hash_partitions_are_added_and_coalesced(sql: Client) -> None:
    sql(HASH)
    insert(sql, *((number, "x") for number in range(60)))
    before = {name: ids(sql, name) for name in names(sql)}
    sql("alter table t add partition")
    more = {name: ids(sql, name) for name in names(sql)}
    assert len(more) == 4
    assert all(more.values())
    assert sum(more[name] == before[name] for name in before) == 2
    sql("alter table t coalesce partition")
    assert {name: ids(sql, name) for name in names(sql)} == before


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("insert into t values (40, 'x')", 14400),
        ("update t set id = 15 where id = 1", 14402),
        ("alter table t drop partition nope", 2149),
        ("alter table t drop partition for (30)", 2149),
        ("alter table t truncate subpartition a", 14253),
        ("alter table t add partition p9 values less than (5)", 14074),
        ("alter table t add partition p1 values less than (50)", 14013),
        ("alter table t split partition p1 at (10) into (partition a, partition b)", 14080),
        ("alter table t merge partitions p1, p3 into partition m", 14274),
        ("alter table t coalesce partition", 14259),
        ("alter table t exchange partition p1 with table s", 14099),
        ("alter table t exchange partition p1 with table other", 14097),
        ("alter table s drop partition p1", 14501),
        ("select * from s partition (p1)", 14109),
        ("alter table t move", 14511),
    ],
)
def test_what_oracle_refuses_is_refused(sql: Client, statement: str, code: int) -> None:
    sql(RANGE.replace("(maxvalue)", "(30)"))
    sql("create table s (id number primary key, v varchar2(10))")
    sql("create table other (id number primary key)")
    sql("insert into s values (25, 'y')")
    insert(sql, (1, "x"), (25, "x"))
    with pytest.raises(OracleError) as raised:
        sql(statement)
    assert raised.value.code == code
    assert {name: ids(sql, name) for name in names(sql)} == {"P1": [1], "P2": [], "P3": [25]}


def test_row_movement_takes_a_row_to_another_partition_and_back(sql: Client) -> None:
    sql(f"{RANGE} enable row movement")
    insert(sql, (1, "x"), (2, "y"))
    sql("update t set id = id + 10, v = 'm' where id = 1")
    assert [ids(sql, name) for name in ("P1", "P2")] == [[2], [11]]
    sql.session.rollback()
    assert [ids(sql, name) for name in ("P1", "P2")] == [[1, 2], []]
    sql("alter table t disable row movement")
    with pytest.raises(OracleError):
        sql("update t set id = 12 where id = 1")


def test_ddl_needs_only_its_own_partitions_for_itself(sql: Client, connect: Connect) -> None:
    other = connect()
    sql(RANGE)
    insert(sql, (1, "x"), (15, "x"))
    other("insert into t values (2, 'open')")
    with pytest.raises(OracleError) as raised:
        sql("alter table t move partition p1")
    assert raised.value.code == 54
    sql("alter table t move partition p2")
    other.session.rollback()
    assert [ids(sql, name) for name in names(sql)] == [[1], [15], []]


def test_the_past_is_gone_after_rows_were_moved(sql: Client) -> None:
    sql(RANGE)
    insert(sql, (1, "x"))
    scn = sql.scn()
    sql("alter table t rename partition p1 to q")
    assert len(sql(f"select * from t as of scn {scn}")) == 1
    sql("alter table t move partition q")
    with pytest.raises(OracleError) as raised:
        sql(f"select * from t as of scn {scn}")
    assert raised.value.code == 1466


def test_rowids_name_the_data_object_of_the_partition(sql: Client) -> None:
    sql(RANGE)
    insert(sql, (1, "x"), (15, "x"))
    rows = sql("select rowid, id from t")
    assert len({row[0][:6] for row in rows}) == 2
    for rowid, number in rows:
        assert sql("select id from t where rowid = chartorowid(:1)", rowid) == [(number,)]
    assert sql(
        "select count(*) from t where rowid >= chartorowid(:1)", min(row[0] for row in rows)
    ) == [("2",)]


def test_the_dictionary_shows_partitions(sql: Client) -> None:
    sql(COMPOSITE)
    insert(sql, (1, "x"), (15, "y"))
    assert sql("select partitioned, tablespace_name from user_tables") == [("YES", None)]
    assert sql(
        "select partitioning_type, subpartitioning_type, partition_count from user_part_tables"
    ) == [("RANGE", "HASH", "2")]
    assert sql("select name, column_name from user_part_key_columns") == [("T", "ID")]
    kinds = dict(sql("select object_type, count(*) from user_objects group by object_type"))
    assert kinds == {"TABLE": "1", "TABLE PARTITION": "2", "TABLE SUBPARTITION": "4", "INDEX": "1"}
    assert sql(
        "select count(*) from user_objects where object_type = 'TABLE PARTITION' and data_object_id is not null"
    ) == [("0",)]
    assert {row[0] for row in sql("select segment_type from user_segments")} == {
        "TABLE SUBPARTITION"
    }
    assert sql("select count(*) from user_tab_subpartitions") == [("4",)]


def test_an_index_organized_table_lives_in_its_top_index(sql: Client) -> None:
    sql(IOT)
    insert(sql, (1, "x"), (2, "y"))
    [(number,)] = sql(
        "select object_id from user_objects where object_type = 'TABLE' and object_name not like 'SYS%'"
    )
    assert sql("select iot_type from user_tables order by 1") == [("IOT",), ("IOT_OVERFLOW",)]
    assert sql("select index_name, index_type from user_indexes") == [
        (f"SYS_IOT_TOP_{number}", "IOT - TOP")
    ]
    assert sql("select segment_name, segment_type from user_segments") == [
        (f"SYS_IOT_TOP_{number}", "INDEX")
    ]
    sql("update t set id = id + 1")
    assert sql("select id, v from t order by id") == [("2", "x"), ("3", "y")]
    sql.session.rollback()
    assert sql("select id, v from t order by id") == [("1", "x"), ("2", "y")]
    with pytest.raises(OracleError) as raised:
        sql("create table u (id number) organization index")
    assert raised.value.code == 25175


def test_move_gives_a_table_new_addresses(sql: Client) -> None:
    sql("create table t (id number primary key, v varchar2(10))")
    insert(sql, (1, "x"))
    before = sql("select rowid from t")
    sql("alter table t move")
    assert sql("select rowid from t") != before
    assert sql("select id, v from t") == [("1", "x")]


def test_partitions_survive_a_restart(tmp_path: Path) -> None:
    for round_ in range(3):
        opened = open_database(tmp_path / "ora")
        sql = Client(opened.engine.open_session(Logon("DEMO")))
        if not round_:
            sql(COMPOSITE.replace("create table t", "create table c"))
            sql(INTERVAL)
        insert(sql, (round_, "x"), (35 + round_, "x"))
        sql(f"insert into c values ({round_}, 'x')")
        sql.session.commit()
        assert ids(sql, "p1") == list(range(round_ + 1))
        assert sql("select count(*) from user_objects where object_type like 'TABLE %'") == [("8",)]
        opened.close()


def test_subpartitions_of_a_template_have_names_and_segments_of_their_own(sql: Client) -> None:
    sql(RANGE_LIST)
    for key, text in ((1, "x"), (2, "z"), (12, "y")):
        sql("insert into t values (:1, :2)", key, text)
    assert sql("select subpartition_name from user_tab_subpartitions order by 1") == [
        ("P1_A",), ("P1_B",), ("P2_A",), ("P2_B",),
    ]  # fmt: skip
    assert sql.one("select subpartitioning_type from user_part_tables") == "LIST"
    assert sql.one("select count(distinct dbms_rowid.rowid_object(rowid)) from t") == "3"
    sql("alter table t split partition p1 at (2) into (partition p0, partition p1)")
    assert sql("select id from t partition (p1)") == [("2",)]
    with pytest.raises(OracleError, match="ORA-14402"):
        sql("update t set v = 'x' where id = 2")


@pytest.mark.parametrize(
    ("ddl", "left", "subs"),
    [
        pytest.param("drop subpartition p1_a", [2, 12, 13], 3, id="drop"),
        pytest.param("truncate subpartitions p1_a, p2_b update indexes", [2, 12], 4, id="truncate-two"),
        pytest.param("truncate subpartition for (1, 'w')", [1, 12, 13], 4, id="for-values"),
    ],
)  # fmt: skip
def test_rows_of_a_subpartition_go_with_it(
    sql: Client, ddl: str, left: list[int], subs: int
) -> None:
    sql(RANGE_LIST)
    insert(sql, (1, "x"), (2, "z"), (12, "y"), (13, None))
    assert sql("select subpartition_name, high_value from user_tab_subpartitions order by 1")[
        :2
    ] == [("P1_A", "'x', 'y'"), ("P1_B", "default")]
    assert sql("select name, column_name from user_subpart_key_columns") == [("T", "V")]
    sql(f"alter table t {ddl}")
    assert [int(row[0]) for row in sql("select id from t order by id")] == left
    assert sql("select count(*) from user_tab_subpartitions") == [(str(subs),)]


@pytest.mark.parametrize(
    ("ddl", "code"),
    [("truncate subpartition nope", 14251), ("drop subpartitions p1_a, p1_b", 14629)],
)
def test_subpartitions_that_are_not_there_or_are_the_last_do_not_go(
    sql: Client, ddl: str, code: int
) -> None:
    sql(RANGE_LIST)
    with pytest.raises(OracleError) as raised:
        sql(f"alter table t {ddl}")
    assert raised.value.code == code


def test_an_interval_has_a_range_partition_for_ever(sql: Client) -> None:
    """The first partition that an interval made takes the place of the last one of the range section that is dropped; bounds are values."""
    sql(INTERVAL)
    insert(sql, (5, "x"), (15, "x"), (35, "x"))
    sql("alter table t drop partition p1")
    insert(sql, (25, "x"))
    shown = "select high_value, interval from user_tab_partitions order by partition_position"
    assert sql(shown) == [("20", "NO"), ("30", "YES"), ("40", "YES")]
    sql(f"alter table t split partition {names(sql)[-1]} at (33) into (partition a, partition b)")
    assert [high for high, _ in sql(shown)] == ["20", "30", "33", "40"]


def test_a_row_that_no_subpartition_takes_is_refused(sql: Client) -> None:
    sql(RANGE_LIST.replace(", subpartition b values (default)", ""))
    with pytest.raises(OracleError, match="ORA-14400"):
        sql("insert into t values (1, 'z')")


def test_bounds_are_shown_as_oracle_prints_them(sql: Client) -> None:
    """Moments in one form each, and what an interval made by its value."""
    sql(
        "create table t (id number, d date, m timestamp) partition by range (d) (partition p1 values less than (date '2026-03-01'),"
        " partition p2 values less than (to_date('010426', 'DDMMYY')), partition p3 values less than (maxvalue))"
    )
    sql(
        "create table u (m timestamp) partition by range (m) (partition p1 values less than (timestamp '2026-03-01 00:00:00.5'))"
    )
    sql(
        "create table v (k number) partition by range (k) interval (10) (partition p1 values less than (10))"
    )
    sql("insert into v values (45)")
    sql("create table w (d date) partition by hash (d) (partition p1, partition p2)")
    found = sql(
        "select high_value from user_tab_partitions where table_name in ('T', 'U', 'V', 'W') order by table_name, partition_position"
    )
    day = "TO_DATE(' 2026-0{}-01 00:00:00', 'SYYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN')"
    assert [one for (one,) in found] == [
        day.format(3), day.format(4), "MAXVALUE", "TIMESTAMP' 2026-03-01 00:00:00.5'", "10", "50", None, None,
    ]  # fmt: skip


def test_an_index_organized_table_says_in_any_order_how_it_is_stored(sql: Client) -> None:
    sql("create table t (a char(20), b number, c varchar2(2000), constraint k primary key (a, b)) organization index tablespace users pctthreshold 20 overflow tablespace users")  # fmt: skip
    kinds = sql("select iot_type from user_tables where iot_type is not null order by 1")
    assert kinds == [("IOT",), ("IOT_OVERFLOW",)]
