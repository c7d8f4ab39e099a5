"""What does the configuration ask of captured tables that it did not ask before?"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cdc_core.config import MatchedTable, TableConfig
from cdc_core.errors import ConfigError, ConverterError, PreflightError
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.forms import form_of, in_forms
from cdc_core.schema.masks import mask_refusal, masks_of
from cdc_core.schema.table import OFFSET, ROW_ID, TableSchema
from cdc_core.state.schemas import SchemaVersion
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.row_filter import is_filtered_otherwise

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """What the configuration asks of a table that it did not ask before: in words, and the step
    that does it."""

    table: TableId
    said: str
    carry_out: Callable[[], None]


def leaving_tables(ctx: Context) -> list[TableId]:
    """Captured tables that the configuration does not name any more."""
    named = {config.table for config in ctx.config.tables}
    records = ctx.store.tables.all()
    return [one.table for one in records if one.table not in named and one.state != "removed"]


def configuration_changes(ctx: Context) -> Iterator[Change]:
    """What the configuration changes of tables that stay, and of those that it names again, table
    by table. Nothing is done by looking; each change is to be carried out before the next is asked
    for, or none is."""
    named = {config.table for config in ctx.config.tables}
    matched = {one.table for one in ctx.config.tables if isinstance(one, MatchedTable)}
    records = ctx.store.tables.all()
    for record in records:
        if (
            record.table in named
            and record.state == "removed"
            and (
                record.asked_by == "configuration"
                or (record.asked_by == "policy" and record.table in matched)
            )
            and not record.takes_windows
        ):
            said = "is configured again"
            yield Change(record.table, said, partial(_readmit, ctx, record.table))
    captured = {one.table: one for one in records if one.is_captured}
    newest = ctx.store.schemas.newest()
    for config in ctx.config.tables:
        if config.table in captured and config.table in newest:
            record = captured[config.table]
            yield from _columns_changed(ctx, config, record, newest[config.table])


def _readmit(ctx: Context, table: TableId) -> None:
    _LOG.info("table is configured again table=%s", table)
    ctx.store.tables.readmit(table)


def _columns_changed(
    ctx: Context, config: TableConfig, record: TableRecord, latest: TableSchema
) -> Iterator[Change]:
    """What a captured table becomes whose configuration leaves columns out that it had, or names
    another key, or other rows.

    A new version holds from the next window on; what is read or applied before that is seen without
    the columns all the same (:meth:`Context.visible`).
    """
    if reason := _stopping_reason(ctx, config, latest):
        stop = partial(_stop_for_fresh, ctx, config, latest, reason)
        yield Change(config.table, f"stops, and needs new Delta tables: {reason}", stop)
        return
    if bool(config.key) != latest.key_is_configured:
        scn = _scn_of_next_version(ctx, latest)
        latest = replace(latest, key_is_configured=bool(config.key), scn_from=scn)
        yield Change(config.table, "has its key from another place", partial(_save, ctx, latest))
    answering = in_forms(config, latest.columns, latest.key)
    if answering != latest.columns:
        scn = _scn_of_next_version(ctx, latest)
        latest = replace(latest, columns=answering, scn_from=scn)
        said = "answers values that do not fit their columns otherwise"
        yield Change(config.table, said, partial(_save, ctx, latest))
    if again := asked_for_again(ctx, config, latest):
        reason = f"the configuration now captures columns that the lake lacks: {', '.join(again)}"
        yield Change(config.table, f"waits for a snapshot of its own: {reason}", partial(
            _remark, ctx, config, reason, "adds them with a new snapshot"
        ))  # fmt: skip
    if is_filtered_otherwise(ctx, record, latest):
        reason = "snapshot.select_overrides names other rows than the table's snapshots read"
        yield Change(config.table, f"waits for a snapshot of its own: {reason}", partial(
            _remark, ctx, config, reason, "reads it by the new filter"
        ))  # fmt: skip
    fresh = [name for name in latest.names_in_oracle if config.excludes(name)]
    masked = masks_of(config, latest.columns)
    changed = sorted({name for name, _ in {*masked} ^ {*latest.masked}})
    if fresh:
        exclude = partial(_exclude, ctx, config, latest, fresh)
        yield Change(config.table, f"loses columns: {', '.join(fresh)}", exclude)
    elif changed:
        mask = partial(_mask, ctx, config, replace(latest, masked=masked), latest, changed)
        yield Change(config.table, f"masks columns differently: {', '.join(changed)}", mask)


def _stopping_reason(ctx: Context, config: TableConfig, latest: TableSchema) -> str | None:
    """Why the table's Delta tables cannot be continued under the configuration; None if they
    can."""
    if refusal := _key_refusal(ctx, config, latest):
        return refusal
    if any(map(config.excludes, latest.key)):
        return f"{config.leaving_out} columns of the key"
    if refusal := mask_refusal(config, latest.columns, latest.key):
        return refusal
    differing = {*masks_of(config, latest.columns)} ^ {*latest.masked}
    if changed := sorted({name for name, _ in differing if name in latest.key}):
        return f"columns_mask masks columns of the key otherwise: {', '.join(changed)}"
    try:
        held = [
            column.name
            for column in latest.columns
            if column.form != OFFSET
            and column.form != replace(column, held_as=form_of(config, column, latest.key)).form
        ]
    except ConverterError as error:
        return error.what_happened
    if held:
        return f"columns_as or types_as names other types than the Delta tables have: {', '.join(held)}"
    return None


def _save(ctx: Context, schema: TableSchema) -> None:
    ctx.store.schemas.save(SchemaVersion(ctx.source, schema))


def _remark(ctx: Context, config: TableConfig, reason: str, does: str) -> None:
    command = f"`redolake table resnapshot {config.table.argument}`"
    if ctx.store.tables.remark(config.table, reason=reason, way_out=f"{command} {does}."):
        _LOG.warning("a table waits table=%s reason=%s", config.table, reason)


def _exclude(ctx: Context, config: TableConfig, latest: TableSchema, fresh: Sequence[str]) -> None:
    way_out = f"`redolake table purge-column {config.table.argument} {shlex.quote(fresh[0])}` removes them."
    _hide(ctx, latest.without(fresh), latest, "columns excluded", fresh, way_out)


def _mask(
    ctx: Context,
    config: TableConfig,
    masked: TableSchema,
    latest: TableSchema,
    changed: Sequence[str],
) -> None:
    """Note that values land otherwise from the next statement on: what is in the lake stays as it
    was written."""
    way_out = (
        f"`redolake table resnapshot {config.table.argument} --fresh` starts new Delta tables. The old ones, and landing, keep the "
        "values until you remove them."
    )
    _hide(ctx, masked, latest, "columns masked differently", changed, way_out)


def _hide(
    ctx: Context,
    hiding: TableSchema,
    latest: TableSchema,
    what: str,
    columns: Sequence[str],
    way_out: str,
) -> None:
    """Let a version that hides columns hold from the next window on."""
    scn, named = _scn_of_next_version(ctx, latest), ", ".join(columns)
    ctx.store.tables.exclude_columns(
        SchemaVersion(ctx.source, replace(hiding, scn_from=scn)),
        behind=latest,
        reason=f"{what} since SCN {scn}: {named}; the lake still holds older values",
        way_out=way_out,
    )
    _LOG.warning("%s table=%s columns=%s", what, latest.table, named)


def _key_refusal(ctx: Context, config: TableConfig, latest: TableSchema) -> str | None:
    """Why the Delta tables are not those of the key that the configuration names now. Oracle is
    asked where it has stopped to name one."""
    if config.identity == "rowid":
        key: tuple[str, ...] = (ROW_ID,)
    elif config.key or not (latest.key_is_configured or latest.is_by_row_id):
        key = config.key or latest.key
    else:
        try:
            with ctx.database.session() as session:
                key = read_table_schema(session, config).key
        except (ConfigError, PreflightError) as error:
            return f"the configuration names no key of the table any more, and {error.message}"
    if key == latest.key:
        return None
    return f"the key is ({', '.join(key)}) now, and the Delta tables have ({', '.join(latest.key)})"


def _scn_of_next_version(ctx: Context, latest: TableSchema) -> Scn:
    """Right behind what is captured: DDL in windows that wait has a higher SCN, and makes its
    version of this one. Never in the place of the version that there is: it says what the Delta
    tables hold."""
    last = ctx.captured_windows()
    return Scn(max(latest.scn_from + 1, last[0].window.scn_high if last else 0))


def asked_for_again(ctx: Context, config: TableConfig, latest: TableSchema) -> list[str]:
    """Columns that the table has in Oracle, that its newest version leaves out, and that the
    configuration does not."""
    omitted = {name for name, kind in latest.omitted if config.omits(kind)}
    left_out = {*latest.stored} & {*latest.excluded} - omitted
    if all(map(config.excludes, left_out)):
        return []
    try:
        with ctx.database.session() as session:
            now = read_table_schema(session, config)
    except (ConfigError, PreflightError):  # what capture meets in the redo, with its SCN
        return []
    return [name for name in now.column_names if name in latest.excluded]


def _stop_for_fresh(ctx: Context, config: TableConfig, latest: TableSchema, reason: str) -> None:
    last = ctx.captured_windows()
    end = StreamEnd(
        config.table,
        last[0].window.scn_high if last else latest.scn_from,
        reason,
        f"`redolake table resnapshot {config.table.argument} --fresh` puts the table into new Delta tables.",
    )
    ctx.store.tables.end_stream(end, asked_by="configuration")
    _LOG.warning("table stopped table=%s reason=%s", config.table, reason)
