"""Expressions give what Oracle 19c gives, or its error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracle_embedded.api import OracleError

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 / 4", "2.5"),
        ("1 / 3", ".3333333333333333333333333333333333333333"),
        ("99999999999999999999999999999999999999 + 1", "100000000000000000000000000000000000000"),
        ("mod(11, -4)", "3"),
        ("mod(7, 0)", "7"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(1234.567, -2)", "1200"),
        ("trunc(-1.9)", "-1"),
        ("floor(-1.1)", "-2"),
        ("ceil(-1.1)", "-1"),
        ("power(2, 10)", "1024"),
        ("sign(-5)", "-1"),
        ("abs(-5.5)", "5.5"),
        ("'a' || null || 'b'", "ab"),
        ("nvl('', 'empty is null')", "empty is null"),
        ("nvl2(null, 1, 2)", "2"),
        ("coalesce(null, null, 'x')", "x"),
        ("nullif(1, 1)", None),
        ("decode(null, null, 'null equals null', 'no')", "null equals null"),
        ("decode(3, 1, 'a', 2, 'b')", None),
        ("case when 1 > 2 then 'a' else 'b' end", "b"),
        ("case 2 when 1 then 'a' when 2 then 'b' end", "b"),
        ("substr('abcdef', -3, 2)", "de"),
        ("substr('abcdef', 0, 2)", "ab"),
        ("substr('abc', 5)", None),
        ("instr('abcabc', 'c', 1, 2)", "6"),
        ("instr('abcabc', 'b', -1)", "5"),
        ("length('zoë')", "3"),
        ("lengthb('zoë')", "4"),
        ("length('')", None),
        ("initcap('heLLo wORLD')", "Hello World"),
        ("lpad('7', 3, '0')", "007"),
        ("rpad('abc', 2)", "ab"),
        ("trim(both 'x' from 'xxaxx')", "a"),
        ("ltrim('xyxa', 'xy')", "a"),
        ("replace('aXbX', 'X')", "ab"),
        ("translate('abc', 'abx', 'AB')", "ABc"),
        ("ascii('A')", "65"),
        ("chr(65)", "A"),
        ("greatest(1, 3, 2)", "3"),
        ("least('b', 'a')", "a"),
        ("regexp_replace('a1b22', '[[:digit:]]+', '#')", "a#b#"),
        ("regexp_substr('key=value', '[^=]+', 1, 2)", "value"),
        (r"regexp_replace('John Smith', '(\w+) (\w+)', '\2 \1')", "Smith John"),
        ("hextoraw('FF0a')", "ff0a"),
        ("rawtohex(hextoraw('ff'))", "FF"),
        ("unistr('\\00e9\\D83D\\DD25')", "é🔥"),
        ("q'[it's]'", "it's"),
        ("standard_hash('a', 'MD5')", "0cc175b9c0f1b6a831c399e269772661"),
        ("dump('AB')", "Typ=96 Len=2: 65,66"),
        ("to_char(1234567.891, 'FM9,999,999.00')", "1,234,567.89"),
        ("to_char(12, '999')", "  12"),
        ("to_char(-12, '999')", " -12"),
        ("to_char(1234, '99')", "###"),
        ("to_char(255, 'FMXX')", "FF"),
        ("to_char(0.5)", ".5"),
        ("to_number('1,234.5', '9,999.9')", "1234.5"),
        ("to_char(date '2024-02-29', 'FMDay, DD Month YYYY')", "Thursday, 29 February 2024"),
        ("to_char(date '2024-12-30', 'IYYY-IW')", "2025-01"),
        ("to_date('29-FEB-24', 'DD-MON-RR')", "2024-02-29 00:00:00"),
        ("to_date('2024-01-02 03:04:05 PM', 'YYYY-MM-DD HH:MI:SS AM')", "2024-01-02 15:04:05"),
        ("date '2024-03-31' - date '2024-03-01'", "30"),
        ("date '2024-01-31' + 1.5", "2024-02-01 12:00:00"),
        ("add_months(date '2024-01-31', 1)", "2024-02-29 00:00:00"),
        ("months_between(date '2024-03-15', date '2024-01-15')", "2"),
        ("last_day(date '2024-02-10')", "2024-02-29 00:00:00"),
        ("next_day(date '2024-02-29', 'MONDAY')", "2024-03-04 00:00:00"),
        ("trunc(date '2024-05-17', 'Q')", "2024-04-01 00:00:00"),
        ("trunc(date '2024-05-17', 'IW')", "2024-05-13 00:00:00"),
        ("date '2024-01-01' + interval '1 02:03:04' day to second", "2024-01-02 02:03:04"),
        ("date '2024-01-31' - interval '1' month + 0", "2023-12-31 00:00:00"),
        ("extract(month from date '2024-05-17')", "5"),
        ("extract(second from timestamp '2024-05-17 01:02:03.25')", "3.25"),
        ("to_char(timestamp '2024-05-17 01:02:03.123456', 'SS.FF3')", "03.123"),
        ("to_char(timestamp '2024-05-17 01:02:03.5', 'SS.FF')", "03.500000000"),
        ("to_char(cast(timestamp '2024-05-17 01:02:03.5' as timestamp(3)), 'SS.FF')", "03.500"),
        ("to_char(cast(timestamp '2024-05-17 01:02:03.4' as timestamp(0)), 'SS.FF')", "03."),
        (
            "to_char(cast(timestamp '2024-05-17 01:02:03.5 +02:00' as timestamp(2) with time zone), 'SS.FF TZH')",
            "03.50 +02",
        ),
        (
            "cast(timestamp '2024-05-17 01:02:03.5' as timestamp(3)) || ''",
            "17-MAY-24 01.02.03.500 AM",
        ),
        (
            "to_char(timestamp '2024-05-17 12:00:00 +02:00' at time zone 'UTC', 'HH24:MI TZH:TZM')",
            "10:00 +00:00",
        ),
        ("cast('12.345' as number(10,1))", "12.3"),
        ("cast('abc' as varchar2(2))", "ab"),
        ("cast('a' as char(3)) || '|'", "a  |"),
        ("sys_context('userenv', 'current_schema')", "DEMO"),
        ("user", "DEMO"),
        ("1d / 2", 0.5),
        ("dbms_lob.substr(to_clob('abcdef'), 2, 3)", "cd"),
        ("utl_raw.cast_to_varchar2(hextoraw('4142'))", "AB"),
        ("(select max(level) from dual connect by level <= 5)", "5"),
    ],
)
def test_an_expression_has_oracles_value(shared: Client, expression: str, value: object) -> None:
    assert shared.one(f"select {expression} from dual") == value


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("selec 1 from dual", 900),
        ("select 1", 923),
        ("select from dual", 936),
        ("select 1 from dual where", 936),
        ("select 1 from dual dual2 dual3", 933),
        ("select 1 from dual;", 911),
        ("select 'abc from dual", 1756),
        ("select nope from dual", 904),
        ("select nope(1) from dual", 904),
        ("select substr('a') from dual", 938),
        ("select length('a', 'b') from dual", 909),
        ("select 1 from nope", 942),
        ("select (1 from dual", 907),
        ("select 1/0 from dual", 1476),
        ("select to_number('x') from dual", 1722),
        ("select 1 + 'x' from dual", 1722),
        ("select date '2024-02-30' from dual", 1839),
        ("select to_date('2024-13-01', 'YYYY-MM-DD') from dual", 1843),
        ("select to_date('2024-01-01', 'BAD') from dual", 1821),
        ("select to_date('2024-01-01x', 'YYYY-MM-DD') from dual", 1830),
        ("select sysdate + sysdate from dual", 975),
        ("select case when 1=1 then 1 else 'a' end from dual", 932),
        ("select count(*), dummy from dual", 937),
        ("select dummy from dual group by 1+1", 979),
        ("select 1 from dual where count(*) > 1", 934),
        ("select (select level from dual connect by level <= 2) from dual", 1427),
        ("select 1 from dual union select 1, 2 from dual", 1789),
        ("select 1 from dual union select 'a' from dual", 1790),
        ("select a.dummy from dual a, dual b where dummy = 'X'", 918),
        ("select 1 from dual order by 2", 1785),
        ("select chartorowid('none') from dual", 1410),
        ("select * from dual connect by prior dummy = dummy", 3001),
        ("select unistr('\\12') from dual", 30186),
        ("select :1 from dual", 1008),
    ],
)
def test_what_oracle_refuses_is_refused_with_its_code(
    shared: Client, statement: str, code: int
) -> None:
    with pytest.raises(OracleError) as raised:
        shared(statement)
    assert raised.value.code == code


def test_a_list_holds_1000_expressions_and_as_many_sets_as_one_likes(shared: Client) -> None:
    def listed(count: int, form: str) -> str:
        return ", ".join(form.format(n) for n in range(count))

    assert shared.one(f"select 1 from dual where 7 in ({listed(1000, '{}')})") == "1"
    sets = listed(1001, "({}, 'x')")
    assert shared.one(f"select 1 from dual where (7, 'x') in ({sets})") == "1"
    for condition in ("7 in", "7 not in", "7 = any"):
        with pytest.raises(OracleError) as raised:
            shared(f"select 1 from dual where {condition} ({listed(1001, '{}')})")
        assert (raised.value.code, raised.value.offset > 4000) == (1795, True)


def test_many_conditions_stand_side_by_side(shared: Client) -> None:
    terms = " or ".join(f"dummy = '{n}' and {n} = {n}" for n in range(3000))
    assert shared.one(f"select count(*) from dual where {terms} or dummy = 'X'") == "1"
    assert shared.one(f"select count(*) from dual where {terms}") == "0"


def test_an_error_tells_where_it_is(shared: Client) -> None:
    with pytest.raises(OracleError) as raised:
        shared("select dummy,\n nope from dual")
    assert raised.value.offset == 15


def test_binds_have_the_types_that_the_client_declares(shared: Client) -> None:
    assert shared.one("select :a || :b from dual", 1, "x") == "1x"
    assert shared.one("select :a + 1 from dual", "41") == "42"


def test_describe_shows_types_precisely(shared: Client) -> None:
    columns = shared.session.parse(
        "select cast(1 as number(10,2)) a, 'abc' b, sysdate c, count(*) d, cast(null as timestamp(3)) e from dual"
    ).columns
    shown = [(c.name, int(c.type), c.precision, c.scale, c.size, c.nullable) for c in columns]
    assert shown == [
        ("A", 2, 10, 2, 22, True),
        ("B", 96, 0, 0, 3, True),
        ("C", 12, 0, 0, 7, True),
        ("D", 2, 0, -127, 22, True),
        ("E", 180, 0, 3, 11, True),
    ]
