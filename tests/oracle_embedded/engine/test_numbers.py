"""NUMBERs through the driver: every digit that Oracle keeps, and no more."""

from __future__ import annotations

from decimal import Decimal, localcontext

import oracledb
import pytest

_EDGES = [
    pytest.param("7", id="one-digit"),
    pytest.param("1234567890123456789012345678", id="28-digits"),
    pytest.param("12345678901234567890123456789", id="29-digits"),
    pytest.param("12345678901234567890123456789012345678", id="38-digits"),
    pytest.param("123456789012345678901234567890123456789", id="39-digits"),
    pytest.param("1234567890123456789012345678901234567891", id="40-digits"),
    pytest.param("0.1234567890123456789012345678901234567891", id="40-digits-behind-the-point"),
    pytest.param("1E-130", id="least"),
    pytest.param("9.999999999999999999999999999999999999999E125", id="greatest"),
    pytest.param("1.234567890123456789012345678901234567891E99", id="beyond-64-characters"),
]


@pytest.mark.parametrize("text", _EDGES)
@pytest.mark.parametrize("sign", ["", "-"], ids=["positive", "negative"])
def test_signs_and_texts_keep_every_digit(
    driver: oracledb.Connection, sign: str, text: str
) -> None:
    with localcontext(prec=60):
        value = Decimal(sign + text)
        cursor = driver.cursor()
        cursor.setinputsizes(n=Decimal)
        cursor.execute(
            "select :n, -:n, abs(:n), to_number(to_char(:n, 'TM9')), to_number(to_char(:n, 'TME')),"
            " utl_raw.cast_to_number(utl_raw.cast_from_number(:n)) from dual",
            n=value,
        )
        assert cursor.fetchone() == (value, -value, abs(value), value, value, value)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        pytest.param("to_char(1/3, 'TM9')", "." + "3" * 40, id="third"),
        pytest.param("to_char(1E40, 'TM9')", "1" + "0" * 40, id="beyond-40-places"),
        pytest.param("to_char(1E63, 'TM9')", "1" + "0" * 63, id="64-characters"),
        pytest.param("to_char(1E64, 'TM9')", "1E+64", id="65-characters"),
        pytest.param("to_char(-1E63, 'TM9')", "-1E+63", id="64-digits-and-a-sign"),
        pytest.param("to_char(1234.5, 'TME')", "1.2345E+03", id="scientific-on-request"),
        pytest.param("to_char(0, 'TME')", "0E+00", id="zero-scientific"),
        pytest.param("to_char(-.5, 'tm')", "-.5", id="lower-case"),
        pytest.param(
            "to_char(-1.5, 'TM9', 'NLS_NUMERIC_CHARACTERS='',.''')", "-1,5", id="separators"
        ),
        pytest.param("to_char(1.5, '9D9', 'nls_numeric_characters='',.''')", " 1,5", id="point"),
        pytest.param("to_char(1234.5, '9G999D9', 'NLS_NUMERIC_CHARACTERS='', ''')", " 1 234,5", id="group"),
        pytest.param(
            "to_char(-10000, 'FML99G999D99MI', 'NLS_NUMERIC_CHARACTERS = '',.'' NLS_CURRENCY = ''AusDollars'' ')",
            "AusDollars10.000,-", id="currency",
        ),
        pytest.param(
            "to_char(12345678901234567890123456789.5, 'FM9999999999999999999999999999990.0')",
            "12345678901234567890123456789.5", id="nines",
        ),
        pytest.param(
            "to_char(12345678901234567890123456789012345678, '9.9999999999999999999999999999999999999EEEE')",
            "  1.2345678901234567890123456789012345678E+37", id="eeee",
        ),
        pytest.param("to_char(0.125, '9.99EEEE')", "  1.25E-01", id="eeee-fraction"),
        pytest.param("to_char(1.25, '9.9EEEE')", "  1.3E+00", id="eeee-rounds-half-up"),
        pytest.param("to_char(-9.96, '9.9EEEE')", " -1.0E+01", id="eeee-carries"),
        pytest.param("to_char(1E100, '9EEEE')", "  1E+100", id="eeee-three-digits"),
        pytest.param("to_char(1E41)", "1." + "0" * 34 + "E+41", id="without-format"),
    ],
)  # fmt: skip
def test_formats_print_as_documented(
    driver: oracledb.Connection, expression: str, text: str
) -> None:
    cursor = driver.cursor()
    cursor.execute(f"select {expression} from dual")
    assert cursor.fetchone() == (text,)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param("variance(n)", Decimal("0.5"), id="variance"),
        pytest.param("median(n)", Decimal("1" + "0" * 37 + ".5"), id="median"),
    ],
)
def test_aggregates_keep_forty_digits(
    driver: oracledb.Connection, expression: str, value: Decimal
) -> None:
    with localcontext(prec=60):
        cursor = driver.cursor()
        cursor.execute(
            f"select {expression} from (select 1E37 n from dual union all select 1E37 + 1 from dual)"
        )
        assert cursor.fetchone() == (value,)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        pytest.param(".1724913868035583123456789123456789123456", ".172491386803558312345678912345678912346", id="40-digits"),
        pytest.param("1/3", "." + "3" * 39, id="third"),
        pytest.param("-1/3", "-." + "3" * 38, id="with-a-sign"),
        pytest.param("-1234567890123456789012345678901234567.12", "-1234567890123456789012345678901234567.1", id="both-sides-of-the-point"),
        pytest.param("1E39", "1" + "0" * 39, id="40-places"),
        pytest.param("-1E39", "-1." + "0" * 33 + "E+39", id="40-places-and-a-sign"),
        pytest.param("-999999999999999999999999999999999999999.9", "-1." + "0" * 33 + "E+39", id="rounded-beyond-them"),
        pytest.param("-1E-130", "-1." + "0" * 32 + "E-130", id="least"),
    ],
)  # fmt: skip
def test_the_text_of_a_number_in_sql_has_40_characters(
    driver: oracledb.Connection, number: str, text: str
) -> None:
    cursor = driver.cursor()
    cursor.execute(f"select to_char({number}), '' || {number}, to_number({number}) from dual")
    assert cursor.fetchone() == (text, text, Decimal(text))
    assert len(text) <= 40


def test_a_program_prints_40_digits_behind_the_point(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    printed, counted = cursor.var(str), cursor.var(str)
    cursor.execute(
        "declare n number := 1/3; begin :1 := n; select to_char(n) into :2 from dual; end;",
        [printed, counted],
    )
    assert (printed.getvalue(), counted.getvalue()) == ("." + "3" * 40, "." + "3" * 39)
