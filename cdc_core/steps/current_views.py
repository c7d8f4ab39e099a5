"""How do views follow the newest consistent cut, so that a join over mirrors is always one moment?

``lake.current_views`` says where: in the catalog of Spark's session, or in a file of DuckDB. Each
view reads its mirror at the Delta version that belongs to one SCN for all of them.
"""

from __future__ import annotations

import os
from pathlib import Path

from cdc_core.errors import ConfigError, NotYetError
from cdc_core.model.reports import Cut
from cdc_core.spark.session import start_session, translated
from cdc_core.steps.consistent_cut import create_duckdb_views, cut_at
from cdc_core.steps.context import Context
from cdc_core.views.consistent_cut import refuse_shared_names, view_sql

_DOING = "making views of the newest consistent cut"


def keep_current_views(ctx: Context) -> Cut | None:
    """Let the views show the newest cut that all tables in their stream have; what they show, None
    where the configuration wants none. Repeatable; needs no Oracle, and Spark only for views in
    its catalog.

    Views in a file of DuckDB change all at once: a new file takes the place of the old one, which
    whoever has it open goes on reading. Spark's catalogs know no transactions over several views.

    Raises:
        ConfigError: Spark's catalog forgets views with its session, or DuckDB cannot open the file.
        ConfigError: The file cannot be written.
        PreflightError: DuckDB is not installed, or Spark cannot be started.
        NotYetError: No mirror is exact as of one SCN, or a table has no snapshot yet.
        LakeError: Spark refused, or DuckDB cannot read a mirror.
    """
    wanted = ctx.config.lake.current_views
    if not wanted.is_any:
        return None
    known = {one.table for one in ctx.store.tables.all()}
    if new := [str(one) for one in ctx.configured(None) if one not in known]:
        raise NotYetError(
            "tables have no snapshot yet",
            hint="`redolake snapshot` reads them.",
            tables=", ".join(new),
        )
    cut = cut_at(ctx)
    if wanted.spark:
        _create_in_spark(ctx, cut)
    if wanted.duckdb is not None:
        cut = _replace_duckdb(ctx, cut, Path(wanted.duckdb))
    return cut


def _create_in_spark(ctx: Context, cut: Cut) -> None:
    with translated(_DOING, source=ctx.source):
        session = start_session(ctx.config.lake)
        is_kept = session.conf.get("spark.sql.catalogImplementation", "in-memory") != "in-memory"
        if not is_kept and session.catalog.currentCatalog() == "spark_catalog":
            raise ConfigError(
                "the catalog of Spark's session forgets its views with the session",
                hint="Set spark.sql.catalogImplementation: hive under lake.spark_config, or name "
                "another catalog of your platform there; or set lake.current_views.duckdb.",
                source=ctx.source,
            )
        refuse_shared_names(cut.tables)
        schema = f"{ctx.source}_current"
        session.sql(f"CREATE SCHEMA IF NOT EXISTS `{schema}`")
        for one in cut.tables:
            statement = view_sql("spark", one, view=f"{schema}.{{owner}}_{{table}}")
            session.sql(statement.removesuffix(";"))


def _replace_duckdb(ctx: Context, cut: Cut, file: Path) -> Cut:
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        new.unlink(missing_ok=True)
        try:
            made = create_duckdb_views(ctx, cut, new)
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            "the file of views cannot be written",
            hint="Name a file in a folder that Redolake may write under lake.current_views.duckdb.",
            file=str(file),
            cause=type(error).__name__,
        ) from error
    return made
