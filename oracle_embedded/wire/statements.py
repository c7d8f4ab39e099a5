"""How are a client's statements run: parse, execute, fetch, with the cursors that stay open between
calls?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from oracle_embedded.api import (
    ColumnMeta,
    EngineSession,
    OracleError,
    OraType,
    Outcome,
    Statement,
    StatementKind,
    Value,
)
from oracle_embedded.faults import LOGGED_OFF, FaultEvent, FaultRegistry
from oracle_embedded.wire.binds import engine_rows, out_row
from oracle_embedded.wire.connect import FIELDS_OF_12_2, Agreement
from oracle_embedded.wire.lobs import LobStore
from oracle_embedded.wire.packets import BreakReceivedError, Link
from oracle_embedded.wire.replies import (
    CURRENT_SCHEMA_KEY,
    EDITION_KEY,
    NO_MORE_ROWS,
    TRANSACTION_OPEN,
    CallEnd,
    directions_message,
    end_message,
    execute_message,
    results_message,
)
from oracle_embedded.wire.requests import Cursor, ExecuteRequest, Option
from oracle_embedded.wire.rows import (
    RowEncoder,
    changed_defines,
    cursor_value,
    describe,
    has_lobs,
    row_header,
)
from oracle_embedded.wire.scroll import ScrollRows
from oracle_embedded.wire.ttc import sb1_bytes, sb_bytes

_CURSORS_MAX = 0xFFFF
_PIECE_ROWS_FIRST = 250
_PIECE_ROWS_FIRST_LOB = 4
_PIECE_ROWS_MAX = 2500
_PIECE_BYTES = 512 * 1024
_SEND_BYTES = 64 * 1024
_IN, _OUT, _IN_OUT = 32, 16, 48


class Statements:
    """The cursors of one session, and the calls on them. Each call sends its whole reply.

    ``call_number`` is the client's number of the call that is answered, by which it recognises the
    answer.

    Args:
        commit: Commits the session's transaction, for clients that let the statement do it.
    """

    def __init__(
        self,
        session: EngineSession,
        link: Link,
        lobs: LobStore,
        agreement: Agreement,
        faults: FaultRegistry,
        commit: Callable[[], None],
        *,
        leaves_out_repeats: bool = True,
    ) -> None:
        self._session = session
        self._link = link
        self._lobs = lobs
        self._scale_bytes = sb_bytes if agreement.scales_counted else sb1_bytes
        self._has_ids = agreement.field_version >= FIELDS_OF_12_2
        self._faults = faults
        self._leaves_out_repeats = leaves_out_repeats
        self._commit = commit
        self._cursors: dict[int, Cursor] = {}
        self._last_id = 0
        self.call_number = 0
        self.is_logged_off = False

    def cursor(self, cursor_id: int) -> Cursor | None:
        """The cursor with an id that the client named."""
        return self._cursors.get(cursor_id)

    def close_cursor(self, cursor_id: int) -> None:
        """Forget a cursor; unknown ids are ignored, as clients may name one twice."""
        cursor = self._cursors.pop(cursor_id, None)
        if cursor is not None:
            cursor.close_rows()

    def cancel_cursor(self, cursor_id: int) -> None:
        """Give up the rows of a cursor, which can be executed again."""
        cursor = self._cursors.get(cursor_id)
        if cursor is not None:
            cursor.close_rows()

    def close(self) -> None:
        """Give up all cursors."""
        for cursor_id in list(self._cursors):
            self.close_cursor(cursor_id)

    # --- execute ---

    def execute(self, request: ExecuteRequest) -> None:
        """Serve an execute in any of its forms."""
        cursor = self._cursor_for(request)
        try:
            self._execute_on(cursor, request)
        except OracleError as error:
            counts = request.row_counts_wanted and execute_message(cursor.id, error.row_counts)
            self._send_end(cursor, before=counts or b"", row_count=error.row_count, error=error)

    def _cursor_for(self, request: ExecuteRequest) -> Cursor:
        """The cursor of a request, with the statement and the binds that the request brings."""
        cursor = self._cursors.get(request.cursor_id)
        if cursor is None and (request.cursor_id or request.sql is None):
            raise OracleError(1001, "invalid cursor")
        if request.sql is not None:
            statement = self._session.parse(request.sql)
            if cursor is None:
                cursor = self._new_cursor()
            cursor.close_rows()
            cursor.sql, cursor.statement = request.sql, statement
            cursor.binds, cursor.returning = [], request.returning
            # What the client takes for PL/SQL decides how it sends binds and reads the reply.
            cursor.is_plsql = statement.kind is StatementKind.PLSQL
            if request.options & Option.EXECUTE and statement.kind is not StatementKind.DML:
                cursor.is_plsql = not request.options & Option.NOT_PLSQL
            if request.options & Option.PLSQL_BIND:
                # JDBC sends values for the binds behind RETURNING as well.
                cursor.returning = frozenset(statement.returning)
            cursor.out_only, cursor.defines, cursor.encoder = frozenset(), [], None
        assert cursor is not None
        if request.binds is not None:
            cursor.binds = [
                replace(bind, shape=self._session.object_shape(bind.oid)) if bind.oid else bind
                for bind in request.binds
            ]
        return cursor

    def _new_cursor(self) -> Cursor:
        if len(self._cursors) >= _CURSORS_MAX:
            raise OracleError(1000, "maximum open cursors exceeded")
        while True:
            self._last_id = self._last_id % _CURSORS_MAX + 1
            if self._last_id not in self._cursors:
                break
        cursor = Cursor(self._last_id)
        self._cursors[cursor.id] = cursor
        return cursor

    def _execute_on(self, cursor: Cursor, request: ExecuteRequest) -> None:
        if request.options & Option.DEFINE:
            cursor.defines = request.defines
            cursor.encoder = None
        statement = cursor.statement
        wanted = Option.FETCH in request.options
        if Option.DEFINE in request.options and cursor.rows is not None:
            # The rows that a define asks for come with its reply: a driver's first data frame
            # consists of them.
            wanted = wanted or request.rows_wanted > 0
        only_fetches = wanted and Option.EXECUTE not in request.options
        # A cursor that a block has opened has no statement: whoever names it wants its rows.
        if statement is None or only_fetches:
            self._fetch_more(cursor, request)
            return
        if not request.options & Option.EXECUTE:
            describes = request.options & Option.DESCRIBE and statement.columns
            before = self._describe(statement.columns) if describes else b""
            self._send_end(cursor, before=before + execute_message(cursor.id))
            return
        if request.scrollable and request.position > 1 and isinstance(cursor.rows, ScrollRows):
            self._fetch_more(cursor, request)
            return
        if len(statement.bind_names) > len(cursor.binds):
            raise OracleError(1008, "not all variables bound")
        self._check_faults(FaultEvent.EXECUTE, cursor)
        cursor.close_rows()
        bind_rows = request.bind_rows
        if not bind_rows and request.executions > 1:
            bind_rows = [[] for _ in range(request.executions)]
        binds = engine_rows(bind_rows, cursor.binds, self._lobs)
        self._give_cursors(cursor, binds)
        settings = self._settings(statement)
        outcome = self._run(cursor, statement, binds, request)
        changed = [
            pair
            for pair, old in zip(self._settings(statement), settings, strict=True)
            if pair != old
        ]
        if outcome.rows is not None:
            self._reply_query(cursor, outcome, request)
            return
        # The driver's documentation: array DML with errors is never committed by the statement
        # itself.
        if request.options & Option.COMMIT and not outcome.batch_errors:
            self._commit()
        if cursor.is_plsql:
            self._reply_plsql(cursor, outcome, max(request.executions, 1), changed)
        else:
            self._reply_dml(cursor, outcome, request, changed)

    def _settings(self, statement: Statement) -> list[tuple[int, str]]:
        """What the client is told of when a statement changes it; queries and DML never do."""
        if statement.kind in (StatementKind.QUERY, StatementKind.DML):
            return []
        return [
            (key, self._session.parameter(name))
            for key, name in ((CURRENT_SCHEMA_KEY, "CURRENT_SCHEMA"), (EDITION_KEY, "EDITION"))
        ]

    def _give_cursors(self, cursor: Cursor, rows: list[list[Value]]) -> None:
        """Let blocks fetch from cursors of the client that are binds."""
        for position, bind in enumerate(cursor.binds):
            if bind.type != OraType.CURSOR:
                continue
            for row in rows:
                given = self._cursors.get(int.from_bytes(row[position] or b"", "big"))
                is_open = given is not None and given.rows is not None
                row[position] = self._session.give_cursor(given.rows) if is_open else None  # type: ignore[union-attr, arg-type]

    def _fetch_more(self, cursor: Cursor, request: ExecuteRequest) -> None:
        if cursor.rows is None:
            raise OracleError(1002, "fetch out of sequence")
        if isinstance(cursor.rows, ScrollRows):
            cursor.rows.seek(request.orientation, request.position)
        self._send_rows(cursor, request.rows_wanted, after=execute_message(cursor.id))

    def _run(
        self,
        cursor: Cursor,
        statement: Statement,
        binds: list[list[Value]],
        request: ExecuteRequest,
    ) -> Outcome:
        return self._session.execute(
            statement,
            binds,
            bind_metas=[bind.meta for bind in cursor.binds],
            batch_errors=bool(request.options & Option.BATCH_ERRORS),
        )

    def _reply_query(self, cursor: Cursor, outcome: Outcome, request: ExecuteRequest) -> None:
        rows = outcome.rows
        assert rows is not None
        if request.scrollable:
            rows = ScrollRows(rows)
        cursor.rows = rows
        if cursor.encoder is not None:
            cursor.encoder.begin()
        columns = tuple(rows.columns)
        before = b""
        if request.sql is not None or not cursor.described:
            before = self._describe(columns)
        elif columns != cursor.described:
            if len(columns) != len(cursor.described):
                # The client reacts by closing the cursor and parsing the statement again.
                cursor.close_rows()
                raise OracleError(1007, "variable not in SELECT list")
            before = self._describe(columns)
            cursor.defines, cursor.encoder = changed_defines(cursor.described, columns), None
        cursor.described = columns
        if not request.options & Option.FETCH or (has_lobs(columns) and not cursor.defines):
            self._send_end(cursor, before=before + execute_message(cursor.id))
            return
        self._send_rows(cursor, request.rows_wanted, before, execute_message(cursor.id))

    def _describe(self, columns: Sequence[ColumnMeta]) -> bytes:
        return describe(columns, scale_bytes=self._scale_bytes, has_ids=self._has_ids)

    def _reply_dml(
        self,
        cursor: Cursor,
        outcome: Outcome,
        request: ExecuteRequest,
        changed: Sequence[tuple[int, str]],
    ) -> None:
        parts = []
        # A client that took the statement for one without RETURNING cannot read what it returns.
        if outcome.out_binds and cursor.returning:
            directions = [
                _OUT if position in cursor.returning else _IN
                for position in range(len(cursor.binds))
            ]
            parts.append(directions_message(directions))
            parts += self._out_rows(cursor, outcome, counted=True)
        counts = (outcome.row_counts or [0]) if request.row_counts_wanted else None
        parts.append(execute_message(cursor.id, counts, changed))
        self._send_end(
            cursor,
            before=b"".join(parts),
            row_count=outcome.row_count,
            rowid=outcome.last_rowid,
            batch_errors=outcome.batch_errors,
            has_warning=outcome.has_warning,
        )

    def _reply_plsql(
        self,
        cursor: Cursor,
        outcome: Outcome,
        executions: int,
        changed: Sequence[tuple[int, str]],
    ) -> None:
        parts = []
        if cursor.binds:
            directions = [_IN] * len(cursor.binds)
            for out in outcome.out_binds:
                directions[out.position] = _IN_OUT if out.also_in else _OUT
            cursor.out_only = frozenset(
                at for at, direction in enumerate(directions) if direction == _OUT
            )
            parts.append(directions_message(directions))
            if outcome.out_binds:
                parts += self._out_rows(cursor, outcome, counted=False)
        if outcome.results:
            cursors = [self._cursor_out(item) for item in outcome.results]
            parts.append(results_message(cursors))
        parts.append(execute_message(cursor.id, settings=changed))
        self._send_end(
            cursor, before=b"".join(parts), row_count=executions, has_warning=outcome.has_warning
        )

    def _cursor_out(self, handle: Value) -> bytes:
        """A query that a block has opened, as a cursor of the client."""
        if handle is None:
            return cursor_value(self._describe(()), 0)
        cursor = self._new_cursor()
        cursor.rows = self._session.take_cursor(handle)
        cursor.described = tuple(cursor.rows.columns)
        return cursor_value(self._describe(cursor.described), cursor.id)

    def _out_rows(self, cursor: Cursor, outcome: Outcome, *, counted: bool) -> list[bytes]:
        outs = sorted(outcome.out_binds, key=lambda out: out.position)
        for out in outs:
            if out.meta.type is OraType.CURSOR:
                out.values = [[self._cursor_out(value) for value in row] for row in out.values]
        kinds = [(cursor.binds[out.position], out.has_handles) for out in outs]
        executions = zip(*(out.values for out in outs), strict=True)
        return [out_row(values, kinds, self._lobs, counted=counted) for values in executions]

    # --- fetch ---

    def fetch(self, cursor_id: int, count: int) -> None:
        """Serve a fetch."""
        cursor = self._cursors.get(cursor_id)
        if cursor is None:
            raise OracleError(1001, "invalid cursor")
        try:
            if cursor.rows is None:
                if not cursor.described:
                    raise OracleError(1002, "fetch out of sequence")
                raise NO_MORE_ROWS
            self._send_rows(cursor, count)
        except OracleError as error:
            self._send_end(cursor, error=error)

    def _send_rows(
        self, cursor: Cursor, count: int, before: bytes = b"", after: bytes = b""
    ) -> None:
        """Send up to ``count`` rows in pieces, so that client and server work at the same time."""
        rows = cursor.rows
        assert rows is not None
        encoder = cursor.encoder
        if encoder is None:
            encoder = RowEncoder(
                rows.columns,
                cursor.defines,
                self._lobs,
                self._cursor_out,
                leaves_out=self._leaves_out_repeats and not isinstance(rows, ScrollRows),
            )
            cursor.encoder = encoder
        pending = [before, row_header(len(rows.columns))]
        pending_bytes = len(before)
        sent = 0
        piece = _PIECE_ROWS_FIRST_LOB if has_lobs(rows.columns) else _PIECE_ROWS_FIRST
        error: OracleError | None = None
        try:
            self._check_faults(FaultEvent.FETCH, cursor)
            while sent < count:
                wanted = min(piece, count - sent)
                batch = rows.fetch(wanted)
                encoded = encoder.encode(batch)
                sent += len(batch)
                pending.append(encoded)
                pending_bytes += len(encoded)
                if len(batch) < wanted:
                    error = NO_MORE_ROWS
                    break
                if pending_bytes >= _SEND_BYTES:
                    self._check_break()
                    self._link.send_data(b"".join(pending))
                    pending, pending_bytes = [], 0
                piece = max(1, min(_PIECE_ROWS_MAX, _PIECE_BYTES * wanted // (len(encoded) + 1)))
        except OracleError as raised:
            error = raised
        row_count = sent
        if isinstance(rows, ScrollRows):
            row_count = rows.position
        elif error is not None:
            cursor.close_rows()
        pending.append(after)
        self._send_end(cursor, before=b"".join(pending), row_count=row_count, error=error)

    # --- ends ---

    def _check_faults(self, event: FaultEvent, cursor: Cursor) -> None:
        link = self._link
        try:
            self._faults.check(event, cursor.sql, wake=lambda: link.break_seen or link.lost)
        except OracleError as error:
            if error.code in LOGGED_OFF:
                self._session.rollback()
                self.is_logged_off = True
            raise

    def _check_break(self) -> None:
        if self._link.break_seen:
            raise BreakReceivedError

    def call_status(self) -> int:
        """What every reply says about the session."""
        return TRANSACTION_OPEN if self._session.in_transaction() else 0

    def _send_end(
        self,
        cursor: Cursor,
        *,
        before: bytes = b"",
        row_count: int = 0,
        rowid: str | None = None,
        error: OracleError | None = None,
        batch_errors: Sequence[tuple[int, OracleError]] = (),
        has_warning: bool = False,
    ) -> None:
        self._check_break()
        end = CallEnd(
            self.call_status(),
            self.call_number,
            cursor.id,
            row_count,
            rowid,
            error,
            batch_errors,
            has_warning,
        )
        self._link.send_data(before + end_message(end))
