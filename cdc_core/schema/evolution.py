"""What has become of a table between two versions of its definition, and can it be followed?

The one judge of schema changes. Capture asks it when a DDL passes, the lake when it meets a version
that its tables do not have yet; both follow what it says. The dictionary before and after decides.
The DDL's text (``schema.ddl_reading``) is asked only for what the dictionary cannot say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from cdc_core.errors import RESNAPSHOT_HINT, SchemaMismatchError
from cdc_core.model.scn import Scn
from cdc_core.model.streams import Trouble
from cdc_core.schema.ddl_reading import read_ddl
from cdc_core.schema.table import OFFSET_SUFFIX, Column, TableSchema
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
    """A column stands behind the others that was not there. The lake adds it and fills existing
    rows with its DEFAULT."""

    column: Column


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column has another name, and keeps its place and its values."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RedefineColumn:
    """A column has another definition whose values keep their type in Delta, such as a longer
    VARCHAR2."""

    old: Column
    new: Column


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A column has another definition whose values need a wider type in Delta, such as more digits.
    The lake writes both tables anew."""

    old: Column
    new: Column


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column is not there any more, dropped or set unused. The lake keeps it: rows that nothing
    changes any more keep their value, rows that are written from now on have NULL."""

    column: Column


Step: TypeAlias = RenameColumn | DropColumn | RedefineColumn | WidenColumn | AddColumn


@dataclass(frozen=True, slots=True)
class Evolution:
    """How a table got from one version to the next: steps in order, or in ``refusal`` why they
    cannot be followed, and in ``trouble`` which kind of trouble that is.

    ``is_new_version``: rows written from now on must be decoded by the new version, even where no
    step follows.
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
        """The new version as one that follows the old one: it knows what became of columns that are
        gone, and that the key was deferred once, as long as changes of that time may be looked
        at."""
        gone = [step.column.stored_as for step in self.steps if isinstance(step, DropColumn)]
        return replace(
            new,
            dropped=tuple(dict.fromkeys((*old.dropped, *new.dropped, *gone))),
            given=tuple(dict.fromkeys((*old.identities, *new.identities))),
            key_is_deferred=old.key_is_deferred or new.key_is_deferred,
        )


def judge(old: TableSchema, new: TableSchema) -> Evolution:
    """Compare two versions of a table.

    Comments, indexes, grants and constraints other than the key do not matter. A column that became
    nullable or NOT NULL does not matter either, unless it is part of the key. Whether the DEFAULT
    of an added column can be given to existing rows, of which the redo says nothing, is for the
    lake to decide.

    A column is the same under another name if both versions store it as the same
    (:func:`identified`). Columns that are gone were dropped if no column came in the same step; a
    column that has another name must stand in its old place, with its type.

    Raises:
        UnsupportedTypeError: A column of the new version has a type that is not captured.
    """
    if old.object_id and new.object_id and old.object_id != new.object_id:
        return Evolution(refusal="the table was dropped and created again", trouble="drop")
    now = {column.stored_as: column for column in new.columns}
    known = {column.stored_as for column in old.columns}
    both = [(one, now[one.stored_as]) for one in old.columns if one.stored_as in now]
    renamed = [RenameColumn(one.name, other.name) for one, other in both if one.name != other.name]
    refusal = _unmasking(old, new, renamed) or _refusal(old, new)
    if refusal is not None:
        return Evolution(refusal=refusal, trouble="unsupported_ddl")
    dropped = tuple(DropColumn(column) for column in old.columns if column.stored_as not in now)
    redefined = tuple(
        _redefined(one, other) for one, other in both if _definition(one) != _definition(other)
    )
    added = tuple(AddColumn(column) for column in new.columns if column.stored_as not in known)
    steps: tuple[Step, ...] = (*renamed, *dropped, *redefined, *added)
    return Evolution(steps, is_new_version=bool(steps) or _layout(old) != _layout(new))


def brings_lobs(old: TableSchema, new: TableSchema) -> bool:
    """Are ROWIDs, which identify the rows, hidden from now on, since LogMiner shows placeholders in
    tables with LOBs?"""
    has_lobs = new.has_lobs or any(column.is_lob for column in new.columns)
    return old.is_by_row_id and has_lobs and not old.has_lobs


def held_by(versions: Sequence[TableSchema]) -> TableSchema | None:
    """What Delta tables hold that have followed a table's versions, oldest first; None without
    versions.

    They keep columns that were left out later. A version that they could not follow, or that does
    not know the columns that they hold, has begun new ones.
    """
    held: TableSchema | None = None
    for version in versions:
        if held is None or not {*held.identities} <= {*version.identities}:
            held = version
            continue
        kept = holding(version, held)
        held = version if judge(held, kept).refusal is not None else kept
    return held


def holding(version: TableSchema, earlier: TableSchema) -> TableSchema:
    """The version as Delta tables hold it that have held ``earlier``: with its columns
    (:meth:`TableSchema.keeping`), each as wide as in either."""
    kept = version.keeping(earlier)
    before = {column.stored_as: column for column in earlier.columns}
    columns = tuple(
        (wider(before[one.stored_as], one) if one.stored_as in before else None) or one
        for one in kept.columns
    )
    return kept if columns == kept.columns else replace(kept, columns=columns)


def _redefined(old: Column, new: Column) -> RedefineColumn | WidenColumn:
    return WidenColumn(old, new) if is_wider(old, new) else RedefineColumn(old, new)


def _unmasking(old: TableSchema, new: TableSchema, renamed: Sequence[RenameColumn]) -> str | None:
    unmasked = [step.old for step in renamed if step.old in dict(old.masked)]
    if unmasked:
        return f"masked columns were renamed: {', '.join(unmasked)}"
    masked = [step.new for step in renamed if step.new in dict(new.masked)]
    if masked:
        return f"columns were renamed to names that columns_mask names, and earlier values are not masked: {', '.join(masked)}"
    return None


def _refusal(old: TableSchema, new: TableSchema) -> str | None:
    if old.as_logged().key != new.as_logged().key:
        return f"the key changed from ({', '.join(old.key)}) to ({', '.join(new.key)})"
    now = {column.stored_as: column for column in new.columns}
    kept = [column for column in old.columns if column.stored_as in now]
    gone = [column.name for column in old.columns if column.stored_as not in now]
    left_out = [name for name in gone if name in new.excluded]
    if left_out:
        return f"columns became virtual or excluded: {', '.join(left_out)}"
    if gone and len(kept) < len(now):
        return f"columns went and others came, and nothing says which is which: {', '.join(gone)}"
    retyped = [column.name for column in kept if wider(column, now[column.stored_as]) is None]
    if retyped:
        return f"columns changed their type: {', '.join(retyped)}"
    padded = [column.name for column in kept if _is_padded(column, now[column.stored_as])]
    if padded:
        return f"a CHAR's length changed, and Oracle gives the values of existing rows other blanks without a change of the row: {', '.join(padded)}"
    if list(now)[: len(kept)] != [column.stored_as for column in kept]:
        return "columns changed their order"
    return None


def _is_padded(old: Column, new: Column) -> bool:
    """Does Oracle give the values that are there another length?"""
    return new.data_type in _PADDED and (old.data_type, old.length, old.char_length) != (
        new.data_type,
        new.length,
        new.char_length,
    )


def _definition(column: Column) -> tuple[object, ...]:
    return (column.data_type, column.length, column.char_length, column.precision, column.scale)


def _layout(schema: TableSchema) -> tuple[object, ...]:
    """What else reading depends on: which columns a row holds, which of them are passed over, and
    what order says of the key's rows."""
    return schema.stored, frozenset(schema.excluded), schema.dropped, schema.key_is_deferred


def key_after(key: Sequence[str], ddl: str) -> tuple[str, ...]:
    """The names that the columns of a key have behind a DDL."""
    before, now = read_ddl(ddl).renamed or ("", "")
    return tuple(now if name == before else name for name in key)


def rename_refusal(old: TableSchema, new: TableSchema, ddl: str) -> str | None:
    """Why a DDL is not followed that may have given a captured name to a column that was left out,
    whose values so far are not in the lake, or that renamed one for which the configuration names a
    type."""
    read = read_ddl(ddl)
    before, now = read.renamed or ("", "")
    if before in old.excluded and now in new.column_names:
        return f"excluded columns were renamed to names that are captured: {before} to {now}"
    if before in old.column_names and now in new.excluded:
        return f"columns became virtual or excluded: {now}"
    if before in old.column_names and now in new.column_names:
        forms = [schema.column(name).held_as for schema, name in ((old, before), (new, now))]
        if forms[0] != forms[1]:
            return f"columns_as names a type for the one name and not for the other: {before} renamed to {now}"
    gone = {*old.excluded} & {*old.stored} - {*new.stored}
    came = [name for name in new.column_names if name not in old.column_names]
    if read.clauses is None and gone and came:
        return f"excluded columns went and others came, and nothing says which is which: {', '.join(sorted(gone))}"
    return None


def identified(old: TableSchema, new: TableSchema, ddl: str = "") -> TableSchema:
    """The version behind ``old``, with what each of its columns is for life (``stored_as``). Pure.

    A column is the one that had its name, or that a DDL gave this name, which only its text says.
    Any other one is new: it is stored as its name, or, where a column had this identity before,
    with a number behind it. What Oracle has dropped never comes back. One that was left out under
    its old name stays left out.
    """
    before, now = read_ddl(ddl).renamed or ("", "")
    if before in old.excluded:
        new = new.without([now])
    present = {one.name: one.stored_as for one in old.columns if one.stored_as not in old.dropped}
    for old_name, name in ((before, now), (f"{before}{OFFSET_SUFFIX}", f"{now}{OFFSET_SUFFIX}")):
        if old_name in present and old_name not in new.column_names and name in new.column_names:
            present[name] = present[old_name]
    given = list(old.identities)
    columns = []
    for column in new.columns:
        stored_as = present.get(column.name) or _free_name(column.name, given)
        given.append(stored_as)
        columns.append(replace(column, stored_as=stored_as))
    return replace(
        new, columns=tuple(columns), dropped=old.dropped, given=tuple(dict.fromkeys(given))
    )


def _free_name(name: str, given: Sequence[str]) -> str:
    """The name, or that with a number behind it: one that no column had so far, in any case of
    letters, which Delta does not tell apart."""
    taken = {one.casefold() for one in given}
    names = (name if number == 1 else f"{name}__{number}" for number in count(1))
    return next(one for one in names if one.casefold() not in taken)


def reused_names(versions: Sequence[TableSchema]) -> list[Scn]:
    """The SCNs of the versions, oldest first, in which a column has a name that another one had
    before."""
    held: dict[str, str] = {}
    found = []
    for version in versions:
        names = version.stored_names
        if any(held.get(name, stored_as) != stored_as for name, stored_as in names.items()):
            found.append(version.scn_from)
        held |= names
    return found


def refuse_mixed_values(
    known: TableSchema, versions: Sequence[TableSchema], read_behind: int
) -> None:
    """Refuse to follow a table on, where the lake has rows that were read behind a DDL which gave a
    column's name to another one, as rows of the first: the dictionary as of a chunk does not tell
    the two apart, and only the redo before the chunk does.

    Args:
        known: The version that the lake has. versions: All versions, oldest first, as far as the
            redo is captured. read_behind: The SCN of the newest such DDL (:func:`reused_names`)
            behind which a chunk was read that the lake has; 0 without one.

    Raises:
        SchemaMismatchError: The lake has not followed it, or takes a column for another one.
    """
    told = [one.stored_names for one in versions if one.scn_from <= known.scn_from]
    own = known.in_oracle().stored_names.items()
    is_wrong = told and any(told[-1].get(name, stored_as) != stored_as for name, stored_as in own)
    if read_behind and (known.scn_from < read_behind or is_wrong):
        raise SchemaMismatchError(
            "a column took the name of another one, and a chunk that was read behind that was applied before the redo up to there: its "
            "values are in the column of the other",
            hint=RESNAPSHOT_HINT,
            table=known.table,
            scn=read_behind,
        )
