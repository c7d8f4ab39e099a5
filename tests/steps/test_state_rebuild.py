"""A metadata store that was lost is made anew from landing and the lake, equal to the lost one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import (
    ConfigError,
    LandingDamagedError,
    StoreBehindError,
)
from cdc_core.state.images import NOT_RECOVERABLE, Image
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import OWNER
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))",
    "CREATE TABLE OTHER (ID NUMBER)",
    *(f"INSERT INTO ONE VALUES ({number}, 'first')" for number in range(250)),
    "INSERT INTO TWO VALUES (1, 'first')",
)
source = capturing(
    "ONE",
    "TWO",
    capture={"close_at": "online"},
    snapshot={"chunk_rows": 100},
    runs=False,
)


def image(source: Source) -> Image:
    return source.pipeline.store.images.get()


def comparable(found: Image) -> dict[str, list[dict[str, Any]]]:
    """Without what cannot be recovered, and windows that were planned only; moments to the microsecond."""
    rows = {name: list(rows) for name, rows in found.items()}
    rows["windows"] = [row for row in rows["windows"] if row["state"] != "planned"]
    return {
        name: [
            {
                column: round(value, 6) if isinstance(value, float) else value
                for column, value in row.items()
                if column not in NOT_RECOVERABLE.get(name, ())
            }
            for row in some
        ]
        for name, some in rows.items()
    }


def lose_store(source: Source) -> None:
    source.close()
    for file in source.path.glob("state.db*"):
        file.unlink()


def rebuilt(source: Source) -> Mapping[str, Any]:
    """Lose the store, make it anew, and hold both against each other."""
    before = comparable(image(source))
    lose_store(source)
    report = source.pipeline.rebuild_state()
    assert report.is_written
    after = comparable(image(source))
    for name, rows in before.items():
        assert after[name] == rows, name
    return after


def change(source: Source, *statements: str) -> None:
    source.oracle.run(*statements)
    source.windows()


def test_a_store_made_anew_equals_the_lost_one_and_goes_on(source: Source) -> None:
    source.begin()
    change(source, "INSERT INTO ONE VALUES (1000, 'second')")
    change(source, "UPDATE TWO SET NOTE = 'second'", "DELETE FROM ONE WHERE ID = 7")
    change(source, "INSERT INTO OTHER VALUES (1)")
    rebuilt(source)
    change(source, "UPDATE ONE SET NOTE = 'third' WHERE ID < 10")
    source.check_current("ONE", "TWO")
    rebuilt(source)


def test_an_open_transaction_and_its_rows_are_known_again(source: Source) -> None:
    source.begin()
    with source.oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO ONE VALUES (2000, 'open')")
        source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        change(source, "INSERT INTO TWO VALUES (2, 'second')")
        assert rebuilt(source)["open_transactions"]
        connection.commit()
    change(source, "INSERT INTO TWO VALUES (3, 'third')")
    source.check_current("ONE", "TWO")


@pytest.mark.parametrize("stop_after", [1, 2, 3, 4, 5, 6])
def test_a_snapshot_that_was_half_done_goes_on(source: Source, stop_after: int) -> None:
    keys = source.pipeline.start_snapshot()
    steps = [step for key in keys for step in (("read", key), ("apply", key))]
    for what, key in steps[:stop_after]:
        step = source.pipeline.snapshot_chunk if what == "read" else source.pipeline.apply_chunk
        step(key)
    rebuilt(source)
    source.run()
    change(source, "INSERT INTO ONE VALUES (3000, 'later')")
    source.check_current("ONE", "TWO")


def test_a_snapshot_that_ended_before_it_deleted_what_is_gone_is_finished(source: Source) -> None:
    """All its chunks are in the lake; rows that went without redo are still there, and no manifest says so."""
    source.begin()
    change(source, "TRUNCATE TABLE ONE")
    source.oracle.run("INSERT INTO ONE VALUES (3, 'after')")
    source.pipeline.resnapshot_tables([table_id("ONE")])

    def end(call: str, _table: object) -> None:
        if call == "delete_missing_keys":
            raise KeyboardInterrupt

    source.lake.before = end
    with pytest.raises(KeyboardInterrupt):
        source.run()
    source.lake.before = lambda _call, _table: None
    assert len(source.lake.tables[table_id("ONE")].rows) == 250
    rebuilt(source)
    source.run()
    source.check_current("ONE", "TWO")
    assert len(source.lake.tables[table_id("ONE")].rows) == 1


def test_a_window_that_landed_and_was_not_applied_is_not_taken_for_applied(source: Source) -> None:
    """It is the first that changes rows: the tables beside do not say that they lack it."""
    source.begin()
    source.oracle.run("UPDATE TWO SET NOTE = 'second'")
    source.capture()
    states = [row["state"] for row in image(source)["windows"]]
    assert states[-1] == "captured"
    lose_store(source)
    source.pipeline.rebuild_state()
    assert [row["state"] for row in image(source)["windows"]] == states
    source.run()
    source.check_current("ONE", "TWO")


def test_ad_hoc_snapshots_and_the_fates_of_tables_are_known_again(source: Source) -> None:
    source.begin()
    change(source, "INSERT INTO ONE VALUES (1000, 'second')")
    list(source.pipeline.run_snapshot([table_id("ONE")], condition="ID < 50"))
    source.pipeline.start_snapshot([table_id("ONE")])
    source.pipeline.pause_tables([table_id("TWO")])
    change(source, "UPDATE TWO SET NOTE = 'while paused'", "DELETE FROM ONE WHERE ID = 1")
    rebuilt(source)
    source.pipeline.resume_tables([table_id("TWO")])
    source.run()
    source.check_current("ONE", "TWO")
    source.pipeline.remove_tables([table_id("TWO")])
    change(source, "INSERT INTO ONE VALUES (4000, 'x')")
    rebuilt(source)
    source.pipeline.add_tables([table_id("TWO")])
    rebuilt(source)
    source.run()
    change(source, "INSERT INTO TWO VALUES (5000, 'x')")
    source.check_current("ONE", "TWO")


def test_definitions_and_the_tables_that_ddl_stopped_are_known_again(source: Source) -> None:
    source.begin()
    change(source, "ALTER TABLE ONE ADD (MORE NUMBER(5))", "INSERT INTO ONE VALUES (1000, 'a', 5)")
    change(source, "TRUNCATE TABLE TWO")
    assert source.record("TWO").state == "failed"
    change(source, "ALTER TABLE ONE RENAME COLUMN MORE TO AGAIN")
    change(source, "ALTER TABLE ONE ADD (GONE NUMBER(5))", "ALTER TABLE ONE DROP COLUMN GONE")
    history = source.pipeline.records.definitions(table_id("ONE"))
    assert [one.changes for one in history] == [
        ("read for the first time",),
        ("MORE NUMBER(5,0) is new",),
        ("MORE is called AGAIN",),
        ("GONE NUMBER(5,0) is new",),
        ("GONE was dropped; the lake keeps it",),
    ]
    found = rebuilt(source)
    assert len(found["schema_versions"]) == 6
    assert source.pipeline.records.definitions(table_id("ONE")) == history
    change(source, "UPDATE ONE SET AGAIN = 6 WHERE ID = 1000")
    source.check_current("ONE")
    source.pipeline.resnapshot_tables([table_id("TWO")])
    source.run()
    source.check_current("ONE", "TWO")


def test_idle_windows_that_were_retired_leave_no_doubt(source: Source) -> None:
    source.begin()
    change(source, "INSERT INTO ONE VALUES (1000, 'second')")
    for number in range(4):
        change(source, f"INSERT INTO OTHER VALUES ({number})")
    change(source, "INSERT INTO ONE VALUES (1001, 'third')")
    for number in range(3):
        change(source, f"INSERT INTO OTHER VALUES ({number})")
    source.pipeline.retire_windows()
    ordinals = [row["ordinal"] for row in image(source)["windows"]]
    assert ordinals != list(range(ordinals[0], ordinals[-1] + 1)), "there are gaps"
    rebuilt(source)
    change(source, "UPDATE ONE SET NOTE = 'fourth' WHERE ID > 900")
    source.check_current("ONE", "TWO")


def landed(source: Source) -> list[Path]:
    return sorted((source.path / "landing" / "src" / "windows").iterdir())


def test_a_window_that_was_lost_is_not_taken_for_an_idle_one(source: Source) -> None:
    source.begin()
    for number in range(4):
        change(source, f"INSERT INTO ONE VALUES ({1000 + number}, 'x')")
    for lost in landed(source)[:-1]:
        aside = source.path / "aside"
        lose_store(source)
        lost.rename(aside)
        with pytest.raises(LandingDamagedError, match="missing before"):
            source.pipeline.rebuild_state()
        aside.rename(lost)
    lose_store(source)
    landed(source)[-1].rename(source.path / "aside")
    with pytest.raises(LandingDamagedError, match="landing no longer has"):
        source.pipeline.rebuild_state()


def test_windows_that_went_by_age_are_no_gap(source: Source) -> None:
    source.begin()
    for number in range(4):
        change(source, f"INSERT INTO ONE VALUES ({1000 + number}, 'x')")
    source.close()
    source.more["retention"] = {"window_days": 1}
    store = source.pipeline.store
    with store._database.writing() as connection:  # they ended two days ago, but for the last two
        connection.exec_driver_sql(
            "UPDATE windows SET ended = ended - 200000 WHERE ordinal < (SELECT MAX(ordinal) - 1 FROM windows)"
        )
    assert len(source.pipeline.retire_windows()) >= 2
    rebuilt(source)
    change(source, "UPDATE ONE SET NOTE = 'fourth' WHERE ID > 900")
    source.check_current("ONE", "TWO")
    first = landed(source)[0]
    lose_store(source)
    first.rename(source.path / "aside")
    with pytest.raises(LandingDamagedError, match="missing before"):
        source.pipeline.rebuild_state()


def test_a_lake_older_than_what_was_retired_stops_its_table_alone(source: Source) -> None:
    source.begin()
    older = dict(source.lake.tables[table_id("ONE")].transactions)
    for number in range(3):
        change(source, f"INSERT INTO ONE VALUES ({1000 + number}, 'x')")
    change(source, "INSERT INTO TWO VALUES (9, 'x')")
    source.close()
    source.more["retention"] = {"window_days": 1}
    with source.pipeline.store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE windows SET ended = ended - 200000")
    source.pipeline.retire_windows()
    lose_store(source)
    source.lake.tables[table_id("ONE")].transactions = older
    report = source.pipeline.rebuild_state()
    assert source.record("ONE").state == "failed"
    assert source.record("TWO").state == "ready"
    assert "retired from landing" in report.remarks[0]
    assert "table resnapshot" in (source.record("ONE").way_out or "")


def test_a_store_that_holds_something_is_replaced_only_when_asked(source: Source) -> None:
    source.begin()
    before = image(source)
    dry = source.pipeline.rebuild_state(dry_run=True)
    assert not dry.is_written
    assert dry.rows == dry.rows_before == {name: len(rows) for name, rows in before.items()}
    with pytest.raises(ConfigError, match="already has records"):
        source.pipeline.rebuild_state()
    assert image(source) == before
    assert source.pipeline.rebuild_state(replace=True).is_written
    assert comparable(image(source)) == comparable(before)


def test_a_dry_run_on_a_lost_store_writes_nothing(source: Source) -> None:
    source.begin()
    lose_store(source)
    report = source.pipeline.rebuild_state(dry_run=True)
    assert report.rows["tables"] == 2
    assert report.rows_before is None
    assert not any(image(source).values())


def test_landing_without_the_source_is_refused(source: Source) -> None:
    with pytest.raises(LandingDamagedError, match="has no records of this source"):
        source.pipeline.rebuild_state()


def test_an_empty_store_is_not_begun_beside_what_has_landed(source: Source) -> None:
    source.begin()
    lose_store(source)
    for step in (source.pipeline.start_snapshot, source.pipeline.plan_windows, source.run):
        with pytest.raises(StoreBehindError, match="older than landing") as caught:
            step()
    assert "state rebuild" in caught.value.hint
    source.pipeline.rebuild_state()
    change(source, "INSERT INTO ONE VALUES (1000, 'second')")
    source.check_current("ONE", "TWO")


def check_equal_or_further(after: dict[str, Any], lost: dict[str, Any]) -> None:
    """Equal, but that a table may stand behind a window that was captured and holds nothing for it."""
    for one, before in zip(after["tables"], lost["tables"], strict=True):
        assert (one["mirror_scn"] or 0) >= (before["mirror_scn"] or 0)
        one["mirror_scn"] = before["mirror_scn"]
    assert after == lost


def copy_store(source: Source) -> bytes:
    source.close()
    return (source.path / "state.db").read_bytes()


def restore_store(source: Source, copy: bytes) -> None:
    lose_store(source)
    (source.path / "state.db").write_bytes(copy)


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda source: change(source, "INSERT INTO ONE VALUES (7000, 'x')"), id="a-window"),
        pytest.param(
            lambda source: [source.pipeline.capture_window(one) for one in source.pipeline.plan_windows()],
            id="a-captured-window",
        ),
        pytest.param(lambda source: source.pipeline.start_snapshot([table_id("ONE")]), id="a-planned-snapshot"),
        pytest.param(lambda source: list(source.pipeline.run_snapshot([table_id("ONE")])), id="a-snapshot"),
        pytest.param(lambda source: source.pipeline.pause_tables([table_id("ONE")]), id="a-pause"),
        pytest.param(
            lambda source: (source.pipeline.remove_tables([table_id("ONE")]), source.pipeline.add_tables([table_id("ONE")])),
            id="a-table-taken-in-anew",
        ),
    ],
)  # fmt: skip
def test_a_store_restored_from_yesterday_stops_the_next_run_and_one_command_mends_it(
    source: Source, meanwhile: Any
) -> None:
    source.begin()
    change(source, "INSERT INTO ONE VALUES (1000, 'second')")
    yesterday = copy_store(source)
    source.oracle.run("INSERT INTO ONE VALUES (6000, 'x')")
    meanwhile(source)
    lost = comparable(image(source))
    restore_store(source, yesterday)
    with pytest.raises(StoreBehindError) as caught:
        source.run()
    assert "redolake state rebuild --replace" in caught.value.hint
    source.pipeline.rebuild_state(replace=True)
    check_equal_or_further(comparable(image(source)), lost)
    if source.record("ONE").state == "paused":
        source.pipeline.resume_tables([table_id("ONE")])
    source.run()
    change(source, "UPDATE ONE SET NOTE = 'last' WHERE ID > 200", f"DELETE FROM {OWNER}.TWO")
    source.check_current("ONE", "TWO")


def test_a_store_restored_to_before_a_window_that_it_planned_goes_on_by_itself(
    source: Source,
) -> None:
    """What landed since is the window that the store has planned: the ordinary way on after a crash."""
    source.begin()
    source.oracle.run("INSERT INTO ONE VALUES (1000, 'second')")
    [window] = source.pipeline.plan_windows()
    yesterday = copy_store(source)
    source.pipeline.capture_window(window)
    source.pipeline.apply_window(window)
    restore_store(source, yesterday)
    source.run()
    source.check_current("ONE", "TWO")


def test_store_and_landing_restored_together_take_what_the_lake_lacks(source: Source) -> None:
    """The lake is ahead of both: windows are cut anew, and one ends behind where the mirror stands."""
    source.begin()
    change(source, "INSERT INTO ONE VALUES (1000, 'second')")
    yesterday = copy_store(source)
    shutil.copytree(source.path / "landing", source.path / "yesterday")
    with source.oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO ONE VALUES (2000, 'open')")
        change(
            source, "INSERT INTO ONE VALUES (1001, 'x')", "UPDATE ONE SET NOTE = 'y' WHERE ID = 3"
        )
        change(source, "DELETE FROM ONE WHERE ID = 4")
        restore_store(source, yesterday)
        shutil.rmtree(source.path / "landing")
        (source.path / "yesterday").rename(source.path / "landing")
        connection.commit()
    source.oracle.run("UPDATE ONE SET NOTE = 'z' WHERE ID = 3", "INSERT INTO TWO VALUES (7, 'x')")
    source.run()
    source.check_current("ONE", "TWO")
    changes = source.lake.tables[table_id("ONE")].changes
    keys = [(one["_cdc_commit_scn"], one["after"] and one["after"]["ID"]) for one in changes]
    assert len(set(keys)) == len(keys), "nothing is doubled"


def test_definitions_that_windows_share_are_known_again(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of many tables are kept beside the windows; a set that gets lost is written again with its windows."""
    monkeypatch.setattr("cdc_core.landing.definitions.INLINE_BYTES_MAX", 0)
    source.run()
    for number in (1000, 1001):
        change(source, f"INSERT INTO ONE VALUES ({number}, 'new')")
    change(source, "ALTER TABLE ONE ADD (MORE NUMBER(3))")
    change(source, "INSERT INTO ONE VALUES (1002, 'new', 7)")
    source.check_current("ONE", "TWO")
    sets = source.path / "landing" / "src" / "kept" / "definitions"
    assert len(list(sets.iterdir())) == 2
    rebuilt(source)
    source.oracle.run("DELETE FROM ONE WHERE ID = 1000")
    [window] = source.pipeline.plan_windows()
    source.pipeline.capture_window(window)
    source.close()
    shutil.rmtree(sets)
    with pytest.raises(LandingDamagedError):
        source.pipeline.apply_window(window)
    list(source.pipeline.recapture())
    source.run()
    source.check_current("ONE", "TWO")
