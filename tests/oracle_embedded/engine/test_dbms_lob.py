"""Blocks write LOBs by DBMS_LOB: temporary ones, those of binds, and those of rows through their locators."""

from __future__ import annotations

import oracledb
import pytest

from oracle_embedded.database import ADMIN, OpenDatabase
from oracle_embedded.server import EmbeddedServer

_EDITS = """
declare
    c clob; d clob; n number := 3; piece varchar2(20);
begin
    dbms_lob.createtemporary(c, true);
    dbms_lob.writeappend(c, 5, 'hello there');
    dbms_lob.write(c, 2, 9, 'xyz');
    dbms_lob.createtemporary(lob_loc => d, cache => false, dur => dbms_lob.session);
    dbms_lob.append(d, c);
    dbms_lob.copy(d, c, 2, 1, 4);
    dbms_lob.erase(d, n, 3);
    :erased := n;
    n := 4;
    dbms_lob.read(d, n, 8, piece);
    :piece := piece;
    :was_read := n;
    dbms_lob.trim(c, 4);
    :c := c;
    :d := d;
    dbms_lob.freetemporary(c);
    :freed := case when c is null then 1 else 0 end;
end;"""


def test_temporary_lobs_are_written_piece_by_piece(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    out = {name: cursor.var(str) for name in ("erased", "piece", "was_read", "c", "d", "freed")}
    cursor.execute(_EDITS, **out)
    assert {name: variable.getvalue() for name, variable in out.items()} == {
        "c": "hell",
        "d": "lo      xy",
        "erased": "3",
        "piece": " xy",
        "was_read": "3",
        "freed": "1",
    }


def test_binds_that_are_lobs_come_back_as_they_were_written(driver: oracledb.Connection) -> None:
    """Text too long for a VARCHAR2 is sent as a CLOB."""
    cursor = driver.cursor()
    text, data = cursor.var(str), cursor.var(bytes)
    text.setvalue(0, "A" * 50_000)
    data.setvalue(0, b"L" * 40_000)
    cursor.execute(
        "declare c clob := :text; begin dbms_lob.copy(:text, c, 50000, 11); dbms_lob.writeappend(:data, 2, 'BEEF'); end;",
        text=text,
        data=data,
    )
    assert text.getvalue() == "A" * 50_010
    assert data.getvalue() == b"L" * 40_000 + b"\xbe\xef"


@pytest.fixture
def cursor(driver: oracledb.Connection) -> oracledb.Cursor:
    cursor = driver.cursor()
    cursor.execute("create table t (id number primary key, c clob, b blob)")
    cursor.execute("insert into t values (1, 'first', hextoraw('0102'))")
    cursor.execute("insert into t values (2, empty_clob(), null)")
    driver.commit()
    return cursor


@pytest.mark.parametrize(
    "block",
    [
        pytest.param("declare l clob; begin select c into l from t where id = 2 for update; {} end;", id="select"),
        pytest.param("declare l clob; begin update t set c = empty_clob() where id = 2 returning c into l; {} end;", id="returning"),
        pytest.param("declare l clob; r t%rowtype; cursor q is select * from t where id = 2 for update; begin open q; fetch q into r; close q; l := r.c; {} end;", id="cursor"),
        pytest.param("declare l clob; begin for r in (select c from t where id = 2 for update) loop l := r.c; {} end loop; end;", id="loop"),
        pytest.param("declare l clob; begin execute immediate 'select c from t where id = 2 for update' into l; {} end;", id="dynamic"),
        pytest.param("declare l clob; procedure p(x in out clob) is begin {} end; begin select c into l from t where id = 2 for update; p(l); end;", id="parameter"),
        pytest.param("declare l clob; begin update t set b = null where id = 2; select c into l from t where id = 2; {} end;", id="locked-before"),
    ],
)  # fmt: skip
def test_what_is_written_through_a_locator_is_in_the_row(
    cursor: oracledb.Cursor, driver: oracledb.Connection, block: str
) -> None:
    name = "x" if "procedure p" in block else "l"
    cursor.execute(
        block.format(
            f"dbms_lob.writeappend({name}, 3, 'abc'); dbms_lob.write({name}, 1, 5, 'e'); dbms_lob.trim({name}, 4);"
        )
    )
    cursor.execute("select c from t where id = 2")
    assert cursor.fetchone()[0].read() == "abc "
    driver.rollback()
    cursor.execute("select c from t where id = 2")
    assert (cursor.fetchone()[0].read() or "") == ""


def test_two_locators_of_a_row_lose_nothing(cursor: oracledb.Cursor) -> None:
    cursor.execute("""
        declare a clob; b clob;
        begin
            select c into a from t where id = 1 for update;
            b := a;
            dbms_lob.writeappend(a, 1, '1');
            dbms_lob.writeappend(b, 1, '2');
        end;""")
    cursor.execute("select c from t where id = 1")
    assert cursor.fetchone()[0].read() == "first12"


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ("declare l clob; begin select c into l from t where id = 1; dbms_lob.writeappend(l, 1, 'x'); end;", "ORA-22920"),
        ("declare l clob; begin dbms_lob.writeappend(l, 1, 'x'); end;", "ORA-06502.*ORA-22275"),
        ("declare l clob := 'abc'; begin dbms_lob.write(l, 4, 1, 'x'); end;", "ORA-21560: argument 2"),
        ("declare l clob := 'abc'; begin dbms_lob.write(l, 1, 0, 'x'); end;", "ORA-21560: argument 3"),
        ("declare l clob := 'abc'; begin dbms_lob.trim(l, 4); end;", "ORA-22926"),
        ("declare l clob := 'abc'; n number := 1; v varchar2(9); begin dbms_lob.read(l, n, 4, v); end;", "ORA-01403"),
        ("declare l clob := 'abc'; begin dbms_lob.trim(l); end;", "PLS-00306"),
        ("declare l clob := 'abc'; b blob := hextoraw('00'); begin dbms_lob.append(l, b); end;", "PLS-00306"),
        ("declare v varchar2(9) := 'abc'; begin dbms_lob.trim(v, 1); end;", "PLS-00306"),
        ("declare l clob; begin select c into l from t where id = 1 for update; dbms_lob.freetemporary(l); end;", "ORA-22275"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(cursor: oracledb.Cursor, block: str, error: str) -> None:
    with pytest.raises(oracledb.DatabaseError, match=error):
        cursor.execute(block)


def test_the_temporary_lobs_of_a_session_are_counted(database: OpenDatabase) -> None:
    with (
        EmbeddedServer(database.engine) as server,
        oracledb.connect(user=ADMIN, password=database.password(ADMIN), dsn=server.dsn) as driver,
    ):
        _count_temporary_lobs(driver)


def _count_temporary_lobs(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    query = "select cache_lobs, nocache_lobs, abstract_lobs from v$temporary_lobs where sid = sys_context('USERENV', 'SID')"
    kept = [driver.createlob(oracledb.DB_TYPE_CLOB) for _ in range(3)]
    cursor.execute(query)
    assert cursor.fetchone() == (3, 0, 0)
    del kept
    driver.ping()
    cursor.execute(query)
    assert cursor.fetchone() == (0, 0, 0)


def test_a_client_does_not_cut_a_lob_longer_than_it_is(driver: oracledb.Connection) -> None:
    lob = driver.createlob(oracledb.DB_TYPE_CLOB)
    lob.write("abc")
    with pytest.raises(oracledb.DatabaseError, match="ORA-22926"):
        lob.trim(4)
    lob.trim(3)
    assert lob.read() == "abc"
