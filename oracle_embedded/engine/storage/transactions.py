"""How do transactions begin, lock rows, wait, commit and undo their changes?"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from oracle_embedded.api import LobCall, OracleError, RowChange, RowOp, TransactionInfo, Value
from oracle_embedded.engine.datatypes.rowids import printed
from oracle_embedded.engine.datatypes.scns import SCN_MAX
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.storage.blocks import FREE_MAX
from oracle_embedded.engine.storage.catalog import TableDef
from oracle_embedded.engine.storage.deferred import Deferral, violation
from oracle_embedded.engine.storage.store import Store

_UNDO_SEGMENTS = 10
_SLOTS = 34
_SEQUENCE_FIRST = 1000
_PURGE_SECONDS = 20.0
_WAIT_SLICE = 0.5
UNDO_RETENTION_DEFAULT = 900

_COMPATIBLE = {
    "RS": {"RS", "RX", "S", "SRX"},
    "RX": {"RS", "RX"},
    "S": {"RS", "S"},
    "SRX": {"RS"},
    "X": set(),
}


class Busy(Exception):  # noqa: N818 - a signal to wait, not an error
    """Another transaction holds what this one needs."""

    def __init__(self, holder: int) -> None:
        super().__init__(holder)
        self.holder = holder


@dataclass(slots=True)
class Transaction:
    """An open transaction. ``mark`` stands in row versions until it commits; ``segments`` are the
    numbers of those that it changed."""

    number: int
    info: TransactionInfo
    first_seq: int
    begun: bool = False
    tables: set[int] = field(default_factory=set)
    savepoints: dict[str, int] = field(default_factory=dict)
    row_locks: set[tuple[int, int]] = field(default_factory=set)
    table_locks: dict[int, str] = field(default_factory=dict)
    segments: set[int] = field(default_factory=set)
    waits_for: int | None = None
    changes: int = 0
    deferral: Deferral = field(default_factory=Deferral)
    lob_call: LobCall | None = None
    last_change: tuple[int, RowOp] | None = None
    """Table and kind of the running statement's last change."""

    @property
    def mark(self) -> int:
        """Stands for the commit SCN that is not known yet."""
        return SCN_MAX + self.number


class Transactions:
    """All open transactions. Every method needs the store's lock."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.open: dict[int, Transaction] = {}
        self.row_locks: dict[tuple[int, int], int] = {}
        self._next_number = 1
        self._sequences: dict[tuple[int, int], int] = {}
        self._next_slot = 0
        self._last_purge = store.now()
        self.undo_rows_max: int | None = None
        """So many changed rows the undo keeps of transactions that ended; None: all that are young
        enough."""
        self._undo_kept: deque[tuple[int, int]] = deque()
        self._undo_overwritten = 0
        row = store.writer.sqlite.execute("SELECT max(seq) FROM undo").fetchone()
        self.seq = int(row[0] or 0)
        self._unwritten: list[tuple[int, int, int, int, int, int, str | None]] = []
        store.before_flush = self.write_undo

    # --- begin and end ----------------------------------------------------------------------------

    def begin(
        self, session_id: int, serial: int, username: str, client_id: str | None
    ) -> Transaction:
        """Start a transaction at its first change or lock."""
        number = self._next_number
        self._next_number += 1
        slot = self._free_slot()
        setting = f"xid.{slot[0]}.{slot[1]}"
        sequence = int(self.store.catalog.setting(setting) or _SEQUENCE_FIRST) + 1
        self.store.begin()
        self.store.catalog.set_setting(setting, str(sequence))
        xid = (
            slot[0].to_bytes(2, "little")
            + slot[1].to_bytes(2, "little")
            + sequence.to_bytes(4, "little")
        )
        info = TransactionInfo(
            xid, session_id, serial, username, client_id, self.store.clock.next(), self.store.now()
        )
        transaction = Transaction(number, info, self.seq + 1)
        self.open[number] = transaction
        return transaction

    def _free_slot(self) -> tuple[int, int]:
        taken = {
            (int.from_bytes(t.info.xid[:2], "little"), int.from_bytes(t.info.xid[2:4], "little"))
            for t in self.open.values()
        }
        while True:
            self._next_slot += 1
            slot = (
                self._next_slot % _UNDO_SEGMENTS + 1,
                self._next_slot // _UNDO_SEGMENTS % _SLOTS,
            )
            if slot not in taken or len(taken) >= _UNDO_SEGMENTS * _SLOTS:
                return slot

    def note_change(self, transaction: Transaction, table: TableDef) -> None:
        """Announce the transaction at its first change, and the table at the first change in it."""
        if not transaction.begun:
            transaction.begun = True
            body = json.dumps(
                [
                    transaction.info.xid.hex(),
                    transaction.info.username,
                    transaction.info.start_scn,
                    transaction.info.start_time,
                ]
            )
            self.store.begin().execute(
                "INSERT INTO open_tx VALUES (?, ?)", (transaction.number, body)
            )
            if self.store.sink is not None:
                self.store.sink.begin(transaction.info)
        if table.object_id not in transaction.tables:
            transaction.tables.add(table.object_id)
            self.store.activity[table.object_id].writers.add(transaction.number)

    def commit(self, transaction: Transaction) -> int:
        """Make the changes permanent; gives the commit SCN.

        Raises:
            OracleError: ORA-02091 over ORA-00001 if rows share a key that was left for the end; the
                transaction is rolled back.
        """
        violated = violation(self.store, transaction.deferral, transaction.number)
        if violated is not None:
            self.rollback(transaction)
            raise OracleError(2091, f"transaction rolled back\n{violated}")
        scn = self.store.clock.next()
        if transaction.begun:
            self.write_undo()
            sqlite = self.store.begin()
            mark = transaction.mark
            chosen = "FROM undo WHERE seq >= ? AND tx = ? AND oid = ?"
            for oid in transaction.tables:
                params = (transaction.first_seq, transaction.number, oid)
                sqlite.execute(
                    f"UPDATE t{oid} SET vf = ? WHERE rid IN (SELECT rid {chosen} AND op <> 2) AND vf = ?",
                    (scn, *params, mark),
                )
                sqlite.execute(
                    f"DELETE FROM h{oid} WHERE hid IN (SELECT hid {chosen} AND op <> 1) AND vf = ?",
                    (*params, mark),
                )
                sqlite.execute(
                    f"UPDATE h{oid} SET vt = ? WHERE hid IN (SELECT hid {chosen} AND op <> 1) AND vt = ?",
                    (scn, *params, mark),
                )
                self.store.activity[oid].last_commit = scn
                deleted = sqlite.execute(f"SELECT rid {chosen} AND op = 2 LIMIT {FREE_MAX}", params)
                self.store.free(oid, (rid for (rid,) in deleted))
            if self.undo_rows_max is not None:
                self._overwrite_undo(transaction, scn, self.undo_rows_max)
            self._forget_undo(transaction)
            if self.store.sink is not None:
                self.store.sink.commit(transaction.info, scn, self.store.now())
        elif transaction.row_locks and self.store.sink is not None:
            self.store.begin()
            self.store.sink.commit_empty(transaction.info, scn, self.store.now())
        self._end(transaction)
        self._purge()
        self.store.flush()
        return scn

    def rollback(self, transaction: Transaction) -> None:
        """Undo everything and end the transaction."""
        if transaction.begun:
            self._undo(transaction, transaction.first_seq - 1)
            self._forget_undo(transaction)
            if self.store.sink is not None:
                self.store.sink.rollback(
                    transaction.info, self.store.clock.next(), self.store.now()
                )
        self._end(transaction)
        self.store.flush()

    def log(
        self, transaction: Transaction, oid: int, rid: int, op: RowOp, hid: int, columns: str | None
    ) -> None:
        """Note how to undo a change; written to SQLite before anything reads it or is flushed."""
        self.seq += 1
        self._unwritten.append((self.seq, transaction.number, oid, rid, int(op), hid, columns))

    def write_undo(self) -> None:
        """Write the notes that are still in memory."""
        if self._unwritten:
            self.store.begin().executemany(
                "INSERT INTO undo VALUES (?, ?, ?, ?, ?, ?, ?)", self._unwritten
            )
            self._unwritten.clear()

    def abandon(self, transaction: Transaction) -> None:
        """End the transaction that carried a DDL statement."""
        self._end(transaction)

    def _forget_undo(self, transaction: Transaction) -> None:
        sqlite = self.store.begin()
        if any(other.begun and other is not transaction for other in self.open.values()):
            sqlite.execute(
                "DELETE FROM undo WHERE seq >= ? AND tx = ?",
                (transaction.first_seq, transaction.number),
            )
        else:
            sqlite.execute("DELETE FROM undo")
        sqlite.execute("DELETE FROM open_tx WHERE tx = ?", (transaction.number,))

    def _end(self, transaction: Transaction) -> None:
        for key in transaction.row_locks:
            if self.row_locks.get(key) == transaction.number:
                del self.row_locks[key]
        for oid in transaction.tables:
            activity = self.store.activity.get(oid)
            if activity is not None:
                activity.writers.discard(transaction.number)
        self.open.pop(transaction.number, None)
        self.store.changed.notify_all()

    def recover(self, table_at: Callable[[int], TableDef | None]) -> None:
        """Roll back what a killed process left open."""
        rows = self.store.writer.sqlite.execute(
            "SELECT tx, body FROM open_tx ORDER BY tx DESC"
        ).fetchall()
        for number, body in rows:
            xid, username, start_scn, start_time = json.loads(body)
            info = TransactionInfo(bytes.fromhex(xid), 0, 0, username, None, start_scn, start_time)
            first = self.store.writer.sqlite.execute(
                "SELECT min(seq) FROM undo WHERE tx = ?", (number,)
            ).fetchone()[0]
            transaction = Transaction(number, info, first or self.seq + 1, begun=True)
            oids = self.store.writer.sqlite.execute(
                "SELECT DISTINCT oid FROM undo WHERE tx = ?", (number,)
            ).fetchall()
            transaction.tables = {oid for (oid,) in oids if table_at(oid) is not None}
            self.open[number] = transaction
        for number, _ in rows:
            with self.store.lock:
                self.rollback(self.open[number])

    # --- undo -------------------------------------------------------------------------------------

    def undo_to(self, transaction: Transaction, seq: int) -> None:
        """Undo the changes after a point of a transaction that goes on."""
        if self._undo(transaction, seq) and self.store.sink is not None:
            self.store.sink.undone(transaction.info)

    def _undo(self, transaction: Transaction, seq: int) -> bool:
        """Undo the changes after a point, newest first, and report each undoing to the redo; were
        there any?"""
        self.write_undo()
        sqlite = self.store.begin()
        rows = sqlite.execute(
            "SELECT seq, oid, rid, op, hid, cols FROM undo WHERE seq > ? AND tx = ? ORDER BY seq DESC",
            (seq, transaction.number),
        ).fetchall()
        for _, oid, rid, op, hid, cols in rows:
            table = self.store.catalog.by_id(oid)
            if isinstance(table, TableDef):
                self._undo_one(transaction, table, rid, RowOp(op), hid, cols)
        sqlite.execute("DELETE FROM undo WHERE seq > ? AND tx = ?", (seq, transaction.number))
        return bool(rows)

    def _undo_one(
        self,
        transaction: Transaction,
        table: TableDef,
        rid: int,
        op: RowOp,
        hid: int,
        cols: bytes | None,
    ) -> None:
        sqlite = self.store.begin()
        oid = table.object_id
        current = past = None
        if op != RowOp.DELETE:
            row = sqlite.execute(
                f"SELECT {table.storage} FROM t{oid} WHERE rid = ?", (rid,)
            ).fetchone()
            current = dict(zip(table.ids, row, strict=True))
        if op != RowOp.INSERT:
            row = sqlite.execute(
                f"SELECT {table.storage} FROM h{oid} WHERE hid = ?", (hid,)
            ).fetchone()
            past = dict(zip(table.ids, row, strict=True))
        if op != RowOp.DELETE:
            sqlite.execute(f"DELETE FROM t{oid} WHERE rid = ?", (rid,))
        if op != RowOp.INSERT:
            sqlite.execute(
                f"INSERT INTO t{oid} (rid, vf, {table.row_storage}) SELECT rid, vf, {table.row_storage} FROM h{oid} WHERE hid = ?",
                (hid,),
            )
            sqlite.execute(f"DELETE FROM h{oid} WHERE hid = ?", (hid,))
        undoing = {RowOp.INSERT: RowOp.DELETE, RowOp.DELETE: RowOp.INSERT}.get(op, RowOp.UPDATE)
        after = past
        if undoing == RowOp.UPDATE and past is not None:
            assigned = [int(part) for part in (cols or b"").split(b",") if part]
            after = {
                internal_id: past[internal_id] for internal_id in assigned if internal_id in past
            }
        self.report(transaction, table, rid, undoing, current, after, rollback=True)

    def report(
        self,
        transaction: Transaction,
        table: TableDef,
        rid: int,
        op: RowOp,
        before: dict[int, Value] | None,
        after: dict[int, Value] | None,
        *,
        rollback: bool = False,
    ) -> None:
        """Tell the redo of one row's change."""
        scn = self.store.clock.next()
        sink = self.store.sink
        image = before if before is not None else after
        assert image is not None, "a change has an old row or a new one"
        version = table.version_of(image)
        transaction.segments.add(version.object_id)
        if sink is not None and not table.temporary:
            rowid = printed(version.data_object_id, rid)
            is_call = not rollback and after is not None and len(after) == 1
            call = transaction.lob_call if is_call else None
            xid = transaction.info.xid
            this = None if rollback else (table.object_id, op)
            is_next = this is not None and this == transaction.last_change
            transaction.last_change = this
            sink.change(
                RowChange(
                    scn,
                    xid,
                    op,
                    rollback,
                    version,
                    rowid,
                    before,
                    after,
                    lob_call=call,
                    is_next=is_next,
                )
            )

    # --- locks ------------------------------------------------------------------------------------

    def check_unchanged(
        self, transaction: Transaction | None, table: TableDef, rids: Sequence[int], scn: int
    ) -> None:
        """Make sure that nobody else has changed rows since an SCN.

        Raises:
            OracleError: ORA-08177.
        """
        mark = transaction.mark if transaction is not None else 0
        sqlite = self.store.writer.sqlite
        for rid in rids:
            row = sqlite.execute(
                f"SELECT vf FROM t{table.object_id} WHERE rid = ?", (rid,)
            ).fetchone()
            if row is None or (row[0] > scn and row[0] != mark):
                raise OracleError(8177, "can't serialize access for this transaction")

    def claim(self, transaction: Transaction | None, table: TableDef, rids: Sequence[int]) -> None:
        """Make sure that no other transaction has changed or locked these rows.

        Raises:
            Busy: One has.
        """
        own = transaction.number if transaction is not None else 0
        oid = table.object_id
        others = self.store.activity[oid].writers - {own}
        if self.row_locks:
            for rid in rids:
                holder = self.row_locks.get((oid, rid), own)
                if holder != own:
                    raise Busy(holder)
        if not others:
            return
        sqlite = self.store.writer.sqlite
        for rid in rids:
            row = sqlite.execute(f"SELECT vf FROM t{oid} WHERE rid = ?", (rid,)).fetchone()
            if row is None:
                row = sqlite.execute(
                    f"SELECT max(vt) FROM h{oid} WHERE vt > ? AND rid = ?", (SCN_MAX, rid)
                ).fetchone()
            holder = (row[0] or 0) - SCN_MAX
            if holder > 0 and holder != own:
                raise Busy(holder)

    def lock_rows(self, transaction: Transaction, table: TableDef, rids: Sequence[int]) -> None:
        """Keep rows for this transaction (SELECT … FOR UPDATE)."""
        for rid in rids:
            key = (table.object_id, rid)
            self.row_locks[key] = transaction.number
            transaction.row_locks.add(key)
        self.lock_table(transaction, table.object_id, "RX")

    def holds_row(self, transaction: Transaction | None, table: TableDef, rid: int) -> bool:
        """Has a transaction locked or changed a row that is there?"""
        if transaction is None:
            return False
        row = self.store.writer.sqlite.execute(
            f"SELECT vf FROM t{table.object_id} WHERE rid = ?", (rid,)
        ).fetchone()
        if row is None:
            return False
        locked = self.row_locks.get((table.object_id, rid)) == transaction.number
        return locked or row[0] == transaction.mark

    def lock_table(self, transaction: Transaction, oid: int, mode: str) -> None:
        """Take a table lock: RS, RX, S, SRX or X.

        Raises:
            Busy: Another transaction's lock forbids it.
        """
        held = transaction.table_locks.get(oid)
        if held == mode or held == "X":
            return
        for other in self.open.values():
            if other is not transaction:
                theirs = other.table_locks.get(oid)
                if theirs is not None and theirs not in _COMPATIBLE[mode]:
                    raise Busy(other.number)
        if held is not None and {held, mode} == {"S", "RX"}:
            mode = "SRX"
        elif held is not None and held in ("S", "SRX", "RX") and mode == "RS":
            return
        transaction.table_locks[oid] = mode

    def check_no_locks(self, oid: int, own: Transaction | None) -> None:
        """DDL needs the table for itself; ORA-00054 otherwise."""
        for other in self.open.values():
            if other is not own and (oid in other.tables or oid in other.table_locks):
                raise ora(54)

    def check_no_segment_locks(
        self, table: TableDef, segments: Iterable[int], own: Transaction | None
    ) -> None:
        """DDL of partitions needs these for itself, and no lock on single rows; ORA-00054
        otherwise."""
        wanted = set(segments)
        for other in self.open.values():
            locked = other.table_locks.get(table.object_id, "RX") not in ("RS", "RX")
            has_rows = any(oid == table.object_id for oid, _ in other.row_locks)
            if other is not own and (locked or has_rows or other.segments & wanted):
                raise ora(54)

    def wait(
        self,
        transaction: Transaction,
        holder: int,
        interrupted: Callable[[], bool],
        seconds: float | None,
    ) -> None:
        """Wait until a transaction has ended.

        Raises:
            OracleError: ORA-00060 when that would wait for us, ORA-00054/30006 when time is up,
                ORA-01013 on cancel.
        """
        if seconds == 0:
            raise ora(54)
        seen = holder
        while seen in self.open and self.open[seen].waits_for is not None:
            seen = self.open[seen].waits_for or 0
            if seen == transaction.number:
                raise ora(60)
        transaction.waits_for = holder
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            while holder in self.open:
                if interrupted():
                    raise ora(1013)
                if deadline is not None and time.monotonic() >= deadline:
                    raise OracleError(30006, "resource busy; acquire with WAIT timeout expired")
                self.store.flush()
                self.store.changed.wait(
                    _WAIT_SLICE
                    if deadline is None
                    else min(_WAIT_SLICE, max(deadline - time.monotonic(), 0.01))
                )
        finally:
            transaction.waits_for = None

    # --- undo retention ---------------------------------------------------------------------------

    def retention_floor(self) -> int:
        """Changes committed up to this SCN may have lost their undo."""
        retention = float(self.store.catalog.setting("undo_retention") or UNDO_RETENTION_DEFAULT)
        by_time = self.store.clock.at_time(self.store.now() - retention) or 0
        return max(by_time, self._undo_overwritten)

    def _overwrite_undo(self, transaction: Transaction, scn: int, rows_max: int) -> None:
        """Make room for a transaction's undo: the oldest goes, however young, as in an undo
        tablespace of a fixed size without RETENTION GUARANTEE.

        Source: Oracle Database Administrator's Guide 19c, "Managing Undo".
        """
        params = (transaction.first_seq, transaction.number)
        counted = "SELECT count(*) FROM undo WHERE seq >= ? AND tx = ?"
        self._undo_kept.append((scn, self.store.begin().execute(counted, params).fetchone()[0]))
        while sum(rows for _, rows in self._undo_kept) > rows_max:
            self._undo_overwritten, _ = self._undo_kept.popleft()

    def _purge(self) -> None:
        now = self.store.now()
        if now - self._last_purge < _PURGE_SECONDS:
            return
        self._last_purge = now
        floor = self.retention_floor()
        if not floor:
            return
        sqlite = self.store.begin()
        for oid, activity in self.store.activity.items():
            newest = sqlite.execute(
                f"SELECT max(vt) FROM h{oid} WHERE vt <= ?", (floor,)
            ).fetchone()[0]
            if newest is not None:
                sqlite.execute(f"DELETE FROM h{oid} WHERE vt <= ?", (floor,))
                activity.purged = newest
                self.store.catalog.set_setting(f"purged.{oid}", str(newest))
