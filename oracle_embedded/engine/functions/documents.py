"""Which functions of JSON and XML are registered: paths over documents, values as text?

Paths are lax: a step into an object goes into each object of an array, and ``[0]`` of something
that is no array is the thing itself. So is the syntax that they read: names without quotes or in
single ones, true, false and null in any case, numbers as ``.5``, ``5.``, ``+5`` and ``05``, a comma
behind the last item. Sources: SQL Language Reference 19c, "SQL/JSON Path Expressions"; JSON
Developer's Guide 19c, "About Strict and Lax JSON Syntax".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any
from xml.sax.saxutils import escape

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.formats.dates import print_date
from oracle_embedded.engine.functions.registry import Entries, register

_ISO = 'YYYY-MM-DD"T"HH24:MI:SS'
_STRING_BYTES_MAX = 4000
_QUOTES = {'"': "&quot;", "'": "&apos;"}
_STEP = re.compile(r"""\.\s*(?:"([^"]*)"|([\w$]+)|(\*))|\[\s*(\*|\d+(?:\s+to\s+\d+)?)\s*\]""")


_LAX_TOKEN = re.compile(
    r"""
    (?P<blank>\s+) | (?P<string>"(?:[^"\\]|\\.)*") | '(?P<single>(?:[^'\\]|\\.)*)'
    | (?P<sign>[+-]?)(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$.])
    | (?P<word>[^\W\d][\w$]*|\$[\w$]*) | (?P<comma>,(?=\s*[\]}])) | (?P<mark>[\[\]{},:])
    """,
    re.VERBOSE | re.DOTALL,
)


class _Number(str):
    """A number as it was written."""


def _no_number(word: str) -> None:
    raise ValueError(word)


_load = partial(json.loads, parse_int=_Number, parse_float=_Number, parse_constant=_no_number)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    try:
        return _load(text)
    except ValueError:
        return _load(_strict(text), strict=False)


def _strict(text: str) -> str:
    """A document of lax syntax in strict syntax.

    Raises:
        ValueError: It is neither.
    """
    found = []
    at = 0
    while at < len(text):
        match = _LAX_TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"no JSON at {at}")
        at = match.end()
        found.append(_strict_token(match, text[at:].lstrip()[:1]))
    return "".join(found)


def _strict_token(match: re.Match[str], following: str) -> str:
    kind, whole = match.lastgroup, match.group()
    if kind == "comma":
        return ""
    if kind == "single":
        inner = re.sub(r"""\\(.)|(")""", _requoted, match["single"], flags=re.DOTALL)
        return f'"{inner}"'
    if kind == "word" and following == ":":
        return json.dumps(whole)
    if kind == "word":
        return whole.lower()
    if kind != "number":
        return whole
    mantissa, _, exponent = match["number"].lower().partition("e")
    whole_part, _, fraction = mantissa.partition(".")
    sign = "-" if match["sign"] == "-" else ""
    return (
        f"{sign}{whole_part.lstrip('0') or '0'}"
        + (f".{fraction}" if fraction else "")
        + (f"E{exponent}" if exponent else "")
    )


def _requoted(match: re.Match[str]) -> str:
    """An escape, or a quotation mark, of a text in single quotes as one in double quotes has it."""
    if match[2]:
        return '\\"'
    return "'" if match[1] == "'" else match[0]


def _document(value: str | bytes) -> Any:
    """A document, None if the text is none."""
    try:
        text = value.decode() if isinstance(value, bytes) else value
        return _parsed(text)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[tuple[str, str], ...]:
    """The steps of a path.

    Raises:
        OracleError: ORA-40597 for what is no path.
    """
    text = path.strip().removeprefix("lax ").strip()
    found: list[tuple[str, str]] = []
    if not text.startswith("$"):
        raise OracleError(40597, "JSON path expression syntax error")
    at = 1
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise OracleError(40597, "JSON path expression syntax error")
        quoted, name, star, index = match.groups()
        if index is not None:
            found.append(("[", index))
        else:
            found.append(("*", "") if star else (".", name if quoted is None else quoted))
        at = match.end()
    return tuple(found)


def _select(items: list[Any], path: str) -> list[Any]:
    for kind, name in _steps(path):
        items = [one for item in items for one in _step(item, kind, name)]
    return items


def _step(item: Any, kind: str, name: str) -> list[Any]:
    if kind == "[":
        values = item if isinstance(item, list) else [item]
        if name == "*":
            return values
        first, _, last = name.partition(" to ")
        return values[int(first) : int(last or first) + 1]
    objects = item if isinstance(item, list) else [item]
    found = []
    for one in objects:
        if isinstance(one, dict):
            found += list(one.values()) if kind == "*" else [one[name]] if name in one else []
    return found


def _scalar(value: Any) -> str | None:
    """A scalar as text, None for what is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else None


def _printed(value: Any) -> str:
    """A value as JSON without blanks."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_printed(item)}" for key, item in value.items()) + "}"  # fmt: skip
    if isinstance(value, list):
        return "[" + ",".join(map(_printed, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _is_json(value: str | bytes, rules: str) -> bytes:
    """Is this a document by its rules: strict or lax, and without a name twice in an object?"""
    try:
        text = value.decode() if isinstance(value, bytes) else value
        found = _load(text) if rules.startswith("strict") else _parsed(text)
        if isinstance(found, dict | list) and rules.endswith("unique"):
            strict = text if rules.startswith("strict") else _strict(text)
            json.loads(strict, object_pairs_hook=_no_name_twice, strict=False)
    except (ValueError, RecursionError):
        found = None
    return numbers.encode(int(isinstance(found, dict | list)))


def _no_name_twice(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name twice")


def _value(value: str | bytes, path: str) -> str | None:
    found = _select([_document(value)], path)
    return (_scalar(found[0]) or None) if len(found) == 1 else None


def _query(value: str | bytes, path: str) -> str | None:
    found = _select([_document(value)], path)
    return _printed(found[0]) if len(found) == 1 and isinstance(found[0], dict | list) else None


def _exists(value: str | bytes, path: str) -> bytes:
    return numbers.encode(1 if _select([_document(value)], path) else 0)


def _rows(value: str | bytes, spec: str) -> str:
    """The rows of JSON_TABLE as a JSON array of arrays; ``spec`` is [path, columns], a column
    [kind, path or nested columns]."""
    path, columns = json.loads(spec)
    document = _document(value)
    items = [] if document is None else _select([document], path)
    rows: list[list[str | None]] = []
    for number, item in enumerate(items, 1):
        rows += _nested_rows(item, number, columns)
    return json.dumps(rows)


def _nested_rows(item: Any, number: int, columns: list[Any]) -> list[list[str | None]]:
    """The rows that one item gives: one per row of what is nested, or one with nothing there."""
    plain: list[Any] = []
    nests: list[tuple[int, list[list[str | None]], int]] = []
    for kind, what, *rest in columns:
        match kind:
            case "number":
                plain.append(str(number))
            case "exists":
                plain.append("1" if _select([item], what) else "0")
            case "query":
                found = _select([item], what)
                plain.append(_printed(found[0]) if len(found) == 1 else None)
            case "nested":
                width = _width(rest[0])
                inner = [
                    row
                    for count, one in enumerate(_select([item], what), 1)
                    for row in _nested_rows(one, count, rest[0])
                ]
                nests.append((len(plain), inner, width))
                plain += [None] * width
            case _:
                found = _select([item], what)
                plain.append(_scalar(found[0]) if len(found) == 1 else None)
    rows = []
    for at, inner, width in nests:
        for row in inner:
            made = list(plain)
            made[at : at + width] = row
            rows.append(made)
    return rows or [plain]


def _serialized(value: str | bytes) -> str | None:
    """A document without blanks, None for what is none."""
    try:
        return _printed(_parsed(value.decode() if isinstance(value, bytes) else value))
    except ValueError:
        return None


def _json(text: str) -> bytes:
    """A value of type JSON: its text.

    Raises:
        OracleError: ORA-40441 for what is no JSON.
    """
    try:
        json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise OracleError(40441, "JSON syntax error") from error
    return text.encode()


def _vector(text: str) -> bytes:
    """A value of type VECTOR: its text.

    Raises:
        OracleError: ORA-51804 for what is no list, ORA-51805 for a list of other things than
            numbers.
    """
    try:
        items = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _no_vector() from error
    if not isinstance(items, list) or not items:
        raise _no_vector()
    for at, item in enumerate(items, 1):
        if isinstance(item, bool) or not isinstance(item, int | float):
            raise OracleError(51805, f"Invalid syntax for VECTOR value. The specified dimension value at position {at} could not be converted to a number.")  # fmt: skip
    return text.encode()


def _vector_text(value: bytes) -> str:
    """A VECTOR as Oracle prints it: ``[1.0E+000,2.5E+000]``."""
    return f"[{','.join(map(_scientific, json.loads(value)))}]"


def _scientific(item: float) -> str:
    """A number by the fewest digits that tell it from others."""
    mantissa, _, exponent = f"{Decimal(repr(float(item))).normalize():E}".partition("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent):+04d}"


def _no_vector() -> OracleError:
    return OracleError(51804, "Invalid syntax for VECTOR value. Must be a string of the form '[number , number ..., number]'")  # fmt: skip


def _width(columns: list[Any]) -> int:
    return sum(_width(item[2]) if item[0] == "nested" else 1 for item in columns)


def _equal(first: str | bytes, second: str | bytes) -> bytes:
    """JSON_EQUAL: neither the order of names nor how a number is written counts."""
    pair = [one if isinstance(one, str) else one.decode() for one in (first, second)]
    try:
        a, b = (json.loads(one, parse_int=Decimal, parse_float=Decimal) for one in pair)
    except ValueError as error:
        raise OracleError(40441, "JSON syntax error") from error
    return numbers.encode(int(a == b))


def _member(value: str | None, how: str) -> str:
    """A member as it is written: a document, or a number as text, as it is, any other text in
    quotes."""
    if value is None:
        return "null"
    if how != "json":
        return json.dumps(value, ensure_ascii=False)
    return f"0{value}" if value.startswith(".") else value.replace("-.", "-0.", 1)


def _object(nulls: str, *parts: str | None) -> str:
    members = [
        f"{json.dumps(name or '', ensure_ascii=False)}:{_member(value, how or '')}"
        for name, value, how in zip(*[iter(parts)] * 3, strict=True)
        if value is not None or nulls == "keep"
    ]
    return "{" + ",".join(members) + "}"


def _array(nulls: str, *parts: str | None) -> str:
    members = [
        _member(value, how or "")
        for value, how in zip(*[iter(parts)] * 2, strict=True)
        if value is not None or nulls == "keep"
    ]
    return "[" + ",".join(members) + "]"


def _iso(moment: bytes, fraction: int) -> str:
    """A time as documents have it."""
    return print_date(moment, _ISO + (".FF6" if fraction else ""))


def _xml_string(document: str) -> str:
    if len(document.encode()) > _STRING_BYTES_MAX:
        raise OracleError(19011, "Character string buffer too small")
    return document


def _xml_members(parts: tuple[Any, ...]) -> Iterator[tuple[str | None, str]]:
    """Name and text of each member that is not NULL."""
    for name, is_document, value in zip(*[iter(parts)] * 3, strict=True):
        if value is not None:
            yield name, value if is_document else escape(value, _QUOTES)


def _xml_element(name: str, *parts: Any) -> str:
    members = list(_xml_members(parts))
    attributes = "".join(f' {own}="{text}"' for own, text in members if own)
    return f"<{name}{attributes}>{''.join(text for own, text in members if not own)}</{name}>"


def _xml_forest(*parts: Any) -> str | None:
    return "".join(f"<{name}>{text}</{name}>" for name, text in _xml_members(parts)) or None


_ENTRIES: Entries = (
    ("o_is_json", _is_json, 2),
    ("o_json_value", _value, 2),
    ("o_json_query", _query, 2),
    ("o_json_exists", _exists, 2),
    ("o_json_rows", _rows, 2),
    ("o_json_text", _serialized, 1),
    ("o_iso", _iso, 2),
    ("o_xml_string", _xml_string, 1),
    ("o_json_equal", _equal, 2),
    ("cv_text_json", _json, 1),
    ("cv_clob_json", _json, 1),
    ("o_vector_text", _vector_text, 1),
    ("cv_text_vector", _vector, 1),
    ("cv_clob_vector", _vector, 1),
)
for _name, _run, _arguments in _ENTRIES:
    register(_name, _run, _arguments)
register("o_json_object", _object, -1, takes_nulls=True)
register("o_json_array", _array, -1, takes_nulls=True)
register("o_xmlelement", _xml_element, -1, takes_nulls=True)
register("o_xmlforest", _xml_forest, -1, takes_nulls=True)
