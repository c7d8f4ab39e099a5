"""Which rows of a mirror have keys that Oracle does not have any more, as a snapshot found it, and
how do they go?

Only the finished snapshot knows: :func:`delete_missing_keys` deletes the mirror's rows whose keys
no chunk has, by one anti-join, for any type of key. Its deletions are ``d`` rows of the snapshot in
the change log, so that the log alone still gives the mirror.

*Why it is right.* Every row that was there lies in the range of one chunk, and that chunk was read
as of its own SCN. Let L be the lowest of these SCNs. A mirror row goes only if its last change, and
every change of its key in the change log, is at or below L. If it is still there at the SCN of the
chunk that should have it, that chunk has it. If not, then either it was gone at L: then it must go.
Or it was deleted, or moved into another chunk's range, between L and that SCN: then the log has
that change above L, and the windows bring it: a delete finds nothing left to do, an insert puts the
row back. Rows with changes above L are not touched here, since the same windows clean them up. The
mirror is an image of Oracle again, as after every ad hoc snapshot, when its position has passed the
highest SCN of the chunks.

A snapshot with a condition removes nothing: that a row is not among those that fulfil the condition
may mean that it is gone, or that its values changed. A list of keys that was asked for is
different: the key decides alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.history import filesystem_of, newest_commits, read_log
from cdc_core.delta.log_files import data_file
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import ANY_TABLE, DuplicateKeyError
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.definitions.defaults import sql_literal
from cdc_core.lake.definitions.evolution import known_schema
from cdc_core.lake.mirror.merge_audit import check_removed
from cdc_core.lake.rows.logged_changes import reading_layer, rows_sql
from cdc_core.lake.rows.spark_reading import layer_sql
from cdc_core.lake.rows.staging import found_rows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    CHANGELOG_INDEXED,
    columns_of,
    delta,
    listed,
    of_image,
    quote_name,
    same_key,
    spark_type,
    string_literal,
)
from cdc_core.model.reports import MirrorWrite, TableApplied
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, change_schema, mirror_schema
from cdc_core.stage.snapshot import are_double, deletions

KEYS_IN_HAND_MAX = 1_000_000
"""Keys of up to so many rows are held in memory."""

GONE = "gone"
"""Stands for a chunk's number where the finished snapshot deletes what no chunk has."""


def delete_missing_keys(
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
    reached = max(position or 0, mirror.transactions.get(work.window_app, 0))
    metadata = work.metadata(
        "gone", max(reached, scn_lowest), snapshot=snapshot_id, chunk_scn=scn_lowest
    )
    if holds_alone(work, snapshot_id, scn_lowest, have_own_keys=True):
        if _has_double_keys(work, schema):
            raise double_keys(work, schema, "the mirror")
        return TableApplied(table=work.table, seconds=time.monotonic() - started)
    session = work.session_for()
    name = f"{snapshot_id}/{GONE}"
    found: int | None = None
    if app not in changelog.transactions:
        of_snapshot = (
            f"(SELECT {of_image(schema.key, 'after')} FROM {rows_sql(work, session, schema)}"
            f" WHERE _cdc_op = 'r' AND STARTSWITH(_cdc_snapshot, {string_literal(f'{snapshot_id}/')}))"
        )
        sql = _gone_sql(work, session, schema, scn_lowest, of_snapshot)
        with found_rows(work, session, sql, doing="looking for keys that are gone") as keys:
            found = keys.rows
            if found == 0:
                return TableApplied(table=work.table, seconds=time.monotonic() - started)
            work.append_rows(
                work.changelog,
                change_schema(schema),
                deletions(keys.batches(), name, scn_lowest, schema),
                work.info("appending deletions to the change log", metadata, (app, 1)),
                indexed=CHANGELOG_INDEXED,
                rows=found,
            )
    counts = _without(work, session, name, scn_lowest, schema, metadata, (app, 1), found)
    how = MirrorWrite("merge", "keys that no chunk has are deleted")
    return replaced_report(
        work, counts, counts[0]["num_deleted_rows"] if counts else 0, started, how
    )


def _without(
    work: TableWork,
    session: Any,
    name: str,
    scn: int,
    schema: TableSchema,
    metadata: str,
    txn: tuple[str, int],
    found: int | None,
) -> list[Any]:
    """Delete what the change log's ``d`` rows of a snapshot name from the mirror; MERGE's counts.
    ``found`` are the keys that this attempt found there, None if an earlier one did."""
    gone = of_chunk(rows_sql(work, session, schema), name, "d", schema.key)
    with work.commit(session, "deleting what is gone", metadata, txn):
        counts = list(
            session.sql(
                f"MERGE INTO {delta(work.mirror)} t USING {gone} s "
                f"ON {same_key(schema, 't', 's')} WHEN MATCHED AND t.{COMMIT_SCN} <= {scn} THEN DELETE"
            ).collect()
        )
    check_removed(counts, found, work.facts(snapshot=name))
    return counts


def of_chunk(changes: str, name: str, op: str, columns: Sequence[str]) -> str:
    """What a chunk brought (``r``) or found gone (``d``), as the change log has it: a relation of
    SQL with some columns. ``changes`` is a relation of all."""
    image = "after" if op == "r" else "before"
    return f"(SELECT {of_image(columns, image)} FROM {changes} WHERE _cdc_snapshot = {string_literal(name)} AND _cdc_op = '{op}')"


def holds_alone(
    work: TableWork,
    snapshot_id: str,
    scn: int,
    *,
    is_exact: bool = True,
    have_own_keys: bool = False,
) -> bool:
    """Does the mirror hold nothing but chunks of this snapshot that were read as of this SCN, by
    its own log from the first commit on? ``is_exact`` and ``have_own_keys`` are those of the chunk
    that is to come (:class:`~cdc_core.landing.manifest.ChunkManifest`). Chunks of one SCN never
    overlap, nor do those of which each ``have_own_keys``, so a row of one can be appended to the
    others'.

    A chunk that was appended says up to which commit this was so (``alone_at``), so that as a rule
    one commit is read, however many there are.
    """
    if truncated_scn(work, read_log(work.changelog)) > scn:
        return False
    oldest = None
    for commit in newest_commits(work.mirror):
        oldest, said = commit.version, commit.metadata
        if commit.operation == "CREATE TABLE" or said.get("kind") == "schema":
            continue
        if (said.get("kind"), said.get("snapshot")) != ("chunk", snapshot_id):
            return False
        is_of_scn = is_exact and "chunk_scn_low" not in said and said.get("chunk_scn") == scn
        if not is_of_scn and not (have_own_keys and said.get("own_keys", False)):
            return False
        if said.get("alone_at") == commit.version - 1:
            return True
    return oldest == 0


def _has_double_keys(work: TableWork, schema: TableSchema) -> bool:
    """Has the mirror, which holds appended chunks alone, a key twice? A small one is asked without
    Spark."""
    rows = count_rows(work.mirror)
    if rows is not None and rows <= KEYS_IN_HAND_MAX:
        return are_double(_keys_in_files(work, schema))
    query = f"SELECT 1 FROM {delta(work.mirror)} GROUP BY {listed(schema.key)} HAVING COUNT(*) > 1 LIMIT 1"
    with translated("looking for double keys", **work.facts()):
        return not work.session_for(rows or 0).sql(query).isEmpty()


def _keys_in_files(work: TableWork, schema: TableSchema) -> pa.Table:
    """The key columns of all rows of a mirror whose files are as they were appended."""
    from deltalake import DeltaTable

    filesystem, root = filesystem_of(work.mirror)
    with reading_layer(work, "mirror"):
        names = pa.table(DeltaTable(work.mirror).get_add_actions())["path"].to_pylist()
    kinds = pa.schema([mirror_schema(schema).field(name) for name in schema.key])
    called = work.require_mirror().file_names
    wanted = [called.of(name) for name in schema.key]
    found = []
    for name in names:
        with (
            reading_layer(work, "mirror"),
            filesystem.open_input_file(data_file(root, name)) as file,
        ):
            found.append(called.from_files(pq.read_table(file, columns=wanted)).cast(kinds))
    return pa.concat_tables([kinds.empty_table(), *found])


def double_keys(work: TableWork, schema: TableSchema, where: str) -> DuplicateKeyError:
    """The error where the key is none; it names columns, never values."""
    return DuplicateKeyError(
        "two rows have one key, so the key does not say which row a change is about",
        hint="Name columns under the table's key that are unique, or make the key a validated PRIMARY KEY in Oracle; "
        f"then `redolake table resnapshot --fresh {ANY_TABLE}` reads it into new Delta tables.",
        **work.facts(key=", ".join(schema.key), rows=where),
    )


def _mirror_sql(work: TableWork, session: Any, schema: TableSchema) -> str:
    """The mirror's keys and positions, as a relation of SQL."""
    columns = mirror_schema(schema)
    columns = pa.schema([columns.field(name) for name in (*schema.key, COMMIT_SCN, ORDINAL)])
    return layer_sql(work, session, "mirror", columns)


def _gone_sql(
    work: TableWork,
    session: Any,
    schema: TableSchema,
    scn: int,
    found: str,
    asked: str | None = None,
) -> str:
    """Keys of the mirror, among those that were ``asked`` for, that were not ``found`` and that
    nothing above the SCN has touched. Both are relations of SQL."""
    among = f"LEFT SEMI JOIN {asked} a ON {same_key(schema, 'm', 'a')}" if asked else ""
    later = later_sql(rows_sql(work, session, schema), scn, schema)
    return f"""
        SELECT DISTINCT {listed(schema.key, "m")} FROM {_mirror_sql(work, session, schema)} m
        {among} LEFT ANTI JOIN {found} r ON {same_key(schema, "m", "r")}
        LEFT ANTI JOIN ({later}) l ON {same_key(schema, "m", "l")}
        WHERE m.{COMMIT_SCN} <= {scn}
    """


def asked_keys(
    work: TableWork,
    scn: int,
    schema: TableSchema,
    landed: pa.Table,
    asked: Sequence[Sequence[Any]],
) -> pa.Table:
    """Keys that were asked for, that the mirror has and the ``landed`` rows of a chunk as of the
    SCN lack, and that nothing later has touched."""
    session = work.session_for()
    found = _values_sql([tuple(row.values()) for row in landed.to_pylist()], schema)
    sql = _gone_sql(work, session, schema, scn, found, _values_sql(asked, schema))
    with translated("looking for keys that are gone", **work.facts()):
        return session.sql(sql).toArrow()


def _values_sql(keys: Sequence[Sequence[Any]], schema: TableSchema) -> str:
    """Keys as a relation of SQL."""
    kinds = dict(columns_of(schema))
    if not keys:
        nulls = ", ".join(
            f"CAST(NULL AS {spark_type(kinds[key])}) AS {quote_name(key)}" for key in schema.key
        )
        return f"(SELECT {nulls} WHERE FALSE)"
    values = ", ".join(
        "("
        + ", ".join(
            sql_literal(value, kinds[key]) for key, value in zip(schema.key, row, strict=True)
        )
        + ")"
        for row in keys
    )
    return f"(SELECT * FROM VALUES {values} AS v({listed(schema.key)}))"


def later_sql(changes: str, scn: int, schema: TableSchema) -> str:
    """Keys that windows or other chunks have touched above the SCN."""
    return " UNION ALL ".join(
        f"SELECT {of_image(schema.key, image)} FROM {changes} WHERE {COMMIT_SCN} > {scn} AND {image} IS NOT NULL"
        for image in ("before", "after")
    )


def replaced_report(
    work: TableWork,
    counts: list[Any],
    changes: int,
    started: float,
    how: MirrorWrite,
) -> TableApplied:
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
        write=how,
    )
