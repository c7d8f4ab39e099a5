"""Which rows of a table did a window's transactions change, where LogMiner shows none of them?

A table with a JSON, BOOLEAN or VECTOR column has redo rows without a statement. What LogMiner says
of them is the transaction and the ROWID. So Oracle is asked for each ROWID as of the SCN before the
transaction's commit, and as of the commit: the two images are what the transaction made of the row,
however often it wrote it, and also where it took some of that back. Where a redo row shows no
ROWID, Oracle's flashback version query says which rows the transaction changed.

Rows of a key may leave one ROWID and come at another, so images are paired by key: each key has one
change of a transaction. A large transaction is read in parts; one that moves rows between its parts
is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.masking import Masks, masked
from cdc_core.landing.layout import IMAGES, change_file_schema
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.model.texts import TextReplacement
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.session import OracleSession
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import ROW_ID, ROW_ID_COLUMN, TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.snapshot.plan import ChunkKeys
from cdc_core.snapshot.read import FetchOptions, exact_rows_by_scn
from cdc_core.stage.committed import CommittedRows
from cdc_core.stage.difference import are_same
from cdc_core.stage.statements import known_row_ids
from cdc_core.steps.table_errors import READING_ERRORS

_LOG = logging.getLogger(__name__)

PART_ROWS = 1000
"""A list of one statement takes no more (ORA-01795)."""
_COMMITS_AT_ONCE = 50
_FETCH_ROWS = 500
_VERSIONS = (
    "SELECT DISTINCT ROWIDTOCHAR(ROWID), LOWER(RAWTOHEX(VERSIONS_XID)) FROM {table} "
    "VERSIONS BETWEEN SCN :low AND :high WHERE VERSIONS_XID IS NOT NULL"
)
_FACTS = ("ordinal", "scn", "timestamp", "thread")

Key = tuple[object, ...]
_Facts = dict[str, object]


@dataclass(slots=True)
class TouchedRows:
    """A transaction's rows of the table: the facts of the last redo row of each ROWID, of the last
    one of all, and of those that show no ROWID; and the ROWIDs of which there is one redo row
    alone, where nothing was taken back."""

    xid: str
    commit_scn: Scn
    rows: dict[str, _Facts] = field(default_factory=dict)
    last: _Facts = field(default_factory=dict)
    nameless: list[_Facts] = field(default_factory=list)
    once: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one transaction that are asked for at once."""

    transaction: TouchedRows
    row_ids: tuple[str, ...]


def touched_rows(rows: CommittedRows) -> list[TouchedRows]:
    """What the redo rows of the window's transactions say, by the commits' order."""
    found: dict[tuple[str, int], TouchedRows] = {}
    for piece in rows.batches(["xid", "row_id", "operation_code", *_FACTS]):
        piece = piece.filter(pc.not_equal(piece["operation_code"], int(Operation.DDL)))
        row_ids = known_row_ids(whole(piece["row_id"])).to_pylist()
        for row_id, one in zip(row_ids, piece.to_pylist(), strict=True):
            place = one["xid"], one["commit_scn"]
            own = found.setdefault(place, TouchedRows(one["xid"], Scn(one["commit_scn"])))
            own.last = {name: one[name] for name in _FACTS}
            if row_id is None:
                own.nameless.append(own.last)
                continue
            is_first = row_id not in own.rows and not one["has_rollback"]
            (own.once.add if is_first else own.once.discard)(row_id)
            own.rows[row_id] = own.last
    return sorted(found.values(), key=lambda one: (one.commit_scn, one.xid))


def with_versions(
    session: OracleSession, schema: TableSchema, touched: Sequence[TouchedRows]
) -> list[TouchedRows]:
    """The transactions with all their ROWIDs, of which the redo may not show each. One that changed
    more rows than it has redo rows for is left out: the version query speaks of another one.

    Source: Oracle Database Development Guide 19c, "Using Oracle Flashback Version Query".
    """
    lacking = {one.xid: one for one in touched if one.nameless}
    odd: set[str] = set()
    if lacking:
        scns = [one.commit_scn for one in lacking.values()]
        sql = _VERSIONS.format(table=schema.table.sql)
        for row_id, xid in session.fetch_all(sql, {"low": min(scns), "high": max(scns)}):
            own = lacking.get(xid)
            if own is None or row_id in own.rows:
                continue
            if own.nameless:
                own.rows[row_id] = own.nameless.pop()
            else:
                odd.add(xid)
    return [one for one in touched if one.xid not in odd]


def changed_rows(
    session: OracleSession,
    version: TableSchema,
    touched: Sequence[TouchedRows],
    names: Mapping[str, str],
    masks: Masks,
    replacing: TextReplacement,
    unfit: Callable[[int], None],
) -> Iterator[pa.RecordBatch]:
    """What these transactions, which were all written under one version of the table, changed: rows
    of a change file, in batches, and one without ROWID behind those of each transaction. ``unfit``
    is told as by :func:`~cdc_core.snapshot.read.exact_rows`.

    A transaction of which Oracle does not tell all is left out, and the log says why.
    """
    read = partial(
        _pairs, session, version, names=names, masks=masks, replacing=replacing, unfit=unfit
    )
    small = [one for one in touched if len(one.rows) <= PART_ROWS]
    for parts in _statements(small):
        yield from _read(read, parts, version)
    for one in touched:
        if len(one.rows) > PART_ROWS:
            yield from _large(read, one, version)


def _statements(transactions: Sequence[TouchedRows]) -> Iterator[list[_Part]]:
    parts: list[_Part] = []
    room = PART_ROWS
    for one in transactions:
        if parts and (len(one.rows) > room or len(parts) == _COMMITS_AT_ONCE):
            yield parts
            parts, room = [], PART_ROWS
        parts.append(_Part(one, tuple(one.rows)))
        room -= len(one.rows)
    if parts:
        yield parts


_Pairs = tuple[pa.Table, pa.Table]
"""The rows before the commits and as of them, behind the places of their parts."""


def _read(
    read: Callable[[Sequence[_Part]], _Pairs], parts: Sequence[_Part], version: TableSchema
) -> Iterator[pa.RecordBatch]:
    """The changes of whole transactions. Where Oracle refuses, they are asked for in two halves,
    until it is known of which it does not tell any more."""
    try:
        before, after = read(parts)
    except READING_ERRORS as error:
        if len(parts) == 1:
            _warn(version, parts[0].transaction, error.message)
            return
        half = len(parts) // 2
        yield from _read(read, parts[:half], version)
        yield from _read(read, parts[half:], version)
        return
    for place, part in enumerate(parts):
        if _is_missed(part, place, before, after):
            _warn(version, part.transaction, _MISSED)
            continue
        changes, _ = _changes(part, place, before, after, version)
        yield from filter(len, (changes, _end(part.transaction, version)))


def _large(
    read: Callable[[Sequence[_Part]], _Pairs], one: TouchedRows, version: TableSchema
) -> Iterator[pa.RecordBatch]:
    """The changes of a transaction part by part, whose end says that they are all there."""
    row_ids = sorted(one.rows)
    seen: set[Key] = set()
    for start in range(0, len(row_ids), PART_ROWS):
        part = _Part(one, tuple(row_ids[start : start + PART_ROWS]))
        try:
            before, after = read([part])
        except READING_ERRORS as error:
            _warn(version, one, error.message)
            return
        if _is_missed(part, 0, before, after):
            _warn(version, one, _MISSED)
            return
        changes, keys = _changes(part, 0, before, after, version)
        if not seen.isdisjoint(keys):
            _warn(version, one, "a large transaction moves rows to other ROWIDs")
            return
        seen |= keys
        if changes.num_rows:
            yield changes
    yield _end(one, version)


def _pairs(
    session: OracleSession,
    version: TableSchema,
    parts: Sequence[_Part],
    *,
    names: Mapping[str, str],
    masks: Masks,
    replacing: TextReplacement,
    unfit: Callable[[int], None],
) -> _Pairs:
    by_row_id = _by_row_id(version)

    def rows_as_of(earlier: int) -> pa.Table:
        asked = [
            (
                Scn(one.transaction.commit_scn - earlier),
                ChunkKeys(tuple((row_id,) for row_id in one.row_ids)),
            )
            for one in parts
            if one.row_ids
        ]
        places = [at for at, one in enumerate(parts) if one.row_ids]
        batches = []
        if asked:
            found = exact_rows_by_scn(
                session,
                by_row_id,
                asked,
                FetchOptions(
                    rows=_FETCH_ROWS,
                    names=names,
                    replacing=replacing,
                    unfit=None if earlier else unfit,
                ),
            )
            with closing(found):
                for at, batch in found:
                    own = pa.array([places[one] for one in at.to_pylist()], pa.int64())
                    batches.append(masked(batch, masks).append_column(_PLACE, own))
        return pa.Table.from_batches(batches) if batches else _nothing(by_row_id)

    return read_after_ddl(session, [version.table], lambda: (rows_as_of(1), rows_as_of(0)))


_PLACE = "cdc place"
_MISSED = "Oracle has no row at a ROWID that the transaction wrote"


def _is_missed(part: _Part, place: int, before: pa.Table, after: pa.Table) -> bool:
    """Has Oracle no row at a ROWID, neither before nor behind, that the transaction wrote once? A
    row that came and went in it was written twice; else the redo names the row by another address,
    as that of a piece of it."""
    once = part.transaction.once.intersection(part.row_ids)
    for rows in (before, after) if once else ():
        once.difference_update(rows.filter(pc.equal(rows[_PLACE], place))[ROW_ID].to_pylist())
    return bool(once)


def _nothing(schema: TableSchema) -> pa.Table:
    return arrow_schema(schema).append(pa.field(_PLACE, pa.int64())).empty_table()


def _by_row_id(version: TableSchema) -> TableSchema:
    """The version as a query by ROWID gives its rows."""
    columns = version.as_in_rows().columns
    return replace(version, columns=(ROW_ID_COLUMN, *columns), key=(ROW_ID,))


def _changes(
    part: _Part, place: int, before: pa.Table, after: pa.Table, version: TableSchema
) -> tuple[pa.RecordBatch, set[Key]]:
    """The changes of a part's rows, and the keys that they are about."""
    olds, news = _by_key(before, place, version), _by_key(after, place, version)
    pairs = _paired(olds, news, len(part.row_ids))
    keys = {*olds, *news}
    old_rows = _images(before, [one for one, _ in pairs], version)
    new_rows = _images(after, [one for _, one in pairs], version)
    changed = _differing(old_rows, new_rows)
    facts = part.transaction.rows
    row_ids = [
        (after[ROW_ID][new] if new is not None else before[ROW_ID][old]).as_py()
        for old, new in pairs
    ]
    ordinals = sorted((facts[row_id]["ordinal"], row_id) for row_id in part.row_ids)
    rows = [
        _row(part.transaction, version, facts[row_id] | {"ordinal": ordinal}, row_id)
        for row_id, (ordinal, _) in zip(row_ids, ordinals, strict=False)
    ]
    return _batch(rows, old_rows, new_rows, version).filter(changed), keys


def _by_key(rows: pa.Table, place: int, version: TableSchema) -> dict[Key, int]:
    at = pc.indices_nonzero(pc.equal(rows[_PLACE], place)).to_pylist()
    names = (ROW_ID,) if version.is_by_row_id else version.key
    values = [rows[name].take(pa.array(at, pa.int64())).to_pylist() for name in names]
    # NaN is one key in Oracle, and equal to nothing here.
    values = [["NaN" if one != one else one for one in column] for column in values]
    return dict(zip(zip(*values, strict=True), at, strict=True)) if at else {}


def _paired(
    olds: Mapping[Key, int], news: Mapping[Key, int], changes_max: int
) -> list[tuple[int | None, int | None]]:
    """The rows before and behind of each change: those of one key, else what went and what came. A
    transaction has no more changes than ROWIDs: where keys moved between these, what went and what
    came are one change."""
    pairs: list[tuple[int | None, int | None]] = [
        (olds[key], news[key]) for key in news if key in olds
    ]
    gone = [at for key, at in olds.items() if key not in news]
    came = [at for key, at in news.items() if key not in olds]
    while gone and came and len(pairs) + len(gone) + len(came) > changes_max:
        pairs.append((gone.pop(), came.pop()))
    return [*pairs, *((at, None) for at in gone), *((None, at) for at in came)]


def _images(rows: pa.Table, places: Sequence[int | None], version: TableSchema) -> pa.StructArray:
    image = change_file_schema(version).field("before").type
    taken = rows.take(pa.array(places, pa.int64()))
    columns = [
        whole(taken[one.name]).cast(own.type)
        for one, own in zip(version.as_in_rows().columns, image, strict=True)
    ]
    absent = pa.array([one is None for one in places], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(image), mask=absent)


def _differing(olds: pa.StructArray, news: pa.StructArray) -> pa.Array:
    """Which rows did the transaction leave otherwise than it found them?"""
    same = pc.and_(pc.is_valid(olds), pc.is_valid(news)).to_numpy(zero_copy_only=False).copy()
    for one in olds.type:
        same &= are_same(pc.struct_field(olds, one.name), pc.struct_field(news, one.name))
    return pa.array(~same)


def _end(transaction: TouchedRows, version: TableSchema) -> pa.RecordBatch:
    image = change_file_schema(version).field("before").type
    nothing = pa.nulls(1, image)
    return _batch([_row(transaction, version, transaction.last, None)], nothing, nothing, version)


def _row(
    transaction: TouchedRows, version: TableSchema, facts: Mapping[str, object], row_id: str | None
) -> dict[str, object]:
    return {
        **facts,
        "xid": transaction.xid,
        "operation_code": int(Operation.RESELECTED),
        "rollback": False,
        "seg_owner": version.table.owner,
        "table_name": version.table.name,
        "row_id": row_id,
        "status": 0,
    }


def _batch(
    rows: Sequence[Mapping[str, object]],
    olds: pa.StructArray,
    news: pa.StructArray,
    version: TableSchema,
) -> pa.RecordBatch:
    schema = change_file_schema(version)
    facts = [one for one in schema if one.name not in IMAGES]
    arrays = [pa.array([row.get(one.name) for row in rows], one.type) for one in facts]
    lists = pa.array([[]] * len(rows), pa.list_(pa.string()))
    return pa.RecordBatch.from_arrays([*arrays, olds, news, lists, lists], schema=schema)


def _warn(version: TableSchema, one: TouchedRows, why: str) -> None:
    _LOG.warning(
        "rows of a transaction cannot be read table=%s xid=%s scn=%d: %s",
        version.table, one.xid, one.commit_scn, why,
    )  # fmt: skip
