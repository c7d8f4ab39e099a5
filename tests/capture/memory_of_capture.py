"""Capture a window of one large transaction and print the process's peak memory in bytes: ``ROWS FOLDER``."""

from __future__ import annotations

import resource
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdc_core.config import LocalLandingConfig
from cdc_core.landing.open import open_landing
from cdc_core.model.operations import Operation
from tests.capture.test_logminer import answers, capture
from tests.capture.test_rows import batch, row
from tests.oracle.fake_session import FakeSession

BATCH_ROWS = 10_000
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


def main() -> None:
    """Run once and print."""
    session = LargeTransaction(answers())
    session.rows = int(sys.argv[1])
    manifest, _ = capture(session, open_landing(LocalLandingConfig(path=str(Path(sys.argv[2])))))
    assert manifest.transactions_committed == 1
    assert sum(manifest.rows_by_table.values()) == session.rows
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main()
