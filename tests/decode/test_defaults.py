"""A DEFAULT clause is applied to older rows where it is a literal, and refused where it is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.decode.defaults import default_scalar
from cdc_core.errors import SchemaMismatchError
from cdc_core.schema.table import Column
from cdc_core.schema.types import arrow_type
from tests.decode.golden_table import GOLDEN, column

_COLUMNS = {one.name: one for one in GOLDEN.columns} | {
    "T3": column("T3", "TIMESTAMP(3)"),
    "C": replace(column("C", "CHAR"), length=4, char_length=4),
    "NC": replace(column("NC", "NCHAR"), length=8, char_length=4),
    "F10": column("F10", "FLOAT", 10),
}


def _with_default(name: str, clause: str | None) -> Column:
    return replace(_COLUMNS[name], default=clause)


@pytest.mark.parametrize(
    ("name", "clause", "value"),
    [
        pytest.param("V", "'n/a' ", "n/a", id="text-with-a-blank-behind"),
        pytest.param("V", "'it''s'", "it's", id="doubled-quote"),
        pytest.param("V", "N'é'", "é", id="national-text"),
        pytest.param("V", "UNISTR('\\00E9')", "é", id="unistr"),
        pytest.param("V", "0", "0", id="whole-number-for-text"),
        pytest.param("C", "'ab'", "ab  ", id="char-is-padded"),
        pytest.param("NC", "'é'", "é   ", id="nchar-is-padded-in-characters"),
        pytest.param("L", "EMPTY_CLOB()", "", id="empty-clob"),
        pytest.param("ID", "(( 42 ))", 42, id="parentheses"),
        pytest.param("ID", "- 1", -1, id="sign-apart"),
        pytest.param("ID", "'7'", 7, id="number-in-quotes"),
        pytest.param("N92", ".5", Decimal("0.50"), id="decimal"),
        pytest.param("N", "1e3", "1000", id="number"),
        pytest.param("F", "0.1", "0.1", id="float"),
        pytest.param("BD", "0.1", 0.1, id="binary-double"),
        pytest.param("NEG", "1200", 1200, id="negative-scale"),
        pytest.param("D", "DATE '2024-02-29'", datetime(2024, 2, 29), id="date-literal"),
        pytest.param(
            "D", "to_date('1900-01-01','yyyy-mm-dd')", datetime(1900, 1, 1), id="to-date-of-a-day"
        ),
        pytest.param(
            "T3",
            "TIMESTAMP '2024-01-01 01:02:03.25'",
            datetime(2024, 1, 1, 1, 2, 3, 250000),
            id="timestamp-literal",
        ),
        pytest.param(
            "T9",
            "TIMESTAMP '2024-01-01 01:02:03.123456789'",
            "2024-01-01 01:02:03.123456789",
            id="timestamp-with-nanoseconds",
        ),
        pytest.param("R", "HEXTORAW('0aff')", b"\x0a\xff", id="raw"),
        pytest.param("R", "'0aff'", b"\x0a\xff", id="raw-from-text"),
    ],
)
def test_default_scalar_gives_the_literals_value(name: str, clause: str, value: Any) -> None:
    made = default_scalar(_with_default(name, clause))
    assert made is not None
    assert made.as_py() == value
    assert made.type == arrow_type(_COLUMNS[name])


@pytest.mark.parametrize("clause", [None, "", "  ", "NULL", "null ", "(NULL)", "''"])
def test_default_scalar_is_none_for_null(clause: str | None) -> None:
    assert default_scalar(_with_default("V", clause)) is None


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        pytest.param("D", "SYSDATE", id="clock"),
        pytest.param("ID", '"S"."SEQ"."NEXTVAL"', id="sequence"),
        pytest.param("ID", "1 + 1", id="arithmetic"),
        pytest.param("V", "USER", id="session"),
        pytest.param("V", "'a' || 'b'", id="concatenation"),
        pytest.param("V", "('a') || ('b')", id="concatenation-in-parentheses"),
        pytest.param("V", "1.5", id="fraction-for-text"),
        pytest.param("V", "q'[a]'", id="alternative-quotes"),
        pytest.param("D", "'2024-01-01'", id="date-by-session-format"),
        pytest.param("D", "TO_DATE('01-JAN-24','DD-MON-RR')", id="date-by-another-format"),
        pytest.param("D", "TO_DATE('2024-01-01 00:00:00')", id="date-without-format"),
        pytest.param("N92", "1.234", id="would-be-rounded"),
        pytest.param("ID", "1.5", id="fraction-for-a-whole-number"),
        pytest.param("NEG", "1250", id="negative-scale-would-round"),
        pytest.param("F10", "0.12345", id="float-would-be-rounded"),
        pytest.param("T3", "TIMESTAMP '2024-01-01 01:02:03.1234'", id="seconds-would-be-rounded"),
        pytest.param("C", "'é'", id="char-in-bytes-beyond-ascii"),
        pytest.param("ID", "'x'", id="text-for-a-number"),
        pytest.param("R", "'0g'", id="no-hex"),
    ],
)
def test_default_scalar_refuses_what_is_no_exact_literal(name: str, clause: str) -> None:
    with pytest.raises(SchemaMismatchError) as raised:
        default_scalar(_with_default(name, clause))
    assert raised.value.facts["column"] == name
    assert "snapshot" in raised.value.hint
    assert clause not in str(raised.value)


def test_a_default_is_in_the_form_that_the_lake_holds() -> None:
    """Older rows get the same value as rows that carry it; one that the form does not hold stops the table."""
    flag = Column("FLAG", "NUMBER", 22, 0, 1, 0, nullable=True, default="1", held_as="boolean")
    token = Column("TOKEN", "RAW", 8, 0, None, None, True, "HEXTORAW('00FF')", held_as="hex")
    assert default_scalar(flag) == pa.scalar(True)
    assert default_scalar(token) == pa.scalar("00ff")
    with pytest.raises(SchemaMismatchError, match="neither 0 nor 1"):
        default_scalar(replace(flag, default="2"))
