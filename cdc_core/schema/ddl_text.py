"""Which version has a DDL made of a table, by what ``schema.ddl_reading`` reads in its text? Asked
where Oracle shows the definition as of the DDL no more.

After a long pause the undo for the dictionary is gone, and the present definition is that of the
last DDL. The statement itself says what it did to columns, one DDL after the other: Oracle has run
it. Nothing is guessed: the text must say all that the DDL did, with types that it spells out. The
present definition says what the text leaves open (whether a length counts bytes), and that the key
is still the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cdc_core.config import TableConfig
from cdc_core.schema.create_table import (
    AddedColumn,
    ColumnClause,
    DescribedColumn,
    DroppedColumns,
    ModifiedColumn,
    RenamedColumn,
)
from cdc_core.schema.ddl_reading import read_ddl
from cdc_core.schema.ddl_tokens import tokens_of
from cdc_core.schema.forms import in_forms
from cdc_core.schema.masks import mask_refusal, masks_of
from cdc_core.schema.table import IN_ROW_BYTES_MAX, Column, TableSchema

_BYTES_EACH = {"VARCHAR2": 4, "CHAR": 4, "NVARCHAR2": 3, "NCHAR": 3, "RAW": 1}
"""The most bytes that a character may have: AL32UTF8, and UTF8 as the national set."""
_LENGTH_WITHOUT = 1
_GUARD = re.compile(r"SYS_NC\d{5}\$")
"""What Oracle calls the hidden column by which it tells a NULL from a DEFAULT that a row does not
hold yet."""
_OF_STATISTICS = re.compile(r"SYS_ST[SU][A-Z0-9_#$]{23}")
"""What Oracle calls the hidden column of extended statistics, which no row holds."""
_UNUSED = re.compile(r"SYS_C\d*_.+\$")
"""What Oracle calls a column that is unused: the dictionary shows it so, and a text hides it under
such a name."""


def version_after(
    old: TableSchema, ddl: str, present: TableSchema | None, config: TableConfig
) -> TableSchema | None:
    """The version that a DDL made of ``old``, with the SCN of ``old``; None where the text does not
    suffice.

    Args:
        old: The version before.
        ddl: The statement, as LogMiner shows it.
        present: The definition now; None if there is no such table any more.
        config: Which columns are left out, masked, or held in another form.
    """
    clauses = read_ddl(ddl).clauses
    if not clauses:
        return None if clauses is None else old
    if present is not None and present.object_id != old.object_id:
        return None
    version: TableSchema | None = old
    for clause in clauses:
        version = None if version is None else _after(version, clause, present, config)
    if version is None or (present is not None and not _may_become(version, present)):
        return None
    if mask_refusal(config, version.columns, version.key) is not None:
        return None
    return replace(
        version,
        columns=in_forms(config, version.columns, version.key),
        masked=masks_of(config, version.columns),
        has_lobs=version.has_lobs or any(column.is_lob for column in version.columns),
    )


def _may_become(version: TableSchema, present: TableSchema) -> bool:
    """Is the present key the version's, but for names that later DDL gives its columns? A text that
    does anything else to a key says that no columns changed alone, and stops the table where it is
    met."""
    return len(version.key) == len(present.key) and all(
        old == new or (old not in present.column_names and new not in version.column_names)
        for old, new in zip(version.key, present.key, strict=True)
    )


def differing(version: TableSchema, shown: TableSchema, unread: str = "") -> tuple[str, ...]:
    """The columns of which the dictionary shows something else than texts say, by name; none where
    both agree. Bytes of a text may differ, of which texts do not say all.

    Args:
        version: What texts say.
        shown: What the dictionary shows.
        unread: The text of a DDL in between that does not say all that it did: what it names may
            have become anything.
    """
    named = {token.text for token in tokens_of(unread.rstrip("\0"))} if unread else set()
    said, now = (
        {one.name: _described(one) for one in schema.columns if one.name not in named}
        for schema in (version, shown)
    )
    names = [name for name in (*said, *now) if said.get(name) != now.get(name)]
    if not names and list(said) != list(now):
        names = [one for one, other in zip(said, now, strict=True) if one != other]
    are_known = bool(version.stored and shown.stored and not unread)
    if not names and are_known and len(version.stored) != len(shown.stored):
        names = sorted({*version.stored} ^ {*shown.stored}) or list(shown.stored)
    return tuple(dict.fromkeys(names))


def _described(one: Column) -> tuple[object, ...]:
    size = one.length if one.data_type == "RAW" else one.char_length
    is_sized = one.data_type in _BYTES_EACH
    return one.data_type, one.precision, one.scale, size if is_sized else None


def _after(
    version: TableSchema, clause: ColumnClause, present: TableSchema | None, config: TableConfig
) -> TableSchema | None:
    made: TableSchema | None
    match clause:
        case AddedColumn() if clause.column.is_virtual and _OF_STATISTICS.fullmatch(
            clause.column.name
        ):
            return version
        case DroppedColumns() if all(
            _OF_STATISTICS.fullmatch(one) and one not in version.column_names
            for one in clause.names
        ):
            return version
        case AddedColumn():
            made = _added(version, clause.column, present, config)
        case ModifiedColumn():
            made = _modified(version, clause, present)
        case DroppedColumns():
            made = _dropped(version, clause)
        case RenamedColumn():
            return _renamed(version, clause, config)
    known = (version,) if present is None else (version, present)
    return made and made.in_zone_of(*known)


def _added(
    version: TableSchema, one: DescribedColumn, present: TableSchema | None, config: TableConfig
) -> TableSchema | None:
    if one.name in (*version.column_names, *version.stored):
        return None
    stored = _stored_with(version, one, present)
    if one.is_virtual or config.excludes(one.name) or one.name in version.excluded:
        return replace(version, stored=stored).without([one.name])
    column = None if one.is_computed else _column(one, _named(present, one.name))
    if column is None:
        return None
    return replace(version, columns=(*version.columns, column), stored=stored)


def _stored_with(
    version: TableSchema, one: DescribedColumn, present: TableSchema | None
) -> tuple[str, ...]:
    """The stored columns behind an ADD; none where nothing says which they are.

    Since 12c a nullable column with a DEFAULT may bring a hidden column beside it, once for each
    table. The text does not say so; the present definition shows whether the table has one, and in
    front of which column it stands.
    """
    if not version.stored or one.is_virtual:
        return version.stored
    has_default = one.is_nullable and (one.default or "NULL").upper() != "NULL"
    if not has_default or any(map(_GUARD.fullmatch, version.stored)):
        return (*version.stored, one.name)
    if present is None or one.name not in present.stored:
        return ()
    place = present.stored.index(one.name)
    guards = [name for name in present.stored[:place] if _GUARD.fullmatch(name)]
    return (*version.stored, *guards, one.name)


def _modified(
    version: TableSchema, clause: ModifiedColumn, present: TableSchema | None
) -> TableSchema | None:
    old = _named(version, clause.name)
    if old is None:
        return version if clause.name in version.excluded else None
    new = old
    if clause.type is not None:
        found = _column(clause.type, _named(present, clause.name), old)
        if found is None:
            return None
        new = replace(found, nullable=old.nullable, default=old.default)
    if clause.is_nullable is not None:
        if clause.is_nullable and clause.name in version.key:
            return None
        new = replace(new, nullable=clause.is_nullable)
    columns = tuple(new if column is old else column for column in version.columns)
    return replace(version, columns=columns)


def _dropped(version: TableSchema, clause: DroppedColumns) -> TableSchema | None:
    known = {*version.column_names, *version.excluded}
    if any(name not in known or name in version.key for name in clause.names):
        return None
    if clause.is_unused:
        hidden = {name: f"SYS_C_{name}$" for name in clause.names}
        stored = tuple(hidden.get(name, name) for name in version.stored)
    else:
        stored = tuple(
            name
            for name in version.stored
            if name not in clause.names and not (_UNUSED.fullmatch(name))
        )
    return replace(version.lacking(clause.names), stored=stored)


def _renamed(
    version: TableSchema, clause: RenamedColumn, config: TableConfig
) -> TableSchema | None:
    """A column that the configuration names stops its table under the new name, as it does where
    the dictionary shows that."""
    both = (clause.old, clause.new)
    named = {*config.key, *filter(config.excludes, both)}
    named |= {*filter(config.mask_of, both), *filter(config.form_of, both)}
    taken = {*version.column_names, *version.stored, *version.excluded}
    if named & {clause.old, clause.new} or clause.new in taken:
        return None
    stored = _under(version.stored, clause)
    if clause.old not in version.column_names:
        is_known = clause.old in version.excluded
        return replace(version, stored=stored).without([clause.new]) if is_known else None
    columns = tuple(
        replace(column, name=clause.new) if column.name == clause.old else column
        for column in version.columns
    )
    return replace(version, columns=columns, key=_under(version.key, clause), stored=stored)


def _under(names: Sequence[str], clause: RenamedColumn) -> tuple[str, ...]:
    return tuple(clause.new if name == clause.old else name for name in names)


def _named(version: TableSchema | None, name: str) -> Column | None:
    columns = () if version is None else version.columns
    return next((column for column in columns if column.name == name), None)


def _column(one: DescribedColumn, *known: Column | None) -> Column | None:
    """The column as ALL_TAB_COLS would have it; None where its length may mean a LOB or not. What a
    text does not tell apart is as it is ``known``."""
    sizes = _sizes(one, known)
    if sizes is None:
        return None
    is_null = (one.default or "NULL").upper() == "NULL"
    return Column(
        name=one.name,
        data_type=one.data_type,
        length=sizes[0],
        char_length=sizes[1],
        precision=one.precision,
        scale=one.scale,
        nullable=one.is_nullable,
        default=None if is_null else one.default,
    )


def _sizes(one: DescribedColumn, known: Sequence[Column | None]) -> tuple[int, int] | None:
    """Bytes and characters. The first of ``known`` is the present definition."""
    each = _BYTES_EACH.get(one.data_type)
    same = [column for column in known if column is not None and column.data_type == one.data_type]
    if each is None:
        return (same[0].length, same[0].char_length) if same else (0, 0)
    units = one.length or _LENGTH_WITHOUT
    if one.data_type == "RAW":
        return units, 0
    if one.unit == "BYTE":
        return units, units
    for column in same:
        if column.char_length == units:
            return column.length, units
    most = IN_ROW_BYTES_MAX.get(one.data_type, units * each)
    if units <= most < units * each:
        # A column that is no LOB now has never been one: Oracle makes one of the other only.
        return (min(units, most), units) if known[0] in same and not same[0].is_extended else None
    return units * (each if one.unit == "CHAR" else 1), units
