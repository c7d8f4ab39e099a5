"""Rows that write LOBs become one update each, wherever batches and windows cut them, or are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.decode.lob import (
    LobAppend,
    LobCall,
    LobEnd,
    LobErase,
    LobTrim,
    LobUnclear,
    LobWrite,
    TwoReadingsError,
)
from cdc_core.errors import DecodeError
from cdc_core.model.operations import Operation
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.lob_calls import Begin, Data, value_of_calls, written
from cdc_core.stage.lobs import lob_transactions, with_whole_lobs
from tests.decode.golden_table import GOLDEN

XID, OTHER = "0100000001000000", "0200000002000000"
INSERT, UPDATE, LOCATOR, WRITE, TRIM = (
    Operation.INSERT, Operation.UPDATE, Operation.SELECT_LOB_LOCATOR, Operation.LOB_WRITE, Operation.LOB_TRIM,
)  # fmt: skip


@pytest.mark.parametrize(
    ("base", "calls", "value"),
    [
        pytest.param("", [LobWrite(1, "ab"), LobWrite(3, "c")], "abc", id="behind-each-other"),
        pytest.param("", [LobWrite(3, "c")], "  c", id="behind-a-gap"),
        pytest.param(b"", [LobWrite(2, b"c")], b"\0c", id="behind-a-gap-of-bytes"),
        pytest.param("abc", [LobWrite(4, "d")], "abcd", id="appended"),
        pytest.param("abc", [LobWrite(2, "xyz")], "axyz", id="over-what-was-there"),
        pytest.param("abcd", [LobErase(2, 9)], "a   ", id="erased-to-the-end"),
        pytest.param(b"abcd", [LobErase(2, 2)], b"a\0\0d", id="erased-within"),
        pytest.param("abcd", [LobTrim(2)], "ab", id="trimmed"),
        pytest.param("abcd", [LobWrite(1, "xy"), LobTrim(2)], "xy", id="replaced"),
        pytest.param(None, [LobWrite(1, "xy"), LobWrite(3, "z"), LobTrim(3)], "xyz", id="whole"),
        pytest.param(None, [LobWrite(1, "xy"), LobTrim(1)], "x", id="cut-within"),
        pytest.param(
            None, [LobWrite(5, "p"), LobWrite(1, "xy"), LobTrim(2)], "xy", id="a-part-then-whole"
        ),
        pytest.param(None, [LobWrite(1, "x"), LobErase(1, 1), LobTrim(1)], None, id="erased"),
        pytest.param(None, [LobTrim(0), LobWrite(1, b"xy")], b"xy", id="emptied-then-written"),
        pytest.param(None, [LobWrite(9, "p"), LobTrim(0)], "", id="emptied"),
        pytest.param(None, [LobWrite(1, "xy")], None, id="a-beginning"),
        pytest.param(None, [LobWrite(3, "xy"), LobTrim(4)], None, id="an-end"),
        pytest.param(None, [LobWrite(1, "xy"), LobTrim(4)], None, id="cut-further-behind"),
        pytest.param(None, [LobTrim(2)], None, id="only-cut"),
        pytest.param(
            "old", [LobAppend("a"), LobAppend("b"), LobEnd()], "ab", id="from-begin-to-end"
        ),
        pytest.param("old", [LobAppend("a")], None, id="no-end"),
        pytest.param("old", [LobAppend("a"), LobWrite(2, "b"), LobEnd()], None, id="both-ways"),
        pytest.param("old", [LobEnd()], None, id="nothing-appended"),
        pytest.param(None, [LobAppend(b""), LobAppend("a"), LobEnd()], "a", id="null-and-text"),
        pytest.param(None, [LobAppend(b"a"), LobAppend("a"), LobEnd()], None, id="bytes-and-text"),
        pytest.param(None, [LobAppend(b""), LobEnd()], b"", id="null-alone"),
        pytest.param(
            None, [LobAppend("a"), LobUnclear(), LobEnd()], None, id="a-row-of-another-form"
        ),
    ],
)
def test_what_is_written_is_the_value_if_that_is_known(
    base: Data | None, calls: list[LobCall], value: Data | None
) -> None:
    empty = b"" if isinstance(value, bytes) else ""
    assert written(base, calls, empty) == value


FIRE = "🔥a"
STATEMENT, CALL = [Begin(0, is_call=False)], [Begin(0, is_call=True)]


@pytest.mark.parametrize(
    ("base", "calls", "begins", "value"),
    [
        pytest.param("a", [LobWrite(2, FIRE)], CALL, "a" + FIRE, id="nothing-beyond-before-the-offset"),
        pytest.param("", [LobWrite(1, FIRE)], (), FIRE, id="at-once"),
        pytest.param(FIRE, [LobWrite(3, "b")], CALL, TwoReadingsError, id="behind-it"),
        pytest.param(FIRE, [LobTrim(2)], CALL, TwoReadingsError, id="cut-behind-it"),
        pytest.param("aa🔥", [LobTrim(2)], CALL, "aa", id="cut-before-it"),
        pytest.param(FIRE, [LobErase(2, 1)], CALL, TwoReadingsError, id="erased-behind-it"),
        pytest.param("", [LobWrite(1, FIRE), LobWrite(3, "b")], STATEMENT, FIRE + "b", id="a-statement-in-characters"),
        pytest.param("", [LobWrite(1, FIRE), LobWrite(4, "b")], STATEMENT, FIRE + "b", id="a-statement-in-units"),
        pytest.param(None, [LobWrite(1, FIRE), LobTrim(2)], STATEMENT, FIRE, id="a-statement-that-cuts-in-characters"),
        pytest.param(None, [LobWrite(1, FIRE), LobTrim(3)], STATEMENT, FIRE, id="a-statement-that-cuts-in-units"),
        pytest.param("", [LobWrite(1, FIRE), LobWrite(3, "b")], CALL, TwoReadingsError, id="calls-that-go-on"),
        pytest.param("", [LobWrite(1, FIRE), LobWrite(3, "b")], (), TwoReadingsError, id="nobody-knows-whose"),
        pytest.param("", [LobWrite(1, FIRE), LobTrim(2), LobTrim(2)], [*STATEMENT, Begin(2, is_call=True)], FIRE, id="a-call-behind-a-statement-in-characters"),
        pytest.param("", [LobWrite(1, FIRE), LobTrim(3), LobTrim(2)], [*STATEMENT, Begin(2, is_call=True)], "🔥", id="a-call-behind-a-statement-in-units"),
        pytest.param("🔥", [LobWrite(2, "b")], STATEMENT, TwoReadingsError, id="a-statement-that-does-not-begin-at-the-first"),
    ],
)  # fmt: skip
def test_characters_outside_of_the_basic_plane_are_counted_as_the_redo_shows(
    base: Data | None, calls: list[LobCall], begins: list[Begin], value: Any
) -> None:
    if isinstance(value, str):
        assert value_of_calls(base, calls, "", begins) == value
    else:
        with pytest.raises(value):
            value_of_calls(base, calls, "", begins)


def block(key: int, column: str, call: str) -> str:
    head = f'BEGIN\n select "{column}" into loc_c from "S"."T" where "ID" = \'{key}\' for update;\n'
    return f"DECLARE \n loc_c CLOB; \n{head}{call}END;\n\n"


def write(text: str, offset: int) -> str:
    return f" buf_c := '{text}'; \n  dbms_lob.write(loc_c, {len(text)}, {offset}, buf_c);\n"


def insert(key: int) -> str:
    return f'insert into "S"."T"("ID","L") values (\'{key}\',EMPTY_CLOB());'


def redo(*rows: tuple[str, int, str | None]) -> pa.Table:
    """Redo rows of XID, operation and text, numbered as they stand; all commit behind them."""
    return pa.Table.from_pylist(
        [
            {
                "ordinal": at, "scn": at + 10, "xid": xid, "operation_code": int(code), "rollback": False, "row_id": None,
                "sql_redo": sql, "status": 2 if code in (WRITE, TRIM) else 0, "timestamp": None, "thread": 1, "rs_id": "",
                "commit_scn": 99, "commit_timestamp": None, "username": "U", "has_rollback": False, "problem": None,
            }
            for at, (xid, code, sql) in enumerate(rows)
        ],
        pa.schema(
            [
                ("ordinal", pa.int64()), ("scn", pa.int64()), ("xid", pa.string()), ("operation_code", pa.int32()),
                ("rollback", pa.bool_()), ("row_id", pa.string()), ("sql_redo", pa.large_string()), ("status", pa.int32()),
                ("timestamp", pa.timestamp("s")), ("thread", pa.int32()), ("rs_id", pa.string()), ("commit_scn", pa.int64()),
                ("commit_timestamp", pa.timestamp("s")), ("username", pa.string()), ("has_rollback", pa.bool_()),
                ("problem", pa.string()),
            ]
        ),
    )  # fmt: skip


DECODER = ChangeDecoder(GOLDEN, 99)


def whole(pieces: list[pa.Table], ends: int = 1000) -> pa.Table:
    xids = lob_transactions([piece.select(["xid", "operation_code"]) for piece in pieces])
    found = list(with_whole_lobs(pieces, {(xid, 99): ends for xid in xids}, DECODER.version_at))
    return pa.concat_tables(found).sort_by("ordinal")


ROWS = [
    (XID, INSERT, insert(1)),
    (OTHER, INSERT, insert(3)),
    (XID, LOCATOR, None),
    (XID, WRITE, block(1, "L", write("it''s"[:4], 1).replace(", 4, 1", ", 3, 1"))),
    (OTHER, WRITE, block(3, "L", write("other", 1))),
    (XID, WRITE, block(1, "L", write("long", 4))),
    (XID, INSERT, insert(2)),
    (XID, WRITE, block(2, "L", write("two", 1))),
    (XID, WRITE, block(1, "L", write("er", 8))),
    (XID, UPDATE, 'update "S"."T" set "V" = \'v\' where "ID" = \'1\';'),
    (XID, WRITE, block(9, "L", write("nine", 1))),
    (XID, TRIM, block(9, "L", "  dbms_lob.trim(loc_c, 4);\n")),
]


def test_lobs_are_whole_wherever_their_rows_are_cut() -> None:
    rows = redo(*ROWS)
    wanted = whole([rows])
    changes = DECODER(wanted).to_pylist()
    notes = [
        (one["_cdc_ordinal"], one["_cdc_op"], one["after"]["ID"], one["after"]["L"], "L" in one["_cdc_absent"])
        for one in changes
    ]  # fmt: skip
    assert notes == [
        (0, "c", 1, "", False),
        (1, "c", 3, "", False),
        (4, "u", 3, "other", False),
        (5, "u", 1, "it'long", False),
        (6, "c", 2, "", False),
        (7, "u", 2, "two", False),
        (8, "u", 1, "it'longer", False),
        (9, "u", 1, None, True),
        (11, "u", 9, "nine", False),
    ]
    assert changes[3]["_cdc_absent"] == [
        name for name in GOLDEN.column_names if name not in ("ID", "L")
    ]
    for at in range(1, rows.num_rows):
        assert whole([rows.slice(0, at), rows.slice(at)]).equals(wanted), at


def test_values_that_follow_each_other_are_changes_of_their_own() -> None:
    """Nothing but the cut of each value stands between them. A row without a locator goes on with the last one."""
    rows = redo(
        (XID, WRITE, block(1, "L", write("first", 1))),
        (XID, TRIM, block(1, "L", "  dbms_lob.trim(loc_c, 5);\n")),
        (XID, LOCATOR, None),
        (XID, WRITE, block(1, "L", write("2nd", 1))),
        (XID, TRIM, "  dbms_lob.trim(loc_c, 3);\nEND;"),
        (XID, WRITE, " buf_c := 'more'; \n  dbms_lob.write(loc_c, 4, 4, buf_c);\nEND;"),
    )
    changes = DECODER(whole([rows])).to_pylist()
    found = [(one["_cdc_ordinal"], one["after"]["L"]) for one in changes]
    assert found == [(1, "first"), (4, "2nd"), (5, "2ndmore")]


def test_a_transaction_that_ended_is_forgotten() -> None:
    """What another one wrote since is not known: the value is no base for what follows under the same XID."""
    rows = redo((XID, INSERT, insert(1)), (XID, WRITE, block(1, "L", write("a", 1))))
    later = redo(*[(XID, WRITE, None)] * 5, (XID, WRITE, block(1, "L", write("b", 2)))).slice(5)
    assert whole([rows, later], ends=3)["problem"].to_pylist() == [None, None, "lob-incomplete"]
    assert whole([rows, later])["problem"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(write("tail", 5), "a part of a LOB", id="a-part"),
        pytest.param(" something else;\n", "not understood", id="another-form"),
    ],
)
def test_a_part_of_a_lob_is_never_taken_for_the_whole(call: str, message: str) -> None:
    rows = redo((XID, WRITE, block(1, "L", call)), (XID, INSERT, insert(2)))
    made = whole([rows])
    with pytest.raises(DecodeError, match=message):
        DECODER(made)
    changes, refused = DECODER.split(made)
    assert [one.ordinal for one in refused] == [0]
    assert [change["after"]["ID"] for batch in changes for change in batch.to_pylist()] == [2]


def test_rows_of_other_transactions_pass_as_they_are() -> None:
    rows: Any = redo((OTHER, INSERT, insert(1)))
    assert list(with_whole_lobs([rows], {(XID, 99): 9}, DECODER.version_at)) == [rows]


LONG = replace(
    GOLDEN,
    columns=tuple(replace(one, length=32767) if one.name == "V" else one for one in GOLDEN.columns),
)


def test_a_long_text_that_is_written_twice_is_the_last() -> None:
    """Each frame is a value of its own. One without its end is refused."""
    begin = """ Stmt := 'update "S"."T" set "V" = :DATA where "ID" = ''1'';';"""
    append = " buf_c := '{}'; DBMS_LOB.WriteAppend(TempLob, 3, buf_c);"
    rows = [
        row
        for text in ("one", "two")
        for row in (
            (XID, Operation.EXTENDED_BEGIN, begin),
            (XID, Operation.EXTENDED_WRITE, append.format(text)),
            (XID, Operation.EXTENDED_WRITE, append.format("more")),
            (XID, Operation.EXTENDED_END, "END;"),
        )
    ]
    decoder = ChangeDecoder(LONG, 99)
    made = list(with_whole_lobs([redo(*rows)], {(XID, 99): 1000}, decoder.version_at))
    changes = decoder(pa.concat_tables(made).sort_by("ordinal")).to_pylist()
    assert [one["after"]["V"] for one in changes] == ["onemore", "twomore"]
    cut = list(with_whole_lobs([redo(*rows[:-1])], {(XID, 99): 1000}, decoder.version_at))
    with pytest.raises(DecodeError, match="a part of a LOB"):
        decoder(pa.concat_tables(cut).sort_by("ordinal"))
