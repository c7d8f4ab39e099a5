"""What does an expression of one of Debezium's lists name, said as a table's name or pattern of
ours?

Debezium compares each expression as a whole and without regard to case: of tables with
``schema.table`` (or ``database.schema.table``), of columns with one part more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LITERAL = re.compile(r"(?:[A-Za-z0-9_]|\\[$#_]|#)+")
_DOT = re.compile(r"\\\.|\.")


def listed(text: str) -> list[str]:
    r"""The expressions of a list: commas separate them, ``\,`` is a comma inside one."""
    parts = re.split(r"(?<!\\),", text)
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


def literal(expression: str) -> str | None:
    """The one text in capitals that an expression without operators fits; None for any other."""
    if not _LITERAL.fullmatch(expression):
        return None
    return expression.replace("\\", "").upper()


def dotted(expression: str) -> list[str]:
    """The parts between dots, where each dot can stand for nothing but a dot.

    A dot without a backslash counts between two literals: names have exactly one dot between parts,
    so it fits no other character there.
    """
    parts = _DOT.split(expression)
    return parts if all(_LITERAL.fullmatch(part) for part in parts) else []


def table_name(expression: str) -> str:
    r"""An expression over ``schema.table`` as a name or pattern for ``tables[].name``.

    ``SHOP\.ORDERS`` is the table, ``SHOP\..*`` the pattern ``SHOP.*``; all others stay
    expressions, without regard to case as in Debezium: ``re:(?i)…``.

    Raises:
        ValueError: It is no regular expression that Python reads.
    """
    if len(parts := dotted(expression)) == 2:
        return ".".join(str(literal(part)) for part in parts)
    if expression in (".*", r".*\..*", "..*"):
        return "*.*"
    whole = re.fullmatch(r"((?:[A-Za-z0-9_]|\\[$#_])+)(?:\\\.|\.)\.\*", expression)
    if whole:
        return f"{literal(whole[1])}.*"
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(str(error)) from None
    return f"re:(?i){expression}"


def within_schemas(name: str, schemas: list[str]) -> str:
    """A pattern, narrowed to the tables of schemas that an expression names."""
    inside = "|".join(schemas)
    return rf"re:(?i)(?=(?:{inside})\.)(?:{as_expression(name)})"


def as_expression(name: str) -> str:
    """A name or pattern of ours as a regular expression over ``OWNER.TABLE``."""
    if name.startswith("re:"):
        return name.removeprefix("re:").removeprefix("(?i)")
    wild = {"*": "[^.]*", "?": "[^.]"}
    return "".join(wild.get(one) or re.escape(one) for one in name)


def columns(expression: str) -> Iterator[tuple[str, str]]:
    r"""The columns that an expression over ``schema.table.column`` names, as (expression of the
    table, column).

    Yields nothing where the column is not named literally: ``.*\.SSN`` is the column SSN of every
    table, ``SHOP\.T\.(A|B)`` are two columns of one.
    """
    found = re.fullmatch(r"(.*?)(?:\\\.|\.)(\(([^()]+)\)|(?:[A-Za-z0-9_]|\\[$#_]|#)+)", expression)
    if found is None:
        return
    names = [literal(one) for one in (found[3] or found[2]).split("|")]
    if all(names):
        yield from ((found[1], str(name)) for name in names)


def column_pattern(expression: str) -> tuple[str, str] | None:
    r"""An expression over ``schema.table.column`` as (expression of the table, pattern for
    ``columns_exclude``): what stands behind the last ``\.`` is the column's. None where no such dot
    parts it, or Python does not read it."""
    table, dot, column = expression.rpartition(r"\.")
    try:
        re.compile(column)
    except re.error:
        return None
    return (table, f"re:(?i){column}") if dot and column else None


def names_table(expression: str, table: str) -> bool:
    """Does an expression fit a table, ``OWNER.TABLE``? One of three parts is compared without its
    first."""
    return any(fits(one, table) for one in _without_database(expression))


def _without_database(expression: str) -> Iterator[str]:
    yield expression
    if len(parts := dotted(expression)) == 3:
        yield r"\.".join(parts[1:])


def fits(expression: str, text: str) -> bool:
    """Does an expression fit a whole text, as Debezium compares? One that Python cannot read fits
    none: the import has said so."""
    try:
        return re.fullmatch(expression, text, re.IGNORECASE) is not None
    except re.error:
        return False
