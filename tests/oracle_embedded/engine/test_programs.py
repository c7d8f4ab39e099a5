"""Stored procedures, functions, packages and triggers, called by the real driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import oracledb
import pytest

from oracle_embedded.api import OracleError
from oracle_embedded.database import OpenDatabase
from oracle_embedded.server import EmbeddedServer

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client


@pytest.fixture
def connection(database: OpenDatabase, server: EmbeddedServer) -> Iterator[oracledb.Connection]:
    dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
    with oracledb.connect(user="DEMO", password=database.password("DEMO"), dsn=dsn) as made:
        yield made


def test_procedures_and_functions_take_and_give_arguments(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "create procedure double(x in number, y in out number, z out varchar2) as"
        " begin y := y + 2 * x; z := 'is ' || y; end;"
    )
    cursor.execute(
        "create function size_of(n number, least number default 2) return varchar2 is"
        " begin if n > least then return 'big'; end if; return 'small'; end;"
    )
    number, text = cursor.var(int), cursor.var(str)
    number.setvalue(0, 5)
    assert cursor.callproc("double", [3, number, text]) == [3, 11, "is 11"]
    assert cursor.callfunc("size_of", str, [3]) == "big"
    assert cursor.callfunc("size_of", str, keyword_parameters={"least": 4, "n": 3}) == "small"
    cursor.execute("select size_of(level), size_of(level, 9) from dual connect by level < 4")
    assert cursor.fetchall() == [("small", "small"), ("small", "small"), ("big", "small")]
    with pytest.raises(oracledb.DatabaseError, match="PLS-00306"):
        cursor.callproc("double", [3])


def test_packages_keep_variables_and_have_private_parts(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "create package counter as type names is table of varchar2(20) index by pls_integer;"
        " step constant number := 2; procedure go; procedure go(times number); function now return number;"
        " procedure fill(many in number, found in out names); end;"
    )
    with pytest.raises(oracledb.DatabaseError, match="ORA-04067"):
        cursor.callproc("counter.go")
    cursor.execute(
        "create package body counter as at number := 10;"
        " procedure go is begin at := at + step; end;"
        " procedure go(times number) is begin for i in 1..times loop go; end loop; end;"
        " function now return number is begin return at; end;"
        " procedure fill(many in number, found in out names) is"
        " begin for i in 1..many loop found(found.count + 1) := 'n' || i; end loop; end; end;"
    )
    cursor.callproc("counter.go")
    cursor.callproc("counter.go", [3])
    assert cursor.callfunc("counter.now", int) == 18
    array = cursor.arrayvar(str, 5)
    array.setvalue(0, ["first"])
    cursor.callproc("counter.fill", [2, array])
    assert array.getvalue() == ["first", "n1", "n2"]
    with pytest.raises(oracledb.DatabaseError, match="PLS-00201"):
        cursor.execute("begin counter.at := 1; end;")


def test_blocks_know_records_collections_cursors_and_exceptions(
    connection: oracledb.Connection,
) -> None:
    cursor = connection.cursor()
    cursor.execute("create table t (id number primary key, name varchar2(10))")
    cursor.executemany("insert into t values (:1, :2)", [(n, f"row{n}") for n in range(1, 5)])
    out = cursor.var(str)
    cursor.execute(
        """declare
             type list is table of varchar2(10) index by varchar2(5);
             many list; said varchar2(200); odd exception; pragma exception_init(odd, -20007);
             cursor above(least number) is select id, name from t where id > least order by id;
             one above%rowtype; whole t%rowtype; type all_of is table of t%rowtype; rows_found all_of;
             procedure say(what varchar2) is begin said := said || what || ' '; end;
           begin
             many('b') := 'x'; many('a') := 'y';
             if many.exists('c') and many('c') = 'z' then say('never'); end if;
             say(many.first || many.count || many.next('a'));
             open above(2); loop fetch above into one; exit when above%notfound; say(one.name); end loop; close above;
             for each in (select name from t where id < 2) loop say(each.name); end loop;
             select * into whole from t where id = 4; whole.id := 9; insert into t values whole;
             select * bulk collect into rows_found from t order by id; say(rows_found(5).id);
             begin raise_application_error(-20007, 'odd'); exception when odd then say('caught' || sqlcode); end;
             case when rows_found.count > 4 then say('many'); else say('few'); end case;
             execute immediate 'select count(*) from t where id > :1' into whole.id using 3; say(whole.id);
             :said := said;
           end;""",
        said=out,
    )
    assert out.getvalue() == "a2b row3 row4 row1 9 caught-20007 many 2 "
    with pytest.raises(oracledb.DatabaseError, match="ORA-06533"):
        cursor.execute("declare type l is table of number; a l := l(1, 2); begin a(3) := 1; end;")


def test_cursors_go_both_ways_and_results_come_besides(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "create procedure up_to(n number, c out sys_refcursor) is"
        " begin open c for select level from dual connect by level <= n; end;"
    )
    cursor.execute(
        "create function first_of(c sys_refcursor) return number is x number; begin fetch c into x; return x; end;"
    )
    result = connection.cursor()
    cursor.callproc("up_to", [3, result])
    assert cursor.callfunc("first_of", int, [result]) == 1
    cursor.execute("declare c sys_refcursor; begin up_to(2, c); dbms_sql.return_result(c); end;")
    assert [found.fetchall() for found in cursor.getimplicitresults()] == [[(1,), (2,)]]


def test_an_autonomous_transaction_stays_when_its_caller_rolls_back(
    connection: oracledb.Connection,
) -> None:
    cursor = connection.cursor()
    cursor.execute("create table t (id number)")
    cursor.execute(
        "create procedure note(n number, ends boolean) is pragma autonomous_transaction;"
        " begin insert into t values (n); if ends then commit; end if; end;"
    )
    cursor.execute("insert into t values (1)")
    cursor.callproc("note", [2, True])
    with pytest.raises(oracledb.DatabaseError, match="ORA-06519"):
        cursor.callproc("note", [3, False])
    connection.rollback()
    assert cursor.execute("select id from t").fetchall() == [(2,)]


def test_triggers_see_and_change_rows(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("create table t (id number primary key, name varchar2(10), version number)")
    cursor.execute("create table log (what varchar2(60))")
    cursor.execute(
        "create trigger named before insert or update of name on t for each row when (new.name is not null)"
        " begin :new.name := upper(:new.name); if updating then :new.version := nvl(:old.version, 0) + 1; end if; end;"
    )
    cursor.execute(
        "create trigger noted after insert or update or delete on t for each row begin"
        " insert into log values (case when inserting then 'I' when deleting then 'D' else 'U' end"
        " || :old.name || '>' || :new.name); end;"
    )
    cursor.execute("insert into t (id, name) values (1, 'one')")
    cursor.execute("update t set name = 'uno' where id = 1")
    cursor.execute("update t set version = 7 where id = 1")
    assert cursor.execute("select * from t").fetchall() == [(1, "UNO", 7)]
    cursor.execute("alter trigger noted disable")
    cursor.execute("update t set version = 8")
    cursor.execute("alter trigger noted enable")
    cursor.execute("delete t")
    logged = cursor.execute("select what from log").fetchall()
    assert [row for (row,) in logged] == ["I>ONE", "UONE>UNO", "UUNO>UNO", "DUNO>"]
    cursor.execute(
        "create trigger guard before delete on log begin raise_application_error(-20001, 'kept'); end;"
    )
    with pytest.raises(oracledb.DatabaseError, match="ORA-20001"):
        cursor.execute("delete log")


def test_a_function_changes_no_data_in_a_query(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("create table t (id number)")
    cursor.execute(
        "create function f return number is begin insert into t values (1); return 1; end;"
    )
    with pytest.raises(oracledb.DatabaseError, match="ORA-14551"):
        cursor.execute("select f from dual").fetchall()


def test_a_program_that_does_not_compile_is_there_and_invalid(
    connection: oracledb.Connection,
) -> None:
    cursor = connection.cursor()
    cursor.execute("create procedure broken is begin null end;")
    assert cursor.warning is not None
    cursor.execute("select line, position from user_errors where name = 'BROKEN'")
    assert cursor.fetchall() == [(1, 32)]
    cursor.execute("select status from user_objects where object_name = 'BROKEN'")
    assert cursor.fetchall() == [("INVALID",)]
    with pytest.raises(oracledb.DatabaseError, match="PLS-00905"):
        cursor.callproc("broken")
    cursor.execute("drop procedure broken")
    with pytest.raises(oracledb.DatabaseError, match="ORA-04043"):
        cursor.execute("drop procedure broken")


def test_a_stored_program_works_with_the_rights_of_its_owner(
    connection: oracledb.Connection, database: OpenDatabase, server: EmbeddedServer
) -> None:
    cursor = connection.cursor()
    cursor.execute("create table hidden (id number)")
    cursor.execute("create procedure add_one is begin insert into hidden values (1); commit; end;")
    dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
    admin_password = database.password("REDOLAKE_ADMIN")
    with oracledb.connect(user="REDOLAKE_ADMIN", password=admin_password, dsn=dsn) as admin:
        admin.cursor().execute("create user guest identified by Guest1")
        admin.cursor().execute("grant create session to guest")
    with oracledb.connect(user="GUEST", password="Guest1", dsn=dsn) as guest:
        with pytest.raises(oracledb.DatabaseError, match="PLS-00201"):
            guest.cursor().callproc("demo.add_one")
        cursor.execute("grant execute on add_one to guest")
        guest.cursor().callproc("demo.add_one")
        with pytest.raises(oracledb.DatabaseError, match="ORA-00942"):
            guest.cursor().execute("select * from demo.hidden")
    assert cursor.execute("select count(*) from hidden").fetchone() == (1,)


def test_a_pipelined_function_is_a_table(sql: Client) -> None:
    """Its rows are those that it pipes: scalars, objects, and records of its package."""
    sql("create type pair as object (id number, word varchar2(20))")
    sql("create type pairs as table of pair")
    sql(
        "create function counted(p_rows in number) return pairs pipelined is begin"
        " for i in 1 .. p_rows loop pipe row (pair(i, 'word ' || i)); end loop; return; end;"
    )
    assert sql("select id, word from table(counted(3)) where id > 1 order by id desc") == [
        ("3", "word 3"),
        ("2", "word 2"),
    ]
    sql(
        "create package p as type row_t is record (n number, v varchar2(9)); type rows_t is table of row_t;"
        " function listed return rows_t pipelined; type numbers_t is table of number;"
        " function numbers(x number) return numbers_t pipelined; end;"
    )  # fmt: skip
    sql(
        "create package body p as function listed return rows_t pipelined is r row_t; begin r.n := 7;"
        " r.v := 'x'; pipe row (r); r.v := 'y'; pipe row (r); end;"
        " function numbers(x number) return numbers_t pipelined is begin"
        " for i in 1 .. x loop pipe row (i); end loop; return; end; end;"
    )
    assert sql("select n, v from table(p.listed()) order by v") == [("7", "x"), ("7", "y")]
    assert sql("select column_value from table(p.numbers(3)) t") == [("1",), ("2",), ("3",)]
    assert sql("select count(*) from table(p.numbers(0))") == [("0",)]


def test_a_function_that_returns_a_collection_is_a_table(sql: Client) -> None:
    sql("create type words is table of varchar2(100)")
    sql("create function two return words authid definer is begin return words('a', 'b'); end;")
    assert sql("select column_value from table(two()) order by 1") == [("a",), ("b",)]


def test_what_is_not_pipelined_pipes_nothing(sql: Client) -> None:
    with pytest.raises(OracleError, match="PLS-00629"):
        sql("begin pipe row (1); end;")
