"""What do functions become that a signature does not describe?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.compile.conditions import compare, in_order
from oracle_embedded.engine.compile.conversions import (
    concatenate,
    convert,
    fraction_digits,
    numeric,
    unify,
)
from oracle_embedded.engine.compile.plan import Sql, blob, quoted
from oracle_embedded.engine.compile.signatures import (
    SIGNATURES,
    by_signature,
    check_count,
    same_text,
)
from oracle_embedded.engine.datatypes import numbers, types
from oracle_embedded.engine.datatypes.types import (
    FAMILY_NAMES,
    TEMPORAL,
    SqlType,
)
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast

Compiled = Callable[[ast.Call, list[Sql]], Sql]

_JSON_MEMBERS_MAX = _XML_MEMBERS_MAX = 40
FUNCTIONS: dict[str, Compiled] = {}
"""By name, what a call with compiled arguments becomes."""


def function(name: str) -> Callable[[Compiled], Compiled]:
    """Declare how calls of a function are compiled."""

    def declare(compiled: Compiled) -> Compiled:
        FUNCTIONS[name] = compiled
        return compiled

    return declare


# --- choice ---------------------------------------------------------------------------------------


@function("NVL")
def _nvl(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 2, 2)
    first, second = unify(args, node.pos)
    return Sql(
        f"ifnull({first.text}, {second.text})",
        _varying(first.type),
        second.nullable and first.nullable,
    )


@function("COALESCE")
def _coalesce(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 2, 1000)
    unified = unify(args, node.pos, strict=True)
    text = ", ".join(item.text for item in unified)
    return Sql(
        f"coalesce({text})", _varying(unified[0].type), all(item.nullable for item in unified)
    )


@function("NVL2")
def _nvl2(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 3, 3)
    yes, no = unify(args[1:], node.pos)
    text = f"(CASE WHEN {args[0].text} IS NOT NULL THEN {yes.text} ELSE {no.text} END)"
    return Sql(text, _varying(yes.type), yes.nullable or no.nullable)


@function("NULLIF")
def _nullif(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 2, 2)
    test = compare("=", args[0], args[1], node.pos)
    return Sql(f"(CASE WHEN {test} THEN NULL ELSE {args[0].text} END)", args[0].type)


@function("DECODE")
def _decode(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 3, 255)
    subject, rest = args[0], args[1:]
    pairs = [(rest[at], rest[at + 1]) for at in range(0, len(rest) - 1, 2)]
    results = [result for _, result in pairs] + ([rest[-1]] if len(rest) % 2 else [])
    unified = unify(results, node.pos)
    family = pairs[0][0].family if pairs[0][0].family != "null" else subject.family
    parts = []
    for (search, _), result in zip(pairs, unified, strict=False):
        if search.family == "null":
            test = f"{subject.text} IS NULL"
        else:
            a, b = (
                convert(subject, family, node.pos),
                convert(search, family, node.pos),
            )
            test = compare("=", a, b, node.pos)
            if search.nullable and subject.nullable:
                test = f"({test} OR ({subject.text} IS NULL AND {search.text} IS NULL))"
        parts.append(f"WHEN {test} THEN {result.text}")
    otherwise = f" ELSE {unified[-1].text}" if len(rest) % 2 else ""
    return Sql(f"(CASE {' '.join(parts)}{otherwise} END)", _varying(unified[0].type))


def _extreme(node: ast.Call, args: list[Sql], function: str) -> Sql:
    check_count(node, args, 1, 1000)
    unified = unify(args, node.pos)
    if len(unified) == 1:
        return unified[0]
    ordered = in_order(
        unified[0], next((one.order.comparing for one in args if one.order.comparing), None)
    )
    text = f"{function}({', '.join([ordered, *(item.text for item in unified[1:])])})"
    return Sql(text, _varying(unified[0].type), any(item.nullable for item in unified))


@function("GREATEST")
def _greatest(node: ast.Call, args: list[Sql]) -> Sql:
    return _extreme(node, args, "max")


@function("LEAST")
def _least(node: ast.Call, args: list[Sql]) -> Sql:
    return _extreme(node, args, "min")


# --- conversions ----------------------------------------------------------------------------------


@function("TO_CHAR")
def _to_char(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 3)
    value = args[0]
    if len(args) == 1:
        if value.family == "clob":
            return Sql(value.text, types.TEXT, value.nullable)
        converted = convert(value, "text", node.pos)
        return replace(converted, type=_varying(converted.type))
    if value.family in ("text", "null"):
        value = convert(value, "number", node.pos)
    model = convert(args[1], "text", node.pos)
    third = f", {convert(args[2], 'text', node.pos).text}" if len(args) == 3 else ""
    if value.family in ("number", "float", "double"):
        number = convert(value, "number", node.pos)
        return Sql(f"o_format_number({number.text}, {model.text}{third})", types.varchar(64))
    if value.family in ("ids", "iym"):
        return convert(value, "text", node.pos)
    if value.family not in TEMPORAL:
        raise OracleError(1722, "invalid number", node.pos)
    zoned = convert(value, "tz") if value.family == "ltz" else value
    digits = fraction_digits(value)
    return Sql(f"o_format_date({zoned.text}, {model.text}, {digits}{third})", types.varchar(75))


def _to_temporal(node: ast.Call, args: list[Sql], family: str) -> Sql:
    check_count(node, args, 1, 3)
    kind = types.family_type(family)
    if args[0].family in TEMPORAL and len(args) == 1:
        return convert(args[0], family, node.pos)
    text = convert(args[0], "text", node.pos)
    if len(args) == 1:
        return Sql(f"cv_text_{family}({text.text})", kind, text.nullable)
    model = convert(args[1], "text", node.pos)
    return Sql(
        f"o_to_{family}({text.text}, {model.text})",
        kind,
        text.nullable or model.nullable,
        constant=text.constant and model.constant,
    )


@function("TO_DATE")
def _to_date(node: ast.Call, args: list[Sql]) -> Sql:
    return _to_temporal(node, args, "date")


@function("TO_TIMESTAMP")
def _to_timestamp(node: ast.Call, args: list[Sql]) -> Sql:
    return _to_temporal(node, args, "timestamp")


@function("TO_TIMESTAMP_TZ")
def _to_timestamp_tz(node: ast.Call, args: list[Sql]) -> Sql:
    return _to_temporal(node, args, "tz")


@function("TO_NUMBER")
def _to_number(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 3)
    if args[0].family == "number":
        return convert(convert(args[0], "text", node.pos), "number", node.pos)
    if len(args) == 1 or args[0].family != "text":
        return convert(numeric(args[0], node.pos), "number", node.pos)
    model = convert(args[1], "text", node.pos)
    return Sql(f"o_to_number({args[0].text}, {model.text})", types.NUMBER)


@function("TO_BINARY_DOUBLE")
def _to_binary_double(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 1)
    return convert(args[0], "double", node.pos)


@function("TO_BINARY_FLOAT")
def _to_binary_float(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 1)
    return convert(args[0], "float", node.pos)


@function("TO_CLOB")
def _to_clob(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 2)
    return convert(convert(args[0], "text", node.pos), "clob", node.pos)


@function("XMLTYPE")
def _xmltype(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 1)
    return replace(_to_clob(node, args), type=types.XML)


@function("XMLELEMENT")
@function("XMLFOREST")
def _made_xml(node: ast.Call, args: list[Sql]) -> Sql:
    """Each member is its name, whether it is a document, and its value; before them stands the name
    of the element.

    Source: XML DB Developer's Guide 19c, "Generation of XML Data from Relational Data".
    """
    is_element = node.name == ("XMLELEMENT",)
    texts = [args[0].text] if is_element else []
    members = args[is_element:]
    if len(members) > _XML_MEMBERS_MAX * 2:
        raise unsupported(f"{node.name[0]} of so many members", node.pos)
    for name, value in zip(members[::2], members[1::2], strict=True):
        texts += [name.text, str(int(value.type.is_xml)), _xml_text(value)]
    return Sql(f"o_{node.name[0].lower()}({', '.join(texts)})", types.XML, not is_element)


def _document_of(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 1)
    if not args[0].type.is_xml:
        given = FAMILY_NAMES.get(args[0].family, args[0].family)
        raise ora(932, "XMLTYPE", given, offset=node.pos)
    return args[0]


@function("XMLTYPE.EXTRACT")
def _whole_document(node: ast.Call, args: list[Sql]) -> Sql:
    return _document_of(node, args)


@function("XMLTYPE.GETCLOBVAL")
def _document_clob(node: ast.Call, args: list[Sql]) -> Sql:
    return replace(_document_of(node, args), type=types.CLOB)


@function("XMLTYPE.GETSTRINGVAL")
def _document_string(node: ast.Call, args: list[Sql]) -> Sql:
    return Sql(f"o_xml_string({_document_of(node, args).text})", types.TEXT)


def _xml_text(value: Sql) -> str:
    """A value as documents have it: times as XML Schema writes them, a DATE without its time."""
    if value.type.is_xml:
        return value.text
    if value.family not in TEMPORAL:
        return convert(value, "text").text
    text = f"o_iso({convert(value, 'timestamp').text}, {int(value.family != 'date')})"
    return f"substr({text}, 1, 10)" if value.family == "date" else text


@function("TO_NCLOB")
def _to_nclob(node: ast.Call, args: list[Sql]) -> Sql:
    return replace(_to_clob(node, args), type=SqlType(OraType.CLOB, length=4000, form=2))


@function("TO_BLOB")
def _to_blob(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 2)
    return convert(args[0], "blob", node.pos)


@function("TO_NCHAR")
def _to_nchar(node: ast.Call, args: list[Sql]) -> Sql:
    converted = _to_char(node, args)
    length = converted.type.char_length
    return replace(converted, type=types.varchar(length * 2, length, 2))


@function("EMPTY_CLOB")
def _empty_clob(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 0, 0)
    return Sql("''", types.CLOB, nullable=False)


@function("EMPTY_BLOB")
def _empty_blob(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 0, 0)
    return Sql("x''", types.BLOB, nullable=False)


# --- text and numbers with several forms ----------------------------------------------------------


@function("TRIM")
def _trim(node: ast.Call, args: list[Sql]) -> Sql:
    side, characters, value = args
    text = convert(value, "text", node.pos)
    mark = convert(characters, "text", node.pos)
    return Sql(f"o_trim({side.text}, {mark.text}, {text.text})", same_text([value]))


@function("CONCAT")
def _concat(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 2, 2)
    return concatenate(args[0], args[1], node.pos)


@function("LENGTH")
def _length(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 1)
    if args[0].family == "blob":
        return Sql(f"o_raw_length({args[0].text})", types.NUMBER)
    return Sql(f"o_length({convert(args[0], 'text', node.pos).text})", types.NUMBER)


@function("ABS")
def _abs(node: ast.Call, args: list[Sql]) -> Sql:
    return _numeric_call(node, args, "o_abs")


@function("FLOOR")
def _floor(node: ast.Call, args: list[Sql]) -> Sql:
    return _numeric_call(node, args, "o_floor")


@function("CEIL")
def _ceil(node: ast.Call, args: list[Sql]) -> Sql:
    return _numeric_call(node, args, "o_ceil")


def _numeric_call(node: ast.Call, args: list[Sql], function: str) -> Sql:
    check_count(node, args, 1, 1)
    value = numeric(args[0], node.pos)
    number = convert(value, "number", node.pos)
    result = Sql(f"{function}({number.text})", types.NUMBER, value.nullable)
    return convert(result, value.family) if value.family != "null" else result


@function("ROUND")
def _round(node: ast.Call, args: list[Sql]) -> Sql:
    return _rounded(node, args, "round")


@function("TRUNC")
def _trunc(node: ast.Call, args: list[Sql]) -> Sql:
    return _rounded(node, args, "trunc")


def _rounded(node: ast.Call, args: list[Sql], function: str) -> Sql:
    check_count(node, args, 1, 2)
    value = args[0]
    if value.family in TEMPORAL:
        date = convert(value, "date", node.pos)
        model = convert(args[1], "text", node.pos).text if len(args) == 2 else "'DD'"
        return Sql(f"o_{function}_date({date.text}, {model})", types.DATE, date.nullable)
    number = convert(numeric(value, node.pos), "number", node.pos)
    places = convert(args[1], "number", node.pos).text if len(args) == 2 else "x'80'"
    result = Sql(f"o_{function}({number.text}, {places})", types.NUMBER, number.nullable)
    return convert(result, "double") if value.family == "double" and len(args) == 1 else result


@function("EXTRACT")
def _extract(node: ast.Call, args: list[Sql]) -> Sql:
    field, value = args
    if value.family == "ltz":
        value = convert(value, "tz")
    if value.family not in TEMPORAL and value.family not in ("ids", "iym"):
        raise OracleError(30076, "invalid extract field for extract source", node.pos)
    return Sql(f"o_extract({field.text}, {value.text}, {quoted(value.family)})", types.NUMBER)


@function("DUMP")
def _dump(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 4)
    value = args[0]
    code = {"null": 0}.get(value.family, int(value.type.ora))
    rest = [convert(arg, "number", node.pos).text for arg in args[1:]] + ["NULL"] * (4 - len(args))
    return Sql(
        f"o_dump({value.text}, {code}, {value.type.form or 1}, {', '.join(rest)})",
        types.TEXT,
        nullable=False,
    )


@function("VSIZE")
def _vsize(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 1)
    return Sql(f"o_vsize({args[0].text}, {args[0].type.form or 1})", types.NUMBER)


@function("ORA_HASH")
def _ora_hash(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 3)
    rest = [convert(arg, "number", node.pos).text for arg in args[1:]] + ["NULL"] * (3 - len(args))
    return Sql(
        f"o_hash({args[0].text}, {args[0].type.form or 1}, {', '.join(rest)})",
        types.NUMBER,
        nullable=False,
    )


@function("DBMS_LOB.GETLENGTH")
def _dbms_lob_getlength(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 1)
    return Sql(f"o_lob_length({args[0].text})", types.NUMBER)


@function("DBMS_LOB.SUBSTR")
def _dbms_lob_substr(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 3)
    amount = convert(args[1], "number", node.pos).text if len(args) > 1 else "x'c3044444'"
    start = convert(args[2], "number", node.pos).text if len(args) > 2 else "x'c102'"
    kind = types.RAW if args[0].family in ("blob", "raw") else types.TEXT
    return Sql(f"o_lob_substr({args[0].text}, {amount}, {start})", kind)


@function("DBMS_LOB.INSTR")
def _dbms_lob_instr(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 2, 4)
    return by_signature(SIGNATURES["INSTR"], node, args)


@function("DBMS_LOB.COMPARE")
def _dbms_lob_compare(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 2, 2)
    return Sql(f"o_lob_compare({args[0].text}, {args[1].text})", types.NUMBER)


def _varying(kind: SqlType) -> SqlType:
    return types.varchar(kind.length, kind.char_length, kind.form or 1) if kind.is_char else kind


@function("DBMS_DEBUG_JDWP.CURRENT_SESSION_ID")
def _current_session(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 0, 0)
    return convert(Sql("o_sys_context('USERENV', 'SID')", types.varchar(30)), "number")


@function("DBMS_DEBUG_JDWP.CURRENT_SESSION_SERIAL")
def _current_serial(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 0, 0)
    return convert(Sql("o_sys_context('USERENV', 'SESSION_SERIAL')", types.varchar(30)), "number")


@function("DBMS_RANDOM.VALUE")
def _random(node: ast.Call, args: list[Sql]) -> Sql:
    if len(args) not in (0, 2):
        raise ora(909, offset=node.pos)
    bounds = [numeric(arg, node.pos).text for arg in args] or [blob(numbers.encode(n)) for n in (0, 1)]  # fmt: skip
    return Sql(f"o_random({', '.join(bounds)})", types.NUMBER, bool(args))


@function("JSON_ARRAY")
@function("JSON_OBJECT")
def _made_json(node: ast.Call, args: list[Sql]) -> Sql:
    """Each member is its value, and of an object its name before it; behind them stands how it is
    written."""
    keeps_nulls, *members = args
    step = 3 if node.name == ("JSON_OBJECT",) else 2
    if len(members) > _JSON_MEMBERS_MAX * step:
        raise unsupported(f"{node.name[0]} of so many members", node.pos)
    texts = [keeps_nulls.text]
    for at in range(0, len(members), step):
        *name, value, written = members[at : at + step]
        how = quoted("json") if value.family == "json" else written.text
        if value.family == "number":
            how = quoted("json")
        if value.family in TEMPORAL:
            value = Sql(f"o_iso({convert(value, 'timestamp').text}, {int(value.family != 'date')})", types.TEXT)  # fmt: skip
        texts += [convert(one, "text", node.pos).text for one in (*name, value)] + [how]
    return Sql(f"o_{node.name[0].lower()}({', '.join(texts)})", types.TEXT, nullable=False)


@function("JSON_IS")
def _json_is(_node: ast.Call, args: list[Sql]) -> Sql:
    return Sql(f"o_is_json({_document(args[0])}, {args[1].text})", types.NUMBER)


@function("JSON_VALUE")
def _json_value(_node: ast.Call, args: list[Sql]) -> Sql:
    return Sql(f"o_json_value({_document(args[0])}, {args[1].text})", types.TEXT)


@function("JSON_QUERY")
def _json_query(_node: ast.Call, args: list[Sql]) -> Sql:
    return Sql(f"o_json_query({_document(args[0])}, {args[1].text})", types.TEXT)


@function("JSON_EXISTS")
def _json_exists(_node: ast.Call, args: list[Sql]) -> Sql:
    return Sql(f"o_json_exists({_document(args[0])}, {args[1].text})", types.NUMBER)


@function("JSON_EQUAL")
def _json_equal(_node: ast.Call, args: list[Sql]) -> Sql:
    return Sql(f"o_json_equal({_document(args[0])}, {_document(args[1])})", types.NUMBER)


@function("JSON_SERIALIZE")
def _json_serialize(_node: ast.Call, args: list[Sql]) -> Sql:
    return Sql(f"o_json_text({_document(args[0])})", types.TEXT)


@function("VECTOR_SERIALIZE")
def _vector_serialize(_node: ast.Call, args: list[Sql]) -> Sql:
    return Sql(f"o_vector_text({args[0].text})", types.TEXT)


@function("JSON")
def _json(node: ast.Call, args: list[Sql]) -> Sql:
    check_count(node, args, 1, 1)
    return convert(args[0], "json", node.pos)


@function("TO_VECTOR")
def _to_vector(node: ast.Call, args: list[Sql]) -> Sql:
    if len(args) > 1:
        raise unsupported("TO_VECTOR with a number of dimensions", node.pos)
    check_count(node, args, 1, 1)
    return convert(args[0], "vector", node.pos)


def _document(value: Sql) -> str:
    """A document as text or bytes."""
    return value.text if value.family in ("raw", "blob", "json") else convert(value, "text").text
