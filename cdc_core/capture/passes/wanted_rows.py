"""Which rows does a pass ask LogMiner for, and which of those that it shows does it take?

It wants transaction control of all transactions, and every row of the captured tables. These are
told by owner and name (the captured one, and the one under which LogMiner shows the table's rows)
and by the object numbers of the tables and their segments: a row that LogMiner cannot name must not
be lost. Of tables with LOBs the rows that close statements are wanted too, INTERNAL ones, where the
release shows them (``closes_shown``).

The query says all of that, a part of it, or nothing (``capture.query_filter``). Where it says less,
the same rule is applied to what comes (:meth:`WantedRows.selected_from`), before a row is numbered:
a window has the same rows under the same numbers, and the same files land.

Source: Oracle Database SQL Language Reference 19c, REGEXP_LIKE (a pattern has up to 512 bytes) and
"Oracle Regular Expression Support".
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.logs.shown_names import ShownNames
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.config import MatchedTable, QueryFilterMode, SourceConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import CONTROL, IGNORED, Operation
from cdc_core.model.patterns import TablePattern
from cdc_core.schema.dictionary_queries import in_lists, tables_condition
from cdc_core.schema.table import TableSchema

PATTERN_BYTES_MAX = 512
"""Oracle refuses a longer regular expression (ORA-12733)."""

_NO_TABLES = """
 AND (OPERATION_CODE NOT IN ({ignored}){closing})"""
_TABLES = """
   AND (OPERATION_CODE IN ({control}){names}{objects})"""
_UNNAMED = """
   OR (TABLE_NAME IS NULL OR TABLE_NAME LIKE 'OBJ# %') AND OPERATION_CODE <> {ddl}"""
_CLOSING = """
   OR OPERATION_CODE = {internal} AND ROLLBACK = 0 AND SEQUENCE# > 1{objects}"""
"""The row that closes a statement with LOBs and has its row's real ROWID, where no UPDATE does
(measured on 23ai and 26ai by others). It has no name."""
_MATCHES = "REGEXP_LIKE(SEG_OWNER || '.' || TABLE_NAME, :{bind}, 'in')"
_WANTED_CONTROL = (*CONTROL, Operation.MISSING_SCN)
_BY_NUMBER = "OBJ# "
_BETWEEN = "\0"
"""Stands between owner and name; no name has it."""
_WILD = {"*": ".*", "?": "."}
_META = set(".^$+()[]{}|\\")


@dataclass(frozen=True, slots=True)
class QueryFilter:
    """How a query says of which tables it wants rows: ``mode`` is ``capture.query_filter``,
    ``patterns`` are those that took tables in."""

    mode: QueryFilterMode = "in"
    patterns: tuple[TablePattern, ...] = ()

    @classmethod
    def of(cls, config: SourceConfig) -> Self:
        """As it is configured, with tables in the place of patterns."""
        patterns = [one.matched_by for one in config.tables if isinstance(one, MatchedTable)]
        return cls(
            config.logminer.query_filter,
            tuple(dict.fromkeys(one for one in patterns if one is not None)),
        )


@dataclass(frozen=True, slots=True)
class WantedRows:
    """Whose rows a pass wants: those of the tables, under the names that LogMiner shows, and with
    ``unnamed`` all rows without a name; which of them are new is what ``reading`` says."""

    tables: Sequence[TableSchema]
    shown: ShownNames
    unnamed: bool
    reading: Reading
    query_filter: QueryFilter = QueryFilter()

    @property
    def names(self) -> set[TableId]:
        """The captured names, and those under which rows are shown."""
        shown = {name for name in self.shown.values() if name is not None}
        return {schema.table for schema in self.tables} | shown

    @property
    def numbers(self) -> list[int]:
        """The object numbers of the tables and of their segments, ascending."""
        return _numbers(self.tables)

    @property
    def closed(self) -> list[int]:
        """The object numbers of tables whose statements are closed by a row of their own."""
        return _numbers([schema for schema in self.tables if schema.closes_shown])

    def selected_from(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Of the rows that a query shows, with the columns of ``MINED_SCHEMA``, those that are
        wanted."""
        if self.query_filter.mode == "in":
            return rows  # the query has said all of it
        wanted = self._is_wanted(rows)
        return rows if wanted.all() else rows.filter(pa.array(wanted))

    def _is_wanted(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        operations = rows.column("operation_code").to_numpy(zero_copy_only=False)
        numbers = rows.column("data_obj").fill_null(0).to_numpy(zero_copy_only=False)
        owners, names = rows.column("seg_owner"), rows.column("table_name")
        listed = pa.array([f"{one.owner}{_BETWEEN}{one.name}" for one in self.names], pa.string())
        pairs = pc.binary_join_element_wise(owners, names, _BETWEEN)
        wanted = np.isin(operations, _WANTED_CONTROL)
        wanted |= pc.is_in(pairs, value_set=listed).to_numpy(zero_copy_only=False)
        wanted |= np.isin(numbers, self.numbers)
        if self.unnamed:
            nameless = pc.starts_with(names, _BY_NUMBER).fill_null(True)
            wanted |= nameless.to_numpy(zero_copy_only=False) & (operations != Operation.DDL)
        closes = operations == Operation.INTERNAL
        found: npt.NDArray[np.bool_] = wanted & (~closes | np.isin(numbers, self.closed))
        return found


def wanted_batches(
    wanted: WantedRows, batches: Generator[pa.RecordBatch], size: int
) -> Generator[pa.RecordBatch]:
    """The wanted rows of what a query shows, in batches of ``size`` rows whoever filtered them: row
    groups end where batches do."""
    if wanted.query_filter.mode == "in":
        return batches
    return _filled(wanted, batches, size)


def _filled(
    wanted: WantedRows, batches: Generator[pa.RecordBatch], size: int
) -> Generator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    with closing(batches):
        for batch in batches:
            held.append(wanted.selected_from(batch))
            while sum(one.num_rows for one in held) >= size:
                [rows] = pa.Table.from_batches(held).combine_chunks().to_batches()
                held = [rows.slice(size)]
                yield rows.slice(0, size)
        if held:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def condition_of(wanted: WantedRows, prefix: str = "") -> tuple[str, dict[str, object]]:
    """What a query adds for the rows that are wanted, and its binds, whose names begin with
    ``prefix``."""
    mode = wanted.query_filter.mode
    closing = ""
    if wanted.closed:
        numbered = " OR ".join(_listed("DATA_OBJ# IN ({})", wanted.closed))
        objects = "" if mode == "none" else f" AND ({numbered})"
        closing = _CLOSING.format(internal=int(Operation.INTERNAL), objects=objects)
    condition = _NO_TABLES.format(ignored=_codes(*IGNORED), closing=closing)
    if mode == "none":
        return condition, {}
    patterns = wanted.query_filter.patterns if mode == "regex" else ()
    terms, binds = _by_name(wanted.names, patterns, prefix)
    objects = "".join(f" OR {one}" for one in _listed("DATA_OBJ# IN ({})", wanted.numbers))
    if wanted.unnamed:
        objects += _UNNAMED.format(ddl=int(Operation.DDL))
    names = "".join(f" OR {term}" for term in terms)
    control = _codes(*_WANTED_CONTROL)
    return condition + _TABLES.format(control=control, names=names, objects=objects), binds


def _by_name(
    names: set[TableId], patterns: Sequence[TablePattern], prefix: str
) -> tuple[list[str], dict[str, object]]:
    """Terms that hold for rows of these tables, and maybe of others: by pattern, and by name for
    those that no pattern has."""
    terms: list[str] = []
    binds: dict[str, Any] = {}
    left = set(names)
    for number, pattern in enumerate(patterns):
        if pattern.expression:
            continue  # Oracle's regular expressions are not Python's: its tables are named instead
        expression = expression_of(pattern)
        matched = {name for name in left if pattern.matches(name)}
        if not matched or len(expression.encode()) > PATTERN_BYTES_MAX:
            continue
        bind = f"{prefix}r{number}"
        terms.append(_MATCHES.format(bind=bind))
        binds[bind] = expression
        left -= matched
    if left:
        listed, named = tables_condition(left, "SEG_OWNER", "TABLE_NAME", prefix)
        terms.append(listed)
        binds |= named
    return terms, binds


def expression_of(pattern: TablePattern) -> str:
    """Oracle's regular expression for ``OWNER.TABLE`` of every table that the pattern names."""
    owner, name = (
        "".join(_WILD.get(one) or (f"\\{one}" if one in _META else one) for one in part)
        for part in (pattern.owner, pattern.name)
    )
    return rf"^{owner}\.{name}$"


def _listed(term: str, numbers: Sequence[int]) -> list[str]:
    return [term.format(listed) for listed in in_lists(numbers)]


def _numbers(tables: Sequence[TableSchema]) -> list[int]:
    numbers = {schema.object_id for schema in tables if schema.object_id}
    return sorted(numbers | {number for schema in tables for number in schema.segments})


def _codes(*operations: Operation) -> str:
    return ", ".join(str(int(operation)) for operation in operations)
