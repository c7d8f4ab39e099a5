"""What happened to one row? Its changes, as its table's change log has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import pyarrow as pa

from cdc_core.errors import ConfigError
from redolake.reader import Rows, Table
from redolake.reader.rows import literal, quoted

Op = Literal["c", "u", "d", "r", "t"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One change of a row, or one reading of it by a snapshot.

    ``before`` and ``after`` have the columns that differ; an insert and a read have all that are
    not NULL under ``after``, a delete none. A column that the change does not carry is in neither.
    """

    op: Op
    commit_scn: int
    committed: datetime | None
    xid: str | None
    username: str | None
    window: int
    snapshot: str | None
    rs_id: str | None
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowLife:
    """A row's changes in commit order, and the row as the mirror has it now: none where it is
    deleted, several never."""

    changes: Sequence[RowChange]
    now: Sequence[Mapping[str, Any]]


def life_of(table: Table, values: Sequence[str]) -> RowLife:
    """The life of the row of a key.

    Args:
        table: Its table.
        values: The key as text, a value for each of its columns, in the key's order.

    Raises:
        ConfigError: The key has another number of columns, or a value is none of its column.
        LakeError: The tables cannot be read.
    """
    log = table.storage.delta_table(table.changelog)
    schema = json.loads(log.metadata().configuration.get("redolake.schema", "{}"))
    images = pa.schema(log.schema().to_arrow()).field("after").type
    stored = {one["name"]: one.get("stored_as") or one["name"] for one in schema["columns"]}
    names = list(schema["key"])
    if len(names) != len(values):
        raise ConfigError(
            "the key has another number of columns",
            hint=f"Give a value for each of: {', '.join(names)}.",
            table=table.name,
            given=len(values),
        )
    key = {
        name: _typed(text, images.field(stored[name]).type, name)
        for name, text in zip(names, values, strict=True)
    }
    now = {one: name for name, one in stored.items()}
    changes = [_change(one, now) for one in table.history(key).to_arrow().to_pylist()]
    condition = " AND ".join(f"{quoted(name)} = {literal(value)}" for name, value in key.items())
    mirror = table.storage.delta_table(table.mirror)
    rows = Rows(name=table.name, version=mirror.version(), open_table=lambda: mirror)
    shown = [
        name for name in pa.schema(mirror.schema().to_arrow()).names if not name.startswith("_cdc_")
    ]
    return RowLife(changes, rows.select(*shown).where(condition).to_arrow().to_pylist())


def _typed(text: str, kind: pa.DataType, column: str) -> object:
    """A value of the key, as a literal of SQL needs it."""
    try:
        if pa.types.is_integer(kind):
            return int(text)
        if pa.types.is_decimal(kind):
            return Decimal(text)
        if pa.types.is_timestamp(kind):
            return datetime.fromisoformat(text)
    except (ValueError, InvalidOperation):
        raise ConfigError(
            "this is no value of the key's column",
            hint=f"{column} is of type {kind} in the lake.",
            column=column,
        ) from None
    return text


def _change(row: Mapping[str, Any], names: Mapping[str, str]) -> RowChange:
    old, new = row["before"] or {}, row["after"] or {}
    unknown_before, unknown = set(row["_cdc_before_absent"] or ()), set(row["_cdc_absent"] or ())
    before, after = {}, {}
    for stored, name in names.items():
        value = new.get(stored)
        was = old.get(stored)
        if row["_cdc_op"] == "d" or stored in unknown or name in unknown:
            continue
        is_known = stored not in unknown_before and name not in unknown_before
        if row["_cdc_op"] == "u" and is_known and was != value:
            before[name], after[name] = was, value
        elif (row["_cdc_op"] == "u" and not is_known) or (
            row["_cdc_op"] != "u" and value is not None
        ):
            after[name] = value
    return RowChange(
        op=row["_cdc_op"],
        commit_scn=row["_cdc_commit_scn"],
        committed=row["_cdc_commit_timestamp"],
        xid=row["_cdc_xid"],
        username=row["_cdc_username"],
        window=row["_cdc_window"],
        snapshot=row["_cdc_snapshot"],
        rs_id=row["_cdc_rs_id"],
        before=before,
        after=after,
    )
