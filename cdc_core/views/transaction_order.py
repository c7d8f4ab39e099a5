"""Which place does an event have in its transaction, over all tables of a source?

The change log of one table does not say: the redo rows of a transaction are numbered over all
tables, also those whose changes are no events. So the positions in all change logs are read, window
by window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.delta.errors import at_work
from cdc_core.delta.history import DeltaCommit, commits_after, filesystem_of, newest_commits
from cdc_core.delta.log_files import data_file
from cdc_core.errors import CHANGELOG_HINT
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL
from cdc_core.views.envelope import LoggedTable
from cdc_core.views.events import ChangeEvent, Place

BRINGS_EVENTS = frozenset({"window", "chunk", "gone", "truncate", "partitions"})
"""Kinds of commits of a change log whose files hold changes that no other commit brought."""
_KEPT_ROWS_MAX = 4_000_000
"""Windows are kept for the next table up to so many changes."""
_XID, _OP, _SKIPPED, _SNAPSHOT = "_cdc_xid", "_cdc_op", "_cdc_skipped", "_cdc_snapshot"
_TIMES = ("_cdc_start_timestamp", "_cdc_commit_timestamp")
_READ = (COMMIT_SCN, ORDINAL, _XID, _OP, _SKIPPED, _SNAPSHOT, *_TIMES)
_Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class TableOrder:
    """The places of one table's changes: by ordinal, in its order, those of a change's first
    event."""

    ordinals: _Ints = field(default_factory=lambda: np.empty(0, np.int64))
    places: _Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))

    def of(self, event: ChangeEvent) -> Place | None:
        """The place of an event; None where it has none, as rows of snapshots."""
        ordinal = event.row[ORDINAL]
        at = int(np.searchsorted(self.ordinals, ordinal))
        if event.row[_SNAPSHOT] is not None or at == len(self.ordinals):
            return None
        if self.ordinals[at] != ordinal:
            return None
        total, own, change = (int(one) for one in self.places[at])
        second = int(event.is_second)
        return Place(event.row[_XID], total + second, own + second, change)


NO_ORDER = TableOrder()


@dataclass(frozen=True, slots=True)
class WindowChanges:
    """The changes that one window brought and that are events, of all tables, one row each in the
    order of ``(commit_scn, xid, ordinal)``: ``table`` is the number of its table, ``events`` 2 for
    a change of key, else 1; and the times of the transaction."""

    tables: tuple[TableId, ...]
    rows: pa.Table

    def order(self, table: TableId) -> TableOrder:
        """Where the events of one table stand."""
        places = self._places()
        mine = np.flatnonzero(self.rows["table"].to_numpy() == self.tables.index(table))
        ordinals = self.rows["ordinal"].to_numpy()[mine]
        by_ordinal = np.argsort(ordinals)
        return TableOrder(ordinals[by_ordinal], places[mine[by_ordinal]])

    def transactions(self) -> Iterator[dict[str, Any]]:
        """The transactions in the order of their commits: ``id``, ``began`` and ``committed`` (the
        database's times), and ``events`` by table."""
        starts = np.flatnonzero(self._differs())
        order = [COMMIT_SCN, "ordinal"]
        first = self.rows.take(pa.array(starts)).append_column("at", pa.array(starts))
        ends = dict(zip(starts.tolist(), [*starts[1:].tolist(), self.rows.num_rows], strict=True))
        for one in first.sort_by([(name, "ascending") for name in order]).to_pylist():
            rows = self.rows.slice(one["at"], ends[one["at"]] - one["at"])
            summed = rows.group_by("table").aggregate([("events", "sum")]).to_pylist()
            counts = {self.tables[of["table"]]: of["events_sum"] for of in summed}
            began, committed = (one[name] for name in _TIMES)
            yield {
                "id": one[_XID],
                "began": began or committed,
                "committed": committed,
                "events": dict(sorted(counts.items(), key=lambda item: str(item[0]))),
            }

    def _differs(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Does a row begin another transaction?"""
        scn = self.rows[COMMIT_SCN].to_numpy()
        xid = self.rows[_XID].to_numpy(zero_copy_only=False)
        differs = np.ones(len(scn), np.bool_)
        differs[1:] = (scn[1:] != scn[:-1]) | (xid[1:] != xid[:-1])
        return differs

    def _places(self) -> _Ints:
        events, table = (self.rows[name].to_numpy() for name in ("events", "table"))
        group = np.cumsum(self._differs()) - 1
        total = _running(events, group)
        by_table = np.lexsort((np.arange(len(group)), table, group))
        own = np.empty_like(total)
        own[by_table] = _running(
            events[by_table], group[by_table] * len(self.tables) + table[by_table]
        )
        change = _running(np.ones_like(events), group)
        return np.column_stack([total, own, change])


def _running(counts: _Ints, group: _Ints) -> _Ints:
    """Of each row, 1 and what the rows of its group in front of it have. Groups are together."""
    before = np.cumsum(counts) - counts
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))[: len(group)]
    lengths = np.diff(np.append(starts, len(group)))
    found: _Ints = before - np.repeat(before[starts], lengths) + 1
    return found


class _LogWindows:
    """The windows that one change log has, as far back as somebody asks."""

    def __init__(self, logged: LoggedTable) -> None:
        self._logged = logged
        self._known_above: int | None = None
        self._known: list[tuple[ScnWindow, list[str]]] = []

    def files(self, window: ScnWindow) -> Iterator[tuple[str, pc.Expression]]:
        """The files of the change log that have changes of a window, and which rows of each are:
        those that committed in it, and those that came with it although their COMMIT is older."""
        low, high = int(window.scn_low), int(window.scn_high)
        scn = pc.field(COMMIT_SCN)
        for own, files in self.since(low):
            if own.scn_low >= high:
                continue
            wanted = (scn > low) & (scn <= high)
            if own.scn_high <= high:
                wanted |= scn <= int(own.scn_low)
            for name in files:
                yield name, wanted

    def since(self, scn: int) -> list[tuple[ScnWindow, list[str]]]:
        """The windows that end above an SCN, with their files."""
        if self._known_above is None or scn < self._known_above:
            begin = self._logged.log.version
            for commit in newest_commits(self._logged.path):
                begin = commit.version - 1
                if (own := window_of(commit)) is not None and own.scn_high <= scn:
                    begin = commit.version
                    break
            read = commits_after(self._logged.path, begin, up_to=self._logged.log.version)
            windows = ((window_of(commit), files) for commit, files in read)
            self._known = [(own, files) for own, files in windows if own is not None]
            self._known_above = scn
        return [one for one in self._known if one[0].scn_high > scn]


def window_of(commit: DeltaCommit) -> ScnWindow | None:
    """The window that a commit of a change log brought; None for another one."""
    said = commit.metadata
    if said.get("kind") != "window":
        return None
    return ScnWindow(Scn(int(said["scn_low"])), Scn(int(said["scn_high"])))


class TransactionLog:
    """The transactions of a source, from all its change logs. ``complete`` is the SCN up to which
    every table in its stream has the windows."""

    def __init__(self, tables: Sequence[LoggedTable], complete: Scn) -> None:
        self.complete, self._tables = complete, tuple(tables)
        self._windows = {one.table: _LogWindows(one) for one in tables}
        self._kept: dict[ScnWindow, WindowChanges] = {}

    def has_all(self, commit: DeltaCommit) -> bool:
        """Have all tables what this commit of one has? Only windows have to wait."""
        window = window_of(commit)
        return window is None or window.scn_high <= self.complete

    def order(self, logged: LoggedTable, window: ScnWindow) -> TableOrder:
        """The places of a table's events in a window that its change log, perhaps an older one,
        has."""
        [current] = [one for one in self._tables if one.table == logged.table]
        if current.path == logged.path:
            return self.changes(window).order(logged.table)
        others = [one for one in self._tables if one is not current]
        return TransactionLog([*others, logged], self.complete).changes(window).order(logged.table)

    def windows(self, since: int) -> list[ScnWindow]:
        """The windows that brought changes above an SCN to some table, cut so that none overlaps
        another one."""
        ends = sorted(
            {
                own.scn_high
                for log in self._windows.values()
                for own, _ in log.since(since)
                if own.scn_high <= self.complete
            }
        )
        lows = [Scn(since), *ends]
        return [ScnWindow(low, high) for low, high in zip(lows, ends, strict=False)]

    def changes(self, window: ScnWindow) -> WindowChanges:
        """The changes of all tables in a window, and of transactions that came with it although
        they committed before it: their COMMIT reached the redo late, and all that they did with
        it."""
        if window not in self._kept:
            parts = [
                self._rows(number, logged, name, wanted)
                for number, logged in enumerate(self._tables)
                for name, wanted in self._windows[logged.table].files(window)
            ]
            rows = pa.concat_tables([_COLUMNS.empty_table(), *parts]).combine_chunks()
            rows = rows.sort_by([(one, "ascending") for one in (COMMIT_SCN, _XID, "ordinal")])
            while self._kept and self._rows_kept() + rows.num_rows > _KEPT_ROWS_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[window] = WindowChanges(tuple(one.table for one in self._tables), rows)
        return self._kept[window]

    def _rows_kept(self) -> int:
        return sum(one.rows.num_rows for one in self._kept.values())

    def _rows(self, number: int, logged: LoggedTable, name: str, wanted: pc.Expression) -> pa.Table:
        """Those changes of one file that are events."""
        filesystem, root = filesystem_of(logged.path)
        names, parts = logged.log.file_names, [_COLUMNS.empty_table()]
        wanted &= pc.field(_SNAPSHOT).is_null() & pc.field(_SKIPPED).is_null()
        with (
            at_work("reading the change log", {"table": logged.table}, hint=CHANGELOG_HINT),
            pq.ParquetFile(data_file(root, name), filesystem=filesystem) as file,
        ):
            for group in range(file.num_row_groups):
                read = file.read_row_group(group, columns=[*map(names.of, _READ)])
                rows = names.from_files(read)
                events = np.ones(rows.num_rows, np.int64)
                if "u" in rows[_OP].unique().to_pylist():
                    events += _moved(logged, file, group)
                rows = rows.append_column("events", pa.array(events)).filter(wanted)
                of = pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows)
                rows = rows.append_column("table", of).rename_columns({ORDINAL: "ordinal"})
                parts.append(rows.select(_COLUMNS.names).cast(_COLUMNS))
        return pa.concat_tables(parts)


def _moved(logged: LoggedTable, file: pq.ParquetFile, group: int) -> _Ints:
    """1 for each change of a row group that gives its row another key, else 0."""
    schema, names = logged.schema, logged.log.file_names
    stored = [schema.stored_names[one] for one in schema.key]
    paths = [names.of(image, one) for image in ("before", "after") for one in stored]
    rows = names.from_files(file.read_row_group(group, columns=[names.of(_OP), *paths]))
    is_update = pc.equal(rows[_OP], "u")
    moved = pa.array(np.zeros(rows.num_rows, np.bool_))
    for one in stored:
        before, after = (pc.struct_field(rows[image], one) for image in ("before", "after"))
        same = pc.or_(
            pc.fill_null(pc.equal(before, after), False),
            pc.and_(pc.is_null(before), pc.is_null(after)),
        )
        moved = pc.or_(moved, pc.invert(same))
    found: _Ints = pc.and_(is_update, moved).cast(pa.int64()).to_numpy()
    return found


_COLUMNS = pa.schema(
    [
        (COMMIT_SCN, pa.int64()),
        (_XID, pa.string()),
        ("ordinal", pa.int64()),
        ("events", pa.int64()),
        ("table", pa.int64()),
        *((name, pa.timestamp("us")) for name in _TIMES),
    ]
)
