"""What do a source's tables look like as Dagster assets: keys, groups, kinds, names of partitions
and pools?

Override :class:`Translator` to name things otherwise, and name the subclass as
``translator_class`` of a component; docs/how-to/dagster.md has an example. The rest follows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

import dagster as dg

from assets.settings import DagsterConfig
from cdc_core.model.identifiers import TableId
from cdc_core.steps.delta_logs import SideTableName

CODE_VERSION = "1"
"""Grows when the same redo or rows would give other change logs or mirrors."""

Layer = Literal["oracle", "snapshot", "changelog", "mirror"]

_BESIDE: dict[SideTableName, str] = {
    "transactions": "The transactions in the change logs, one row each, with the number of changes "
    "per table. Redolake adds a window's rows when every table in the stream has applied the "
    "window.",
    "schema_changes": "Changes to the definitions of the captured tables, one row each, with the "
    "DDL statement if the redo contains it.",
}

_KINDS: dict[Layer, set[str]] = {
    "oracle": {"oracle", "table"},
    "snapshot": {"oracle", "parquet", "deltalake"},
    "changelog": {"spark", "deltalake"},
    "mirror": {"spark", "deltalake"},
}
_DESCRIPTIONS: dict[Layer, str] = {
    "oracle": "The table {table} in Oracle, which Redolake only reads.",
    "snapshot": "The existing rows of {table}, read `AS OF SCN`: one partition per chunk, "
    "which is a range of keys or ROWIDs. Materializing a chunk again applies the "
    "files in landing and reads nothing from Oracle. To read the table again, take a new "
    "snapshot: with `redolake snapshot --table {argument}`, the job {source}_start_snapshot, or a "
    "signal.",
    "changelog": "Every committed change of {table}, append-only: one partition per window of "
    "commit SCNs.",
    "mirror": "The current rows of {table}: after each window, the rows that Oracle had as of the "
    "window's upper SCN. Windows are applied in order; materializing an old window again is a "
    "replay and leaves the rows unchanged.",
}


@dataclass(frozen=True)
class Translator:
    """Names of one source's assets, partitions, pools and jobs, and what all its assets have."""

    source: str
    options: DagsterConfig = field(default_factory=DagsterConfig)

    def key(self, layer: Layer, table: TableId) -> dg.AssetKey:
        """``<source>/<layer>/<owner>/<table>``."""
        return dg.AssetKey([self.source, layer, *table.path.split(".")])

    @property
    def database_key(self) -> dg.AssetKey:
        """The database as a whole, which has the source's alerts as checks."""
        return dg.AssetKey([self.source, "database"])

    @property
    def redo_key(self) -> dg.AssetKey:
        """The landing asset: redo of all tables, mined once per window."""
        return dg.AssetKey([self.source, "landing", "redo_windows"])

    def group(self, layer: Layer | Literal["landing"]) -> str:
        """The asset group."""
        return f"{self.source}_{layer}"

    def spec(self, layer: Layer, table: TableId) -> dg.AssetSpec:
        """A table's asset in one layer, without its dependencies and partitions."""
        return dg.AssetSpec(
            self.key(layer, table),
            group_name=self.group(layer),
            kinds=_KINDS[layer],
            description=_DESCRIPTIONS[layer].format(
                table=table, argument=table.argument, source=self.source
            ),
            metadata={
                "dagster/table_name": self.table_name(layer, table),
                "cdc/source": self.source,
            },
            code_version=None if layer == "oracle" else CODE_VERSION,
            freshness_policy=self._freshness if layer == "mirror" else None,
            **self.common,
        )

    def side_table_key(self, name: SideTableName) -> dg.AssetKey:
        """``<source>/transactions`` or ``<source>/schema_changes``: the side tables."""
        return dg.AssetKey([self.source, name])

    def side_table_spec(self, name: SideTableName) -> dg.AssetSpec:
        """The asset of such a table, without its dependencies and partitions."""
        return dg.AssetSpec(
            self.side_table_key(name),
            group_name=self.group("changelog"),
            kinds={"deltalake"},
            description=_BESIDE[name],
            metadata={"dagster/table_name": f"{self.source}.{name}", "cdc/source": self.source},
            code_version=CODE_VERSION,
            **self.common,
        )

    @property
    def views_key(self) -> dg.AssetKey:
        """``<source>/current_views``: the views of the newest consistent cut."""
        return dg.AssetKey([self.source, "current_views"])

    @property
    def views_spec(self) -> dg.AssetSpec:
        """The asset of these views, without its dependencies and partitions."""
        return dg.AssetSpec(
            self.views_key,
            group_name=self.group("mirror"),
            kinds={"view"},
            description="SQL views of all mirrors as of one SCN, the newest that every table in "
            "the stream has reached, so that a join over them shows one moment. Each run over "
            "windows renews them at its end.",
            metadata={"cdc/source": self.source},
            code_version=CODE_VERSION,
            **self.common,
        )

    def table_name(self, layer: Layer, table: TableId) -> str:
        """Which table an asset is: Oracle's, or the Delta table of the layer, by its place below
        the lake."""
        return str(table) if layer == "oracle" else f"{self.source}.{layer}.{table.path}"

    @property
    def common(self) -> dict[str, Any]:
        """Owners and tags of every asset of the source."""
        return {"owners": list(self.options.owners), "tags": dict(self.options.tags)}

    @property
    def _freshness(self) -> dg.FreshnessPolicy | None:
        wanted = self.options.freshness
        if wanted is None:
            return None
        warn = None if wanted.warn_minutes is None else timedelta(minutes=wanted.warn_minutes)
        return dg.FreshnessPolicy.time_window(
            fail_window=timedelta(minutes=wanted.fail_minutes), warn_window=warn
        )

    @property
    def retries(self) -> dg.RetryPolicy | None:
        """For steps that failed with a temporary error; other failures forbid it."""
        wanted = self.options.retries
        if not wanted.max:
            return None
        return dg.RetryPolicy(
            max_retries=wanted.max, delay=wanted.delay_seconds, backoff=dg.Backoff.EXPONENTIAL
        )

    @property
    def windows(self) -> dg.DynamicPartitionsDefinition:
        """Windows: keys are added in SCN order only, since Dagster orders partitions by their
        addition."""
        return dg.DynamicPartitionsDefinition(name=f"{self.source}_windows")

    def chunks(self, table: TableId) -> dg.DynamicPartitionsDefinition:
        """Chunks of all snapshots of a table."""
        return dg.DynamicPartitionsDefinition(name=f"{self.name(table)}_chunks")

    def name(self, table: TableId) -> str:
        """``<source>_<owner>_<table>``: an identifier for ops and partitions, different for
        different tables of all sources.

        Where a part has an underscore itself, the lengths of source and owner follow, which say
        where each part ends: ``APP.ARCHIVE_ORDERS`` and ``APP_ARCHIVE.ORDERS`` are two tables.
        """
        parts = [self.source, *table.path.split(".")]
        name = "_".join(parts)
        if any("_" in part for part in parts):
            return f"{name}_{len(parts[0])}_{len(parts[1])}"
        return name

    @property
    def capture_pool(self) -> str:
        """LogMiner sessions of the source."""
        return self.options.pools.capture or f"{self.source}_logminer"

    @property
    def apply_pool(self) -> str:
        """Spark drivers that apply windows."""
        return self.options.pools.apply or f"{self.source}_windows"

    @property
    def snapshot_pool(self) -> str:
        """Readers of existing rows; apart from windows, which go on meanwhile."""
        return self.options.pools.snapshot or f"{self.source}_snapshots"
