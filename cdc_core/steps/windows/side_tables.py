"""What does a finished window add to the Delta tables beside change logs and mirrors?

It comes when every table that goes on by itself has taken the window, and before the metadata store
says that the window is applied: a process that dies in between does it again. A table that takes a
window later has its transactions counted then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.lake.side_tables.source_tables import SideTableName
from cdc_core.landing.damage import reading_file
from cdc_core.landing.layout import window_folder
from cdc_core.landing.manifest import WindowManifest, moment_of
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.table import OFFSET, TableSchema
from cdc_core.stage.committed import committed_ledger
from cdc_core.stage.definitions import SCHEMA_CHANGES, DefinitionChange
from cdc_core.stage.transactions import transaction_rows
from cdc_core.steps.context import Context
from cdc_core.steps.definition_changes import (
    changes_between,
    character_set,
    declared_length,
    is_identity,
    previous_names,
    type_text,
)
from cdc_core.steps.windows.shared import verify_files

_TYPES: dict[str, DefinitionChange] = {
    "drop": "DROP",
    "truncate": "TRUNCATE",
    "unsupported_ddl": "ALTER",
    "widened_column": "ALTER",
}
"""What a table met that ended its stream, of those troubles that are about its definition."""


def keep_side_tables(ctx: Context, manifest: WindowManifest) -> None:
    """Bring the tables beside to a window that is finished. Repeatable."""
    if ctx.config.lake.schema_changes and _has_definitions(manifest):
        with ctx.writing_side_table("schema_changes") as lease:
            beside = ctx.lake.side_table("schema_changes", fence=lease.check)
            end, done = manifest.window.scn_high, beside.position()
            # Behind the newest window that brought rows, what is older is there.
            since = 0 if done is None or done >= end else done
            known = beside.read(["owner", "table_name", "scn", "type", "scn_high"], since=since)
            rows = list(_definitions(ctx, manifest, known, since))
            beside.put(pa.Table.from_pylist(rows, SCHEMA_CHANGES), end)
    count_transactions(ctx, manifest)


def count_transactions(ctx: Context, manifest: WindowManifest) -> None:
    """Let the table of transactions say what the change logs have of a window. Repeatable."""
    if not (ctx.config.lake.transactions and manifest.tables_committed):
        return
    window = manifest.window
    folder = window_folder(ctx.source, window)
    ledger = committed_ledger(ctx.landing.local_paths(folder, [manifest.transactions_file]))
    with ctx.writing_side_table("transactions") as lease:
        events = {
            name: ctx.lake.table(TableId.parse(name)).count_events(window)
            for name in manifest.tables_committed
        }
        landed = moment_of(manifest.landed)
        rows = transaction_rows(events, ledger, window.scn_high, landed)
        ctx.lake.side_table("transactions", fence=lease.check).put(rows, window.scn_high)


def lacks_side_tables(ctx: Context, manifest: WindowManifest) -> bool:
    """Must the window still bring rows that a table beside has not, by that table's own log?"""
    asked: tuple[tuple[SideTableName, bool], ...] = (
        ("transactions", ctx.config.lake.transactions and bool(manifest.tables_committed)),
        ("schema_changes", ctx.config.lake.schema_changes and _has_definitions(manifest)),
    )
    for name, is_due in asked:
        position = ctx.lake.side_table(name).position() if is_due else None
        if position is not None and position < manifest.window.scn_high:
            return True
    return False


def _has_definitions(manifest: WindowManifest) -> bool:
    is_changed = any(not one.empties for one in manifest.schema_changes)
    return is_changed or bool(manifest.joined or _ended(manifest))


def _ended(manifest: WindowManifest) -> list[StreamEnd]:
    return [end for end in manifest.left if end.trouble in _TYPES]


@dataclass(frozen=True, slots=True)
class _DdlText:
    """A DDL row of the window."""

    table: TableId
    ordinal: int
    scn: int
    text: str
    timestamp: datetime | None


def _definitions(
    ctx: Context, manifest: WindowManifest, known: pa.Table, since: int
) -> Iterator[dict[str, object]]:
    """The window's rows, and those of definitions from ``since`` on that nobody has written yet;
    ``known`` are those from there on."""
    window = manifest.window
    of_others = known.filter(pc.not_equal(known["scn_high"], int(window.scn_high))).to_pylist()
    there = {(one["owner"], one["table_name"], one["scn"], one["type"]) for one in of_others}
    texts = list(_ddl_rows(ctx, manifest))
    versions = ctx.store.schemas.by_table()
    for record in ctx.store.tables.all():
        before: TableSchema | None = None
        for version in versions.get(record.table, ()):
            schema = version.schema
            if schema.scn_from > window.scn_high:
                break
            kind: DefinitionChange = "CREATE" if before is None else "ALTER"
            ordinal = next(
                (
                    one.ordinal
                    for one in manifest.schema_changes
                    if (one.schema.table, one.scn) == (schema.table, schema.scn_from)
                ),
                None,
            )
            row = {
                **_named(record.table, schema.scn_from, kind, window.scn_high),
                "timestamp": next((one.timestamp for one in texts if one.ordinal == ordinal), None),
                "ddl": version.ddl,
                "changes": list(changes_between(before, schema)),
                "is_followed": True,
                **_described(schema, previous_names(before, schema)),
            }
            before = schema
            if schema.scn_from >= since and _place(row) not in there:
                yield row
    followed = {one.ordinal for one in manifest.schema_changes}
    for end in _ended(manifest):
        own = [
            one
            for one in texts
            if one.table == end.table and one.ordinal not in followed and one.scn <= end.scn + 1
        ]
        row = {
            **_named(end.table, end.scn + 1, _TYPES[str(end.trouble)], window.scn_high),
            "timestamp": own[-1].timestamp if own else None,
            "ddl": own[-1].text if own else None,
            "changes": [end.reason],
            "is_followed": False,
            "columns": None,
            "key": None,
        }
        if _place(row) not in there:
            yield row


def _named(table: TableId, scn: int, kind: DefinitionChange, window: int) -> dict[str, object]:
    return {
        "owner": table.owner,
        "table_name": table.name,
        "scn": scn,
        "type": kind,
        "scn_high": window,
    }


def _place(row: dict[str, object]) -> tuple[object, ...]:
    return row["owner"], row["table_name"], row["scn"], row["type"]


def _described(schema: TableSchema, previous: Mapping[str, str]) -> dict[str, object]:
    in_oracle = [one for one in schema.columns if one.form != OFFSET]
    return {
        "columns": [
            {
                "name": column.name,
                "type": type_text(column),
                "nullable": column.nullable,
                "default": column.default,
                "type_name": column.data_type,
                "length": declared_length(column),
                "scale": column.scale if column.data_type == "NUMBER" else None,
                "position": position,
                "previous_name": previous.get(column.name),
                "identity": is_identity(column),
                "character_set": character_set(column, schema),
            }
            for position, column in enumerate(in_oracle, start=1)
        ],
        "key": list(schema.key),
    }


def _ddl_rows(ctx: Context, manifest: WindowManifest) -> Iterator[_DdlText]:
    """The DDL of captured tables in the window's redo."""
    if not (manifest.schema_changes or manifest.left):
        return
    columns = ["seg_owner", "table_name", "ordinal", "scn", "sql_redo", "timestamp"]
    is_ddl = [("operation_code", "=", int(Operation.DDL))]
    for path in verify_files(ctx, manifest):
        with reading_file(path):
            rows = pq.read_table(path, columns=columns, filters=is_ddl).to_pylist()
        for row in rows:
            table = TableId(row["seg_owner"], row["table_name"])
            yield _DdlText(table, row["ordinal"], row["scn"], row["sql_redo"], row["timestamp"])
