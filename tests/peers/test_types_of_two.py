"""Every type of the type table, through Debezium's connector and through Redolake: the same values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.peers.debezium import require_debezium
from tests.peers.exact import Options
from tests.peers.typed_readers import compare
from tests.steps.test_type_parity import TYPES, Types

pytestmark = pytest.mark.slow

SECONDS = "DATE, TIMESTAMP(0-6)"
MORE: dict[str, dict[str, list[str]]] = {
    SECONDS: {
        f"TIMESTAMP({digits})": ["TIMESTAMP '2018-03-27 12:34:56.125456789'"]
        for digits in (1, 2, 4, 5)
    },
    "TIMESTAMP WITH TIME ZONE": {
        "TIMESTAMP(3) WITH TIME ZONE": ["TIMESTAMP '2018-03-27 01:34:56.5 -11:00'"]
    },
}
PLAYED = {label: {**group, **MORE.get(label, {})} for label, group in TYPES.items()}
OPTIONS = {
    "defaults": Options(),
    "texts": Options(
        {
            "decimal.handling.mode": "string",
            "time.precision.mode": "isostring",
            "interval.handling.mode": "string",
            "binary.handling.mode": "hex",
        },
        {
            **dict.fromkeys(("NUMBER", "FLOAT"), "text"),
            **dict.fromkeys(("RAW", "BLOB"), "hex"),
            **dict.fromkeys(
                (
                    "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH LOCAL TIME ZONE", "INTERVAL YEAR TO MONTH",
                    "INTERVAL DAY TO SECOND",
                ),
                "iso8601",
            ),
        },
    ),
    "numbers": Options(
        {
            "decimal.handling.mode": "double",
            "time.precision.mode": "microseconds",
            "interval.handling.mode": "numeric",
            "binary.handling.mode": "base64",
        },
        {
            **dict.fromkeys(("NUMBER", "FLOAT"), "double"),
            **dict.fromkeys(("RAW", "BLOB"), "base64"),
            **dict.fromkeys(
                ("DATE", "TIMESTAMP", "INTERVAL YEAR TO MONTH", "INTERVAL DAY TO SECOND"),
                "microseconds",
            ),
        },
    ),
    "nanoseconds": Options(
        {"time.precision.mode": "nanoseconds", "binary.handling.mode": "base64-url-safe"},
        {
            **dict.fromkeys(("DATE", "TIMESTAMP"), "nanoseconds"),
            **dict.fromkeys(("RAW", "BLOB"), "base64url"),
        },
    ),
    "connect": Options({"time.precision.mode": "connect"}),
    "redo_log_catalog": Options({"log.mining.strategy": "redo_log_catalog"}),
}  # fmt: skip
YEAR_9, DAY_9 = "INTERVAL YEAR(9) TO MONTH", "INTERVAL DAY(9) TO SECOND(9)"
Literals = Mapping[str, tuple[str, ...]]
UNFIT: dict[str, Literals] = {
    "numbers": {
        YEAR_9: ("INTERVAL '123456789-11' YEAR(9) TO MONTH",),
        DAY_9: ("INTERVAL '-999999999 23:59:59.999999999' DAY(9) TO SECOND(9)",),
        "TIMESTAMP(7)": ("TIMESTAMP '2001-02-03 04:05:06.1234567'",),
        "TIMESTAMP(9)": (
            "TIMESTAMP '2001-02-03 04:05:06.000000001'", "DATE '-4712-01-01'", "DATE '1500-02-29'",
        ),
    },
    "nanoseconds": {
        "DATE": ("DATE '1600-03-01'",),
        "TIMESTAMP(6)": ("TIMESTAMP '9999-12-31 23:59:59.999999'",),
        "TIMESTAMP(9)": ("DATE '-4712-01-01'", "DATE '1500-02-29'"),
    },
}  # fmt: skip


EMPTY_LOBS: Literals = {
    "CLOB": ("EMPTY_CLOB()",),
    "NCLOB": ("EMPTY_CLOB()",),
    "BLOB": ("EMPTY_BLOB()",),
}
NOT_FINITE: Literals = {
    "BINARY_DOUBLE": ("BINARY_DOUBLE_INFINITY", "BINARY_DOUBLE_NAN"),
    "BINARY_FLOAT": ("-BINARY_FLOAT_INFINITY", "BINARY_FLOAT_NAN"),
}
EARLY: Literals = {"TIMESTAMP(9)": ("DATE '-4712-01-01'", "DATE '1500-02-29'")}
LONG_DAYS: Literals = {DAY_9: ("INTERVAL '-999999999 23:59:59.999999999' DAY(9) TO SECOND(9)",)}
FINE: Literals = {
    "TIMESTAMP(4)": ("TIMESTAMP '2018-03-27 12:34:56.125456789'",),
    "TIMESTAMP(5)": ("TIMESTAMP '2018-03-27 12:34:56.125456789'",),
    "TIMESTAMP(6)": ("TIMESTAMP '9999-12-31 23:59:59.999999'",),
    "TIMESTAMP(7)": ("TIMESTAMP '2001-02-03 04:05:06.1234567'",),
    "TIMESTAMP(9)": ("TIMESTAMP '2001-02-03 04:05:06.000000001'",),
}
EACH = "rcud"
DIFFERENT: dict[str, list[tuple[Literals, str]]] = {
    # Debezium has NULL: it parses the text of the redo by Java's rules, which know neither Inf nor Nan. Its snapshot has the values.
    "": [(NOT_FINITE, "cud"), (EMPTY_LOBS, "cu")],
    # NULL, as a number of 64 bits ends in 1677: "nanoseconds past epoch".
    "defaults": [(EARLY, EACH)],
    "redo_log_catalog": [(EARLY, EACH)],
    # The year 4712 after Christ, and a day before the one of the Julian calendar, or NULL; milliseconds where there are nanoseconds.
    "texts": [(EARLY, EACH), (LONG_DAYS, EACH)],
    # The same days; and connect has milliseconds whatever the precision, by its documentation.
    "connect": [(EARLY, EACH), (FINE, EACH)],
}  # fmt: skip
"""What Debezium 3.6.3 says otherwise, by option, and in which operations. EMPTY_CLOB() and EMPTY_BLOB() of a statement are NULL in a column
that may be NULL."""
VALUES = {
    "defaults": 696,
    "texts": 696,
    "numbers": 660,
    "nanoseconds": 672,
    "connect": 696,
    "redo_log_catalog": 696,
}


@pytest.fixture(autouse=True)
def _peer() -> None:
    require_debezium()


def fitting(types: Types, unfit: Literals) -> Types:
    """Without what a form does not hold: an error here (tests/snapshot/test_types.py), another value or NULL there."""
    return {
        label: {
            declaration: [one for one in literals if one not in unfit.get(declaration, ())]
            for declaration, literals in group.items()
        }
        for label, group in types.items()
    }


@pytest.mark.parametrize("name", OPTIONS)
def test_every_type_has_the_value_that_debezium_gives(name: str, tmp_path: Path) -> None:
    """In the rows of a snapshot and those of INSERT, UPDATE and DELETE. What differs stands in DIFFERENT, and nothing else does."""
    found = compare(tmp_path, fitting(PLAYED, UNFIT.get(name, {})), OPTIONS[name])
    listed = [*DIFFERENT[""], *DIFFERENT.get(name, [])]
    expected = {
        (declaration, literal, op)
        for values, ops in listed
        for declaration, literals in values.items()
        for literal in literals
        for op in ops
    }
    assert {(one.place.declaration, one.place.literal, one.place.op) for one in found.differing} == expected  # fmt: skip
    assert found.values == VALUES[name]


def test_debeziums_converters_are_types_as(tmp_path: Path) -> None:
    types = {
        "NUMBER(p, 0), p <= 18": {"NUMBER(1)": ["0", "1"]},
        "RAW, BLOB": {"RAW(20)": ["HEXTORAW('616263')", "HEXTORAW('C3A9')"]},
    }
    package = "io.debezium.connector.oracle.converters"
    converters = {
        "converters": "flags,texts",
        "flags.type": f"{package}.NumberOneToBooleanConverter",
        "texts.type": f"{package}.RawToStringConverter",
    }
    found = compare(tmp_path, types, Options(converters, {"NUMBER(1)": "boolean", "RAW": "text"}))
    assert found.differing == []
    assert found.values == 24


def test_extended_strings_are_those_of_debezium(tmp_path: Path) -> None:
    """Plain ones. Debezium takes the rest of the redo's text as it is: doubled quotes stay doubled, UNISTR of a national text stays."""
    quoted, national = "RPAD('it''s', 15000, 'é')", "RPAD('日', 9000, '本')"
    types = {
        "CHAR, VARCHAR2, NCHAR, NVARCHAR2, CLOB, NCLOB": {
            "VARCHAR2(32767)": ["'short'", "RPAD('x', 15000, 'é')", quoted],
            "NVARCHAR2(16000)": ["N'日本'", national],
        }
    }
    found = compare(tmp_path, types, Options(), extended_strings=True)
    assert {(one.place.literal, one.place.op) for one in found.differing} == {
        (literal, op) for literal in (quoted, national) for op in "uc"
    }
    assert found.values == 30
