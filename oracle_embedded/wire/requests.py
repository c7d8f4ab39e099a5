"""What does the client ask for: execute, execute again, fetch?

A request is read to its end before anything is done with it, since only its contents tell where it
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum, IntFlag

from oracle_embedded.api import ColumnMeta, ResultRows, Statement, Value
from oracle_embedded.wire.binds import (
    BindRows,
    UnreadableRequestError,
    WireBind,
    read_metadata,
)
from oracle_embedded.wire.connect import FIELDS_OF_12_2, FIELDS_OF_12_2_NEXT, Agreement
from oracle_embedded.wire.placeholders import returning_positions
from oracle_embedded.wire.rows import RowEncoder
from oracle_embedded.wire.ttc import ProtocolError, TtcReader

MESSAGE_FUNCTION = 3
"""First byte of a function call."""


class Function(IntEnum):
    """Function codes that are served."""

    REEXECUTE = 4
    FETCH = 5
    LOGOFF = 9
    COMMIT = 14
    ROLLBACK = 15
    VERSION = 59
    REEXECUTE_AND_FETCH = 78
    EXECUTE = 94
    LOB_OPERATION = 96
    AUTH_PHASE_TWO = 115
    AUTH_PHASE_ONE = 118
    DESCRIBE_TABLE = 119
    DIRECT_PATH_PREPARE = 128
    DIRECT_PATH_STREAM = 129
    DIRECT_PATH_END = 130
    PING = 147


class Option(IntFlag):
    """Option bits of an execute."""

    PARSE = 0x01
    BIND = 0x08
    DEFINE = 0x10
    EXECUTE = 0x20
    FETCH = 0x40
    COMMIT = 0x100
    PLSQL_BIND = 0x400
    NOT_PLSQL = 0x8000
    DESCRIBE = 0x20000
    BATCH_ERRORS = 0x80000


_ROW_COUNTS_WANTED = 0x4000
_SCROLLABLE = 0x02
_REEXECUTE_COMMIT = 0x01
_EXECUTIONS_MAX = 2_000_000


@dataclass(slots=True)
class Cursor:
    """What the server remembers of one statement of a client."""

    id: int
    sql: str = ""
    statement: Statement | None = None
    binds: list[WireBind] = field(default_factory=list)
    returning: frozenset[int] = frozenset()
    out_only: frozenset[int] = frozenset()
    is_plsql: bool = False
    defines: list[WireBind] = field(default_factory=list)
    rows: ResultRows | None = None
    encoder: RowEncoder | None = None
    described: tuple[ColumnMeta, ...] = ()

    def close_rows(self) -> None:
        """Give up an open result."""
        if self.rows is not None:
            self.rows.close()
        self.rows = None


@dataclass(slots=True)
class ExecuteRequest:
    """An execute in any of its three forms. ``sql`` is None when the cursor's own statement runs
    again."""

    options: Option
    cursor_id: int
    _: KW_ONLY
    sql: str | None = None
    rows_wanted: int = 0
    executions: int = 1
    row_counts_wanted: bool = False
    scrollable: bool = False
    orientation: int = 0
    position: int = 0
    binds: list[WireBind] | None = None
    defines: list[WireBind] = field(default_factory=list)
    bind_rows: list[list[Value]] = field(default_factory=list)
    returning: frozenset[int] = frozenset()


Lookup = Callable[[int], Cursor | None]


def read_execute(reader: TtcReader, lookup: Lookup, agreement: Agreement) -> ExecuteRequest:
    """Read function 94.

    Raises:
        UnreadableRequestError: A bind has a type with an unknown layout.
    """
    request = ExecuteRequest(Option(reader.ub()), reader.ub())
    has_sql = reader.u8()
    sql_size = reader.ub()
    reader.u8()
    reader.ub()
    reader.raw(2)
    reader.ub()
    request.rows_wanted = reader.ub()
    reader.ub()
    reader.u8()
    bind_count = reader.ub()
    reader.raw(5)
    reader.u8()
    define_count = reader.ub()
    reader.ub()
    reader.raw(3)
    reader.ub()
    reader.u8()
    reader.skip_ub(2)
    reader.u8()
    reader.ub()
    reader.u8()
    if agreement.field_version >= FIELDS_OF_12_2:
        reader.u8()
        reader.ub()
        reader.u8()
        reader.ub()
        reader.u8()
    if agreement.field_version >= FIELDS_OF_12_2_NEXT:
        reader.u8()
        reader.ub()
    if has_sql:
        length_again = agreement.lengths_converted
        request.sql = reader.announced_text(sql_size, length_again=length_again)
    array = [reader.ub() for _ in range(13)]
    request.row_counts_wanted = bool(array[9] & _ROW_COUNTS_WANTED)
    request.scrollable = bool(array[9] & _SCROLLABLE)
    request.orientation, request.position = array[10], array[11]
    is_query = bool(array[7])
    request.executions = 1 if is_query else _checked_executions(array[1])
    if is_query and request.rows_wanted and request.options & Option.EXECUTE:
        # Rows to prefetch come with the reply, for clients that do not ask for them besides.
        request.options |= Option.FETCH
    if is_query:
        # Behind a define step, this is the number of rows.
        request.rows_wanted = request.rows_wanted or array[1]
    if define_count:
        request.defines = read_metadata(reader, define_count, agreement)
    elif bind_count:
        request.binds = read_metadata(reader, bind_count, agreement)
        takes_return = agreement.takes_return
        _read_bind_rows(reader, lookup, request, request.binds, takes_return=takes_return)
    elif request.sql is None and request.options & Option.EXECUTE:
        # JDBC executes again this way, with the binds that it declared before.
        cursor = lookup(request.cursor_id)
        if cursor is not None:
            request.bind_rows = _known_bind_rows(
                reader,
                cursor,
                max(request.executions, 1),
                absent=frozenset() if request.options & Option.PLSQL_BIND else cursor.returning,
            )
    return request


def _checked_executions(count: int) -> int:
    """A limit, since executions without bind values take memory and no bytes of the client."""
    if count > _EXECUTIONS_MAX:
        raise ProtocolError(f"more than {_EXECUTIONS_MAX} executions in one call")
    return count


def _read_bind_rows(
    reader: TtcReader,
    lookup: Lookup,
    request: ExecuteRequest,
    binds: Sequence[WireBind],
    *,
    takes_return: bool,
) -> None:
    is_plsql = bool(request.options & Option.PLSQL_BIND)
    if not is_plsql:
        cursor = lookup(request.cursor_id)
        if request.sql is not None:
            request.returning = returning_positions(request.sql, takes_return=takes_return)
        elif cursor is not None:
            request.returning = cursor.returning
    rows = BindRows(binds, request.returning, is_plsql=is_plsql)
    # A request that only moves in a scrollable cursor describes its binds and sends no values.
    executes = Option.EXECUTE in request.options
    request.bind_rows = rows.read(reader, max(request.executions, 1) if executes else 0)


def read_reexecute(reader: TtcReader, lookup: Lookup, *, fetch: bool) -> ExecuteRequest:
    """Read function 4 or 78.

    Raises:
        UnreadableRequestError: The cursor is not known, and with it not how many binds follow.
    """
    cursor_id = reader.ub()
    number = reader.ub()
    reader.ub()
    commit = reader.ub() & _REEXECUTE_COMMIT
    options = Option.EXECUTE | (Option.FETCH if fetch else 0) | (Option.COMMIT if commit else 0)
    request = ExecuteRequest(Option(options), cursor_id)
    if fetch:
        request.rows_wanted = number
    else:
        request.executions = _checked_executions(number)
    cursor = lookup(cursor_id)
    if cursor is None:
        raise UnreadableRequestError
    request.bind_rows = _known_bind_rows(
        reader, cursor, request.executions, absent=cursor.returning | cursor.out_only
    )
    return request


def _known_bind_rows(
    reader: TtcReader, cursor: Cursor, executions: int, *, absent: frozenset[int]
) -> list[list[Value]]:
    """Read values of binds that an earlier request has declared."""
    if not cursor.binds:
        return []
    return BindRows(cursor.binds, absent, is_plsql=cursor.is_plsql).read(reader, executions)
