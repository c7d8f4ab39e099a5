"""A table that changes by transactions, the landing files that capture would write of it, and its true state per SCN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.lake.lake import Lake, TableLake
from cdc_core.lake.table_part import ApplyRules, MirrorState, TablePart
from cdc_core.landing.layout import ORDINAL_SHIFT, REDO_SCHEMA, TRANSACTION_SCHEMA
from cdc_core.landing.manifest import ChunkManifest, LandedFile, SchemaChange, WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.evolution import identified, judge
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage.committed import LandedInput
from cdc_core.stage.layout import CHUNK_ORDINAL, COMMIT_SCN, ORDINAL, mirror_schema
from cdc_core.stage.statements import UNKNOWN_ROW_ID
from tests.landing.facts import LANDED, PLANNED

Row = dict[str, Any]


def number(name: str, precision: int | None, scale: int | None, **more: Any) -> Column:
    return Column(name, "NUMBER", 22, 0, precision, scale, nullable=True, **more)


def varchar(name: str, length: int = 40, **more: Any) -> Column:
    return Column(name, "VARCHAR2", length, length, None, None, nullable=True, **more)


def orders_schema(**more: Any) -> TableSchema:
    columns = (
        number("ID", 10, 0),
        varchar("NAME"),
        number("AMOUNT", 12, 2),
        Column("NOTE", "CLOB", 4000, 0, None, None, nullable=True),
    )
    return TableSchema(TableId("SHOP", "ORDERS"), Scn(1), columns, ("ID",), **more)


@dataclass
class Transaction:
    """Changes of one transaction; every change is a redo row at once."""

    source: Source
    xid: str
    start_scn: int
    redo: list[Row] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)
    undo_rows: list[Row] = field(default_factory=list)
    has_rollback: bool = False
    touched: set[str] = field(default_factory=set)
    first_ordinal: int = -1
    rows: int = 0

    def insert(
        self, row: Row, *, row_id: str | None = None, shown: str | None = None, columns: Any = None
    ) -> str:
        rid = row_id or self.source.new_row_id()
        self.source.rows[rid] = dict(row)
        self.touched.add(rid)
        listed = {c: row[c] for c in (columns or row)}
        names = ",".join(f'"{c}"' for c in listed)
        values = ",".join(literal(v) for v in listed.values())
        sql = f"insert into {self.source.schema.table.sql}({names}) values ({values})"
        undo = f"delete from {self.source.schema.table.sql} where {where(row)}"
        self._log(1, sql, shown or rid, undo=(2, undo, lambda: self.source.rows.pop(rid)))
        return rid

    def update(self, rid: str, changes: Row, *, shown: str | None = None) -> None:
        self.touched.add(rid)
        old = self.source.rows[rid]
        new = {**old, **changes}
        self.source.rows[rid] = new
        sets = ", ".join(f'"{c}" = {literal(v)}' for c, v in changes.items())
        sql = (
            f"update {self.source.schema.table.sql} set {sets} where {where(self.source.seen(old))}"
        )
        back = ", ".join(f'"{c}" = {literal(old[c])}' for c in changes)
        undo = (
            f"update {self.source.schema.table.sql} set {back} where {where(self.source.seen(new))}"
        )

        def restore() -> None:
            self.source.rows[rid] = old

        self._log(3, sql, shown or rid, undo=(3, undo, restore))

    def delete(self, rid: str) -> None:
        self.touched.add(rid)
        old = self.source.rows.pop(rid)
        sql = f"delete from {self.source.schema.table.sql} where {where(self.source.seen(old))}"
        names = ",".join(f'"{c}"' for c in old)
        undo = f"insert into {self.source.schema.table.sql}({names}) values ({','.join(map(literal, old.values()))})"

        def restore() -> None:
            self.source.rows[rid] = old

        self._log(2, sql, rid, undo=(1, undo, restore))

    def savepoint(self) -> int:
        return len(self.undo)

    def rollback_to(self, savepoint: int) -> None:
        while len(self.undo) > savepoint:
            self.undo.pop()()
            row = self.undo_rows.pop()
            self.has_rollback = True
            self._log(row["code"], row["sql"], row["rid"], rollback=True)

    def raw(self, code: int, sql: str = "", **more: Any) -> None:
        """A redo row of any kind."""
        self._log(code, sql, "AAAB", **more)

    def commit(self) -> int:
        scn = self.source.tick()
        self.source.keep(self, scn)
        self.source.end(self, "commit", scn)
        return scn

    def rollback(self) -> int:
        self.rollback_to(0)
        scn = self.source.tick()
        self.source.end(self, "rollback", scn)
        return scn

    def write_lob(self, rid: str, column: str, text: str, *, piece: int = 1000) -> None:
        """Write a LOB through its locator, in blocks as on 23ai, and end it with a trim."""
        self.touched.add(rid)
        row = self.source.rows[rid] = {**self.source.rows[rid], column: text}
        name = self.source.schema.table.sql
        head = (
            f'DECLARE \n loc_c CLOB; \nBEGIN\n select "{column}" into loc_c from {name}'
            f" where {where(self.source.seen(row))} for update;\n"
        )
        for at in range(0, len(text), piece):
            part = text[at : at + piece]
            call = f" buf_c := {literal(part)}; \n  dbms_lob.write(loc_c, {len(part)}, {at + 1}, buf_c);\n"
            self._log(Operation.LOB_WRITE, f"{head}{call}END;\n\n", UNKNOWN_ROW_ID, status=2)
        trim = f"{head}  dbms_lob.trim(loc_c, {len(text)});\nEND;\n\n"
        self._log(Operation.LOB_TRIM, trim, UNKNOWN_ROW_ID, status=2)

    def _log(
        self,
        code: int,
        sql: str,
        rid: str,
        *,
        undo: Any = None,
        rollback: bool = False,
        status: int = 0,
    ) -> None:
        ordinal = self.source.next_ordinal()
        self.rows += code != Operation.DDL
        if self.first_ordinal < 0:
            self.first_ordinal = ordinal
        if undo is not None:
            self.undo.append(undo[2])
            self.undo_rows.append({"code": undo[0], "sql": undo[1], "rid": rid})
        self.source.pending.append(
            {
                "ordinal": ordinal,
                "scn": self.source.tick(),
                "xid": self.xid,
                "operation_code": code,
                "rollback": rollback,
                "seg_owner": self.source.schema.table.owner,
                "table_name": self.source.schema.table.name,
                "row_id": rid,
                "sql_redo": sql,
                "status": status,
                "timestamp": datetime(2026, 1, 2, 3, 4, 5),
                "thread": 1,
                "rs_id": " 0x000001.00000002.0010 ",
                "ssn": 0,
            }
        )


class Source:
    """A database with one table; ``cut`` lands a window, ``chunk`` a snapshot chunk."""

    def __init__(
        self, folder: Path, schema: TableSchema, *, lobs_in_old_image: bool = False
    ) -> None:
        self.folder = folder
        self.schema = schema
        self.scn = 100
        self.window_ordinal = 0
        self.low = 100
        self.rows: dict[str, Row] = {}
        self.states: dict[int, dict[str, Row]] = {100: {}}
        self.pending: list[Row] = []
        self.row_number = 0
        self.open: dict[str, Transaction] = {}
        self.ended: list[Row] = []
        self.redo_paths: list[str] = []
        self.transactions = 0
        self.row_ids = 0
        self.ids: dict[int, str] = {}
        self.lobs_in_old_image = lobs_in_old_image
        self.time = datetime(2026, 1, 2, 3, 4, 6)

    def tick(self) -> int:
        self.scn += 1
        return self.scn

    def new_row_id(self) -> str:
        self.row_ids += 1
        return f"AAAB{self.row_ids:014d}"

    def next_ordinal(self) -> int:
        self.row_number += 1
        return self.window_ordinal << ORDINAL_SHIFT | self.row_number

    def keep(self, transaction: Transaction, scn: int) -> None:
        """Remember the table as of a commit."""
        rows = dict(self.states[max(self.states)])
        for rid in transaction.touched:
            rows.pop(rid, None)
            if rid in self.rows:
                rows[rid] = dict(self.rows[rid])
        self.states[scn] = rows

    def seen(self, row: Row) -> Row:
        """The old image as LogMiner shows it: without LOBs."""
        lobs = {c.name for c in self.schema.columns if c.is_lob}
        return row if self.lobs_in_old_image else {c: v for c, v in row.items() if c not in lobs}

    def begin(self) -> Transaction:
        self.transactions += 1
        transaction = Transaction(self, f"{self.transactions:016x}", self.tick())
        self.open[transaction.xid] = transaction
        return transaction

    def end(self, transaction: Transaction, state: str, scn: int) -> None:
        del self.open[transaction.xid]
        self.ended.append(self._ledger_row(transaction, state, scn, self.next_ordinal()))

    def _ledger_row(self, tx: Transaction, state: str, scn: int | None, ordinal: int | None) -> Row:
        return {
            "xid": tx.xid,
            "state": state,
            "start_scn": tx.start_scn,
            "commit_scn": scn,
            "commit_ordinal": ordinal,
            "commit_timestamp": self.time,
            "username": "CLERK",
            "first_ordinal": max(tx.first_ordinal, 0),
            "has_rollback": tx.has_rollback,
            "tables": [str(self.schema.table)] if tx.first_ordinal >= 0 else [],
            "table_rows": [tx.rows] if tx.first_ordinal >= 0 else [],
            "rows": tx.rows,
            "windows": [],
        }

    def ddl(
        self, columns: tuple[Column, ...], renamed: tuple[tuple[str, str], ...] = ()
    ) -> SchemaChange:
        """A DDL that gives the table these columns, behind everything so far; columns that come have their default in all rows."""
        old, scn = self.schema, Scn(self.tick())
        key = tuple(dict(renamed).get(name, name) for name in old.key)
        new = replace(old, columns=columns, key=key, scn_from=scn)
        table = old.table.sql
        for before, now in renamed:
            new = identified(old, new, f'ALTER TABLE {table} RENAME COLUMN "{before}" TO "{now}"')
        new = new if renamed else identified(old, new)
        evolution = judge(old, new)
        assert evolution.refusal is None, evolution.refusal
        self.schema = evolution.followed(old, new)
        names = dict(renamed)
        for image in (*self.rows.values(), *(i for s in self.states.values() for i in s.values())):
            values = {names.get(name, name): value for name, value in image.items()}
            image.clear()
            for column in columns:
                default = column.default and column.default.strip("'")
                image[column.name] = values.get(column.name, default)
        return SchemaChange(scn, self.next_ordinal(), "alter table …", self.schema)

    def hide(self, transaction: Transaction) -> tuple[list[Row], Row]:
        """Keep a transaction that has ended out of the window in which it ended."""
        rows = [one for one in self.pending if one["xid"] == transaction.xid]
        [ended] = [one for one in self.ended if one["xid"] == transaction.xid]
        self.pending = [one for one in self.pending if one["xid"] != transaction.xid]
        self.ended.remove(ended)
        return rows, ended

    def show(self, hidden: tuple[list[Row], Row]) -> None:
        """It comes to light with the present window."""
        rows, ended = hidden
        rows = [{**one, "ordinal": self.next_ordinal()} for one in rows]
        self.pending += rows
        place = {"first_ordinal": rows[0]["ordinal"], "commit_ordinal": self.next_ordinal()}
        self.ended.append({**ended, **place, "late": True})

    def state(self, scn: int) -> list[Row]:
        """The table AS OF SCN, in key order."""
        newest = max(commit for commit in self.states if commit <= scn)
        rows = self.states[newest].values()
        names = self.schema.column_names
        return sorted(
            ({c: row.get(c) for c in names} for row in rows),
            key=lambda row: tuple(str(row[k]).zfill(30) for k in self.schema.key),
        )

    def cut(self, *schema_changes: SchemaChange) -> Window:
        window = ScnWindow(Scn(self.low), Scn(self.tick()))
        folder = self.folder / window.folder
        folder.mkdir(parents=True)
        opened = [self._ledger_row(tx, "open", None, None) for tx in self.open.values()]
        redo = _write(folder / "redo-00000.parquet", self.pending, REDO_SCHEMA)
        ledger = _write(folder / "transactions.parquet", self.ended + opened, TRANSACTION_SCHEMA)
        manifest = WindowManifest(
            source="shop",
            window=window,
            ordinal=self.window_ordinal,
            mining_low=self.low,
            redo_files=(redo,),
            files_by_table={str(self.schema.table): (0,)},
            transactions_file=ledger,
            rows_by_table={},
            tables_committed=(str(self.schema.table),),
            transactions_committed=0,
            transactions_rolled_back=0,
            transactions_open=len(opened),
            logs=(),
            schemas=(self.schema,),
            schema_changes=schema_changes,
            resetlogs_change=1,
            seconds=0.0,
            positions=(),
            planned=PLANNED,
            landed=LANDED,
        )
        self.redo_paths.append(str(folder / "redo-00000.parquet"))
        landed = Window(
            manifest, list(self.redo_paths), [str(folder / "transactions.parquet")], self.schema
        )
        self.low, self.pending, self.ended = window.scn_high, [], []
        self.window_ordinal += 1
        self.row_number = 0
        return landed

    def chunk(
        self,
        *,
        scn: int | None = None,
        snapshot: str = "s1",
        number: int = 1,
        keep: Callable[[Row], bool] = lambda row: True,
        condition: str | None = None,
        schema: TableSchema | None = None,
    ) -> Chunk:
        at = self.tick() if scn is None else scn
        schema = schema or self.schema
        rows = [row for row in self.state(at) if keep(row)]
        folder = self.folder / "chunks" / snapshot / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "rows-00000.parquet"
        file = _write_chunk(path, rows, schema, at)
        manifest = ChunkManifest(
            source="shop",
            schema=schema,
            snapshot_id=snapshot,
            number=number,
            scn=Scn(at),
            files=(file,),
            rows=len(rows),
            condition=condition,
            seconds=0.0,
            landed=LANDED,
        )
        return Chunk(manifest, [str(path)])


@dataclass
class Window:
    manifest: WindowManifest
    redo_paths: list[str]
    transactions_paths: list[str]
    schema: TableSchema

    @property
    def scn_high(self) -> int:
        return self.manifest.window.scn_high

    def apply(self, lake: Lake, **more: Any) -> Any:
        """Apply the window. ``more`` are fields of its part, of the mirror's state and of the rules, and the fence."""
        own = {
            name: more.pop(name) for name in ("earlier", "is_inexact", "late_above") if name in more
        }
        known = {one.name for one in fields(MirrorState)}
        state = MirrorState(**{name: more.pop(name) for name in known & more.keys()})
        handle = _handle(lake, self.schema.table, more)
        return handle.apply_window(self.part(**own), state, ApplyRules(**more))

    def part(self, *, late_above: int | None = None, **more: Any) -> TablePart:
        """The table's part: the whole window."""
        landed = LandedInput(
            table=self.schema.table,
            window=self.manifest.window,
            redo_paths=tuple(self.redo_paths),
            transactions_paths=tuple(self.transactions_paths),
            late_above=late_above,
        )
        return TablePart(manifest=self.manifest, schema=self.schema, landed=landed, **more)

    def replay(self, lake: Lake, **more: Any) -> Any:
        handle = _handle(lake, self.schema.table, more)
        return handle.replay_window(self.manifest, self.schema, **more)


@dataclass
class Chunk:
    manifest: ChunkManifest
    paths: list[str]

    def apply(self, lake: Lake, **more: Any) -> Any:
        handle = _handle(lake, self.manifest.schema.table, more)
        return handle.apply_chunk(self.manifest, self.paths, **more)


def prepare_schema(lake: Lake, change: SchemaChange | TableSchema, **more: Any) -> None:
    """Bring the table's Delta tables to a newer definition."""
    schema = change.schema if isinstance(change, SchemaChange) else change
    _handle(lake, schema.table, more).prepare_schema(schema, **more)


def _handle(lake: Lake, table: TableId, more: dict[str, Any]) -> TableLake:
    """The table's Delta tables, by the generation and the fence among some options, which go."""
    own = {name: more.pop(name) for name in ("generation", "fence") if name in more}
    return lake.table(table, **own)


def _write(path: Path, rows: list[Row], schema: pa.Schema) -> LandedFile:
    path.unlink(missing_ok=True)  # a Delta table may have it under another name
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return LandedFile(path.name, len(rows), path.stat().st_size, "")


def _write_chunk(path: Path, rows: list[Row], schema: TableSchema, scn: int) -> LandedFile:
    """The file of a chunk as reading it lands it."""
    columns = mirror_schema(schema)
    place = {COMMIT_SCN: scn, ORDINAL: CHUNK_ORDINAL}
    return _write(path, [{c: r[c] for c in schema.column_names} | place for r in rows], columns)


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + str(value).replace("'", "''") + "'"


def where(row: Row) -> str:
    return " and ".join(
        f'"{c}" IS NULL' if v is None else f'"{c}" = {literal(v)}' for c, v in row.items()
    )


def order(id: int, name: str = "n", amount: str = "1.50", note: str | None = "note") -> Row:
    return {"ID": id, "NAME": name, "AMOUNT": Decimal(amount), "NOTE": note}
