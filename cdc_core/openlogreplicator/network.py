"""What does OpenLogReplicator's network writer hold, and when may it forget?

The server keeps every message until it is confirmed, and sends all that it holds to whoever
continues. So nothing of it is kept here between two windows: each window is received from the
oldest message on, and what was read before is left out. Confirming frees the server, behind the
Delta commits only.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import msgspec

from cdc_core.change_reader import Start
from cdc_core.config import OpenLogReplicatorConfig
from cdc_core.errors import LogsNotReadyError, PreflightError, RedoUnavailableError
from cdc_core.model.scn import Scn
from cdc_core.openlogreplicator.messages import DECODER, Message, not_a_message
from cdc_core.openlogreplicator.protocol import NOTHING_CONFIRMED, Answer, Connection, Reply

_LOG = logging.getLogger(__name__)
_WARN_AT = 0.8


class NetworkMessages:
    """The messages of one server."""

    def __init__(self, how: OpenLogReplicatorConfig) -> None:
        assert how.host is not None
        assert how.source is not None
        self._how, self._host, self.source = how, how.host, how.source

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
                "OpenLogReplicator does not start",
                hint="Its log says why.",
                answer=reply.code.name,
                scn=scn,
            )
        return Scn(reply.scn)

    def cuts(self, low: Scn, now: Start, applied: Scn | None) -> list[Scn]:
        """Upper ends of windows above ``low`` that the server's messages prove, up to the present
        and a little more, about every ``window_bytes_max`` bytes. Lets the server forget what is
        ``applied``.

        It forgets by the beginning of transactions. So the SCN that is confirmed is below the
        beginning of every transaction that commits above ``applied``: of those that were received,
        of those that are open now, and of what comes later. What committed until now must have been
        received.
        """
        rising, received, proved = [low], 0, low
        bound = min(applied or 0, now.mining_low)
        with self._continued() as (server, reply):
            for message, body in self._messages(server, reply):
                received += len(body)
                scn, begins = message.commit_scn, message.begin_scn
                if scn is not None and begins is not None and scn > (applied or 0):
                    bound = min(bound, Scn(begins - 1))
                if message.proves is not None and message.proves > proved:
                    proved = Scn(message.proves)
                    if received >= self._how.window_bytes_max:
                        rising.append(proved)
                        received = 0
                if (message.proves or 0) >= now.snapshot_scn:
                    self._confirm(server, reply, bound)
                    break
        return [*rising[1:], *([proved] if proved > rising[-1] else [])]

    def sent(self, low: Scn) -> Generator[tuple[Message, bytes]]:
        """All messages that the server holds, as lines, and what comes until it is silent.

        Raises:
            RedoUnavailableError: They begin above ``low``, and the server did.
        """
        with self._continued() as (server, reply):
            for message, body in self._messages(server, reply, low):
                yield message, body.replace(b"\n", b" ") + b"\n"

    def _confirm(self, server: Connection, reply: Reply, bound: int) -> None:
        """Let the server forget what began at an SCN or below, unless it has."""
        if bound > 0 and (reply.c_scn in (None, NOTHING_CONFIRMED) or (reply.c_scn or 0) < bound):
            server.confirm(bound)
            server.info()

    def _messages(
        self, server: Connection, reply: Reply, low: Scn | None = None
    ) -> Iterator[tuple[Message, bytes]]:
        """All messages that the server holds, and what comes until it is silent.

        Raises:
            RedoUnavailableError: They begin above ``low``, and the server did.
            PreflightError: The server's queue is full.
        """
        count = 0
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
                "`redolake source skip-gap` continues after the gap.",
                scn=low,
                begins=begins,
                server_begins=reply.scn,
            )

    def _connected(self) -> Connection:
        return Connection(self._host, self._how.port, self.source)

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


def _decoded(body: bytes) -> Message:
    try:
        return DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise not_a_message(str(error)) from error
