"""How do both Delta tables of a captured table follow its definition?

The change log's images have a field per column, called what it is stored as for life
(:attr:`cdc_core.schema.table.Column.stored_as`): fields are added and never renamed. The mirror
shows the names that columns have now, by Delta's column mapping; ``redolake.columns`` says which of
its columns is which, by what files call it. Added columns come behind the others, as ALTER TABLE …
ADD makes them; dropped ones stay in both tables. A column with a wider type has both tables
written anew (``widening``). One whose name a plain table cannot hold turns column mapping on.

Each takes several commits, so the change log's properties first say what is to be reached
(``redolake.schema``, ``redolake.added``, ``redolake.widened``); whoever works on the table next
brings it there. The default of a new column goes into the mirror's existing rows in a commit with
its own transaction identifier, before any later change is merged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial

import pyarrow as pa

from cdc_core.decode.defaults import scalar_of_older_rows
from cdc_core.decode.widened import widened as widened_values
from cdc_core.delta.history import DeltaLog, read_log
from cdc_core.errors import SchemaMismatchError
from cdc_core.lake.definitions.altering import (
    add_columns,
    alter,
    comment_column,
    fill_column,
    map_columns,
    rename_column,
    set_properties,
)
from cdc_core.lake.definitions.defaults import default_of, default_text
from cdc_core.lake.definitions.type_widening import are_wide, widen_tables
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    ADDED_PROPERTY,
    COLUMNS_PROPERTY,
    KEY_PROPERTY,
    SCHEMA_PROPERTY,
    WIDENED_PROPERTY,
    columns_of,
    delta_type,
    key_text,
    mirror_columns,
)
from cdc_core.model.json_form import as_json, from_json
from cdc_core.schema.evolution import Evolution, holding, judge
from cdc_core.schema.names import check_names, need_mapping
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.stage.changes import AddedColumn

_IMAGES = ("before", "after")

Step = Callable[[], None]


def known_schema(log: DeltaLog | None) -> TableSchema | None:
    """The newest version of the table that the change log's properties name; None without a change
    log."""
    if log is None or SCHEMA_PROPERTY not in log.properties:
        return None
    return _schema_from(log.properties[SCHEMA_PROPERTY])


@lru_cache(maxsize=1024)
def _schema_from(text: str) -> TableSchema:
    """Each step asks for it several times, and it hardly ever changes."""
    return from_json(TableSchema, json.loads(text))


def added_columns(log: DeltaLog | None) -> dict[str, AddedColumn]:
    """Columns that were added after the table was created."""
    known = known_schema(log)
    if known is None:
        return {}
    names = {one: known.held(one).name for one in _added(log)}
    return {
        names[one]: AddedColumn(known.column_names.index(names[one]), default)
        for one, default in _added(log).items()
    }


def widened_columns(log: DeltaLog | None) -> tuple[str, ...]:
    """The columns that were given wider types, or are being given them."""
    known = known_schema(log)
    if known is None:
        return ()
    return tuple(known.held(one).name for one in _listed(log, WIDENED_PROPERTY))


def _added(log: DeltaLog | None) -> dict[str, pa.Scalar]:
    """The added columns' defaults, by what the columns are stored as."""
    known = known_schema(log)
    if log is None or known is None:
        return {}
    texts: dict[str, str | None] = json.loads(log.properties.get(ADDED_PROPERTY, "{}"))
    return {one: default_of(text, arrow_type(known.held(one))) for one, text in texts.items()}


def _listed(log: DeltaLog | None, name: str) -> tuple[str, ...]:
    return tuple(json.loads(log.properties.get(name, "[]"))) if log else ()


def is_settled(work: TableWork, schema: TableSchema) -> bool:
    """Do both tables have all columns of ``schema``, with nothing left to finish? Needs no Spark.

    Raises:
        SchemaMismatchError: ``schema.evolution`` says that the way there cannot be followed.
    """
    known = known_schema(read_log(work.changelog))
    if known is None or read_log(work.mirror) is None or _followed(known, schema) is not None:
        return False
    return next(_steps(work, known), None) is None


def _column_app(work: TableWork, column: str) -> str:
    return f"redolake/{work.source}/{work.table.path}/column/{column}"


def settle_schema(work: TableWork, schema: TableSchema) -> TableSchema:
    """Bring both tables to ``schema`` if it is newer than theirs, finish what a crash left, and
    return the newest version.

    A column that was left out or dropped after the tables were made is in the version that is
    returned: both tables keep it.

    Raises:
        SchemaMismatchError: ``schema.evolution`` says that the way there cannot be followed.
    """
    log = read_log(work.changelog)
    known = known_schema(log)
    if log is None or known is None:
        return schema
    followed = _followed(known, schema)
    if followed is not None:
        evolution, newest = followed
        check_names(newest)
        _reach(
            work, known
        )  # what a crash left, as long as the mirror's names are those of this version
        _remember_columns(work, known, newest)
        properties = _properties(log, evolution, newest)
        alter(work, work.changelog, set_properties(properties))
        known = newest
    _reach(work, known)
    return known


def _properties(log: DeltaLog, evolution: Evolution, newest: TableSchema) -> dict[str, str]:
    """What the change log's properties say before the tables follow a step."""
    wider = [newest.column(name).stored_as for name in evolution.widened]
    added = {
        one: widened_values(pa.array([default], default.type), arrow_type(newest.held(one)))[0]
        for one, default in _added(log).items()
    }
    for column in (newest.column(one.name) for one in evolution.added):
        default = scalar_of_older_rows(column)
        added[column.stored_as] = pa.scalar(None) if default is None else default
    widened = tuple(dict.fromkeys((*_listed(log, WIDENED_PROPERTY), *wider)))
    return {
        SCHEMA_PROPERTY: json.dumps(as_json(newest)),
        ADDED_PROPERTY: json.dumps({one: default_text(default) for one, default in added.items()}),
        WIDENED_PROPERTY: json.dumps(widened),
    }


def _followed(known: TableSchema, schema: TableSchema) -> tuple[Evolution, TableSchema] | None:
    """What leads from the tables' version to another one, and what the tables hold then; None if
    that is not newer or asks for nothing.

    Raises:
        SchemaMismatchError: The way there cannot be followed.
    """
    other = holding(schema, known)
    has_all = {*other.stored_names.values()} <= {*known.stored_names.values()}
    if other.scn_from <= known.scn_from and has_all:
        return None
    evolution = judge(known, other)
    if evolution.refusal is not None:
        raise SchemaMismatchError(
            f"the table's definition cannot be followed: {evolution.refusal}",
            hint=f"`redolake table resnapshot {known.table.argument} --fresh` starts new Delta tables, and moves the old ones aside.",
            table=known.table,
        )
    if not evolution.is_new_version:
        return None
    return evolution, holding(evolution.followed(known, schema), known)


def _names_in(mirror: DeltaLog, schema: TableSchema) -> dict[str, str]:
    """The names of the mirror's columns by what they are stored as. Where the mirror does not say
    which they are, they have their own names."""
    kept: dict[str, str] = json.loads(mirror.properties.get(COLUMNS_PROPERTY, "{}"))
    own = {column.name: column.stored_as for column in schema.columns}
    found = (
        (kept.get(mirror.file_names.of(name)) or own.get(name), name) for name in mirror.columns
    )
    return {stored_as: name for stored_as, name in found if stored_as}


def _remember_columns(work: TableWork, known: TableSchema, newest: TableSchema) -> None:
    """Before names change, let the mirror say which of its columns is which, by what files call it:
    that stays."""
    mirror = read_log(work.mirror)
    if mirror is None or all(newest.held(one.stored_as).name == one.name for one in known.columns):
        return
    names = _names_in(mirror, known)
    found = json.dumps({mirror.file_names.of(name): one for one, name in names.items()})
    if mirror.properties.get(COLUMNS_PROPERTY) != found:
        alter(work, work.mirror, set_properties({COLUMNS_PROPERTY: found}))


def _reach(work: TableWork, schema: TableSchema) -> None:
    """Bring both tables to ``schema``."""
    for step in _steps(work, schema):
        step()


def _steps(work: TableWork, schema: TableSchema) -> Iterator[Step]:
    """What is still to be done so that both tables have ``schema``, in its order; each step is done
    before the next one is asked for."""
    log, mirror = read_log(work.changelog), read_log(work.mirror)
    added, widened = _added(log), widened_columns(log)
    if mirror is None:
        if not (added or widened):
            return
        mirror = work.require_mirror()
    yield from _changelog_steps(work, schema)
    names = _names_in(mirror, schema)
    renames = _renames({name: schema.held(one).name for one, name in names.items()})
    missing = [schema.held(one) for one in added if one not in names]
    if renames or need_mapping(column.name for column in missing):
        yield from _mapping(work, work.mirror, mirror)
    for old, new in renames:
        yield partial(alter, work, work.mirror, rename_column(old, new), schema)
    if mirror.properties.get(KEY_PROPERTY) != key_text(schema):
        own = set_properties({KEY_PROPERTY: key_text(schema)})
        yield partial(alter, work, work.mirror, own, schema)
    if missing:
        columns = [mirror_columns(schema).field(column.name) for column in missing]
        yield partial(alter, work, work.mirror, add_columns(columns), schema)
    if not are_wide(work, schema, widened):
        yield partial(widen_tables, work, schema, widened)
    for column, default in added.items():
        app = _column_app(work, column)
        if app in mirror.transactions or not default.is_valid:
            continue
        name = schema.held(column).name
        yield partial(fill_column, work, schema, name, default, (app, 1))


def _renames(wanted: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is renamed to what, in order, until each name of ``wanted`` is the one that it maps to:
    names are unique at each time, so one of columns that change places waits under a name of its
    own."""
    left, renames = {old: new for old, new in wanted.items() if old != new}, []
    while left:
        old = next((one for one, new in left.items() if new not in left), None)
        if old is None:
            old, new = next(iter(left.items()))
            waiting = f"{new}__renaming"
            renames.append((old, waiting))
            left = {waiting if one == old else one: new for one, new in left.items()}
        else:
            renames.append((old, left.pop(old)))
    return renames


def _changelog_steps(work: TableWork, schema: TableSchema) -> Iterator[Step]:
    """The change log's structs get their fields before the mirror gets its columns, with a comment
    where Oracle calls the column otherwise."""
    log = read_log(work.changelog)
    if log is None:
        return
    logged = schema.as_logged()
    missing = [one for one in columns_of(logged) if one[0] not in log.fields[_IMAGES[1]]]
    if need_mapping(name for name, _ in missing):
        yield from _mapping(work, work.changelog, log)
    if missing:
        fields = add_columns([pa.field(*one) for one in missing], _IMAGES)
        yield partial(alter, work, work.changelog, fields)
    for path, comment in _comments(schema, log).items():
        yield partial(alter, work, work.changelog, comment_column(path, comment))


def _comments(schema: TableSchema, log: DeltaLog) -> dict[tuple[str, str], str]:
    """What is to be said still of fields that are not called what the mirror calls the column."""
    return {
        (image, one.stored_as): comment
        for one in schema.columns
        for image in _IMAGES
        if log.comments.get(image, {}).get(one.stored_as, "") != (comment := _comment(schema, one))
    }


def _comment(schema: TableSchema, column: Column) -> str:
    if column.name == column.stored_as:
        return ""
    if column.stored_as in schema.dropped:
        return f"dropped; {column.name} in the mirror"
    return f"Oracle column {column.name}"


def _mapping(work: TableWork, path: str, log: DeltaLog) -> Iterator[Step]:
    """Turn column mapping on. The columns that are there keep their names in files."""
    if not log.is_mapped:
        yield partial(alter, work, path, map_columns())


def check_mirror(work: TableWork, schema: TableSchema, log: DeltaLog) -> None:
    """The mirror must have the columns and types that windows are merged into.

    Raises:
        SchemaMismatchError: Someone else changed the mirror.
    """
    wrong = [
        column for column, kind in columns_of(schema) if log.columns.get(column) != delta_type(kind)
    ]
    if wrong:
        raise SchemaMismatchError(
            "the mirror lacks columns, or has them with other types",
            hint="Move the mirror's folder aside; `redolake table rebuild OWNER.TABLE` writes it from the change log.",
            **work.facts(columns=", ".join(wrong)),
        )
