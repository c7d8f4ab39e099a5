"""What would OpenLogReplicator write of this database's redo?

Its JSON, one document a line, as version 1.9.0 was observed to write it with the format
``debezium`` and ISO times: transactions whole and in the order of their commits, nothing of what
was rolled back, checkpoints between them. Its defects are shown too, unless they are switched off:
binary floats with six digits; a position that is the transaction's *beginning*, so that after a
restart one that was open then, and had begun before the last one that was written, never comes; and
a first transaction behind a restart that lacks its first message.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from oracle_embedded import committed
from oracle_embedded import values as v
from oracle_embedded.api import OraType, RowOp, StoredColumn, TableVersion, Value
from oracle_embedded.database import OpenDatabase
from oracle_embedded.redo import sink as s
from oracle_embedded.redo import store

_OPS = {RowOp.INSERT: "c", RowOp.UPDATE: "u", RowOp.DELETE: "d"}
_TYPES = {"NVARCHAR2": "varchar2", "NCHAR": "char", "NCLOB": "clob", "FLOAT": "number"}
_LOBS = (OraType.CLOB, OraType.BLOB)


@dataclass(frozen=True, slots=True, kw_only=True)
class OlrSettings:
    """How it is configured, and which of its defects it shows.

    Attributes:
        tables: ``OWNER.NAME`` of the tables in its filter; all of ordinary users where empty.
        file_bytes_max: ``max-file-size``: then the next file begins.
        left_out: Members that its messages lack, as with other options.
        checkpoints: Flag 4096.
        ddl: Flag 32.
        short_floats: Binary floats have six digits.
        lost_at_restart: Transactions that began before the checkpoint never come after a restart.
        headless: The first transaction behind a restart lacks its first message.
    """

    tables: frozenset[str] = frozenset()
    file_bytes_max: int | None = None
    left_out: frozenset[str] = frozenset()
    checkpoints: bool = True
    ddl: bool = True
    short_floats: bool = True
    lost_at_restart: bool = True
    headless: bool = True


@dataclass(slots=True)
class OpenLogReplicator:
    """Writes the files of one database into a folder, when it is told to."""

    database: OpenDatabase
    folder: Path
    settings: OlrSettings = field(default_factory=OlrSettings)
    _after: int = 0
    _withheld_below: int = 0
    _is_cut: bool = False
    _position: tuple[int, int] = (0, 0)
    _number: int = 0
    _checkpoint: int = 0

    def write(self) -> int:
        """Write all that has committed since; the number of messages. A checkpoint that would
        repeat the last one is left out."""
        count = 0
        for lines in self.messages():
            if lines[0]["payload"][0]["op"] == "chkpt":
                if lines[0]["c_scn"] == self._checkpoint:
                    continue
                self._checkpoint = lines[0]["c_scn"]
            self._append(lines)
            count += len(lines)
        return count

    def position(self) -> dict[str, Any]:
        """What a process that goes on behind this one must know."""
        return {"after": self._after, "number": self._number}

    def resume(self, position: Mapping[str, Any]) -> None:
        """Go on behind a process before this one, in the next file; nothing is lost."""
        self._after, self._number = position["after"], position["number"]
        while self._path().exists():
            self._number += 1

    def messages(self) -> Iterator[list[dict[str, Any]]]:
        """The messages of each transaction that has committed since, and checkpoints."""
        engine = self.database.engine
        with engine.writing():
            self.database.redo.sink.keep_alive()  # an idle instance writes redo too
        with engine.reading() as connection:
            high = committed.redo_end(connection)
            found = [
                (one, self._of(connection, one))
                for one in committed.transactions(connection, self._after)
            ]
        for transaction, messages in found:
            assert transaction.last_id is not None
            self._after = transaction.last_id
            is_withheld = transaction.start_scn < self._withheld_below
            if not messages or is_withheld:
                continue
            if self._is_cut and self.settings.headless:
                del messages[0]
            self._is_cut = False
            yield [self._placed(transaction.start_scn, one) for one in messages]
        if self.settings.checkpoints and high:
            checkpoint = {"scn": 0, "payload": [{"op": "chkpt", "seq": 1, "offset": 0}]}
            yield [self._placed(high, checkpoint)]

    def restart(self, *, checkpoint: int, rewound: bool = False) -> None:
        """End and start again from a checkpoint file that names a transaction's beginning: what
        began there or later comes again. ``rewound``: the operator has put its ``scn`` back that
        far, so that everything comes that committed above it."""
        with self.database.engine.reading() as connection:
            again = [
                one
                for one in committed.transactions(connection, 0)
                if (one.end_scn or 0) > checkpoint
            ]
        firsts = [one.last_id for one in again if one.last_id is not None]
        self._after = min([self._after, *(first - 1 for first in firsts)])
        self._withheld_below = 0 if rewound or not self.settings.lost_at_restart else checkpoint
        self._is_cut = not rewound
        self._position = (0, 0)

    def tear(self) -> None:
        """Write the half of a message, as one that is killed does."""
        with self._path().open("ab") as file:
            file.write(b'{"scn":1,"c_scn":1,"payload":[{"op":"begin"')

    def _append(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        limit = self.settings.file_bytes_max
        path = self._path()
        if limit is not None and path.exists() and path.stat().st_size >= limit:
            self._number += 1
            path = self._path()
        with path.open("ab") as file:
            for message in messages:
                file.write(dumped(message) + b"\n")

    def _path(self) -> Path:
        return self.folder / f"changes_{self._number}.json"

    def _placed(self, scn: int, message: dict[str, Any]) -> dict[str, Any]:
        """With ``c_scn`` and ``c_idx``, which begins again whenever the position changes."""
        last, index = self._position
        self._position = (scn, index + 1 if scn == last else 1)
        placed = {**message, "c_scn": scn, "c_idx": self._position[1]}
        return {name: one for name, one in placed.items() if name not in self.settings.left_out}

    def _of(
        self, connection: sqlite3.Connection, transaction: store.Transaction
    ) -> list[dict[str, Any]]:
        records = list(committed.records(connection, transaction))
        undone = committed.undone(records)
        rows: list[dict[str, Any]] = []
        for record in records:
            if record.op == s.OP_DDL and self.settings.ddl:
                rows += self._ddl(transaction, record)
            elif record.op in _OPS and record.id not in undone and record.object is not None:
                self._add_row(rows, transaction, record, committed.table(connection, record.object))
        if not any("payload" in row for row in rows):
            return []
        if rows[0]["payload"][0]["op"] == "ddl":
            return rows
        head = self._facts(transaction, transaction.start_scn, transaction.start_time)
        said = {
            "login username": transaction.username,
            "session number": str(transaction.session_id),
            "serial number": str(transaction.serial),
            **({"client id": transaction.client_id} if transaction.client_id else {}),
        }
        tail = self._facts(transaction, transaction.end_scn or 0, transaction.end_time or 0)
        begin = {**head, "attrs": said, "payload": [{"op": "begin"}]}
        return [begin, *rows, {**tail, "payload": [{"op": "commit"}]}]

    def _facts(self, transaction: store.Transaction, scn: int, when: int) -> dict[str, Any]:
        return {
            "scn": scn,
            "b_scn": transaction.start_scn,
            "e_scn": transaction.end_scn,
            "tm": when * 1000,
            "b_tm": transaction.start_time * 1000,
            "e_tm": (transaction.end_time or 0) * 1000,
            "xid": transaction.xid.hex(),
            "db": self.database.engine.container_name,
            "rth": transaction.thread,
            "usr": transaction.username,
        }

    def _ddl(self, transaction: store.Transaction, record: store.Record) -> list[dict[str, Any]]:
        assert record.after is not None
        text, owner, table, number = store.unpack_facts(record.after)
        if table is None or not self._is_wanted(owner, table):
            return []
        described = {"owner": owner, "table": table, "obj": number}
        facts = self._facts(transaction, record.scn, record.time)
        return [{**facts, "payload": [{"op": "ddl", "schema": described, "sql": text}]}]

    def _add_row(
        self,
        rows: list[dict[str, Any]],
        transaction: store.Transaction,
        record: store.Record,
        table: TableVersion,
    ) -> None:
        if not self._is_wanted(table.owner, table.name):
            return
        before = committed.image(record.before)
        after = committed.image(record.after)
        row_id = (record.row_id or b"").decode()
        is_piece = after.pop(store.LOB_CALL, None) is not None
        element: dict[str, Any] = {
            "op": _OPS[RowOp(record.op)],
            "schema": _described(table),
            "num": len(rows),
            "rid": row_id,
        }
        lobs = {one.internal_id for one in table.columns if one.type in _LOBS}
        new = self._row(table, after)
        last = rows[-1]["payload"][0] if rows else {}
        if is_piece and last.get("rid") == row_id and "after" in last:
            last["after"].update(new)  # a LOB comes with its row
            return
        old = {column: value for column, value in before.items() if column not in lobs}
        if record.op != RowOp.INSERT:
            element["before"] = self._row(table, old)
        if record.op == RowOp.UPDATE:
            element["after"] = self._row(table, {**old, **after})
        elif record.op == RowOp.INSERT:
            element["after"] = new
        facts = self._facts(transaction, record.scn, record.time)
        left = {name: one for name, one in element.items() if name not in self.settings.left_out}
        rows.append({**facts, "payload": [left]})

    def _row(self, table: TableVersion, image: Mapping[int, Value]) -> dict[str, Any]:
        return {
            one.name: None
            if image[one.internal_id] is None
            else _json_value(one, image[one.internal_id] or b"", short=self.settings.short_floats)
            for one in table.columns
            if one.internal_id in image
        }

    def _is_wanted(self, owner: str, table: str) -> bool:
        tables = self.settings.tables
        return f"{owner}.{table}" in tables if tables else owner not in ("SYS", "SYSTEM")


def dumped(message: Mapping[str, Any]) -> bytes:
    """A message in one line, numbers with all their digits."""
    return "".join(_pieces(message)).encode()


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield "{"
        for at, (name, one) in enumerate(value.items()):
            yield ("," if at else "") + json.dumps(name) + ":"
            yield from _pieces(one)
        yield "}"
    elif isinstance(value, (list, tuple)):
        yield "["
        for at, one in enumerate(value):
            yield "," if at else ""
            yield from _pieces(one)
        yield "]"
    elif isinstance(value, Decimal):
        yield format(value, "f")
    else:
        yield json.dumps(value, ensure_ascii=False)


def _described(table: TableVersion) -> dict[str, Any]:
    columns = []
    for one in table.columns:
        kind = _TYPES.get(one.data_type, one.data_type.lower())
        size = (
            {"precision": one.precision or -1, "scale": -1 if one.scale is None else one.scale}
            if kind == "number"
            else {"length": one.length}
        )
        columns.append({"name": one.name, "type": kind, **size, "nullable": one.nullable})
    return {"owner": table.owner, "table": table.name, "obj": table.object_id, "columns": columns}


def _json_value(column: StoredColumn, value: bytes, *, short: bool) -> Any:
    if column.data_type in ("ROWID", "UROWID"):
        return "?"
    match column.type:
        case OraType.NUMBER:
            return v.decimal_from_number(value)
        case OraType.BINARY_DOUBLE | OraType.BINARY_FLOAT:
            decode: Callable[[bytes], float] = (
                v.float_from_double
                if column.type is OraType.BINARY_DOUBLE
                else v.float_from_binary_float
            )
            number = decode(value)
            return float(f"{number:.6g}") if short else number
        case OraType.RAW | OraType.BLOB:
            return value.hex()
        case OraType.DATE | OraType.TIMESTAMP | OraType.TIMESTAMP_LTZ:
            return f"{_moment(value)}Z"
        case OraType.TIMESTAMP_TZ:
            minutes = v.offset_minutes_from_timestamp_tz(value)
            sign, size = "-" if minutes < 0 else "+", abs(minutes)
            return f"{_moment(value)}Z {sign}{size // 60:02d}:{size % 60:02d}"
        case OraType.INTERVAL_DS:
            return _days(v.nanos_from_interval_ds(value))
        case OraType.INTERVAL_YM:
            months = v.months_from_interval_ym(value)
            return f"{'-' if months < 0 else ''}{abs(months) // 12}-{abs(months) % 12}"
    return value.decode()


def _moment(value: bytes) -> str:
    nanos = v.nanos_from_timestamp(value)
    whole = v.datetime_from_date(value).replace(microsecond=0)
    return f"{whole.isoformat()}.{nanos:09d}"


def _days(nanos: int) -> str:
    seconds, rest = divmod(abs(nanos), 10**9)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{'-' if nanos < 0 else ''}{days},{clock}.{rest:09d}"
