"""Which states has each row had? One row per state, from all changes of whole keys, or from newer
changes and the states that they meet.

The rule of :mod:`cdc_core.stage.reduction` is asked as if each commit SCN were a window of its own:
it leaves one row per key and commit, the last of its transactions, and says which columns no change
of the commit carries. These have their value from the state before. So a table's current states are
what its mirror holds, and the states as of an SCN what it held then.

**States.** A state begins at the commit SCN of the change that made it, or at the SCN as of which a
snapshot read it, and ends where the key's next state begins, its row goes, or the table is
truncated. Equal states in a row are one: a change that changes nothing, or a snapshot that finds
what is known, begins none. So no state is empty, and the states of a key never overlap.

**Each change.** On wish (:attr:`StateRule.each_change`) each change of a transaction makes a state,
so that states within a transaction are empty. Where a row leaves a key in a transaction, the last
change of the key counts there as ever: other rows may have shared the key for a while.

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

from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.carried_columns import NOTHING_CARRIED, CarriedValues
from cdc_core.stage.changes import Flags, Images, LightChanges, Rows, key_codes, naming
from cdc_core.stage.difference import are_same
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL
from cdc_core.stage.reduction import ReducedChanges, merge_source, reduce_changes

FROM_SCN = "_cdc_valid_from_scn"
TO_SCN = "_cdc_valid_to_scn"
FROM = "_cdc_valid_from"
TO = "_cdc_valid_to"
IS_CURRENT = "_cdc_is_current"
ENDED_BY = "_cdc_op"
STATE_FIELDS: dict[str, pa.DataType] = {
    FROM_SCN: pa.int64(),
    TO_SCN: pa.int64(),
    FROM: pa.timestamp("us"),
    TO: pa.timestamp("us"),
    IS_CURRENT: pa.bool_(),
    ENDED_BY: pa.string(),
    ORDINAL: pa.int64(),
}
"""What is known of a state beside the table's columns: from when to when it was (the end is not
part of it), whether it is still, the operation that ended it, and the ordinal of the change that
made it."""


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


@dataclass(frozen=True, slots=True)
class StateRule:
    """What makes a state.

    Attributes:
        tracked: Only changes of these columns begin a state; what else changes is changed in the
            state. None: any column.
        each_change: Each change of a transaction, not its last alone.
    """

    tracked: frozenset[str] | None = None
    each_change: bool = False


ANY_CHANGE = StateRule()


def states_schema(schema: TableSchema) -> pa.Schema:
    """Arrow schema of states: the table's columns, and :data:`STATE_FIELDS`."""
    return pa.schema([*arrow_schema(schema), *(pa.field(*one) for one in STATE_FIELDS.items())])


def states_of(
    changes: DatedImages,
    light: LightChanges,
    schema: TableSchema,
    absent: Sequence[str],
    *,
    rule: StateRule = ANY_CHANGE,
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
        rule: What makes a state.
        has_gaps: Changes of the table are in quarantine.
        carried: What changes of key carry along.
        until: The TRUNCATE behind them.

    Raises:
        DecodeError: It cannot be said which row a key has.
    """
    light = _by_commit(light, rule)
    reduced = reduce_changes(light, schema, absent, has_gaps=has_gaps, carried=carried)
    rows = merge_source(changes, reduced, schema, carried)
    none = states_schema(schema).empty_table()
    steps = _Steps.of(rows, reduced, none, schema)
    values, is_known = _filled(steps, schema, absent)
    found = _joined(changes, light, schema, steps, values, is_known, rule)
    return found if until is None else _cut(found, until)


def states_behind(
    current: pa.Table,
    changes: DatedImages,
    light: LightChanges,
    schema: TableSchema,
    absent: Sequence[str],
    *,
    rule: StateRule = ANY_CHANGE,
    has_gaps: bool = False,
) -> pa.Table | None:
    """What becomes of the current states of some keys, in the columns of :func:`states_schema`:
    they and the states that follow them. None where these states do not say all that counts: a
    change lacks a column, and its row has none.

    Args:
        current: The states, at most one per key; others of these keys have none.
        light: All changes that touch these keys and are newer than any from which the states were
            derived. No change of key lacks a column.

    Other arguments, and errors, are those of :func:`states_of`.
    """
    light = _by_commit(light, rule)
    reduced = reduce_changes(light, schema, absent, has_gaps=has_gaps)
    rows = merge_source(changes, reduced, schema)
    steps = _Steps.of(rows, reduced, current, schema)
    values, is_known = _filled(steps, schema, absent)
    if not (is_known | steps.is_gone).all():
        return None
    return _joined(changes, light, schema, steps, values, is_known, rule)


def last_states(states: pa.Table, schema: TableSchema) -> pa.Table:
    """Of each key its last state, in the columns of :func:`states_schema`."""
    if states.num_rows == 0:
        return states
    key = key_codes([whole(states[name]) for name in schema.key])
    begins, ordinal = states[FROM_SCN].to_numpy(), pc.fill_null(states[ORDINAL], -1).to_numpy()
    # Within one transaction a state that ended stands before one that did not.
    is_current = states[TO_SCN].is_null().to_numpy()
    order = np.lexsort((ordinal, is_current, begins, key))
    is_last = np.append(key[order][1:] != key[order][:-1], True)
    return states.take(pa.array(order[is_last]))


@dataclass(frozen=True, slots=True)
class _Steps:
    """What happens to keys, in the order of key and position: a row per commit, and in front of
    them the key's current state if there is one. ``change`` is the change's number and ``state``
    the state's, -1 where it is none."""

    rows: pa.Table
    current: pa.Table
    key: Rows
    scn: Rows
    ordinal: Rows
    change: Rows
    state: Rows
    is_gone: Flags
    is_lost: Flags

    @classmethod
    def of(
        cls, source: pa.Table, reduced: ReducedChanges, current: pa.Table, schema: TableSchema
    ) -> _Steps:
        """Those of what was reduced, in the columns of ``stage.reduction.merge_source``, behind
        current states."""
        count, more = current.num_rows, len(reduced)
        names = [*schema.column_names, "_cdc_missing"]
        complete = pa.array([[]] * count, pa.list_(pa.string()))
        before = current.select(schema.column_names).append_column("_cdc_missing", complete)
        rows = pa.concat_tables([before, source.select(names)]).combine_chunks()
        key = key_codes([whole(rows[name]) for name in schema.key])
        scn = np.concatenate([current[FROM_SCN].to_numpy(), reduced.commit_scn])
        ordinal = np.concatenate([np.full(count, -1), reduced.ordinal])
        order = np.lexsort((ordinal, scn, key))
        no_flags = np.zeros(count, dtype=np.bool_)
        return cls(
            rows.take(pa.array(order)),
            current,
            key[order],
            scn[order],
            ordinal[order],
            np.concatenate([np.full(count, -1), reduced.rows])[order],
            np.concatenate([np.arange(count), np.full(more, -1)])[order],
            np.concatenate([no_flags, reduced.is_gone])[order],
            np.concatenate([no_flags, reduced.is_lost])[order],
        )

    @property
    def is_next(self) -> Flags:
        """Which ones follow another of their key?"""
        return np.append(False, self.key[1:] == self.key[:-1])[: len(self.key)]


def _joined(
    changes: DatedImages,
    light: LightChanges,
    schema: TableSchema,
    steps: _Steps,
    values: Sequence[pa.Array],
    is_known: Flags,
    rule: StateRule,
) -> pa.Table:
    """The states that the steps make, equal ones in a row as one."""
    if len(steps.key) == 0:
        return states_schema(schema).empty_table()
    is_same = steps.is_next & is_known & np.append(False, is_known[:-1])
    is_tracked = [rule.tracked is None or name in rule.tracked for name in schema.column_names]
    for column, counts in zip(values, is_tracked, strict=True):
        if counts:
            is_same[1:] &= are_same(column[1:], column[:-1])
    edges = np.flatnonzero(~is_same)
    begins = edges[is_known[edges]]
    behind = np.append(edges, -1)[np.searchsorted(edges, begins, side="right")]
    last = np.where(behind < 0, len(steps.key), behind) - 1
    is_ended = (behind >= 0) & (steps.key[behind] == steps.key[begins])
    ends, change = pa.array(behind, mask=~is_ended), steps.change
    state = steps.state[begins]
    own = steps.current.take(pa.array(state, mask=state < 0))
    to_scn = pa.array(steps.scn).take(ends)
    columns = [
        *(
            column.take(pa.array(begins if counts else last))
            for column, counts in zip(values, is_tracked, strict=True)
        ),
        pa.array(steps.scn[begins]),
        to_scn,
        pc.coalesce(whole(own[FROM]), changes.commit_times(change[begins])),
        changes.commit_times(np.where(is_ended, change[behind], -1)),
        pc.is_null(to_scn),
        _operations(light, change).take(ends),
        pc.coalesce(whole(own[ORDINAL]), pa.array(steps.ordinal[begins], mask=state >= 0)),
    ]
    return pa.Table.from_arrays(columns, schema=states_schema(schema))


def _cut(states: pa.Table, until: Truncated) -> pa.Table:
    """The states as a TRUNCATE leaves them."""
    is_cut = states[IS_CURRENT]
    ended = {
        TO_SCN: pa.scalar(until.scn, pa.int64()),
        TO: pa.scalar(until.time, pa.timestamp("us")),
        ENDED_BY: pa.scalar("t"),
        IS_CURRENT: pa.scalar(False),
    }
    for name, value in ended.items():
        place = states.schema.get_field_index(name)
        states = states.set_column(
            place, states.schema.field(place), pc.if_else(is_cut, value, states[name])
        )
    return states


def _by_commit(light: LightChanges, rule: StateRule) -> LightChanges:
    """The same with the commit SCN as a part of each key; with the ordinal too where each change
    counts, unless a row leaves the key in that commit."""
    scn = whole(light.table[COMMIT_SCN])
    before, after = (*light.before, scn), (*light.after, scn)
    if not rule.each_change or light.table.num_rows == 0:
        return replace(light, before=before, after=after)
    images = zip(before, after, strict=True)
    codes = key_codes([pa.concat_arrays(pair) for pair in images])
    old, new = codes[: len(scn)], codes[len(scn) :]
    moved = light.moved()
    leaves = moved | pc.equal(light.table["_cdc_op"], "d").to_numpy()
    is_shared = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    is_shared[old[leaves]] = True
    is_shared[new[moved]] = True
    ordinal = light.table[ORDINAL].to_numpy()
    of_old, of_new = (pa.array(np.where(is_shared[one], -1, ordinal)) for one in (old, new))
    return replace(light, before=(*before, of_old), after=(*after, of_new))


def _filled(
    steps: _Steps, schema: TableSchema, absent: Sequence[str]
) -> tuple[list[pa.Array], Flags]:
    """The table's columns with what the states before say of those that a commit does not carry,
    and which rows are known as a whole."""
    places, is_gone = np.arange(len(steps.key)), steps.is_gone
    # Where a row comes to its key, nothing from before is its own.
    behind_gone = np.append(False, is_gone[:-1])[: len(is_gone)]
    begins_row = ~steps.is_next | is_gone | steps.is_lost | behind_gone
    first = np.maximum.accumulate(np.where(begins_row, places, 0))
    missing = whole(steps.rows["_cdc_missing"])
    is_known, values = ~is_gone, []
    for name in schema.column_names:
        own = whole(steps.rows[name])
        if name in absent and name not in schema.key:
            has = ~is_gone & ~naming(missing, name)
            found = np.maximum.accumulate(np.where(has, places, -1))
            is_known &= found >= first
            own = own.take(pa.array(np.maximum(found, 0)))
        values.append(own)
    return values, is_known


def _operations(light: LightChanges, change: Rows) -> pa.Array:
    """The operations of changes by their numbers; any for -1."""
    numbers = light.table["row"].to_numpy()
    if len(numbers) == 0:
        return pa.nulls(len(change), pa.string())
    order = np.argsort(numbers)
    places = order[np.searchsorted(numbers, change, sorter=order)]
    return whole(light.table["_cdc_op"]).take(pa.array(places))
