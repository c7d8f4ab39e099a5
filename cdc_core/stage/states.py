"""Which states has each row had? One row per state, from all changes of whole keys.

The rule of :mod:`cdc_core.stage.reducing` is asked as if each commit SCN were a window of its own:
it leaves one row per key and commit, the last of its transactions, and says which columns no change
of the commit carries. These have their value from the state before. So a table's current states are
what its mirror holds, and the states as of an SCN what it held then.

**States.** A state begins at the commit SCN of the change that made it, or at the SCN as of which a
snapshot read it, and ends where the key's next state begins, its row goes, or the table is
truncated. Equal states in a row are one: a change that changes nothing, or a snapshot that finds
what is known, begins none. So no state is empty, and the states of a key never overlap.

**What is not known.** Changes from before a row's snapshot may lack columns of which nothing says
what they held. A row's history begins with the first state that is known as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.carrying import NOTHING_CARRIED, CarriedValues
from cdc_core.stage.changes import Flags, Images, LightChanges, Rows, key_codes
from cdc_core.stage.layout import COMMIT_SCN
from cdc_core.stage.reducing import merge_source, reduce_changes

FROM_SCN = "_cdc_valid_from_scn"
TO_SCN = "_cdc_valid_to_scn"
FROM = "_cdc_valid_from"
TO = "_cdc_valid_to"
IS_CURRENT = "_cdc_is_current"
ENDED_BY = "_cdc_op"


class DatedImages(Images, Protocol):
    """Images of changes, and when the changes committed."""

    def commit_times(self, rows: Rows) -> pa.Array:
        """When the changes with these numbers committed; NULL for -1, and for rows of snapshots."""
        ...


@dataclass(frozen=True, slots=True)
class Truncated:
    """A TRUNCATE that ends all states from before it: its SCN, and its time if that is known."""

    scn: int
    time: datetime | None = None


def states_schema(schema: TableSchema) -> pa.Schema:
    """Arrow schema of a history table: the table's columns, from when to when a state was (the end
    is not part of it), whether it is still, and the operation that ended it."""
    added = {
        FROM_SCN: pa.int64(),
        TO_SCN: pa.int64(),
        FROM: pa.timestamp("us"),
        TO: pa.timestamp("us"),
        IS_CURRENT: pa.bool_(),
        ENDED_BY: pa.string(),
    }
    return pa.schema([*arrow_schema(schema), *(pa.field(*one) for one in added.items())])


def states_of(
    changes: DatedImages,
    light: LightChanges,
    schema: TableSchema,
    absent: Sequence[str],
    *,
    has_gaps: bool = False,
    carried: CarriedValues = NOTHING_CARRIED,
    until: Truncated | None = None,
) -> pa.Table:
    """The states of some keys, in the columns of :func:`states_schema`, ordered by key and time.

    Args:
        changes: The images.
        light: All changes that touch these keys, up to a TRUNCATE if there was one.
        schema: The table.
        absent: Columns that some change does not carry.
        has_gaps: Changes of the table are in quarantine.
        carried: What changes of key carry along.
        until: The TRUNCATE behind them.

    Raises:
        DecodeError: It cannot be said which row a key has.
    """
    reduced = reduce_changes(_by_commit(light), schema, absent, has_gaps=has_gaps, carried=carried)
    if len(reduced) == 0:
        return states_schema(schema).empty_table()
    rows = merge_source(changes, reduced, schema, carried)
    key = key_codes([rows[name].combine_chunks() for name in schema.key])
    order = np.lexsort((reduced.commit_scn, key))
    rows, key, scn = rows.take(pa.array(order)), key[order], reduced.commit_scn[order]
    change: Rows = reduced.rows[order]
    is_gone, is_lost = reduced.is_gone[order], reduced.is_lost[order]
    is_next = np.append(False, key[1:] == key[:-1])
    # Where a row comes to its key, nothing from before is its own.
    begins_row = ~is_next | is_gone | is_lost | np.append(False, is_gone[:-1])
    values, is_known = _filled(rows, schema, absent, begins_row, is_gone)
    is_same = is_next & is_known & np.append(False, is_known[:-1])
    for column in values:
        is_same[1:] &= _equal(column[1:], column[:-1])
    edges = np.flatnonzero(~is_same)
    begins = edges[is_known[edges]]
    behind = np.append(edges, -1)[np.searchsorted(edges, begins, side="right")]
    is_ended = (behind >= 0) & (key[behind] == key[begins])
    ends = pa.array(behind, mask=~is_ended)
    to_scn, to_time = (
        pa.array(scn).take(ends),
        changes.commit_times(np.where(is_ended, change[behind], -1)),
    )
    ended_by = _operations(light, change).take(ends)
    if until is not None:
        is_cut = pa.array(~is_ended)
        to_scn = pc.if_else(is_cut, pa.scalar(until.scn, pa.int64()), to_scn)
        to_time = pc.if_else(is_cut, pa.scalar(until.time, pa.timestamp("us")), to_time)
        ended_by = pc.if_else(is_cut, "t", ended_by)
    places = pa.array(begins)
    columns = [
        *(column.take(places) for column in values),
        pa.array(scn[begins]),
        to_scn,
        changes.commit_times(change[begins]),
        to_time,
        pc.is_null(to_scn),
        ended_by,
    ]
    return pa.Table.from_arrays(columns, schema=states_schema(schema))


def _by_commit(light: LightChanges) -> LightChanges:
    """The same with the commit SCN as a part of each key."""
    scn = light.table[COMMIT_SCN].combine_chunks()
    return replace(light, before=(*light.before, scn), after=(*light.after, scn))


def _filled(
    rows: pa.Table, schema: TableSchema, absent: Sequence[str], begins_row: Flags, is_gone: Flags
) -> tuple[list[pa.Array], Flags]:
    """The table's columns with what the states before say of those that a commit does not carry,
    and which rows are known as a whole; ``rows`` are in the order of keys and commits."""
    places = np.arange(rows.num_rows)
    first = np.maximum.accumulate(np.where(begins_row, places, 0))
    missing = rows["_cdc_missing"].combine_chunks()
    names, parents = pc.list_flatten(missing), pc.list_parent_indices(missing)
    is_known, values = ~is_gone, []
    for name in schema.column_names:
        own = rows[name].combine_chunks()
        if name in absent and name not in schema.key:
            has = ~is_gone
            has[parents.filter(pc.equal(names, name)).to_numpy()] = False
            found = np.maximum.accumulate(np.where(has, places, -1))
            is_known &= found >= first
            own = own.take(pa.array(np.maximum(found, 0)))
        values.append(own)
    return values, is_known


def _equal(one: pa.Array, other: pa.Array) -> Flags:
    """Which values are the same, NULL and NaN among them?"""
    equal = pc.fill_null(pc.equal(one, other), False)
    equal = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))
    if pa.types.is_floating(one.type):
        nan = pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False)
        equal = pc.or_(equal, nan)
    flags: Flags = equal.to_numpy(zero_copy_only=False)
    return flags


def _operations(light: LightChanges, change: Rows) -> pa.Array:
    """The operations of changes by their numbers."""
    numbers = light.table["row"].to_numpy()
    order = np.argsort(numbers)
    places = order[np.searchsorted(numbers, change, sorter=order)]
    return light.table["_cdc_op"].combine_chunks().take(pa.array(places))
