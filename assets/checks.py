"""Asset checks: is each mirror equal to Oracle as of its position?

They compare all rows, so they run when asked for (the check's Execute button, the reconcile job or
its schedule), and not with every window that is materialized.
"""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

from collections.abc import Iterator, Sequence

import dagster as dg

from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.streams import different, show_streams
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.errors import NotYetError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import LeftOut, TableComparison
from cdc_core.steps import Pipeline

CHECK_NAME = "mirror_equals_oracle"


def reconcile_checks(
    config: SourceConfig, names: Translator, open_pipeline: Opener
) -> dg.AssetChecksDefinition:
    """One check per table, computed together so that all tables are compared at one SCN.

    They stand at the tables in Oracle: Dagster plans the checks of an asset with each of its
    materializations, and a mirror is materialized far more often than it can be compared.
    """
    tables = {names.key("oracle", table.table): table.table for table in config.tables}

    @dg.multi_asset_check(
        name=f"{names.source}_reconcile_tables",
        specs=[
            dg.AssetCheckSpec(
                CHECK_NAME,
                asset=key,
                additional_deps=[names.key("mirror", table)],
                description=f"Compares the mirror of {table} with Oracle AS OF the SCN of the mirror, "
                "in all rows and columns.",
            )
            for key, table in tables.items()
        ],
        can_subset=True,
        retry_policy=names.retries,
        pool=names.apply_pool,
    )
    def reconcile(
        context: dg.AssetCheckExecutionContext, redolake: RedolakeResource
    ) -> Iterator[dg.AssetCheckResult]:
        chosen = {
            key: table
            for key, table in tables.items()
            if dg.AssetCheckKey(key, CHECK_NAME) in context.selected_asset_check_keys
        }
        with dagster_failures(context, names.retries):
            pipeline = redolake.source(names.source, open_pipeline)
            left_out, compared, scn = _compared(pipeline, list(chosen.values()))
            show_streams(context.instance, pipeline.records, names, chosen.values())
        for key, table in chosen.items():
            if str(table) in left_out:
                yield _not_compared(key, left_out[str(table)])
            else:
                yield _result(key, names.key("mirror", table), scn, compared[str(table)])

    return reconcile


def _compared(
    pipeline: Pipeline, tables: Sequence[TableId]
) -> tuple[dict[str, LeftOut], dict[str, TableComparison], int]:
    """The tables that cannot be compared now, such as one behind an ad hoc snapshot that its
    windows have not reached; the comparisons of the others, and the one SCN of these."""
    try:
        found = pipeline.reconcile(list(tables))
    except NotYetError as error:
        left = [LeftOut(str(one), error.what_happened, error.hint) for one in tables]
        return {one.table: one for one in left}, {}, 0
    left_out = {one.table: one for one in found.left_out}
    return left_out, {one.table: one for one in found.tables}, found.scn


def _not_compared(key: dg.AssetKey, one: LeftOut) -> dg.AssetCheckResult:
    """Nothing was compared, which is a state of things and no difference: a warning, and the next
    comparison settles it."""
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=CHECK_NAME,
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"not compared: {one.reason}",
        metadata={"cdc/what_to_do": one.way_out or "See the message."},
    )


def _result(
    key: dg.AssetKey, mirror: dg.AssetKey, scn: int, comparison: TableComparison
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=CHECK_NAME,
        passed=comparison.differences == 0,
        description=(
            f"{'at least ' if comparison.is_lower_bound else ''}{different(comparison.differences)} as of SCN {scn}"
            + ("; `redolake repair` fixes them" if comparison.differences else "")
        ),
        metadata={
            "cdc/mirror": dg.MetadataValue.asset(mirror),
            "cdc/scn": scn,
            "cdc/rows_oracle": comparison.rows_oracle,
            "cdc/rows_delta": comparison.rows_delta,
            "cdc/differences": comparison.differences,
            "cdc/double_keys": comparison.double_keys_oracle + comparison.double_keys_delta,
            "cdc/digest_oracle": comparison.digest_oracle,
            "cdc/digest_delta": comparison.digest_delta,
            "cdc/compared_by": comparison.engine,
            "cdc/seconds": round(comparison.seconds, 3),
            **({"cdc/rows_where": comparison.rows_where} if comparison.rows_where else {}),
        },
    )
