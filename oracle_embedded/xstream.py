"""Which logical change records would XStream give of this database's redo?

Row and DDL LCRs as Oracle's documentation and public header describe them, in JSON, one a line:
transactions whole and in the order of their commits, nothing of what was rolled back, each LCR with
a position whose bytes sort. LOBs, documents, and strings that may have more than 4,000 bytes follow
their row in chunks, text of LOBs in AL16UTF16; the new
list of an UPDATE has what changed, the old one what the redo has. A piece of a LOB comes as LOB
WRITE, its column alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oracle_embedded import committed
from oracle_embedded.api import OraType, RowOp, StoredColumn, TableVersion, Value, VirtualTable
from oracle_embedded.database import OpenDatabase
from oracle_embedded.redo import sink as s
from oracle_embedded.redo import store
from oracle_embedded.redo.contents_row import NUMBERS, column_meta

_COMMANDS = {RowOp.INSERT: "INSERT", RowOp.UPDATE: "UPDATE", RowOp.DELETE: "DELETE"}
_LOBS = (OraType.CLOB, OraType.BLOB)
_TEXTS = (OraType.VARCHAR, OraType.CHAR, OraType.CLOB)
_LOB_DATA, _EMPTY_LOB, _LAST_CHUNK, _AL16UTF16, _XML = 0x01, 0x04, 0x08, 0x10, 0x40
_UPDATED, _LONG_STRING = 0x200, 0x400
_STRING_BYTES_MAX = 4000
"""A longer text or RAW is kept, and given, as a LOB is."""
_AL32UTF8, _CHR, _BIN = 873, 1, 23
_IN_UTC = b"\x14\x3c"
_IN_FLIGHT = 0x20

_VIEWS = {
    "DBA_XSTREAM_OUTBOUND": "SERVER_NAME:V128 CONNECT_USER:V128 CAPTURE_NAME:V128 SOURCE_DATABASE:V128",
    "DBA_XSTREAM_OUTBOUND_PROGRESS": "SERVER_NAME:V128 SOURCE_DATABASE:V128 PROCESSED_LOW_TIME:D PROCESSED_LOW_SCN:N OLDEST_SCN:N",
    "DBA_CAPTURE": "CAPTURE_NAME:V128 START_SCN:N STATUS:V8 REQUIRED_CHECKPOINT_SCN:N ERROR_NUMBER:N ERROR_MESSAGE:V4000",
}

Line = dict[str, Any]


@dataclass(slots=True)
class XStreamOut:
    """The outbound server of a database.

    Attributes:
        tables: ``OWNER.NAME`` of the tables in its rules; all of ordinary users where empty.
        version: Of its positions.
        begins: Transactions that began at or below this SCN are marked as in flight.
        attributes: The extra attributes that LCRs have.
        chunk_bytes: Most bytes of a chunk.
    """

    database: OpenDatabase
    tables: frozenset[str] = frozenset()
    version: int = 1
    begins: int = 0
    attributes: frozenset[str] = frozenset({"ROW_ID", "THREAD#", "SESSION#", "SERIAL#", "USERNAME"})
    chunk_bytes: int = 16

    def lcrs(self, after: int) -> Iterator[tuple[int, list[Line]]]:
        """The LCRs of each transaction that ended behind a number, which comes with those of the
        one before; and last a low watermark."""
        engine = self.database.engine
        with engine.writing():
            self.database.redo.sink.keep_alive()  # an idle instance writes redo too
        with engine.reading() as connection:
            high = committed.redo_end(connection)
            found = [
                (one.last_id or 0, self._of(connection, one))
                for one in committed.transactions(connection, after)
            ]
        yield from ((number, lines) for number, lines in found if lines)
        last = found[-1][0] if found else after
        yield last, [{"lcr": "low", "scn": high, "position": self.position(high).hex()}]

    def show(self, name: str, processed: Callable[[], int | None]) -> None:
        """Let the views of outbound servers have this one under a name; ``processed`` is the SCN of
        its processed low watermark."""
        text, number = name.encode(), NUMBERS

        def rows(columns: Sequence[str]) -> Iterator[Sequence[Value]]:
            low = processed() or self.begins
            facts: dict[str, Value] = {
                "SERVER_NAME": text,
                "CAPTURE_NAME": b"CAP$_" + text,
                "STATUS": b"ENABLED",
                "START_SCN": number[self.begins],
                "PROCESSED_LOW_SCN": number[low],
                "OLDEST_SCN": number[low],
                "REQUIRED_CHECKPOINT_SCN": number[low],
            }
            yield [facts.get(one) for one in columns]

        for view, layout in _VIEWS.items():
            pairs = [word.split(":") for word in layout.split()]
            metas = [column_meta(column, kind) for column, kind in pairs]
            columns = [column for column, _ in pairs]
            table = VirtualTable(view, metas, lambda *_, columns=columns: rows(columns))
            self.database.engine.virtual_tables[view] = table

    def position(self, commit_scn: int, order: int = 0, scn: int = 0, sequence: int = 0) -> bytes:
        """Where something stands; alone with an SCN, before all that committed there."""
        size = 6 if self.version == 1 else 8
        return b"".join(
            (
                commit_scn.to_bytes(size, "big"),
                order.to_bytes(4, "big"),
                bytes(4),
                scn.to_bytes(size, "big"),
                sequence.to_bytes(4, "big"),
                bytes(4),
                bytes([self.version]),
            )
        )

    def _of(self, connection: sqlite3.Connection, transaction: store.Transaction) -> list[Line]:
        records = list(committed.records(connection, transaction))
        undone = committed.undone(records)
        found: list[tuple[int, int, Line]] = []
        for record in records:
            line: Line | None = None
            if record.op == s.OP_DDL:
                line = self._ddl(record)
            elif record.op in _COMMANDS and record.id not in undone and record.object is not None:
                table = committed.table(connection, record.object)
                line = (
                    self._row(record, table) if self._is_wanted(table.owner, table.name) else None
                )
            if line is not None:
                found.append((record.scn, record.time, line))
        if not found:
            return []
        end, when = transaction.end_scn or 0, transaction.end_time or 0
        found.append((end, when, {"lcr": "row", "command": "COMMIT"}))
        lines, scn = [], 0
        for number, (own, time, line) in enumerate(found, 1):
            scn = max(scn, own)
            at = self.position(end, (transaction.last_id or 0) & 0xFFFFFFFF, scn, number)
            lines.append(self._placed(transaction, at, own, time, line))
        return lines

    def _placed(
        self, transaction: store.Transaction, at: bytes, scn: int, when: int, line: Line
    ) -> Line:
        """With what every LCR says."""
        undo, slot, sequence = (
            int.from_bytes(transaction.xid[a:b], "little") for a, b in ((0, 2), (2, 4), (4, 8))
        )
        said = {
            "THREAD#": str(transaction.thread),
            "SESSION#": str(transaction.session_id),
            "SERIAL#": str(transaction.serial),
            "USERNAME": transaction.username,
            "ROW_ID": line.pop("row_id", None),
        }
        is_in_flight = self.begins >= transaction.start_scn
        told = {} if self.version == 1 else {"commit_scn": transaction.end_scn}
        return {
            **line,
            "position": at.hex(),
            "scn": scn,
            **told,
            "database": self.database.engine.container_name,
            "transaction": f"{undo}.{slot}.{sequence}",
            "time": datetime.fromtimestamp(when, UTC).replace(tzinfo=None).isoformat(),
            **({"flags": _IN_FLIGHT} if is_in_flight else {}),
            "attributes": {key: one for key, one in said.items() if key in self.attributes and one},
        }

    def _ddl(self, record: store.Record) -> Line | None:
        assert record.after is not None
        text, owner, table, _number = store.unpack_facts(record.after)
        if table is None or owner is None or not self._is_wanted(owner, table):
            return None
        command = " ".join(text.split()[:2]).upper()
        return {"lcr": "ddl", "command": command, "owner": owner, "object": table, "text": text}

    def _row(self, record: store.Record, table: TableVersion) -> Line:
        before, after = committed.image(record.before), committed.image(record.after)
        is_piece = after.pop(store.LOB_CALL, None) is not None
        columns = {one.internal_id: one for one in table.columns}
        lobs = {number for number, one in columns.items() if one.type in _LOBS}
        unshown = {number for number, one in columns.items() if _comes_in_chunks(one)}
        op = RowOp(record.op)
        if op is RowOp.UPDATE:
            after = {at: one for at, one in after.items() if at in lobs or before.get(at) != one}
        new = [columns[at] for at in after if at in columns]
        line: Line = {
            "lcr": "row",
            "command": "LOB WRITE" if is_piece else _COMMANDS[op],
            "owner": table.owner,
            "object": table.name,
            "row_id": (record.row_id or b"").decode(),
        }
        if op is not RowOp.INSERT:
            line["old"] = [
                _value(columns[at], one)
                for at, one in before.items()
                if at in columns and at not in unshown
            ]
        if op is not RowOp.DELETE:
            flags = _UPDATED if op is RowOp.UPDATE else 0
            line["new"] = [_value(one, after[one.internal_id], flags) for one in new]
            line["chunks"] = [
                chunk
                for one in new
                if _comes_in_chunks(one) and after[one.internal_id]
                for chunk in self._chunks(one, after[one.internal_id] or b"")
            ]
        return line

    def _chunks(self, column: StoredColumn, value: bytes) -> Iterator[Line]:
        is_text = column.type is OraType.CLOB
        whole = value.decode().encode("utf-16-be") if is_text else value
        own = (_LOB_DATA if column.type in _LOBS else _LONG_STRING) | (_AL16UTF16 if is_text else 0)
        if column.data_type == "XMLTYPE":
            own |= _XML
        kind = _CHR if column.type in _TEXTS else _BIN
        for at in range(0, len(whole), self.chunk_bytes):
            piece = whole[at : at + self.chunk_bytes]
            is_last = at + self.chunk_bytes >= len(whole)
            flags = own | (_LAST_CHUNK if is_last else 0)
            yield {"name": column.name, "type": kind, "value": piece.hex(), "flags": flags}

    def _is_wanted(self, owner: str, table: str) -> bool:
        return f"{owner}.{table}" in self.tables if self.tables else owner not in ("SYS", "SYSTEM")


def _is_long_string(column: StoredColumn) -> bool:
    return column.type in (OraType.VARCHAR, OraType.RAW) and column.length > _STRING_BYTES_MAX


def _comes_in_chunks(column: StoredColumn) -> bool:
    return column.type in _LOBS or _is_long_string(column)


def _value(column: StoredColumn, value: Value, flags: int = 0) -> Line:
    line: Line = {"name": column.name, "type": int(column.type)}
    if _is_long_string(column):
        flags |= _LONG_STRING
    elif column.type in _LOBS:
        flags |= _LOB_DATA | (_EMPTY_LOB if value is not None else 0)
    elif value is not None:
        if column.type is OraType.TIMESTAMP_LTZ:
            line["type"], value = int(OraType.TIMESTAMP_TZ), value + _IN_UTC
        elif column.type in _TEXTS:
            line["charset"] = _AL32UTF8
        line["value"] = value.hex()
    return {**line, "flags": flags} if flags else line


@dataclass(slots=True)
class Recorder:
    """Records the LCRs of an outbound server into a folder, when it is told to; each time that it
    starts, it begins a file."""

    server: XStreamOut
    folder: Path
    _after: int = 0
    _number: int = 0
    _resumed: list[tuple[int, str, int]] = field(default_factory=list)

    def position(self) -> dict[str, Any]:
        """What a process that goes on behind this one must know."""
        return {"resumed": self._resumed[-1], "number": self._number}

    def resume(self, position: Mapping[str, Any]) -> None:
        """Go on behind a process before this one, in the next file."""
        number, at, scn = position["resumed"]
        self._resumed, self._number = [(number, at, scn)], position["number"]
        while self._path().exists():
            self._number += 1

    def write(self) -> int:
        """Record all that has committed since; the number of LCRs. A low watermark that would
        repeat the last one is left out."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path()
        if not path.exists():
            start, position, scn = self._resumed[-1] if self._resumed else (0, "", 0)
            self._append(path, {"lcr": "start", "scn": scn, "position": position})
            self._after = start
        count = 0
        for number, lines in self.server.lcrs(self._after):
            last = lines[-1]
            if self._resumed and last["position"] == self._resumed[-1][1]:
                continue
            self._append(path, *lines)
            count += len(lines)
            self._after = number
            self._resumed.append((number, last["position"], last["scn"]))
        return count

    def restart(self, *, back: int = 0) -> None:
        """End, and begin again so many transactions back: they come again, in another file."""
        del self._resumed[max(1, len(self._resumed) - back) :]
        self._number += 1

    def tear(self) -> None:
        """Write the half of a line, as one that is killed does."""
        with self._path().open("ab") as file:
            file.write(b'{"lcr":"row","position":"00')

    def _path(self) -> Path:
        return self.folder / f"lcrs_{self._number}.jsonl"

    @staticmethod
    def _append(path: Path, *lines: Mapping[str, Any]) -> None:
        with path.open("ab") as file:
            file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
