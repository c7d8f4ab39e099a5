"""DBMS_LOGMNR: sessions, files, ranges, and the errors for each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from oracle_embedded.api import OracleError, OraType, TableVersion, Value
from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.conftest import FakeSession, World, column, num, table

ROW: dict[str, Value] = {"ID": num(1), "NAME": b"a", "AGE": None}
ADD, START = "DBMS_LOGMNR.ADD_LOGFILE", "DBMS_LOGMNR.START_LOGMNR"


@pytest.fixture
def logs(world: World, people: TableVersion) -> World:
    """Archived sequences 1 to 4, one insert each, and the current 5."""
    world.supplemental("")
    for key in range(1, 5):
        tx = world.begin()
        world.insert(tx, people, {**ROW, "ID": num(key)})
        world.commit(tx)
        world.redo.switch_log()
    return world


def name(world: World, sequence: int) -> str:
    return next(log["NAME"] for log in world.view("V$ARCHIVED_LOG") if log["SEQUENCE#"] == sequence)


def first_change(world: World, sequence: int) -> int:
    return next(
        log["FIRST_CHANGE#"] for log in world.view("V$ARCHIVED_LOG") if log["SEQUENCE#"] == sequence
    )


def add(world: World, *sequences: int) -> None:
    for sequence in sequences:
        world.call(ADD, logfilename=name(world, sequence), options=3)


def refusal(call: Callable[[], object]) -> int:
    with pytest.raises(OracleError) as caught:
        call()
    return caught.value.code


def test_contents_need_a_started_session(world: World) -> None:
    assert refusal(lambda: world.view("V$LOGMNR_CONTENTS")) == 1306
    assert refusal(lambda: world.call(START)) == 1292
    assert refusal(lambda: world.call("DBMS_LOGMNR.END_LOGMNR")) == 1307


def test_end_forgets_files_and_range(logs: World) -> None:
    add(logs, 1)
    logs.start("DICT_FROM_ONLINE_CATALOG")
    assert logs.view("V$LOGMNR_CONTENTS")
    logs.call("DBMS_LOGMNR.END_LOGMNR")
    assert logs.view("V$LOGMNR_LOGS") == logs.view("V$LOGMNR_PARAMETERS") == []
    assert refusal(lambda: logs.view("V$LOGMNR_CONTENTS")) == 1306


def test_files_are_added_once_and_removed(logs: World) -> None:
    add(logs, 1, 2)
    assert refusal(lambda: add(logs, 2)) == 1289
    assert refusal(lambda: logs.call(ADD, logfilename="/nowhere.arc")) == 1284
    logs.call("DBMS_LOGMNR.REMOVE_LOGFILE", logfilename=name(logs, 1))
    assert [row["THREAD_SQN"] for row in logs.view("V$LOGMNR_LOGS")] == [2]
    assert (
        refusal(lambda: logs.call("DBMS_LOGMNR.REMOVE_LOGFILE", logfilename=name(logs, 1))) == 1290
    )
    logs.call(ADD, logfilename=name(logs, 3), options=logs.constant("NEW"))
    assert [row["THREAD_SQN"] for row in logs.view("V$LOGMNR_LOGS")] == [3]


def test_an_archived_log_and_its_online_file_are_duplicates(logs: World) -> None:
    online = next(log for log in logs.view("V$LOG") if log["SEQUENCE#"] == 4)
    member = next(f for f in logs.view("V$LOGFILE") if f["GROUP#"] == online["GROUP#"])
    add(logs, 4)
    assert refusal(lambda: logs.call(ADD, logfilename=member["MEMBER"])) == 1289


def test_only_added_logs_and_the_range_are_read(logs: World) -> None:
    add(logs, 2, 3)
    low = first_change(logs, 3)
    logs.start("DICT_FROM_ONLINE_CATALOG", startscn=str(low))
    assert {row["RBASQN"] for row in logs.view("V$LOGMNR_CONTENTS")} == {3}
    logs.start("DICT_FROM_ONLINE_CATALOG", startscn=low - 2, endscn=low)
    found = [row["SCN"] for row in logs.view("V$LOGMNR_CONTENTS")]
    assert found
    assert all(low - 2 <= scn <= low for scn in found)
    (parameters,) = logs.view("V$LOGMNR_PARAMETERS")
    assert (parameters["START_SCN"], parameters["END_SCN"]) == (low - 2, low)


def start_between(world: World, low: int, high: int) -> Callable[[], None]:
    return lambda: world.start("DICT_FROM_ONLINE_CATALOG", startscn=low, endscn=high)


def test_ranges_outside_the_added_logs_are_missing_logs(logs: World) -> None:
    add(logs, 2, 3)
    first, end = first_change(logs, 2), first_change(logs, 4)
    start_between(logs, first, end)()
    assert refusal(start_between(logs, first - 1, end)) == 1291
    assert refusal(start_between(logs, first, end + 1)) == 1291
    assert refusal(start_between(logs, end + 1, 0)) == 1291
    assert refusal(start_between(logs, end, first)) == 1281


def test_a_gap_in_the_sequence_is_a_missing_log(logs: World) -> None:
    add(logs, 1, 3)
    assert refusal(lambda: logs.start("DICT_FROM_ONLINE_CATALOG")) == 1291
    start_between(logs, first_change(logs, 1), first_change(logs, 2) - 1)()
    start_between(logs, first_change(logs, 3), 0)()


def test_an_end_beyond_the_last_redo_needs_the_current_log(logs: World) -> None:
    beyond = logs.db.scn + 1000
    add(logs, 4)
    assert refusal(start_between(logs, first_change(logs, 4), beyond)) == 1291
    logs.call("DBMS_LOGMNR.END_LOGMNR")
    logs.add_all_logs()
    start_between(logs, first_change(logs, 4), beyond)()
    assert logs.view("V$LOGMNR_CONTENTS")


def test_times_choose_logs_and_rows(world: World, people: TableVersion) -> None:
    world.supplemental("")
    tx = world.begin()
    for _ in range(3):
        world.insert(tx, people, ROW)
        world.now += 60
    when = datetime.fromtimestamp(world.now - 120, UTC).replace(tzinfo=None)
    rows = world.mine(starttime=when, endtime=when)
    assert len(rows) == 1
    assert refusal(lambda: world.mine(starttime=when, endtime=datetime(2000, 1, 1))) == 1282


def test_a_log_deleted_before_the_start_cannot_be_opened(logs: World) -> None:
    add(logs, 1, 2)
    logs.redo.delete_archived_log(1)
    assert refusal(lambda: logs.start("DICT_FROM_ONLINE_CATALOG")) == 1284


def test_a_log_deleted_while_it_is_read_fails_the_fetch(logs: World) -> None:
    add(logs, 1, 2)
    logs.start("DICT_FROM_ONLINE_CATALOG")
    view = next(t for t in logs.redo.virtual_tables if t.name == "V$LOGMNR_CONTENTS")
    rows = view.rows(logs.session, (), None)
    next(rows)
    logs.redo.delete_archived_log(2)
    assert refusal(lambda: list(rows)) == 308


def test_a_deleted_log_fails_a_query_that_wants_none_of_its_rows(logs: World) -> None:
    add(logs, 1, 2)
    logs.start("DICT_FROM_ONLINE_CATALOG")
    logs.redo.delete_archived_log(1)
    late = ("SCN", ">", num(first_change(logs, 2)))
    assert refusal(lambda: logs.view("V$LOGMNR_CONTENTS", late)) == 308
    logs.call("DBMS_LOGMNR.END_LOGMNR")
    add(logs, 2)
    logs.start("DICT_FROM_ONLINE_CATALOG")
    assert logs.view("V$LOGMNR_CONTENTS", late)


def test_an_online_log_that_was_written_over_fails_start_and_fetch(
    logs: World, people: TableVersion
) -> None:
    logs.insert(logs.begin(), people, ROW)
    logs.add_all_logs()
    logs.start("DICT_FROM_ONLINE_CATALOG")
    for _ in range(3):
        logs.redo.switch_log()
    assert refusal(lambda: logs.view("V$LOGMNR_CONTENTS")) == 310
    assert refusal(lambda: logs.start("DICT_FROM_ONLINE_CATALOG")) == 310


def test_an_online_log_is_still_read_after_one_switch(logs: World, people: TableVersion) -> None:
    logs.insert(logs.begin(), people, ROW)
    logs.add_all_logs()
    logs.start("DICT_FROM_ONLINE_CATALOG")
    logs.redo.switch_log()
    assert logs.view("V$LOGMNR_CONTENTS")[-1]["OPERATION"] == "INSERT"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        pytest.param(1024, 44609, id="continuous-mine"),
        pytest.param(1, 1283, id="unknown-bit"),
        pytest.param(16 + 32, 1283, id="two-dictionaries"),
        pytest.param(16 + 8, 1283, id="tracking-with-online-catalog"),
        pytest.param(32, 1371, id="no-dictionary-in-the-logs"),
        pytest.param("x", 6502, id="not-a-number"),
    ],
)
def test_options_that_cannot_be_are_refused(logs: World, options: object, code: int) -> None:
    add(logs, 1)
    assert refusal(lambda: logs.call(START, options=options)) == code


def test_a_dictionary_in_the_redo_is_built_and_found(logs: World) -> None:
    build = "DBMS_LOGMNR_D.BUILD"
    logs.call(build, options=logs.constant("STORE_IN_REDO_LOGS"))
    logs.redo.switch_log()
    last = logs.view("V$ARCHIVED_LOG")[-1]
    assert (last["DICTIONARY_BEGIN"], last["DICTIONARY_END"]) == ("YES", "YES")
    add(logs, 5)
    logs.start("DICT_FROM_REDO_LOGS", "DDL_DICT_TRACKING")
    assert refusal(lambda: logs.call(build)) == 1308


def test_building_a_dictionary_needs_supplemental_logging_and_archiving(
    world: World, tmp_path: Path
) -> None:
    assert refusal(lambda: world.call("DBMS_LOGMNR_D.BUILD", options=2)) == 1354
    other = World(tmp_path / "no.db", archivelog=False)
    assert refusal(lambda: other.call("DBMS_LOGMNR_D.BUILD", options=2)) == 1325


def test_sessions_do_not_see_each_others_files(logs: World) -> None:
    add(logs, 1)
    other = FakeSession()
    assert logs.view("V$LOGMNR_LOGS", session=other) == []
    assert refusal(lambda: logs.call(START, session=other)) == 1292


def test_mining_needs_the_privilege_and_the_root(logs: World) -> None:
    poor = FakeSession()
    poor.privileges = {"CREATE SESSION"}
    file = name(logs, 1)
    assert refusal(lambda: logs.call(ADD, logfilename=file, session=poor)) == 1031
    assert refusal(lambda: logs.view("V$LOGMNR_CONTENTS", session=poor)) == 1031
    inside = FakeSession(CONTAINER="ORCLPDB1")
    assert refusal(lambda: logs.call(ADD, logfilename=file, session=inside)) == 65040


@pytest.mark.parametrize(
    ("constraints", "found"),
    [
        pytest.param(
            [("SCN", ">", num(1003)), ("SCN", "<=", num(1007))], [1005, 1006, 1007], id="scn"
        ),
        pytest.param([("SCN", "=", num("1002.5"))], [], id="between-scns"),
        pytest.param([("OPERATION_CODE", "=", num(1))], [1002, 1006, 1010, 1014], id="code"),
        pytest.param(
            [("OPERATION_CODE", "=", num(1)), ("TABLE_NAME", "=", b"T")],
            [1002, 1006, 1010, 1014],
            id="table",
        ),
        pytest.param([("TABLE_NAME", "=", b"U")], [], id="other-table"),
        pytest.param([("SEG_OWNER", "=", None)], [], id="null"),
    ],
)
def test_conditions_skip_rows(
    logs: World, constraints: list[tuple[str, str, Value]], found: list[int]
) -> None:
    logs.add_all_logs()
    logs.start("DICT_FROM_ONLINE_CATALOG")
    rows = logs.view("V$LOGMNR_CONTENTS", *constraints, columns=["SCN"])
    assert [row["SCN"] for row in rows] == found


def test_columns_that_are_not_wanted_are_left_out(logs: World) -> None:
    logs.add_all_logs()
    logs.start("DICT_FROM_ONLINE_CATALOG")
    view = next(t for t in logs.redo.virtual_tables if t.name == "GV$LOGMNR_CONTENTS")
    row = next(view.rows(logs.session, (), frozenset({"SCN"})))
    assert [value for value in row if value is not None] == [num(1), num(1001)]


# --- dictionary -------------------------------------------------------------------------------------------------------

CHANGED = 'insert into "APP"."T"("COL 1","COL 2","COL 3") values (HEXTORAW(\'c102\'),HEXTORAW(\'61\'),NULL);'
DROPPED = CHANGED.replace('"APP"."T"', '"UNKNOWN"."OBJ# 71000"')


def online(tmp_path: Path, people: TableVersion) -> World:
    world = World(tmp_path / "online.db", warts=frozenset({Wart.UNNAMED_COLUMNS}))
    world.supplemental("")
    world.db.tables[71000] = people
    world.insert(world.begin(), people, ROW)
    return world


def insert_row(world: World) -> tuple[str, int, str | None]:
    row = next(r for r in world.mine("NO_ROWID_IN_STMT") if r["OPERATION"] == "INSERT")
    return row["SQL_REDO"], row["STATUS"], row["INFO"]


def test_the_online_catalog_names_rows_only_while_columns_stay(
    tmp_path: Path, people: TableVersion
) -> None:
    world = online(tmp_path, people)
    known = 'insert into "APP"."T"("ID","NAME","AGE") values (\'1\',\'a\',NULL);'
    assert insert_row(world) == (known, 0, None)
    more = (*people.columns, column(4, "EXTRA", OraType.NUMBER))
    world.db.tables[71000] = table(*more, version=2)
    assert insert_row(world) == (CHANGED, 2, "Dictionary Mismatch")
    del world.db.tables[71000]
    assert insert_row(world) == (DROPPED, 2, "Dictionary Mismatch")


def test_by_default_rows_keep_the_names_of_their_time(logs: World) -> None:
    logs.db.tables.clear()
    assert insert_row(logs)[1:] == (0, None)


def test_without_a_dictionary_nothing_has_a_name(logs: World) -> None:
    add(logs, 1)
    logs.start()
    row = logs.view("V$LOGMNR_CONTENTS")[1]
    assert (row["SEG_OWNER"], row["TABLE_NAME"], row["STATUS"]) == ("UNKNOWN", "OBJ# 71000", 2)
    assert '"COL 1"' in row["SQL_REDO"]
