"""How is the lake made of Delta tables? :class:`DeltaLake` keeps the contract of
:class:`~cdc_core.lake.lake.Lake`.

It knows Spark and Delta, and neither Oracle nor Dagster. Each call works in a Spark session of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdc_core.config import LakeConfig, MaintenanceConfig
from cdc_core.decode.dml import decode_dml
from cdc_core.delta.history import read_commits, read_log
from cdc_core.delta.missing_files import gone_files
from cdc_core.errors import LakeError
from cdc_core.lake.applied_in_delta import AppliedInDelta, read_taken
from cdc_core.lake.apply.chunk_prewrite import ChunkAhead, begin_chunk
from cdc_core.lake.apply.chunks import apply_chunk, holds_alone, remove_gone
from cdc_core.lake.apply.emptied_partitions import empty_partitions
from cdc_core.lake.apply.replay import rebuild_mirror, replay_window, restore_quarantine
from cdc_core.lake.apply.truncation import Truncation, truncate
from cdc_core.lake.apply.windows import apply_window
from cdc_core.lake.catalog import Registration, register
from cdc_core.lake.comparison.choosing import of_mirror
from cdc_core.lake.comparison.sides import MirrorComparison
from cdc_core.lake.definitions.evolution import is_settled, known_schema, settle_schema
from cdc_core.lake.lake import Lake
from cdc_core.lake.maintenance.column_purge import purge_column
from cdc_core.lake.maintenance.housekeeping import maintain
from cdc_core.lake.mirror.versions import NoImage, image_at
from cdc_core.lake.side_tables.positions import Positions, positions_path
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.side_tables.small_files import replace_text
from cdc_core.lake.side_tables.source_tables import BesideName, BesideTable, count_events
from cdc_core.lake.table_context import DeltaPosition, ExecutorPython, Fence, TableWork, no_fence
from cdc_core.lake.table_part import PLAIN_RULES, ApplyRules, MirrorState, TablePart
from cdc_core.landing.manifest import ChunkManifest, SchemaChange, WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer, TableApplied, TableMaintained
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import SparkSource, start_session

Decode = Callable[[Any, TableSchema], Any]


class DeltaLake(Lake):
    """The Delta tables of one source. What each method promises stands in :class:`Lake`."""

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
        self._published: Positions | None = None

    @classmethod
    def open(
        cls,
        config: LakeConfig,
        source: str,
        *,
        runtime: Path | None = None,
        decode: Decode = decode_dml,
        spark: SparkSource | None = None,
    ) -> DeltaLake:
        """Open the lake; Spark starts when it is first needed.

        Args:
            config: Where the tables are and how Spark is started.
            source: Name of the source.
            runtime: The runtime folder that ``redolake setup`` filled; by default
                ``default_runtime_folder()``.
            decode: Turns redo statements into changes; must be picklable.
            spark: Gives a Spark session to work in, in place of one that the lake starts.
        """
        return cls(config, source, runtime=runtime, decode=decode, spark=spark)

    def start(self) -> None:
        self._open_session()

    def close(self) -> None:
        """Forget the lake."""

    def apply_window(
        self,
        part: TablePart,
        state: MirrorState,
        rules: ApplyRules = PLAIN_RULES,
        *,
        fence: Fence = no_fence,
    ) -> TableApplied:
        work = self._work(part.table, state.generation, fence)
        work = replace(work, drops_columns=rules.drops_columns, vectors=rules.vectors)
        return apply_window(work, part, state, rules, decode=self._decode)

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
        work = self._work(table, generation, fence)
        if truncation.partitions:
            return empty_partitions(work, truncation, transactions_paths, read_scn=read_scn)
        return truncate(work, truncation, transactions_paths)

    def restore_quarantine(
        self,
        part: TablePart,
        state: MirrorState,
        *,
        keeps_text: bool = True,
        fence: Fence = no_fence,
    ) -> int:
        work = self._work(part.table, state.generation, fence)
        return restore_quarantine(
            work,
            part,
            covered_scn=state.covered_scn,
            decode=self._decode,
            keeps_text=keeps_text,
        )

    def resolve_quarantine(
        self, table: TableId, scn: int, generation: int = 0, *, fence: Fence = no_fence
    ) -> int:
        quarantine = QuarantineTable(self._work(table, generation, fence))
        quarantine.resolve(scn)
        return quarantine.count_unresolved()

    def quarantine_reasons(self, table: TableId) -> dict[tuple[str, str], int]:
        return QuarantineTable(self._work(table, 0, no_fence)).reasons()

    def purge_quarantine(
        self, table: TableId, generation: int = 0, *, fence: Fence = no_fence
    ) -> list[str]:
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
        is_exact: bool = True,
        have_own_keys: bool = False,
    ) -> ChunkAhead | None:
        work = self._work(schema.table, generation, no_fence)
        return begin_chunk(
            work, schema, snapshot_id, number, scn, landed, is_exact=is_exact,
            holds_alone=lambda own: holds_alone(
                own, snapshot_id, scn, is_exact=is_exact, have_own_keys=have_own_keys
            ),
        )  # fmt: skip

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
        work = self._work(manifest.schema.table, generation, fence)
        return apply_chunk(work, manifest, paths, position=position, asked=asked, ahead=ahead)

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
        return rebuild_mirror(self._work(table, generation, fence), schema, is_inexact=is_inexact)

    def set_aside(self, table: TableId, *, generation: int, fence: Fence = no_fence) -> list[str]:
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
        return maintain(self._work(table, generation, fence), options, key)

    def prepare_schema(
        self,
        change: SchemaChange | TableSchema,
        generation: int = 0,
        *,
        drops_columns: bool = False,
        fence: Fence = no_fence,
    ) -> None:
        schema = change.schema if isinstance(change, SchemaChange) else change
        work = self._work(schema.table, generation, fence, drops_columns=drops_columns)
        if read_log(work.changelog) is not None and not is_settled(work, schema):
            settle_schema(work, schema)

    def definition(self, table: TableId, generation: int = 0) -> TableSchema | None:
        return known_schema(read_log(self._work(table, generation, no_fence).changelog))

    def comparison(self, table: TableId, schema: TableSchema, version: int) -> MirrorComparison:
        return of_mirror(self._work(table, 0, no_fence), schema, version)

    def mirror_version_at(self, table: TableId, scn: int, *, is_in_stream: bool = True) -> int:
        work = self._work(table, 0, no_fence)
        work.require_mirror()
        found = image_at(read_commits(work.mirror), scn, known=(scn, scn) if is_in_stream else None)
        if isinstance(found, NoImage):
            raise LakeError(
                f"the mirror has no version for this SCN: {found.reason}",
                hint=found.way_out,
                **work.facts(scn=scn),
            )
        return found

    def publish(self, positions: Positions) -> None:
        if positions != self._published:
            replace_text(positions_path(self._config.root, self._source), positions.as_text())
            self._published = positions

    def register(
        self,
        table: TableId,
        wanted: Registration,
        known: Registration | None,
        *,
        fence: Fence = no_fence,
    ) -> bool:
        """Let Spark's catalog have the names of the table's Delta tables, and the mirror its
        comments."""
        return register(self._work(table, 0, fence), wanted, known)

    def beside(self, name: BesideName, *, fence: Fence = no_fence) -> BesideTable:
        return BesideTable(self._config.root, self._source, name, fence)

    def count_events(self, table: TableId, window: ScnWindow) -> pa.Table:
        return count_events(self._work(table, 0, no_fence), window.scn_low, window.scn_high)

    def position(self, table: TableId, generation: int = 0) -> DeltaPosition:
        return self._work(table, generation, no_fence).position()

    def gone_files(self, table: TableId) -> dict[DeltaLayer, list[str]]:
        work = self._work(table, 0, no_fence)
        return {"changelog": gone_files(work.changelog), "mirror": gone_files(work.mirror)}

    def layer_without(
        self,
        table: TableId,
        generation: int,
        snapshot_id: str,
        chunks: Collection[tuple[str, int]],
    ) -> DeltaLayer | None:
        return self._work(table, generation, no_fence).layer_without(snapshot_id, chunks)

    def taken(self, table: TableId, generation: int = 0) -> AppliedInDelta:
        return read_taken(self._work(table, generation, no_fence))

    def _work(
        self, table: TableId, generation: int, fence: Fence, *, drops_columns: bool = False
    ) -> TableWork:
        optional = frozenset(self._config.change_log_columns)
        session = cache(self._open_session)
        executors_from = self._config.stage_on_executors_from_rows
        return TableWork(
            root=self._config.root,
            source=self._source,
            table=table,
            generation=generation,
            fence=fence,
            open_session=session,
            optional=optional,
            drops_columns=drops_columns,
            executors_from=executors_from,
            executor_python=self._executor_python,
            rewrite_bytes_max=self._config.rewrite_mirrors_up_to_mb * 1024 * 1024,
            merges_by_spark=self._config.merge == "spark",
            spark_cores=self._config.spark_cores,
            paths=self._config.paths,
        )

    def _open_session(self) -> Any:
        return start_session(self._config, runtime=self._runtime, spark=self._spark)
