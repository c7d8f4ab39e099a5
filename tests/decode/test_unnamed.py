"""Rows from before a DDL: ``COL n`` with stored bytes means what the named row means."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_core.decode import decode_dml
from cdc_core.decode.character_sets import stored_text
from cdc_core.decode.literals import LiteralRefusedError
from cdc_core.decode.unnamed import number_text
from cdc_core.errors import DecodeError, SchemaMismatchError
from cdc_core.model.operations import Operation
from cdc_core.schema.table import TableSchema
from oracle_embedded.values import (
    binary_float_from_float,
    date_from_datetime,
    double_from_float,
    interval_ds_from_nanos,
    interval_ym_from_months,
    number_from_text,
    timestamp_from_datetime,
)
from tests.decode.golden_table import GOLDEN
from tests.oracle_embedded.encodings import timestamp_tz_from_datetime

STORED = replace(
    GOLDEN,
    object_id=77,
    stored=("HIDDEN$", *GOLDEN.column_names[:4], "GEO", *GOLDEN.column_names[4:]),
    charset="WE8MSWIN1252",
    ncharset="AL16UTF16",
    time_zone="+05:45",
)
WHEN = datetime(1999, 12, 31, 23, 59, 58, 123456)
CASES = [
    pytest.param("ID", number_from_text("12"), 12, id="integer"),
    pytest.param("I", number_from_text("-999999999999999999"), -(10**18) + 1, id="18-digits"),
    pytest.param("I", number_from_text("0"), 0, id="zero"),
    pytest.param("NEG", number_from_text("1200"), 1200, id="negative-scale"),
    pytest.param("N92", number_from_text("-0.05"), Decimal("-0.05"), id="fraction"),
    pytest.param("N92", number_from_text("1234567.8"), Decimal("1234567.80"), id="odd-digits"),
    pytest.param("BIG", number_from_text("9" * 38), Decimal("9" * 38), id="38-digits"),
    pytest.param("N", number_from_text("1E125"), "1" + "0" * 125, id="large"),
    pytest.param("N", number_from_text("-1E-130"), "-0." + "0" * 129 + "1", id="tiny"),
    pytest.param("F", number_from_text("0.1"), "0.1", id="float"),
    pytest.param("V", "Grüße €".encode("cp1252"), "Grüße €", id="database-charset"),
    pytest.param("V", b"it's", "it's", id="a-quote"),
    pytest.param("NV", "日本 🔥".encode("utf-16-be"), "日本 🔥", id="national-charset"),
    pytest.param("D", date_from_datetime(WHEN), WHEN.replace(microsecond=0), id="date"),
    pytest.param("T6", timestamp_from_datetime(WHEN), WHEN, id="timestamp"),
    pytest.param(
        "T6", date_from_datetime(WHEN), WHEN.replace(microsecond=0), id="timestamp-without-fraction"
    ),
    pytest.param(
        "T9",
        timestamp_from_datetime(WHEN, 123456789),
        "1999-12-31 23:59:58.123456789",
        id="nanoseconds",
    ),
    pytest.param("BD", double_from_float(-1.1e300), -1.1e300, id="double"),
    pytest.param("BD", double_from_float(float("inf")), float("inf"), id="infinity"),
    pytest.param("BF", binary_float_from_float(0.5), 0.5, id="binary-float"),
    pytest.param("R", b"\x00\xff", b"\x00\xff", id="raw"),
    pytest.param(
        "TZ",
        timestamp_tz_from_datetime(WHEN, -330),
        "1999-12-31 18:29:58.123456000 -05:30",
        id="offset",
    ),
    pytest.param(
        "LTZ",
        timestamp_from_datetime(WHEN),
        "1999-12-31 18:14:58.123456000 +00:00",
        id="local-time",
    ),
    pytest.param(
        "LTZ",
        date_from_datetime(datetime(2024, 1, 1)),
        "2023-12-31 18:15:00.000000000 +00:00",
        id="local-time-without-fraction",
    ),
    pytest.param("YM", interval_ym_from_months(-14), "-1-02", id="months"),
    pytest.param(
        "DS", interval_ds_from_nanos(-5_000_000_001), "-0 00:00:05.000000001", id="seconds"
    ),
]


def _unnamed(column: str, stored: bytes) -> str:
    number = STORED.stored.index(column) + 1
    return f"""insert into "S"."T"("COL {number}") values (HEXTORAW('{stored.hex()}'));"""


@pytest.mark.parametrize(("column", "stored", "value"), CASES)
def test_stored_bytes_are_the_value(column: str, stored: bytes, value: object) -> None:
    decoded = decode_dml(pa.array([_unnamed(column, stored)]), STORED)
    [after] = decoded.after.to_pylist()
    assert repr(after[column]) == repr(value)
    assert decoded.absent.to_pylist() == [[name for name in GOLDEN.column_names if name != column]]


@pytest.mark.parametrize(
    ("zone", "value"),
    [
        ("+00:00", "1999-12-31 23:59:58.123456000 +00:00"),
        ("00:00", "1999-12-31 23:59:58.123456000 +00:00"),
        ("UTC", "1999-12-31 23:59:58.123456000 +00:00"),
        ("-00:30", "2000-01-01 00:29:58.123456000 +00:00"),
        ("-03:30", "2000-01-01 03:29:58.123456000 +00:00"),
        ("+14:00", "1999-12-31 09:59:58.123456000 +00:00"),
    ],
)
def test_a_local_time_is_read_in_the_zone_of_its_definition(zone: str, value: str) -> None:
    """Versions that differ by the zone alone have plans of their own."""
    text = _unnamed("LTZ", timestamp_from_datetime(WHEN))
    decoded = decode_dml(pa.array([text]), replace(STORED, time_zone=zone))
    assert decoded.after.to_pylist()[0]["LTZ"] == value


def test_every_clause_may_be_without_names() -> None:
    one, two = (number_from_text(text).hex() for text in "12")
    rows = [
        f"""update "S"."T" set "COL 3" = HEXTORAW('6e6577') where "COL 2" = HEXTORAW('{one}') and "COL 3" IS NULL;""",
        f"""delete from "UNKNOWN"."OBJ# 77" where "COL 2" = HEXTORAW('{two}') and "COL 6" = HEXTORAW('00ff');""",
    ]
    decoded = decode_dml(pa.array(rows), STORED)
    before, after = decoded.before.to_pylist(), decoded.after.to_pylist()
    assert decoded.op.to_pylist() == [Operation.UPDATE, Operation.DELETE]
    assert (before[0]["ID"], before[0]["V"], after[0]["V"]) == (1, None, "new")
    assert (before[1]["ID"], after[1]) == (2, None)


@pytest.mark.parametrize(
    ("sql", "schema"),
    [
        pytest.param(_unnamed("ID", b"\xc1\x02"), GOLDEN, id="positions-not-known"),
        pytest.param(
            """insert into "S"."T"("COL 99") values (NULL);""", STORED, id="no-such-position"
        ),
        pytest.param(_unnamed("ID", b""), STORED, id="no-bytes"),
        pytest.param(_unnamed("ID", b"\xc1\xff"), STORED, id="no-number"),
        pytest.param(_unnamed("D", b"\x01\x02"), STORED, id="no-date"),
        pytest.param(_unnamed("BD", b"\x01\x02"), STORED, id="no-double"),
        pytest.param(
            _unnamed("LTZ", timestamp_from_datetime(WHEN)),
            replace(STORED, time_zone=""),
            id="in-an-unknown-zone",
        ),
        pytest.param(
            _unnamed("LTZ", timestamp_from_datetime(WHEN)),
            replace(STORED, time_zone="Europe/Berlin"),
            id="in-the-zone-of-a-region",
        ),
        pytest.param(
            _unnamed("LTZ", timestamp_tz_from_datetime(WHEN, 60)), STORED, id="local-with-an-offset"
        ),
        pytest.param(_unnamed("TZ", timestamp_from_datetime(WHEN)), STORED, id="without-an-offset"),
        pytest.param(
            _unnamed("LTZ", date_from_datetime(datetime(1, 1, 1))), STORED, id="before-the-year-1"
        ),
        pytest.param(
            _unnamed("TZ", timestamp_from_datetime(WHEN) + b"\x94\x3c"), STORED, id="by-region"
        ),
        pytest.param(_unnamed("YM", b"\x80\x00"), STORED, id="no-interval"),
        pytest.param(_unnamed("NV", b"\xd8\x00"), STORED, id="half-a-character"),
        pytest.param(
            _unnamed("V", b"x"), replace(STORED, charset="JA16VMS"), id="unknown-character-set"
        ),
        pytest.param(
            """delete from "UNKNOWN"."OBJ# 78" where "COL 2" IS NULL;""", STORED, id="other-object"
        ),
    ],
)
def test_what_cannot_be_known_is_refused(sql: str, schema: TableSchema) -> None:
    with pytest.raises((DecodeError, SchemaMismatchError)) as caught:
        decode_dml(pa.array([sql]), schema)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("charset", "stored", "text"),
    [
        pytest.param("JA16SJIS", "93fa8160", "日\u301c", id="the-wave-dash-of-ja16sjis"),
        pytest.param("JA16SJISTILDE", "93fa8160", "日\uff5e", id="the-tilde-of-ja16sjistilde"),
        pytest.param("UTF8", "eda0bdedb4a5", "🔥", id="surrogates-one-by-one"),
        pytest.param("CL8KOI8R", "e1", "А", id="koi8"),
        pytest.param("JA16EUC", "c6fc", "日", id="euc"),
    ],
)
def test_bytes_of_a_character_set_are_its_text(charset: str, stored: str, text: str) -> None:
    assert stored_text(bytes.fromhex(stored), charset) == text


@pytest.mark.parametrize(
    ("charset", "stored"),
    [
        pytest.param("JA16EUC", "c6fca1dd", id="a-minus-sign-of-two-tables"),
        pytest.param("ZHS16GBK", "a1aa", id="a-dash-of-two-tables"),
        pytest.param("WE8MSWIN1252", "81", id="a-byte-that-the-set-leaves-undefined"),
        pytest.param("WE8EBCDIC37", "c1", id="a-set-that-is-not-known"),
    ],
)
def test_bytes_that_may_be_another_character_are_refused(charset: str, stored: str) -> None:
    with pytest.raises(LiteralRefusedError):
        stored_text(bytes.fromhex(stored), charset)


def test_number_text_refuses_infinity() -> None:
    with pytest.raises(Exception, match="number"):
        number_text(b"\xff\x65")
