"""What was committed stays, whatever happens to the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oracle_embedded.api import Logon, OracleError
from oracle_embedded.database import open_database
from tests.oracle_embedded.engine.conftest import Client

ROOT = Path(__file__).parents[3]
CHILD = """
import sys
from pathlib import Path
from oracle_embedded.api import Logon
from oracle_embedded.database import open_database
opened = open_database(Path(sys.argv[1]))
session = opened.engine.open_session(Logon("DEMO"))
other = opened.engine.open_session(Logon("DEMO"))
session.run("create table t (id number primary key, v varchar2(10))")
number = 0
while True:
    other.run("update t set v = 'never' where id = 0")
    for _ in range(5):
        number += 1
        session.run(f"insert into t values ({number}, 'x')")
    session.commit()
    print(number, flush=True)
    if number == 5:
        session.run("insert into t values (0, 'zero')")
        session.commit()
"""


def client(opened: object) -> Client:
    return Client(opened.engine.open_session(Logon("DEMO")))  # type: ignore[attr-defined]


def test_a_restart_goes_on_where_it_stopped(tmp_path: Path) -> None:
    opened = open_database(tmp_path, passwords={"DEMO": "secret"})
    demo = client(opened)
    demo("create table t (id number primary key)")
    demo("create sequence s")
    demo("insert into t values (s.nextval)")
    demo.session.commit()
    scn = demo.scn()
    demo("update t set id = 5")
    demo.session.commit()
    demo("insert into t values (7)")
    opened.close()
    opened.close()
    again = open_database(tmp_path)
    demo = client(again)
    assert again.password("DEMO") == "secret"
    assert demo("select id from t") == [("5",)]
    assert demo("select id from t as of scn :1", scn) == [("1",)]
    assert demo.scn() > scn
    assert int(demo.one("select s.nextval from dual")) > 1
    rowid = demo.one("select rowid from t")
    demo("insert into t values (8)")
    assert demo.one("select rowid from t where id = 8") > rowid
    again.close()


def test_sigkill_loses_no_committed_transaction(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    last = 0
    while last < 100:
        last = int(process.stdout.readline())
    process.kill()
    last = max([last, *(int(line) for line in process.stdout.read().split())])
    process.wait()
    opened = open_database(tmp_path)
    demo = client(opened)
    ((count, most),) = demo("select count(*), max(id) from t")
    assert int(most) >= last
    assert int(most) % 5 == 0
    assert int(count) == int(most) + 1
    assert demo("select v from t where id = 0") == [("zero",)]
    assert opened.engine.open_transactions() == []
    opened.close()


def test_a_temporary_database_leaves_no_folder() -> None:
    opened = open_database()
    folder = opened.engine.folder
    demo = client(opened)
    assert folder.exists()
    opened.close()
    assert not folder.exists()
    with pytest.raises(OracleError, match="ORA-01012"):
        demo("select 1 from dual")


def test_a_failed_writing_block_takes_only_itself_back(tmp_path: Path) -> None:
    opened = open_database(tmp_path)
    demo = client(opened)
    demo("create table t (id number)")
    demo("insert into t values (1)")
    with pytest.raises(RuntimeError), opened.engine.writing():
        raise RuntimeError("on purpose")
    demo.session.commit()
    assert demo("select id from t") == [("1",)]
    opened.close()
