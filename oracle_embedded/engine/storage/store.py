"""How do tables live in SQLite, and who may write when?

One file in WAL mode. Table ``t<object id>`` holds the current version of each row, committed or
not, under its address ``rid``; ``h<object id>`` holds earlier versions. ``vf`` and ``vt`` are the
commit SCNs between which a version was current; while its transaction is open the transaction's
mark (above every SCN) stands in their place. One writer connection, under one lock, makes all
changes; queries run on read connections with their own SQLite snapshot.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from oracle_embedded.api import RedoSink
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.install import install
from oracle_embedded.engine.storage.blocks import (
    FREE_MAX,
    BlockAllocator,
    ClusterExtents,
    Segment,
    first_block,
)
from oracle_embedded.engine.storage.catalog import Catalog, TableDef
from oracle_embedded.engine.storage.scn import ScnClock

_POOL_MAX = 16
_CHECKPOINT_PAGES = 4000


@dataclass(slots=True)
class Connection:
    """A SQLite connection with the context of its registered functions.

    ``filled`` names the temporary tables that computed views are filled into, each with the places
    of its columns. They outlast a query, without rows: one that went with its SQLite transaction
    would make SQLite read the definitions of all tables again.
    """

    sqlite: sqlite3.Connection
    context: CallContext
    filled: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Activity:
    """What readers must know of a table: its newest commit, who writes it now, and the newest
    history thrown away."""

    last_commit: int = 0
    writers: set[int] = field(default_factory=set)
    purged: int = 0


class Store:
    """The SQLite file, its connections and the writer's lock."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self.path = path
        self.now = now
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self._writer = self._connect()
        self.sink: RedoSink | None = None
        self.before_flush: Callable[[], None] = lambda: None
        self._pool: list[Connection] = []
        self._pool_lock = threading.Lock()
        self._depth = 0
        self._open = False
        self.closed = False
        with self.lock:
            self._read()

    def _read(self) -> None:
        sqlite = self.writer.sqlite
        sqlite.execute("PRAGMA journal_mode = WAL")
        sqlite.execute("PRAGMA synchronous = NORMAL")
        sqlite.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        self.begin()
        self.catalog = Catalog(sqlite)
        self.clock = ScnClock(sqlite, self.now)
        sqlite.execute(
            "CREATE TABLE IF NOT EXISTS undo (seq INTEGER PRIMARY KEY AUTOINCREMENT, tx INTEGER, oid INTEGER,"
            " rid INTEGER, op INTEGER, hid INTEGER, cols TEXT)"
        )
        sqlite.execute("CREATE TABLE IF NOT EXISTS open_tx (tx INTEGER PRIMARY KEY, body TEXT)")
        sqlite.execute("CREATE TABLE IF NOT EXISTS segments (oid INTEGER PRIMARY KEY, body TEXT)")
        sqlite.execute(
            "CREATE TABLE IF NOT EXISTS sequences (oid INTEGER PRIMARY KEY, next_value TEXT)"
        )
        self.allocator = BlockAllocator()
        self.segments: dict[int, Segment] = {}
        self._dirty_segments: set[int] = set()
        for oid, body in sqlite.execute("SELECT oid, body FROM segments").fetchall():
            plain = json.loads(body)
            extents = [(first, blocks) for first, blocks in plain["extents"]]
            self.segments[oid] = Segment(
                extents, plain["extent"], plain["block"], plain["slot"], plain["used"]
            )
        for definition in [*self.segments.values()]:
            for first, blocks in definition.extents:
                self.allocator.next_block = max(self.allocator.next_block, first + blocks)
        self.allocator.next_block = max(
            self.allocator.next_block, int(self.catalog.setting("next_block") or 0)
        )
        self.activity: dict[int, Activity] = {
            table.object_id: Activity(
                self.clock.value, purged=int(self.catalog.setting(f"purged.{table.object_id}") or 0)
            )
            for table in self.catalog.tables()
        }
        self.flush()

    # --- connections ------------------------------------------------------------------------------

    def _connect(self) -> Connection:
        context = CallContext()
        sqlite = sqlite3.connect(
            self.path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        sqlite.text_factory = bytes
        sqlite.execute("PRAGMA case_sensitive_like = ON")
        sqlite.execute("PRAGMA temp_store = FILE")
        sqlite.execute("PRAGMA cache_size = -32000")
        install(sqlite, context)
        return Connection(sqlite, context)

    def take_reader(self) -> Connection:
        """A connection for one query; give it back with :meth:`give_back`."""
        with self._pool_lock:
            if self._pool:
                return self._pool.pop()
        return self._connect()

    def give_back(self, connection: Connection) -> None:
        """End the connection's SQLite transaction and keep it for the next query."""
        if connection.sqlite.in_transaction:
            connection.sqlite.rollback()
        with self._pool_lock:
            if len(self._pool) < _POOL_MAX and not self.closed:
                self._pool.append(connection)
                return
        connection.sqlite.close()

    # --- the writer -------------------------------------------------------------------------------

    @property
    def writer(self) -> Connection:
        """The one connection that writes, for who holds the lock.

        A second thread on it would freeze the process: SQLite's own lock of the connection is
        waited for with Python's held, by which the statement that has it cannot go on when it calls
        one of our functions.
        """
        if not self.lock._is_owned():  # type: ignore[attr-defined]
            raise AssertionError("the writer's connection is used without its lock")
        return self._writer

    def begin(self) -> sqlite3.Connection:
        """Make sure that the writer has a SQLite transaction, under the lock."""
        if not self._open:
            self.writer.sqlite.execute("BEGIN IMMEDIATE")
            self._open = True
        return self.writer.sqlite

    def flush(self) -> None:
        """Make everything reported so far visible to readers and safe from a killed process."""
        with self.lock:
            if not self._open:
                if not self.clock.needs_saving():
                    return
                self.begin()
            if self._depth:
                return
            self.before_flush()
            if self.sink is not None:
                self.sink.flush()
            self.clock.save()
            self._save_segments()
            self.writer.sqlite.execute("COMMIT")
            self._open = False

    def _save_segments(self) -> None:
        for oid in self._dirty_segments:
            segment = self.segments.get(oid)
            if segment is None:
                self.writer.sqlite.execute("DELETE FROM segments WHERE oid = ?", (oid,))
                continue
            body = json.dumps(
                {
                    "extents": segment.extents,
                    "extent": segment.extent,
                    "block": segment.block,
                    "slot": segment.slot,
                    "used": segment.used,
                }
            )
            self.writer.sqlite.execute("INSERT OR REPLACE INTO segments VALUES (?, ?)", (oid, body))
        if self._dirty_segments:
            self.catalog.set_setting("next_block", str(self.allocator.next_block))
        self._dirty_segments.clear()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The lock and a SQLite transaction of its own: committed when the block ends well, else
        rolled back."""
        with self.lock:
            if self._depth == 0:
                self.flush()
                self.begin()
            self._depth += 1
            try:
                yield
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self.writer.sqlite.execute("ROLLBACK")
                    self._open = False
                    if self.sink is not None:
                        self.sink.reload()
                raise
            self._depth -= 1
            if self._depth == 0:
                self.flush()

    def close(self) -> None:
        """Flush and release everything."""
        with self.lock:
            if self.closed:
                return
            self.begin()
            self.clock.save(exact=True)
            self.flush_exact()
            self.closed = True
            for connection in self._pool:
                connection.sqlite.close()
            self._pool.clear()
            self.writer.sqlite.close()

    def flush_exact(self) -> None:
        """The last flush: afterwards no SCN is taken any more."""
        self.before_flush()
        if self.sink is not None:
            self.sink.flush()
        self._save_segments()
        self.clock.save(exact=True)
        self.writer.sqlite.execute("COMMIT")
        self._open = False

    # --- tables -----------------------------------------------------------------------------------

    def create_table(self, table: TableDef) -> None:
        """Make the storage of a new table."""
        oid = table.object_id
        sqlite = self.begin()
        columns = "".join(f", c{internal_id}" for internal_id in table.ids)
        columns += ", dobj INTEGER" if table.partitioning is not None else ""
        sqlite.execute(
            f"CREATE TABLE t{oid} (rid INTEGER PRIMARY KEY, vf INTEGER NOT NULL{columns})"
        )
        sqlite.execute(
            f"CREATE TABLE h{oid} (hid INTEGER PRIMARY KEY, rid INTEGER, vf INTEGER, vt INTEGER{columns})"
        )
        sqlite.execute(f"CREATE INDEX h{oid}_vt ON h{oid} (vt)")
        sqlite.execute(f"CREATE INDEX h{oid}_rid ON h{oid} (rid)")
        self.activity[oid] = Activity(self.clock.value)
        for segment in segments_of(table):
            self.new_segment(segment)

    def new_segment(self, number: int) -> None:
        """Begin a segment, or begin it anew."""
        self.segments[number] = Segment()
        self._dirty_segments.add(number)

    def refill_segment(self, number: int) -> None:
        """Fill the segment's extents from the first block on: its rows are placed again."""
        extents = self.segments[number].extents
        self.segments[number] = Segment(extents, block=first_block(extents) if extents else 0)
        self._dirty_segments.add(number)

    def drop_segment(self, number: int) -> None:
        """Forget a segment, whose rows are gone."""
        self.segments.pop(number, None)
        self._dirty_segments.add(number)

    def swap_segments(self, one: int, other: int) -> None:
        """Exchange the extents of two segments."""
        self.segments[one], self.segments[other] = self.segments[other], self.segments[one]
        self._dirty_segments |= {one, other}

    def add_column(self, oid: int, internal_id: int, default: str | None) -> None:
        """Add a storage column; ``default`` is SQLite text of the value that existing rows show."""
        clause = f" DEFAULT {default}" if default is not None else ""
        for prefix in "th":
            self.begin().execute(f"ALTER TABLE {prefix}{oid} ADD COLUMN c{internal_id}{clause}")

    def refit_column(self, oid: int, internal_id: int, fit: Callable[[bytes], object]) -> None:
        """Give the values of a column the form of another type; rows and their versions stay what
        they are."""
        name, connection = f"c{internal_id}", self.begin()
        for prefix in "th":
            found = connection.execute(
                f"SELECT rowid, {name} FROM {prefix}{oid} WHERE {name} IS NOT NULL"
            ).fetchall()
            connection.executemany(
                f"UPDATE {prefix}{oid} SET {name} = ? WHERE rowid = ?",
                [(fit(value), row) for row, value in found],
            )

    def drop_table(self, table: TableDef) -> None:
        """Remove the storage of a table."""
        oid = table.object_id
        self.begin().execute(f"DROP TABLE t{oid}")
        self.begin().execute(f"DROP TABLE h{oid}")
        self.activity.pop(oid, None)
        for segment in segments_of(table):
            self.drop_segment(segment)

    def empty_table(self, table: TableDef) -> None:
        """Throw all rows and their history away."""
        self.clear_rows(table.object_id)
        for segment in segments_of(table):
            self.new_segment(segment)

    def clear_rows(self, oid: int) -> None:
        """Throw the rows of a table and their history away, not its extents."""
        self.begin().execute(f"DELETE FROM t{oid}")
        self.begin().execute(f"DELETE FROM h{oid}")

    def data_object_of(self, table: TableDef, rid: int) -> int:
        """The number that the ROWID of a row begins with. Under the lock."""
        if table.partitioning is None:
            return table.data_object_id
        (found,) = self.writer.sqlite.execute(
            f"SELECT dobj FROM t{table.object_id} WHERE rid = ?", (rid,)
        ).fetchone()
        return int(found)

    def create_index(self, oid: int, index_id: int, columns: Sequence[int]) -> None:
        """Index current and past rows. Uniqueness is checked by the engine, at the end of a
        statement."""
        names = ", ".join(f"c{internal_id}" for internal_id in columns)
        self.begin().execute(f"CREATE INDEX i{index_id} ON t{oid} ({names})")
        self.begin().execute(f"CREATE INDEX ih{index_id} ON h{oid} ({names})")

    def drop_index(self, index_id: int) -> None:
        """Remove an index."""
        self.begin().execute(f"DROP INDEX IF EXISTS i{index_id}")
        self.begin().execute(f"DROP INDEX IF EXISTS ih{index_id}")

    def place(self, oid: int, size: int, cluster: int = 0) -> int:
        """The address of a new row; among the blocks of a cluster, if its table is in one, where a
        row of another table may have it too."""
        self._dirty_segments.add(oid)
        segment = self.segments[oid]
        if not cluster:
            return segment.place(size, self.allocator)
        self._dirty_segments.add(cluster)
        shared = ClusterExtents(self.segments[cluster], len(segment.extents), self.allocator)
        return segment.place(size, shared)

    def free(self, oid: int, rids: Iterable[int]) -> None:
        """Rows of these addresses were deleted and committed: later rows may have their places."""
        segment = self.segments.get(oid)
        if segment is not None:
            segment.free += list(rids)[: FREE_MAX - len(segment.free)]


def segments_of(table: TableDef) -> tuple[int, ...]:
    """Under which numbers a table's extents are kept: its partitions', or its own."""
    if table.partitioning is None:
        return (table.object_id,)
    return tuple(leaf.object_id for leaf in table.partitioning.leaves)
