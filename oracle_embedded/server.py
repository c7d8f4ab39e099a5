"""How does the embedded Oracle listen for clients?

It listens on loopback only: it holds clear passwords and is not for production data.
"""

from __future__ import annotations

import ipaddress
import itertools
import logging
import socket
import threading

from oracle_embedded.api import Engine
from oracle_embedded.faults import FaultRegistry
from oracle_embedded.wire.session import WireSession, WireSettings

logger = logging.getLogger(__name__)

_STOP_SECONDS = 10.0
_SDU_MIN, _SDU_MAX = 512, 2 * 1024 * 1024


class EmbeddedServer:
    """Serves one engine over TCP, two threads per connection.

    Args:
        host: A loopback address.
        port: 0 lets the system choose; :attr:`port` tells after :meth:`start`.
        faults: Failures to show on purpose; none by default.

    Raises:
        ValueError: The host is not loopback, or the packet size is out of range.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: FaultRegistry | None = None,
        settings: WireSettings | None = None,
    ) -> None:
        if not ipaddress.ip_address(host).is_loopback:
            raise ValueError(f"{host} is not a loopback address; the embedded Oracle stays on it")
        self._settings = settings or WireSettings()
        if not _SDU_MIN <= self._settings.sdu <= _SDU_MAX:
            raise ValueError(f"sdu must be {_SDU_MIN} to {_SDU_MAX}")
        self._engine = engine
        self._host = host
        self._wanted_port = port
        self.faults = faults or FaultRegistry()
        self._listener: socket.socket | None = None
        self._accepting: threading.Thread | None = None
        self._lock = threading.Lock()
        self._open: dict[WireSession, threading.Thread] = {}
        self._numbers = itertools.count(1)

    @property
    def port(self) -> int:
        """The port that clients connect to.

        Raises:
            RuntimeError: The server is not started.
        """
        if self._listener is None:
            raise RuntimeError("the server is not started")
        return int(self._listener.getsockname()[1])

    @property
    def dsn(self) -> str:
        """Easy Connect string of the first service."""
        return f"{self._host}:{self.port}/{self._engine.service_names[0]}"

    def start(self) -> None:
        """Listen. Returns as soon as clients can connect."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        self._listener = socket.create_server((self._host, self._wanted_port), family=family)
        self._accepting = threading.Thread(
            target=self._accept_forever,
            args=(self._listener,),
            name="oracle-embedded-accept",
            daemon=True,
        )
        self._accepting.start()
        logger.info(
            "embedded Oracle listens on %s:%d, not for production data", self._host, self.port
        )

    def _accept_forever(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number = next(self._numbers)
            session = WireSession(client, self._engine, self.faults, self._settings, number)
            thread = threading.Thread(
                target=self._serve, args=(session,), name=f"oracle-embedded-{number}", daemon=True
            )
            with self._lock:
                if self._listener is None:
                    session.close()
                    return
                self._open[session] = thread
                thread.start()  # under the lock: who stops the server joins threads that run

    def _serve(self, session: WireSession) -> None:
        try:
            session.run()
        finally:
            with self._lock:
                self._open.pop(session, None)

    @property
    def connection_count(self) -> int:
        """Connections that are open at the moment."""
        with self._lock:
            return len(self._open)

    def stop(self) -> None:
        """Stop listening, end all connections and roll back their transactions. May be called
        twice.

        The engine stays open: it belongs to the caller.
        """
        with self._lock:
            listener, self._listener = self._listener, None
            connections = list(self._open.items())
        if listener is None:
            return
        try:
            listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            logger.debug("listener had no connection to shut down")
        listener.close()
        for session, _ in connections:
            session.close()
        for _, thread in connections:
            thread.join(_STOP_SECONDS)
        if self._accepting is not None:
            self._accepting.join(_STOP_SECONDS)

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
