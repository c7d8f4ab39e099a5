"""How is redo read?"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from cdc_core.config.base import ConfigModel, checked, dsn_without_secret
from cdc_core.model.identifiers import TableId

CloseAt = Literal["completed_logs", "online"]

LogsBy = Literal["files", "scn_range"]

Strategy = Literal["online_catalog", "redo_log_catalog", "dictionary_from_file"]

LobsFrom = Literal["redo", "reselect"]

QueryFilterMode = Literal["in", "none", "regex"]

Destination = Annotated[str, Field(pattern=r"^LOG_ARCHIVE_DEST_([1-9]|[12][0-9]|3[01])$")]

_OBJECTS_URL = re.compile(
    r"(s3://[^@/:?]+|abfss://[^@/:]+@[^@/:]+\.[^@/:?]+|gs://[^@/:?]+)(/[^@/?]+)+/?"
)


def _known(folder: str) -> str:
    if "://" in folder and not _OBJECTS_URL.fullmatch(folder):
        raise ValueError(
            "it is neither a folder nor s3://bucket/path, abfss://container@account.dfs.core.windows.net/path or gs://bucket/path; "
            "credentials come from the environment"
        )
    return folder


RecordFolder = Annotated[str, AfterValidator(_known)]
"""A folder on this machine, or a URL of an object store."""


class CaptureOptions(ConfigModel):
    """What every reader of redo has, and what the rest of Redolake may ask about one."""

    windows_per_run_max: Annotated[int, Field(gt=0)] = 20
    """Most windows that one scheduled run applies."""

    @property
    def flushed(self) -> TableId | None:
        """The table that the reader itself writes to; it is never captured."""
        return None

    @property
    def reselects_lobs(self) -> bool:
        """Are LOBs that the redo does not carry whole read from Oracle?"""
        return False

    @property
    def prefetch_sessions(self) -> int:
        """Sessions that prefetch windows; 1 where nothing is prefetched."""
        return 1

    @property
    def waits_for_log_switch(self) -> bool:
        """Do windows end at log switches only?"""
        return False


class LogMinerConfig(CaptureOptions):
    """Read redo through DBMS_LOGMNR."""

    type: Literal["logminer"] = "logminer"

    close_at: CloseAt = "completed_logs"
    """Where windows end. ``completed_logs``, the default: at the end of the newest switched log of
    every redo thread. Such a window is complete by Oracle's own rules and can be read again from
    files that do not change. Changes wait for the next log switch; ``ARCHIVE_LAG_TARGET`` limits
    this time. ``online``: at the redo written last, for latencies of seconds. Redo of an open
    transaction can reach the log late, so the next window reads again from the beginning of the log
    that was current."""

    logs: LogsBy = "files"
    """How LogMiner finds the redo logs to read. ``files``, the default: Redolake names each file,
    in ``CDB$ROOT`` if the database has containers. ``scn_range``: LogMiner finds the logs of a
    window itself, inside the pluggable database of the tables. Use it for databases without access
    to the root, such as Amazon RDS with containers and Autonomous Database. The capture user is
    then a local one (``deploy/oracle/user_pdb.sql``)."""

    strategy: Strategy = "online_catalog"
    """The dictionary that gives LogMiner the names. ``online_catalog``, the default: the current
    one. It has no names for rows from before a DDL; Redolake decodes these with the definition of
    their time. (Debezium calls this ``hybrid``.) ``redo_log_catalog``: one that a database
    administrator wrote into the redo (``deploy/oracle/build_dictionary.sql``). Rows then have the
    names of their time, and for each window, Oracle reads all redo since that dictionary: keep the
    archived logs from it on. ``dictionary_from_file``: the file that ``dictionary_file`` names, for
    databases without containers. All three give the same tables."""

    lobs: LobsFrom = "redo"
    """How Redolake handles LOBs, XMLTYPEs and long strings of which the redo carries only a part,
    for example after `DBMS_LOB.WRITE`, `WRITEAPPEND`, `ERASE` or `TRIM` on a value that the
    transaction did not write itself. ``redo``, the default: such a row is undecodable
    (``on_undecodable``). ``reselect``: Redolake reads the values by key as of the commit of their
    transaction, and lands them with the window. Oracle needs the undo since then, and runs one
    query for up to 100 commits with such changes. (Debezium's ReselectColumnsPostProcessor does the
    same, but reads the current row if the undo has expired.)"""

    query_filter: QueryFilterMode = "in"
    """How the query of V$LOGMNR_CONTENTS selects tables. ``in``, the default: by lists of their
    names and object numbers. ``none``: not at all; Oracle sends the redo of every table, and
    Redolake filters it. Use it for sources that capture nearly everything. ``regex``: with a
    REGEXP_LIKE for each pattern of ``tables`` instead of the names that it matched; other names and
    object numbers stay in lists. The same files land with all three, and rows of other tables never
    do."""

    dictionary_file: str | None = None
    """The path of a dictionary file on the database's host, for
    ``strategy: dictionary_from_file``."""

    archived_only: bool = False
    """Read archived logs only, never the files that the database writes. A window then waits until
    its logs are archived. Needs ``close_at: completed_logs``."""

    archive_destinations: tuple[Destination, ...] = ()
    """Archive destinations whose files Redolake reads, such as ``LOG_ARCHIVE_DEST_2``; if several
    have a log, the first one. Empty, the default: every local destination."""

    archive_hours: Annotated[float, Field(gt=0)] | None = None
    """Redolake treats archived logs that began earlier than this many hours ago as deleted, even if
    Oracle lists them: for sites that move old logs away without RMAN. A window that needs one
    stops. By default, Redolake uses every log that Oracle lists."""

    standby_dsn: str | None = None
    """Connect string of a physical standby that is open read only, such as
    ``standby.example.com:1521/ORCL``: LogMiner runs there, over the standby's archived logs, up to
    the SCN that it has applied. Redolake sends all other queries to the primary, which
    ``oracle.dsn`` names; user, password and certificates are those under ``oracle``. Needs
    ``close_at: completed_logs`` and ``strategy: dictionary_from_file``, because a read-only
    database accepts no other dictionary (ORA-01300)."""

    flush_table: str | None = None
    """A table with one row, ``OWNER.TABLE``, for ``close_at: online``. Redolake updates the row and
    commits before it plans a window: the COMMIT makes the instance write its redo buffer. Redolake
    never captures this table, even if a pattern matches its name. By default, there is none, and
    Redolake writes nothing; set it if windows wait for the redo of an idle cluster instance.
    ``deploy/oracle/optional.sql`` creates the table."""

    flush_dsns: tuple[str, ...] = ()
    """Connect strings of the cluster instances in which Redolake updates ``flush_table``, each in a
    separate session. User, password and certificates are those under ``oracle``. If Redolake cannot
    reach an instance, it logs a warning and continues. Empty, the default: the instance that
    ``oracle.dsn`` leads to."""

    window_redo_bytes_max: Annotated[int, Field(gt=0)] = 2 * 1024**3
    """Most redo that one window reads, in bytes; Redolake cuts windows at log boundaries."""

    sessions: Annotated[int, Field(ge=1, le=16)] = 2
    """Sessions in which LogMiner prefetches the redo of pending windows, each with its own
    connection. Windows land in order, so the number of sessions affects only the time. Redolake
    prefetches only redo that no longer changes, of windows that end below the logs being written.
    Prefetched rows wait in unnamed files next to landing (in ``landing.cache`` for S3), for at most
    as many windows as sessions. Oracle reads each log once for each window that begins or ends in
    it, and one LogMiner session uses one CPU of the database: ``1`` is the smallest load."""

    @property
    def reselects_lobs(self) -> bool:
        """Are LOBs that the redo does not carry whole read from Oracle?"""
        return self.lobs == "reselect"

    @property
    def prefetch_sessions(self) -> int:
        """Sessions that prefetch windows; 1 where nothing is prefetched."""
        return self.sessions

    @property
    def waits_for_log_switch(self) -> bool:
        """Do windows end at log switches only?"""
        return self.close_at == "completed_logs"

    @property
    def reads_archived_only(self) -> bool:
        """Are the files that the primary writes left alone? A standby has only archived ones."""
        return self.archived_only or self.standby_dsn is not None

    @property
    def flushed(self) -> TableId | None:
        """The table of ``flush_table``."""
        return None if self.flush_table is None else TableId.parse(self.flush_table)

    @field_validator("flush_table")
    @classmethod
    def _is_a_table(cls, name: str | None) -> str | None:
        return None if name is None else checked(name, TableId.parse)

    @field_validator("flush_dsns")
    @classmethod
    def _have_no_secret(cls, dsns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dsn_without_secret(dsn) for dsn in dsns)

    @field_validator("standby_dsn")
    @classmethod
    def _has_no_secret(cls, dsn: str | None) -> str | None:
        return None if dsn is None else dsn_without_secret(dsn)

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
    def _flushes_what_it_reads(self) -> Self:
        if self.flush_table is not None and self.close_at != "online":
            raise ValueError(
                "flush_table needs close_at: online: with completed_logs, a log switch writes the redo buffer anyway"
            )
        if self.flush_dsns and self.flush_table is None:
            raise ValueError("flush_dsns needs flush_table, whose row is updated there")
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
                "with logs: scn_range LogMiner finds its logs itself: archived_only, archive_destinations and archive_hours need "
                "logs: files"
            )
        if self.archived_only and self.close_at == "online":
            raise ValueError(
                "archived_only needs close_at: completed_logs, since close_at: online ends windows in logs that are not archived yet"
            )
        return self


class OpenLogReplicatorConfig(CaptureOptions):
    """Read OpenLogReplicator's JSON: files in a ``folder``, or messages of its network writer at
    ``host``."""

    type: Literal["openlogreplicator"] = "openlogreplicator"

    folder: RecordFolder | None = None
    """The folder that OpenLogReplicator's file writer fills, or to which its files are copied; also
    in an object store: ``s3://bucket/path``,
    ``abfss://container@account.dfs.core.windows.net/path`` or ``gs://bucket/path``, with
    credentials (and ``AWS_ENDPOINT_URL``) from the environment. Redolake only reads it. You may
    remove a file once all windows up to the beginning of the next one are captured."""

    files: str = "*.json"
    """A pattern of OpenLogReplicator's files in the folder. Redolake reads them in the order of
    their names, comparing numbers by value: use ``%i`` in the ``output`` of its writer."""

    host: str | None = None
    """The machine on which OpenLogReplicator's network writer listens, instead of ``folder``. It
    serves one client at a time."""

    port: Annotated[int, Field(gt=0, lt=65536)] = 8600
    """The port of its ``uri``."""

    source: str | None = None
    """The ``name`` of OpenLogReplicator's source; needed with ``host``."""

    idle_seconds: Annotated[float, Field(gt=0)] = 5
    """Seconds that Redolake waits for the next message of the network writer. Changes that the
    messages until then do not prove complete wait for the next run."""

    queue_size: Annotated[int, Field(gt=0)] = 65536
    """``queue-size`` of the network writer: with this many unconfirmed messages, it stops sending.
    Set both above the number of messages of the longest transaction."""

    database: str | None = None
    """The pluggable database whose messages Redolake reads, by its name under ``db``. By default,
    all messages must be of one database."""

    numeric_times: Literal["ns", "us", "ms", "s"] = "ns"
    """The unit of dates and timestamps that arrive as numbers, according to OpenLogReplicator's
    ``timestamp`` option. Times in ISO 8601 need no unit."""

    binary_floats: Literal["refuse", "take", "reselect"] = "refuse"
    """How Redolake handles BINARY_FLOAT and BINARY_DOUBLE, of which OpenLogReplicator writes only
    six significant digits. ``refuse``, the default: a table that captures such a column leaves the
    stream at its first change. ``take``: the rounded values land, and a comparison with Oracle
    finds the differences. ``reselect``: Redolake reads the values by ROWID as of the commit of
    their transaction. Oracle needs the undo since then, and runs one query for up to 100 commits;
    the old image of a change lacks the values. Redolake decodes rows of such tables one by one."""

    window_bytes_max: Annotated[int, Field(ge=1024)] = 256 * 1024**2
    """Approximate size of a window's messages, in bytes: a window ends at the first place after
    them where the messages prove it complete."""

    @model_validator(mode="after")
    def _reads_one_writer(self) -> Self:
        if (self.folder is None) == (self.host is None):
            raise ValueError(
                "name either folder, with OpenLogReplicator's files, or host, where its network writer listens"
            )
        if self.host is not None and self.source is None:
            raise ValueError("host needs source, the name of OpenLogReplicator's source")
        return self


class XStreamConfig(CaptureOptions):
    """Read the logical change records (LCRs) of an XStream outbound server: recordings in a
    ``folder``, or from the ``server`` itself through Oracle's client library, which this project
    has never run against. XStream needs a licence for Oracle GoldenGate."""

    type: Literal["xstream"] = "xstream"

    folder: RecordFolder | None = None
    """The folder with recordings: LCRs in JSON, one per line, in the format of
    reference/lcr-files.md. It may be in an object store, as for OpenLogReplicator. Redolake only
    reads it. You may remove a file once all windows up to the beginning of the next one are
    captured."""

    files: str = "*.jsonl"
    """A pattern of the recordings in the folder. Redolake reads them in the order of their names,
    comparing numbers by value."""

    server: str | None = None
    """The outbound server, instead of ``folder``. It serves one client at a time."""

    dsn: str | None = None
    """Connect string for the library to reach the outbound server, which is in the root container.
    By default ``oracle.dsn``; user and password are those of ``oracle``."""

    library: str | None = None
    """The file of Oracle's client library, such as ``/opt/instantclient/libclntsh.so``. By default,
    the system finds it."""

    idle_seconds: Annotated[float, Field(ge=1)] = 5
    """Seconds that the outbound server waits for the next LCR before it reports that it has
    none."""

    database: str | None = None
    """The database whose LCRs Redolake reads, by its name in them. By default, all must be of one
    database."""

    lobs: LobsFrom = "redo"
    """How Redolake handles LOBs that are written in pieces (`DBMS_LOB.WRITE`, `ERASE` or `TRIM`),
    of which no LCR has the whole value. ``redo``, the default: a table that captures such a LOB
    leaves the stream. ``reselect``: Redolake reads the values by ROWID as of the commit of their
    transaction. Oracle needs the undo since then, and runs one query for up to 100 commits with
    such changes."""

    window_bytes_max: Annotated[int, Field(ge=1024)] = 256 * 1024**2
    """Approximate size of a window's recorded LCRs, in bytes: a window ends at the first place
    after them where it is known to be complete."""

    @property
    def reselects_lobs(self) -> bool:
        """Are LOBs that the redo does not carry whole read from Oracle?"""
        return self.lobs == "reselect"

    @model_validator(mode="after")
    def _reads_one(self) -> Self:
        if (self.folder is None) == (self.server is None):
            raise ValueError(
                "name either folder, with recordings of LCRs, or server, which sends them"
            )
        return self

    @field_validator("dsn")
    @classmethod
    def _has_no_secret(cls, dsn: str | None) -> str | None:
        return None if dsn is None else dsn_without_secret(dsn)


def _reader_of(given: Any) -> str:
    """Which alternative a configuration means: LogMiner where it does not say."""
    if isinstance(given, dict):
        return str(given.get("type", "logminer"))
    return str(getattr(given, "type", "logminer"))


CaptureConfig = Annotated[
    Annotated[LogMinerConfig, Tag("logminer")]
    | Annotated[OpenLogReplicatorConfig, Tag("openlogreplicator")]
    | Annotated[XStreamConfig, Tag("xstream")],
    Discriminator(_reader_of),
]
"""How a source's redo is read."""
