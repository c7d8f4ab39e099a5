"""Which rows of a pass are new: both traps, every thread by itself, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.capture.passes.mining import MINED_SCHEMA
from cdc_core.capture.passes.reading_position import Reading, highest_addresses, new_rows
from cdc_core.errors import DecodeError
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.operations import Operation
from cdc_core.model.redo_address import RedoAddress, ThreadPosition

ZERO = " 0x000000.00000000.0000 "
Row = tuple[Any, ...]


def at(block: int, sequence: int = 5) -> RedoAddress:
    return RedoAddress(sequence=sequence, block=block, byte=16)


def text(address: RedoAddress) -> str:
    return f" {address.rs_id} "


def rows(*found: Row) -> pa.RecordBatch:
    """Rows of (SCN, address as number of the block or as text, thread = 1, operation = INSERT)."""
    columns: dict[str, list[Any]] = {"scn": [], "rs_id": [], "thread": [], "operation_code": []}
    for scn, place, *more in found:
        thread, operation = [*more, 1, Operation.INSERT][:2] if len(more) < 2 else more
        columns["scn"].append(scn)
        columns["rs_id"].append(text(at(place)) if isinstance(place, int) else place)
        columns["thread"].append(thread)
        columns["operation_code"].append(int(operation))
    schema = pa.schema([MINED_SCHEMA.field(name) for name in columns])
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def position(thread: int = 1, mark: int | None = 50, **more: Any) -> ThreadPosition:
    values = {"first_scn": 80, "read_from": 10, "address": None if mark is None else at(mark)}
    return ThreadPosition(thread=thread, **{**values, **more})


def judged(positions: list[ThreadPosition], *found: Row, scn_low: int = 100) -> list[bool]:
    known = {one.thread: one for one in positions}
    judgement: list[bool] = new_rows(rows(*found), scn_low, known).tolist()
    return judgement


@pytest.mark.parametrize(
    ("positions", "row", "is_new"),
    [
        pytest.param([position()], (101, 60), True, id="above-the-lower-end"),
        pytest.param([position()], (90, 40), False, id="below-and-returned-before"),
        pytest.param([position()], (90, 50), False, id="the-marks-own-record"),
        pytest.param([position()], (90, 51), True, id="late-below-the-lower-end"),
        pytest.param([position()], (100, 51), True, id="late-at-the-lower-end"),
        pytest.param([position()], (101, 40), True, id="above-the-bound-before-a-late-row"),
        pytest.param([position()], (90, text(at(1, 6))), True, id="in-a-later-log"),
        pytest.param([position()], (90, text(at(99, 4))), False, id="in-an-earlier-log"),
        pytest.param([position()], (10, 51), False, id="from-before-reading-with-positions"),
        pytest.param([position(mark=None)], (90, 1), True, id="nothing-was-returned-so-far"),
        pytest.param([position(mark=None)], (10, 1), False, id="nothing-returned-and-too-old"),
        pytest.param([position()], (90, 51, 2), False, id="a-thread-without-a-position"),
        pytest.param([position()], (101, 1, 2), True, id="such-a-thread-above-the-lower-end"),
        pytest.param([position(), position(2, 90)], (90, 60, 2), False, id="each-thread-its-mark"),
        pytest.param([position(first_scn=None)], (90, 51), True, id="a-thread-closed-meanwhile"),
        pytest.param([], (90, 51), False, id="marks-lost"),
        pytest.param([position()], (90, ZERO, 1, Operation.COMMIT), True, id="an-end-without-address"),
        pytest.param([position()], (90, None, 0, Operation.ROLLBACK), True, id="an-end-with-none"),
        pytest.param([position()], (90, 40, 0, Operation.COMMIT), True, id="an-end-of-no-thread"),
        pytest.param([position()], (90, 40, 1, Operation.COMMIT), False, id="an-end-returned-before"),
    ],
)  # fmt: skip
def test_which_rows_are_new(positions: list[ThreadPosition], row: Row, is_new: bool) -> None:
    assert judged(positions, row) == [is_new]


def test_a_batch_is_judged_row_by_row() -> None:
    both = [position(1, 50), position(2, 70)]
    found = [(90, 40), (90, 60, 2), (120, 45), (95, 55), (95, 75, 2), (110, 80, 2)]
    assert judged(both, *found) == [False, False, True, True, True, True]


def test_addresses_are_numbers_whatever_their_width() -> None:
    wide = position(address=RedoAddress(sequence=0xFFFFFF, block=7, byte=16))
    later, earlier = (
        RedoAddress(sequence=0x1000000, block=1, byte=16),
        RedoAddress(sequence=0xFFFFFE, block=9, byte=16),
    )
    assert judged([wide], (90, text(later)), (90, text(earlier))) == [True, False]
    assert highest_addresses(rows((1, text(later)), (2, text(earlier)))) == {1: later}
    assert judged([position(mark=10)], (90, " 0x000005.0000000B.0010 ")) == [True]


def test_two_passes_over_the_first_trap_read_the_late_row() -> None:
    """A cursor by SCN never reads the row at 90, which entered the log behind one at 95."""
    first = Reading(50, (), {1: 40})
    assert first.take(rows((95, 10))).num_rows == 1
    second = Reading(100, first.after(), {1: 40})
    assert second.mining_low == 50
    assert second.take(rows((95, 10), (90, 20), (110, 30))).column("scn").to_pylist() == [90, 110]


def test_two_passes_over_the_second_trap_read_the_row_above_the_bound() -> None:
    """A cursor by address never reads the row at 105, which lies before a late row that the first pass returned."""
    first = Reading(50, (), {1: 40})
    assert first.take(rows((95, 30))).num_rows == 1  # 105 lies at 20, above the bound 100
    second = Reading(100, first.after(), {1: 40})
    assert second.take(rows((105, 20), (95, 30))).column("scn").to_pylist() == [105]


def test_mining_starts_where_something_may_still_be_waiting() -> None:
    low = Reading(100, [position(first_scn=80), position(2, first_scn=60)], {})
    assert low.mining_low == 59
    switched = Reading(100, [position(first_scn=101), position(2, first_scn=150)], {})
    assert switched.mining_low == 100, "what is below is in logs that have ended"
    assert Reading(100, [position(first_scn=None)], {}).mining_low == 100, "closed: nothing waits"
    assert Reading(100, [position(first_scn=3)], {}).mining_low == 10, "never below read_from"
    assert Reading(100, None, {1: 3}).mining_low == 100


def test_positions_after_a_pass_keep_the_highest_of_each_thread() -> None:
    reading = Reading(100, [position(1, 50), position(2, 70), position(3, 5)], {1: 90, 4: 95})
    ends = [(130, ZERO, 1, Operation.ROLLBACK), (131, 99, 0, Operation.COMMIT)]
    reading.take(rows((110, 60), (110, 55), (120, 60, 2), *ends))
    assert reading.after() == (
        position(1, 60, first_scn=90),
        position(2, 70, first_scn=None),
        position(3, 5, first_scn=None),
        position(4, None, first_scn=95, read_from=100),
    )


def test_rows_that_were_read_before_count_for_the_marks() -> None:
    """Marks were lost: what lies below is passed over once, and stays passed over."""
    reading = Reading(100, None, {1: 80})
    assert reading.take(rows((95, 60), (105, 50))).column("scn").to_pylist() == [105]
    [after] = reading.after()
    assert (after.address, after.read_from) == (at(60), 100)
    again = Reading(200, [after], {1: 80})
    assert again.mining_low == 100
    assert again.take(rows((95, 60), (105, 50), (150, 61))).column("scn").to_pylist() == [150]


@pytest.mark.parametrize("place", [ZERO, None])
def test_a_change_without_an_address_stops_the_window(place: str | None) -> None:
    with pytest.raises(DecodeError, match="without its redo address"):
        Reading(100, (), {}).take(rows((150, place)))


def test_an_address_of_another_form_stops_the_window() -> None:
    with pytest.raises(DecodeError, match="unknown form"):
        Reading(100, (), {}).take(rows((150, "5/16/16")))


def test_addresses_and_positions_print_and_parse() -> None:
    assert RedoAddress.parse(" 0x00000a.0000A2b1.0010 ") == RedoAddress(
        sequence=10, block=0xA2B1, byte=16
    )
    assert RedoAddress(sequence=10, block=0xA2B1, byte=16).rs_id == "0x00000a.0000a2b1.0010"
    assert RedoAddress.parse(ZERO).is_zero
    with pytest.raises(ValueError, match="not a redo byte address"):
        RedoAddress.parse("0x5.6")
    for one in (position(), replace(position(), first_scn=None, address=None)):
        assert from_json(ThreadPosition, as_json(one)) == one
