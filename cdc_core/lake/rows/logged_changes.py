"""Which rows of the change log are a window's, and what are its columns called?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdc_core.delta.added_files import files_within
from cdc_core.delta.errors import at_work
from cdc_core.delta.history import file_names_of, filesystem_of, read_log
from cdc_core.delta.log_files import data_file
from cdc_core.errors import CHANGELOG_HINT, MIRROR_HINT
from cdc_core.lake.definitions.evolution import added_columns, known_schema
from cdc_core.lake.rows.spark_reading import layer_sql
from cdc_core.lake.rows.staging import found_rows
from cdc_core.lake.tables import quote_name, string_literal
from cdc_core.model.reports import DeltaLayer
from cdc_core.schema.table import TableSchema
from cdc_core.stage.absent_names import LISTS
from cdc_core.stage.changes import LoggedChanges, OwnRows
from cdc_core.stage.difference import touched_keys
from cdc_core.stage.layout import COMMIT_SCN, change_schema

if TYPE_CHECKING:
    from cdc_core.lake.table_context import TableWork


_WIDENING = frozenset({"typeWidening", "typeWidening-preview"})
_COMMIT_SCN_FIELD = pa.field(COMMIT_SCN, pa.int64())

ALL_WINDOWS = (0, 2**63 - 1)
"""The least and the greatest SCN of a window or a chunk."""


def files_of(work: TableWork, scn_high: int | None = None) -> list[str]:
    """The change log's files; with ``scn_high`` those alone that may hold rows of this window.
    Needs no Spark."""
    low, high = ALL_WINDOWS if scn_high is None else (scn_high, scn_high)
    with reading_layer(work, "changelog"):
        return files_within(work.changelog, "_cdc_window", low, high)


def sizes_of_files(path: str) -> list[int] | None:
    """The bytes of each file of the newest version of a Delta table; None where there is none that
    delta-rs can read. Needs no Spark."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        found = pa.table(DeltaTable(path).get_add_actions())
    except (DeltaError, OSError):
        return None
    sizes: list[int] = found["size_bytes"].to_pylist()
    return sizes


@contextmanager
def logged_changes(
    changelog: str, schema: TableSchema, own: OwnRows, files: Sequence[str]
) -> Iterator[LoggedChanges]:
    """What ``own`` picks of some files of the change log, for as long as the block lasts."""
    filesystem, root = filesystem_of(changelog)
    paths, names = [data_file(root, file) for file in files], file_names_of(changelog)
    with at_work("reading the change log", {"table": schema.table}, hint=CHANGELOG_HINT):
        added = added_columns(read_log(changelog))
        changes = LoggedChanges(filesystem, paths, schema, own, names, added)
        try:
            yield changes
        finally:
            changes.close()


def queried(work: TableWork, sql: str) -> pa.Table:
    """The answer to a query of ``changelog``, the table's change log; needs no Spark."""
    with reading_layer(work, "changelog"):
        return pa.table(_execute(work.changelog, "changelog", sql).read_all())


def mirror_parts(
    work: TableWork, columns: pa.Schema, scn_max: int | None = None
) -> Iterator[pa.Table]:
    """These columns of the mirror's rows, part by part; with ``scn_max`` of the rows that changed
    last up to this SCN. Needs no Spark, but where somebody let the mirror's types become wider,
    which delta-rs does not read."""
    where = "" if scn_max is None else f" WHERE {COMMIT_SCN} <= {scn_max}"
    yield columns.empty_table()
    if _WIDENING & work.require_mirror().writer_features:
        session = work.session_for()
        names = ", ".join(map(quote_name, columns.names))
        known = columns if COMMIT_SCN in columns.names else columns.append(_COMMIT_SCN_FIELD)
        sql = f"SELECT {names} FROM {layer_sql(work, session, 'mirror', known)}{where}"
        with found_rows(work, session, sql, doing="reading the mirror") as found:
            for batch in found.batches():
                yield pa.Table.from_batches([batch]).cast(columns)
        return
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in columns.names)
    sql = f"SELECT {listed} FROM mirror{where}"
    with reading_layer(work, "mirror"):
        for rows in _execute(work.mirror, "mirror", sql):
            yield pa.table(rows).cast(columns)


def keys_of_rows(
    work: TableWork, schema: TableSchema, own: OwnRows, windows: tuple[int, int]
) -> Iterator[pa.Table]:
    """The keys that some rows of the change log touch, old ones and new ones, part by part; the
    rows are of windows, or chunks, between these SCNs. Needs no Spark."""
    with reading_layer(work, "changelog"):
        files = files_within(work.changelog, "_cdc_window", *windows)
    if not files:
        return
    with logged_changes(work.changelog, schema, own, files) as changes:
        for part in range(changes.parts):
            yield touched_keys(changes.light(part, changes.parts), schema)


def _execute(path: str, name: str, sql: str) -> Any:
    from deltalake import DeltaTable, QueryBuilder

    # Not as a PyArrow data set: delta-rs opens none of a table with column mapping.
    return QueryBuilder().register(name, DeltaTable(path)).execute(sql)


def reading_layer(work: TableWork, layer: DeltaLayer) -> AbstractContextManager[None]:
    """Read files of one of the table's Delta tables in the block. Errors are those of
    :func:`~cdc_core.delta.errors.at_work`."""
    if layer == "mirror":
        return at_work("reading the mirror", work.facts(), hint=MIRROR_HINT)
    return at_work("reading the change log", work.facts(), hint=CHANGELOG_HINT)


def window_sql(work: TableWork, session: Any, scn_high: int, schema: TableSchema) -> str:
    """One window's rows of the change log, as a relation of SQL."""
    rows = rows_sql(work, session, schema)
    return f"(SELECT * FROM {rows} WHERE _cdc_window = {scn_high} AND _cdc_snapshot IS NULL)"


def rows_sql(work: TableWork, session: Any, schema: TableSchema) -> str:
    """The change log's rows, as a relation of SQL for the session: columns, also those that a row
    lists as absent, under the names that they have in ``schema``."""
    held = known_schema(read_log(work.changelog)) or schema
    changelog = layer_sql(work, session, "changelog", change_schema(held))
    names = {old: new for old, new in schema.present_names.items() if old != new}
    if not names:
        return changelog
    lists = ", ".join(f"{_list_sql(one, names)} AS {one}" for one in LISTS)
    images = ", ".join(_image_sql(image, schema) for image in ("before", "after"))
    return (
        f"(SELECT * EXCEPT (before, after, {', '.join(LISTS)}), {lists}, {images} FROM {changelog})"
    )


def _list_sql(column: str, names: Mapping[str, str]) -> str:
    cases = " ".join(
        f"WHEN {string_literal(old)} THEN {string_literal(new)}" for old, new in names.items()
    )
    return f"TRANSFORM({column}, a -> CASE a {cases} ELSE a END)"


def _image_sql(image: str, schema: TableSchema) -> str:
    fields = ", ".join(
        f"{string_literal(name)}, {image}.{quote_name(stored_as)}"
        for name, stored_as in schema.stored_names.items()
    )
    return f"IF({image} IS NULL, NULL, NAMED_STRUCT({fields})) AS {image}"
