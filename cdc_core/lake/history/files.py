"""Where are the states of a history table, and how do some of them get exchanged?

Files have current states, or ended ones: a change of the table reads the few files whose current
states it may meet, and ended states are left where they are. Delta's statistics say which are
which, and between which whole numbers the keys of a file lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.delta.appending import NewFile, OldFile, remove_file, write_file
from cdc_core.delta.errors import at_work
from cdc_core.delta.history import filesystem_of
from cdc_core.delta.log_files import data_file
from cdc_core.runtime.arrow import whole
from cdc_core.stage.difference import are_among

READING = "reading a history table"

_BATCH_ROWS = 16_384
_PORTION_BYTES = 64 * 1024 * 1024
"""A new file gets so many bytes as Arrow holds them."""

SMALL_BYTES = _PORTION_BYTES // 16
"""Larger files are not put together with others: a third of one that is full."""

_PLACES = pa.schema([("file", pa.int64()), ("place", pa.int64())])


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file that a history table has. ``bounds`` are those of its key's columns of whole numbers,
    ``ended_from`` the lowest end of a state in it, None where none has ended."""

    name: str
    bytes: int
    rows: int
    has_current: bool
    bounds: dict[str, tuple[int, int]]
    ended_from: int | None

    @property
    def old(self) -> OldFile:
        """The same, to be replaced."""
        return OldFile(self.name, self.bytes)

    def may_have(self, keys: dict[str, pa.Array]) -> bool:
        """Can one of its states have one of these keys, by the sorted values of some columns?"""
        for column, (low, high) in self.bounds.items():
            if (values := keys.get(column)) is None:
                continue
            at = int(np.searchsorted(values, low))
            if at == len(values) or values[at] > high:
                return False
        return True


@dataclass(frozen=True, slots=True)
class HistoryFiles:
    """The files of a history table in its newest version.

    Attributes:
        path: The table's folder.
        columns: Its columns, as its files have them.
        key: Those of its key.
        ends: The column that says at which SCN a state ended.
        facts: Where it is, for errors.
    """

    path: str
    columns: pa.Schema
    key: tuple[str, ...]
    ends: str
    facts: dict[str, object]

    def listed(self) -> list[StateFile]:
        """All files, as the log has them."""
        from deltalake import DeltaTable

        with at_work(READING, self.facts):
            found = pa.table(DeltaTable(self.path).get_add_actions(flatten=True)).to_pylist()
        return [self._file(one) for one in found]

    def _file(self, action: dict[str, Any]) -> StateFile:
        bounds = {
            name: (action[f"min.{name}"], action[f"max.{name}"])
            for name in self.key
            if pa.types.is_integer(self.columns.field(name).type)
            and action.get(f"min.{name}") is not None
        }
        return StateFile(
            action["path"],
            action["size_bytes"],
            action["num_records"],
            action.get(f"null_count.{self.ends}") != 0,
            bounds,
            action.get(f"min.{self.ends}"),
        )

    def near(self, files: Iterable[StateFile], keys: pa.Table, *, current: bool) -> list[StateFile]:
        """Of some files those that may have states of these keys; with ``current`` those that have
        current ones."""
        whole = {
            name: np.unique(keys[name].drop_null().to_numpy())
            for name in keys.column_names
            if pa.types.is_integer(keys[name].type)
        }
        return [one for one in files if one.may_have(whole) and (one.has_current or not current)]

    def states_of(
        self, files: Sequence[StateFile], keys: pa.Table, *, current: bool
    ) -> tuple[pa.Table, pa.Table]:
        """The states of these keys in some files, and of each the number of its file and its place
        there; with ``current`` the current ones."""
        found, places = [self.columns.empty_table()], [_PLACES.empty_table()]
        with at_work(READING, self.facts):
            for at, one in enumerate(files):
                start = 0
                for batch in self._batches(one):
                    is_near = are_among(batch, keys)
                    if current:
                        is_near &= batch[self.ends].is_null().to_numpy()
                    near = np.flatnonzero(is_near)
                    found.append(batch.take(pa.array(near)))
                    columns = [pa.repeat(pa.scalar(at, pa.int64()), len(near)), near + start]
                    own = pa.Table.from_arrays(list(map(pa.array, columns)), schema=_PLACES)
                    places.append(own)
                    start += batch.num_rows
        return pa.concat_tables(found), pa.concat_tables(places)

    def ended_up_to(self, file: StateFile, limit: int) -> np.ndarray[Any, Any]:
        """The places in a file of the states whose end is not above a limit."""
        with at_work(READING, self.facts):
            ends = [whole(batch[self.ends]) for batch in self._batches(file)]
        is_old = pc.fill_null(pc.less_equal(pa.concat_arrays(ends), limit), False)
        return np.flatnonzero(is_old.to_numpy(zero_copy_only=False))

    def without(self, file: StateFile, places: np.ndarray[Any, Any]) -> Iterator[pa.Table]:
        """The states of a file but for those at some places."""
        start = 0
        with at_work(READING, self.facts):
            for batch in self._batches(file):
                stays = ~np.isin(np.arange(start, start + batch.num_rows), places)
                yield batch.filter(pa.array(stays))
                start += batch.num_rows

    def _batches(self, file: StateFile) -> Iterator[pa.Table]:
        filesystem, root = filesystem_of(self.path)
        names = self.columns.names
        with pq.ParquetFile(data_file(root, file.name), filesystem=filesystem) as opened:
            for batch in opened.iter_batches(batch_size=_BATCH_ROWS, columns=names):
                yield pa.Table.from_batches([batch]).select(names).cast(self.columns)


class StateWriter:
    """New files of a history table that no commit names yet; those that are not taken by
    :meth:`close` are removed with :meth:`discard`."""

    def __init__(self, files: HistoryFiles, starts: str) -> None:
        self._files = files
        self._indexed = [*files.key, starts, files.ends]
        self._held: dict[bool, list[pa.Table]] = {True: [], False: []}
        self.rows = {True: 0, False: 0}
        self._written: list[NewFile] = []

    def add(self, states: pa.Table) -> None:
        """Take states; current ones and ended ones go into files of their own."""
        is_current = states[self._files.ends].is_null()
        for current, wanted in ((True, is_current), (False, pc.invert(is_current))):
            own = states.filter(wanted)
            self.rows[current] += own.num_rows
            self._held[current].append(own)
            if sum(one.nbytes for one in self._held[current]) >= _PORTION_BYTES:
                self._flush(current)

    def close(self) -> list[NewFile]:
        """The files with all that was added."""
        for current in self._held:
            self._flush(current)
        return self._written

    def discard(self) -> None:
        """Remove what was written."""
        for file in self._written:
            remove_file(self._files.path, file)
        self._written = []

    def _flush(self, current: bool) -> None:
        """Files in the order of keys, so that few of them have a key."""
        if not (held := self._held[current]):
            return
        self._held[current] = []
        states = pa.concat_tables(held)
        if states.num_rows == 0:
            return
        states = states.sort_by([(name, "ascending") for name in self._files.key])
        rows = max(1, int(states.num_rows * _PORTION_BYTES / max(states.nbytes, 1)))
        for start in range(0, states.num_rows, rows):
            batches = states.slice(start, rows).to_batches()
            file = write_file(self._files.path, self._files.columns, batches, self._indexed)
            self._written += [] if file is None else [file]


def put_together(
    files: Iterable[StateFile], rows: int, taken: Iterable[StateFile]
) -> list[StateFile]:
    """Which small files to write into one with so many new rows, so that few files are left and
    each row is written few times; ``taken`` are written anyway."""
    own, found = {one.name for one in taken}, []
    small = (one for one in files if one.bytes <= SMALL_BYTES and one.name not in own)
    for one in sorted(small, key=lambda one: one.rows):
        if one.rows > rows:
            break
        rows += one.rows
        found.append(one)
    return found
