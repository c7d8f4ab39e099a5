"""What does a first look at tables say: how large they are, how fast they are read, and in which
form the lake should hold their numbers? For ``redolake init``; it reads, and keeps no value."""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal

from cdc_core.config import OracleConfig
from cdc_core.errors import CdcError
from cdc_core.model.identifiers import TableId, quote
from cdc_core.model.patterns import TablePattern
from cdc_core.model.proposals import NumberForm, Proposal, TableProposal
from cdc_core.model.reports import FoundTable
from cdc_core.oracle.session import OracleSession, connect
from cdc_core.schema.catalog import find_tables
from cdc_core.schema.dictionary_queries import by_table, rows_about
from cdc_core.schema.types import DECIMAL_DIGITS_MAX

ROWS_LOOKED_AT = 100_000
ROWS_TIMED = 2_000
_PLACES = (0, 2, 4, 6, 10, 18)
"""Decimal places that are tried, in this order."""
_NONE_FITS = 99
_SIZES = """
SELECT OWNER, TABLE_NAME, BLOCKS * (SELECT TO_NUMBER(VALUE) FROM V$PARAMETER WHERE NAME = 'db_block_size')
  FROM ALL_TABLES WHERE {tables}"""
_REFERRING = """
SELECT K.OWNER, K.TABLE_NAME, K.COLUMN_NAME
  FROM ALL_CONSTRAINTS C JOIN ALL_CONS_COLUMNS K
    ON K.OWNER = C.OWNER AND K.CONSTRAINT_NAME = C.CONSTRAINT_NAME
 WHERE C.CONSTRAINT_TYPE = 'R' AND {tables}"""
_LOOK = "SELECT COUNT(*){numbers} FROM (SELECT {columns} FROM {table} WHERE ROWNUM <= {rows})"


def propose(oracle: OracleConfig, patterns: Sequence[str]) -> Proposal:
    """The tables that one of the patterns names (``SHOP.*``), whether they can be captured, how
    large they are, and what to write under ``columns_as``.

    Raises:
        ConfigError: A text is no pattern.
        CdcError: The database cannot be reached.
    """
    wanted = [TablePattern.parse(text) for text in patterns]
    with connect(oracle) as session:
        found = find_tables(session, lambda table: any(one.matches(table) for one in wanted))
        usable = [one.table for one in found if not one.left_out]
        sizes, referring = _sizes(session, usable), _referring(session, usable)
        tables = [
            TableProposal(found=one)
            if one.left_out
            else _looked_at(session, one, sizes.get(one.table), referring.get(one.table, set()))
            for one in found
        ]
        return Proposal(tables=tuple(tables), rows_per_second=_rate(session, tables))


def _looked_at(
    session: OracleSession, found: FoundTable, size: int | None, referring: set[str]
) -> TableProposal:
    names = [quote(name) for name in found.numbers]
    sql = _LOOK.format(
        numbers="".join(f", COUNT({name}), {_places(name)}, MAX(ABS({name}))" for name in names),
        columns=", ".join(names) or "1 X",
        table=found.table.sql,
        rows=ROWS_LOOKED_AT,
    )
    try:
        [(rows, *facts)] = session.fetch_all(sql)
    except CdcError:  # a missing right is the doctor's to tell; all values stay text
        return TableProposal(found=found, rows=found.rows, bytes=size)
    numbers = tuple(
        _form(name, values, places, largest, is_key=name in {*found.key, *referring})
        for name, values, places, largest in zip(
            found.numbers, facts[::3], facts[1::3], facts[2::3], strict=True
        )
    )
    return TableProposal(
        found=found,
        rows=int(rows) if found.rows is None else found.rows,
        rows_are_more=found.rows is None and rows >= ROWS_LOOKED_AT,
        bytes=size,
        numbers=numbers,
    )


def _places(name: str) -> str:
    """How many decimal places the values have at most: the first of those that are tried."""
    cases = " ".join(f"WHEN {name} = ROUND({name}, {places}) THEN {places}" for places in _PLACES)
    return f"MAX(CASE WHEN {name} IS NULL THEN 0 {cases} ELSE {_NONE_FITS} END)"


def _form(
    column: str, values: int, places: int | None, largest: Decimal | int | None, *, is_key: bool
) -> NumberForm:
    if not values or places is None or largest is None:
        return NumberForm(column=column, form="decimal(38,0)", reason="no value yet")
    whole = len(str(int(largest)))
    seen = f"{values:,} {'value' if values == 1 else 'values'}"
    if places == _NONE_FITS or whole + places > DECIMAL_DIGITS_MAX:
        reason = f"more digits than a decimal holds in {seen}"
        return NumberForm(column=column, form="", reason=reason)
    reason = (
        f"only whole numbers in {seen}"
        if places == 0
        else f"no more than {places} decimal places in {seen}"
    )
    return NumberForm(
        column=column,
        form=f"decimal(38,{places})",
        reason=f"a key, {reason}" if is_key else reason,
        is_safe=is_key and places == 0,
    )


def _sizes(session: OracleSession, tables: Sequence[TableId]) -> dict[TableId, int]:
    try:
        rows = rows_about(session, _SIZES, tables)
    except CdcError:  # V$PARAMETER is not granted
        return {}
    return {table: int(size) for table, size in rows if size is not None}


def _referring(session: OracleSession, tables: Sequence[TableId]) -> dict[TableId, set[str]]:
    """Columns of foreign keys."""
    rows = rows_about(session, _REFERRING, tables, owner="K.OWNER", name="K.TABLE_NAME")
    return {table: {column for (column,) in found} for table, found in by_table(rows).items()}


def _rate(session: OracleSession, tables: Sequence[TableProposal]) -> float | None:
    largest = max(tables, key=lambda one: one.rows or 0, default=None)
    if largest is None or not largest.rows:
        return None
    columns = ", ".join(map(quote, largest.found.columns))
    sql = f"SELECT {columns} FROM {largest.found.table.sql} WHERE ROWNUM <= {ROWS_TIMED}"
    began = time.perf_counter()
    try:
        rows = len(session.fetch_all(sql))
    except CdcError:  # types that only the snapshot's own SELECT reads
        return None
    return rows / (time.perf_counter() - began) if rows else None
