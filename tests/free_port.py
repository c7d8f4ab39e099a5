"""Which port can a server be told to listen on, if it cannot choose one and say so?"""

from __future__ import annotations

import socket
from random import SystemRandom

_PORTS = range(15_000, 32_000)
"""Below those that Linux gives to clients, 32,768 to 60,999: no connection of another test takes the
port before the server does, which may need a minute to start."""


def free_port(host: str = "127.0.0.1") -> int:
    """A port on which nobody listens."""
    while True:
        port = SystemRandom().choice(_PORTS)
        try:
            socket.create_server((host, port)).close()
        except OSError:
            continue
        return port
