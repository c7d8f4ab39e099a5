"""Row-level security (DBMS_RLS) and Data Redaction (DBMS_REDACT): what queries see, and who sees all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import oracledb
import pytest

from oracle_embedded.database import ADMIN, OpenDatabase
from oracle_embedded.server import EmbeddedServer
from tests.oracle_embedded.engine.conftest import Client, Connect

_SEC = "create function sec(owner varchar2, name varchar2) return varchar2 is begin {} end;"


def _rls(rest: str = "") -> str:
    return f"begin sys.dbms_rls.add_policy('DEMO', 'T', 'P', 'DEMO', 'SEC'{rest}); end;"


def _redact(column: str, kind: str, more: str = "", expression: str = "1=1") -> str:
    return (
        f"begin dbms_redact.add_policy(object_schema => 'demo', object_name => 't', policy_name => 'r', column_name => '{column}',"
        f" function_type => dbms_redact.{kind}, expression => '{expression}'{more}); end;"
    )


@pytest.fixture
def sql(connect: Connect) -> Client:
    made = connect()
    made("create table t (id number(9) primary key, v varchar2(20), d date)")
    for number in (1, 2, 3):
        made(f"insert into t values ({number}, 'v{number}', date '2020-05-06')")
    made.session.commit()
    connect(ADMIN)("grant execute_catalog_role, select_catalog_role to demo")
    return made


# --- row-level security ----------------------------------------------------------------------------------------------


def test_a_predicate_is_part_of_queries_and_changes(sql: Client, connect: Connect) -> None:
    sql(_SEC.format("return 'id < 3 and ''' || owner || '.' || name || ''' = ''DEMO.T''';"))
    sql("create view w as select id, v from t")
    sql(_rls())
    assert sql("select id from t order by 1") == [("1",), ("2",)]
    assert sql("select x.id from t x where x.id > 1") == [("2",)]
    assert sql("select id from w order by id") == [("1",), ("2",)]
    assert sql.one("select count(*) from t a join t b on a.id >= b.id") == "3"
    assert sql("update t set v = 'new'") == 2
    assert sql("delete from t where id > 1") == 1
    assert sql("insert into t (id) values (9)") == 1
    scn = sql.scn()
    assert sql(f"select id from t as of scn {scn}") == [("1",), ("2",)]
    assert connect(ADMIN).one("select count(*) from demo.t") == "2"


def test_who_may_pass_a_policy_sees_all_rows(sql: Client, connect: Connect) -> None:
    sql(_SEC.format("return '1 = 0';"))
    sql(_rls())
    assert sql.one("select count(*) from t") == "0"
    admin = connect(ADMIN)
    admin("create role r")
    admin("grant exempt access policy to r")
    admin("grant r to demo")
    assert sql.one("select count(*) from t") == "3"
    admin("revoke r from demo")
    assert sql.one("select count(*) from t") == "0"


def test_a_function_is_asked_at_each_statement(sql: Client) -> None:
    sql(_SEC.format("return 'id = ' || sys_context('USERENV', 'CLIENT_IDENTIFIER');"))
    sql(_rls(", statement_types => 'select'"))
    for number in ("1", "2"):
        sql(f"begin dbms_session.set_identifier('{number}'); end;")
        assert sql("select id from t") == [(number,)]
    assert sql("delete from t") == 3


def test_policies_are_shown_switched_off_and_dropped(sql: Client) -> None:
    sql(_SEC.format("return 'user = ''NOBODY''';"))
    sql(_rls(", 'select,update', update_check => true"))
    shown = "select object_name, policy_name, pf_owner, function, sel, ins, upd, del, chk_option, enable from {}_policies"
    row = ("T", "P", "DEMO", "SEC", "YES", "NO", "YES", "NO", "YES", "YES")
    assert (
        sql(shown.format("all")) == sql(shown.format("dba")) == sql(shown.format("user")) == [row]
    )
    assert sql("select id from t") == []
    sql("begin dbms_rls.enable_policy('DEMO', 'T', 'P', false); end;")
    assert sql("select enable from all_policies") == [("NO",)]
    assert len(sql("select id from t")) == 3
    sql("begin dbms_rls.drop_policy('DEMO', 'T', 'P'); end;")
    assert sql(shown.format("all")) == []


def test_new_rows_are_checked_where_a_policy_says_so(sql: Client) -> None:
    sql(_SEC.format("return 'id < 5';"))
    sql(_rls(", update_check => true"))
    assert sql("insert into t (id) values (4)") == 1
    assert sql("update t set v = 'x' where id = 4") == 1
    for statement in ("insert into t (id) values (5)", "update t set id = id + 2"):
        with pytest.raises(Exception, match="ORA-28115"):
            sql(statement)
    assert sql.one("select count(*) from t") == "4"


@pytest.mark.parametrize(
    ("body", "statement", "error"),
    [
        pytest.param("return 'id <';", "select 1 from t", "ORA-28113", id="no-condition"),
        pytest.param("return 'nothing = 1';", "delete from t", "ORA-28113", id="no-such-column"),
        pytest.param("raise no_data_found;", "select 1 from t", "ORA-28112", id="function-fails"),
        pytest.param("declare n number; begin select max(id) into n from t; return '1=1'; end;", "select 1 from t", "ORA-28108",
                     id="reads-its-own-table-in-the-function"),
        pytest.param(None, "select 1 from t", "ORA-28110", id="no-function"),
        pytest.param("return 'id in (select id from t)';", "select 1 from t", "ORA-28108", id="reads-its-own-table-in-the-predicate"),
        pytest.param("return '1=1';", "merge into t using dual on (1 = 0) when not matched then insert (id) values (7)", "ORA-28132",
                     id="merge"),
        pytest.param("return '1=1';", _rls(), "ORA-28101", id="there-is-one"),
        pytest.param("return '1=1';", "begin dbms_rls.drop_policy('DEMO', 'T', 'Q'); end;", "ORA-28102", id="there-is-none"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_policy_is_told(
    sql: Client, body: str | None, statement: str, error: str
) -> None:
    if body is not None:
        sql(_SEC.format(body))
    sql(_rls())
    with pytest.raises(Exception, match=error):
        sql(statement)


# --- redaction -------------------------------------------------------------------------------------------------------


def test_a_redacted_column_is_compared_as_it_is_and_shown_as_it_is_not(
    sql: Client, connect: Connect
) -> None:
    sql(_redact("id", "full"))
    assert sql("select id, v from t where id = 2") == [("0", "v2")]
    assert sql("select id + 1, v from t where id > 2") == [("0", "v3")]
    assert sql("select * from (select id as x, v from t) where x = 3 order by x") == [("0", "v3")]
    assert sql("with w as (select id from t) select id from w where id = 1") == [("0",)]
    assert sql("select (select max(id) from t), v from t where rownum = 1") == [("0", "v1")]
    assert sql("select v from t order by id desc") == [("v3",), ("v2",), ("v1",)]
    assert sql("update t set v = 'w' where id = 1") == 1
    assert sql(f"select id from t as of scn {sql.scn()} where id = 1") == [("0",)]
    assert connect(ADMIN)("select id, v from demo.t where id = 2") == [("2", "v2")]


@pytest.mark.parametrize(
    ("column", "kind", "parameters", "shown"),
    [
        pytest.param("v", "full", None, " ", id="text"),
        pytest.param("d", "full", None, "2001-01-01 00:00:00", id="date"),
        pytest.param("v", "nullify", None, None, id="null"),
        pytest.param("v", "none", None, "v1", id="none"),
        pytest.param("v", "partial", "VV,VV,*,2,2", "v*", id="part-of-a-text"),
        pytest.param("v", "partial", "VF,V-,#,1,1", "#-", id="into-another-form"),
        pytest.param("id", "partial", "9,1,1", "9", id="part-of-a-number"),
        pytest.param("d", "partial", "m12DYHMS", "2020-12-06 00:00:00", id="part-of-a-date"),
    ],
)
def test_kinds_of_redaction(
    sql: Client, column: str, kind: str, parameters: str | None, shown: Any
) -> None:
    more = "" if parameters is None else f", function_parameters => '{parameters}'"
    sql(_redact(column, kind, more))
    assert sql(f"select {column} from t where id = 1") == [(shown,)]


def test_who_sees_redacted_values_is_said_by_an_expression_and_a_privilege(
    sql: Client, connect: Connect
) -> None:
    sql(_redact("v", "full", expression="SYS_CONTEXT(''USERENV'', ''CLIENT_IDENTIFIER'') = ''x''"))
    query = "select v from t where id = 1"
    assert sql(query) == [("v1",)]
    sql("begin dbms_session.set_identifier('x'); end;")
    assert sql(query) == [(" ",)]
    connect(ADMIN)("grant exempt redaction policy to demo")
    assert sql(query) == [("v1",)]


def test_a_redacted_column_is_no_source_of_changes(sql: Client) -> None:
    sql("create table u (v varchar2(20))")
    sql(_redact("v", "full"))
    for statement in (
        "insert into u select v from t",
        "update u set v = (select max(v) from t)",
        "delete from u where v in (select v from t)",
        "update t set v = v || 'x'",
        "create table c as select id, v from t",
    ):
        with pytest.raises(Exception, match="ORA-28081"):
            sql(statement)
    assert sql("update t set v = 'z' where v = 'v1'") == 1


def test_redaction_is_shown_altered_and_dropped(sql: Client) -> None:
    sql(_redact("v", "full"))
    alter = "begin dbms_redact.alter_policy('DEMO', 'T', 'R', {}); end;"
    sql(alter.format("dbms_redact.add_column, 'D', dbms_redact.nullify"))
    columns = "select column_name, function_type from redaction_columns order by 1"
    assert sql(columns) == [("D", "NULLIFY REDACTION"), ("V", "FULL REDACTION")]
    assert sql("select v, d from t where id = 1") == [(" ", None)]
    sql(alter.format("dbms_redact.drop_column, 'V'"))
    sql(alter.format("dbms_redact.modify_expression, expression => '1=0'"))
    policy = "select policy_name, expression, trim(enable) from redaction_policies"
    assert sql(policy) == [("R", "1=0", "YES")]
    sql("begin dbms_redact.disable_policy('DEMO', 'T', 'R'); end;")
    assert sql(policy) == [("R", "1=0", "NO")]
    with pytest.raises(Exception, match="ORA-28080"):
        sql("begin dbms_redact.disable_policy('DEMO', 'T', 'R'); end;")
    with pytest.raises(Exception, match="ORA-28069"):
        sql(_redact("v", "full"))
    sql("begin dbms_redact.drop_policy('DEMO', 'T', 'R'); end;")
    assert sql(policy) == sql(columns) == []


def test_the_driver_gets_redacted_values_and_returned_ones(
    sql: Client, driver: oracledb.Connection, database: OpenDatabase, server: EmbeddedServer
) -> None:
    sql(_redact("id", "partial", ", function_parameters => '7,1,1'"))
    cursor = driver.cursor()
    assert cursor.execute("select id from t where id = 3").fetchall() == [(Decimal(7),)]
    returned = cursor.var(Decimal)
    cursor.execute("insert into t (id) values (24) returning id into :1", [returned])
    assert returned.getvalue() == [Decimal(74)]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(_redact("v", "random"), id="random-values"),
        pytest.param(_redact("v", "regexp", ", regexp_pattern => 'v'"), id="regular-expressions"),
        pytest.param(_redact("v", "full").replace("'t'", "'w'"), id="views"),
        pytest.param(_rls(", sec_relevant_cols => 'V'"), id="columns-that-make-a-policy-relevant"),
    ],
)
def test_what_is_not_there_is_refused_by_name(sql: Client, statement: str) -> None:
    sql("create view w as select id, v from t")
    with pytest.raises(Exception, match="ORA-03001"):
        sql(statement)
