"""Messages of changed rows are read by compiled loops, many at once: each value is what the plain form reads of it, and what the plain form
refuses is refused."""

from __future__ import annotations

import itertools
import json
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from cdc_core.change_stream.form import Ordinals
from cdc_core.change_stream.images import ImageReader, Images
from cdc_core.config import OpenLogReplicatorConfig
from cdc_core.decode.records import keep_rows
from cdc_core.errors import DecodeError
from cdc_core.openlogreplicator.events import (
    MessageEvent,
    MessageEvents,
    MessageRows,
    MessageRun,
    decoded_messages,
)
from cdc_core.openlogreplicator.messages import DECODER
from cdc_core.openlogreplicator.stream import MessageForm
from tests.decode.golden_table import GOLDEN

HOW = OpenLogReplicatorConfig(folder="/", binary_floats="take")
READER = ImageReader(GOLDEN, MessageForm(HOW), {})
NAMES = [column.name for column in READER._columns]
SCHEMA = json.dumps({"owner": "S", "table": "T", "columns": [{"name": one} for one in NAMES]}, separators=(",", ":"), ensure_ascii=False)  # fmt: skip

NUMBERS = (
    "0", "-0", "7", "-7", "123456789", "999999999999999999", "9223372036854775807", "9223372036854775808", "1.5", "-0.05", "100", "0.10",
    "1e5", "1E-20", "01", "1.", ".5", "+1", "--1", "1x", "99999999999999999999999999999999999999", "123456789012345678901234567890.25",
    "true", '"7"', "[1]", "{}", "NaN", "",
)  # fmt: skip
TEXTS = (
    '""', '"a"', '"ü 夜 \U0001f525"', r'"a\"b"', r'"a\\b"', r'"\u00fc\ud83d\udd25"', r'"\ud83d"', r'"line\nline"', '"\t"', '"' + "x" * 900 + '"',
    "'a'", "7", '"?"', '"open',
)  # fmt: skip
MOMENTS = (
    '"2026-01-02T03:04:05"', '"2026-01-02T03:04:05Z"', '"2026-01-02 03:04:05.5"', '"2026-01-02T03:04:05.123456000Z"',
    '"2026-01-02T03:04:05.123456789Z"', '"2026-01-02T03:04:05.Z"', '"2026-01-02T03:04:05.1234567890Z"', '"2026-13-02T03:04:05Z"',
    '"2024-02-29T00:00:00Z"', '"2023-02-29T00:00:00Z"', '"9999-12-31T23:59:59Z"', '"0000-01-01T00:00:00Z"', '"-4712-01-01T00:00:00Z"',
    '"2026-01-02"', '"2026-01-02T03:04:05+01:00"', '"2026-01-02X03:04:05"', '"20260102T030405"', '""',
    "1767225600000000000", "-1", "1.5", '"2026-01-02T03:04:05Z +02:00"', '"1767225600000000000,Europe/Berlin"',
)  # fmt: skip
BYTES = ('""', '"00ff"', '"00FF"', '"0"', '"0g"', '"00 ff"', "00", r'"\u0030f"')
SPANS = ('"1-2"', '"-1,02:03:04.5"', '"3 04:05:06"', '"x"', "12")
ANY = ("null", "nul", *NUMBERS, *TEXTS, *MOMENTS, *BYTES, *SPANS)


def message(op: str = "c", before: str | None = None, after: str | None = None, **facts: Any) -> bytes:  # fmt: skip
    """A message of one changed row, its images in JSON."""
    head = {
        "scn": 12,
        "b_scn": 10,
        "e_scn": 20,
        "tm": 1767225600123,
        "xid": "03000000e9030000",
        "db": "ORCL",
        "rth": 1,
        **facts,
    }
    images = "".join(f',"{name}":{one}' for name, one in (("before", before), ("after", after)) if one is not None)  # fmt: skip
    row = f'{{"op":"{op}","schema":{SCHEMA},"num":0,"rid":"AAARF0AAMAAAACDAAA"{images}}}'
    return f'{json.dumps(head, separators=(",", ":"))[:-1]},"payload":[{row}],"c_scn":10,"c_idx":2}}\n'.encode()  # fmt: skip


def shown(read: Any) -> list[pa.Array] | str:
    """Images, or what was refused."""
    try:
        found: tuple[Images, Images] = read()
    except DecodeError as error:
        return f"{error.message} {error.facts['row']}"
    return [one for side in found for one in (side.rows, side.absent)]


def plain(lines: bytes) -> list[pa.Array] | str:
    """What the plain form reads."""
    rows = [DECODER.decode(line).payload[0] for line in lines.splitlines()]
    sides = ([bytes(raw) if bytes(raw) not in (b"", b"null") else None for raw in side] for side in zip(*((one.before, one.after) for one in rows), strict=True))  # fmt: skip
    before, after = sides
    return shown(lambda: READER.images(before, after))


def compiled(lines: bytes) -> list[pa.Array] | str:
    """What the loops read, as far as they take the messages."""
    [record] = decoded_messages(lines, DECODER.decode).records
    assert isinstance(record, MessageRows)
    return shown(lambda: READER.run_images(keep_rows(record.words)))


def is_refused(line: bytes) -> bool:
    """Is a line taken for no message, or its row for none?"""
    try:
        found = compiled(line)
    except msgspec.MsgspecError:
        return True
    return isinstance(found, str)


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_what_the_plain_form_reads(name: str) -> None:
    """For each column all that numbers, texts, times and bytes may look like, alone and among rows that are well formed."""
    well = message("u", f'{{"{name}":null}}', '{"ID":1}')
    for value in ANY:
        lines = message(after=f'{{"{name}":{value}}}')
        try:
            DECODER.decode(lines)
        except msgspec.MsgspecError:
            assert is_refused(lines), value  # it is no JSON
            continue
        assert compiled(lines) == plain(lines), value
        assert compiled(well + lines + well) == plain(well + lines + well), value


def test_common_forms_are_never_left_to_the_plain_form() -> None:
    """Speed is a promise: what OpenLogReplicator writes with the recommended options is read by the loops."""
    values = {
        "ID": "1", "V": '"text"', "C": '"ab   "', "NV": '"夜"', "L": '"long"', "I": "-12", "N92": "1.50", "WIDE": "12345678901234567890.5",
        "N": "0.001", "D": '"2026-01-02T03:04:05.000000000Z"', "T6": '"2026-01-02T03:04:05.123456000Z"', "T9": '"2026-01-02T03:04:05.123456789Z"',
        "R": '"00ff"', "B": '""', "TZ": '"2026-01-02T03:04:05.123456000Z +02:00"', "YM": '"1-2"', "it's ü / x": "null",
    }  # fmt: skip
    row = "{" + ",".join(f'"{name}":{value}' for name, value in values.items()) + "}"
    lines = message(after=row) + message("u", row, row) + message("d", row)
    [record] = decoded_messages(lines, DECODER.decode).records
    kept = keep_rows(record.words)
    form = MessageForm(HOW).rows(GOLDEN, READER._columns)
    scanned = form.scan(kept, kept.words[:, 1].astype("int8"))
    assert scanned.operations.tolist() == [1, 3, 2]
    assert compiled(lines) == plain(lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('{"ID":1,"V":"a"}', '{"V":"b"}', id="what an update does not carry is as it was"),
        pytest.param("{}", "{}", id="nothing"),
        pytest.param('{"ID":1,"ID":2}', '{"ID":1}', id="a column twice"),
        pytest.param('{"OTHER":{"a":[1]},"ID":1}', '{"OTHER":"x","ID":1}', id="columns that are not known"),
        pytest.param('{"\\u0049D":1}', '{"ID":1}', id="a name with an escape"),
        pytest.param('{ "ID" : 1 }', '{"ID":1}', id="blanks"),
        pytest.param('{"ID":1}', '{"V":"a","ID":1,"C":"c"}', id="another order"),
    ],
)  # fmt: skip
def test_an_image_is_what_the_plain_form_reads(before: str, after: str) -> None:
    lines = message("u", before, after)
    assert compiled(lines * 3) == plain(lines * 3)


def test_a_text_that_is_not_utf_8_is_refused_where_it_stands() -> None:
    bad = message(after='{"V":"?"}').replace(b"?", b"\xff")
    lines = message(after='{"V":"a"}') + bad
    assert compiled(lines).endswith(" 1")  # type: ignore[union-attr]


WITHOUT_ROW_ID = message(after='{"ID":1}').replace(b'"rid":"AAARF0AAMAAAACDAAA",', b"")
TWO_CHANGES = message(after='{"ID":1}').replace(b'"payload":[', b'"payload":[{"op":"begin"},')


@pytest.mark.parametrize(
    ("line", "count"),
    [
        pytest.param(message(after='{"ID":1}'), 1, id="as it is"),
        pytest.param(message(after='{"ID":1}', xid="0x000A.00C.0000023C"), 0, id="another form of transactions"),
        pytest.param(message(after='{"ID":1}', tm="2026-01-02T03:04:05Z"), 0, id="times as text"),
        pytest.param(message(after='{"ID":1}', attrs={"client id": "x"}), 0, id="attributes"),
        pytest.param(message(after='{"ID":1}', more=1), 0, id="a member that is not known"),
        pytest.param(message(after=None), 0, id="no image"),
        pytest.param(message("u", None, '{"ID":1}'), 0, id="no old image"),
        pytest.param(WITHOUT_ROW_ID, 0, id="no ROWID"),
        pytest.param(TWO_CHANGES, 0, id="two elements"),
        pytest.param(message(after='{"ID":1}').replace(b"}\n", b"}\r\n"), 0, id="another end of the line"),
        pytest.param(message(after='{"ID":1}').replace(b":", b": "), 0, id="blanks"),
    ],
)  # fmt: skip
def test_only_a_message_as_it_is_written_is_taken(line: bytes, count: int) -> None:
    """All others are left to the plain form, at their place."""
    records = decoded_messages(b"\n" + line * 2, DECODER.decode).records
    assert [isinstance(one, MessageRows) for one in records] == ([True] if count else [False] * 2)


def test_runs_say_what_their_messages_say() -> None:
    """Facts of a change are those that the message alone would give; tables beside each other keep their rows' order."""
    other = SCHEMA.replace('"T"', '"U"')
    lines = [message(after='{"ID":1}', scn=10 + at) for at in range(4)]
    lines[1:3] = [line.replace(SCHEMA.encode(), other.encode()) for line in lines[1:3]]
    data = b"".join(lines) + message(after='{"ID":1}', xid="04000000e9030000")
    read, alone = MessageEvents(None, {}), MessageEvents(None, {})
    ordinals, own = Ordinals(100), Ordinals(100)
    decoded = decoded_messages(data, DECODER.decode)
    found = [run for one in decoded.records for run in read.events(one, ordinals)]
    runs = [run for run in found if isinstance(run, MessageRun)]
    assert len(runs) == len(found)
    events = [event for line in data.splitlines() for event in alone.events(DECODER.decode(line), own)]  # fmt: skip
    assert [(len(run.words), run.shape().name) for run in runs] == [(2, "T"), (2, "U"), (1, "T")]
    for event in events:
        assert isinstance(event, MessageEvent)
        [(run, row)] = [(run, row) for run in runs for row in run.words.tolist() if row[15] == event.ordinal]  # fmt: skip
        assert (run.table, run.xid, run.commit_scn) == (event.table, event.xid, event.commit_scn)
        assert (row[2], row[7]) == (event.scn, event.thread)
        assert event.moment == datetime(2026, 1, 1)
        assert row[6] == 1767225600
    assert read.state() == alone.state() == {"database": "ORCL"}
    assert [decoded.offsets[at] for at in (0, 1)] == [0, sum(map(len, itertools.islice(lines, 4)))]


def test_more_tables_than_the_loops_number_and_short_lines() -> None:
    """What has no room is left to the plain form; nothing is lost."""
    lines = [message(after='{"ID":1}').replace(b'"T"', b'"T%d"' % at) for at in range(70)]
    records = decoded_messages(b"".join(lines) + b"\n" * 9000, DECODER.decode).records
    rows = [record.words for record in records if isinstance(record, MessageRows)]
    assert sum(map(len, rows)) == 64
    assert len(records) == 1 + 6
