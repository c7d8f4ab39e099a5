"""Which functions just convert their arguments, and what do they return?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oracle_embedded.api import OraType
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.datatypes import types
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ast

_FAMILY_CODES = {
    "T": "text", "C": "text", "N": "number", "D": "date", "S": "timestamp", "Z": "tz", "R": "raw", "O": "rowid", "F": "double",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signature:
    """A function whose arguments are just converted: one code per argument, ``?`` before the
    optional ones. ``C`` is text and ``B`` any value, behind which the form of its character set
    follows."""

    codes: str
    function: str
    result: SqlType | Callable[[list[Sql]], SqlType]
    nullable: bool = True


def same_text(args: list[Sql]) -> SqlType:
    """Text as long as the first argument."""
    first = args[0].type
    if first.family == "clob":
        return types.CLOB
    return types.varchar(first.length, first.char_length, first.form or 1)


def _text(size: int) -> Callable[[list[Sql]], SqlType]:
    def result(args: list[Sql]) -> SqlType:
        form = next((arg.type.form for arg in args if arg.family == "text"), 1)
        return types.varchar(size, size, form or 1)

    return result


def _zoned(scale: int) -> SqlType:
    return SqlType(OraType.TIMESTAMP_TZ, scale=scale)


_HASH_SIZES = {"'MD5'": 16, "'SHA1'": 20, "'SHA256'": 32, "'SHA384'": 48, "'SHA512'": 64}

SIGNATURES = {
    "UPPER": Signature("T", "o_upper", same_text),
    "LOWER": Signature("T", "o_lower", same_text),
    "INITCAP": Signature("T", "o_initcap", same_text),
    "SUBSTR": Signature("TN?N", "o_substr", same_text),
    "SUBSTRB": Signature("CN?N", "o_substrb", same_text),
    "INSTR": Signature("TT?NN", "o_instr", types.NUMBER),
    "LENGTH": Signature("T", "o_length", types.NUMBER),
    "LENGTHB": Signature("C", "o_lengthb", types.NUMBER),
    "LTRIM": Signature("T?T", "o_ltrim", same_text),
    "RTRIM": Signature("T?T", "o_rtrim", same_text),
    "LPAD": Signature("TN?T", "o_lpad", _text(4000)),
    "RPAD": Signature("TN?T", "o_rpad", _text(4000)),
    "REPLACE": Signature("TT?T", "o_replace", _text(4000)),
    "TRANSLATE": Signature("TTT", "o_translate", same_text),
    "CHR": Signature("N", "o_chr", types.varchar(4)),
    "NCHR": Signature("N", "o_nchr", types.varchar(2, 1, 2)),
    "ASCII": Signature("T", "o_ascii", types.NUMBER),
    "CONVERT": Signature("TT?T", "o_convert", _text(4000)),
    "SOUNDEX": Signature("T", "o_soundex", types.varchar(4)),
    "REVERSE": Signature("T", "o_reverse", same_text),
    "UNISTR": Signature("T", "o_unistr", types.varchar(4000, 2000, 2)),
    "ASCIISTR": Signature("T", "o_asciistr", _text(4000)),
    "REGEXP_REPLACE": Signature("TT?TNNT", "o_regexp_replace", _text(4000)),
    "REGEXP_SUBSTR": Signature("TT?NNTN", "o_regexp_substr", same_text),
    "REGEXP_INSTR": Signature("TT?NNNT", "o_regexp_instr", types.NUMBER),
    "REGEXP_COUNT": Signature("TT?NT", "o_regexp_count", types.NUMBER),
    "MOD": Signature("NN", "o_mod", types.NUMBER),
    "REMAINDER": Signature("NN", "o_remainder", types.NUMBER),
    "SIGN": Signature("N", "o_sign", types.NUMBER),
    "POWER": Signature("NN", "o_power", types.NUMBER),
    "SQRT": Signature("N", "o_sqrt", types.NUMBER),
    "LN": Signature("N", "o_ln", types.NUMBER),
    "LOG": Signature("NN", "o_log", types.NUMBER),
    "EXP": Signature("N", "o_exp", types.NUMBER),
    **{name: Signature("N", f"o_{name.lower()}", types.NUMBER) for name in ("SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "SINH", "COSH", "TANH")},
    "ATAN2": Signature("NN", "o_atan2", types.NUMBER),
    "DBMS_RANDOM.NORMAL": Signature("", "o_random_normal", types.NUMBER, nullable=False),
    "DBMS_RANDOM.STRING": Signature("TN", "o_random_string", types.TEXT),
    "UTL_I18N.STRING_TO_RAW": Signature("T?T", "o_string_to_raw", types.RAW),
    "UTL_I18N.RAW_TO_CHAR": Signature("R?T", "o_raw_to_char", types.TEXT),
    "WIDTH_BUCKET": Signature("NNNN", "o_width_bucket", types.NUMBER),
    "BITAND": Signature("NN", "o_bitand", types.NUMBER),
    "ADD_MONTHS": Signature("DN", "o_add_months", types.DATE),
    "MONTHS_BETWEEN": Signature("DD", "o_months_between", types.NUMBER),
    "LAST_DAY": Signature("D", "o_last_day", types.DATE),
    "NEXT_DAY": Signature("DT", "o_next_day", types.DATE),
    "NEW_TIME": Signature("DTT", "o_new_time", types.DATE),
    "NUMTODSINTERVAL": Signature("NT", "o_numtods", types.INTERVAL_DS),
    "NUMTOYMINTERVAL": Signature("NT", "o_numtoym", types.INTERVAL_YM),
    "TO_DSINTERVAL": Signature("T", "cv_text_ids", types.INTERVAL_DS),
    "TO_YMINTERVAL": Signature("T", "cv_text_iym", types.INTERVAL_YM),
    "FROM_TZ": Signature("ST", "o_from_tz", types.TIMESTAMP_TZ),
    "SYS_EXTRACT_UTC": Signature("Z", "o_extract_utc", types.TIMESTAMP),
    "HEXTORAW": Signature("T", "cv_text_raw", types.RAW),
    "RAWTOHEX": Signature("R", "cv_raw_text", _text(4000)),
    "CHARTOROWID": Signature("T", "cv_text_rowid", types.ROWID),
    "ROWIDTOCHAR": Signature("O", "cv_rowid_text", types.varchar(18)),
    "SYS_CONTEXT": Signature("TT?N", "o_sys_context", types.varchar(256)),
    "USERENV": Signature("T", "o_userenv", types.varchar(256)),
    "DBMS_LOGMNR.MINE_VALUE": Signature("NT", "o_mine_value", types.TEXT),
    "DBMS_LOGMNR.COLUMN_PRESENT": Signature("NT", "o_column_present", types.NUMBER),
    "SCN_TO_TIMESTAMP": Signature("N", "o_scn_to_timestamp", types.TIMESTAMP),
    "TIMESTAMP_TO_SCN": Signature("S", "o_timestamp_to_scn", types.NUMBER),
    "NLSSORT": Signature("T?T", "o_nlssort", types.RAW),
    "NLS_UPPER": Signature("T?T", "o_upper", same_text),
    "NLS_LOWER": Signature("T?T", "o_lower", same_text),
    "TZ_OFFSET": Signature("T", "o_tz_offset", types.varchar(7)),
    "TO_SINGLE_BYTE": Signature("T", "o_same", same_text),
    "UTL_RAW.CAST_TO_RAW": Signature("T", "o_cast_to_raw", types.RAW),
    "UTL_RAW.CAST_TO_VARCHAR2": Signature("R", "o_cast_to_varchar2", types.TEXT),
    "UTL_RAW.LENGTH": Signature("R", "o_raw_length", types.NUMBER),
    "UTL_RAW.SUBSTR": Signature("RN?N", "o_raw_substr", types.RAW),
    "UTL_RAW.CONCAT": Signature("RR", "o_raw_concat", types.RAW),
    "UTL_RAW.REVERSE": Signature("R", "o_raw_reverse", types.RAW),
    "UTL_RAW.CAST_FROM_NUMBER": Signature("N", "o_same", types.raw(22)),
    "UTL_RAW.CAST_TO_NUMBER": Signature("R", "o_same", types.NUMBER),
    "DBMS_ROWID.ROWID_CREATE": Signature("NNNNN", "o_rowid_create", types.ROWID),
    "DBMS_ROWID.ROWID_OBJECT": Signature("O", "o_rowid_object", types.NUMBER),
    "DBMS_ROWID.ROWID_RELATIVE_FNO": Signature("O?T", "o_rowid_file", types.NUMBER),
    "DBMS_ROWID.ROWID_BLOCK_NUMBER": Signature("O?T", "o_rowid_block", types.NUMBER),
    "DBMS_ROWID.ROWID_ROW_NUMBER": Signature("O", "o_rowid_slot", types.NUMBER),
    "NLS_CHARSET_ID": Signature("T", "o_charset_id", types.NUMBER),
    "NLS_CHARSET_NAME": Signature("N", "o_charset_name", types.varchar(40)),
    "DBMS_METADATA.GET_DDL": Signature("TT?T", "o_get_ddl", types.CLOB, nullable=False),
    "DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER": Signature("", "o_current_scn", types.NUMBER, nullable=False),
    "BINARY_DOUBLE_NAN": Signature("", "o_double_nan", types.DOUBLE, nullable=False),
    "BINARY_DOUBLE_INFINITY": Signature("", "o_double_infinity", types.DOUBLE, nullable=False),
    "BINARY_FLOAT_NAN": Signature("", "o_float_nan", types.FLOAT, nullable=False),
    "BINARY_FLOAT_INFINITY": Signature("", "o_float_infinity", types.FLOAT, nullable=False),
    "SYSDATE": Signature("", "o_sysdate", types.DATE, nullable=False),
    "SYSTIMESTAMP": Signature("", "o_systimestamp", _zoned(6), nullable=False),
    "CURRENT_DATE": Signature("", "o_current_date", types.DATE, nullable=False),
    "CURRENT_TIMESTAMP": Signature("?N", "o_current_timestamp", _zoned(6), nullable=False),
    "LOCALTIMESTAMP": Signature("?N", "o_localtimestamp", SqlType(OraType.TIMESTAMP, scale=6), nullable=False),
    "SESSIONTIMEZONE": Signature("", "o_session_zone", types.varchar(75), nullable=False),
    "DBTIMEZONE": Signature("", "o_database_zone", types.varchar(64), nullable=False),
    "SYS_GUID": Signature("", "o_guid", types.raw(16), nullable=False),
    "USER": Signature("", "o_user", types.varchar(128), nullable=False),
    "UID": Signature("", "o_uid", types.NUMBER, nullable=False),
    "STANDARD_HASH": Signature("B?T", "o_standard_hash", lambda args: types.raw(_hash_size(args))),
}  # fmt: skip


def _hash_size(args: list[Sql]) -> int:
    """The bytes of STANDARD_HASH by its method, those of the longest where that is no literal."""
    if len(args) < 2:
        return _HASH_SIZES["'SHA1'"]
    return _HASH_SIZES.get(args[1].text.upper(), max(_HASH_SIZES.values()))


def by_signature(signature: Signature, node: ast.Call, args: list[Sql]) -> Sql:
    required, _, optional = signature.codes.partition("?")
    check_count(node, args, len(required), len(required) + len(optional))
    converted = [
        arg if code == "B" else convert(arg, _FAMILY_CODES[code], node.args[at].pos)
        for at, (arg, code) in enumerate(zip(args, required + optional, strict=False))
    ]
    kind = signature.result if isinstance(signature.result, SqlType) else signature.result(args)
    texts = [
        f"{item.text}, {item.type.form or 1}" if code in "BC" else item.text
        for item, code in zip(converted, required + optional, strict=False)
    ]
    text = f"{signature.function}({', '.join(texts)})"
    nullable = signature.nullable and (
        not converted or any(item.nullable for item in converted) or kind.family == "text"
    )
    return Sql(text, kind, nullable, constant=all(item.constant for item in converted))


def check_count(node: ast.Call, args: list[Sql], least: int, most: int) -> None:
    """Refuse a call with too few or too many arguments.

    Raises:
        OracleError: ORA-00909, ORA-00938 or ORA-00939.
    """
    if len(args) < least:
        raise ora(909 if len(args) == 0 or least == most else 938, offset=node.pos)
    if len(args) > most:
        raise ora(939 if most and least != most else 909, offset=node.pos)
