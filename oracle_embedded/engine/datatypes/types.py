"""Which SQL types are there, how does describe show them, and which conversions are implicit?"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache

from oracle_embedded.api import BindMeta, ColumnMeta, ObjectShape, OraType, ShapePart
from oracle_embedded.engine.errors import unsupported

_FAMILIES = {
    OraType.VARCHAR: "text",
    OraType.CHAR: "text",
    OraType.LONG: "text",
    OraType.CLOB: "clob",
    OraType.BLOB: "blob",
    OraType.NUMBER: "number",
    OraType.BINARY_INTEGER: "number",
    OraType.BINARY_FLOAT: "float",
    OraType.BINARY_DOUBLE: "double",
    OraType.DATE: "date",
    OraType.TIMESTAMP: "timestamp",
    OraType.TIMESTAMP_TZ: "tz",
    OraType.TIMESTAMP_LTZ: "ltz",
    OraType.INTERVAL_DS: "ids",
    OraType.INTERVAL_YM: "iym",
    OraType.RAW: "raw",
    OraType.LONG_RAW: "raw",
    OraType.ROWID: "rowid",
    OraType.UROWID: "rowid",
    OraType.BOOLEAN: "bool",
    OraType.JSON: "json",
    OraType.VECTOR: "vector",
    OraType.CURSOR: "cursor",
    OraType.OBJECT: "object",
}
FAMILY_NAMES = {
    "text": "CHAR",
    "clob": "CLOB",
    "blob": "BLOB",
    "number": "NUMBER",
    "float": "BINARY_FLOAT",
    "double": "BINARY_DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "tz": "TIMESTAMP WITH TIME ZONE",
    "ltz": "TIMESTAMP WITH LOCAL TIME ZONE",
    "ids": "INTERVAL DAY TO SECOND",
    "iym": "INTERVAL YEAR TO MONTH",
    "raw": "BINARY",
    "rowid": "ROWID",
    "bool": "BOOLEAN",
    "json": "JSON",
    "vector": "VECTOR",
    "cursor": "CURSOR",
    "object": "UDT",
    "null": "NULL",
}
TEMPORAL = frozenset({"date", "timestamp", "tz", "ltz"})
DOCUMENTS = frozenset({"json", "vector"})
"""Families whose values are kept as text, neither compared nor sent to clients."""
_LONG_BUFFER = 32760
_WIRE_SIZES = {
    "number": 22,
    "float": 4,
    "double": 8,
    "date": 7,
    "timestamp": 11,
    "tz": 13,
    "ltz": 11,
    "ids": 11,
    "iym": 5,
    "rowid": 18,
    "clob": 4000,
    "blob": 4000,
    "bool": 4,
    "cursor": 4,
    "object": 2000,
}


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type with its size.

    ``precision``/``scale`` follow the dictionary: None where NUMBER has none. For text ``length``
    is in bytes, ``char_length`` in characters, ``char_used`` B or C, UNTOLD for a parameter, which
    is as long as what is passed; ``form`` 2 is national text.
    TIMESTAMP(n) has scale n, INTERVAL DAY(p) TO SECOND(s) precision p and scale s. A column of
    XMLTYPE is a CLOB that ``is_xml``, and an object to clients: documents are kept as they were
    given, and nobody looks whether they are well-formed. An object or a collection has its type in
    ``user``, a CURSOR expression its columns in ``row``: name, type, whether it may be NULL. A
    VECTOR has its number of dimensions in ``length``, 0 where any goes, and their format in
    ``dimensions``.
    """

    ora: OraType
    _: KW_ONLY
    precision: int | None = None
    scale: int | None = None
    length: int = 0
    char_length: int = 0
    char_used: str | None = None
    form: int = 0
    float_bits: int | None = None
    is_xml: bool = False
    dimensions: str = ""
    user: UserType | None = None
    row: tuple[tuple[str, SqlType, bool], ...] = ()

    @property
    def family(self) -> str:
        """The group of types that share an encoding."""
        return "null" if self is NULL or self is UNTOLD else _FAMILIES[self.ora]

    @property
    def has_locators(self) -> bool:
        """Do clients have its values by locators?"""
        return self.family in ("clob", "blob") and not self.is_xml

    @property
    def is_char(self) -> bool:
        """Is this blank-padded text?"""
        return self.ora == OraType.CHAR

    def meta(self, name: str, nullable: bool = True) -> ColumnMeta:
        """How describe shows a column of this type.

        Raises:
            OracleError: ORA-03001 for JSON and VECTOR, whose forms on the wire are not there.
        """
        family = self.family
        if family in DOCUMENTS:
            raise unsupported(f"fetching values of type {FAMILY_NAMES[family]}")
        if self.ora in (OraType.LONG, OraType.LONG_RAW):
            size = min(self.length, _LONG_BUFFER)
            return ColumnMeta(
                name, self.ora, size=size, nullable=nullable, charset_form=self.form or 0
            )
        if family in ("text", "null"):
            size = max(self.length, 1)
            return ColumnMeta(
                name,
                self.ora,
                size=size,
                char_size=max(self.char_length, 1),
                nullable=nullable,
                charset_form=self.form or 1,
            )
        if family == "raw":
            return ColumnMeta(name, self.ora, size=max(self.length, 1), nullable=nullable)
        if family == "clob":
            if self.is_xml:
                shape = XML_SHAPE
                return ColumnMeta(name, OraType.OBJECT, size=2000, nullable=nullable, shape=shape)
            return ColumnMeta(
                name, self.ora, size=4000, nullable=nullable, charset_form=self.form or 1
            )
        precision, scale = self.precision or 0, self.scale or 0
        if family == "number":
            if self.float_bits is not None:
                precision, scale = self.float_bits, -127
            elif self.precision is None and self.scale is None:
                precision, scale = 0, -127
            elif self.precision is None:
                precision = 38
        return ColumnMeta(
            name,
            OraType.NUMBER if family == "number" else self.ora,
            precision=precision,
            scale=scale,
            size=_WIRE_SIZES[family],
            nullable=nullable,
            shape=shape_of(self),
        )

    def data_type(self) -> str:
        """The name in ALL_TAB_COLS.DATA_TYPE."""
        match self.family:
            case "text":
                if self.ora == OraType.LONG:
                    return "LONG"
                base = "CHAR" if self.is_char else "VARCHAR2"
                return (
                    ("N" + base.replace("2", "")) + ("2" if base == "VARCHAR2" else "")
                    if self.form == 2
                    else base
                )
            case "clob":
                if self.is_xml:
                    return "XMLTYPE"
                return "NCLOB" if self.form == 2 else "CLOB"
            case "number":
                return "FLOAT" if self.float_bits is not None else "NUMBER"
            case "raw":
                return "LONG RAW" if self.ora == OraType.LONG_RAW else "RAW"
            case "timestamp":
                return f"TIMESTAMP({self.scale})"
            case "tz":
                return f"TIMESTAMP({self.scale}) WITH TIME ZONE"
            case "ltz":
                return f"TIMESTAMP({self.scale}) WITH LOCAL TIME ZONE"
            case "ids":
                return f"INTERVAL DAY({self.precision}) TO SECOND({self.scale})"
            case "iym":
                return f"INTERVAL YEAR({self.precision}) TO MONTH"
            case "rowid":
                return "UROWID" if self.ora == OraType.UROWID else "ROWID"
            case "object" if self.user is not None:
                return self.user.name
            case family:
                return FAMILY_NAMES[family]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserType:
    """An object type, a collection type, or a type that a package declares.

    ``oid`` is its number as hexadecimal text, empty where a name is not looked up yet. A collection
    has an ``element``, and a ``limit`` if it is a VARRAY; an associative array has the family of
    its ``index``.
    """

    owner: str
    name: str
    oid: str = ""
    attributes: tuple[tuple[str, SqlType], ...] = ()
    element: SqlType | None = None
    limit: int | None = None
    index: str = ""
    package: str = ""


@lru_cache(maxsize=1024)
def shape_of(kind: SqlType) -> ObjectShape | None:
    """How images and clients have a type; None for one that is no object."""
    user = kind.user
    if user is None:
        return None
    named = user.attributes if user.element is None else (("", user.element),)
    return ObjectShape(
        owner=user.owner,
        name=user.name,
        oid=bytes.fromhex(user.oid),
        parts=tuple(
            ShapePart(
                name=name,
                type=item.ora,
                charset_form=item.form,
                shape=shape_of(item),
                is_xml=item.is_xml,
            )
            for name, item in named
        ),
        package=user.package,
        is_collection=user.element is not None,
        has_index=bool(user.index),
        known_as=kind,
    )


XMLTYPE_OID = "00000000000000000000000000020100"
"""The number of SYS.XMLTYPE, which every database has."""
XML = SqlType(OraType.CLOB, length=4000, form=1, is_xml=True)
"""XMLTYPE."""
XML_SHAPE = ObjectShape(
    owner="SYS",
    name="XMLTYPE",
    oid=bytes.fromhex(XMLTYPE_OID),
    parts=(),
    known_as=XML,
    is_xml=True,
)


def varchar(length: int, char_length: int | None = None, form: int = 1) -> SqlType:
    """VARCHAR2 of so many bytes."""
    return SqlType(
        OraType.VARCHAR,
        length=min(max(length, 1), 32767),
        char_length=length if char_length is None else char_length,
        char_used="B",
        form=form,
    )


def char(length: int, char_length: int | None = None, form: int = 1) -> SqlType:
    """CHAR of so many bytes, as text literals are."""
    return SqlType(
        OraType.CHAR,
        length=max(length, 1),
        char_length=length if char_length is None else char_length,
        char_used="B",
        form=form,
    )


NULL = SqlType(OraType.VARCHAR, length=1, char_length=0, form=1, char_used="NULL")
UNTOLD = replace(varchar(4000), char_used="UNTOLD")
"""The type of a bind while nobody has said what it will be: it goes where any type goes."""
NUMBER = SqlType(OraType.NUMBER)
INTEGER = SqlType(OraType.NUMBER, precision=38, scale=0)
DATE = SqlType(OraType.DATE)
TIMESTAMP = SqlType(OraType.TIMESTAMP, scale=9)
TIMESTAMP_TZ = SqlType(OraType.TIMESTAMP_TZ, scale=9)
TIMESTAMP_LTZ = SqlType(OraType.TIMESTAMP_LTZ, scale=9)
INTERVAL_DS = SqlType(OraType.INTERVAL_DS, precision=9, scale=9)
INTERVAL_YM = SqlType(OraType.INTERVAL_YM, precision=9)
DOUBLE = SqlType(OraType.BINARY_DOUBLE)
FLOAT = SqlType(OraType.BINARY_FLOAT)
CLOB = SqlType(OraType.CLOB, length=4000, form=1)
BLOB = SqlType(OraType.BLOB, length=4000)
ROWID = SqlType(OraType.ROWID, length=10)
UROWID = SqlType(OraType.UROWID, length=4000)
RAW = SqlType(OraType.RAW, length=2000)
TEXT = varchar(4000)
CURSOR = SqlType(OraType.CURSOR)
BOOLEAN = SqlType(OraType.BOOLEAN)
JSON = SqlType(OraType.JSON)
VECTOR = SqlType(OraType.VECTOR)


def raw(length: int) -> SqlType:
    """RAW of so many bytes."""
    return SqlType(OraType.RAW, length=min(max(length, 1), 32767))


def bind_type(meta: BindMeta) -> SqlType:
    """The type of a bind as the client declared it."""
    family = _FAMILIES[meta.type]
    match family:
        case "text":
            form = meta.charset_form or 1
            if meta.type == OraType.CHAR:
                return char(meta.size, form=form)
            return varchar(max(meta.size, 1), form=form)
        case "clob":
            return SqlType(OraType.CLOB, length=4000, form=meta.charset_form or 1)
        case "number":
            return NUMBER
        case "raw":
            return raw(max(meta.size, 1))
        case "object" if meta.shape is not None and isinstance(meta.shape.known_as, SqlType):
            return meta.shape.known_as
    return _BY_FAMILY[family]


_BY_FAMILY = {
    "number": NUMBER,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "tz": TIMESTAMP_TZ,
    "ltz": TIMESTAMP_LTZ,
    "ids": INTERVAL_DS,
    "iym": INTERVAL_YM,
    "blob": BLOB,
    "clob": CLOB,
    "rowid": ROWID,
    "bool": BOOLEAN,
    "json": JSON,
    "vector": VECTOR,
    "cursor": CURSOR,
    "raw": RAW,
    "text": TEXT,
    "object": SqlType(OraType.OBJECT),
}


def family_type(family: str) -> SqlType:
    """A type of a family without limits."""
    return _BY_FAMILY[family]
