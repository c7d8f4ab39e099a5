"""What answers each property of Debezium's Oracle connector? Data: the reference page and the
import read it.

Names are those of the 3.x line; older names stand beside them. ``{…}`` in a name is a part that
the user chooses. A hidden property has the prefix ``internal.``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Verdict(StrEnum):
    """How Redolake answers a property."""

    TAKEN = "taken"
    """An option does the same. The import sets it."""

    DIFFERS = "differs"
    """An option does the job in another way, or with another default: look at it after the
    import."""

    ANSWERED = "answered"
    """Redolake does it always, or its design makes the question go away. Nothing to set."""

    NOT_NEEDED = "not needed"
    """About Kafka, Connect, or memory of a streaming process."""

    MISSING = "missing"
    """Redolake does not offer it."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property, or several that are answered together."""

    names: tuple[str, ...]
    verdict: Verdict
    options: tuple[str, ...]
    """Options of Redolake's configuration file, dotted."""
    said: str
    """One or two sentences for someone who comes from Debezium; Markdown."""
    group: str


@lru_cache(maxsize=1024)
def _expression(name: str) -> re.Pattern[str]:
    parts = re.split(r"\{[^}]*\}", name)
    return re.compile(r"(internal\.)?" + r".+".join(map(re.escape, parts)))


def property_named(name: str) -> Property | None:
    """The entry that answers a property of a connector's file; None for one that nobody knows.

    Of several that fit, the one with the longest text that the user does not choose.
    """
    fitting = [
        (len(re.sub(r"\{[^}]*\}", "", text)), one)
        for one in PROPERTIES
        for text in one.names
        if _expression(text).fullmatch(name)
    ]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


def counterparts() -> dict[str, tuple[str, ...]]:
    """Option → the properties that it answers, newest names only; for the page of all options."""
    found: dict[str, list[str]] = {}
    for one in PROPERTIES:
        for option in one.options:
            found.setdefault(option, []).append(one.names[0])
    return {option: tuple(names) for option, names in found.items()}


_Entry = tuple[str, Verdict, str, str]
TAKEN, DIFFERS, ANSWERED = Verdict.TAKEN, Verdict.DIFFERS, Verdict.ANSWERED
NOT_NEEDED, MISSING = Verdict.NOT_NEEDED, Verdict.MISSING

# Names (newest first, separated by blanks), verdict, options (separated by blanks), what is said.
_GROUPS: dict[str, tuple[_Entry, ...]] = {
    "Connection": (
        (
            "name", TAKEN, "name",
            "Read where `topic.prefix` is missing. Redolake's name has small letters, digits and "
            "underscores: the import changes other characters and tells you.",
        ),
        ("connector.class", ANSWERED, "", "Redolake reads Oracle only."),
        (
            "tasks.max", ANSWERED, "capture.sessions lake.tables_at_once",
            "Debezium always has one task. Redolake reads waiting windows and merges tables side by "
            "side.",
        ),
        (
            "topic.prefix database.server.name", TAKEN, "name",
            "Part of asset keys, folders and Delta transaction identifiers. Never change it.",
        ),
        ("database.hostname", TAKEN, "oracle.dsn", "`host:port/service`."),
        (
            "database.port", TAKEN, "oracle.dsn",
            "Where it is not set, the import writes 1521, Oracle's usual port.",
        ),
        ("database.dbname", TAKEN, "oracle.dsn", "The service that `oracle.dsn` ends with."),
        (
            "database.pdb.name", TAKEN, "oracle.pdb oracle.pdbs",
            "Each session changes to it. `oracle.pdbs` captures several from one file.",
        ),
        (
            "database.url", TAKEN, "oracle.dsn",
            "The text behind `jdbc:oracle:thin:@`: Easy Connect, a descriptor, or a TNS name.",
        ),
        ("database.user", TAKEN, "oracle.user", "The same grants do, and fewer: no LOCK ANY TABLE."),
        (
            "database.password", TAKEN, "oracle.password_env",
            "The file names an environment variable. The import never writes a secret.",
        ),
        (
            "database.query.timeout.ms", TAKEN, "oracle.call_timeout_seconds",
            "In seconds; 0 (no limit) is not offered.",
        ),
        ("connection.validation.timeout.ms", TAKEN, "oracle.connect_timeout_seconds", "In seconds."),
        (
            "database.connection.adapter", DIFFERS, "capture.type",
            "`olr` becomes `openlogreplicator`. Both `logminer` and `logminer_unbuffered` become "
            "`logminer`: transactions wait in files, not in memory.",
        ),
        (
            "database.out.server.name xstream.out.server.name", TAKEN, "capture(xstream).server",
            "With `database.connection.adapter: xstream`. It serves one client: end the connector "
            "first.",
        ),
        (
            "openlogreplicator.source", TAKEN, "capture(openlogreplicator).source",
            "With `database.connection.adapter: olr`.",
        ),
        (
            "openlogreplicator.host", TAKEN, "capture(openlogreplicator).host",
            "It serves one client at a time: end the connector first.",
        ),
        (
            "openlogreplicator.port", TAKEN, "capture(openlogreplicator).port",
            "The port of the `uri` of its writer.",
        ),
        (
            "rac.nodes", DIFFERS, "capture.flush_dsns",
            "Redolake knows the redo threads from V$THREAD. List the nodes only if idle instances "
            "keep windows waiting.",
        ),
        (
            "capture.mode", DIFFERS, "capture.standby_dsn",
            "`primary` is the default. `physical_standby` becomes `capture.standby_dsn`. "
            "`downstream` is not offered.",
        ),
        (
            "secondary.hostname secondary.port secondary.dbname secondary.url", TAKEN,
            "capture.standby_dsn", "The standby's connect string.",
        ),
        (
            "driver.{parameter} database.{parameter}", DIFFERS,
            "oracle.driver oracle.keepalive_minutes oracle.thick.lib_dir oracle.config_dir oracle.wallet_location",
            "Redolake uses python-oracledb, not JDBC. `oracle.driver` takes its parameters. `oracle.net.keepAlive` is "
            "`keepalive_minutes`; native network encryption and Kerberos (`oracle.net.encryption_client`, "
            "`oracle.net.authentication_services`) need `thick`; `oracle.jdbc.proxyClientName` is `session_user`.",
        ),
        (
            "executor.shutdown.timeout.ms", NOT_NEEDED, "",
            "A process that is killed loses nothing; the next one continues.",
        ),
    ),
    "Errors and retries": (
        (
            "errors.max.retries", DIFFERS, "dagster.retries.max",
            "Retries of one run. `redolake run --loop` and the sensor repeat without a limit.",
        ),
        (
            "retriable.restart.connector.wait.ms", TAKEN, "dagster.retries.delay_seconds",
            "In seconds; it doubles each time.",
        ),
        (
            "custom.retriable.exception", DIFFERS, "oracle.retriable_ora_codes",
            "The codes that its expression fits. Most codes are known to be transient or terminal: "
            "see the page of errors.",
        ),
        (
            "errors.tolerance errors.log.enable errors.log.include.messages "
            "errors.deadletterqueue.{option}", DIFFERS, "policies.on_undecodable",
            "`quarantine` keeps what cannot be decoded in a Delta table beside the mirror.",
        ),
        (
            "event.processing.failure.handling.mode", DIFFERS, "policies.on_undecodable",
            "`fail` is `stop`, for one table instead of all. `skip` is `skip`, and "
            "`warn` becomes `quarantine`, which keeps the row.",
        ),
        (
            "event.converting.failure.handling.mode event.deserialization.failure.handling.mode "
            "inconsistent.schema.handling.mode", DIFFERS,
            "policies.on_unfit_value policies.on_undecodable policies.on_invalid_text",
            "`warn` is `on_unfit_value: null` and `skip` is `on_undecodable: skip`; both are counted. "
            "By default the table stops.",
        ),
    ),
    "Snapshot": (
        (
            "snapshot.mode", TAKEN, "snapshot.mode",
            "All modes. What a start decided, and why, is shown.",
        ),
        (
            "snapshot.mode.configuration.based.{switch} snapshot.mode.custom.name", DIFFERS,
            "snapshot.configuration_based.data snapshot.configuration_based.definitions "
            "snapshot.configuration_based.stream snapshot.configuration_based.on_lost_definitions "
            "snapshot.configuration_based.on_lost_redo snapshot.custom",
            "Five switches, and a Python class in place of a Java one.",
        ),
        (
            "snapshot.locking.mode snapshot.locking.mode.custom.name snapshot.lock.timeout.ms", ANSWERED, "",
            "Redolake takes no lock. Structure and rows are read as of one SCN.",
        ),
        (
            "snapshot.query.mode snapshot.query.mode.custom.name", ANSWERED, "",
            "Rows are read in chunks, each by a flashback query.",
        ),
        (
            "snapshot.include.collection.list", TAKEN, "snapshot.include",
            "Names, or `re:` patterns; the other tables join without rows.",
        ),
        (
            "snapshot.select.statement.overrides snapshot.select.statement.overrides.{table}", TAKEN,
            "snapshot.select_overrides",
            "Of a `SELECT` its `WHERE`, without sub-query. The table remembers it.",
        ),
        ("snapshot.enhance.predicate.scn", ANSWERED, "", "Every chunk is read `AS OF SCN`."),
        (
            "snapshot.delay.ms streaming.delay.ms", ANSWERED, "dagster.windows.enabled",
            "You start the first snapshot, and you switch the windows on.",
        ),
        ("snapshot.fetch.size query.fetch.size", TAKEN, "oracle.fetch_rows", "Rows per fetch."),
        (
            "snapshot.max.threads legacy.snapshot.max.threads", TAKEN, "snapshot.sessions",
            "Sessions read chunks of several tables at once, or of one. A chunk that was read stays "
            "read.",
        ),
        (
            "snapshot.max.threads.multiplier snapshot.max.threads.multiplier.{table}", DIFFERS,
            "snapshot.chunk_rows", "Redolake sets the size of a chunk instead of their number.",
        ),
        (
            "snapshot.tables.order.by.row.count", ANSWERED, "",
            "Each table starts its stream when its own chunks are in; large tables delay no others.",
        ),
        (
            "snapshot.database.errors.max.retries", ANSWERED, "policies.on_snapshot_too_old",
            "Only the chunk is read again, not the table.",
        ),
        (
            "snapshot.scan.all.columns.force", ANSWERED, "",
            "The dictionary is asked for all captured tables at once.",
        ),
        (
            "log.position.check.enable", ANSWERED, "policies.on_redo_gone",
            "Each window proves, per redo thread, that no log is missing.",
        ),
        (
            "log.mining.transaction.snapshot.boundary.mode", ANSWERED, "",
            "Transactions that are open at the snapshot's SCN are always read from their start.",
        ),
        (
            "incremental.snapshot.chunk.size", DIFFERS, "snapshot.chunk_rows",
            "Debezium's default of 1,024 rows is for a buffer in memory. Keep Redolake's default.",
        ),
        (
            "incremental.snapshot.allow.schema.changes incremental.snapshot.watermarking.strategy",
            ANSWERED, "",
            "Chunks are flashback queries; nothing is written to Oracle. A DDL between two chunks is "
            "followed.",
        ),
    ),
    "Signals and notifications": (
        (
            "signal.data.collection", TAKEN, "signals.table",
            "Without the database's name in front. Redolake only reads the table.",
        ),
        (
            "signal.enabled.channels", DIFFERS, "signals.channels",
            "The signal table in Oracle, a file, the command `redolake signal`, a job in Dagster, and "
            "objects in the landing store.",
        ),
        (
            "signal.poll.interval.ms", TAKEN, "dagster.snapshots.interval_seconds", "In seconds.",
        ),
        (
            "signal.file", TAKEN, "signals.file",
            "Redolake renames the file before it reads it, so that no line is lost.",
        ),
        (
            "signal.kafka.topic signal.kafka.bootstrap.servers", TAKEN,
            "signals.kafka_topic signals.kafka_servers",
            "The key of a record is the source's name. The topic may have several partitions.",
        ),
        (
            "signal.consumer.{option}", DIFFERS, "signals.kafka_options",
            "Options of librdkafka, whose names differ from the Java client's in part.",
        ),
        (
            "signal.kafka.groupId signal.kafka.poll.timeout.ms "
            "signal.emit.failure.max.retries signal.emit.failure.retry.backoff.ms",
            NOT_NEEDED, "", "Offsets stand in the metadata store.",
        ),
        (
            "notification.enabled.channels notification.sink.topic.name", DIFFERS,
            "notifications.channels",
            "With Debezium's fields: to the metadata store, the log, a webhook or a Python class.",
        ),
        (
            "guardrail.collections.max guardrail.collections.limit.action", DIFFERS, "tables_max",
            "A run that would capture more tables stops. There is no warning instead.",
        ),
    ),
    "Filters, keys and masks": (
        (
            "schema.include.list schema.whitelist", TAKEN, "tables[].name",
            "Becomes a part of each table's pattern.",
        ),
        (
            "schema.exclude.list schema.blacklist", TAKEN, "tables[].exclude",
            "Becomes patterns that are left out.",
        ),
        (
            "table.include.list table.whitelist", TAKEN, "tables[].name",
            "Literal names become entries, other expressions `re:` patterns. Debezium compares "
            "without regard to case, Redolake exactly: the import writes capitals.",
        ),
        ("table.exclude.list table.blacklist", TAKEN, "tables[].exclude", "See `table.include.list`."),
        (
            "column.exclude.list column.blacklist", TAKEN, "tables[].columns_exclude columns_exclude",
            "Each column goes to the entries whose tables it names; expressions become `re:` patterns.",
        ),
        (
            "column.include.list column.whitelist", DIFFERS, "tables[].columns_include columns_include",
            "As `column.exclude.list`. The columns of the key must be among them. A table of which "
            "the list names no column stops the import.",
        ),
        (
            "table.ignore.builtin", ANSWERED, "",
            "A pattern takes in no schema and no table of Oracle's own.",
        ),
        (
            "message.key.columns", TAKEN, "key tables[].key",
            "The columns must be NOT NULL, and each table that an expression names must have them.",
        ),
        (
            "column.truncate.to.{length}.chars", TAKEN, "tables[].columns_mask",
            "`truncate(n)`; expressions become `re:` patterns.",
        ),
        (
            "column.mask.with.{length}.chars", DIFFERS, "tables[].columns_mask",
            "`stars(n)`. NULL stays NULL; in Debezium it becomes asterisks too. `stars(0)` gives NULL.",
        ),
        (
            "column.mask.hash.v2.{algorithm}.with.salt.{salt}", TAKEN,
            "tables[].columns_mask masks.salt_env masks.salts_env",
            "`hash(sha256)`: the same digest. The salt comes from an environment variable, where "
            "rules have several (`salt=NAME`) from one for each. Add the column's length where it is shorter than the digest: "
            "`hash(sha256, 20)`.",
        ),
        (
            "column.mask.hash.{algorithm}.with.salt.{salt}", TAKEN,
            "tables[].columns_mask masks.salt_env",
            "`hash_v1(sha256)`: the same digest, of Java's serialized form. Otherwise as version 2.",
        ),
        (
            "column.propagate.source.type datatype.propagate.source.type", ANSWERED, "",
            "Delta columns have types; `redolake schema show` prints Oracle's.",
        ),
        (
            "skipped.operations", DIFFERS, "events.skipped_operations policies.on_truncate",
            "Debezium skips `t` by default. Redolake never skips a TRUNCATE: `policies.on_truncate` "
            "decides. Mirrors take every change.",
        ),
        ("skip.messages.without.change", TAKEN, "events.skip_unchanged", "Marks the event."),
        (
            "log.mining.username.include.list", DIFFERS, "events.users_include",
            "Marks events of other users. Mirrors take every change.",
        ),
        ("log.mining.username.exclude.list", DIFFERS, "events.users_exclude", "As above."),
        ("log.mining.clientid.include.list", DIFFERS, "events.clients_include", "As above."),
        ("log.mining.clientid.exclude.list", DIFFERS, "events.clients_exclude", "As above."),
    ),
    "Values": (
        (
            "decimal.handling.mode", TAKEN, "tables[].types_as publish.decimals",
            "`precise` is Redolake's default; a NUMBER without precision is exact text. `string` and "
            "`double` become `types_as: {NUMBER: …}`. Columns of the key stay exact. The struct of "
            "scale and bytes (VariableScaleDecimal) is in Kafka's messages alone "
            "(`publish.decimals: precise`): no SQL engine adds or compares it.",
        ),
        ("legacy.decimal.handling.strategy", ANSWERED, "", "See `decimal.handling.mode`."),
        (
            "time.precision.mode", DIFFERS, "tables[].types_as",
            "By default a DATE or TIMESTAMP is a timestamp in Delta. `isostring` becomes `iso8601`, "
            "`microseconds` and `nanoseconds` keep their names. A time with zone is text, or with "
            "`instant+offset` a timestamp and its offset. `structured` is not offered: SQL takes "
            "the parts of a timestamp, and files are skipped by timestamps, not by structs. What no "
            "timestamp holds (years before Christ, nanoseconds) is kept by `text`.",
        ),
        (
            "interval.handling.mode", TAKEN, "tables[].types_as",
            "`string` becomes `iso8601`, `numeric` becomes `microseconds`.",
        ),
        (
            "binary.handling.mode", TAKEN, "tables[].types_as",
            "`hex`, `base64` and `base64-url-safe` become `hex`, `base64` and `base64url` for RAW "
            "and BLOB.",
        ),
        (
            "lob.enabled", DIFFERS, "tables[].columns_exclude",
            "Redolake always captures LOBs. Exclude the columns that you do not want.",
        ),
        (
            "unavailable.value.placeholder", ANSWERED, "",
            "No placeholder is ever written. An absent column keeps its value in the mirror, and the "
            "change log names it in `_cdc_absent`.",
        ),
        (
            "converters {converter}.type {converter}.selector", DIFFERS, "tables[].columns_as",
            "NumberOneToBoolean becomes `boolean(>0)`, RawToString `text`; what NumberToZeroScale does is "
            "the default. A Java class of your own becomes [a Python class](../how-to/converters.md).",
        ),
        (
            "post.processors {processor}.reselect.{option} reselect.columns.include.list "
            "reselect.columns.exclude.list reselect.unavailable.values reselect.null.values "
            "reselect.use.event.key reselect.error.handling.mode", ANSWERED,
            "capture.lobs unsupported_columns",
            "Values of LOBs that the redo lacks, and rows with JSON, BOOLEAN or VECTOR columns, are "
            "read from Oracle as of their commit.",
        ),
        (
            "schema.name.adjustment.mode field.name.adjustment.mode", ANSWERED, "",
            "Delta tables have Oracle's names as they are.",
        ),
    ),
    "Events and topics": (
        (
            "include.schema.changes", TAKEN, "lake.schema_changes publish.schema_change_topic",
            "A Delta table; a topic where you publish to Kafka.",
        ),
        (
            "include.schema.comments", DIFFERS, "lake.catalog.mirror_name",
            "With `lake.catalog`, tables and columns have Oracle's comments in the catalog.",
        ),
        (
            "provide.transaction.metadata", TAKEN, "lake.transactions publish.transaction_topic",
            "One row per transaction in a Delta table, with the number of its changes per table.",
        ),
        (
            "tombstones.on.delete", NOT_NEEDED, "publish.tombstones",
            "Only where you publish to Kafka. In Delta, a delete is a row of the change log.",
        ),
        (
            "topic.naming.strategy topic.delimiter topic.cache.size topic.transaction "
            "topic.heartbeat.prefix topic.heartbeat.name topic.creation.{option}", NOT_NEEDED,
            "lake.mirror_path lake.changelog_path publish.topic publish.topic_prefix publish.partitions",
            "Topics are there only where you publish to Kafka. Templates say where Delta tables stand.",
        ),
        (
            "heartbeat.interval.ms", ANSWERED, "publish.heartbeat_topic",
            "An idle database still closes windows, so the position never ages.",
        ),
        (
            "heartbeat.action.query", DIFFERS, "capture.flush_table",
            "Only needed where an idle instance keeps its redo in memory.",
        ),
        (
            "transaction.metadata.factory sourceinfo.struct.maker extended.headers.enabled", NOT_NEEDED, "",
            "`redolake table events` prints Debezium's envelope with its `source` block.",
        ),
        (
            "transforms transforms.{transform} predicates predicates.{predicate}", MISSING, "",
            "Transform in SQL over the Delta tables. What ExtractNewRecordState makes is the mirror.",
        ),
        (
            "key.converter key.converter.{option} value.converter value.converter.{option} "
            "header.converter header.converter.{option} producer.override.{option} "
            "consumer.override.{option} exactly.once.support transaction.boundary "
            "transaction.boundary.interval.ms offsets.storage.topic config.action.reload", NOT_NEEDED, "",
            "About Kafka Connect.",
        ),
        (
            "max.batch.size max.queue.size max.queue.size.in.bytes queue.provider.type "
            "poll.interval.ms poll.dispatch.interval.ms", NOT_NEEDED, "",
            "Changes go through files, not through a queue in memory.",
        ),
        (
            "custom.metric.tags custom.sanitize.pattern statistics.metrics.enabled advanced.metrics.enable",
            NOT_NEEDED, "dagster.run_tags metrics.port",
            "About JMX. Prometheus scrapes the numbers, and adds labels of your own.",
        ),
        (
            "openlineage.integration.{option}", DIFFERS, "openlineage.enabled openlineage.namespace",
            "The client finds its own `openlineage.yml`. Dagster has the lineage of each table, too.",
        ),
    ),
    "Confluent's Oracle CDC source": (
        (
            "start.from", DIFFERS, "snapshot.mode snapshot.start_scn",
            "The import takes `snapshot` and `current`. An SCN goes to `snapshot.start_scn`, with "
            "`snapshot.mode: no_data`.",
        ),
        (
            "numeric.mapping", DIFFERS, "tables[].types_as",
            "Whole numbers are integers, numbers with a scale are decimals, others are exact text: "
            "`types_as: {NUMBER: double}` makes them doubles.",
        ),
        (
            "oracle.dictionary.mode", DIFFERS, "capture.strategy",
            "The default follows DDL with the online catalog. `redo_log` is `redo_log_catalog`.",
        ),
        (
            "redo.log.topic.name redo.log.corruption.topic redo.log.consumer.{option} "
            "redo.log.poll.interval.ms redo.log.initial.delay.interval.ms", NOT_NEEDED, "",
            "Redo lands in files, not in a topic.",
        ),
        (
            "table.topic.name.template key.template lob.topic.name.template", NOT_NEEDED,
            "publish.topic", "Topics are there only where you publish to Kafka.",
        ),
        (
            "output.{field}.field", ANSWERED, "lake.change_log_columns",
            "The change log has operation, SCN, transaction, user and time as columns.",
        ),
        (
            "connection.pool.{option}", NOT_NEEDED, "capture.sessions snapshot.sessions",
            "Redolake opens the sessions that it works with.",
        ),
    ),
    "LogMiner": (
        (
            "log.mining.strategy", DIFFERS, "capture.strategy",
            "`hybrid` needs no choice: a DDL is followed by the dictionary as of its SCN.",
        ),
        (
            "log.mining.path.dictionary", TAKEN, "capture.dictionary_file", "With `dictionary_from_file`.",
        ),
        (
            "log.mining.read.only", ANSWERED, "", "Redolake only reads Oracle, unless you name a flush table.",
        ),
        (
            "log.mining.batch.size.default log.mining.batch.size.min log.mining.batch.size.max "
            "log.mining.batch.size.increment log.mining.log.count.min", DIFFERS, "capture.window_redo_bytes_max",
            "Windows are cut by bytes of redo, not by SCNs. Keep the default.",
        ),
        (
            "log.mining.sleep.time.default.ms log.mining.sleep.time.min.ms log.mining.sleep.time.max.ms "
            "log.mining.sleep.time.increment.ms", DIFFERS, "dagster.windows.interval_seconds",
            "The pause between two looks. Keep the default.",
        ),
        (
            "log.mining.archive.log.only.mode", TAKEN, "capture.archived_only", "The same.",
        ),
        (
            "log.mining.archive.log.only.scn.poll.interval.ms", DIFFERS, "dagster.windows.interval_seconds",
            "The pause between two looks.",
        ),
        (
            "archive.log.hours log.mining.archive.log.hours", TAKEN, "capture.archive_hours",
            "0 is no limit, Redolake's default.",
        ),
        (
            "archive.destination.name log.mining.archive.destination.name", TAKEN,
            "capture.archive_destinations", "In order of preference.",
        ),
        (
            "log.mining.transaction.retention.ms", ANSWERED, "",
            "No transaction is given up because it is old: its rows wait in files. That property "
            "loses data by design.",
        ),
        (
            "log.mining.session.max.ms log.mining.restart.connection log.mining.window.max.ms", ANSWERED, "",
            "Each window has a LogMiner session of its own.",
        ),
        (
            "log.mining.query.filter.mode", TAKEN, "capture.query_filter", "`none`, `in` and `regex`.",
        ),
        (
            "log.mining.flush.table.name", DIFFERS, "capture.flush_table",
            "Off by default. Debezium creates and writes its table always.",
        ),
        (
            "log.mining.include.redo.sql", TAKEN, "lake.change_log_columns",
            "With `redo_sql` among its columns, `source.redo_sql` has the statement, without values "
            "that are left out or masked.",
        ),
        (
            "log.mining.schema_changes.username.exclude.list", ANSWERED, "",
            "DDL of captured tables counts, whoever issued it.",
        ),
        (
            "log.mining.buffer.type log.mining.buffer.drop.on.stop "
            "log.mining.buffer.infinispan.cache.{cache} log.mining.buffer.infinispan.{option} "
            "log.mining.buffer.ehcache.{cache}", ANSWERED, "",
            "Open transactions wait in landed files, whatever their size.",
        ),
        (
            "log.mining.buffer.transaction.events.threshold", ANSWERED, "",
            "No transaction is too large. That property loses data by design.",
        ),
        (
            "log.mining.buffer.track.rs_id log.mining.buffer.track.client_id "
            "log.mining.buffer.track.username log.mining.buffer.track.commit_timestamp "
            "log.mining.buffer.track.start_timestamp", DIFFERS, "lake.change_log_columns",
            "Which facts of a change the change log has.",
        ),
        (
            "log.mining.buffer.deferred.transaction.start "
            "log.mining.buffer.deferred.transaction.retention.ms deferred.transaction.retention.ms", ANSWERED, "",
            "A transaction without rows of captured tables costs one line of the ledger.",
        ),
        (
            "log.mining.scn.gap.detection.gap.size.min log.mining.scn.gap.detection.time.interval.max.ms", ANSWERED, "",
            "Windows are cut by redo: a jump of the SCN costs nothing.",
        ),
        (
            "log.mining.log.query.max.retries log.mining.log.backoff.initial.delay.ms "
            "log.mining.log.backoff.max.delay.ms", ANSWERED, "",
            "A log that is not archived yet makes its window wait.",
        ),
        (
            "log.mining.max.scn.deviation.ms log.mining.redo.thread.scn.adjustment", ANSWERED, "",
            "A window ends below what every redo thread has written.",
        ),
        (
            "log.mining.use.cte.query log.mining.resume.position.interval.ms object.id.cache.size "
            "log.mining.sql.relaxed.quote.detection offset.activity.monitor.interval.ms", NOT_NEEDED, "",
            "About the inside of Debezium.",
        ),
        (
            "log.mining.hash.area.size log.mining.sort.area.size", MISSING, "",
            "Sessions have the database's own sizes.",
        ),
    ),
    "Schema history and offsets": (
        (
            "schema.history.internal schema.history.internal.name schema.history.internal.{option} "
            "database.history database.history.{option}", ANSWERED, "state.url",
            "Definitions stand in the metadata store, by SCN, and in landing. A lost store is made "
            "again from landing and Delta.",
        ),
        (
            "schema.history.internal.skip.unparseable.ddl database.history.skip.unparseable.ddl", ANSWERED,
            "policies.on_unsupported_ddl",
            "Redolake reads the dictionary as of the DDL's SCN instead of parsing. A DDL that it "
            "cannot follow stops its table, never the others.",
        ),
        (
            "schema.history.internal.store.only.captured.tables.ddl "
            "schema.history.internal.store.only.captured.databases.ddl "
            "database.history.store.only.captured.tables.ddl", ANSWERED, "",
            "Only captured tables are kept. A table that you add later is read by its own snapshot.",
        ),
        (
            "offset.storage offset.storage.{option} offset.flush.interval.ms offset.flush.timeout.ms", ANSWERED, "state.url",
            "Positions stand in the metadata store and in each Delta commit.",
        ),
    ),
}  # fmt: skip

PROPERTIES: tuple[Property, ...] = tuple(
    Property(tuple(names.split()), verdict, tuple(options.split()), said, group)
    for group, entries in _GROUPS.items()
    for names, verdict, options, said in entries
)
"""Every property, in the groups and the order of Debezium's documentation."""


def all_names() -> Iterator[str]:
    """Each property's name, old ones too."""
    for one in PROPERTIES:
        yield from one.names
