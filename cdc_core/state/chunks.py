"""Which chunks do snapshots have, and how far is each?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, func, insert, or_, select, update

from cdc_core.errors import LandingDamagedError, NotYetError
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.model.chunks import NEW_ROWS, ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, ChunkState
from cdc_core.state.database import StorePart, cached
from cdc_core.state.sql_tables import CHUNKS, TABLES, of, values_of
from cdc_core.state.totals import add_totals, counts_of_chunk, counts_of_unfit

_PLACE = (CHUNKS.c.owner, CHUNKS.c.name, CHUNKS.c.snapshot_id)
_OF_SOURCE = CHUNKS.c.source == bindparam("of")
_SNAPSHOTS = select(*_PLACE).where(_OF_SOURCE).distinct()
_SETTLED = ("applied", "dropped")
"""States of chunks with which nothing is left to do."""
_OPEN_SNAPSHOTS = select(*_PLACE).where(_OF_SOURCE, CHUNKS.c.state.not_in(_SETTLED)).distinct()
_OF_TABLE = (CHUNKS.c.owner == bindparam("owned"), CHUNKS.c.name == bindparam("named"))
_OF_SNAPSHOT = (*_OF_TABLE, CHUNKS.c.snapshot_id == bindparam("snapshot"))
_IS_CHUNK = and_(_OF_SOURCE, *_OF_SNAPSHOT, CHUNKS.c.number == bindparam("numbered"))
_CHUNK = select(CHUNKS).where(_IS_CHUNK)
_SET = update(CHUNKS).where(_IS_CHUNK)
_RAISE_CONSISTENT_SCN = (
    update(TABLES)
    .where(
        TABLES.c.source == bindparam("of"),
        TABLES.c.owner == bindparam("owned"),
        TABLES.c.name == bindparam("named"),
        or_(TABLES.c.consistent_scn.is_(None), TABLES.c.consistent_scn < bindparam("read_up_to")),
    )
    .values(consistent_scn=bindparam("read_up_to"))
)
_OTHERS_APPLIED = select(CHUNKS.c.snapshot_id, CHUNKS.c.number).where(
    _OF_SOURCE,
    *_OF_TABLE,
    CHUNKS.c.state == "applied",
    CHUNKS.c.snapshot_id != bindparam("snapshot"),
    CHUNKS.c.scn >= bindparam("since"),
    CHUNKS.c.rows > 0,
)
_SNAPSHOTS_OF_TABLE = _SNAPSHOTS.where(*_OF_TABLE)
_OPEN_SNAPSHOTS_OF_TABLE = _OPEN_SNAPSHOTS.where(*_OF_TABLE)


@dataclass(frozen=True, slots=True)
class ChunkTally:
    """How far a snapshot of a table is: of so many ``chunks`` so many are ``settled``, applied or
    dropped, and those that are applied have so many ``rows``; ``signal_id`` asked for it."""

    chunks: int
    settled: int
    rows: int
    signal_id: str | None


class Chunks(StorePart):
    """Chunks of snapshots."""

    @cached
    def find(
        self,
        table: TableId | None = None,
        snapshot_id: str | None = None,
        states: Iterable[ChunkState] | None = None,
    ) -> list[ChunkRecord]:
        """Chunks by table, snapshot and number; all conditions are optional."""
        query = select(CHUNKS).where(of(CHUNKS, self._source, table))
        if snapshot_id is not None:
            query = query.where(CHUNKS.c.snapshot_id == snapshot_id)
        if states is not None:
            query = query.where(CHUNKS.c.state.in_(list(states)))
        rows = self._rows(query.order_by(*_PLACE, CHUNKS.c.number))
        return [_chunk_from_row(row) for row in rows]

    @cached
    def are_others_applied(self, key: ChunkKey) -> bool:
        """Are all chunks of a snapshot but this one applied? One that is not is enough to know:
        the last ones are asked first."""
        others = select(CHUNKS.c.number).where(
            of(CHUNKS, self._source, key.table, snapshot_id=key.snapshot_id),
            CHUNKS.c.number != key.number,
            CHUNKS.c.state != "applied",
        )
        with self._database.reading() as connection:
            newest = connection.execute(others.order_by(CHUNKS.c.number.desc()).limit(1))
            return newest.first() is None

    @cached
    def of_other_snapshots(
        self, table: TableId, snapshot_id: str, since: int
    ) -> list[tuple[str, int]]:
        """Which chunks with rows of other snapshots than a table's first, which was read as of
        ``since``, are applied: those of signals, repairs, and rows that came without redo."""
        place = {**_place(self._source, table), "snapshot": snapshot_id, "since": since}
        with self._database.reading() as connection:
            rows = connection.execute(_OTHERS_APPLIED, place)
            return [(str(snapshot), int(number)) for snapshot, number in rows]

    @cached
    def get(self, key: ChunkKey) -> ChunkRecord | None:
        """One chunk."""
        with self._database.reading() as connection:
            return _chunk(connection, self._source, key)

    @cached
    def covered_scn(self, table: TableId) -> int:
        """The SCN as of which the newest snapshot of the whole table knows every key, also those
        that are not there; 0 without one.

        All its chunks are applied, none has a condition but the table's own, and none is of single
        keys. Chunks may have been read at different SCNs: the lowest counts.
        """
        with self._database.reading() as connection:
            found = connection.execute(_covered_scn(), _place(self._source, table))
            return int(found.scalar_one() or 0)

    @cached
    def covered_scns(self) -> dict[TableId, int]:
        """:meth:`covered_scn` of every table that has one."""
        with self._database.reading() as connection:
            rows = connection.execute(_covered_scns(), {"of": self._source}).all()
        found: dict[TableId, int] = {}
        for owner, name, scn in rows:
            table = TableId(owner, name)
            found[table] = max(found.get(table, 0), int(scn))
        return found

    def drop_unread(self, table: TableId, *, keeps_first: bool) -> list[ChunkRecord]:
        """Drop a table's chunks that nobody has read, but for those of rows that came without redo,
        for which windows wait; return them.

        Args:
            table: The table.
            keeps_first: Leave the first of them, with which the table's Delta tables begin.
        """
        with self._database.writing() as connection:
            unread = _unread(connection, self._source, table)[1 if keeps_first else 0 :]
            for chunk in unread:
                set_chunk(connection, chunk, state="dropped")
            return unread

    @cached
    def snapshots(self, table: TableId | None = None) -> dict[tuple[TableId, str], bool]:
        """Every snapshot, or those of one table, by table and id, and whether all of its chunks are
        applied."""
        binds, queries = {"of": self._source}, (_SNAPSHOTS, _OPEN_SNAPSHOTS)
        if table is not None:
            binds = _place(self._source, table)
            queries = (_SNAPSHOTS_OF_TABLE, _OPEN_SNAPSHOTS_OF_TABLE)
        with self._database.reading() as connection:
            every, unfinished = (connection.execute(query, binds).all() for query in queries)
        open_ = set(map(tuple, unfinished))
        return {
            (TableId(owner, name), one): (owner, name, one) not in open_
            for owner, name, one in every
        }

    @cached
    def counts(self) -> dict[tuple[TableId, str], tuple[int, int]]:
        """Every snapshot by table and id: how many of its chunks are applied, and how many there
        are, but for dropped ones."""
        applied = func.sum(case((CHUNKS.c.state == "applied", 1), else_=0))
        query = select(*_PLACE, applied, _wanted()).where(CHUNKS.c.source == self._source)
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(*_PLACE)).all()
        return {
            (TableId(owner, name), one): (int(done), int(n)) for owner, name, one, done, n in rows
        }

    def unfinished(self) -> dict[tuple[TableId, str], list[ChunkRecord]]:
        """Every snapshot that has chunks to apply, by table and id: all of its chunks."""
        waits = _OPEN_SNAPSHOTS.subquery()
        is_one = and_(
            *(CHUNKS.c[name] == waits.c[name] for name in ("owner", "name", "snapshot_id"))
        )
        query = select(CHUNKS).join(waits, is_one).where(CHUNKS.c.source == self._source)
        found: dict[tuple[TableId, str], list[ChunkRecord]] = {}
        with self._database.reading() as connection:
            rows = connection.execute(
                query.order_by(*_PLACE, CHUNKS.c.number), {"of": self._source}
            )
            for chunk in map(_chunk_from_row, rows.mappings()):
                found.setdefault((chunk.table, chunk.snapshot_id), []).append(chunk)
        return found

    def reading(self) -> dict[TableId, tuple[int, float]]:
        """How many rows were read from each table in chunks, and in how many seconds of one
        session."""
        sums = (func.sum(CHUNKS.c.rows), func.sum(CHUNKS.c.seconds))
        query = select(CHUNKS.c.owner, CHUNKS.c.name, *sums).where(
            CHUNKS.c.source == self._source, CHUNKS.c.rows > 0, CHUNKS.c.seconds > 0
        )
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(CHUNKS.c.owner, CHUNKS.c.name)).all()
        return {
            TableId(owner, name): (int(read), float(seconds)) for owner, name, read, seconds in rows
        }

    @cached
    def tally(self, table: TableId, snapshot_id: str) -> ChunkTally:
        """How far one snapshot of a table is, counted by the database."""
        mine = of(CHUNKS, self._source, table, snapshot_id=snapshot_id)
        settled = func.sum(case((CHUNKS.c.state.in_(_SETTLED), 1), else_=0))
        rows = func.sum(case((CHUNKS.c.state == "applied", CHUNKS.c.rows), else_=0))
        query = select(func.count(), settled, rows, func.max(CHUNKS.c.signal_id)).where(mine)
        with self._database.reading() as connection:
            chunks, done, read, signal = connection.execute(query).one()
        return ChunkTally(int(chunks), int(done or 0), int(read or 0), signal)

    def begun_together(self, snapshot_id: str, signal_id: str | None) -> tuple[list[TableId], bool]:
        """The tables of the snapshots that one signal asked for, or without one those of one id;
        and is nothing left to do with any of their chunks?"""
        mine = of(CHUNKS, self._source, signal_id=signal_id)
        if signal_id is None:
            mine = and_(mine, CHUNKS.c.snapshot_id == snapshot_id)
        tables = select(CHUNKS.c.owner, CHUNKS.c.name).where(mine).distinct()
        left = select(CHUNKS.c.number).where(mine, CHUNKS.c.state.not_in(_SETTLED)).limit(1)
        with self._database.reading() as connection:
            found = sorted(TableId(*row) for row in connection.execute(tables))
            return found, connection.execute(left).first() is None

    @cached
    def signal_progress(self) -> dict[str, tuple[int, int]]:
        """Every signal that planned chunks: how many of them are applied, and how many there are,
        but for dropped ones."""
        applied = func.sum(case((CHUNKS.c.state == "applied", 1), else_=0))
        mine = (CHUNKS.c.source == self._source) & CHUNKS.c.signal_id.is_not(None)
        query = select(CHUNKS.c.signal_id, applied, _wanted()).where(mine)
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(CHUNKS.c.signal_id)).all()
        return {signal: (int(done), int(n)) for signal, done, n in rows}

    def plan(self, chunks: Sequence[ChunkRecord]) -> list[ChunkRecord]:
        """Add planned chunks of snapshots, all or none of each; return what the snapshots have: one
        that is planned stays as it is, since chunks of two plans may overlap, or leave a gap
        between them."""
        with self._database.writing() as connection:
            return add_chunks(connection, chunks)

    def record_landed(self, manifest: ChunkManifest, manifest_sha256: str) -> None:
        """Note that a chunk has landed; the table is consistent from the highest SCN of its rows on
        at the earliest. Repeatable.

        Raises:
            LandingDamagedError: It was recorded with another manifest.
            NotYetError: The chunk is not planned, or not any more.
        """
        with self._database.writing() as connection:
            record = _known(connection, manifest.source, manifest.chunk_key)
            if record.state in ("planned", "dropped"):  # dropped while it was read
                set_chunk(
                    connection,
                    record,
                    state="landed",
                    scn=manifest.scn,
                    scn_high=manifest.scn_high,
                    rows=manifest.rows,
                    seconds=manifest.seconds,
                    manifest_sha256=manifest_sha256,
                )
                _raise_consistent_scn(connection, manifest)
                unfit = {str(manifest.schema.table): manifest.unfit_values}
                add_totals(connection, manifest.source, counts_of_unfit(unfit))
            elif record.manifest_sha256 != manifest_sha256:
                raise LandingDamagedError(
                    "the chunk was recorded with another manifest",
                    hint="Restore the landing folder that was recorded.",
                    table=record.table,
                    snapshot_id=record.snapshot_id,
                    number=record.number,
                )

    def record_applied(self, key: ChunkKey, *, seconds: float = 0.0) -> None:
        """Note that the lake took a chunk. Repeatable.

        Raises:
            NotYetError: The chunk has not landed.
        """
        with self._database.writing() as connection:
            record = _known(connection, self._source, key)
            if record.state == "planned":
                raise NotYetError(
                    "the chunk has not landed yet",
                    hint="Read it first: `redolake snapshot`.",
                    source=self._source,
                    table=key.table,
                    snapshot_id=key.snapshot_id,
                    number=key.number,
                )
            if record.state == "landed":
                now = self._database.now()
                set_chunk(connection, record, state="applied", apply_seconds=seconds, applied=now)
                now = self._database.now()
                add_totals(
                    connection, self._source, counts_of_chunk(record, seconds=seconds, now=now)
                )

    def restore(self, chunks: Sequence[ChunkRecord]) -> None:
        """Write chunks in whatever state into a store that is made anew."""
        with self._database.writing() as connection:
            write_chunks(connection, chunks)


@cache
def _covered_scns() -> Any:
    lowest = func.min(CHUNKS.c.scn).label("scn")
    whole = select(CHUNKS.c.owner, CHUNKS.c.name, lowest).where(_OF_SOURCE)
    return whole.group_by(*_PLACE).having(func.sum(_lacks()) == 0)


@cache
def _covered_scn() -> Any:
    return select(func.max(_covered_scns().where(*_OF_TABLE).subquery().c.scn))


def _place(source: str, table: TableId) -> dict[str, Any]:
    return {"of": source, "owned": table.owner, "named": table.name}


def _lacks() -> Any:
    """1 for a chunk that keeps its snapshot from speaking for the whole table."""
    own = select(TABLES.c.row_filter).where(
        TABLES.c.source == CHUNKS.c.source,
        TABLES.c.owner == CHUNKS.c.owner,
        TABLES.c.name == CHUNKS.c.name,
    )
    own_filter = func.coalesce(own.correlate(CHUNKS).scalar_subquery(), "")
    has_condition = func.coalesce(CHUNKS.c.condition, own_filter) != own_filter
    is_part = has_condition | CHUNKS.c.range.like('%"kind":"keys"%')
    return case((is_part | (CHUNKS.c.state != "applied"), 1), else_=0)


def _wanted() -> Any:
    """How many chunks are not dropped."""
    return func.sum(case((CHUNKS.c.state == "dropped", 0), else_=1))


def _unread(connection: Connection, source: str, table: TableId) -> list[ChunkRecord]:
    query = select(CHUNKS).where(
        of(CHUNKS, source, table, state="planned"),
        func.substr(CHUNKS.c.snapshot_id, 1, len(NEW_ROWS)) != NEW_ROWS,
    )
    order = (CHUNKS.c.snapshot_id, CHUNKS.c.number)
    rows = connection.execute(query.order_by(*order)).mappings()
    return [_chunk_from_row(row) for row in rows]


def write_chunks(connection: Connection, chunks: Sequence[ChunkRecord]) -> None:
    """Write chunks as they are inside the caller's transaction."""
    if chunks:
        connection.execute(insert(CHUNKS), [values_of(CHUNKS, chunk) for chunk in chunks])


def add_chunks(connection: Connection, chunks: Sequence[ChunkRecord]) -> list[ChunkRecord]:
    """Add the plans of snapshots that have none inside the caller's transaction; return what each
    snapshot has."""
    planned: list[ChunkRecord] = []
    for place, plan in _by_snapshot(chunks).items():
        known = _chunks_of(connection, *place)
        if not known:
            write_chunks(connection, plan)
        planned += known or plan
    return planned


def _by_snapshot(
    chunks: Sequence[ChunkRecord],
) -> dict[tuple[str, TableId, str], list[ChunkRecord]]:
    found: dict[tuple[str, TableId, str], list[ChunkRecord]] = {}
    for chunk in chunks:
        found.setdefault((chunk.source, chunk.table, chunk.snapshot_id), []).append(chunk)
    return found


def _chunks_of(
    connection: Connection, source: str, table: TableId, snapshot_id: str
) -> list[ChunkRecord]:
    query = select(CHUNKS).where(of(CHUNKS, source, table, snapshot_id=snapshot_id))
    rows = connection.execute(query.order_by(CHUNKS.c.number)).mappings()
    return [_chunk_from_row(row) for row in rows]


def _raise_consistent_scn(connection: Connection, manifest: ChunkManifest) -> None:
    place = _place(manifest.source, manifest.schema.table)
    connection.execute(_RAISE_CONSISTENT_SCN, {**place, "read_up_to": manifest.read_up_to})


def _chunk(connection: Connection, source: str, key: ChunkKey) -> ChunkRecord | None:
    row = connection.execute(_CHUNK, _named(source, key)).mappings().first()
    return _chunk_from_row(row) if row else None


def _known(connection: Connection, source: str, key: ChunkKey) -> ChunkRecord:
    record = _chunk(connection, source, key)
    if record is None:
        raise NotYetError(
            "this chunk is no longer planned: the table may have started a new snapshot",
            hint="`redolake snapshot` reads and applies the chunks that are planned now.",
            source=source,
            table=key.table,
            snapshot_id=key.snapshot_id,
            number=key.number,
        )
    return record


def _named(source: str, key: ChunkKey) -> dict[str, Any]:
    return {**_place(source, key.table), "snapshot": key.snapshot_id, "numbered": key.number}


def set_chunk(connection: Connection, record: ChunkRecord, **values: Any) -> None:
    """Write some columns of a chunk's row."""
    connection.execute(_SET, {**_named(record.source, record.chunk_key), **values})


def _chunk_from_row(row: Any) -> ChunkRecord:
    values = dict(row)
    table = TableId(values.pop("owner"), values.pop("name"))
    return ChunkRecord(table=table, **values)
