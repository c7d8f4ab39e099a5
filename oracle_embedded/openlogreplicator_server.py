"""OpenLogReplicator's network writer, over this database's redo.

It speaks its protocol as version 1.9.0 was observed to, with its defects: a position is the
*beginning* of a transaction, so that CONTINUE from one withholds what began before and committed
later, and loses one message more; CONFIRM releases the beginning of the queue up to the first
message at or above a position; a full queue is silence; CONTINUE on a server that was never started
is answered, and nothing comes. One client at a time.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oracle_embedded.database import OpenDatabase
from oracle_embedded.openlogreplicator import OlrSettings, OpenLogReplicator, dumped

_LENGTH = struct.Struct("<I")
_INFO, _START, _CONTINUE, _CONFIRM = range(4)
_READY, _ALREADY_STARTED, _REPLICATE, _INVALID_DATABASE, _INVALID_COMMAND = 0, 3, 4, 6, 7
_NOTHING = 2**64 - 1
_POLL_SECONDS = 0.02


@dataclass(slots=True)
class _State:
    """What a running server has."""

    begins: int | None = None
    confirmed: int = _NOTHING
    queue: list[dict[str, Any]] = field(default_factory=list)
    sent: int = 0
    filter: tuple[int, int] | None = None
    is_streaming: bool = False
    is_silent: bool = False


class OlrServer:
    """A server on loopback, for a ``with`` block; ``port`` is where it listens.

    Args:
        database: Whose redo.
        name: The name of its source.
        settings: What its messages have.
        queue_size: So many messages it holds.
        port: Where it listens; 0 lets the system choose.
        state: Its state file, from which it goes on where it is there; None keeps none.

    Attributes:
        cut_after: It ends a connection in the middle of the frame behind so many; None for never.
        confirmed: What clients have confirmed …
        saved: … and what its state file has, if it is there.
    """

    def __init__(
        self,
        database: OpenDatabase,
        name: str,
        settings: OlrSettings | None = None,
        *,
        queue_size: int = 65536,
        port: int = 0,
        state: Path | None = None,
    ) -> None:
        made = settings or OlrSettings(headless=False, lost_at_restart=False)
        self._writer = OpenLogReplicator(database, Path(), made)
        self._name, self._queue_size = name, queue_size
        self._state = _State()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.cut_after: int | None = None
        self.confirmed: list[int] = []
        self.saved: int | None = None
        self._file = state
        if state is not None and state.exists():
            self.saved = json.loads(state.read_text())["scn"]
            self.restart()
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> OlrServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._listener.close()
        self._thread.join(timeout=5)

    def restart(self) -> None:
        """End and start again: what committed above the confirmed position comes again; a server
        of which nothing was confirmed has no state, and is ready."""
        with self._lock:
            self._state = _State(begins=self.saved)
            if self.saved is not None:
                self._writer.restart(checkpoint=self.saved, rewound=True)

    def _serve(self) -> None:
        while not self._is_closed:
            ready = select.select([self._listener], [], [], _POLL_SECONDS)[0]
            if not ready:
                continue
            with contextlib.suppress(OSError):
                client, _ = self._listener.accept()
                with client:
                    self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        received = b""
        frames = 0
        self._state.is_streaming = False
        while not self._is_closed:
            if select.select([client], [], [], 0 if self._has_more() else _POLL_SECONDS)[0]:
                data = client.recv(65536)
                if not data:
                    return
                received += data
                while len(received) >= _LENGTH.size:
                    (length,) = _LENGTH.unpack_from(received)
                    if len(received) < _LENGTH.size + length:
                        break
                    body = received[_LENGTH.size : _LENGTH.size + length]
                    received = received[_LENGTH.size + length :]
                    with self._lock:
                        answer = self._answer(_fields(body))
                    if answer is not None:
                        client.sendall(_frame(answer))
            with self._lock:
                message = self._next()
            if message is not None:
                if self.cut_after is not None and frames >= self.cut_after:
                    client.sendall(_frame(dumped(message))[:-3])  # killed in the middle of a frame
                    return
                client.sendall(_frame(dumped(message)))
                frames += 1

    def _answer(self, request: dict[int, Any]) -> bytes | None:
        state, code = self._state, request.get(1, 0)
        if request.get(2, b"").decode() != self._name:
            return _reply(_INVALID_DATABASE)
        if code == _CONFIRM:
            if state.begins is None:
                return _reply(_INVALID_COMMAND)
            self._confirm(request.get(8, 0))
            return None
        if code == _INFO:
            state.is_streaming = False
            if state.begins is None:
                return _reply(_READY)
            return _reply(_REPLICATE, state.begins, state.confirmed)
        if state.is_streaming:
            return _reply(_INVALID_COMMAND)
        if code == _START:
            if state.begins is not None:
                return _reply(_ALREADY_STARTED)
            if 3 not in request:
                return _reply(_INVALID_COMMAND)
            # Transactions that are open at that SCN are lost.
            state.begins = request[3]
            self._writer.restart(checkpoint=state.begins, rewound=True)
            self._writer._withheld_below = state.begins
        elif code == _CONTINUE:
            state.is_silent = state.begins is None
            scn = request.get(8, 0)
            state.filter = None if scn <= 1 else (scn, request.get(9, 0))
            state.sent = 0
        state.is_streaming = True
        return _reply(_REPLICATE, state.begins or 0, state.confirmed)

    def _confirm(self, scn: int) -> None:
        """Release the beginning of the queue."""
        state = self._state
        released = 0
        while released < state.sent and state.queue[released]["c_scn"] < scn:
            released += 1
        del state.queue[:released]
        state.sent -= released
        state.confirmed = self.saved = scn
        if self._file is not None:
            fresh = self._file.with_suffix(".new")
            fresh.write_text(json.dumps({"scn": scn}))
            fresh.replace(self._file)
        self.confirmed.append(scn)

    def _has_more(self) -> bool:
        return self._state.is_streaming and self._state.sent < len(self._state.queue)

    def _next(self) -> dict[str, Any] | None:
        """The next message to send."""
        state = self._state
        if not state.is_streaming or state.is_silent:
            return None
        if state.sent == len(state.queue) < self._queue_size:
            self._fill()
        while state.sent < len(state.queue):
            message = state.queue[state.sent]
            state.sent += 1
            if state.filter is None or not self._is_withheld(message):
                return message
        return None

    def _fill(self) -> None:
        for messages in self._writer.messages():
            is_checkpoint = messages[0]["payload"][0]["op"] == "chkpt"
            last = self._state.queue[-1] if self._state.queue else None
            if is_checkpoint and last is not None and last["c_scn"] == messages[0]["c_scn"]:
                continue
            self._state.queue += messages

    def _is_withheld(self, message: dict[str, Any]) -> bool:
        """Compared by the transaction's beginning, and with an index that is one too low."""
        assert self._state.filter is not None
        scn, index = self._state.filter
        return bool((message["c_scn"], message["c_idx"] - 1) < (scn, index + 1))


def _frame(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


def _reply(code: int, scn: int | None = None, c_scn: int | None = None) -> bytes:
    body = b"" if code == 0 else b"\x08" + _varint(code)
    if scn is not None:
        body += b"\x10" + _varint(scn)
    if c_scn is not None:
        body += b"\x50" + _varint(c_scn) + b"\x58\x00"
    return body


def _varint(number: int) -> bytes:
    made = b""
    while number > 127:
        made += bytes([number % 128 + 128])
        number //= 128
    return made + bytes([number])


def _fields(body: bytes) -> dict[int, Any]:
    found: dict[int, Any] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = body[at]
            at += 1
            value |= (byte % 128) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(body):
        key = number()
        if key % 8 == 0:
            found[key // 8] = number()
        else:
            length = number()
            found[key // 8] = body[at : at + length]
            at += length
    return found
