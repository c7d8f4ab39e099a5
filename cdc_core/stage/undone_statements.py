"""Which redo rows of a table with LOBs does a run of undo rows take back?

There a statement has several redo rows for each row that it changes, most of them without the
ROWID, and one undo row, with the ROWID (:mod:`cdc_core.stage.statements`). Where one statement ends
and the next begins, the rows do not always show. The rule needs less:

**A run takes back a suffix.** Undo goes back to a point of the transaction. So a run of undo rows,
with no forward row of the table between them, takes back all that survives from some row on, and
nothing before it. The one thing to find is that row.

**Where it may be.** What survives is cut at rows that may begin a statement. A place is possible if
the rows from it on are as many statements about one row as the run has undo rows: the newest first,
each the inverse of its undo row, none with a ROWID that the undo rows of its kind do not have.
Among undo rows of one kind that follow each other, their order says nothing: a statement of several
rows may be undone from either end, and may show all its row pieces before what closes them. What
closes an INSERT is found by its ROWID, wherever it stands.

**What rows may be one statement.** Each row is *apart* from the one before it, *one* with it, or it
*may* be either. Rows of one redo record are one; so are a row that begins a statement and those up
to the row that closes it, where such rows are read (``closes_shown``). An UPDATE with the ROWID
behind rows without one may close their statement, or be the next one; it is apart where it changes
other columns than LOBs, or names another row (:mod:`cdc_core.stage.closing_updates`).

If there are two possible places, or none, the run is not understood.

Source: rows of whole statements, and their one undo row, were measured on 23ai; a listing of a
rolled back INSERT of three rows on 26ai has the three INSERTs first, and one UPDATE behind them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import IntEnum

from cdc_core.model.operations import LOB_OPERATIONS, Operation
from cdc_core.stage.statements import BEGINNINGS

LOCATORS = (*BEGINNINGS, Operation.XML_DOC_BEGIN)
"""Rows with which writing a LOB, a long text or a document begins."""

INVERSE = {
    Operation.DELETE: Operation.INSERT,
    Operation.INSERT: Operation.DELETE,
    Operation.UPDATE: Operation.UPDATE,
}
"""What an undo row of each operation takes back."""

UNMATCHED = "undo-unmatched"
AMBIGUOUS = "undo-ambiguous"
ROW_ID_UNKNOWN = "undo-row-id-unknown"


class NotUnderstoodError(ValueError):
    """It cannot be shown which rows an undo row takes back; ``place`` is the undo row's,
    ``problem`` its name."""

    def __init__(self, message: str, problem: str = UNMATCHED, place: int = -1) -> None:
        super().__init__(message)
        self.problem = problem
        self.place = place


@dataclass(frozen=True, slots=True)
class Rows:
    """The redo rows of one transaction and table, in LogMiner's order, a column each.

    Attributes:
        operation: Operation codes.
        row_id: A number for each ROWID, -1 for the placeholder.
        record: A number for each RS_ID, -1 where it names no redo record.
        undo: Does the row take back others?
    """

    operation: Sequence[int]
    row_id: Sequence[int]
    record: Sequence[int]
    undo: Sequence[bool]

    def __len__(self) -> int:
        return len(self.operation)

    def is_head(self, place: int) -> bool:
        """Does a statement of rows without ROWIDs begin here?"""
        if self.operation[place] == Operation.UPDATE:
            return self.row_id[place] < 0
        return self.operation[place] == Operation.INSERT or self.operation[place] in LOCATORS


class Joint(IntEnum):
    """A row and the one before it: of two statements, of one, or of either."""

    APART = 0
    MAYBE = 1
    ONE = 2


class _Open(IntEnum):
    """What a row may go on with."""

    NOTHING = 0
    STATEMENT = 1
    """A statement of rows without ROWIDs that nothing has closed."""
    CALL = 2
    """A call of DBMS_LOB, whose locator has the ROWID."""
    PIECES = 3
    """Parts of a LOB of which nothing shows where they begin."""
    ROW = 4
    """A row with its ROWID."""
    CLOSED = 5
    """A statement that a row has closed."""


class _Joints:
    """How each row is joined to the one before it (``found``).

    Args:
        rows: The rows.
        apart: Places of UPDATEs that close nothing, whatever stands before them.
        closes_shown: INTERNAL rows that close statements are among them.
    """

    def __init__(self, rows: Rows, apart: Container[int], *, closes_shown: bool) -> None:
        self._rows, self._apart, self._closes_shown = rows, apart, closes_shown
        self._open, self._first, self._head = _Open.NOTHING, -1, -1
        self.found: list[Joint] = []
        for place in range(len(rows)):
            self.found.append(Joint.APART)
            if rows.undo[place]:
                self._open = _Open.NOTHING
            else:
                self.found[place] = self._joint(place)

    def _joint(self, place: int) -> Joint:
        operation, is_known = self._rows.operation[place], self._rows.row_id[place] >= 0
        if operation == Operation.INSERT:
            may = self._open is _Open.PIECES
            return self._begin(place, _Open.ROW if is_known else _Open.STATEMENT, may=may)
        if operation in LOCATORS:
            return self._begin(place, _Open.CALL, may=False) if is_known else self._locator(place)
        if operation == Operation.UPDATE and not is_known:
            may = self._open in (_Open.STATEMENT, _Open.PIECES)
            return self._begin(place, _Open.STATEMENT, may=may)
        if operation == Operation.UPDATE:
            return self._update(place)
        if operation == Operation.INTERNAL:
            return self._close(place)
        if operation in LOB_OPERATIONS:
            return self._piece()
        self._open = _Open.NOTHING
        return Joint.APART

    def _begin(self, place: int, opened: _Open, *, may: bool) -> Joint:
        self._open, self._head = opened, place
        if not may:
            self._first = place
        return Joint.MAYBE if may else Joint.APART

    def _locator(self, place: int) -> Joint:
        record = self._rows.record
        if self._open is _Open.STATEMENT and 0 <= record[place] == record[self._head]:
            return Joint.ONE
        may = self._open in (_Open.STATEMENT, _Open.PIECES)
        may |= self._open is _Open.ROW and not self._closes_shown
        return self._begin(place, _Open.STATEMENT, may=may)

    def _update(self, place: int) -> Joint:
        """An UPDATE with the ROWID."""
        goes_on = self._open is _Open.STATEMENT and place not in self._apart
        self._open = _Open.ROW
        if not goes_on:
            return Joint.APART
        if self._closes_shown and self._rows.operation[self._head] != Operation.INSERT:
            self._open = _Open.CLOSED
            return self._closed(place)
        return Joint.MAYBE

    def _close(self, place: int) -> Joint:
        """An INTERNAL row, with the ROWID of what it closes."""
        row_id, opened = self._rows.row_id, self._open
        self._open = _Open.CLOSED
        if opened is _Open.STATEMENT:
            return self._closed(place)
        if opened is _Open.CALL and row_id[self._head] == row_id[place]:
            return Joint.ONE
        return Joint.APART if opened is _Open.NOTHING else Joint.MAYBE

    def _closed(self, place: int) -> Joint:
        """What was open is one statement from its beginning to this row."""
        for at in range(self._first + 1, place):
            if not self._rows.is_head(at):
                self.found[at] = Joint.ONE
        return Joint.ONE

    def _piece(self) -> Joint:
        if self._open is _Open.CALL:
            return Joint.ONE
        if self._open is _Open.NOTHING:
            self._open = _Open.PIECES
            return Joint.APART
        if self._open in (_Open.ROW, _Open.CLOSED):
            self._open = _Open.PIECES
        return Joint.MAYBE


def closing_candidates(rows: Rows) -> list[tuple[int, int]]:
    """The UPDATEs with a ROWID that may close a statement that is no INSERT, or be the next one:
    their places, each with that of the row at which the statement begins."""
    found = []
    joints = _Joints(rows, frozenset(), closes_shown=False)
    head = -1
    for place, joint in enumerate(joints.found):
        if rows.undo[place]:
            continue
        if (
            joint is Joint.MAYBE
            and rows.operation[place] == Operation.UPDATE
            and rows.row_id[place] >= 0
        ):
            if rows.operation[head] != Operation.INSERT:
                found.append((place, head))
        elif rows.is_head(place) and joint is not Joint.ONE:
            head = place
    return found


def taken_back(
    rows: Rows, apart: Container[int] = frozenset(), *, closes_shown: bool = False
) -> list[int]:
    """The places of the rows that are not applied: those that were taken back, and those that did
    it. Arguments as of :class:`_Joints`.

    Raises:
        NotUnderstoodError: There is a run of undo rows of which that cannot be said.
    """
    joints = _Joints(rows, apart, closes_shown=closes_shown).found
    left: list[int] = []
    gone: list[int] = []
    run: list[int] = []
    for place in range(len(rows) + 1):
        if place < len(rows) and rows.undo[place]:
            run.append(place)
            continue
        if run:
            start = _Run(rows, joints, left, run).start()
            gone += left[start:]
            gone += run
            del left[start:]
            run = []
        left.append(place)
    return sorted(gone)


@dataclass(frozen=True, slots=True)
class _Part:
    """What of a statement is behind a place: so many statements follow, ``row_id`` and ``kind`` are
    of what there is of this one, -1 where it shows none. ``lacks_head``: an UPDATE is to close it,
    so it must have a beginning."""

    follow: int
    row_id: int
    kind: Operation
    lacks_head: bool

    def with_row_id(self, row_id: int) -> int | None:
        """The one ROWID of the part and another row; None where they are two."""
        if row_id >= 0 and self.row_id >= 0:
            return row_id if row_id == self.row_id else None
        return max(row_id, self.row_id)


class _Run:
    """Reads what survives from its end, and keeps in how many ways the rows can be the statements
    of a run of undo rows."""

    def __init__(
        self, rows: Rows, joints: Sequence[Joint], left: Sequence[int], run: Sequence[int]
    ) -> None:
        self._rows, self._joints, self._left, self._run = rows, joints, left, run
        self._kinds: list[Operation] = []
        self._row_ids: list[set[int]] = []
        self._inserted_until: dict[int, int] = {}
        for at, place in enumerate(run):
            self._note(at, place)

    def _note(self, at: int, place: int) -> None:
        row_id = self._rows.row_id[place]
        kind = INVERSE.get(Operation(self._rows.operation[place]))
        if kind is None:
            raise NotUnderstoodError("an undo row is not of a kind that undoes", place=place)
        if row_id < 0:
            raise NotUnderstoodError("an undo row has no ROW_ID", ROW_ID_UNKNOWN, place)
        same = bool(self._kinds) and self._kinds[-1] == kind
        self._row_ids.append(self._row_ids[-1] if same else set())
        self._row_ids[-1].add(row_id)
        self._kinds.append(kind)
        if kind is Operation.INSERT:
            self._inserted_until[row_id] = at

    def start(self) -> int:
        """From which of the surviving rows on the run takes back all.

        Raises:
            NotUnderstoodError: None is possible, or two are.
        """
        found = -1
        complete, parts = {0}, set[_Part]()
        last = len(self._left) - 1
        right = Joint.APART
        while last >= 0 and (complete or parts):
            first, row_id = self._atom(last)
            place = self._left[first]
            complete, parts = self._before(place, row_id, complete, parts if right else set())
            if len(self._run) in complete:
                if found >= 0:
                    raise NotUnderstoodError(
                        "rows before what an undo row takes back may belong to it",
                        AMBIGUOUS,
                        self._run[0],
                    )
                found = first
                complete.discard(len(self._run))
            right = self._joints[place]
            last = first - 1
        if found < 0:
            raise NotUnderstoodError("an undo row has no forward row", place=self._run[0])
        return found

    def _atom(self, last: int) -> tuple[int, int]:
        """The rows that are one with each other, up to a surviving one: the first of them, and
        their ROWID."""
        row_id = self._rows.row_id[self._left[last]]
        first = last
        while first > 0 and self._joints[self._left[first]] is Joint.ONE:
            first -= 1
            row_id = max(row_id, self._rows.row_id[self._left[first]])
        return first, row_id

    def _before(
        self, place: int, row_id: int, complete: set[int], parts: set[_Part]
    ) -> tuple[set[int], set[_Part]]:
        """The ways behind the rows that begin at a place become those before it."""
        operation, goes_on = self._rows.operation[place], self._joints[place] is Joint.MAYBE
        kind = Operation.UPDATE
        if operation in (Operation.INSERT, Operation.DELETE):
            kind = Operation(operation)
        if operation == Operation.UNSUPPORTED:
            return set(), set()
        closes = goes_on and operation == Operation.UPDATE and row_id >= 0
        fresh = [_Part(follow, row_id, kind, False) for follow in complete]
        before = set[int]()
        open_now = set[_Part]()
        for part in (*fresh, *self._extended(parts, row_id, kind)):
            lacks = part.lacks_head and not self._rows.is_head(place)
            if not lacks and self._is_undone(part):
                before.add(part.follow + 1)
            if not lacks and self._ends_insert(part):
                before.add(part.follow)
            if goes_on and part.follow < len(self._run):
                lacks = lacks or closes
                open_now.add(_Part(part.follow, part.row_id, part.kind, lacks))
        return before, open_now

    @staticmethod
    def _extended(parts: set[_Part], row_id: int, kind: Operation) -> list[_Part]:
        found = []
        for part in parts:
            one = part.with_row_id(row_id)
            if one is not None and kind is not Operation.DELETE:
                whole = kind if part.kind is Operation.UPDATE else part.kind
                found.append(_Part(part.follow, one, whole, part.lacks_head))
        return found

    def _is_undone(self, part: _Part) -> bool:
        """Is the statement the inverse of the next undo row, as far as it shows?"""
        at = part.follow
        if at >= len(self._kinds) or self._kinds[at] != part.kind:
            return False
        return part.row_id < 0 or part.row_id in self._row_ids[at]

    def _ends_insert(self, part: _Part) -> bool:
        """May it be what follows the row piece of an INSERT that the run takes back further on?"""
        if part.kind is not Operation.UPDATE or part.row_id < 0:
            return False
        return self._inserted_until.get(part.row_id, -1) >= part.follow
