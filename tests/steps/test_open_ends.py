"""NEXT_CHANGE# of the log that is being written differs between releases. Each of its values is an
open end: windows close in that log, and in those behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle_embedded.database import ADMIN
from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of


@pytest.mark.parametrize("number", [2**48 - 1, 9295429630892703743, 2**64 - 1])
def test_a_log_that_is_being_written_has_an_open_end(tmp_path: Path, number: int) -> None:
    with running_oracle(next_change_open=number) as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            for row in range(3):
                oracle.run(f"INSERT INTO T VALUES ({row})")
                oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
                oracle.run(f"INSERT INTO T VALUES ({row + 10})")
                source.run()
            source.check_current("T")
            assert len(source.lake.image(source.record("T").table)) == 6
