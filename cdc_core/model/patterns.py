"""Which tables does a pattern such as ``SHOP.ORDER*`` or ``re:SHOP\\.ORDER_\\d+`` name?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import EXPRESSION, TableId, refuse_container

T = TypeVar("T")

_PART = re.compile(r'"([^"]+)"|([A-Za-z0-9_$#*?]+)')


_TOOLS = {
    r"CMP[1-4]\$\d+|DBMS_TABCOMP_TEMP_\w+": "of the compression advisor",
    r"SYS_JOURNAL_\d+": "the journal of an index that is built online",
    r"SYS_(EXPORT|IMPORT|SQL_FILE)_(FULL|SCHEMA|TABLE|TABLESPACE|TRANSPORTABLE)_\d+|ET\$[0-9A-F]+": "of Data Pump",
    r"(MLOG|RUPD|MVIEW)\$_.+": "of materialized views",
    r"BIN\$.+==\$\d+": "in the recycle bin",
    r"DR[$#].+\$\w+": "of Oracle Text",
    r"SCHEDULER\$_.+": "of the scheduler",
    r"AQ\$_.+": "of a queue",
    r"REDEF\$_.+|SYS_RMTAB\$\$_.+": "of an online redefinition",
    r"SYS_FBA_(HIST|TCRV|DDL_COLMAP)_\d+": "of a flashback archive",
    r"SYS_IOT_(OVER|MAP)_\d+|SYS_NT.{22}==": "of another table's rows",
    r"M(DRT|DXT|DQT)_.+\$": "of a spatial index",
    r"ORA_TEMP_\d+_DS_\d+|SYS_TEMP_\w+": "of the optimizer",
    r"(DEF|SNAP|STREAMS|KUPC)\$_.+": "of replication",
}
"""Names that Oracle's own tools give to tables in the schemas of users, and whose such a table is.
They come and go by themselves.

Source: Database Administrator's Guide 19c, "Viewing Information About Tables"; Utilities 19c, "Data
Pump"; Data Warehousing Guide 19c; Text Reference 19c, "Oracle Text Indexing Elements"; Debezium
leaves out several of them (DBZ-5756, DBZ-9661).
"""
_TOOL_NAMES = tuple((re.compile(name), whose) for name, whose in _TOOLS.items())


def whose_tool(table: str) -> str:
    """Which of Oracle's tools made a table, by its name; empty for a user's own. No pattern takes
    such a table in."""
    return next((whose for name, whose in _TOOL_NAMES if name.fullmatch(table)), "")


@dataclass(frozen=True, slots=True)
class TablePattern:
    """Tables by owner and name, as the dictionary has them: ``*`` is any number of characters,
    ``?`` is one.

    Oracle allows neither character in a plain name; a quoted name that has one is read as a pattern
    too. A text that begins with ``re:`` is a regular expression over ``OWNER.TABLE`` as the
    dictionary has both, without double quotes. It fits as a whole, and case counts.
    """

    owner: str
    name: str
    expression: str = ""
    """The regular expression, which stands in the place of owner and name."""

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> TablePattern:
        """Read ``OWNER.TABLE``, whose unquoted parts fold to upper case, or ``re:…``.

        Raises:
            ConfigError: The text is not a pattern.
        """
        if text.startswith(EXPRESSION):
            expression = text.removeprefix(EXPRESSION)
            try:
                re.compile(expression or "(")
            except re.error as error:
                raise ConfigError(
                    f"this is not a regular expression: {error}",
                    hint="Write it as Python does, over OWNER.TABLE: 're:SHOP\\.ORDER_[0-9]+'.",
                    pattern=text[:200],
                ) from None
            return cls("", "", expression)
        parts = list(_PART.finditer(text.strip()))
        is_whole = ".".join(part[0] for part in parts) == text.strip()
        if is_whole:
            refuse_container(parts, text)
        if len(parts) != 2 or not is_whole:
            raise ConfigError(
                "this is not a table name or a pattern",
                hint="Write OWNER.TABLE, for example 'SHOP.*' or 'SHOP.ORDER?', with double quotes around a part that is "
                "not upper case; or a regular expression, 're:SHOP\\.ORDER_[0-9]+'.",
                pattern=text[:200],
            )
        return cls(*(part[1] or part[2].upper() for part in parts))

    @classmethod
    def is_in(cls, text: str) -> bool:
        """Has the text a wildcard, or is it a regular expression?"""
        return text.startswith(EXPRESSION) or "*" in text or "?" in text

    def matches(self, table: TableId) -> bool:
        """Is the table among those that the pattern names?"""
        if self.expression:
            return _compiled(self.expression).fullmatch(f"{table.owner}.{table.name}") is not None
        return _fits(self.owner, table.owner) and _fits(self.name, table.name)


_OF_TABLES = re.compile(rf"((?:{_PART.pattern})\.(?:{_PART.pattern}))\.(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ColumnPattern:
    """Columns of tables, by ``OWNER.TABLE.COLUMN``: a pattern of tables, and a name or pattern of
    columns."""

    tables: TablePattern
    column: str

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> ColumnPattern:
        """Read ``OWNER.TABLE.COLUMN``, of which each part may have ``*`` and ``?``, folds to upper
        case unless it stands in double quotes, and the last may be a regular expression, ``re:…``.

        Raises:
            ConfigError: The text is not such a pattern.
        """
        found = _OF_TABLES.fullmatch(text.strip())
        column = found[found.re.groups] if found else ""
        is_quoted = len(column) > 2 and column[0] == column[-1] == '"'
        if found is None or ("." in column and not is_quoted and not column.startswith(EXPRESSION)):
            raise ConfigError(
                "this is not a pattern of columns",
                hint="Write OWNER.TABLE.COLUMN, for example 'SHOP.*.PASSWORD', '*.*.SSN' or 'SHOP.CUSTOMERS.re:(HOME|WORK)_PHONE'.",
                pattern=text[:200],
            )
        if is_quoted:
            column = column[1:-1]
        elif not column.startswith(EXPRESSION):
            column = column.upper()
        return cls(TablePattern.parse(found[1]), check_name(column))


def check_name(pattern: str) -> str:
    """A name or a pattern of names as it is.

    Raises:
        ConfigError: It is a regular expression that cannot be read.
    """
    if pattern.startswith(EXPRESSION):
        try:
            re.compile(pattern.removeprefix(EXPRESSION) or "(")
        except re.error as error:
            raise ConfigError(
                f"this is not a regular expression: {error}",
                hint="Write it as Python does: 're:APP_[0-9]+'.",
                pattern=pattern[:200],
            ) from None
    return pattern


def name_fits(pattern: str, name: str) -> bool:
    """Is a name the one that is written, or one that a pattern fits as a whole: ``*`` is any number
    of characters, ``?`` is one, and behind ``re:`` stands a regular expression?"""
    if pattern.startswith(EXPRESSION):
        return _compiled(pattern.removeprefix(EXPRESSION)).fullmatch(name) is not None
    return pattern == name or _fits(pattern, name)


def is_name_pattern(text: str) -> bool:
    """Is a text among names a pattern for several?"""
    return text.startswith(EXPRESSION) or "*" in text or "?" in text


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """Which columns of a table are left out: those that ``exclude`` names, and with ``include`` all
    that it does not name; both hold names and patterns. Columns of Redolake's own never are."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def excludes(self, column: str) -> bool:
        """Is a column left out, whether or not the table has it yet?"""
        if column.startswith("_cdc_"):
            return False
        if any(name_fits(one, column) for one in self.exclude):
            return True
        return bool(self.include) and not any(name_fits(one, column) for one in self.include)

    @property
    def has_patterns(self) -> bool:
        """May it leave out columns that it does not name?"""
        return bool(self.include) or any(map(is_name_pattern, self.exclude))

    def left_out(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The names that are left out whatever the table has, and those of its columns that are."""
        names = (one for one in self.exclude if not is_name_pattern(one))
        return tuple(dict.fromkeys([*names, *filter(self.excludes, columns)]))


def fitting(names: Mapping[str, T], column: str) -> T | None:
    """What a mapping by names and patterns says of a column: under its name, or else under the
    first pattern that fits; None for nothing. Columns of Redolake's own are not meant."""
    if column.startswith("_cdc_"):
        return None
    if column in names:
        return names[column]
    return next((said for one, said in names.items() if name_fits(one, column)), None)


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _fits(pattern: str, text: str) -> bool:
    return _expression(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(one) or re.escape(one) for one in pattern), re.DOTALL)
