"""In which forms does a reader get rows?"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from cdc_core.delta.errors import at_work
from cdc_core.errors import PreflightError
from redolake.reader.storage import READER_HINT


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of one version of a Delta table, which are read when a form is asked for.

    ``to_batches`` holds one batch in memory at a time, the other forms hold all rows.
    """

    name: str
    """The Oracle table."""

    version: int
    """The version of the Delta table."""

    open_table: Callable[[], Any]
    """Gives the version as a ``deltalake.DeltaTable``."""

    columns: tuple[str, ...] = ()
    """The columns to read; all if empty."""

    conditions: tuple[str, ...] = ()
    """SQL conditions that the rows fulfil, all of them."""

    order: str = ""
    """SQL expressions by which the rows are ordered; no order if empty."""

    def select(self, *columns: str) -> Self:
        """These columns only, by the names of the Delta table (case counts)."""
        return replace(self, columns=columns)

    def where(self, condition: str) -> Self:
        """The rows that also fulfil a condition in SQL (DataFusion's; names that are not lower
        case stand in double quotes), such as ``\"STATUS\" = 'open'``."""
        return replace(self, conditions=(*self.conditions, condition))

    def ordered(self, by: str) -> Self:
        """In the order of these SQL expressions, as after ``ORDER BY``."""
        return replace(self, order=by)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Record batches, as many as come, of at most some thousand rows each.

        Raises:
            LakeError: The version cannot be read any more: VACUUM removed its files, or it has a
                feature that delta-rs does not know.
            StoreUnavailableError: The storage does not answer.
        """
        reader = self._reader()
        with self._reading():
            yield from reader

    def to_arrow(self) -> pa.Table:
        """An Arrow table with the columns and types of the Delta table. Errors as for
        :meth:`to_batches`."""
        reader = self._reader()
        with self._reading():
            return reader.read_all()

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``, its columns backed by Arrow, so that numbers and NULLs stay
        exact.

        Raises:
            PreflightError: pandas is not installed.
        """
        pandas = _library("pandas")
        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``.

        Raises:
            PreflightError: Polars is not installed.
        """
        return _library("polars").from_arrow(self.to_arrow())

    def to_duckdb(self, connection: Any = None) -> Any:
        """A ``duckdb.DuckDBPyRelation`` of a connection, by default of one of its own.

        Raises:
            PreflightError: DuckDB is not installed.
        """
        duckdb = _library("duckdb")
        return (connection or duckdb.connect()).from_arrow(self.to_arrow())

    def _reader(self) -> pa.RecordBatchReader:
        from deltalake import QueryBuilder

        with self._reading():
            table = self.open_table()
            schema = pa.schema(table.schema().to_arrow())
            if self.columns:
                schema = pa.schema([schema.field(one) for one in self.columns])
            found = QueryBuilder().register("rows", table).execute(self._sql(schema.names))
            return pa.RecordBatchReader.from_stream(found, schema)

    def _sql(self, columns: Sequence[str]) -> str:
        where = " AND ".join(f"({one})" for one in self.conditions)
        return (
            f"SELECT {', '.join(map(quoted, columns))} FROM rows"
            + (f" WHERE {where}" if where else "")
            + (f" ORDER BY {self.order}" if self.order else "")
        )

    def _reading(self) -> Any:
        facts = {"table": self.name, "version": self.version}
        return at_work("reading a Delta table", facts, hint=READER_HINT)


def quoted(name: str) -> str:
    """A name between double quotes, for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """A value of a key as a literal of SQL."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "'" + str(value).replace("'", "''") + "'"
    return str(value)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise PreflightError(
            f"this form of rows needs {name}, which is not installed",
            hint=f"Run `pip install {name}`.",
        ) from error
