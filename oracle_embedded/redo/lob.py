"""How does LogMiner print what was written into a LOB column?

A small LOB lies in the row and appears as a literal; a larger one is written through a locator, in
pieces. So is an extended string, a VARCHAR2 or NVARCHAR2 of more than 4,000 bytes or a RAW of more
than 2,000, which Oracle stores as a LOB: it is put together in a temporary LOB and bound to an
UPDATE. A document of an XMLTYPE is always written so: the statement shows a bind in its place, and
rows of their own the document.

Source: rows of older releases as Debezium's parser reads them; blocks as on 23ai, where they were
measured; the in-line limit is from the SecureFiles and Large Objects guide. Of extended strings the
frame is known from Debezium's parser; which call appends the data is not, nor how RAW and national
text stand there: they have the literals that they have elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from oracle_embedded.api import OraType, StoredColumn
from oracle_embedded.charsets import CharacterSet, CharacterSets
from oracle_embedded.redo.literals import hextoraw, quoted, unistr
from oracle_embedded.redo.settings import XmlRows

OP_SELECT_LOB_LOCATOR = 9
OP_LOB_WRITE = 10
OP_LOB_TRIM = 11
OP_EXTENDED_BEGIN = 91
OP_EXTENDED_WRITE = 92
OP_EXTENDED_END = 93
OP_XML_BEGIN = 68
OP_XML_WRITE = 70
OP_XML_END = 71
_XML_PIECE = 1900
LOB_TYPES = frozenset({OraType.CLOB, OraType.BLOB})
_IN_ROW_BYTES_MAX = {OraType.VARCHAR: 4000, OraType.RAW: 2000}
NOT_EXECUTABLE = b"LOB sql_redo not re-executable"
"""INFO of rows that write a LOB, with STATUS 2, on 23ai: their blocks are complete all the same."""
XML_NOT_EXECUTABLE = b"XML sql_redo not re-executable"
"""INFO of rows that write a document, with STATUS 2; seen on 19.3."""

INLINE_BYTES_MAX = 3964
_BLOB_PIECE = 8132
_CLOB_PIECE = 4066

_DECLARE = (
    b"DECLARE \n loc_c CLOB; \n buf_c VARCHAR2(6150); \n loc_b BLOB; \n buf_b RAW(6150); \n"
    b" loc_nc NCLOB; \n buf_nc NVARCHAR2(6150); \n"
)

_EXTENDED = (
    b"DECLARE\n TempLob %b;\n buf_c   VARCHAR2(32767);\n Stmt    CLOB;\nBEGIN\n"
    b" DBMS_LOB.CreateTemporary(TempLob, FALSE);\n Stmt := '%b';"
)


def is_lob(column: StoredColumn) -> bool:
    """Is the column stored as a LOB?"""
    return column.type in LOB_TYPES or is_extended(column)


def is_xml(column: StoredColumn) -> bool:
    """Is the column an XMLTYPE, whose documents are stored in binary form?"""
    return column.data_type == "XMLTYPE"


def is_extended(column: StoredColumn) -> bool:
    """Is the column an extended string?"""
    return column.length > _IN_ROW_BYTES_MAX.get(column.type, column.length)


def empty_literal(column: StoredColumn) -> bytes:
    """What an INSERT shows for a LOB that is not NULL."""
    if is_extended(column):
        return b"LM_EMPTY_STRING"
    if is_xml(column):
        return b"XMLType(:1)"
    return b"EMPTY_BLOB()" if column.type is OraType.BLOB else b"EMPTY_CLOB()"


def lob_literal(column: StoredColumn, value: bytes | None) -> bytes:
    """A small LOB as a literal."""
    if value is None:
        return b"NULL"
    if not value:
        return empty_literal(column)
    if column.type is OraType.BLOB:
        return hextoraw(value)
    return quoted(value)  # national text too


def is_large(column: StoredColumn, value: bytes | None, sets: CharacterSets) -> bool:
    """Is the value written outside of the row?

    Characters of a CLOB take two bytes each where the character set has several bytes, else one.
    Source: SecureFiles and Large Objects Developer's Guide 19c, "Using CLOBs and NCLOBs with
    Varying-Width Character Sets".
    """
    if value is not None and is_xml(column):
        return True
    if value is None or len(value) * 2 <= INLINE_BYTES_MAX:
        return False
    if column.type in (OraType.BLOB, OraType.RAW):
        return len(value) > INLINE_BYTES_MAX
    own = sets.of(column.charset_form)
    if own.width == 1 or (is_extended(column) and column.charset_form == 1):
        return len(own.encode(value.decode())) > INLINE_BYTES_MAX
    return len(value.decode().encode("utf-16-be")) > INLINE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Place:
    """A LOB column, its table (``"OWNER"."TABLE"``), and `` where …`` of the row, or nothing.
    ``in_utf16``: offsets and lengths of text count UTF-16 units, not characters."""

    column: StoredColumn
    target: bytes
    where: bytes
    in_utf16: bool = False

    def units(self, value: str | bytes) -> int:
        """How long a value is, as offsets count."""
        if self.in_utf16 and isinstance(value, str):
            return len(value.encode("utf-16-le")) // 2
        return len(value)


def write_rows(place: Place, value: bytes, *, replaces: bool) -> Iterator[tuple[int, bytes]]:
    """Operation and SQL_REDO of the rows that write a large LOB: locator, then pieces without it.

    A value that ``replaces`` another ends with the trim of SECUREFILE storage.
    """
    locator, buffer = _variables(place.column)
    yield OP_SELECT_LOB_LOCATOR, _DECLARE + b"BEGIN\n" + _select(place, locator)
    length = 0
    for literal, size, units in _pieces(place, value):
        yield OP_LOB_WRITE, _write(locator, buffer, literal, size, length) + b"END;"
        length += units
    if replaces:
        yield OP_LOB_TRIM, b"  dbms_lob.trim(%b, %d);\nEND;" % (locator, length)


def write_blocks(
    place: Place, value: bytes, *, replaces: bool
) -> Iterator[tuple[int, bytes | None]]:
    """The same on 23ai: a locator row without a statement, then pieces that are whole blocks."""
    locator, buffer = _variables(place.column)
    head = _DECLARE + b" e_len NUMBER; \nBEGIN\n" + _select(place, locator) + b"\n"
    yield OP_SELECT_LOB_LOCATOR, None
    length = 0
    for literal, size, units in _pieces(place, value):
        yield OP_LOB_WRITE, head + _write(locator, buffer, literal, size, length) + b"END;\n\n"
        length += units
    if replaces:
        yield OP_LOB_TRIM, head + b"  dbms_lob.trim(%b, %d);\nEND;\n\n" % (locator, length)


def call_rows(
    place: Place, value: bytes, offset: int, length: int, *, is_block: bool
) -> Iterator[tuple[int, bytes | None]]:
    """Operation and SQL_REDO of the rows of one call that a client made: ``length`` written from
    ``offset`` (0-based) on into what is ``value`` now, or cut to ``length`` where the offset is
    negative."""
    locator, buffer = _variables(place.column)
    head, end = b"", b"END;"
    if is_block:
        yield OP_SELECT_LOB_LOCATOR, None
        head, end = (
            _DECLARE + b" e_len NUMBER; \nBEGIN\n" + _select(place, locator) + b"\n",
            b"END;\n\n",
        )
    else:
        yield OP_SELECT_LOB_LOCATOR, _DECLARE + b"BEGIN\n" + _select(place, locator)
    whole = value if place.column.type is OraType.BLOB else value.decode()
    if offset < 0:
        length = place.units(whole[:length])
        yield OP_LOB_TRIM, head + b"  dbms_lob.trim(%b, %d);\n" % (locator, length) + end
        return
    part = whole[offset : offset + length]
    offset = place.units(whole[:offset])
    for literal, size, units in _pieces(place, part if isinstance(part, bytes) else part.encode()):
        yield OP_LOB_WRITE, head + _write(locator, buffer, literal, size, offset) + end
        offset += units


def write_extended(place: Place, value: bytes) -> Iterator[tuple[int, bytes]]:
    """Operation and SQL_REDO of the rows that write an extended string. Its data begin at the
    thirteenth character: from there Debezium 3.6.3 takes them, unread."""
    name = f'"{place.column.name}"'.encode()
    update = b"update %b set %b = :DATA%b;" % (place.target, name, place.where)
    is_raw = place.column.type is OraType.RAW
    convert = hextoraw if is_raw else unistr if place.column.charset_form == 2 else quoted
    kind = b"BLOB" if is_raw else b"CLOB"
    yield OP_EXTENDED_BEGIN, _EXTENDED % (kind, update.replace(b"'", b"''"))
    yield (
        OP_EXTENDED_WRITE,
        b"  buf_c := %b; DBMS_LOB.WriteAppend(TempLob, LENGTH(buf_c), buf_c);" % convert(value),
    )
    yield OP_EXTENDED_END, b" EXECUTE IMMEDIATE Stmt USING TempLob;\nEND;"


def write_xml(
    place: Place, value: bytes, shape: XmlRows, own: CharacterSet
) -> Iterator[tuple[int, bytes | None]]:
    """Operation and SQL_REDO of the rows that write a document."""
    name = f'"{place.column.name}"'.encode()
    if shape is XmlRows.TEXT:
        yield (
            OP_XML_BEGIN,
            b"update %b set %b = XMLType(:1) %b;" % (place.target, name, place.where),
        )
        yield OP_XML_WRITE, value
        yield OP_XML_END, None
        return
    yield OP_XML_BEGIN, b"XML DOC BEGIN:  select %b from %b%b" % (name, place.target, place.where)
    stored = value if own.is_utf8 else own.encode(value.decode())
    counted = b"\n amount: " if shape is XmlRows.AMOUNT else b":"
    if shape is XmlRows.AMOUNT and len(value) <= _XML_PIECE:
        yield OP_XML_WRITE, b"XML_REDO := '%b'%b%d" % (value, counted, len(stored))
        stored = b""
    for at in range(0, len(stored), _XML_PIECE):
        piece = stored[at : at + _XML_PIECE]
        yield OP_XML_WRITE, b"XML_REDO := %b%b%d" % (hextoraw(piece), counted, len(piece))
    yield OP_XML_END, None


def _select(place: Place, locator: bytes) -> bytes:
    name = f'"{place.column.name}"'.encode()
    return b" select %b into %b from %b%b for update;\n" % (
        name,
        locator,
        place.target,
        place.where,
    )


def _write(locator: bytes, buffer: bytes, literal: bytes, size: int, offset: int) -> bytes:
    text = b" %b := %b; \n  dbms_lob.write(%b, %d, %d, %b);\n"
    return text % (buffer, literal, locator, size, offset + 1, buffer)


def _variables(column: StoredColumn) -> tuple[bytes, bytes]:
    if column.type is OraType.BLOB:
        return b"loc_b", b"buf_b"
    return (b"loc_nc", b"buf_nc") if column.charset_form == 2 else (b"loc_c", b"buf_c")


def _pieces(place: Place, value: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Literals, each with its amount, and by how much the offset of what follows is higher."""
    if place.column.type is OraType.BLOB:
        for at in range(0, len(value), _BLOB_PIECE):
            piece = value[at : at + _BLOB_PIECE]
            yield hextoraw(piece), len(piece), len(piece)
        return
    text = value.decode()
    for at in range(0, len(text), _CLOB_PIECE):
        part = text[at : at + _CLOB_PIECE]
        yield quoted(part.encode()), len(part), place.units(part)
