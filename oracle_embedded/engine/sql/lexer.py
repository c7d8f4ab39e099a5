"""How is Oracle SQL text cut into tokens?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.formats.literals import unistr

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<quote>[nN]?[qQ]'|[nNuU]?')
    |(?P<number>(?:\d+(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[fFdD](?![A-Za-z0-9_$\#]))?)
    |(?P<word>[^\W\d_][\w$\#]*)
    |(?P<quoted>"[^"]*")
    |(?P<bind>:\s*(?:[^\W\d_][\w$\#]*|\d+|"[^"]+"))
    |(?P<op>:=|=>|\.\.|\|\||<>|!=|\^=|<=|>=|\*\*|<<|>>|[-+*/%(),.;=<>@:|?!^{}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSERS = {"[": "]", "{": "}", "(": ")", "<": ">"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token. ``kind`` is word (``text`` in upper case), quoted, string, nstring, number, bind,
    op or end."""

    kind: str
    text: str
    start: int
    stop: int


def tokenize(sql: str) -> list[Token]:
    """Cut a statement into tokens, comments and hints left out; the last one has kind ``end``.

    Raises:
        OracleError: ORA-01756 for an open string, ORA-00911 for a character that no token begins
            with.
    """
    tokens: list[Token] = []
    at = 0
    size = len(sql)
    while at < size:
        match = _TOKEN.match(sql, at)
        if match is None:
            raise _stray(sql, at)
        kind = match.lastgroup or ""
        stop = match.end()
        if kind == "quote":
            text, stop = _string(sql, at, match.group())
            if sql[at] in "uU":
                text = unistr(text)
            tokens.append(Token("nstring" if sql[at] in "nNuU" else "string", text, at, stop))
        elif kind == "word":
            tokens.append(Token("word", match.group().upper(), at, stop))
        elif kind == "quoted":
            tokens.append(Token("quoted", match.group()[1:-1], at, stop))
        elif kind == "bind":
            name = match.group()[1:].strip()
            text = name[1:-1] if name.startswith('"') else name.upper()
            tokens.append(Token("bind", text, at, stop))
        elif kind != "space":
            tokens.append(Token(kind, match.group(), at, stop))
        at = stop
    tokens.append(Token("end", "", size, size))
    return tokens


def _stray(sql: str, at: int) -> OracleError:
    if sql[at] == '"':
        return OracleError(1740, "missing double quote in identifier", at)
    if sql.startswith("/*", at):
        return OracleError(1742, "comment not terminated properly", at)
    return ora(911, offset=at)


def _string(sql: str, start: int, opening: str) -> tuple[str, int]:
    """The text of a string that opens at ``start``, and where it ends."""
    at = start + len(opening)
    if opening[-2:-1] in ("q", "Q"):
        closer = _CLOSERS.get(sql[at : at + 1], sql[at : at + 1]) + "'"
        end = sql.find(closer, at + 1)
        if end < 0:
            raise ora(1756, offset=start)
        return sql[at + 1 : end], end + 2
    parts = []
    while True:
        end = sql.find("'", at)
        if end < 0:
            raise ora(1756, offset=start)
        parts.append(sql[at:end])
        if sql[end + 1 : end + 2] != "'":
            return "'".join(parts), end + 1
        at = end + 2


def normalise(sql: str) -> str:
    """Statement text in upper case with one blank between words and after a comma, as hooks are
    named."""
    text = " ".join(
        token.text for token in tokenize(sql) if token.kind != "end" and token.text != ";"
    )
    return text.replace(" ,", ",").replace("( ", "(").replace(" )", ")")
