"""Which text functions are registered?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cmp_to_key, lru_cache
from itertools import accumulate

from oracle_embedded.api import OracleError
from oracle_embedded.charsets import BY_NAME, has_stand_ins
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.numbers import whole
from oracle_embedded.engine.formats.literals import unistr
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.registry import (
    AGGREGATES,
    COLLATIONS,
    Entries,
    Overloads,
    register,
)

_TEXT_MAX = 4000
_CODE_MAX = 2**32 - 1
_POSIX = {
    "alpha": "A-Za-z\u00c0-\u024f", "digit": "\\d", "alnum": "A-Za-z0-9\u00c0-\u024f", "space": "\\s", "upper": "A-Z", "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~", "xdigit": "0-9A-Fa-f", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "print": "\\x20-\\x7e",
    "graph": "\\x21-\\x7e",
}  # fmt: skip


def substr(text: str, start: bytes, count: bytes | None = None) -> str | None:
    """SUBSTR in characters."""
    begin = whole(start)
    if begin < 0:
        begin += len(text)
        if begin < 0:
            return None
    elif begin > 0:
        begin -= 1
    if count is None:
        return text[begin:] or None
    length = whole(count)
    return text[begin : begin + length] or None if length > 0 else None


def _substrb(
    context: CallContext, text: str, form: int, start: bytes, count: bytes | None = None
) -> str | None:
    own = context.character_sets.of(form)
    cut = substr(own.encode(text).decode("latin-1"), start, count)
    if not cut:
        return None
    stored = cut.encode("latin-1")
    if own.is_utf8 and not has_stand_ins(text.encode()):
        return stored.decode("utf-8", "replace").replace("\ufffd", " ")
    return own.decode(stored).replace("\ufffd", " ")


def _lengthb(context: CallContext, text: str, form: int) -> bytes:
    return numbers.encode(len(context.character_sets.of(form).encode(text)))


def instr(text: str, part: str, start: bytes = numbers.ONE, nth: bytes = numbers.ONE) -> bytes:
    """INSTR: position of the n-th occurrence, 0 if there is none."""
    begin, count = whole(start), whole(nth)
    if count < 1:
        raise OracleError(1428, f"argument '{count}' is out of range")
    if begin == 0:
        return numbers.encode(0)
    if begin > 0:
        at = begin - 2
        for _ in range(count):
            at = text.find(part, at + 1)
            if at < 0:
                return numbers.encode(0)
        return numbers.encode(at + 1)
    at = len(text) + begin + 1
    for _ in range(count):
        at = text.rfind(part, 0, at + len(part) - 1) if at > 0 else -1
        if at < 0:
            return numbers.encode(0)
    return numbers.encode(at + 1)


def _pad(text: str, size: bytes, fill: str, *, left: bool) -> str | None:
    width = whole(size)
    if width <= 0:
        return None
    if len(text) >= width:
        return text[:width]
    missing = width - len(text)
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if left else text + padding


def _replace(text: str | None, old: str | None, new: str | None = None) -> str | None:
    if text is None or old is None:
        return text
    return text.replace(old, new or "") or None


def _translate(text: str, source: str, target: str) -> str | None:
    table: dict[int, str | None] = {}
    for at, letter in enumerate(source):
        table.setdefault(ord(letter), target[at] if at < len(target) else None)
    return text.translate(table) or None


def _initcap(text: str) -> str:
    return re.sub(r"[^\W_]+", lambda match: match.group().capitalize(), text)


def _chr(context: CallContext, code: bytes) -> str:
    """CHR: the character whose bytes in the database's set make up a number; sets of one byte take
    its last one."""
    value = whole(code)
    own = context.character_sets.database
    if not 0 <= value <= _CODE_MAX:
        raise OracleError(1428, f"argument '{value}' is out of range")
    stored = bytes((value % 256,)) if own.width == 1 else _code_bytes(value)
    return own.decode(stored)


def _nchr(code: bytes) -> str:
    value = whole(code)
    if not 0 <= value <= _CODE_MAX:
        raise OracleError(1428, f"argument '{value}' is out of range")
    return _code_bytes(value).rjust(2, b"\0").decode("utf-16-be", "replace")


def _code_bytes(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def _ascii(context: CallContext, text: str) -> bytes:
    return numbers.encode(int.from_bytes(context.character_sets.database.encode(text[0]), "big"))


def _convert(context: CallContext, text: str, target: str, source: str | None = None) -> str:
    """CONVERT: bytes of one set as if they were the database's.

    Raises:
        OracleError: ORA-01482 for a set that is not known, ORA-03001 where the bytes are no text of
            the database's set.
    """
    own = context.character_sets.database
    wanted = BY_NAME.get(target.upper())
    given = own if source is None else BY_NAME.get(source.upper())
    if wanted is None or given is None:
        raise OracleError(1482, "unsupported character set")
    stored = wanted.encode(given.decode(own.encode(text)))
    converted = own.decode(stored)
    if own.encode(converted) != stored:
        raise OracleError(3001, "unimplemented feature: bytes that are not in the database's set")
    return converted


def _trim(side: str, mark: str, text: str) -> str | None:
    if len(mark) != 1:
        raise OracleError(30001, "trim set should have only one character")
    if side == "LEADING":
        return text.lstrip(mark) or None
    if side == "TRAILING":
        return text.rstrip(mark) or None
    return text.strip(mark) or None


def _soundex(text: str) -> str | None:
    codes = {
        letter: code
        for code, letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1)
        for letter in letters
    }
    letters = [letter for letter in text.upper() if letter.isalpha()]
    if not letters:
        return None
    result, last = letters[0], codes.get(letters[0])
    for letter in letters[1:]:
        code = codes.get(letter)
        if code and code != last:
            result += str(code)
        if letter not in "HW":
            last = code
    return (result + "000")[:4]


def _asciistr(text: str) -> str:
    parts = []
    for letter in text:
        if letter == "\\":
            parts.append("\\005C")
        elif ord(letter) < 128:
            parts.append(letter)
        else:
            encoded = letter.encode("utf-16-be").hex().upper()
            parts.extend("\\" + encoded[at : at + 4] for at in range(0, len(encoded), 4))
    return "".join(parts)


def _cast_text(
    context: CallContext, text: str, characters: int, size: int, padded: int, form: int
) -> str:
    """CAST to text: too long values are cut, CHAR is padded."""
    own = context.character_sets.of(form)
    cut = own.keep(text[:characters])
    while len(own.encode(cut)) > size and size < characters * own.width:
        cut = cut[:-1]
    return cut.ljust(characters) if padded else cut


def _padded_order(context: CallContext, left: str, right: str, form: int) -> int:
    width = max(len(left), len(right))
    own = context.character_sets.of(form)
    a, b = own.encode(left.ljust(width)), own.encode(right.ljust(width))
    return (a > b) - (a < b)


# --- regular expressions --------------------------------------------------------------------------


_PATTERN_BYTES_MAX = 512
"""Source: Oracle Database SQL Language Reference 19c, REGEXP_LIKE; Error Help, ORA-12733."""


@lru_cache(maxsize=256)
def _compiled(pattern: str, options: str) -> re.Pattern[str]:
    if len(pattern.encode()) > _PATTERN_BYTES_MAX:
        raise OracleError(12733, "regular expression too long")
    flags = 0
    for option in options:
        match option:
            case "i":
                flags |= re.IGNORECASE
            case "n":
                flags |= re.DOTALL
            case "m":
                flags |= re.MULTILINE
            case "x":
                flags |= re.VERBOSE
            case "c":
                flags &= ~re.IGNORECASE
            case _:
                raise OracleError(1760, "illegal argument for function")
    translated = re.sub(r"\[:(\w+):\]", _posix_class, pattern)
    try:
        return re.compile(translated, flags)
    except re.error as error:
        raise OracleError(12733, f"invalid regular expression: {error}") from error


def _posix_class(match: re.Match[str]) -> str:
    name = match.group(1)
    if name not in _POSIX:
        raise OracleError(12729, "invalid character class in regular expression")
    return _POSIX[name]


def _regexp_like(text: str | None, pattern: str | None, options: str | None) -> int | None:
    if text is None or pattern is None:
        return None
    return int(_compiled(pattern, options or "").search(text) is not None)


def _regexp_replace(text: str | None, pattern: str | None, *rest: str | bytes | None) -> str | None:
    if text is None or pattern is None:
        return text
    new, start, nth, options = (*rest, None, None, None, None)[:4]
    begin = whole(start) - 1 if isinstance(start, bytes) else 0
    occurrence = whole(nth) if isinstance(nth, bytes) else 0
    expression = _compiled(pattern, str(options or ""))
    template = re.sub(r"\\(\d)", r"\\g<\1>", str(new or "").replace("\\\\", "\x00")).replace(
        "\x00", "\\\\"
    )
    template = re.sub(r"\\(?![g\\])", r"\\\\", template)
    count = 0

    def substitute(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return match.expand(template) if occurrence in (0, count) else match.group()

    return text[:begin] + expression.sub(substitute, text[begin:]) or None


def _nth_match(
    text: str, pattern: str, start: bytes | None, nth: bytes | None, options: str | None
) -> tuple[re.Match[str] | None, int]:
    begin = whole(start) - 1 if start is not None else 0
    count = whole(nth) if nth is not None else 1
    for number, match in enumerate(_compiled(pattern, options or "").finditer(text, begin), 1):
        if number == count:
            return match, begin
    return None, begin


def _regexp_substr(
    text: str | None,
    pattern: str | None,
    start: bytes | None = None,
    nth: bytes | None = None,
    options: str | None = None,
    group: bytes | None = None,
) -> str | None:
    if text is None or pattern is None:
        return None
    match, _ = _nth_match(text, pattern, start, nth, options)
    if match is None:
        return None
    number = whole(group) if group is not None else 0
    return match.group(number) or None if number <= (match.re.groups or 0) else None


def _regexp_instr(
    text: str | None,
    pattern: str | None,
    start: bytes | None = None,
    nth: bytes | None = None,
    after: bytes | None = None,
    options: str | None = None,
) -> bytes | None:
    if text is None or pattern is None:
        return None
    match, _ = _nth_match(text, pattern, start, nth, options)
    if match is None:
        return numbers.encode(0)
    return numbers.encode(
        (match.end() if after is not None and whole(after) else match.start()) + 1
    )


def _regexp_count(
    text: str | None, pattern: str | None, start: bytes | None = None, options: str | None = None
) -> bytes | None:
    if text is None or pattern is None:
        return None
    begin = whole(start) - 1 if start is not None else 0
    return numbers.encode(sum(1 for _ in _compiled(pattern, options or "").finditer(text, begin)))


class ListAggregate:
    """LISTAGG … WITHIN GROUP (ORDER BY …)."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, tuple[object, ...]]] = []
        self.separator = ""
        self.distinct = False
        self.indicator: str | None = None
        self.counts = False
        self.directions: tuple[str, ...] = ()

    def step(
        self,
        value: str | None,
        separator: str | None,
        distinct: int,
        indicator: str | None,
        counts: int,
        *keys: object,
    ) -> None:
        """Take one row: value, separator, distinct, what stands for values that do not fit (None:
        they are an error), is their number shown, then pairs of sort key and direction."""
        if value is None:
            return
        self.separator = separator or ""
        self.distinct = bool(distinct)
        self.indicator, self.counts = indicator, bool(counts)
        self.directions = tuple(str(item) for item in keys[1::2])
        self.rows.append((value, keys[::2]))

    def finalize(self) -> str | None:
        """The joined text.

        Raises:
            OracleError: ORA-01489 beyond 4000 bytes.
        """
        if not self.rows:
            return None
        ordered = sorted(self.rows, key=cmp_to_key(self._compare))
        values = [value for value, _ in ordered]
        if self.distinct:
            values = list(dict.fromkeys(values))
        text = self.separator.join(values)
        if len(text.encode()) <= _TEXT_MAX:
            return text
        if self.indicator is None:
            raise OracleError(1489, "result of string concatenation is too long")
        return self._truncated(values, self.indicator)

    def _truncated(self, values: Sequence[str], indicator: str) -> str:
        """As many whole values as fit before the indicator and the number of those that are left
        out."""
        room = _TEXT_MAX - len(indicator.encode())
        room -= len(f"({len(values)})") if self.counts else 0
        sizes = (len(f"{value}{self.separator}".encode()) for value in values)
        kept = sum(1 for size in accumulate(sizes) if size <= room)
        cut = f"({len(values) - kept})" if self.counts else ""
        return "".join(f"{value}{self.separator}" for value in values[:kept]) + indicator + cut

    def _compare(
        self, left: tuple[str, tuple[object, ...]], right: tuple[str, tuple[object, ...]]
    ) -> int:
        for a, b, direction in zip(left[1], right[1], self.directions, strict=False):
            if a == b:
                continue
            if a is None or b is None:
                return -1 if (a is None) == (direction[1] == "f") else 1
            less = a < b  # type: ignore[operator]
            return -1 if less == (direction[0] == "a") else 1
        return 0


_FIRST_ENTRIES: Entries = (
    ("o_upper", str.upper, 1), ("o_lower", str.lower, 1), ("o_initcap", _initcap, 1),
    ("o_upper", lambda text, _: text.upper(), 2), ("o_lower", lambda text, _: text.lower(), 2),
    ("o_substr", substr, 2), ("o_substr", substr, 3),
    ("o_instr", instr, 2), ("o_instr", instr, 3), ("o_instr", instr, 4),
    ("o_length", lambda text: numbers.encode(len(text)), 1),
    ("o_ltrim", lambda text: text.lstrip(" ") or None, 1), ("o_ltrim", lambda text, marks: text.lstrip(marks) or None, 2),
    ("o_rtrim", lambda text: text.rstrip(" ") or None, 1), ("o_rtrim", lambda text, marks: text.rstrip(marks) or None, 2),
    ("o_lpad", lambda text, size: _pad(text, size, " ", left=True), 2),
    ("o_lpad", lambda text, size, fill: _pad(text, size, fill, left=True), 3),
    ("o_rpad", lambda text, size: _pad(text, size, " ", left=False), 2),
    ("o_rpad", lambda text, size, fill: _pad(text, size, fill, left=False), 3),
    ("o_translate", _translate, 3), ("o_nchr", _nchr, 1), ("o_trim", _trim, 3),
    ("o_soundex", _soundex, 1), ("o_reverse", lambda text: text[::-1], 1), ("o_unistr", unistr, 1),
    ("o_asciistr", _asciistr, 1),
    ("o_pad", lambda text, size: text.ljust(size), 2), ("o_same", lambda value: value, 1),
)  # fmt: skip
for _name, _run, _arguments in _FIRST_ENTRIES:
    register(_name, _run, _arguments)
_BY_SET: Entries = (
    ("o_substrb", _substrb, 3), ("o_substrb", _substrb, 4), ("o_lengthb", _lengthb, 2), ("o_chr", _chr, 1),
    ("o_ascii", _ascii, 1), ("o_convert", _convert, 2), ("o_convert", _convert, 3), ("o_cast_text", _cast_text, 5),
    ("o_padded_order", _padded_order, 3),
)  # fmt: skip
for _name, _run, _arguments in _BY_SET:
    register(_name, _run, _arguments, with_context=True)
_SECOND_OVERLOADS: Overloads = (
    ("o_replace", _replace, (2, 3)),
    ("o_regexp_like", _regexp_like, (3,)),
    ("o_regexp_replace", _regexp_replace, (2, 3, 4, 5, 6)),
    ("o_regexp_substr", _regexp_substr, (2, 3, 4, 5, 6)),
    ("o_regexp_instr", _regexp_instr, (2, 3, 4, 5, 6)),
    ("o_regexp_count", _regexp_count, (2, 3, 4)),
)
for _name, _run, _counts in _SECOND_OVERLOADS:
    for _count in _counts:
        register(_name, _run, _count, takes_nulls=True)
AGGREGATES["o_listagg"] = (ListAggregate, -1)


def _escape(text: str) -> str:
    if len(text) != 1:
        raise OracleError(1425, "escape character must be character string of length 1")
    return text


register("o_escape", _escape, 1)
COLLATIONS["o_bytes"] = lambda context, text: context.character_sets.database.encode(text)
COLLATIONS["o_national_bytes"] = lambda context, text: context.character_sets.national.encode(text)
