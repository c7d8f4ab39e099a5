"""How is a change merged into its mirror without Spark? Files whose rows change are written anew,
or these rows are marked.

That is MERGE by columns: of the files between whose bounds a key of the window lies, those of which
a row changes are written into new files together with the rows that are new, and one commit
exchanges them, right behind the version that was read or not at all. Files are taken in the order
of their keys and stay small, so that a window of other keys finds few to write: small ones are put
together, large ones cut. In others, of which few rows go, columns that do not change keep their
pages (:mod:`~cdc_core.delta.patched_files`). Rows pass in batches, or row groups; what is held is
the window's rows, one per key, and by row of the mirror that changes its place and the number of
the row that changes it.

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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.delta.altering import TableMetadata, commit_change
from cdc_core.delta.appending import (
    ROW_GROUP_ROWS,
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
from cdc_core.delta.deletion_vectors import (
    Deleted,
    Places,
    VectorFile,
    places_of,
    with_places,
    write_vectors,
)
from cdc_core.delta.errors import conflict
from cdc_core.delta.history import filesystem_of
from cdc_core.delta.patched_files import RowGroup, write_patched
from cdc_core.lake.mirror.files import MirrorFiles, files_near, without
from cdc_core.lake.mirror.merge import counts_as_metadata
from cdc_core.lake.mirror.merge_audit import check_written
from cdc_core.lake.mirror.ways import gets_vectors, marks_rows
from cdc_core.lake.tables import MIRROR_INDEXED
from cdc_core.model.reports import WriteWay
from cdc_core.runtime.arrow import whole
from cdc_core.runtime.cores import in_threads, worker_threads
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import Bounds, Rows
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema
from cdc_core.stage.merge import Effects, Merge

PORTION_BYTES = 64 * 1024 * 1024
"""A new file gets so many bytes as Arrow holds them; Parquet takes a fourth or a fifth of that."""

_BATCH_ROWS = 16_384
"""So many rows of a file are read at once: few, since the writer holds two row groups. Fewer of
rows that are long …"""
_BATCH_BYTES = 16 * 1024 * 1024
"""… since about so many bytes are read at once."""

_KEYS_AT_ONCE = 262_144
"""So many rows of key columns."""

_GROUP_BYTES_MAX = 2 * _BATCH_BYTES
"""A row group of more bytes is not held whole."""

DELETED_SHARE_MAX = 0.2
"""A file of which more rows would be deleted is written anew: with less, some five rows are written
for each that changes. A window copies no more rows for that than it changes, or one file: after the
same windows all of a mirror's files have the same share."""

SMALL_BYTES = PORTION_BYTES // 16
"""Files of up to so many bytes are put together with new rows: a third of a new file that is full.
Were full ones small, each window of as many rows would write all of them again."""


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
    changed = rows_inserted + sum(len(one.places) for one in touched)
    rewritten, copied = [one for one in touched if not one.rows_as_they_are], 0
    for one in sorted(touched, key=_share_deleted, reverse=True):
        is_due = one.rows_as_they_are and _share_deleted(one) > DELETED_SHARE_MAX
        if is_due and (not copied or copied + one.rows_as_they_are <= changed):
            rewritten.append(one)
            copied += one.rows_as_they_are
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
) -> tuple[dict[str, int], WriteWay]:
    """Merge a window by writing the files anew whose rows it changes, or marking these rows as
    deleted, in one commit; returns MERGE's counts, and in which of both ways it was. A window that
    would copy much for what it changes switches deletion vectors on first, in a commit of its own.

    Args:
        mirror: A mirror for which ``ways.choose`` has not chosen Spark's MERGE.
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
    names = near["path"].to_pylist()
    marks = marks_rows(mirror, names)
    plan = plan_files(seen, merge.rows_inserted, marks=marks)
    if gets_vectors(mirror, plan.rows_copied, sum(counts.values())):
        mirror = _with_vectors(mirror)
        seen = [replace(one, statistics=mirror.said(one.file.name).statistics) for one in seen]
        marks = marks_rows(mirror, names)
        plan = plan_files(seen, merge.rows_inserted, marks=marks)
    with mirror.reading("rewriting files of a mirror"):
        new = _anew(mirror, columns, plan, merge)
        marked, vectors = _marked(filesystem, root, plan.marked)
    files = FileChanges(
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
    )
    return counts, "deletion vectors" if marks else "copy-on-write"


def _with_vectors(mirror: MirrorFiles) -> MirrorFiles:
    """The mirror with deletion vectors switched on, right behind the version that was read.

    Raises:
        CommitConflictError: Another writer committed since.
    """
    work = mirror.work
    position = work.position()
    info = work.info(
        "switching deletion vectors on",
        work.metadata("maintenance", position.mirror_scn or 0),
    )
    commit_change(
        work.mirror,
        "SET TBLPROPERTIES",
        TableMetadata.with_vectors,
        info,
        fence=work.fence,
        version=mirror.version,
    )
    switched = MirrorFiles.read(work)
    if switched.version != mirror.version + 1:  # its files may be others than were looked through
        raise conflict(info.doing, info.facts)
    return switched


def rewrite_column(
    mirror: MirrorFiles, schema: TableSchema, column: str, value: pa.Scalar, commit: CommitInfo
) -> None:
    """Give all rows one value in a column, in one commit that exchanges all files.

    Args:
        mirror: A mirror of which ``ways.why_rewritten_by_spark`` says nothing.
        schema: The table.
        column: One of its columns.
        value: What all rows have there afterwards.
        commit: What the commit carries.

    Raises:
        CommitConflictError: Another writer committed since the mirror was read.
        RowCountError: The files have more or fewer rows than the log says; nothing was committed.
        StoreUnavailableError: A file cannot be read or written.
    """
    columns = mirror_schema(schema)
    at = columns.get_field_index(column)
    files = mirror.files.select(["path", "size_bytes", "num_records"]).to_pylist()
    deleted = {one["path"]: mirror.deleted(one["path"]) for one in files}
    wanted = sum(one["num_records"] - len(deleted[one["path"]]) for one in files)

    def rows() -> Iterator[pa.RecordBatch]:
        for name, gone in deleted.items():
            start = 0
            for batch in _batches(mirror, name, columns, _BATCH_ROWS):
                there = without(pa.Table.from_batches([batch]), places_of(gone), start)
                start += batch.num_rows
                same = pa.repeat(value, there.num_rows).cast(columns.field(at).type)
                yield from there.set_column(at, columns.field(at), same).to_batches()

    replace_rows(mirror, schema, rows(), wanted, commit)


def replace_rows(
    mirror: MirrorFiles,
    schema: TableSchema,
    rows: Iterator[pa.RecordBatch],
    wanted: int,
    commit: CommitInfo,
) -> None:
    """Put rows in the place of all that a mirror has, in one commit that exchanges all files.

    Args:
        mirror: A mirror of which ``ways.why_rewritten_by_spark`` says nothing.
        schema: The table.
        rows: The rows, with the mirror's columns.
        wanted: How many there must be.
        commit: What the commit carries.

    Raises:
        CommitConflictError: Another writer committed since the mirror was read.
        RowCountError: There are more or fewer rows; nothing was committed.
        StoreUnavailableError: A file cannot be read or written.
    """
    work, columns = mirror.work, mirror_schema(schema)
    with mirror.reading("rewriting files of a mirror"):
        new = _written(work.mirror, columns, rows)
    check_written(commit.doing, wanted, sum(one.rows for one in new), commit.facts)
    files = mirror.files.select(["path", "size_bytes"]).to_pylist()
    replaced = [
        OldFile(one["path"], one["size_bytes"], mirror.said(one["path"]).vector) for one in files
    ]
    commit_files(
        work.mirror,
        FileChanges(added=new, replaced=replaced),
        commit,
        fence=work.fence,
        version=mirror.version,
    )


def _looked_through(
    mirror: MirrorFiles, near: pa.Table, key: Sequence[str], columns: pa.Schema, merge: Merge
) -> list[_Seen]:
    """What the window makes of each of these files, in their order. Key columns are read of all
    rows, and of those that can have a key of the window the rest that the rule needs."""
    scn_name = mirror.log.names.of(COMMIT_SCN)

    def candidates(file: dict[str, Any]) -> tuple[Deleted, Places, pa.Table]:
        name = file["path"]
        wanted = pa.schema([columns.field(one) for one in (*key, COMMIT_SCN, ORDINAL)])
        older = _newest_scn(mirror.said(name).statistics, scn_name)
        is_older = older is not None and max(older, merge.read_scn) < merge.least_scn
        deleted = mirror.deleted(name)
        read = wanted if not is_older else pa.schema([columns.field(one) for one in key])
        places, there = _found(mirror, name, read, merge, places_of(deleted))
        if is_older:  # which of its positions a row has makes no difference
            for one, value in ((COMMIT_SCN, older), (ORDINAL, 0)):
                same = pa.repeat(value, there.num_rows).cast(columns.field(one).type)
                there = there.append_column(columns.field(one), same)
        return deleted, places, there

    files = near.select(["path", "size_bytes", "num_records"]).to_pylist()
    seen = []
    with ThreadPoolExecutor(worker_threads(), thread_name_prefix="keys") as pool:
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


def _newest_scn(statistics: str | None, name: str) -> int | None:
    """The highest commit SCN of a file's rows, which has this name there; None where the log does
    not say it of all of them."""
    said = json.loads(statistics or "{}")
    if (said.get("nullCount") or {}).get(name) != 0:
        return None
    found: int | None = (said.get("maxValues") or {}).get(name)
    return found


def _found(
    mirror: MirrorFiles, name: str, columns: pa.Schema, merge: Merge, gone: Places
) -> tuple[Places, pa.Table]:
    """The rows of a file that can have a key of the window: their places, and these columns of
    them."""
    places: list[Places] = [np.empty(0, dtype=np.int64)]
    found, start = [columns.empty_table()], 0
    for batch in _batches(mirror, name, columns, _KEYS_AT_ONCE):
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


def _anew(mirror: MirrorFiles, columns: pa.Schema, plan: _Plan, merge: Merge) -> list[NewFile]:
    """The rows of the plan in new files that no commit names yet: files whose columns change in
    their places one by one, each by a thread, all other rows one behind the other."""
    files, path = list[NewFile](), mirror.work.mirror
    patched: set[str] = set()

    def patch(one: _Seen) -> None:
        changed = partial(_changed_columns, columns, one, places_of(one.deleted), merge)
        file = write_patched(
            path,
            one.file.name,
            columns,
            changed,
            columns.names[:MIRROR_INDEXED],
            group_bytes_max=_GROUP_BYTES_MAX,
        )
        if file is not None:
            files.append(file)
            patched.add(one.file.name)

    with _removed_at_failure(path, files):
        in_threads(patch, [one for one in plan.rewritten if _is_patched(one)])
        others = [one for one in plan.rewritten if one.file.name not in patched]
        rows = _rows(mirror, columns, replace(plan, rewritten=others), merge)
        files += _written(path, columns, rows)
    return files


def _is_patched(one: _Seen) -> bool:
    """May the file stay as it is but for the columns that change? Where it is neither small nor
    large, and few of its row groups lose rows."""
    rows_lost = len(one.deleted) + int(one.effects.deletes.sum())
    is_fit = SMALL_BYTES < one.file.bytes <= PORTION_BYTES // 2
    return is_fit and rows_lost <= one.rows // (2 * ROW_GROUP_ROWS)


def _changed_columns(
    columns: pa.Schema, one: _Seen, gone: Places, merge: Merge, group: RowGroup
) -> pa.Table:
    """What is to be encoded of a row group: all that is left where it loses rows, else the columns
    that change."""
    effects = one.of(group.start, group.rows)
    low, high = np.searchsorted(gone, [group.start, group.start + group.rows])
    if low < high or effects.deletes.any():
        return _after(group.read(columns.names), group.start, one, gone, merge)
    found = {}
    if effects.updates.any():
        for name in columns.names:
            values = merge.changed(name, effects, partial(_column_of, group, name))
            if values is not None:
                found[name] = values
    return pa.table(found, pa.schema([columns.field(name) for name in found]))


def _column_of(group: RowGroup, name: str) -> pa.Array:
    return whole(group.read([name])[name])


@contextmanager
def _removed_at_failure(mirror: str, files: Sequence[NewFile]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for file in files:
            remove_file(mirror, file)
        raise


def _written(mirror: str, columns: pa.Schema, rows: Iterator[pa.RecordBatch]) -> list[NewFile]:
    """Rows in new files that no commit names yet."""
    files: list[NewFile] = []
    with _removed_at_failure(mirror, files):
        while (first := next(rows, None)) is not None:
            portion = _portion(first, rows)
            file = write_file(mirror, columns, portion, columns.names[:MIRROR_INDEXED])
            files += [] if file is None else [file]
    return files


def _portion(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As many of the rows as one file gets."""
    size = first.nbytes
    yield first
    while size < PORTION_BYTES and (batch := next(others, None)) is not None:
        size += batch.nbytes
        yield batch


def _rows(
    mirror: MirrorFiles, columns: pa.Schema, plan: _Plan, merge: Merge
) -> Iterator[pa.RecordBatch]:
    """The rows of the files as they are after the window, then those of marked rows, then those
    that are new."""
    for one in plan.rewritten:
        start, gone = 0, places_of(one.deleted)
        for batch in _batches(mirror, one.file.name, columns, _BATCH_ROWS):
            rows = _after(pa.Table.from_batches([batch]), start, one, gone, merge)
            start += batch.num_rows
            yield from rows.to_batches()
    for one in plan.marked:
        yield from _changed(mirror, columns, one, merge)
    yield from merge.inserted().combine_chunks().to_batches()


def _after(rows: pa.Table, start: int, one: _Seen, gone: Places, merge: Merge) -> pa.Table:
    """Rows of a file, from a place on, as they are after the window."""
    effects, there = one.of(start, rows.num_rows), without(rows, gone, start)
    if there.num_rows < rows.num_rows:
        is_left = np.ones(rows.num_rows, dtype=np.bool_)
        is_left[gone[(gone >= start) & (gone < start + rows.num_rows)] - start] = False
        effects = Effects(
            effects.source[is_left], effects.updates[is_left], effects.deletes[is_left]
        )
    return merge.merged(there, effects)


def _changed(
    mirror: MirrorFiles, columns: pa.Schema, marked: _Seen, merge: Merge
) -> list[pa.RecordBatch]:
    """The rows of a marked file that change, as they are after the window. Columns are read of
    which they may keep their value."""
    kept = [name for name in merge.kept_columns if name not in marked.there.column_names]
    read = marked.there
    if kept:
        start, found, wanted = 0, [], pa.schema([columns.field(name) for name in kept])
        for batch in _batches(mirror, marked.file.name, wanted, _BATCH_ROWS):
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
    mirror: MirrorFiles, name: str, columns: pa.Schema, rows_max: int
) -> Iterator[pa.RecordBatch]:
    """These columns of a file's rows, in their order. It may be older than a column, which is NULL
    there."""
    names = mirror.log.names
    with mirror.opened(name) as file:
        there = [one for one in names.called(columns.names) if one in file.schema_arrow.names]
        rows = _rows_at_once(file.metadata, there, rows_max)
        for batch in file.iter_batches(batch_size=rows, columns=there, use_threads=False):
            yield names.in_columns(batch, columns)


def _rows_at_once(file: pq.FileMetaData, columns: Sequence[str], rows_max: int) -> int:
    size: int = sum(
        group.column(at).total_uncompressed_size
        for group in map(file.row_group, range(file.num_row_groups))
        for at in range(group.num_columns)
        if group.column(at).path_in_schema.partition(".")[0] in columns
    )
    rows: int = file.num_rows
    return min(rows_max, max(1, _BATCH_BYTES * rows // max(size, 1)))
