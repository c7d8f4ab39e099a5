"""Chunks by a column beside the key: a row may leave its range between the SCNs of two chunks, and the redo of that need not carry all
of its columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import TableStoppedError
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of, table_id

BIG = "RPAD(TO_CLOB('x'), 3000, 'y') || RPAD(TO_CLOB('z'), 3000, 'w')"


@pytest.mark.parametrize(
    ("how", "row", "before", "after"),
    [
        pytest.param({"surrogate_key": "G"}, 140, 140, 0, id="from-one-range-to-another"),
        pytest.param({"select_overrides": {"DEMO.T": "G < 1000"}}, 1, 5000, 1, id="into-the-filter"),
    ],
)  # fmt: skip
def test_a_row_that_no_chunk_has_is_not_lost(
    tmp_path: Path, how: dict[str, object], row: int, before: int, after: int
) -> None:
    """When the first chunk is read, the row is none of its rows; then it is, and there is no undo for the second chunk."""
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, G NUMBER(9), C CLOB)")
        oracle.run(
            "INSERT INTO T (ID, G) SELECT LEVEL, LEVEL FROM DUAL CONNECT BY LEVEL <= 250",
            f"UPDATE T SET C = {BIG}, G = {before} WHERE ID = {row}",
        )
        with source_of(oracle, tmp_path, "T", snapshot={"chunk_rows": 100, **how}) as source:
            first, *_others = source.pipeline.start_snapshot([table_id("T")])
            source.pipeline.snapshot_chunk(first)
            source.pipeline.apply_chunk(first)
            oracle.run(f"UPDATE T SET G = {after} WHERE ID = {row}")
            oracle.server.faults.arm(
                Fault(FaultKind.ORA_ERROR, sql_contains='FROM "DEMO"."T" AS OF SCN', code=1555)
            )
            source.run()
            [again] = source.record("T").read_again
            assert again.trouble == "snapshot_too_old"
            source.check_current("T")
            assert len(source.lake.image(table_id("T"))) == 250


@pytest.mark.parametrize("moves", [False, True], ids=["rows-stay", "row-movement"])
def test_ranges_of_rowids_are_of_one_scn_where_rows_may_move(tmp_path: Path, moves: bool) -> None:
    with running_oracle() as oracle:
        movement = " ENABLE ROW MOVEMENT" if moves else ""
        oracle.run(f"CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, C CLOB){movement}")
        oracle.run("INSERT INTO T (ID) SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 2500")
        how = {"snapshot": {"cut": "rowid", "chunk_rows": 1000}}
        with source_of(oracle, tmp_path, "T", **how) as source:
            oracle.clock.ahead += 60  # SCNs have times that are exact to some seconds
            first, *_others = source.pipeline.start_snapshot([table_id("T")])
            oracle.clock.ahead += 60
            oracle.run("UPDATE T SET ID = ID + 5000 WHERE ID < 100")
            oracle.server.faults.arm(
                Fault(FaultKind.ORA_ERROR, sql_contains='FROM "DEMO"."T" AS OF SCN', code=1555)
            )
            if moves:
                with pytest.raises(TableStoppedError, match="a range that was read"):
                    source.pipeline.snapshot_chunk(first)
            else:
                source.pipeline.snapshot_chunk(first)
            source.run()
            source.check_current("T")
            assert len(source.record("T").read_again) == moves
