"""How are changes read back from the Parquet files of a change log: some columns of all, all
columns of some?

Nothing but the committed files is asked, so that a window is reduced alike whether it was staged a
moment ago or before a crash. A big window is read in parts, each with all changes of some keys, so
that no process holds the whole of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import get_ident
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.delta.file_names import PLAIN_NAMES, FileNames
from cdc_core.runtime.arrow import whole
from cdc_core.runtime.cores import in_threads
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.absent_names import renamed_lists
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

PART_CHANGES_MAX = 1_000_000
"""So many changes are reduced at once; it takes some hundred bytes for each."""

PART_NAMES_MAX = 32
"""So many columns each of these changes may lack; where it may be more, parts have fewer
changes."""

_SKIPPED = "_cdc_skipped"
_COMMIT_TIME = "_cdc_commit_timestamp"

LIGHT = (
    "_cdc_op",
    COMMIT_SCN,
    ORDINAL,
    "_cdc_xid",
    "_cdc_row_id",
    "_cdc_absent",
    "_cdc_columns",
)
"""What decides which changes count, beside their keys."""

Bounds = Mapping[str, tuple[int, int]]
"""Per column its least and its greatest value."""


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column that was added to a table. Rows from before, whose ``_cdc_columns`` are not more
    than its ``place``, have its ``default``."""

    place: int
    default: pa.Scalar

    def are_older(self, widths: pa.Array) -> pa.BooleanArray:
        """Are rows, by their ``_cdc_columns``, from before the column was added?"""
        return pc.fill_null(pc.less_equal(widths, self.place), False)


AddedColumns = Mapping[str, AddedColumn]
"""By name."""

NONE_ADDED: AddedColumns = {}

OwnRows = Callable[[pa.Table], pa.Array]
"""Which rows of a file are looked at, by the columns ``_cdc_window`` and ``_cdc_snapshot``."""


def of_window(scn_high: int) -> OwnRows:
    """The rows of one window, and none that a chunk brought."""

    def own(rows: pa.Table) -> pa.Array:
        return pc.and_(pc.equal(rows["_cdc_window"], scn_high), pc.is_null(rows["_cdc_snapshot"]))

    return own


def since(scn: int, own: OwnRows) -> OwnRows:
    """Those of other rows that committed, or were read, at or above an SCN."""

    def later(rows: pa.Table) -> pa.Array:
        return pc.and_(own(rows), pc.greater_equal(rows[COMMIT_SCN], scn))

    return later


def below(scn: int, own: OwnRows) -> OwnRows:
    """Those of other rows that committed, or were read, below an SCN."""

    def earlier(rows: pa.Table) -> pa.Array:
        return pc.and_(own(rows), pc.less(rows[COMMIT_SCN], scn))

    return earlier


def up_to(scn: int) -> OwnRows:
    """The rows of all windows up to an SCN, and of all chunks."""

    def own(rows: pa.Table) -> pa.Array:
        earlier = pc.fill_null(pc.less_equal(rows["_cdc_window"], scn), False)
        return pc.or_(earlier, pc.is_valid(rows["_cdc_snapshot"]))

    return own


@dataclass(frozen=True, slots=True)
class LightChanges:
    """What decides which changes count, of all changes that are looked at.

    Attributes:
        table: The columns of :data:`LIGHT`, and ``row``, the change's number by which
            :meth:`Images.take` finds it; of files ``_cdc_skipped``, too.
        before: The key columns of the old image, NULL where there is none.
        after: Those of the new one.
        own_before: Does the old key belong to this part?
        own_after: Does the new one?
        added: Columns that were added to the table.
    """

    table: pa.Table
    before: tuple[pa.Array, ...]
    after: tuple[pa.Array, ...]
    own_before: Flags
    own_after: Flags
    added: AddedColumns = field(default_factory=dict)

    def moved(self) -> Flags:
        """Does the change give its row another key?"""
        same = np.ones(self.table.num_rows, dtype=np.bool_)
        for old, new in zip(self.before, self.after, strict=True):
            equal = pc.fill_null(pc.equal(old, new), False)
            if pa.types.is_floating(old.type):
                equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(old), pc.is_nan(new)), False))
            same &= equal.to_numpy(zero_copy_only=False)
        update = pc.equal(self.table["_cdc_op"], "u").to_numpy()
        moved: Flags = update & ~same
        return moved

    def lacking(self, column: str) -> Flags:
        """Does the change not carry the column?"""
        return naming(whole(self.table["_cdc_absent"]), column)

    def are_older(self, column: str) -> Flags:
        """Is the change from before the column was added?"""
        if column not in self.added:
            return np.zeros(self.table.num_rows, dtype=np.bool_)
        older = self.added[column].are_older(whole(self.table["_cdc_columns"]))
        flags: Flags = older.to_numpy(zero_copy_only=False)
        return flags

    def kinds(self, columns: Collection[str]) -> tuple[set[str], bool]:
        """Which of these columns some insert or update does not carry; and whether a change of key
        is among those."""
        carried = self.table.filter(pc.not_equal(self.table["_cdc_op"], "d"))
        absent = set(pc.unique(pc.list_flatten(carried["_cdc_absent"])).to_pylist())
        absent &= set(columns)
        moved = self.moved() if absent else np.zeros(0, dtype=np.bool_)
        return absent, any((moved & self.lacking(column)).any() for column in absent)

    def of_keys(self, own_before: Flags, own_after: Flags) -> LightChanges:
        """The changes that touch the flagged keys, of which these alone are the part's own."""
        picked = np.flatnonzero(own_before | own_after)
        rows = pa.array(picked)
        return LightChanges(
            self.table.take(rows),
            tuple(column.take(rows) for column in self.before),
            tuple(column.take(rows) for column in self.after),
            own_before[picked],
            own_after[picked],
            self.added,
        )


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """What kinds of changes there are.

    Attributes:
        changes: Number of changes.
        absent: The columns that some insert or update does not carry, in the table's order.
        moved_absent: Some change of key does not carry all columns.
        bounds: Of each key column that holds whole numbers, the least and the greatest value that
            any image has; none where nobody looked.
        operations: Number of changes by operation.
        skipped: Number of changes that are no events, by reason.
        scns: Their lowest and their highest commit SCN; (0, 0) where there are none or nobody
            looked.
    """

    changes: int
    absent: tuple[str, ...]
    moved_absent: bool
    bounds: Bounds = field(default_factory=dict)
    operations: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    scns: tuple[int, int] = (0, 0)


def _together(found: Sequence[LightChanges]) -> LightChanges:
    return LightChanges(
        pa.concat_tables([one.table for one in found]).combine_chunks(),
        tuple(map(pa.concat_arrays, zip(*(one.before for one in found), strict=True))),
        tuple(map(pa.concat_arrays, zip(*(one.after for one in found), strict=True))),
        np.concatenate([one.own_before for one in found]),
        np.concatenate([one.own_after for one in found]),
        found[0].added,
    )


class Images(Protocol):
    """The images of changes, by the changes' numbers."""

    def take(self, image: str, column: str, rows: Rows) -> pa.Array:
        """A column of an image (``before`` or ``after``) of the changes with these numbers, in
        their order; NULL for -1. Rows from before a column was added have its default."""
        ...


class HeldChanges:
    """Changes in hand, all of whose keys are the part's own, but for those of one side of a change
    of key.

    Args:
        rows: The columns of :data:`LIGHT`, ``before`` with the key's columns and ``after`` with the
            table's, under the names of ``schema``; ``is_old``: the row stands here for its old key
            alone, and ``is_new``: for its new one.
        schema: The table.
        added: Columns that were added to it.
    """

    def __init__(self, rows: pa.Table, schema: TableSchema, added: AddedColumns) -> None:
        self._rows, self._schema, self._added = rows.combine_chunks(), schema, added

    def light(self) -> LightChanges:
        """What decides which changes count."""
        rows = self._rows
        before, after = (
            tuple(self._column(image, name) for name in self._schema.key)
            for image in ("before", "after")
        )
        is_old, is_new = (rows[one].to_numpy() for one in ("is_old", "is_new"))
        light = rows.select(list(LIGHT)).append_column("row", pa.array(np.arange(rows.num_rows)))
        return LightChanges(light, before, after, is_old, is_new, self._added)

    def take(self, image: str, column: str, rows: Rows) -> pa.Array:
        """As :meth:`Images.take` says."""
        return self._column(image, column).take(pa.array(rows, mask=rows < 0))

    def _column(self, image: str, column: str) -> pa.Array:
        images = whole(self._rows[image])
        kind = arrow_schema(self._schema).field(column).type
        widths = whole(self._rows["_cdc_columns"])
        return _field_of(images, column, kind, widths, self._added.get(column))


class LoggedChanges:
    """Changes in files of a change log: those that ``own`` picks. ``names`` are what the files call
    its columns, ``added`` the columns that were added to the table."""

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        paths: Sequence[str],
        schema: TableSchema,
        own: OwnRows,
        names: FileNames = PLAIN_NAMES,
        added: AddedColumns = NONE_ADDED,
    ) -> None:
        self._names = names
        self.added = added
        self._filesystem, self._paths = filesystem, tuple(paths)
        self._files: dict[tuple[int, int], pq.ParquetFile] = {}
        self._metadata: list[pq.FileMetaData] = []
        files = [self._file(at) for at in range(len(paths))]
        self._metadata = [file.metadata for file in files]
        self._schema = schema
        self._own = own
        self._groups = [
            (at, group) for at, file in enumerate(files) for group in range(file.num_row_groups)
        ]
        counts = [files[at].metadata.row_group(group).num_rows for at, group in self._groups]
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._looked_at: dict[int, LightChanges] = {}

    def close(self) -> None:
        """Close the files."""
        self._looked_at.clear()
        for file in self._files.values():
            file.close()

    def _file(self, at: int) -> pq.ParquetFile:
        """A file, opened by the thread that reads it: two threads must not share a reader."""
        place = (get_ident(), at)
        if place not in self._files:
            known = None if not self._metadata else self._metadata[at]
            self._files[place] = pq.ParquetFile(
                self._paths[at], filesystem=self._filesystem, metadata=known
            )
        return self._files[place]

    def _read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of a row group; all by default."""
        at, number = self._groups[group]
        return self._file(at).read_row_group(number, columns=columns)

    @property
    def parts(self) -> int:
        """In how many parts the changes are to be read."""
        return self.parts_lacking(0)

    def parts_lacking(self, columns: int) -> int:
        """The same where each change may lack so many columns: a part holds a name for each."""
        names = int(self._starts[-1]) * max(columns, PART_NAMES_MAX)
        return max(1, -(-names // (PART_CHANGES_MAX * PART_NAMES_MAX)))

    def facts(self) -> ChangeFacts:
        """Look through all changes, row group by row group."""
        count, named, moved_absent = 0, set[str](), False
        bounds: dict[str, tuple[int, int]] = {}
        operations, skipped = Counter[str](), Counter[str]()
        scns: dict[str, tuple[int, int]] = {}
        for light in self._lights():
            absent, moved = light.kinds(self._schema.column_names)
            count += light.table.num_rows
            operations.update(_counted(light.table["_cdc_op"]))
            skipped.update(_counted(light.table[_SKIPPED]))
            _widen(scns, COMMIT_SCN, light.table[COMMIT_SCN])
            named |= absent
            moved_absent |= moved
            for images in (light.before, light.after):
                for column, values in zip(self._schema.key, images, strict=True):
                    _widen(bounds, column, values)
        named_in_order = self.in_order(named)
        between = scns.get(COMMIT_SCN, (0, 0))
        return ChangeFacts(
            count, named_in_order, moved_absent, bounds, operations, skipped, between
        )

    def _lights(self) -> Iterable[LightChanges]:
        """What decides, row group by row group. Where all changes fit into one part, threads read
        it, and it is held for :meth:`light`."""
        groups = range(len(self._groups))
        if self.parts > 1:
            return (self._light_of(group, 0, 1) for group in groups)
        found = in_threads(lambda group: self._light_of(group, 0, 1), groups)
        self._looked_at = dict(enumerate(found))
        return found

    def in_order(self, columns: set[str]) -> tuple[str, ...]:
        """Some columns in the table's order."""
        return tuple(column for column in self._schema.column_names if column in columns)

    def light(self, part: int = 0, parts: int = 1) -> LightChanges:
        """What decides which changes count: all changes that touch a key of the part."""
        found = []
        for group in range(len(self._groups)):
            held = self._looked_at.pop(group, None) if parts == 1 else None
            found.append(held or self._light_of(group, part, parts))
        return _together(found)

    def spread(self, parts: int, take: Callable[[int, pa.Table], None]) -> None:
        """Hand over whole rows of the files, row group by row group: to each part of the keys those
        that touch its keys, so that a change of key may go to two."""
        for group in range(len(self._groups)):
            light = self._light_of(group, 0, 1)
            places = light.table["row"].to_numpy() - self._starts[group]
            old, new = (
                np.where(own, part_of(key, parts), -1)
                for key, own in (
                    (light.before, light.own_before),
                    (light.after, light.own_after),
                )
            )
            touched = np.unique(np.concatenate([old, new]))
            rows = self._read(group)
            for part in touched[touched >= 0].tolist():
                take(part, rows.take(pa.array(places[(old == part) | (new == part)])))

    def in_files(self, paths: Sequence[str], own: OwnRows) -> LoggedChanges:
        """Changes in other files on this machine's disk, which have the same columns."""
        disk = pafs.LocalFileSystem()
        return LoggedChanges(disk, paths, self._schema, own, self._names, self.added)

    def light_of_moves(self) -> LightChanges:
        """As :meth:`light`, of the changes that touch a key which a row leaves or comes to, or that
        show the ROW_ID of such a row, and perhaps some others."""
        keys, row_ids = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for group in range(len(self._groups)):
            light = self._light_of(group, 0, 1)
            moved = light.moved()
            keys += [np.unique(_key_digests(one)[moved]) for one in (light.before, light.after)]
            row_ids.append(np.unique(_row_id_digests(light)[moved]))
        touched, shown = np.unique(np.concatenate(keys)), np.unique(np.concatenate(row_ids))
        shown, found = shown[shown > 0], []
        for group in range(len(self._groups)):
            light = self._light_of(group, 0, 1)
            is_shown = np.isin(_row_id_digests(light), shown)
            before, after = (
                np.isin(_key_digests(one), touched) | is_shown
                for one in (light.before, light.after)
            )
            found.append(light.of_keys(light.own_before & before, light.own_after & after))
        return _together(found)

    def _light_of(self, group: int, part: int, parts: int) -> LightChanges:
        """Rows of the same file that are not looked at are left out."""
        own = [*LIGHT, _SKIPPED, "_cdc_window", "_cdc_snapshot"]
        called = self._schema.as_logged().key
        keys = [(image, name) for image in ("before", "after") for name in called]
        wanted = [*map(self._names.of, own), *(self._names.of(*path) for path in keys)]
        rows = self._names.from_files(self._read(group, wanted))
        start = int(self._starts[group])
        place = rows.schema.get_field_index("_cdc_absent")
        absent = renamed_lists(whole(rows["_cdc_absent"]), self._schema.present_names)
        rows = rows.set_column(place, "_cdc_absent", absent)
        rows = rows.append_column("row", pa.array(np.arange(start, start + rows.num_rows)))
        own = self._own(rows)
        is_all = pc.all(own, skip_nulls=False).as_py()
        rows = (rows if is_all else rows.filter(own)).combine_chunks()
        images = [whole(rows[image]) for image in ("before", "after")]
        kinds = [arrow_schema(self._schema).field(key).type for key in self._schema.key]
        widths, added = whole(rows["_cdc_columns"]), map(self.added.get, self._schema.key)
        fields = list(zip(called, kinds, added, strict=True))
        before, after = (
            tuple(_field_of(image, name, kind, widths, one) for name, kind, one in fields)
            for image in images
        )
        own_before, own_after = (
            image.is_valid().to_numpy(zero_copy_only=False) & (part_of(keys_, parts) == part)
            for image, keys_ in zip(images, (before, after), strict=True)
        )
        light = LightChanges(
            rows.select([*LIGHT, _SKIPPED, "row"]), before, after, own_before, own_after, self.added
        )
        return light if (own_before | own_after).all() else light.of_keys(own_before, own_after)

    def take(self, image: str, column: str, rows: Rows) -> pa.Array:
        """A column of an image (``before`` or ``after``) of the changes with these numbers, in
        their order; NULL for -1."""
        kind = arrow_schema(self._schema).field(column).type
        return self._gathered(rows, kind, lambda group: self._column(group, image, column, kind))

    def commit_times(self, rows: Rows) -> pa.Array:
        """When the changes with these numbers committed, in their order; NULL for -1, and for rows
        of snapshots."""
        name, kind = self._names.of(_COMMIT_TIME), pa.timestamp("us")

        def times(group: int) -> pa.Array:
            return whole(self._read(group, [name])[name]).cast(kind)

        return self._gathered(rows, kind, times)

    def _gathered(
        self, rows: Rows, kind: pa.DataType, values_of: Callable[[int], pa.Array]
    ) -> pa.Array:
        """Values of the changes with these numbers, in their order, of which row group by row group
        is read once; NULL for -1."""
        is_in_order = bool((rows[1:] >= rows[:-1]).all())
        order = None if is_in_order else np.argsort(rows, kind="stable")
        numbers = rows if order is None else rows[order]
        at = int(np.searchsorted(numbers, 0))
        parts = [pa.nulls(at, kind)]
        while at < len(numbers):
            group = int(np.searchsorted(self._starts, numbers[at], side="right")) - 1
            end = int(np.searchsorted(numbers, self._starts[group + 1]))
            places = numbers[at:end] - self._starts[group]
            values = values_of(group)
            is_whole = len(places) == len(values) and bool((places[1:] > places[:-1]).all())
            parts.append(values if is_whole else values.take(pa.array(places)))
            at = end
        found = pa.concat_arrays(parts)
        if order is None:
            return found
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return found.take(pa.array(back))

    def _column(self, group: int, image: str, column: str, kind: pa.DataType) -> pa.Array:
        name, added = self._schema.stored_names[column], self.added.get(column)
        wanted = [self._names.of(image, name)]
        if added is not None:
            wanted.append(self._names.of("_cdc_columns"))
        rows = self._names.from_files(self._read(group, wanted))
        count = int(self._starts[group + 1] - self._starts[group])
        widths = None if added is None else whole(rows["_cdc_columns"])
        images = (
            whole(rows[image])
            if image in rows.column_names  # the file may be older than the column
            else pa.array([{}] * count, pa.struct([]))
        )
        return _field_of(images, name, kind, widths, added)


def _counted(values: pa.ChunkedArray) -> dict[str, int]:
    """How often each value is there; NULL is none."""
    pairs = pc.value_counts(values.drop_null()).to_pylist()
    return {one["values"]: one["counts"] for one in pairs}


def _field_of(
    image: pa.StructArray,
    name: str,
    kind: pa.DataType,
    widths: pa.Array | None,
    added: AddedColumn | None,
) -> pa.Array:
    """A field of an image; the file may be older than it. Rows from before it was ``added`` have
    its default."""
    values = (
        pa.nulls(len(image), kind)
        if image.type.get_field_index(name) < 0
        else pc.struct_field(image, name).cast(kind)
    )
    if added is None or widths is None or not added.default.is_valid:
        return values
    is_older = pc.and_(added.are_older(widths), image.is_valid())
    return pc.if_else(is_older, added.default.cast(kind), values)


def _widen(bounds: dict[str, tuple[int, int]], column: str, values: pa.Array) -> None:
    """Let the column's bounds hold these values, if they are whole numbers."""
    if not pa.types.is_integer(values.type):
        return
    ends = pc.min_max(values).as_py()
    if ends["min"] is not None:
        least, most = bounds.get(column, (ends["min"], ends["max"]))
        bounds[column] = (min(least, ends["min"]), max(most, ends["max"]))


def bounds_of(keys: pa.Table) -> Bounds:
    """Between which values the whole numbers among columns of keys lie."""
    found: dict[str, tuple[int, int]] = {}
    for name in keys.column_names:
        _widen(found, name, keys[name])
    return found


def naming(lists: pa.ListArray, name: str) -> Flags:
    """Which of some lists of names have this one?"""
    found = np.zeros(len(lists), dtype=np.bool_)
    where = pc.equal(pc.list_flatten(lists), name)
    found[pc.list_parent_indices(lists).filter(where).to_numpy()] = True
    return found


def key_codes(columns: Sequence[pa.Array]) -> Rows:
    """A number per distinct row of the columns, from 0 on; -1 where the only column is NULL."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if pa.types.is_floating(column.type):
            column = pc.add(column, 0.0)  # -0 and 0 are one key
        encoded = column.dictionary_encode()
        own: Rows = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        if len(columns) == 1:
            return own
        codes = codes * (len(encoded.dictionary) + 1) + own + 1
        codes = np.unique(codes, return_inverse=True)[1]
    return codes


def _row_id_digests(light: LightChanges) -> npt.NDArray[np.uint64]:
    """A number per ROW_ID, 0 where there is none."""
    return _digest(pc.fill_null(whole(light.table["_cdc_row_id"]), ""))


def part_of(key: Sequence[pa.Array], parts: int) -> Rows:
    """Which of so many parts the keys belong to; equal keys belong to one part, whichever file they
    come from."""
    if parts == 1:
        return np.zeros(len(key[0]), dtype=np.int64)
    return (_key_digests(key) % np.uint64(parts)).astype(np.int64)


def _key_digests(key: Sequence[pa.Array]) -> npt.NDArray[np.uint64]:
    """A number per key, the same for equal keys, whichever file they come from."""
    mixed = np.zeros(len(key[0]), dtype=np.uint64)
    for column in key:
        mixed = (mixed ^ _digest(column)) * _ODD
        mixed ^= mixed >> np.uint64(32)
    return mixed


_ODD = np.uint64(0x9E3779B97F4A7C15)
_WEIGHTS = np.power(_ODD, np.arange(1, 257, dtype=np.uint64))


def _digest(column: pa.Array) -> npt.NDArray[np.uint64]:
    """A number per value, the same for equal values."""
    kind = column.type
    if pa.types.is_floating(kind):
        column = pc.add(column.cast(pa.float64()), 0.0)
        bits: npt.NDArray[np.uint64] = pc.fill_null(column, 0.0).to_numpy().view(np.uint64)
        return bits
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        numbers: npt.NDArray[np.uint64] = (
            pc.fill_null(column.cast(pa.int64()), 0).to_numpy().view(np.uint64)
        )
        return numbers
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    texts = column.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    found = np.zeros(len(texts), dtype=np.uint64)
    if data is None or ends[-1] == ends[0]:
        return found
    octets = np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    within = np.arange(len(octets)) - np.repeat(starts, lengths)
    sums = (octets + np.uint64(1)) * _WEIGHTS[within % len(_WEIGHTS)]
    there = lengths > 0
    found[there] = np.add.reduceat(sums, starts[there])
    return found
