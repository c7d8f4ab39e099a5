"""Which state do changes leave for each key? One row per key, found by columns.

**Events.** An insert or a chunk's row *puts* its key, an update *sets* its key, a delete *deletes*
its key; an update that changes the key deletes the old key and puts the new one. The order is
(commit SCN, ordinal); rows of a chunk stand behind all changes of their SCN.

**Occupants.** Oracle checks unique keys at the end of a statement, so that in
``UPDATE t SET id = id + 1`` two rows share a key for a while, and a DEFERRABLE key, or a row that
moves to another block, may have its new row inserted before its old one is deleted: "the last event
of the key" would be wrong. Inside one transaction the events of a key are therefore followed per
ROW_ID: a delete ends what its own row did, and reaches the key's occupant from before the
transaction only if that row did not put the key itself. Where LogMiner does not know an address (of
rows that are inserted into tables with LOBs, for one), order alone decides: what was inserted and
then deleted is gone. A key that was moved to and deleted in one such transaction is refused, and so
is one that was inserted before a delete if Oracle does not check the key at once: the old row may
have been deleted.

**Result.** After the last put or delete of a key, the last present value of each column counts.
Columns that no change of the key carries are missing and keep the mirror's value. After an insert
they are NULL, since LogMiner lists what the row holds, and Oracle writes a column's DEFAULT into a
row that is inserted without it; only columns that were added after the insert have their default
there (SQL Language Reference 19c, ALTER TABLE, "add_column_clause").

**Gaps.** Where changes of the table are in quarantine (:mod:`cdc_core.stage.quarantine`), the
delete or insert that explains an event may be missing: an insert may meet a row whose delete is
there, and an update that carries all columns may follow a delete, and puts its key.

Where the changes are too many for this process, the same functions run in Spark's tasks
(:mod:`cdc_core.lake.rows.by_key`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import RESNAPSHOT_HINT, DecodeError
from cdc_core.runtime.arrow import whole
from cdc_core.runtime.cores import in_threads
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.carried_columns import NOTHING_CARRIED, CarriedValues
from cdc_core.stage.changes import Flags, Images, LightChanges, LoggedChanges, Rows, key_codes
from cdc_core.stage.layout import CHUNK_ORDINAL_MIN, COMMIT_SCN, ORDINAL

AMBIGUOUS = (
    "a key was moved to and deleted in one transaction, and LogMiner does not show by which rows"
)
UNKNOWN_ROW = (
    "a deferred key was inserted and deleted in one transaction, and LogMiner does not show which "
    "row was deleted"
)
TWICE = "two rows have one key at the end of a transaction"
AFTER_DELETE = "a row was updated after it had been deleted"

_SET, _PUT, _DEL = 0, 1, 2
_MANY_KEYS = 20_000
"""Columns of so many rows are worth threads."""

_INSERTS = ("c", "r")


@dataclass(frozen=True, slots=True)
class ReducedChanges:
    """One entry per key.

    Attributes:
        rows: Number of the change whose image counts.
        is_gone: The key has no row any more; the image is the old one.
        commit_scn: Position of the key's last change …
        ordinal: … and its order among those of its commit SCN.
        values: For each column that some change lacks, the number of the change that has its value,
            -1 if it is NULL or missing. It has none in its image if its row came before the column
            was added: its value is the default then.
        missing: Columns without a value: a list of names per key.
        is_lost: The key's row came by an insert or from another key, so the mirror's value under
            this key is not its own.
        is_new: The key came by an insert, and no row of it went: an older row in the mirror would
            be a second one.
        new_scn: The commit SCN of the key's last insert, 0 if it has none.
    """

    rows: Rows
    is_gone: Flags
    commit_scn: Rows
    ordinal: Rows
    values: dict[str, Rows]
    missing: pa.ListArray
    is_lost: Flags
    is_new: Flags
    new_scn: Rows

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class _Events:
    """What the changes do to keys, as columns; ``change`` is the place of the change that does
    it."""

    change: Rows
    kind: npt.NDArray[np.int8]
    moved: Flags
    key: Rows
    commit_scn: Rows
    ordinal: Rows
    xid: Rows
    line: Rows

    def picked(self, places: Rows | Flags | slice) -> _Events:
        """Some of them, or all in another order."""
        return _Events(*(getattr(self, name)[places] for name in self.__slots__))


def reduce_changes(
    changes: LightChanges,
    schema: TableSchema,
    absent: Sequence[str],
    *,
    has_gaps: bool = False,
    carried: CarriedValues = NOTHING_CARRIED,
) -> ReducedChanges:
    """Find the one row per key.

    Args:
        changes: All changes that touch a key of the part.
        schema: The table.
        absent: Columns that some change does not carry.
        has_gaps: Changes of the table are in quarantine.
        carried: What changes of key carry along.

    Raises:
        DecodeError: It cannot be said which row a key has.
    """
    events = _events(changes, carried)
    if len(events.key) == 0:
        return _nothing()
    events = events.picked(_order(events.ordinal, events.xid, events.commit_scn, events.key))
    keys = int(events.key.max()) + 1
    gone = np.zeros(keys, dtype=np.bool_)
    gone[events.key[events.kind == _DEL]] = True
    transaction = _groups(events.key, events.commit_scn, events.xid)
    unknown = _any(events.line < 0, transaction)
    is_put = events.moved & (events.kind == _PUT)
    crossed = _any(is_put, transaction) & _any(events.kind == _DEL, transaction)
    if (unknown & crossed).any():
        raise _stop(schema, AMBIGUOUS)
    if schema.key_is_deferred and (unknown & _is_put_before_delete(events, transaction)).any():
        raise _stop(schema, UNKNOWN_ROW)
    line = np.where(unknown[transaction], -1, events.line)
    kept = _kept(events, transaction, line)
    events, line, transaction = events.picked(kept), line[kept], transaction[kept]
    if _have_two_rows(events, transaction, line):
        raise _stop(schema, TWICE)
    # Rows that are there stand behind those that went: two rows may have shared the key.
    there, late = events.kind != _DEL, events.ordinal >= CHUNK_ORDINAL_MIN
    events = events.picked(_order(events.ordinal, there, late, events.commit_scn, events.key))
    return _last_of_each(events, changes, schema, absent, gone, carried, has_gaps=has_gaps)


def _events(changes: LightChanges, carried: CarriedValues) -> _Events:
    table = changes.table
    op = table["_cdc_op"]
    moved = changes.moved()
    deletes = pc.equal(op, "d").to_numpy()
    old = np.flatnonzero((deletes | moved) & changes.own_before)
    new = np.flatnonzero(~deletes & changes.own_after)
    change = np.concatenate([old, new])
    puts = np.where(_is_insert(op) | moved, _PUT, _SET)
    kind = np.concatenate([np.full(len(old), _DEL), puts[new]]).astype(np.int8)
    parts = [
        pa.concat_arrays([before.take(pa.array(old)), after.take(pa.array(new))])
        for before, after in zip(changes.before, changes.after, strict=True)
    ]
    return _Events(
        change,
        kind,
        moved[change],
        key_codes(parts),
        table[COMMIT_SCN].to_numpy()[change],
        table[ORDINAL].to_numpy()[change],
        key_codes([whole(table["_cdc_xid"])])[change],
        key_codes([carried.with_row_ids(changes)])[change],
    )


def _order(*columns: npt.NDArray[Any]) -> Rows | slice:
    """As ``numpy.lexsort``: the last column counts first. Where it ascends, nothing is sorted."""
    first = columns[-1]
    return slice(None) if (first[1:] > first[:-1]).all() else np.lexsort(columns)


def _groups(*columns: Rows) -> Rows:
    """The number of each row's group, where equal rows stand together."""
    changed = np.zeros(len(columns[0]), dtype=np.bool_)
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.cumsum(changed)


def _any(flags: Flags, group: Rows) -> Flags:
    """Per group: is a flag set?"""
    found = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.bool_)
    found[group[flags]] = True
    return found


def _is_put_before_delete(events: _Events, transaction: Rows) -> Flags:
    """Per transaction and key: does a put of the key stand before a delete?"""
    never = np.iinfo(np.int64).max
    starts = np.flatnonzero(np.diff(transaction, prepend=-1))
    puts = np.where(events.kind == _PUT, events.ordinal, never)
    deletes = np.where(events.kind == _DEL, events.ordinal, -1)
    found: Flags = np.minimum.reduceat(puts, starts) < np.maximum.reduceat(deletes, starts)
    return found


def _kept(events: _Events, transaction: Rows, line: Rows) -> Flags:
    """Leave out what a row did before it was deleted in the same transaction, and the delete of
    what it did itself."""
    kept = np.ones(len(events.change), dtype=np.bool_)
    has_delete = _any(events.kind == _DEL, transaction)[transaction]
    at = np.flatnonzero(has_delete)
    if len(at) == 0:
        return kept
    at = at[np.lexsort((events.ordinal[at], line[at], transaction[at]))]
    ordinal, is_del = events.ordinal[at], events.kind[at] == _DEL
    group = _groups(transaction[at], line[at])
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    last_delete = np.maximum.reduceat(np.where(is_del, ordinal, -1), starts)[group]
    never = np.iinfo(np.int64).max
    first_put = np.minimum.reduceat(np.where(events.kind[at] == _PUT, ordinal, never), starts)[
        group
    ]
    kept[at] = np.where(is_del, first_put >= ordinal, last_delete <= ordinal)
    return kept


def _have_two_rows(events: _Events, transaction: Rows, line: Rows) -> bool:
    """Does a key have rows of two addresses at the end of a transaction?"""
    there = np.flatnonzero(events.kind != _DEL)
    if len(there) == 0:
        return False
    of, lines = transaction[there], line[there]
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    different = np.maximum.reduceat(lines, starts) != np.minimum.reduceat(lines, starts)
    return bool(different.any())


def _last_of_each(
    events: _Events,
    changes: LightChanges,
    schema: TableSchema,
    absent: Sequence[str],
    gone: Flags,
    carried: CarriedValues,
    *,
    has_gaps: bool,
) -> ReducedChanges:
    """The last event of each key; events stand in the order of keys and positions."""
    if len(events.key) == 0:  # whatever came in the window went in it
        return _nothing()
    group = _groups(events.key)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    last = np.append(starts[1:], len(group)) - 1
    places = np.arange(len(group))
    base = np.maximum.reduceat(np.where(events.kind != _SET, places, -1), starts)
    base_kind = np.where(base < 0, _SET, events.kind[base])
    is_gone = events.kind[last] == _DEL
    after_delete = (base_kind == _DEL) & ~is_gone
    if after_delete.any() and not has_gaps:
        raise _stop(schema, AFTER_DELETE)
    op = changes.table["_cdc_op"]
    inserts = pc.equal(op, "c").to_numpy()
    by_insert = (base >= 0) & _is_insert(op)[events.change[base]]
    numbers = changes.table["row"].to_numpy()
    values, is_missing = {}, {}
    for column in absent:
        sources = np.where(changes.lacking(column), carried.sources(column, numbers), numbers)
        present = (sources[events.change] >= 0) & (events.kind != _DEL)
        found = np.maximum.reduceat(np.where(present, places, -1), starts)
        has = (found >= 0) & (found >= base)
        source = np.where(has, sources[events.change[found]], -1)
        from_default = ~has & by_insert & changes.are_older(column)[events.change[base]]
        source[from_default] = numbers[events.change[base]][from_default]
        values[column] = np.where(is_gone, -1, source)
        if column not in schema.key:
            is_missing[column] = ~has & ~by_insert & ~is_gone
            if (is_missing[column] & after_delete).any():
                raise _stop(schema, AFTER_DELETE)
    new_scn = np.maximum.reduceat(np.where(inserts[events.change], events.commit_scn, 0), starts)
    is_new = (new_scn > 0) & ~gone[events.key[starts]]
    return ReducedChanges(
        rows=numbers[events.change[last]],
        is_gone=is_gone,
        commit_scn=events.commit_scn[last],
        ordinal=events.ordinal[last],
        values=values,
        missing=_names(is_missing, len(last)),
        is_lost=base_kind == _PUT,
        is_new=np.zeros_like(is_new) if has_gaps else is_new,
        new_scn=new_scn,
    )


def _is_insert(op: pa.Array) -> Flags:
    """Which changes bring a row of their own, from redo or snapshot."""
    flags: Flags = pc.is_in(op, pa.array(_INSERTS)).to_numpy(zero_copy_only=False)
    return flags


def _nothing() -> ReducedChanges:
    no_rows, no_flags = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)
    return ReducedChanges(
        rows=no_rows,
        is_gone=no_flags,
        commit_scn=no_rows,
        ordinal=no_rows,
        values={},
        missing=pa.array([], pa.list_(pa.string())),
        is_lost=no_flags,
        is_new=no_flags,
        new_scn=no_rows,
    )


def _names(flags: dict[str, Flags], rows: int) -> pa.ListArray:
    """Per row, the names whose flag is set."""
    names = pa.array(list(flags), pa.string())
    offsets = np.zeros(rows + 1, dtype=np.int32)
    if not flags:
        return pa.ListArray.from_arrays(pa.array(offsets), names)
    table = np.stack(list(flags.values()))
    row, column = np.nonzero(table.T)
    np.cumsum(np.bincount(row, minlength=rows), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), names.take(pa.array(column)))


def merge_sources(
    changes: LoggedChanges,
    schema: TableSchema,
    absent: Sequence[str],
    *,
    has_gaps: bool = False,
    carried: CarriedValues = NOTHING_CARRIED,
) -> Iterator[pa.Table]:
    """What is merged into the mirror, part by part: a table of :func:`merge_source` each.

    Raises:
        DecodeError: It cannot be said which row a key has.
    """
    parts = changes.parts_lacking(len(absent))
    for part in range(parts):
        yield merge_part(changes, schema, absent, part, parts, has_gaps=has_gaps, carried=carried)


def merge_part(
    changes: LoggedChanges,
    schema: TableSchema,
    absent: Sequence[str],
    part: int,
    parts: int,
    *,
    has_gaps: bool = False,
    carried: CarriedValues = NOTHING_CARRIED,
) -> pa.Table:
    """What is merged of one of so many parts of the keys: a table of :func:`merge_source`.

    Raises:
        DecodeError: It cannot be said which row a key has.
    """
    light = changes.light(part, parts)
    reduced = reduce_changes(light, schema, absent, has_gaps=has_gaps, carried=carried)
    return merge_source(changes, reduced, schema, carried)


def merge_source(
    changes: Images,
    reduced: ReducedChanges,
    schema: TableSchema,
    carried: CarriedValues = NOTHING_CARRIED,
) -> pa.Table:
    """What is merged into the mirror: the table's columns, ``_cdc_commit_scn``, ``_cdc_ordinal``,
    ``_cdc_kind`` (``row`` or ``del``), ``_cdc_missing``, ``_cdc_lost``, ``_cdc_new`` and
    ``_cdc_new_scn``. Of a key that is gone only the key is there."""
    there = np.where(reduced.is_gone, -1, reduced.rows)
    was = np.where(reduced.is_gone, reduced.rows, -1)

    def values_of(name: str) -> pa.Array:
        rows = there if name in schema.key else reduced.values.get(name, there)
        values = carried.take(changes, "after", name, rows)
        if name in schema.key and reduced.is_gone.any():
            values = pc.coalesce(values, changes.take("before", name, was))
        return values

    run = in_threads if len(reduced) >= _MANY_KEYS else map
    columns = list(run(values_of, schema.column_names))
    added = {
        COMMIT_SCN: pa.array(reduced.commit_scn),
        ORDINAL: pa.array(reduced.ordinal),
        "_cdc_kind": pc.if_else(pa.array(reduced.is_gone), "del", "row"),
        "_cdc_missing": reduced.missing,
        "_cdc_lost": pa.array(reduced.is_lost),
        "_cdc_new": pa.array(reduced.is_new),
        "_cdc_new_scn": pa.array(reduced.new_scn),
    }
    return pa.Table.from_arrays([*columns, *added.values()], schema=source_schema(schema))


def settled_values(changes: LightChanges, columns: Sequence[str]) -> dict[str, Flags]:
    """Of the changes of one key, in the order of their commits, of which more follow: per column,
    those whose value does not count whatever follows. An update of the row in its place has come
    since that carries the column, in a transaction that did nothing else to the key."""
    scn, op = changes.table[COMMIT_SCN].to_numpy(), changes.table["_cdc_op"]
    is_set = pc.equal(op, "u").to_numpy() & ~changes.moved()
    is_plain = is_set & (scn < scn[-1]) & ~np.isin(scn, scn[~is_set])
    newest = {
        column: scn[is_plain & ~changes.lacking(column)].max(initial=-1) for column in columns
    }
    return {column: scn < newest[column] for column in columns}


def source_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of :func:`merge_source`."""
    added = {
        COMMIT_SCN: pa.int64(),
        ORDINAL: pa.int64(),
        "_cdc_kind": pa.string(),
        "_cdc_missing": pa.list_(pa.string()),
        "_cdc_lost": pa.bool_(),
        "_cdc_new": pa.bool_(),
        "_cdc_new_scn": pa.int64(),
    }
    return pa.schema([*arrow_schema(schema), *(pa.field(*one) for one in added.items())])


def _stop(schema: TableSchema, message: str) -> DecodeError:
    return DecodeError(message, hint=RESNAPSHOT_HINT, table=schema.table)
