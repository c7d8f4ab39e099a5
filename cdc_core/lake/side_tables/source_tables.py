"""What is in the Delta tables that a source has beside change logs and mirrors, and how do they
change? Without Spark.

There are two: the transactions whose changes the change logs have, and the changes of the tables'
definitions. A window's rows come when all tables have the window that take it, before the metadata
store says so. Each commit has its own transaction identifier, whose
version is the position: ``scn_high`` of the newest window that brought rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.delta.appending import CommitInfo, FileChanges, commit_files, write_file
from cdc_core.delta.history import DeltaCommit, filesystem_of, newest_files, read_log
from cdc_core.delta.log_files import data_file
from cdc_core.delta.small_tables import SmallTable
from cdc_core.lake.rows.logged_changes import queried, reading_layer
from cdc_core.lake.table_context import TableWork
from cdc_core.model.scn import ScnWindow
from cdc_core.stage.definitions import SCHEMA_CHANGES
from cdc_core.stage.transactions import TRANSACTIONS

SideTableName = Literal["transactions", "schema_changes"]
SIDE_TABLE_NAMES: tuple[SideTableName, ...] = get_args(SideTableName)

WINDOW = "scn_high"
"""The column that names the window that brought a row."""

_SCHEMAS = {"transactions": TRANSACTIONS, "schema_changes": SCHEMA_CHANGES}
_INDEXED = {"transactions": (WINDOW, "commit_scn"), "schema_changes": (WINDOW, "scn")}


def side_table_path(root: str, source: str, name: SideTableName) -> str:
    """The folder of one of the tables."""
    return f"{root.rstrip('/')}/{source}/{name}"


class DeltaSideTable:
    """One of the tables, as :class:`cdc_core.lake.lake.SideTable` says; empty where its Delta table
    is not there. ``fence`` is called right before each commit."""

    def __init__(
        self, root: str, source: str, name: SideTableName, fence: Callable[[], None]
    ) -> None:
        self._source, self._name = source, name
        self.path, self.schema = side_table_path(root, source, name), _SCHEMAS[name]
        self._table = SmallTable(
            path=self.path,
            name=f"table of {name.replace('_', ' ')}",
            schema=self.schema,
            indexed=_INDEXED[name],
            properties={"redolake.source": source, "redolake.role": name},
            facts={"source": source, "path": self.path},
            fence=fence,
        )

    def position(self) -> int | None:
        log = read_log(self.path)
        return None if log is None else log.transactions.get(self._app)

    def read(
        self, columns: Sequence[str], window: int | None = None, *, since: int = 0
    ) -> pa.Table:
        filters: list[tuple[str, str, object]] = [] if window is None else [(WINDOW, "=", window)]
        filters += [("scn", ">=", since)] if since else []
        return self._table.read(columns, *filters)

    def rows_by_window(self, windows: ScnWindow) -> Counter[int]:
        """How many rows each window of a range of SCNs brought, by the window's upper end."""
        within = (WINDOW, ">", windows.scn_low), (WINDOW, "<=", windows.scn_high)
        counts = self._table.read([WINDOW], *within)[WINDOW].value_counts().to_pylist()
        return Counter({one["values"]: one["counts"] for one in counts})

    def put(self, rows: pa.Table, window: int) -> None:
        """A window behind the newest one has no rows yet: they are appended, no file is read."""
        done = self.position()
        if done is None or window > done:
            self._append(rows, window, is_first=done is None)
            return
        order = [
            (name, "ascending") for name in self.schema.names if not _is_list(self.schema, name)
        ]
        there = self.read(self.schema.names, window)
        if there.sort_by(order).equals(rows.sort_by(order)):
            return
        from deltalake import write_deltalake

        txn = (self._app, done)
        with self._table.committing(self._metadata(window), txn) as properties:
            write_deltalake(
                self.path,
                rows,
                mode="overwrite" if there.num_rows else "append",
                predicate=f"{WINDOW} = {window}" if there.num_rows else None,
                commit_properties=properties,
            )

    def _append(self, rows: pa.Table, window: int, *, is_first: bool) -> None:
        if rows.num_rows == 0:
            return
        if is_first:
            self._table.create()
        file = write_file(self.path, self.schema, rows.to_batches(), _INDEXED[self._name])
        assert file is not None
        info = CommitInfo(
            doing=self._table.doing,
            metadata=self._metadata(window),
            txn=(self._app, window),
            facts=self._table.facts,
        )
        files = FileChanges(added=[file])
        commit_files(self.path, files, info, fence=self._table.fence)

    def maintain(self, vacuum_hours: int | None) -> None:
        if (position := self.position()) is not None:
            metadata = self._metadata(position, "maintenance")
            self._table.maintain(vacuum_hours, metadata, (self._app, position))

    @property
    def _app(self) -> str:
        return f"redolake/{self._source}/{self._name}"

    def _metadata(self, window: int, kind: str | None = None) -> str:
        metadata = {"source": self._source, "kind": kind or self._name, "scn_high": window}
        return json.dumps(metadata, sort_keys=True)


def _is_list(schema: pa.Schema, name: str) -> bool:
    return bool(pa.types.is_nested(schema.field(name).type))


_EVENTS = pa.schema([("xid", pa.string()), ("commit_scn", pa.int64()), ("events", pa.int64())])
_OF_TRANSACTION = ["_cdc_xid", "_cdc_commit_scn"]
_COUNTED = [*_OF_TRANSACTION, "_cdc_window", "_cdc_snapshot", "_cdc_op", "_cdc_skipped"]


def count_events(work: TableWork, scn_low: int, scn_high: int) -> pa.Table:
    """How many changes, without skipped ones, of which transactions the change log has of one
    window (``xid, commit_scn, events``); needs no Spark. Of a window that the change log took last,
    its own files alone are read."""
    if read_log(work.changelog) is None:
        return _EVENTS.empty_table()

    def is_earlier(commit: DeltaCommit) -> bool:
        said = commit.metadata
        return said.get("kind") == "window" and int(said["scn_high"]) <= scn_low

    names = newest_files(work.changelog, is_earlier)
    found = None if names is None else _counted_in(work, names, scn_low, scn_high)
    if found is not None:
        return found
    wanted = (
        f"_cdc_window > {scn_low} AND _cdc_window <= {scn_high} AND _cdc_snapshot IS NULL AND _cdc_op <> 't' "
        "AND _cdc_skipped IS NULL"
    )
    asked = queried(
        work,
        "SELECT _cdc_xid AS xid, _cdc_commit_scn AS commit_scn, COUNT(*) AS events FROM changelog "
        f"WHERE {wanted} GROUP BY _cdc_xid, _cdc_commit_scn",
    )
    return asked.cast(_EVENTS)


def _counted_in(
    work: TableWork, names: Sequence[str], scn_low: int, scn_high: int
) -> pa.Table | None:
    """The same out of some files; None where one calls its columns otherwise, or lacks some."""
    filesystem, root = filesystem_of(work.changelog)
    window = pc.field("_cdc_window")
    wanted = (window > scn_low) & (window <= scn_high) & pc.field("_cdc_snapshot").is_null()
    wanted &= (pc.field("_cdc_op") != "t") & pc.field("_cdc_skipped").is_null()
    counts = [_EVENTS.empty_table()]
    with reading_layer(work, "changelog"):
        for name in names:
            with pq.ParquetFile(data_file(root, name), filesystem=filesystem) as file:
                if not set(_COUNTED) <= set(file.schema_arrow.names):
                    return None
                for group in range(file.num_row_groups):
                    rows = file.read_row_group(group, columns=_COUNTED).filter(wanted)
                    of_group = rows.group_by(_OF_TRANSACTION).aggregate([([], "count_all")])
                    counts.append(of_group.rename_columns(_EVENTS.names).cast(_EVENTS))
    summed = pa.concat_tables(counts).group_by(["xid", "commit_scn"]).aggregate([("events", "sum")])
    return summed.rename_columns(_EVENTS.names)
