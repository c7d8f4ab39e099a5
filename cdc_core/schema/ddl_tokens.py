"""What are the words of a SQL text, as Oracle reads them?

All that reads DDL reads these: comments are gone, strings and quoted names are one token each,
whatever quotes they have and whatever is in them. Nothing is refused: Oracle has run the statement,
or whoever asks for a script's tables says where it ends too early.

Source: Oracle Database SQL Language Reference 19c and 23ai, "Text Literals" (alternative quoting),
"Numeric Literals", "Comments", "Database Object Names and Qualifiers".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_TOKEN = re.compile(
    r"""(?:\s|--[^\n]*|/\*.*?\*/)+
      | (?P<string>n?q'(?:\[.*?\]'|\{.*?\}'|\(.*?\)'|<.*?>'|(?P<quote>[^\s\[({<]).*?(?P=quote)')|n?'(?:[^']|'')*')
      | (?P<name>"[^"]*")
      | (?P<open>n?'.*|".*|/\*.*)
      | (?P<word>[^\W\d][\w$#]*)
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word in upper case, a quoted name without its quotes, the text that a string stands for, a
    number, or a sign; ``depth`` counts the parentheses around it. The last token is ``open`` where
    a string, a name or a comment has no end."""

    kind: Literal["word", "name", "string", "number", "sign", "open"]
    text: str
    depth: int
    line: int

    @property
    def is_name(self) -> bool:
        """May it be the name of something?"""
        return self.kind in ("word", "name")

    def is_(self, *texts: str) -> bool:
        """Is it one of these words, in upper case, or signs?"""
        return self.kind in ("word", "sign") and self.text in texts


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a text in order."""
    depth, line, counted = 0, 1, 0
    for found in _TOKEN.finditer(text):
        raw = found[0]
        line += text.count("\n", counted, found.start())
        counted = found.start()
        if found["word"] is not None:
            yield Token("word", raw.upper(), depth, line)
        elif found["name"] is not None:
            yield Token("name", raw[1:-1], depth, line)
        elif found["string"] is not None:
            yield Token("string", _meant(raw), depth, line)
        elif found["number"] is not None:
            yield Token("number", raw, depth, line)
        elif found["open"] is not None:
            yield Token("open", "", depth, line)
        elif found["sign"] is not None:
            depth -= raw == ")"
            yield Token("sign", raw, depth, line)
            depth += raw == "("


def _meant(literal: str) -> str:
    """The text of a string literal."""
    quoted = literal[literal.index("'") + 1 : -1]
    has_own_quotes = literal[: literal.index("'")].upper().endswith("Q")
    return quoted[1:-1] if has_own_quotes else quoted.replace("''", "'")
