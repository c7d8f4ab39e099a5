"""ROWIDs: what keeps a row's address, what gives it another one, and who gets the address of a row that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oracledb
import pytest

from oracle_embedded.api import OracleError
from tests.oracle_embedded.engine.conftest import Client

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Connect

CREATE = "create table t (id number, v varchar2(10))"
DATA_OBJECT = "select data_object_id from user_objects where object_name = 'T'"


def addresses(sql: Client) -> dict[str, str]:
    return dict(sql("select id, rowid from t"))


@pytest.fixture
def three(sql: Client) -> Client:
    sql(CREATE)
    sql("insert into t select level, 'x' from dual connect by level <= 3")
    sql.session.commit()
    return sql


def test_an_update_leaves_a_row_where_it_is(three: Client) -> None:
    before = addresses(three)
    three("update t set v = 'longer' where id = 2")
    assert addresses(three) == before


def test_move_gives_all_rows_addresses_of_another_data_object(three: Client) -> None:
    before, [(number,)] = addresses(three), three(DATA_OBJECT)
    three("alter table t move")
    after = addresses(three)
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert three(DATA_OBJECT) != [(number,)]


def test_shrink_moves_rows_inside_their_data_object(three: Client) -> None:
    """One row may get the address that another one had."""
    before, number = addresses(three), three(DATA_OBJECT)
    three("delete from t where id = 1")
    three.session.commit()
    with pytest.raises(OracleError, match="ROW MOVEMENT is not enabled"):
        three("alter table t shrink space")
    three("alter table t enable row movement")
    three("alter table t shrink space cascade")
    after = addresses(three)
    assert after == {"2": before["1"], "3": before["2"]}
    assert three(DATA_OBJECT) == number
    three("insert into t values (4, 'y')")
    assert addresses(three)["4"] == before["3"]


def test_a_new_row_takes_the_address_of_one_that_is_gone(three: Client, connect: Connect) -> None:
    """Once the delete has committed, and not before: it may be rolled back."""
    before = addresses(three)
    three("delete from t where id = 2")
    three("insert into t values (4, 'y')")
    assert addresses(three)["4"] not in before.values()
    three.session.commit()
    three("insert into t values (5, 'z')")
    three.session.commit()
    assert addresses(three)["5"] == before["2"]
    other = connect()
    assert addresses(other) == addresses(three)


def test_a_row_of_an_index_organized_table_has_a_logical_rowid(driver: oracledb.Connection) -> None:
    """It holds the primary key, and finds the row again, from a client and from a UROWID column."""
    cursor = driver.cursor()
    cursor.execute(
        "create table i (a number, b varchar2(3000), v number, primary key (a, b)) organization index overflow"
    )  # fmt: skip
    cursor.executemany("insert into i values (:1, :2, 0)", [(1, "xyz"), (2, "y" * 2000)])
    cursor.execute("select rowid, a from i order by a")
    assert cursor.description[0].type_code is oracledb.DB_TYPE_UROWID
    (short, _), (long, _) = cursor.fetchall()
    assert short == "*BAEAAAACwQIDeHl6/g"
    assert len(long) > 2600
    cursor.execute("update i set v = 7 where rowid = :1", [long])
    assert cursor.rowcount == 1
    cursor.execute("select a from i where rowid = :1 and v = 7", [long])
    assert cursor.fetchall() == [(2,)]
    cursor.execute("create table u (id number, r urowid)")
    cursor.execute("insert into u select a, rowid from i")
    cursor.execute("insert into u values (3, :1)", [long])
    cursor.execute("select u.id, r from u join i on u.r = i.rowid order by u.id")
    assert cursor.fetchall() == [(1, short), (2, long), (3, long)]


def test_a_restricted_rowid_names_no_data_object(sql: Client) -> None:
    sql("create table u (r urowid)")
    sql("insert into u values (chartorowid(:1))", "00000DD5.0000.0101")
    assert sql.one("select r from u") == "00000DD5.0000.0101"
    assert sql.one("select dbms_rowid.rowid_create(0, 7, 257, 3541, 0) from dual") == (
        "00000DD5.0000.0101"
    )
    assert sql.one("select rowidtochar(chartorowid('0')) from dual") == "00000000.0000.0000"
    for text in ("x", "*?", "00000DD5.0000.00001"):
        with pytest.raises(OracleError, match="ORA-01410"):
            sql("insert into u values (chartorowid(:1))", text)


def test_a_rowid_is_no_target(sql: Client) -> None:
    sql(CREATE)
    for statement in ("update t set rowid = :1", "insert into t (id, rowid) values (1, :1)"):
        with pytest.raises(OracleError, match="ORA-01747"):
            sql(statement, "AAAspiAABAAAZnJAAE")


def test_a_subquery_of_one_table_has_its_rowids(three: Client) -> None:
    rowid = addresses(three)["2"]
    assert three("select rowid from (select id from t) where id = 2") == [(rowid,)]
    found = three("select s.rowid, s.* from (select * from t where id < 3 order by id) s where rowid = :1", rowid)  # fmt: skip
    assert found == [(rowid, "2", "x")]
    for query in ("select distinct v from t", "select v from t group by v", "select 1 from dual"):
        with pytest.raises(OracleError, match=r"ORA-0(0904|1446)"):
            three(f"select rowid from ({query})")
