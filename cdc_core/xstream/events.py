"""Which events are in LCRs?

They come in the order of their positions: what comes at or below the last one was sent again, and
is passed over. A transaction begins with its first row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from cdc_core.change_stream.form import Op, Ordinals, TableShape
from cdc_core.change_stream.one_database import OneDatabase
from cdc_core.errors import DecodeError, LogsNotReadyError, RedoUnavailableError
from cdc_core.model.scn import ScnWindow
from cdc_core.xstream.lcrs import (
    IN_FLIGHT,
    KEY_ONLY,
    LOB_DATA,
    LONG_STRING,
    Lcr,
    Value,
    lacking,
)
from cdc_core.xstream.runs import LcrRun, RowLcrs

_PIECES = frozenset({"LOB WRITE", "LOB TRIM", "LOB ERASE"})
_OPS: dict[str, Op] = {
    "INSERT": "c",
    "UPDATE": "u",
    "DELETE": "d",
    "COMMIT": "commit",
    **dict.fromkeys(_PIECES, "u"),
}
_WHOLE_BYTES = 1024**2
"""The value of which an LCR has a piece is taken to have so many bytes."""


@dataclass(frozen=True, slots=True)
class RowImage:
    """The columns of a row on one side of a change, and the chunks of those that came in pieces."""

    values: tuple[Value, ...]
    chunks: tuple[Value, ...]
    is_whole: bool = False
    """Has it every column, as the new row of an INSERT does?"""
    is_piece: bool = False
    """Is it a piece of a LOB, rather than a row?"""
    is_key_only: bool = False
    """Has it the row's identity alone?"""


def old_image(values: Iterable[Value], *, is_key_only: bool = False) -> RowImage:
    """An old row. What comes in chunks has no old value: a column without one is not NULL, the LCR
    does not carry it."""
    carried = (one for one in values if one.value or not one.flags & (LOB_DATA | LONG_STRING))
    return RowImage(tuple(carried), (), is_key_only=is_key_only)


@dataclass(frozen=True, slots=True)
class LcrEvent:
    """One LCR, as an :class:`~cdc_core.change_stream.form.Event`."""

    ordinal: int
    op: Op
    commit_scn: int
    lcr: Lcr

    @property
    def scn(self) -> int:
        """See :class:`Event`."""
        return self.commit_scn if self.lcr.scn is None else self.lcr.scn

    @property
    def xid(self) -> str:
        """See :class:`Event`."""
        return self.lcr.xid

    def is_of(self, begin: LcrEvent) -> bool:
        """See :class:`Event`."""
        return (self.lcr.transaction, self.commit_scn) == (begin.lcr.transaction, begin.commit_scn)

    @property
    def table(self) -> tuple[str, str]:
        """See :class:`Event`."""
        return self.lcr.owner, self.lcr.object

    def shape(self) -> TableShape:
        """See :class:`Event`: which columns a table has, an LCR does not say."""
        return TableShape(self.lcr.owner, self.lcr.object)

    @property
    def row_id(self) -> str:
        """See :class:`Event`."""
        found = self.lcr.attributes.get("ROW_ID")
        if found is None:
            raise lacking("ROW_ID", table=f"{self.lcr.owner}.{self.lcr.object}")
        return found

    @property
    def before(self) -> RowImage | None:
        """See :class:`Event`."""
        if self.op == "c":
            return None
        return old_image(self.lcr.old, is_key_only=bool(self.lcr.flags & KEY_ONLY))

    @property
    def after(self) -> RowImage | None:
        """See :class:`Event`."""
        if self.op == "d":
            return None
        return RowImage(
            self.lcr.new,
            self.lcr.chunks,
            is_whole=self.op == "c",
            is_piece=self.lcr.command in _PIECES,
            is_key_only=bool(self.lcr.flags & KEY_ONLY),
        )

    @property
    def size(self) -> int:
        """See :class:`Event`."""
        lcr = self.lcr
        size = sum(len(one.value or "") for one in (*lcr.old, *lcr.new, *lcr.chunks))
        return size + (_WHOLE_BYTES if lcr.command in _PIECES else 0)

    @property
    def moment(self) -> datetime | None:
        """See :class:`Event`."""
        return self.lcr.time and self.lcr.time.replace(microsecond=0)

    @property
    def thread(self) -> int:
        """See :class:`Event`."""
        return _number(self.lcr.attributes.get("THREAD#")) or 1

    @property
    def sql(self) -> str:
        """See :class:`Event`."""
        return self.lcr.text.rstrip("\0")

    def transaction(self) -> Mapping[str, Any]:
        """See :class:`Event`; no LCR says where its transaction began."""
        if self.op == "commit":
            return {"commit_timestamp": self.moment}
        said = self.lcr.attributes
        return {
            "username": said.get("USERNAME"),
            "session_id": _number(said.get("SESSION#")),
            "serial": _number(said.get("SERIAL#")),
        }


class LcrEvents:
    """An :class:`~cdc_core.change_stream.form.EventReader`.

    Args:
        window: Whose events are read.
        database: The database whose LCRs count; None where there is one only.
        state: The position up to which windows before have read, and the database of their LCRs.
    """

    def __init__(self, window: ScnWindow, database: str | None, state: Mapping[str, Any]) -> None:
        self._low = window.scn_low
        self._database = OneDatabase("XStream's LCRs", database, state)
        self._position = bytes.fromhex(state.get("position", ""))
        self._open: str | None = None

    def state(self) -> Mapping[str, Any]:
        """See :meth:`EventReader.state`.

        Raises:
            DecodeError: The window's last transaction has no COMMIT.
        """
        self._refuse_open()
        return {"position": self._position.hex(), **self._database.state()}

    def events(self, lcr: Lcr | RowLcrs, ordinals: Ordinals) -> Iterator[LcrEvent | LcrRun]:
        """See :meth:`EventReader.events`.

        Raises:
            RedoUnavailableError: LCRs between two recordings are missing.
            DecodeError: LCRs have positions of two versions, or a transaction has no COMMIT.
        """
        if isinstance(lcr, RowLcrs):
            yield from self._rows(lcr, ordinals)
            return
        at = lcr.at
        self._check(lcr, at)
        if at <= self._position or lcr.kind == "start":
            self._position = self._position or at
            return
        self._position = at
        if lcr.kind == "low" or not self._database.counts(lcr.database):
            return
        op = "ddl" if lcr.kind == "ddl" else self._op_of(lcr)
        if op is None:
            return
        event = LcrEvent(ordinals.take(), op, lcr.committed, lcr)
        if op != "ddl" and lcr.transaction != self._open:
            self._refuse_open()
            self._open = lcr.transaction
            yield replace(event, op="begin")
        if op == "commit":
            self._open = None
        yield event

    def _rows(self, rows: RowLcrs, ordinals: Ordinals) -> Iterator[LcrEvent | LcrRun]:
        first = rows.first
        self._check(first, first.at)
        rows = rows.behind(self._position)
        if not len(rows.positions):
            return
        self._position = rows.last_position
        if not self._database.counts(first.database):
            return
        ordinal = ordinals.take(len(rows.positions))
        if first.transaction != self._open:
            self._refuse_open()
            self._open = first.transaction
            yield LcrEvent(ordinal, "begin", rows.commit_scn, first)
        yield from rows.runs(ordinal, first.xid)

    def _check(self, lcr: Lcr, at: bytes) -> None:
        if self._position and at and at[-1] != self._position[-1]:
            raise DecodeError(
                "LCRs have positions of two versions, which cannot be compared",
                hint="The outbound server was upgraded: begin a new recording in another folder, and start the source "
                "over under another name.",
                versions=f"{self._position[-1]}, {at[-1]}",
            )
        if lcr.kind == "start" and self._position and at > self._position:
            raise RedoUnavailableError(
                "a recording begins after the end of the previous one: LCRs between them are missing",
                hint="Copy the recording between them into the folder. If it is gone, `redolake source skip-gap` "
                "reads the tables again.",
                begins=lcr.scn,
            )

    def _refuse_open(self) -> None:
        """Another transaction begins, or the window ends: the one before must have ended."""
        if self._open is not None:
            raise DecodeError(
                "a transaction has no COMMIT among its LCRs",
                hint="Record the LCRs of COMMIT too, transactions one behind the other.",
                transaction=self._open,
            )

    def _op_of(self, lcr: Lcr) -> Op | None:
        """What a row LCR does; None where that is nothing.

        Raises:
            LogsNotReadyError: Its transaction began before the outbound server did.
            DecodeError: That is not known.
        """
        if lcr.flags & IN_FLIGHT and lcr.committed > self._low:
            raise LogsNotReadyError(
                "a transaction began before the outbound server: its first changes are in no LCR",
                hint="`redolake table resnapshot OWNER.TABLE` reads its tables again once it has committed.",
                xid=lcr.xid,
                commit_scn=lcr.committed,
            )
        op = _OPS.get(lcr.command)
        if op is not None or lcr.command == "START_TX":
            return op
        raise DecodeError(
            f"XStream's command {lcr.command} is not known",
            hint="Create the outbound server with committed_data_only TRUE, which is Oracle's default.",
            xid=lcr.xid,
        )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
