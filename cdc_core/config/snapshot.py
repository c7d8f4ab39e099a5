"""What can a user configure of snapshots?"""

from __future__ import annotations

import logging
import os
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from cdc_core.config.base import ConfigModel, checked
from cdc_core.config.signals import ImportPath
from cdc_core.model.identifiers import TableId
from cdc_core.model.patterns import TablePattern

_LOG = logging.getLogger(__name__)

SnapshotMode = Literal[
    "initial",
    "always",
    "initial_only",
    "no_data",
    "recovery",
    "when_needed",
    "configuration_based",
    "custom",
]
Cut = Literal["auto", "key", "rowid", "partition"]
Reading = Literal["flashback", "watermarks", "auto"]
SESSIONS_BY_DEFAULT_MAX = 4
_ALIASES = {"schema_only": "no_data", "schema_only_recovery": "recovery"}


class ConfigurationBasedMode(ConfigModel):
    """The five switches of ``mode: configuration_based``."""

    data: bool = False
    """Read rows at each start."""

    definitions: bool = False
    """Let tables join with their definitions if their rows are not read."""

    stream: bool = False
    """Capture changes."""

    on_lost_definitions: bool = False
    """Read definitions again if the metadata store has lost them."""

    on_lost_redo: bool = False
    """Read all tables again if Oracle no longer has the redo after the position."""


class SnapshotConfig(ConfigModel):
    """How Redolake reads existing rows."""

    mode: SnapshotMode = "initial"
    """What a start does (`redolake run`, `redolake snapshot`, the job
    ``<source>_start_snapshot``). ``initial``, the default: reads each table once. ``always``:
    reads all tables again at each start. ``initial_only``: reads each table once, and captures no
    changes. ``no_data``: lets tables join without their rows. ``recovery``: reads the definitions
    of tables again, for a source that has begun. ``when_needed``: like ``initial``, but reads the
    tables again if redo is gone. ``configuration_based``: follows five switches. ``custom``: calls
    a class of your own. Debezium's ``schema_only`` and ``schema_only_recovery`` mean ``no_data``
    and ``recovery``, with a warning."""

    configuration_based: ConfigurationBasedMode = ConfigurationBasedMode()
    """The switches of ``mode: configuration_based``."""

    custom: ImportPath | None = None
    """The class of ``mode: custom``, as ``package.module:Class``."""

    include: tuple[str, ...] = ()
    """Names or patterns of the captured tables whose rows Redolake reads; others join without rows,
    as in ``mode: no_data``. Empty, the default: all. Tables that have joined are not affected."""

    select_overrides: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    """Which rows snapshots of a table read, by ``OWNER.TABLE``: a condition as in a WHERE, or
    ``SELECT * FROM`` the table with a WHERE. The table remembers the condition when it joins: later
    snapshots, repairs and comparisons use it. Redolake captures all changes in any case."""

    sessions: Annotated[int, Field(ge=1, le=64)] | None = None
    """Oracle sessions that read chunks at once, of several tables or of one. By default as many as
    the machine has CPUs, at most 4. Redolake applies a chunk when it has landed; a session waits
    while as many landed chunks as there are sessions are not applied. In Dagster, this number
    applies to each run; ``dagster.pools.snapshot`` limits the runs."""

    start_scn: Annotated[int, Field(ge=1)] | None = None
    """With ``mode: no_data``, where a new source begins: it captures every transaction that commits
    above this SCN. To take over from another tool, use the highest commit SCN that the tool has
    delivered. Oracle must have the redo from there. By default, the current SCN."""

    start_reads_from: Annotated[int, Field(ge=1)] | None = None
    """The SCN from which Redolake reads redo for ``start_scn``: the start of the oldest transaction
    that was open there. A transaction that began earlier and commits above ``start_scn`` stops the
    tables that it changed. By default ``start_scn``."""

    read: Reading = "flashback"
    """How Redolake reads rows. ``flashback``, the default: all chunks as of the SCN of their
    snapshot. This needs the FLASHBACK right, and undo for the duration of the snapshot.
    ``watermarks``: each chunk as it is at the time of the read, corrected by the redo. This needs
    only SELECT, and undo for the duration of a chunk. ``auto``: flashback, or watermarks if Oracle
    refuses that."""

    chunk_rows: Annotated[int, Field(ge=100)] = 500_000
    """Approximate number of rows in a chunk."""

    cut: Cut = "auto"
    """How Redolake cuts a table into chunks. ``key``: by ranges of the key. ``rowid``: by ranges of
    ROWIDs, from the extents in DBA_EXTENTS, without sorting; if the capture user cannot read that
    view, from the ROWIDs of the rows. ``partition``: a chunk for each partition or subpartition,
    however large; a table without partitions is cut as with ``auto``. ``auto``, the default: by the
    key, or by ROWIDs if there is no key (``identity``) or its type has no ranges, such as
    BINARY_DOUBLE or an interval. An index-organized table is always cut by its key."""

    surrogate_key: str | None = None
    """A column by whose ranges Redolake cuts tables instead of the key, for example an indexed
    number next to a long text key; it may be NULL, and need not be unique. Tables without such a
    column are cut by ``cut``."""

    sample_from_rows: Annotated[int, Field(ge=1)] | None = 5_000_000
    """If a table's statistics show at least this many rows, Redolake cuts chunks by a sample of its
    blocks, so that they have about the same size. Otherwise, and for null, it reads and sorts all
    keys, unless the table fits one chunk. It reads all keys of a table without statistics."""

    @field_validator("mode", mode="before")
    @classmethod
    def _older_name(cls, mode: Any) -> Any:
        if isinstance(mode, str) and mode in _ALIASES:
            _LOG.warning("snapshot.mode: %s is now called %s", mode, _ALIASES[mode])
            return _ALIASES[mode]
        return mode

    @field_validator("select_overrides")
    @classmethod
    def _are_tables(cls, overrides: dict[str, str]) -> dict[str, str]:
        return {checked(name, TableId.parse): text for name, text in overrides.items()}

    @field_validator("include")
    @classmethod
    def _are_patterns(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(checked(name, TablePattern.parse) for name in names)

    @model_validator(mode="after")
    def _custom_has_a_class(self) -> Self:
        if (self.mode == "custom") != (self.custom is not None):
            raise ValueError("mode: custom and snapshot.custom need each other")
        return self

    @model_validator(mode="after")
    def _start_is_without_rows(self) -> Self:
        if self.start_scn is not None and self.mode != "no_data":
            raise ValueError("start_scn needs mode: no_data: rows are read as of the current SCN")
        if self.start_reads_from is not None and self.start_reads_from > (self.start_scn or 0):
            raise ValueError("start_reads_from needs a start_scn at or above it")
        return self

    @property
    def sessions_at_once(self) -> int:
        """How many sessions read chunks at once on this machine."""
        return self.sessions or min(os.cpu_count() or 1, SESSIONS_BY_DEFAULT_MAX)

    @property
    def rereads_behind_gaps(self) -> bool:
        """Are tables read again where redo is gone, unless a policy says otherwise?"""
        if self.mode == "configuration_based":
            return self.configuration_based.on_lost_redo
        return self.mode == "when_needed"

    def override(self, table: TableId) -> str | None:
        """Which rows of a table are read, as it is written; None for all."""
        named = {TableId.parse(name): text for name, text in self.select_overrides.items()}
        return named.get(table)

    def includes(self, table: TableId) -> bool:
        """Are the rows of a captured table read?"""
        return not self.include or any(
            TablePattern.parse(name).matches(table) for name in self.include
        )
