"""How do the values of a column leave the Delta tables of a captured table?

The column stays, and is NULL everywhere. Delta keeps the old files until VACUUM removes them, so
that the purge ends there.
"""

from __future__ import annotations

from cdc_core.delta.history import read_log
from cdc_core.errors import ANY_TABLE, ConfigError
from cdc_core.lake.definitions.evolution import known_schema
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import delta, quote_name
from cdc_core.schema.table import TableSchema


def purge_column(work: TableWork, column: str, key: tuple[str, ...]) -> list[str]:
    """As :meth:`cdc_core.lake.lake.TableLake.purge_column` says."""
    changelog = read_log(work.changelog)
    known = known_schema(changelog)
    if column in key or (known is not None and column in known.key):
        raise ConfigError(
            "a column of the key cannot be purged: it identifies the rows",
            hint=f"Name other columns under the table's key, run `redolake table resnapshot --fresh {ANY_TABLE}`, then delete the old Delta tables.",
            **work.facts(column=column),
        )
    mirror = work.require_mirror()
    stored_as = _stored_as(known, column)
    if column not in mirror.columns:
        return []
    session = work.session_for()
    position = work.position().mirror_scn or 0
    metadata = work.metadata("purge", position, column=column)
    name = quote_name(column)
    with work.commit(session, "purging a column of the mirror", metadata):
        session.sql(f"UPDATE {delta(work.mirror)} SET {name} = NULL WHERE {name} IS NOT NULL")
    if changelog is None:
        return [work.mirror]
    images = [image for image in ("before", "after") if stored_as in changelog.fields[image]]
    # Any statement may show a value: the lake has NULL where the column's form held none.
    for field in ("_cdc_redo_sql", *(f"{image}.{quote_name(stored_as)}" for image in images)):
        with work.commit(session, "purging a column of the change log", metadata):
            session.sql(
                f"UPDATE {delta(work.changelog)} SET {field} = NULL WHERE {field} IS NOT NULL"
            )
    return [work.mirror, work.changelog]


def _stored_as(known: TableSchema | None, column: str) -> str:
    """What a column is stored as, by the name that the mirror has, or by this itself."""
    return known.stored_names.get(column, column) if known else column
