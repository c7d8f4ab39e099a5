"""What does DBMS_PICKLER tell of a type: its number, its attributes, and how its images are read?

Source: the blocks that drivers send before they make or read objects.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

from oracle_embedded.api import ColumnMeta, OracleError, OraType, Value
from oracle_embedded.engine.datatypes import numbers, types
from oracle_embedded.engine.datatypes.types import XMLTYPE_OID, SqlType, UserType
from oracle_embedded.engine.plsql.composites import PlType, RecordType, TableType
from oracle_embedded.engine.plsql.objects import sql_type
from oracle_embedded.engine.plsql.state import Frame
from oracle_embedded.engine.plsql.values import Found, assign, evaluate
from oracle_embedded.engine.run.contracts import OpenCursor
from oracle_embedded.engine.run.query_run import ListRows
from oracle_embedded.engine.run.user_types import find_type
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import ProgramDef, TableDef

_NAME = re.compile(r'"([^"]+)"|([^".%]+)')
_ROW_TYPE = "%ROWTYPE"
_UNKNOWN = 1403
_ATTRIBUTES = (
    ("VERSION", OraType.NUMBER),
    ("ATTR_NAME", OraType.VARCHAR),
    ("ATTR_NO", OraType.NUMBER),
    ("ATTR_TYPE_NAME", OraType.VARCHAR),
    ("ATTR_TYPE_OWNER", OraType.VARCHAR),
    ("ATTR_TYPE_PACKAGE", OraType.VARCHAR),
    ("ATTR_TOID", OraType.RAW),
    ("INSTANTIABLE", OraType.VARCHAR),
    ("SUPERTYPE_OWNER", OraType.VARCHAR),
    ("SUPERTYPE_NAME", OraType.VARCHAR),
)
_COLUMNS = [
    ColumnMeta(
        name,
        kind,
        scale=-127 if kind is OraType.NUMBER else 0,
        size=128,
        char_size=128,
        charset_form=1 if kind is OraType.VARCHAR else 0,
    )
    for name, kind in _ATTRIBUTES
]


def _get_type_shape(frame: Frame, node: ast.Call) -> Found:
    """GET_TYPE_SHAPE: 0 and what there is to know of a type, or an error's number where there is
    none that the user may use."""
    if len(node.args) != 9:
        raise frame.error(node.pos, 306, "wrong number or types of arguments in call to 'GET_TYPE_SHAPE'")  # fmt: skip
    value, _ = evaluate(frame, node.args[0], types.TEXT)
    full_name = value.decode() if isinstance(value, bytes) else ""
    found = _xml_type(full_name) or _row_type(frame, full_name) or _named_type(frame, full_name)
    if found is None:
        return numbers.encode(_UNKNOWN), types.NUMBER
    name, kind = found
    user = kind.user
    assert user is not None
    rows = _attribute_rows(user)
    given: Mapping[int, Found] = {
        0: (name.encode(), types.TEXT),
        1: (bytes.fromhex(user.oid), types.RAW),
        2: (numbers.encode(1), types.NUMBER),
        3: (_description(name, user), types.RAW),
        7: (
            frame.session.keep_cursor(OpenCursor(ListRows(rows, _COLUMNS), _COLUMNS)),
            types.CURSOR,
        ),
    }
    for place, value_given in given.items():
        assign(frame, node.args[place], value_given)
    return numbers.encode(0), types.NUMBER


def _parts(text: str) -> ast.Name:
    return tuple(quoted or plain.strip().upper() for quoted, plain in _NAME.findall(text))


def _xml_type(text: str) -> tuple[str, SqlType] | None:
    if _parts(text) != ("SYS", "XMLTYPE"):
        return None
    user = UserType(owner="SYS", name="XMLTYPE", oid=XMLTYPE_OID)
    return text, SqlType(OraType.OBJECT, user=user)


def _row_type(frame: Frame, text: str) -> tuple[str, SqlType] | None:
    """The type of a table's rows."""
    if not text.upper().endswith(_ROW_TYPE):
        return None
    *owner, name = _parts(text[: -len(_ROW_TYPE)]) or ("",)
    session = frame.session
    found = session.database.find(session, owner[0] if owner else session.schema, name)
    if not isinstance(found, TableDef) or not session.database.security.may_select(session.rights, found):  # fmt: skip
        return None
    shown = [column for column in found.named if not column.is_invisible]
    attributes = tuple((column.name, column.type) for column in shown)
    kind = _kept(frame, UserType(owner=found.owner, name=f"{found.name}{_ROW_TYPE}", attributes=attributes, package=found.name))  # fmt: skip
    return f"{found.owner}.{found.name}{_ROW_TYPE}", kind


def _named_type(frame: Frame, text: str) -> tuple[str, SqlType] | None:
    """A type by its name, or one that a package declares."""
    name = _parts(text)
    if not 0 < len(name) <= 3:
        return None
    made = find_type(frame.session, name)
    if made is not None:
        return None if made.errors else (text, made.type)
    if len(name) < 2:
        return None
    held = frame.services.find(frame, name)
    if not isinstance(held, RecordType | TableType) or held.user is not None:
        return None
    session = frame.session
    owner = name[0] if len(name) == 3 else session.schema
    package = session.database.find(session, owner, name[-2])
    assert isinstance(package, ProgramDef)
    return text, _packaged(frame, held, package)


def _packaged(frame: Frame, held: PlType, package: ProgramDef) -> SqlType:
    """A type of a package as clients have it; those inside of it are named as well."""
    known = sql_type(held)
    if known is not None:
        return known
    assert isinstance(held, RecordType | TableType)
    if isinstance(held, RecordType) and held.name.endswith(_ROW_TYPE):
        # Drivers read the columns of such a record from the dictionary.
        return _kept(frame, UserType(owner=package.owner, name=held.name))
    if isinstance(held, RecordType):
        attributes = tuple((name, _packaged(frame, item, package)) for name, item in held.fields)
        user = UserType(
            owner=package.owner, name=held.name, attributes=attributes, package=package.name
        )
    else:
        if held.index == "TEXT":
            raise OracleError(3001, "unimplemented feature: associative arrays by text as binds")
        element = _packaged(frame, held.element, package)
        user = UserType(
            owner=package.owner,
            name=held.name,
            element=element,
            index=held.index,
            limit=held.limit,
            package=package.name,
        )
    return _kept(frame, user)


def _kept(frame: Frame, user: UserType) -> SqlType:
    """A type that is no object of the database, with the number by which clients name it."""
    text = f"{user.owner}.{user.package}.{user.name}"
    number = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    kind = SqlType(
        OraType.OBJECT,
        user=UserType(
            owner=user.owner,
            name=user.name,
            oid=number,
            attributes=user.attributes,
            element=user.element,
            limit=user.limit,
            index=user.index,
            package=user.package,
        ),
    )
    frame.session.database.packaged_types[number] = kind
    return kind


def _attribute_rows(user: UserType) -> list[Sequence[Value]]:
    rows: list[Sequence[Value]] = []
    for place, (name, kind) in enumerate(user.attributes, 1):
        inner = kind.user
        rows.append(
            (
                numbers.encode(1),
                name.encode(),
                numbers.encode(place),
                type_name(kind).encode(),
                None
                if inner is None and not kind.is_xml
                else b"SYS"
                if inner is None
                else inner.owner.encode(),
                inner.package.encode() if inner is not None and inner.package else None,
                bytes.fromhex(inner.oid)
                if inner is not None
                else bytes.fromhex(XMLTYPE_OID)
                if kind.is_xml
                else None,
                b"YES",
                None,
                None,
            )
        )
    return rows


def type_name(kind: SqlType) -> str:
    """A type's name in ALL_TYPE_ATTRS."""
    match kind.family:
        case "number" if kind.ora is OraType.BINARY_INTEGER:
            return "PL/SQL PLS INTEGER"
        case "number" if kind.float_bits is not None:
            return "REAL" if kind.float_bits == 63 else "FLOAT"
        case "timestamp":
            return "TIMESTAMP"
        case "tz":
            return "TIMESTAMP WITH TZ"
        case "ltz":
            return "TIMESTAMP WITH LOCAL TZ"
        case "ids":
            return "INTERVAL DAY TO SECOND"
        case "iym":
            return "INTERVAL YEAR TO MONTH"
        case "bool":
            return "PL/SQL BOOLEAN"
    return kind.data_type()


# --- type descriptions ----------------------------------------------------------------------------

_COLLECTION, _OBJECT = 28, 27
_END = 42
_INDEX_TABLE, _NESTED_TABLE, _VARRAY = 1, 2, 3
_HEAD = 18
_BY_FAMILY = {
    "date": b"\x02",
    "bool": b"\x08",
    "float": b"\x25",
    "double": b"\x2d",
    "blob": b"\x1e",
    "clob": b"\x1d",
}


_DOCUMENT_DESCRIPTION = bytes.fromhex(
    "00000027 26 01 0001 0001 ff 29 0000 00000027"  # one part, which is the type itself
    " 1b 00000019 3a 2a"  # a type that every database has, described at 25
    " 3a 0000000000 00000000 00000000"  # opaque, without flags and without a length
)
"""The same of XMLTYPE, as JDBC reads it."""


def _description(name: str, user: UserType) -> bytes:
    if user.oid == XMLTYPE_OID:
        return _DOCUMENT_DESCRIPTION
    return b"" if name.endswith(_ROW_TYPE) else type_description(user)


def type_description(user: UserType) -> bytes:
    """The type description segment, from which drivers read sizes and, of a collection, the kind of
    its elements."""
    if user.element is None:
        body = b"".join(_described(kind) for _, kind in user.attributes)
        count = len(user.attributes)
        if count == 1 and body[0] == _COLLECTION:
            body = b"\x2b" + body
    else:
        how = _INDEX_TABLE if user.index else _NESTED_TABLE if user.limit is None else _VARRAY
        place = _HEAD + 11
        body = (
            bytes((_COLLECTION,)) + place.to_bytes(4, "big") + (user.limit or 0).to_bytes(4, "big")
        )
        body += bytes((how, _END)) + _described(user.element)
        count = 1
    size = _HEAD + len(body)
    head = size.to_bytes(4, "big") + b"\x26\x01\x00\x01" + count.to_bytes(2, "big")
    return head + b"\x00\x29\x00\x00" + size.to_bytes(4, "big") + body


def _described(kind: SqlType) -> bytes:
    match kind.family:
        case "number" if kind.float_bits is not None:
            return bytes((5, kind.float_bits))
        case "number" if kind.ora is OraType.BINARY_INTEGER:
            return bytes((6, 0, 0))
        case "number":
            meta = kind.meta("")
            return bytes((6, meta.precision, meta.scale & 0xFF))
        case "text":
            letter = 1 if kind.is_char else 7
            return bytes((letter,)) + kind.length.to_bytes(2, "big") + bytes((kind.form or 1, 3, 105))  # fmt: skip
        case "raw":
            return b"\x13" + kind.length.to_bytes(2, "big")
        case "timestamp":
            return bytes((21, kind.scale or 0))
        case "tz":
            return bytes((23, kind.scale or 0))
        case "ltz":
            return bytes((33, kind.scale or 0))
        case "object":
            return bytes((_OBJECT, 0, 0, 0, 0, 0))
    if kind.is_xml:
        return bytes((_OBJECT, 0, 0, 0, 0, 0))
    found = _BY_FAMILY.get(kind.family)
    if found is None:
        raise OracleError(3001, f"unimplemented feature: {kind.data_type()} in objects of clients")
    return found


def _get_max_string_size(frame: Frame, _node: ast.Call) -> Found:
    """What JDBC asks for the types of a database: the longest VARCHAR2 of a column."""
    size = 32767 if frame.session.database.has_extended_strings else 4000
    return numbers.encode(size), types.NUMBER


def _local_transaction(frame: Frame, node: ast.Call) -> Found:
    """DBMS_TRANSACTION.LOCAL_TRANSACTION_ID: NULL without one, unless one shall begin."""
    session = frame.session
    if node.args and evaluate(frame, node.args[0], types.BOOLEAN)[0] == b"\x01":
        with session.database.store.lock:
            session.need_transaction()
    if session.transaction is None:
        return None, types.TEXT
    xid = session.transaction.info.xid
    parts = [int.from_bytes(xid[a:b], "little") for a, b in ((0, 2), (2, 4), (4, 8))]
    return ".".join(map(str, parts)).encode(), types.TEXT


SPECIAL_FUNCTIONS: Mapping[tuple[str, ...], Callable[[Frame, ast.Call], Found]] = {
    ("DBMS_PICKLER", "GET_TYPE_SHAPE"): _get_type_shape,
    ("DBMS_TRANSACTION", "LOCAL_TRANSACTION_ID"): _local_transaction,
    ("PRIVATE_JDBC", "GET_MAX_STRING_SIZE"): _get_max_string_size,
}
"""Functions by name that assign to their arguments, or ask for more than values."""
