"""What do a source's tables look like as Dagster assets: keys, groups, kinds, names of partitions and pools?

Override :class:`Translator` to name things otherwise; the rest follows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import dagster as dg

from cdc_core.model.identifiers import TableId

Layer = Literal["oracle", "snapshot", "changelog", "mirror"]

_KINDS: dict[Layer, set[str]] = {
    "oracle": {"oracle", "table"},
    "snapshot": {"oracle", "parquet", "deltalake"},
    "changelog": {"spark", "deltalake"},
    "mirror": {"spark", "deltalake"},
}
_DESCRIPTIONS: dict[Layer, str] = {
    "oracle": "The table {table} in Oracle. Read only.",
    "snapshot": "Existing rows of {table}, read `AS OF SCN` chunk by chunk: one partition per key or ROWID range. "
    "Materialize a chunk again to read it again.",
    "changelog": "Every committed change of {table}, append-only, one partition per window of commit SCNs.",
    "mirror": "The current rows of {table}. As of a window it equals Oracle `AS OF SCN` of the window's upper end. "
    "Windows are taken in order; materializing an old one is a replay and leaves the rows as they are.",
}


@dataclass(frozen=True)
class Translator:
    """Names of one source's assets, partitions, pools and jobs."""

    source: str

    def key(self, layer: Layer, table: TableId) -> dg.AssetKey:
        """``<source>/<layer>/<owner>/<table>``."""
        return dg.AssetKey([self.source, layer, *table.path.split(".")])

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
            description=_DESCRIPTIONS[layer].format(table=table),
            metadata={"dagster/table_name": str(table), "cdc/source": self.source},
        )

    @property
    def windows(self) -> dg.DynamicPartitionsDefinition:
        """Windows: keys are added in SCN order only, since Dagster orders partitions by their addition."""
        return dg.DynamicPartitionsDefinition(name=f"{self.source}_windows")

    def chunks(self, table: TableId) -> dg.DynamicPartitionsDefinition:
        """Chunks of all snapshots of a table."""
        return dg.DynamicPartitionsDefinition(name=f"{self.name(table)}_chunks")

    def name(self, table: TableId) -> str:
        """``<source>_<owner>_<table>``: an identifier for ops and partitions."""
        return f"{self.source}_{table.path.replace('.', '_')}"

    @property
    def capture_pool(self) -> str:
        """LogMiner sessions of the source."""
        return f"{self.source}_logminer"

    @property
    def apply_pool(self) -> str:
        """Spark drivers that apply windows."""
        return f"{self.source}_windows"

    @property
    def snapshot_pool(self) -> str:
        """Readers of existing rows; apart from windows, which go on meanwhile."""
        return f"{self.source}_snapshots"

    @property
    def resource_key(self) -> str:
        """The opened source."""
        return f"{self.source}_pipeline"
