"""How are records read and turned into rows of V$LOGMNR_CONTENTS?"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, Protocol

from oracle_embedded.api import (
    EngineSession,
    RowOp,
    Value,
)
from oracle_embedded.faults import FaultKind
from oracle_embedded.redo import contents_row as layout
from oracle_embedded.redo import lob, store
from oracle_embedded.redo import sink as s
from oracle_embedded.redo.dictionary import (
    STATUS_EXECUTABLE,
    STATUS_INVALID,
    STATUS_NOT_GUARANTEED,
    Resolved,
)
from oracle_embedded.redo.filters import Filter, filter_from
from oracle_embedded.redo.levels import Level
from oracle_embedded.redo.literals import LiteralCache, nls_of
from oracle_embedded.redo.lob_statements import LobRow, LobStatements
from oracle_embedded.redo.miner import (
    COMMITTED_DATA_ONLY,
    NO_ROWID_IN_STMT,
    NO_SQL_DELIMITER,
    PRINT_PRETTY_SQL,
    ROOT,
    STRING_LITERALS_IN_STMT,
    AddedLog,
    Mining,
)
from oracle_embedded.redo.settings import RedoSettings, Wart
from oracle_embedded.redo.statements import NOTHING, Image, TableStatements
from oracle_embedded.redo.templates import Style

OP_MISSING_SCN = 34
_SCN = store.RECORD_COLUMNS.split(", ").index("scn")
_SQL_BYTES_MAX = 4000
_CHECK_ROWS = 2000
_SPREAD = 32
_TRANSACTIONS_MAX = 10_000
_MARKERS = {
    s.OP_START: b"set transaction read write",
    s.OP_COMMIT: b"commit",
    s.OP_ROLLBACK: b"rollback",
}
_LOB_WRITES = frozenset({lob.OP_LOB_WRITE, lob.OP_LOB_TRIM})
_XML_WRITES = frozenset({lob.OP_XML_BEGIN, lob.OP_XML_WRITE})
_NO_SUPPLEMENTAL = b"no supplemental log data found"
_USER_DDL = b"USER DDL (PlSql=0 RecDep=0)"


@dataclass(frozen=True, slots=True)
class _Object:
    """A table as rows show it; ``nameless`` are its facts where a row has no statement. Rows of an index have no address."""

    statements: TableStatements
    lobs: LobStatements | None
    facts: layout.ObjectFacts
    nameless: layout.ObjectFacts
    has_address: bool
    status: int
    info: bytes | None


@dataclass(frozen=True, slots=True)
class _Commit:
    """The end of the transaction whose rows are shown together."""

    scn: Value
    time: Value
    undone: frozenset[int]


class Catalog(Protocol):
    """What a reading asks of the view."""

    container_name: str
    settings: RedoSettings

    @property
    def warts(self) -> frozenset[Wart]:
        """The oddities that are shown now."""

    @property
    def untranslated(self) -> frozenset[bytes]:
        """Rows whose SQL_REDO holds one of these texts are shown with STATUS 2."""

    def resolve(self, packed: bytes, options: int) -> tuple[Resolved, layout.ObjectFacts]:
        """A stored definition as the session's dictionary shows it."""

    def lob_statements(self, statements: TableStatements) -> LobStatements:
        """What prints the changes of a table with LOBs."""

    def check_log(self, added: AddedLog, watch: sqlite3.Connection) -> None:
        """Raise ORA-00308 or ORA-00310 unless the file is still there, and still the log it was."""


class Reading:
    """One query of the view."""

    def __init__(
        self,
        contents: Catalog,
        connection: sqlite3.Connection,
        session: EngineSession,
        mining: Mining,
        constraints: Sequence[tuple[str, str, Value]],
        columns: frozenset[str] | None,
        *,
        watch: sqlite3.Connection,
    ) -> None:
        self._watch = watch
        self._contents = contents
        self._connection = connection
        self._mining = mining
        self._committed = bool(mining.options & COMMITTED_DATA_ONLY)
        self._want_undo = columns is None or "SQL_UNDO" in columns
        self._style = Style(
            rowid=not mining.options & NO_ROWID_IN_STMT,
            delimiter=not mining.options & NO_SQL_DELIMITER,
            pretty=bool(mining.options & PRINT_PRETTY_SQL),
        )
        nls = nls_of(session, strings=bool(mining.options & STRING_LITERALS_IN_STMT))
        self._literals = LiteralCache(nls)
        dbid = store.read_meta(connection)["dbid"]
        container = session.parameter("CONTAINER").upper()
        self._make = layout.row_maker(
            columns, contents.container_name, dbid, in_root=container == ROOT
        )
        self._filter = filter_from(constraints)
        self._logs = {added.log.log_id: added for added in mining.logs}
        self._log_facts: dict[int, layout.LogFacts] = {}
        self._objects: dict[tuple[int, int], _Object] = {}
        self._transactions: dict[int | None, layout.TransactionFacts] = {}
        self._partials: dict[int, layout.TransactionFacts] = {}
        self._partial_xids = Wart.PARTIAL_XIDS in contents.warts
        self._spurious_rollbacks = Wart.SPURIOUS_ROLLBACKS in contents.warts
        self._partial_xid_every = contents.settings.partial_xid_every

    def rows(self, faults: Collection[FaultKind]) -> Iterator[layout.Row]:
        """All rows; every file of the range must be there, whether it holds rows of the query or not."""
        for added in self._mining.logs:
            ended = added.log.next_change
            if (ended is None or ended > self._mining.scn_low) and (
                added.log.first_change <= self._mining.scn_high
            ):
                self._contents.check_log(added, self._watch)
        if FaultKind.SHORT_READ in faults:
            self._logs.popitem()
        if self._filter.empty:
            return
        if FaultKind.MISSING_SCN in faults:
            yield self._hole()
        if self._committed:
            yield from self._committed_rows()
        else:
            yield from self._rows_of(self._records(self._filter))

    def _hole(self) -> layout.Row:
        """The row that says that redo is missing, as if from the beginning of the range on."""
        added = self._mining.logs[0]
        scn = max(self._mining.scn_low, added.log.first_change)
        log = self._log(added.log.log_id)
        return self._make(
            0,
            scn,
            log,
            0,
            added.log.first_time,
            self._transaction(None),
            OP_MISSING_SCN,
            0,
            layout.NO_OBJECT,
            None,
            None,
            None,
            0,
            None,
            STATUS_EXECUTABLE,
            None,
            None,
            1,
            0,
        )

    # --- records -----------------------------------------------------------------------------------------------------

    def _records(self, wanted: Filter) -> Iterator[tuple[Any, ...]]:
        """Records of the range: each thread's in the order of its redo, the threads merged by SCN.

        The order within a thread is not the SCNs': redo that was bound late has old ones. Source: stated by others of a
        real LogMiner; Oracle's manual speaks of SCN order only.
        """
        by_thread: dict[int, list[int]] = {}
        for added in self._mining.logs:
            by_thread.setdefault(added.log.thread, []).append(added.log.log_id)
        select, binds = self._selection(wanted)
        if len(by_thread) == 1:
            return self._connection.execute(f"{select} ORDER BY id", binds)
        return _merged(
            [
                self._connection.execute(
                    f"{select} AND log_id IN ({', '.join(map(str, own))}) ORDER BY id", binds
                )
                for own in by_thread.values()
            ]
        )

    def _selection(self, wanted: Filter) -> tuple[str, list[object]]:
        low = max(self._mining.scn_low, wanted.scn_low)
        high = min(self._mining.scn_high, wanted.scn_high, 2**63 - 1)
        first, end = store.ids_between(self._connection, low, high)
        first = max(first, min(added.log.first_id for added in self._mining.logs))
        clauses = ["id >= ?", "scn BETWEEN ? AND ?"]
        binds: list[object] = [first, low, high]
        if end is not None:
            clauses.append("id < ?")
            binds.append(end)
        for bound, sign in ((self._mining.start_time, ">="), (self._mining.end_time, "<=")):
            if bound is not None:
                clauses.append(f"time {sign} ?")
                binds.append(int(bound.replace(tzinfo=UTC).timestamp()))
        if wanted.ops is not None:
            clauses.append(f"op IN ({', '.join(map(str, sorted(wanted.ops)))})")
        objects = self._wanted_objects(wanted)
        if objects is not None:
            clauses.append(f"(op = {s.OP_DDL} OR object IN ({', '.join(map(str, objects))}))")
        return (
            f"SELECT {store.RECORD_COLUMNS} FROM redo_record WHERE {' AND '.join(clauses)}",
            binds,
        )

    def _wanted_objects(self, wanted: Filter) -> list[int] | None:
        """Numbers of the objects whose name the query asks for; None for all."""
        if not wanted.names:
            return None
        found = []
        for number, packed in self._connection.execute(
            "SELECT object, definition FROM redo_object"
        ):
            _resolved, facts = self._contents.resolve(packed, self._mining.options)
            if wanted.accepts(facts):
                found.append(number)
        return found

    def _rows_of(
        self, records: Iterator[tuple[Any, ...]], commit: _Commit | None = None
    ) -> Iterator[layout.Row]:
        make = self._make
        commit_scn, commit_time = (commit.scn, commit.time) if commit else (None, None)
        current = 0
        log: layout.LogFacts | None = None
        unchecked = 0
        ordinal = 1
        plain = commit is None and not self._want_undo
        untranslated = self._contents.untranslated
        unpack = store.unpack_image
        for record in records:
            record_id, log_id, position, scn, time, tx, op, flags, number, row_id, old, new = record
            if log_id != current or unchecked >= _CHECK_ROWS:
                current = log_id
                log = self._log(log_id)
                unchecked = 0
            unchecked += 1
            if log is None or (commit is not None and record_id in commit.undone):
                continue
            transaction = self._transactions.get(tx) or self._transaction(tx)
            if number is None:
                yield from self._marker(record, log, transaction, commit, ordinal)
                ordinal += commit is not None
                continue
            thing = self._objects.get((number, flags)) or self._object(number, flags)
            rollback = flags & s.FLAG_ROLLBACK
            if rollback and self._partial_xids:
                transaction = self._shown(tx, transaction, log)
            if plain and thing.lobs is None:
                redo = thing.statements.redo(
                    op,
                    rollback,
                    None if old is None else unpack(old),
                    None if new is None else unpack(new),
                    row_id,
                )
                if len(redo) <= _SQL_BYTES_MAX and not _holds(redo, untranslated):
                    yield make(
                        record_id,
                        scn,
                        log,
                        position,
                        time,
                        transaction,
                        op,
                        rollback,
                        thing.facts,
                        row_id if thing.has_address else None,
                        redo,
                        None,
                        0,
                        thing.info,
                        thing.status,
                        None,
                        None,
                        1,
                        0,
                    )
                    continue
            before = None if old is None else unpack(old)
            after = None if new is None else unpack(new)
            for row in self._shown_rows(thing, op, rollback, before, after, row_id):
                written = row.op in _XML_WRITES or (
                    row.op in _LOB_WRITES and thing.lobs is not None and thing.lobs.is_block
                )
                refused = _holds(row.redo, untranslated)
                for part, undo_part, csf in _continued(row.redo, row.undo):
                    made = make(
                        record_id,
                        scn,
                        log,
                        position + row.part * _SPREAD,
                        time,
                        transaction,
                        row.op,
                        rollback,
                        thing.facts if row.is_named else thing.nameless,
                        row_id if row.real and thing.has_address else None,
                        part,
                        undo_part,
                        csf,
                        lob.NOT_EXECUTABLE if written else thing.info,
                        STATUS_INVALID if written or refused else thing.status,
                        commit_scn,
                        commit_time,
                        ordinal + row.closing,
                        row.ssn,
                    )
                    yield made if row.is_named else layout.internal(made)
                ordinal += commit is not None

    def _shown_rows(
        self,
        thing: _Object,
        op: int,
        rollback: int,
        before: Image | None,
        after: Image | None,
        row_id: bytes,
    ) -> Sequence[LobRow]:
        """The rows of a change that is not printed the short way."""
        if thing.lobs is not None:
            return thing.lobs.rows(op, rollback == 1, before, after, row_id, self._want_undo)
        redo = thing.statements.redo(op, rollback, before, after, row_id)
        undo = None
        if self._want_undo and not rollback:
            undo = thing.statements.undo(op, before or NOTHING, after or NOTHING, row_id)
        return (LobRow(op=op, redo=redo, undo=undo, part=0),)

    def _marker(
        self,
        record: tuple[Any, ...],
        log: layout.LogFacts,
        transaction: layout.TransactionFacts,
        commit: _Commit | None,
        ordinal: int,
    ) -> Iterator[layout.Row]:
        """Rows of a record that changes no row: markers, DDL, internal."""
        record_id, _log_id, position, scn, time, tx, op, flags, _number, _row_id, _old, new = record
        no_address = False
        if op == s.OP_SAVEPOINT_UNDONE:
            if not (self._spurious_rollbacks and log.live and commit is None):
                return
            op = s.OP_ROLLBACK
            transaction = transaction.partial()
            no_address = True
        elif op in (s.OP_COMMIT, s.OP_ROLLBACK) and commit is None:
            full, transaction = transaction, self._shown(tx, transaction, log)
            no_address = op == s.OP_ROLLBACK and log.live and transaction is not full
        text = _MARKERS.get(op)
        thing = layout.NO_OBJECT
        info = None
        if op == s.OP_DDL:
            ddl, owner, table, object_id = store.unpack_facts(new)
            text = ddl.encode().rstrip().removesuffix(b";")
            thing = layout.ddl_facts(owner, table, object_id)
            info = _USER_DDL
            transaction = transaction.of_ddl()
        if text is not None and self._style.delimiter:
            text += b";"
        commit_scn, commit_time = (None, None)
        if commit is not None:
            commit_scn, commit_time = commit.scn, commit.time
        elif op == s.OP_COMMIT:
            commit_scn, commit_time = layout.NUMBERS[scn], layout.DATES[time]
        for part, _undo, csf in _continued(text, None):
            row = self._make(
                record_id,
                scn,
                log,
                position,
                time,
                transaction,
                op,
                0,
                thing,
                None,
                part,
                None,
                csf,
                info,
                STATUS_EXECUTABLE,
                commit_scn,
                commit_time,
                ordinal,
                0,
            )
            if no_address:
                row = layout.without_address(row)
            yield layout.without_thread(row) if flags & s.FLAG_NO_THREAD else row

    def _shown(
        self, tx: int | None, facts: layout.TransactionFacts, log: layout.LogFacts
    ) -> layout.TransactionFacts:
        """The transaction as an undo row or an end shows it.

        LogMiner may not know the sequence of the XID when it reads an online log, or has not read the transaction's
        beginning.
        """
        unsure = log.live or facts.start_scn is None
        if not (self._partial_xids and unsure) or tx is None or tx % self._partial_xid_every:
            return facts
        if len(self._partials) > _TRANSACTIONS_MAX:
            self._partials.clear()
        return self._partials.get(tx) or self._partials.setdefault(tx, facts.partial())

    # --- committed transactions only ---------------------------------------------------------------------------------

    def _committed_rows(self) -> Iterator[layout.Row]:
        """Transactions that began and ended in the range, each whole, in the order of their commits."""
        first = min(added.log.first_id for added in self._mining.logs)
        wanted = self._filter
        transactions = self._connection.execute(
            f"SELECT {store.TRANSACTION_COLUMNS} FROM redo_transaction WHERE committed = 1 AND first_id >= ? AND start_scn >= ?"
            " AND end_scn BETWEEN ? AND ? ORDER BY last_id",
            (
                first,
                self._mining.scn_low,
                wanted.commit_low,
                min(self._mining.scn_high, wanted.commit_high),
            ),
        )
        for row in transactions:
            transaction = store.transaction_from(row)
            assert transaction.end_scn is not None
            assert transaction.end_time is not None
            commit = _Commit(
                # Oracle leaves COMMIT_SCN of DDL and its markers NULL.
                None if transaction.ddl else layout.NUMBERS[transaction.end_scn],
                None if transaction.ddl else layout.DATES[transaction.end_time],
                self._undone(transaction) if transaction.undone else frozenset(),
            )
            yield from self._rows_of(self._transaction_records(transaction), commit)

    def _transaction_records(self, transaction: store.Transaction) -> Iterator[tuple[Any, ...]]:
        return self._connection.execute(
            f"SELECT {store.RECORD_COLUMNS} FROM redo_record"
            " WHERE id BETWEEN ? AND ? AND tx = ? ORDER BY id",
            (transaction.first_id, transaction.last_id, transaction.tx),
        )

    def _undone(self, transaction: store.Transaction) -> frozenset[int]:
        """Records that were undone within the transaction, and those that undid them."""
        undone: set[int] = set()
        done: dict[bytes, list[int]] = {}
        for record in self._transaction_records(transaction):
            record_id, op, flags, row_id = record[0], record[6], record[7], record[9]
            if op > RowOp.UPDATE or row_id is None:
                continue
            if not flags & s.FLAG_ROLLBACK:
                done.setdefault(row_id, []).append(record_id)
                continue
            undone.add(record_id)
            if done.get(row_id):
                undone.add(done[row_id].pop())
        return frozenset(undone)

    # --- what records refer to ---------------------------------------------------------------------------------------

    def _log(self, log_id: int) -> layout.LogFacts | None:
        """Facts of a log that was added, after a look whether its file is still there; None for others."""
        added = self._logs.get(log_id)
        if added is None:
            return None
        self._contents.check_log(added, self._watch)
        return layout.LogFacts(
            live=added.name == added.log.member,
            sequence=added.log.sequence,
            sequence_number=layout.NUMBERS[added.log.sequence],
            thread=layout.NUMBERS[added.log.thread],
            name=added.name.encode(),
        )

    def _transaction(self, tx: int | None) -> layout.TransactionFacts:
        if len(self._transactions) > _TRANSACTIONS_MAX:
            self._transactions.clear()
        found = None if tx is None else store.read_transaction(self._connection, tx)
        resolved = found is not None and found.start_scn >= self._mining.scn_low
        facts = self._transactions[tx] = layout.transaction_facts(found, resolved=resolved)
        return facts

    def _object(self, number: int, flags: int) -> _Object:
        (packed,) = self._connection.execute(
            "SELECT definition FROM redo_object WHERE object = ?", (number,)
        ).fetchone()
        resolved, facts = self._contents.resolve(packed, self._mining.options)
        level = Level(flags >> s.LEVEL_SHIFT)
        statements = TableStatements(
            resolved.table, level, self._style, self._literals, raw=resolved.raw
        )
        status, info = resolved.status, resolved.info
        if level is Level.NONE and status == STATUS_EXECUTABLE:
            # Oracle Database Utilities, "DDL_DICT_TRACKING and Supplemental Logging Settings".
            status, info = STATUS_NOT_GUARANTEED, _NO_SUPPLEMENTAL
        lobs = self._contents.lob_statements(statements) if statements.lobs else None
        nameless = replace(facts, owner=None, name=None, segment=None)
        has_address = not resolved.table.is_index_organized
        found = self._objects[number, flags] = _Object(
            statements, lobs, facts, nameless, has_address, status, info
        )
        return found


def _merged(threads: Sequence[Iterator[tuple[Any, ...]]]) -> Iterator[tuple[Any, ...]]:
    """Records of several threads: always the one of the lowest SCN among those that come next."""
    heads = [(head, records) for records in threads if (head := next(records, None)) is not None]
    while heads:
        at = min(range(len(heads)), key=lambda index: heads[index][0][_SCN])
        head, records = heads[at]
        yield head
        following = next(records, None)
        if following is None:
            del heads[at]
        else:
            heads[at] = (following, records)


def _continued(
    redo: bytes | None, undo: bytes | None
) -> Iterator[tuple[bytes | None, bytes | None, int]]:
    """Pieces of at most 4000 bytes that split no character, with CSF: 1 on all but the last."""
    pieces = [_pieces(redo), _pieces(undo)]
    count = max(len(part) for part in pieces)
    for at in range(count):
        redo_part, undo_part = (part[at] if at < len(part) else None for part in pieces)
        yield redo_part, undo_part, int(at + 1 < count)


def _holds(redo: bytes | None, texts: frozenset[bytes]) -> bool:
    return bool(texts) and redo is not None and any(text in redo for text in texts)


def _pieces(text: bytes | None) -> list[bytes | None]:
    if text is None or len(text) <= _SQL_BYTES_MAX:
        return [text]
    pieces: list[bytes | None] = []
    at = 0
    while at < len(text):
        end = min(at + _SQL_BYTES_MAX, len(text))
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(text[at:end])
        at = end
    return pieces
