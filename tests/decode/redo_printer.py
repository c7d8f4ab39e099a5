"""Prints typed rows as SQL_REDO, in Oracle's grammar; knows nothing of the decoder. And strategies for rows to print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cdc_core.schema.table import TableSchema
from tests.decode.golden_table import GOLDEN

Row = dict[str, Any]


@dataclass(frozen=True)
class Statement:
    """A printed statement and what it means: LogMiner's operation code, carried columns before and after."""

    sql: str
    op: int
    before: Row | None
    after: Row | None


def print_insert(row: Row, texts: dict[str, str], schema: TableSchema = GOLDEN) -> str:
    names = ",".join(f'"{name}"' for name in row)
    values = ",".join(texts[name] for name in row)
    return f"insert into {schema.table.sql}({names}) values ({values});"


def print_where(row: Row, texts: dict[str, str], alias: str) -> str:
    predicates = (
        f'{alias}"{name}" IS NULL' if value is None else f'{alias}"{name}" = {texts[name]}'
        for name, value in row.items()
    )
    return " where " + " and ".join(predicates) if row else ""


def print_update(
    before: Row, changed: Row, old_texts: dict[str, str], new_texts: dict[str, str], alias: str
) -> str:
    dotted = f"{alias}." if alias else ""
    sets = ", ".join(f'{dotted}"{name}" = {new_texts[name]}' for name in changed)
    where = print_where(before, old_texts, dotted)
    return f"update {GOLDEN.table.sql}{alias and ' '}{alias} set {sets}{where};"


def print_delete(before: Row, texts: dict[str, str], alias: str) -> str:
    where = print_where(before, texts, f"{alias}." if alias else "")
    return f"delete from {GOLDEN.table.sql}{alias and ' '}{alias}{where};"


# Literals: each strategy gives (value, one of the texts that Oracle may print for it). ------------------------------


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def unistr(text: str) -> str:
    """As LogMiner prints national text: what is not ASCII in UTF-16 code units."""
    units = []
    for character in text:
        if character == "\\":
            units.append("\\\\")
        elif character == "'":
            units.append("''")
        elif character < "\x80":
            units.append(character)
        else:
            code = character.encode("utf-16-be")
            units.extend(f"\\{code[at : at + 2].hex().upper()}" for at in range(0, len(code), 2))
    return f"UNISTR('{''.join(units)}')"


def number_text(number: Decimal, form: int) -> str:
    """``.5`` for 0.5 as Oracle prints it, with leading zero, or with an exponent."""
    plain = f"{number:f}"
    if form == 1:
        return plain
    if form == 2:
        return f"{number:E}"
    stripped = plain.replace("0.", ".", 1) if plain.lstrip("-").startswith("0.") else plain
    return stripped if stripped.strip("-.") else "0"


_TEXT = st.text(
    alphabet=st.one_of(st.sampled_from("ab'|()\\, ;\"N"), st.characters(exclude_categories=["Cs"])),
    min_size=1,
    max_size=40,
)
_SPLIT_TEXT = st.tuples(_TEXT, _TEXT)
_MOMENTS = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31, 23, 59, 59))


def _decimals(precision: int, scale: int) -> st.SearchStrategy[tuple[Any, str]]:
    most = 10**precision - 1
    return st.tuples(st.integers(-most, most), st.sampled_from([0, 0, 0, 1, 2])).map(
        lambda drawn: (
            (
                number := Decimal(drawn[0]).scaleb(-scale, None)
                if precision <= 28
                else _exact(drawn[0], scale)
            ),
            quoted(number_text(number, drawn[1])),
        )
    )


def _exact(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _integers(most: int) -> st.SearchStrategy[tuple[Any, str]]:
    return st.tuples(st.integers(-most, most), st.booleans()).map(
        lambda drawn: (drawn[0], quoted(str(drawn[0])) if drawn[1] else str(drawn[0]))
    )


def _number() -> st.SearchStrategy[tuple[Any, str]]:
    def made(drawn: tuple[int, int, int]) -> tuple[str, str]:
        number = _exact(drawn[0], drawn[1])
        canonical = f"{number:f}"
        if "." in canonical:
            canonical = canonical.rstrip("0").rstrip(".")
        return "0" if canonical == "-0" else canonical, quoted(number_text(number, drawn[2]))

    return st.tuples(
        st.integers(-(10**40) + 1, 10**40 - 1) | st.integers(-10000, 10000),
        st.integers(-20, 60),
        st.sampled_from([0, 0, 1, 2]),
    ).map(made)


def _moment_text(moment: datetime, fraction: str) -> str:
    return moment.replace(microsecond=0).isoformat(sep=" ") + fraction


def _dates() -> st.SearchStrategy[tuple[Any, str]]:
    def made(drawn: tuple[datetime, bool]) -> tuple[Any, str]:
        moment, is_signed = drawn[0].replace(microsecond=0), drawn[1]
        blank, sign = (" ", "S") if is_signed else ("", "")
        text = f"TO_DATE('{blank}{_moment_text(moment, '')}', '{sign}YYYY-MM-DD HH24:MI:SS')"
        return moment, text

    return st.tuples(_MOMENTS, st.booleans()).map(made)


def _timestamps(digits: int) -> st.SearchStrategy[tuple[Any, str]]:
    def made(drawn: tuple[datetime, int, bool, bool]) -> tuple[Any, str]:
        moment, number, padded, is_signed = drawn
        fraction = f".{number:0{digits}d}" + ("000" if padded and digits == 6 else "")
        blank = " " if is_signed else ""
        text = f"TO_TIMESTAMP('{blank}{_moment_text(moment, fraction)}')"
        if digits == 9:
            return _moment_text(moment, fraction), text
        return moment.replace(microsecond=number), text

    return st.tuples(_MOMENTS, st.integers(0, 10**digits - 1), st.booleans(), st.booleans()).map(
        made
    )


def _zoned() -> st.SearchStrategy[tuple[Any, str]]:
    def made(drawn: tuple[datetime, int, int, int, bool]) -> tuple[Any, str]:
        moment, number, digits, offset, is_signed = drawn
        fraction = f"{number:09d}"[:digits]
        sign = "-" if offset < 0 else "+"
        zone = f"{sign}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
        value = f"{_moment_text(moment, '.' + fraction.ljust(9, '0'))} {zone}"
        printed = _moment_text(moment, f".{fraction}" if digits else "")
        return value, f"TO_TIMESTAMP_TZ('{' ' if is_signed else ''}{printed} {zone}')"

    return st.tuples(
        _MOMENTS,
        st.integers(0, 10**9 - 1),
        st.integers(0, 9),
        st.integers(-840, 840),
        st.booleans(),
    ).map(made)


_SIGNS = st.sampled_from(["", "+", "-"])


def _years_to_months() -> st.SearchStrategy[tuple[Any, str]]:
    return st.tuples(_SIGNS, st.integers(0, 10**9 - 1), st.integers(0, 11), st.integers(1, 9)).map(
        lambda drawn: (
            f"{'-' if drawn[0] == '-' else ''}{drawn[1]}-{drawn[2]:02d}",
            f"TO_YMINTERVAL('{drawn[0]}{drawn[1]:0{drawn[3]}d}-{drawn[2]:02d}')",
        )
    )


def _days_to_seconds() -> st.SearchStrategy[tuple[Any, str]]:
    def made(drawn: tuple[str, int, int, int, int, int]) -> tuple[Any, str]:
        sign, days, seconds, nanos, width, digits = drawn
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        fraction = f"{nanos:09d}"[:digits]
        value = f"{'-' if sign == '-' else ''}{days} {clock}.{fraction.ljust(9, '0')}"
        point = f".{fraction}" if digits else ""
        return value, f"TO_DSINTERVAL('{sign}{days:0{width}d} {clock}{point}')"

    return st.tuples(
        _SIGNS,
        st.integers(0, 10**9 - 1),
        st.integers(0, 86399),
        st.integers(0, 10**9 - 1),
        st.integers(1, 9),
        st.integers(0, 9),
    ).map(made)


def _texts() -> st.SearchStrategy[tuple[Any, str]]:
    return st.one_of(
        _TEXT.map(lambda text: (text, quoted(text))),
        _TEXT.map(lambda text: (text, unistr(text))),
        _SPLIT_TEXT.map(lambda pair: ("".join(pair), f"{unistr(pair[0])} || {unistr(pair[1])}")),
        _SPLIT_TEXT.map(lambda pair: ("".join(pair), f"{quoted(pair[0])} || {unistr(pair[1])}")),
    )


def _doubles() -> st.SearchStrategy[tuple[Any, str]]:
    return st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.booleans()).map(
        lambda drawn: (drawn[0], quoted(f"{drawn[0]:.16E}" if drawn[1] else repr(drawn[0])))
    )


def _floats() -> st.SearchStrategy[tuple[Any, str]]:
    return st.floats(width=32, allow_nan=False, allow_infinity=False).map(
        lambda number: (number, quoted(f"{np.float32(number):.8E}"))
    )


LITERALS: dict[str, st.SearchStrategy[tuple[Any, str]]] = {
    "ID": _integers(10**10 - 1),
    "V": _texts(),
    "C": _TEXT.map(lambda text: (text.ljust(50), quoted(text.ljust(50)))),
    "NV": _texts(),
    "L": st.one_of(_texts(), st.just(("", "EMPTY_CLOB()"))),
    "I": _integers(10**18 - 1),
    "NEG": _integers(10**12 - 1).map(lambda drawn: (drawn[0] * 100, f"'{drawn[0] * 100}'")),
    "N92": _decimals(9, 2),
    "BIG": _decimals(38, 0),
    "WIDE": _decimals(38, 17),
    "SMALL": _decimals(3, 5),
    "N": _number(),
    "F": _number(),
    "BD": _doubles(),
    "BF": _floats(),
    "D": _dates(),
    "T6": _timestamps(6),
    "T9": _timestamps(9),
    "R": st.binary(min_size=1, max_size=40).map(lambda raw: (raw, f"HEXTORAW('{raw.hex()}')")),
    "B": st.one_of(
        st.binary(min_size=1, max_size=40).map(lambda raw: (raw, f"HEXTORAW('{raw.hex()}')")),
        st.just((b"", "EMPTY_BLOB()")),
    ),
    "TZ": _zoned(),
    "LTZ": _timestamps(9).map(
        lambda drawn: (f"{drawn[0]} +00:00", drawn[1].replace("STAMP(", "STAMP_TZ("))
    ),
    "YM": _years_to_months(),
    "DS": _days_to_seconds(),
    "it's ü / x": _texts(),
}
"""For each golden column, values and one of their printed forms."""

_NULL = st.just((None, "NULL"))


def _rows(names: list[str]) -> st.SearchStrategy[tuple[Row, dict[str, str]]]:
    cells = st.fixed_dictionaries({name: st.one_of(LITERALS[name], _NULL) for name in names})
    return cells.map(
        lambda drawn: (
            {name: cell[0] for name, cell in drawn.items()},
            {name: cell[1] for name, cell in drawn.items()},
        )
    )


_NAMES = st.lists(st.sampled_from(list(LITERALS)), min_size=1, unique=True)
_ALIASES = st.sampled_from(["", "", "a"])


@st.composite
def statements(draw: Callable[..., Any]) -> Statement:
    """INSERTs, UPDATEs and DELETEs of the golden table with any of its columns in any order."""
    op = draw(st.sampled_from([1, 2, 3]))
    row, texts = draw(_NAMES.flatmap(_rows))
    if op == 1:
        return Statement(print_insert(row, texts), 1, None, row)
    if op == 2:
        return Statement(print_delete(row, texts, draw(_ALIASES)), 2, row, None)
    changed, new_texts = draw(_NAMES.flatmap(_rows))
    sql = print_update(row, changed, texts, new_texts, draw(_ALIASES))
    return Statement(sql, 3, row, row | changed)
