"""How does one client's connection live, from CONNECT to the end?"""

from __future__ import annotations

import logging
import socket
import threading
from dataclasses import dataclass

from oracle_embedded.api import Engine, EngineSession, Logon, OracleError
from oracle_embedded.faults import FaultRegistry, LostConnectionFaultError
from oracle_embedded.wire import connect, login
from oracle_embedded.wire.calls import Calls, place_of
from oracle_embedded.wire.packets import BreakReceivedError, ConnectionLostError, Link
from oracle_embedded.wire.replies import CallEnd, end_message
from oracle_embedded.wire.requests import MESSAGE_FUNCTION, Function
from oracle_embedded.wire.ttc import ProtocolError, TtcReader

logger = logging.getLogger(__name__)

_AS_SYSDBA = 0x20
_AS_OTHERS = 0x40 | 0x400000 | 0x1000000 | 0x2000000 | 0x4000000 | 0x8000000
"""AS SYSOPER, SYSASM, SYSBACKUP, SYSDG, SYSKM and SYSRAC, which nobody holds."""
_INTERRUPT_AGAIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class WireSettings:
    """What the server decides about its connections.

    ``sdu`` is the size of the largest packet, 512 to 2097152. A client that has not logged in after
    ``login_seconds`` is disconnected, as by Oracle's INBOUND_CONNECT_TIMEOUT: it may wait for a
    message that never comes. With ``leaves_out_repeats`` a row has no value that the row before has
    as well, as an Oracle server sends rows (message 21). ``field_version`` is the highest that the
    server offers, 7 (as 12.1 does) to 12 (19c).
    """

    sdu: int = 65535
    login_seconds: float = 60.0
    leaves_out_repeats: bool = True
    instance: str = ""
    field_version: int = connect.FIELD_VERSION


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
        """Serve the connection until the client goes, breaks the protocol, or :meth:`close` is
        called."""
        try:
            self._run()
        except ProtocolError as error:
            logger.warning("connection %d closed: %s", self._number, error)
        except (ConnectionLostError, LostConnectionFaultError):
            logger.debug("connection %d ended", self._number)
        except Exception as error:
            # The text of a foreign exception may hold values; its type and place do not.
            logger.error("connection %d closed: %s", self._number, place_of(error))
        finally:
            self._link.close()

    def _run(self) -> None:
        waiting = threading.Timer(self._settings.login_seconds, self._link.close)
        waiting.daemon = True
        waiting.start()
        try:
            opened = self._open()
        finally:
            waiting.cancel()
        if opened is None:
            return
        session, agreement, exchange = opened
        try:
            Calls(
                session,
                self._link,
                self._reader,
                agreement,
                exchange,
                self._faults,
                self._running_changed,
                leaves_out_repeats=self._settings.leaves_out_repeats,
            ).serve()
        finally:
            session.close()

    def _open(self) -> tuple[EngineSession, connect.Agreement, login.Login] | None:
        """Accept and log in; None after a refusal, which the client was told."""
        request = connect.read_connect(self._link)
        refusal = connect.refusal_code(request, frozenset(self._engine.service_names))
        if refusal is not None:
            connect.send_refuse(self._link, refusal)
            return None
        sdu = min(self._settings.sdu, request.sdu or self._settings.sdu)
        connect.send_accept(self._link, sdu)
        self._link.start_reader(f"oracle-embedded-read-{self._number}")
        agreement = connect.negotiate(
            self._link, self._reader, self._engine.character_sets, self._settings.field_version
        )
        opened = self._log_in(request.service or request.sid, agreement)
        return None if opened is None else (opened[0], agreement, opened[1])

    # --- login ---

    def _log_in(
        self, service: str, agreement: connect.Agreement
    ) -> tuple[EngineSession, login.Login] | None:
        """Authenticate; None after a failure, which the client was told."""
        first = self._read_auth(Function.AUTH_PHASE_ONE, agreement)
        user = login.user_name(first.user)
        exchange = login.Login(self._engine.password_of(user, service))
        self._link.send_data(login.parameters_message(exchange.challenge(), first.call_number))
        second = self._read_auth(Function.AUTH_PHASE_TWO, agreement)
        try:
            exchange.verify(second.parameters)
            if second.mode & _AS_OTHERS:
                raise OracleError(1031, "insufficient privileges")
            served = second.parameters.get("PROXY_CLIENT_NAME")
            logon = Logon(
                login.user_name(served) if served else user,
                service=service,
                proxy=user if served else "",
                as_sysdba=bool(second.mode & _AS_SYSDBA),
                program=first.parameters.get("AUTH_PROGRAM_NM", ""),
                machine=first.parameters.get("AUTH_MACHINE", ""),
                os_user=first.parameters.get("AUTH_SID") or "oracle",
                terminal=first.parameters.get("AUTH_TERMINAL") or "unknown",
                driver=second.parameters.get("SESSION_CLIENT_DRIVER_NAME", ""),
            )
            session = self._engine.open_session(logon)
            try:
                new_password = exchange.new_password(second.parameters)
                if new_password is not None:
                    session.set_password(new_password)
                    exchange.password = new_password
                _alter_session(session, second.parameters.get("AUTH_ALTER_SESSION", ""))
                edition = second.parameters.get("AUTH_ORA_EDITION")
                _alter_session(session, f"ALTER SESSION SET EDITION = {edition}" if edition else "")
                for namespace, attribute, value in second.contexts:
                    session.set_context(namespace, {attribute: value})
            except OracleError:
                session.close()
                raise
        except OracleError as error:
            self._link.send_data(end_message(CallEnd(0, second.call_number, error=error)))
            return None
        pairs = login.session_pairs(
            session.session_id,
            session.serial,
            database=session.parameter("DB_NAME"),
            service=service.lower(),
            instance=self._settings.instance or session.instance_name(),
            field_version=agreement.field_version,
        )
        told = [exchange.proof(), *pairs]
        self._link.send_data(login.parameters_message(told, second.call_number))
        return session, exchange

    def _read_auth(self, function: Function, agreement: connect.Agreement) -> login.AuthRequest:
        if self._reader.u8() != MESSAGE_FUNCTION or self._reader.u8() != function:
            raise ProtocolError("login expected")
        return login.read_auth(self._reader, lengths_converted=agreement.lengths_converted)

    # --- break ---

    def _interrupt(self) -> bool:
        """Interrupt the running call; False when there is none (any more).

        The reading thread calls it again and again after a break, since an interrupt may come a
        moment before the engine is ready for it.
        """
        with self._changed:
            if self._running is None:
                return False
            self._running.interrupt()
            self._changed.wait(_INTERRUPT_AGAIN_SECONDS)
            return self._running is not None

    def _running_changed(self, session: EngineSession | None) -> None:
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


def _alter_session(session: EngineSession, text: str) -> None:
    if text:
        session.execute(session.parse(text))
