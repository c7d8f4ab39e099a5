"""Which files has a mirror, between which values do their keys lie, and which keys do they hold?
Asked of its log and of the files' key columns, without Spark.

Bounds count for whole numbers alone: those of texts are shortened, those of floating numbers know
no NaN. Source: the Delta transaction log protocol, sections "Per-file Statistics" and "Writer
Requirements for Deletion Vectors" (bounds stay true where rows are deleted).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.delta.added_files import AddedFile, read_added, take_added
from cdc_core.delta.commits import VECTORS_FEATURE, are_plain, takes_commits
from cdc_core.delta.deletion_vectors import Deleted, Places, places_of, read_vector
from cdc_core.delta.errors import at_work
from cdc_core.delta.file_names import PLAIN_NAMES, FileNames
from cdc_core.delta.history import MAPPING, features_of, filesystem_of, read_log, uri_of
from cdc_core.delta.log_cache import KnownLogs
from cdc_core.delta.log_files import Action, log_names
from cdc_core.errors import MIRROR_HINT
from cdc_core.lake.table_context import TableWork
from cdc_core.runtime.cores import worker_threads
from cdc_core.stage.changes import Bounds

KEYS_READ_MAX = 20_000_000
"""So many keys of a mirror are read to find out whether some of them are there; it takes a second
or two."""

FILES_READ_MAX = 256
"""And out of so many files."""

_WHOLE = ("byte", "short", "integer", "long")
"""Delta's types of whole numbers."""

_FOLLOWED = frozenset({"add", "remove", "txn", "commitInfo"})
"""Actions of a commit that changes nothing but files."""

_NUMBER = "_number"

_WEIGHT_OF_ADDED = 5
"""The statistics of a file take about as much memory as so many names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorVersion:
    """What one version of a mirror's log says. ``features`` are what it asks
    of its writers, ``fields`` delta-rs's ones of its schema. ``files`` has the columns ``path``,
    ``size_bytes``, ``num_records``, and ``min.…`` and ``max.…`` of each column of whole numbers,
    NULL where nobody looked. ``added`` has what else the log says of each file, where the mirror
    may have deletion vectors. ``names`` are what files call the columns."""

    version: int
    features: frozenset[str]
    properties: Mapping[str, str]
    fields: Sequence[Any]
    partition_columns: Sequence[str]
    files: pa.Table
    added: Mapping[str, AddedFile] = field(default_factory=dict)
    names: FileNames = PLAIN_NAMES


@dataclass(frozen=True)
class MirrorFiles:
    """A version of a mirror, for the work on its table."""

    work: TableWork
    log: MirrorVersion

    @property
    def version(self) -> int:
        """The version that was read."""
        return self.log.version

    @property
    def files(self) -> pa.Table:
        """Its files, with the columns that :class:`MirrorVersion` names."""
        return self.log.files

    @property
    def are_named(self) -> bool:
        """Are columns found in its files by names? Column mapping by ``id`` has numbers alone."""
        return self.log.properties.get(MAPPING, "none") in ("none", "name")

    @property
    def has_vectors_on(self) -> bool:
        """Shall MERGE mark rows as deleted, in place of writing their files anew?"""
        return self.log.properties.get("delta.enableDeletionVectors", "").lower() == "true"

    @classmethod
    def read(cls, work: TableWork) -> MirrorFiles:
        """The newest version. What is known already is not read again, as
        :mod:`~cdc_core.delta.log_cache` has it.

        Raises:
            LakeError: The mirror's log cannot be read.
        """
        filesystem, root = filesystem_of(work.mirror)
        with at_work("reading a mirror's log", work.facts(), hint=MIRROR_HINT):
            known = _known.newest(work.mirror, filesystem, root)
            return cls(work, known or _read(work.mirror))

    def apart(self, bounds: Bounds) -> pa.Array:
        """Of each file: is there a key column of which all values lie outside of the bounds?"""
        apart = pa.repeat(pa.scalar(False), self.files.num_rows)
        for column, (least, most) in bounds.items():
            names = f"min.{column}", f"max.{column}"
            if not set(names) <= set(self.files.column_names):
                continue
            low, high = (self.files[name] for name in names)
            outside = pc.or_(pc.greater(low, most), pc.less(high, least))
            apart = pc.or_(apart, pc.fill_null(outside, False))
        return apart.combine_chunks() if isinstance(apart, pa.ChunkedArray) else apart

    def has_all(self, keys: pa.Table, bounds: Bounds) -> bool:
        """Has the mirror a row of each of these keys, which differ? False too where finding out
        would take long, or be unsure.

        Args:
            keys: The key columns, named as in the mirror.
            bounds: Between which values they lie; empty where that is not known.

        Raises:
            StoreUnavailableError, LakeError: A file cannot be read.
        """
        if not keys.num_rows:
            return True
        if not self.are_named or any(pa.types.is_floating(kind) for kind in keys.schema.types):
            return False
        near = self.files.filter(pc.invert(self.apart(bounds)))
        names = near["path"].to_pylist()
        rows = pc.sum(near["num_records"]).as_py() or 0
        is_much = rows > KEYS_READ_MAX or len(names) > FILES_READ_MAX
        if near["num_records"].null_count or is_much or rows < keys.num_rows:
            return False
        if not are_plain(names):
            return False
        numbered = keys.append_column(_NUMBER, pa.array(np.arange(keys.num_rows)))
        if not self.are_readable(names):
            return False
        looking = partial(_numbers_in, self, numbered)
        is_there = np.zeros(keys.num_rows, dtype=np.bool_)
        with (
            self.reading("reading a mirror's keys"),
            ThreadPoolExecutor(worker_threads(), thread_name_prefix="keys") as pool,
        ):
            for found in pool.map(looking, names):
                is_there[found] = True
        return bool(is_there.all())

    def rows_of(self, keys: pa.Table, columns: pa.Schema, bounds: Bounds) -> pa.Table:
        """The mirror's rows of these keys, which may be named more than once. Of a mirror of which
        ``ways.why_foreign`` says nothing.

        Args:
            keys: The key columns, named as in the mirror.
            columns: The columns that are wanted, those of the key first.
            bounds: Between which values the keys lie.

        Raises:
            StoreUnavailableError, LakeError: A file cannot be read.
        """
        names = self.files.filter(pc.invert(self.apart(bounds)))["path"].to_pylist()
        with self.reading("reading a mirror's rows"):
            found = [rows for name in names for rows in _rows_in(self, keys, columns, name)]
        return pa.concat_tables([columns.empty_table(), *found])

    def reading(self, doing: str) -> AbstractContextManager[None]:
        """Read files of this version in the block.

        Raises:
            StoreUnavailableError: The disk fails, or the bucket cannot be reached.
            LakeError: A file is gone or damaged.
        """
        hint = f"Try again if VACUUM ran without a retention. {MIRROR_HINT}"
        return at_work(doing, self.work.facts(), hint=hint)

    def opened(self, name: str) -> pq.ParquetFile:
        """One of its files, which the caller closes."""
        filesystem, root = self._place
        return pq.ParquetFile(f"{root}/{name}", filesystem=filesystem)

    def group(self, file: pq.ParquetFile, number: int, columns: pa.Schema) -> pa.Table:
        """Some columns of a row group of one of its files, as :meth:`FileNames.in_columns` has
        them."""
        rows = file.read_row_group(number, columns=self.log.names.called(columns.names))
        return self.log.names.in_columns(rows, columns)

    def takes_commits(self, removed: Iterable[str]) -> bool:
        """May Redolake commit itself, also where these files go?"""
        log = read_log(self.work.mirror)
        return log is not None and takes_commits(self._place[0], log, removed)

    @cached_property
    def _place(self) -> tuple[pafs.FileSystem, str]:
        """Where the mirror is kept: a client of an object store may ask for its rights first."""
        return filesystem_of(self.work.mirror)

    def have_vectors(self, names: Sequence[str]) -> bool:
        """Has one of these files a deletion vector?"""
        return any(self.said(name).vector for name in names)

    def are_readable(self, names: Sequence[str]) -> bool:
        """Can Redolake read the deletion vectors of these files, as far as they have any?"""
        vectors = (self.said(name).vector for name in names)
        return all(one.is_readable for one in vectors if one is not None)

    def said(self, name: str) -> AddedFile:
        """What the log says of a file."""
        return self.log.added.get(name) or _NOTHING_SAID

    def deleted(self, name: str) -> Deleted:
        """Which rows of a file its deletion vector names.

        Raises:
            OSError, pyarrow.ArrowInvalid: The vector is gone or damaged.
        """
        vector = self.said(name).vector
        if vector is None:
            return Deleted()
        return read_vector(*self._place, vector)


_NOTHING_SAID = AddedFile(None, None)


def _read(path: str) -> MirrorVersion:
    """The newest version, as delta-rs reads it."""
    from deltalake import DeltaTable

    delta = DeltaTable(path)
    version, added = delta.version(), {}
    protocol, metadata, schema = delta.protocol(), delta.metadata(), delta.schema()
    properties, names = dict(metadata.configuration), PLAIN_NAMES
    if properties.get(MAPPING, "none") != "none":
        names = FileNames.of_fields(json.loads(schema.to_json())["fields"])
    whole = [one.name for one in schema.fields if str(one.type.type) in _WHOLE]
    columns, named = _columns(whole), _columns(names.called(whole)).names
    files = pa.table(delta.get_add_actions(flatten=True))
    there = [
        files[name].cast(one.type)
        if name in files.column_names
        else pa.nulls(files.num_rows, one.type)
        for name, one in zip(named, columns, strict=True)
    ]
    features = features_of(protocol.min_writer_version, protocol.writer_features)
    if VECTORS_FEATURE in features:
        filesystem, root = filesystem_of(path)
        added = read_added(filesystem, root, log_names(filesystem, root), version)
    return MirrorVersion(
        version=version,
        features=features,
        properties=properties,
        fields=tuple(schema.fields),
        partition_columns=tuple(metadata.partition_columns),
        files=pa.Table.from_arrays(there, schema=columns).combine_chunks(),
        added=added,
        names=names,
    )


def _columns(numbers: Iterable[str]) -> pa.Schema:
    ends = [f"{end}.{name}" for name in numbers for end in ("min", "max")]
    facts = [("path", pa.string()), ("size_bytes", pa.int64()), ("num_records", pa.int64())]
    return pa.schema([*facts, *((name, pa.int64()) for name in ends)])


def _followed(
    mirror: MirrorVersion, version: int, actions: Sequence[Action]
) -> MirrorVersion | None:
    """Files come and go; None where more happened, or in a form that delta-rs is to read."""
    if not _FOLLOWED.issuperset(kind for action in actions for kind in action):
        return None
    added = [action["add"] for action in actions if "add" in action]
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    come = {one["path"] for one in added}
    has_vectors = VECTORS_FEATURE in mirror.features
    is_strange = any(one.get("deletionVector") for one in added) and not has_vectors
    if is_strange or not are_plain([*come]):
        return None
    paths = mirror.files["path"]
    gone = pc.is_in(paths, value_set=pa.array([*removed, *come], pa.string()))
    if not removed.issubset(paths.filter(gone).to_pylist()):
        return None
    rows = pa.Table.from_pylist([_facts(one, mirror) for one in added], mirror.files.schema)
    files = pa.concat_tables([mirror.files.filter(pc.invert(gone)), rows]).combine_chunks()
    said = dict(mirror.added)
    if has_vectors:
        take_added(said, actions, AddedFile.of_action)
    return replace(mirror, version=version, files=files, added=said)


def _facts(added: dict[str, Any], mirror: MirrorVersion) -> dict[str, Any]:
    """A file's row, by the names that delta-rs gives its columns."""
    said = json.loads(added.get("stats") or "{}")
    found = {"path": added["path"], "size_bytes": added["size"]}
    found["num_records"] = said.get("numRecords")
    for name in mirror.files.column_names[len(found) :]:
        end, _, column = name.partition(".")
        found[name] = (said.get(f"{end}Values") or {}).get(mirror.names.of(column))
    return found


def _weight(mirror: MirrorVersion) -> int:
    files: int = mirror.files.num_rows
    return 1 + files + _WEIGHT_OF_ADDED * len(mirror.added)


_known = KnownLogs(lambda filesystem, root, _: _read(uri_of(filesystem, root)), _followed, _weight)


def files_near(mirror: MirrorFiles, bounds: Bounds) -> pa.Table:
    """The files that can have a key between these bounds, in the order of their least keys."""
    near = mirror.files.filter(pc.invert(mirror.apart(bounds)))
    order = [(f"min.{name}", "ascending") for name in bounds if f"min.{name}" in near.column_names]
    return near.sort_by(order) if order else near


def _numbers_in(mirror: MirrorFiles, keys: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """The numbers of the keys that a file has a row of."""
    columns: Sequence[str] = [one for one in keys.column_names if one != _NUMBER]
    wanted = pa.schema([keys.schema.field(one) for one in columns])
    gone = places_of(mirror.deleted(name))
    found, start = [], 0
    with mirror.opened(name) as file:
        for group in range(file.num_row_groups):
            rows = mirror.group(file, group, wanted)
            rows, start = without(rows, gone, start), start + rows.num_rows
            met = rows.join(keys, columns, join_type="right semi", use_threads=False)
            found.append(met[_NUMBER].to_numpy())
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _rows_in(
    mirror: MirrorFiles, keys: pa.Table, columns: pa.Schema, name: str
) -> Iterator[pa.Table]:
    """The rows of a file that have one of the keys. It may be older than a column."""
    gone, start = places_of(mirror.deleted(name)), 0
    with mirror.opened(name) as file:
        for group in range(file.num_row_groups):
            rows = mirror.group(file, group, keys.schema)
            numbered = rows.append_column(_NUMBER, pa.array(np.arange(rows.num_rows)))
            met = numbered.join(keys, keys.column_names, join_type="left semi", use_threads=False)
            places = np.sort(met[_NUMBER].to_numpy())
            places = places[~np.isin(places + start, gone)]
            if len(places):
                yield mirror.group(file, group, columns).take(pa.array(places))
            start += rows.num_rows


def without(rows: pa.Table, gone: Places, start: int) -> pa.Table:
    """Rows of a file, from a place on, but for those that are deleted."""
    low, high = np.searchsorted(gone, [start, start + rows.num_rows])
    if low == high:
        return rows
    is_left = np.ones(rows.num_rows, dtype=np.bool_)
    is_left[gone[low:high] - start] = False
    return rows.filter(pa.array(is_left))
