"""Which rows of the change log are a window's, and what are its columns called?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.added_files import files_within
from cdc_core.delta.errors import at_work
from cdc_core.delta.file_names import PLAIN_NAMES, FileNames
from cdc_core.delta.history import filesystem_of, read_log
from cdc_core.delta.log_files import data_file
from cdc_core.errors import CHANGELOG_HINT, MIRROR_HINT
from cdc_core.lake.definitions.evolution import added_columns, known_schema
from cdc_core.lake.rows.spark_reading import layer_sql
from cdc_core.lake.tables import quote_name, string_literal
from cdc_core.model.reports import DeltaLayer
from cdc_core.schema.table import TableSchema
from cdc_core.stage.absent_names import LISTS
from cdc_core.stage.changes import LoggedChanges, OwnRows
from cdc_core.stage.layout import change_schema

if TYPE_CHECKING:
    from cdc_core.lake.table_context import TableWork


def files_of(work: TableWork, scn_high: int | None = None) -> list[str]:
    """The change log's files; with ``scn_high`` those alone that may hold rows of this window.
    Needs no Spark."""
    low, high = (0, 2**63 - 1) if scn_high is None else (scn_high, scn_high)
    with reading_layer(work, "changelog"):
        return files_within(work.changelog, "_cdc_window", low, high)


def size_of_files(path: str) -> tuple[int, int] | None:
    """How many files the newest version of a Delta table has, and of how many bytes; None where
    there is none that delta-rs can read. Needs no Spark."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        found = pa.table(DeltaTable(path).get_add_actions())
    except (DeltaError, OSError):
        return None
    return found.num_rows, pc.sum(found["size_bytes"]).as_py() or 0


def file_names_of(changelog: str) -> FileNames:
    """What a Delta table's files call its columns."""
    log = read_log(changelog)
    return PLAIN_NAMES if log is None else log.file_names


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


def queried(work: TableWork, layer: DeltaLayer, sql: str) -> pa.Table:
    """The answer to a query of one of the table's Delta tables, which it calls ``mirror`` or
    ``changelog``; needs no Spark."""
    with reading_layer(work, layer):
        return pa.table(_execute(work, layer, sql).read_all())


def batches_of(work: TableWork, layer: DeltaLayer, sql: str) -> Iterator[pa.Table]:
    """The same, batch by batch."""
    with reading_layer(work, layer):
        yield from map(pa.table, _execute(work, layer, sql))


def _execute(work: TableWork, layer: DeltaLayer, sql: str) -> Any:
    from deltalake import DeltaTable, QueryBuilder

    # Not as a PyArrow data set: delta-rs opens none of a table with column mapping.
    path = work.mirror if layer == "mirror" else work.changelog
    return QueryBuilder().register(layer, DeltaTable(path)).execute(sql)


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
