"""What has become of a table between two versions of its definition, and can it be followed?

The one judge of schema changes. Capture asks it when a DDL passes, the lake when it meets a version that its tables do not
have yet; both follow what it says. The dictionary before and after decides. The DDL's text (``schema.ddl_reading``) is asked only for what
the dictionary cannot say.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_core.errors import RESNAPSHOT_HINT, SchemaMismatchError
from cdc_core.model.streams import Trouble
from cdc_core.schema.all_columns import lost_identity
from cdc_core.schema.ddl_reading import read_ddl
from cdc_core.schema.table import Column, Displaced, TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.schema.widening import is_wider, wider

_PADDED = frozenset({"CHAR", "NCHAR"})
MOVES_ROWS = "it changes ROWIDs, which identify the table's rows"
BRINGS_LOBS = (
    "it adds the first LOB to a table whose rows are identified by ROWID, and the redo rows that show "
    "the ROWIDs of such a table were not read so far"
)
"""Why such a DDL ends the stream of a table that has `identity: rowid`."""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A column stands behind the others that was not there. The lake adds it and fills existing rows with its DEFAULT."""

    column: Column


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column has another name, and keeps its place and its values."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RedefineColumn:
    """A column has another definition whose values keep their type in Delta, such as a longer VARCHAR2."""

    old: Column
    new: Column


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A column has another definition whose values need a wider type in Delta, such as more digits. The lake writes both tables anew."""

    old: Column
    new: Column


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column is not there any more, dropped or set unused. The lake keeps it: rows that nothing changes any more keep their
    value, rows that are written from now on have NULL."""

    column: Column


Step: TypeAlias = RenameColumn | DropColumn | RedefineColumn | WidenColumn | AddColumn


@dataclass(frozen=True, slots=True)
class Evolution:
    """How a table got from one version to the next: steps in order, or in ``refusal`` why they cannot be followed, and in
    ``trouble`` which kind of trouble that is.

    ``is_new_version``: rows written from now on must be decoded by the new version, even where no step follows.
    """

    steps: tuple[Step, ...] = ()
    refusal: str | None = None
    trouble: Trouble | None = None
    is_new_version: bool = False

    @property
    def added(self) -> tuple[Column, ...]:
        """The columns that were added, in order."""
        return tuple(step.column for step in self.steps if isinstance(step, AddColumn))

    @property
    def widened(self) -> tuple[str, ...]:
        """Names of the columns that need a wider type in Delta, in order."""
        return tuple(step.new.name for step in self.steps if isinstance(step, WidenColumn))

    def followed(self, old: TableSchema, new: TableSchema) -> TableSchema:
        """The new version as one that follows the old one: it knows what became of columns that are gone, and that the key was deferred
        once, as long as changes of that time may be looked at."""
        gone = [step.column.name for step in self.steps if isinstance(step, DropColumn)]
        return replace(
            new,
            dropped=tuple(dict.fromkeys((*old.under_names_of(new).dropped, *new.dropped, *gone))),
            renamed=_all_renames(old, new),
            displaced=tuple(dict.fromkeys((*old.displaced, *new.displaced))),
            key_is_deferred=old.key_is_deferred or new.key_is_deferred,
        )


def judge(old: TableSchema, new: TableSchema) -> Evolution:
    """Compare two versions of a table.

    Comments, indexes, grants and constraints other than the key do not matter. A column that became nullable or NOT NULL
    does not matter either, unless it is part of the key. Whether the DEFAULT of an added column can be given to existing
    rows, of which the redo says nothing, is for the lake to decide.

    Columns that are gone were dropped if no column came in the same step. If one came, the new version must say that it is a column
    under another name (:func:`knowing_rename`), in whose place it must stand, with its type.

    Raises:
        UnsupportedTypeError: A column of the new version has a type that is not captured.
    """
    if old.object_id and new.object_id and old.object_id != new.object_id:
        return Evolution(refusal="the table was dropped and created again", trouble="drop")
    renamed = [RenameColumn(*pair) for pair in _new_renames(old, new)]
    renamed = [step for step in renamed if step.old in old.column_names]
    masked = dict(old.masked)
    unmasked = [step.old for step in renamed if step.old in masked]
    if unmasked:
        return Evolution(
            refusal=f"masked columns were renamed: {', '.join(unmasked)}", trouble="unsupported_ddl"
        )
    masks = dict(new.masked)
    masked_now = [step.new for step in renamed if step.new in masks]
    if masked_now:
        return Evolution(
            refusal=f"columns were renamed to names that columns_mask names, and earlier values are not masked: {', '.join(masked_now)}",
            trouble="unsupported_ddl",
        )
    if back := _taken_names(old, new, [step.new for step in renamed]):
        return Evolution(
            refusal=f"columns came under the names of dropped or renamed ones: {', '.join(back)}",
            trouble="unsupported_ddl",
        )
    old = old.under_names_of(new)
    refusal = _refusal(old, new)
    if refusal is not None:
        return Evolution(refusal=refusal, trouble="unsupported_ddl")
    names = new.column_names
    dropped = tuple(DropColumn(column) for column in old.columns if column.name not in names)
    redefined = tuple(
        _redefined(column, new.column(column.name))
        for column in old.columns
        if column.name in names and _definition(column) != _definition(new.column(column.name))
    )
    known = old.column_names
    added = tuple(AddColumn(column) for column in new.columns if column.name not in known)
    others = [
        *(step.old for step in renamed),
        *(step.column.name for step in dropped),
        *(step.column.name for step in added),
        *(step.old.name for step in redefined if arrow_type(step.old) != arrow_type(step.new)),
    ]
    lost = lost_identity(old, new, [(step.old, step.new) for step in redefined], others)
    if lost is not None:
        return Evolution(refusal=lost, trouble="unsupported_ddl")
    steps: tuple[Step, ...] = (*renamed, *dropped, *redefined, *added)
    return Evolution(steps, is_new_version=bool(steps) or _layout(old) != _layout(new))


def brings_lobs(old: TableSchema, new: TableSchema) -> bool:
    """Are ROWIDs, which identify the rows, hidden from now on, since LogMiner shows placeholders in tables with LOBs?"""
    has_lobs = new.has_lobs or any(column.is_lob for column in new.columns)
    return old.is_by_row_id and has_lobs and not old.has_lobs


def held_by(versions: Sequence[TableSchema]) -> TableSchema | None:
    """What Delta tables hold that have followed a table's versions, oldest first; None without versions.

    They keep columns that were left out later. A version that they could not follow has begun new ones.
    """
    held: TableSchema | None = None
    for version in versions:
        kept = version if held is None else holding(version, held)
        held = version if held is None or judge(held, kept).refusal is not None else kept
    return held


def holding(version: TableSchema, earlier: TableSchema) -> TableSchema:
    """The version as Delta tables hold it that have held ``earlier``: with its columns (:meth:`TableSchema.keeping`), each as wide as in
    either."""
    kept = version.keeping(earlier)
    before = {column.name: column for column in earlier.under_names_of(kept).columns}
    columns = tuple(
        (wider(before[column.name], column) if column.name in before else None) or column
        for column in kept.columns
    )
    return kept if columns == kept.columns else replace(kept, columns=columns)


def _redefined(old: Column, new: Column) -> RedefineColumn | WidenColumn:
    return WidenColumn(old, new) if is_wider(old, new) else RedefineColumn(old, new)


def _refusal(old: TableSchema, new: TableSchema) -> str | None:
    if old.key != new.key:
        return f"the key changed from ({', '.join(old.key)}) to ({', '.join(new.key)})"
    names = new.column_names
    kept = [column for column in old.columns if column.name in names]
    gone = [column.name for column in old.columns if column.name not in names]
    left_out = [name for name in gone if name in new.excluded]
    if left_out:
        return f"columns became virtual or excluded: {', '.join(left_out)}"
    if gone and len(kept) < len(names):
        return f"columns went and others came, and nothing says which is which: {', '.join(gone)}"
    retyped = [column.name for column in kept if wider(column, new.column(column.name)) is None]
    if retyped:
        return f"columns changed their type: {', '.join(retyped)}"
    padded = [column.name for column in kept if _is_padded(column, new.column(column.name))]
    if padded:
        return f"a CHAR's length changed, and Oracle gives the values of existing rows other blanks without a change of the row: {', '.join(padded)}"
    if list(names[: len(kept)]) != [column.name for column in kept]:
        return "columns changed their order"
    return None


def _is_padded(old: Column, new: Column) -> bool:
    """Does Oracle give the values that are there another length?"""
    return new.data_type in _PADDED and (old.data_type, old.length, old.char_length) != (
        new.data_type,
        new.length,
        new.char_length,
    )


def _taken_names(old: TableSchema, new: TableSchema, renamed_to: Collection[str]) -> list[str]:
    """Names of dropped or renamed columns that other columns have got, without saying so (:func:`knowing_taken_names`)."""
    known = {one.name for one in new.displaced if one not in old.displaced}
    known |= {now for one, now in _new_renames(old, new) if _holder(now, old.renamed) == one} - {
        *old.dropped
    }
    here = {name for name in new.column_names if name not in new.dropped}
    others = {*old.dropped, *renamed_to} | (here - set(old.column_names))
    taken = dict.fromkeys((*old.dropped, *(before for before, _ in old.renamed)))
    return [name for name in taken if name in here & others and name not in known]


def _definition(column: Column) -> tuple[object, ...]:
    return (column.data_type, column.length, column.char_length, column.precision, column.scale)


def _layout(schema: TableSchema) -> tuple[object, ...]:
    """What else reading depends on: which columns a row holds, which of them are passed over, and what order says of the key's rows."""
    return schema.stored, frozenset(schema.excluded), schema.dropped, schema.key_is_deferred


def key_after(key: Sequence[str], ddl: str) -> tuple[str, ...]:
    """The names that the columns of a key have behind a DDL."""
    before, now = read_ddl(ddl).renamed or ("", "")
    return tuple(now if name == before else name for name in key)


def rename_refusal(old: TableSchema, new: TableSchema, ddl: str) -> str | None:
    """Why a DDL is not followed that may have given a captured name to a column that was left out, whose values so far are not
    in the lake, or that renamed one for which the configuration names a type."""
    read = read_ddl(ddl)
    before, now = read.renamed or ("", "")
    if before in old.excluded and now in new.column_names:
        return f"excluded columns were renamed to names that are captured: {before} to {now}"
    if before in old.column_names and now in new.column_names:
        forms = [schema.column(name).held_as for schema, name in ((old, before), (new, now))]
        if forms[0] != forms[1]:
            return f"columns_as names a type for the one name and not for the other: {before} renamed to {now}"
    gone = {*old.excluded} & {*old.stored} - {*new.stored}
    came = [name for name in new.column_names if name not in old.column_names]
    if read.clauses is None and gone and came:
        return f"excluded columns went and others came, and nothing says which is which: {', '.join(sorted(gone))}"
    return None


def knowing_rename(old: TableSchema, new: TableSchema, ddl: str) -> TableSchema:
    """The version that a DDL made of ``old``, with what only its text says: which column it gave another name."""
    renamed = read_ddl(ddl).renamed
    if renamed is None:
        return new
    before, now = renamed
    if before in old.excluded:
        return new.without([now])
    if before not in old.column_names:
        return new
    return replace(new, renamed=(*old.renamed, (before, now)))


def knowing_taken_names(old: TableSchema, new: TableSchema) -> TableSchema:
    """The version that a DDL made of ``old``, with what its columns displace that were added or renamed: Delta tables may have dropped or renamed
    ones under the names of these. A dropped column gets a name under which it is kept; of a renamed one only the change log has the old name.
    """
    pairs = _new_renames(old, new)
    renamed, displaced, dropped = list(old.renamed), list(old.displaced), list(old.dropped)

    def displace(name: str, column: str | None) -> None:
        """Let a column have the name, which is added (None), or renamed from another name."""
        if name in dropped:
            kept = _free_name(f"{name}__dropped_{new.scn_from}", new)
            renamed.append((name, kept))
            dropped[dropped.index(name)] = kept
        elif _holder(name, renamed) not in (None, column):
            kept = _free_name(f"{name}__renamed_{new.scn_from}", new)
        else:
            return
        displaced.append(Displaced(name, kept, len(renamed), new.scn_from))

    for before, now in pairs:
        displace(now, before)
        renamed.append((before, now))
    renamed_to = {now for _, now in pairs}
    for name in new.column_names:
        if name not in old.column_names and name not in renamed_to:
            displace(name, None)
    if len(displaced) == len(old.displaced):
        return new
    return replace(new, renamed=tuple(renamed), displaced=tuple(displaced), dropped=tuple(dropped))


def _holder(name: str, renamed: Sequence[tuple[str, str]]) -> str | None:
    """What the column is called now that had a name last and was renamed; None if no column was renamed away from it."""
    at = next((at for at in reversed(range(len(renamed))) if renamed[at][0] == name), None)
    if at is None:
        return None
    for before, now in renamed[at:]:
        name = now if name == before else name
    return name


def _new_renames(old: TableSchema, new: TableSchema) -> tuple[tuple[str, str], ...]:
    """The renames that a version knows and an earlier one does not."""
    return _all_renames(old, new)[len(old.renamed) :]


def _all_renames(old: TableSchema, new: TableSchema) -> tuple[tuple[str, str], ...]:
    """The renames that either of two versions knows, in order: one knows those of the other and later ones, or own ones alone."""
    for one, other in ((old, new), (new, old)):
        if other.renamed[: len(one.renamed)] == one.renamed:
            return other.renamed
    return tuple(dict.fromkeys((*old.renamed, *new.renamed)))


def refuse_mixed_values(known: TableSchema, newer: TableSchema, read_scn: int) -> None:
    """Refuse a version in which a column took the name of another one, where the lake has rows that were read behind that as those of the
    other since the table joined: the dictionary as of a chunk does not tell the two apart, and only the redo before the chunk does.

    Args:
        known: The version that the lake has.
        newer: The one that follows on it.
        read_scn: Highest SCN as of which a chunk was read that the lake has.

    Raises:
        SchemaMismatchError: The lake has such rows.
    """
    for one in newer.displaced:
        if one.scn <= read_scn and one not in known.displaced:
            raise SchemaMismatchError(
                "a column took the name of another one, and a chunk that was read behind that was applied before the redo up to there: its "
                "values are in the column of the other",
                hint=RESNAPSHOT_HINT,
                table=known.table,
                column=one.name,
                scn=one.scn,
                read_scn=read_scn,
            )


def _free_name(name: str, schema: TableSchema) -> str:
    """The name, or one like it that no column of the table has."""
    while name in schema.column_names:
        name += "_"
    return name
