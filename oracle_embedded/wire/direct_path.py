"""How are rows loaded by direct path: prepare, streams of rows, finish or abort?

A stream holds rows as pieces: flags, in a row of one piece its length, the number of segments, and
the segments, each a value or a part of one with its length in front. The rows are logged like those
of INSERT, as for a table with LOGGING, and committed by the finish.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

from oracle_embedded.api import (
    BindMeta,
    ColumnMeta,
    EngineSession,
    OracleError,
    OraType,
    Statement,
    Value,
)
from oracle_embedded.charsets import CharacterSets, utf8_from_client
from oracle_embedded.wire.rows import column_description
from oracle_embedded.wire.ttc import ProtocolError, TtcReader, ub_bytes

_OUT_VALUES = 4
_CURSOR_AT = 3
_LONG_MARK, _NULL_MARK = 254, 255
_TIMES = frozenset((OraType.TIMESTAMP, OraType.TIMESTAMP_LTZ))


class Operation(IntEnum):
    """How a load ends."""

    ABORT = 1
    FINISH = 2


class _Keyword(IntEnum):
    """What a parameter of prepare names."""

    TABLE = 1
    SCHEMA = 3
    COLUMN = 4


class _Flag(IntFlag):
    """What a piece says of itself."""

    SPLIT_WITH_PREVIOUS = 0x02
    LAST = 0x04
    FIRST = 0x08
    FAST_ROW = 0x20


@dataclass(frozen=True, slots=True)
class PrepareRequest:
    """What shall be loaded: names as typed."""

    schema: str
    table: str
    columns: Sequence[str]


def read_prepare(reader: TtcReader) -> PrepareRequest:
    """Read function 128."""
    reader.ub()
    reader.u8()
    count = reader.ub()
    reader.u8()
    inputs = reader.ub()
    reader.raw(6)
    schema = table = ""
    columns = []
    for _ in range(count):
        reader.skip_ub(2)
        value = reader.text()
        match reader.ub():
            case _Keyword.SCHEMA:
                schema = value
            case _Keyword.TABLE:
                table = value
            case _Keyword.COLUMN:
                columns.append(value)
    reader.skip_ub(inputs)
    return PrepareRequest(schema, table, columns)


def read_stream(reader: TtcReader) -> tuple[int, bytes]:
    """Read function 129: the cursor and the pieces."""
    cursor_id = reader.ub()
    reader.u8()
    size = reader.ub()
    reader.ub()
    reader.u8()
    reader.ub()
    reader.raw(2)
    return cursor_id, reader.raw(size)


def read_operation(reader: TtcReader) -> tuple[int, int]:
    """Read function 130: the cursor and how the load ends."""
    operation = reader.ub()
    cursor_id = reader.ub()
    reader.u8()
    reader.ub()
    reader.raw(2)
    return cursor_id, operation


@dataclass(slots=True)
class _Load:
    columns: Sequence[ColumnMeta]
    insert: Statement
    metas: list[BindMeta] = field(init=False)

    def __post_init__(self) -> None:
        self.metas = [
            BindMeta(column.type, column.size, column.charset_form) for column in self.columns
        ]


class DirectPath:
    """The direct path loads of one session."""

    def __init__(self, session: EngineSession) -> None:
        self._session = session
        self._loads: dict[int, _Load] = {}
        self._last_id = 0

    def prepare(self, request: PrepareRequest) -> bytes:
        """Begin a load: the columns, and a cursor for the calls that follow.

        Raises:
            OracleError: Table or column do not exist, or may not be filled by the user.
        """
        table = f"{_quoted(request.schema)}.{_quoted(request.table)}"
        names = ", ".join(map(_quoted, request.columns))
        columns = self._session.parse(f"SELECT {names} FROM {table}").columns
        places = ", ".join(f":{at}" for at in range(1, len(columns) + 1))
        insert = self._session.parse(f"INSERT INTO {table} ({names}) VALUES ({places})")
        self._last_id += 1
        self._loads[self._last_id] = _Load(columns, insert)
        outputs = [0] * _OUT_VALUES
        outputs[_CURSOR_AT] = self._last_id
        described = [column_description(column, at) for at, column in enumerate(columns, 1)]
        return b"".join(
            (
                b"\x08",
                ub_bytes(len(columns)),
                *described,
                ub_bytes(0),
                ub_bytes(_OUT_VALUES),
                *map(ub_bytes, outputs),
            )
        )

    def load(self, cursor_id: int, pieces: bytes) -> bytes:
        """Insert the rows of a stream.

        Raises:
            OracleError: A row cannot be inserted; the client aborts the load then.
            ProtocolError: The pieces do not fit the columns.
        """
        load = self._load(cursor_id)
        sets = self._session.character_sets
        rows = [
            [
                _engine_value(value, column, sets)
                for value, column in zip(row, load.columns, strict=True)
            ]
            for row in rows_of(pieces, len(load.columns))
        ]
        if rows:
            self._session.execute(load.insert, rows, bind_metas=load.metas)
        return b"\x08\x00"

    def end(self, cursor_id: int, operation: int) -> bytes:
        """Commit or roll back what was loaded."""
        self._load(cursor_id)
        del self._loads[cursor_id]
        if operation == Operation.FINISH:
            self._session.commit()
        else:
            self._session.rollback()
        return b"\x08\x00"

    def _load(self, cursor_id: int) -> _Load:
        load = self._loads.get(cursor_id)
        if load is None:
            raise OracleError(1001, "invalid cursor")
        return load


def _quoted(name: str) -> str:
    """A name as typed, as the dictionary has it: upper case unless it was typed in quotes."""
    if len(name) > 2 and name[0] == name[-1] == '"':
        return name
    return '"' + name.upper().replace('"', "") + '"'


def rows_of(pieces: bytes, width: int) -> Iterator[list[Value]]:
    """The rows of a stream, each of ``width`` values in the client's form.

    Raises:
        ProtocolError: The pieces are cut off, or a row has another number of values.
    """
    row: list[Value] = []
    at = 0
    while at < len(pieces):
        flags = pieces[at]
        continues = bool(flags & _Flag.SPLIT_WITH_PREVIOUS)
        at += 3 if flags & _Flag.FAST_ROW else 1
        for _ in range(pieces[at]):
            value, at = _segment(pieces, at + 1)
            at -= 1
            if continues and row:
                # The first segment is the rest of the value that the piece before ended with.
                row[-1] = (row[-1] or b"") + (value or b"")
                continues = False
            else:
                row.append(value)
        at += 1
        if flags & _Flag.LAST:
            if len(row) != width:
                raise ProtocolError("a row of a direct path stream has not the table's columns")
            yield row
            row = []
    if row:
        raise ProtocolError("a direct path stream is cut off")


def _segment(pieces: bytes, at: int) -> tuple[Value, int]:
    size = pieces[at]
    at += 1
    if size == _NULL_MARK:
        return None, at
    if size == _LONG_MARK:
        size = int.from_bytes(pieces[at : at + 2], "big")
        at += 2
    if at + size > len(pieces):
        raise ProtocolError("a direct path stream is cut off")
    return pieces[at : at + size], at + size


def _engine_value(value: Value, column: ColumnMeta, sets: CharacterSets) -> Value:
    """Clients send text in the database's own sets, CLOBs of sets of several bytes as UTF-16, times
    without their trailing zeros.

    Source: what python-oracledb says of CLOBs in direct path loads; sets with numbers from 800 on
    have several bytes.
    """
    if not value:
        return None
    if column.type is OraType.CLOB and sets.of(column.charset_form).width > 1:
        return value.decode("utf-16-be", "replace").encode()
    own = sets.of(column.charset_form)
    if column.charset_form:
        return utf8_from_client(value) if own.is_utf8 else own.decode(value).encode()
    return value.ljust(11, b"\x00") if column.type in _TIMES else value
