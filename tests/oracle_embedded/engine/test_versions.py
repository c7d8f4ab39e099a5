"""VERSIONS BETWEEN: every committed version of a row, where it begins and ends, what made it, and in which transaction."""

from __future__ import annotations

import pytest

from oracle_embedded.api import OracleError
from tests.oracle_embedded.engine.conftest import Client, Connect

_SEEN = "versions_startscn, versions_endscn, versions_operation, id, v from t versions between"


@pytest.fixture
def scns(sql: Client) -> list[int]:
    """The SCNs behind an insert of two rows, a change of one, its removal, and its return."""
    sql("create table t (id number(9) primary key, v varchar2(10))")
    found = [sql.scn()]
    for statements in (
        ["insert into t values (1, 'a')", "insert into t values (2, 'b')"],
        ["update t set v = 'x' where id = 1", "update t set v = 'c' where id = 1"],
        ["delete from t where id = 1"],
        ["insert into t values (1, 'd')"],
    ):
        for statement in statements:
            sql(statement)
        sql.session.commit()
        found.append(sql.scn())
    sql("update t set v = 'open' where id = 2")
    return found


def test_each_version_is_shown_once(sql: Client, scns: list[int]) -> None:
    found = sql(f"select {_SEEN} scn :1 and :2 order by id, versions_startscn", scns[0], scns[-1])
    starts = [int(row[0]) for row in found[:4]]
    assert [low < start < high for low, start, high in zip(scns, starts, scns[1:], strict=False)]
    one, two, three, four = map(str, starts)
    assert found == [
        (one, two, "I", "1", "a"),
        (two, three, "U", "1", "c"),
        (three, None, "D", "1", "c"),
        (four, None, "I", "1", "d"),
        (one, None, "I", "2", "b"),
    ]


def test_what_is_older_than_the_lower_end_has_no_start(sql: Client, scns: list[int]) -> None:
    found = sql(f"select {_SEEN} scn :1 and :2 order by id", scns[1], scns[2])
    assert [(row[0] is None, row[1] is None, *row[2:]) for row in found] == [
        (True, False, None, "1", "a"),
        (False, True, "U", "1", "c"),
        (True, True, None, "2", "b"),
    ]
    assert len(sql("select * from t versions between scn minvalue and maxvalue")[0]) == 2
    assert sql.one("select count(*) from t versions between timestamp minvalue and maxvalue") == "5"


def test_a_version_names_its_transaction(sql: Client, connect: Connect, scns: list[int]) -> None:
    xid = sql.one("select versions_xid from t versions between scn minvalue and maxvalue where versions_operation = 'D'")  # fmt: skip
    assert len(bytes.fromhex(xid)) == 8
    assert sql.one("select count(distinct versions_xid) from t versions between scn minvalue and maxvalue") == "4"  # fmt: skip
    assert sql.one("select versions_starttime from t versions between scn minvalue and maxvalue where versions_operation = 'D'") is not None  # fmt: skip


@pytest.mark.parametrize("point", ["scn (select max(id) from t)", "timestamp (select systimestamp from dual)", "scn 1 + (select 1 from dual)"])  # fmt: skip
@pytest.mark.usefixtures("scns")
def test_a_point_in_time_is_no_subquery(sql: Client, point: str) -> None:
    with pytest.raises(OracleError, match="ORA-22818"):
        sql(f"select * from t as of {point}")


@pytest.mark.parametrize(("ends", "code"), [("scn maxvalue and minvalue", 904), ("scn 1 and 2", 8181)])  # fmt: skip
@pytest.mark.usefixtures("scns")
def test_ends_that_cannot_be_are_refused(sql: Client, ends: str, code: int) -> None:
    with pytest.raises(OracleError) as raised:
        sql(f"select {_SEEN} {ends}")
    assert raised.value.code == code
