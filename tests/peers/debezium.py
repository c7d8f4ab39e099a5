"""How does Debezium's connector for Oracle run here, and what do its events say, reduced to what our change log says too?"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.debezium import PeerUnavailableError, installed_jars
from cdc_core.errors import PreflightError
from oracle_embedded.database import CAPTURE
from tests.peers.jdbc import JVM_OPTIONS, has_java_compiler, xml_jars

_PROGRAM = Path(__file__).with_name("DebeziumOracle.java")
_WAIT_ROUNDS = 1200
"""So many times without a new event it is waited."""
_NEWEST_BYTES = 65_536
_STREAMING = "Starting streaming"
_EPOCH = datetime(1970, 1, 1)
UNAVAILABLE = "not in the redo"
"""In place of a value that a change does not carry, such as a LOB that an UPDATE left alone."""
_PLACEHOLDERS = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")

Image = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """One change of a committed row, in the one form in which both readers are compared. A change of the key is a delete and an
    insert. Numbers are exact, times microseconds since 1970."""

    commit_scn: int
    xid: str
    table: str
    op: str
    before: Image | None
    after: Image | None


@dataclass(frozen=True, slots=True)
class Debezium:
    """A running connector."""

    process: subprocess.Popen[bytes]
    folder: Path

    def log(self) -> str:
        """What it has logged so far."""
        return (self.folder / "debezium.log").read_text(errors="replace")

    def events(self, kinds: Mapping[str, str]) -> list[Event]:
        """Its events so far; ``kinds`` says of each column how Debezium encodes it: number, text, date, timestamp or raw."""
        lines = (self.folder / "events.json").read_text().splitlines()
        return [_event(json.loads(line), kinds) for line in lines]

    def records(self) -> Iterator[dict[str, Any]]:
        """What its topics would hold: ``topic``, ``key`` and ``value`` of each record so far."""
        with (self.folder / "records.json").open() as lines:
            yield from map(json.loads, lines)

    def newest(self) -> str:
        """The last of its events, as JSON."""
        with (self.folder / "events.json").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _NEWEST_BYTES))
            return file.read().decode(errors="replace")

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so.

        Raises:
            RuntimeError: The connector has ended, or sends nothing for too long.
        """
        size, rounds = -1, 0
        while rounds < _WAIT_ROUNDS:
            if is_so():
                return
            if self.process.poll() is not None:
                break
            now = (self.folder / "events.json").stat().st_size
            size, rounds = now, rounds + 1 if now == size else 0
            time.sleep(0.1)
        raise RuntimeError(f"Debezium did not get there: {self.log()[-3000:]}")


def require_debezium() -> None:
    """Skip the test where the connector cannot run."""
    if not has_java_compiler():
        pytest.skip("there is no JDK (java and javac) on the path")
    try:
        installed_jars()
        xml_jars()
    except (PeerUnavailableError, PreflightError) as error:
        pytest.skip(f"Debezium's jars cannot be installed: {error}")


@contextmanager
def debezium(
    port: int, password: str, folder: Path, tables: Sequence[str], **options: str
) -> Iterator[Debezium]:
    """Start the connector, without a snapshot of rows unless the options say so; in the block it streams."""
    properties = {
        "name": "peer",
        "connector.class": "io.debezium.connector.oracle.OracleConnector",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": CAPTURE,
        "database.password": password,
        "database.dbname": "ORCLCDB",
        "database.pdb.name": "ORCLPDB1",
        "topic.prefix": "peer",
        "table.include.list": ",".join(tables),
        "snapshot.mode": "no_data",
        "log.mining.strategy": "online_catalog",
        "log.mining.transaction.snapshot.boundary.mode": "all",
        "log.mining.sleep.time.default.ms": "200",
        "log.mining.sleep.time.max.ms": "400",
        "decimal.handling.mode": "string",
        "include.schema.changes": "false",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "errors.max.retries": "0",
        **options,
    }
    written = folder / "debezium.properties"
    written.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    (folder / "events.json").touch()
    path = os.pathsep.join((f"{installed_jars()}/*", *map(str, xml_jars())))
    command = ["java", *JVM_OPTIONS, "-Dlog4j2.level=INFO", "-cp", path]
    command += [str(_PROGRAM), str(written)]
    command += [str(folder / "events.json"), str(folder / "records.json")]
    with (folder / "debezium.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    running = Debezium(process, folder)
    try:
        running.wait(lambda: _STREAMING in running.log())
        yield running
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def _event(value: dict[str, Any], kinds: Mapping[str, str]) -> Event:
    source = value["source"]
    return Event(
        int(source["commit_scn"]),
        source["txId"],
        source["table"],
        {"c": "insert", "u": "update", "d": "delete"}[value["op"]],
        _image(value["before"], kinds, _from_debezium),
        _image(value["after"], kinds, _from_debezium),
    )


def _image(
    row: Mapping[str, Any] | None,
    kinds: Mapping[str, str],
    read: Callable[[Any, str], Any],
) -> Image | None:
    if row is None:
        return None
    return tuple((name, read(row[name], kinds[name])) for name in sorted(row))


def _from_debezium(value: Any, kind: str) -> Any:
    if value in _PLACEHOLDERS:
        return UNAVAILABLE
    if value is None:
        return None
    match kind:
        case "number":
            return Decimal(value).normalize()
        case "date":
            return value * 1000
        case "raw":
            return base64.b64decode(value)
    return value


def _from_change_log(value: Any, _kind: str) -> Any:
    match value:
        case int() | Decimal():
            return Decimal(value).normalize()
        case datetime():
            naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            apart = naive - _EPOCH
            return (apart.days * 86400 + apart.seconds) * 1_000_000 + apart.microseconds
    return value


def _marked(row: Mapping[str, Any] | None, absent: Sequence[str]) -> Mapping[str, Any] | None:
    return row and {**row, **dict.fromkeys(absent, UNAVAILABLE)}


def events_of_change_log(
    table: str, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str], key: str
) -> list[Event]:
    """A change log's rows in the same form, in its order."""
    found = []
    for row in sorted(rows, key=lambda one: (one["_cdc_commit_scn"], one["_cdc_ordinal"])):
        before = _image(row["before"], kinds, _from_change_log)
        after = _image(_marked(row["after"], row["_cdc_absent"]), kinds, _from_change_log)
        place = (row["_cdc_commit_scn"], row["_cdc_xid"].lower(), table)
        if before is not None and after is not None and dict(before)[key] != dict(after)[key]:
            found += [
                Event(*place, "delete", before, None),
                Event(*place, "insert", None, after),
            ]
        else:
            op = "insert" if before is None else "delete" if after is None else "update"
            found.append(Event(*place, op, before, after))
    return found
