"""Which definition has a described table at each row of an export, by the DDL in it?

The description holds from the beginning of the file. From there on the texts of the DDL rows say
what the table becomes, by the pipeline's own reader
(:func:`~cdc_core.schema.ddl_text.version_after`) and judge (:mod:`cdc_core.schema.evolution`),
without a dictionary: an export has none. A description from behind a DDL is recognized where it has
what that DDL did; it is not undone, and all rows are read by it up to there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_core.config import TableConfig
from cdc_core.decode.defaults import unfilled
from cdc_core.errors import UnsupportedTypeError
from cdc_core.model.scn import Scn
from cdc_core.schema.create_table import (
    AddedColumn,
    ColumnClause,
    DescribedColumn,
    DroppedColumns,
    ModifiedColumn,
    RenamedColumn,
)
from cdc_core.schema.ddl_reading import moves_rows, read_ddl, removes_rows, removes_table
from cdc_core.schema.ddl_text import version_after
from cdc_core.schema.evolution import (
    BRINGS_LOBS,
    MOVES_ROWS,
    AddColumn,
    DropColumn,
    Evolution,
    RedefineColumn,
    RenameColumn,
    Step,
    WidenColumn,
    brings_lobs,
    identified,
    judge,
    key_after,
)
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_schema

_EMPTIES = (
    "rows are removed without redo for each: by default a source ends the table's stream here; with on_truncate: follow it removes them from the "
    "mirror"
)
_DESCRIBE = "Describe the table as it is behind this DDL, and export the rows behind it into a file of their own."
_UNREAD = (
    "its text does not say what it makes of the columns, and an export has no dictionary to ask"
)
_KEYS = "it is about keys or constraints: the columns stay, and rows are still read by the key of the description"
_SAME = "it leaves the columns as they are"
_CREATES = "it creates the table: the rows behind it are read by the description"
_KNOWN = "the description has what it does, so it is from behind this DDL: rows from before are read by it too"


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlFound:
    """A DDL row of a described table: the number of its first row in the file, and what capture
    knows of it."""

    row: int
    ordinal: int
    scn: int
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a DDL does to its table, or why nobody can tell, and the way out then."""

    ddl: DdlFound
    why: str
    way_out: str | None = None


@dataclass(frozen=True, slots=True)
class Definitions:
    """The versions of a table, oldest first, what is said of each DDL, and the DDL behind which no
    row can be read, if there is one."""

    versions: tuple[TableSchema, ...]
    said: tuple[Said, ...]
    end: Said | None = None

    def at(self, scn: int) -> int:
        """The number of the version in which a row with that SCN was written.

        A change that waited for a DDL can have the DDL's very SCN.
        """
        return sum(version.scn_from <= scn for version in self.versions[1:])

    def is_unknown(self, scn: int) -> bool:
        """Was a row with that SCN written behind the DDL at which the definition, or the stream,
        ends?"""
        return self.end is not None and scn > self.end.ddl.scn


def definitions(table: TableSchema, ddl: Sequence[DdlFound]) -> Definitions:
    """Follow the DDL of a table, in the order of its SCNs."""
    config = TableConfig(name=str(table.table), identity=_identity(table))
    versions, said = [table], list[Said]()
    for one in sorted(ddl, key=lambda found: (found.scn, found.ordinal)):
        old = versions[-1]
        found = _followed(old, one, config)
        if isinstance(found, Said):
            said.append(found)
            if found.way_out is not None:
                return Definitions(tuple(versions), tuple(said), found)
            continue
        new, evolution = found
        said.append(Said(one, "; ".join(map(_of_step, evolution.steps)) or _SAME))
        if evolution.is_new_version:
            followed = evolution.followed(old, new)
            # No row lies between two DDLs of one SCN.
            versions[len(versions) - (old.scn_from == one.scn) :] = [followed]
    return Definitions(tuple(versions), tuple(said))


def _followed(
    old: TableSchema, ddl: DdlFound, config: TableConfig
) -> tuple[TableSchema, Evolution] | Said:
    """The next version, or what is said of a DDL that makes none: one with a way out is the last
    that is followed."""
    text = ddl.text
    if removes_rows(text):
        return Said(ddl, _EMPTIES)
    if removes_table(text):
        return _end(ddl, "the table is dropped or renamed")
    if old.is_by_row_id and moves_rows(text):
        return _end(ddl, MOVES_ROWS)
    try:
        new = version_after(old, text, _with_types_of(old, text), config)
        if new is None:
            return _without_version(old, ddl)
        arrow_schema(new)
    except UnsupportedTypeError as error:
        return _end(ddl, " ".join(error.what_happened.split()))
    if brings_lobs(old, new):
        return _end(ddl, BRINGS_LOBS)
    new = identified(old, replace(new, scn_from=Scn(ddl.scn)), text)
    evolution = judge(old, new)
    reason = evolution.refusal or unfilled(evolution.added)
    return (new, evolution) if reason is None else _end(ddl, reason)


def _without_version(old: TableSchema, ddl: DdlFound) -> Said:
    """What is said of a DDL of which the text gives no version."""
    found = read_ddl(ddl.text)
    if found.clauses and all(_has_done(old, clause) for clause in found.clauses):
        return Said(ddl, _KNOWN)
    if found.table is None or "columns" in found.effects or found.clauses:
        return _end(ddl, _UNREAD)
    if "table new" in found.effects:
        return Said(ddl, _CREATES)
    return Said(ddl, _KEYS if "keys" in found.effects else _SAME)


def _has_done(version: TableSchema, clause: ColumnClause) -> bool:
    """Has the version what a clause does? What Oracle has run could not be run on such a table."""
    names = {*version.column_names, *version.excluded}
    match clause:
        case AddedColumn():
            return clause.column.name in names
        case RenamedColumn():
            return clause.new in names and clause.old not in names
        case DroppedColumns():
            return names.isdisjoint(clause.names)
        case ModifiedColumn():
            return False


def _with_types_of(old: TableSchema, text: str) -> TableSchema:
    """A substitute for the present definition: the columns of a DDL are no LOBs where their
    lengths leave that open, as those of a description are not."""
    clauses = read_ddl(text).clauses or ()
    types = [one.column if isinstance(one, AddedColumn) else one.type for one in clauses if isinstance(one, AddedColumn | ModifiedColumn)]  # fmt: skip
    columns = tuple(_in_row(one) for one in types if one is not None)
    return replace(old, columns=columns, key=key_after(old.key, text))


def _in_row(one: DescribedColumn) -> Column:
    return Column(one.name, one.data_type, 0, 0, one.precision, one.scale, nullable=one.is_nullable)


def _end(ddl: DdlFound, reason: str) -> Said:
    return Said(ddl, f"a source ends the table's stream here: {reason}", _DESCRIBE)


def _of_step(step: Step) -> str:
    match step:
        case AddColumn():
            return f"rows behind it have {step.column.name}"
        case RenameColumn():
            return f"{step.old} is {step.new} behind it"
        case DropColumn():
            return f"rows behind it have no {step.column.name}"
        case RedefineColumn():
            return f"{step.new.name} has another length or fewer digits behind it"
        case WidenColumn():
            return f"{step.new.name} has a wider type behind it"


def _identity(table: TableSchema) -> str:
    return "rowid" if table.is_by_row_id else "key"
