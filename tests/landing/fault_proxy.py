"""A door to an S3 endpoint that fails in the middle: it refuses connections, cuts requests or answers after some bytes, keeps silent, or
answers with an error of S3's."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

_NO_LIMIT = 2**63
_METHODS = (b"GET ", b"HEAD ", b"PUT ", b"POST ", b"DELETE ")


class FaultProxy:
    """Listens on loopback and passes bytes on. What is set holds for connections that exist as well."""

    def __init__(self, endpoint: str) -> None:
        there = urlsplit(endpoint)
        self._target = (there.hostname or "", there.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.heal()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def heal(self) -> None:
        """Pass everything on."""
        self.fail()

    def fail(
        self,
        *,
        refuse: bool = False,
        silent: bool = False,
        request: int = _NO_LIMIT,
        answer: int = _NO_LIMIT,
        error: tuple[int, str] | None = None,
        from_request: int = 0,
        cuts: int = _NO_LIMIT,
    ) -> None:
        """Refuse connections, give no answer, cut each connection after so many bytes of what goes there, or of what comes back, or
        answer with an HTTP status and a code of S3's: from now on, or from the nth request from now on; after so many ``cuts`` all is
        well again."""
        self._from, self._requests, self._cuts = from_request, 0, cuts
        self._is_refusing, self._is_silent, self._error = refuse, silent, error
        self._request, self._answer = request, answer

    @property
    def was_met(self) -> bool:
        """Has a request met the fault?"""
        return self._requests >= max(self._from, 1)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                both = (client, server)
                threading.Thread(target=self._pass, args=(client, server, both, True), daemon=True).start()  # fmt: skip
                threading.Thread(target=self._pass, args=(server, client, both, False), daemon=True).start()  # fmt: skip

    def _pass(
        self,
        there: socket.socket,
        here: socket.socket,
        both: tuple[socket.socket, socket.socket],
        is_request: bool,
    ) -> None:
        passed = 0
        with suppress(OSError):
            while data := there.recv(4096):
                if is_request and data.startswith(_METHODS):
                    self._requests += 1
                if self._requests < self._from:
                    here.sendall(data)
                    continue
                if is_request and self._error is not None:
                    there.sendall(_error_answer(*self._error))
                    break
                limit = self._request if is_request else self._answer
                if limit == _NO_LIMIT:
                    passed = 0
                data = data[: limit - passed]
                passed += len(data)
                if self._is_refusing or not data:
                    break
                if self._is_silent and not is_request:
                    continue
                here.sendall(data)
                if passed >= limit:
                    self._cuts -= 1
                    if not self._cuts:
                        self.heal()
                    break
        for one in both:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _error_answer(status: int, code: str) -> bytes:
    body = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


class FaultProcess:
    """The same door in a process of its own, for clients that hold Python's lock while they wait, as delta-rs does."""

    def __init__(self, endpoint: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.landing.fault_proxy", endpoint],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.endpoint = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def heal(self) -> None:
        """Pass everything on."""
        self.fail()

    def fail(self, **fault: Any) -> None:
        """As :meth:`FaultProxy.fail`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(fault) + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def main() -> None:
    """Serve ``ENDPOINT``: say the address, then take one fault a line, and say so."""
    with FaultProxy(sys.argv[1]) as door:
        print(door.endpoint, flush=True)
        for line in sys.stdin:
            door.fail(**json.loads(line))
            print("done", flush=True)


if __name__ == "__main__":
    main()
