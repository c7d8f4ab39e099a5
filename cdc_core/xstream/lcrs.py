"""What is in a logical change record, and how is it written as one line of JSON?

Values are the bytes of Oracle's own internal form, in hexadecimal digits, by the number of their
type. A position is a string of bytes: positions are compared as a whole, a prefix sorts first.
``docs/reference/lcr-files.md`` describes the form for others who write it.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

import msgspec

from cdc_core.errors import DecodeError, PreflightError

Kind = Literal["start", "row", "ddl", "low"]

LOB_DATA, EMPTY_LOB, LAST_CHUNK, AL16UTF16 = 0x01, 0x04, 0x08, 0x10
XML_DIFF, ENCRYPTED, UPDATED, LONG_STRING, OBJECT_XML = 0x80, 0x100, 0x200, 0x400, 0x800
"""Flags of a column or a chunk."""
KEY_ONLY, IN_FLIGHT = 0x01, 0x20
"""Flags of a row LCR: it has the row's identity alone; its transaction began before the outbound
server did."""

FIRST_VERSION_BYTES = 29
EXTRA_ATTRIBUTE = (
    "As the XStream administrator run `DBMS_CAPTURE_ADM.INCLUDE_EXTRA_ATTRIBUTE(capture_name, "
    "'row_id', TRUE)`; deploy/oracle/xstream.sql has it for all attributes."
)

_XID = re.compile(r"(\d+)\.(\d+)\.(\d+)")


class Value(msgspec.Struct, gc=False, omit_defaults=True):
    """One column: ``value`` is None for NULL, and for a column whose value comes in chunks.
    ``charset`` is Oracle's number of the character set of a text's bytes; None for the database's
    own."""

    name: str
    type: int
    value: str | None = None
    flags: int = 0
    charset: int | None = None


class Lcr(msgspec.Struct, rename={"kind": "lcr"}, omit_defaults=True):
    """One line. A ``start`` says above which position recording began, a ``low`` that everything up
    to its position came before it."""

    kind: Kind
    position: str
    scn: int | None = None
    commit_scn: int | None = None
    command: str = ""
    database: str | None = None
    owner: str = ""
    object: str = ""
    transaction: str = ""
    time: datetime | None = None
    flags: int = 0
    attributes: dict[str, str] = {}
    old: tuple[Value, ...] = ()
    new: tuple[Value, ...] = ()
    chunks: tuple[Value, ...] = ()
    text: str = ""

    @property
    def at(self) -> bytes:
        """The position.

        Raises:
            DecodeError: It is not in hexadecimal digits.
        """
        try:
            return bytes.fromhex(self.position)
        except ValueError as error:
            raise not_an_lcr("a position is not in hexadecimal digits") from error

    @property
    def committed(self) -> int:
        """SCN of the commit: as the line says, or as a position of the first version does.

        Raises:
            PreflightError: Neither tells it.
        """
        if self.commit_scn is not None:
            return self.commit_scn
        at = self.at
        if len(at) == FIRST_VERSION_BYTES and at[-1] == 1:
            return int.from_bytes(at[:6], "big")
        raise lacking("commit_scn", command=self.command)

    @property
    def proves(self) -> int | None:
        """Every transaction that committed at or below this SCN came before. Of one that committed
        at the SCN of a low watermark itself, a part may be still to come."""
        match self.kind:
            case "start":
                return None
            case "low":
                return None if self.scn is None else self.scn - 1
            case _:
                return self.committed - 1

    @property
    def begins(self) -> int | None:
        """As the first one: where what is recorded begins."""
        return self.scn if self.kind == "start" else self.proves

    def check(self) -> None:
        """Says the LCR where its transaction committed?

        Raises:
            PreflightError: It does not.
        """
        if self.kind in ("row", "ddl"):
            _ = self.committed
        elif self.scn is None:
            raise lacking("scn", lcr=self.kind)

    @property
    def xid(self) -> str:
        """The transaction as LogMiner's XID has it: 16 hex digits, little-endian.

        Raises:
            PreflightError: The LCR does not name it.
        """
        found = _XID.fullmatch(self.transaction)
        if found is None:
            raise lacking("transaction", command=self.command)
        undo, slot, sequence = map(int, found.groups())
        return (
            undo.to_bytes(2, "little") + slot.to_bytes(2, "little") + sequence.to_bytes(4, "little")
        ).hex()


DECODER = msgspec.json.Decoder(Lcr)
ENCODER = msgspec.json.Encoder()


def line_of(lcr: Lcr) -> bytes:
    """An LCR as a line, without what is empty."""
    return ENCODER.encode(lcr) + b"\n"


def lacking(member: str, **facts: object) -> PreflightError:
    """The refusal of LCRs that lack what every change needs."""
    hint = (
        EXTRA_ATTRIBUTE if member == "ROW_ID" else "docs/reference/lcr-files.md says what each has."
    )
    return PreflightError(f"XStream's LCRs lack {member}", hint=hint, member=member, **facts)


def not_an_lcr(reason: str, **facts: object) -> DecodeError:
    """The refusal of something that is no LCR; ``reason`` holds no value of a row."""
    return DecodeError(
        f"an XStream recording is not one LCR in JSON per line: {reason}",
        hint="docs/reference/lcr-files.md describes the form; `redolake xstream record` writes it.",
        **facts,
    )
