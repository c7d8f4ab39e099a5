"""What do the Delta tables of a source say of themselves? Without Spark, the tables of captured
tables by their logs alone."""

from __future__ import annotations

from collections import Counter

from cdc_core.config import SourceConfig
from cdc_core.delta.history import read_commits
from cdc_core.delta.row_counts import count_rows
from cdc_core.lake.rows.logged_changes import sizes_of_files
from cdc_core.lake.side_tables.source_tables import DeltaSideTable, SideTableName, side_table_path
from cdc_core.lake.table_context import no_fence
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer
from cdc_core.model.scn import ScnWindow

__all__ = [
    "SideTableName",
    "changes_applied",
    "delta_path",
    "delta_rows",
    "delta_uri",
    "mirror_files",
    "side_table_names",
    "side_table_rows",
    "side_table_uri",
]


def delta_path(config: SourceConfig, layer: DeltaLayer, table: TableId) -> str:
    """Where a captured table's change log or mirror is."""
    return config.lake.paths.path(layer, config.lake.path, config.name, table)


def delta_rows(config: SourceConfig, layer: DeltaLayer, table: TableId) -> int | None:
    """Rows of the newest version; None where there is no table yet, or a file of it has no
    statistics."""
    return count_rows(delta_path(config, layer, table))


def delta_uri(config: SourceConfig, layer: DeltaLayer, table: TableId) -> str:
    """Where a captured table's change log or mirror is, as a URI."""
    return _uri(delta_path(config, layer, table))


def side_table_names(config: SourceConfig) -> list[SideTableName]:
    """The Delta tables that the source has beside change logs and mirrors, by its configuration."""
    asked: dict[SideTableName, bool] = {
        "transactions": config.lake.transactions,
        "schema_changes": config.lake.schema_changes,
    }
    return [name for name, is_asked in asked.items() if is_asked]


def side_table_rows(config: SourceConfig, name: SideTableName, windows: ScnWindow) -> Counter[int]:
    """Rows that each window of a range of SCNs brought to such a table, by the window's upper
    end."""
    return DeltaSideTable(config.lake.path, config.name, name, no_fence).rows_by_window(windows)


def side_table_uri(config: SourceConfig, name: SideTableName) -> str:
    """Where such a table is, as a URI."""
    return _uri(side_table_path(config.lake.path, config.name, name))


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


def _uri(path: str) -> str:
    return path if "://" in path else f"file://{path}"


def mirror_files(config: SourceConfig, table: TableId) -> tuple[int, int] | None:
    """How many files a mirror has now, and of how many bytes; None where there is no mirror that
    delta-rs can read."""
    sizes = sizes_of_files(delta_path(config, "mirror", table))
    return None if sizes is None else (len(sizes), sum(sizes))
