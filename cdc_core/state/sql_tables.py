"""Which SQL tables hold the metadata store?

The newest form; ``migrations/`` brings older stores here.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
)

from cdc_core.model.identifiers import TableId
from cdc_core.model.records import InexactImage
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.streams import ReadAgain
from cdc_core.schema.table import TableSchema
from cdc_core.state.column_types import Json, Moment

METADATA = MetaData()


def _of_source() -> Column[str]:
    return Column("source", String(40), primary_key=True)


def _of_table() -> tuple[Column[str], ...]:
    names = (Column(name, String(128), primary_key=True) for name in ("owner", "name"))
    return (_of_source(), *names)


SOURCES = Table(
    "sources",
    METADATA,
    Column("name", String(40), primary_key=True),
    Column("snapshot_scn", BigInteger),
    Column("mining_low", BigInteger),
    Column("resetlogs_change", BigInteger),
    Column("database_name", String(128)),
    Column("dbid", BigInteger),
    Column("container_dbid", BigInteger),
    Column("revision", BigInteger, nullable=False),
)

TABLES = Table(
    "tables",
    METADATA,
    *_of_table(),
    Column("state", String(20), nullable=False),
    Column("snapshot_id", String(80)),
    Column("snapshot_scn", BigInteger),
    Column("consistent_scn", BigInteger),
    Column("mirror_scn", BigInteger),
    Column("generation", Integer, nullable=False),
    Column("row_filter", Text),
    Column("first_ordinal", BigInteger, nullable=False),
    Column("mining_low", BigInteger),
    Column("stopped_scn", BigInteger),
    Column("reason", Text),
    Column("way_out", Text),
    Column("since", Moment),
    Column("asked_by", String(20)),
    Column("trouble", String(20)),
    Column("read_again", Json(tuple[ReadAgain, ...])),
    Column("rest_waits", Text),
    Column("in_quarantine", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
)

WINDOWS = Table(
    "windows",
    METADATA,
    _of_source(),
    Column("ordinal", BigInteger, primary_key=True),
    Column("scn_low", BigInteger, nullable=False),
    Column("scn_high", BigInteger, nullable=False),
    Column("mining_low", BigInteger, nullable=False),
    Column("state", String(20), nullable=False, index=True),
    Column("rows", BigInteger),
    Column("seconds", Float),
    Column("apply_seconds", Float),
    Column("manifest_sha256", String(64)),
    Column("created", Moment, nullable=False),
    Column("captured", Moment),
    Column("applied", Moment),
    Column("last_error", Text),
    Column("positions", Json(tuple[ThreadPosition, ...])),
    Column("key", String(80), nullable=False),
    Column("ended", Moment),
    Column("bytes", BigInteger),
    Column("facts", Json(dict[str, int])),
    Column("is_idle", Boolean),
    Column("inexact", Json(InexactImage)),
    UniqueConstraint("source", "scn_high"),
    UniqueConstraint("source", "scn_low"),
)

WINDOW_TABLES = Table(
    "window_tables",
    METADATA,
    _of_source(),
    Column("ordinal", BigInteger, primary_key=True),
    Column("owner", String(128), primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("changes", BigInteger, nullable=False),
    Column("rows_inserted", BigInteger, nullable=False),
    Column("rows_updated", BigInteger, nullable=False),
    Column("rows_deleted", BigInteger, nullable=False),
    Column("quarantined", BigInteger, nullable=False),
    Column("write_way", String(20)),
    Column("write_reason", Text),
    Column("seconds", Float, nullable=False),
    Column("applied", Moment, nullable=False),
)
"""What a window brought to a table. A table that it did not touch has no row."""

TOTALS = Table(
    "totals",
    METADATA,
    _of_source(),
    Column("metric", String(80), primary_key=True),
    Column("labels", String(600), primary_key=True),
    Column("value", Float, nullable=False),
)
"""Counters, which only grow; ``labels`` are the values of a metric's labels, as JSON."""

CHUNKS = Table(
    "chunks",
    METADATA,
    *_of_table(),
    Column("snapshot_id", String(80), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("scn", BigInteger, nullable=False),
    Column("scn_high", BigInteger),
    Column("range", Json(dict[str, Any]), nullable=False),
    Column("condition", Text),
    Column("signal_id", String(200)),
    Column("state", String(20), nullable=False, index=True),
    Column("rows", BigInteger),
    Column("seconds", Float),
    Column("apply_seconds", Float),
    Column("applied", Moment),
    Column("manifest_sha256", String(64)),
)

FOUND_TABLES = Table(
    "found_tables",
    METADATA,
    *_of_table(),
    Column("columns_exclude", Json(tuple[str, ...]), nullable=False),
    Column("left_out", Text, nullable=False),
)

COMPARISONS = Table(
    "comparisons",
    METADATA,
    *_of_table(),
    Column("scn", BigInteger, nullable=False),
    Column("compared", Moment, nullable=False),
    Column("rows_compared", BigInteger, nullable=False),
    Column("differences", BigInteger, nullable=False),
)

OPEN_TRANSACTIONS = Table(
    "open_transactions",
    METADATA,
    _of_source(),
    Column("xid", String(16), primary_key=True),
    Column("start_scn", BigInteger),
    Column("first_ordinal", BigInteger, nullable=False),
    Column("has_rollback", Boolean, nullable=False),
    Column("tables", Json(tuple[tuple[str, int], ...]), nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("username", String(128)),
    Column("undone", BigInteger, nullable=False),
    Column("state", String(20), nullable=False),
    Column("session_id", BigInteger),
    Column("serial", BigInteger),
    Column("absent_scn", BigInteger),
    Column("start_timestamp", DateTime),
    Column("client_id", String(64)),
    Column("windows", Json(tuple[int, ...]), nullable=False),
)

SCHEMA_VERSIONS = Table(
    "schema_versions",
    METADATA,
    *_of_table(),
    Column("scn_from", BigInteger, primary_key=True),
    Column("schema", Json(TableSchema), nullable=False),
    Column("ddl", Text),
)

SIGNALS = Table(
    "signals",
    METADATA,
    _of_source(),
    Column("id", String(200), primary_key=True),
    Column("type", String(40), nullable=False),
    Column("data", Json(dict[str, Any]), nullable=False),
    Column("channel", String(40), nullable=False),
    Column("state", String(20), nullable=False, index=True),
    Column("reason", Text),
    Column("created", Moment, nullable=False),
)

SIGNAL_TABLES = Table(
    "signal_tables",
    METADATA,
    _of_source(),
    Column("name", String(300), primary_key=True),
    Column("scn", BigInteger, nullable=False),
)

SIGNAL_OFFSETS = Table(
    "signal_offsets",
    METADATA,
    _of_source(),
    Column("topic", String(300), primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("next", BigInteger, nullable=False),
)

NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    _of_source(),
    Column("number", BigInteger, primary_key=True),
    Column("id", String(300), nullable=False),
    Column("aggregate_type", String(40), nullable=False),
    Column("type", String(40), nullable=False),
    Column("data", Json(dict[str, str]), nullable=False),
    Column("created", Moment, nullable=False),
)

SNAPSHOT_PAUSES = Table(
    "snapshot_pauses",
    METADATA,
    _of_source(),
    Column("since", Moment, nullable=False),
)
"""Sources of which no chunks are read until a signal ``resume-snapshot``."""

LEASES = Table(
    "leases",
    METADATA,
    Column("name", String(800), primary_key=True),
    Column("holder", String(300)),
    Column("token", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("heartbeat", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("expires_uptime", Float),
)
"""``holder`` is NULL when the lease was given back; the row stays so that its token keeps growing.
``expires`` is by the database's clock, ``expires_uptime`` by the uptime of the holder's machine."""

REFUSED_LOGINS = Table(
    "refused_logins",
    METADATA,
    Column("account", String(64), primary_key=True),
    Column("password", String(64), primary_key=True),
    Column("count", Integer, nullable=False),
    Column("newest", Moment, nullable=False),
)
"""Passwords that Oracle refused, as salted hashes, by the digest of connect string and user. They
are of no source: several may share an account."""


def of(
    rows: Table, source: str, table: TableId | None = None, **more: object
) -> ColumnElement[bool]:
    """The rows of a source, of one of its tables, and with these values in further columns."""
    named = {} if table is None else {"owner": table.owner, "name": table.name}
    wanted: dict[str, object] = {"source": source, **named, **more}
    return and_(*(rows.c[column] == value for column, value in wanted.items()))


def values_of(table: Table, record: Any, **more: Any) -> dict[str, Any]:
    """What a row of a table holds of a record: its fields by the names of the columns, owner and
    name of its table; and what else is given."""
    more |= {"owner": record.table.owner, "name": record.table.name} if "owner" in table.c else {}
    names = [column.name for column in table.columns if column.name not in more]
    return {name: getattr(record, name) for name in names} | more
