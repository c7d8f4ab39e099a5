"""How are a chunk's files for change log and mirror written while the chunk is still being read
from Oracle?

Of the batches that land: two threads write them into the folders of both Delta tables meanwhile,
and applying the chunk only commits what is there. No commit names such a file before the chunk has
landed, and none does unless the file holds what the chunk's landed files would give
(:meth:`ChunkAhead.written`); else it goes, and the chunk is applied from landing as always. A
process that dies leaves files that nothing names, which VACUUM removes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, Full, Queue

import pyarrow as pa
import pyarrow.fs as pafs

from cdc_core.delta.appending import NewFile, remove_file, write_file
from cdc_core.delta.history import DeltaLog, filesystem_of, read_log
from cdc_core.errors import CdcError
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import CHANGELOG_INDEXED, MIRROR_INDEXED
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.schema.names import need_mapping
from cdc_core.schema.table import TableSchema
from cdc_core.stage.layout import change_schema, chunk_ordinal, mirror_schema
from cdc_core.stage.snapshot import mirror_rows, read_changes
from cdc_core.stage.widths import WidthCounter, Widths

_BATCHES_HELD = 4
_WAIT_SECONDS = 0.1

Rows = Iterator[pa.RecordBatch]


class _GivenUpError(Exception):
    """Ends the writing of a file that nobody wants any more."""


@dataclass(frozen=True, slots=True)
class PrewrittenFiles:
    """Both files of a chunk, which no commit names yet (None: the chunk has no row), and how wide
    its values are."""

    changelog: NewFile | None
    mirror: NewFile | None
    widths: Widths


class ChunkAhead:
    """The files of one chunk in the making. One thread calls :meth:`write` for each batch that
    lands and :meth:`end` behind the last; whoever applies the chunk takes the files;
    :meth:`discard` removes what was not taken."""

    def __init__(
        self,
        work: TableWork,
        schema: TableSchema,
        snapshot_id: str,
        number: int,
        scn: int,
        landed: datetime | None,
        *,
        scn_high: int | None,
    ) -> None:
        self._of = (snapshot_id, number, scn, landed, scn_high)
        ordinal = chunk_ordinal(scn, scn_high)
        self._schema = schema
        self._widths = WidthCounter(schema)
        name = f"{snapshot_id}/{number}"
        columns = mirror_schema(schema)
        self._changelog = _FileAhead(
            work.changelog,
            change_schema(schema),
            CHANGELOG_INDEXED,
            lambda rows: self._widths.passing(
                read_changes(rows, name, scn, schema, landed, ordinal=ordinal)
            ),
        )
        self._mirror = _FileAhead(
            work.mirror,
            columns,
            columns.names[:MIRROR_INDEXED],
            lambda rows: mirror_rows(rows, scn, schema, ordinal=ordinal),
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the next rows, in the table's Arrow schema; waits while the files are some batches
        behind. Never raises: a file that cannot be written is not there in the end."""
        self._changelog.write(batch)
        self._mirror.write(batch)

    def end(self) -> None:
        """All rows were given."""
        self._changelog.write(None)
        self._mirror.write(None)

    def written(
        self,
        manifest: ChunkManifest,
        schema: TableSchema,
        mirrored: TableSchema,
        landed: datetime | None,
    ) -> PrewrittenFiles | None:
        """Both files, if they hold what the landed chunk gives in tables of these columns; waits
        until they are written. The caller still has to take them (:meth:`take_changelog`,
        :meth:`take_mirror`).

        Args:
            manifest: The chunk that landed.
            schema: The change log's version of the table.
            mirrored: The mirror's.
            landed: The manifest's moment, as the change log has it.
        """
        own = manifest.snapshot_id, manifest.number, manifest.scn, landed, manifest.scn_high
        if own != self._of:
            return None
        versions = (manifest.schema, schema, mirrored)
        if any(one.columns != self._schema.columns for one in versions):
            return None
        try:
            files = self._changelog.result(), self._mirror.result()
        except Exception:
            return None  # applying the chunk meets the same, and says what to do
        if any((file.rows if file else 0) != manifest.rows for file in files):
            return None
        return PrewrittenFiles(*files, self._widths.seen)

    def take_changelog(self) -> None:
        """The caller commits the change log's file."""
        self._changelog.is_taken = True

    def take_mirror(self) -> None:
        """The caller commits the mirror's file, or removes it."""
        self._mirror.is_taken = True

    def discard(self) -> None:
        """Stop writing, and remove what was not taken. May be called twice, by any thread."""
        for file in (self._changelog, self._mirror):
            file.discard()


def begin_chunk(
    work: TableWork,
    schema: TableSchema,
    snapshot_id: str,
    number: int,
    scn: int,
    landed: datetime,
    *,
    scn_high: int | None,
    holds_alone: Callable[[TableWork], bool],
) -> ChunkAhead | None:
    """Begin the files of a chunk that is about to be read; None where the mirror's file would not
    simply be appended: it has other rows, or its files have other names than the table; and where
    landing lacks a column of both tables, the digest of all values.

    Args:
        work: The table.
        schema: The version in which the chunk is read.
        snapshot_id: Its snapshot.
        number: Its number.
        scn: As of which SCN it is read.
        landed: What its manifest will say.
        scn_high: As it will say too.
        holds_alone: Does the mirror, which is there, hold nothing but chunks of this snapshot whose
            rows are none of this chunk's?
    """
    is_other = need_mapping(schema.column_names) or schema.is_by_all_columns
    if is_other or work.merges_by_spark:
        return None
    try:
        changelog, mirror = read_log(work.changelog), read_log(work.mirror)
        if not all(log is None or _is_plain(work, log) for log in (changelog, mirror)):
            return None
        if mirror is not None and not holds_alone(work):
            return None
        for path in (work.changelog, work.mirror):
            filesystem, root = filesystem_of(path)
            if isinstance(filesystem, pafs.LocalFileSystem):
                filesystem.create_dir(root)
    except (CdcError, OSError):
        return None  # applying the chunk meets the same, and says what to do
    moment = landed if "landed" in work.optional else None
    return ChunkAhead(work, schema, snapshot_id, number, scn, moment, scn_high=scn_high)


def _is_plain(work: TableWork, log: DeltaLog) -> bool:
    return (
        work.known_generation(log, work.mirror) == work.generation and not log.file_names.are_mapped
    )


class _FileAhead:
    """One file, which a thread of its own writes; the end of the process does not wait for it."""

    def __init__(
        self,
        table: str,
        schema: pa.Schema,
        indexed: Sequence[str],
        made: Callable[[Rows], Iterable[pa.RecordBatch]],
    ) -> None:
        self._table = table
        self._queue: Queue[pa.RecordBatch | None] = Queue(_BATCHES_HELD)
        self._given_up = threading.Event()
        self._lock = threading.Lock()
        self._file: Future[NewFile | None] = Future()
        self.is_taken = False

        def run() -> None:
            try:
                self._file.set_result(write_file(table, schema, made(self._rows()), indexed))
            except BaseException as error:
                self._file.set_exception(error)

        threading.Thread(target=run, name="chunk ahead", daemon=True).start()

    def write(self, batch: pa.RecordBatch | None) -> None:
        while not (self._file.done() or self._given_up.is_set()):
            try:
                self._queue.put(batch, timeout=_WAIT_SECONDS)
            except Full:
                continue
            return

    def _rows(self) -> Rows:
        while not self._given_up.is_set():
            try:
                batch = self._queue.get(timeout=_WAIT_SECONDS)
            except Empty:
                continue
            if batch is None:
                return
            yield batch
        raise _GivenUpError

    def result(self) -> NewFile | None:
        return self._file.result()

    def discard(self) -> None:
        self._given_up.set()
        with self._lock:
            if self.is_taken or self._file.exception() is not None:
                return
            file, self.is_taken = self._file.result(), True
        if file is not None:
            with suppress(CdcError):
                remove_file(self._table, file)
