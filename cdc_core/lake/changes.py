"""What kinds of changes are in the change log, and which are a window's?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.errors import at_work
from cdc_core.delta.file_names import PLAIN_NAMES, FileNames
from cdc_core.delta.history import filesystem_of, read_log
from cdc_core.errors import CHANGELOG_HINT, MIRROR_HINT
from cdc_core.lake.reduce import moved_sql
from cdc_core.lake.tables import delta, quote_name, string_literal
from cdc_core.model.reports import DeltaLayer
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.absent_names import holders, unlisted
from cdc_core.stage.changes import ChangeFacts, LoggedChanges, OwnRows
from cdc_core.stage.layout import ORDINAL

if TYPE_CHECKING:
    from cdc_core.lake.table_context import TableWork


def change_facts(session: Any, changes: str, schema: TableSchema) -> ChangeFacts:
    """Count and look through changes; ``changes`` is a relation of SQL with the change log's columns. Of columns that ``schema`` does not have,
    nothing is said."""
    columns = ", ".join(map(string_literal, schema.column_names))
    query = f"""
        SELECT COUNT(*) AS changes,
          ARRAY_DISTINCT(FLATTEN(COLLECT_SET(IF(_cdc_op = 'd', NULL, _cdc_absent)))) AS absent,
          COUNT_IF({moved_sql(schema)} AND ARRAYS_OVERLAP(_cdc_absent, ARRAY({columns}))) AS moved_absent
        FROM {changes}
    """
    with translated("reading the change log", table=schema.table):
        row = session.sql(query).collect()[0]
    named = set(row["absent"])
    return ChangeFacts(
        changes=row["changes"],
        absent=tuple(column for column in schema.column_names if column in named),
        moved_absent=row["moved_absent"] > 0,
    )


def files_of(work: TableWork, scn_high: int | None = None) -> list[str]:
    """The change log's files; with ``scn_high`` those alone that may hold rows of this window. Needs no Spark."""
    from deltalake import DeltaTable

    with reading_layer(work, "changelog"):
        found = pa.table(DeltaTable(work.changelog).get_add_actions(flatten=True))
    if scn_high is not None:
        window = file_names_of(work.changelog).of("_cdc_window")
        bounds = f"min.{window}", f"max.{window}"
        if set(bounds) <= set(found.column_names):  # not where nobody wrote statistics
            least, most = (found[name] for name in bounds)
            inside = pc.and_(pc.less_equal(least, scn_high), pc.greater_equal(most, scn_high))
            found = found.filter(pc.fill_null(inside, True))
    names: list[str] = found["path"].to_pylist()
    return names


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
    paths, names = [f"{root}/{unquote(file)}" for file in files], file_names_of(changelog)
    with at_work("reading the change log", {"table": schema.table}, hint=CHANGELOG_HINT):
        changes = LoggedChanges(filesystem, paths, schema, own, names)
        try:
            yield changes
        finally:
            changes.close()


def ordinals_of(work: TableWork, scn_high: int) -> npt.NDArray[np.int64]:
    """The ordinals of one window's changes; needs no Spark."""
    if read_log(work.changelog) is None:
        return np.empty(0, np.int64)
    found = queried(
        work,
        "changelog",
        f"SELECT {ORDINAL} FROM changelog WHERE _cdc_window = {scn_high} AND _cdc_snapshot IS NULL",
    )
    ordinals: npt.NDArray[np.int64] = found[ORDINAL].to_numpy()
    return ordinals


def queried(work: TableWork, layer: DeltaLayer, sql: str) -> pa.Table:
    """The answer to a query of one of the table's Delta tables, which it calls ``mirror`` or ``changelog``; needs no Spark."""
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
    """Read files of one of the table's Delta tables in the block. Errors are those of :func:`~cdc_core.delta.errors.at_work`."""
    if layer == "mirror":
        return at_work("reading the mirror", work.facts(), hint=MIRROR_HINT)
    return at_work("reading the change log", work.facts(), hint=CHANGELOG_HINT)


def window_sql(changelog: str, scn_high: int, schema: TableSchema) -> str:
    """One window's rows of the change log, as a relation of SQL."""
    return f"(SELECT * FROM {rows_sql(changelog, schema)} WHERE _cdc_window = {scn_high} AND _cdc_snapshot IS NULL)"


def rows_sql(changelog: str, schema: TableSchema) -> str:
    """The change log's rows, as a relation of SQL: all columns under the names that they have now.

    Rows from before a column was renamed have it under its old name, and NULL under the new one; later rows the other way round.
    """
    log = read_log(changelog) if schema.renamed else None
    if log is None:
        return delta(changelog)
    lists = ", ".join(
        f"{_absent_sql(column, image, schema)} AS {column}"
        for column, image in (("_cdc_absent", ""), ("_cdc_before_absent", "before"))
    )
    images = ", ".join(
        _image_sql(image, schema, log.fields[image]) for image in ("before", "after")
    )
    return (
        f"(SELECT * EXCEPT (before, after, _cdc_absent, _cdc_before_absent), {lists}, {images} "
        f"FROM {delta(changelog)})"
    )


def _absent_sql(column: str, image: str, schema: TableSchema) -> str:
    """A list of absent columns, as :func:`cdc_core.stage.absent_names.absent_now` has it. ``image``: the one that must be there to lack
    columns; any if empty."""
    cases = []
    for name, found in holders(schema).items():
        if [column for _, column in found] == [name]:
            continue
        first, *later = found
        value = string_literal(first[1])
        for place, held in later:
            value = f"IF(_cdc_columns >= {place}, {string_literal(held)}, {value})"
        cases.append(f"WHEN {string_literal(name)} THEN {value}")
    value = f"TRANSFORM({column}, a -> CASE a {' '.join(cases)} ELSE a END)" if cases else column
    is_there = f" AND {image} IS NOT NULL" if image else ""
    for place, held in unlisted(schema):
        lacks = f"_cdc_snapshot IS NULL AND _cdc_columns < {place}{is_there}"
        value = f"IF({lacks}, ARRAY_APPEND({value}, {string_literal(held)}), {value})"
    return value


def _image_sql(image: str, schema: TableSchema, there: Collection[str]) -> str:
    fields = []
    for column in schema.column_names:
        names = [name for name in schema.logged_names(column) if name in there]
        values = ", ".join(f"{image}.{quote_name(name)}" for name in names)
        fields.append(f"{string_literal(column)}, COALESCE({values})")
    return f"IF({image} IS NULL, NULL, NAMED_STRUCT({', '.join(fields)})) AS {image}"
