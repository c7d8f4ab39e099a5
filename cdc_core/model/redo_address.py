"""Where is a record in a redo thread, and how far has a thread been read?"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RS_ID = re.compile(r"\s*0x([0-9a-f]+)\.([0-9a-f]+)\.([0-9a-f]+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class RedoAddress:
    """A redo byte address: log sequence, block in the log, byte in the block.

    Redo is only ever appended to a thread, so within one thread what reached the log later has the
    greater address. Addresses of two threads cannot be compared: each counts its own logs.
    """

    sequence: int
    block: int
    byte: int

    @property
    def is_zero(self) -> bool:
        """Is it all zero, as LogMiner prints it where it names no record?"""
        return not (self.sequence or self.block or self.byte)

    @property
    def rs_id(self) -> str:
        """As V$LOGMNR_CONTENTS.RS_ID prints it, without the blanks around it."""
        return f"0x{self.sequence:06x}.{self.block:08x}.{self.byte:04x}"

    @classmethod
    def parse(cls, rs_id: str) -> RedoAddress:
        """Read an RS_ID.

        Raises:
            ValueError: The text is none.
        """
        found = _RS_ID.fullmatch(rs_id)
        if found is None:
            raise ValueError(f"{rs_id!r} is not a redo byte address")
        sequence, block, byte = (int(part, 16) for part in found.groups())
        return cls(sequence=sequence, block=block, byte=byte)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPosition:
    """How far one redo thread was read when a window was captured.

    ``first_scn`` is FIRST_CHANGE# of the log that was CURRENT before the window was mined, None for
    a thread that was not open: redo that reaches the log after the pass has this SCN or a higher
    one. ``address`` is the highest address that any pass returned so far, None before the first.
    ``read_from`` is the SCN above which the thread has been read with a position: a row at or below
    it is never new.
    """

    thread: int
    first_scn: int | None
    address: RedoAddress | None
    read_from: int
