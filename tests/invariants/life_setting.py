"""Where does a life take place? A database, workers, their configuration, and who asks them."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import oracledb
from rich.console import Console
from sqlalchemy import NullPool, create_engine, text

from tests.invariants.changelog import Stream
from tests.invariants.deadline import EVENT_SECONDS_MAX, deadline
from tests.invariants.events import Event
from tests.invariants.hidden import HIDDEN
from tests.invariants.lakes import JudgedDelta, JudgedKept, JudgedLake
from tests.invariants.load import KEYS
from tests.invariants.points import (
    Capture,
    LakeKind,
    Role,
)
from tests.invariants.proof import Proof
from tests.invariants.server import EmbeddedServer, current_scn
from tests.invariants.shapes import PARTS, quoted, written
from tests.invariants.team import Answer, Team, WorkerFailedError
from tests.invariants.ways import way_of
from tests.invariants.wild import WILD_TABLES, WildLoad
from tests.jvm import SHORT_LIVED, SMALL_WORK

ATTEMPTS = 4
WITHOUT_VECTORS = ("EVENTS", "GROWING")
"""Their mirrors never have deletion vectors."""
LEASE_SECONDS = 3
STOPPED_BY_DDL = ("PASSING", "GROWING", PARTS)
"""Tables that a TRUNCATE stops, or any DDL between the plan of a snapshot and its reading: Oracle cannot look back behind it."""
ON_A_CLUSTER = {"spark.cores.max": "1", "spark.executor.memory": "512m"}
"""Two workers' processes have an executor each, also while one of them is stopped."""


class LifeSetting:
    """What a life has and asks, whatever happens in it. Its workers, its load and the connection of that come when it begins."""

    team: Team
    load: WildLoad
    connection: Any

    def __init__(
        self,
        folder: Path,
        seed: int,
        events: Sequence[Event],
        *,
        lake: LakeKind = "kept",
        capture: Capture = "logminer",
        tables: Sequence[str] = WILD_TABLES,
        scns_compared: int = 8,
        services: dict[str, Any] | None = None,
        spark: str | None = None,
        on_executors: bool = False,
        sabotage: str | None = None,
        say: Console | None = None,
    ) -> None:
        self.folder, self.events, self.lake, self.tables = folder, events, lake, tables
        self.capture, self.scns_compared, self.sabotage = capture, scns_compared, sabotage
        self.say = say or Console(quiet=True)
        self.proof = Proof(seed, list(events))
        self.dice = Random(seed)
        self.way = way_of(capture, seed, folder / "oracle")
        self.server = EmbeddedServer(folder / "oracle", streams=self.way.streams)
        self.streams: dict[str, list[Stream]] = {}
        self._states: dict[str, str] = {}
        self._lives: dict[str, tuple[int, int]] = {}
        self._blind_below: dict[str, int] = {}
        self._positions: dict[str, int] = {}
        self._paused: set[str] = set()
        self._noted: set[tuple[int, str]] = set()
        self._joined: set[tuple[str, int]] = set()
        self._lacking: dict[tuple[int, int], tuple[int, tuple[str, ...]]] = {}
        self._compared: set[tuple[int, str]] = set()
        self._counted: set[Path] = set()
        self._services = services or {}
        self._spark = spark
        self._stage: dict[str, Any] = {"stage_on_executors_from_rows": 1} if on_executors else {}
        self._signals = 0
        self.copies = 0
        reads_logs = capture == "logminer"
        self._is_cluster = reads_logs and seed % 4 != 0
        self.completes = reads_logs and seed % 3 == 1
        """Windows end with switched logs, as they do by default; else where redo was written last."""
        self.follows = seed % 4 < 2
        """The lake follows a TRUNCATE and loses columns that Oracle drops."""
        self.rewrites = seed % 2 == 0
        """Windows are merged into Delta by writing files anew; else by Spark."""
        self._now, self._since = "start", time.monotonic()

    def _kill(self, role: Role) -> None:
        code = self.team[role].kill()
        assert code == -signal.SIGKILL, code
        self.team.replace(role)

    def do(self, role: Role, command: str, **arguments: Any) -> Any:
        """Let a worker do something to the end; what is said to pass by itself is tried again."""
        if command == "capture":
            self.end_logs()
        for _ in range(ATTEMPTS):
            answer = self.team[role].ask(command, **arguments)
            if not self._passes(answer):
                break
        return self._expect(answer)

    def end_logs(self) -> None:
        """Where windows end with switched logs, the logs that are written end here. What tells of changes besides tells of all until now."""
        if self.completes:
            self.server.administer("ALTER SYSTEM ARCHIVE LOG CURRENT")
        if self.way.streams:
            self.server.tell()

    def _passes(self, answer: Answer) -> bool:
        """Does the same command go on behind this, by itself or without the table that DDL has stopped?"""
        is_ddl = answer.failed == "TableStoppedError" and any(
            f"(table={self.name(table)})" in answer.text for table in STOPPED_BY_DDL
        )
        return answer.is_transient or is_ddl

    def _settle(self, role: Role, answer: Answer) -> None:
        if self._passes(answer):
            self.do(role, role)
        else:
            self._expect(answer)

    def _expect(self, answer: Answer) -> Any:
        if answer.failed is not None:
            raise WorkerFailedError(f"a worker failed: {answer.text[-3000:]}")
        return answer.done

    def ready(self, among: Any = WILD_TABLES) -> str | None:
        ready = [table for table in among if self._states.get(table) == "ready"]
        return self.dice.choice(sorted(ready)) if ready else None

    def name(self, table: str) -> str:
        return f"{self.server.user.upper()}.{written(table)}"

    def _store(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the metadata store, read as any tool could."""
        engine = create_engine(self._url, poolclass=NullPool)
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(sql))]

    def _columns(self, table: str) -> list[str]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {quoted(table)} WHERE 1 = 0")
            return [column[0] for column in cursor.description]

    def _connect(self) -> None:
        self.connection = self.server.connect()
        self._clock = self.server.connect_capture()

    def _scn(self) -> int:
        return current_scn(self._clock)

    @contextmanager
    def _capture_session(self) -> Iterator[oracledb.Cursor]:
        with self.server.connect_capture() as connection, connection.cursor() as cursor:
            yield cursor

    def _configure(self) -> Path:
        self._url = self._services.get("store", f"sqlite:///{self.folder}/state.db")
        lake = self.folder / "lake"
        self._judged: JudgedLake = (
            JudgedDelta(lake, self.name) if self.lake == "delta" else JudgedKept(lake, self.name)
        )
        tables: list[dict[str, Any]] = [{"name": self.name(table)} for table in self.tables]
        for table in tables:
            if table["name"].endswith(".LOOSE"):
                table["key"] = list(KEYS["LOOSE"])
            if table["name"].endswith(".BARE"):
                table["identity"] = "rowid"
            if table["name"].endswith(".PASSING") and self.follows:
                table["on_truncate"] = "follow"
            if table["name"].endswith(f".{PARTS}"):
                table["on_truncate"] = "follow_or_resnapshot"
            for hiding, columns in HIDDEN.items():
                if table["name"].endswith(f".{hiding}"):
                    table["columns_exclude"] = list(columns)
            if table["name"].endswith(WITHOUT_VECTORS):
                table["deletion_vectors"] = "never"
        config = {
            "name": "proof",
            "oracle": {
                "dsn": self.server.dsn, "user": self.server.capture_user, "password": self.server.capture_password,
                "fetch_rows": 100,
            },
            "tables": tables,
            "capture": self.way.capture or {"close_at": "completed_logs" if self.completes else "online"},
            "snapshot": {"chunk_rows": 100},
            "maintenance": {"deletion_vectors": "always"},
            "landing": self._services.get("landing", {"type": "local", "path": str(self.folder / "landing")}),
            "lake": {
                "path": str(lake), "driver_memory": "1g", **({} if self.rewrites else {"rewrite_mirrors_up_to_mb": 0}),
                "spark_config": {"spark.driver.extraJavaOptions": " ".join(SHORT_LIVED), **SMALL_WORK, **(ON_A_CLUSTER if self._spark else {})},
                **({"spark_master": self._spark} if self._spark else {}),
                **self._stage,
            },
            "state": {"url": self._url, "lease_seconds": LEASE_SECONDS},
        }  # fmt: skip
        path = self.folder / "config.json"
        path.write_text(json.dumps(config))
        return path

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Count the block's seconds by the kind of what happens; one that does not end is interrupted."""
        outer = self._enter(name)
        with deadline(EVENT_SECONDS_MAX[self.lake], self.team.stacks):
            yield
        self._enter(outer)

    def _enter(self, name: str) -> str:
        now, before = time.monotonic(), self._now
        self.proof.seconds[self._kind_of(before)] += now - self._since
        self._now, self._since = name, now
        return before

    def _kind_of(self, phase: str) -> str:
        """The event's kind, of whose number and object a phase is named too."""
        return phase.partition(" ")[2].partition(":")[0] if phase[:1].isdigit() else phase
