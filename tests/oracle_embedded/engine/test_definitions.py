"""DDL, rights, and the dictionary with its history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oracle_embedded.api import OracleError

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client, Connect


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("create table t (a number, a number)", 957),
        ("create table t (a nope)", 902),
        ("create table t (a varchar2)", 906),
        ("create table t (a varchar2(5000))", 910),
        ("create table t (a raw(2001))", 910),
        ("create table t (a nvarchar2(2001))", 910),
        ("select cast('a' as varchar2(5000)) from dual", 910),
        ("create table t (a number(39))", 1727),
        ("create table t ()", 904),
        ("create table old (a number)", 955),
        ("create table t (a number primary key, b number primary key)", 2260),
        ("create table t (a number references nope)", 942),
        ("create table t (a number references old (v))", 2270),
        ("create table t (a number check (b > 1))", 904),
        ("create table t (a number default b)", 984),
        ("create table t as select :1 x from dual", 1027),
        ("alter table old add (id number)", 1430),
        ("alter table old add (x number not null)", 1758),
        ("alter table old modify (v varchar2(1))", 1441),
        ("alter table old modify (id varchar2(10))", 1439),
        ("alter table old modify (nope number)", 904),
        ("alter table old drop column nope", 904),
        ("alter table old rename column id to v", 957),
        ("alter table old add constraint c check (id > 100)", 2293),
        ("alter table old drop constraint nope", 2443),
        ("alter table old nonsense", 1735),
        ("alter session set nope = 1", 2248),
        ("alter session set current_schema = nope", 1435),
        ("alter session set nls_date_format = 'nope'", 1821),
        ("alter session set container = cdb$root", 1031),
        ("alter system switch logfile", 1031),
        ("drop table nope", 942),
        ("drop sequence nope", 2289),
        ("drop index nope", 1418),
        ("create index i on old (nope)", 904),
        ("create user u identified by p", 1031),
        (
            "create type body p as member function f return number is begin return 1; end; end;",
            3001,
        ),
        ("create nonsense", 901),
        ("grant select on old to nobody", 1917),
        ("comment on table nope is 'x'", 942),
    ],
)
def test_what_oracle_refuses_is_refused_with_its_code(
    sql: Client, statement: str, code: int
) -> None:
    sql("create table old (id number primary key, v varchar2(10))")
    sql("insert into old values (1, 'value')")
    sql.session.commit()
    with pytest.raises(OracleError) as raised:
        sql(statement)
    assert raised.value.code == code
    assert sql("select id, v from old") == [("1", "value")]


def test_ddl_commits_what_was_open(sql: Client, connect: Connect) -> None:
    sql("create table t (id number)")
    sql("insert into t values (1)")
    sql("create table u (id number)")
    assert not sql.session.in_transaction()
    assert connect()("select id from t") == [("1",)]


def test_ddl_does_not_wait_for_others(sql: Client, connect: Connect) -> None:
    sql("create table t (id number)")
    other = connect()
    other("insert into t values (1)")
    with pytest.raises(OracleError, match="ORA-00054"):
        sql("alter table t add (x number)")


def test_columns_come_change_and_go(sql: Client) -> None:
    sql("create table t (id number(3), v varchar2(5))")
    sql("insert into t values (1, 'a')")
    sql("alter table t add (n number default 7 not null, d varchar2(3))")
    assert sql("select * from t") == [("1", "a", "7", None)]
    sql("alter table t modify (id number(5), v varchar2(20) not null)")
    sql("insert into t (id, v) values (12345, 'longer than five')")
    sql("alter table t rename column v to w")
    sql("alter table t drop column n")
    assert sql("select * from t order by id") == [
        ("1", "a", None),
        ("12345", "longer than five", None),
    ]
    sql("rename t to t2")
    assert sql.one("select count(*) from t2") == "2"


def test_a_date_becomes_a_timestamp_whatever_it_holds_and_never_the_other_way(sql: Client) -> None:
    """SQL Language Reference 19c, ALTER TABLE, modify_column_clauses: a DATE may become a TIMESTAMP; digits of seconds only become more."""
    sql("create table t (id number, d date, ts timestamp(3))")
    sql("create index t_d on t (d)")
    sql("insert into t values (1, date '2026-01-02' + 1/2, timestamp '2026-01-01 00:00:00.123')")
    sql("insert into t (id) values (2)")
    sql.session.commit()
    sql("alter table t modify (d timestamp(6), ts timestamp(9))")
    sql("insert into t (id, d) values (3, timestamp '2026-01-02 12:00:00.000001')")
    assert sql("select id, to_char(d, 'YYYY-MM-DD HH24:MI:SS.FF6') from t order by d") == [
        ("1", "2026-01-02 12:00:00.000000"),
        ("3", "2026-01-02 12:00:00.000001"),
        ("2", None),
    ]
    assert sql.one("select id from t where d = timestamp '2026-01-02 12:00:00'") == "1"
    assert sql.one("select id from t where ts = timestamp '2026-01-01 00:00:00.123'") == "1"
    for statement, code in [("d date", 1439), ("ts timestamp(6)", 30082)]:
        with pytest.raises(OracleError) as raised:
            sql(f"alter table t modify {statement}")
        assert raised.value.code == code


def test_create_table_as_select_takes_rows_and_types(sql: Client) -> None:
    sql("create table t as select 1 id, cast('x' as varchar2(7)) v, sysdate d from dual")
    assert sql("select id, v from t") == [("1", "x")]
    assert sql("select column_name, data_type, data_length from user_tab_columns order by column_id") == [
        ("ID", "NUMBER", "22"), ("V", "VARCHAR2", "7"), ("D", "DATE", "7"),
    ]  # fmt: skip


def test_truncate_gives_a_new_data_object(sql: Client) -> None:
    sql("create table t (id number)")
    sql("insert into t values (1)")
    ((object_id, before),) = sql(
        "select object_id, data_object_id from user_objects where object_name = 'T'"
    )
    sql("truncate table t")
    ((same, after),) = sql(
        "select object_id, data_object_id from user_objects where object_name = 'T'"
    )
    assert object_id == same == before != after
    assert sql.one("select count(*) from t") == "0"


def test_the_dictionary_describes_tables(sql: Client) -> None:
    sql(
        "create table t (id number(10) constraint t_pk primary key, name varchar2(20 char) not null, amount number(12,2) default 0,"
        " n number, c char(2), ts timestamp(3) with time zone, raw_col raw(16), big clob, f float, w nvarchar2(5))"
    )
    sql("create unique index t_i on t (name, id desc)")
    sql("comment on column t.name is 'who'")
    columns = sql(
        "select column_name, data_type, data_length, data_precision, data_scale, nullable, char_length, char_used"
        " from all_tab_cols where owner = 'DEMO' and table_name = 'T' order by column_id"
    )
    assert columns == [
        ("ID", "NUMBER", "22", "10", "0", "N", "0", None),
        ("NAME", "VARCHAR2", "80", None, None, "N", "20", "C"),
        ("AMOUNT", "NUMBER", "22", "12", "2", "Y", "0", None),
        ("N", "NUMBER", "22", None, None, "Y", "0", None),
        ("C", "CHAR", "2", None, None, "Y", "2", "B"),
        ("TS", "TIMESTAMP(3) WITH TIME ZONE", "13", None, "3", "Y", "0", None),
        ("RAW_COL", "RAW", "16", None, None, "Y", "0", None),
        ("BIG", "CLOB", "4000", None, None, "Y", "0", None),
        ("F", "FLOAT", "22", "126", None, "Y", "0", None),
        ("W", "NVARCHAR2", "10", None, None, "Y", "5", "C"),
        ("SYS_NC00011$", "RAW", "34", None, None, "Y", "0", None),
    ]
    assert sql("select constraint_name, constraint_type from user_constraints where table_name = 'T' order by 2 desc") == [
        ("T_PK", "P"), (sql.one("select constraint_name from user_constraints where constraint_type = 'C'"), "C"),
    ]  # fmt: skip
    assert sql("select index_name, uniqueness from user_indexes order by 1") == [
        ("T_I", "UNIQUE"),
        ("T_PK", "UNIQUE"),
    ]
    assert sql("select column_name, descend from user_ind_columns where index_name = 'T_I' order by column_position") == [
        ("NAME", "ASC"), ("SYS_NC00011$", "DESC"),
    ]  # fmt: skip
    assert sql.one("select comments from user_col_comments where column_name = 'NAME'") == "who"
    assert sql.one("select data_default from user_tab_columns where column_name = 'AMOUNT'") == "0"


def test_the_dictionary_can_be_read_as_of_an_scn(sql: Client) -> None:
    sql("create table t (id number)")
    scn = sql.scn()
    sql("alter table t add (later varchar2(3))")
    query = "select column_name from user_tab_columns{} where table_name = 'T' order by column_id"
    assert sql(query.format("")) == [("ID",), ("LATER",)]
    assert sql(query.format(f" as of scn {scn}")) == [("ID",)]


def test_log_groups_are_shown(sql: Client) -> None:
    sql("create table t (id number primary key, v number)")
    sql("alter table t add supplemental log data (primary key, unique) columns")
    sql("alter table t add supplemental log data (all) columns")
    sql("alter table t add supplemental log group g (v) always")
    with pytest.raises(OracleError, match="ORA-32588"):
        sql("alter table t add supplemental log data (all) columns")
    kinds = "select log_group_type from all_log_groups where owner = 'DEMO' and table_name = 'T' order by 1"
    assert sql(kinds) == [
        ("ALL COLUMN LOGGING",),
        ("PRIMARY KEY LOGGING",),
        ("UNIQUE KEY LOGGING",),
        ("USER LOG GROUP",),
    ]
    sql("alter table t drop supplemental log data (all) columns")
    sql("alter table t drop supplemental log group g")
    assert sql(kinds) == [("PRIMARY KEY LOGGING",), ("UNIQUE KEY LOGGING",)]


# --- rights ----------------------------------------------------------------------------------------------------------


def test_tables_of_others_need_a_grant(sql: Client, connect: Connect) -> None:
    sql("create table t (id number)")
    admin, capture = connect("REDOLAKE_ADMIN"), connect("C##REDOLAKE")
    admin("create user reader identified by secret")
    with pytest.raises(OracleError, match="ORA-01045"):
        connect("READER")
    admin("grant create session to reader")
    reader = connect("READER")
    with pytest.raises(OracleError, match="ORA-00942"):
        reader("select * from demo.t")
    sql("grant select on t to reader")
    assert reader("select * from demo.t") == []
    with pytest.raises(OracleError, match="ORA-01031"):
        reader("insert into demo.t values (1)")
    with pytest.raises(OracleError, match="ORA-01031"):
        reader(f"select * from demo.t as of scn {sql.scn()}")
    assert capture(f"select * from demo.t as of scn {sql.scn()}") == []
    sql("revoke select on t from reader")
    with pytest.raises(OracleError, match="ORA-00942"):
        reader("select * from demo.t")


def test_catalog_views_need_the_catalog_role(sql: Client, connect: Connect) -> None:
    with pytest.raises(OracleError, match="ORA-00942"):
        sql("select * from dba_tables")
    with pytest.raises(OracleError, match="ORA-00942"):
        sql("select current_scn from v$database")
    assert int(connect("C##REDOLAKE").one("select current_scn from v$database")) > 0


def test_a_user_sees_what_its_roles_hold(sql: Client, connect: Connect) -> None:
    admin = connect("REDOLAKE_ADMIN")
    for statement in (
        "create role inner_role",
        "create role outer_role",
        "create role other_role",
        "grant create view to inner_role",
        "grant create view to other_role",
        "grant inner_role to outer_role",
        "grant outer_role to demo",
    ):
        admin(statement)
    sql("create table t (id number)")
    sql("grant select on t to inner_role")
    mine = "where role in ('INNER_ROLE', 'OUTER_ROLE', 'OTHER_ROLE') order by 1"
    assert sql(f"select role, privilege from role_sys_privs {mine}") == [
        ("INNER_ROLE", "CREATE VIEW")
    ]
    assert sql(f"select role, granted_role from role_role_privs {mine}") == [
        ("OUTER_ROLE", "INNER_ROLE")
    ]
    assert sql(f"select role, owner, table_name, privilege from role_tab_privs {mine}") == [
        ("INNER_ROLE", "DEMO", "T", "SELECT")
    ]
    assert [row[0] for row in admin(f"select role from role_sys_privs {mine}")] == [
        "INNER_ROLE",
        "OTHER_ROLE",
    ]


def test_a_session_takes_back_its_isolation_level(sql: Client, connect: Connect) -> None:
    sql("create table t (id number)")
    sql("alter session set events '10046 trace name context forever, level 4'")
    sql("alter session set isolation_level = serializable")
    assert sql("select * from t") == []
    for level, seen in (("serializable", 0), ("read committed", 1)):
        sql(f"alter session set isolation_level = {level}")
        sql("lock table t in row share mode")
        other = connect("DEMO")
        other("delete from t")
        other("insert into t values (1)")
        other.session.commit()
        assert len(sql("select * from t")) == seen
        sql.session.commit()


def test_a_common_user_changes_the_container(sql: Client, connect: Connect) -> None:
    sql("create table t (id number)")
    capture = connect("C##REDOLAKE")
    assert capture("select * from demo.t") == []
    capture("alter session set container = CDB$ROOT")
    assert capture.one("select sys_context('userenv', 'con_name') from dual") == "CDB$ROOT"
    with pytest.raises(OracleError, match="ORA-00942"):
        capture("select * from demo.t")
    capture("alter session set container = ORCLPDB1")
    assert capture("select * from demo.t") == []
    with pytest.raises(OracleError, match="ORA-65011"):
        capture("alter session set container = nope")


def test_synonyms_and_current_schema_lead_to_objects(sql: Client, connect: Connect) -> None:
    sql("create table t (id number)")
    admin = connect("REDOLAKE_ADMIN")
    admin("create public synonym everybodys for demo.t")
    assert admin("select * from everybodys") == []
    admin("alter session set current_schema = demo")
    assert admin("select * from t") == []


def test_session_formats_rule_conversions(sql: Client) -> None:
    sql(
        "alter session set nls_date_format = 'YYYY-MM-DD' nls_numeric_characters = ',.' time_zone = '+02:00'"
    )
    assert sql.one("select to_char(date '2024-02-29') || '/' || 1.5 from dual") == "2024-02-29/1,5"
    assert sql.one("select to_date('2024-03-01') from dual") == "2024-03-01 00:00:00"
    assert sql.one("select to_char(current_timestamp, 'TZH:TZM') from dual") == "+02:00"
    assert sql.session.parameter("TIME_ZONE") == "+02:00"
    assert (
        sql.one("select value from nls_session_parameters where parameter = 'NLS_DATE_FORMAT'")
        == "YYYY-MM-DD"
    )


def _state(sql: Client, name: str) -> Any:
    return sql(
        "select status, validated, deferrable from user_constraints where constraint_name = :1",
        name,
    )[0]


def test_constraints_change_their_state(sql: Client) -> None:
    sql("create table t (a number(9) constraint t_pk primary key, b number(9))")
    sql("alter table t add constraint t_b check (b > 0)")
    for statement, name, state in [
        ("modify constraint t_b disable", "T_B", ("DISABLED", "NOT VALIDATED", "NOT DEFERRABLE")),
        ("modify constraint t_b enable novalidate", "T_B", ("ENABLED", "NOT VALIDATED", "NOT DEFERRABLE")),
        ("modify constraint t_b validate", "T_B", ("ENABLED", "VALIDATED", "NOT DEFERRABLE")),
        ("disable primary key", "T_PK", ("DISABLED", "NOT VALIDATED", "NOT DEFERRABLE")),
        ("modify primary key enable", "T_PK", ("ENABLED", "VALIDATED", "NOT DEFERRABLE")),
        ("disable novalidate constraint t_pk", "T_PK", ("DISABLED", "NOT VALIDATED", "NOT DEFERRABLE")),
        ("enable constraint t_pk", "T_PK", ("ENABLED", "VALIDATED", "NOT DEFERRABLE")),
    ]:  # fmt: skip
        sql(f"alter table t {statement}")
        assert _state(sql, name) == state
    with pytest.raises(OracleError, match="ORA-02431"):
        sql("alter table t disable constraint no_such")


def test_a_novalidate_key_leaves_double_rows_and_refuses_new_ones(sql: Client) -> None:
    sql("create table t (a number(9), b number(9))")
    sql("insert into t select 1, level from dual connect by level <= 2")
    with pytest.raises(OracleError, match="ORA-02437"):
        sql("alter table t add constraint t_pk primary key (a) enable novalidate")
    sql("alter table t add constraint t_pk primary key (a) deferrable enable novalidate")
    assert _state(sql, "T_PK") == ("ENABLED", "NOT VALIDATED", "DEFERRABLE")
    assert sql.one("select count(*) from t where a = 1") == "2"
    with pytest.raises(OracleError, match="ORA-00001"):
        sql("insert into t values (1, 3)")
    with pytest.raises(OracleError, match="ORA-02437"):
        sql("alter table t modify constraint t_pk validate")


def test_a_bitmap_index_is_an_index(sql: Client) -> None:
    sql("create table t (a number(9), b number(9))")
    sql("create bitmap index t_b on t (b)")
    assert sql("select column_name from user_ind_columns where index_name = 'T_B'") == [("B",)]


def test_dbms_metadata_writes_a_tables_ddl(sql: Client) -> None:
    sql(
        "create table t (id number(9) primary key, v varchar2(20 char) default 'x' not null, n number, s number(*,2), f float,"
        " ts timestamp(3), d date, r raw(8), nc nvarchar2(5), c clob, constraint t_u unique (v, d))"
    )
    sql(
        "begin dbms_metadata.set_transform_param(dbms_metadata.session_transform, 'STORAGE', false); end;"
    )
    handle = sql.one("select dbms_metadata.get_ddl('TABLE', 'T', 'DEMO') from dual")
    text = sql.session.read_lob(handle)[1].decode()
    assert " ".join(text.split()) == (
        'CREATE TABLE "DEMO"."T" ( "ID" NUMBER(9,0) NOT NULL ENABLE, "V" VARCHAR2(20 CHAR) DEFAULT \'x\' NOT NULL ENABLE,'
        ' "N" NUMBER, "S" NUMBER(*,2), "F" FLOAT(126), "TS" TIMESTAMP (3), "D" DATE, "R" RAW(8), "NC" NVARCHAR2(5), "C" CLOB,'
        ' PRIMARY KEY ("ID") ENABLE, CONSTRAINT "T_U" UNIQUE ("V", "D") ENABLE )'
    )
    sql("drop table t")
    sql(text)
    with pytest.raises(OracleError, match="ORA-31603"):
        sql.one("select dbms_metadata.get_ddl('TABLE', 'NOPE') from dual")


def test_character_sets_have_numbers(sql: Client) -> None:
    assert sql(
        "select nls_charset_id('AL32UTF8'), nls_charset_name(2000), nls_charset_id('NOPE') from dual"
    ) == [("873", "AL16UTF16", None)]


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from all_all_tables where owner = 'DEMO' and table_name = 'T' and table_type is null",
        "select count(*) from all_indexes where table_name = 'T' and distinct_keys is null",
    ],
)
def test_views_that_jdbc_and_debezium_ask_are_there(sql: Client, query: str) -> None:
    sql("create table t (id number(9) primary key)")
    assert sql.one(query) == "1"


@pytest.mark.parametrize("view", ["nested_tables", "procedures", "arguments"])
def test_views_of_what_there_is_not_are_empty(sql: Client, view: str) -> None:
    assert sql.one(f"select count(*) from all_{view}") == "0"


def test_views_are_read_again_and_again_by_one_session(sql: Client) -> None:
    sql("create table t (id number, v varchar2(3))")
    names = "select column_name from user_tab_columns where table_name = 'T' order by 1"
    types = "select data_type, column_id from user_tab_columns where table_name = 'T' order by 2"
    for number in range(3):
        assert sql(names) == [("ID",), *((f"N{one}",) for one in range(number)), ("V",)]
        assert sql(types)[:2] == [("NUMBER", "1"), ("VARCHAR2", "2")]
        with pytest.raises(OracleError):
            sql("select 1 / (column_id - column_id) from user_tab_columns where table_name = 'T'")
        sql("savepoint here")
        sql("insert into t (v) select column_name from user_tab_columns where column_id = 1")
        sql("rollback to here")
        sql(f"alter table t add (n{number} number)")
    assert sql.one("select count(*) from t") == "0"


def test_the_dictionary_shows_where_and_how_rows_are_kept(sql: Client) -> None:
    sql("create table plain (id number primary key, a number, b number)")
    sql("create table small (id number) tablespace app_data compress")
    sql("create table fast (id number) row store compress advanced nologging tablespace users")
    sql("create table old (id number) compress for oltp")
    sql("create global temporary table g (id number)")
    facts = sql("select table_name, tablespace_name, compression, compress_for from user_tables order by 1")  # fmt: skip
    assert facts == [
        ("FAST", "USERS", "ENABLED", "ADVANCED"),
        ("G", None, "DISABLED", None),
        ("OLD", "USERS", "ENABLED", "ADVANCED"),
        ("PLAIN", "USERS", "DISABLED", None),
        ("SMALL", "APP_DATA", "ENABLED", "BASIC"),
    ]
    sql("create index whole on plain (a, b) compress")
    sql("create index part on plain (b, a) compress 1 tablespace app_data")
    sql("create unique index one on plain (a, b, id) compress")
    indexes = sql("select index_name, compression, prefix_length, tablespace_name from user_indexes where index_name in ('WHOLE', 'PART', 'ONE') order by 1")  # fmt: skip
    assert indexes == [
        ("ONE", "ENABLED", "2", "USERS"),
        ("PART", "ENABLED", "1", "APP_DATA"),
        ("WHOLE", "ENABLED", "2", "USERS"),
    ]
    with pytest.raises(OracleError, match="ORA-64307"):
        sql("create table columnar (id number) compress for query high")


def test_how_lobs_and_documents_are_stored_may_be_said(sql: Client) -> None:
    sql("create table a (c clob, b blob) lob (c) store as securefile c_seg (tablespace users cache) lob (b) store as (nocache)")  # fmt: skip
    sql("create table b (x xmltype, y xmltype) xmltype column x store as securefile binary xml xmltype y store as clob tablespace users")  # fmt: skip
    columns = sql("select table_name, column_name, data_type from user_tab_columns where table_name in ('A', 'B') order by 1, 2")  # fmt: skip
    assert columns == [("A", "B", "BLOB"), ("A", "C", "CLOB"), ("B", "X", "XMLTYPE"), ("B", "Y", "XMLTYPE")]  # fmt: skip
