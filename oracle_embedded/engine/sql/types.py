"""How are datatypes written?"""

from __future__ import annotations

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.datatypes.types import XML, SqlType, UserType
from oracle_embedded.engine.sql.stream import TokenStream

TEXT_MAX = 4000
RAW_MAX = 2000
"""Bytes of a VARCHAR2 and of a RAW where MAX_STRING_SIZE is STANDARD."""
_EXTENDED_MAX = 32767
_LONG_MAX = 2**31 - 1
_CHAR_MAX = 2000
_DIMENSIONS_MAX = 65535
_DIMENSION_FORMATS = frozenset({"FLOAT32", "FLOAT64"})
_NATIONAL_BYTES = 2
_CHAR_BYTES = 4
_MISSING = frozenset({"BFILE", "JSON", "VECTOR", "BOOLEAN", "BINARY_INTEGER", "PLS_INTEGER"})
"""What exists in Oracle, now or later, and is no type of a column here."""


def read_datatype(stream: TokenStream, *, of_column: bool = False) -> SqlType:
    """Read a datatype. A column's may be as long as MAX_STRING_SIZE allows at most, which the
    database checks.

    Raises:
        OracleError: ORA-00902 for an unknown one, ORA-00910, ORA-01727, ORA-01728 … for sizes out
            of range.
    """
    start, first = stream.token.start, stream.at
    is_long = stream.plsql or of_column
    if stream.is_word("SYS") and stream.ahead().text == "." and stream.ahead(2).text == "XMLTYPE":
        stream.at += 2
    word = stream.next().text if stream.token.kind == "word" else ""
    match word:
        case "VARCHAR2" | "VARCHAR":
            return _read_text(stream, OraType.VARCHAR, required=True, is_long=is_long)
        case "STRING" if stream.plsql:
            return _read_text(stream, OraType.VARCHAR, required=True, is_long=True)
        case "CHAR" | "CHARACTER":
            varying = stream.take_word("VARYING")
            return _read_text(
                stream,
                OraType.VARCHAR if varying else OraType.CHAR,
                required=varying,
                is_long=is_long,
            )
        case "NVARCHAR2":
            return _read_national(stream, OraType.VARCHAR, required=True, is_long=is_long)
        case "NCHAR":
            varying = stream.take_word("VARYING")
            return _read_national(
                stream,
                OraType.VARCHAR if varying else OraType.CHAR,
                required=varying,
                is_long=is_long,
            )
        case "NUMBER" | "NUMERIC" | "DECIMAL" | "DEC":
            return _read_number(stream, default_scale=word != "NUMBER")
        case "INTEGER" | "INT" | "SMALLINT":
            return SqlType(OraType.NUMBER, scale=0)
        case "PLS_INTEGER" | "BINARY_INTEGER" | "SIMPLE_INTEGER" | "NATURAL" | "POSITIVE":
            return SqlType(OraType.BINARY_INTEGER, precision=10, scale=0)
        case "FLOAT" | "REAL" | "DOUBLE":
            return _read_float(stream, word)
        case "BINARY_FLOAT":
            return SqlType(OraType.BINARY_FLOAT)
        case "BINARY_DOUBLE":
            return SqlType(OraType.BINARY_DOUBLE)
        case "DATE":
            return SqlType(OraType.DATE)
        case "TIMESTAMP":
            return _read_timestamp(stream)
        case "INTERVAL":
            return _read_interval(stream)
        case "RAW":
            stream.need_op("(")
            size = _read_size(stream, _EXTENDED_MAX if is_long else RAW_MAX, start)
            stream.need_op(")")
            return SqlType(OraType.RAW, length=size)
        case "LONG":
            if stream.take_word("RAW"):
                return SqlType(OraType.LONG_RAW, length=_LONG_MAX)
            return SqlType(OraType.LONG, length=32760, char_length=32760, form=1)
        case "CLOB" | "NCLOB":
            return SqlType(OraType.CLOB, length=4000, form=2 if word == "NCLOB" else 1)
        case "XMLTYPE":
            return XML
        case "BLOB":
            return SqlType(OraType.BLOB, length=4000)
        case "ROWID":
            return SqlType(OraType.ROWID, length=10)
        case "UROWID":
            if stream.take_op("("):
                stream.integer()
                stream.need_op(")")
            return SqlType(OraType.UROWID, length=4000)
        case "BOOLEAN" if stream.plsql or of_column:
            return SqlType(OraType.BOOLEAN)
        case "JSON" if of_column:
            return SqlType(OraType.JSON)
        case "VECTOR" if of_column:
            return _read_vector(stream)
    stream.at = first
    if of_column and stream.token.kind in ("word", "quoted") and stream.token.text not in _MISSING:
        return _read_user_type(stream)
    raise OracleError(902, "invalid datatype", start)


def _read_user_type(stream: TokenStream) -> SqlType:
    """The name of an object type or collection type, which the database looks up."""
    *owner, name = stream.name()
    return SqlType(OraType.OBJECT, user=UserType(owner="".join(owner), name=name))


def _read_size(stream: TokenStream, most: int, start: int) -> int:
    size = stream.integer()
    if size == 0:
        raise OracleError(1723, "zero-length columns are not allowed", start)
    if not 0 < size <= most:
        raise OracleError(910, "specified length too long for its datatype", start)
    return size


def _read_text(stream: TokenStream, ora_type: OraType, *, required: bool, is_long: bool) -> SqlType:
    start = stream.token.start
    most = _CHAR_MAX if ora_type == OraType.CHAR else TEXT_MAX
    if stream.plsql or (is_long and ora_type == OraType.VARCHAR):
        most = _EXTENDED_MAX
    if not stream.is_op("("):
        if required:
            raise stream.error(906)
        return SqlType(ora_type, length=1, char_length=1, char_used="B", form=1)
    stream.need_op("(")
    size = _read_size(stream, most, start)
    unit = stream.take_any("BYTE", "CHAR")
    stream.need_op(")")
    if unit == "CHAR":
        length = min(size * _CHAR_BYTES, most)
        return SqlType(ora_type, length=length, char_length=size, char_used="C", form=1)
    return SqlType(ora_type, length=size, char_length=size, char_used="B", form=1)


def _read_national(
    stream: TokenStream, ora_type: OraType, *, required: bool, is_long: bool
) -> SqlType:
    start = stream.token.start
    size = 1
    most = _CHAR_MAX if ora_type == OraType.CHAR else TEXT_MAX
    if is_long and ora_type == OraType.VARCHAR:
        most = _EXTENDED_MAX
    most //= _NATIONAL_BYTES
    if stream.is_op("(") or required:
        stream.need_op("(")
        size = _read_size(stream, most, start)
        stream.need_op(")")
    length = size * _NATIONAL_BYTES
    return SqlType(ora_type, length=length, char_length=size, char_used="C", form=2)


def _read_number(stream: TokenStream, *, default_scale: bool) -> SqlType:
    if not stream.take_op("("):
        return SqlType(OraType.NUMBER, scale=0 if default_scale else None)
    start = stream.token.start
    precision: int | None = None
    if not stream.take_op("*"):
        precision = stream.integer()
        if not 1 <= precision <= 38:
            raise OracleError(1727, "numeric precision specifier is out of range (1 to 38)", start)
    scale = 0
    if stream.take_op(","):
        start = stream.token.start
        scale = stream.integer()
        if not -84 <= scale <= 127:
            raise OracleError(1728, "numeric scale specifier is out of range (-84 to 127)", start)
    stream.need_op(")")
    return SqlType(OraType.NUMBER, precision=precision, scale=scale)


def _read_float(stream: TokenStream, word: str) -> SqlType:
    bits = 63 if word == "REAL" else 126
    if word == "DOUBLE":
        stream.need_word("PRECISION", code=902)
    elif word == "FLOAT" and stream.take_op("("):
        bits = stream.integer()
        stream.need_op(")")
    if not 1 <= bits <= 126:
        raise OracleError(
            1723, "floating point precision is out of range (1 to 126)", stream.token.start
        )
    return SqlType(OraType.NUMBER, precision=bits, float_bits=bits)


def _read_digits(stream: TokenStream, default: int) -> int:
    if not stream.take_op("("):
        return default
    start = stream.token.start
    digits = -1 if stream.is_word("NULL") else stream.integer()
    if not 0 <= digits <= 9:
        raise OracleError(30088, "datetime/interval precision is out of range", start)
    stream.need_op(")")
    return digits


def _read_timestamp(stream: TokenStream) -> SqlType:
    scale = _read_digits(stream, 6)
    if stream.take_word("WITH", "LOCAL", "TIME", "ZONE"):
        return SqlType(OraType.TIMESTAMP_LTZ, scale=scale)
    if stream.take_word("WITH", "TIME", "ZONE"):
        return SqlType(OraType.TIMESTAMP_TZ, scale=scale)
    return SqlType(OraType.TIMESTAMP, scale=scale)


def _read_vector(stream: TokenStream) -> SqlType:
    """``VECTOR[(dimensions[, format])]``, either of which may be ``*``."""
    count, form = 0, ""
    if stream.take_op("("):
        start = stream.token.start
        if not stream.take_op("*"):
            count = stream.integer()
            if count < 1:
                raise OracleError(51800, "Invalid syntax for VECTOR type specification", start)
            if count > _DIMENSIONS_MAX:
                raise OracleError(51811, f"Vector dimension count exceeds the maximum supported value of {_DIMENSIONS_MAX}.", start)  # fmt: skip
        if stream.take_op(",") and not stream.take_op("*"):
            start, form = stream.token.start, stream.identifier()
            if form in ("INT8", "BINARY"):
                raise OracleError(3001, f"unimplemented feature: VECTOR of {form}", start)
            if form not in _DIMENSION_FORMATS:
                raise OracleError(51802, f"Invalid VECTOR type specification. Invalid dimension format ({form}).", start)  # fmt: skip
        stream.need_op(")")
    return SqlType(OraType.VECTOR, length=count, dimensions=form)


def _read_interval(stream: TokenStream) -> SqlType:
    if stream.take_word("YEAR"):
        precision = _read_digits(stream, 2)
        stream.need_word("TO", "MONTH")
        return SqlType(OraType.INTERVAL_YM, precision=precision)
    stream.need_word("DAY", code=902)
    precision = _read_digits(stream, 2)
    stream.need_word("TO", "SECOND")
    return SqlType(OraType.INTERVAL_DS, precision=precision, scale=_read_digits(stream, 6))
