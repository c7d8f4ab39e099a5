"""What can the rest of Redolake ask of the lake? The class :class:`Lake`.

It knows Spark and Delta, and neither Oracle nor Dagster. Methods for different tables may run side by side in threads: each
call works in a Spark session of its own. Work on one table must not overlap; callers hold a lease and give its check as
``fence``, which is called right before each commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdc_core.config import LakeConfig, MaintenanceConfig
from cdc_core.decode.dml import decode_dml
from cdc_core.delta.history import read_commits, read_log, version_at
from cdc_core.delta.missing_files import gone_files
from cdc_core.errors import LakeError
from cdc_core.lake.applied_in_delta import Taken, read_taken
from cdc_core.lake.chunk_prewrite import ChunkAhead, begin_chunk
from cdc_core.lake.chunks import apply_chunk, holds_alone, remove_gone
from cdc_core.lake.comparing import MirrorComparison, of_mirror
from cdc_core.lake.emptied_partitions import empty_partitions
from cdc_core.lake.evolution import is_settled, settle_schema
from cdc_core.lake.maintaining import maintain
from cdc_core.lake.purging import purge_column
from cdc_core.lake.quarantine import QuarantineTable
from cdc_core.lake.replay import rebuild_mirror, replay_window, restore_quarantine
from cdc_core.lake.side_tables import BesideName, BesideTable, count_events
from cdc_core.lake.table_context import DeltaPosition, ExecutorPython, Fence, TableWork, no_fence
from cdc_core.lake.truncating import Truncation, truncate
from cdc_core.lake.windows import apply_window
from cdc_core.landing.manifest import ChunkManifest, SchemaChange, WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer, TableApplied, TableMaintained
from cdc_core.model.scn import ScnWindow
from cdc_core.model.texts import NOTHING_REPLACED, Replacing
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import SparkSource, start_session
from cdc_core.stage.skipping import NOTHING_SKIPPED, Skipping

Decode = Callable[[Any, TableSchema], Any]


class Lake:
    """The Delta tables of one source."""

    def __init__(
        self,
        config: LakeConfig,
        source: str,
        *,
        runtime: Path | None,
        decode: Decode,
        spark: SparkSource | None,
    ) -> None:
        self._config = config
        self._source = source
        self._runtime = runtime
        self._decode = decode
        self._spark = spark
        self._executor_python = ExecutorPython()

    @classmethod
    def open(
        cls,
        config: LakeConfig,
        source: str,
        *,
        runtime: Path | None = None,
        decode: Decode = decode_dml,
        spark: SparkSource | None = None,
    ) -> Lake:
        """Open the lake; Spark starts when it is first needed.

        Args:
            config: Where the tables are and how Spark is started.
            source: Name of the source.
            runtime: The runtime folder that ``redolake setup`` filled; by default ``default_runtime_folder()``.
            decode: Turns redo statements into changes; must be picklable.
            spark: Gives a Spark session to work in, in place of one that the lake starts.
        """
        return cls(config, source, runtime=runtime, decode=decode, spark=spark)

    def start(self) -> None:
        """Start Spark now, if it does not run yet."""
        self._open_session()

    def close(self) -> None:
        """Forget the lake. The JVM belongs to the process and stays for the next one."""

    def apply_window(
        self,
        manifest: WindowManifest,
        table: TableId,
        schema: TableSchema,
        redo_paths: Sequence[str],
        transactions_paths: Sequence[str],
        generation: int = 0,
        *,
        position: int | None = None,
        covered_scn: int = 0,
        read_scn: int | None = None,
        earlier: Sequence[TableSchema] = (),
        late_above: int | None = None,
        quarantine_max: int | None = None,
        is_inexact: bool = False,
        skipping: Skipping = NOTHING_SKIPPED,
        replacing: Replacing = NOTHING_REPLACED,
        drops_columns: bool = False,
        fence: Fence = no_fence,
    ) -> TableApplied:
        """Append a window's changes of one table to its change log and merge them into its mirror, each once.

        Args:
            manifest: The window.
            table: One of ``manifest.tables_committed``.
            schema: The table's version at scn_high; call :meth:`prepare_schema` first where it changed.
            redo_paths: Redo files of this window and of every earlier one in which a transaction began that commits here.
            transactions_paths: This window's transactions file.
            generation: Number of times that the source was set back; part of the transaction identifiers.
            position: scn_high of the last window that the caller knows the mirror took; None if it does not know.
            covered_scn: Lowest SCN of the chunks of the last complete snapshot of the whole table: older changes of keys
                that are not in the mirror do not bring them back.
            read_scn: Highest SCN as of which any chunk of the table was read; None if the caller does not know. What committed
                later must come into the mirror, and that is checked.
            earlier: The table's other versions, by which rows written before a DDL are decoded.
            late_above: The SCN at which the table was read, if commits that belong to earlier windows came to light with this
                one: those above it are taken too. None if there are none.
            quarantine_max: So many rows that cannot be decoded may be in the table's quarantine; None where the first one stops
                the table.
            is_inexact: Commits of the table that belong to this window, or to earlier ones, came to light with a later one, which is applied
                after it: an insert may meet a row whose delete that window has.
            skipping: Which changes the change log marks as skipped.
            replacing: In which columns U+FFFD may stand for bytes that are no UTF-8.
            drops_columns: The mirror is to lose the columns that Oracle dropped.
            fence: Called right before each commit.

        Raises:
            NotYetError: The window before this one was not applied.
            WindowConflictError: The mirror has taken a window that overlaps this one.
            DecodeError: A redo row cannot become a change without guessing; nothing was committed.
            LakeError: Delta refused, or a change without all columns meets a mirror that lacks its row.
            LandingDamagedError: A landing file is missing or cannot be read.
            CommitConflictError: Another writer committed; try again.
        """
        return apply_window(
            self._work(table, generation, fence, drops_columns=drops_columns),
            manifest,
            schema,
            redo_paths,
            transactions_paths,
            position=position,
            covered_scn=covered_scn,
            read_scn=read_scn,
            decode=self._decode,
            earlier=earlier,
            late_above=late_above,
            quarantine_max=quarantine_max,
            is_inexact=is_inexact,
            skipping=skipping,
            replacing=replacing,
        )

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
        """Take a TRUNCATE: one row in the change log, and whatever is older out of the mirror, each once; of partitions, a deletion for each row
        that they had. The part of its window before it must be applied. ``read_scn`` is the highest SCN as of which a chunk was read.

        Raises:
            SchemaMismatchError: A transaction of the table committed at the same SCN.
            LakeError, CommitConflictError: As for :meth:`apply_window`.
        """
        work = self._work(table, generation, fence)
        if truncation.partitions:
            return empty_partitions(work, truncation, transactions_paths, read_scn=read_scn)
        return truncate(work, truncation, transactions_paths)

    def restore_quarantine(
        self,
        manifest: WindowManifest,
        table: TableId,
        schema: TableSchema,
        redo_paths: Sequence[str],
        transactions_paths: Sequence[str],
        generation: int = 0,
        *,
        covered_scn: int = 0,
        earlier: Sequence[TableSchema] = (),
        late_above: int | None = None,
        fence: Fence = no_fence,
    ) -> int:
        """Put the rows of an applied window that its change log does not have into quarantine again, where they are lost; return
        how many of the table are there. Arguments as for :meth:`apply_window`."""
        return restore_quarantine(
            self._work(table, generation, fence),
            manifest,
            schema,
            redo_paths,
            transactions_paths,
            covered_scn=covered_scn,
            decode=self._decode,
            earlier=earlier,
            late_above=late_above,
        )

    def resolve_quarantine(
        self, table: TableId, scn: int, generation: int = 0, *, fence: Fence = no_fence
    ) -> int:
        """Note that the table's rows were read at an SCN, so that rows in quarantine that committed up to there count no more;
        return how many count still. Needs no Spark; repeatable."""
        quarantine = QuarantineTable(self._work(table, generation, fence))
        quarantine.resolve(scn)
        return quarantine.count_unresolved()

    def quarantine_reasons(self, table: TableId) -> dict[tuple[str, str], int]:
        """How many rows of the table are in quarantine, by operation and reason; needs no Spark."""
        return QuarantineTable(self._work(table, 0, no_fence)).reasons()

    def purge_quarantine(
        self, table: TableId, generation: int = 0, *, fence: Fence = no_fence
    ) -> list[str]:
        """Remove the redo text of all rows in quarantine; return the folders on which VACUUM must be run. Repeatable."""
        quarantine = QuarantineTable(self._work(table, generation, fence))
        return [quarantine.path] if quarantine.forget_text() else []

    def begin_chunk(
        self,
        schema: TableSchema,
        snapshot_id: str,
        number: int,
        scn: int,
        landed: datetime,
        *,
        generation: int = 0,
    ) -> ChunkAhead | None:
        """Begin to write the files of a chunk while it is read; give what this returns to :meth:`apply_chunk`, and discard it behind that.
        None where nothing is gained: the rows cannot simply be appended.

        Args:
            schema: The table's version in which the chunk is read.
            snapshot_id: The chunk's snapshot.
            number: Its number there.
            scn: As of which SCN it is read.
            landed: What its manifest will say.
            generation: As for :meth:`apply_window`.
        """
        work = self._work(schema.table, generation, no_fence)
        return begin_chunk(work, schema, snapshot_id, number, scn, landed, holds_alone=holds_alone)

    def apply_chunk(
        self,
        manifest: ChunkManifest,
        paths: Sequence[str],
        *,
        generation: int = 0,
        position: int | None = None,
        read_scn: int = 0,
        asked: Sequence[Sequence[Any]] | None = None,
        ahead: ChunkAhead | None = None,
        fence: Fence = no_fence,
    ) -> TableApplied:
        """Append a chunk to its table's change log and bring its rows into the mirror, each once.

        Args:
            manifest: The chunk.
            paths: Its Parquet files.
            generation: As for :meth:`apply_window`.
            position: scn_high of the last window that the caller knows the mirror took; None before the first.
            read_scn: Highest SCN as of which a chunk was read that was applied before.
            asked: The keys that the chunk was asked for, where it is a list of keys: those of them that it lacks go.
            ahead: The files that :meth:`begin_chunk` began; they are taken if they hold what the chunk's landed files give.
            fence: Called right before each commit.

        Raises:
            DuplicateKeyError: Two rows of the chunk have one key.
            LakeError, LandingDamagedError, CommitConflictError: As for :meth:`apply_window`.
        """
        work = self._work(manifest.schema.table, generation, fence)
        return apply_chunk(
            work, manifest, paths, position=position, read_scn=read_scn, asked=asked, ahead=ahead
        )

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
        """After all chunks of a snapshot of the whole table: delete the mirror's rows whose keys none of them has.

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
        work = self._work(table, generation, fence)
        return remove_gone(work, snapshot_id, scn_lowest, position=position)

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
        """Take an old window again: its keys are derived from the whole change log and mended where the mirror differs.

        The landing files are not read, since the window is in the change log. An undamaged mirror gets no new version, and
        ``skipped`` is true. Windows up to ``applied_scn`` were applied: of one that left no change, the logs do not say so.
        Where commits that belong at or below the mirror's position come with a window that it has not taken (``is_inexact``), rows may go of
        which the change log does not know yet that they came.

        Raises:
            NotYetError: The mirror has not taken the window yet.
            LakeError, CommitConflictError: As for :meth:`apply_window`.
        """
        work = self._work(table, generation, fence)
        return replay_window(
            work,
            manifest,
            schema,
            covered_scn=covered_scn,
            applied_scn=applied_scn,
            is_inexact=is_inexact,
        )

    def rebuild_mirror(
        self,
        table: TableId,
        schema: TableSchema,
        generation: int = 0,
        *,
        is_inexact: bool = False,
        fence: Fence = no_fence,
    ) -> int:
        """Write the mirror anew from its change log alone; returns its number of rows. ``is_inexact`` is as for :meth:`replay_window`.

        Raises:
            LakeError: There is no change log, or it does not hold the beginning of every row.
        """
        return rebuild_mirror(self._work(table, generation, fence), schema, is_inexact=is_inexact)

    def set_aside(self, table: TableId, *, generation: int, fence: Fence = no_fence) -> list[str]:
        """Rename the folders of both Delta tables, whatever is in them, so that ``generation`` begins new ones; returns their new
        names. A folder in which ``generation`` has begun stays, and so does its place if it is not there.

        Raises:
            LakeError: The place cannot rename folders in one step.
        """
        return self._work(table, generation, fence).set_aside()

    def purge_column(
        self,
        table: TableId,
        column: str,
        key: tuple[str, ...],
        generation: int = 0,
        *,
        fence: Fence = no_fence,
    ) -> list[str]:
        """Set a column to NULL in mirror and change log; returns the folders on which VACUUM must be run. Repeatable.

        Raises:
            ConfigError: The column is part of the key.
            LakeError: There is no mirror.
        """
        return purge_column(self._work(table, generation, fence), column, key)

    def maintain(
        self,
        table: TableId,
        options: MaintenanceConfig,
        key: tuple[str, ...],
        *,
        generation: int = 0,
        fence: Fence = no_fence,
    ) -> list[TableMaintained]:
        """Put small files together, let deletion vectors and clustering follow ``options``, remove old files; what became of the mirror
        and the change log, of each that is there. No row changes. Repeatable.

        Raises:
            CommitConflictError: Another writer committed meanwhile.
            LakeError: Spark or Delta refused.
        """
        return maintain(self._work(table, generation, fence), options, key)

    def prepare_schema(
        self,
        change: SchemaChange | TableSchema,
        generation: int = 0,
        *,
        drops_columns: bool = False,
        read_scn: int = 0,
        fence: Fence = no_fence,
    ) -> None:
        """Bring the Delta tables to a newer definition of the table, before the first change that needs it is applied.

        Columns at the end are added to change log and mirror, and the mirror's rows get their default; with ``drops_columns`` the mirror
        loses the columns that Oracle dropped. ``read_scn`` is the highest SCN as of which a chunk was read that they have. Repeatable; does
        nothing for an older definition, or before the first snapshot.

        Raises:
            SchemaMismatchError: Anything but columns added at the end, or a default that is no literal.
        """
        schema = change.schema if isinstance(change, SchemaChange) else change
        work = self._work(schema.table, generation, fence, drops_columns=drops_columns)
        if read_log(work.changelog) is not None and not is_settled(work, schema):
            settle_schema(work, schema, read_scn)

    def comparison(self, table: TableId, schema: TableSchema, version: int) -> MirrorComparison:
        """What compares rows of Oracle, landed as Parquet, with a version of the mirror.

        Raises:
            SchemaMismatchError: The mirror lacks columns of ``schema``.
            LakeError: There is no mirror.
        """
        return of_mirror(self._work(table, 0, no_fence), schema, version)

    def mirror_version_at(self, table: TableId, scn: int) -> int:
        """The newest version of the mirror that shows Oracle as of an SCN at or before ``scn``; needs no Spark.

        Raises:
            LakeError: The mirror is not there, or its log does not reach back so far.
        """
        work = self._work(table, 0, no_fence)
        work.require_mirror()
        version = version_at(read_commits(work.mirror), scn)
        if version is None:
            raise LakeError(
                "the mirror has no version for this SCN",
                hint="Take a newer SCN; old versions go when Delta cleans up its log.",
                **work.facts(scn=scn),
            )
        return version

    def beside(self, name: BesideName, *, fence: Fence = no_fence) -> BesideTable:
        """One of the Delta tables that the source has beside change logs and mirrors; needs no Spark."""
        return BesideTable(self._root, self._source, name, fence)

    def count_events(self, table: TableId, window: ScnWindow) -> pa.Table:
        """How many changes of which transactions the table's change log has of a window; needs no Spark."""
        return count_events(self._work(table, 0, no_fence), window.scn_low, window.scn_high)

    def position(self, table: TableId, generation: int = 0) -> DeltaPosition:
        """How far the table's change log and mirror are, by Delta's own logs; needs no Spark."""
        return self._work(table, generation, no_fence).position()

    def gone_files(self, table: TableId) -> dict[DeltaLayer, list[str]]:
        """Which files the table's Delta tables have by their logs and not in their folders; needs no Spark."""
        work = self._work(table, 0, no_fence)
        return {"changelog": gone_files(work.changelog), "mirror": gone_files(work.mirror)}

    def layer_without(
        self,
        table: TableId,
        generation: int,
        snapshot_id: str,
        chunks: Collection[tuple[str, int]],
    ) -> DeltaLayer | None:
        """Which of the table's Delta tables lacks one of some chunks that it had (:meth:`TableWork.layer_without`); needs no Spark."""
        return self._work(table, generation, no_fence).layer_without(snapshot_id, chunks)

    def taken(self, table: TableId, generation: int = 0) -> Taken:
        """What the table's Delta tables have taken, by their own logs; needs no Spark."""
        return read_taken(self._work(table, generation, no_fence))

    @property
    def _root(self) -> str:
        root = self._config.path
        return root if "://" in root else str(Path(root).absolute())

    def _work(
        self, table: TableId, generation: int, fence: Fence, *, drops_columns: bool = False
    ) -> TableWork:
        optional = frozenset(self._config.change_log_columns)
        session = cache(self._open_session)
        executors_from = self._config.stage_on_executors_from_rows
        return TableWork(
            self._root,
            self._source,
            table,
            generation,
            fence,
            session,
            optional,
            drops_columns,
            executors_from,
            self._executor_python,
            self._config.rewrite_mirrors_up_to_mb * 1024 * 1024,
        )

    def _open_session(self) -> Any:
        return start_session(self._config, runtime=self._runtime, spark=self._spark)
