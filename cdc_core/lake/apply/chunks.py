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
from itertools import chain
from typing import Any

import pyarrow as pa

from cdc_core.delta.appending import CommitInfo, NewFile, remove_file, write_file
from cdc_core.delta.history import read_log
from cdc_core.lake.apply.chunk_files import LandedChunk, changelog_files, mirror_files
from cdc_core.lake.apply.emptied_partitions import refuse_older
from cdc_core.lake.apply.missing_keys import asked_keys, double_keys, holds_alone
from cdc_core.lake.apply.replacing import ReplacingRows, replaced_report
from cdc_core.lake.definitions.evolution import settle_schema
from cdc_core.lake.mirror.merge import ReplaceRule
from cdc_core.lake.mirror.write import MirrorChange, write
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import CHANGELOG_INDEXED, MIRROR_INDEXED
from cdc_core.landing.manifest import ChunkManifest, moment_of
from cdc_core.model.reports import MirrorWrite, TableApplied
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import bounds_of
from cdc_core.stage.layout import change_schema, mirror_schema
from cdc_core.stage.snapshot import ChunkRows, are_double, deletions


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
    keys = landed.keys()
    if are_double(keys):
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
    rows = ReplacingRows(work, schema, chunk.name, manifest.scn, chunk=chunk)
    bounds = {} if removes else bounds_of(keys)
    rule = ReplaceRule(schema)
    taken = write(work, MirrorChange(rows=rows, rule=rule, commit=info, bounds=bounds))
    return replaced_report(work, taken, manifest.rows, started)


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
