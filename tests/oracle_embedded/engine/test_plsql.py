"""Anonymous blocks as clients send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracle_embedded.api import BindMeta, OracleError, OraType
from oracle_embedded.values import number_from_decimal, text_from_number

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client, Connect

NUMBER = BindMeta(OraType.NUMBER, 22)


def run(sql: Client, block: str, *values: int | None) -> dict[int, str | None]:
    encoded = [None if value is None else number_from_decimal(value) for value in values]
    outcome = sql.session.run(block, encoded, [NUMBER] * len(values))
    return {
        out.position: None if out.values[0][0] is None else text_from_number(out.values[0][0])
        for out in outcome.out_binds
    }


@pytest.mark.parametrize(
    ("block", "values", "result"),
    [
        ("begin :o := :i * 2; end;", (None, 21), {0: "42"}),
        ("begin :x := :x + 1; end;", (1,), {0: "2"}),
        ("begin for i in 1..4 loop :s := nvl(:s, 0) + i; end loop; end;", (None,), {0: "10"}),
        ("begin for i in reverse 1..3 loop :s := i; exit when i = 2; end loop; end;", (None,), {0: "2"}),
        ("declare n number := 5; begin if n > 5 then :o := 1; elsif n = 5 then :o := 2; else :o := 3; end if; end;", (None,), {0: "2"}),
        ("declare n pls_integer := 0; begin while n < 7 loop n := n + 1; continue when n < 3; end loop; :o := n; end;", (None,), {0: "7"}),
        ("begin select count(*) into :n from t; end;", (None,), {0: "1"}),
        ("begin update t set v = 'x'; :n := sql%rowcount; end;", (None,), {0: "1"}),
        ("declare x t.id%type; begin select id into x from t; :o := x; exception when no_data_found then :o := -1; end;", (None,), {0: "1"}),
        ("declare x number; begin select id into x from t where id = 99; exception when no_data_found then :o := -1; end;", (None,), {0: "-1"}),
        ("begin execute immediate 'select id + :1 from t' into :o using 41; end;", (None,), {0: "42"}),
        ("begin insert into t values (2, 'b') returning id into :o; end;", (None,), {0: "2"}),
        ("declare b boolean := 1 < 2; begin if b and not false then :o := 1; end if; end;", (None,), {0: "1"}),
        ("begin null; end;", (), {}),
    ],
)  # fmt: skip
def test_a_block_runs(
    sql: Client, block: str, values: tuple[int | None, ...], result: dict[int, str]
) -> None:
    sql("create table t (id number, v varchar2(10))")
    sql("insert into t values (1, 'a')")
    assert run(sql, block, *values) == result


@pytest.mark.parametrize(
    ("block", "code", "words"),
    [
        ("begin nope; end;", 6550, "PLS-00201: identifier 'NOPE' must be declared"),
        ("begin x := 1; end;", 6550, "PLS-00201: identifier 'X' must be declared"),
        ("begin dbms_session.sleep; end;", 6550, "PLS-00306"),
        ("begin dbms_session.sleep(1, 2); end;", 6550, "PLS-00306"),
        ("begin null end;", 6550, "PLS-00103"),
        ("begin select 1 from dual; end;", 6550, "PLS-00428"),
        ("begin open c; end;", 6550, "PLS-00201"),
        ("begin raise_application_error(-20042, 'boo'); end;", 20042, "boo"),
        ("begin raise_application_error(-1, 'boo'); end;", 21000, "out of range"),
        ("declare n number; begin n := 1 / 0; end;", 1476, "ORA-06512"),
        ("declare v varchar2(2); begin v := 'abc'; end;", 6502, "buffer too small"),
        ("declare n number; begin select 1 into n from dual where 1 = 0; end;", 1403, "no data found"),
        ("declare n number; begin select level into n from dual connect by level < 3; end;", 1422, "more than requested"),
        ("begin sys.dbms_logmnr.end_logmnr; end;", 6550, "PLS-00201"),
    ],
)  # fmt: skip
def test_a_wrong_block_is_refused(sql: Client, block: str, code: int, words: str) -> None:
    with pytest.raises(OracleError) as raised:
        sql(block)
    assert raised.value.code == code
    assert words in raised.value.text


def test_a_block_locks_the_rows_that_it_selects(sql: Client, connect: Connect) -> None:
    sql("create table t (id number, n number)")
    sql("insert into t values (1, 10)")
    sql("commit")
    sql("declare x number; begin select n into x from t where id = 1 for update; update t set n = x + 1 where id = 1; end;")  # fmt: skip
    with pytest.raises(OracleError, match="ORA-00054"):
        connect()("select n from t where id = 1 for update nowait")
    sql("rollback")
    sql("begin for one in (select id, n from t for update) loop update t set n = one.n + 5 where id = one.id; end loop; commit; end;")  # fmt: skip
    assert sql("select n from t") == [("15",)]


def test_a_failed_block_leaves_nothing_behind(sql: Client) -> None:
    sql("create table t (id number)")
    sql("insert into t values (1)")
    with pytest.raises(OracleError, match="ORA-20001"):
        sql(
            "begin delete from t; insert into t values (2); raise_application_error(-20001, 'no'); end;"
        )
    assert sql("select id from t") == [("1",)]


def test_execute_immediate_runs_ddl(sql: Client) -> None:
    sql(
        "begin execute immediate 'create table made (id number)'; insert into made values (1); commit; end;"
    )
    assert sql("select * from made") == [("1",)]
