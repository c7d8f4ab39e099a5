"""What can a user configure of one source?

One frozen tree; unknown keys are refused; the string under a field is its documentation. ``pipelines`` reads files and
environment, everything below receives these values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.patterns import TablePattern
from cdc_core.model.streams import Trouble

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
HeldAs = Annotated[
    str,
    Field(
        pattern=r"^(text|double|decimal\(([1-9]|[12][0-9]|3[0-8]),([0-9]|[12][0-9]|3[0-8])\)|boolean|hex|base64|base64url|iso8601|timestamp"
        r"|microseconds|nanoseconds)$"
    ),
]
TypeName = Literal[
    "NUMBER(1)",
    "NUMBER",
    "FLOAT",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP WITH LOCAL TIME ZONE",
    "INTERVAL YEAR TO MONTH",
    "INTERVAL DAY TO SECOND",
    "RAW",
    "BLOB",
]
Mask = Annotated[
    str,
    Field(pattern=r"^((stars|truncate)\([1-9][0-9]{0,3}\)|hash\((sha256|sha384|sha512)\))$"),
]

_SECRET_PARAMETER = re.compile(r"(?i)\b\w*passw(or)?d\s*=|\bpwd\s*=")
_URL_PASSWORD = re.compile(r"(?s)([\w+]+://[^:/@]*):(.*)@(.*)")


def split_url_password(url: str) -> tuple[str, str | None]:
    """A database URL without its password, and the password as it was meant; None where it has none."""
    found = _URL_PASSWORD.fullmatch(url)
    return (f"{found[1]}@{found[3]}", unquote(found[2])) if found else (url, None)


class ConfigModel(BaseModel):
    """Frozen, no unknown keys, documentation from the strings under the fields; errors never show a given value."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True
    )


class OracleConfig(ConfigModel):
    """How to reach the database."""

    dsn: str
    """Easy Connect string (``db.example.com:1521/ORCLPDB1``, ``tcps://…`` for TLS), descriptor, or a name of
    ``tnsnames.ora``. Without user and password."""

    user: str
    """The capture user; `deploy/oracle/` has the grants that it needs."""

    password: SecretStr
    """Its password. In a file, name an environment variable under ``password_env`` instead."""

    call_timeout_seconds: Annotated[int, Field(gt=0)] = 600
    """Longest time that one call to the database may take, in seconds."""

    connect_timeout_seconds: Annotated[float, Field(gt=0)] = 20
    """Longest time that connecting may take, in seconds."""

    fetch_rows: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    """Rows per fetch and per Arrow batch."""

    config_dir: str | None = None
    """Folder with ``tnsnames.ora``, for a dsn that is a name in it; the environment's ``TNS_ADMIN`` by default."""

    wallet_location: str | None = None
    """Folder with ``ewallet.pem``: the certificates to trust and, for mutual TLS, the client's own with its key."""

    wallet_password: SecretStr | None = None
    """Password of the wallet's key. In a file, name an environment variable under ``wallet_password_env`` instead."""

    server_certificate_match: bool = True
    """Refuse a server whose certificate is for another host."""

    server_certificate_dn: str | None = None
    """Distinguished name that the server's certificate must have, instead of the host's name."""

    @field_validator("dsn")
    @classmethod
    def _has_no_secret(cls, dsn: str) -> str:
        if "@" in re.split(r"[(?]", dsn, maxsplit=1)[0] or _SECRET_PARAMETER.search(dsn):
            raise ValueError(
                "it holds a user name or a password: write the connect string alone, the name under `user`, "
                "and the password into an environment variable that `password_env` names"
            )
        return dsn


class PolicyConfig(ConfigModel):
    """What Redolake does with a table when it meets something that it cannot follow. ``stop`` stops the table and reports the reason and
    the command that brings it back. ``resnapshot`` rereads that table with a new snapshot, without your help. ``remove`` removes the
    table without an error, and keeps its Delta tables. ``ignore`` continues with the table. Other tables always continue. Each table
    can have its own policies."""

    on_truncate: Literal["stop", "resnapshot"] = "stop"
    """Rows were removed without redo for each row: TRUNCATE, or a partition that was dropped or exchanged."""

    on_drop: Literal["stop", "resnapshot", "remove"] = "stop"
    """The table was dropped, renamed, or dropped and created again. ``resnapshot`` waits until a table of that name exists: created
    again, renamed, or restored from the recycle bin."""

    on_unsupported_ddl: Literal["stop", "resnapshot"] = "stop"
    """Any other DDL that Redolake cannot follow, such as a column of another type or another key. Where the Delta tables cannot hold the
    new definition, the new snapshot starts new ones and moves the old ones aside."""

    on_undecodable: Literal["stop", "resnapshot", "quarantine"] = "stop"
    """Redolake cannot turn a redo row into a change without guessing. ``quarantine`` keeps the redo row in a Delta table beside mirror and
    change log, and continues with the table: the row that it changed is missing, stale or left over in the mirror until
    ``redolake table resnapshot`` or ``redolake repair``."""

    quarantine_rows_max: Annotated[int, Field(gt=0)] = 1000
    """A table with more rows in quarantine stops."""

    on_unlogged: Literal["stop", "resnapshot", "ignore"] = "stop"
    """Something was written without redo into a tablespace of the table (UNRECOVERABLE_CHANGE# of a data file grew). Oracle does not say
    what it was: a load into a NOLOGGING table, or an index that was rebuilt. ``ignore`` only writes a warning to the log; choose it
    if captured tables are never written that way."""

    resnapshot_hours_min: Annotated[float, Field(gt=0)] = 12
    """If the same problem recurs within this many hours after a policy reread the table, or before its new snapshot is complete,
    Redolake stops the table instead of rereading it endlessly."""


class TableConfig(ConfigModel):
    """One captured table, or a pattern for many."""

    name: str
    """``OWNER.TABLE``; double quotes around a part that is not upper case. With ``*`` (any characters) or ``?`` (one character) a
    pattern, for example ``SHOP.*``: Redolake captures every table that matches and can be captured. A table that another entry
    names in full is that entry's, else it belongs to the first pattern that matches."""

    exclude: tuple[str, ...] = ()
    """Of a pattern: tables, or patterns of tables, that it leaves out."""

    columns_exclude: tuple[str, ...] = ()
    """Columns that are not captured, for example of types that are not supported. Of a pattern: in every table that has them;
    columns of types that are not supported are left out by themselves."""

    columns_as: dict[str, HeldAs] = Field(default_factory=dict)
    """Types to use for columns instead of the default type mapping, in snapshots and in the log. A NUMBER or FLOAT: ``text`` (exact), ``decimal(p,s)``, or
    ``double``, which may round; a NUMBER of up to 18 digits: ``boolean``. A DATE or TIMESTAMP: ``text``, ``iso8601``, ``microseconds`` or
    ``nanoseconds`` since 1970, a TIMESTAMP also ``timestamp``. A time with zone: ``iso8601``. An interval: ``iso8601`` or
    ``microseconds``. A RAW or BLOB: ``hex``, ``base64`` or ``base64url``, a RAW also ``text``. A value that does not fit is an error. Not for
    columns of the key. Of a pattern: in every table that has them."""

    types_as: dict[TypeName, HeldAs] = Field(default_factory=dict)
    """The same for all columns of a type, for example ``{NUMBER(1): boolean, RAW: hex}``; the name is the type without digits, or ``NUMBER(1)``.
    Columns that ``columns_as`` names, and columns of the key, are left to it."""

    columns_mask: dict[str, Mask] = Field(default_factory=dict)
    """What replaces the values of columns, in snapshots and in the log, before anything lands: ``stars(n)`` for n asterisks, ``truncate(n)`` for the
    first n characters, ``hash(sha256)`` (or ``sha384``, ``sha512``) for the hexadecimal digest of ``masks.salt`` and the value. For CHAR,
    VARCHAR2, NCHAR and NVARCHAR2; not for columns of the key. NULL stays NULL. Of a pattern: in every table that has them."""

    key: tuple[str, ...] = ()
    """Columns that identify a row, all NOT NULL; by default the primary key, else a unique index over NOT NULL columns. Not for a
    pattern."""

    identity: Literal["key", "rowid"] = "key"
    """What identifies a row. ``key``, the default: its key. ``rowid``: its ROWID, for a table that has no key; mirror and change log
    hold it in the column ``_cdc_row_id``. A table whose rows get other ROWIDs (``ALTER TABLE … MOVE``, ``SHRINK SPACE``, partitions
    that are split or merged) leaves the stream, until you take a new snapshot of it. Not for index-organized tables, for tables
    with LOBs, and for a pattern."""

    paused: bool = False
    """Leave the mirror as it is while Redolake continues to capture the table's redo. When you remove the option, the table takes the
    windows that it has missed. ``redolake table pause`` and ``resume`` do the same without the file."""

    on_truncate: Literal["stop", "resnapshot"] | None = None
    """As ``policies.on_truncate``, for this table; by default that of the source."""

    on_drop: Literal["stop", "resnapshot", "remove"] | None = None
    """As ``policies.on_drop``, for this table; by default that of the source."""

    on_unsupported_ddl: Literal["stop", "resnapshot"] | None = None
    """As ``policies.on_unsupported_ddl``, for this table; by default that of the source."""

    on_undecodable: Literal["stop", "resnapshot", "quarantine"] | None = None
    """As ``policies.on_undecodable``, for this table; by default that of the source."""

    on_unlogged: Literal["stop", "resnapshot", "ignore"] | None = None
    """As ``policies.on_unlogged``, for this table; by default that of the source."""

    skipped_operations: tuple[Literal["c", "u", "d"], ...] | None = None
    """As ``events.skipped_operations``, for this table; by default that of the source."""

    skip_unchanged: bool | None = None
    """As ``events.skip_unchanged``, for this table; by default that of the source."""

    deletion_vectors: Literal["auto", "always", "never"] | None = None
    """As ``maintenance.deletion_vectors``, for this table; by default that of the source."""

    cluster_by_key: bool | None = None
    """As ``maintenance.cluster_by_key``, for this table; by default that of the source."""

    @field_validator("name")
    @classmethod
    def _is_table(cls, name: str) -> str:
        return _checked(name, TablePattern.parse if TablePattern.is_in(name) else TableId.parse)

    @field_validator("exclude")
    @classmethod
    def _are_patterns(cls, exclude: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_checked(text, TablePattern.parse) for text in exclude)

    @model_validator(mode="after")
    def _fits_what_is_named(self) -> Self:
        if self.is_pattern and (self.key or self.identity != "key"):
            raise ValueError("a pattern has no key or identity: give the table an entry of its own")
        if self.key and self.identity != "key":
            raise ValueError(
                "key names columns, and identity says that rows have none: leave one of them out"
            )
        if both := sorted(self.columns_mask.keys() & set(self.columns_exclude)):
            raise ValueError(f"columns are both excluded and masked: {', '.join(both)}")
        if self.exclude and not self.is_pattern:
            raise ValueError("only a pattern excludes tables, for example the name 'SHOP.*'")
        return self

    @property
    def is_pattern(self) -> bool:
        """Does the entry name tables by a pattern?"""
        return TablePattern.is_in(self.name)

    @property
    def has_own_key(self) -> bool:
        """Is it for the table itself to say what identifies a row?"""
        return not self.key and self.identity == "key"

    @property
    def table(self) -> TableId:
        """The table that is named. A pattern names none."""
        return TableId.parse(self.name)

    def takes(self, table: TableId) -> bool:
        """Is the table one that this pattern names and does not exclude?"""
        if not self.is_pattern or not TablePattern.parse(self.name).matches(table):
            return False
        return not any(TablePattern.parse(text).matches(table) for text in self.exclude)


class MatchedTable(TableConfig):
    """A table that a pattern took in. ``columns_exclude`` may name columns that the table does not have, or not yet."""

    @property
    def is_pattern(self) -> bool:
        """Never, whatever characters the table's name has."""
        return False


def _checked(text: str, parse: Callable[[str], object]) -> str:
    try:
        parse(text)
    except ConfigError as error:
        raise ValueError(str(error)) from error  # what pydantic gathers with the other problems
    return text


Policy = Literal["stop", "resnapshot", "remove", "ignore", "quarantine"]

CloseAt = Literal["completed_logs", "online"]

LogsBy = Literal["files", "scn_range"]

Strategy = Literal["online_catalog", "redo_log_catalog", "hybrid", "dictionary_from_file"]

ReadingMode = Literal["uncommitted", "committed"]

Destination = Annotated[str, Field(pattern=r"^LOG_ARCHIVE_DEST_([1-9]|[12][0-9]|3[01])$")]


class LogMinerConfig(ConfigModel):
    """Read redo through DBMS_LOGMNR."""

    type: Literal["logminer"] = "logminer"

    close_at: CloseAt = "completed_logs"
    """Where windows end. ``completed_logs``, the default: at the end of the newest switched log of every redo thread. Such a
    window is complete by Oracle's own rules and can be read again from files that do not change; changes wait for the next log
    switch, which ``ARCHIVE_LAG_TARGET`` bounds. ``online``: at the redo written last, for latencies of seconds. Redo of an open
    transaction can reach the log late, so the next window looks back to the beginning of the log that was current."""

    logs: LogsBy = "files"
    """How LogMiner learns which redo logs to read. ``files``, the default: Redolake names each file, in ``CDB$ROOT`` where there
    are containers. ``scn_range``: LogMiner finds the logs of a window by itself, inside the pluggable database of the tables; for
    databases whose root is out of reach, such as Amazon RDS with containers and Autonomous Database. The capture user is then a
    local one (``deploy/oracle/user_pdb.sql``)."""

    strategy: Strategy = "online_catalog"
    """Which dictionary LogMiner names the rows by. ``online_catalog``, the default: the present one; rows that it does not name, since a
    DDL came after them, Redolake decodes by the definition of their time. ``hybrid``: the same; other tools have it as an option of its
    own. ``redo_log_catalog``: one that a database administrator wrote into the redo (``deploy/oracle/build_dictionary.sql``); rows then
    have the names of their time, and Oracle reads all redo from that dictionary on for each window. Keep the archived logs from it on.
    ``dictionary_from_file``: the file that ``dictionary_file`` names, for databases without containers. All four give the same tables."""

    reading: ReadingMode = "uncommitted"
    """Who assembles transactions. ``uncommitted``, the default: Redolake does; redo is read once, and a transaction of any size needs no
    memory. ``committed``: LogMiner does (COMMITTED_DATA_ONLY). The tables are the same, but Oracle holds each transaction in the memory
    of the session until its COMMIT, and reads redo again, window for window, from the beginning of the oldest open transaction: keep the
    logs since then. Needs ``close_at: completed_logs``. Change it when no transaction is open."""

    dictionary_file: str | None = None
    """The path of a dictionary file on the database's host, for ``strategy: dictionary_from_file``."""

    archived_only: bool = False
    """Read archived logs only, never the files that the database writes. A window then waits until its logs are archived. Needs
    ``close_at: completed_logs``."""

    archive_destinations: tuple[Destination, ...] = ()
    """Archive destinations whose files are read, such as ``LOG_ARCHIVE_DEST_2``; of a log that several of them hold, the first one's. Empty, the
    default: every local destination."""

    archive_hours: Annotated[float, Field(gt=0)] | None = None
    """Archived logs that began earlier than this many hours ago count as gone, even if Oracle lists them: for sites that move old logs away
    without RMAN. A window that needs one stops. By default every log that Oracle lists counts."""

    window_redo_bytes_max: Annotated[int, Field(gt=0)] = 2 * 1024**3
    """Redo handed to one window, in bytes; windows are cut at log boundaries to respect it."""

    sessions: Annotated[int, Field(ge=1, le=16)] = 2
    """Sessions in which LogMiner reads the redo of several windows at once where more than one waits; each has a connection of its
    own. A window is landed in its turn, so more sessions change nothing but the time. Only redo that does not change any more is read
    early: of windows that end below the logs that are being written. Early rows wait in files without a name beside landing (in
    ``landing.cache`` for S3), those of as many windows at most. Oracle reads each log once for each window that begins or ends in it,
    and one LogMiner session uses one CPU of the database: ``1`` asks least of it."""

    windows_per_run_max: Annotated[int, Field(gt=0)] = 20
    """Windows that one scheduled run takes at most."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if (self.strategy == "dictionary_from_file") != (self.dictionary_file is not None):
            raise ValueError("dictionary_file and strategy: dictionary_from_file need each other")
        if self.logs == "scn_range" and self.strategy in (
            "redo_log_catalog",
            "dictionary_from_file",
        ):
            raise ValueError(
                "inside a pluggable database LogMiner has the online catalog only (ORA-01371): with logs: scn_range leave strategy at "
                "online_catalog"
            )
        chosen = self.archived_only or self.archive_destinations or self.archive_hours
        if self.logs == "scn_range" and chosen:
            raise ValueError(
                "with logs: scn_range LogMiner finds its logs by itself: archived_only, archive_destinations and archive_hours need "
                "logs: files"
            )
        if self.reading == "committed" and self.close_at == "online":
            raise ValueError(
                "reading: committed needs close_at: completed_logs: where LogMiner shows transactions by their commits, nothing tells which "
                "rows reached a log late"
            )
        if self.archived_only and self.close_at == "online":
            raise ValueError(
                "archived_only needs close_at: completed_logs, since close_at: online ends windows in logs that are not archived yet"
            )
        return self


class SnapshotConfig(ConfigModel):
    """How existing rows are read."""

    chunk_rows: Annotated[int, Field(ge=100)] = 500_000
    """Rows that a chunk should have, about."""

    chunk_by: Literal["key", "rowid"] = "key"
    """Cut chunks by ranges of the key, or by ROWID ranges from the table's extents."""

    sample_from_rows: Annotated[int, Field(ge=1)] | None = 5_000_000
    """From so many rows on, by the table's statistics, chunks are cut by a sample of its blocks, and are of about the same size; below,
    and for null, all keys are read and sorted. A table without statistics is read."""


class LocalLandingConfig(ConfigModel):
    """Landing files in a folder."""

    type: Literal["local"] = "local"

    path: str
    """Folder; created if it is not there."""


class S3LandingConfig(ConfigModel):
    """Landing files in S3. Credentials come from the environment as boto3 finds them."""

    type: Literal["s3"] = "s3"

    bucket: str
    """Bucket, which must exist."""

    prefix: str = "redolake"
    """Key prefix."""

    endpoint_url: str | None = None
    """Another endpoint than AWS's, for S3-compatible stores."""

    @field_validator("endpoint_url")
    @classmethod
    def _has_no_secret(cls, url: str | None) -> str | None:
        if url is not None and "@" in url:
            raise ValueError(
                "it holds a name or a key: credentials come from the environment as boto3 finds them "
                "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE …)"
            )
        return url

    cache: str
    """Local folder where files are kept while Spark reads them."""


_S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})


ChangeLogColumn = Literal["ssn", "start_scn", "start_timestamp", "client_id", "landed"]


class LakeConfig(ConfigModel):
    """Where the Delta tables are, and how Spark is started."""

    path: str
    """Folder of the Delta tables: ``<path>/<source>/mirror/<owner.table>`` and ``…/changelog/<owner.table>``. On S3 one process
    writes at a time, unless ``spark_config`` names a log store with atomic commits (``spark.delta.logStore.s3a.impl``)."""

    spark_master: str = "local[2]"
    """Spark's master URL: ``local[N]`` for N threads in Redolake's process, or a cluster such as ``spark://host:7077``. A cluster's
    executors get Delta's jars from the driver and run no Python; landing and lake must be where every executor sees them under the
    same path. Where they cannot call the driver under the address that Spark finds, name it as ``spark.driver.host`` under
    ``spark_config``. Spark Connect (``sc://``) is refused."""

    spark_config: dict[str, str] = Field(default_factory=dict)
    """Further Spark settings; they win over ours."""

    driver_memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[kmgtKMGT]b?$")] = "2g"
    """Heap of the Spark driver: a number and a unit, as in ``2g`` or ``512m``."""

    tables_at_once: Annotated[int, Field(ge=1, le=16)] = 2
    """Tables that are merged side by side."""

    change_log_columns: tuple[ChangeLogColumn, ...] = (
        "ssn",
        "start_scn",
        "start_timestamp",
        "client_id",
        "landed",
    )
    """Which facts of a change the change log holds besides those that Redolake itself needs: each in a column ``_cdc_…``, which is NULL
    where you leave it out here, and in rows from before. All of them are the same for a whole transaction or window, but for ``ssn``,
    and take little space."""

    transactions: bool = False
    """Keep a Delta table of the transactions whose changes the change logs have: ``<path>/<source>/transactions``, one row for each, with
    the number of its changes per table, so that a reader knows when it has all. It costs one commit a window."""

    schema_changes: bool = True
    """Keep a Delta table of what became of the tables' definitions: ``<path>/<source>/schema_changes``."""

    @field_validator("spark_master")
    @classmethod
    def _is_classic(cls, url: str) -> str:
        if url.startswith("sc:"):
            raise ValueError(
                "Spark Connect is not supported: each table's work needs a session of its own, and a Connect client has one; "
                "name the cluster itself (spark://host:port)"
            )
        return url

    @property
    def is_local(self) -> bool:
        """Do the executors run in the driver's process?"""
        return self.spark_master.partition("[")[0] == "local"

    @property
    def has_atomic_commits(self) -> bool:
        """Does a commit fail where another writer made one? Delta's own way of writing to S3 overwrites it without an error."""
        scheme, has_scheme, _ = self.path.partition("://")
        if not has_scheme or scheme not in _S3_SCHEMES:
            return True
        given = [
            self.spark_config.get(f"spark.delta.logStore.{name}")
            for name in (f"{scheme}.impl", "class")
        ]
        return any(
            name is not None and not name.endswith(".S3SingleDriverLogStore") for name in given
        )


class StateConfig(ConfigModel):
    """The metadata store."""

    url: str
    """SQLAlchemy URL without a password: ``sqlite:////absolute/path.db`` or ``postgresql+psycopg2://user@host/db``.
    In a file, ``url_env`` may name an environment variable that holds the whole URL instead."""

    password: SecretStr | None = None
    """Password of the URL's user. In a file, name an environment variable under ``password_env`` instead."""

    lease_seconds: Annotated[float, Field(gt=1)] = 60
    """A process that gave no sign of life for so long has lost its source to others, in seconds."""

    @field_validator("url")
    @classmethod
    def _has_no_secret(cls, url: str) -> str:
        if split_url_password(url)[1] is not None or _SECRET_PARAMETER.search(url):
            raise ValueError(
                "it holds a password: put the password into an environment variable that `password_env` names, "
                "or the whole URL into one that `url_env` names"
            )
        return url

    @property
    def url_with_password(self) -> str:
        """The URL to connect with. Never print it."""
        if self.password is None:
            return self.url
        scheme, _, rest = self.url.partition("://")
        user, at, host = rest.rpartition("@")
        secret = quote(self.password.get_secret_value(), safe="")
        return f"{scheme}://{user}:{secret}@{host}" if at else f"{scheme}://:{secret}@{rest}"


class SignalConfig(ConfigModel):
    """Where signals come from besides the metadata store."""

    table: str | None = None
    """A signal table in Oracle (``id VARCHAR2``, ``type VARCHAR2``, ``data VARCHAR2``), read only; None for none."""


class RetentionConfig(ConfigModel):
    """How long windows are kept. Change logs and mirrors are not touched by it."""

    window_days: Annotated[int, Field(ge=1)] | None = None
    """Days for which an applied window's landing files and record stay, so that it can be replayed; None keeps
    them. Windows of open transactions stay in any case."""


DeletionVectors = Literal["auto", "always", "never"]


class MaintenanceConfig(ConfigModel):
    """What `redolake maintain` does to mirrors and change logs."""

    deletion_vectors: DeletionVectors = "auto"
    """Whether MERGE marks rows of a mirror as deleted instead of rewriting their files. ``auto``: in mirrors of 500,000 rows and
    more whose recent MERGEs copied 20 times as many rows as they changed. A mirror that has them needs readers that know
    deletion vectors (Spark, Databricks, Trino, DuckDB; of delta-rs ``QueryBuilder``, not ``to_pyarrow_table``)."""

    cluster_by_key: bool = False
    """Keep mirrors clustered by their key (liquid clustering): MERGE reads fewer files where a window's keys lie close together."""

    target_file_mb: Annotated[int, Field(ge=1, le=1024)] = 128
    """Size up to which small files are put together, in MiB. A MERGE without deletion vectors writes whole files."""

    vacuum_hours: Annotated[int, Field(ge=1)] | None = 168
    """Files that no version of so many hours has are removed; time travel and `redolake reconcile --scn` reach back no
    further. None keeps them."""


class EventsConfig(ConfigModel):
    """Which changes of change logs are no events: each has its reason in ``_cdc_skipped``, where all others have NULL. They stay in the
    change log, since mirrors are made of it: a mirror takes every change, whatever is skipped. ``redolake table events`` leaves
    them out, and the table of transactions does not count them. Rows of snapshots are never skipped."""

    skipped_operations: tuple[Literal["c", "u", "d"], ...] = ()
    """Operations: ``c`` inserts, ``u`` updates, changes of key among them, ``d`` deletes. For TRUNCATE there is ``policies.on_truncate``."""

    skip_unchanged: bool = False
    """Updates that leave every captured column as it was. What the redo does not tell counts as changed; values are compared as they are
    captured, masked ones after masking."""

    users_include: tuple[str, ...] = ()
    """The only users whose transactions are events, in Oracle's spelling. A transaction whose user LogMiner does not know always is."""

    users_exclude: tuple[str, ...] = ()
    """Users whose transactions are no events, in Oracle's spelling. Not together with ``users_include``."""

    clients_include: tuple[str, ...] = ()
    """The same by the session's CLIENT_IDENTIFIER: the only ones whose transactions are events. One without an identifier always is."""

    clients_exclude: tuple[str, ...] = ()
    """Client identifiers whose transactions are no events. Not together with ``clients_include``."""

    @model_validator(mode="after")
    def _lists_one_side(self) -> Self:
        for who in ("users", "clients"):
            if getattr(self, f"{who}_include") and getattr(self, f"{who}_exclude"):
                raise ValueError(f"{who}_include and {who}_exclude: leave one of them out")
        return self


class MaskConfig(ConfigModel):
    """What all ``columns_mask`` share."""

    salt: SecretStr | None = None
    """Secret text that is hashed with each value, so that nobody finds values by hashing guesses. In a file, name an environment variable
    under ``salt_env`` instead. Keep it: with another salt, equal values get other hashes."""


class SourceConfig(ConfigModel):
    """One Oracle database and the tables captured from it."""

    name: Name
    """Name of the source: part of asset keys, folders and Delta transaction identifiers. Never change it."""

    oracle: OracleConfig
    tables: Annotated[tuple[TableConfig, ...], Field(min_length=1)]
    masks: MaskConfig = MaskConfig()
    policies: PolicyConfig = PolicyConfig()
    capture: LogMinerConfig = LogMinerConfig()
    snapshot: SnapshotConfig = SnapshotConfig()
    landing: Annotated[LocalLandingConfig | S3LandingConfig, Field(discriminator="type")]
    lake: LakeConfig
    state: StateConfig
    signals: SignalConfig = SignalConfig()
    retention: RetentionConfig = RetentionConfig()
    maintenance: MaintenanceConfig = MaintenanceConfig()
    events: EventsConfig = EventsConfig()

    @model_validator(mode="after")
    def _tables_differ(self) -> SourceConfig:
        names = [config.name if config.is_pattern else config.table for config in self.tables]
        twice = {str(name) for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"tables named more than once: {', '.join(sorted(twice))}")
        return self

    @model_validator(mode="after")
    def _hashes_have_a_salt(self) -> SourceConfig:
        hashed = [
            one.name
            for one in self.tables
            if any(mask.startswith("hash") for mask in one.columns_mask.values())
        ]
        if hashed and self.masks.salt is None:
            raise ValueError(
                f"columns_mask hashes columns of {', '.join(hashed)}: name the environment variable with the salt under masks.salt_env"
            )
        return self

    @property
    def has_patterns(self) -> bool:
        """Must Oracle be asked which tables there are?"""
        return any(config.is_pattern for config in self.tables)

    def policy(self, table: TableId, trouble: Trouble) -> Policy:
        """What becomes of a captured table that met a trouble; KeyError if it is not captured."""
        own: Policy | None = getattr(self.table(table), f"on_{trouble}")
        default: Policy = getattr(self.policies, f"on_{trouble}")
        return own or default

    def with_policy(self, trouble: Trouble, policy: Policy) -> frozenset[TableId]:
        """The captured tables that have this policy for a trouble."""
        named = (config.table for config in self.tables if not config.is_pattern)
        return frozenset(table for table in named if self.policy(table, trouble) == policy)

    def maintenance_of(self, table: TableId) -> MaintenanceConfig:
        """How a captured table's Delta tables are maintained; KeyError if it is not captured."""
        own = self.table(table)
        given = {
            name: getattr(own, name)
            for name in ("deletion_vectors", "cluster_by_key")
            if getattr(own, name) is not None
        }
        return self.maintenance.model_copy(update=given)

    def events_of(self, table: TableId) -> EventsConfig:
        """Which changes of a table are no events; what holds for the source where the table is not captured any more."""
        own = self.entries.get(table)
        names = ("skipped_operations", "skip_unchanged")
        given = {name: getattr(own, name) for name in names if getattr(own, name, None) is not None}
        return self.events.model_copy(update=given)

    def table(self, table: TableId) -> TableConfig:
        """The configuration of a captured table; KeyError if it is not captured."""
        if (entry := self.entries.get(table)) is None:
            raise KeyError(str(table))
        return entry

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values; what was made of the old ones does not go with it."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("entries", None)
        return copied

    @cached_property
    def entries(self) -> Mapping[TableId, TableConfig]:
        """The entries that name a table, by the table; of two, the first. Looked up for each table of each window, so made once."""
        named = [entry for entry in self.tables if not entry.is_pattern]
        return {entry.table: entry for entry in reversed(named)}
