"""Which bind positions of a DML statement stand behind ``RETURNING … INTO``?

Values of these binds never travel, so a request cannot be read without knowing them, and it must be
read to its end even when the statement turns out to be wrong. The rules are those by which clients
find placeholders.
"""

from __future__ import annotations

import re

_TOKENS = re.compile(
    r"""
    [qQ]'(?P<quote>[\[{<(])(?:.*?)[\]}>)]'      # q'[…]'
    | [qQ]'(?P<same>[^\s\[{<(]).*?(?P=same)'    # q'!…!'
    | '[^']*'
    | "[^"]*"
    | --[^\r\n]*
    | /\*.*?\*/
    | :\s*(?P<bind>"[^"]*"|[0-9]+|[^\W\d_][\w$\#]*)
    | (?P<word>[^\W\d_]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_DML_WORDS = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE"))


def returning_positions(sql: str, *, takes_return: bool = True) -> frozenset[int]:
    """Positions of the binds behind ``RETURNING … INTO``; empty for everything but DML.

    Args:
        takes_return: Does the client know ``RETURN``, the synonym of ``RETURNING``?
    """
    keywords = ("RETURN", "RETURNING") if takes_return else ("RETURNING",)
    first = ""
    returning = into = False
    positions = []
    count = 0
    for match in _TOKENS.finditer(sql):
        word = match["word"]
        if word is not None:
            word = word.upper()
            if not first:
                first = word
                if first not in _DML_WORDS:
                    return frozenset()
            elif word in keywords:
                returning = True
            elif returning and word == "INTO":
                into = True
        elif match["bind"] is not None:
            if into:
                positions.append(count)
            count += 1
    return frozenset(positions)
