"""What can the rest of Redolake ask of the lake?

The steps know this contract only. Delta tables stand behind it
(:class:`cdc_core.lake.delta_lake.DeltaLake`). Methods for different tables may run side by side in
threads. Work on one table must not overlap; callers hold a lease and give its check as ``fence``,
which is called right before each commit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

from cdc_core.config import MaintenanceConfig
from cdc_core.lake.applied_in_delta import AppliedInDelta
from cdc_core.lake.apply.chunk_prewrite import ChunkAhead
from cdc_core.lake.apply.truncation import Truncation
from cdc_core.lake.catalog import Registration
from cdc_core.lake.comparison.sides import MirrorComparison
from cdc_core.lake.side_tables.positions import Positions
from cdc_core.lake.side_tables.source_tables import BesideName
from cdc_core.lake.table_context import DeltaPosition, Fence, no_fence
from cdc_core.lake.table_part import PLAIN_RULES, ApplyRules, MirrorState, TablePart
from cdc_core.landing.manifest import ChunkManifest, SchemaChange, WindowManifest
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

    def close(self) -> None:
        """Forget the lake. The JVM belongs to the process and stays for the next one."""

    def apply_window(
        self,
        part: TablePart,
        state: MirrorState,
        rules: ApplyRules = PLAIN_RULES,
        *,
        fence: Fence = no_fence,
    ) -> TableApplied:
        """Append a window's changes of one table to its change log and merge them into its mirror,
        each once. ``fence`` is called right before each commit.

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
        self,
        table: TableId,
        truncation: Truncation,
        transactions_paths: Sequence[str],
        generation: int = 0,
        *,
        read_scn: int = 0,
        fence: Fence = no_fence,
    ) -> TableApplied:
        """Take a TRUNCATE: one row in the change log, and whatever is older out of the mirror, each
        once; of partitions, a deletion for each row that they had. The part of its window before it
        must be applied. ``read_scn`` is the highest SCN as of which a chunk was read.

        Raises:
            SchemaMismatchError: A transaction of the table committed at the same SCN.
            LakeError, CommitConflictError: As for :meth:`apply_window`.
        """

    def restore_quarantine(
        self,
        part: TablePart,
        state: MirrorState,
        *,
        keeps_text: bool = True,
        fence: Fence = no_fence,
    ) -> int:
        """Put the rows of an applied window that its change log does not have into quarantine
        again, where they are lost, with their redo text or without; return how many of the table
        are there."""

    def resolve_quarantine(
        self, table: TableId, scn: int, generation: int = 0, *, fence: Fence = no_fence
    ) -> int:
        """Note that the table's rows were read at an SCN, so that rows in quarantine that committed
        up to there count no more; return how many count still. Needs no Spark; repeatable."""

    def quarantine_reasons(self, table: TableId) -> dict[tuple[str, str], int]:
        """How many rows of the table are in quarantine, by operation and reason; needs no Spark."""

    def purge_quarantine(
        self, table: TableId, generation: int = 0, *, fence: Fence = no_fence
    ) -> list[str]:
        """Remove the redo text of all rows in quarantine; return the folders on which VACUUM must
        be run. Repeatable."""

    def begin_chunk(
        self,
        schema: TableSchema,
        snapshot_id: str,
        number: int,
        scn: int,
        landed: datetime,
        *,
        generation: int = 0,
        is_exact: bool = True,
        have_own_keys: bool = False,
    ) -> ChunkAhead | None:
        """Begin to write the files of a chunk while it is read; give what this returns to
        :meth:`apply_chunk`, and discard it behind that.
        None where nothing is gained: the rows cannot simply be appended.

        Args:
            schema: The table's version in which the chunk is read.
            snapshot_id: The chunk's snapshot.
            number: Its number there.
            scn: As of which SCN it is read.
            landed: What its manifest will say.
            generation: As for :meth:`apply_window`.
            is_exact: As the manifest will say.
            have_own_keys: As the manifest will say of its rows.
        """

    def apply_chunk(
        self,
        manifest: ChunkManifest,
        paths: Sequence[str],
        *,
        generation: int = 0,
        position: int | None = None,
        asked: Sequence[Sequence[Any]] | None = None,
        ahead: ChunkAhead | None = None,
        fence: Fence = no_fence,
    ) -> TableApplied:
        """Append a chunk to its table's change log and bring its rows into the mirror, each once.

        Args:
            manifest: The chunk.
            paths: Its Parquet files.
            generation: As for :meth:`apply_window`.
            position: scn_high of the last window that the caller knows the mirror took; None before
                the first.
            asked: The keys that the chunk was asked for, where it is a list of keys: those of them
                that it lacks go.
            ahead: The files that :meth:`begin_chunk` began; they are taken if they hold what the
                chunk's landed files give.
            fence: Called right before each commit.

        Raises:
            DuplicateKeyError: Two rows of the chunk have one key.
            LakeError, LandingDamagedError, CommitConflictError: As for :meth:`apply_window`.
        """

    def remove_gone(
        self,
        table: TableId,
        snapshot_id: str,
        scn_lowest: int,
        *,
        generation: int = 0,
        position: int | None = None,
        fence: Fence = no_fence,
    ) -> TableApplied:
        """After all chunks of a snapshot of the whole table: delete the mirror's rows whose keys
        none of them has.

        Args:
            table: The table.
            snapshot_id: The snapshot; all its chunks are applied.
            scn_lowest: The lowest SCN as of which one of them was read.
            generation: As for :meth:`apply_window`.
            position: As for :meth:`apply_chunk`.
            fence: Called right before each commit.

        Raises:
            DuplicateKeyError: The mirror has a key twice.
            LakeError, CommitConflictError: As for :meth:`apply_window`.
        """

    def replay_window(
        self,
        manifest: WindowManifest,
        table: TableId,
        schema: TableSchema,
        generation: int = 0,
        *,
        covered_scn: int = 0,
        applied_scn: int = 0,
        is_inexact: bool = False,
        fence: Fence = no_fence,
    ) -> TableApplied:
        """Take an old window again: its keys are derived from the whole change log and mended where
        the mirror differs.

        The landing files are not read, since the window is in the change log. An undamaged mirror
        gets no new version, and ``skipped`` is true. Windows up to ``applied_scn`` were applied: of
        one that left no change, the logs do not say so. Where commits that belong at or below the
        mirror's position come with a window that it has not taken (``is_inexact``), rows may go of
        which the change log does not know yet that they came.

        Raises:
            NotYetError: The mirror has not taken the window yet.
            LakeError, CommitConflictError: As for :meth:`apply_window`.
        """

    def rebuild_mirror(
        self,
        table: TableId,
        schema: TableSchema,
        generation: int = 0,
        *,
        is_inexact: bool = False,
        fence: Fence = no_fence,
    ) -> int:
        """Write the mirror anew from its change log alone; returns its number of rows.
        ``is_inexact`` is as for :meth:`replay_window`.

        Raises:
            LakeError: There is no change log, or it does not hold the beginning of every row.
        """

    def set_aside(self, table: TableId, *, generation: int, fence: Fence = no_fence) -> list[str]:
        """Rename the folders of both Delta tables, whatever is in them, so that ``generation``
        begins new ones; returns their new names. A folder in which ``generation`` has begun stays,
        and so does its place if it is not there.

        Raises:
            LakeError: The place cannot rename folders in one step.
        """

    def purge_column(
        self,
        table: TableId,
        column: str,
        key: tuple[str, ...],
        generation: int = 0,
        *,
        fence: Fence = no_fence,
    ) -> list[str]:
        """Set a column to NULL in mirror and change log; returns the folders on which VACUUM must
        be run. Repeatable.

        Raises:
            ConfigError: The column is part of the key.
            LakeError: There is no mirror.
        """

    def maintain(
        self,
        table: TableId,
        options: MaintenanceConfig,
        key: tuple[str, ...],
        *,
        generation: int = 0,
        fence: Fence = no_fence,
    ) -> list[TableMaintained]:
        """Put small files together, let deletion vectors and clustering follow ``options``, remove
        old files; what became of the mirror and the change log, of each that is there. No row
        changes. Repeatable.

        Raises:
            CommitConflictError: Another writer committed meanwhile.
            LakeError: Spark or Delta refused.
        """

    def prepare_schema(
        self,
        change: SchemaChange | TableSchema,
        generation: int = 0,
        *,
        drops_columns: bool = False,
        fence: Fence = no_fence,
    ) -> None:
        """Bring the Delta tables to a newer definition of the table, before the first change that
        needs it is applied.

        Columns at the end are added to change log and mirror, and the mirror's rows get their
        default; with ``drops_columns`` the mirror loses the columns that Oracle dropped.
        Repeatable; does nothing for an older definition, or before the first snapshot.

        Raises:
            SchemaMismatchError: Anything but columns added at the end, or a default that is no
                literal.
        """

    def definition(self, table: TableId, generation: int = 0) -> TableSchema | None:
        """The newest version of the table that its Delta tables have, or are being given; None
        without a change log. Needs no Spark."""

    def comparison(self, table: TableId, schema: TableSchema, version: int) -> MirrorComparison:
        """What compares rows of Oracle, landed as Parquet, with a version of the mirror.

        Raises:
            SchemaMismatchError: The mirror lacks columns of ``schema``.
            LakeError: There is no mirror.
        """

    def mirror_version_at(self, table: TableId, scn: int, *, is_in_stream: bool = True) -> int:
        """The version of the mirror that shows Oracle as of an SCN; needs no Spark. It
        ``is_in_stream`` where the table's stream is known to have had no interruption there;
        otherwise the mirror's log must prove it.

        Raises:
            LakeError: The mirror is not there, its log does not reach back so far or does not prove
                it, or the SCN is inside a window that changed the table.
        """

    def publish(self, positions: Positions) -> None:
        """Put the tables' positions beside the Delta tables, in the place of older ones.

        Raises:
            StoreUnavailableError: The storage refuses.
        """

    def register(
        self,
        table: TableId,
        wanted: Registration,
        known: Registration | None,
        *,
        fence: Fence = no_fence,
    ) -> bool:
        """Let Spark's catalog have the names of the table's Delta tables, and the mirror its
        comments (:func:`cdc_core.lake.catalog.register`). Repeatable. False if nothing was
        missing.

        Raises:
            ConfigError: The catalog has another table under a name.
            LakeError: The catalog refuses.
        """

    def beside(self, name: BesideName, *, fence: Fence = no_fence) -> SideTable:
        """One of the Delta tables that the source has beside change logs and mirrors; needs no
        Spark."""

    def count_events(self, table: TableId, window: ScnWindow) -> pa.Table:
        """How many changes of which transactions the table's change log has of a window; needs no
        Spark."""

    def position(self, table: TableId, generation: int = 0) -> DeltaPosition:
        """How far the table's change log and mirror are, by Delta's own logs; needs no Spark."""

    def gone_files(self, table: TableId) -> dict[DeltaLayer, list[str]]:
        """Which files the table's Delta tables have by their logs and not in their folders; needs
        no Spark."""

    def layer_without(
        self,
        table: TableId,
        generation: int,
        snapshot_id: str,
        chunks: Collection[tuple[str, int]],
    ) -> DeltaLayer | None:
        """Which of the table's Delta tables lacks one of some chunks that it had
        (:meth:`TableWork.layer_without`); needs no Spark."""

    def taken(self, table: TableId, generation: int = 0) -> AppliedInDelta:
        """What the table's Delta tables have taken, by their own logs; needs no Spark."""
