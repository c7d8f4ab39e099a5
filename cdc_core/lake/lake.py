"""What can the rest of Redolake ask of the lake?

The steps know this contract only. Delta tables stand behind it
(:class:`cdc_core.lake.delta_lake.DeltaLake`). Methods for different tables may run side by side in
threads. Work on one table must not overlap; callers hold a lease and give its check as ``fence``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import pyarrow as pa

from cdc_core.config import MaintenanceConfig, UnityConfig
from cdc_core.lake.applied_in_delta import AppliedInDelta
from cdc_core.lake.apply.truncation import Truncation
from cdc_core.lake.catalog import Registration
from cdc_core.lake.comparison.sides import MirrorComparison
from cdc_core.lake.side_tables.positions import Positions
from cdc_core.lake.side_tables.source_tables import SideTableName
from cdc_core.lake.table_context import DeltaPosition, Fence, no_fence
from cdc_core.lake.table_part import PLAIN_RULES, ApplyRules, MirrorState, TablePart
from cdc_core.landing.manifest import ChunkManifest, WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer, TableApplied, TableMaintained
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.table import TableSchema


class SideTable(Protocol):
    """One of the tables that a source has beside change logs and mirrors; empty before its first
    row."""

    def position(self) -> int | None:
        """The upper end of the newest window that brought rows; None where none did."""

    def read(
        self, columns: Sequence[str], window: int | None = None, *, since: int = 0
    ) -> pa.Table:
        """Some columns of all rows, or of those of one window, or of definitions from an SCN on."""

    def put(self, rows: pa.Table, window: int) -> None:
        """Let these be the window's rows. Repeatable; makes no commit where they are there, or
        where there are none."""

    def maintain(self, vacuum_hours: int | None) -> None:
        """Put small files together, and remove files that no version of so many hours has (None:
        keep them). No row changes."""


class Lake(Protocol):
    """The change logs and mirrors of one source."""

    def start(self) -> None:
        """Start Spark now, if it does not run yet."""

    def table(self, table: TableId, generation: int = 0, fence: Fence = no_fence) -> TableLake:
        """The Delta tables of a captured table; nothing is read yet.

        Args:
            table: The table.
            generation: Number of times that it was begun anew; part of the transaction identifiers.
            fence: Called right before each commit.
        """

    def publish(self, positions: Positions) -> None:
        """Put the tables' positions beside the Delta tables, in the place of older ones.

        Raises:
            StoreUnavailableError: The storage refuses.
        """

    def side_table(self, name: SideTableName, *, fence: Fence = no_fence) -> SideTable:
        """One of the Delta tables that the source has beside change logs and mirrors; needs no
        Spark."""


class TableLake(Protocol):
    """The change log and the mirror of one captured table."""

    def apply_window(
        self, part: TablePart, state: MirrorState, rules: ApplyRules = PLAIN_RULES
    ) -> TableApplied:
        """Append a window's changes of one table to its change log and merge them into its mirror,
        each once.

        Raises:
            NotYetError: The window before this one was not applied.
            WindowConflictError: The mirror has taken a window that overlaps this one.
            DecodeError: A redo row cannot become a change without guessing; nothing was committed.
            LakeError: Delta refused, or a change without all columns meets a mirror that lacks its
                row.
            LandingDamagedError: A landing file is missing or cannot be read.
            CommitConflictError: Another writer committed; try again.
        """

    def truncate(
        self, truncation: Truncation, transactions_paths: Sequence[str], *, read_scn: int = 0
    ) -> TableApplied:
        """Take a TRUNCATE: one row in the change log, and whatever is older out of the mirror, each
        once; of partitions, a deletion for each row that they had. The part of its window before it
        must be applied. ``read_scn`` is the highest SCN as of which a chunk was read.

        Raises:
            SchemaMismatchError: A transaction of the table committed at the same SCN.
            LakeError, CommitConflictError: As for :meth:`apply_window`.
        """

    def resolve_quarantine(self, scn: int) -> int:
        """Note that the table's rows were read at an SCN, so that rows in quarantine that committed
        up to there count no more; return how many count still. Needs no Spark; repeatable."""

    def quarantine_reasons(self) -> dict[tuple[str, str], int]:
        """How many rows of the table are in quarantine, by operation and reason; needs no Spark."""

    def purge_quarantine(self) -> list[str]:
        """Remove the redo text of all rows in quarantine; return the folders on which VACUUM must
        be run. Repeatable."""

    def apply_chunk(
        self,
        manifest: ChunkManifest,
        paths: Sequence[str],
        *,
        position: int | None = None,
        asked: Sequence[Sequence[Any]] | None = None,
    ) -> TableApplied:
        """Append a chunk to its table's change log and bring its rows into the mirror, each once.

        Args:
            manifest: The chunk.
            paths: Its Parquet files.
            position: scn_high of the last window that the caller knows the mirror took; None before
                the first.
            asked: The keys that the chunk was asked for, where it is a list of keys: those of them
                that it lacks go.

        Raises:
            DuplicateKeyError: Two rows of the chunk have one key.
            LakeError, LandingDamagedError, CommitConflictError: As for :meth:`apply_window`.
        """

    def delete_missing_keys(
        self, snapshot_id: str, scn_lowest: int, *, position: int | None = None
    ) -> TableApplied:
        """After all chunks of a snapshot of the whole table: delete the mirror's rows whose keys
        none of them has.

        Args:
            snapshot_id: The snapshot; all its chunks are applied.
            scn_lowest: The lowest SCN as of which one of them was read.
            position: As for :meth:`apply_chunk`.

        Raises:
            DuplicateKeyError: The mirror has a key twice.
            LakeError, CommitConflictError: As for :meth:`apply_window`.
        """

    def replay_window(
        self,
        manifest: WindowManifest,
        schema: TableSchema,
        *,
        covered_scn: int = 0,
        applied_scn: int = 0,
    ) -> TableApplied:
        """Take an old window again: its keys are derived from the whole change log and mended where
        the mirror differs.

        The landing files are not read, since the window is in the change log. An undamaged mirror
        gets no new version, and ``skipped`` is true. Windows up to ``applied_scn`` were applied: of
        one that left no change, the logs do not say so.

        Raises:
            NotYetError: The mirror has not taken the window yet.
            LakeError, CommitConflictError: As for :meth:`apply_window`.
        """

    def rebuild_mirror(self, schema: TableSchema) -> int:
        """Write the mirror anew from its change log alone; returns its number of rows.

        Raises:
            LakeError: There is no change log, or it does not hold the beginning of every row.
        """

    def set_aside(self) -> list[str]:
        """Rename the folders of both Delta tables, whatever is in them, so that this generation
        begins new ones; returns their new names. A folder in which it has begun stays, and so does
        its place if it is not there.

        Raises:
            LakeError: The place cannot rename folders in one step.
        """

    def purge_column(self, column: str, key: tuple[str, ...]) -> list[str]:
        """Set a column to NULL in mirror and change log; returns the folders on which VACUUM must
        be run. Repeatable.

        Raises:
            ConfigError: The column is part of the key.
            LakeError: There is no mirror.
        """

    def maintain(self, options: MaintenanceConfig, key: tuple[str, ...]) -> list[TableMaintained]:
        """Put small files together, let deletion vectors and clustering follow ``options``, remove
        old files; what became of the mirror and the change log, of each that is there. No row
        changes. Repeatable.

        Raises:
            CommitConflictError: Another writer committed meanwhile.
            LakeError: Spark or Delta refused.
        """

    def prepare_schema(self, schema: TableSchema) -> None:
        """Bring the Delta tables to a newer definition of the table, before the first change that
        needs it is applied.

        Columns at the end are added to change log and mirror, and the mirror's rows get their
        default; dropped ones stay. Repeatable; does nothing for an older definition, or before the
        first snapshot.

        Raises:
            SchemaMismatchError: Anything but columns added at the end, or a default that is no
                literal.
        """

    def definition(self) -> TableSchema | None:
        """The newest version of the table that its Delta tables have, or are being given; None
        without a change log. Needs no Spark."""

    def comparison(self, schema: TableSchema, version: int) -> MirrorComparison:
        """What compares rows of Oracle, landed as Parquet, with a version of the mirror.

        Raises:
            SchemaMismatchError: The mirror lacks columns of ``schema``.
            LakeError: There is no mirror.
        """

    def mirror_version_at(self, scn: int, *, is_in_stream: bool = True) -> int:
        """The version of the mirror that shows Oracle as of an SCN; needs no Spark. It
        ``is_in_stream`` where the table's stream is known to have had no interruption there;
        otherwise the mirror's log must prove it.

        Raises:
            LakeError: The mirror is not there, its log does not reach back so far or does not prove
                it, or the SCN is inside a window that changed the table.
        """

    def register(
        self, wanted: Registration, known: Registration | None, *, unity: UnityConfig | None = None
    ) -> bool:
        """Let a catalog have the names of the table's Delta tables, and the mirror its comments
        (:func:`cdc_core.lake.catalog.register`). Repeatable. False if nothing was missing.

        Raises:
            ConfigError: The catalog has another table under a name.
            LakeError: The catalog refuses.
        """

    def count_events(self, window: ScnWindow) -> pa.Table:
        """How many changes of which transactions the table's change log has of a window; needs no
        Spark."""

    def position(self) -> DeltaPosition:
        """How far the table's change log and mirror are, by Delta's own logs; needs no Spark."""

    def missing_files(self) -> dict[DeltaLayer, list[str] | None]:
        """Which files the table's Delta tables have by their logs and not in their folders; None
        for one that is not there. Needs no Spark."""

    def layer_without(
        self, snapshot_id: str, chunks: Collection[tuple[str, int]]
    ) -> DeltaLayer | None:
        """Which of the table's Delta tables lacks one of some chunks that it had
        (:meth:`TableWork.layer_without`); needs no Spark."""

    def applied(self) -> AppliedInDelta:
        """What the table's Delta tables have taken, by their own logs; needs no Spark."""
