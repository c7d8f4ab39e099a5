"""How do both Delta tables of a captured table follow its definition?

Added columns come behind the others, as ALTER TABLE … ADD makes them; dropped ones stay in the change log, and by policy go from the mirror
(``redolake.gone`` of the change log names them first: :func:`in_mirror` is what the mirror has then); a renamed one is renamed in the mirror, by
Delta's column mapping, and becomes a new column of the change log, whose rows are read under the names that they have now
(``changes.rows_sql``). A column with a wider type has both tables written anew (``widening``). A column whose name a plain table cannot hold turns column mapping on in both. Each
takes several commits, so the change log's properties first say what is to be reached (``redolake.schema``, ``redolake.added``, ``redolake.widened``); whoever works on the table next brings
it there. The default of a new column goes into the mirror's existing rows in a commit with its own transaction identifier,
before any later change is merged.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa

from cdc_core.delta.history import DeltaLog, read_log
from cdc_core.errors import SchemaMismatchError
from cdc_core.lake.defaults import default_values, has_value, sql_literal
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    ADDED_PROPERTY,
    GONE_PROPERTY,
    KEY_PROPERTY,
    MAPPED,
    SCHEMA_PROPERTY,
    WIDENED_PROPERTY,
    column_ddl,
    columns_of,
    delta,
    delta_type,
    key_text,
    properties_sql,
    quote_name,
    spark_type,
)
from cdc_core.lake.widening import are_wide, exact_sql, widen_tables
from cdc_core.schema.evolution import Evolution, holding, judge, refuse_mixed_values
from cdc_core.schema.names import check_names, need_mapping
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_type

_IMAGES = ("before", "after")

TIMESTAMPS = "'delta.feature.timestampNtz'"
"""The table feature of columns without a time zone. Delta adds it by itself when a table is made, and not for a later column."""


def known_schema(log: DeltaLog | None) -> TableSchema | None:
    """The newest version of the table that the change log's properties name; None without a change log."""
    if log is None or SCHEMA_PROPERTY not in log.properties:
        return None
    return TableSchema.from_json(json.loads(log.properties[SCHEMA_PROPERTY]))


def added_columns(log: DeltaLog | None) -> dict[str, str]:
    """Columns that were added after the table was created, with the SQL of their defaults."""
    known = known_schema(log)
    added = _added_as(log)
    return {_added_name(known, one): default for one, default in added.items()} if known else added


def in_mirror(work: TableWork, schema: TableSchema) -> TableSchema:
    """The version with the columns that the mirror has: without the dropped ones that it has lost, and with the number of equal rows where they
    are counted."""
    return schema.mirrored(gone_columns(read_log(work.changelog))).with_copies()


def gone_columns(log: DeltaLog | None) -> tuple[str, ...]:
    """The dropped columns that the mirror has lost, or is losing."""
    return tuple(json.loads(log.properties.get(GONE_PROPERTY, "[]"))) if log else ()


def _going(work: TableWork, schema: TableSchema, gone: Sequence[str]) -> tuple[str, ...]:
    """Those with what the policy lets go now."""
    if not work.drops_columns:
        return tuple(gone)
    held = schema.column_names
    return tuple(dict.fromkeys((*gone, *(name for name in schema.dropped if name in held))))


def _added_as(log: DeltaLog | None) -> dict[str, str]:
    """Added columns as :func:`_added_key` calls them."""
    added: dict[str, str] = json.loads(log.properties.get(ADDED_PROPERTY, "{}")) if log else {}
    return added


def _added_key(schema: TableSchema, column: str) -> str:
    """What an added column is called for good: by the name that it gets, and by the SCN too where another column had that before."""
    taken = [one for one in schema.displaced if one.name == column]
    return f"{column}@{taken[-1].scn}" if taken else column


def _added_name(schema: TableSchema, key: str) -> str:
    """What an added column is called now."""
    for one in schema.displaced:
        if key == f"{one.name}@{one.scn}":
            return schema.present_name(one.name, behind=one.renames)
    return schema.present_name(key)


def widened_columns(log: DeltaLog | None) -> tuple[str, ...]:
    """The columns that were given wider types, or are being given them, under their present names."""
    known = known_schema(log)
    found = tuple(json.loads(log.properties.get(WIDENED_PROPERTY, "[]"))) if log else ()
    # Once a name was taken anew, the property is written with the names of its time.
    if known is None or known.displaced:
        return found
    return tuple(known.present_name(name) for name in found)


def is_settled(work: TableWork, schema: TableSchema) -> bool:
    """Do both tables have all columns of ``schema``, with nothing left to finish? Needs no Spark.

    Raises:
        SchemaMismatchError: ``schema.evolution`` says that the way there cannot be followed.
    """
    log, mirror = read_log(work.changelog), read_log(work.mirror)
    known = known_schema(log)
    if log is None or known is None or mirror is None or _followed(known, schema) is not None:
        return False
    if not are_wide(known, widened_columns(log), mirror, log):
        return False
    gone = gone_columns(log)
    if _renames(known, mirror, gone)[0] or _names_old_key(mirror, known):
        return False
    if _going(work, known, gone) != gone or any(column in mirror.columns for column in gone):
        return False
    return all(
        _added_name(known, column) in mirror.columns
        and (not has_value(default) or _column_app(work, column) in mirror.transactions)
        for column, default in _added_as(log).items()
        if _added_name(known, column) not in gone
    )


def _column_app(work: TableWork, column: str) -> str:
    return f"redolake/{work.source}/{work.table.path}/column/{column}"


def settle_schema(work: TableWork, schema: TableSchema, read_scn: int = 0) -> TableSchema:
    """Bring both tables to ``schema`` if it is newer than theirs, finish what a crash left, and return the newest version. ``read_scn`` is the
    highest SCN as of which a chunk was read that they have, as far as a column may have taken the name of another one since.

    A column that was left out or dropped after the tables were made is in the version that is returned: it stays in the change log, and in the
    mirror unless the policy lets it go.

    Raises:
        SchemaMismatchError: ``schema.evolution`` says that the way there cannot be followed.
    """
    log = read_log(work.changelog)
    known = known_schema(log)
    if log is None or known is None:
        return schema
    refuse_mixed_values(known, schema, read_scn)
    followed = _followed(known, schema)
    if not (known.displaced or (followed is not None and followed[1].displaced)):
        return _settle(work, known, followed)
    # Before a column has the name of another one, the tables must have followed what this name stood for; before columns go, all others must
    # have their names.
    newest = _settle(work, known, None, may_drop=False)
    if followed is not None:
        for step in _renames_between(known, followed[1]):
            newest = _settle(work, newest, (judge(newest, step), step), may_drop=False)
        newest = _settle(work, newest, _followed(newest, schema), may_drop=False)
    return _settle(work, newest, None)


def _settle(
    work: TableWork,
    known: TableSchema,
    followed: tuple[Evolution, TableSchema] | None,
    *,
    may_drop: bool = True,
) -> TableSchema:
    """Bring both tables to what follows on ``known``, and let columns go if the policy says so and they may."""
    log = read_log(work.changelog)
    assert log is not None
    newest, added, properties = known, _added_as(log), dict[str, str]()
    widened, before = widened_columns(log), gone_columns(log)
    gone = before
    if followed is not None:
        evolution, newest = followed
        check_names(newest)
        fresh = [column.name for column in evolution.added]
        widened, gone = (
            tuple(newest.present_name(one, known) for one in names) for names in (widened, gone)
        )
        widened = tuple(dict.fromkeys((*widened, *evolution.widened)))
        added = {
            one: _in_types_of(newest, evolution.widened, sql, one) for one, sql in added.items()
        }
        defaults = default_values(newest, fresh)
        added |= {_added_key(newest, one): sql for one, sql in defaults.items()}
        properties = {SCHEMA_PROPERTY: json.dumps(newest.as_json()), ADDED_PROPERTY: json.dumps(added), WIDENED_PROPERTY: json.dumps(widened)}  # fmt: skip
    gone = _going(work, newest, gone) if may_drop else gone
    if gone != before:
        properties[GONE_PROPERTY] = json.dumps(gone)
    if properties:
        _alter(work, work.changelog, f"SET TBLPROPERTIES {properties_sql(properties)}")
    if added or newest.renamed or gone or widened:
        _reach(work, newest, added, gone, widened)
    return newest


def _in_types_of(schema: TableSchema, widened: Sequence[str], sql: str, column: str) -> str:
    """The default of an added column in the type that the column has now."""
    name = _added_name(schema, column)
    if name not in widened:
        return sql
    own = schema.column(name)
    return exact_sql(sql, own) if has_value(sql) else sql_literal(None, arrow_type(own))


def _followed(known: TableSchema, schema: TableSchema) -> tuple[Evolution, TableSchema] | None:
    """What leads from the tables' version to another one, and what the tables hold then; None if that is not newer or asks for
    nothing.

    Raises:
        SchemaMismatchError: The way there cannot be followed.
    """
    other = holding(schema, known)
    if other.scn_from <= known.scn_from and set(other.column_names) <= set(known.column_names):
        return None
    evolution = judge(known, other)
    if evolution.refusal is not None:
        raise SchemaMismatchError(
            f"the table's definition cannot be followed: {evolution.refusal}",
            hint=f"`redolake table resnapshot {known.table.argument} --fresh` puts it into new Delta tables, and the old ones aside.",
            table=known.table,
        )
    if not evolution.is_new_version:
        return None
    return evolution, holding(evolution.followed(known, schema), known)


def _renames_between(known: TableSchema, newest: TableSchema) -> list[TableSchema]:
    """The versions on the way to one that is several renames ahead: what the tables hold after each of them but the last. Followed at once, columns
    that swap their names would leave the mirror's names as they are."""
    done, kept, found = len(known.renamed), {one.kept for one in newest.displaced}, [known]
    for at in range(done + 1, len(newest.renamed)):
        if newest.renamed[at - 1][1] in kept:
            continue  # with the rename that takes the name
        taken = tuple(one for one in newest.displaced if one.renames < at)
        then = replace(newest, renamed=newest.renamed[:at], displaced=taken)
        step = replace(found[-1].under_names_of(then), renamed=then.renamed, displaced=taken)
        if step.column_names != found[-1].column_names:
            found.append(step)
    return found[1:]


def _reach(
    work: TableWork,
    schema: TableSchema,
    added: dict[str, str],
    gone: Sequence[str],
    widened: Sequence[str],
) -> None:
    """Bring both tables to ``schema``, each step only if it is not done yet. ``added`` has the columns that were added (:func:`_added_key`),
    ``widened`` those that get wider types; ``gone`` is what the mirror is to lose, whose files keep it until they are written anew."""
    mirror = work.require_mirror()
    kinds = dict(columns_of(schema))
    renames, names = _renames(schema, mirror, gone)
    added = {one: sql for one, sql in added.items() if _added_name(schema, one) not in gone}
    going = [column for column in gone if column in names]
    present = [_added_name(schema, column) for column in added]
    missing = [column for column in present if column not in names]
    if missing or renames:
        _reach_changelog(work, schema)
    if renames or going or need_mapping(missing):
        _map(work, work.mirror, mirror)
    for old, new in renames:
        _alter(work, work.mirror, f"RENAME COLUMN {quote_name(old)} TO {quote_name(new)}", schema)
    if _names_old_key(mirror, schema):
        named = properties_sql({KEY_PROPERTY: key_text(schema)})
        _alter(work, work.mirror, f"SET TBLPROPERTIES {named}", schema)
    if missing:
        if any(kinds[column] == pa.timestamp("us") for column in missing):
            _alter(work, work.mirror, f"SET TBLPROPERTIES ({TIMESTAMPS} = 'supported')")
        ddl = ", ".join(column_ddl(schema, schema.column(column)) for column in missing)
        _alter(work, work.mirror, f"ADD COLUMNS ({ddl})", schema)
    if going:
        _alter(work, work.mirror, f"DROP COLUMNS ({', '.join(map(quote_name, going))})")
    if widened:
        widen_tables(work, schema, widened)
    for column, default in added.items():
        app = _column_app(work, column)
        if app in mirror.transactions or not has_value(default):
            continue
        metadata = json.dumps({"source": work.source, "table": str(work.table), "kind": "default"})
        session = work.session_for()
        with work.commit(session, "filling a new column's default", metadata, (app, 1)):
            name = quote_name(_added_name(schema, column))
            session.sql(f"UPDATE {delta(work.mirror)} SET {name} = {default}")


def _renames(
    schema: TableSchema, mirror: DeltaLog, gone: Collection[str]
) -> tuple[list[tuple[str, str]], set[str]]:
    """What is to be renamed in the mirror still, in order, and the names that its columns have then.

    Names are unique at each time, and a column is added or renamed under one only when the one that had it before has got another: so a column
    whose name the mirror lacks is there under an earlier one, is to come, or has gone.
    """
    names, renames, held = set(mirror.columns), [], schema.column_names
    while True:
        for column in sorted(held, key=lambda name: name in gone):
            old = next((name for name in schema.earlier_names(column) if name in names), None)
            if column not in names and old is not None and not (column in gone and old in held):
                renames.append((old, column))
                names = names - {old} | {column}
                break
        else:
            return renames, names


def _names_old_key(mirror: DeltaLog, schema: TableSchema) -> bool:
    """Has the mirror's property a name of the key's columns that went with a rename?"""
    return bool(schema.renamed) and mirror.properties.get(KEY_PROPERTY) != key_text(schema)


def _reach_changelog(work: TableWork, schema: TableSchema) -> None:
    """The change log's structs get their fields before the mirror gets its columns. A field whose name a new column takes gets another one."""
    kinds, log = dict(columns_of(schema)), read_log(work.changelog)
    if log is None:
        return
    wanted = dict(kinds)
    kept = {one.kept for one in schema.displaced}
    for column, kind in kinds.items():
        wanted |= {name: kind for name in schema.logged_names(column) if name in kept}
    there, displaced = _displaced_fields(schema, log)
    missing = [column for column in wanted if column not in there]
    if displaced or need_mapping(missing):
        _map(work, work.changelog, log)
    for field, name in displaced:
        _alter(work, work.changelog, f"RENAME COLUMN {field} TO {quote_name(name)}")
    fields = [
        f"{image}.{quote_name(column)} {spark_type(wanted[column])}"
        for column in missing
        for image in _IMAGES
    ]
    if fields:
        _alter(work, work.changelog, f"ADD COLUMNS ({', '.join(fields)})")


def _displaced_fields(schema: TableSchema, log: DeltaLog) -> tuple[set[str], list[tuple[str, str]]]:
    """The names of the images' fields once those of other columns have given theirs up, and what is to be renamed for that still. An image after
    the other, each in a commit."""
    renames: list[tuple[str, str]] = []
    left = set[str]()
    for image in _IMAGES:
        left = set(log.fields[image])
        for one in schema.displaced:
            if one.kept not in left and one.name in left:
                renames.append((f"{image}.{quote_name(one.name)}", one.kept))
                left = left - {one.name} | {one.kept}
    return left, renames


def _map(work: TableWork, path: str, log: DeltaLog) -> None:
    """Turn column mapping on. The columns that are there keep their names in files."""
    if not log.is_mapped:
        _alter(work, path, f"SET TBLPROPERTIES {properties_sql(MAPPED)}")


def _alter(work: TableWork, path: str, change: str, reached: TableSchema | None = None) -> None:
    """Alter a Delta table; ``reached`` is the definition whose columns the mirror has afterwards."""
    facts = {"source": work.source, "table": str(work.table), "kind": "schema"}
    since = {} if reached is None else {"definition_scn": reached.scn_from}
    metadata = json.dumps({**facts, **since})
    session = work.session_for()
    with work.commit(session, "altering a Delta table", metadata):
        session.sql(f"ALTER TABLE {delta(path)} {change}")


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
