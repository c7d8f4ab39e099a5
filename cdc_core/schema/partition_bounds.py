"""Which rows belong to a partition, by the bounds in the dictionary?

Said where a table is partitioned by RANGE or LIST of one column whose values the lake holds as they
are. The bounds come from the dictionary (``ALL_TAB_PARTITIONS.HIGH_VALUE``), in which Oracle prints
constants in few forms; anything else is refused, never guessed. So are values by which a statement
names a partition (``FOR (…)``).

A range ends below its own bound, and begins at the bound of the partition before it. That holds
with an interval too: what lies between two partitions has no rows, since a row would have made a
partition there. NULL lies above every value of a range (below MAXVALUE alone), and is a value of a
list like others. A DEFAULT partition has what no other one lists.

Source: Oracle Database VLDB and Partitioning Guide 19c, "Range Partitioning", "List Partitioning";
SQL Language Reference 19c, CREATE TABLE, ``range_values_clause``, ``list_values_clause``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_core.errors import SchemaMismatchError
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.schema.ddl_tokens import Token, tokens_of
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type

_DATE_FORM = ("SYYYY-MM-DD HH24:MI:SS", "NLS_CALENDAR=GREGORIAN")
_DIGITS = {"YYYY": 4, "MM": 2, "DD": 2, "HH24": 2, "MI": 2, "SS": 2}
_FORM = re.compile("(YYYY|MM|DD|HH24|MI|SS)")
_SPECIAL = ("MAXVALUE", "DEFAULT", "NULL")
_HINT = "A new snapshot brings the table back as it is now."
_NATIVE = ("NUMBER", "VARCHAR2", "DATE")


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant of a bound; moments are words."""

    kind: str
    text: str


_Bound = _Constant | str
"""A constant, or one of ``MAXVALUE``, ``DEFAULT`` and ``NULL``."""


def rows_of_partition(
    name: str,
    method: str,
    column: Column,
    before: Mapping[str, str | None],
    others: Iterable[str | None] = (),
) -> PartitionRows:
    """Which rows a partition has. Pure.

    Args:
        name: The partition.
        method: ``RANGE`` or ``LIST``; others are refused.
        column: The one column by which the table is partitioned.
        before: HIGH_VALUE of all partitions of the table, by name.
        others: That of partitions that came since, or of the same ones again.

    Raises:
        SchemaMismatchError: It cannot be said.
    """
    if name not in before:
        raise _unknown(f"the dictionary shows no partition {name} right before it")
    _check_method(method)
    _check_column(column)
    own = _bounds(before[name], column)
    beside = [_bounds(text, column) for one, text in before.items() if one != name]
    beside += [bounds for text in others if (bounds := _bounds(text, column)) != own]
    if method == "RANGE":
        return _range(name, column, own, beside)
    return _list(name, column, own, [one for bounds in beside for one in bounds])


def partition_of_value(
    value: Sequence[Token], method: str, column: Column, before: Mapping[str, str | None]
) -> str:
    """The name of the partition that takes a value, as ``FOR (…)`` has it. Pure.

    Raises:
        SchemaMismatchError: It cannot be said.
    """
    _check_method(method)
    _check_column(column)
    wanted, kind = _value(value, column), arrow_type(column)
    made = {name: _bounds(text, column) for name, text in before.items()}
    if method == "RANGE":
        _refuse_texts(column)
        limits = [(_limit(bounds), name) for name, bounds in made.items()]
        ends = [
            (bound_value(one.text, kind), name)
            for one, name in limits
            if isinstance(one, _Constant)
        ]
        above: list[Any] = [] if wanted is None else [one for one in ends if one[0] > wanted]
        found: list[str] = [name for _, name in sorted(above)]
        found += [name for one, name in limits if one == "MAXVALUE"]
    else:
        found = [name for name, bounds in made.items() if wanted in map(_worth(kind), bounds)]
        found += [name for name, bounds in made.items() if bounds == ["DEFAULT"]]
    if not found:
        raise _unknown("the dictionary shows no partition for the value")
    return found[0]


def _value(tokens: Sequence[Token], column: Column) -> Any:
    """What a value of ``FOR (…)`` is worth; None is NULL."""
    bound, used = _moment(tokens) or _bound(tokens)
    if used != len(tokens) or bound in ("DEFAULT", "MAXVALUE"):
        raise _unknown("a value by which it names a partition has an unknown form")
    if isinstance(bound, str):
        return None
    _check_bound(bound, column)
    found = bound_value(bound.text, arrow_type(column))
    if column.data_type == "DATE" and isinstance(found, datetime) and found.microsecond:
        raise _unknown("a value by which it names a partition has an unknown form")
    return found


def _worth(kind: pa.DataType) -> Callable[[_Bound], Any]:
    """What a bound of a list is worth; None is NULL, and the word DEFAULT no value."""

    def worth(bound: _Bound) -> Any:
        if isinstance(bound, _Constant):
            return bound_value(bound.text, kind)
        return None if bound == "NULL" else _Constant("word", bound)

    return worth


def _check_method(method: str) -> None:
    if method not in ("RANGE", "LIST"):
        raise _unknown(f"the table is partitioned by {method}")


def _moment(tokens: Sequence[Token]) -> tuple[_Bound, int] | None:
    """``TO_DATE`` of digits by a format of digits, which depends on no session."""
    kinds = [(one.kind, one.text) for one in tokens]
    match kinds:
        case [
            ("word", "TO_DATE"),
            ("sign", "("),
            ("string", text),
            ("sign", ","),
            ("string", form),
            ("sign", ")"),
        ]:
            parts = _FORM.split(form.upper())
            names = [one for one in parts if one in _DIGITS]
            pattern = "".join(
                f"(?P<{one}>[0-9]{{{_DIGITS[one]}}})" if one in _DIGITS else re.escape(one)
                for one in parts
            )
            is_plain = len(set(names)) == len(names)
            found = re.fullmatch(pattern, text.strip()) if is_plain else None
            others = "".join(one for one in parts if one not in _DIGITS)
            if found is None or any(map(str.isalnum, others)):
                raise _unknown("a value by which it names a partition has an unknown form")
            part = dict.fromkeys(_DIGITS, "00") | found.groupdict()
            day = "{YYYY}-{MM}-{DD} {HH24}:{MI}:{SS}".format(**part)
            return _Constant("word", day), len(tokens)
    return None


def _refuse_texts(column: Column) -> None:
    if column.data_type == "VARCHAR2":
        raise _unknown("the table is partitioned by ranges of texts")


def _range(
    name: str, column: Column, own: list[_Bound], beside: Sequence[list[_Bound]]
) -> PartitionRows:
    """Below its bound, and from the next lower one on. Texts are left out: Oracle orders them by
    the bytes of the database's character set."""
    _refuse_texts(column)
    kind = arrow_type(column)
    limits = [_limit(one) for one in beside]
    values = {bound_value(one.text, kind): one.text for one in limits if isinstance(one, _Constant)}
    high = _limit(own)
    if isinstance(high, _Constant):
        top: Any = bound_value(high.text, kind)
        values = {value: text for value, text in values.items() if value < top}
    return PartitionRows(
        partition=name,
        column=column.stored_as,
        low=values[max(values)] if values else None,
        high=_text(high),
        has_null=high == "MAXVALUE",
    )


def _list(
    name: str, column: Column, own: Sequence[_Bound], others: Sequence[_Bound]
) -> PartitionRows:
    """One of its values, or none that any other partition lists."""
    if list(own) == ["DEFAULT"]:
        unlisted = dict.fromkeys(text for one in others if (text := _text(one)) is not None)
        return PartitionRows(
            partition=name,
            column=column.stored_as,
            unlisted=tuple(unlisted),
            has_null="NULL" not in others,
        )
    if "DEFAULT" in own or "MAXVALUE" in own:
        raise _unknown("the values of a list are not understood")
    return PartitionRows(
        partition=name,
        column=column.stored_as,
        listed=tuple(text for one in own if (text := _text(one)) is not None),
        has_null="NULL" in own,
    )


def _limit(bounds: Sequence[_Bound]) -> _Bound:
    """The one bound of a range."""
    if len(bounds) != 1 or bounds[0] in ("DEFAULT", "NULL"):
        raise _unknown("the bound of a range is not understood")
    return bounds[0]


def bound_value(text: str, kind: pa.DataType) -> int | Decimal | str | datetime:
    """The value of a bound, of the Arrow type that holds the column.

    Raises:
        ValueError: The type does not hold it.
    """
    if pa.types.is_timestamp(kind):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None or len(text.partition(".")[2]) > 6:
            raise ValueError(text)
        return moment
    if pa.types.is_integer(kind):
        return int(text)
    if pa.types.is_decimal(kind):
        value = Decimal(text)
        pa.scalar(value).cast(kind)  # pa.ArrowInvalid is a ValueError
        return value
    return text


def rows_condition(
    rows: PartitionRows,
    schema: TableSchema,
    quoted: Callable[[str], str],
    literal: Callable[[Column, str], str],
) -> str:
    """The condition of the rows of a partition, or subpartition, in the SQL of which ``quoted``
    writes names and ``literal`` a bound of the dictionary: never NULL."""
    if rows.sub is not None:
        whole = rows_condition(replace(rows, sub=None), schema, quoted, literal)
        return f"({whole}) AND ({rows_condition(rows.sub, schema, quoted, literal)})"
    column = schema.held(rows.column)
    name = quoted(column.name)

    def listed(texts: Sequence[str]) -> str:
        return ", ".join(literal(column, text) for text in texts)

    terms = []
    if rows.low is not None:
        terms.append(f"{name} >= {listed([rows.low])}")
    if rows.high is not None:
        terms.append(f"{name} < {listed([rows.high])}")
    if rows.listed is not None:
        terms.append(f"{name} IN ({listed(rows.listed)})" if rows.listed else "1 = 0")
    if rows.unlisted:
        terms.append(f"{name} NOT IN ({listed(rows.unlisted)})")
    within = " AND ".join([f"{name} IS NOT NULL", *terms])
    return f"({within}) OR {name} IS NULL" if rows.has_null else within


def _check_column(column: Column) -> None:
    is_native = column.data_type in _NATIVE or column.data_type.startswith("TIMESTAMP(")
    kind = arrow_type(column) if is_native and not column.held_as else pa.null()
    holds = pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    if not (holds or column.data_type == "VARCHAR2") or pa.types.is_null(kind):
        raise _unknown(
            f"the lake does not hold the values of column {column.name} in a form that compares as Oracle compares them"
        )


def _bounds(text: str | None, column: Column) -> list[_Bound]:
    """What a HIGH_VALUE lists.

    Raises:
        SchemaMismatchError: It has a form that is not known, or constants that the column's type in
            the lake does not hold.
    """
    tokens = list(tokens_of(text or ""))
    found: list[_Bound] = []
    while tokens:
        if found and not tokens.pop(0).is_(","):
            raise _unknown("a bound in the dictionary has an unknown form")
        bound, used = _bound(tokens)
        if not isinstance(bound, str):
            _check_bound(bound, column)
        found.append(bound)
        tokens = tokens[used:]
    if not found:
        raise _unknown("the dictionary shows no bound of a partition")
    return found


def _bound(tokens: Sequence[Token]) -> tuple[_Bound, int]:
    """The first constant, and how many tokens it takes."""
    kinds = tuple((one.kind, one.text) for one in tokens[:8])
    match kinds:
        case (("word", word), *_) if word in _SPECIAL:
            return word, 1
        case (("sign", "-"), ("number", digits), *_):
            return _Constant("number", f"-{digits}"), 2
        case (("number", digits), *_):
            return _Constant("number", digits), 1
        case (("string", value), *_):
            return _Constant("string", value), 1
        case (("word", "DATE" | "TIMESTAMP"), ("string", value), *_):
            return _Constant("word", value.strip()), 2
        case (
            ("word", "TO_DATE"),
            ("sign", "("),
            ("string", value),
            ("sign", ","),
            ("string", form),
            ("sign", ","),
            ("string", calendar),
            ("sign", ")"),
        ) if (form, calendar) == _DATE_FORM:
            return _Constant("word", value.strip()), 8
    raise _unknown("a bound in the dictionary has an unknown form")


def _check_bound(bound: _Constant, column: Column) -> None:
    wanted = {"NUMBER": "number", "VARCHAR2": "string"}.get(column.data_type, "word")
    try:
        if bound.kind != wanted or not bound.text:
            raise ValueError(bound.kind)
        bound_value(bound.text, arrow_type(column))
    except ValueError:
        raise _unknown(
            f"a bound in the dictionary is none that column {column.name} has in the lake"
        ) from None


def _text(bound: _Bound | None) -> str | None:
    return bound.text if isinstance(bound, _Constant) else None


def _unknown(what: str) -> SchemaMismatchError:
    return SchemaMismatchError(what, hint=_HINT)
