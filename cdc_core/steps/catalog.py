"""How does a catalog (``lake.catalog``) follow the captured tables? Table by table, behind
the windows and chunks that were applied. A table that leaves keeps its name there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from cdc_core.config.lake import CatalogConfig
from cdc_core.delta.history import read_log
from cdc_core.errors import CdcError, ConfigError, LeaseHeldError, TransientError
from cdc_core.lake.catalog import Registration, catalog_file, read_registered, write_registered
from cdc_core.lake.tables import oracle_type
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import TableRegistered
from cdc_core.model.templates import LakeLayer
from cdc_core.schema.comments import TableComments, read_comments
from cdc_core.steps.context import LOG, Context


def register_tables(
    ctx: Context, tables: list[TableId] | None = None, *, looks_at_all: bool = False
) -> Iterator[TableRegistered]:
    """Register the Delta tables of all captured tables, or of ``tables``, yielding each that is new
    in the catalog, or has other columns or comments than before. Spark starts for those alone;
    with ``looks_at_all`` for every table, so that a name that somebody dropped returns.

    A table in its first snapshot waits. What goes wrong with one table keeps no other from it: it
    is yielded with the reason. Repeatable.

    Raises:
        ConfigError: A table is not captured, or ``lake.catalog`` is not set.
        TransientError: Storage, or Spark, does not answer.
    """
    config = ctx.config.lake.catalog
    if config is None:
        raise ConfigError(
            "no catalog is configured",
            hint="Set lake.catalog, for example `catalog: {}`.",
            source=ctx.source,
        )
    path = catalog_file(ctx.config.lake.path, ctx.source)
    known = read_registered(path)
    named = ctx.configured(tables)
    comments, taken = _comments(ctx, named), dict[str, TableId]()
    for table in named:
        wanted = _wanted(ctx, config, table, comments, known.get(str(table)))
        is_known = wanted == known.get(str(table))
        if wanted is None or (is_known and not looks_at_all):
            continue
        try:
            _refuse_taken(wanted, table, taken)
            with ctx.writing(table) as lease:
                lake = ctx.lake.table(table, fence=lease.check)
                is_changed = lake.register(wanted, known.get(str(table)), unity=config.unity)
        except CdcError as error:
            if isinstance(error, TransientError) and not isinstance(error, LeaseHeldError):
                raise
            LOG.warning("%s is not in the catalog: %s", table, error)
            yield TableRegistered(table=table, failed=str(error))
            continue
        if is_changed or not is_known:
            known[str(table)] = wanted
            write_registered(path, known)
            LOG.info("registered table=%s names=%s", table, ", ".join(wanted.names.values()))
            yield TableRegistered(table=table, names=tuple(wanted.names.values()))


def _refuse_taken(wanted: Registration, table: TableId, taken: dict[str, TableId]) -> None:
    """Catalogs do not tell case apart."""
    for name in wanted.names.values():
        if (other := taken.setdefault(name.lower(), table)) != table:
            raise ConfigError(
                "two tables would have one name in the catalog",
                hint="Name {digest} in the templates under lake.catalog.",
                table=table,
                other=other,
                name=name,
            )


def _wanted(
    ctx: Context,
    config: CatalogConfig,
    table: TableId,
    comments: Mapping[TableId, TableComments] | None,
    known: Registration | None,
) -> Registration | None:
    """What the catalog is to have of a table; None while there is nothing to register. Where Oracle
    cannot be asked, comments stay as they are."""
    record = ctx.store.tables.get(table)
    lake = ctx.config.lake
    log = read_log(lake.paths.path("mirror", lake.path, ctx.source, table))
    if log is None or record is None or not record.is_captured or record.state == "snapshotting":
        return None
    names: dict[str, str] = {}
    paths: dict[str, str] = {}
    for layer in get_args(LakeLayer):
        name = config.name_of(layer, ctx.source, table)
        path = lake.paths.path(layer, lake.root, ctx.source, table)
        if name is not None and read_log(path) is not None:
            names[layer], paths[layer] = name, path
    said, column_comments = (known.comment, known.column_comments) if known else ("", {})
    if comments is not None:
        said, column_comments = comments[table].table, _column_comments(ctx, table, comments[table])
    return Registration(
        names=names,
        paths=paths,
        columns=dict(log.columns),
        comment=said,
        column_comments={one: text for one, text in column_comments.items() if one in log.columns},
    )


def _column_comments(ctx: Context, table: TableId, said: TableComments) -> dict[str, str]:
    """What stands at each column: Oracle's type, and what people say of it there."""
    newest = ctx.store.schemas.newest().get(table)
    columns = () if newest is None else newest.columns
    return {
        one.name: f"{oracle_type(one)}: {text}" if text else oracle_type(one)
        for one in columns
        for text in [said.columns.get(one.name, "")]
    }


def _comments(ctx: Context, tables: list[TableId]) -> Mapping[TableId, TableComments] | None:
    try:
        with ctx.database.session() as session:
            return read_comments(session, tables)
    except CdcError as error:
        LOG.warning("comments in the catalog stay as they are: %s", error)
        return None
