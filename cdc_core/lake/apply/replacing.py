"""How do rows come in the place of whatever a mirror has of their keys? Those of a chunk, and none
for keys that a finished snapshot found gone.

A key that something later has touched keeps that. Which keys that are, the files of the change log
say that hold such changes; no Spark is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.delta.history import read_log
from cdc_core.lake.apply.chunk_files import LandedChunk
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.mirror.copy_on_write import PORTION_BYTES
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.merge_audit import SentReplacement
from cdc_core.lake.mirror.write import ChangeRows, MirrorCommit
from cdc_core.lake.rows.logged_changes import ALL_WINDOWS, keys_of_rows
from cdc_core.lake.rows.staging import StagedRows, staged_rows
from cdc_core.lake.table_context import TableWork
from cdc_core.model.reports import TableApplied
from cdc_core.schema.table import TableSchema
from cdc_core.stage.difference import rows_of_other_keys
from cdc_core.stage.layout import COMMIT_SCN, mirror_schema
from cdc_core.stage.snapshot import ChunkRows, replacing

ROWS_IN_HAND_MAX = 1_000_000
"""So many rows are brought into a mirror without Spark, …"""

BYTES_IN_HAND_MAX = 256 * 1024 * 1024
"""… of so many bytes."""


@dataclass(frozen=True, slots=True)
class ReplacingRows(ChangeRows):
    """The rows of a chunk that is in the change log, and the keys whose rows they replace: its own,
    and those that the change log says are gone. Without a ``chunk`` the latter alone, of a finished
    snapshot; the mirror has so many of them at least (``there``)."""

    work: TableWork
    schema: TableSchema
    name: str
    scn: int
    chunk: LandedChunk | None = None
    there: int = 0

    @property
    def count(self) -> int:
        """The chunk's rows, or the keys that are gone."""
        return self.there if self.chunk is None else self.chunk.manifest.rows

    @property
    def why_spark(self) -> str | None:
        size = 0 if self.chunk is None else sum(map(_bytes_of, self.chunk.paths))
        is_much = self.count > ROWS_IN_HAND_MAX or size > BYTES_IN_HAND_MAX
        return f"{self.count:,} rows are replaced" if is_much else None

    def in_hand(self, mirror: MirrorFiles) -> tuple[pa.Table, SentReplacement]:
        del mirror
        sent = self._audit()
        return pa.concat_tables(sent.counting(self._parts())), sent

    def staged(self, work: TableWork) -> AbstractContextManager[StagedRows]:
        sent, session = self._audit(), work.session_for(self.count)
        return staged_rows(work, session, sent.counting(self._parts()), sent)

    def _audit(self) -> SentReplacement:
        landed = 0 if self.chunk is None else self.chunk.manifest.rows
        return SentReplacement(self.schema, self.work.facts(), landed=landed, there=self.there)

    def _parts(self) -> Iterator[pa.Table]:
        """The rows that nothing later has touched, and the keys, as ``stage.snapshot.replacing``
        has them, portion by portion, one at least."""
        columns = mirror_schema(self.schema)
        kinds = pa.schema([columns.field(name) for name in self.schema.key])
        found = (keys.cast(kinds) for keys in self._gone())
        gone = pa.concat_tables([kinds.empty_table(), *found])
        for rows in _portions(self._rows(), columns):
            later = later_keys(self.work, self.schema, self.scn) if rows.num_rows else ()
            for keys in later:
                rows = rows_of_other_keys(rows, keys)
            yield replacing(rows, gone, self.schema)
            gone = kinds.empty_table()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        """The chunk's rows; where a later TRUNCATE emptied the table, they decide nothing."""
        chunk = self.chunk
        if chunk is None or truncated_scn(self.work, read_log(self.work.changelog)) > self.scn:
            return iter(())
        rows = ChunkRows(chunk.paths, chunk.manifest.schema, self.schema)
        return rows.as_mirror(self.scn, ordinal=chunk.ordinal)

    def _gone(self) -> Iterator[pa.Table]:
        def own(rows: pa.Table) -> pa.Array:
            is_gone = pc.equal(rows["_cdc_op"], "d")
            return pc.and_(pc.equal(rows["_cdc_snapshot"], self.name), is_gone)

        return keys_of_rows(self.work, self.schema, own, (self.scn, self.scn))


def later_keys(work: TableWork, schema: TableSchema, scn: int) -> Iterator[pa.Table]:
    """The keys that windows or other chunks have touched above the SCN."""

    def own(rows: pa.Table) -> pa.Array:
        return pc.greater(rows[COMMIT_SCN], scn)

    return keys_of_rows(work, schema, own, (scn + 1, ALL_WINDOWS[1]))


def _portions(rows: Iterable[pa.RecordBatch], columns: pa.Schema) -> Iterator[pa.Table]:
    """The rows in tables that are not large, one at least."""
    held: list[pa.RecordBatch] = []
    for batch in rows:
        held.append(batch)
        if sum(one.nbytes for one in held) >= PORTION_BYTES:
            yield pa.Table.from_batches(held, columns)
            held = []
    yield pa.Table.from_batches(held, columns)


def _bytes_of(path: str) -> int:
    """Of the rows of a Parquet file, before they were compressed."""
    found = pq.read_metadata(path)
    return sum(found.row_group(group).total_byte_size for group in range(found.num_row_groups))


def replaced_report(
    work: TableWork, taken: MirrorCommit, changes: int | None, started: float
) -> TableApplied:
    """A report of rows that were replaced, each of which is deleted and inserted; ``changes`` are
    those that went where nobody else counted."""
    if not taken.counts:
        return TableApplied(table=work.table, skipped=True)
    [counts] = taken.counts
    inserted, deleted = counts["num_inserted_rows"], counts["num_deleted_rows"]
    updated = min(inserted, deleted)
    return TableApplied(
        table=work.table,
        changes=deleted if changes is None else changes,
        rows_inserted=inserted - updated,
        rows_updated=updated,
        rows_deleted=deleted - updated,
        seconds=time.monotonic() - started,
        write=taken.how,
    )
