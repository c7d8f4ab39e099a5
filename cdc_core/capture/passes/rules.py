"""What does a source's configuration say about how its redo is read?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from cdc_core.capture.passes.wanted_rows import QueryFilter
from cdc_core.config import LogMinerConfig, SourceConfig, TableConfig
from cdc_core.decode.masking import Masks, masks_by_table
from cdc_core.model.identifiers import TableId
from cdc_core.model.patterns import ColumnRule


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRules:
    """Made once from the configuration (:meth:`of`), and followed by every pass and every window.

    Args:
        tables: The tables' configuration, for definitions after a DDL.
        how: Which logs LogMiner reads, and by which dictionary it names rows.
        rows: Rows per batch.
        query_filter: How LogMiner is asked for the tables' rows.
        masks: What lands in place of values, by table.
        column_rules: Of tables whose columns are left out by pattern, which are: also those that
            their definitions do not have yet.
        ignores_unlogged: Tables that go on although something was written without redo into their
            tablespaces.
        follows_truncate: Tables whose TRUNCATE does not end their stream.
        rereads_partitions: Those of them whose partitions may be exchanged.
        rewrites_wider: Tables whose Delta tables may be rewritten for a column that needs a wider
            type.
    """

    tables: tuple[TableConfig, ...] = ()
    how: LogMinerConfig = field(default_factory=LogMinerConfig)
    rows: int = 1000
    query_filter: QueryFilter = field(default_factory=QueryFilter)
    masks: Mapping[TableId, Masks] = field(default_factory=dict)
    column_rules: Mapping[TableId, ColumnRule] = field(default_factory=dict)
    ignores_unlogged: frozenset[TableId] = frozenset()
    follows_truncate: frozenset[TableId] = frozenset()
    rereads_partitions: frozenset[TableId] = frozenset()
    rewrites_wider: frozenset[TableId] = frozenset()

    @classmethod
    def of(cls, config: SourceConfig) -> Self:
        """What is configured.

        Raises:
            ConfigError: A column is hashed, and there is no salt.
        """
        return cls(
            tables=config.tables,
            how=config.logminer,
            rows=config.oracle.fetch_rows,
            query_filter=QueryFilter.of(config),
            masks=masks_by_table(config),
            column_rules={
                one.table: one.column_rule
                for one in config.tables
                if not one.is_pattern and one.column_rule.has_patterns
            },
            ignores_unlogged=config.with_policy("unlogged", "ignore"),
            follows_truncate=config.with_policy("truncate", "follow", "follow_or_resnapshot"),
            rereads_partitions=config.with_policy("truncate", "follow_or_resnapshot"),
            rewrites_wider=config.with_policy("widened_column", "rewrite"),
        )

    def entry(self, table: TableId) -> TableConfig:
        """The configuration of a captured table."""
        return next(one for one in self.tables if one.table == table)
