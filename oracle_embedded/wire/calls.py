"""What does the server do for each call of a client that has logged in?"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from oracle_embedded.api import BANNER, EngineSession, OracleError
from oracle_embedded.faults import FaultEvent, FaultRegistry, LostConnectionFaultError
from oracle_embedded.wire import login
from oracle_embedded.wire.binds import UnreadableRequestError
from oracle_embedded.wire.connect import FIELDS_OF_18_NEXT, Agreement
from oracle_embedded.wire.direct_path import DirectPath, read_operation, read_prepare, read_stream
from oracle_embedded.wire.lobs import LobStore, read_lob_request
from oracle_embedded.wire.packets import BreakReceivedError, ConnectionLostError, Link
from oracle_embedded.wire.piggybacks import PiggybackActions, read_piggyback
from oracle_embedded.wire.replies import CallEnd, end_message, status_message, version_message
from oracle_embedded.wire.requests import (
    MESSAGE_FUNCTION,
    Function,
    read_execute,
    read_reexecute,
)
from oracle_embedded.wire.statements import Statements
from oracle_embedded.wire.table_description import read_description_request, table_description
from oracle_embedded.wire.ttc import ProtocolError, TtcReader

logger = logging.getLogger(__name__)

UNSUPPORTED = OracleError(3001, "unimplemented feature")
_PIGGYBACK = 17
_CANCELLED = OracleError(1013, "user requested cancel of current operation")


class Calls:
    """Answers the calls of a client that has logged in.

    Args:
        running: Is told which session works at the moment, and raises when the call was broken off
            before it began.
    """

    def __init__(
        self,
        session: EngineSession,
        link: Link,
        reader: TtcReader,
        agreement: Agreement,
        exchange: login.Login,
        faults: FaultRegistry,
        running: Callable[[EngineSession | None], None],
        *,
        leaves_out_repeats: bool = True,
    ) -> None:
        self._session = session
        self._link = link
        self._reader = reader
        self._agreement = agreement
        self._exchange = exchange
        self._running = running
        self._faults = faults
        self._lobs = LobStore(session)
        self._statements = Statements(
            session,
            self._link,
            self._lobs,
            agreement,
            faults,
            self._commit,
            leaves_out_repeats=leaves_out_repeats,
        )
        self._direct_path = DirectPath(session)
        self._piggybacks = PiggybackActions(
            self._statements.close_cursor,
            self._statements.cancel_cursor,
            self._lobs.free,
            self._set_attribute,
            self._set_context,
        )
        self._piggyback_error: OracleError | None = None
        self._after_piggyback = False
        self._calls: dict[int, Callable[[], None]] = {
            Function.EXECUTE: self._execute,
            Function.REEXECUTE: lambda: self._reexecute(fetch=False),
            Function.REEXECUTE_AND_FETCH: lambda: self._reexecute(fetch=True),
            Function.FETCH: self._fetch,
            Function.LOB_OPERATION: self._lob_operation,
            Function.AUTH_PHASE_TWO: self._change_password,
            Function.DESCRIBE_TABLE: self._describe_table,
            Function.DIRECT_PATH_PREPARE: self._direct_path_prepare,
            Function.DIRECT_PATH_STREAM: self._direct_path_stream,
            Function.DIRECT_PATH_END: self._direct_path_end,
            Function.COMMIT: lambda: self._end_transaction(self._commit),
            Function.ROLLBACK: lambda: self._end_transaction(self._rollback),
            Function.VERSION: self._version,
            Function.PING: lambda: self._end_transaction(self._session.ping),
        }

    def serve(self) -> None:
        """Answer requests until the client logs off or is gone."""
        try:
            while self._serve_one():
                pass
        finally:
            self._statements.close()

    def _serve_one(self) -> bool:
        try:
            message = self._reader.u8()
            if message == _PIGGYBACK:
                self._after_piggyback = True
                read_piggyback(
                    self._reader,
                    self._piggybacks,
                    lengths_converted=self._agreement.lengths_converted,
                )
                return True
            if message == 0 and self._after_piggyback:
                # What is left of client attributes that were set to an empty text.
                return True
            self._after_piggyback = False
            if message != MESSAGE_FUNCTION:
                raise ProtocolError(f"message {message} is not expected from a client")
            function = self._reader.u8()
            self._statements.call_number = self._reader.u8()
            self._session.round_trips += 1
            if function == Function.LOGOFF:
                self._session.rollback()
                self._link.send_data(status_message(0))
                return False
            self._serve_function(function)
        except BreakReceivedError:
            self._running(None)
            self._link.answer_break()
            self._reader.discard()
            self._send_error(_CANCELLED)
        return True

    def _serve_function(self, function: int) -> None:
        try:
            self._running(self._session)
            if self._statements.is_logged_off:
                self._reader.discard()
                raise OracleError(1012, "not logged on")
            call = self._calls.get(function)
            if call is None:
                raise UnreadableRequestError
            call()
        except OracleError as error:
            self._send_error(error)
        except UnreadableRequestError:
            self._reader.discard()
            self._send_error(UNSUPPORTED)
        except (BreakReceivedError, ConnectionLostError, LostConnectionFaultError, ProtocolError):
            raise
        except Exception as error:
            self._send_error(_internal_error(error))
        finally:
            self._running(None)

    def _send_error(self, error: OracleError) -> None:
        if self._link.break_seen:
            raise BreakReceivedError
        end = CallEnd(self._statements.call_status(), self._statements.call_number, error=error)
        self._link.send_data(end_message(end))

    def _check_piggyback(self) -> None:
        """A piggyback has no reply of its own: its error is that of the call which it came with."""
        error, self._piggyback_error = self._piggyback_error, None
        if error is not None:
            raise error

    def _set_attribute(self, name: str, value: str | None) -> None:
        try:
            self._session.set_attribute(name, value)
        except OracleError as error:
            self._piggyback_error = error

    def _set_context(self, namespace: str, values: Mapping[str, str]) -> None:
        try:
            self._session.set_context(namespace, values)
        except OracleError as error:
            self._piggyback_error = error

    # --- functions ---

    def _execute(self) -> None:
        request = read_execute(self._reader, self._statements.cursor, self._agreement)
        self._check_piggyback()
        self._statements.execute(request)

    def _reexecute(self, *, fetch: bool) -> None:
        request = read_reexecute(self._reader, self._statements.cursor, fetch=fetch)
        self._check_piggyback()
        self._statements.execute(request)

    def _fetch(self) -> None:
        cursor_id, count = self._reader.ub(), self._reader.ub()
        self._check_piggyback()
        self._statements.fetch(cursor_id, count)

    def _lob_operation(self) -> None:
        request = read_lob_request(self._reader)
        self._check_piggyback()
        reply = self._lobs.perform(request)
        self._send_status(reply)

    def _change_password(self) -> None:
        """Another password, asked for inside a session, which proves the old one as the log-in
        did."""
        request = login.read_auth(
            self._reader,
            lengths_converted=self._agreement.lengths_converted,
            call_number=self._statements.call_number,
        )
        self._check_piggyback()
        user = login.user_name(request.user) if request.user else self._session.username
        is_own = user == self._session.username
        wanted = self._exchange.new_password(request.parameters, proves_old=is_own)
        if wanted is not None:
            self._session.set_password(wanted, user)
            if is_own:
                self._exchange.password = wanted
        self._send_status(b"\x08\x00")

    def _describe_table(self) -> None:
        name = read_description_request(self._reader)
        self._check_piggyback()
        columns = self._session.parse(f"SELECT * FROM {name}").columns
        self._send_status(table_description(columns))

    def _direct_path_prepare(self) -> None:
        request = read_prepare(self._reader)
        self._check_piggyback()
        self._send_status(self._direct_path.prepare(request))

    def _direct_path_stream(self) -> None:
        cursor_id, pieces = read_stream(self._reader)
        self._check_piggyback()
        self._send_status(self._direct_path.load(cursor_id, pieces))

    def _direct_path_end(self) -> None:
        cursor_id, operation = read_operation(self._reader)
        self._check_piggyback()
        reply = self._direct_path.end(cursor_id, operation)
        self._lobs.forget_contents()
        self._send_status(reply)

    def _end_transaction(self, end: Callable[[], None]) -> None:
        self._check_piggyback()
        end()
        self._send_status()

    def _version(self) -> None:
        self._reader.u8()
        self._reader.ub()
        self._reader.raw(2)
        if self._agreement.field_version >= FIELDS_OF_18_NEXT:
            self._reader.ub()
        self._check_piggyback()
        self._send_status(
            version_message(
                BANNER,
                login.server_version(self._agreement.field_version),
                lengths_converted=self._agreement.lengths_converted,
            )
        )

    def _commit(self) -> None:
        self._faults.check(FaultEvent.COMMIT, "")
        self._session.commit()
        self._lobs.forget_contents()
        self._faults.check(FaultEvent.COMMITTED, "")

    def _rollback(self) -> None:
        self._session.rollback()
        self._lobs.forget_contents()

    def _send_status(self, before: bytes = b"") -> None:
        if self._link.break_seen:
            raise BreakReceivedError
        self._link.send_data(before + status_message(self._statements.call_status()))


def place_of(error: Exception) -> str:
    """Type and place of an exception, without its text."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name}, {Path(frame.filename).name}:{frame.lineno}"


def _internal_error(error: Exception) -> OracleError:
    """An error that names the place of a bug, but no values: texts of foreign exceptions may hold
    some."""
    place = place_of(error)
    logger.error("internal error: %s", place)
    return OracleError(604, f"error occurred at recursive SQL level 1: internal error {place}")
