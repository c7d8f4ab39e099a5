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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.history import newest_commits, read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import ANY_TABLE, DuplicateKeyError
from cdc_core.lake.apply.replacing import ReplacingRows, later_keys, replaced_report
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.definitions.evolution import known_schema
from cdc_core.lake.mirror.merge import ReplaceRule
from cdc_core.lake.mirror.write import MirrorChange, write
from cdc_core.lake.rows.logged_changes import (
    ALL_WINDOWS,
    keys_of_rows,
    mirror_parts,
    rows_sql,
)
from cdc_core.lake.rows.spark_reading import layer_sql
from cdc_core.lake.rows.staging import found_rows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    delta,
    listed,
    of_image,
    same_key,
    string_literal,
)
from cdc_core.model.reports import TableApplied
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.changes import OwnRows
from cdc_core.stage.difference import rows_of_keys, rows_of_other_keys
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema
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
    name, found = f"{snapshot_id}/{GONE}", 0
    if app not in changelog.transactions:
        with _missing_keys(work, schema, snapshot_id, scn_lowest) as (found, keys):
            if found == 0:
                return TableApplied(table=work.table, seconds=time.monotonic() - started)
            changes = deletions(keys, name, scn_lowest, schema)
            info = work.info("appending deletions to the change log", metadata, (app, 1))
            work.append_changes(schema, changes, info, rows=found)
    rows = ReplacingRows(work, schema, name, scn_lowest, there=found)
    info = work.info("deleting what is gone", metadata, (app, 1))
    rule = ReplaceRule(schema, scn_lowest)
    taken = write(work, MirrorChange(rows=rows, rule=rule, commit=info))
    return replaced_report(work, taken, None, started)


@contextmanager
def _missing_keys(
    work: TableWork, schema: TableSchema, snapshot_id: str, scn: int
) -> Iterator[tuple[int, Iterable[pa.RecordBatch]]]:
    """Keys of the mirror that no chunk of the snapshot has, and that nothing above the SCN has
    touched: how many, and they themselves."""
    if work.has_few_rows(KEYS_IN_HAND_MAX):
        there = pa.concat_tables(mirror_parts(work, _key_columns(schema), scn))
        own = _read_or_later(snapshot_id, scn)
        for keys in keys_of_rows(work, schema, own, ALL_WINDOWS):
            there = rows_of_other_keys(there, keys)
        there = _distinct(there)
        yield there.num_rows, there.to_batches()
        return
    session = work.session_for()
    sql = _gone_sql(work, session, schema, snapshot_id, scn)
    with found_rows(work, session, sql, doing="looking for keys that are gone") as found:
        yield found.rows, found.batches()


def _read_or_later(snapshot_id: str, scn: int) -> OwnRows:
    """The rows of the change log that the snapshot's chunks read, and those from behind an SCN."""

    def own(rows: pa.Table) -> pa.Array:
        is_chunks = pc.starts_with(rows["_cdc_snapshot"], pattern=f"{snapshot_id}/")
        is_read = pc.and_(pc.equal(rows["_cdc_op"], "r"), pc.fill_null(is_chunks, False))
        return pc.or_(is_read, pc.greater(rows[COMMIT_SCN], scn))

    return own


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
        return are_double(pa.concat_tables(mirror_parts(work, _key_columns(schema))))
    query = f"SELECT 1 FROM {delta(work.mirror)} GROUP BY {listed(schema.key)} HAVING COUNT(*) > 1 LIMIT 1"
    with translated("looking for double keys", **work.facts()):
        return not work.session_for(rows or 0).sql(query).isEmpty()


def _key_columns(schema: TableSchema) -> pa.Schema:
    return pa.schema([mirror_schema(schema).field(name) for name in schema.key])


def double_keys(work: TableWork, schema: TableSchema, where: str) -> DuplicateKeyError:
    """The error where the key is none; it names columns, never values."""
    return DuplicateKeyError(
        "two rows have one key, so the key does not identify the row of a change",
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
    work: TableWork, session: Any, schema: TableSchema, snapshot_id: str, scn: int
) -> str:
    """The same as :func:`_missing_keys` of a mirror of any size."""
    changes, name = rows_sql(work, session, schema), string_literal(f"{snapshot_id}/")
    read = f"_cdc_op = 'r' AND STARTSWITH(_cdc_snapshot, {name})"
    later = " UNION ALL ".join(
        f"SELECT {of_image(schema.key, image)} FROM {changes} WHERE {image} IS NOT NULL AND ({which})"
        for image, which in (
            ("before", f"{COMMIT_SCN} > {scn}"),
            ("after", f"{COMMIT_SCN} > {scn} OR ({read})"),
        )
    )
    return f"""
        SELECT DISTINCT {listed(schema.key, "m")} FROM {_mirror_sql(work, session, schema)} m
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
    kinds, values = landed.schema.types, zip(*asked, strict=True)
    columns = [pa.array(one).cast(kind) for one, kind in zip(values, kinds, strict=True)]
    found = rows_of_other_keys(pa.table(columns, schema=landed.schema), landed)
    for keys in later_keys(work, schema, scn):
        found = rows_of_other_keys(found, keys)
    return _distinct(rows_of_keys(mirror_parts(work, landed.schema, scn), found))


def _distinct(keys: pa.Table) -> pa.Table:
    return keys.group_by(keys.column_names).aggregate([]).select(keys.column_names)
