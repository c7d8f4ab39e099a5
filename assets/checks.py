"""Asset checks: is each mirror equal to Oracle as of its position?

They compare all rows, so they run when asked for (the check's Execute button, the reconcile job or its schedule), and not
with every window that is materialized.
"""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

from collections.abc import Iterator

import dagster as dg

from assets.resource import dagster_failures, pipeline_of
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.model.reports import TableComparison

CHECK_NAME = "equals_oracle"


def reconcile_checks(config: SourceConfig, names: Translator) -> dg.AssetChecksDefinition:
    """One check per mirror, computed together so that all tables are compared at one SCN."""
    tables = {names.key("mirror", table.table): table.table for table in config.tables}

    @dg.multi_asset_check(
        name=f"{names.source}_equals_oracle",
        specs=[
            dg.AssetCheckSpec(
                CHECK_NAME,
                asset=key,
                description=f"{table} in Delta has the rows that Oracle has AS OF the mirror's position.",
            )
            for key, table in tables.items()
        ],
        can_subset=True,
        required_resource_keys={names.resource_key},
        pool=names.apply_pool,
    )
    def equals_oracle(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        if context.run.asset_selection:
            context.log.info("not compared with Oracle: this run materializes; execute the check")
            return
        chosen = [
            table
            for key, table in tables.items()
            if dg.AssetCheckKey(key, CHECK_NAME) in context.selected_asset_check_keys
        ]
        with dagster_failures():
            found = pipeline_of(context, names.resource_key).reconcile(chosen)
        for table, comparison in zip(chosen, found.tables, strict=True):
            yield _result(names.key("mirror", table), found.scn, comparison)

    return equals_oracle


def _result(key: dg.AssetKey, scn: int, comparison: TableComparison) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=CHECK_NAME,
        passed=comparison.differences == 0,
        description=f"{comparison.differences} rows differ as of SCN {scn}",
        metadata={
            "cdc/scn": scn,
            "cdc/rows_oracle": comparison.rows_oracle,
            "cdc/rows_delta": comparison.rows_delta,
            "cdc/differences": comparison.differences,
            "cdc/keys": ", ".join(comparison.keys) or "none",
            "cdc/digest_oracle": comparison.digest_oracle,
            "cdc/digest_delta": comparison.digest_delta,
            "cdc/seconds": round(comparison.seconds, 3),
        },
    )
