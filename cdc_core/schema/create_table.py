"""Which tables does a script of CREATE TABLE statements describe?

The script is read by its tokens (``schema.ddl_tokens``): what stands behind the columns (storage,
partitions, tablespaces) is passed over, so that DBMS_METADATA.GET_DDL's text is taken as it is.
``ALTER TABLE … ADD PRIMARY KEY | UNIQUE`` and ``CREATE UNIQUE INDEX`` add keys; other statements
are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.schema.ddl_tokens import Token, tokens_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedColumn:
    """What decoding needs of a column, as ALL_TAB_COLS has it; ``place`` is its number among the
    stored ones, None for a virtual column.

    ``length`` is the number behind the type of a text or RAW, in ``unit``: CHAR, BYTE, or empty
    where that depends on the session. ``default`` is the DEFAULT clause where it is a literal or a
    word, else its first word, and then ``is_computed``; None without a DEFAULT."""

    name: str
    data_type: str
    precision: int | None = None
    scale: int | None = None
    is_nullable: bool = True
    is_virtual: bool = False
    is_hidden: bool = False
    place: int | None = None
    default: str | None = None
    is_computed: bool = False
    length: int | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column behind the others."""

    column: DescribedColumn


@dataclass(frozen=True, slots=True)
class ModifiedColumn:
    """A column with another definition. ``type`` has its type; None where the statement leaves it
    as it is. So does ``is_nullable``."""

    name: str
    type: DescribedColumn | None = None
    is_nullable: bool | None = None


@dataclass(frozen=True, slots=True)
class DroppedColumns:
    """Columns that are gone for queries. Rows hold them still where ``is_unused``; where not, they
    lose with them what was unused before."""

    names: tuple[str, ...]
    is_unused: bool = False


@dataclass(frozen=True, slots=True)
class RenamedColumn:
    """A column under another name."""

    old: str
    new: str


ColumnClause: TypeAlias = AddedColumn | ModifiedColumn | DroppedColumns | RenamedColumn


@dataclass(slots=True)
class DescribedTable:
    """A table: its columns in order, and the columns of its primary key and of unique indexes.
    ``owner`` is None where nothing names it."""

    owner: str | None
    name: str
    columns: list[DescribedColumn] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    unique: list[tuple[str, ...]] = field(default_factory=list)

    def id(self, owner: str | None) -> TableId:
        """The table, in the schema ``owner`` where the description names none.

        Raises:
            ConfigError: Nothing names the owner.
        """
        found = self.owner or owner
        if found is None:
            raise ConfigError(
                "the description does not name the owner of a table",
                hint="Give it with --owner.",
                table=self.name,
            )
        return TableId(found, self.name)


_END = Token("open", "", 0, 0)
_OUT_OF_LINE = {"CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"}
_CLAUSES = ("ADD", "MODIFY", "DROP", "RENAME", "SET")
"""Words that begin a clause about columns where they stand outside of parentheses."""
_NO_COLUMN = frozenset(
    {"CONSTRAINT", "PRIMARY", "UNIQUE", "COLUMN", "PARTITION", "SUBPARTITION", "LOB", "NESTED", "VARRAY", "OPAQUE", "CLUSTERING", "DEFAULT"}
)  # fmt: skip
"""Words behind MODIFY that no column can be called."""
_UNTYPED = (
    "AS", "GENERATED", ",", ")", ";", "NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT", "INVISIBLE", "VISIBLE",
    "ENCRYPT", "DECRYPT", "COLLATE", "SORT", "ANNOTATIONS", "ENABLE", "DISABLE",
)  # fmt: skip
"""What stands behind a column's name where no type does."""
_OUT_OF_LINE_PAIRS = {("SUPPLEMENTAL", "LOG"), ("PERIOD", "FOR"), ("REF", "(")}


def tables_in(script: str) -> list[DescribedTable]:
    """The tables that a script creates.

    Raises:
        ConfigError: A CREATE TABLE is not understood; says where, never what it holds.
    """
    tokens = tuple(tokens_of(script))
    if tokens and tokens[-1].kind == "open":
        raise ConfigError(
            "the table description is not SQL: a text, a name or a comment has no end",
            hint="Give a script of CREATE TABLE statements, or an export of ALL_TAB_COLS as .csv, .jsonl or .parquet.",
            line=tokens[-1].line,
        )
    return _Script(tokens).tables()


def column_clauses(tokens: Sequence[Token]) -> tuple[ColumnClause, ...] | None:
    """What an ALTER TABLE does to columns, in order, nothing if it adds a check or a foreign key
    only; None if it does anything else as well, or is not understood: keys, identity columns, whose
    existing rows get values, and periods, which have columns that Oracle names."""
    try:
        return tuple(_Script(tokens).clauses())
    except ConfigError:
        return None


class _Script:
    """A cursor over the tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._found: dict[tuple[str | None, str], DescribedTable] = {}

    def tables(self) -> list[DescribedTable]:
        while self._here is not _END:
            if self._take("CREATE"):
                self._create()
            elif self._take("ALTER"):
                self._alter()
            else:
                self._at += 1
        return list(self._found.values())

    def clauses(self) -> list[ColumnClause]:
        self._need("ALTER")
        self._need("TABLE")
        if self._take("IF"):
            self._need("EXISTS")
        self._table()
        found: list[ColumnClause] = []
        while self._here is not _END and not self._is(";"):
            match self._part().text:
                case "ADD":
                    found += self._added()
                case "MODIFY":
                    found += self._modified()
                case "RENAME":
                    found.append(self._renamed())
                case "DROP":
                    found.append(self._dropped(is_unused=False))
                case "SET":
                    self._need("UNUSED")
                    found.append(self._dropped(is_unused=True))
                case _:
                    self._refuse("a clause is not about columns")
        return found

    # -- statements --------------------------------------------------------------------------------

    def _create(self) -> None:
        is_unique = self._take("UNIQUE")
        if is_unique and self._take("INDEX"):
            self._name()
            if self._take("ON"):
                self._add_unique(self._table(), self._names())
            return
        while self._here.kind == "word" and self._here.text.isalpha() and not self._is("TABLE"):
            if self._is("CREATE", "ALTER", "AS", "IS", "ON"):
                return
            self._at += 1
        if not self._take("TABLE"):
            return
        if self._take("IF"):
            self._need("NOT")
            self._need("EXISTS")
        owner, name = self._table()
        while not self._is("(") and self._here is not _END and not self._is(";"):
            self._at += 1  # SHARING = …, OF a type
        table = DescribedTable(owner, name)
        self._need("(")
        while True:
            self._item(table)
            if not self._take(","):
                break
        self._need(")")
        if not table.columns:
            self._refuse("a CREATE TABLE has no columns with types")
        self._found[owner, name] = table

    def _alter(self) -> None:
        if not self._take("TABLE"):
            return
        table = self._table()
        while self._here is not _END and not self._is(";", "CREATE", "ALTER"):
            if self._take("PRIMARY"):
                self._need("KEY")
                if (known := self._known(table)) and self._is("("):
                    _set_key(known, self._names())
            elif self._take("UNIQUE"):
                if self._is("("):
                    self._add_unique(table, self._names())
            else:
                self._at += 1

    def _known(self, table: tuple[str | None, str]) -> DescribedTable | None:
        """The table of that name; a name without an owner may mean one that has it."""
        owner, name = table
        for (other, known_name), found in self._found.items():
            if name == known_name and (owner == other or None in (owner, other)):
                return found
        return None

    def _add_unique(self, table: tuple[str | None, str], names: tuple[str, ...]) -> None:
        if (known := self._known(table)) and names:
            known.unique.append(names)

    # -- clauses of ALTER TABLE --------------------------------------------------------------------

    def _listed(self, item: Callable[[], None]) -> None:
        """One item, or several in parentheses."""
        in_parentheses = self._take("(")
        item()
        while in_parentheses and self._take(","):
            item()
        if in_parentheses:
            self._need(")")

    def _added(self) -> list[AddedColumn]:
        table = DescribedTable(None, "")

        def item() -> None:
            begin = self._at
            self._item(table)
            words = {one.text for one in self._tokens[begin : self._at] if one.kind == "word"}
            if words & {"IDENTITY", "PERIOD"} or table.primary_key or table.unique:
                self._refuse("a clause adds more than a column")

        self._listed(item)
        return [AddedColumn(column) for column in table.columns]

    def _modified(self) -> list[ModifiedColumn]:
        found: list[ModifiedColumn] = []
        if self._here.kind == "word" and self._here.text in _NO_COLUMN:
            self._refuse("a clause is not about columns")
        self._listed(lambda: found.append(self._modified_column()))
        return found

    def _modified_column(self) -> ModifiedColumn:
        table = DescribedTable(None, "")
        begin = self._at
        if self._after.is_("DROP"):
            name = self._name()
            self._need("DROP")
            self._need("IDENTITY")
            return ModifiedColumn(name)
        column = self._column(table)
        if table.primary_key or table.unique:
            self._refuse("a clause changes a key")
        words = [one.text for one in self._tokens[begin + 1 : self._at] if one.kind == "word"]
        is_loose = "DISABLE" in words or "NOVALIDATE" in words
        is_nullable = None if is_loose or not self._says_null(begin) else column.is_nullable
        return ModifiedColumn(column.name, column if column.data_type else None, is_nullable)

    def _says_null(self, begin: int) -> bool:
        """Does an item say NULL or NOT NULL of its column, and not in a DEFAULT?"""
        item = self._tokens[begin : self._at]
        depth = item[0].depth
        return any(
            one.is_("NULL") and one.depth == depth and not before.is_("DEFAULT", "ON", "SET")
            for before, one in pairwise(item)
        )

    def _dropped(self, *, is_unused: bool) -> DroppedColumns:
        names: list[str] = []
        if not is_unused and self._take("UNUSED"):
            self._need("COLUMNS")
        elif self._is("("):
            names += self._names()
        else:
            if not self._take("COLUMN"):
                self._refuse("a clause is not about columns")
            names += self._names() if self._is("(") else [self._name()]
        while (
            self._is("CASCADE", "CONSTRAINTS", "INVALIDATE", "CHECKPOINT", "ONLINE")
            or self._here.kind == "number"
        ):
            self._at += 1
        return DroppedColumns(tuple(names), is_unused)

    def _renamed(self) -> RenamedColumn:
        self._need("COLUMN")
        old = self._name()
        self._need("TO")
        return RenamedColumn(old, self._name())

    # -- columns and constraints -------------------------------------------------------------------

    def _item(self, table: DescribedTable) -> None:
        words = [self._here.text, self._after.text]
        is_word = self._here.kind == "word"
        if is_word and (words[0] in _OUT_OF_LINE or tuple(words) in _OUT_OF_LINE_PAIRS):
            self._constraint(table)
        else:
            column = self._column(table)
            if not column.data_type and not column.is_virtual:
                self._refuse("a column has no type")

    def _constraint(self, table: DescribedTable) -> None:
        if self._take("CONSTRAINT"):
            self._name()
        if self._take("PRIMARY"):
            self._need("KEY")
            _set_key(table, self._names())
        elif self._take("UNIQUE"):
            table.unique.append(self._names())
        self._pass_over()

    def _column(self, table: DescribedTable) -> DescribedColumn:
        name = self._name()
        is_typed = not self._is(*_UNTYPED) and self._here is not _END
        column = self._type(name) if is_typed else DescribedColumn(name=name, data_type="")
        facts: dict[str, Any] = {"is_nullable": True, "is_virtual": False}
        while not self._is_end_of_item():
            if self._take("NOT"):
                facts["is_nullable"] &= not self._take("NULL")
            elif self._take("PRIMARY"):
                self._need("KEY")
                table.primary_key = (name,)
                facts["is_nullable"] = False
            elif self._take("UNIQUE"):
                table.unique.append((name,))
            elif self._take("DEFAULT"):
                facts |= self._default()
            elif self._take("AS"):
                facts["is_virtual"] |= self._is("(")
            elif self._is("("):
                self._pass_over_parentheses()
            else:
                self._pass()
        column = replace(column, **facts)
        stored = sum(one.place is not None for one in table.columns)
        table.columns.append(replace(column, place=None if column.is_virtual else stored + 1))
        return column

    def _default(self) -> dict[str, Any]:
        """The clause: a literal, with its sign or type in front, or a word; of an expression its
        first word."""
        nullable = {}
        if self._take("ON"):
            self._need("NULL")
            nullable = {"is_nullable": False}
            if self._take("FOR"):
                while self._is("INSERT", "AND", "UPDATE", "ONLY"):
                    self._at += 1
        words = [self._here]
        if self._is("("):
            self._pass_over_parentheses()
        elif self._part().is_("-", "+") or (
            words[0].is_("DATE", "TIMESTAMP") and self._here.kind == "string"
        ):
            words.append(self._part())
        between = "" if words[0].kind == "sign" else " "
        text = between.join(_printed(word) for word in words)
        is_computed = words[0].is_("(") or not (self._is_end_of_item() or self._is(*_UNTYPED))
        return {**nullable, "default": text.removeprefix("+"), "is_computed": is_computed}

    def _is_end_of_item(self) -> bool:
        if self._here is _END or self._is(",", ")"):
            return True
        return self._here.depth == 0 and self._is(";", *_CLAUSES)

    def _pass(self) -> None:
        """Over a word; over an action whose words could begin a clause as a whole."""
        if self._take("ON") and self._take("DELETE"):
            if self._take("SET"):
                self._need("NULL")
        else:
            self._at += 1

    def _type(self, name: str) -> DescribedColumn:
        base = self._part().text
        while self._take("."):
            base = self._part().text
        if base in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"):
            return self._timestamp(name, base)
        if base == "INTERVAL":
            return self._interval(name)
        if base == "LONG" and self._take("RAW"):
            return DescribedColumn(name=name, data_type="LONG RAW")
        if base == "DOUBLE" and self._take("PRECISION"):
            base = "FLOAT"
        if base in ("CHARACTER", "CHAR", "NCHAR", "NATIONAL"):
            base = self._character(base)
        given = self._numbers()
        found = _type_of(name, base, given)
        if found.data_type not in _SIZED:
            return found
        behind = self._tokens[self._at - 2]
        unit = behind.text if given and behind.is_("CHAR", "BYTE") else ""
        return replace(found, length=given[0] if given else None, unit=unit)

    def _timestamp(self, name: str, base: str) -> DescribedColumn:
        digits = self._digits(6)
        zone = {"TIMESTAMPTZ": " WITH TIME ZONE", "TIMESTAMPLTZ": " WITH LOCAL TIME ZONE"}.get(
            base, ""
        )
        if self._take("WITH"):
            zone = " WITH LOCAL TIME ZONE" if self._take("LOCAL") else " WITH TIME ZONE"
            self._need("TIME")
            self._need("ZONE")
        return DescribedColumn(name=name, data_type=f"TIMESTAMP({digits}){zone}", scale=digits)

    def _interval(self, name: str) -> DescribedColumn:
        if self._take("YEAR"):
            years = self._digits(2)
            self._need("TO")
            self._need("MONTH")
            return DescribedColumn(
                name=name, data_type=f"INTERVAL YEAR({years}) TO MONTH", precision=years
            )
        self._need("DAY")
        days = self._digits(2)
        self._need("TO")
        self._need("SECOND")
        digits = self._digits(6)
        text = f"INTERVAL DAY({days}) TO SECOND({digits})"
        return DescribedColumn(name=name, data_type=text, precision=days, scale=digits)

    def _digits(self, default: int) -> int:
        given = self._numbers()
        return default if not given or given[0] is None else given[0]

    def _character(self, base: str) -> str:
        """``NATIONAL CHARACTER VARYING`` and the like, by Oracle's own names."""
        national = base in ("NCHAR", "NATIONAL")
        if base == "NATIONAL":
            self._part()
        varying = self._take("VARYING")
        return f"{'N' if national else ''}{'VARCHAR2' if varying else 'CHAR'}"

    def _numbers(self) -> list[int | None]:
        """What stands in parentheses behind a type; None for ``*``."""
        if not self._take("("):
            return []
        found: list[int | None] = []
        while not self._take(")"):
            sign = -1 if self._take("-") else 1
            word = self._part().text
            if word == "*":
                found.append(None)
            elif word.isascii() and word.isdigit() and len(word) < 10:
                found.append(sign * int(word))
            elif word not in (",", "CHAR", "BYTE"):
                self._refuse("a column has a type that is not understood")
        return found

    # -- words -------------------------------------------------------------------------------------

    @property
    def _here(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    @property
    def _after(self) -> Token:
        return self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else _END

    def _is(self, *texts: str) -> bool:
        return self._here.is_(*texts)

    def _take(self, text: str) -> bool:
        is_here = self._is(text)
        self._at += is_here
        return is_here

    def _need(self, text: str) -> None:
        if not self._take(text):
            self._refuse(f"{text} is missing in a statement")

    def _part(self) -> Token:
        word = self._here
        if word is _END:
            self._refuse("the script ends in the middle of a statement")
        self._at += 1
        return word

    def _name(self) -> str:
        word = self._part()
        if not word.is_name:
            self._refuse("a name is missing in a statement")
        return word.text

    def _table(self) -> tuple[str | None, str]:
        first = self._name()
        return (first, self._name()) if self._take(".") else (None, first)

    def _names(self) -> tuple[str, ...]:
        """Names in parentheses; none where one of them is an expression."""
        self._need("(")
        names = [self._name()]
        while self._take(","):
            names.append(self._name())
        if not self._take(")"):
            self._pass_over()
            return ()
        return tuple(names)

    def _pass_over(self) -> None:
        """To the end of this item."""
        while not self._is_end_of_item():
            if self._is("("):
                self._pass_over_parentheses()
            else:
                self._pass()

    def _pass_over_parentheses(self) -> None:
        depth = 0
        while True:
            word = self._part()
            if word.kind == "sign":
                depth += (word.text == "(") - (word.text == ")")
            if depth == 0:
                return

    def _refuse(self, what: str) -> NoReturn:
        line = self._here.line or (self._tokens[-1].line if self._tokens else 1)
        raise ConfigError(
            f"the table description cannot be parsed: {what}",
            hint="Give the text of DBMS_METADATA.GET_DDL, or an export of ALL_TAB_COLS as .csv, .jsonl or .parquet.",
            line=line,
        )


def _printed(word: Token) -> str:
    doubled = word.text.replace("'", "''")
    return f"'{doubled}'" if word.kind == "string" else word.text


def _set_key(table: DescribedTable, names: tuple[str, ...]) -> None:
    table.primary_key = names
    table.columns = [
        replace(one, is_nullable=False) if one.name in names else one for one in table.columns
    ]


_ALIASES = {
    "VARCHAR": "VARCHAR2",
    "NUMERIC": "NUMBER",
    "DECIMAL": "NUMBER",
    "DEC": "NUMBER",
    "BOOL": "BOOLEAN",
}
_SIZED = {"VARCHAR2", "NVARCHAR2", "CHAR", "NCHAR", "RAW"}
_DECIMALS = {"NUMERIC", "DECIMAL", "DEC"}
_WHOLE = {"INTEGER", "INT", "SMALLINT"}
_FLOAT_BITS = {"FLOAT": 126, "REAL": 63}


def _type_of(name: str, base: str, given: list[int | None]) -> DescribedColumn:
    """A column of a type with what stands in its parentheses."""
    if base in _WHOLE:
        return DescribedColumn(name=name, data_type="NUMBER", scale=0)
    if base in _FLOAT_BITS:
        bits = given[0] if given else _FLOAT_BITS[base]
        return DescribedColumn(name=name, data_type="FLOAT", precision=bits)
    is_decimal = base in _DECIMALS
    base = _ALIASES.get(base, base)
    if base == "NUMBER":
        precision = given[0] if given else None
        scale = given[1] if len(given) > 1 else 0 if is_decimal or precision is not None else None
        return DescribedColumn(name=name, data_type="NUMBER", precision=precision, scale=scale)  # fmt: skip
    return DescribedColumn(name=name, data_type=base)
