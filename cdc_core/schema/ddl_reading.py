"""Which table is a DDL statement about, and what does it do to the table? The one reader of DDL
that Oracle has run.

The dictionary says what a table has become. Its rows are another matter: whether they went without
redo, or got other ROWIDs, and whether a column that is gone is one under another name, only the
text says; and where the dictionary as of the DDL is gone, the text says what it did to columns. It
is read by its tokens (``schema.ddl_tokens``), so that neither comments, strings nor names that look
like SQL count; what is not about tables has no effect. Nothing is refused: Oracle has run the
statement.

Source: Oracle Database SQL Language Reference 19c and 23ai, the statements by name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from cdc_core.schema.create_table import ColumnClause, column_clauses
from cdc_core.schema.ddl_tokens import Token, tokens_of

Effect = Literal[
    "columns", "keys", "partitions", "rows removed", "rows moved", "table gone", "table new"
]
"""What a statement may do to its table: ``columns`` and ``keys`` (constraints) change its
definition; ``partitions`` come or go; rows are removed or exchanged without redo for each, or get
other ROWIDs; the table goes, or gets another name; one comes under the name."""


def _listed(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split(", "))


_PARTITION = frozenset({"PARTITION", "PARTITIONS", "SUBPARTITION", "SUBPARTITIONS"})
_REMOVING = frozenset({"TRUNCATE", "DROP", "EXCHANGE"})
_MOVING = frozenset({"MOVE", "SPLIT", "MERGE", "COALESCE"})
_KEYS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "SCOPE", "REF"})
_NO_COLUMN = frozenset({"SUPPLEMENTAL", "CLUSTERING", "STORAGE", "INDEXING", "VALUES", "INDEX"})
"""Words behind ADD, MODIFY and DROP that no column can be called, or that name something else
there."""
_OF_STORAGE = frozenset({"DEFAULT", "LOB", "NESTED", "VARRAY", "OPAQUE"})
_BEHIND_NAMES = _listed(
    "DROP, ALL, REUSE, STORAGE, UPDATE, INVALIDATE, GLOBAL, INDEXES, CASCADE, PARALLEL, NOPARALLEL"
)
"""What may follow the names of partitions that are dropped or truncated: nothing of it is about
other rows."""
_BEHIND_EXCHANGE = _listed(
    "INCLUDING, EXCLUDING, INDEXES, WITH, WITHOUT, VALIDATION, UPDATE, INVALIDATE, GLOBAL, CASCADE, "
    "PARALLEL, NOPARALLEL"
)
"""What may follow the table with which a partition is exchanged."""
_ON_TABLE = frozenset({"INDEX", "TRIGGER"})
_NO_TABLE = frozenset({"DATABASE", "SCHEMA", "PLUGGABLE", "CLUSTER", "NESTED"})
"""What may stand behind ON in place of a table."""
_BEFORE_KIND = _listed(
    "OR, REPLACE, FORCE, NO, NOFORCE, EDITIONABLE, NONEDITIONABLE, UNIQUE, BITMAP, MULTIVALUE, "
    "GLOBAL, PRIVATE, TEMPORARY, SHARDED, DUPLICATED, IMMUTABLE, BLOCKCHAIN, PUBLIC, EDITIONING"
)
_BESIDE = _listed(
    "COMMENT ON TABLE, COMMENT ON COLUMN, GRANT, REVOKE, ANALYZE, AUDIT, NOAUDIT, CREATE INDEX, "
    "ALTER INDEX, CREATE TRIGGER, CREATE SYNONYM, CREATE VIEW"
)
"""Statements that leave a table's definition as it is; an index that is not unique is no key."""
_LEAVING: frozenset[Effect] = frozenset({"rows moved", "partitions"})
"""What an ALTER TABLE may do that leaves its columns and its key as they are."""
_CACHED = 1024


@dataclass(frozen=True, slots=True)
class Ddl:
    """A DDL statement: its first words (``ALTER TABLE``), the table that it names, with its owner
    where it names one too, and what it does to it. ``renamed`` are a column's old and new name.
    ``clauses`` are what the statement does to columns, in order, none where it leaves the table's
    definition as it is; None where it does anything else as well, or the text does not say."""

    statement: str
    owner: str | None = None
    table: str | None = None
    effects: frozenset[Effect] = frozenset()
    renamed: tuple[str, str] | None = None
    clauses: tuple[ColumnClause, ...] | None = None


PartitionChoice = str | tuple[tuple[Token, ...], ...]
"""The name of a partition, or the values of ``FOR (…)``, which it takes: the tokens of each."""


@dataclass(frozen=True, slots=True)
class EmptiedPartitions:
    """Partitions, or subpartitions, that a statement drops, truncates or exchanges."""

    chosen: tuple[PartitionChoice, ...]
    is_sub: bool = False


@lru_cache(maxsize=_CACHED)
def read_ddl(text: str) -> Ddl:
    """Read a statement as Oracle got it; one that is about no table has none."""
    tokens = tuple(tokens_of(text.rstrip("\0")))
    found = _read(tokens)
    return replace(found, clauses=_clauses(found, tokens))


def _read(tokens: Sequence[Token]) -> Ddl:
    if not tokens or tokens[0].kind != "word":
        return Ddl("")
    verb = tokens[0].text
    if verb == "RENAME":
        return _named(verb, tokens, 1, frozenset({"table gone"}))
    if verb in ("GRANT", "REVOKE"):
        return _granted(verb, tokens)
    if verb == "COMMENT":
        return _commented(tokens)
    kind, at = _kind(tokens)
    statement = f"{verb} {kind}".strip()
    if kind in _ON_TABLE and verb == "CREATE":
        return _made_on(statement, tokens)
    if kind == "TABLE" or (verb, kind) == ("TRUNCATE", "CLUSTER"):
        effects, renamed = _effects(verb, tokens, at)
        return _named(statement, tokens, at, effects, renamed)
    return Ddl(statement)


def _clauses(found: Ddl, tokens: Sequence[Token]) -> tuple[ColumnClause, ...] | None:
    statement = found.statement
    is_key = statement == "CREATE INDEX" and tokens[1].is_("UNIQUE")
    if (statement in _BESIDE or statement.split(" ")[0] in _BESIDE) and not is_key:
        return ()
    if statement != "ALTER TABLE" or found.table is None or tokens[-1].kind == "open":
        return None
    return column_clauses(tokens) if found.effects - _LEAVING else ()


def removes_rows(ddl: str) -> bool:
    """Does the statement remove or replace rows without redo for each: TRUNCATE, or a partition
    dropped or exchanged?"""
    return "rows removed" in read_ddl(ddl).effects


def empties_table(ddl: str) -> bool:
    """Does the statement remove all rows of the table that it names: TRUNCATE TABLE?"""
    return read_ddl(ddl).statement == "TRUNCATE TABLE"


def emptied_partitions(ddl: str) -> EmptiedPartitions | None:
    """The partitions, or subpartitions, whose rows the statement removes:
    ``ALTER TABLE … TRUNCATE`` or ``DROP PARTITION``, one or several.

    None for statements that do anything else, or anything else as well.
    """
    tokens = list(tokens_of(ddl))
    verb, kind, at = _partition_clause(tokens)
    if verb not in ("TRUNCATE", "DROP") or kind not in _PARTITION:
        return None
    chosen: list[PartitionChoice] = []
    while at < len(tokens) and tokens[at].is_name:
        choice, at = _choice(tokens, at)
        chosen.append(choice)
        if at >= len(tokens) or not tokens[at].is_(","):
            break
        at += 1
    if not chosen or not _is_all(tokens, at, _BEHIND_NAMES):
        return None
    return EmptiedPartitions(tuple(chosen), is_sub=kind.startswith("SUB"))


def exchanged_partition(ddl: str) -> EmptiedPartitions | None:
    """The partition, or subpartition, whose rows the statement exchanges for those of a table:
    ``ALTER TABLE … EXCHANGE PARTITION``.

    None for statements that do anything else, or anything else as well.
    """
    tokens = list(tokens_of(ddl))
    verb, kind, at = _partition_clause(tokens)
    if verb != "EXCHANGE" or kind not in ("PARTITION", "SUBPARTITION") or at >= len(tokens):
        return None
    if not tokens[at].is_name:
        return None
    chosen, at = _choice(tokens, at)
    if [one.text for one in tokens[at : at + 2]] != ["WITH", "TABLE"]:
        return None
    _, at = _path(tokens, at + 2)
    if not _is_all(tokens, at, _BEHIND_EXCHANGE):
        return None
    return EmptiedPartitions((chosen,), is_sub=kind == "SUBPARTITION")


def _partition_clause(tokens: Sequence[Token]) -> tuple[str, str, int]:
    """What an ``ALTER TABLE`` does to what (``TRUNCATE``, ``PARTITION``), and the place behind
    these words; other statements do nothing."""
    if len(tokens) < 3 or not (tokens[0].is_("ALTER") and tokens[1].is_("TABLE")):
        return "", "", len(tokens)
    _, at = _path(tokens, 2)
    words = [one.text if one.kind == "word" else "" for one in tokens[at : at + 2]]
    verb, kind = [*words, "", ""][:2]
    return verb, kind, at + 2


def _is_all(tokens: Sequence[Token], at: int, words: Collection[str]) -> bool:
    """Is a statement closed, and has it nothing but some words, and numbers, from a place on?"""
    rest = [one for one in tokens[at:] if one.depth == 0 and not one.is_(";", "(", ")")]
    is_closed = not tokens[-1].depth and tokens[-1].kind != "open"
    return is_closed and all(one.kind == "number" or one.text in words for one in rest)


def _choice(tokens: Sequence[Token], at: int) -> tuple[PartitionChoice, int]:
    """The partition that is chosen at a place, and the place behind it."""
    if not (tokens[at].is_("FOR") and tokens[at + 1 : at + 2] and tokens[at + 1].is_("(")):
        return tokens[at].text, at + 1
    values: list[list[Token]] = [[]]
    at += 2
    while at < len(tokens) and tokens[at].depth > 0:
        if tokens[at].depth == 1 and tokens[at].is_(","):
            values.append([])
        else:
            values[-1].append(tokens[at])
        at += 1
    return tuple(map(tuple, values)), at + 1


def moves_rows(ddl: str) -> bool:
    """May the statement give rows other ROWIDs: MOVE, SHRINK SPACE, FLASHBACK TABLE, or other
    partitions for rows that are there?

    A partition without VALUES is one of a table by hash, into which rows of another one go.
    """
    return "rows moved" in read_ddl(ddl).effects


def concerns_partitions(ddl: str) -> bool:
    """May the statement make partitions, or make them go?"""
    return "partitions" in read_ddl(ddl).effects


def removes_table(ddl: str) -> bool:
    """Does the statement drop or rename a table? A table that the dictionary does not show may also
    have lost its grants."""
    return "table gone" in read_ddl(ddl).effects


def _kind(tokens: Sequence[Token]) -> tuple[str, int]:
    """What kind of object the statement is about, and where its name stands."""
    at = 1
    while at < len(tokens) and tokens[at].kind == "word" and tokens[at].text in _BEFORE_KIND:
        at += 1
    if at >= len(tokens) or tokens[at].kind != "word":
        return "", at
    kind = tokens[at].text
    at += 1
    words = [one.text for one in tokens[at : at + 3]]
    if words == ["IF", "NOT", "EXISTS"]:
        at += 3
    elif words[:2] == ["IF", "EXISTS"]:
        at += 2
    return kind, at


def _after(tokens: Sequence[Token], word: str) -> int:
    """The place behind the first such word outside of parentheses."""
    for at, token in enumerate(tokens):
        if token.kind == "word" and token.text == word and token.depth == 0:
            return at + 1
    return len(tokens)


def _path(tokens: Sequence[Token], at: int) -> tuple[list[str], int]:
    """The dotted name at a place, and the place behind it."""
    parts = []
    while at < len(tokens) and tokens[at].is_name:
        parts.append(tokens[at].text)
        at += 1
        if at >= len(tokens) or tokens[at].text != ".":
            break
        at += 1
    return parts, at


def _named(
    statement: str,
    tokens: Sequence[Token],
    at: int,
    effects: frozenset[Effect] = frozenset(),
    renamed: tuple[str, str] | None = None,
) -> Ddl:
    parts, _ = _path(tokens, at)
    if not 1 <= len(parts) <= 2:
        return Ddl(statement)
    owner = parts[0] if len(parts) > 1 else None
    return Ddl(statement, owner, parts[-1], effects, renamed)


def _granted(verb: str, tokens: Sequence[Token]) -> Ddl:
    """Rights on an object: not on a directory, a user, and what else is called by its kind."""
    at = _after(tokens, "ON")
    _, behind = _path(tokens, at)
    follows = tokens[behind].text if behind < len(tokens) else ""
    return _named(verb, tokens, at) if follows in ("TO", "FROM") else Ddl(verb)


def _made_on(statement: str, tokens: Sequence[Token]) -> Ddl:
    """An index or a trigger on a table: not on a schema or a database."""
    at = _after(tokens, "ON")
    parts, _ = _path(tokens, at)
    words = [one.text for one in tokens[at : at + 3] if one.kind == "word"]
    if parts and ((words[:1] and words[0] in _NO_TABLE) or words[-1:] == ["SCHEMA"]):
        return Ddl(statement)
    return _named(statement, tokens, at)


def _commented(tokens: Sequence[Token]) -> Ddl:
    kind = tokens[2].text if len(tokens) > 2 else ""
    parts, _ = _path(tokens, 3)
    if kind == "COLUMN":
        parts = parts[:-1]
    if kind not in ("TABLE", "COLUMN") or not 1 <= len(parts) <= 2:
        return Ddl(f"COMMENT ON {kind}")
    return Ddl(f"COMMENT ON {kind}", parts[0] if len(parts) > 1 else None, parts[-1])


def _effects(
    verb: str, tokens: Sequence[Token], at: int
) -> tuple[frozenset[Effect], tuple[str, str] | None]:
    match verb:
        case "CREATE":
            return frozenset({"table new"}), None
        case "DROP":
            return frozenset({"table gone"}), None
        case "TRUNCATE":
            return frozenset({"rows removed"}), None
        case "FLASHBACK":
            words = {one.text for one in tokens if one.kind == "word"}
            comes_back = {"BEFORE", "DROP"} <= words
            return frozenset({"table new" if comes_back else "rows moved"}), None
        case "ALTER":
            _, behind = _path(tokens, at)
            return _altered(tokens[behind:])
    return frozenset(), None


def _altered(tokens: Sequence[Token]) -> tuple[frozenset[Effect], tuple[str, str] | None]:
    """What the clauses of an ALTER TABLE do. A clause begins with a word outside of parentheses."""
    found: set[Effect] = set()
    renamed = None
    outside = [one for one in tokens if one.depth == 0]
    words = [one.text if one.kind == "word" else f"{one.kind}:{one.text}" for one in outside]
    if words[:1] == ["ILM"]:
        return frozenset(), None
    if "ROWS" in words and "INCLUDING" in words:  # … MOVE INCLUDING ROWS WHERE …: the others go
        found.add("rows removed")
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if following in _PARTITION:
            found |= _of_partition(word, words[at:])
        elif (word == "MOVE" and at == 0) or (word, following) == ("SHRINK", "SPACE"):
            found.add("rows moved")
        elif (word, following) == ("RENAME", "TO"):
            found.add("table gone")
        elif (word, following) == ("RENAME", "COLUMN"):
            found.add("columns")
            renamed = _renamed(outside[at + 2 :])
        elif word in ("ADD", "MODIFY", "DROP", "SET", "RENAME", "ENABLE", "DISABLE", "ROW"):
            found |= _of_definition(word, following, words[at + 1 :], tokens)
    return frozenset(found), renamed


def _of_partition(word: str, words: Sequence[str]) -> set[Effect]:
    if word in _REMOVING:
        return {"partitions", "rows removed"}
    if word in _MOVING or words[2:3] == ["BY"]:
        return {"partitions", "rows moved"}
    if word == "ADD":
        return {"partitions"} if "VALUES" in words else {"partitions", "rows moved"}
    return {"partitions"} if word in ("RENAME", "MODIFY") else set()


def _of_definition(
    word: str, following: str, words: Sequence[str], tokens: Sequence[Token]
) -> set[Effect]:
    if word in ("ENABLE", "DISABLE"):
        named = next((one for one in words if one not in ("VALIDATE", "NOVALIDATE")), "")
        return {"keys"} if named in _KEYS else set()
    if word == "ROW":
        return {"columns"} if following == "ARCHIVAL" else set()
    if word == "SET":
        return {"columns"} if following == "UNUSED" else set()
    if word == "RENAME":
        return {"keys"} if following == "CONSTRAINT" else set()
    if following == "sign:(":
        return _of_list(tokens)
    if following in _KEYS:
        return {"keys"}
    if following in _NO_COLUMN or (word == "MODIFY" and following in _OF_STORAGE):
        return set()
    return {"columns"}


def _of_list(tokens: Sequence[Token]) -> set[Effect]:
    """Of the elements in parentheses: columns, and constraints among them."""
    found: set[Effect] = set()
    before = "("
    for one in tokens:
        if one.depth == 1 and before in ("(", ",") and one.is_name:
            found.add("keys" if one.kind == "word" and one.text in _KEYS else "columns")
        before = one.text if one.kind == "sign" and one.depth <= 1 else ""
    return found


def _renamed(tokens: Sequence[Token]) -> tuple[str, str] | None:
    """``old TO new``."""
    if len(tokens) < 3 or not tokens[0].is_name or tokens[1].text != "TO" or not tokens[2].is_name:
        return None
    return tokens[0].text, tokens[2].text
