"""Which transactions are open, and what is known of each when it ends?

The ledger follows the stream row by row, whatever batches it comes in; between the rows that begin
or end a transaction all work is on whole columns, and so it is for transactions about which nothing
is to be decided (:mod:`cdc_core.capture.transactions.single_batch`). Memory grows with the number
of open transactions, not with their rows; of ended ones it keeps eight bytes.

The order of the view decides nothing inside one pass (:mod:`cdc_core.capture.passes.log_writes`):
an end with a full XID is never ignored, and what nothing has ended is judged when the pass has
ended (:meth:`TransactionLedger.finish`).

LogMiner does not always name a transaction in full. These rules hold:

* The sequence part of an XID can be ``ffffffff`` on any row: of a transaction that began before the
  LogMiner session, and, where an online log is mined live, on undo, ROLLBACK and COMMIT rows of any
  transaction. Such a row belongs to the transaction that is open in its undo slot *at that point of
  the stream*: a slot has one open transaction at a time. Of two, it is the newest one that had
  begun at the row's SCN.
* A newer transaction in a slot says that the slot's old one has ended, even if its end was never
  seen. If the pass does not show that end, the old one is ``evicted``, with a warning if it had
  changes: nothing waits for it, and a COMMIT of it stops its tables.
* A row behind the end of its transaction, further than a log write is long, stops its tables.
* A ROLLBACK row without its full XID or without an address may close a rollback to a savepoint
  only. The transaction is set aside as ``undone`` if all its changes are taken back, and comes back
  with its next row; otherwise it goes on. In tables with LOBs one undo row stands for a statement
  of several rows, so counting does not tell: the transaction is ``ending``. What ends it then is a
  COMMIT row, the next START row in its slot (the ROLLBACK row was its end), or Oracle's no longer
  knowing it (:mod:`cdc_core.capture.transactions.orphans`).
* An end of a transaction that is not open, or that began later, ends nothing. A START row without
  any XID opens nothing.
* An undo row in an empty slot takes back nothing that was captured.
* A COMMIT at or below the window's lower end that is seen for the first time is ``late``: windows
  that were taken before lack its transaction. It is recorded like any other, and the lake places
  its changes where they belong.

Source: measured on 23ai by others, and reports from production (partial XIDs on COMMIT rows);
tests/capture/test_ledger.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.passes.batches import MinedBatch, joined_batches, merged_batches
from cdc_core.capture.transactions.entry import Entry, commit_ordinal, ended_batch
from cdc_core.capture.transactions.single_batch import whole_transactions
from cdc_core.capture.transactions.stream import UNKNOWN_USER, Event, Stream
from cdc_core.landing.layout import ORDINAL_SHIFT
from cdc_core.model.operations import ENDS, Operation
from cdc_core.model.scn import ScnWindow
from cdc_core.model.transactions import (
    NO_XID,
    OVER,
    UNRESOLVED,
    IncompleteTransaction,
    OpenTransaction,
    slot_of,
)

_LOG = logging.getLogger(__name__)
# Plain numbers: compared for each row that begins or ends a transaction.
_SET_ASIDE = ("undone", "ending")
DISPLACED_KEPT = 100
"""So many transactions whose end was never seen are kept; each is a loss of redo that somebody has
to look into."""

START, COMMIT, ROLLBACK = int(Operation.START), int(Operation.COMMIT), int(Operation.ROLLBACK)


@dataclass(frozen=True, slots=True)
class _Displaced:
    """A transaction whose undo slot a newer one has, which began at ``scn``; ``event`` is the row
    that shows it."""

    entry: Entry
    by: Entry | None
    scn: int
    event: Event


class TransactionLedger:
    """Open transactions while a window is read, and those that ended since they were last drained.

    ``committed`` and ``rolled_back`` count transactions with captured rows that ended in the
    window, ``evicted`` those whose slot was taken before their end was seen; ``tables_committed``
    are those that a commit touched; ``rows`` counts the captured rows of all that was followed.
    ``late`` are the commit SCNs at or below the window's lower end, ``incomplete`` the commits that
    cannot be shown whole.

    Args:
        opened: The ledger after the window before.
        snapshot_scn: Up to here tables were read by the first snapshot: older commits are in it.
        mined_from: All redo above this SCN was read, once.
        by_statement: Those of the tables with LOBs, in which an undo row may take back several redo
            rows.
    """

    def __init__(
        self,
        opened: Iterable[OpenTransaction],
        window: ScnWindow,
        table_names: Sequence[str],
        *,
        snapshot_scn: int,
        mined_from: int,
        by_statement: Sequence[str] = (),
    ) -> None:
        self._window, self._snapshot_scn, self._mined_from = window, snapshot_scn, mined_from
        self._table_names = list(table_names)
        self._by_statement = frozenset(by_statement)
        places = [at for at, name in enumerate(self._table_names) if name in self._by_statement]
        self._by_statement_places = np.array(places, dtype=np.int32)
        self._open = {one.xid: Entry.of(one) for one in opened}
        # Two of one slot cannot both be open; the one that was seen later is.
        by_age = sorted(self._open.values(), key=lambda one: one.first_ordinal)
        self._slots = {slot_of(one.xid): one for one in by_age if one.state != "displaced"}
        self._displaced: dict[str, list[_Displaced]] = {}
        self._before = set(self._open)
        self._ended_xids: list[npt.NDArray[np.uint64]] = []
        self._ended: list[tuple[object, ...]] = []
        self._ended_whole: list[pa.RecordBatch] = []
        self._undone = [one for one in by_age if one.state in _SET_ASIDE]
        self._gone: dict[str, Entry] = {}
        self._doubtful: list[Entry] = []
        self._ddl_commits: dict[str, int | None] = {}
        self.rows = 0
        self.committed = 0
        self.rolled_back = 0
        self.evicted = 0
        self.tables_committed: set[str] = set()
        self.late: list[int] = []
        self.tables_late: set[str] = set()
        self.incomplete: list[IncompleteTransaction] = []

    def ddl_commit_scn(self, xid: str) -> int | None:
        """Where a transaction with a DDL of a captured table committed; None while it is open."""
        return self._ddl_commits.get(xid)

    def take(self, batch: MinedBatch) -> MinedBatch:
        """Follow a batch; give it back with full XIDs, without what takes back nothing that was
        captured.

        Rows of one transaction stand between its START and its end, as
        :class:`~cdc_core.capture.passes.log_writes.LogWrites` puts them.
        """
        self._ended_xids.append(_ended_numbers(batch, self._snapshot_scn))
        whole = whole_transactions(
            batch,
            self._table_names,
            is_known=self._is_known,
            above=max(self._snapshot_scn, self._window.scn_low),
        )
        if whole is None:
            return self._take_rows(batch)
        if whole.ended.num_rows:
            self._ended_whole.append(whole.ended)
            self.committed += whole.ended.num_rows
            self.rows += pc.sum(whole.ended["rows"]).as_py()
            self.tables_committed.update(self._table_names[at] for at in whole.tables)
        if whole.rows.all():
            return batch
        others = self._take_rows(batch.filter(~whole.rows))
        return merged_batches(batch.filter(whole.rows), others)

    def _is_known(self, xid: str) -> bool:
        """Must the rules be asked about this XID?"""
        return (
            xid == NO_XID
            or slot_of(xid) in self._slots
            or xid in self._open
            or xid in self._gone
            or xid in self._ddl_commits
        )

    def _take_rows(self, batch: MinedBatch) -> MinedBatch:
        """Follow a batch row by row."""
        stream = Stream(batch, self._open)
        cut = stream.cut()
        if cut is not None:
            head = self._take_rows(batch.slice(0, cut))
            return joined_batches(head, self._take_rows(batch.slice(cut)))
        ended = [end for event in stream.events() if (end := self._follow(stream, event))]
        resolved = stream.resolved()
        for at in resolved.ddl.tolist():
            self._ddl_commits.setdefault(resolved.rows.column("xid")[at].as_py(), None)
        if len(batch.ordinals):
            self._count(stream, int(batch.ordinals[0]) >> ORDINAL_SHIFT)
        self._revive(stream)
        for entry, event in ended:
            self._end(entry, event)
        return resolved

    def finish(self) -> None:
        """The pass has ended: judge what nothing in it has ended. :meth:`drain` and
        :meth:`open_transactions` follow."""
        for one in [one for several in self._displaced.values() for one in several]:
            entry, by = one.entry, one.by
            # With equal SCNs the one that is still there is the newer one.
            is_older = one.scn > entry.began or (
                one.scn == entry.began and (by is None or self._open.get(by.xid) is by)
            )
            if is_older and self._open.get(entry.xid) is entry:
                self._leave(entry, one.event.slot)
                self._give_up(entry, one.event)
        self._displaced = {}
        for entry in self._doubtful:  # undo rows can stand behind the ROLLBACK row
            if entry.state == "open" and entry.rows and not entry.has_changes:
                entry.state = "undone"
        self._ended.sort(key=commit_ordinal)
        met = [
            one
            for one in self._open.values()
            if one.start_scn is None and one.xid not in self._before and not _is_nameless(one)
        ]
        behind = _are_among([one.xid for one in met], self._ended_xids) if met else []
        for entry in (one for one, is_behind in zip(met, behind, strict=True) if is_behind):
            self._leave(entry, slot_of(entry.xid))
            self._doubt(entry, None, "rows of it stand far behind its COMMIT or ROLLBACK")

    def drain(self) -> pa.RecordBatch:
        """Transactions that ended since the last call and have captured rows, as
        ``TRANSACTION_SCHEMA``."""
        ended, self._ended = self._ended, []
        whole, self._ended_whole = self._ended_whole, []
        if not whole:
            return ended_batch(ended)
        found = pa.Table.from_batches([*whole, ended_batch(ended)]).sort_by("commit_ordinal")
        [batch] = found.combine_chunks().to_batches()
        return batch

    @property
    def ended_count(self) -> int:
        """How many transactions :meth:`drain` would give."""
        whole: int = sum(batch.num_rows for batch in self._ended_whole)
        return len(self._ended) + whole

    def open_transactions(self) -> list[OpenTransaction]:
        """The ledger after what was followed, oldest first; of those that were displaced, the
        newest :data:`DISPLACED_KEPT`."""
        displaced = [one.xid for one in self._open.values() if one.state == "displaced"]
        forgotten = frozenset(displaced[:-DISPLACED_KEPT])
        found = (one.as_open() for one in self._open.values() if one.xid not in forgotten)
        return sorted(found, key=lambda one: (one.first_ordinal, one.xid))

    # -- one row that begins, ends or names a transaction ------------------------------------------

    def _follow(self, stream: Stream[Entry], event: Event) -> tuple[Entry, Event] | None:
        """Take one row. A transaction that it ends is told once the batch's changes are counted."""
        if event.operation == START:
            self._start(stream, event)
            return None
        if event.operation == COMMIT or event.operation == ROLLBACK:
            entry = self._ended_by(stream, event)
            if entry is None or not self._is_over(stream, entry, event):
                return None
            self._leave(entry, event.slot)
            return entry, event
        if event.is_partial:
            self._give(stream, event)
        elif stream.entries[event.code] is None:
            self._meet(stream, event)
        return None

    def _start(self, stream: Stream[Entry], event: Event) -> None:
        if event.xid == NO_XID:
            return
        if event.is_partial:
            if (old := self._slots.pop(event.slot, None)) is not None:
                self._displace(old, None, event.scn, event)
            return
        entry = stream.entries[event.code] or self._open_entry(stream, event)
        if entry.start_scn is None:
            entry.start_scn = event.scn
            entry.username = None if event.username == UNKNOWN_USER else event.username
            entry.session_id, entry.serial = event.session_id or None, event.serial or None
            entry.start_timestamp, entry.client_id = _time_of(event), event.client_id
        self._occupy(entry, event)

    def _open_entry(self, stream: Stream[Entry], event: Event) -> Entry:
        entry = Entry(xid=event.xid, start_scn=None, first_ordinal=event.ordinal)
        entry.stated_scn, entry.met_scn = event.start_scn, event.scn
        self._open[event.xid] = entry
        self._occupy(entry, event)
        stream.open(event, entry)
        return entry

    def _occupy(self, entry: Entry, event: Event) -> None:
        """Give the transaction its undo slot, unless one that began later has it."""
        old = self._slots.get(event.slot)
        if old is None or old is entry or old.began <= entry.began:
            self._slots[event.slot] = entry
            if old is not None and old is not entry:
                self._displace(old, entry, entry.began, event)
        elif self._open.get(entry.xid) is entry:
            self._displace(entry, old, old.began, event)

    def _displace(self, entry: Entry, by: Entry | None, scn: int, event: Event) -> None:
        known = self._displaced.setdefault(event.slot, [])
        known[:] = [one for one in known if one.entry is not entry]
        known.append(_Displaced(entry, by, scn, event))

    def _in_slot(self, event: Event) -> Entry | None:
        """The newest transaction of the row's undo slot that had begun at its SCN; if none had, the
        one that has the slot."""
        occupant = self._slots.get(event.slot)
        displaced = [one.entry for one in self._displaced.get(event.slot, ())]
        if not displaced:
            return occupant
        begun = [
            one
            for one in (*displaced, occupant)
            if one is not None and self._open.get(one.xid) is one and one.began <= event.scn
        ]
        return max(reversed(begun), key=lambda one: one.began, default=occupant)

    def _meet(self, stream: Stream[Entry], event: Event) -> None:
        """The first row of a transaction without a START row."""
        occupant = self._slots.get(event.slot)
        if occupant is not None and _is_nameless(occupant):
            stream.open(event, occupant)  # no row of it had a full XID so far
        else:
            self._open_entry(stream, event)

    def _give(self, stream: Stream[Entry], event: Event) -> None:
        """A change without its full XID belongs to the slot's transaction."""
        occupant = self._in_slot(event)
        if occupant is not None:
            stream.give(event, occupant)
        elif event.is_undo:
            stream.leave_out(event)
        else:
            # It began before anything that was read: it is in the snapshot, or it cannot be shown
            # whole.
            self._open_entry(stream, event)

    def _ended_by(self, stream: Stream[Entry], event: Event) -> Entry | None:
        """The transaction that a COMMIT or ROLLBACK row is about. One with a full XID ends that
        transaction, wherever it stands."""
        entry = None if event.is_partial else stream.entries[event.code]
        if entry is not None and self._open.get(entry.xid) is entry:
            return entry
        if not event.is_partial and event.operation == COMMIT and event.xid in self._gone:
            self._refuse_second_end(self._gone[event.xid], event)
            return None
        entry = self._in_slot(event)
        if entry is not None and not event.is_partial and not _is_nameless(entry):
            return None  # a row with a full XID can only end one that had none so far
        if entry is None or self._open.get(entry.xid) is not entry:
            return None
        began_later = entry.start_scn is not None and entry.start_scn > event.scn
        return None if began_later else entry

    def _refuse_second_end(self, entry: Entry, event: Event) -> None:
        """A COMMIT of a transaction that was rolled back in this pass."""
        if event.scn > self._snapshot_scn:
            self._doubt(entry, event, "it was seen to end before")

    def _is_over(self, stream: Stream[Entry], entry: Entry, event: Event) -> bool:
        if event.operation == COMMIT or not (event.is_partial or event.has_no_address):
            return True
        if entry.state in OVER:  # rows without an address are read by each pass again
            return False
        self._doubtful.append(entry)
        is_undone = not stream.has_changes(entry, event.at)
        is_new = event.scn > self._window.scn_low
        if is_undone or (is_new and self._is_by_statement(stream, entry, event)):
            entry.state = "undone" if is_undone else "ending"
            entry.undone_at = event.ordinal
            if entry not in self._undone:
                self._undone.append(entry)
        return False

    def _is_by_statement(self, stream: Stream[Entry], entry: Entry, event: Event) -> bool:
        """Has the transaction changed a table in which counting rows does not tell what is left?"""
        if not self._by_statement:
            return False
        return bool(self._by_statement & entry.tables.keys()) or stream.touches(
            entry, event.at, self._by_statement_places
        )

    def _leave(self, entry: Entry, slot: str) -> None:
        del self._open[entry.xid]
        if self._slots.get(slot) is entry:
            del self._slots[slot]

    # -- whole columns -----------------------------------------------------------------------------

    def _count(self, stream: Stream[Entry], window: int) -> None:
        for entry, xid, rows, undone in stream.counts():
            if entry is not None and xid != NO_XID:
                entry.rows += rows
                if undone:
                    entry.undone += undone
                    entry.has_rollback = True
        for entry, lowest, highest, falls in stream.change_scns():
            if entry is not None:
                entry.has_rollback |= falls or lowest < entry.change_scn
                entry.change_scn = max(entry.change_scn, highest)
        for entry, xid, table, rows in stream.touched(len(self._table_names)):
            self.rows += rows
            name = self._table_names[table]
            if entry is None or xid == NO_XID:
                lost = Entry(xid=xid, start_scn=None, first_ordinal=0, tables={name: rows})
                self._doubt(lost, None, "its changes name no transaction")
            else:
                entry.count(name, rows, window)

    def _revive(self, stream: Stream[Entry]) -> None:
        """What was set aside goes on if it has changes after that."""
        for entry in self._undone:
            if entry.state in _SET_ASIDE and stream.has_changes_after(entry, entry.undone_at):
                entry.state = "open"
        self._undone = [
            one for one in self._undone if one.state in _SET_ASIDE and one.xid in self._open
        ]

    # -- the end of a transaction ------------------------------------------------------------------

    def _end(self, entry: Entry, event: Event) -> None:
        if event.operation == COMMIT:
            self._commit(entry, event)
        else:
            self._roll_back(entry, event)

    def _commit(self, entry: Entry, event: Event) -> None:
        if entry.xid in self._ddl_commits:
            self._ddl_commits[entry.xid] = event.scn
        if not entry.rows:
            return
        is_late = False
        if event.scn > self._snapshot_scn:
            self._check_whole(entry, event)
            self.committed += 1
            self.tables_committed |= entry.tables.keys()
            is_late = event.scn <= self._window.scn_low
            if is_late:
                self.late.append(event.scn)
                self.tables_late |= entry.tables.keys()
        self._record(entry, "commit", event, is_late=is_late)

    def _roll_back(self, entry: Entry, event: Event) -> None:
        if entry.rows:
            self.rolled_back += 1
            self._gone[entry.xid] = entry
            self._record(entry, "rollback", event)

    def _give_up(self, entry: Entry, event: Event) -> None:
        """Its slot has another transaction, and nothing in the pass ends it: it has ended, and its
        end was not seen."""
        if entry.state != "open" or not entry.has_changes:
            self._roll_back(entry, event)
            return
        self.evicted += 1
        entry.state = "displaced"
        self._open[entry.xid] = entry
        _LOG.warning(
            "a transaction leaves the ledger without an end, since another one began in its undo slot;"
            " reconcile its tables xid=%s tables=%s start_scn=%s scn=%d",
            entry.xid, ",".join(sorted(entry.tables)), entry.start_scn, event.scn,
        )  # fmt: skip
        self._record(entry, "evicted", event)

    def _check_whole(self, entry: Entry, event: Event) -> None:
        """Were all changes of the transaction read? By its START row; else by where Oracle says
        that it began."""
        if entry.start_scn is not None and entry.state not in OVER and not self._gone:
            return
        stated = 0 if _is_nameless(entry) else entry.stated_scn or event.start_scn
        if entry.state == "released":
            self._doubt(entry, event, "it was given up before, since Oracle no longer knew it")
        elif entry.state == "rolled_back":
            self._doubt(
                entry, event, "it was taken for rolled back before, since Oracle no longer knew it"
            )
        elif entry.state == "displaced":
            self._doubt(
                entry, event, "it was taken for ended, since another one began in its undo slot"
            )
        elif entry.xid in self._gone:
            self._doubt(entry, event, "it was seen to end before")
        elif entry.start_scn is None and not stated:
            self._doubt(entry, event, "its beginning was never seen")
        elif entry.start_scn is None and stated and stated <= self._mined_from:
            self._doubt(entry, event, "it began before the redo that was read")

    def _doubt(self, entry: Entry, event: Event | None, reason: str) -> None:
        self.incomplete.append(
            IncompleteTransaction(
                xid=entry.xid,
                commit_scn=event.scn if event else None,
                start_scn=entry.start_scn or entry.stated_scn or None,
                tables=tuple(sorted(entry.tables)),
                reason=reason,
            )
        )

    def _record(self, entry: Entry, state: str, event: Event, *, is_late: bool = False) -> None:
        self._ended.append(entry.ended(state, event, is_late=is_late))


def _ended_numbers(batch: MinedBatch, above: int) -> npt.NDArray[np.uint64]:
    """The full XIDs that a batch ends above an SCN, eight bytes each."""
    scns = batch.rows.column("scn").to_numpy(zero_copy_only=False)
    ends = np.isin(batch.operations, ENDS) & (scns > above)
    xids = batch.rows.column("xid").filter(pa.array(ends))
    return _numbers_of(xids.filter(pc.invert(pc.ends_with(xids, UNRESOLVED))).to_pylist())


def _numbers_of(xids: Sequence[str]) -> npt.NDArray[np.uint64]:
    return np.frombuffer(bytes.fromhex("".join(xids)), dtype=np.uint64)


def _are_among(xids: Sequence[str], known: Iterable[npt.NDArray[np.uint64]]) -> list[bool]:
    wanted = _numbers_of(xids)
    found = np.zeros(len(wanted), dtype=np.bool_)
    for numbers in known:
        found |= np.isin(wanted, numbers)
    return found.tolist()


def _time_of(event: Event) -> datetime | None:
    return datetime(1970, 1, 1) + timedelta(seconds=event.timestamp) if event.timestamp else None


def _is_nameless(entry: Entry) -> bool:
    return entry.xid.endswith(UNRESOLVED)
