"""How is a row of V$LOGMNR_CONTENTS laid out and filled?

Rows have nearly seventy columns of which a query reads a few: a function is compiled that fills
only those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol, cast

from oracle_embedded import values
from oracle_embedded.api import ColumnMeta, OraType, TableVersion, Value
from oracle_embedded.redo import store
from oracle_embedded.redo.dictionary import Resolved
from oracle_embedded.redo.numbers import number_from_int

Row = tuple[Value, ...]
_MEMO_MAX = 50_000


class _Memo(dict[int, bytes]):
    def __init__(self, convert: Callable[[int], bytes]) -> None:
        super().__init__()
        self._convert = convert

    def __missing__(self, key: int) -> bytes:
        if len(self) > _MEMO_MAX:
            self.clear()
        value = self[key] = self._convert(key)
        return value


NUMBERS = _Memo(number_from_int)
"""NUMBERs by integer."""

DATES = _Memo(lambda when: values.date_from_datetime(datetime.fromtimestamp(when, UTC)))
"""DATEs by seconds since 1970."""


class RowMaker(Protocol):
    """Fills a row of the view from a record and what it refers to, each encoded once for many
    rows."""

    def __call__(
        self,
        record: Sequence[object],
        log: LogFacts,
        transaction: TransactionFacts,
        thing: ObjectFacts,
        redo: bytes | None,
        *,
        undo: bytes | None = None,
        csf: int = 0,
        rollback: int = 0,
        row_id: bytes | None = None,
        info: bytes | None = None,
        status: int = 0,
        commit_scn: Value = None,
        commit_time: Value = None,
        ordinal: int = 1,
        ssn: int = 0,
    ) -> Row:
        """The row; columns that the query does not read are None. ``record`` is a row of
        ``redo_record``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What rows show of their log; ``live`` when it is read from its online file."""

    live: bool
    sequence: int
    sequence_number: bytes
    thread: bytes
    name: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFacts:
    """What rows show of their transaction, encoded; names are UNKNOWN when its start is not
    mined."""

    xid: Value
    usn: Value
    slot: Value
    sequence: Value
    username: Value
    client_id: Value
    session: Value
    serial: Value
    session_info: Value
    start_scn: Value
    start_time: Value

    def partial(self) -> TransactionFacts:
        """The same with the sequence of its XID unknown: ``ffffffff``."""
        assert isinstance(self.xid, bytes)
        return replace(self, xid=self.xid[:4] + b"\xff" * 4, sequence=number_from_int(_NO_SEQUENCE))

    def of_ddl(self) -> TransactionFacts:
        """The same as a DDL row shows it: without its beginning."""
        return replace(self, start_scn=None, start_time=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """What rows show of their object, encoded."""

    owner: Value
    name: Value
    segment: Value
    object_id: Value
    version: Value
    data_object_id: Value
    seg_type: Value
    seg_type_name: Value
    tablespace: Value


NO_OBJECT = ObjectFacts(
    owner=None,
    name=None,
    segment=None,
    object_id=NUMBERS[0],
    version=NUMBERS[0],
    data_object_id=NUMBERS[0],
    seg_type=NUMBERS[0],
    seg_type_name=None,
    tablespace=None,
)
_NO_XID = bytes(8)
NO_TRANSACTION = TransactionFacts(
    xid=_NO_XID,
    usn=NUMBERS[0],
    slot=NUMBERS[0],
    sequence=NUMBERS[0],
    username=b"UNKNOWN",
    client_id=None,
    session=NUMBERS[0],
    serial=NUMBERS[0],
    session_info=b"UNKNOWN",
    start_scn=None,
    start_time=None,
)
_NO_SEQUENCE = 0xFFFFFFFF


def transaction_facts(transaction: store.Transaction | None, *, resolved: bool) -> TransactionFacts:
    """Facts of a transaction; ``resolved`` when its START lies in the mined range."""
    if transaction is None:
        return NO_TRANSACTION
    xid = transaction.xid
    parts = [int.from_bytes(xid[a:b], "little") for a, b in ((0, 2), (2, 4), (4, 8))]
    usn, slot, sequence = (NUMBERS[part] for part in parts)
    if not resolved:
        return TransactionFacts(
            xid=xid,
            usn=usn,
            slot=slot,
            sequence=sequence,
            username=b"UNKNOWN",
            client_id=None,
            session=NUMBERS[0],
            serial=NUMBERS[0],
            session_info=b"UNKNOWN",
            start_scn=None,
            start_time=None,
        )
    username = transaction.username.encode()
    return TransactionFacts(
        xid=xid,
        usn=usn,
        slot=slot,
        sequence=sequence,
        username=username,
        client_id=transaction.client_id.encode() if transaction.client_id else None,
        session=NUMBERS[transaction.session_id],
        serial=NUMBERS[transaction.serial],
        session_info=b"login_username=%b client_info= OS_username=UNKNOWN Machine_name=UNKNOWN OS_terminal="
        b" OS_process_id= OS_program_name=UNKNOWN" % username,
        start_scn=NUMBERS[transaction.start_scn],
        start_time=DATES[transaction.start_time],
    )


def object_facts(resolved: Resolved, row_version: TableVersion) -> ObjectFacts:
    """Names as the dictionary resolved them, numbers as the row has them."""
    table, segment = resolved.table, resolved.segment
    known = segment is None
    is_partition = known and table.partition is not None
    shown = f"{table.name},{table.partition}" if is_partition else table.name
    return ObjectFacts(
        owner=table.owner.encode() if known else None,
        name=table.name.encode() if known else None,
        segment=(segment or shown).encode(),
        object_id=NUMBERS[row_version.object_id],
        version=NUMBERS[row_version.object_version],
        data_object_id=NUMBERS[row_version.data_object_id],
        seg_type=NUMBERS[0] if not known else NUMBERS[19] if is_partition else NUMBERS[2],
        seg_type_name=None if not known else b"TABLE PARTITION" if is_partition else b"TABLE",
        tablespace=b"USERS",
    )


def ddl_facts(owner: str, table: str | None, object_id: int) -> ObjectFacts:
    """Facts of a DDL row."""
    return ObjectFacts(
        owner=owner.encode() or None,
        name=table.encode() if table else None,
        segment=table.encode() if table else None,
        object_id=NUMBERS[object_id],
        version=NUMBERS[0],
        data_object_id=NUMBERS[0],
        seg_type=NUMBERS[2] if table else NUMBERS[0],
        seg_type_name=b"TABLE" if table else None,
        tablespace=None,
    )


OP_UNSUPPORTED = 255
OPERATIONS = {
    0: b"INTERNAL",
    1: b"INSERT",
    2: b"DELETE",
    3: b"UPDATE",
    5: b"DDL",
    6: b"START",
    7: b"COMMIT",
    9: b"SELECT_LOB_LOCATOR",
    10: b"LOB_WRITE",
    11: b"LOB_TRIM",
    34: b"MISSING_SCN",
    36: b"ROLLBACK",
    68: b"XML DOC BEGIN",
    70: b"XML DOC WRITE",
    71: b"XML DOC END",
    91: b"32K_BEGIN",
    92: b"32K_WRITE",
    93: b"32K_END",
    OP_UNSUPPORTED: b"UNSUPPORTED",
}

_PARAMETERS = (
    "record, log, transaction, thing, redo, *, undo=None, csf=0, rollback=0, row_id=None, info=None,"
    " status=0, commit_scn=None, commit_time=None, ordinal=1, ssn=0"
)
_ZERO = "numbers[0]"
_UNUSED = "None"
# name, type (N number, D date, Rn raw, Vn text of n bytes), expression; {field} is one of the
# record
_LAYOUT = [
    ("SCN", "N", "encode({scn})"),
    ("START_SCN", "N", "transaction.start_scn"),
    ("COMMIT_SCN", "N", "commit_scn"),
    ("TIMESTAMP", "D", "dates[{time}]"),
    ("START_TIMESTAMP", "D", "transaction.start_time"),
    ("COMMIT_TIMESTAMP", "D", "commit_time"),
    ("XIDUSN", "N", "transaction.usn"),
    ("XIDSLT", "N", "transaction.slot"),
    ("XIDSQN", "N", "transaction.sequence"),
    ("XID", "R8", "transaction.xid"),
    ("PXIDUSN", "N", "transaction.usn"),
    ("PXIDSLT", "N", "transaction.slot"),
    ("PXIDSQN", "N", "transaction.sequence"),
    ("PXID", "R8", "transaction.xid"),
    ("TX_NAME", "V256", _UNUSED),
    ("OPERATION", "V32", "operations[{op}]"),
    ("OPERATION_CODE", "N", "numbers[{op}]"),
    ("ROLLBACK", "N", "numbers[rollback]"),
    ("SEG_OWNER", "V128", "thing.owner"),
    ("SEG_NAME", "V384", "thing.segment"),
    ("TABLE_NAME", "V128", "thing.name"),
    ("SEG_TYPE", "N", "thing.seg_type"),
    ("SEG_TYPE_NAME", "V128", "thing.seg_type_name"),
    ("TABLE_SPACE", "V128", "thing.tablespace"),
    ("ROW_ID", "V18", "row_id or b'AAAAAAAAAAAAAAAAAA'"),
    ("USERNAME", "V384", "transaction.username"),
    ("OS_USERNAME", "V4000", "b'UNKNOWN'"),
    ("MACHINE_NAME", "V4000", "b'UNKNOWN'"),
    ("AUDIT_SESSIONID", "N", "transaction.session"),
    ("SESSION#", "N", "transaction.session"),
    ("SERIAL#", "N", "transaction.serial"),
    ("SESSION_INFO", "V4000", "transaction.session_info"),
    ("THREAD#", "N", "log.thread"),
    ("SEQUENCE#", "N", "numbers[ordinal]"),
    ("RBASQN", "N", "log.sequence_number"),
    ("RBABLK", "N", "numbers[{position} // 496 + 2]"),
    ("RBABYTE", "N", "numbers[{position} % 496 + 16]"),
    ("UBAFIL", "N", _ZERO),
    ("UBABLK", "N", _ZERO),
    ("UBAREC", "N", _ZERO),
    ("UBASQN", "N", _ZERO),
    ("ABS_FILE#", "N", _ZERO),
    ("REL_FILE#", "N", _ZERO),
    ("DATA_BLK#", "N", _ZERO),
    ("DATA_OBJ#", "N", "thing.object_id"),
    ("DATA_OBJV#", "N", "thing.version"),
    ("DATA_OBJD#", "N", "thing.data_object_id"),
    ("SQL_REDO", "V4000", "redo"),
    ("SQL_UNDO", "V4000", "undo"),
    (
        "RS_ID",
        "V32",
        "b' 0x%06x.%08x.%04x ' % (log.sequence, {position} // 496 + 2, {position} % 496 + 16)",
    ),
    ("SSN", "N", "numbers[ssn]"),
    ("CSF", "N", "numbers[csf]"),
    ("INFO", "V64", "info"),
    ("STATUS", "N", "numbers[status]"),
    ("REDO_VALUE", "N", "encode(2 * {id})"),
    ("UNDO_VALUE", "N", "encode(2 * {id} + 1)"),
    ("SAFE_RESUME_SCN", "N", _ZERO),
    ("CSCN", "N", "commit_scn"),
    ("OBJECT_ID", "R16", _UNUSED),
    ("EDITION_NAME", "V384", _UNUSED),
    ("CLIENT_ID", "V64", "transaction.client_id"),
    ("SRC_CON_NAME", "V384", "container"),
    ("SRC_CON_ID", "N", "container_id"),
    ("SRC_CON_UID", "N", "container_uid"),
    ("SRC_CON_DBID", "N", "container_uid"),
    ("SRC_CON_GUID", "R16", _UNUSED),
    ("CON_ID", "N", "session_container_id"),
]
COLUMN_NAMES = tuple(name for name, _kind, _source in _LAYOUT)


def column_meta(name: str, kind: str) -> ColumnMeta:
    """A view's column from its short form: ``N`` number, ``D`` date, ``R8`` raw, ``V32`` text."""
    if kind == "N":
        return ColumnMeta(name, OraType.NUMBER, precision=0, scale=-127, size=22)
    if kind == "D":
        return ColumnMeta(name, OraType.DATE, size=7)
    size = int(kind[1:])
    if kind.startswith("R"):
        return ColumnMeta(name, OraType.RAW, size=size)
    return ColumnMeta(name, OraType.VARCHAR, size=size, char_size=size, charset_form=1)


COLUMNS = tuple(column_meta(name, kind) for name, kind, _source in _LAYOUT)


@lru_cache(maxsize=64)
def row_maker(
    wanted: frozenset[str] | None, container: str, container_id: int, dbid: int, *, in_root: bool
) -> RowMaker:
    """A function that makes the row from what a record holds, leaving columns that are not wanted
    None.

    CON_ID is the session's container, which mines for all when it is the root (measured on 23ai);
    SRC_CON_ID the row's.
    """
    places = {field: f"record[{at}]" for at, field in enumerate(store.Record._fields)}
    sources = [
        source.format(**places) if wanted is None or name in wanted else _UNUSED
        for name, _kind, source in _LAYOUT
    ]
    names = {
        "numbers": NUMBERS,
        "encode": number_from_int,
        "dates": DATES,
        "operations": OPERATIONS,
        "container": container.encode(),
        "container_id": NUMBERS[container_id],
        "session_container_id": NUMBERS[1 if in_root else container_id],
        "container_uid": NUMBERS[dbid],
    }
    # The source is the table above; nothing of it comes from outside.
    return cast(RowMaker, eval(f"lambda {_PARAMETERS}: ({', '.join(sources)},)", names))  # noqa: S307


_NO_ADDRESS = {
    COLUMN_NAMES.index("RS_ID"): b" 0x000000.00000000.0000 ",
    **{COLUMN_NAMES.index(name): NUMBERS[0] for name in ("RBASQN", "RBABLK", "RBABYTE")},
}
_INTERNAL = {COLUMN_NAMES.index("OPERATION"): b"INTERNAL"}
_NO_CONTAINER = {COLUMN_NAMES.index("SRC_CON_NAME"): None, COLUMN_NAMES.index("SRC_CON_ID"): None}
_NO_THREAD = {COLUMN_NAMES.index("THREAD#"): NUMBERS[0]}


def without_address(row: Row) -> Row:
    """The row as it looks when LogMiner cannot say where its redo lies: an address of zeros."""
    return _replaced(row, _NO_ADDRESS)


def without_thread(row: Row) -> Row:
    """The row as it looks when it belongs to no redo thread."""
    return _replaced(row, _NO_THREAD)


def without_container(row: Row) -> Row:
    """The row as it looks when it belongs to no container."""
    return _replaced(row, _NO_CONTAINER)


def internal(row: Row) -> Row:
    """The row of an operation that LogMiner has no statement for: only its code tells what it
    is."""
    return _replaced(row, _INTERNAL)


def _replaced(row: Row, others: Mapping[int, bytes | None]) -> Row:
    """Columns that the query does not read stay None."""
    return tuple(
        others.get(at, value) if value is not None else None for at, value in enumerate(row)
    )
