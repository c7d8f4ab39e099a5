"""What do the Delta tables of a source say of themselves? By their logs alone, without Spark."""

from __future__ import annotations

from cdc_core.config import SourceConfig
from cdc_core.lake.counting import count_rows
from cdc_core.lake.history import read_commits
from cdc_core.lake.tables import changelog_path, mirror_path
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer


def delta_path(config: SourceConfig, layer: DeltaLayer, table: TableId) -> str:
    """Where a captured table's change log or mirror is."""
    where = mirror_path if layer == "mirror" else changelog_path
    return where(config.lake.path, config.name, table)


def delta_rows(config: SourceConfig, layer: DeltaLayer, table: TableId) -> int | None:
    """Rows of the newest version; None where there is no table yet, or a file of it has no statistics."""
    return count_rows(delta_path(config, layer, table))


def changes_applied(config: SourceConfig) -> dict[str, int]:
    """Changes that windows brought to each mirror, by the mirrors' own commits."""
    return {
        str(one.table): sum(
            int(commit.metadata["changes"])
            for commit in read_commits(delta_path(config, "mirror", one.table))
            if commit.metadata.get("kind") == "window"
        )
        for one in config.tables
    }
