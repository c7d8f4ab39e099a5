"""A table that was altered without a DDL row of its own in the redo is noticed with the next window, and stops alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from cdc_core.model.scn import SLACK_SECONDS
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) NOT NULL, V VARCHAR2(40))",
    "CREATE UNIQUE INDEX ONE_KEY ON ONE (ID)",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    "INSERT INTO ONE VALUES (1, 'first')",
    "INSERT INTO TWO VALUES (1, 'first')",
)
"""The key of ONE is a unique index, which has a name of its own in the redo."""


def later(oracle: Oracle, source: Source) -> None:
    """Some time passes, and a window."""
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run("INSERT INTO TWO SELECT MAX(ID) + 1, 'later' FROM TWO")
    source.windows()


source = capturing("ONE", "TWO", then=lambda source: later(source.oracle, source))


def test_a_key_whose_index_was_dropped_is_noticed(oracle: Oracle, source: Source) -> None:
    """Rows may have one key then, and the mirror would have one of them."""
    later(oracle, source)
    position = source.record("ONE").mirror_scn
    oracle.run("DROP INDEX ONE_KEY")
    oracle.run("INSERT INTO ONE VALUES (1, 'second')")
    later(oracle, source)
    one = source.record("ONE")
    assert (one.state, one.trouble) == ("failed", "unsupported_ddl")
    assert one.stopped_scn == position
    assert "without a DDL row in the redo" in (one.reason or "")
    assert "no primary key and no unique index" in (one.reason or "")
    source.check_current("TWO")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX ONE_V ON ONE (V)",
        "COMMENT ON COLUMN ONE.V IS 'a text'",
        "GRANT SELECT ON ONE TO PUBLIC",
        "ALTER TABLE ONE ADD (W NUMBER(9))",
        "ALTER TABLE TWO MODIFY (V VARCHAR2(50))",
    ],
)
def test_what_leaves_the_definition_alone_or_is_followed_stops_nothing(
    oracle: Oracle, source: Source, statement: str
) -> None:
    oracle.run(statement)
    oracle.run("INSERT INTO ONE (ID, V) VALUES (2, 'after')")
    for _ in range(2):
        later(oracle, source)
        source.check_current("ONE", "TWO")
        assert source.record("ONE").state == "ready"


def test_all_tables_are_asked_for_at_once(oracle: Oracle, tmp_path: Path) -> None:
    """A window costs as many statements for many tables as for one."""
    oracle.clock.ahead += (
        60  # the tables' own DDL lies before every window, however slow the machine is
    )
    counts = []
    for number, names in enumerate((("ONE",), ("ONE", "TWO"))):
        with source_of(oracle, tmp_path / str(number), *names) as source:
            source.run()
            sent = source.asked()
            oracle.run(f"INSERT INTO TWO VALUES ({number + 50}, 'x')")
            [window] = source.pipeline.plan_windows()
            sent.clear()
            source.pipeline.capture_window(window)
        counts.append(len(sent))
    assert counts[0] == counts[1] > 0


def test_definitions_of_tables_that_were_altered_are_read_at_once(
    oracle: Oracle, tmp_path: Path
) -> None:
    """A window behind a DDL of many tables, or behind their CREATE TABLE, costs as many statements as behind one of one."""
    counts = []
    for table, number in product(("ONE", "TWO"), range(2)):
        oracle.run(f"CREATE INDEX {table}_V{number} ON {table} (V{', ID' * number})")
    for number, names in enumerate((("ONE",), ("ONE", "TWO"))):
        with source_of(oracle, tmp_path / str(number), *names) as source:
            source.run()
            sent = source.asked()
            later(oracle, source)
            oracle.run(f"DROP INDEX ONE_V{number}", f"DROP INDEX TWO_V{number}")
            oracle.clock.ahead += 3 * SLACK_SECONDS
            oracle.run(f"UPDATE TWO SET V = 'number {number}'")
            [window] = source.pipeline.plan_windows()
            sent.clear()
            source.pipeline.capture_window(window)
        counts.append(sum("ALL_TAB_COLS" in one for one in sent))
    assert counts[0] == counts[1] > 0


def partitioned(oracle: Oracle) -> None:
    """OTHER, which is not captured, has rows that a partition holds."""
    oracle.run(
        "CREATE TABLE OTHER (ID NUMBER(9) NOT NULL, V VARCHAR2(40)) PARTITION BY RANGE (ID) (PARTITION P VALUES LESS THAN (1000))",
        "INSERT INTO OTHER VALUES (7, 'of the partition')",
    )


def test_a_table_whose_rows_were_exchanged_for_those_of_a_partition_is_noticed(
    oracle: Oracle, source: Source
) -> None:
    """The DDL row is of the partitioned table, and no row says what the captured one has now."""
    partitioned(oracle)
    later(oracle, source)
    later(oracle, source)
    position = source.record("ONE").mirror_scn
    oracle.run("ALTER TABLE OTHER EXCHANGE PARTITION P WITH TABLE ONE WITHOUT VALIDATION")
    later(oracle, source)
    one = source.record("ONE")
    assert (one.state, one.stopped_scn) == ("failed", position)
    assert "others in theirs" in (one.reason or "")
    assert one.trouble == "truncate"
    source.check_current("TWO")
    source.pipeline.resnapshot_tables([table_id("ONE")])
    source.run()
    for _ in range(2):
        later(oracle, source)
        source.check_current("ONE", "TWO")
    assert source.lake.image(table_id("ONE")) == [(7, "of the partition")]


def test_of_both_tables_of_an_exchange_the_rows_that_came_are_read(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Of the partitioned one the partition's alone; the other one is read again when the dictionary shows it. The rows of each are the other's from
    then on."""
    columns = "(ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))"
    oracle.run(
        f"CREATE TABLE P {columns} PARTITION BY RANGE (ID) (PARTITION LOW VALUES LESS THAN (10), PARTITION REST VALUES LESS THAN (MAXVALUE))",
        f"CREATE TABLE S {columns}",
        *(f"INSERT INTO P VALUES ({key}, 'of the partition')" for key in (3, 4, 30)),
        *(f"INSERT INTO S VALUES ({key}, 'of the table')" for key in (4, 5)),
    )
    policies = {"on_truncate": "follow_or_resnapshot"}
    with source_of(oracle, tmp_path, "P", "S", "TWO", policies=policies) as source:
        source.run()
        later(oracle, source)
        oracle.run(
            "UPDATE P SET V = 'before' WHERE ID = 30",
            "ALTER TABLE P EXCHANGE PARTITION LOW WITH TABLE S",
            "UPDATE P SET V = 'behind' WHERE ID = 5",
            "DELETE FROM S WHERE ID = 4",
            "INSERT INTO S VALUES (6, 'behind')",
        )
        for _ in range(2):
            later(oracle, source)
            source.run()
        answers = {name: [one.policy for one in source.status(name).read_again] for name in ("P", "S")}  # fmt: skip
        assert answers == {"P": [], "S": ["on_truncate"]}
        assert {source.record(name).state for name in answers} == {"ready"}
        source.check_current("P", "S", "TWO")
        assert {row[0] for row in source.lake.image(table_id("P"))} == {30, 4, 5}
        assert {row[0] for row in source.lake.image(table_id("S"))} == {3, 6}
        oracle.run("UPDATE P SET V = 'and on'", "UPDATE S SET V = 'and on'")
        later(oracle, source)
        source.check_current("P", "S", "TWO")


MOVED = "ALTER TABLE ONE MOVE"
EXCHANGED = "ALTER TABLE OTHER EXCHANGE PARTITION P WITH TABLE ONE WITHOUT VALIDATION"


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param([MOVED, EXCHANGED], id="moved-before"),
        pytest.param([EXCHANGED, MOVED], id="moved-after"),
        pytest.param(["COMMENT ON TABLE ONE IS 'a text'", EXCHANGED], id="another-ddl-before"),
        pytest.param([EXCHANGED, "ALTER TABLE ONE MODIFY (V VARCHAR2(50))"], id="another-ddl-after"),
        pytest.param([EXCHANGED, "ALTER TABLE OTHER MOVE PARTITION P"], id="the-partition-moved"),
    ],
)  # fmt: skip
def test_no_ddl_of_the_table_itself_hides_an_exchange(
    oracle: Oracle, source: Source, ddl: list[str]
) -> None:
    """Both are in one window; a MOVE gives the table another data object, as the exchange does."""
    partitioned(oracle)
    later(oracle, source)
    later(oracle, source)
    oracle.run(*ddl)
    for _ in range(2):
        later(oracle, source)
    assert source.record("ONE").state == "failed"
    source.check_current("TWO")


def test_an_exchange_is_noticed_with_the_window_of_its_time(oracle: Oracle, source: Source) -> None:
    """Capture is behind: what the dictionary shows of a later time says nothing of a window before it."""
    later(oracle, source)
    partitioned(oracle)
    oracle.run("INSERT INTO ONE VALUES (2, 'before the exchange')")
    oracle.clock.ahead += 3 * SLACK_SECONDS
    [early] = source.pipeline.plan_windows()
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run("ALTER TABLE OTHER EXCHANGE PARTITION P WITH TABLE ONE WITHOUT VALIDATION")
    oracle.clock.ahead += 3 * SLACK_SECONDS
    source.pipeline.capture_window(early)
    source.pipeline.apply_window(early)
    assert source.record("ONE").state == "ready"
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "before the exchange")]
    later(oracle, source)
    one = source.record("ONE")
    assert (one.state, one.stopped_scn) == ("failed", early.scn_high)


@pytest.mark.parametrize("behind", [False, True], ids=["each-in-its-window", "all-in-one-window"])
def test_a_table_that_was_moved_by_its_own_ddl_goes_on(
    oracle: Oracle, source: Source, *, behind: bool
) -> None:
    """ALTER TABLE … MOVE has a row in the redo, and its rows stay what they are."""
    for number in range(10, 13):
        oracle.run("ALTER TABLE ONE MOVE", f"INSERT INTO ONE VALUES ({number}, 'moved')")
        if not behind:
            later(oracle, source)
            source.check_current("ONE", "TWO")
    for _ in range(3):
        later(oracle, source)
        source.check_current("ONE", "TWO")
    assert source.record("ONE").state == "ready"
    newest = source.pipeline.records.windows(newest_first=True, limit=1)[0].window
    known = source.pipeline.window_manifest(newest)[0].data_objects
    assert set(known) == {"DEMO.ONE", "DEMO.TWO"}, "and what holds now is learned"


def test_what_windows_that_are_too_old_could_not_ask_a_later_one_asks(
    oracle: Oracle, source: Source
) -> None:
    """After some five days Oracle maps an SCN to no time; capture catches up after a long break."""
    later(oracle, source)
    position = source.record("ONE").mirror_scn
    oracle.run("DROP INDEX ONE_KEY")
    oracle.run("INSERT INTO ONE VALUES (99, 'second')")
    text = "SCN_TO_TIMESTAMP(:scn0)"
    too_old = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, text, code=8181, times=0)
    oracle.database.faults.arm(too_old)
    later(oracle, source)
    oracle.database.faults.disarm_all()
    behind = source.record("ONE")
    assert behind.state == "ready", "nothing is known of that time"
    oracle.clock.ahead += 2 * 3600
    oracle.database.faults.arm(replace(too_old, times=1))
    later(oracle, source)
    one = source.record("ONE")
    assert one.state == "failed"
    assert one.stopped_scn == behind.mirror_scn
    assert (behind.mirror_scn or 0) > (position or 0)
    source.check_current("TWO")


def test_a_ddl_of_the_hour_that_autumn_repeats_is_noticed(oracle: Oracle, source: Source) -> None:
    """The host's clock goes back in the window, so that the DDL has an earlier time than the window's beginning."""
    later(oracle, source)
    position = source.record("ONE").mirror_scn
    oracle.clock.ahead -= 3600
    oracle.run("DROP INDEX ONE_KEY")
    oracle.run("INSERT INTO ONE VALUES (1, 'second')")
    later(oracle, source)
    one = source.record("ONE")
    assert (one.state, one.stopped_scn) == ("failed", position)
    source.check_current("TWO")
