"""Where do the benchmarks get windows of any size? They are made here, in the bytes that capture
lands, without an Oracle.

Flights of 19 columns: scheduled by an insert, departed and landed by updates, some deleted.
Everything is made by columns, from a flight's number, its stage and how often it was changed since;
so what a mirror must hold is known exactly, by other means than Redolake's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from cdc_core.lake.lake import Lake
from cdc_core.lake.table_part import MirrorState, TablePart
from cdc_core.landing.layout import ORDINAL_SHIFT, REDO_SCHEMA, TRANSACTION_SCHEMA
from cdc_core.landing.manifest import ChunkManifest, LandedFile, WindowManifest
from cdc_core.landing.redo_files import RedoFiles
from cdc_core.landing.store_local import LocalLandingStore
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.committed import LandedInput
from tests.landing.facts import LANDED, PLANNED

SOURCE = "bench"
OWNER = "BENCH"
TRANSACTION_ROWS = 500
CHUNK_ROWS = 250_000
_CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E")
_AIRPORTS = ("EWR", "JFK", "LGA", "ATL", "ORD", "LAX", "BOS", "MCO", "CLT", "SFO")
_DAY = 86_400_000_000
_START = 1_357_000_000_000_000 // _DAY * _DAY

Ids = npt.NDArray[np.int64]


def _number(name: str, precision: int, scale: int = 0) -> Column:
    return Column(name, "NUMBER", 22, 0, precision, scale, nullable=name != "ID")


def _text(name: str, length: int) -> Column:
    return Column(name, "VARCHAR2", length, length, None, None, nullable=True)


def _moment(name: str, kind: str) -> Column:
    return Column(name, kind, 11, 0, None, None, nullable=True)


COLUMNS = (
    _number("ID", 12), _moment("FLIGHT_DATE", "DATE"), _text("CARRIER", 2), _number("FLIGHT", 6), _text("TAILNUM", 6),
    _text("ORIGIN", 3), _text("DEST", 3), _number("SCHED_DEP", 4), _number("SCHED_ARR", 4), _number("DISTANCE", 6),
    _text("STATUS", 12), _text("GATE", 4), _moment("DEP_TIME", "TIMESTAMP(6)"), _number("DEP_DELAY", 8, 2),
    _moment("ARR_TIME", "TIMESTAMP(6)"), _number("ARR_DELAY", 8, 2), _number("AIR_TIME", 6), _text("NOTE", 60),
    _moment("UPDATED", "DATE"),
)  # fmt: skip
_DEPARTURE = ("STATUS", "DEP_TIME", "DEP_DELAY", "UPDATED")
_ARRIVAL = ("STATUS", "ARR_TIME", "ARR_DELAY", "AIR_TIME", "UPDATED")
_REMARK = ("GATE", "NOTE", "UPDATED")
_GONE, _SCHEDULED, _DEPARTED, _LANDED = -1, 0, 1, 2


def schema_of(name: str) -> TableSchema:
    """The definition of one table of flights."""
    return TableSchema(TableId(OWNER, name), Scn(1), COLUMNS, ("ID",))


def flights(ids: Ids, stages: Ids, remarks: Ids) -> pa.Table:
    """The flights with these numbers, each in its stage and after so many remarks; columns as in
    ``COLUMNS``."""
    departed, landed = stages >= _DEPARTED, stages >= _LANDED
    late = (ids * 7919 % 20_000 - 2_000).astype(np.int64)
    left = _START + ids * 60_000_000 + late * 10_000
    made: dict[str, pa.Array] = {
        "ID": pa.array(ids),
        "FLIGHT_DATE": pa.array((_START + ids * 60_000_000) // _DAY * _DAY, pa.timestamp("us")),
        "CARRIER": _chosen(_CARRIERS, ids),
        "FLIGHT": pa.array(ids * 31 % 9_000 + 1),
        "TAILNUM": _joined("N", pc.utf8_lpad(_texts(ids * 17 % 4_000), 5, "0")),
        "ORIGIN": _chosen(_AIRPORTS[:3], ids),
        "DEST": _chosen(_AIRPORTS[3:], ids * 5 + 1),
        "SCHED_DEP": pa.array(ids % 24 * 100 + ids % 60),
        "SCHED_ARR": pa.array((ids + 3) % 24 * 100 + ids % 60),
        "DISTANCE": pa.array(ids * 13 % 4_500 + 80),
        "STATUS": _chosen(("scheduled", "departed", "landed"), stages),
        "GATE": _joined("G", _texts((ids + remarks) % 90)),
        "DEP_TIME": pa.array(left, pa.timestamp("us"), mask=~departed),
        "DEP_DELAY": _decimals(late, ~departed),
        "ARR_TIME": pa.array(left + ids % 300 * 60_000_000, pa.timestamp("us"), mask=~landed),
        "ARR_DELAY": _decimals(late - 500, ~landed),
        "AIR_TIME": pa.array(ids % 300, mask=~landed),
        "NOTE": _joined("it's ", _texts(_mixed(ids, remarks))),
        "UPDATED": pa.array(_START + (ids * 60 + stages * 3_600 + remarks) * 1_000_000, pa.timestamp("us")),
    }  # fmt: skip
    wanted = arrow_schema(schema_of("FLIGHTS"))
    return pa.Table.from_arrays([made[one.name].cast(one.type) for one in wanted], schema=wanted)


def _mixed(ids: Ids, remarks: Ids) -> Ids:
    """Numbers of nineteen digits without a pattern: a text that no codec makes much smaller."""
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= (remarks.astype(np.uint64) + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(1)).astype(np.int64)


def _texts(numbers: Ids) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string())


def _joined(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _chosen(words: Sequence[str], ids: Ids) -> pa.Array:
    return pa.array(words).take(pa.array(ids % len(words)))


def _decimals(hundredths: Ids, missing: npt.NDArray[np.bool_]) -> pa.Array:
    whole = pc.cast(pa.array(hundredths, mask=missing), pa.decimal128(19, 0))
    return pc.multiply(whole, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(8, 2))


@dataclass(frozen=True, slots=True)
class _Printed:
    """Rows as LogMiner prints them: each column's literals."""

    table: TableId
    literals: dict[str, pa.Array]

    @classmethod
    def of(cls, table: TableId, rows: pa.Table) -> _Printed:
        return cls(
            table, {one.name: _literals(rows[one.name].combine_chunks(), one) for one in COLUMNS}
        )

    def inserts(self) -> pa.Array:
        """One INSERT a row."""
        names = ",".join(f'"{one.name}"' for one in COLUMNS)
        values = pc.binary_join_element_wise(*map(_or_null, self.literals.values()), ",")
        return _joined(f"insert into {self.table.sql}({names}) values (", values, ");")

    def deletes(self) -> pa.Array:
        """One DELETE a row."""
        return _joined(f"delete from {self.table.sql} where ", self._where(), ";")

    def updates(self, new: _Printed, columns: Sequence[str]) -> pa.Array:
        """One UPDATE a row, which gives the columns their new values."""
        sets = [_joined(f'"{name}" = ', _or_null(new.literals[name])) for name in columns]
        together = pc.binary_join_element_wise(*sets, ", ")
        return _joined(f"update {self.table.sql} set ", together, " where ", self._where(), ";")

    def _where(self) -> pa.Array:
        parts = [
            pc.if_else(pc.is_null(texts), f'"{name}" IS NULL', _joined(f'"{name}" = ', _or_null(texts)))
            for name, texts in self.literals.items()
        ]  # fmt: skip
        return pc.binary_join_element_wise(*parts, " and ")


def _literals(values: pa.Array, column: Column) -> pa.Array:
    if column.data_type == "DATE":
        moments = pc.cast(values.cast(pa.timestamp("s")), pa.string())
        return _joined("TO_DATE('", moments, "', 'YYYY-MM-DD HH24:MI:SS')")
    if column.data_type.startswith("TIMESTAMP"):
        return _joined("TO_TIMESTAMP('", pc.cast(values, pa.string()), "')")
    return _joined("'", pc.replace_substring(pc.cast(values, pa.string()), "'", "''"), "'")


def _or_null(texts: pa.Array) -> pa.Array:
    return pc.fill_null(texts, "NULL")


@dataclass(slots=True)
class Flights:
    """One table, and what Oracle would say of it: each number's stage (-1: no such row) and
    remarks."""

    name: str
    stages: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    remarks: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    changes: dict[str, int] = field(default_factory=lambda: {"c": 0, "u": 0, "d": 0, "r": 0})

    @property
    def schema(self) -> TableSchema:
        """The definition."""
        return schema_of(self.name)

    def rows(self) -> pa.Table:
        """All rows, in the order of their numbers."""
        ids = np.flatnonzero(self.stages != _GONE)
        return flights(ids, self.stages[ids], self.remarks[ids])

    def grow(self, count: int, stage: int) -> Ids:
        """So many new rows; their numbers."""
        first = len(self.stages)
        self.stages = np.append(self.stages, np.full(count, stage))
        self.remarks = np.append(self.remarks, np.zeros(count, np.int64))
        return np.arange(first, first + count)

    def day(self, flights_count: int, changes: int) -> list[Events]:
        """New flights that are scheduled, depart and land, and some that are deleted, in all
        ``changes`` of them."""
        ids = self.grow(flights_count, _SCHEDULED)
        deleted = ids[:: flights_count // (flights_count * 3 // 100)][: flights_count * 3 // 100]
        departing = ids[: (changes - flights_count - len(deleted) + 1) // 2]
        landing = departing[: changes - flights_count - len(deleted) - len(departing)]
        events = [self._events("c", ids, ids.astype(np.float64))]
        events.append(self._move(departing, _DEPARTED, _DEPARTURE, departing + 0.1 * flights_count))
        events.append(self._move(landing, _LANDED, _ARRIVAL, landing + 0.25 * flights_count))
        events.append(self._events("d", deleted, deleted + 0.5 * flights_count))
        self.stages[deleted] = _GONE
        return events

    def remark(self, ids: Ids, times: int) -> list[Events]:
        """So many remarks on each of these rows, at random places."""
        chance = np.random.default_rng(len(ids) + times)
        found, old = [], self._printed(ids)
        for number in range(times):
            at = number + chance.random(len(ids))
            self.remarks[ids] += 1
            new = self._printed(ids)
            found.append(Events("u", self, ids, at, old.updates(new, _REMARK)))
            old = new
            self.changes["u"] += len(ids)
        return found

    def _printed(self, ids: Ids) -> _Printed:
        return _Printed.of(self.schema.table, flights(ids, self.stages[ids], self.remarks[ids]))

    def _move(self, ids: Ids, stage: int, columns: Sequence[str], at: Any) -> Events:
        old = self._printed(ids)
        self.stages[ids] = stage
        self.changes["u"] += len(ids)
        return Events("u", self, ids, at, old.updates(self._printed(ids), columns))

    def _events(self, op: str, ids: Ids, at: Any) -> Events:
        printed = self._printed(ids)
        self.changes[op] += len(ids)
        return Events(op, self, ids, at, printed.inserts() if op == "c" else printed.deletes())


@dataclass(frozen=True, slots=True)
class Events:
    """Changes of one kind in one table, each at a moment that orders them all."""

    op: str
    of: Flights
    ids: Ids
    at: npt.NDArray[np.float64]
    sql: pa.Array


@dataclass(slots=True)
class _Ledger:
    """The transactions of a window that is being made: ``scn`` and ``base`` are those before its
    first row, and each row and each COMMIT has the next number."""

    names: Sequence[str]
    scn: int
    base: int
    numbers: int = 0
    entries: list[dict[str, Any]] = field(default_factory=list)

    def take(self, of: Ids, transaction_rows: int | None) -> tuple[Ids, Ids]:
        """The transaction and the number of each row of a block; ``of`` says which table it is
        of."""
        place = np.arange(len(of))
        if transaction_rows is None:
            number = self.numbers + place + 1
            counts = np.bincount(of, minlength=len(self.names))
            before = self.entries[0]["counts"] if self.entries else 0
            self.numbers += len(of)
            self.entries = [{"first": 1, "last": self.numbers, "counts": before + counts}]
            return np.zeros(len(of), np.int64), number
        within = place // transaction_rows
        number = self.numbers + place + within + 1  # each COMMIT has a number of its own
        counts = np.zeros((int(within[-1]) + 1, len(self.names)), np.int64)
        np.add.at(counts, (within, of), 1)
        firsts = np.flatnonzero(np.diff(within, prepend=-1))
        lasts = np.append(firsts[1:], len(of)) - 1
        transaction = len(self.entries) + within
        self.entries += [
            {"first": int(number[first]), "last": int(number[last]), "counts": own}
            for first, last, own in zip(firsts, lasts, counts, strict=True)
        ]
        self.numbers = int(number[-1]) + 1
        return transaction, number

    def rows_by_table(self) -> dict[str, int]:
        """Rows of each table that has some."""
        counts = sum(entry["counts"] for entry in self.entries)
        return {
            f"{OWNER}.{name}": int(rows)
            for name, rows in zip(self.names, counts, strict=True)
            if rows
        }

    def table(self) -> pa.Table:
        """The transactions file's rows."""
        xids = _xids(np.arange(len(self.entries)), self.base).to_pylist()
        rows = [
            {
                "xid": xid,
                "state": "commit",
                "start_scn": self.scn + entry["first"],
                "commit_scn": self.scn + entry["last"] + 1,
                "commit_ordinal": self.base + entry["last"] + 1,
                "commit_timestamp": _moment_of(at),
                "username": "CLERK",
                "first_ordinal": self.base + entry["first"],
                "has_rollback": False,
                "tables": [
                    f"{OWNER}.{name}"
                    for name, rows in zip(self.names, entry["counts"], strict=True)
                    if rows
                ],
                "table_rows": [int(n) for n in entry["counts"] if n],
                "rows": int(entry["counts"].sum()),
                "windows": [],
            }
            for at, (xid, entry) in enumerate(zip(xids, self.entries, strict=True))
        ]
        return pa.Table.from_pylist(rows, TRANSACTION_SCHEMA)


def _xids(transactions: Ids, base: int) -> pa.Array:
    return pc.utf8_lpad(_texts(transactions + (base >> ORDINAL_SHIFT) * 10_000_000), 16, "0")


class MadeSource:
    """Lands chunks and windows of its tables."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        self.tables = {name: Flights(name) for name in names}
        self._landing = LocalLandingStore(str(folder / "landing"))
        self._scn, self._ordinal, self._low = 1_000, 0, 1_000

    def load(self, lake: Lake, name: str, count: int) -> None:
        """Let a table have so many landed flights, by chunks of one snapshot."""
        table = self.tables[name]
        ids = table.grow(count, _LANDED)
        table.changes["r"] += count
        for number, low in enumerate(range(0, count, CHUNK_ROWS)):
            manifest, paths = self.chunk(table, ids[low : low + CHUNK_ROWS], number)
            lake.table(manifest.schema.table).apply_chunk(manifest, paths)

    def chunk(self, table: Flights, ids: Ids, number: int) -> tuple[ChunkManifest, list[str]]:
        """Land some rows of a table as a chunk."""
        folder = f"{SOURCE}/chunks/{table.name}/s1/{number:06d}"
        rows = flights(ids, table.stages[ids], table.remarks[ids])
        with self._landing.writer(folder, "rows-00000.parquet", rows.schema) as writer:
            writer.write(rows)
        file = writer.close()
        manifest = ChunkManifest(
            source=SOURCE,
            schema=table.schema,
            snapshot_id="s1",
            number=number,
            scn=Scn(self._scn),
            files=(file,),
            rows=len(ids),
            condition=None,
            seconds=0.0,
            landed=LANDED,
        )
        return manifest, self._landing.local_paths(folder, (file,))

    def window(
        self, events: Sequence[Events], *, transaction_rows: int = TRANSACTION_ROWS
    ) -> MadeWindow:
        """Land a window with these changes, cut into transactions in the order of their moments."""
        return self.long_window([events], transaction_rows=transaction_rows)

    def long_window(
        self, blocks: Iterable[Sequence[Events]], *, transaction_rows: int | None
    ) -> MadeWindow:
        """Land a window block by block, so that none of them need be held with another; one
        transaction over all of them if ``transaction_rows`` is None, else each block's own."""
        names = list(self.tables)
        folder = f"{SOURCE}/windows/made-{self._ordinal:06d}"
        ledger = _Ledger(names, self._scn, self._ordinal << ORDINAL_SHIFT)
        with RedoFiles(self._landing, folder) as writing:
            for events in blocks:
                for batch in self._block(events, ledger, transaction_rows).to_batches(10_000):
                    writing.write(batch)
            files = tuple(writing.close())
        with self._landing.writer(folder, "transactions.parquet", TRANSACTION_SCHEMA) as kept:
            kept.write(ledger.table())
        transactions = kept.close()
        self._scn += ledger.numbers + 1
        window = ScnWindow(Scn(self._low), Scn(self._scn))
        manifest = self._manifest(window, files, writing.by_table, transactions, ledger)
        self._low, self._ordinal = window.scn_high, self._ordinal + 1
        return MadeWindow(
            manifest,
            sum(file.rows for file in files),
            {
                table: self._landing.local_paths(folder, manifest.files_of(TableId.parse(table)))
                for table in writing.by_table
            },
            self._landing.local_paths(folder, (transactions,)),
        )

    def _block(
        self, events: Sequence[Events], ledger: _Ledger, transaction_rows: int | None
    ) -> pa.Table:
        """Redo rows of some changes, in the order of their moments; their transactions go into the
        ledger."""
        order = np.argsort(np.concatenate([one.at for one in events]), kind="stable")
        sizes = [len(one.ids) for one in events]
        of = np.repeat([ledger.names.index(one.of.name) for one in events], sizes)[order]
        codes = np.repeat([{"c": 1, "d": 2, "u": 3}[one.op] for one in events], sizes)[order]
        ids = np.concatenate([one.ids for one in events])[order]
        count = len(order)
        transaction, number = ledger.take(of, transaction_rows)
        plain = {
            "ordinal": ledger.base + number,
            "scn": ledger.scn + number,
            "xid": _xids(transaction, ledger.base),
            "operation_code": codes,
            "rollback": pa.repeat(False, count),
            "seg_owner": pa.repeat(OWNER, count),
            "table_name": pa.array(ledger.names).take(pa.array(of)),
            "row_id": _joined("AAAB", pc.utf8_lpad(_texts(ids), 14, "0")),
            "sql_redo": pa.concat_arrays([one.sql.cast(pa.large_string()) for one in events]).take(pa.array(order)),
            "status": pa.repeat(0, count),
            "info": pa.nulls(count, pa.string()),
            "timestamp": pa.array(1_357_000_000 + number // 1_000, pa.timestamp("s")),
            "thread": pa.repeat(1, count),
            "rs_id": pa.repeat(" 0x000001.00000002.0010 ", count),
            "ssn": pa.repeat(0, count),
        }  # fmt: skip
        numbers = {
            name: pa.repeat(74_000, count) for name in ("data_obj", "data_objv", "data_objd")
        }
        return pa.table({**plain, **numbers}).cast(REDO_SCHEMA)

    def _manifest(
        self,
        window: ScnWindow,
        files: tuple[LandedFile, ...],
        by_table: dict[str, tuple[int, ...]],
        transactions: LandedFile,
        ledger: _Ledger,
    ) -> WindowManifest:
        rows = ledger.rows_by_table()
        return WindowManifest(
            source=SOURCE,
            window=window,
            ordinal=self._ordinal,
            mining_low=self._low,
            redo_files=files,
            files_by_table=by_table,
            transactions_file=transactions,
            rows_by_table=rows,
            tables_committed=tuple(rows),
            transactions_committed=len(ledger.entries),
            transactions_rolled_back=0,
            transactions_open=0,
            logs=(),
            schemas=tuple(schema_of(name) for name in ledger.names),
            schema_changes=(),
            resetlogs_change=1,
            seconds=0.0,
            positions=(),
            planned=PLANNED,
            landed=LANDED,
        )

    def is_right(self, lake_path: str) -> bool:
        """Are all mirrors, and the numbers of changes in the change logs, what they must be? Read
        by delta-rs."""
        return all(_is_right(lake_path, table) for table in self.tables.values())


@dataclass(frozen=True, slots=True)
class MadeWindow:
    """A landed window of ``changes`` changes."""

    manifest: WindowManifest
    changes: int
    redo_paths: dict[str, list[str]]
    transactions_paths: list[str]

    def apply(self, lake: Lake, name: str) -> TableApplied:
        """Apply it to one table."""
        schema = schema_of(name)
        return lake.table(schema.table).apply_window(
            TablePart(
                manifest=self.manifest,
                schema=schema,
                landed=LandedInput(
                    table=schema.table,
                    window=self.manifest.window,
                    redo_paths=self.redo_paths[str(schema.table)],
                    transactions_paths=self.transactions_paths,
                ),
            ),
            MirrorState(),
        )


def _is_right(lake_path: str, table: Flights) -> bool:
    place = (lake_path, SOURCE, table.schema.table)
    wanted = table.rows()
    found = _read(DEFAULT_PATHS.path("mirror", *place), f'select {_listed()} from t order by "ID"')
    log = _read(
        DEFAULT_PATHS.path("changelog", *place),
        "select _cdc_op, count(*) as n from t group by _cdc_op",
    )
    places = _read(
        DEFAULT_PATHS.path("changelog", *place),
        "select count(*) as n from (select distinct _cdc_commit_scn, _cdc_ordinal from t where _cdc_op <> 'r')",
    )
    counts = dict(zip(log["_cdc_op"].to_pylist(), log["n"].to_pylist(), strict=True))
    changes = {op: count for op, count in table.changes.items() if count}
    in_windows = sum(count for op, count in changes.items() if op != "r")
    return (
        found.cast(wanted.schema).equals(wanted)
        and counts == changes
        and places["n"].to_pylist() == [in_windows]
    )


def _read(path: str, sql: str) -> pa.Table:
    query = QueryBuilder().register("t", DeltaTable(path))
    return pa.table(query.execute(sql).read_all())


def _listed() -> str:
    return ", ".join(f'"{column.name}"' for column in COLUMNS)


def _moment_of(number: int) -> datetime:
    return datetime(2013, 1, 1) + timedelta(seconds=number)
