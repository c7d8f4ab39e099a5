"""What does an adapter say of its stream of committed changes?

Records come in the order of commits, transactions whole. An adapter decodes them, tells what each
proves, and makes events of them; the rest is alike for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, Self, runtime_checkable

import pyarrow as pa

from cdc_core.change_reader import Start, WindowWork
from cdc_core.config import TableConfig
from cdc_core.decode.batch import Operations, ScannedBatch
from cdc_core.decode.records import Lines
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import Column, TableSchema

Op = Literal["begin", "commit", "c", "u", "d", "ddl"]


class Ordinals:
    """Numbers of what a source has read, in order."""

    def __init__(self, first: int) -> None:
        self._next = first

    def take(self, count: int = 1) -> int:
        """The next number, the first of so many."""
        self._next += count
        return self._next - count


@dataclass(frozen=True, slots=True)
class Wording:
    """How errors name the program that writes the stream, and what an operator does there.

    Attributes:
        name: The program.
        keeps_files: How it is kept from writing a file over.
        not_yet: What to look at before it has written a record.
        columns: How it learns of columns that it does not know.
        whole: How a transaction comes whole.
        restarted: What to think of when it was restarted.
        tells_that_it_runs: What lets a reader know that it runs.
    """

    name: str
    keeps_files: str = ""
    not_yet: str = ""
    columns: str = ""
    whole: str = ""
    restarted: str = ""
    tells_that_it_runs: str = ""


class Record(Protocol):
    """One record of a stream."""

    @property
    def proves(self) -> int | None:
        """Every transaction that committed at or below this SCN came before the record; None where
        it does not say so."""

    @property
    def begins(self) -> int | None:
        """As the first record: transactions that began above this SCN are in the stream."""

    def check(self) -> None:
        """Has the record what every record needs?

        Raises:
            PreflightError: It has not.
        """


class Decoder(Protocol):
    """Reads records from JSON; raises ``msgspec.MsgspecError``."""

    def decode(self, line: bytes, /) -> Any:
        """One record."""


@dataclass(frozen=True, slots=True)
class DecodedLines:
    """The records of some lines, and where in their bytes each begins."""

    records: Sequence[Any]
    offsets: Sequence[int]

    @classmethod
    def one_by_one(cls, data: Lines, decode: Callable[[bytes], Any]) -> DecodedLines:
        """A record of each line that is not empty."""
        found, offsets, at = [], [], 0
        for line in bytes(data).splitlines(keepends=True):
            if line.strip():
                found.append(decode(line))
                offsets.append(at)
            at += len(line)
        return cls(found, offsets)


class Resume(Protocol):
    """Where the next window's records begin."""

    def as_json(self) -> Mapping[str, Any]:
        """For the manifest of the window before; not empty."""


class Batch(Protocol):
    """Some records that follow each other."""

    @property
    def records(self) -> Sequence[Any]:
        """The records, at least one."""

    def place(self, at: int) -> Resume:
        """Before the record with that number."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """How an event describes its table. ``columns`` is None where it names none, ``number`` is the
    table's object number where its name is not known."""

    owner: str
    name: str
    number: int | None = None
    columns: frozenset[str] | None = None


class Event(Protocol):
    """What a record tells: a transaction begins or has committed, a row was changed, DDL ran."""

    @property
    def op(self) -> Op:
        """What happened."""

    @property
    def ordinal(self) -> int:
        """Its number in the source."""

    @property
    def commit_scn(self) -> int:
        """SCN of its transaction's commit."""

    @property
    def scn(self) -> int:
        """Its own SCN, or that of the commit where it does not tell."""

    @property
    def xid(self) -> str:
        """The transaction, as LogMiner's XID has it: 16 hex digits, little-endian."""

    def is_of(self, begin: Any) -> bool:
        """Is it of the transaction that began with an event?"""

    @property
    def table(self) -> Hashable:
        """Stands for ``shape()``: events with equal ones describe their table alike."""

    def shape(self) -> TableShape:
        """The table of a change, or of a DDL.

        Raises:
            PreflightError, DecodeError: It does not say its table.
        """

    @property
    def row_id(self) -> str:
        """The changed row's ROWID.

        Raises:
            PreflightError: The record lacks it.
        """

    @property
    def before(self) -> Any:
        """The old image, for :class:`RowForm`; None where there is none."""

    @property
    def after(self) -> Any:
        """The new image."""

    @property
    def size(self) -> int:
        """About so many bytes."""

    @property
    def moment(self) -> datetime | None:
        """When it happened, in database time."""

    @property
    def thread(self) -> int:
        """The redo thread."""

    @property
    def sql(self) -> str:
        """The text of a DDL."""

    def transaction(self) -> Mapping[str, Any]:
        """What the event tells of its transaction: columns of ``TRANSACTION_SCHEMA``."""


class HeldRows(Protocol):
    """Changed rows of one table, held apart from the block in which they came."""

    def __len__(self) -> int: ...

    @property
    def size(self) -> int:
        """About so many bytes."""

    @property
    def operations(self) -> Operations:
        """LogMiner's operation code of each."""

    def commit_scn(self, at: int) -> int:
        """SCN of the commit of the row with that number."""

    def facts(self) -> list[pa.Array]:
        """Ordinals, SCNs, transactions, operation codes, ROWIDs, times (or seconds since 1970) and
        redo threads."""

    def first(self, count: int) -> Self:
        """The first rows."""

    @staticmethod
    def joined(parts: Sequence[Any]) -> Any:
        """The rows of all, in order."""


@dataclass(frozen=True, slots=True)
class RunEvent(ABC):
    """Changes of one table that follow each other in a transaction; each reader has its own.
    ``table`` is as that of :class:`Event`."""

    table: Hashable

    @property
    @abstractmethod
    def ordinal(self) -> int:
        """The first one's number in the source."""

    @property
    @abstractmethod
    def commit_scn(self) -> int:
        """See :class:`Event`."""

    @property
    @abstractmethod
    def xid(self) -> str:
        """See :class:`Event`."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def held(self) -> HeldRows:
        """The rows, apart from their block."""

    @abstractmethod
    def shape(self) -> TableShape:
        """See :class:`Event`."""

    def is_of(self, begin: Any) -> bool:
        """See :class:`Event`."""
        return bool(begin.commit_scn == self.commit_scn and begin.xid == self.xid)


class EventReader(Protocol):
    """Makes events of the records of one window, in one pass over them."""

    def events(self, record: Any, ordinals: Ordinals) -> Iterable[Event | RunEvent]:
        """The events of the next record; each takes an ordinal.

        Raises:
            CdcError: The record cannot follow those before it.
        """

    def state(self) -> Mapping[str, Any]:
        """What the next window's reader must know, besides the place in the stream."""


class RowForm(Protocol):
    """Reads the images of rows of one version of a table."""

    @property
    def asks(self) -> bool:
        """May it give values that the stream does not tell?"""

    def by_column(self, images: Sequence[Any]) -> list[list[Any]]:
        """Per column, the value of each image, which may be None: ``ABSENT`` where it has none,
        ``UNTOLD`` where Oracle has it alone.

        Raises:
            RefusedValueError, msgspec.MsgspecError: An image is not understood.
        """

    def convert(self, at: int, values: list[Any]) -> Any:
        """The values of the column with that number as an Arrow array, in the type in which it is
        read.

        Raises:
            RefusedValueError: A value does not fit.
        """


@runtime_checkable
class RunForm(RowForm, Protocol):
    """Reads the images of runs too, many at once."""

    def scan(self, rows: Any, operations: Operations) -> ScannedBatch:
        """The images of a run's :class:`HeldRows` as columns, as far as that can be done at once.

        Raises:
            RefusedValueError, msgspec.MsgspecError, pa.ArrowException: It cannot: an image is not
                understood.
        """

    def image(self, rows: Any, row: int, *, is_old: bool) -> Any:
        """An image of a run's row, as :meth:`by_column` takes it."""


class StreamForm(Protocol):
    """What an adapter knows of its stream."""

    @property
    def wording(self) -> Wording:
        """Of errors."""

    @property
    def decoder(self) -> Decoder:
        """Reads a line of its files."""

    def decoded(self, data: Lines, decode: Callable[[bytes], Any]) -> DecodedLines:
        """The records of whole lines; rows that follow each other may be one record. ``decode``
        reads one line. The records are read before the next lines are."""

    def not_a_record(self, reason: str, **facts: object) -> Exception:
        """The refusal of something that is no record; ``reason`` holds no value of a row."""

    def reader(self, window: ScnWindow, state: Mapping[str, Any]) -> EventReader:
        """Begins a pass over a window's records, with the state that the window before left."""

    def rows(self, schema: TableSchema, columns: Sequence[Column]) -> RowForm:
        """How the images of a version of a table are read; ``columns`` are those that events
        bring."""


class Stream(Protocol):
    """Where an adapter's records come from."""

    @property
    def form(self) -> StreamForm:
        """What the records are."""

    def check(self, session: OracleSession, tables: Sequence[TableConfig]) -> list[Finding]:
        """See :meth:`cdc_core.change_reader.ChangeReader.check`; what the tables' redo lacks is
        looked for besides."""

    def begins_at(self, low: Scn, *, is_first: bool) -> Scn | None:
        """The SCN from which on transactions that began are in the stream; None where there is no
        record that tells. One that has not begun may begin at ``low``, for a source that
        ``is_first`` begun."""

    def cuts(
        self, low: Scn, present: Callable[[], Start], applied: Callable[[], Scn] | None
    ) -> list[Scn]:
        """Upper ends of windows above ``low`` that the records prove complete; none is needed above
        the database's present. A server may forget what is ``applied``."""

    def open(
        self, work: WindowWork, landing: LandingStore
    ) -> AbstractContextManager[Callable[[], Iterable[Batch]]]:
        """Gives the records from where the window before ended, again at each call.

        Raises:
            RedoUnavailableError: They are gone.
        """


class RecordedStream(Stream, Protocol):
    """One that writes what it receives into files."""

    def record(self, folder: str, *, low: Scn | None) -> int:
        """See :meth:`cdc_core.change_reader.Recorder.record`."""
