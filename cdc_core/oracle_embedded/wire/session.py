"""How does one client's connection live, from CONNECT to the end?"""

from __future__ import annotations

import logging
import socket
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from cdc_core.oracle_embedded.api import Engine, EngineSession, OracleError
from cdc_core.oracle_embedded.faults import FaultRegistry, LostConnectionFaultError
from cdc_core.oracle_embedded.wire import connect, login
from cdc_core.oracle_embedded.wire.binds import UnreadableRequestError
from cdc_core.oracle_embedded.wire.lobs import LobStore, read_lob_request
from cdc_core.oracle_embedded.wire.packets import BreakReceivedError, ConnectionLostError, Link
from cdc_core.oracle_embedded.wire.piggybacks import PiggybackActions, read_piggyback
from cdc_core.oracle_embedded.wire.replies import CallEnd, end_message, status_message
from cdc_core.oracle_embedded.wire.requests import Function, read_execute, read_reexecute
from cdc_core.oracle_embedded.wire.statements import Statements
from cdc_core.oracle_embedded.wire.ttc import ProtocolError, TtcReader

logger = logging.getLogger(__name__)

_FUNCTION, _PIGGYBACK = 3, 17
_CANCELLED = OracleError(1013, "user requested cancel of current operation")
_UNSUPPORTED = OracleError(3001, "unimplemented feature")
_SYSDBA_MODE = 0x20
_INTERRUPT_AGAIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class WireSettings:
    """What the server decides about its connections. ``sdu`` is the size of the largest packet, 512 to 2097152."""

    sdu: int = 65535
    instance: str = "FREE"


class WireSession:
    """One client connection. :meth:`run` serves it in the calling thread until it ends.

    Args:
        number: Distinguishes the connection in logs and thread names.
    """

    def __init__(
        self,
        sock: socket.socket,
        engine: Engine,
        faults: FaultRegistry,
        settings: WireSettings,
        number: int,
    ) -> None:
        self._engine = engine
        self._faults = faults
        self._settings = settings
        self._number = number
        self._link = Link(sock, self._interrupt)
        self._reader = TtcReader(self._link.next_data)
        self._changed = threading.Condition()
        self._running: EngineSession | None = None

    def close(self) -> None:
        """End the connection, from any thread."""
        self._link.close()

    def run(self) -> None:
        """Serve the connection until the client goes, breaks the protocol, or :meth:`close` is called."""
        try:
            self._run()
        except ProtocolError as error:
            logger.warning("connection %d closed: %s", self._number, error)
        except (ConnectionLostError, LostConnectionFaultError):
            logger.debug("connection %d ended", self._number)
        finally:
            self._link.close()

    def _run(self) -> None:
        request = connect.read_connect(self._link)
        services = frozenset(name.upper() for name in self._engine.service_names)
        refusal = connect.refusal_code(request, services)
        if refusal is not None:
            connect.send_refuse(self._link, refusal)
            return
        connect.send_accept(self._link, self._settings.sdu)
        self._link.start_reader(f"oracle-embedded-read-{self._number}")
        connect.negotiate(self._link, self._reader)
        session = self._log_in(request.service or request.sid)
        if session is None:
            return
        try:
            _Calls(self, session).serve()
        finally:
            session.close()

    # --- login ---

    def _log_in(self, service: str) -> EngineSession | None:
        """Authenticate; None after a failure, which the client was told."""
        first = self._read_auth(Function.AUTH_PHASE_ONE)
        user = login.user_name(first.user)
        exchange = login.Login(self._engine.password_of(user))
        self._link.send_data(login.parameters_message(exchange.challenge()))
        second = self._read_auth(Function.AUTH_PHASE_TWO)
        try:
            exchange.verify(second.parameters)
            _refuse_unsupported(user, second)
            session = self._engine.open_session(
                user,
                program=first.parameters.get("AUTH_PROGRAM_NM", ""),
                machine=first.parameters.get("AUTH_MACHINE", ""),
            )
            try:
                _alter_session(session, second.parameters.get("AUTH_ALTER_SESSION", ""))
            except OracleError:
                session.close()
                raise
        except OracleError as error:
            self._link.send_data(end_message(CallEnd(0, error=error)))
            return None
        pairs = login.session_pairs(
            session.session_id, session.serial, service, self._settings.instance
        )
        self._link.send_data(login.parameters_message([exchange.proof(), *pairs]))
        return session

    def _read_auth(self, function: Function) -> login.AuthRequest:
        if self._reader.u8() != _FUNCTION or self._reader.u8() != function:
            raise ProtocolError("login expected")
        self._reader.u8()
        return login.read_auth(self._reader)

    # --- break ---

    def _interrupt(self) -> bool:
        """Interrupt the running call; False when there is none (any more).

        The reading thread calls it again and again after a break, since an interrupt may come a moment before the
        engine is ready for it.
        """
        with self._changed:
            if self._running is None:
                return False
            self._running.interrupt()
            self._changed.wait(_INTERRUPT_AGAIN_SECONDS)
            return self._running is not None

    def running(self, session: EngineSession | None) -> None:
        """Say which session works for this connection at the moment, if any.

        Raises:
            BreakReceivedError: The call was broken off before it began.
            ConnectionLostError: The client is gone.
        """
        with self._changed:
            self._running = session
            self._changed.notify_all()
        if session is not None and self._link.break_seen:
            raise BreakReceivedError
        if session is not None and self._link.lost:
            raise ConnectionLostError

    @property
    def link(self) -> Link:
        """The connection's packets."""
        return self._link

    @property
    def reader(self) -> TtcReader:
        """The connection's requests."""
        return self._reader

    @property
    def faults(self) -> FaultRegistry:
        """The faults that may happen to the connection."""
        return self._faults


def _refuse_unsupported(user: str, request: login.AuthRequest) -> None:
    if request.mode & _SYSDBA_MODE and user != "SYS":
        raise OracleError(1031, "insufficient privileges")
    if "PROXY_CLIENT_NAME" in request.parameters:
        raise OracleError(28150, "proxy not authorized to connect as client")
    if "AUTH_NEWPASSWORD" in request.parameters:
        raise _UNSUPPORTED


def _alter_session(session: EngineSession, text: str) -> None:
    if text:
        session.execute(session.parse(text))


class _Calls:
    """The calls of a client that has logged in."""

    def __init__(self, owner: WireSession, session: EngineSession) -> None:
        self._owner = owner
        self._session = session
        self._link = owner.link
        self._reader = owner.reader
        self._lobs = LobStore(session)
        self._statements = Statements(session, self._link, self._lobs, owner.faults, self._commit)
        self._piggybacks = PiggybackActions(
            self._statements.close_cursor, self._lobs.free, self._set_attribute
        )
        self._piggyback_error: OracleError | None = None
        self._after_piggyback = False
        self._calls: dict[int, Callable[[], None]] = {
            Function.EXECUTE: self._execute,
            Function.REEXECUTE: lambda: self._reexecute(fetch=False),
            Function.REEXECUTE_AND_FETCH: lambda: self._reexecute(fetch=True),
            Function.FETCH: self._fetch,
            Function.LOB_OPERATION: self._lob_operation,
            Function.COMMIT: lambda: self._end_transaction(self._commit),
            Function.ROLLBACK: lambda: self._end_transaction(self._rollback),
            Function.PING: lambda: self._end_transaction(lambda: None),
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
                read_piggyback(self._reader, self._piggybacks)
                return True
            if message == 0 and self._after_piggyback:
                # What is left of client attributes that were set to an empty text.
                return True
            self._after_piggyback = False
            if message != _FUNCTION:
                raise ProtocolError(f"message {message} is not expected from a client")
            function = self._reader.u8()
            self._reader.u8()
            if function == Function.LOGOFF:
                self._session.rollback()
                self._link.send_data(status_message(0))
                return False
            self._serve_function(function)
        except BreakReceivedError:
            self._owner.running(None)
            self._link.answer_break()
            self._reader.discard()
            self._send_error(_CANCELLED)
        return True

    def _serve_function(self, function: int) -> None:
        try:
            self._owner.running(self._session)
            call = self._calls.get(function)
            if call is None:
                raise UnreadableRequestError
            call()
        except OracleError as error:
            self._send_error(error)
        except UnreadableRequestError:
            self._reader.discard()
            self._send_error(_UNSUPPORTED)
        except (BreakReceivedError, ConnectionLostError, LostConnectionFaultError, ProtocolError):
            raise
        except Exception as error:
            self._send_error(_internal_error(error))
        finally:
            self._owner.running(None)

    def _send_error(self, error: OracleError) -> None:
        if self._link.break_seen:
            raise BreakReceivedError
        end = CallEnd(self._statements.call_status(), error=error)
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

    # --- functions ---

    def _execute(self) -> None:
        request = read_execute(self._reader, self._statements.cursor)
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

    def _end_transaction(self, end: Callable[[], None]) -> None:
        self._check_piggyback()
        end()
        self._send_status()

    def _commit(self) -> None:
        self._session.commit()
        self._lobs.forget_contents()

    def _rollback(self) -> None:
        self._session.rollback()
        self._lobs.forget_contents()

    def _send_status(self, before: bytes = b"") -> None:
        if self._link.break_seen:
            raise BreakReceivedError
        self._link.send_data(before + status_message(self._statements.call_status()))


def _internal_error(error: Exception) -> OracleError:
    """An error that names the place of a bug, but no values: texts of foreign exceptions may hold some."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} in {frame.name}, line {frame.lineno}"
    logger.error("internal error: %s", place)
    return OracleError(604, f"error occurred at recursive SQL level 1: internal error {place}")
