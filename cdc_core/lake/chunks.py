"""How is a snapshot applied to a table, chunk by chunk?

A chunk's rows go into the change log as ``r`` rows. In the mirror the apply rule decides: a key that something later than the
chunk has touched keeps that; every other key of the chunk is *replaced*: all rows that the mirror has of it go, the chunk's row
comes. A mirror that holds nothing but chunks of this very snapshot, by Delta's own log, has no row to replace: there
the rows are appended.

**Keys that are gone.** Which keys Oracle does not have any more, only the finished snapshot knows: :func:`remove_gone`
deletes the mirror's rows whose keys no chunk has, by one anti-join, for any type of key. Its deletions are ``d`` rows of the
snapshot in the change log, so that the log alone still gives the mirror.

*Why it is right.* Every row that was there lies in the range of one chunk, and that chunk was read as of its own SCN. Let L be the
lowest of these SCNs. A mirror row goes only if its last change, and every change of its key in the change log, is at or below L.
If it is still there at the SCN of the chunk that should have it, that chunk has it. If not, then either it was gone at L: then it
must go. Or it was deleted, or moved into another chunk's range, between L and that SCN: then the log has that
change above L, and the windows bring it: a delete finds nothing left to do, an insert puts the row back. Rows with changes above L
are not touched here, since the same windows clean them up. The mirror is an image of Oracle again, as after every ad hoc
snapshot, when its position has passed the highest SCN of the chunks.

A snapshot with a condition removes nothing: that a row is not among those that fulfil the condition may mean that it is gone, or that
its values changed. A list of keys that was asked for is different: the key decides alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_core.errors import DuplicateKeyError
from cdc_core.lake.defaults import default_values, sql_literal
from cdc_core.lake.evolution import known_schema, settle_schema
from cdc_core.lake.history import read_commits, read_log
from cdc_core.lake.merge import replace_sql
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
from cdc_core.lake.work import TableWork
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.model.reports import TableApplied
from cdc_core.schema.table import TableSchema

GONE = "gone"
"""Stands for a chunk's number where the finished snapshot deletes what no chunk has."""


def apply_chunk(
    work: TableWork,
    manifest: ChunkManifest,
    paths: Sequence[str],
    *,
    position: int | None,
    asked: Sequence[Sequence[Any]] | None,
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
    reached = max(position or 0, mirror.transactions.get(work.window_app, 0))
    metadata = work.metadata(
        "chunk",
        max(reached, manifest.scn),
        snapshot=manifest.snapshot_id,
        number=manifest.number,
        chunk_scn=manifest.scn,
        rows=manifest.rows,
    )
    _make_landed_rows(session, manifest, paths, schema)
    _refuse_double_keys(work, session, schema, "landed_rows", f"chunk {manifest.number}")
    # A list of keys that was read ahead of the position says nothing of rows that windows up to its SCN may still change.
    removes = bool(asked) and manifest.scn <= reached
    session.sql(
        _asked_sql(work, manifest, schema, asked or ())
        if removes
        else f"SELECT {_listed(schema.key)} FROM landed_rows WHERE FALSE"
    ).createOrReplaceTempView("gone_keys")
    if changelog is None or app not in changelog.transactions:
        name = f"{manifest.snapshot_id}/{manifest.number}"
        changes = session.sql(_read_rows_sql(name, manifest.scn, schema))
        if removes:
            gone = session.sql(_gone_rows_sql(name, manifest.scn, schema))
            changes = changes.unionByName(gone)
        work.append(
            changes, work.changelog, "appending a chunk to the change log", metadata, (app, 1)
        )
    if _holds_alone(work, manifest.snapshot_id, manifest.scn):
        frame = session.sql(
            f"SELECT {_listed(schema.column_names)}, {manifest.scn}L AS {COMMIT_SCN}, "
            f"{CHUNK_ORDINAL}L AS {ORDINAL} FROM landed_rows"
        )
        work.append(frame, work.mirror, "appending a chunk to the mirror", metadata, (app, 1))
        return TableApplied(
            table=work.table,
            changes=manifest.rows,
            rows_inserted=manifest.rows,
            seconds=time.monotonic() - started,
        )
    with translated("reducing a chunk", **work.facts()):
        session.sql(_replacing_sql(work.changelog, manifest.scn, schema)).createOrReplaceTempView(
            "replacing"
        )
    sql = replace_sql(work.mirror, "replacing", schema)
    with work.commit(session, "replacing a chunk's keys in the mirror", metadata, (app, 1)):
        counts = session.sql(sql).collect()
    return _report(work, counts, manifest.rows, started)


def remove_gone(
    work: TableWork,
    snapshot_id: str,
    scn_lowest: int,
    *,
    position: int | None,
) -> TableApplied:
    """Delete the mirror's rows whose keys no chunk of the finished snapshot has."""
    started = time.monotonic()
    app = work.chunk_app(snapshot_id, GONE)
    mirror, changelog = work.require_mirror(), read_log(work.changelog)
    schema = known_schema(changelog)
    assert changelog is not None
    assert schema is not None
    if app in mirror.transactions:
        return TableApplied(table=work.table, skipped=True)
    session = work.open_session()
    if _holds_alone(work, snapshot_id, scn_lowest):
        _refuse_double_keys(work, session, schema, delta(work.mirror), "the mirror")
        return TableApplied(table=work.table, seconds=time.monotonic() - started)
    reached = max(position or 0, mirror.transactions.get(work.window_app, 0))
    metadata = work.metadata(
        "gone", max(reached, scn_lowest), snapshot=snapshot_id, chunk_scn=scn_lowest
    )
    with translated("looking for keys that are gone", **work.facts()):
        session.sql(_gone_sql(work, snapshot_id, scn_lowest, schema)).createOrReplaceTempView(
            "gone_keys"
        )
        if app not in changelog.transactions and session.table("gone_keys").isEmpty():
            return TableApplied(table=work.table, seconds=time.monotonic() - started)
    name = f"{snapshot_id}/{GONE}"
    if app not in changelog.transactions:
        frame = session.sql(_gone_rows_sql(name, scn_lowest, schema))
        doing = "appending deletions to the change log"
        work.append(frame, work.changelog, doing, metadata, (app, 1))
    session.sql(
        f"SELECT {_keys(schema, 'before')}, 'del' AS _cdc_kind, {scn_lowest}L AS {COMMIT_SCN} "
        f"FROM {delta(work.changelog)} WHERE _cdc_snapshot = {string_literal(name)}"
    ).createOrReplaceTempView("deletions")
    on = " AND ".join(f"t.{quote_name(key)} = s.{quote_name(key)}" for key in schema.key)
    with work.commit(session, "deleting what is gone", metadata, (app, 1)):
        counts = session.sql(
            f"MERGE INTO {delta(work.mirror)} t USING deletions s ON {on} "
            f"WHEN MATCHED AND t.{COMMIT_SCN} <= s.{COMMIT_SCN} THEN DELETE"
        ).collect()
    return _report(work, counts, counts[0]["num_deleted_rows"] if counts else 0, started)


def _holds_alone(work: TableWork, snapshot_id: str, scn: int) -> bool:
    """Does the mirror hold nothing but chunks of this snapshot that were read as of this SCN, by its own log from the
    first commit on? Chunks of one SCN never overlap, so a row of one can be appended to the others'."""
    commits = read_commits(work.mirror)
    if not commits or commits[0].version != 0:
        return False
    return all(
        commit.operation == "CREATE TABLE"
        or commit.metadata.get("kind") == "schema"
        or (
            commit.metadata.get("kind") == "chunk"
            and commit.metadata.get("snapshot") == snapshot_id
            and commit.metadata.get("chunk_scn") == scn
        )
        for commit in commits
    )


def _refuse_double_keys(
    work: TableWork, session: Any, schema: TableSchema, rows: str, where: str
) -> None:
    """Stop where the key is none; the error names columns, never values.

    Raises:
        DuplicateKeyError: Two rows have one key.
    """
    keys = _listed(schema.key)
    query = f"SELECT 1 FROM {rows} GROUP BY {keys} HAVING COUNT(*) > 1 LIMIT 1"
    with translated("looking for double keys", **work.facts()):
        found = not session.sql(query).isEmpty()
    if found:
        raise DuplicateKeyError(
            "two rows have one key, so the key does not say which row a change is about",
            hint="Name columns under the table's key that are unique, or make the key a validated PRIMARY KEY in Oracle; "
            "then move the table's two Delta tables aside and take a new snapshot of it.",
            **work.facts(key=", ".join(schema.key), rows=where),
        )


def _gone_sql(work: TableWork, snapshot_id: str, scn: int, schema: TableSchema) -> str:
    """Keys of the mirror that no chunk of the snapshot has, and that nothing above the SCN has touched."""
    found = (
        f"SELECT {_keys(schema, 'after')} FROM {delta(work.changelog)} "
        f"WHERE _cdc_op = 'r' AND STARTSWITH(_cdc_snapshot, {string_literal(snapshot_id + '/')})"
    )
    return f"""
        SELECT DISTINCT {_listed(schema.key, "m")} FROM {delta(work.mirror)} m
        LEFT ANTI JOIN ({found}) r ON {_same(schema, "m", "r")}
        LEFT ANTI JOIN ({_later_sql(work.changelog, scn, schema)}) l ON {_same(schema, "m", "l")}
        WHERE m.{COMMIT_SCN} <= {scn}
    """


def _asked_sql(
    work: TableWork, manifest: ChunkManifest, schema: TableSchema, asked: Sequence[Sequence[Any]]
) -> str:
    """Keys that were asked for, that the mirror has and the chunk lacks, and that nothing later has touched."""
    kinds = dict(columns_of(schema))
    values = ", ".join(
        "("
        + ", ".join(
            sql_literal(value, kinds[key]) for key, value in zip(schema.key, row, strict=True)
        )
        + ")"
        for row in asked
    )
    return f"""
        SELECT DISTINCT {_listed(schema.key, "m")} FROM {delta(work.mirror)} m
        LEFT SEMI JOIN (SELECT * FROM VALUES {values} AS v({_listed(schema.key)})) a ON {_same(schema, "m", "a")}
        LEFT ANTI JOIN landed_rows r ON {_same(schema, "m", "r")}
        LEFT ANTI JOIN ({_later_sql(work.changelog, manifest.scn, schema)}) l ON {_same(schema, "m", "l")}
    """


def _later_sql(changelog: str, scn: int, schema: TableSchema) -> str:
    """Keys that windows or other chunks have touched above the SCN."""
    return " UNION ALL ".join(
        f"SELECT {_keys(schema, image)} FROM {delta(changelog)} WHERE {COMMIT_SCN} > {scn} AND {image} IS NOT NULL"
        for image in ("before", "after")
    )


def _replacing_sql(changelog: str, scn: int, schema: TableSchema) -> str:
    """What :func:`cdc_core.lake.merge.replace_sql` needs: each key that the chunk decides once as ``del``, and its row."""
    columns = _listed(schema.column_names, "r")
    nothing = ", ".join(
        f"r.{quote_name(column)}"
        if column in schema.key
        else f"CAST(NULL AS {spark_type(kind)}) AS {quote_name(column)}"
        for column, kind in columns_of(schema)
    )
    keys_only = ", ".join(
        f"g.{quote_name(column)}"
        if column in schema.key
        else f"CAST(NULL AS {spark_type(kind)}) AS {quote_name(column)}"
        for column, kind in columns_of(schema)
    )
    place = f"{scn}L AS {COMMIT_SCN}, {CHUNK_ORDINAL}L AS {ORDINAL}"
    return f"""
        WITH decided AS (
          SELECT r.* FROM landed_rows r
          LEFT ANTI JOIN ({_later_sql(changelog, scn, schema)}) l ON {_same(schema, "r", "l")}
        )
        SELECT {columns}, {place}, 'row' AS _cdc_kind FROM decided r
        UNION ALL SELECT {nothing}, {place}, 'del' AS _cdc_kind FROM decided r
        UNION ALL SELECT {keys_only}, {place}, 'del' AS _cdc_kind FROM gone_keys g
    """


def _report(work: TableWork, counts: list[Any], changes: int, started: float) -> TableApplied:
    """A report from MERGE's own metrics, in which a replaced row is deleted and inserted."""
    if not counts:
        return TableApplied(table=work.table, skipped=True)
    inserted, deleted = counts[0]["num_inserted_rows"], counts[0]["num_deleted_rows"]
    updated = min(inserted, deleted)
    return TableApplied(
        table=work.table,
        changes=changes,
        rows_inserted=inserted - updated,
        rows_updated=updated,
        rows_deleted=deleted - updated,
        seconds=time.monotonic() - started,
    )


def _make_landed_rows(
    session: Any, manifest: ChunkManifest, paths: Sequence[str], schema: TableSchema
) -> None:
    """Make the view ``landed_rows`` of the chunk's files with all columns of ``schema``; columns that were added later have
    their default, those that are left out now are NULL."""
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
        session.sql(f"SELECT {columns} FROM landed").createOrReplaceTempView("landed_rows")


def _change_columns(
    op: str, name: str, scn: int, schema: TableSchema, *, before: str, after: str, absent: str
) -> str:
    """The change log's columns for a row of a snapshot; ``name`` is that of the chunk."""
    values = {
        "_cdc_op": string_literal(op),
        COMMIT_SCN: f"{scn}L",
        ORDINAL: f"{CHUNK_ORDINAL}L",
        "_cdc_scn": f"{scn}L",
        "_cdc_window": f"{scn}L",
        "_cdc_snapshot": string_literal(name),
        "_cdc_absent": absent,
        "_cdc_before_absent": absent,
        "_cdc_columns": str(len(schema.columns)),
    }
    plain = ", ".join(
        f"CAST({values.get(column, 'NULL')} AS {spark_type(kind)}) AS {column}"
        for column, kind in CHANGE_FIELDS
    )
    return f"{plain}, {before} AS before, {after} AS after"


def _read_rows_sql(name: str, scn: int, schema: TableSchema) -> str:
    """``r`` rows for the chunk's rows."""
    columns = _change_columns(
        "r",
        name,
        scn,
        schema,
        before=f"CAST(NULL AS {_image_type(schema)})",
        after=_image({column: quote_name(column) for column in schema.column_names}, schema),
        absent="ARRAY()",
    )
    return f"SELECT {columns} FROM landed_rows"


def _gone_rows_sql(name: str, scn: int, schema: TableSchema) -> str:
    """``d`` rows for the keys in ``gone_keys``; they carry the key alone."""
    others = [column for column in schema.column_names if column not in schema.key]
    columns = _change_columns(
        "d",
        name,
        scn,
        schema,
        before=_image({key: quote_name(key) for key in schema.key}, schema),
        after=f"CAST(NULL AS {_image_type(schema)})",
        absent=f"ARRAY({', '.join(map(string_literal, others))})",
    )
    return f"SELECT {columns} FROM gone_keys"


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


def _listed(columns: Sequence[str], alias: str | None = None) -> str:
    prefix = f"{alias}." if alias else ""
    return ", ".join(f"{prefix}{quote_name(column)}" for column in columns)


def _same(schema: TableSchema, one: str, other: str) -> str:
    return " AND ".join(
        f"{one}.{quote_name(key)} = {other}.{quote_name(key)}" for key in schema.key
    )
