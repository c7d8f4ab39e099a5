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
from itertools import chain
from typing import Any

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
from cdc_core.lake.tables import MIRROR_INDEXED
from cdc_core.landing.manifest import ChunkManifest, moment_of
from cdc_core.model.reports import MirrorWrite, TableApplied
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import bounds_of
from cdc_core.stage.layout import mirror_schema
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
    with _mirror_files(work, chunk, landed, schema) as files:
        if changelog is None or app not in changelog.transactions:
            info = work.info("appending a chunk to the change log", metadata, (app, 1))
            _log(work, chunk, landed, schema, info, (asked or ()) if removes else ())
    if files is not None:
        info = work.info("appending a chunk to the mirror", metadata, (app, 1))
        info = info.saying(alone_at=mirror.version)
        work.commit_written(work.mirror, files.result(), info, rows=manifest.rows)
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


def _log(
    work: TableWork,
    chunk: LandedChunk,
    rows: ChunkRows,
    schema: TableSchema,
    info: CommitInfo,
    asked: Sequence[Sequence[Any]],
) -> None:
    """Append the chunk's rows to the change log, whose columns ``schema`` are, in one commit; of
    keys that were ``asked`` for and that the chunk lacks, deletions too."""
    count, scn = chunk.manifest.rows, chunk.manifest.scn
    files = None if asked else changelog_files(work, chunk, schema)
    if files is not None:
        work.commit_written(work.changelog, files, info, rows=count)
        return
    changes = rows.as_changes(chunk.name, scn, chunk.moment, ordinal=chunk.ordinal)
    if asked:
        gone = asked_keys(work, scn, schema, rows.keys(), asked)
        deleted = deletions(gone.to_batches(), chunk.name, scn, schema, chunk.moment)
        changes, count = chain(changes, deleted), count + gone.num_rows
    work.append_changes(schema, changes, info, rows=count)


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
    work: TableWork, chunk: LandedChunk, rows: ChunkRows, schema: TableSchema
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
        found = rows.as_mirror(said.scn, ordinal=chunk.ordinal)
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
