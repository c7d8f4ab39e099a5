"""What LogMiner names rows by: the dictionary in the redo, a file, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import oracledb
import pytest

from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.driver import NO_ROWID, Live, Miner, live, run
from tests.oracle_embedded.redo.test_unnamed_columns import CHANGES, object_id

REDO_LOGS, TRACKING = 32, 8
FILE = "/dict/one.ora"
BUILD_FILE = "begin sys.dbms_logmnr_d.build('one.ora', '/dict', options => 1); end;"
BUILD_REDO = "begin sys.dbms_logmnr_d.build(options => 2); end;"
ADD = "alter table t add (extra number)"
NAMED = """insert into "DEMO"."T"("ID","NAME") values ('{}','a');"""


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path, Wart.UNNAMED_COLUMNS) as running:
        run(running.connect(), "create table t (id number primary key, name varchar2(20))")
        yield running


def insert(running: Live, key: int) -> None:
    connection = running.connect()
    run(connection, f"insert into t (id, name) values ({key}, 'a')")
    connection.commit()


def switch(running: Live) -> None:
    running.admin("alter system switch logfile")


def start(miner: Miner, options: int, *, low: int = 0, file: str | None = None) -> None:
    names: dict[str, int | str] = {"startscn": low, "endscn": 0, "options": options + NO_ROWID}
    if file:
        names["dictfilename"] = file
    miner.connection.cursor().callproc("dbms_logmnr.start_logmnr", keyword_parameters=names)


def shown(running: Live, options: int, *, file: str | None = None) -> list[tuple[str, int]]:
    """SQL_REDO and STATUS of T's rows in all logs."""
    miner = running.miner()
    miner.add_all()
    start(miner, options, file=file)
    rows = miner.contents(CHANGES.format(object_id(running)))
    return [(row["SQL_REDO"], row["STATUS"]) for row in rows]


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(oracledb.DatabaseError) as caught:
        call()
    return str(caught.value)


def test_a_dictionary_in_the_redo_names_rows_as_of_their_time_and_follows_ddl(odd: Live) -> None:
    odd.admin(BUILD_REDO)
    insert(odd, 1)
    run(odd.connect(), ADD, "alter table t rename column name to title")
    run(odd.connect(), "begin insert into t values (2, 'b', 3); commit; end;")
    assert shown(odd, REDO_LOGS + TRACKING) == [
        (NAMED.format(1), 0),
        ("""insert into "DEMO"."T"("ID","TITLE","EXTRA") values ('2','b','3');""", 0),
    ]
    [_, (later, status)] = shown(odd, REDO_LOGS)
    assert status == 2, "without tracking it knows its own time only"
    assert '"COL 3"' in later


def test_rows_from_before_the_dictionary_have_the_version_that_it_knows_or_none(odd: Live) -> None:
    insert(odd, 1)
    run(odd.connect(), ADD)
    insert(odd, 2)
    odd.admin(BUILD_REDO)
    assert [status for _, status in shown(odd, REDO_LOGS + TRACKING)] == [2, 0]


def test_tables_that_are_younger_than_the_dictionary(odd: Live) -> None:
    odd.admin(BUILD_REDO, BUILD_FILE)
    run(odd.connect(), "drop table t purge", "create table t (id number, name varchar2(20))")
    insert(odd, 1)
    assert shown(odd, REDO_LOGS + TRACKING) == [(NAMED.format(1), 0)]
    number = object_id(odd)
    for options, file in ((REDO_LOGS, None), (0, FILE)):
        [(statement, status)] = shown(odd, options, file=file)
        assert statement.startswith(f'insert into "UNKNOWN"."OBJ# {number}"("COL 1","COL 2")')
        assert status == 2


def test_a_dictionary_file_names_rows_as_of_when_it_was_written(odd: Live) -> None:
    insert(odd, 1)
    odd.admin(BUILD_FILE)
    run(odd.connect(), "alter table t rename to u", "create table t (id number primary key)")
    connection = odd.connect()
    run(connection, "insert into u values (2, 'a')")
    connection.commit()
    miner = odd.miner()
    miner.add_all()
    start(miner, 0, file=FILE)
    rows = miner.contents(CHANGES.format(object_id(odd, "U")))
    assert [(row["TABLE_NAME"], row["STATUS"]) for row in rows] == [("T", 0), ("T", 0)]
    assert "ORA-01336" in refusal(lambda: start(miner, 0, file="/dict/none.ora"))


def test_all_logs_from_the_dictionary_on_are_needed(odd: Live) -> None:
    """LogMiner reads them to follow DDL, whatever range is asked for."""
    odd.admin(BUILD_REDO)
    for key in range(3):
        insert(odd, key)
        switch(odd)
    miner = odd.miner()
    logs = miner.query(
        "select name, first_change#, dictionary_begin, dictionary_end from v$archived_log order by sequence#"
    )
    assert [(log["DICTIONARY_BEGIN"], log["DICTIONARY_END"]) for log in logs] == [
        ("YES", "YES"), ("NO", "NO"), ("NO", "NO"),
    ]  # fmt: skip
    low = logs[2]["FIRST_CHANGE#"]
    miner.add(logs[2]["NAME"])
    assert "ORA-01371" in refusal(lambda: start(miner, REDO_LOGS + TRACKING, low=low))
    miner.add(logs[0]["NAME"])
    assert "ORA-01291" in refusal(lambda: start(miner, REDO_LOGS + TRACKING, low=low))
    start(miner, REDO_LOGS, low=low)
    miner.add(logs[1]["NAME"])
    start(miner, REDO_LOGS + TRACKING, low=low)
    assert len(miner.contents(CHANGES.format(object_id(odd)))) == 1
