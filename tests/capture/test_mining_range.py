"""The rows of a pass are those above its lower SCN, up to and with its upper one."""

from __future__ import annotations

from pathlib import Path

from cdc_core.capture.logs.coverage import cover, read_logs, read_threads
from cdc_core.capture.logs.positions import upper_bound
from cdc_core.capture.passes.mining import mined_batches, mining
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.wanted_rows import WantedRows
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import TableSchema
from tests.oracle.embedded import running_oracle, wait_until


def inserts(session: OracleSession, schema: TableSchema, low: int, high: int) -> list[int]:
    """The SCNs of the INSERTs that a pass shows, in order."""
    low, high = Scn(low), Scn(high)
    with session.in_root():
        logs = cover(read_logs(session, low), read_threads(session), low, high)
        with mining(session, logs, low, high):
            wanted = WantedRows([schema], {}, False, Reading(low, None, {}))
            batches = list(mined_batches(session, wanted, high, rows=100))
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(row["scn"] for row in rows if row["operation_code"] == Operation.INSERT)


def test_the_lower_end_is_left_out_and_the_upper_one_is_not(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE EMP (ID NUMBER(9) PRIMARY KEY)")
        config = oracle.config(tmp_path, "EMP")
        session = oracle.capture_session(config)
        start = current_scn(session)
        for number in range(4):
            oracle.run(f"INSERT INTO EMP VALUES ({number})")
        end = wait_until(current_scn(session), lambda: upper_bound(session, "online"))
        schema = read_table_schema(session, config.tables[0])
        scns = inserts(session, schema, start, end)
        assert len(set(scns)) == 4
        first, second, third, _ = scns
        assert inserts(session, schema, first - 1, third) == [first, second, third]
        assert inserts(session, schema, first, third) == [second, third]
        assert inserts(session, schema, first, third - 1) == [second]
