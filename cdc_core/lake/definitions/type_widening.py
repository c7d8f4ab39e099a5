"""How do both Delta tables of a captured table get wider types for columns that have become wider
in Oracle?

Delta's own type widening leaves files as they are, and readers such as delta-rs refuse tables that
have it. So each table is written anew, in
one commit that replaces all files by ones with the same rows: nothing is read from Oracle,
transaction identifiers, properties and comments stay, and older versions are there until VACUUM.
What is to be done, the types in each table's log say: a repeat finds nothing, and a crash between
the two leaves the mirror, which comes second, to the next attempt.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from cdc_core.delta.history import DeltaLog, read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import CommitConflictError, RowCountError
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    columns_of,
    delta,
    delta_type,
    oracle_type,
    quote_name,
    spark_type,
    string_literal,
)
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import NUMBER_TYPES, arrow_type
from cdc_core.spark.session import translated

_NINE_DIGITS = len("2026-01-01 00:00:00.123456789")

_IMAGES = ("before", "after")


def are_wide(work: TableWork, schema: TableSchema, widened: Collection[str]) -> bool:
    """Have both tables the types of ``schema`` in columns that were given wider types, as far as
    they have them?"""
    changelog = read_log(work.changelog)
    return not widened or not (
        _narrow_in_mirror(schema, widened, work.require_mirror())
        or (changelog is not None and _narrow_in_changes(schema, widened, changelog))
    )


def widen_tables(work: TableWork, schema: TableSchema, widened: Collection[str]) -> None:
    """Write the change log anew, then the mirror, each only if it has another type than ``schema``
    in one of the columns. Repeatable.

    Args:
        widened: Columns that were given wider types since the tables were begun. What another
            column has for a type, somebody else has chosen.

    Raises:
        RowCountError: A table has more or fewer rows than before.
        CommitConflictError: Another writer committed meanwhile; try again.
        LakeError: Spark or Delta refused.
    """
    changelog = read_log(work.changelog)
    if changelog is not None and (narrow := _narrow_in_changes(schema, widened, changelog)):
        columns = {image: _image_sql(image, changelog.fields[image], narrow) for image in _IMAGES}
        names = sorted({column.name for column in narrow.values()})
        _rewrite(work, work.changelog, changelog, columns, {}, _metadata(work, schema, names))
    mirror = work.require_mirror()
    if own := _narrow_in_mirror(schema, widened, mirror):
        columns = {name: exact_sql(quote_name(name), column) for name, column in own.items()}
        comments = {name: oracle_type(column) for name, column in own.items()}
        _rewrite(work, work.mirror, mirror, columns, comments, _metadata(work, schema, sorted(own)))


def exact_sql(value: str, column: Column) -> str:
    """SQL of a value in the type that the lake holds a column in; the value has that type, or a
    narrower one of an earlier definition.

    The twin of :func:`cdc_core.decode.widened.widened`. Text that is canonical stays as it is.
    """
    kind = arrow_type(column)
    text = f"CAST({value} AS STRING)"
    if not pa.types.is_string(kind):
        return f"CAST({value} AS {spark_type(kind)})"
    if column.data_type in NUMBER_TYPES:
        stripped = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"
        return f"IF(CONTAINS({text}, '.'), {stripped}, {text})"
    whole = f"IF(CONTAINS({text}, '.'), {text}, CONCAT({text}, '.'))"
    return f"IF(LENGTH({text}) < {_NINE_DIGITS}, RPAD({whole}, {_NINE_DIGITS}, '0'), {text})"


def _narrow_in_mirror(
    schema: TableSchema, names: Collection[str], mirror: DeltaLog
) -> dict[str, Column]:
    """Those of the columns that have another type in the mirror."""
    kinds = dict(columns_of(schema))
    return {
        name: schema.column(name)
        for name in names
        if name in mirror.columns and mirror.columns[name] != delta_type(kinds[name])
    }


def _narrow_in_changes(
    schema: TableSchema, names: Collection[str], changelog: DeltaLog
) -> dict[str, Column]:
    """The fields of the columns that have another type in the change log's images."""
    kinds = dict(columns_of(schema))
    return {
        field: schema.column(name)
        for name in names
        if (field := schema.stored_names.get(name)) is not None
        for image in _IMAGES
        if (kind := changelog.fields.get(image, {}).get(field)) is not None
        and kind != delta_type(kinds[name])
    }


def _image_sql(image: str, fields: Mapping[str, str], narrow: Mapping[str, Column]) -> str:
    parts = []
    for field in fields:
        value = f"{image}.{quote_name(field)}"
        wide = exact_sql(value, narrow[field]) if field in narrow else value
        parts.append(f"{string_literal(field)}, {wide}")
    return f"IF({image} IS NULL, NULL, NAMED_STRUCT({', '.join(parts)}))"


def _metadata(work: TableWork, schema: TableSchema, columns: list[str]) -> str:
    """No position: the table shows what it showed before, with the columns that it has from the
    definition's SCN on."""
    facts = {"source": work.source, "table": str(work.table), "kind": "schema"}
    since = {"definition_scn": schema.scn_from, "widened": columns}
    return json.dumps({**facts, **since}, sort_keys=True)


def _rewrite(
    work: TableWork,
    path: str,
    log: DeltaLog,
    columns: Mapping[str, str],
    comments: Mapping[str, str],
    metadata: str,
) -> None:
    """Replace all files of a Delta table in one commit; ``columns`` are those that change, as SQL,
    with ``comments`` of their own.

    The transaction identifier's version is that of the table that was read: who has replaced it
    already wins.

    Raises:
        CommitConflictError: Somebody has committed since; the step is repeated.
        RowCountError: Somebody did so while Spark began to write: the rows are in an older version
            alone. Or rows were lost otherwise.
    """
    session = work.session_for()
    doing = "widening the columns of a Delta table"
    with translated(doing, **work.facts(path=path)):
        frame = session.read.format("delta").option("versionAsOf", log.version).load(path)
        chosen = frame.selectExpr(
            *(
                f"{columns.get(name, quote_name(name))} AS {quote_name(name)}"
                for name in frame.columns
            )
        )
        for name in columns.keys() & comments.keys():
            chosen = chosen.withMetadata(name, {"comment": comments[name]})
        before = _count(path, frame)
        [detail] = session.sql(f"DESCRIBE DETAIL {delta(path)}").collect()
        writer = chosen.write.format("delta").mode("overwrite")
        writer = writer.option("overwriteSchema", "true").option("userMetadata", metadata)
        writer = writer.option("txnAppId", f"{work.window_app}/widened")
        work.fence()
        if _version(path) != log.version:
            raise CommitConflictError(
                f"{doing}: another writer committed to the same Delta table",
                hint="Try again; a source must have one writer.",
                **work.facts(path=path),
            )
        writer.option("txnVersion", log.version).save(path)
        after = _count(path, session.read.format("delta").load(path))
        is_next = _version(path) == log.version + 1
    if before != after or not is_next:
        raise RowCountError(
            "a Delta table whose columns were widened may not have the rows that it had before",
            hint="Older versions of the table have them: restore the one before with Delta's RESTORE TABLE, and report this.",
            **work.facts(path=path, version=log.version, rows=before, rows_now=after),
        )
    if (
        clustered := list(detail["clusteringColumns"])
    ):  # an overwrite forgets them; after a crash in between, `redolake maintain` clusters the mirror again
        by = ", ".join(map(quote_name, clustered))
        with work.commit(session, doing, metadata):
            session.sql(f"ALTER TABLE {delta(path)} CLUSTER BY ({by})")


def _version(path: str) -> int:
    log = read_log(path)
    return -1 if log is None else log.version


def _count(path: str, frame: Any) -> int:
    rows = count_rows(path)
    return frame.count() if rows is None else rows
