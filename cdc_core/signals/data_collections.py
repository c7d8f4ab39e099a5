"""Which captured tables does an entry of ``data-collections`` name?

An entry is read as the first of these that names a captured table: a name (``OWNER.TABLE`` or
``DATABASE.OWNER.TABLE``), a pattern as in the configuration (``SHOP.ORDER*``), or a regular
expression that matches the whole of ``database.owner.table``, as in Debezium, or of
``owner.table``. A regular expression is tried in the case that it is written in, and then in any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, parts_of
from cdc_core.model.patterns import TablePattern
from cdc_core.state.texts import storable

ENTRY_LENGTH_MAX = 1000
_PLAIN = re.compile(r'(\w[\w$#]*|"[^"]+")\.(\w[\w$#]*|"[^"]+")')
_TABLES_NAMED_MAX = 20


def tables_of_collections(
    entries: Sequence[str], captured: Sequence[TableId], databases: Iterable[str]
) -> tuple[TableId, ...]:
    """The captured tables that entries name, each once, in the order of the entries.

    Args:
        entries: As a sender wrote them.
        captured: The tables that can be meant.
        databases: What the database of the tables may be called.

    Raises:
        ConfigError: An entry names no captured table, or is no regular expression.
    """
    known = tuple(databases)
    found = [table for entry in entries for table in _tables_of(entry, captured, known)]
    return tuple(dict.fromkeys(found))


def table_from_collection(text: str) -> TableId:
    r"""Read ``OWNER.TABLE``, or ``DATABASE.OWNER.TABLE`` as Debezium has it (``\.`` counts as a
    dot), parts in quotes or not.

    Raises:
        ConfigError: It names no single table.
    """
    name = text.strip().replace("\\.", ".")
    parts = parts_of(name)
    if len(parts) == 3:
        name = ".".join(f'"{quoted}"' if quoted else plain for quoted, plain in parts[1:])
    return TableId.parse(name)


def is_plain_name(entry: str) -> bool:
    """Can the entry be nothing but ``OWNER.TABLE``, so that it can be judged without Oracle?"""
    return _PLAIN.fullmatch(entry.strip()) is not None


def database_of_collection(text: str) -> str | None:
    """The database part of ``DATABASE.OWNER.TABLE``, None without one; in upper case unless it is
    in quotes."""
    parts = parts_of(text.strip().replace("\\.", "."))
    if len(parts) != 3:
        return None
    quoted, plain = parts[0]
    return quoted or plain.upper()


def _tables_of(entry: str, captured: Sequence[TableId], databases: Sequence[str]) -> list[TableId]:
    text = entry.strip()
    if not text or len(text) > ENTRY_LENGTH_MAX:
        raise ConfigError(
            "an entry of data-collections is empty or too long",
            hint=f"Write a name, a pattern or a regular expression, of at most {ENTRY_LENGTH_MAX}"
            " characters.",
        )
    if (table := _named(text)) is not None and table in captured:
        _refuse_foreign(text, databases)
        return [table]
    if (pattern := _pattern(text)) is not None and (
        named := [one for one in captured if pattern.matches(one)]
    ):
        return named
    for flags in (re.NOFLAG, re.IGNORECASE):
        expression = _expression(text, flags)
        if found := [one for one in captured if _fits(expression, one, databases)]:
            return found
    shown = ", ".join(map(str, captured[:_TABLES_NAMED_MAX]))
    more = len(captured) - _TABLES_NAMED_MAX
    raise ConfigError(
        "an entry of data-collections names no captured table",
        hint=f"These tables are captured: {shown}{f' and {more} more' if more > 0 else ''}.",
        entry=storable(text)[:200],
    )


def _named(text: str) -> TableId | None:
    try:
        return table_from_collection(text)
    except ConfigError:
        return None


def _refuse_foreign(text: str, databases: Sequence[str]) -> None:
    """A name in three parts is of this database."""
    database = database_of_collection(text)
    if database is not None and databases and database not in databases:
        raise ConfigError(
            "data-collections names tables of another database",
            hint=f"This source reads {' or '.join(sorted(databases))}; write OWNER.TABLE or that"
            " database's name.",
            databases=database,
        )


def _pattern(text: str) -> TablePattern | None:
    try:
        return TablePattern.parse(text) if TablePattern.is_in(text) else None
    except ConfigError:
        return None


def _expression(text: str, flags: re.RegexFlag) -> re.Pattern[str]:
    try:
        return re.compile(text, flags)
    except re.error as error:
        raise ConfigError(
            f"an entry of data-collections is not a regular expression: {error.msg}",
            hint="Write a name (OWNER.TABLE), a pattern (OWNER.ORDER*) or a regular expression"
            r" (OWNER\.(ORDERS|LINES)).",
            entry=storable(text)[:200],
        ) from error


def _fits(expression: re.Pattern[str], table: TableId, databases: Sequence[str]) -> bool:
    plain = f"{table.owner}.{table.name}"
    names = [plain, *(f"{database}.{plain}" for database in databases)]
    return any(expression.fullmatch(name) for name in names)
