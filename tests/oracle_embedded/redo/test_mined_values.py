"""DBMS_LOGMNR.MINE_VALUE and COLUMN_PRESENT over rows of V$LOGMNR_CONTENTS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import oracledb

from oracle_embedded.database import CAPTURE, OWNER, open_database
from oracle_embedded.server import EmbeddedServer

_QUERY = (
    "select operation, dbms_logmnr.mine_value(redo_value, 'DEMO.T.{0}'), dbms_logmnr.mine_value(undo_value, 'DEMO.T.{0}'),"
    " dbms_logmnr.column_present(redo_value, 'DEMO.T.{0}') from v$logmnr_contents where seg_name = 'T' and operation_code in (1, 2, 3)"
)


def test_values_are_those_of_the_change(tmp_path: Path) -> None:
    opened = open_database(tmp_path / "ora")
    with EmbeddedServer(opened.engine) as server:
        demo = oracledb.connect(user=OWNER, password=opened.password(OWNER), dsn=server.dsn)
        sql = demo.cursor()
        sql.execute("create table t (id number(9) primary key, v varchar2(9), d date)")
        sql.execute("insert into t values (1, 'a', date '2026-01-02')")
        sql.execute("update t set v = null where id = 1")
        sql.execute("delete from t where id = 1")
        demo.commit()
        miner = oracledb.connect(user=CAPTURE, password=opened.password(CAPTURE), dsn=server.dsn)
        cursor = miner.cursor()
        cursor.execute("alter session set container = cdb$root")
        cursor.execute("alter session set nls_date_format = 'YYYY-MM-DD'")
        cursor.execute(
            "select f.member from v$logfile f join v$log l on f.group# = l.group# where l.status = 'CURRENT'"
        )
        (member,) = cursor.fetchone() or ("",)
        cursor.callproc("dbms_logmnr.add_logfile", [member, 1])
        cursor.execute(
            "begin dbms_logmnr.start_logmnr(options => dbms_logmnr.dict_from_online_catalog); end;"
        )

        def values(column: str) -> list[tuple[Any, ...]]:
            cursor.execute(_QUERY.format(column))
            return cursor.fetchall()

        assert values("V") == [
            ("INSERT", "a", None, 1),
            ("UPDATE", None, "a", 1),
            ("DELETE", None, None, 0),
        ]
        assert [row[1:] for row in values("D")] == [
            ("2026-01-02", None, 1),
            (None, None, 0),
            (None, "2026-01-02", 0),
        ]
        assert values("NOWHERE") == [(name, None, None, 0) for name in ("INSERT", "UPDATE", "DELETE")]  # fmt: skip
    opened.close()
