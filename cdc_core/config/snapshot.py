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
    """Take tables in by their definitions where rows are not read."""

    stream: bool = False
    """Capture changes."""

    on_lost_definitions: bool = False
    """Read definitions again where the metadata store has lost them."""

    on_lost_redo: bool = False
    """Read all tables again where Oracle no longer has the redo after the position."""


class SnapshotConfig(ConfigModel):
    """How existing rows are read."""

    mode: SnapshotMode = "initial"
    """What a start does (`redolake run`, `redolake snapshot`, the job
    ``<source>_start_snapshot``). ``initial``, the default: reads each table once. ``always``:
    reads all tables again at each start. ``initial_only``: reads each table once, and captures no
    changes. ``no_data``: takes tables in without their rows. ``recovery``: reads the definitions
    of tables again, for a source that has begun. ``when_needed``: as ``initial``, and reads the
    tables again where redo is gone. ``configuration_based``: by five switches. ``custom``: by a
    class of your own. Debezium's ``schema_only`` and ``schema_only_recovery`` are taken for
    ``no_data`` and ``recovery``, with a warning."""

    configuration_based: ConfigurationBasedMode = ConfigurationBasedMode()
    """The switches of ``mode: configuration_based``."""

    custom: ImportPath | None = None
    """The class of ``mode: custom``, as ``package.module:Class``."""

    include: tuple[str, ...] = ()
    """Names or patterns of the captured tables whose rows are read; others join without rows, as
    in ``mode: no_data``. Empty, the default: all. A table that has joined stays as it is."""

    select_overrides: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    """Which rows a snapshot of a table reads, by ``OWNER.TABLE``: a condition as in a WHERE, or
    ``SELECT * FROM`` the table with a WHERE. The table remembers it when it joins: later
    snapshots, repairs and comparisons keep to it. All changes are captured in any case."""

    sessions: Annotated[int, Field(ge=1, le=64)] | None = None
    """Oracle sessions that read chunks at once, of several tables or of one. By default as many as
    the machine has CPUs, at most 4. A chunk is applied when it has landed; a session waits while as
    many chunks as there are sessions have landed and are not applied. In Dagster, each run has so
    many; ``dagster.pools.snapshot`` bounds the runs."""

    start_scn: Annotated[int, Field(ge=1)] | None = None
    """With ``mode: no_data``, where a new source begins: it captures every transaction that commits
    above this SCN. To take over from another tool, name the highest commit SCN that the tool has
    delivered. Oracle must have the redo from there. By default, the present SCN."""

    start_reads_from: Annotated[int, Field(ge=1)] | None = None
    """From which SCN on redo is read for ``start_scn``: the start of the oldest transaction that
    was open there. A transaction that began earlier and commits above ``start_scn`` stops the
    tables that it changed. By default ``start_scn``."""

    read: Reading = "flashback"
    """How rows are read. ``flashback``, the default: all chunks as of the SCN of their snapshot,
    which takes the FLASHBACK right, and undo as long as the snapshot lasts. ``watermarks``: each
    chunk as it is when it is read, and the redo puts it right, which takes SELECT alone, and undo
    as long as a chunk lasts. ``auto``: by flashback, and by watermarks where Oracle refuses
    that."""

    chunk_rows: Annotated[int, Field(ge=100)] = 500_000
    """Rows that a chunk should have, about."""

    cut: Cut = "auto"
    """What a table is cut into chunks by. ``key``: ranges of the key. ``rowid``: ranges of ROWIDs,
    from the extents in DBA_EXTENTS, without sorting anything; if the capture user cannot read that
    view, from the ROWIDs of the rows. ``partition``: a chunk for each partition or subpartition,
    however large; a table without any is cut as by ``auto``. ``auto``, the default: by the key,
    or by ROWIDs where there is none (``identity``) or ranges cannot be made of its type, such as
    BINARY_DOUBLE or an interval. An index-organized table is cut by its key in any case."""

    surrogate_key: str | None = None
    """A column by whose ranges tables are cut in place of the key, for example an indexed number
    beside a long text key; it may be NULL, and need not be unique. Tables without such a column
    are cut by ``cut``."""

    sample_from_rows: Annotated[int, Field(ge=1)] | None = 5_000_000
    """From so many rows on, by the table's statistics, chunks are cut by a sample of its blocks,
    and are of about the same size; below, and for null, all keys are read and sorted, unless one
    chunk holds the table. A table without statistics is read."""

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
            raise ValueError("start_scn needs mode: no_data, since rows are read as of the present")
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
