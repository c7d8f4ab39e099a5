"""What are Redolake's options called in Debezium's Oracle connector? Data, not code: the options
page shows it.

A counterpart does the same job, not necessarily in the same way or unit.
"""

from __future__ import annotations

COUNTERPARTS: dict[str, tuple[str, ...]] = {
    "name": ("topic.prefix",),
    "oracle.dsn": (
        "database.hostname",
        "database.port",
        "database.dbname",
        "database.pdb.name",
        "database.url",
    ),
    "oracle.user": ("database.user",),
    "oracle.password_env": ("database.password",),
    "oracle.call_timeout_seconds": ("database.query.timeout.ms",),
    "oracle.connect_timeout_seconds": ("connection.validation.timeout.ms",),
    "oracle.fetch_rows": ("snapshot.fetch.size", "query.fetch.size"),
    "tables[].name": ("table.include.list",),
    "tables[].exclude": ("table.exclude.list",),
    "tables[].columns_exclude": ("column.exclude.list",),
    "tables[].columns_as": ("converters (NumberOneToBoolean, RawToString)",),
    "tables[].types_as": (
        "decimal.handling.mode",
        "binary.handling.mode",
        "interval.handling.mode",
        "time.precision.mode",
    ),
    "tables[].columns_mask": (
        "column.mask.with.length.chars",
        "column.mask.hash.v2.hashAlgorithm.with.salt.salt",
        "column.truncate.to.length.chars",
    ),
    "tables[].key": ("message.key.columns",),
    "policies.on_undecodable": ("event.processing.failure.handling.mode",),
    "capture.type": ("database.connection.adapter",),
    "capture.lobs": ("post.processors (ReselectColumnsPostProcessor)",),
    "capture.strategy": ("log.mining.strategy",),
    "capture.query_filter": ("log.mining.query.filter.mode",),
    "capture.dictionary_file": ("log.mining.path.dictionary",),
    "capture.flush_table": ("log.mining.flush.table.name",),
    "capture.flush_dsns": ("rac.nodes",),
    "capture.standby_dsn": (
        "capture.mode",
        "secondary.hostname",
        "secondary.port",
        "secondary.url",
    ),
    "capture.archived_only": ("log.mining.archive.log.only.mode",),
    "capture.archive_destinations": ("archive.destination.name",),
    "capture.archive_hours": ("archive.log.hours",),
    "capture.window_redo_bytes_max": ("log.mining.batch.size.max",),
    "snapshot.chunk_rows": ("incremental.snapshot.chunk.size",),
    "lake.change_log_columns": (
        "log.mining.buffer.track.rs_id",
        "log.mining.buffer.track.client_id",
        "log.mining.buffer.track.start_timestamp",
    ),
    "events.skipped_operations": ("skipped.operations",),
    "events.skip_unchanged": ("skip.messages.without.change",),
    "events.users_include": ("log.mining.username.include.list",),
    "events.users_exclude": ("log.mining.username.exclude.list",),
    "events.clients_include": ("log.mining.clientid.include.list",),
    "events.clients_exclude": ("log.mining.clientid.exclude.list",),
    "lake.transactions": ("provide.transaction.metadata",),
    "lake.schema_changes": ("include.schema.changes",),
    "signals.table": ("signal.data.collection",),
    "dagster.snapshots.interval_seconds": ("signal.poll.interval.ms",),
    "dagster.retries.max": ("errors.max.retries",),
    "dagster.retries.delay_seconds": ("retriable.restart.connector.wait.ms",),
}
"""Option path as :mod:`docs.tools.options` writes it → Debezium's properties."""
