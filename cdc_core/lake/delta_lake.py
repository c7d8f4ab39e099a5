"""How is the lake made of Delta tables? :class:`DeltaLake` keeps the contract of
:class:`~cdc_core.lake.lake.Lake`.

It knows Spark and Delta, and neither Oracle nor Dagster. Each call works in a Spark session of its
own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdc_core.config import LakeConfig, MaintenanceConfig, UnityConfig
from cdc_core.delta.history import read_commits, read_log
from cdc_core.delta.missing_files import missing_files
from cdc_core.errors import LakeError
from cdc_core.lake.applied_in_delta import AppliedInDelta, read_applied
from cdc_core.lake.apply.chunks import apply_chunk
from cdc_core.lake.apply.emptied_partitions import empty_partitions
from cdc_core.lake.apply.missing_keys import delete_missing_keys
from cdc_core.lake.apply.replay import rebuild_mirror, replay_window
from cdc_core.lake.apply.truncation import Truncation, truncate
from cdc_core.lake.apply.windows import apply_window
from cdc_core.lake.catalog import Registration, register
from cdc_core.lake.comparison.choosing import of_mirror
from cdc_core.lake.comparison.sides import MirrorComparison
from cdc_core.lake.definitions.evolution import is_settled, known_schema, settle_schema
from cdc_core.lake.lake import Lake, TableLake
from cdc_core.lake.maintenance.column_purge import purge_column
from cdc_core.lake.maintenance.housekeeping import maintain
from cdc_core.lake.mirror.versions import NoImage, image_at
from cdc_core.lake.side_tables.positions import Positions, positions_path
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.side_tables.small_files import replace_text
from cdc_core.lake.side_tables.source_tables import DeltaSideTable, SideTableName, count_events
from cdc_core.lake.table_context import DeltaPosition, ExecutorPython, Fence, TableWork, no_fence
from cdc_core.lake.table_part import PLAIN_RULES, ApplyRules, MirrorState, TablePart
from cdc_core.landing.manifest import ChunkManifest, WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer, TableApplied, TableMaintained
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import SparkSource, start_session


class DeltaLake(Lake):
    """The Delta tables of one source. What each method promises stands in :class:`Lake`."""

    def __init__(
        self,
        config: LakeConfig,
        source: str,
        *,
        runtime: Path | None = None,
        spark: SparkSource | None = None,
    ) -> None:
        """Spark starts when it is first needed.

        Args:
            config: Where the tables are and how Spark is started.
            source: Name of the source.
            runtime: The runtime folder that ``redolake setup`` filled; by default
                ``default_runtime_folder()``.
            spark: Gives a Spark session to work in, in place of one that the lake starts.
        """
        self._config = config
        self._source = source
        self._runtime = runtime
        self._spark = spark
        self._executor_python = ExecutorPython()
        self._published: Positions | None = None

    def start(self) -> None:
        self._open_session()

    def table(self, table: TableId, generation: int = 0, fence: Fence = no_fence) -> DeltaTableLake:
        config = self._config
        work = TableWork(
            root=config.root,
            source=self._source,
            table=table,
            generation=generation,
            fence=fence,
            open_session=self._open_session,
            optional=frozenset(config.change_log_columns),
            executors_from=config.stage_on_executors_from_rows,
            executor_python=self._executor_python,
            rewrite_bytes_max=config.rewrite_mirrors_up_to_mb * 1024 * 1024,
            merges_by_spark=config.merge == "spark",
            spark_cores=config.spark_cores,
            paths=config.paths,
        )
        return DeltaTableLake(work)

    def publish(self, positions: Positions) -> None:
        if positions != self._published:
            replace_text(positions_path(self._config.root, self._source), positions.as_text())
            self._published = positions

    def side_table(self, name: SideTableName, *, fence: Fence = no_fence) -> DeltaSideTable:
        return DeltaSideTable(self._config.root, self._source, name, fence)

    def _open_session(self) -> Any:
        return start_session(self._config, runtime=self._runtime, spark=self._spark)


@dataclass(frozen=True, slots=True)
class DeltaTableLake(TableLake):
    """The two Delta tables of a captured table. What each method promises stands in
    :class:`TableLake`."""

    given: TableWork

    @property
    def work(self) -> TableWork:
        """What one call has in hand: its Spark session, if it needs one, is its own."""
        return replace(self.given, open_session=cache(self.given.open_session))

    def apply_window(
        self, part: TablePart, state: MirrorState, rules: ApplyRules = PLAIN_RULES
    ) -> TableApplied:
        work = replace(self.work, vectors=rules.vectors)
        return apply_window(work, part, state, rules)

    def truncate(
        self, truncation: Truncation, transactions_paths: Sequence[str], *, read_scn: int = 0
    ) -> TableApplied:
        if truncation.partitions:
            return empty_partitions(self.work, truncation, transactions_paths, read_scn=read_scn)
        return truncate(self.work, truncation, transactions_paths)

    def resolve_quarantine(self, scn: int) -> int:
        quarantine = QuarantineTable(self.work)
        quarantine.resolve(scn)
        return quarantine.count_unresolved()

    def quarantine_reasons(self) -> dict[tuple[str, str], int]:
        return QuarantineTable(self.work).reasons()

    def purge_quarantine(self) -> list[str]:
        quarantine = QuarantineTable(self.work)
        return [quarantine.path] if quarantine.forget_text() else []

    def apply_chunk(
        self,
        manifest: ChunkManifest,
        paths: Sequence[str],
        *,
        position: int | None = None,
        asked: Sequence[Sequence[Any]] | None = None,
    ) -> TableApplied:
        return apply_chunk(self.work, manifest, paths, position=position, asked=asked)

    def delete_missing_keys(
        self, snapshot_id: str, scn_lowest: int, *, position: int | None = None
    ) -> TableApplied:
        return delete_missing_keys(self.work, snapshot_id, scn_lowest, position=position)

    def replay_window(
        self,
        manifest: WindowManifest,
        schema: TableSchema,
        *,
        covered_scn: int = 0,
        applied_scn: int = 0,
    ) -> TableApplied:
        return replay_window(
            self.work, manifest, schema, covered_scn=covered_scn, applied_scn=applied_scn
        )

    def rebuild_mirror(self, schema: TableSchema) -> int:
        return rebuild_mirror(self.work, schema)

    def set_aside(self) -> list[str]:
        return self.work.set_aside()

    def purge_column(self, column: str, key: tuple[str, ...]) -> list[str]:
        return purge_column(self.work, column, key)

    def maintain(self, options: MaintenanceConfig, key: tuple[str, ...]) -> list[TableMaintained]:
        return maintain(self.work, options, key)

    def prepare_schema(self, schema: TableSchema) -> None:
        work = self.work
        if read_log(work.changelog) is not None and not is_settled(work, schema):
            settle_schema(work, schema)

    def definition(self) -> TableSchema | None:
        return known_schema(read_log(self.work.changelog))

    def comparison(self, schema: TableSchema, version: int) -> MirrorComparison:
        return of_mirror(self.work, schema, version)

    def mirror_version_at(self, scn: int, *, is_in_stream: bool = True) -> int:
        work = self.work
        work.require_mirror()
        found = image_at(read_commits(work.mirror), scn, known=(scn, scn) if is_in_stream else None)
        if isinstance(found, NoImage):
            raise LakeError(
                f"the mirror has no version for this SCN: {found.reason}",
                hint=found.way_out,
                **work.facts(scn=scn),
            )
        return found

    def register(
        self, wanted: Registration, known: Registration | None, *, unity: UnityConfig | None = None
    ) -> bool:
        return register(self.work, wanted, known, unity=unity)

    def count_events(self, window: ScnWindow) -> pa.Table:
        return count_events(self.work, window.scn_low, window.scn_high)

    def position(self) -> DeltaPosition:
        return self.work.position()

    def missing_files(self) -> dict[DeltaLayer, list[str] | None]:
        work = self.work
        return {"changelog": missing_files(work.changelog), "mirror": missing_files(work.mirror)}

    def layer_without(
        self, snapshot_id: str, chunks: Collection[tuple[str, int]]
    ) -> DeltaLayer | None:
        return self.work.layer_without(snapshot_id, chunks)

    def applied(self) -> AppliedInDelta:
        return read_applied(self.work)
