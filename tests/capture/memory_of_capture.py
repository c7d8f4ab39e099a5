"""Capture a window of one large transaction and print the process's peak memory in bytes: ``ROWS FOLDER [SESSIONS]``.

With more than one session the window is read before its turn in each of them at once, and captured from what the first one read.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from cdc_core.capture.passes.answer import Answer
from cdc_core.capture.passes.prefetch import prefetch
from cdc_core.config import LocalLandingConfig
from cdc_core.landing.open import open_landing
from cdc_core.landing.store import LandingStore
from cdc_core.model.operations import Operation
from tests.capture.test_logminer import RULES, answers, capture, work_of
from tests.capture.test_rows import batch, row
from tests.oracle.fake_session import FakeSession

BATCH_ROWS = 10_000
LOGS = [(1, 5, "/redo5", 80, 300, 1000, "ACTIVE"), (1, 6, "/redo6", 300, None, 1000, "CURRENT")]
"""The window's log has ended, so that it does not change any more."""
STATEMENT = f"""insert into "HR"."EMP"("ID","NAME") values ('1','{"x" * 600}');"""


class LargeTransaction(FakeSession):
    """One transaction of many rows, made as they are fetched."""

    rows = 0

    def fetch_batches(
        self,
        sql: str,
        binds: Mapping[str, Any] | None = None,
        *,
        rows: int,
        schema: pa.Schema | None = None,
    ) -> Generator[pa.RecordBatch]:
        yield batch(row(Operation.START))
        changes = batch(*(row(Operation.INSERT, sql_redo=STATEMENT) for _ in range(BATCH_ROWS)))
        for _ in range(self.rows // BATCH_ROWS):
            # A copy, as the driver would make one: every batch has memory of its own.
            yield pa.RecordBatch.from_arrays(
                [pa.concat_arrays([column, column[:0]]) for column in changes.columns],
                schema=changes.schema,
            )
        yield batch(row(Operation.COMMIT))


def _session(rows: int) -> LargeTransaction:
    session = LargeTransaction(answers(**{"FROM V$LOG L": LOGS}))
    session.rows = rows
    return session


def _read(rows: int, landing: LandingStore) -> Answer | None:
    """With no rows a pass would find none: what lands was read here."""
    session: Any = _session(rows)
    return prefetch(session, work_of(), RULES, landing, Event())


def main() -> None:
    """Run once and print."""
    rows = int(sys.argv[1])
    landing = open_landing(LocalLandingConfig(path=str(Path(sys.argv[2]))))
    sessions = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    early: list[Answer | None] = [None]
    if sessions > 1:
        with ThreadPoolExecutor(sessions) as pool:
            early = list(pool.map(lambda _: _read(rows, landing), range(sessions)))
        assert all(early)
    manifest, _ = capture(_session(0 if early[0] else rows), landing, prefetched=early[0])
    assert manifest.transactions_committed == 1
    assert sum(manifest.rows_by_table.values()) == rows
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main()
