"""How is GROUP BY written, with ROLLUP, CUBE and GROUPING SETS?"""

from __future__ import annotations

from itertools import combinations, product

from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.expressions import read_expression
from oracle_embedded.engine.sql.stream import TokenStream

Set = tuple[ast.Expr, ...]


def read_group(stream: TokenStream) -> tuple[Set, tuple[Set, ...] | None]:
    """Read what stands behind GROUP BY: all expressions, and the sets of them, None where there is
    one with all."""
    elements = [_read_element(stream)]
    while stream.take_op(","):
        elements.append(_read_element(stream))
    if all(len(sets) == 1 for sets in elements):
        return tuple(item for [one] in elements for item in one), None
    found = tuple(
        tuple(dict.fromkeys(item for part in chosen for item in part))
        for chosen in product(*elements)
    )
    return tuple(dict.fromkeys(item for one in found for item in one)), found


def _read_element(stream: TokenStream) -> list[Set]:
    """The sets that one element of the list comes to."""
    if stream.take_word("ROLLUP"):
        parts = _read_parts(stream)
        return [_joined(parts[:count]) for count in range(len(parts), -1, -1)]
    if stream.take_word("CUBE"):
        parts = _read_parts(stream)
        return [
            _joined(list(chosen))
            for count in range(len(parts), -1, -1)
            for chosen in combinations(parts, count)
        ]
    if stream.take_word("GROUPING", "SETS"):
        stream.need_op("(")
        sets = _read_element(stream)
        while stream.take_op(","):
            sets += _read_element(stream)
        stream.need_op(")")
        return sets
    return [_read_part(stream)]


def _read_parts(stream: TokenStream) -> list[Set]:
    stream.need_op("(")
    parts = [_read_part(stream)]
    while stream.take_op(","):
        parts.append(_read_part(stream))
    stream.need_op(")")
    return parts


def _read_part(stream: TokenStream) -> Set:
    """One expression, several in parentheses, or none: ``()``."""
    if stream.is_op("(") and stream.ahead().text == ")" and stream.ahead().kind == "op":
        stream.at += 2
        return ()
    item = read_expression(stream)
    return item.items if isinstance(item, ast.Row) else (item,)


def _joined(parts: list[Set]) -> Set:
    return tuple(item for part in parts for item in part)
