"""Which events are in OpenLogReplicator's messages?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from cdc_core.change_stream.form import DecodedLines, Op, Ordinals, RunEvent, TableShape
from cdc_core.change_stream.one_database import OneDatabase
from cdc_core.decode.kernels import records
from cdc_core.decode.records import KeptRows, Lines, RecordBlock, keep_rows, read_messages
from cdc_core.decode.text_source import Words
from cdc_core.errors import PreflightError
from cdc_core.openlogreplicator.messages import (
    SECONDS_MAX,
    SHAPE_DECODER,
    Message,
    Payload,
    lacking,
    moment_of,
    not_a_message,
    xid_of,
)

_UNKNOWN_NAME = re.compile(r"OBJ_\d+")
_SAME = [records.THREAD, records.DATABASE]


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """One element of a message, as an :class:`~cdc_core.change_stream.form.Event`."""

    ordinal: int
    op: Op
    commit_scn: int
    message: Message
    payload: Payload

    @property
    def scn(self) -> int:
        """See :class:`Event`."""
        scn = self.message.change_scn
        return self.commit_scn if scn is None else scn

    @property
    def xid(self) -> str:
        """See :class:`Event`."""
        return xid_of(self.message)

    def is_of(self, begin: MessageEvent) -> bool:
        """See :class:`Event`."""
        if begin.commit_scn != self.commit_scn:
            return False
        said = self.message.xid
        return (said is not None and said == begin.message.xid) or self.xid == begin.xid

    @property
    def table(self) -> bytes:
        """See :class:`Event`."""
        return bytes(self.payload.schema)

    def shape(self) -> TableShape:
        """See :class:`Event`."""
        if not self.table:
            raise lacking("schema", op=self.op)
        return _shape(self.table, is_ddl=self.op == "ddl")

    @property
    def row_id(self) -> str:
        """See :class:`Event`."""
        if self.payload.rid is None:
            raise lacking("rid")
        return self.payload.rid

    @property
    def before(self) -> bytes | None:
        """See :class:`Event`."""
        return _image(self.payload.before)

    @property
    def after(self) -> bytes | None:
        """See :class:`Event`."""
        return _image(self.payload.after)

    @property
    def size(self) -> int:
        """See :class:`Event`."""
        return len(bytes(self.payload.before)) + len(bytes(self.payload.after))

    @property
    def moment(self) -> datetime | None:
        """See :class:`Event`."""
        return _moment(self.message.tm, self.message.tms)

    @property
    def thread(self) -> int:
        """See :class:`Event`."""
        return self.message.rth or 1

    @property
    def sql(self) -> str:
        """See :class:`Event`."""
        return (self.payload.sql or "").rstrip("\0")

    def transaction(self) -> Mapping[str, Any]:
        """See :class:`Event`."""
        message, said = self.message, self.message.attributes
        if self.op == "commit":
            return {
                "commit_timestamp": _moment(
                    _first(message.e_tm, message.tm), _first(message.e_tms, message.tms)
                )
            }
        return {
            "start_scn": message.begin_scn,
            "username": message.usr or said.get("login username"),
            "session_id": _number(said.get("session number")),
            "serial": _number(said.get("serial number")),
            "client_id": said.get("client id"),
            "start_timestamp": _moment(
                _first(message.b_tm, message.tm), _first(message.b_tms, message.tms)
            ),
        }


@dataclass(frozen=True, slots=True)
class MessageRows:
    """Messages of changed rows that follow each other in a transaction, as one record."""

    words: Words
    block: RecordBlock

    @property
    def commit_scn(self) -> int:
        """SCN of the transaction's commit."""
        return int(self.words[0, records.COMMIT_SCN])

    @property
    def proves(self) -> int | None:
        """See :class:`Record`."""
        return self.commit_scn - 1

    @property
    def rth(self) -> int | None:
        """The redo thread; None where the messages do not say it."""
        thread = int(self.words[0, records.THREAD])
        return None if thread < 0 else thread

    @property
    def db(self) -> str | None:
        """The database; None where the messages do not say it."""
        number = int(self.words[0, records.DATABASE])
        return None if number < 0 else self.block.databases[number]

    def runs(self, first: int) -> Iterator[MessageRun]:
        """The changes of each table, numbered from an ordinal on."""
        self.words[:, records.ORDINAL] = np.arange(first, first + len(self.words))
        tables = self.words[:, records.SCHEMA]
        if (tables == tables[0]).all():
            yield MessageRun(self.block.shared[tables[0]], self.words)
            return
        for number in dict.fromkeys(tables.tolist()):
            yield MessageRun(self.block.shared[number], self.words[tables == number])


@dataclass(frozen=True, slots=True)
class MessageRun(RunEvent):
    """Those of one table: rows of words, as :mod:`~cdc_core.decode.kernels.records` describes them,
    times in seconds since 1970."""

    words: Words

    def __len__(self) -> int:
        return len(self.words)

    @property
    def ordinal(self) -> int:
        """See :class:`RunEvent`."""
        return int(self.words[0, records.ORDINAL])

    @property
    def commit_scn(self) -> int:
        """See :class:`Event`."""
        return int(self.words[0, records.COMMIT_SCN])

    @property
    def xid(self) -> str:
        """See :class:`Event`."""
        return self.words[0, records.XID : records.XID + 2].tobytes().decode()

    def held(self) -> KeptRows:
        """See :meth:`RunEvent.held`."""
        return keep_rows(self.words)

    def shape(self) -> TableShape:
        """See :class:`Event`."""
        assert isinstance(self.table, bytes)
        return _shape(self.table, is_ddl=False)


def decoded_messages(data: Lines, decode: Callable[[bytes], Any]) -> DecodedLines:
    """The messages of whole lines; those of changed rows that follow each other are one record."""
    block = read_messages(data)
    words = block.words
    times = words[:, records.TIME]
    while (is_finer := times >= SECONDS_MAX).any():
        times[is_finer] //= 1000
    told = words[:, [records.COMMIT_SCN, records.XID, records.XID + 1, *_SAME]]
    is_plain = words[:, records.OPERATION] != 0
    goes_on = is_plain[1:] & is_plain[:-1] & (told[1:] == told[:-1]).all(axis=1)
    starts = [0, *(np.flatnonzero(~goes_on) + 1).tolist()] if len(words) else []
    lines = words[:, records.LINE].tolist()
    found: list[Any] = []
    offsets: list[int] = []
    for start, end in zip(starts, [*starts[1:], len(words)], strict=False):
        if is_plain[start]:
            found.append(MessageRows(words[start:end], block))
        else:
            line = bytes(data[lines[start] : lines[end] if end < len(lines) else len(data)])
            if not line.strip():
                continue
            found.append(decode(line))
        offsets.append(lines[start])
    return DecodedLines(found, offsets)


class MessageEvents:
    """An :class:`~cdc_core.change_stream.form.EventReader`.

    Args:
        database: The pluggable database whose messages count; None where there is one only.
        state: The database of the messages of windows before.
    """

    def __init__(self, database: str | None, state: Mapping[str, Any]) -> None:
        self._database = OneDatabase("OpenLogReplicator's messages", database, state)
        self._thread: int | None = None

    def events(
        self, message: Message | MessageRows, ordinals: Ordinals
    ) -> Iterator[MessageEvent | MessageRun]:
        """See :meth:`EventReader.events`."""
        counts = self._counts(message)
        if isinstance(message, MessageRows):
            first = ordinals.take(len(message.words))
            if counts:
                yield from message.runs(first)
            return
        for payload in message.payload:
            ordinal, op = ordinals.take(), payload.op
            if counts and op != "chkpt":
                yield MessageEvent(ordinal, op, _commit_scn(message, payload), message, payload)

    def state(self) -> Mapping[str, Any]:
        """See :meth:`EventReader.state`."""
        return self._database.state()

    def _counts(self, message: Message | MessageRows) -> bool:
        """Is the message of the captured database? All are of one redo thread."""
        if message.rth is not None and message.rth != self._thread:
            if self._thread is not None:
                raise PreflightError(
                    "OpenLogReplicator's messages come from more than one redo thread",
                    hint="The messages of one thread prove nothing about the other: read a cluster through LogMiner.",
                    threads=f"{self._thread}, {message.rth}",
                )
            self._thread = message.rth
        return self._database.counts(message.db)


def _shape(described: bytes, *, is_ddl: bool) -> TableShape:
    try:
        shape = SHAPE_DECODER.decode(described)
    except msgspec.MsgspecError as error:
        raise not_a_message(str(error)) from error
    if shape.table is None:
        raise lacking("schema")
    if shape.columns is None and not is_ddl:
        raise lacking("schema.columns", table=f"{shape.owner}.{shape.table}")
    return TableShape(
        owner=shape.owner or "",
        name=shape.table,
        number=(shape.obj or 0) if _UNKNOWN_NAME.fullmatch(shape.table) else None,
        columns=None if shape.columns is None else frozenset(one.name for one in shape.columns),
    )


def _commit_scn(message: Message, payload: Payload) -> int:
    scn = message.commit_scn
    if scn is None and payload.op == "ddl":
        scn = message.change_scn
    if scn is None:
        raise lacking("e_scn", op=payload.op)
    return scn


def _image(raw: msgspec.Raw) -> bytes | None:
    image = bytes(raw)
    return None if image in (b"", b"null") else image


def _first(*values: Any) -> Any:
    return next((one for one in values if one is not None), None)


@lru_cache(maxsize=1024)
def _moment(number: int | str | None, text: str | None) -> datetime | None:
    found = moment_of(number, text)
    return None if found is None else found.replace(microsecond=0)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
