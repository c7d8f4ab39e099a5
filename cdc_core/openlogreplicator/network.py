"""What does OpenLogReplicator's network writer hold, and when may it forget?

The server keeps every message until it is confirmed, and sends all that it holds to whoever
continues. So nothing of it is kept here between two windows: each window is received from the
oldest message on, and what was read before is left out. Confirming frees the server, behind the
Delta commits only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from cdc_core.capture.logs import positions
from cdc_core.config import OpenLogReplicatorConfig
from cdc_core.errors import LogsNotReadyError, PreflightError, RedoUnavailableError
from cdc_core.landing.store import LandingStore
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.openlogreplicator.events import MessageRows, decoded_messages
from cdc_core.openlogreplicator.messages import DECODER, Message, not_a_message
from cdc_core.openlogreplicator.protocol import NOTHING_CONFIRMED, Answer, Connection, Reply
from cdc_core.oracle.session import OracleSession

_LOG = logging.getLogger(__name__)
_WARN_AT = 0.8
_BATCH_BYTES = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """A window ends in the messages of a server, which sends them again: nothing more is to be
    known."""

    source: str

    def as_json(self) -> dict[str, str]:
        """For a window's manifest."""
        return {"source": self.source}


@dataclass(frozen=True, slots=True)
class ReceivedBatch:
    """Some messages of a server."""

    records: Sequence[Message | MessageRows]
    source: str

    def place(self, at: int) -> ServerPlace:  # noqa: ARG002 - the server sends all again
        """See :meth:`Batch.place`."""
        return ServerPlace(self.source)


class NetworkMessages:
    """The messages of one server."""

    def __init__(self, how: OpenLogReplicatorConfig) -> None:
        assert how.host is not None
        assert how.source is not None
        self._how, self._host, self._source = how, how.host, how.source

    def info(self) -> Reply:
        """What the server is doing."""
        with self._connected() as server:
            return server.info()

    def begins_at(self, scn: Scn, *, may_start: bool) -> Scn:
        """Where the server's data begins; a server that has not begun begins at an SCN, if it may.

        Raises:
            LogsNotReadyError: It does not begin.
        """
        with self._connected() as server:
            reply = server.info()
            if reply.code is Answer.READY and may_start:
                reply = server.start(scn)
        if reply.code is not Answer.REPLICATE or reply.scn is None:
            raise LogsNotReadyError(
                "OpenLogReplicator does not begin",
                hint="Its log says why.",
                answer=reply.code.name,
                scn=scn,
            )
        return Scn(reply.scn)

    def cuts(self, low: Scn, enough: Scn) -> list[Scn]:
        """Upper ends of windows above ``low`` that the server's messages prove, up to ``enough``
        and a little more, about every ``window_bytes_max`` bytes."""
        rising, received, last = [low], 0, low
        for message, body in self._bodies():
            received += len(body)
            if message.proves is not None and message.proves > last:
                last = Scn(message.proves)
                if received >= self._how.window_bytes_max:
                    rising.append(last)
                    received = 0
            if last >= enough:
                break
        return [*rising[1:], *([last] if last > rising[-1] else [])]

    def spool(self, window: ScnWindow, landing: LandingStore) -> Spool:
        """All messages up to the one that proves a window complete, in a file without a name.

        Raises:
            LogsNotReadyError: The server does not send that one.
        """
        file = landing.scratch()
        try:
            for message, body in self._bodies(window.scn_low):
                file.write(body.replace(b"\n", b" ") + b"\n")
                if message.proves is not None and message.proves >= window.scn_high:
                    return Spool(file, self._source)
        except BaseException:
            file.close()
            raise
        file.close()
        raise LogsNotReadyError(
            "OpenLogReplicator's messages do not reach the end of the window yet",
            hint="The window is captured with the next run.",
            window=window.key,
        )

    def confirm(self, session: OracleSession, applied: Scn) -> Scn | None:
        """Let the server forget what is applied; up to which SCN, None where nothing can be said.

        The server forgets by the beginning of transactions. So the SCN is below the beginning of
        every transaction that commits above ``applied``: of those that were received, of those that
        are open now, and of what comes later. What committed until now must have been received.
        """
        now = positions.read_start(session)
        bound = min(applied, now.mining_low)
        with self._continued() as (server, reply):
            if reply.c_scn not in (None, NOTHING_CONFIRMED) and (reply.c_scn or 0) >= bound:
                return None
            proved = 0
            for body in server.messages(self._how.idle_seconds):
                message = _decoded(body)
                scn = message.commit_scn
                if scn is not None and scn > applied and message.begin_scn is not None:
                    bound = min(bound, Scn(message.begin_scn - 1))
                proved = max(proved, message.proves or 0)
                if proved >= now.snapshot_scn:
                    break
            if proved < now.snapshot_scn:
                return None
            server.confirm(bound)
            server.info()
        return bound

    def _bodies(self, low: Scn | None = None) -> Iterator[tuple[Message, bytes]]:
        """All messages that the server holds, and what comes until it is silent.

        Raises:
            RedoUnavailableError: They begin above ``low``, and the server did.
            PreflightError: The server's queue is full.
        """
        count = 0
        with self._continued() as (server, reply):
            for body in server.messages(self._how.idle_seconds):
                message = _decoded(body)
                message.check()
                if count == 0 and low is not None and (message.proves or 0) > low:
                    self._refuse_gap(low, reply, message.proves)
                count += 1
                yield message, body
        if count >= self._how.queue_size:
            raise PreflightError(
                "OpenLogReplicator's queue is full: it sends nothing until messages are confirmed, and they do not prove a window complete",
                hint='Raise "queue-size" of its writer above the number of messages of the longest transaction, and capture.queue_size to '
                "the same number. Then restart it.",
                messages=count,
            )
        if count >= _WARN_AT * self._how.queue_size:
            _LOG.warning(
                "OpenLogReplicator's queue is nearly full messages=%d queue_size=%d",
                count, self._how.queue_size,
            )  # fmt: skip

    def _refuse_gap(self, low: Scn, reply: Reply, begins: int | None) -> None:
        if reply.scn is not None and reply.scn > low:
            raise RedoUnavailableError(
                "OpenLogReplicator's messages begin above the SCN that is read next",
                hint="Put `scn` in its checkpoint file back below that SCN and restart it. If it cannot, "
                "`redolake source skip-gap` reads the tables again.",
                scn=low,
                begins=begins,
                server_begins=reply.scn,
            )

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with Connection(self._host, self._how.port, self._source) as server:
            yield server

    @contextmanager
    def _continued(self) -> Iterator[tuple[Connection, Reply]]:
        """A connection on which messages come, and what the server said of itself.

        Raises:
            RedoUnavailableError: The server has not begun: it lost its state.
        """
        with self._connected() as server:
            reply = server.info()
            if reply.code is Answer.READY:
                raise RedoUnavailableError(
                    "OpenLogReplicator has lost its state: it would begin at a new SCN, and transactions that are open "
                    "would come in part",
                    hint="Restore its state folder and restart it. If it is gone, start the source over under another name.",
                )
            server.resume()
            yield server, reply


class Spool:
    """Received messages in a file; read as often as one likes, then closed."""

    def __init__(self, file: BinaryIO, source: str) -> None:
        self._file, self._source = file, source

    def batches(self) -> Iterator[ReceivedBatch]:
        """The messages from the first on."""
        at = 0
        while True:
            self._file.seek(at)
            lines = self._file.read(_BATCH_BYTES) + self._file.readline()
            if not lines:
                return
            at = self._file.tell()
            yield ReceivedBatch(decoded_messages(lines, _decoded).records, self._source)

    def close(self) -> None:
        """Give the file up."""
        self._file.close()


def _decoded(body: bytes) -> Message:
    try:
        return DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise not_a_message(str(error)) from error
