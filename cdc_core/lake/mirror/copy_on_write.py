"""When is a window merged into its mirror without Spark? When the files that can have its keys are
small, or may have deletion vectors: then they are written anew, or rows of them marked.

That is MERGE by columns: of the files between whose bounds a key of the window lies, those of which
a row changes are written into new files together with the rows that are new, and one commit
exchanges them, right behind the version that was read or not at all. Files are taken in the order
of their keys and stay small, so that a window of other keys finds few to write: small ones are put
together, large ones cut. Rows pass in batches; what is held is the window's rows, one per key, and
by row of the mirror that changes its place and the number of the row that changes it.

Where deletion vectors are switched on, a file stays, its vector names the rows that change too, and
they come with the new ones (:func:`plan_files`).

Measured (CPU seconds, 19 columns, two busy cores, all warm) beside a MERGE without deletion
vectors: one change in 1 million rows (36 MiB) 0.2 against 3.0, 1,000 random ones 1.0 against 5.8;
in 3 million rows (83 MiB) 2.7 against 12.5. It grows by 30 ms for each MiB that is written.
With vectors it grows by the key columns that are read: ``benchmarks/growth.py`` measures that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.delta.appending import (
    CommitInfo,
    FileChanges,
    MarkedFile,
    NewFile,
    OldFile,
    commit_files,
    make_durable,
    remove_file,
    write_file,
)
from cdc_core.delta.commits import (
    GUARD_FEATURE,
    PLAIN_FEATURES,
    PLAIN_WRITER_VERSIONS,
    VECTORS_FEATURE,
    takes_commits,
    takes_vectors,
)
from cdc_core.delta.deletion_vectors import (
    Deleted,
    Places,
    VectorFile,
    places_of,
    with_places,
    write_vectors,
)
from cdc_core.delta.history import filesystem_of, read_log
from cdc_core.lake.mirror.files import KEYS_READ_MAX, MirrorFiles, are_own_names, without
from cdc_core.lake.mirror.merge import counts_as_metadata
from cdc_core.lake.mirror.merge_audit import check_written
from cdc_core.lake.tables import MIRROR_INDEXED
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import Bounds, Rows
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema
from cdc_core.stage.merge import Effects, Merge

ROWS_MAX = 5_000_000
"""So many rows are looked through at most: ten bytes of each are held until they are written, and
the keys of one file."""

PORTION_BYTES = 64 * 1024 * 1024
"""A new file gets so many bytes as Arrow holds them; Parquet takes a fourth or a fifth of that."""

_BATCH_ROWS = 16_384
"""So many rows of a file are read at once: few, since the writer holds two row groups. Fewer of
rows that are long …"""
_BATCH_BYTES = 16 * 1024 * 1024
"""… since about so many bytes are read at once."""

_KEYS_AT_ONCE = 262_144
"""So many rows of key columns."""

_THREADS = 2

MARKED_SHARE = 8
"""Where deletion vectors are switched on and delta-rs has to commit, which writes none, files are
written anew up to this part of the size only.
Measured: a MERGE that marks rows takes 4 CPU seconds and more, 16 MiB are written anew in half a
second; beyond that, each window leaves more files behind than a user of vectors expects."""

DELETED_SHARE_MAX = 0.2
"""A file of which more rows would be deleted is written anew: with less, some five rows are written
for each that changes …"""

REWRITTEN_BYTES_MAX = 32 * 1024 * 1024
"""… and of such files no more than this at once, or one: after the same windows all of a mirror's
files have the same share."""

SMALL_BYTES = 16 * 1024 * 1024
"""Files of up to so many bytes are put together with new rows."""

_OTHERS = ("delta.constraints.", "delta.columnMapping.")
_SET = ("delta.appendOnly", "delta.enableChangeDataFeed", "delta.enableRowTracking")


def why_merged(
    mirror: MirrorFiles, schema: TableSchema, bounds: Bounds, bytes_max: int
) -> str | None:
    """Why a window must be merged by Spark; None where the mirror's files can be written anew.

    What delta-rs refuses, or writes without what the feature asks for, is Spark's. Measured with
    deltalake 1.6: its ``remove`` actions name no deletion vector, so that the rows of such a file
    would be there twice (our own commits name it); it refuses clustering and row tracking, and
    writes past change data, constraints and invariants without an error.

    Args:
        mirror: The mirror.
        schema: The table.
        bounds: Between which values the window's keys lie.
        bytes_max: So many bytes of files may be written anew.
    """
    files = files_near(mirror, bounds)
    names, size = files["path"].to_pylist(), pc.sum(files["size_bytes"]).as_py() or 0
    if (reason := _why_not_ours(mirror, schema, files)) is not None:
        return reason
    rows = pc.sum(files["num_records"]).as_py() or 0
    if marks_rows(mirror, names):
        return f"its files have many rows: {rows}" if rows > KEYS_READ_MAX else None
    if size > bytes_max // (MARKED_SHARE if mirror.has_vectors_on else 1):
        return f"its files have {size} bytes"
    if rows > ROWS_MAX:
        return f"its files have many rows: {rows}"
    has_vectors = mirror.have_vectors(names) and not _takes_vectors(mirror, names)
    return "its files have deletion vectors" if has_vectors else None


def why_rewritten_by_spark(mirror: MirrorFiles, schema: TableSchema, bytes_max: int) -> str | None:
    """Why all files of a mirror must be written anew by Spark; None where this process can, of at
    most so many bytes."""
    size = pc.sum(mirror.files["size_bytes"]).as_py() or 0
    if (reason := _why_not_ours(mirror, schema, mirror.files)) is not None:
        return reason
    names = mirror.files["path"].to_pylist()
    if mirror.have_vectors(names) and not _takes_vectors(mirror, names):
        return "its files have deletion vectors"
    return f"its files have {size} bytes" if size > bytes_max else None


def rewrite_column(
    mirror: MirrorFiles, schema: TableSchema, column: str, value: pa.Scalar, commit: CommitInfo
) -> None:
    """Give all rows one value in a column, in one commit that exchanges all files.

    Args:
        mirror: A mirror of which :func:`why_rewritten_by_spark` says nothing.
        schema: The table.
        column: One of its columns.
        value: What all rows have there afterwards.
        commit: What the commit carries.

    Raises:
        CommitConflictError: Another writer committed since the mirror was read.
        RowCountError: The files have more or fewer rows than the log says; nothing was committed.
        StoreUnavailableError: A file cannot be read or written.
    """
    work, columns = mirror.work, mirror_schema(schema)
    at = columns.get_field_index(column)
    files = mirror.files.select(["path", "size_bytes", "num_records"]).to_pylist()
    deleted = {one["path"]: mirror.deleted(one["path"]) for one in files}
    wanted = sum(one["num_records"] - len(deleted[one["path"]]) for one in files)

    def rows() -> Iterator[pa.RecordBatch]:
        filesystem, root = filesystem_of(work.mirror)
        for name, gone in deleted.items():
            start = 0
            for batch in _batches(filesystem, f"{root}/{name}", columns, _BATCH_ROWS):
                there = without(pa.Table.from_batches([batch]), places_of(gone), start)
                start += batch.num_rows
                same = pa.repeat(value, there.num_rows).cast(columns.field(at).type)
                yield from there.set_column(at, columns.field(at), same).to_batches()

    with mirror.reading("rewriting files of a mirror"):
        new = _written(work.mirror, columns, rows())
    check_written(commit.doing, wanted, sum(one.rows for one in new), commit.facts)
    replaced = [
        OldFile(one["path"], one["size_bytes"], mirror.said(one["path"]).vector) for one in files
    ]
    commit_files(
        work.mirror,
        FileChanges(schema=columns, added=new, replaced=replaced),
        commit,
        fence=work.fence,
        version=mirror.version,
        opened=mirror.log.delta,
    )


def _why_not_ours(mirror: MirrorFiles, schema: TableSchema, files: pa.Table) -> str | None:
    """What of a mirror, or of these of its files, this process cannot write."""
    log = mirror.log
    others = sorted(log.features - PLAIN_FEATURES - {VECTORS_FEATURE, GUARD_FEATURE})
    if others or log.writer_version not in PLAIN_WRITER_VERSIONS:
        return f"the mirror has features: {', '.join(others) or f'writer version {log.writer_version}'}"
    if found := [
        name
        for name, value in log.properties.items()
        if name.startswith(_OTHERS) or (name in _SET and value.lower() == "true")
    ]:
        return f"the mirror has properties: {', '.join(sorted(found))}"
    fields = log.fields
    if {one.name for one in fields} != set(mirror_schema(schema).names):
        return "the mirror has columns of somebody else"
    if any(
        not one.nullable or any(name.startswith("delta.") for name in one.metadata)
        for one in fields
    ):
        return "the mirror has columns with rules"
    if log.partition_columns:
        return "the mirror is partitioned"
    names = files["path"].to_pylist()
    if not are_own_names(names):
        return "the mirror has files of somebody else"
    if files["num_records"].null_count:
        return "nobody counted the rows of its files"
    if GUARD_FEATURE in log.features and not _commits_itself(mirror, names):
        return f"the mirror has features: {GUARD_FEATURE}"
    if not mirror.are_readable(names):
        return "its files have deletion vectors in another place"
    return None


def marks_rows(mirror: MirrorFiles, names: Sequence[str]) -> bool:
    """Does a window mark rows of these files as deleted? Where vectors are switched on, and
    Redolake's own commit can name them."""
    has_statistics = all(mirror.said(name).statistics for name in names)
    return mirror.has_vectors_on and has_statistics and _takes_vectors(mirror, names)


def _takes_vectors(mirror: MirrorFiles, names: Sequence[str]) -> bool:
    path = mirror.work.mirror
    log, filesystem = read_log(path), filesystem_of(path)[0]
    is_on_disk = isinstance(filesystem, pafs.LocalFileSystem)
    return (
        is_on_disk
        and log is not None
        and takes_vectors(log)
        and takes_commits(filesystem, log, names)
    )


def _commits_itself(mirror: MirrorFiles, names: Sequence[str]) -> bool:
    path = mirror.work.mirror
    log = read_log(path)
    return log is not None and takes_commits(filesystem_of(path)[0], log, names)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file that can have rows of the window: those that change, by their places in it, with what
    was read of them, and what becomes of them."""

    file: OldFile
    rows: int
    statistics: str | None
    deleted: Deleted
    places: Places
    there: pa.Table
    effects: Effects

    @property
    def is_touched(self) -> bool:
        """Does a row of it change?"""
        return len(self.places) > 0

    @property
    def rows_before(self) -> int:
        return self.rows - len(self.deleted)

    @property
    def rows_as_they_are(self) -> int:
        """Rows that stay and do not change."""
        return self.rows_before - len(self.places)

    def of(self, start: int, rows: int) -> Effects:
        """What becomes of some rows of the file, deleted ones too."""
        low, high = np.searchsorted(self.places, [start, start + rows])
        own, at = self.effects.of(int(low), int(high - low)), self.places[low:high] - start
        source: Rows = np.full(rows, -1, dtype=np.int64)
        updates, deletes = np.zeros((2, rows), dtype=np.bool_)
        source[at], updates[at], deletes[at] = own.source, own.updates, own.deletes
        return Effects(source, updates, deletes)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of the files that can have rows of the window: those that are written anew, and
    those of which rows are marked as deleted, which come again as rows of new files."""

    rewritten: Sequence[_Seen]
    marked: Sequence[_Seen]

    @property
    def rows_copied(self) -> int:
        """Rows that are written as they were."""
        return sum(one.rows_as_they_are for one in self.rewritten)


def plan_files(seen: Sequence[_Seen], rows_inserted: int, *, marks: bool) -> _Plan:
    """Which files are written anew, and of which are rows marked? Where vectors are off, all that
    change are written anew.

    Else rows are marked, but in a file that has more deleted rows than its share, as long as not
    much is written for that: the others wait for their turn, and vacant files go. So that the files
    with new rows stay few, each that has no more rows than are to be written is put together
    with them, from the smallest on: of n windows alike some log n files stay, and a row is written
    about log n / 2 times.
    """
    touched = [one for one in seen if one.is_touched]
    if not marks:
        return _Plan(touched, [])
    rewritten, room = [one for one in touched if not one.rows_as_they_are], REWRITTEN_BYTES_MAX
    for one in sorted(touched, key=_share_deleted, reverse=True):
        is_due = one.rows_as_they_are and _share_deleted(one) > DELETED_SHARE_MAX
        if is_due and (room == REWRITTEN_BYTES_MAX or one.file.bytes <= room):
            rewritten.append(one)
            room -= one.file.bytes
    taken = {one.file.name for one in rewritten}
    rows = rows_inserted + sum(
        int(one.effects.updates.sum()) for one in touched if one.file.name not in taken
    )
    for one in sorted(seen, key=lambda one: one.rows_as_they_are):
        is_small = one.file.bytes <= SMALL_BYTES and one.rows_as_they_are <= rows
        if is_small and one.file.name not in taken:
            rewritten.append(one)
            taken.add(one.file.name)
            rows += one.rows_as_they_are
    return _Plan(
        [one for one in seen if one.file.name in taken],
        [one for one in touched if one.file.name not in taken],
    )


def _share_deleted(seen: _Seen) -> float:
    """Which share of a file's rows its vector would name."""
    return 1 - seen.rows_as_they_are / max(seen.rows, 1)


def rewrite_files(
    mirror: MirrorFiles,
    schema: TableSchema,
    merge: Merge,
    bounds: Bounds,
    *,
    check: Callable[[dict[str, int]], None],
    commit: CommitInfo,
) -> dict[str, int]:
    """Merge a window by writing the files anew whose rows it changes, or marking these rows as
    deleted, in one commit; returns MERGE's counts.

    Args:
        mirror: A mirror of which :func:`why_merged` says nothing.
        schema: The table.
        merge: The window.
        bounds: Between which values its keys lie.
        check: Called with the counts before anything is written.
        commit: What the commit carries; the counts are added to its metadata.

    Raises:
        CommitConflictError: Another writer committed since the mirror was read.
        DuplicateKeyError, DecodeError, LakeError: As the merge says; nothing was committed.
        StoreUnavailableError: A file cannot be read or written.
    """
    work, columns = mirror.work, mirror_schema(schema)
    filesystem, root = filesystem_of(work.mirror)
    near = files_near(mirror, bounds)
    with mirror.reading("reading a mirror's keys"):
        seen = _looked_through(mirror, near, schema.key, columns, merge)
    counts = {
        "num_inserted_rows": merge.rows_inserted,
        "num_updated_rows": merge.rows_updated,
        "num_deleted_rows": merge.rows_deleted,
    }
    check(counts)
    plan = plan_files(seen, merge.rows_inserted, marks=marks_rows(mirror, near["path"].to_pylist()))
    rows = _rows(filesystem, root, columns, plan, merge)
    with mirror.reading("rewriting files of a mirror"):
        new = _written(work.mirror, columns, rows)
        marked, vectors = _marked(filesystem, root, plan.marked)
    files = FileChanges(
        schema=columns,
        added=new,
        replaced=[one.file for one in plan.rewritten],
        marked=marked,
        vectors=vectors,
    )
    commit_files(
        work.mirror,
        files,
        commit.saying(**counts_as_metadata(counts), copied=plan.rows_copied),
        fence=work.fence,
        version=mirror.version,
        opened=mirror.log.delta,
    )
    return counts


def _looked_through(
    mirror: MirrorFiles, near: pa.Table, key: Sequence[str], columns: pa.Schema, merge: Merge
) -> list[_Seen]:
    """What the window makes of each of these files, in their order. Key columns are read of all
    rows, and of those that can have a key of the window the rest that the rule needs."""
    filesystem, root = filesystem_of(mirror.work.mirror)

    def candidates(file: dict[str, Any]) -> tuple[Deleted, Places, pa.Table]:
        name = file["path"]
        wanted = pa.schema([columns.field(one) for one in (*key, COMMIT_SCN, ORDINAL)])
        older = _newest_scn(mirror.said(name).statistics)
        is_older = older is not None and older < merge.least_scn
        deleted = mirror.deleted(name)
        read = wanted if not is_older else pa.schema([columns.field(one) for one in key])
        places, there = _found(filesystem, f"{root}/{name}", read, merge, places_of(deleted))
        if is_older:  # which of its positions a row has makes no difference
            for one, value in ((COMMIT_SCN, older), (ORDINAL, 0)):
                same = pa.repeat(value, there.num_rows).cast(columns.field(one).type)
                there = there.append_column(columns.field(one), same)
        return deleted, places, there

    files = near.select(["path", "size_bytes", "num_records"]).to_pylist()
    seen = []
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="keys") as pool:
        for file, (deleted, places, there) in zip(files, pool.map(candidates, files), strict=True):
            said, effects = mirror.said(file["path"]), merge.effects(there)
            changed = effects.updates | effects.deletes
            old = OldFile(file["path"], file["size_bytes"], said.vector)
            effects = Effects(
                effects.source[changed], effects.updates[changed], effects.deletes[changed]
            )
            there = there.filter(pa.array(changed))
            one = _Seen(
                old, file["num_records"], said.statistics, deleted, places[changed], there, effects
            )
            seen.append(one)
    return seen


def _newest_scn(statistics: str | None) -> int | None:
    """The highest commit SCN of a file's rows; None where the log does not say it of all of
    them."""
    said = json.loads(statistics or "{}")
    if (said.get("nullCount") or {}).get(COMMIT_SCN) != 0:
        return None
    found: int | None = (said.get("maxValues") or {}).get(COMMIT_SCN)
    return found


def _found(
    filesystem: pafs.FileSystem, path: str, columns: pa.Schema, merge: Merge, gone: Places
) -> tuple[Places, pa.Table]:
    """The rows of a file that can have a key of the window: their places, and these columns of
    them."""
    places: list[Places] = [np.empty(0, dtype=np.int64)]
    found, start = [columns.empty_table()], 0
    for batch in _batches(filesystem, path, columns, _KEYS_AT_ONCE):
        rows = pa.Table.from_batches([batch])
        near = merge.near(rows)
        near = near[~np.isin(near + start, gone)]
        if len(near):
            places.append(near + start)
            found.append(rows.take(pa.array(near)))
        start += batch.num_rows
    return np.concatenate(places), pa.concat_tables(found).combine_chunks()


def _marked(
    filesystem: pafs.FileSystem, root: str, marked: Sequence[_Seen]
) -> tuple[list[MarkedFile], VectorFile | None]:
    """Files with vectors that name the rows which change too; and the file that has the vectors, on
    the disk for good."""
    deleted = {one.file.name: with_places(one.deleted, one.places) for one in marked}
    vectors, file = write_vectors(filesystem, root, deleted)
    if file is not None:
        make_durable(filesystem, f"{root}/{file.name}")
    return [
        MarkedFile(one.file, one.statistics or "{}", vectors[one.file.name]) for one in marked
    ], file


def files_near(mirror: MirrorFiles, bounds: Bounds) -> pa.Table:
    """The files that can have a key between these bounds, in the order of their least keys."""
    near = mirror.files.filter(pc.invert(mirror.apart(bounds)))
    order = [(f"min.{name}", "ascending") for name in bounds if f"min.{name}" in near.column_names]
    return near.sort_by(order) if order else near


def _written(mirror: str, columns: pa.Schema, rows: Iterator[pa.RecordBatch]) -> list[NewFile]:
    """Rows in new files that no commit names yet."""
    files: list[NewFile] = []
    try:
        while (first := next(rows, None)) is not None:
            portion = _portion(first, rows)
            file = write_file(mirror, columns, portion, columns.names[:MIRROR_INDEXED])
            files += [] if file is None else [file]
    except BaseException:
        for file in files:
            remove_file(mirror, file)
        raise
    return files


def _portion(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As many of the rows as one file gets."""
    size = first.nbytes
    yield first
    while size < PORTION_BYTES and (batch := next(others, None)) is not None:
        size += batch.nbytes
        yield batch


def _rows(
    filesystem: pafs.FileSystem, root: str, columns: pa.Schema, plan: _Plan, merge: Merge
) -> Iterator[pa.RecordBatch]:
    """The rows of the files as they are after the window, then those of marked rows, then those
    that are new."""
    for one in plan.rewritten:
        start, gone = 0, places_of(one.deleted)
        for batch in _batches(filesystem, f"{root}/{one.file.name}", columns, _BATCH_ROWS):
            effects = one.of(start, batch.num_rows)
            read = pa.Table.from_batches([batch])
            there = without(read, gone, start)
            if there.num_rows < read.num_rows:
                is_left = np.ones(read.num_rows, dtype=np.bool_)
                is_left[gone[(gone >= start) & (gone < start + read.num_rows)] - start] = False
                effects = Effects(
                    effects.source[is_left], effects.updates[is_left], effects.deletes[is_left]
                )
            start += batch.num_rows
            yield from merge.merged(there, effects).to_batches()
    for one in plan.marked:
        yield from _changed(filesystem, f"{root}/{one.file.name}", columns, one, merge)
    yield from merge.inserted().combine_chunks().to_batches()


def _changed(
    filesystem: pafs.FileSystem, path: str, columns: pa.Schema, marked: _Seen, merge: Merge
) -> list[pa.RecordBatch]:
    """The rows of a marked file that change, as they are after the window. Columns are read of
    which they may keep their value."""
    kept = [name for name in merge.kept_columns if name not in marked.there.column_names]
    read = marked.there
    if kept:
        start, found, wanted = 0, [], pa.schema([columns.field(name) for name in kept])
        for batch in _batches(filesystem, path, wanted, _BATCH_ROWS):
            low, high = np.searchsorted(marked.places, [start, start + batch.num_rows])
            found.append(batch.take(pa.array(marked.places[low:high] - start)))
            start += batch.num_rows
        own = pa.Table.from_batches(found, wanted).combine_chunks()
        for name in kept:
            read = read.append_column(columns.field(name), own[name])
    arrays = [
        read[field.name] if field.name in read.column_names else pa.nulls(read.num_rows, field.type)
        for field in columns
    ]
    there = pa.Table.from_arrays(arrays, schema=columns)
    return merge.merged(there, marked.effects).combine_chunks().to_batches()  # type: ignore[no-any-return]


def _batches(
    filesystem: pafs.FileSystem, path: str, columns: pa.Schema, rows_max: int
) -> Iterator[pa.RecordBatch]:
    """These columns of a file's rows, in their order. It may be older than a column, which is NULL
    there."""
    with pq.ParquetFile(path, filesystem=filesystem) as file:
        there = [name for name in columns.names if name in file.schema_arrow.names]
        rows = _rows_at_once(file.metadata, there, rows_max)
        for batch in file.iter_batches(batch_size=rows, columns=there, use_threads=False):
            arrays = [
                batch[field.name].cast(field.type)
                if field.name in there
                else pa.nulls(batch.num_rows, field.type)
                for field in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def _rows_at_once(file: pq.FileMetaData, columns: Sequence[str], rows_max: int) -> int:
    size: int = sum(
        group.column(at).total_uncompressed_size
        for group in map(file.row_group, range(file.num_row_groups))
        for at in range(group.num_columns)
        if group.column(at).path_in_schema.partition(".")[0] in columns
    )
    rows: int = file.num_rows
    return min(rows_max, max(1, _BATCH_BYTES * rows // max(size, 1)))
