"""Which SQL shows a change log as Debezium's events?

A change log has one flat row per change and keeps what its readers filter by at the top. Debezium's
envelope nests the same facts, and
numbers the events of a transaction over all tables: that needs the change logs of all of them, so
it is a query, not a column.

Source: Debezium 3, documentation of the Oracle connector, "Data change events" and "Transaction
metadata".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cdc_core.delta.history import DeltaLog
from cdc_core.lake.tables import delta, string_literal
from cdc_core.model.chunks import INCREMENTAL
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import QueryEngine
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.stage.absent_names import LISTS

UTC = "UTC"


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A change log to be shown: its table's newest definition, its folder, and what its own log
    says."""

    schema: TableSchema
    path: str
    log: DeltaLog

    @property
    def table(self) -> TableId:
        """Whose changes these are."""
        return self.schema.table


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What all events of a source share: the source's name, its database, this program's version,
    and the time zone in which the database dates its redo. ``unavailable`` stands in texts and
    bytes that an event does not carry; None leaves NULL there."""

    name: str
    database: str
    version: str
    time_zone: str = UTC
    unavailable: str | None = None


class _Dialect(ABC):
    """What engines write differently. ``quotes`` stand around a name."""

    quotes: str

    @abstractmethod
    def relation(self, path: str) -> str:
        """A Delta table by its folder."""

    @abstractmethod
    def text(self, value: str) -> str:
        """A literal."""

    @abstractmethod
    def struct(self, values: Mapping[str, str]) -> str:
        """A struct of expressions."""

    @abstractmethod
    def micros(self, column: str, zone: str) -> str:
        """Microseconds since 1970 in UTC of a time without a zone that was meant in ``zone``."""

    @abstractmethod
    def millis(self, micros: str) -> str:
        """Milliseconds of microseconds."""

    @abstractmethod
    def bytes(self, value: str) -> str:
        """The bytes of a text in UTF-8."""

    @abstractmethod
    def holds(self, names: str, value: str) -> str:
        """Is a text among those of a list, which may be NULL?"""

    @abstractmethod
    def mapped(self, names: str, value: str) -> str:
        """A list with an expression of each element ``a``."""

    def renamed(self, lists: str, names: Mapping[str, str]) -> str:
        """A list of columns under other names."""
        if not names:
            return lists
        cases = (f"WHEN {self.text(old)} THEN {self.text(new)}" for old, new in names.items())
        return self.mapped(lists, f"CASE a {' '.join(cases)} ELSE a END")

    def name(self, identifier: str) -> str:
        """A name in quotes."""
        return f"{self.quotes}{identifier.replace(self.quotes, self.quotes * 2)}{self.quotes}"


class _Spark(_Dialect):
    quotes = "`"

    def relation(self, path: str) -> str:
        return delta(path)

    def text(self, value: str) -> str:
        return string_literal(value)

    def struct(self, values: Mapping[str, str]) -> str:
        fields = (f"{self.text(name)}, {value}" for name, value in values.items())
        return f"NAMED_STRUCT({', '.join(fields)})"

    def micros(self, column: str, zone: str) -> str:
        # A text with its zone means one moment, whatever the session's zone is.
        written = f"CONCAT(CAST({column} AS STRING), {self.text(' ' + zone)})"
        return f"UNIX_MICROS(CAST({written} AS TIMESTAMP_LTZ))"

    def millis(self, micros: str) -> str:
        return f"({micros} DIV 1000)"

    def bytes(self, value: str) -> str:
        return f"CAST({self.text(value)} AS BINARY)"

    def holds(self, names: str, value: str) -> str:
        return f"COALESCE(ARRAY_CONTAINS({names}, {self.text(value)}), FALSE)"

    def mapped(self, names: str, value: str) -> str:
        return f"TRANSFORM({names}, a -> {value})"


class _DuckDb(_Dialect):
    quotes = '"'

    def relation(self, path: str) -> str:
        return f"delta_scan({self.text(path)})"

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def struct(self, values: Mapping[str, str]) -> str:
        fields = (f"{self.name(name)} := {value}" for name, value in values.items())
        return f"STRUCT_PACK({', '.join(fields)})"

    def micros(self, column: str, zone: str) -> str:
        return f"EPOCH_US({column} AT TIME ZONE {self.text(zone)})"

    def millis(self, micros: str) -> str:
        return f"({micros} // 1000)"

    def bytes(self, value: str) -> str:
        return f"ENCODE({self.text(value)})"

    def holds(self, names: str, value: str) -> str:
        return f"COALESCE(LIST_CONTAINS({names}, {self.text(value)}), FALSE)"

    def mapped(self, names: str, value: str) -> str:
        return f"LIST_TRANSFORM({names}, lambda a: {value})"


_DIALECTS: Mapping[QueryEngine, _Dialect] = {"spark": _Spark(), "duckdb": _DuckDb()}


def events_sql(
    table: TableId, tables: Sequence[LoggedTable], origin: Origin, engine: QueryEngine
) -> str:
    """A query whose rows are the events of ``table``.

    Its columns are Debezium's ``before, after, source, transaction, op, ts_ms, ts_us, ts_ns``, then
    ``key``, the message's key, and behind it of the change
    log ``_cdc_commit_scn`` and ``_cdc_ordinal``, to filter and to order
    by, and ``_cdc_absent`` and ``_cdc_before_absent``: columns that the event does not carry, which
    are NULL in ``after`` and ``before``, or have ``origin.unavailable`` there where they are texts
    or bytes. A change of key is two events, ``d`` and ``c``. Changes that are marked as skipped are
    left out.

    Args:
        table: One of ``tables``.
        tables: All change logs of the source: a transaction's events are numbered over all of them.
        origin: What the events say of where they come from.
        engine: Whose SQL.
    """
    sql = _DIALECTS[engine]
    [own] = [one for one in tables if one.table == table]
    events = "\n    UNION ALL\n".join(_numbered_sql(one, sql) for one in tables)
    moved = _moved_sql(own, sql)
    columns = ",\n  ".join(
        f"{expression} AS {name}" for name, expression in _columns(own, origin, sql).items()
    )
    names = {old: new for old, new in own.schema.present_names.items() if old != new}
    lists = ", ".join(sql.renamed(f"c.{one}", names) + f" AS {one}" for one in LISTS)
    return f"""WITH parts AS (SELECT 1 AS part UNION ALL SELECT 2 AS part),
events AS (
{events}
),
numbered AS (
  SELECT *,
    ROW_NUMBER() OVER (PARTITION BY scn, xid ORDER BY ordinal, part) AS total_order,
    ROW_NUMBER() OVER (PARTITION BY scn, xid, collection ORDER BY ordinal, part) AS data_collection_order,
    DENSE_RANK() OVER (PARTITION BY scn, xid ORDER BY ordinal) AS change_order
  FROM events
)
SELECT
  {columns},
  c._cdc_commit_scn, c._cdc_ordinal, {lists}
FROM {sql.relation(own.path)} c
CROSS JOIN parts p
LEFT JOIN numbered n
  ON n.collection = {sql.text(str(table))} AND n.scn = c._cdc_commit_scn AND n.ordinal = c._cdc_ordinal
  AND n.part = p.part AND c._cdc_snapshot IS NULL
WHERE (p.part = 1 OR ({moved})) AND c._cdc_skipped IS NULL
"""


def _numbered_sql(one: LoggedTable, sql: _Dialect) -> str:
    return (
        f"    SELECT {sql.text(str(one.table))} AS collection, c._cdc_commit_scn AS scn, c._cdc_xid AS xid,"
        f" c._cdc_ordinal AS ordinal, p.part\n"
        f"    FROM {sql.relation(one.path)} c CROSS JOIN parts p\n"
        f"    WHERE c._cdc_skipped IS NULL AND c._cdc_snapshot IS NULL AND (p.part = 1 OR ({_moved_sql(one, sql)}))"
    )


def _moved_sql(one: LoggedTable, sql: _Dialect) -> str:
    """Does the change give its row another key?"""
    same = " AND ".join(
        f"{_value(one, 'before', column, sql)} IS NOT DISTINCT FROM {_value(one, 'after', column, sql)}"
        for column in one.schema.key
    )
    return f"c._cdc_op = 'u' AND NOT ({same})"


def _value(one: LoggedTable, image: str, column: str, sql: _Dialect) -> str:
    """A column of an image."""
    return f"c.{image}.{sql.name(one.schema.stored_names[column])}"


def _columns(one: LoggedTable, origin: Origin, sql: _Dialect) -> dict[str, str]:
    moved = f"({_moved_sql(one, sql)})"
    landed = sql.micros("c._cdc_landed", UTC)
    is_change = "c._cdc_snapshot IS NULL"
    transaction = {
        "id": "c._cdc_xid",
        "total_order": "n.total_order",
        "data_collection_order": "n.data_collection_order",
    }
    return {
        "before": f"CASE WHEN p.part = 1 THEN {_image(one, 'before', origin, sql)} END",
        "after": f"CASE WHEN p.part = 2 OR NOT {moved} THEN {_image(one, 'after', origin, sql)} END",
        "source": sql.struct(_source(one, origin, sql)),
        "transaction": f"CASE WHEN {is_change} THEN {sql.struct(transaction)} END",
        "op": f"CASE WHEN p.part = 2 THEN 'c' WHEN {moved} THEN 'd' ELSE c._cdc_op END",
        "ts_ms": sql.millis(landed),
        "ts_us": landed,
        "ts_ns": f"{landed} * 1000",
        "key": _key(one, moved, sql),
    }


def _key(one: LoggedTable, moved: str, sql: _Dialect) -> str:
    """The key of the row that an event shows: that of the old image where there is no new one."""
    before, after = (
        sql.struct({column: _value(one, image, column, sql) for column in one.schema.key})
        for image in ("before", "after")
    )
    return (
        f"CASE WHEN c.after IS NOT NULL AND (p.part = 2 OR NOT {moved}) THEN {after}"
        f" WHEN c.before IS NOT NULL THEN {before} END"
    )


def _image(one: LoggedTable, image: str, origin: Origin, sql: _Dialect) -> str:
    if one.schema.as_logged() is one.schema and origin.unavailable is None:
        return f"c.{image}"
    values = {
        column: _shown_value(one, image, column, origin, sql) for column in one.schema.column_names
    }
    return f"CASE WHEN c.{image} IS NOT NULL THEN {sql.struct(values)} END"


def _shown_value(one: LoggedTable, image: str, column: str, origin: Origin, sql: _Dialect) -> str:
    """A column of an image, in whose place the placeholder stands where the change does not carry
    it."""
    value = _value(one, image, column, sql)
    kind = arrow_type(one.schema.column(column))
    if origin.unavailable is None or not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return value
    # What a deletion lacks in its old image stands in either list.
    lists = (
        ["c._cdc_absent"]
        if image == "after"
        else ["c._cdc_before_absent", "CASE WHEN c._cdc_op = 'd' THEN c._cdc_absent END"]
    )
    stored_as = one.schema.stored_names[column]
    absent = " OR ".join(sql.holds(found, stored_as) for found in lists)
    placeholder = sql.bytes if pa.types.is_binary(kind) else sql.text
    return f"CASE WHEN {absent} THEN {placeholder(origin.unavailable)} ELSE {value} END"


def _source(one: LoggedTable, origin: Origin, sql: _Dialect) -> dict[str, str]:
    zone = origin.time_zone
    no_text, is_change = "CAST(NULL AS STRING)", "c._cdc_snapshot IS NULL"
    at = (
        f"CASE WHEN {is_change} THEN {sql.micros('c._cdc_timestamp', zone)}"
        f" ELSE {sql.micros('c._cdc_landed', UTC)} END"
    )
    beside = ", ".join(map(sql.text, INCREMENTAL))
    return {
        "version": sql.text(origin.version),
        "connector": "'oracle'",
        "name": sql.text(origin.name),
        "ts_ms": sql.millis(at),
        "snapshot": f"CASE WHEN {is_change} THEN 'false'"
        f" WHEN SUBSTR(c._cdc_snapshot, 1, 1) IN ({beside}) THEN 'incremental' ELSE 'true' END",
        "db": sql.text(origin.database),
        "sequence": no_text,
        "ts_us": at,
        "ts_ns": f"{at} * 1000",
        "schema": sql.text(one.table.owner),
        "table": sql.text(one.table.name),
        "txId": "c._cdc_xid",
        "scn": f"CAST(CASE WHEN {is_change} THEN c._cdc_scn ELSE c._cdc_commit_scn END AS STRING)",
        "commit_scn": f"CASE WHEN {is_change} THEN CAST(c._cdc_commit_scn AS STRING) END",
        "lcr_position": no_text,
        "rs_id": "TRIM(c._cdc_rs_id)",
        "ssn": "c._cdc_ssn",
        "redo_thread": "c._cdc_thread",
        "user_name": "c._cdc_username",
        "redo_sql": "c._cdc_redo_sql",
        "row_id": "c._cdc_row_id",
        "commit_ts_ms": sql.millis(sql.micros("c._cdc_commit_timestamp", zone)),
        "start_scn": "CAST(c._cdc_start_scn AS STRING)",
        "start_ts_ms": sql.millis(sql.micros("c._cdc_start_timestamp", zone)),
        "txSeq": "n.change_order",
    }
