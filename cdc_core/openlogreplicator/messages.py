"""What is in a message of OpenLogReplicator, and which options must it have been written with?

One JSON document a message. Positions are SCNs: ``scn`` of the change, ``b_scn`` and ``e_scn`` of
the transaction's begin and commit, ``c_scn`` what a client confirms. Unknown members are ignored:
further options add some.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

from cdc_core.errors import DecodeError, PreflightError
from cdc_core.model.scn import SCN_MAX

Op = Literal["begin", "commit", "c", "u", "d", "ddl", "chkpt"]

FORMAT_LINES = '"format": {"type": "debezium", "timestamp": 8}'
"""What the source's part of OpenLogReplicator's configuration says, so that its messages have all
that a change needs."""
FLAGS_LINE = '"flags": 4128'
"""DDL (32) and checkpoint messages (4096)."""
WRITER_LINE = '"new-line": 1'
CONFIGURE = (
    f"Set {FORMAT_LINES} and {FLAGS_LINE} of OpenLogReplicator's source and {WRITER_LINE} of its "
    "file writer, restart it, and take a new snapshot."
)

SECONDS_MAX = 10**11
"""A time that is more counts something finer than seconds."""

_BINARY_XID = re.compile(r"[0-9a-f]{16}")
_HEX_XID = re.compile(r"0x([0-9a-f]{4})\.([0-9a-f]{3})\.([0-9a-f]{8})")
_PLAIN_XID = re.compile(r"(\d+)\.(\d+)\.(\d+)")


class Payload(msgspec.Struct, gc=False):
    """One element of a message: what happened. Rows and the table's description stay JSON."""

    op: Op
    schema: msgspec.Raw = msgspec.Raw()
    rid: str | None = None
    before: msgspec.Raw = msgspec.Raw()
    after: msgspec.Raw = msgspec.Raw()
    sql: str | None = None


class Message(msgspec.Struct):
    """One document: where it stands, and what happened."""

    payload: tuple[Payload, ...]
    c_scn: int | None = None
    scn: int | None = None
    scns: str | None = None
    b_scn: int | None = None
    b_scns: str | None = None
    e_scn: int | None = None
    e_scns: str | None = None
    tm: int | str | None = None
    b_tm: int | str | None = None
    e_tm: int | str | None = None
    tms: str | None = None
    b_tms: str | None = None
    e_tms: str | None = None
    xid: str | None = None
    xidn: int | None = None
    db: str | None = None
    usr: str | None = None
    rth: int | None = None
    attrs: dict[str, str] | None = None

    @property
    def commit_scn(self) -> int | None:
        """SCN of the transaction's commit; None where the message does not say it."""
        return self.e_scn if self.e_scn is not None else _scn_of(self.e_scns)

    @property
    def begin_scn(self) -> int | None:
        """SCN of the transaction's begin."""
        return self.b_scn if self.b_scn is not None else _scn_of(self.b_scns)

    @property
    def change_scn(self) -> int | None:
        """SCN of the change."""
        return self.scn if self.scn is not None else _scn_of(self.scns)

    @property
    def proves(self) -> int | None:
        """Every transaction that committed at or below this SCN was sent before the message; None
        where it does not say so.

        Transactions are sent in the order of their commits, a checkpoint behind all commits up to
        its ``c_scn``.
        """
        if self.payload and self.payload[0].op == "chkpt":
            return self.c_scn
        scn = self.commit_scn
        return None if scn is None else scn - 1

    @property
    def begins(self) -> int | None:
        """Of the first message: where what it holds began."""
        return self.begin_scn if self.begin_scn is not None else self.c_scn

    def check(self) -> None:
        """Says a message of a transaction where that committed?

        Raises:
            PreflightError: It does not.
        """
        op = self.payload[0].op if self.payload else "chkpt"
        if op not in ("chkpt", "ddl") and self.commit_scn is None:
            raise lacking("e_scn")

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes of the session that began the transaction, as far as they are told."""
        return self.attrs or {}


class TableShape(msgspec.Struct):
    """How a message describes its table; ``columns`` is None where it names none."""

    owner: str | None = None
    table: str | None = None
    obj: int | None = None
    columns: tuple[ColumnShape, ...] | None = None


class ColumnShape(msgspec.Struct):
    """A column in a table's description."""

    name: str


DECODER = msgspec.json.Decoder(Message)
SHAPE_DECODER = msgspec.json.Decoder(TableShape)


def xid_of(message: Message) -> str:
    """The transaction's id as LogMiner's XID has it: 16 hex digits, little-endian.

    Raises:
        PreflightError: The message has none.
    """
    text = (message.xid or "").lower()
    if _BINARY_XID.fullmatch(text):
        return text
    if found := _HEX_XID.fullmatch(text):
        parts = [int(part, 16) for part in found.groups()]
    elif found := _PLAIN_XID.fullmatch(text):
        parts = [int(part) for part in found.groups()]
    elif message.xidn is not None:
        parts = [message.xidn >> 48, message.xidn >> 32 & 0xFFFF, message.xidn & 0xFFFFFFFF]
    else:
        raise lacking("xid")
    undo, slot, sequence = parts
    return (
        undo.to_bytes(2, "little") + slot.to_bytes(2, "little") + sequence.to_bytes(4, "little")
    ).hex()


def moment_of(number: int | str | None, text: str | None) -> datetime | None:
    """A message's time, without a zone; for people, so nothing is decided by it.

    A number counts seconds, milliseconds, microseconds or nanoseconds since 1970: its size says
    which, since one of these puts it between the years 1973 and 5138 alone.
    """
    if isinstance(number, str):
        number, text = None, number
    if number is not None:
        seconds = float(number)
        while abs(seconds) >= SECONDS_MAX:
            seconds /= 1000
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text[:26].rstrip("Z")).replace(tzinfo=None)
    except ValueError:
        return None


def lacking(member: str, **facts: object) -> PreflightError:
    """The refusal of messages that lack what every change needs."""
    return PreflightError(
        f"OpenLogReplicator's messages lack {member}", hint=CONFIGURE, member=member, **facts
    )


def not_a_message(reason: str, **facts: object) -> DecodeError:
    """The refusal of something that is no message; ``reason`` holds no value of a row."""
    return DecodeError(
        f"OpenLogReplicator's output is not one JSON document per line: {reason}",
        hint=f"Redolake reads its JSON format, not protobuf. {CONFIGURE}",
        **facts,
    )


def _scn_of(text: str | None) -> int | None:
    if text is None:
        return None
    scn = int(text, 16)
    return scn if scn <= SCN_MAX else None
