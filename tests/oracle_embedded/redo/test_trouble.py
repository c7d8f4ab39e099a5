"""What LogMiner says when logs change, go away or are not there yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import oracledb
import pytest

from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.driver import Live, Miner, live, operations, run

INSERTS = "operation_code = 1 and seg_owner = 'DEMO'"
LOGS = "select sequence#, status, first_change#, next_change# from v$log where sequence# > 0 order by 1"
GROUPS = 3


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Live]:
    """Sequences 1 and 2 archived, 3 current, an insert in each."""
    with live(tmp_path, Wart.REUSED_LOGS, groups=GROUPS) as running:
        owner = running.connect()
        run(owner, "create table t (id number primary key)")
        for key in (1, 2, 3):
            run(owner, f"insert into t values ({key})")
            owner.commit()
            if key < 3:
                running.admin("alter system switch logfile")
        yield running


def archived(miner: Miner, sequence: int) -> str:
    (row,) = miner.query("select name from v$archived_log where sequence# = :s", s=sequence)
    return str(row["NAME"])


def refused(call: Callable[[], object]) -> list[str]:
    """The ORA codes of the error, outermost first, without the line of the block (ORA-06512)."""
    with pytest.raises(oracledb.DatabaseError) as caught:
        call()
    (error,) = caught.value.args
    lines = error.message.splitlines()
    codes = [line.partition(":")[0] for line in lines if line.startswith("ORA-")]
    return [code for code in codes if code != "ORA-06512"]


# --- online logs -----------------------------------------------------------------------------------------------------


def test_an_online_log_that_was_reused_before_the_start_has_another_header(three: Live) -> None:
    miner = three.miner()
    miner.add_all()
    for _ in range(GROUPS):
        three.admin("alter system switch logfile")
    assert refused(miner.start) == ["ORA-01368"]
    three.opened.redo.set_wart(Wart.REUSED_LOGS, shown=False)
    assert refused(miner.start) == ["ORA-00310"]


def test_an_online_log_that_was_reused_after_the_start_fails_the_fetch(three: Live) -> None:
    miner = three.miner()
    miner.add_all()
    miner.start()
    for _ in range(GROUPS):
        three.admin("alter system switch logfile")
    assert refused(miner.contents) == ["ORA-00310"]


def test_a_new_sequence_may_be_missing_for_a_moment_of_the_switch(three: Live) -> None:
    miner = three.miner()
    three.fault("arm('switch_in_progress')")
    amid = miner.query(LOGS)
    assert [(row["SEQUENCE#"], row["STATUS"]) for row in amid] == [(1, "ACTIVE"), (2, "ACTIVE")]
    after = miner.query(LOGS)
    assert [row["SEQUENCE#"] for row in after] == [1, 2, 3]
    assert after[-1]["STATUS"] == "CURRENT"
    assert amid[-1]["NEXT_CHANGE#"] == after[-1]["FIRST_CHANGE#"]


def test_a_pass_may_end_early_without_an_error(three: Live) -> None:
    miner = three.miner()
    three.fault("arm('short_read')")
    assert operations(miner.mine(where=INSERTS)) == ["INSERT"] * 2
    assert operations(miner.mine(where=INSERTS)) == ["INSERT"] * 3


def test_an_ended_log_waits_for_the_archiver(three: Live) -> None:
    three.fault("hold_archiver")
    three.admin("alter system switch logfile")
    miner = three.miner()
    (ended,) = [row for row in miner.query("select * from v$log") if row["SEQUENCE#"] == 3]
    assert (ended["ARCHIVED"], ended["STATUS"]) == ("NO", "ACTIVE")
    assert miner.query("select 1 from v$archived_log where sequence# = 3") == []
    three.fault("hold_archiver(0)")
    assert archived(miner, 3)


# --- archived logs ---------------------------------------------------------------------------------------------------


def test_a_removed_file_keeps_its_entry_and_cannot_be_opened(three: Live) -> None:
    miner = three.miner()
    file = archived(miner, 1)
    three.fault("remove_archived_log(1)")
    (entry,) = miner.query("select name, deleted, status from v$archived_log where sequence# = 1")
    assert entry == {"NAME": file, "DELETED": "NO", "STATUS": "A"}
    assert refused(lambda: miner.add(file)) == ["ORA-01284"]


def test_a_file_that_is_removed_while_it_is_mined_fails_the_fetch(three: Live) -> None:
    for _ in range(GROUPS):  # so that no online file holds it
        three.admin("alter system switch logfile")
    miner = three.miner()
    miner.add_all()
    miner.start()
    three.fault("remove_archived_log(1)")
    assert refused(miner.contents) == ["ORA-00308"]


def test_a_deleted_log_is_an_entry_without_a_name(three: Live) -> None:
    miner = three.miner()
    three.fault("delete_archived_log(1)")
    (entry,) = miner.query("select name, deleted, status from v$archived_log where sequence# = 1")
    assert entry == {"NAME": None, "DELETED": "YES", "STATUS": "D"}


def test_a_failed_start_leaves_the_file_list_behind(three: Live) -> None:
    miner = three.miner()
    miner.add(archived(miner, 2))
    assert refused(lambda: miner.start(low=1)) == ["ORA-01291"]
    assert refused(lambda: miner.add(archived(miner, 2))) == ["ORA-01289"]
    assert len(miner.query("select * from v$logmnr_logs")) == 1


def test_a_hole_in_the_redo_is_a_row(three: Live) -> None:
    miner = three.miner()
    three.fault("arm('missing_scn')")
    (hole,) = [row for row in miner.mine() if row["OPERATION_CODE"] == 34]
    assert (hole["OPERATION"], hole["SQL_REDO"]) == ("MISSING_SCN", None)
    assert miner.mine(where="operation_code = 34") == []


# --- pluggable databases ---------------------------------------------------------------------------------------------


PDBS = "select name, open_mode from v$pdbs order by con_id"


def test_a_closed_pluggable_database_stops_all_mining(three: Live) -> None:
    miner = three.miner()
    miner.add_all()
    three.fault("close_container('other')")
    assert refused(miner.start) == ["ORA-16331"]
    assert [(row["NAME"], row["OPEN_MODE"]) for row in miner.query(PDBS)] == [
        ("ORCLPDB1", "READ WRITE"),
        ("OTHER", "MOUNTED"),
    ]
    three.fault("open_containers")
    miner.start()
    assert operations(miner.contents(INSERTS)) == ["INSERT"] * 3


def test_the_root_shows_other_containers_to_users_with_container_data_alone(three: Live) -> None:
    admin = three.connect("REDOLAKE_ADMIN")
    run(
        admin,
        "alter session set container = cdb$root",
        'create user c##plain identified by "p"',
        "grant create session, set container to c##plain",
        "grant select on sys.v_$pdbs to c##plain",
    )
    with oracledb.connect(user="C##PLAIN", password="p", dsn=three.server.dsn) as plain:
        miner = Miner(plain)
        assert [row["NAME"] for row in miner.query(PDBS)] == ["ORCLPDB1"], "its own"
        run(plain, "alter session set container = cdb$root")
        assert miner.query(PDBS) == []
        run(admin, "alter user c##plain set container_data = all container = current")
        assert [row["NAME"] for row in miner.query(PDBS)] == ["ORCLPDB1"]


def test_a_standby_says_so(three: Live) -> None:
    three.fault("show_role('PHYSICAL STANDBY', 'READ ONLY WITH APPLY')")
    (row,) = three.miner().query("select database_role, open_mode from v$database")
    assert tuple(row.values()) == ("PHYSICAL STANDBY", "READ ONLY WITH APPLY")


def test_a_range_is_enough_inside_a_pluggable_database(three: Live) -> None:
    root, inside = three.miner(), three.miner(container="orclpdb1")
    assert refused(lambda: inside.add(archived(root, 1))) == ["ORA-65040"]
    (first,) = root.query("select first_change# as scn from v$archived_log where sequence# = 1")
    inside.start(low=int(first["SCN"]), high=10**12)
    rows = inside.contents(INSERTS)
    assert operations(rows) == ["INSERT"] * 3
    assert {(row["CON_ID"], row["SRC_CON_ID"], row["SRC_CON_NAME"]) for row in rows} == {
        (3, 3, "ORCLPDB1")
    }
    assert len(inside.query("select * from v$logmnr_logs")) == 3
    assert {row["CON_ID"] for row in root.mine(where=INSERTS)} == {1}
    (second,) = root.query("select first_change# as scn from v$archived_log where sequence# = 2")
    inside.start(low=int(second["SCN"]))
    assert operations(inside.contents(INSERTS)) == ["INSERT"] * 2


def test_a_range_before_the_oldest_redo_misses_a_log(three: Live) -> None:
    inside = three.miner(container="orclpdb1")
    assert refused(lambda: inside.start(low=1)) == ["ORA-01291"]
    for _ in range(GROUPS):
        three.admin("alter system switch logfile")
    (first,) = inside.query("select first_change# as scn from v$archived_log where sequence# = 1")
    three.fault("delete_archived_log(1)")
    assert refused(lambda: inside.start(low=int(first["SCN"]))) == ["ORA-01291"]


def test_no_dictionary_of_the_redo_can_be_named_inside_a_pluggable_database(three: Live) -> None:
    inside = three.miner(container="orclpdb1")
    (first,) = inside.query("select first_change# as scn from v$archived_log where sequence# = 1")
    assert refused(lambda: inside.start(low=int(first["SCN"]), options=32 + 8)) == ["ORA-01371"]


def test_a_file_that_is_gone_is_an_error_of_recursive_sql_there(three: Live) -> None:
    for _ in range(GROUPS):
        three.admin("alter system switch logfile")
    inside = three.miner(container="orclpdb1")
    (first,) = inside.query("select first_change# as scn from v$archived_log where sequence# = 1")
    three.fault("remove_archived_log(1)")
    codes = refused(lambda: inside.start(low=int(first["SCN"])))
    assert codes == ["ORA-00604", "ORA-01284", "ORA-00308", "ORA-27037"]
