"""A window moves on the tables for which it has nothing, whichever tables somebody chose; it moves no other."""

from __future__ import annotations

from cdc_core.model.scn import ScnWindow
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

NAMES = ("ONE", "TWO", "THREE")
ONE, TWO, THREE = (table_id(name) for name in NAMES)


oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in NAMES)
)


source = capturing(*NAMES)


def captured(oracle: Oracle, source: Source, *statements: str) -> ScnWindow:
    """A captured window that holds these statements."""
    oracle.run(*statements)
    [window] = source.pipeline.plan_windows()
    source.pipeline.capture_window(window)
    return window


def positions(source: Source) -> list[int | None]:
    return [source.record(name).mirror_scn for name in NAMES]


def test_tables_that_were_not_chosen_move_on_where_a_window_has_nothing_for_them(
    oracle: Oracle, source: Source
) -> None:
    window = captured(
        oracle, source, "INSERT INTO ONE VALUES (1, 'a')", "INSERT INTO TWO VALUES (1, 'a')"
    )
    before = source.record("TWO").mirror_scn
    assert source.pipeline.changed_tables([window]) == {ONE, TWO}
    source.pipeline.apply_window(window, [ONE])
    assert positions(source) == [window.scn_high, before, window.scn_high]
    assert source.pipeline.changed_tables([window]) == {TWO}, "ONE has it"
    assert source.pipeline.pending_windows() == [window]
    source.pipeline.apply_window(window, [TWO])
    assert source.pipeline.pending_windows() == []
    assert source.pipeline.changed_tables([window]) == set()
    source.check_current(*NAMES)


def test_a_table_that_needs_an_earlier_window_stays_where_it_is(
    oracle: Oracle, source: Source
) -> None:
    first = captured(oracle, source, "INSERT INTO TWO VALUES (1, 'a')")
    second = captured(oracle, source, "INSERT INTO ONE VALUES (1, 'a')")
    before = source.record("TWO").mirror_scn
    source.pipeline.apply_window(first, [ONE])
    source.pipeline.apply_window(second, [ONE])
    assert positions(source) == [second.scn_high, before, second.scn_high]
    assert source.pipeline.changed_tables([first, second]) == {TWO}
    source.pipeline.apply_window(first, [TWO])
    source.pipeline.apply_window(second, [])
    assert positions(source) == [second.scn_high] * 3
    source.check_current(*NAMES)


def test_a_definition_that_changes_touches_its_table(oracle: Oracle, source: Source) -> None:
    window = captured(oracle, source, "ALTER TABLE ONE ADD (W NUMBER(9))")
    before = source.record("ONE").mirror_scn
    assert source.pipeline.changed_tables([window]) == {ONE}
    source.pipeline.apply_window(window, [TWO])
    assert positions(source) == [before, window.scn_high, window.scn_high]
    source.pipeline.apply_window(window)
    source.check_current(*NAMES)


def test_a_paused_table_is_none_that_a_window_changes_or_moves(
    oracle: Oracle, source: Source
) -> None:
    source.pipeline.pause_tables([ONE])
    before = source.record("ONE").mirror_scn
    window = captured(oracle, source, "INSERT INTO ONE VALUES (1, 'a')")
    idle = captured(oracle, source, "INSERT INTO TWO VALUES (1, 'a')")
    assert source.pipeline.changed_tables([window, idle]) == {TWO}
    source.pipeline.apply_window(window, [])
    source.pipeline.apply_window(idle, [TWO])
    assert positions(source) == [before, idle.scn_high, idle.scn_high]
    source.pipeline.resume_tables([ONE])
    assert source.pipeline.changed_tables([window, idle]) == {ONE}
    for each in (window, idle):
        source.pipeline.apply_window(each)
    source.check_current(*NAMES)
