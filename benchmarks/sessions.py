"""How many more rows do several LogMiner sessions bring than one, where one session gives no more
than 10,000 rows a second?

One session of LogMiner uses one CPU of the database, so a source that is behind gives each session
so many rows and no more (``benchmarks/slowed.py``). Everything else is real: each session's
connection, its proofs of the logs, its LogMiner session, dictionary, metadata store and landing.
The result is right if all numbers of sessions land the same bytes as the pass that was not slowed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import oracledb

from benchmarks.common import Form, Result, measured
from benchmarks.slowed import Slowed
from cdc_core.config import SourceConfig
from cdc_core.landing.layout import windows_folder
from cdc_core.steps import Pipeline
from pipelines.demo.server import Served, serving
from tests.steps.memory_lake import MemoryLake

ROWS_PER_SECOND = 10_000
SESSIONS = (1, 2, 4)
GOAL = 0.8
CHANGES = {Form.QUICK: 100_000, Form.NORMAL: 250_000, Form.LONG: 600_000}
WINDOW_BYTES, SMALL_WINDOW_BYTES = 8 * 1024**2, 1
"""A window of two logs, or of one."""
TRANSACTION_ROWS = 1_000
_TABLE = (
    "CREATE TABLE NOTES (ID NUMBER(12) PRIMARY KEY, TEXT VARCHAR2(200), SHARE_OF NUMBER, SEEN DATE)"
)
_NEW_ROWS = """
INSERT INTO NOTES SELECT :first + LEVEL, RPAD('note ', 200, 'x'), LEVEL / 7, SYSDATE FROM DUAL CONNECT BY LEVEL <= :rows"""


def rows(form: Form = Form.NORMAL) -> list[Result]:
    """Rows of V$LOGMNR_CONTENTS a second that land with each number of sessions."""
    changes = CHANGES[form]
    with tempfile.TemporaryDirectory() as name, serving(Path(name) / "database") as served:
        source = _Source(
            Path(name), served, WINDOW_BYTES if form is Form.LONG else SMALL_WINDOW_BYTES
        )
        windows = source.plan(changes)
        slowed = Slowed(ROWS_PER_SECOND, _range)
        with slowed.recording():
            source.capture("recorded", sessions=1)
        expected = source.digests("recorded")
        found, is_right = {}, True
        for sessions in SESSIONS:
            with slowed.replaying(), measured() as watch:
                source.capture(str(sessions), sessions=sessions)
            found[sessions] = slowed.fetched / watch.seconds
            is_right &= source.digests(str(sessions)) == expected
    correct = is_right and len(expected) >= windows > max(SESSIONS)
    return [
        Result(
            f"{sessions} sessions read {windows} windows of {slowed.fetched:,} LogMiner rows from a source of {ROWS_PER_SECOND:,} rows/s a session",
            found[sessions],
            "rows/s",
            f"{sessions} times what one session lands",
            sessions * found[1],
            goal=GOAL,
            correct=correct,
        )
        for sessions in SESSIONS
    ]


def _range(sql: str, binds: Mapping[str, int]) -> tuple[int, int] | None:
    """Whose rows a pass over LogMiner's view reads."""
    is_mining = "FROM V$LOGMNR_CONTENTS" in sql
    return (binds["scn_low"], binds["scn_high"]) if is_mining else None


@dataclass(frozen=True, slots=True)
class _Source:
    """One source whose planned windows are captured again and again, each time in other folders."""

    folder: Path
    served: Served
    window_bytes: int

    def plan(self, changes: int) -> int:
        """Let the table join, insert rows, and plan windows; their number."""
        with self._connect(self.served.user, self.served.password) as connection:
            cursor = connection.cursor()
            cursor.execute(_TABLE)
            cursor.execute("ALTER TABLE NOTES ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
            with self._opened("planned", 1) as pipeline:
                list(pipeline.run_snapshot())
                for first in range(0, changes, TRANSACTION_ROWS):
                    cursor.execute(_NEW_ROWS, {"first": first, "rows": TRANSACTION_ROWS})
                    connection.commit()
                return len(pipeline.plan_windows())

    def capture(self, name: str, *, sessions: int) -> None:
        """Capture all planned windows."""
        shutil.copytree(self.folder / "planned", self.folder / name)
        with self._opened(name, sessions) as pipeline:
            pending = pipeline.pending_windows()
            with pipeline.prefetching(pending):
                for window in pending:
                    pipeline.capture_window(window)

    def digests(self, name: str) -> dict[str, bytes]:
        """The redo files that landed, by their paths."""
        root = self.folder / name / "landing" / windows_folder("notes")
        return {str(one.relative_to(root)): one.read_bytes() for one in root.rglob("redo-*")}

    def _connect(self, user: str, password: str) -> oracledb.Connection:
        return oracledb.connect(user=user, password=password, dsn=self.served.dsn)

    def _opened(self, name: str, sessions: int) -> Pipeline:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        config = SourceConfig.model_validate(
            {
                "name": "notes",
                "tables": [{"name": f"{self.served.user.upper()}.NOTES"}],
                "oracle": {
                    "dsn": self.served.dsn,
                    "user": self.served.capture_user,
                    "password": self.served.capture_password,
                },
                "capture": {"window_redo_bytes_max": self.window_bytes, "sessions": sessions},
                "landing": {"type": "local", "path": str(folder / "landing")},
                "lake": {"path": str(folder / "lake")},
                "state": {"url": f"sqlite:///{folder / 'state.db'}"},
            }
        )
        return Pipeline(config, open_lake=MemoryLake().open)
