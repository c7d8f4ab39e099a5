"""Which events does a change log hold, in order, as Debezium sends them?

The same as the query of :mod:`cdc_core.views.envelope`, for who carries events on row by row: read
from the change log's files, without Spark, some thousand rows at a time.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.errors import at_work
from cdc_core.delta.history import filesystem_of
from cdc_core.delta.log_files import data_file
from cdc_core.errors import CHANGELOG_HINT
from cdc_core.model.chunks import INCREMENTAL
from cdc_core.model.identifiers import TableId
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL
from cdc_core.views.envelope import LoggedTable, Origin

ROWS_AT_ONCE = 20_000
"""So many changes of a table are in memory at once, and the row groups that they lie in."""
_EPOCH = datetime(1970, 1, 1)
_MILLISECOND_DIGITS = 3

Decimals = Literal["text", "precise"]

Image = dict[str, Any]
"""A row's columns under their present names, with Arrow's values as Python has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """One event of a table. A change of key is two: ``d`` with the old key, ``c`` with the new one.

    ``absent`` and ``before_absent`` name columns that the event does not carry. ``row`` is the
    change log's row, without its images; ``number`` its place among those that were read, from 1
    on; ``is_second``: it is the second event of its change. ``key`` is None for a TRUNCATE.
    """

    table: TableId
    op: str
    key: Image | None
    before: Image | None
    after: Image | None
    absent: frozenset[str]
    before_absent: frozenset[str]
    row: Mapping[str, Any]
    number: int
    is_second: bool = False


class Place(NamedTuple):
    """Where an event stands: among its transaction's events, among those of its table, and its
    change among the transaction's changes, each from 1 on. ``id`` is the transaction's."""

    id: str
    total_order: int
    data_collection_order: int
    change: int


def events_of(
    logged: LoggedTable,
    files: Sequence[str],
    *,
    takes: Callable[[pa.Table], np.ndarray[Any, Any]] | None = None,
    first: int = 0,
) -> Iterator[ChangeEvent]:
    """The events in some files of a change log, in commit order; changes that are marked as skipped
    are none.

    Args:
        logged: The change log, with the definition under whose names events are shown.
        files: As the Delta log spells them.
        takes: Which rows, by the columns of their position; all by default.
        first: So many changes, in the order, are passed over.
    """
    filesystem, root = filesystem_of(logged.path)
    with at_work("reading the change log", {"table": logged.table}, hint=CHANGELOG_HINT):
        opened = [pq.ParquetFile(data_file(root, name), filesystem=filesystem) for name in files]
        try:
            number = first
            for rows in _in_order(logged, opened, takes, first):
                for row in rows.to_pylist():
                    number += 1
                    yield from _events(logged, row, number)
        finally:
            for file in opened:
                file.close()


def _in_order(
    logged: LoggedTable,
    files: Sequence[pq.ParquetFile],
    takes: Callable[[pa.Table], np.ndarray[Any, Any]] | None,
    first: int,
) -> Iterator[pa.Table]:
    """The rows of the files in commit order, some at a time. Rows of one position (those of a
    chunk) stay in the order of the files."""
    names = logged.log.file_names
    groups = [(file, number) for file in files for number in range(file.num_row_groups)]
    positions, places = [np.empty((0, 2), np.int64)], [np.empty((0, 2), np.int64)]
    wanted = [names.of(one) for one in (COMMIT_SCN, ORDINAL)]
    for at, (file, number) in enumerate(groups):
        light = names.from_files(file.read_row_group(number, columns=wanted))
        rows = np.arange(light.num_rows)
        if takes is not None:
            rows = rows[takes(light)]
        position = np.column_stack([light[one].to_numpy()[rows] for one in (COMMIT_SCN, ORDINAL)])
        positions.append(position.astype(np.int64))
        places.append(np.column_stack([np.full(len(rows), at), rows]))
    position, place = np.concatenate(positions), np.concatenate(places)
    order = np.lexsort((position[:, 1], position[:, 0]))[first:]
    for start in range(0, len(order), ROWS_AT_ONCE):
        chosen = place[order[start : start + ROWS_AT_ONCE]]
        parts, back = [], np.empty(len(chosen), np.int64)
        done = 0
        for at in np.unique(chosen[:, 0]):
            mine = np.flatnonzero(chosen[:, 0] == at)
            file, number = groups[int(at)]
            group = names.from_files(file.read_row_group(number))
            parts.append(group.take(pa.array(chosen[mine, 1])))
            back[mine] = np.arange(done, done + len(mine))
            done += len(mine)
        yield pa.concat_tables(parts, promote_options="default").take(pa.array(back))


def _events(logged: LoggedTable, row: dict[str, Any], number: int) -> Iterator[ChangeEvent]:
    if row["_cdc_skipped"] is not None:
        return
    schema, names = logged.schema, logged.schema.present_names
    before, after = (_image(row.pop(one), schema) for one in ("before", "after"))
    absent, before_absent = (
        frozenset(names.get(one, one) for one in row[name] or ())
        for name in ("_cdc_absent", "_cdc_before_absent")
    )
    op = row["_cdc_op"]
    if op == "d":  # what a deletion lacks in its old image stands in either list
        before_absent |= absent

    def event(
        op: str, before: Image | None, after: Image | None, *, is_second: bool = False
    ) -> ChangeEvent:
        return ChangeEvent(
            table=logged.table,
            op=op,
            key=_key(schema, before if after is None else after),
            before=before,
            after=after,
            absent=absent,
            before_absent=before_absent,
            row=row,
            number=number,
            is_second=is_second,
        )

    if op == "u" and _key(schema, before) != _key(schema, after):
        yield event("d", before, None)
        yield event("c", None, after, is_second=True)
    else:
        yield event(op, before, after)


def _image(values: Mapping[str, Any] | None, schema: TableSchema) -> Image | None:
    if values is None:
        return None
    return {name: values.get(stored_as) for name, stored_as in schema.stored_names.items()}


def _key(schema: TableSchema, image: Image | None) -> Image | None:
    if image is None:
        return None
    return {name: image[name] for name in schema.key}


def key_json(
    event: ChangeEvent, schema: TableSchema, decimals: Decimals = "text"
) -> dict[str, Any] | None:
    """The message key: the key's columns, in Debezium's forms."""
    if event.key is None:
        return None
    return {name: shown(schema.column(name), value, decimals) for name, value in event.key.items()}


def envelope_json(
    event: ChangeEvent,
    schema: TableSchema,
    origin: Origin,
    decimals: Decimals = "text",
    place: Place | None = None,
) -> dict[str, Any]:
    """The message: Debezium's envelope, with values in its forms. ``place`` is where the event
    stands in its transaction, None where nobody asks."""
    absent, before_absent = (
        one if origin.unavailable is not None else frozenset()
        for one in (event.absent, event.before_absent)
    )
    landed = _micros(event.row["_cdc_landed"])
    return {
        "before": _image_json(event.before, schema, before_absent, origin, decimals),
        "after": _image_json(event.after, schema, absent, origin, decimals),
        "source": {**_source(event, origin), "txSeq": None if place is None else place.change},
        "transaction": None
        if place is None
        else {
            "id": place.id,
            "total_order": place.total_order,
            "data_collection_order": place.data_collection_order,
        },
        "op": event.op,
        "ts_ms": None if landed is None else landed // 1000,
        "ts_us": landed,
        "ts_ns": None if landed is None else landed * 1000,
    }


def _image_json(
    image: Image | None,
    schema: TableSchema,
    absent: frozenset[str],
    origin: Origin,
    decimals: Decimals,
) -> dict[str, Any] | None:
    if image is None:
        return None
    return {
        name: _unavailable(schema.column(name), origin)
        if name in absent
        else shown(schema.column(name), value, decimals)
        for name, value in image.items()
    }


def _unavailable(column: Column, origin: Origin) -> Any:
    """What stands for a value that the event does not carry: texts and bytes alone can say so."""
    kind, placeholder = arrow_type(column), origin.unavailable
    if placeholder is not None and pa.types.is_binary(kind):
        return base64.b64encode(placeholder.encode()).decode()
    return placeholder if pa.types.is_string(kind) else None


def shown(column: Column, value: Any, decimals: Decimals = "text") -> Any:
    """A value as Debezium's JSON has it, with ``time.precision.mode: adaptive``: whole numbers of
    up to 18 digits as numbers; a DATE, and a TIMESTAMP of up to three digits, in milliseconds since
    1970, others in microseconds; a moment in UTC as ISO 8601 text; a day in days since 1970; bytes
    in base64. Other exact numbers are texts, or with ``decimals`` ``precise`` the bytes of
    Connect's Decimal, and of Debezium's VariableScaleDecimal where the column has no scale. What
    the lake holds as text stays that text."""
    match value:
        case Decimal():
            if decimals == "precise":
                return _unscaled(value, arrow_type(column).scale)
            return format(value, "f")
        case str() if decimals == "precise" and has_variable_scale(column):
            exact = Decimal(value)
            scale = max(0, -int(exact.as_tuple().exponent))
            return {"scale": scale, "value": _unscaled(exact, scale)}
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case datetime():
            micros = _micros(value)
            assert micros is not None
            return micros // 1000 if is_in_millis(column) else micros
        case date():
            return (value - _EPOCH.date()).days
        case bytes():
            return base64.b64encode(value).decode()
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        case _:
            return value


def has_variable_scale(column: Column) -> bool:
    """Is it a number that has any scale, and therefore stands in the lake as text?"""
    return (
        column.data_type in {"NUMBER", "FLOAT"}
        and not column.form
        and pa.types.is_string(arrow_type(column))
    )


def _unscaled(value: Decimal, scale: int) -> str:
    """A number's digits as the bytes of Java's BigInteger, in base64."""
    with localcontext(prec=200):
        number = int(value.scaleb(scale))
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(length, "big", signed=True)).decode()


def is_in_millis(column: Column) -> bool:
    """Are the column's times shown in milliseconds, not in microseconds?"""
    digits = column.data_type.removeprefix("TIMESTAMP(").removesuffix(")")
    return column.data_type == "DATE" or (digits.isdigit() and int(digits) <= _MILLISECOND_DIGITS)


def _source(event: ChangeEvent, origin: Origin) -> dict[str, Any]:
    row, zone = event.row, ZoneInfo(origin.time_zone)
    is_change = row["_cdc_snapshot"] is None
    at = _micros(row["_cdc_timestamp"], zone) if is_change else _micros(row["_cdc_landed"])
    committed = _micros(row["_cdc_commit_timestamp"], zone)
    began = _micros(row["_cdc_start_timestamp"], zone)
    return {
        "version": origin.version,
        "connector": "oracle",
        "name": origin.name,
        "ts_ms": None if at is None else at // 1000,
        "snapshot": _snapshot_mark(row["_cdc_snapshot"]),
        "db": origin.database,
        "sequence": None,
        "ts_us": at,
        "ts_ns": None if at is None else at * 1000,
        "schema": event.table.owner,
        "table": event.table.name,
        "txId": row["_cdc_xid"],
        "scn": str(row["_cdc_scn"] if is_change else row["_cdc_commit_scn"]),
        "commit_scn": str(row["_cdc_commit_scn"]) if is_change else None,
        "lcr_position": None,
        "rs_id": row["_cdc_rs_id"] and row["_cdc_rs_id"].strip(),
        "ssn": row["_cdc_ssn"],
        "redo_thread": row["_cdc_thread"],
        "user_name": row["_cdc_username"],
        "redo_sql": row["_cdc_redo_sql"],
        "row_id": row["_cdc_row_id"],
        "commit_ts_ms": None if committed is None else committed // 1000,
        "start_scn": None if row["_cdc_start_scn"] is None else str(row["_cdc_start_scn"]),
        "start_ts_ms": None if began is None else began // 1000,
    }


def _snapshot_mark(chunk: str | None) -> str:
    """Debezium's word for how the row came; ``chunk`` is what brought it, None for redo."""
    if chunk is None:
        return "false"
    return "incremental" if chunk.startswith(INCREMENTAL) else "true"


def _micros(moment: datetime | None, zone: ZoneInfo | None = None) -> int | None:
    """Microseconds since 1970 in UTC of a time without a zone that was meant in ``zone``."""
    if moment is None:
        return None
    if zone is not None:
        moment = moment.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    gone = moment - _EPOCH
    return (gone.days * 86_400 + gone.seconds) * 1_000_000 + gone.microseconds
