"""How are a chunk's files for change log and mirror written while the chunk is still being read
from Oracle?

Of the batches that land: two threads write them into the folders of both Delta tables meanwhile,
and applying the chunk only commits what is there. No commit names such a file before the chunk has
landed, and none does unless the file holds what the chunk's landed files would give
(:meth:`ChunkPrewrite.written`); else it goes, and the chunk is applied from landing as always. A
process that dies leaves files that nothing names, which VACUUM removes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue

import pyarrow as pa
import pyarrow.fs as pafs

from cdc_core.delta.appending import NewFile, remove_file, write_file
from cdc_core.delta.history import DeltaLog, filesystem_of, read_log
from cdc_core.errors import CdcError
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import CHANGELOG_INDEXED, MIRROR_INDEXED
from cdc_core.landing.manifest import ChunkManifest, moment_of
from cdc_core.schema.names import need_mapping
from cdc_core.schema.table import TableSchema
from cdc_core.stage.layout import change_schema, chunk_ordinal, mirror_schema
from cdc_core.stage.snapshot import mirror_rows, read_changes
from cdc_core.stage.widths import WidthCounter, Widths

_SAME = ("snapshot_id", "number", "scn", "scn_high", "landed")
"""What the manifest of a chunk that has landed says as it did when its files were begun."""

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


class ChunkPrewrite:
    """The files of one chunk in the making. One thread calls :meth:`write` for each batch that
    lands and :meth:`end` behind the last; whoever applies the chunk takes the files;
    :meth:`discard` removes what was not taken."""

    def __init__(self, work: TableWork, manifest: ChunkManifest) -> None:
        self._begun = manifest
        schema, scn = manifest.schema, manifest.scn
        ordinal = chunk_ordinal(scn, manifest.scn_high)
        landed = moment_of(manifest.landed) if "landed" in work.optional else None
        self._widths = WidthCounter(schema)
        name = f"{manifest.snapshot_id}/{manifest.number}"
        columns = mirror_schema(schema)
        self._changelog = _FilePrewrite(
            work.changelog,
            change_schema(schema),
            CHANGELOG_INDEXED,
            lambda rows: self._widths.passing(
                read_changes(rows, name, scn, schema, landed, ordinal=ordinal)
            ),
        )
        self._mirror = _FilePrewrite(
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
        self, manifest: ChunkManifest, schema: TableSchema, mirrored: TableSchema
    ) -> PrewrittenFiles | None:
        """Both files, if they hold what the landed chunk gives in tables of these columns; waits
        until they are written. The caller still has to take them (:meth:`take_changelog`,
        :meth:`take_mirror`).

        Args:
            manifest: The chunk that landed.
            schema: The change log's version of the table.
            mirrored: The mirror's.
        """
        if any(getattr(manifest, one) != getattr(self._begun, one) for one in _SAME):
            return None
        versions = (manifest.schema, schema, mirrored)
        if any(one.columns != self._begun.schema.columns for one in versions):
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
    manifest: ChunkManifest,
    *,
    can_append: Callable[[TableWork, ChunkManifest], bool],
) -> ChunkPrewrite | None:
    """Begin the files of a chunk that is about to be read; None where the mirror's file would not
    simply be appended: it has other rows, or its files have other names than the table; and where
    landing lacks a column of both tables, the digest of all values.

    Args:
        work: The table.
        manifest: The chunk.
        can_append: Can its rows be appended to the mirror, which is there?
    """
    schema = manifest.schema
    is_other = need_mapping(schema.column_names) or schema.is_by_all_columns
    if is_other or work.merges_by_spark:
        return None
    try:
        changelog, mirror = read_log(work.changelog), read_log(work.mirror)
        if not all(log is None or _is_plain(work, log) for log in (changelog, mirror)):
            return None
        if mirror is not None and not can_append(work, manifest):
            return None
        for path in (work.changelog, work.mirror):
            filesystem, root = filesystem_of(path)
            if isinstance(filesystem, pafs.LocalFileSystem):
                filesystem.create_dir(root)
    except (CdcError, OSError):
        return None  # applying the chunk meets the same, and says what to do
    return ChunkPrewrite(work, manifest)


def _is_plain(work: TableWork, log: DeltaLog) -> bool:
    return (
        work.known_generation(log, work.mirror) == work.generation and not log.file_names.are_mapped
    )


class _FilePrewrite:
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
