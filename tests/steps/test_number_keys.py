"""A key of type NUMBER without precision that the lake holds as a decimal, from the driver to Delta tables."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc_core.errors import PreflightError
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.invariants.compare import Verdict, compare
from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of

T = TableId("DEMO", "T")


def test_a_key_held_as_a_decimal_takes_chunks_windows_and_replays(tmp_path: Path) -> None:
    """Chunks by ranges of the key, keys that change, rows read again by a condition on the key, and a replay."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (NO NUMBER, SUB VARCHAR2(5), V NUMBER, D CLOB, PRIMARY KEY (NO, SUB))",
            "INSERT INTO T SELECT LEVEL, 's', LEVEL / 2, 'd' FROM DUAL CONNECT BY LEVEL <= 320",
        )
        config = oracle.config(
            tmp_path, tables=[{"name": "DEMO.T", "columns_as": {"NO": "decimal(38,0)"}}],
            snapshot={"chunk_rows": 100},
        )  # fmt: skip
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                "UPDATE T SET NO = 99999999999999999999 WHERE NO = 3",
                "UPDATE T SET D = 'other', V = NULL WHERE NO = 10",
                "DELETE FROM T WHERE NO = 7",
                "INSERT INTO T VALUES (-5, 's', 1, TO_CLOB('x'))",
            )
            list(pipeline.run_once())
            list(pipeline.run_snapshot([T], condition="NO BETWEEN 8 AND 12"))
            list(pipeline.run_once())
            for record in pipeline.records.windows():
                pipeline.replay_window(record.window)
            kept = pipeline.records.table(T)
        assert kept is not None
        assert kept.mirror_scn is not None
        mirror = tmp_path / "lake" / "src" / "mirror" / "demo.t"
        with oracle.owner() as connection:
            assert compare(connection, "T", ("NO", "SUB"), mirror, kept.mirror_scn) == Verdict(
                320, 320, 0, 0, 0, 0
            )
        keys = DeltaTable(mirror).to_pyarrow_table(columns=["NO"])["NO"]
        assert str(keys.type) == "decimal128(38, 0)"
        assert {Decimal(99999999999999999999), Decimal(-5)} < set(keys.to_pylist())


def test_a_key_that_a_decimal_does_not_hold_stops_its_table(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (NO NUMBER PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        with source_of(oracle, tmp_path) as source:
            source.configure({"name": "T", "columns_as": {"NO": "decimal(38,0)"}})
            source.run()
            oracle.run("INSERT INTO T VALUES (1.5)")
            source.run()
            assert source.record("T").trouble == "undecodable"
            assert source.lake.image(T) == [(Decimal(1),)]


def test_a_key_is_no_double(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (NO NUMBER PRIMARY KEY)")
        with source_of(oracle, tmp_path) as source:
            source.configure({"name": "T", "columns_as": {"NO": "double"}})
            with pytest.raises(PreflightError, match=r"store numbers among them as decimal\(p,s\)"):
                source.run()
