"""Requests from a list and replies into one, without a socket."""

from __future__ import annotations

import pytest

from oracle_embedded.faults import FaultRegistry
from oracle_embedded.wire.calls import Calls
from oracle_embedded.wire.connect import Agreement
from oracle_embedded.wire.login import Login
from oracle_embedded.wire.packets import ConnectionLostError, Link
from oracle_embedded.wire.ttc import TtcReader
from tests.oracle_embedded.wire.fake_engine import FakeEngine, FakeSession


class Recorder(Link):
    """A link whose requests come from a list and whose replies go to one."""

    def __init__(self, requests: list[bytes]) -> None:
        self.requests = requests
        self.replies: list[bytes] = []
        self.break_seen = self.lost = False

    def next_data(self) -> bytes:
        if not self.requests:
            raise ConnectionLostError
        return self.requests.pop(0)

    def send_data(self, payload: bytes | bytearray) -> None:
        self.replies.append(bytes(payload))


def calls_of(session: FakeSession, link: Link, agreement: Agreement | None = None) -> Calls:
    """What answers the calls of a session that has logged in over this link."""
    reader = TtcReader(link.next_data)
    return Calls(
        session,
        link,
        reader,
        agreement or Agreement(),
        Login("tiger"),
        FaultRegistry(),
        lambda _session: None,
    )


def serve(
    requests: list[bytes], engine: FakeEngine | None = None, agreement: Agreement | None = None
) -> list[bytes]:
    """Replies to requests, each given as the payload of one packet."""
    link = Recorder(requests)
    session = FakeSession(engine or FakeEngine(), 1, "SCOTT", "test")
    calls = calls_of(session, link, agreement)
    with pytest.raises(ConnectionLostError):
        calls.serve()
    return link.replies
