"""How is a snapshot applied to a table, chunk by chunk?

A chunk's rows go into the change log as ``r`` rows. In the mirror the apply rule decides: a key
that something later than the chunk has touched keeps that; every other key of the chunk is
*replaced*: all rows that the mirror has of it go, the chunk's row comes. A mirror that holds
nothing but chunks of this very snapshot, by Delta's own log, has no row to replace: there the rows
are appended.

Which keys Oracle does not have any more says :mod:`cdc_core.lake.apply.missing_keys`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from cdc_core.delta.appending import CommitInfo, NewFile, remove_file, write_file
from cdc_core.delta.history import read_log
from cdc_core.lake.apply.chunk_files import LandedChunk, changelog_files, mirror_files
from cdc_core.lake.apply.emptied_partitions import refuse_older
from cdc_core.lake.apply.missing_keys import (
    asked_keys,
    double_keys,
    holds_alone,
    later_sql,
    of_chunk,
    replaced_report,
)
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.definitions.evolution import settle_schema
from cdc_core.lake.mirror.merge import ReplaceRule
from cdc_core.lake.mirror.merge_audit import SentChunk
from cdc_core.lake.mirror.write import ChangeRows, MirrorChange, write
from cdc_core.lake.rows.logged_changes import rows_sql
from cdc_core.lake.rows.staging import StagedRows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    CHANGELOG_INDEXED,
    MIRROR_INDEXED,
    columns_of,
    listed,
    quote_name,
    same_key,
    spark_type,
)
from cdc_core.landing.manifest import ChunkManifest, moment_of
from cdc_core.model.reports import MirrorWrite, TableApplied
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, change_schema, mirror_schema
from cdc_core.stage.snapshot import ChunkRows, deletions


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
    mirror, changelog = work.require_mirror(), read_log(work.changelog)
    reached = max(position or 0, mirror.transactions.get(work.window_app, 0))
    metadata = _metadata(work, manifest, max(reached, manifest.read_up_to))
    landed = ChunkRows(paths, manifest.schema, schema)
    if landed.have_double_keys():
        raise double_keys(work, schema, f"chunk {manifest.number}")
    # A list of keys that was read ahead of the position says nothing of rows that windows up to its
    # SCN may still change.
    removes = bool(asked) and manifest.scn <= reached
    moment = moment_of(manifest.landed) if "landed" in work.optional else None
    chunk = LandedChunk(manifest, paths, moment)
    logged = _LoggedChunk(work, chunk, landed, schema, metadata, (app, 1))
    with _mirror_files(work, chunk, schema) as files:
        if changelog is None or app not in changelog.transactions:
            logged.append((asked or ()) if removes else ())
    if files is not None:
        info = work.info("appending a chunk to the mirror", metadata, (app, 1))
        info = info.saying(alone_at=mirror.version)
        columns = mirror_schema(schema)
        work.commit_written(work.mirror, columns, files.result(), info, rows=manifest.rows)
        return TableApplied(
            table=work.table,
            changes=manifest.rows,
            rows_inserted=manifest.rows,
            seconds=time.monotonic() - started,
            write=MirrorWrite("append", "the mirror holds this snapshot alone"),
        )
    info = work.info("replacing a chunk's keys in the mirror", metadata, (app, 1))
    rows = _ReplacingRows(work, chunk, schema)
    taken = write(work, MirrorChange(rows=rows, rule=ReplaceRule(schema), commit=info))
    return replaced_report(work, taken.counts, manifest.rows, started, taken.how)


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
        gone = asked_keys(self.work, scn, schema, self.rows.keys(), asked)
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
class _ReplacingRows(ChangeRows):
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
    said = chunk.manifest
    can_append = not work.merges_by_spark and holds_alone(
        work,
        said.snapshot_id,
        said.scn,
        is_exact=said.is_exact,
        have_own_keys=said.have_own_keys,
    )
    if not can_append:
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


def _replacing_sql(
    changes: str, name: str, scn: int, schema: TableSchema, place: str, *, is_emptied: bool
) -> str:
    """What :func:`~cdc_core.lake.mirror.merge.replace_sql` needs: each key that the chunk decides
    once as ``del``, and its row, with the columns of ``place``. Where a later TRUNCATE emptied the
    table, its rows decide nothing."""
    columns = listed(schema.column_names, "r")
    key_of = partial(_key_alone, schema)
    is_void = "WHERE FALSE" if is_emptied else ""
    landed = of_chunk(changes, name, "r", schema.column_names)
    gone = of_chunk(changes, name, "d", schema.key)
    return f"""
        WITH decided AS (
          SELECT r.* FROM {landed} r
          LEFT ANTI JOIN ({later_sql(changes, scn, schema)}) l ON {same_key(schema, "r", "l")} {is_void}
        )
        SELECT {columns}, {place}, 'row' AS _cdc_kind FROM decided r
        UNION ALL SELECT {key_of("r")}, {place}, 'del' AS _cdc_kind FROM decided r
        UNION ALL SELECT {key_of("g")}, {place}, 'del' AS _cdc_kind FROM {gone} g
    """


def _key_alone(schema: TableSchema, alias: str) -> str:
    """The columns of a relation of SQL that has the key alone: the others are NULL."""
    return ", ".join(
        f"{alias}.{quote_name(column)}"
        if column in schema.key
        else f"CAST(NULL AS {spark_type(kind)}) AS {quote_name(column)}"
        for column, kind in columns_of(schema)
    )
