"""Which redo rows does an export of V$LOGMNR_CONTENTS hold, in the columns in which capture reads
them?

Any subset of the view's columns will do that has the required ones. What capture itself never sees
(the rows that its query leaves out) is left out here, and rows that capture would stop at, or that
are damaged, become findings: they never hide the rows behind them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_core.capture.passes.mining import MINED_SCHEMA
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import ENDS, IGNORED, Operation
from cdc_core.model.redo_address import RedoAddress
from cdc_core.model.transactions import NO_XID
from diagnosis.explain.files import DamagedRow, RowFile, Values
from diagnosis.explain.outcomes import Finding

EXPORTED = pa.schema([*MINED_SCHEMA, ("first_row", pa.int64()), ("last_row", pa.int64())])
"""The columns of capture, and where the row's statement stands in the file."""

BATCH_ROWS = 5_000
PIECES_MAX = 10_000
"""So many rows may one statement have (CSF); more are no statement of Oracle's, but a file whose
CSF is wrong."""

_SOMEWHERE = RedoAddress(sequence=1, block=1, byte=1).rs_id
"""In place of an address: an export is read once, so nothing follows from where a row lies."""
_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1
_DIGITS_SURE = 9
"""So many digits fit into every column."""

_NUMBERS = {
    "scn": "SCN", "rollback": "ROLLBACK", "csf": "CSF", "status": "STATUS", "thread": "THREAD#", "data_obj": "DATA_OBJ#",
    "start_scn": "START_SCN",
}  # fmt: skip
"""Columns that decide what becomes of a row: one that cannot be read makes the row damaged."""
_FACTS = {
    "ssn": "SSN", "data_objv": "DATA_OBJV#", "data_objd": "DATA_OBJD#", "sequence": "SEQUENCE#", "container_id": "SRC_CON_ID",
    "session_id": "SESSION#", "serial": "SERIAL#",
}  # fmt: skip
"""Columns that are told and decide nothing: what cannot be read is left out."""
_TEXTS = {
    "row_id": "ROW_ID", "info": "INFO", "username": "USERNAME", "client_id": "CLIENT_ID", "sql_redo": "SQL_REDO",
}  # fmt: skip
_DEFAULTS = {"rollback": 0, "csf": 0, "status": 0, "thread": 1}
_OTHER_NAMES = {"THREAD": "THREAD#", "DATA_OBJ": "DATA_OBJ#", "SESSION": "SESSION#", "SERIAL": "SERIAL#"}  # fmt: skip
_PARTS = ("XIDUSN", "XIDSLT", "XIDSQN")

COLUMNS = frozenset({
    *_NUMBERS.values(), *_FACTS.values(), *_TEXTS.values(), *_OTHER_NAMES, *_PARTS, "XID", "OPERATION", "OPERATION_CODE",
    "SEG_OWNER", "TABLE_NAME", "SEG_NAME", "RS_ID", "TIMESTAMP", "SRC_CON_NAME",
})  # fmt: skip
"""The columns that are read, where an export has them."""

_CODES = {
    "SEL_LOB_LOCATOR": Operation.SELECT_LOB_LOCATOR,
    "XML_DOC": Operation.XML_DOC,
    **{one.name: one for one in Operation},
}
_WITHOUT = {
    "ROLLBACK": "what a transaction took back cannot be distinguished from what it kept",
    "CSF": "statements that Oracle split over several rows cannot be joined",
    "STATUS": "rows that LogMiner could not translate cannot be recognized",
    "ROW_ID": "what a transaction took back cannot be recognized in tables with LOBs",
}
_ROUNDED = re.compile(r"[\d.,]+E[+-]?\d+", re.IGNORECASE | re.ASCII)
_XID_HEX = re.compile(r"(?:0x)?([0-9a-f]{16})", re.IGNORECASE | re.ASCII)
_XID_DOTTED = re.compile(r"(\d{1,10})\.(\d{1,10})\.(\d{1,10})", re.ASCII)
_XID_BYTES = 8
_TIMES = (
    "%Y-%m-%d %H:%M:%S", "%d-%b-%y", "%d-%b-%Y", "%d-%b-%Y %H:%M:%S", "%d-%b-%y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S",
)  # fmt: skip
_HINT_COLUMNS = (
    "Export SCN, OPERATION_CODE, XID, SEG_OWNER, TABLE_NAME, SQL_REDO, ROLLBACK, CSF, STATUS and ROW_ID at least, without a filter on "
    "OPERATION_CODE."
)


class _UnreadableError(ValueError):
    """A value is not what its column must hold."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(slots=True)
class Export:
    """The redo rows of a file, for one reading from its beginning to its end.

    Attributes:
        file: The open file.
        tables: The described tables: they name the owner of rows that do not.
        report: Takes what is wrong with a row, or with the file.
        container: Whose rows are read, as :func:`container_of` says; None for all. A row that names
            none is read too.
        left_out: Rows that capture's query leaves out, by operation.
        total: Rows so far, the damaged ones included.
    """

    file: RowFile
    tables: Sequence[TableId]
    report: Callable[[Finding], None]
    container: str | None = None
    left_out: Counter[str] = field(default_factory=Counter)
    total: int = 0
    _owners: Mapping[str, str] = field(default_factory=dict)
    _unreadable: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        columns = {_OTHER_NAMES.get(name, name) for name in self.file.columns}
        _refuse_lacking(columns, self.file)
        if "SEG_OWNER" not in columns:
            self._owners = _owners_of(self.tables, self.file)
        lacking = [name for name in _WITHOUT if name not in columns]
        for name in lacking:
            self.report(Finding(f"the export has no {name}: {_WITHOUT[name]}", hint=f"Export {name} as well."))  # fmt: skip

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the columns of :data:`EXPORTED`, statement by statement: pieces of one
        statement lie in one batch."""
        rows: list[tuple[Any, ...]] = []
        pieces: list[tuple[int, tuple[Any, ...]]] = []
        for number, row in self._rows():
            if pieces and not _goes_on(pieces[-1][1], row):
                self._report_unfinished(pieces)
                pieces = []
            pieces.append((number, row))
            if row[_CSF] == 1 and len(pieces) < PIECES_MAX:
                continue
            if row[_CSF] == 1:
                self._report_unfinished(pieces)
            else:
                span = pieces[0][0], pieces[-1][0]
                rows += [(*piece, *span) for _, piece in pieces]
            pieces = []
            if len(rows) >= BATCH_ROWS:
                yield _batch_of(rows)
                rows = []
        if pieces:
            self._report_unfinished(pieces)
        if rows:
            yield _batch_of(rows)
        for name, count in self._unreadable.items():
            self.report(Finding(f"{name} could not be read in {count} rows; it is left out there"))

    def _report_unfinished(self, pieces: Sequence[tuple[int, Any]]) -> None:
        first, last = pieces[0][0], pieces[-1][0]
        self.report(
            Finding(
                "a statement continues in another row (CSF) that the export lacks; its pieces are left out",
                row=first,
                last_row=last,
                hint="Export all rows in the order of the view, without ORDER BY.",
                is_damage=True,
            )
        )

    def _rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for number, found in self.file.rows:
            self.total = number
            try:
                row = self._row(number, found)
            except _UnreadableError as error:
                self.report(Finding(error.reason, row=number, hint=error.hint, is_damage=True))
                continue
            if row is not None:
                yield number, row

    def _row(self, number: int, found: Values | DamagedRow) -> tuple[Any, ...] | None:
        """The row's values in the order of ``MINED_SCHEMA``; None for one that capture never
        sees."""
        if isinstance(found, DamagedRow):
            raise _UnreadableError(found.reason, found.hint)
        values = {_OTHER_NAMES.get(name, name): value for name, value in found.items()}
        if self.container is not None and _container(values) not in (None, self.container):
            self.left_out["another container"] += 1
            return None
        code = _operation_of(values)
        if code in IGNORED:
            self.left_out[Operation(code).name] += 1
            return None
        if code == Operation.MISSING_SCN:
            self.report(
                Finding(
                    "LogMiner found a hole in the redo (MISSING_SCN): capture stops here",
                    row=number,
                    hint="Restore the missing archived logs.",
                )
            )
            return None
        row: dict[str, Any] = {"operation_code": code, "xid": _xid_of(values)}
        for name, column in _NUMBERS.items():
            row[name] = _number(values, column, _DEFAULTS.get(name))
        if row["scn"] is None:
            raise _UnreadableError("the row has no SCN")
        for name, column in _FACTS.items():
            row[name] = self._leniently(values, column, _number)
        for name, column in _TEXTS.items():
            row[name] = _text(values, column)
        row["timestamp"] = self._leniently(values, "TIMESTAMP", _time)
        row["rs_id"] = self._address(number, code, values)
        table = _text(values, "TABLE_NAME") or _text(values, "SEG_NAME")
        row["table_name"] = table
        row["seg_owner"] = _text(values, "SEG_OWNER") or self._owners.get(table or "")
        return tuple(row[one] for one in MINED_SCHEMA.names)

    def _leniently(self, values: Values, column: str, read: Callable[..., Any]) -> Any:
        try:
            return read(values, column)
        except _UnreadableError:
            self._unreadable[column] += 1
            return None

    def _address(self, number: int, code: int, values: Values) -> str:
        """RS_ID. A ROLLBACK without one may close a savepoint only; any other row has one."""
        if "RS_ID" not in self.file.columns:
            return _SOMEWHERE
        text = _text(values, "RS_ID") or ""
        try:
            is_nowhere = not text.strip() or RedoAddress.parse(text).is_zero
        except ValueError:
            raise _UnreadableError("RS_ID is not of the form 0x….….…") from None
        if not is_nowhere:
            return text
        if code in ENDS:
            return RedoAddress(sequence=0, block=0, byte=0).rs_id
        self.report(
            Finding("the row has no place in the redo (RS_ID): capture stops here", row=number)
        )
        return _SOMEWHERE


def container_of(rows: RowFile, tables: Sequence[TableId], asked: str | None) -> str | None:
    """The pluggable database whose tables are described: an XID and a name are unique in one alone.
    None where no row of the tables names one.

    Args:
        rows: The file, for a reading of its own.
        tables: The described tables.
        asked: Which one is meant, if that was said.

    Raises:
        ConfigError: Several containers have rows of the tables, and none was asked for; or the file
            does not name them.
    """
    columns = _CONTAINERS & set(rows.columns)
    if asked is not None:
        if not columns:
            raise ConfigError(
                "the export does not say which container its rows are of",
                hint="Export SRC_CON_NAME as well.",
                file=rows.path.name,
            )
        return asked
    if not columns:
        return None
    names, own = {one.name for one in tables}, {(one.owner, one.name) for one in tables}
    found: set[str] = set()
    for _, row in rows.rows:
        if isinstance(row, DamagedRow):
            continue
        name, owner = row.get("TABLE_NAME") or row.get("SEG_NAME"), row.get("SEG_OWNER")
        if ((owner, name) in own or (owner is None and name in names)) and (one := _container(row)):
            found.add(one)
    if len(found) > 1:
        raise ConfigError(
            "several containers have rows of the described tables",
            hint="Say which one is meant: --container NAME.",
            file=rows.path.name,
            containers=", ".join(sorted(found)),
        )
    return found.pop() if found else None


def _container(values: Values) -> str | None:
    """The name of the row's container, or its number where the export has no names."""
    for column in ("SRC_CON_NAME", "SRC_CON_ID"):
        if values.get(column) not in (None, ""):
            return str(values[column]).strip()
    return None


_CONTAINERS = {"SRC_CON_NAME", "SRC_CON_ID"}
_CSF = MINED_SCHEMA.get_field_index("csf")
_SAME = [MINED_SCHEMA.get_field_index(name) for name in ("xid", "rs_id", "ssn", "operation_code")]


def _goes_on(piece: tuple[Any, ...], row: tuple[Any, ...]) -> bool:
    """Is the row the next piece of the same statement?"""
    return all(piece[at] == row[at] for at in _SAME)


def _batch_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, one.type)
            for column, one in zip(columns, EXPORTED, strict=True)
        ],
        schema=EXPORTED,
    )  # fmt: skip


def _refuse_lacking(columns: set[str], file: RowFile) -> None:
    lacking = [
        *(name for name in ("SCN", "SQL_REDO") if name not in columns),
        *([] if columns & {"OPERATION_CODE", "OPERATION"} else ["OPERATION_CODE"]),
        *([] if "XID" in columns or columns.issuperset(_PARTS) else ["XID"]),
        *([] if columns & {"TABLE_NAME", "SEG_NAME"} else ["TABLE_NAME"]),
    ]
    if lacking:
        raise ConfigError(
            "the file is no export of V$LOGMNR_CONTENTS, or lacks columns of it",
            hint=_HINT_COLUMNS,
            file=file.path.name,
            columns=", ".join(lacking),
        )


def _owners_of(tables: Sequence[TableId], file: RowFile) -> dict[str, str]:
    twice = [name for name, count in Counter(one.name for one in tables).items() if count > 1]
    if twice:
        raise ConfigError(
            "the export has no SEG_OWNER, and several described tables have one name",
            hint="Export SEG_OWNER as well, or describe one of the tables only.",
            file=file.path.name,
            names=", ".join(twice),
        )
    return {one.name: one.owner for one in tables}


# -- values ----------------------------------------------------------------------------------------


def _text(values: Values, column: str) -> str | None:
    value = values.get(column)
    if value is None or isinstance(value, str):
        return value or None
    raise _UnreadableError(f"{column} is not text")


def _number(values: Values, column: str, default: int | None = None) -> int | None:
    value: Any = values.get(column)
    if value is None:
        return default
    if isinstance(value, str):
        if len(value) <= _DIGITS_SURE and value.isascii() and value.isdigit():
            return int(value)
        value = _number_of_text(value.strip(), column)
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        value = int(value)
    largest = _INT64_MAX if _INT64[column] else _INT32_MAX
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
        raise _UnreadableError(f"{column} is not a whole number")
    return int(value)


_INT64 = {
    column: MINED_SCHEMA.field(name).type == pa.int64()
    for name, column in (_NUMBERS | _FACTS).items()
} | dict.fromkeys((*_PARTS, "OPERATION_CODE"), True)


def _number_of_text(text: str, column: str) -> int | Decimal:
    if text.isascii() and text.isdigit():
        return int(text) if len(text) < 20 else _INT64_MAX + 1
    if _ROUNDED.fullmatch(text):
        raise _UnreadableError(f"{column} was rounded when it was exported", "SET NUMWIDTH 20")
    if re.fullmatch(r"\d{1,19}\.0+", text, re.ASCII):
        return Decimal(text)
    raise _UnreadableError(f"{column} is not a whole number")


def _operation_of(values: Values) -> int:
    code = _number(values, "OPERATION_CODE")
    if code is not None:
        if code > _INT32_MAX:
            raise _UnreadableError("OPERATION_CODE is no code of LogMiner's")
        return code
    name = (_text(values, "OPERATION") or "").strip().upper().replace(" ", "_")
    if name not in _CODES:
        raise _UnreadableError("the row has no OPERATION_CODE, and no OPERATION that is known", _HINT_COLUMNS)  # fmt: skip
    return int(_CODES[name])


def _xid_of(values: Values) -> str:
    """16 hex digits; zeros where a row has none."""
    value = values.get("XID")
    if value is None and values.keys() >= set(_PARTS):
        return _xid_of_parts(*(_number(values, part) or 0 for part in _PARTS))
    return read_xid(value)


def read_xid(value: object) -> str:
    """The XID as 16 hex digits, of the same, of 8 bytes, or of ``usn.slot.sqn``; zeros for None.

    The dotted form becomes what a little-endian machine has: each part with its lowest byte first.

    Raises:
        ValueError: It is none of these.
    """
    if value is None:
        return NO_XID
    if isinstance(value, bytes) and len(value) == _XID_BYTES:
        return value.hex()
    text = value.strip() if isinstance(value, str) else ""
    if found := _XID_HEX.fullmatch(text):
        return found[1].lower()
    if found := _XID_DOTTED.fullmatch(text):
        return _xid_of_parts(*(int(part) for part in found.groups()))
    raise _UnreadableError(
        "XID is neither 16 hexadecimal digits nor usn.slot.sqn nor 8 bytes",
        "Select RAWTOHEX(XID) AS XID.",
    )


def _xid_of_parts(usn: int, slot: int, sequence: int) -> str:
    if usn >= 2**16 or slot >= 2**16 or sequence >= 2**32:
        raise _UnreadableError("a part of the XID is too large")
    return b"".join((usn.to_bytes(2, "little"), slot.to_bytes(2, "little"), sequence.to_bytes(4, "little"))).hex()  # fmt: skip


def _time(values: Values, column: str) -> datetime | None:
    value = values.get(column)
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.replace(tzinfo=None, microsecond=0)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, str):
        text = value.strip()
        try:
            return datetime.fromisoformat(text).replace(tzinfo=None, microsecond=0)
        except ValueError:
            pass
        for form in _TIMES:
            try:
                return datetime.strptime(text, form)
            except ValueError:
                continue
    raise _UnreadableError(f"{column} has a form that is not known")
