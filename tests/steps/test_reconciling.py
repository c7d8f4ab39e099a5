"""A damaged mirror, found by ``reconcile`` and by a judge of another kind, and repaired through the ordinary path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from cdc_core.steps import Pipeline
from tests.invariants.compare import Verdict, compare
from tests.oracle.embedded import Oracle, running_oracle

BIG = 12345678901234567890123456789012345678


@dataclass
class Damaged:
    """A source with one table, and its mirror."""

    oracle: Oracle
    pipeline: Pipeline
    mirror: Path

    def rows(self) -> pa.Table:
        builder = QueryBuilder().register("t", DeltaTable(str(self.mirror)))
        return pa.table(builder.execute("SELECT * FROM t").read_all())

    def judge(self, scn: int) -> Verdict:
        """The other judge's word on the same version and SCN."""
        with self.oracle.owner() as connection:
            return compare(connection, "T", ("ID", "PART"), self.mirror, scn)


@contextmanager
def _made(path: Path, merge: str = "auto") -> Iterator[Damaged]:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER NOT NULL, PART VARCHAR2(9) NOT NULL, BIG NUMBER(38), NOTE VARCHAR2(30),"
            " PRIMARY KEY (ID, PART))",
            *(f"INSERT INTO T VALUES ({i}, 'p{i % 3}', {BIG - i}, 'n{i}')" for i in range(500)),
        )
        config = oracle.config(
            path,
            "T",
            lake={"merge": merge},
            snapshot={"chunk_rows": 200},
        )
        with Pipeline(config) as pipeline:
            for _ in pipeline.run_once():
                continue
            oracle.run("UPDATE T SET NOTE = 'changed' WHERE ID < 20", "DELETE FROM T WHERE ID = 77")
            for _ in pipeline.run_windows():
                continue
            [mirror] = (path / "lake" / "src" / "mirror").iterdir()
            yield Damaged(oracle, pipeline, mirror)


@pytest.fixture(
    scope="module",
    params=["auto", pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.spark])],
)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Damaged]:
    """Compared in this process, and by Spark."""
    with _made(tmp_path_factory.mktemp("damaged"), request.param) as damaged:
        yield damaged


def test_an_undamaged_mirror_is_equal(made: Damaged) -> None:
    found = made.pipeline.reconcile()
    [table] = found.tables
    assert (table.rows_oracle, table.rows_delta, table.differences) == (499, 499, 0)
    assert table.digest_oracle == table.digest_delta
    assert made.judge(found.scn) == Verdict(499, 499, 0, 0, 0, 0)
    assert list(made.pipeline.repair()) == []


def _doubled_row(made: Damaged) -> None:
    write_deltalake(str(made.mirror), made.rows().slice(7, 1), mode="append")


def _lost_row(made: Damaged) -> None:
    DeltaTable(str(made.mirror)).delete("\"ID\" = '300'")


def _wrong_38th_digit(made: Damaged) -> None:
    more = 'CAST("BIG" + 1 AS DECIMAL(38, 0))'
    DeltaTable(str(made.mirror)).update({"BIG": more}, predicate="\"ID\" = '12'")


def _row_that_is_gone(made: Damaged) -> None:
    row = made.rows().slice(7, 1)
    ghost = row.set_column(0, row.schema.field(0), pa.array(["777"], row.schema.field(0).type))
    write_deltalake(str(made.mirror), ghost, mode="append")


def test_each_damage_is_found_by_both_judges_and_repaired(made: Damaged) -> None:
    for damage in (_doubled_row, _lost_row, _wrong_38th_digit, _row_that_is_gone):
        damage(made)
    found = made.pipeline.reconcile(keys_max=9)
    [table] = found.tables
    assert made.judge(found.scn) == Verdict(499, 500, 0, 1, 2, 3)
    [double] = {key for key in table.keys if not key.startswith(("300,", "12,", "777,"))}
    assert set(table.keys) == {"300,p0", "12,p0", f"777,{double.partition(',')[2]}", double}
    assert table.differences == 4
    assert (table.rows_oracle, table.rows_delta) == (499, 500)
    assert (table.double_keys_oracle, table.double_keys_delta) == (0, 1)
    assert list(made.pipeline.repair())
    assert made.judge(found.scn).is_equal


@pytest.mark.slow
def test_more_differing_keys_than_a_list_holds_are_read_as_a_whole_table(
    made: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row twice, one of another key that Oracle does not have; afterwards windows go on."""
    monkeypatch.setattr("cdc_core.steps.reconciliation.REPAIR_KEYS_MAX", 10)
    _row_that_is_gone(made)
    write_deltalake(str(made.mirror), made.rows(), mode="append")
    found = made.pipeline.reconcile()
    [table] = found.tables
    assert (table.rows_delta, table.double_keys_delta, table.differences) == (1000, 500, 500)
    assert table.keys == ()
    assert made.judge(found.scn) == Verdict(499, 1000, 0, 500, 0, 501)
    assert list(made.pipeline.repair())
    assert made.judge(found.scn).is_equal
    made.oracle.run("UPDATE T SET NOTE = NOTE || '.' WHERE ID < 5")
    for _ in made.pipeline.run_windows():
        continue
    found = made.pipeline.reconcile()
    assert found.differences == 0
    assert made.judge(found.scn).is_equal


def test_columns_with_other_names_since_are_compared_by_their_own(tmp_path: Path) -> None:
    """No window has the DDL yet. By the names of the position, a column would be compared with another one's values; so its key, too."""
    with _made(tmp_path) as made:
        made.oracle.run(
            *(
                f"ALTER TABLE T RENAME COLUMN {old} TO {new}"
                for old, new in (("NOTE", "X"), ("PART", "NOTE"), ("X", "PART"), ("ID", "NUM"))
            ),
        )
        assert made.pipeline.reconcile().differences == 0
        _lost_row(made)
        [table] = made.pipeline.reconcile(keys_max=9).tables
        assert table.keys == ("300,p0",)
        assert list(made.pipeline.repair())
        assert made.pipeline.reconcile().differences == 0


def test_rows_whose_keys_are_floats_are_repaired(tmp_path: Path) -> None:
    """By their keys: chunks are not cut by them, and NaN is one key."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID BINARY_DOUBLE PRIMARY KEY, PART VARCHAR2(9))",
            "INSERT INTO T VALUES (0.1d, 'a')",
            "INSERT INTO T VALUES (BINARY_DOUBLE_NAN, 'b')",
            "INSERT INTO T VALUES (-1e300d, 'c')",
        )
        with Pipeline(
            oracle.config(tmp_path, "T", lake={"path": str(tmp_path / "lake")})
        ) as pipeline:
            list(pipeline.run_once())
            [mirror] = (tmp_path / "lake" / "src" / "mirror").iterdir()
            DeltaTable(str(mirror)).update({"PART": "'x'"}, predicate="\"PART\" <> 'c'")
            assert [one.differences for one in pipeline.reconcile().tables] == [2]
            [chunk] = [one for one in pipeline.repair() if one.kind == "chunk-applied"]
            assert chunk.rows == 2
            assert [one.differences for one in pipeline.reconcile().tables] == [0]
