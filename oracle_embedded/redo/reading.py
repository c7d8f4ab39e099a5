"""How are records read and turned into rows of V$LOGMNR_CONTENTS?"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from oracle_embedded.api import (
    DatabaseView,
    EngineSession,
    OraType,
    TableVersion,
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
from oracle_embedded.redo.filters import filter_from
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
from oracle_embedded.redo.pieces import SQL_BYTES_MAX, continued
from oracle_embedded.redo.records import Records
from oracle_embedded.redo.settings import RedoSettings, Wart
from oracle_embedded.redo.statements import INSERT, NOTHING, TableStatements
from oracle_embedded.redo.templates import Style

OP_MISSING_SCN = 34
_LOG_ID = store.Record._fields.index("log_id")
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
_UNSUPPORTED, _NOT_SUPPORTED = b"Unsupported", b"Object or Data type Unsupported"
_NAME_BYTES_MAX = 30
_UNTRANSLATED = frozenset({OraType.BOOLEAN, OraType.JSON, OraType.VECTOR})
_USER_DDL = b"USER DDL (PlSql=0 RecDep=0)"


@dataclass(frozen=True, slots=True)
class _Object:
    """A table as rows show it; ``nameless`` are its facts where a row has no statement. Rows of an
    index have no address."""

    statements: TableStatements
    lobs: LobStatements | None
    facts: layout.ObjectFacts
    nameless: layout.ObjectFacts
    has_address: bool
    is_supported: bool
    status: int
    info: bytes | None


@dataclass(frozen=True, slots=True)
class _Commit:
    """What rows show of their transaction's end: nothing, unless transactions are shown whole."""

    scn: Value = None
    time: Value = None


_NO_COMMIT = _Commit()
_ALL, _PIECE, _WHAT_FOLLOWS = slice(None), slice(1), slice(1, None)


class Catalog(Protocol):
    """What a reading asks of the view."""

    container_name: str
    container_id: int
    settings: RedoSettings
    database: DatabaseView

    @property
    def warts(self) -> frozenset[Wart]:
        """The oddities that are shown now."""

    @property
    def untranslated(self) -> frozenset[bytes]:
        """Rows whose SQL_REDO holds one of these texts are shown with STATUS 2."""

    def resolve(
        self, number: int, packed: bytes, mining: Mining
    ) -> tuple[Resolved, layout.ObjectFacts]:
        """A stored definition, and its number, as the session's dictionary shows it."""

    def lob_statements(self, statements: TableStatements) -> LobStatements:
        """What prints the changes of a table with LOBs."""

    def check_log(self, session: EngineSession, added: AddedLog, watch: sqlite3.Connection) -> None:
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
        self._session = session
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
        self._sets = session.character_sets
        self._literals = LiteralCache(nls, self._sets, contents.database)
        dbid = store.read_meta(connection)["dbid"]
        container = session.parameter("CONTAINER").upper()
        self._make = layout.row_maker(
            columns, contents.container_name, contents.container_id, dbid, in_root=container == ROOT
        )
        self._filter = filter_from(constraints)
        self._records = Records(connection, mining, self._filter, self._facts_of)
        self._untranslated = contents.untranslated
        self._logs = {added.log.log_id: added for added in mining.logs}
        self._log_id = 0
        self._log_facts: layout.LogFacts | None = None
        self._unchecked = 0
        self._objects: dict[tuple[int, int], _Object] = {}
        self._transactions: dict[int | None, layout.TransactionFacts] = {}
        self._partials: dict[int, layout.TransactionFacts] = {}
        self._partial_xids = Wart.PARTIAL_XIDS in contents.warts
        self._unsupported_undo = contents.settings.unsupported_undo
        self._spurious_rollbacks = Wart.SPURIOUS_ROLLBACKS in contents.warts
        self._partial_xid_every = contents.settings.partial_xid_every
        together = {Wart.LOB_STATEMENTS, Wart.LOB_INSERTS_TOGETHER}
        self._inserts_together = together <= contents.warts

    def rows(self, faults: Collection[FaultKind]) -> Iterator[layout.Row]:
        """All rows; every file of the range must be there, whether it holds rows of the query or
        not."""
        for added in self._mining.logs:
            ended = added.log.next_change
            if (ended is None or ended > self._mining.scn_low) and (
                added.log.first_change <= self._mining.scn_high
            ):
                self._contents.check_log(self._session, added, self._watch)
        if FaultKind.SHORT_READ in faults:
            self._logs.popitem()
        if self._filter.empty:
            return
        if FaultKind.MISSING_SCN in faults:
            yield self._hole()
        if self._committed:
            yield from self._committed_rows()
        else:
            yield from self._rows()

    def _facts_of(self, number: int, packed: bytes) -> layout.ObjectFacts:
        _resolved, facts = self._contents.resolve(number, packed, self._mining)
        return facts

    def _hole(self) -> layout.Row:
        """The row that says that redo is missing, as if from the beginning of the range on."""
        first = self._mining.logs[0].log
        missing = store.Record(
            id=0,
            log_id=first.log_id,
            position=0,
            scn=max(self._mining.scn_low, first.first_change),
            time=first.first_time,
            tx=None,
            op=OP_MISSING_SCN,
            flags=0,
            object=None,
            row_id=None,
            before=None,
            after=None,
        )
        log = self._log(first.log_id)
        assert log is not None, "it was added"
        row = self._make(missing, log, layout.NO_TRANSACTION, layout.NO_OBJECT, None)
        return (
            layout.without_container(row) if Wart.HOLES_OF_NOBODY in self._contents.warts else row
        )

    def _rows(self) -> Iterator[layout.Row]:
        """The rows of the range, record by record. What is done for each is in one place: calls
        would cost as much as the work."""
        want_undo, short_row = self._want_undo, self._short_row
        log_id, unchecked, log = 0, _CHECK_ROWS, None
        held = _Held(self)
        for record in self._records.in_order():
            if record[_LOG_ID] != log_id or unchecked >= _CHECK_ROWS:
                log_id, unchecked = record[_LOG_ID], 0
                log = self._log(log_id)
            unchecked += 1
            if log is None:
                continue
            row = None if want_undo else short_row(record, log)
            if row is not None:
                yield from held.end()
                yield row
            else:
                yield from held.take(store.Record._make(record), log, _NO_COMMIT, 1)
        yield from held.end()

    def _committed_rows(self) -> Iterator[layout.Row]:
        """Transactions that began and ended in the range, each whole, in the order of their
        commits."""
        for transaction in self._records.committed():
            assert transaction.end_scn is not None
            assert transaction.end_time is not None
            commit = _Commit(
                # Oracle leaves COMMIT_SCN of DDL and its markers NULL.
                None if transaction.ddl else layout.NUMBERS[transaction.end_scn],
                None if transaction.ddl else layout.DATES[transaction.end_time],
            )
            undone = self._records.undone(transaction) if transaction.undone else frozenset()
            ordinal = 1
            held = _Held(self)
            for record in self._records.of(transaction):
                log = self._log_of(record.log_id)
                if log is not None and record.id not in undone:
                    yield from held.take(record, log, commit, ordinal)
                    ordinal += 1
            yield from held.end()

    def _short_row(self, record: Sequence[Any], log: layout.LogFacts) -> layout.Row | None:
        """The one row of a change without LOBs and without undo; None for any other record, and
        where a statement is too long for a row or is not translated."""
        _, _, _, _, _, tx, op, flags, number, row_id, old, new = record
        if number is None:
            return None
        thing = self._objects.get((number, flags)) or self._object(number, flags)
        if thing.lobs is not None or not thing.is_supported:
            return None
        rollback = flags & s.FLAG_ROLLBACK
        if rollback and self._unsupported_undo:
            return None
        redo = thing.statements.redo(
            op,
            rollback,
            None if old is None else store.unpack_image(old),
            None if new is None else store.unpack_image(new),
            row_id,
        )
        if len(redo) > SQL_BYTES_MAX or (self._untranslated and _holds(redo, self._untranslated)):
            return None
        transaction = self._transactions.get(tx) or self._transaction(tx)
        if rollback and self._partial_xids:
            transaction = self._shown(tx, transaction, log)
        shown = row_id if thing.has_address else None
        if not rollback and not thing.status:
            return self._make(record, log, transaction, thing.facts, redo, row_id=shown)
        return self._make(
            record,
            log,
            transaction,
            thing.facts,
            redo,
            rollback=rollback,
            row_id=shown,
            info=thing.info,
            status=thing.status,
        )

    def long_rows(
        self,
        record: store.Record,
        log: layout.LogFacts,
        commit: _Commit,
        ordinal: int,
        these: slice = _ALL,
    ) -> Iterator[layout.Row]:
        """All rows of a record, or those of ``these`` statements of it; with ``commit`` as its
        transaction is shown whole, of which it is the record ``ordinal``."""
        transaction = self._transactions.get(record.tx) or self._transaction(record.tx)
        if record.object is None:
            return self._marker_rows(record, log, transaction, commit, ordinal)
        return self._change_rows(record, log, transaction, commit, ordinal, these)

    def is_insert_with_lobs(self, record: store.Record) -> bool:
        """Is it an INSERT into a table with LOBs, whose row pieces are shown together?"""
        if record.op != INSERT or record.object is None or record.flags & s.FLAG_ROLLBACK:
            return False
        thing = self._objects.get((record.object, record.flags)) or self._object(
            record.object, record.flags
        )
        return thing.lobs is not None and thing.is_supported and self._inserts_together

    def _change_rows(
        self,
        record: store.Record,
        log: layout.LogFacts,
        transaction: layout.TransactionFacts,
        commit: _Commit,
        ordinal: int,
        these: slice,
    ) -> Iterator[layout.Row]:
        number, flags = record.object, record.flags
        assert number is not None
        thing = self._objects.get((number, flags)) or self._object(number, flags)
        rollback = flags & s.FLAG_ROLLBACK
        if rollback and self._partial_xids:
            transaction = self._shown(record.tx, transaction, log)
        if not thing.is_supported or (
            rollback and self._unsupported_undo and self._is_undo_of_commit(record)
        ):
            part = record._replace(op=layout.OP_UNSUPPORTED)
            yield self._make(
                part, log, transaction, thing.facts, _UNSUPPORTED, rollback=rollback, row_id=record.row_id,
                info=_NOT_SUPPORTED, status=STATUS_INVALID, commit_scn=commit.scn, commit_time=commit.time, ordinal=ordinal,
            )  # fmt: skip
            return
        for row in self._statements(thing, record, rollback)[these]:
            written = row.op in _XML_WRITES or (
                row.op in _LOB_WRITES and thing.lobs is not None and thing.lobs.is_block
            )
            info = thing.info
            if written:
                info = lob.XML_NOT_EXECUTABLE if row.op in _XML_WRITES else lob.NOT_EXECUTABLE
            refused = _holds(row.redo, self._untranslated)
            part = record
            if row.op != record.op or row.part:
                place = record.position + row.part * _SPREAD
                part = record._replace(op=row.op, position=place)
            for redo, undo, csf in continued(row.redo, row.undo, self._sets.database):
                made = self._make(
                    part,
                    log,
                    transaction,
                    thing.facts if row.is_named else thing.nameless,
                    redo,
                    undo=undo,
                    csf=csf,
                    rollback=rollback,
                    row_id=record.row_id if row.real and thing.has_address else None,
                    info=info,
                    status=STATUS_INVALID if written or refused else thing.status,
                    commit_scn=commit.scn,
                    commit_time=commit.time,
                    ordinal=ordinal + row.closing,
                    ssn=row.ssn,
                )
                yield made if row.is_named else layout.internal(made)

    def _is_undo_of_commit(self, record: store.Record) -> bool:
        assert record.tx is not None
        return store.read_transaction(self._connection, record.tx).end_scn == record.scn

    def _statements(self, thing: _Object, record: store.Record, rollback: int) -> Sequence[LobRow]:
        """The statements of a change."""
        op, row_id = record.op, record.row_id
        assert row_id is not None
        before = None if record.before is None else store.unpack_image(record.before)
        after = None if record.after is None else store.unpack_image(record.after)
        if thing.lobs is not None:
            return thing.lobs.rows(op, rollback == 1, before, after, row_id, self._want_undo)
        redo = thing.statements.redo(op, rollback, before, after, row_id)
        undo = None
        if self._want_undo and not rollback:
            undo = thing.statements.undo(op, before or NOTHING, after or NOTHING, row_id)
        return (LobRow(op=op, redo=redo, undo=undo, part=0),)

    def _marker_rows(
        self,
        record: store.Record,
        log: layout.LogFacts,
        transaction: layout.TransactionFacts,
        commit: _Commit,
        ordinal: int,
    ) -> Iterator[layout.Row]:
        """Rows of a record that changes no row: markers, DDL, internal."""
        alone = commit is _NO_COMMIT
        no_address = False
        if record.op == s.OP_SAVEPOINT_UNDONE:
            if not (self._spurious_rollbacks and log.live and alone):
                return
            record = record._replace(op=s.OP_ROLLBACK)
            transaction = transaction.partial()
            no_address = True
        elif record.op in (s.OP_COMMIT, s.OP_ROLLBACK) and alone:
            full, transaction = transaction, self._shown(record.tx, transaction, log)
            no_address = record.op == s.OP_ROLLBACK and log.live and transaction is not full
        text = _MARKERS.get(record.op)
        thing = layout.NO_OBJECT
        info = None
        if record.op == s.OP_DDL:
            assert record.after is not None
            ddl, owner, table, object_id = store.unpack_facts(record.after)
            text = ddl.encode().rstrip().removesuffix(b";")
            thing = layout.ddl_facts(owner, table, object_id)
            info = _USER_DDL
            transaction = transaction.of_ddl()
        if text is not None and self._style.delimiter:
            text += b";"
        if alone and record.op == s.OP_COMMIT:
            commit = _Commit(layout.NUMBERS[record.scn], layout.DATES[record.time])
        for redo, _undo, csf in continued(text, None, self._sets.database):
            row = self._make(
                record,
                log,
                transaction,
                thing,
                redo,
                csf=csf,
                info=info,
                commit_scn=commit.scn,
                commit_time=commit.time,
                ordinal=ordinal,
            )
            if no_address:
                row = layout.without_address(row)
            yield layout.without_thread(row) if record.flags & s.FLAG_NO_THREAD else row

    def _shown(
        self, tx: int | None, facts: layout.TransactionFacts, log: layout.LogFacts
    ) -> layout.TransactionFacts:
        """The transaction as an undo row or an end shows it.

        LogMiner may not know the sequence of the XID when it reads an online log, or has not read
        the transaction's beginning.
        """
        unsure = log.live or facts.start_scn is None
        if not (self._partial_xids and unsure) or tx is None or tx % self._partial_xid_every:
            return facts
        if len(self._partials) > _TRANSACTIONS_MAX:
            self._partials.clear()
        return self._partials.get(tx) or self._partials.setdefault(tx, facts.partial())

    # --- what records refer to --------------------------------------------------------------------

    def _log_of(self, log_id: int) -> layout.LogFacts | None:
        """Facts of a record's log; whether its file is still there is looked up from time to
        time."""
        if log_id != self._log_id or self._unchecked >= _CHECK_ROWS:
            self._log_facts = self._log(log_id)
            self._log_id, self._unchecked = log_id, 0
        self._unchecked += 1
        return self._log_facts

    def _log(self, log_id: int) -> layout.LogFacts | None:
        """Facts of a log that was added, after a look whether its file is still there; None for
        others."""
        added = self._logs.get(log_id)
        if added is None:
            return None
        self._contents.check_log(self._session, added, self._watch)
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
        resolved, facts = self._contents.resolve(number, packed, self._mining)
        level = Level((flags >> s.LEVEL_SHIFT) & s.LEVEL_MASK)
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
        hides = Wart.UNSUPPORTED_ROWS in self._contents.warts
        is_supported = not (hides and _is_untranslated(store.unpack_table(packed)))
        found = self._objects[number, flags] = _Object(
            statements, lobs, facts, nameless, has_address, is_supported, status, info
        )
        return found


class _Held:
    """The records of one INSERT of several rows into a table with LOBs, whose row pieces are shown
    before all that follows them."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._records: list[tuple[store.Record, layout.LogFacts, _Commit, int]] = []

    def take(
        self, record: store.Record, log: layout.LogFacts, commit: _Commit, ordinal: int
    ) -> Iterator[layout.Row]:
        """The rows that can be shown, now that a record is the next."""
        if not (self._records and self._goes_on(record)):
            yield from self.end()
        if self._reading.is_insert_with_lobs(record):
            self._records.append((record, log, commit, ordinal))
        else:
            yield from self._reading.long_rows(record, log, commit, ordinal)

    def end(self) -> Iterator[layout.Row]:
        """The rows of what is held."""
        held, self._records = self._records, []
        for these in (_PIECE, _WHAT_FOLLOWS):
            for record, log, commit, ordinal in held:
                yield from self._reading.long_rows(record, log, commit, ordinal, these)

    def _goes_on(self, record: store.Record) -> bool:
        last = self._records[-1][0]
        is_next = bool(record.flags & s.FLAG_NEXT)
        return is_next and (record.tx, record.object) == (last.tx, last.object)


def _is_untranslated(table: TableVersion) -> bool:
    """Has a table a name, or a type, that LogMiner does not take?"""
    if any(one.type in _UNTRANSLATED or one.is_nested_table for one in table.columns):
        return True
    names = (table.owner, table.name, *(column.name for column in table.columns))
    return any(len(name.encode()) > _NAME_BYTES_MAX for name in names)


def _holds(redo: bytes | None, texts: frozenset[bytes]) -> bool:
    return bool(texts) and redo is not None and any(text in redo for text in texts)
