"""How is a snapshot applied to a table, chunk by chunk?

A chunk's rows go into the change log as ``r`` rows. In the mirror the apply rule decides: a key
that something later than the chunk has touched keeps that; every other key of the chunk is
*replaced*: all rows that the mirror has of it go, the chunk's row comes. A mirror that holds
nothing but chunks of this very snapshot, by Delta's own log, has no row to replace: there the rows
are appended.

**Keys that are gone.** Which keys Oracle does not have any more, only the finished snapshot knows:
:func:`delete_missing_keys` deletes the mirror's rows whose keys no chunk has, by one anti-join, for
any type of key. Its deletions are ``d`` rows of the snapshot in the change log, so that the log
alone still gives the mirror.

*Why it is right.* Every row that was there lies in the range of one chunk, and that chunk was read
as of its own SCN. Let L be the lowest of these SCNs. A mirror row goes only if its last change, and
every change of its key in the change log, is at or below L. If it is still there at the SCN of the
chunk that should have it, that chunk has it. If not, then either it was gone at L: then it must go.
Or it was deleted, or moved into another chunk's range, between L and that SCN: then the log has
that
change above L, and the windows bring it: a delete finds nothing left to do, an insert puts the row
back. Rows with changes above L are not touched here, since the same windows clean them up. The
mirror is an image of Oracle again, as after every ad hoc snapshot, when its position has passed the
highest SCN of the chunks.

A snapshot with a condition removes nothing: that a row is not among those that fulfil the condition
may mean that it is gone, or that its values changed. A list of keys that was asked for is
different: the key decides alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.appending import CommitInfo, NewFile, remove_file, write_file
from cdc_core.delta.history import filesystem_of, newest_commits, read_log
from cdc_core.delta.log_files import data_file
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import ANY_TABLE, DuplicateKeyError
from cdc_core.lake.apply.chunk_files import LandedChunk, changelog_files, mirror_files
from cdc_core.lake.apply.emptied_partitions import refuse_older
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.definitions.defaults import sql_literal
from cdc_core.lake.definitions.evolution import in_mirror, known_schema, settle_schema
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.merge import ReplaceRule
from cdc_core.lake.mirror.merge_audit import SentChunk, check_removed
from cdc_core.lake.mirror.write import MirrorChange, write
from cdc_core.lake.rows.logged_changes import reading_layer, rows_sql
from cdc_core.lake.rows.spark_reading import layer_sql
from cdc_core.lake.rows.staging import StagedRows, found_rows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    CHANGELOG_INDEXED,
    MIRROR_INDEXED,
    columns_of,
    delta,
    quote_name,
    spark_type,
    string_literal,
)
from cdc_core.landing.manifest import ChunkManifest, moment_of
from cdc_core.model.reports import MirrorWrite, TableApplied
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.layout import (
    COMMIT_SCN,
    ORDINAL,
    change_schema,
    mirror_schema,
)
from cdc_core.stage.snapshot import ChunkRows, are_double, deletions

KEYS_IN_HAND_MAX = 1_000_000
"""Keys of up to so many rows are held in memory."""

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
    if position is not None:
        work.require_tables()
    refuse_older(work, manifest.scn, "a chunk")
    work.create_tables(manifest.schema)
    # The tables may have columns that the chunk lacks, if it was read before they were added; or
    # the other way round.
    schema = settle_schema(work, manifest.schema)
    mirrored = in_mirror(work, schema)
    mirror, changelog = work.require_mirror(), read_log(work.changelog)
    reached = max(position or 0, mirror.transactions.get(work.window_app, 0))
    metadata = _metadata(work, manifest, max(reached, manifest.read_up_to))
    landed = ChunkRows(paths, manifest.schema, schema)
    if landed.have_double_keys():
        raise _double_keys(work, schema, f"chunk {manifest.number}")
    # A list of keys that was read ahead of the position says nothing of rows that windows up to its
    # SCN may still change.
    removes = bool(asked) and manifest.scn <= reached
    moment = moment_of(manifest.landed) if "landed" in work.optional else None
    chunk = LandedChunk(manifest, paths, moment)
    logged = _LoggedChunk(work, chunk, landed, schema, metadata, (app, 1))
    with _mirror_files(work, chunk, mirrored) as files:
        if changelog is None or app not in changelog.transactions:
            logged.append((asked or ()) if removes else ())
    if files is not None:
        info = work.info("appending a chunk to the mirror", metadata, (app, 1))
        info = info.saying(alone_at=mirror.version)
        columns = mirror_schema(mirrored)
        work.commit_written(work.mirror, columns, files.result(), info, rows=manifest.rows)
        return TableApplied(
            table=work.table,
            changes=manifest.rows,
            rows_inserted=manifest.rows,
            seconds=time.monotonic() - started,
            write=MirrorWrite("append", "the mirror holds this snapshot alone"),
        )
    info = work.info("replacing a chunk's keys in the mirror", metadata, (app, 1))
    rows = _ReplacingRows(work, chunk, mirrored)
    taken = write(work, MirrorChange(rows=rows, rule=ReplaceRule(mirrored), commit=info))
    return _report(work, taken.counts, manifest.rows, started, taken.how)


@dataclass(frozen=True, slots=True)
class _LoggedChunk:
    """A chunk on its way into the change log, whose columns ``schema`` are; ``rows`` has all of
    them."""

    work: TableWork
    chunk: LandedChunk
    rows: ChunkRows
    schema: TableSchema
    metadata: str
    txn: tuple[str, int]

    def append(self, asked: Sequence[Sequence[Any]]) -> None:
        """Append the chunk's rows in one commit; of keys that were ``asked`` for and that the chunk
        lacks, deletions too."""
        work, manifest, columns = self.work, self.chunk.manifest, change_schema(self.schema)
        files = None if asked else changelog_files(work, self.chunk, self.schema)
        if files is not None:
            work.commit_written(work.changelog, columns, files, self._info, rows=manifest.rows)
            return
        changes, count = self._encoded(asked)
        work.append_rows(
            work.changelog, columns, changes, self._info, indexed=CHANGELOG_INDEXED, rows=count
        )

    def _encoded(self, asked: Sequence[Sequence[Any]]) -> tuple[Iterator[pa.RecordBatch], int]:
        """The rows of the change log, and how many there are."""
        chunk, schema, scn = self.chunk, self.schema, self.chunk.manifest.scn
        rows = self.rows.as_changes(chunk.name, scn, chunk.moment, ordinal=chunk.ordinal)
        if not asked:
            return rows, chunk.manifest.rows
        gone = _asked_keys(self.work, chunk.manifest, schema, self.rows.keys(), asked)
        deleted = deletions(gone.to_batches(), chunk.name, scn, schema, chunk.moment)
        return chain(rows, deleted), chunk.manifest.rows + gone.num_rows

    @property
    def _info(self) -> CommitInfo:
        return self.work.info("appending a chunk to the change log", self.metadata, self.txn)


def _metadata(work: TableWork, manifest: ChunkManifest, scn_high: int) -> str:
    return work.metadata(
        "chunk",
        scn_high,
        snapshot=manifest.snapshot_id,
        number=manifest.number,
        chunk_scn=manifest.read_up_to,
        rows=manifest.rows,
        **({} if manifest.is_exact else {"chunk_scn_low": manifest.scn}),
        **({"own_keys": True} if manifest.have_own_keys else {}),
    )


@dataclass(frozen=True, slots=True)
class _ReplacingRows:
    """The rows of a chunk that is in the change log, and the keys whose rows they replace."""

    work: TableWork
    chunk: LandedChunk
    schema: TableSchema

    @property
    def count(self) -> int:
        """The chunk's rows."""
        return self.chunk.manifest.rows

    @property
    def why_spark(self) -> str:
        """Why Spark alone can merge them."""
        return "the mirror may have rows of the chunk's keys"

    def inserted(self, mirror: MirrorFiles, covered_scn: int) -> None:
        """Whoever can append does so before."""
        del mirror, covered_scn

    def in_hand(self, mirror: MirrorFiles) -> None:
        """The change log says what later changes have touched, and Spark asks it."""
        del mirror

    @contextmanager
    def staged(self, work: TableWork) -> Iterator[StagedRows]:
        """All of them for a MERGE."""
        session, chunk, schema = work.session_for(), self.chunk, self.schema
        scn = chunk.manifest.scn
        emptied = truncated_scn(work, read_log(work.changelog))
        place = f"{scn}L AS {COMMIT_SCN}, {chunk.ordinal}L AS {ORDINAL}"
        changes = rows_sql(work, session, schema)
        sql = _replacing_sql(changes, chunk.name, scn, schema, place, is_emptied=emptied > scn)
        with translated("reducing a chunk", **work.facts()):
            # MERGE looks at its source several times, and the rows are counted before; it shall be
            # computed once.
            frame = session.sql(sql).localCheckpoint()
            sent = SentChunk.of_frame(frame, schema, chunk.manifest.rows, work.facts())
        yield StagedRows(frame, sent)


@contextmanager
def _mirror_files(
    work: TableWork, chunk: LandedChunk, schema: TableSchema
) -> Iterator[Future[Sequence[NewFile]] | None]:
    """The files to append to the mirror; rows that have to be encoded are while the block appends
    to the change log. None if the rows cannot be appended. If the block ends with an error, the
    files are removed: no commit names them yet."""
    if work.merges_by_spark or not can_append(work, chunk.manifest):
        yield None
        return

    def encoded() -> Sequence[NewFile]:
        columns = mirror_schema(schema)
        found = ChunkRows(chunk.paths, chunk.manifest.schema, schema).as_mirror(
            chunk.manifest.scn, ordinal=chunk.ordinal
        )
        file = write_file(work.mirror, columns, found, columns.names[:MIRROR_INDEXED])
        return () if file is None else (file,)

    placed = mirror_files(work, chunk, schema)
    with ThreadPoolExecutor(1, thread_name_prefix="mirror") as pool:
        files: Future[Sequence[NewFile]]
        files = pool.submit(encoded if placed is None else lambda: placed)
        try:
            yield files
        except BaseException:
            if files.exception() is None:
                for left in files.result():
                    remove_file(work.mirror, left)
            raise


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
            raise _double_keys(work, schema, "the mirror")
        return TableApplied(table=work.table, seconds=time.monotonic() - started)
    session = work.session_for()
    name = f"{snapshot_id}/{GONE}"
    found: int | None = None
    if app not in changelog.transactions:
        changes = rows_sql(work, session, schema)
        there = _mirror_sql(work, session, schema)
        sql = _gone_sql(there, changes, snapshot_id, scn_lowest, schema)
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
    return _report(work, counts, counts[0]["num_deleted_rows"] if counts else 0, started, how)


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
    on = " AND ".join(f"t.{quote_name(key)} = s.{quote_name(key)}" for key in schema.key)
    gone = _of_chunk(rows_sql(work, session, schema), name, "d", schema.key)
    with work.commit(session, "deleting what is gone", metadata, txn):
        counts = list(
            session.sql(
                f"MERGE INTO {delta(work.mirror)} t USING {gone} s "
                f"ON {on} WHEN MATCHED AND t.{COMMIT_SCN} <= {scn} THEN DELETE"
            ).collect()
        )
    check_removed(counts, found, work.facts(snapshot=name))
    return counts


def _of_chunk(changes: str, name: str, op: str, columns: Sequence[str]) -> str:
    """What a chunk brought (``r``) or found gone (``d``), as the change log has it: a relation of
    SQL with some columns. ``changes`` is a relation of all."""
    image = "after" if op == "r" else "before"
    listed = ", ".join(
        f"{image}.{quote_name(column)} AS {quote_name(column)}" for column in columns
    )
    return f"(SELECT {listed} FROM {changes} WHERE _cdc_snapshot = {string_literal(name)} AND _cdc_op = '{op}')"


def can_append(work: TableWork, manifest: ChunkManifest) -> bool:
    """Can a chunk's rows be appended to the mirror, since none of them is there?"""
    return holds_alone(
        work,
        manifest.snapshot_id,
        manifest.scn,
        is_exact=manifest.is_exact,
        have_own_keys=manifest.have_own_keys,
    )


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
    query = f"SELECT 1 FROM {delta(work.mirror)} GROUP BY {_listed(schema.key)} HAVING COUNT(*) > 1 LIMIT 1"
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


def _double_keys(work: TableWork, schema: TableSchema, where: str) -> DuplicateKeyError:
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


def _gone_sql(mirror: str, changes: str, snapshot_id: str, scn: int, schema: TableSchema) -> str:
    """Keys of the mirror that no chunk of the snapshot has, and that nothing above the SCN has
    touched. ``mirror`` and ``changes`` are relations of SQL."""
    found = (
        f"SELECT {_keys(schema, 'after')} FROM {changes} "
        f"WHERE _cdc_op = 'r' AND STARTSWITH(_cdc_snapshot, {string_literal(snapshot_id + '/')})"
    )
    return f"""
        SELECT DISTINCT {_listed(schema.key, "m")} FROM {mirror} m
        LEFT ANTI JOIN ({found}) r ON {_same(schema, "m", "r")}
        LEFT ANTI JOIN ({_later_sql(changes, scn, schema)}) l ON {_same(schema, "m", "l")}
        WHERE m.{COMMIT_SCN} <= {scn}
    """


def _asked_keys(
    work: TableWork,
    manifest: ChunkManifest,
    schema: TableSchema,
    landed: pa.Table,
    asked: Sequence[Sequence[Any]],
) -> pa.Table:
    """Keys that were asked for, that the mirror has and the chunk lacks, and that nothing later has
    touched."""
    found, session = [tuple(row.values()) for row in landed.to_pylist()], work.session_for()
    later = _later_sql(rows_sql(work, session, schema), manifest.scn, schema)
    mirror = _mirror_sql(work, session, schema)
    sql = f"""
        SELECT DISTINCT {_listed(schema.key, "m")} FROM {mirror} m
        LEFT SEMI JOIN {_values_sql(asked, schema)} a ON {_same(schema, "m", "a")}
        LEFT ANTI JOIN {_values_sql(found, schema)} r ON {_same(schema, "m", "r")}
        LEFT ANTI JOIN ({later}) l ON {_same(schema, "m", "l")}
    """
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
    return f"(SELECT * FROM VALUES {values} AS v({_listed(schema.key)}))"


def _later_sql(changes: str, scn: int, schema: TableSchema) -> str:
    """Keys that windows or other chunks have touched above the SCN."""
    return " UNION ALL ".join(
        f"SELECT {_keys(schema, image)} FROM {changes} WHERE {COMMIT_SCN} > {scn} AND {image} IS NOT NULL"
        for image in ("before", "after")
    )


def _replacing_sql(
    changes: str, name: str, scn: int, schema: TableSchema, place: str, *, is_emptied: bool
) -> str:
    """What :func:`~cdc_core.lake.mirror.merge.replace_sql` needs: each key that the chunk decides
    once as ``del``, and its row, with the columns of ``place``. Where a later TRUNCATE emptied the
    table, its rows decide nothing."""
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
    is_void = "WHERE FALSE" if is_emptied else ""
    landed = _of_chunk(changes, name, "r", schema.column_names)
    gone = _of_chunk(changes, name, "d", schema.key)
    return f"""
        WITH decided AS (
          SELECT r.* FROM {landed} r
          LEFT ANTI JOIN ({_later_sql(changes, scn, schema)}) l ON {_same(schema, "r", "l")} {is_void}
        )
        SELECT {columns}, {place}, 'row' AS _cdc_kind FROM decided r
        UNION ALL SELECT {nothing}, {place}, 'del' AS _cdc_kind FROM decided r
        UNION ALL SELECT {keys_only}, {place}, 'del' AS _cdc_kind FROM {gone} g
    """


def _report(
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


def _keys(schema: TableSchema, image: str) -> str:
    return ", ".join(f"{image}.{quote_name(key)} AS {quote_name(key)}" for key in schema.key)


def _listed(columns: Sequence[str], alias: str | None = None) -> str:
    prefix = f"{alias}." if alias else ""
    return ", ".join(f"{prefix}{quote_name(column)}" for column in columns)


def _same(schema: TableSchema, one: str, other: str) -> str:
    return " AND ".join(
        f"{one}.{quote_name(key)} = {other}.{quote_name(key)}" for key in schema.key
    )
