"""Tables that are partitioned, index-organized, or have names that SQL has to quote, live through kills, replays and DDL of partitions."""

from __future__ import annotations

import pytest

from tests.invariants.points import IN_REWRITING
from tests.invariants.prove import prove
from tests.invariants.shapes import TABLES
from tests.invariants.test_prove import check, events_of

KEPT = (
    ("chunks", ""), ("apply", ""), ("tpcc", ""), ("chunks", ""), ("chunks", ""), ("tpcc", ""), ("apply", ""), ("partitions", ""),
    ("tpcc", ""), ("kill at a point", "window landed, not recorded"), ("apply", ""), ("leave", "SELECT"), ("partitions", ""),
    ("kill at a point", "Delta committed, store not"), ("come back", ""), ("other instance", ""), ("tpcc", ""), ("partitions", ""),
    ("capture", ""), ("apply", ""), ("replay", ""),
)  # fmt: skip
DELTA = (
    ("chunks", ""), ("tpcc", ""), ("chunks", ""), ("tpcc", ""), ("chunks", ""), ("apply", ""), ("capture", ""), ("apply", ""),
    ("partitions", ""), ("tpcc", ""), ("kill at a point", IN_REWRITING), ("partitions", ""), ("tpcc", ""), ("replay", ""),
)  # fmt: skip


@pytest.mark.slow
def test_tables_of_other_shapes_equal_oracle_after_kills_and_ddl_of_partitions() -> None:
    proof = prove(5, events=events_of(KEPT), tables=TABLES, scns_compared=6)
    check(proof, TABLES, 3)
    assert proof.happened["partitions"] == 3, "a partition did not go"
    assert proof.kills.total() == 2, proof.kills
    assert proof.replayed["windows"], "nothing was replayed"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_tables_of_other_shapes_equal_oracle_in_delta() -> None:
    proof = prove(6, events=events_of(DELTA), lake="delta", tables=TABLES, scns_compared=4)
    check(proof, TABLES, 2)
    assert proof.happened["partitions"], "no partition went"
    assert proof.replayed["windows"], "nothing was replayed"
    assert proof.reconciled, "nothing was reconciled"
