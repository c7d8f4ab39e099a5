"""What can a user configure of a database, of the stores beside it, and so of one source?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import Field, SecretStr, field_validator, model_validator

from cdc_core.config.base import SECRET_PARAMETER, ConfigModel, Name, split_url_password
from cdc_core.config.tables import Policy, PolicyConfig, TableConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.streams import Trouble


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
        return _without_secret(dsn)


def _without_secret(dsn: str) -> str:
    if "@" in re.split(r"[(?]", dsn, maxsplit=1)[0] or SECRET_PARAMETER.search(dsn):
        raise ValueError(
            "it holds a user name or a password: write the connect string alone, the name under `user`, "
            "and the password into an environment variable that `password_env` names"
        )
    return dsn


CloseAt = Literal["completed_logs", "online"]

LogsBy = Literal["files", "scn_range"]

Strategy = Literal["online_catalog", "redo_log_catalog", "hybrid", "dictionary_from_file"]

ReadingMode = Literal["uncommitted", "committed"]

LobsFrom = Literal["redo", "reselect"]

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

    lobs: LobsFrom = "redo"
    """Where LOB values come from that the redo carries in part: after `DBMS_LOB.WRITE`, `WRITEAPPEND`, `ERASE` or `TRIM` on a value that
    the transaction did not write itself. ``redo``, the default: from nowhere; ``on_undecodable`` says what becomes of such a row.
    ``reselect``: Redolake reads them by key as of the commit of their transaction, and lands them with the window. Oracle needs the undo since
    then, and runs a query for each transaction with such changes. (Debezium's ReselectColumnsPostProcessor reads the row as it is now.)"""

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

    standby_dsn: str | None = None
    """Connect string of a physical standby that is open read only, such as ``standby.example.com:1521/ORCL``: LogMiner runs there, over the
    standby's archived logs, up to the SCN that it has applied. Everything else is asked of the primary, which ``oracle.dsn`` names; user,
    password and certificates are those under ``oracle``. Needs ``close_at: completed_logs`` and ``strategy: dictionary_from_file``, since
    Oracle refuses every other dictionary where it cannot write (ORA-01300)."""

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

    @property
    def reads_archived_only(self) -> bool:
        """Are the files that the primary writes left alone? A standby has only archived ones."""
        return self.archived_only or self.standby_dsn is not None

    @field_validator("standby_dsn")
    @classmethod
    def _has_no_secret(cls, dsn: str | None) -> str | None:
        return None if dsn is None else _without_secret(dsn)

    @model_validator(mode="after")
    def _fits_a_standby(self) -> Self:
        if self.standby_dsn is None:
            return self
        if self.strategy != "dictionary_from_file":
            raise ValueError(
                "with standby_dsn set strategy to dictionary_from_file: on a database that is open read only, Oracle starts LogMiner with no "
                "other dictionary (ORA-01300)"
            )
        if self.close_at == "online":
            raise ValueError(
                "standby_dsn needs close_at: completed_logs: a standby has the redo of logs that the primary has switched"
            )
        return self

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
    and for null, all keys are read and sorted, unless one chunk holds the table. A table without statistics is read."""


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
_S3_LOG_STORE = "S3SingleDriverLogStore"
"""Delta's own log store for S3."""

_S3_DYNAMODB = "S3DynamoDBLogStore"


ExecutorsFrom = Annotated[int, Field(ge=1)] | Literal["auto", "never"]

ChangeLogColumn = Literal["ssn", "start_scn", "start_timestamp", "client_id", "landed"]


class LakeConfig(ConfigModel):
    """Where the Delta tables are, and how Spark is started."""

    path: str
    """Folder of the Delta tables: ``<path>/<source>/mirror/<owner.table>`` and ``…/changelog/<owner.table>``. On S3 (``s3a://bucket/path``,
    after ``redolake setup --s3``) one process writes at a time."""

    spark_master: str = "local[2]"
    """Spark's master URL: ``local[N]`` for N threads in Redolake's process, or a cluster such as ``spark://host:7077``. A cluster's
    executors get Delta's jars from the driver; landing and lake must be where every executor sees them under the
    same path. Where they cannot call the driver under the address that Spark finds, name it as ``spark.driver.host`` under
    ``spark_config``. Spark Connect (``sc://``) is refused."""

    spark_config: dict[str, str] = Field(default_factory=dict)
    """Further Spark settings; they win over ours."""

    driver_memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[kmgtKMGT]b?$")] = "2g"
    """Heap of the Spark driver: a number and a unit, as in ``2g`` or ``512m``."""

    tables_at_once: Annotated[int, Field(ge=1, le=16)] = 2
    """Tables that are merged side by side."""

    stage_on_executors_from_rows: ExecutorsFrom = "auto"
    """From how many redo rows of one table and window on Spark's executors stage the window: they decode the rows, write the change log's
    files and reduce the changes to one row per key. Threads of Redolake's process stage smaller windows. ``auto``: 1,000,000 rows, and only
    on a cluster. A number holds for ``local[N]`` too. ``never``: executors run no Python. Executors that stage need Redolake, in the same
    version, in their Python (``spark.pyspark.python`` under ``spark_config``; by default the path of the driver's Python). With landing on S3
    threads stage all windows; under ``auto`` also where the executors turn out to lack Redolake."""

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

    @model_validator(mode="after")
    def _keeps_commits(self) -> Self:
        """Delta's log stores for other storage write to S3 as to a file system that renames in one step, and the one with locks in DynamoDB
        knows nothing of what delta-rs commits: commits get lost."""
        for name, store in self._log_stores.items():
            given = store.rpartition(".")[2]
            if given == _S3_DYNAMODB:
                raise ValueError(
                    f"spark_config.{name}: Redolake commits through delta-rs too, which does not take this log store's locks in DynamoDB, "
                    "so commits to S3 could overwrite each other without an error; leave it out: one process writes at a time"
                )
            if given != _S3_LOG_STORE:
                raise ValueError(
                    f"spark_config.{name}: with this log store, commits to S3 overwrite each other without an error; leave it out"
                )
        return self

    @property
    def is_local(self) -> bool:
        """Do the executors run in the driver's process?"""
        return self.spark_master.partition("[")[0] == "local"

    @property
    def is_on_s3(self) -> bool:
        """Are the Delta tables in S3, or a store that speaks its protocol?"""
        return self._scheme in _S3_SCHEMES

    @property
    def has_atomic_commits(self) -> bool:
        """Does a commit fail where another writer made one? Delta's own way of writing to S3 overwrites it without an error."""
        return not self.is_on_s3

    @property
    def _scheme(self) -> str:
        scheme, has_scheme, _ = self.path.partition("://")
        return scheme if has_scheme else ""

    @property
    def _log_stores(self) -> dict[str, str]:
        """The settings that name a log store for a lake on S3, and the class that each names."""
        names = (f"spark.delta.logStore.{self._scheme}.impl", "spark.delta.logStore.class")
        given = {name: self.spark_config[name] for name in names if name in self.spark_config}
        return given if self.is_on_s3 else {}


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
        if split_url_password(url)[1] is not None or SECRET_PARAMETER.search(url):
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
    def _executors_see_landing(self) -> SourceConfig:
        if isinstance(self.lake.stage_on_executors_from_rows, int) and isinstance(
            self.landing, S3LandingConfig
        ):
            raise ValueError(
                "lake.stage_on_executors_from_rows: executors read landing from a folder, and this landing is on S3: "
                "use auto or never, or landing.type local in a folder that all machines share"
            )
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
    def lake_beside_landing(self) -> LakeConfig:
        """The lake's configuration; executors stage nothing where they do not see landing."""
        if isinstance(self.landing, S3LandingConfig):
            return self.lake.model_copy(update={"stage_on_executors_from_rows": "never"})
        return self.lake

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

    def drops_columns(self, table: TableId) -> bool:
        """Shall the mirror lose what Oracle dropped? What holds for the source where the table is not captured any more."""
        own = self.entries.get(table)
        return ((own and own.dropped_columns) or self.policies.dropped_columns) == "drop"

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
