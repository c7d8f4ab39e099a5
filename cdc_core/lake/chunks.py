"""How is a snapshot chunk applied to a table?

Its rows go into the change log as ``r`` rows. In the mirror the apply rule decides: a row that a change later than the chunk
has touched keeps that change. A whole-table chunk of a key range also says which keys are *not* there: rows of the mirror
inside the range that the chunk lacks, and that nothing later touched, are deleted, and the deletion is a ``d`` row of the
chunk in the change log, so that the log alone still gives the mirror.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_core.errors import ConfigError
from cdc_core.lake.defaults import default_values, sql_literal
from cdc_core.lake.evolution import settle_schema
from cdc_core.lake.history import read_log
from cdc_core.lake.merge import merge_sql
from cdc_core.lake.reduce import last_change_sql
from cdc_core.lake.spark import translated
from cdc_core.lake.tables import (
    CHANGE_FIELDS,
    CHUNK_ORDINAL,
    COMMIT_SCN,
    ORDINAL,
    columns_of,
    delta,
    quote_name,
    spark_type,
    string_literal,
)
from cdc_core.lake.windows import report
from cdc_core.lake.work import TableWork
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.model.reports import TableApplied
from cdc_core.schema.table import TableSchema


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from ``low`` to ``high`` as tuples in the key's order; None is open. ``low_included`` and ``high_included`` say
    whether the ends belong to it. Values are those of the Arrow types of ``schema.types``."""

    low: tuple[Any, ...] | None = None
    high: tuple[Any, ...] | None = None
    low_included: bool = False
    high_included: bool = True


def apply_chunk(
    work: TableWork,
    manifest: ChunkManifest,
    paths: Sequence[str],
    *,
    first: bool,
    deletes_in: KeyRange | None,
) -> TableApplied:
    """Append the chunk to the change log and bring its rows into the mirror, each once."""
    started = time.monotonic()
    app = work.chunk_app(manifest.snapshot_id, manifest.number)
    mirror = read_log(work.mirror)
    if mirror is not None and app in mirror.transactions:
        return TableApplied(table=work.table, skipped=True)
    session = work.open_session()
    work.create_tables(session, manifest.schema)
    # The tables may have columns that the chunk lacks, if it was read before they were added; or the other way round.
    schema = settle_schema(work, session, manifest.schema)
    mirror, changelog = work.require_mirror(), read_log(work.changelog)
    metadata = work.metadata(
        "chunk",
        manifest.scn,
        snapshot=manifest.snapshot_id,
        number=manifest.number,
        rows=manifest.rows,
    )
    rows = _landed_rows(session, manifest, paths, schema)
    appends = first and work.window_app not in mirror.transactions
    if changelog is None or app not in changelog.transactions:
        changes = session.sql(_read_rows_sql(rows, manifest, schema))
        if not appends and manifest.condition is None and deletes_in is not None:
            gone = _gone_sql(rows, work.mirror, manifest, schema, deletes_in)
            changes = changes.unionByName(session.sql(gone))
        work.append(
            changes, work.changelog, "appending a chunk to the change log", metadata, (app, 1)
        )
    if appends:
        frame = session.sql(_mirror_rows_sql(rows, manifest, schema))
        work.append(frame, work.mirror, "appending a chunk to the mirror", metadata, (app, 1))
        return TableApplied(
            table=work.table,
            changes=manifest.rows,
            rows_inserted=manifest.rows,
            seconds=time.monotonic() - started,
        )
    return _merge_chunk(work, session, manifest, schema, metadata, app, started)


def _merge_chunk(
    work: TableWork,
    session: Any,
    manifest: ChunkManifest,
    schema: TableSchema,
    metadata: str,
    app: str,
    started: float,
) -> TableApplied:
    """MERGE what the chunk wrote to the change log, without the keys that a later change has touched."""
    log = delta(work.changelog)
    key_lists = [_keys(schema, image) for image in ("before", "after")]
    later = " UNION ".join(
        f"SELECT {keys} FROM {log} WHERE _cdc_op IN ('c', 'u', 'd') AND _cdc_snapshot IS NULL "
        f"AND {COMMIT_SCN} > {manifest.scn} AND {image} IS NOT NULL"
        for keys, image in zip(key_lists, ("before", "after"), strict=True)
    )
    chunk = f"SELECT * FROM {log} WHERE _cdc_snapshot = {string_literal(_chunk_name(manifest))} AND _cdc_window = {manifest.scn}"
    same = " AND ".join(f"r.{quote_name(key)} = l.{quote_name(key)}" for key in schema.key)
    with translated("reducing a chunk", **work.facts()):
        session.sql(chunk).createOrReplaceTempView("chunk")
        reduced = last_change_sql("chunk", schema)
        session.sql(
            f"SELECT r.* FROM ({reduced}) r LEFT ANTI JOIN ({later}) l ON {same}"
        ).createOrReplaceTempView("reduced")
    sql = merge_sql(work.mirror, "reduced", schema)
    with work.commit(session, "merging a chunk into the mirror", metadata, (app, 1)):
        counts = session.sql(sql).collect()
    return report(work.table, counts, manifest.rows, started)


def _landed_rows(
    session: Any, manifest: ChunkManifest, paths: Sequence[str], schema: TableSchema
) -> str:
    """A view of the chunk's files with all columns of ``schema``; columns that were added later have their default, those that
    are left out now are NULL."""
    own, kinds = dict(columns_of(manifest.schema)), dict(columns_of(schema))
    ddl = ", ".join(f"{quote_name(column)} {spark_type(kind)}" for column, kind in own.items())
    added = [column for column in schema.column_names if column not in own]
    left_out = [column for column in added if column in manifest.schema.excluded]
    defaults = default_values(schema, [column for column in added if column not in left_out])
    defaults |= {column: f"CAST(NULL AS {spark_type(kinds[column])})" for column in left_out}
    columns = ", ".join(
        f"{defaults[column] if column in defaults else quote_name(column)} AS {quote_name(column)}"
        for column in schema.column_names
    )
    with translated("reading a chunk's files", table=schema.table):
        frame = (
            session.read.schema(ddl).parquet(*paths) if paths else session.createDataFrame([], ddl)
        )
        frame.createOrReplaceTempView("landed")
        session.sql(f"SELECT {columns} FROM landed").createOrReplaceTempView("rows")
    return "rows"


def _chunk_name(manifest: ChunkManifest) -> str:
    return f"{manifest.snapshot_id}/{manifest.number}"


def _change_columns(
    op: str, manifest: ChunkManifest, schema: TableSchema, before: str, after: str
) -> str:
    """The change log's columns for a row of the chunk."""
    values = {
        "_cdc_op": string_literal(op),
        COMMIT_SCN: f"{manifest.scn}L",
        ORDINAL: f"{CHUNK_ORDINAL}L",
        "_cdc_scn": f"{manifest.scn}L",
        "_cdc_window": f"{manifest.scn}L",
        "_cdc_snapshot": string_literal(_chunk_name(manifest)),
        "_cdc_absent": "ARRAY()",
        "_cdc_columns": str(len(schema.columns)),
    }
    plain = ", ".join(
        f"CAST({values.get(column, 'NULL')} AS {spark_type(kind)}) AS {column}"
        for column, kind in CHANGE_FIELDS
    )
    return f"{plain}, {before} AS before, {after} AS after"


def _read_rows_sql(rows: str, manifest: ChunkManifest, schema: TableSchema) -> str:
    image = _image({column: quote_name(column) for column in schema.column_names}, schema)
    nothing = f"CAST(NULL AS {_image_type(schema)})"
    return f"SELECT {_change_columns('r', manifest, schema, nothing, image)} FROM {rows}"


def _gone_sql(
    rows: str, mirror: str, manifest: ChunkManifest, schema: TableSchema, limits: KeyRange
) -> str:
    """``d`` rows for the mirror's rows in the range that the chunk lacks; they carry the key alone."""
    same = " AND ".join(f"m.{quote_name(key)} = r.{quote_name(key)}" for key in schema.key)
    image = _image({key: f"m.{quote_name(key)}" for key in schema.key}, schema)
    nothing = f"CAST(NULL AS {_image_type(schema)})"
    return f"""
        SELECT {_change_columns("d", manifest, schema, image, nothing)}
        FROM {delta(mirror)} m LEFT ANTI JOIN {rows} r ON {same}
        WHERE m.{COMMIT_SCN} <= {manifest.scn} AND {_range_sql(limits, schema)}
    """


def _range_sql(limits: KeyRange, schema: TableSchema) -> str:
    """The mirror's rows inside the range, comparing keys as tuples."""
    kinds = dict(columns_of(schema))
    conditions = ["TRUE"]
    for bound, sign, included in (
        (limits.low, ">", limits.low_included),
        (limits.high, "<", limits.high_included),
    ):
        if bound is None:
            continue
        if len(bound) != len(schema.key):
            raise ConfigError(
                "a chunk's range has not as many values as the key has columns",
                hint="Give one value per key column, or leave the range out.",
                table=schema.table,
            )
        columns = [f"m.{quote_name(key)}" for key in schema.key]
        values = [
            sql_literal(value, kinds[key]) for key, value in zip(schema.key, bound, strict=True)
        ]
        conditions.append(_tuple_sql(columns, values, sign, included))
    return " AND ".join(conditions)


def _tuple_sql(columns: Sequence[str], values: Sequence[str], sign: str, included: bool) -> str:
    """``(a, b) > (x, y)`` spelled out column by column."""
    ways = []
    for i, (column, value) in enumerate(zip(columns, values, strict=True)):
        equal = [f"{c} = {v}" for c, v in zip(columns[:i], values[:i], strict=True)]
        ways.append(" AND ".join([*equal, f"{column} {sign} {value}"]))
    if included:
        ways.append(" AND ".join(f"{c} = {v}" for c, v in zip(columns, values, strict=True)))
    return "(" + " OR ".join(f"({way})" for way in ways) + ")"


def _mirror_rows_sql(rows: str, manifest: ChunkManifest, schema: TableSchema) -> str:
    columns = ", ".join(quote_name(column) for column in schema.column_names)
    return f"SELECT {columns}, {manifest.scn}L AS {COMMIT_SCN}, {CHUNK_ORDINAL}L AS {ORDINAL} FROM {rows}"


def _image(values: Mapping[str, str], schema: TableSchema) -> str:
    fields = ", ".join(
        f"{string_literal(column)}, {values.get(column, f'CAST(NULL AS {spark_type(kind)})')}"
        for column, kind in columns_of(schema)
    )
    return f"NAMED_STRUCT({fields})"


def _image_type(schema: TableSchema) -> str:
    fields = ", ".join(
        f"{quote_name(column)}: {spark_type(kind)}" for column, kind in columns_of(schema)
    )
    return f"STRUCT<{fields}>"


def _keys(schema: TableSchema, image: str) -> str:
    return ", ".join(f"{image}.{quote_name(key)} AS {quote_name(key)}" for key in schema.key)
