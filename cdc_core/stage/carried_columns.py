"""Where does a row that changes its key get the columns that the change does not carry?

LogMiner leaves LOBs out of an update's old image, so a change of key can lack them. Each row is
followed from change to change, in commit order, under the keys that it has: the last present value
before the change counts, from an earlier change, else from the mirror's row of the key that the row
had when the window began.

**Which row a change changes.** The one with its ROW_ID; where no change has shown the row's ROW_ID
yet, or this change has none (of inserts into tables with LOBs, and of what writes LOBs, LogMiner
shows none), the one that has its key. A key is one row's, but inside a transaction: Oracle checks
keys at the end of a statement, so that another row can come to a key before its row leaves it, and
a DEFERRABLE key at the commit. Then:

* A row of which nothing was seen may be there or not. If the transaction ends and it did not leave,
  it never was.
* A value that is written without a ROW_ID is that of the row that came last. It is nobody's if the
  other row turns out to be there.
* A row that is shown for the first time, and stays, is the row that came. If it leaves, it is the
  row that came only if the mirror has no row of the key: one MERGE may move a row away and insert
  another.

What cannot be proved is left missing, and the merge refuses it.

What was found also says whose a change without a ROW_ID is (:attr:`Carried.lines`), so that the
events of a key that several rows share can be told apart.

Only changes that touch a key which a row leaves or comes to are looked at. Of those, rows that are
moved once, from a key to a key that nothing else of the window touches, need no following: theirs
are the mirror's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import RESNAPSHOT_HINT, DecodeError
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import Flags, Images, LightChanges, LoggedChanges, Rows, key_codes
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL

FOLLOWED_MAX = 4_000_000
"""So many changes are followed one by one at most; it takes some hundred bytes, and some
microseconds, for each."""

ASKED_MAX = 20_000
"""Of so many keys the mirror's rows are held at most, where Spark does not ask for them."""

FOUND = 1 << 60
"""From here on a number is that of a row of the mirror."""

_MIRROR, _UNKNOWN = -1, -2
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class CarriedPlaces:
    """What changes of key carry along. All numbers are places in ``light``; parallel arrays, one
    entry per change of key and column.

    Attributes:
        light: The changes that were followed.
        absent: The columns that some change lacks.
        change: The change of key.
        column: Which of ``absent`` it lacks.
        source: The change whose image has the value, -1 for the mirror's row …
        origin: … that has the old key of this change, …
        left_scn: … if its position is below this SCN.
        unless: The value counts only if the mirror has no row of the old key of this change; -1 if
            it counts in any case.
        lines: Changes without a ROW_ID …
        line_of: … and of each a change that shows the ROW_ID of its row, …
        line_unless: … which is so only if the mirror has no row of the old key of this change; -1
            if in any case.
    """

    light: LightChanges
    absent: tuple[str, ...]
    change: Rows
    column: Rows
    source: Rows
    origin: Rows
    left_scn: Rows
    unless: Rows
    lines: Rows
    line_of: Rows
    line_unless: Rows

    @property
    def asked(self) -> tuple[pa.Array, ...]:
        """The keys of which the mirror's rows are asked for, each once or more often."""
        asked = np.unique(np.concatenate([self.origin, self.unless, self.line_unless]))
        rows = pa.array(asked[asked >= 0])
        return tuple(column.take(rows) for column in self.light.before)

    def values(self, found: pa.Table, schema: TableSchema) -> CarriedValues:
        """What is carried, as far as the mirror allows it.

        Args:
            found: The mirror's rows of the :attr:`asked` keys, and perhaps others, each key once:
                the columns of the key, those that changes lack, and ``_cdc_commit_scn``.
            schema: The table.
        """
        codes = key_codes(
            [
                pa.concat_arrays([before, whole(found[name]).cast(before.type)])
                for before, name in zip(self.light.before, schema.key, strict=True)
            ]
        )
        changes = self.light.table.num_rows
        place = np.full(int(codes.max(initial=-1)) + 2, -1)  # the last one is nobody's
        place[codes[changes:]] = np.arange(found.num_rows)
        own = np.append(codes[:changes], -1)
        of_origin, of_unless, of_line = (
            place[own[one]] for one in (self.origin, self.unless, self.line_unless)
        )
        scn = np.append(pc.fill_null(found[COMMIT_SCN], _NEVER).to_numpy(), _NEVER)
        is_mirrors = self.source == _MIRROR
        kept = (of_unless < 0) & (~is_mirrors | (scn[of_origin] < self.left_scn))
        numbers = self.light.table["row"].to_numpy()
        row_ids = whole(self.light.table["_cdc_row_id"])
        source = np.where(is_mirrors, FOUND + of_origin, numbers[self.source])
        return CarriedValues(
            self.absent,
            numbers[self.change[kept]],
            self.column[kept],
            source[kept],
            numbers[self.lines[of_line < 0]],
            row_ids.take(pa.array(self.line_of[of_line < 0])),
            found,
        )


@dataclass(frozen=True, slots=True)
class CarriedValues:
    """What changes of key carry along: which change, of ``absent`` which column, and from where:
    another change's number, or, from :data:`FOUND` on, a row of ``found``. ``lines`` are the
    numbers of changes without a ROW_ID, whose rows have the ``row_ids``."""

    absent: tuple[str, ...]
    change: Rows
    column: Rows
    source: Rows
    lines: Rows
    row_ids: pa.Array
    found: pa.Table

    def sources(self, column: str, numbers: Rows) -> Rows:
        """Of changes by their numbers: from where they carry the column, -1 where they do not."""
        if column not in self.absent:
            return np.full(len(numbers), -1)
        own = self.column == self.absent.index(column)
        return _looked_up(self.change[own], self.source[own], numbers)

    def with_row_ids(self, changes: LightChanges) -> pa.Array:
        """The ROW_IDs of changes, as far as they are known."""
        known = whole(changes.table["_cdc_row_id"])
        if len(self.lines) == 0:
            return known
        places = _looked_up(self.lines, np.arange(len(self.lines)), changes.table["row"].to_numpy())
        return pc.coalesce(known, self.row_ids.take(pa.array(places, mask=places < 0)))

    def take(self, changes: Images, image: str, column: str, rows: Rows) -> pa.Array:
        """As :meth:`~cdc_core.stage.changes.Images.take`; the numbers may be those of
        :meth:`sources`."""
        is_found = rows >= FOUND
        values = changes.take(image, column, np.where(is_found, -1, rows))
        if not is_found.any():
            return values
        own = whole(self.found[column]).cast(values.type)
        places = pa.array(np.where(is_found, rows - FOUND, 0), mask=~is_found)
        return pc.if_else(pa.array(is_found), own.take(places), values)


_NONE = np.empty(0, dtype=np.int64)

NOTHING_CARRIED = CarriedValues(
    (), _NONE, _NONE, _NONE, _NONE, pa.nulls(0, pa.string()), pa.table({})
)


def _looked_up(known: Rows, values: Rows, wanted: Rows) -> Rows:
    """The values of those that are known, -1 for others."""
    if len(known) == 0:
        return np.full(len(wanted), -1)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    return np.where(known[order][at] == wanted, values[order][at], -1)


def carry_columns(
    changes: LoggedChanges, schema: TableSchema, absent: Sequence[str], *, has_gaps: bool
) -> CarriedPlaces:
    """Follow the rows that change their keys.

    Args:
        changes: The changes.
        schema: The table.
        absent: Columns that some change lacks.
        has_gaps: Changes of the table are in quarantine or come later, so a key may have had a row
            that nothing shows.

    Raises:
        DecodeError: More changes than :data:`FOLLOWED_MAX` would have to be followed.
    """
    light = changes.light_of_moves()
    events = _Events.of(light, absent)
    plain = events.move_once()
    followed = events.order[~plain[events.order]]
    if len(followed) > FOLLOWED_MAX:
        raise DecodeError(
            "too many rows change their keys and lack columns to be followed",
            hint=RESNAPSHOT_HINT,
            table=schema.table,
            changes=len(followed),
            followed_max=FOLLOWED_MAX,
        )
    rows = _Rows(len(absent), is_deferred=schema.key_is_deferred, has_gaps=has_gaps)
    for start in range(0, len(followed), _AT_ONCE):
        rows.follow(events, followed[start : start + _AT_ONCE])
    rows.end_transaction()
    entries = np.array(rows.found, np.int64).reshape(-1, 6)
    entries = entries[~np.isin(entries[:, 2], rows.nobodys)]
    at, column = np.nonzero(events.lacks & plain[:, None])
    none = np.full(len(at), -1)
    once = np.stack([at, column, none, at, events.scn[at], none], axis=1)
    lines = np.array(rows.known_lines(), np.int64).reshape(-1, 3)
    return CarriedPlaces(light, tuple(absent), *np.concatenate([entries, once]).T, *lines.T)


_AT_ONCE = 100_000
"""So many changes are numbers of Python at once."""


@dataclass(frozen=True, slots=True)
class _Events:
    """Changes as columns of numbers: the keys before and after (-1: none), the ROW_ID (-1:
    unknown), and per absent column whether it is lacking. ``order`` has their places in the order
    of their commits."""

    op: Rows
    scn: Rows
    transaction: Rows
    before: Rows
    after: Rows
    row_id: Rows
    moved: Flags
    lacks: Flags
    order: Rows

    @classmethod
    def of(cls, light: LightChanges, absent: Sequence[str]) -> _Events:
        count = light.table.num_rows
        op = np.zeros(count, dtype=np.int64)
        for one in _OPS:
            op[pc.equal(light.table["_cdc_op"], chr(one)).to_numpy()] = one
        images = zip(light.before, light.after, strict=True)
        codes = key_codes([pa.concat_arrays(pair) for pair in images])
        before = np.where((op == _UPDATE) | (op == _DELETE), codes[:count], -1)
        after = np.where(op == _DELETE, -1, codes[count:])
        scn, ordinal = (light.table[one].to_numpy() for one in (COMMIT_SCN, ORDINAL))
        xid = key_codes([whole(light.table["_cdc_xid"])])
        _, transaction = np.unique(np.stack([scn, xid]), axis=1, return_inverse=True)
        transaction = transaction.reshape(-1)
        first = np.full(int(transaction.max(initial=-1)) + 1, _NEVER)
        np.minimum.at(first, transaction, ordinal)
        lacks = [light.lacking(column) for column in absent]
        return cls(
            op,
            scn,
            transaction,
            before,
            after,
            key_codes([whole(light.table["_cdc_row_id"])]),
            light.moved(),
            np.stack(lacks, axis=1) if lacks else np.empty((count, 0), np.bool_),
            np.lexsort((ordinal, first[transaction], scn)),
        )

    def move_once(self) -> Flags:
        """Which changes move a row of which nothing else is seen, from a key to a key that nothing
        else touches?"""
        keys = np.concatenate([self.before[self.before >= 0], self.after[self.after >= 0]])
        if len(keys) == 0:
            return np.zeros(len(self.op), dtype=np.bool_)
        # An update in place names its key twice.
        of_key = np.bincount(keys)
        of_row = np.bincount(self.row_id[self.row_id >= 0], minlength=1)
        is_alone = (of_key[self.before] == 1) & (of_key[self.after] == 1)
        found: Flags = self.moved & is_alone & (self.row_id >= 0) & (of_row[self.row_id] == 1)
        return found


_OPS = _UPDATE, _DELETE, _INSERT, _READ = tuple(map(ord, "udcr"))


@dataclass(slots=True, eq=False)
class _Row:
    """A row, at the key that it has now. ``values`` are the places of the changes that have its
    absent columns. Nothing was seen of a row that ``may_be``: it was there before, if it is.
    ``origin`` is a change that names it by the key that it had then, ``left_scn`` the SCN at which
    it left that; ``unless``: all this is so only if the mirror has no row of the old key of that
    change."""

    key: int
    values: list[int]
    row_id: int = -1
    shown: int = -1
    may_be: bool = False
    origin: int = -1
    left_scn: int = -1
    unless: int = -1
    came: int = -1
    is_sure: bool = True
    doubted: list[tuple[int, list[int]]] = field(default_factory=list)


class _Rows:
    """All rows of some keys, followed through changes in the order of their commits."""

    def __init__(self, columns: int, *, is_deferred: bool, has_gaps: bool) -> None:
        self._columns, self._is_deferred, self._has_gaps = columns, is_deferred, has_gaps
        self._at: dict[int, list[_Row]] = {}
        self._by_id: dict[int, _Row] = {}
        self._shared: set[int] = set()
        self._transaction = -1
        self._lines: list[tuple[int, _Row]] = []
        self.found: list[tuple[int, ...]] = []
        self.nobodys: list[int] = []

    def follow(self, events: _Events, places: Rows) -> None:
        """Go on with these changes."""
        columns = (events.op, events.transaction, events.before, events.after, events.row_id)
        numbers = (column[places].tolist() for column in columns)
        moved, scns = events.moved[places].tolist(), events.scn[places].tolist()
        lacks = events.lacks[places].tolist()
        for at, op, transaction, before, after, row_id, moves, scn, lacking in zip(
            places.tolist(), *numbers, moved, scns, lacks, strict=True
        ):
            if transaction != self._transaction:
                self.end_transaction()
                self._transaction = transaction
            if op == _READ:
                self._read(at, after)
            elif op == _INSERT:
                row = _Row(after, [at] * self._columns, came=transaction)
                if row_id < 0:
                    self._lines.append((at, row))
                else:
                    self._show(row, row_id, at)
                self._put(row)
            elif op == _DELETE:
                row = self._row_of(at, before, row_id, leaves=True)
                self._held(before).remove(row)
                if row.row_id >= 0 and self._by_id.get(row.row_id) is row:
                    del self._by_id[row.row_id]
            elif op == _UPDATE and moves:
                self._move(at, before, after, row_id, scn, lacking)
            elif op == _UPDATE:
                self._set(at, before, row_id, lacking)

    def end_transaction(self) -> None:
        """A key is one row's now: what did not leave it was not there."""
        for key in self._shared:
            held = self._at[key]
            if len(held) < 2:
                continue
            seen = [row for row in held if not row.may_be]
            if len(seen) == 1:
                self._at[key] = seen
            else:
                for row in held:
                    self._forget(row)
        self._shared.clear()

    def known_lines(self) -> list[tuple[int, int, int]]:
        """Changes without a ROW_ID whose row is known by one, each with a change that shows it, and
        where it is so only if the mirror has no row of the old key of a change, with that."""
        nobodys = set(self.nobodys)
        return [
            (at, row.shown, row.unless)
            for at, row in self._lines
            if row.shown >= 0 and row.is_sure and at not in nobodys
        ]

    def _held(self, key: int) -> list[_Row]:
        """The rows of a key, in the order in which they came."""
        held = self._at.get(key)
        if held is None:
            held = [_Row(key, [_MIRROR] * self._columns, may_be=True)]
            self._at[key] = held
        return held

    def _put(self, row: _Row) -> None:
        held = self._held(row.key)
        held.append(row)
        if len(held) > 1:
            self._shared.add(row.key)

    def _show(self, row: _Row, row_id: int, at: int) -> None:
        """A change shows the ROW_ID of a row."""
        row.row_id, row.shown = row_id, at
        self._by_id[row_id] = row

    def _forget(self, row: _Row) -> None:
        """Nobody knows any more what the row holds."""
        row.values = [_UNKNOWN] * self._columns
        row.may_be = row.is_sure = False

    def _read(self, at: int, key: int) -> None:
        """A chunk has read the row of a key."""
        held = self._held(key)
        if len(held) != 1:
            held[:] = [_Row(key, [])]
        [row] = held
        row.values, row.may_be, row.unless = [at] * self._columns, False, -1

    def _row_of(self, at: int, key: int, row_id: int, *, leaves: bool) -> _Row:
        """The row that a change by its old key changes; one of which nothing is known where that
        cannot be said."""
        row = self._by_id.get(row_id) if row_id >= 0 else None
        if row is None:
            row = self._picked(at, key, row_id, leaves=leaves)
        elif row.key != key:  # changes of one ROW_ID that do not join key to key
            self._at[row.key].remove(row)
            row = self._stranger(key)
        if row.may_be:
            self._is_there(row)
            row.origin = at
        if row_id >= 0 and row.row_id < 0:
            self._show(row, row_id, at)
        elif row_id < 0:
            self._lines.append((at, row))
        return row

    def _stranger(self, key: int) -> _Row:
        row = _Row(key, [])
        self._forget(row)
        self._held(key).append(row)
        return row

    def _picked(self, at: int, key: int, row_id: int, *, leaves: bool) -> _Row:
        """Of the rows of a key, the one that a change means which does not show its ROW_ID, or
        shows it for the first time."""
        held = self._held(key)
        rows = held if row_id < 0 else [row for row in held if row.row_id < 0]
        if not rows:
            return self._stranger(key)
        if len(rows) == 1:
            return rows[0]
        others, came = rows[:-1], rows[-1]
        is_one = len(others) == 1 and others[0].may_be and came.came == self._transaction
        if is_one and not leaves and not self._is_deferred:
            held.remove(others[0])
            return came
        if is_one and not self._has_gaps and came.unless < 0:
            came.unless = at
            others[0].values = [_UNKNOWN] * self._columns
            return came
        for row in rows:
            self._forget(row)
        return came

    def _is_there(self, row: _Row) -> None:
        """A row that may have been there was there: what was written beside it may be its own."""
        row.may_be = False
        for at, columns in row.doubted:
            self.nobodys.append(at)
            for column in columns:
                row.values[column] = _UNKNOWN

    def _set(self, at: int, key: int, row_id: int, lacking: list[bool]) -> None:
        """A change of a row in its place."""
        columns = [column for column, lacks in enumerate(lacking) if not lacks]
        held = self._held(key)
        if row_id < 0 and len(held) > 1:
            row = held[-1]
            others = held[:-1]
            self._lines.append((at, row))
            for other in others:
                if other.may_be:
                    other.doubted.append((at, columns))
                else:
                    self.nobodys.append(at)
                    for column in columns:
                        other.values[column] = _UNKNOWN
        else:
            row = self._row_of(at, key, row_id, leaves=False)
        if row_id < 0 and self._has_gaps and row.came != self._transaction:
            self._forget(row)
            return
        for column in columns:
            row.values[column] = at

    def _move(
        self, at: int, before: int, after: int, row_id: int, scn: int, lacking: list[bool]
    ) -> None:
        """A change of key."""
        row = self._row_of(at, before, row_id, leaves=True)
        if row.left_scn < 0:
            row.left_scn = scn
        for column, lacks in enumerate(lacking):
            source = row.values[column]
            if not lacks:
                row.values[column] = at
            elif source != _UNKNOWN:
                origin = row.origin if source == _MIRROR else -1
                self.found.append((at, column, source, origin, row.left_scn, row.unless))
        self._held(before).remove(row)
        row.key, row.came = after, self._transaction
        self._put(row)
