"""How are datatypes written?"""

from __future__ import annotations

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.sql.stream import TokenStream

_TEXT_MAX = 4000
_CHAR_MAX = 2000
_NATIONAL_BYTES = 2
_CHAR_BYTES = 4


class TypeParser(TokenStream):
    """Reads datatypes of columns, CAST and PL/SQL variables."""

    text_max = _TEXT_MAX

    def datatype(self) -> SqlType:
        """Read a datatype.

        Raises:
            OracleError: ORA-00902 for an unknown one, ORA-00910, ORA-01727, ORA-01728 … for sizes out of range.
        """
        start = self.token.start
        word = self.next().text if self.token.kind == "word" else ""
        match word:
            case "VARCHAR2" | "VARCHAR":
                return self._text(OraType.VARCHAR, required=True)
            case "STRING" if self.text_max > _TEXT_MAX:
                return self._text(OraType.VARCHAR, required=True)
            case "CHAR" | "CHARACTER":
                varying = self.take_word("VARYING")
                return self._text(OraType.VARCHAR if varying else OraType.CHAR, required=varying)
            case "NVARCHAR2":
                return self._national(OraType.VARCHAR, required=True)
            case "NCHAR":
                varying = self.take_word("VARYING")
                return self._national(
                    OraType.VARCHAR if varying else OraType.CHAR, required=varying
                )
            case "NUMBER" | "NUMERIC" | "DECIMAL" | "DEC":
                return self._number(default_scale=word != "NUMBER")
            case "INTEGER" | "INT" | "SMALLINT":
                return SqlType(OraType.NUMBER, scale=0)
            case "PLS_INTEGER" | "BINARY_INTEGER" | "SIMPLE_INTEGER" | "NATURAL" | "POSITIVE":
                return SqlType(OraType.NUMBER, precision=10, scale=0)
            case "FLOAT" | "REAL" | "DOUBLE":
                return self._float(word)
            case "BINARY_FLOAT":
                return SqlType(OraType.BINARY_FLOAT)
            case "BINARY_DOUBLE":
                return SqlType(OraType.BINARY_DOUBLE)
            case "DATE":
                return SqlType(OraType.DATE)
            case "TIMESTAMP":
                return self._timestamp()
            case "INTERVAL":
                return self._interval()
            case "RAW":
                self.need_op("(")
                size = self._size(self.text_max if self.text_max > _TEXT_MAX else _CHAR_MAX, start)
                self.need_op(")")
                return SqlType(OraType.RAW, length=size)
            case "LONG":
                if self.take_word("RAW"):
                    return SqlType(OraType.LONG_RAW, length=32760)
                return SqlType(OraType.LONG, length=32760, char_length=32760, form=1)
            case "CLOB" | "NCLOB":
                return SqlType(OraType.CLOB, length=4000, form=2 if word == "NCLOB" else 1)
            case "BLOB":
                return SqlType(OraType.BLOB, length=4000)
            case "ROWID":
                return SqlType(OraType.ROWID, length=10)
            case "UROWID":
                if self.take_op("("):
                    self.integer()
                    self.need_op(")")
                return SqlType(OraType.UROWID, length=4000)
            case "BOOLEAN" if self.text_max > _TEXT_MAX:
                return SqlType(OraType.BOOLEAN)
        raise OracleError(902, "invalid datatype", start)

    def _size(self, most: int, start: int) -> int:
        size = self.integer()
        if size == 0:
            raise OracleError(1723, "zero-length columns are not allowed", start)
        if not 0 < size <= most:
            raise OracleError(910, "specified length too long for its datatype", start)
        return size

    def _text(self, ora_type: OraType, *, required: bool) -> SqlType:
        start = self.token.start
        most = (
            _CHAR_MAX if ora_type == OraType.CHAR and self.text_max == _TEXT_MAX else self.text_max
        )
        if not self.is_op("("):
            if required:
                raise self.error(906)
            return SqlType(ora_type, length=1, char_length=1, char_used="B", form=1)
        self.need_op("(")
        size = self._size(most, start)
        unit = self.take_any("BYTE", "CHAR")
        self.need_op(")")
        if unit == "CHAR":
            length = min(size * _CHAR_BYTES, most)
            return SqlType(ora_type, length=length, char_length=size, char_used="C", form=1)
        return SqlType(ora_type, length=size, char_length=size, char_used="B", form=1)

    def _national(self, ora_type: OraType, *, required: bool) -> SqlType:
        start = self.token.start
        size = 1
        most = (_CHAR_MAX if ora_type == OraType.CHAR else _TEXT_MAX) // _NATIONAL_BYTES
        if self.is_op("(") or required:
            self.need_op("(")
            size = self._size(most, start)
            self.need_op(")")
        length = size * _NATIONAL_BYTES
        return SqlType(ora_type, length=length, char_length=size, char_used="C", form=2)

    def _number(self, *, default_scale: bool) -> SqlType:
        if not self.take_op("("):
            return SqlType(OraType.NUMBER, scale=0 if default_scale else None)
        start = self.token.start
        precision: int | None = None
        if not self.take_op("*"):
            precision = self.integer()
            if not 1 <= precision <= 38:
                raise OracleError(
                    1727, "numeric precision specifier is out of range (1 to 38)", start
                )
        scale = 0
        if self.take_op(","):
            start = self.token.start
            scale = self.integer()
            if not -84 <= scale <= 127:
                raise OracleError(
                    1728, "numeric scale specifier is out of range (-84 to 127)", start
                )
        self.need_op(")")
        return SqlType(OraType.NUMBER, precision=precision, scale=scale)

    def _float(self, word: str) -> SqlType:
        bits = 63 if word == "REAL" else 126
        if word == "DOUBLE":
            self.need_word("PRECISION", code=902)
        elif word == "FLOAT" and self.take_op("("):
            bits = self.integer()
            self.need_op(")")
        if not 1 <= bits <= 126:
            raise OracleError(
                1723, "floating point precision is out of range (1 to 126)", self.token.start
            )
        return SqlType(OraType.NUMBER, precision=bits, float_bits=bits)

    def _digits(self, default: int) -> int:
        if not self.take_op("("):
            return default
        start = self.token.start
        digits = self.integer()
        if not 0 <= digits <= 9:
            raise OracleError(30088, "datetime/interval precision is out of range", start)
        self.need_op(")")
        return digits

    def _timestamp(self) -> SqlType:
        scale = self._digits(6)
        if self.take_word("WITH", "LOCAL", "TIME", "ZONE"):
            return SqlType(OraType.TIMESTAMP_LTZ, scale=scale)
        if self.take_word("WITH", "TIME", "ZONE"):
            return SqlType(OraType.TIMESTAMP_TZ, scale=scale)
        return SqlType(OraType.TIMESTAMP, scale=scale)

    def _interval(self) -> SqlType:
        if self.take_word("YEAR"):
            precision = self._digits(2)
            self.need_word("TO", "MONTH")
            return SqlType(OraType.INTERVAL_YM, precision=precision)
        self.need_word("DAY", code=902)
        precision = self._digits(2)
        self.need_word("TO", "SECOND")
        return SqlType(OraType.INTERVAL_DS, precision=precision, scale=self._digits(6))
