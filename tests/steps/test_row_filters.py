"""Snapshots that read a part of a table's rows, by ``snapshot.select_overrides``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pydantic import ValidationError

from cdc_core.model.chunks import AD_HOC
from cdc_core.steps import Pipeline
from pipelines.commands.inspect import show_status
from pipelines.commands.shared import LineConsole
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, STATE VARCHAR2(10), SECRET NUMBER(9))",
    *(f"INSERT INTO T VALUES ({n}, '{'old' if n % 2 else 'new'}', {n})" for n in range(9)),
)


source = capturing("T", runs=False)


def begin(source: Source, condition: str | None, **more: Any) -> None:
    source.close()
    overrides = {} if condition is None else {f"{OWNER}.T": condition}
    source.more = {"snapshot": {"select_overrides": overrides, "chunk_rows": 100, **more}}
    source.run()


def ids(source: Source) -> set[int]:
    return {int(row[0]) for row in source.lake.image(table_id("T"), of_oracle=True)}


def test_snapshots_read_the_rows_and_all_changes_are_captured(source: Source) -> None:
    begin(source, "STATE = 'new'")
    assert ids(source) == {0, 2, 4, 6, 8}
    assert source.status("T").rows_where == "STATE = 'new'"
    assert not source.status("T").is_partial
    source.oracle.run(
        "UPDATE T SET SECRET = 0 WHERE ID = 3", "DELETE FROM T WHERE ID = 4", "DELETE FROM T WHERE ID = 5"
    )  # fmt: skip
    source.run()
    assert ids(source) == {0, 2, 3, 6, 8}


def test_a_later_snapshot_reads_the_same_rows_and_removes_the_others(source: Source) -> None:
    begin(source, f"SELECT * FROM {OWNER}.T WHERE STATE = 'new'")
    source.oracle.run("UPDATE T SET SECRET = 0 WHERE ID = 3")
    source.run()
    source.oracle.run("ALTER TABLE T RENAME COLUMN STATE TO STATUS")
    source.run()
    list(source.pipeline.run_snapshot([table_id("T")]))
    assert ids(source) == {0, 2, 4, 6, 8}
    list(source.pipeline.run_snapshot([table_id("T")], condition="ID > 4"))
    ad_hoc = [one for one in source.pipeline.records.chunks() if one.snapshot_id.startswith(AD_HOC)]
    assert ad_hoc[-1].condition == "(\"STATUS\" = 'new') AND (ID > 4)"


def test_a_changed_filter_waits_for_a_snapshot(source: Source) -> None:
    begin(source, "STATE = 'new'")
    begin(source, "STATE = 'old'")
    assert ids(source) == {0, 2, 4, 6, 8}
    assert "select_overrides" in (source.status("T").reason or "")
    source.pipeline.resnapshot_tables([table_id("T")])
    source.run()
    assert (ids(source), source.status("T").reason) == ({1, 3, 5, 7}, None)
    begin(source, None)
    source.pipeline.resnapshot_tables([table_id("T")])
    source.run()
    source.check_current("T")
    assert source.status("T").rows_where is None


def test_a_filter_by_an_excluded_column(source: Source) -> None:
    source.configure({"name": "T", "columns_exclude": ["SECRET"]})
    begin(source, "SECRET < 3")
    assert ids(source) == {0, 1, 2}


def test_status_says_which_rows_are_read_and_how_far_it_is(source: Source) -> None:
    begin(source, "STATE = 'new'")
    console = LineConsole(record=True, width=200)
    source.pipeline.start_snapshot([table_id("T")])
    show_status(source.pipeline.status(ask_oracle=False), console)
    text = console.export_text()
    assert "DEMO.T: snapshots read the rows WHERE STATE = 'new'" in text
    assert "snapshots: 0 of 1 chunk applied" in text


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        pytest.param("ID > :1", "bind", id="bind"),
        pytest.param("ID > 1 -- x", "comment", id="comment"),
        pytest.param("ID IN (SELECT 1 FROM DUAL)", "neither columns", id="sub-query"),
        pytest.param("ID > SYSDATE - DATE '2026-01-01'", "SYSDATE", id="moving"),
        pytest.param("SELECT * FROM U WHERE ID > 1", "another table", id="another-table"),
        pytest.param("SELECT * FROM T ORDER BY ID", "more than a WHERE", id="order"),
    ],
)
def test_what_is_no_filter_of_the_table_stops_it(source: Source, condition: str, said: str) -> None:
    begin(source, condition)
    assert source.status("T").state == "failed"
    assert said in (source.status("T").reason or "")


def test_a_filter_needs_a_captured_table(oracle: Oracle, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"not under tables: SHOP\.NONE"):
        oracle.config(tmp_path, "T", snapshot={"select_overrides": {"SHOP.NONE": "ID > 1"}})


def test_reconcile_compares_the_rows_of_the_filter_and_repairs_them(
    oracle: Oracle, tmp_path: Path
) -> None:
    config = oracle.config(
        tmp_path,
        "T",
        snapshot={"select_overrides": {f"{OWNER}.T": "STATE = 'new'"}},
    )
    with Pipeline(config) as pipeline:
        pipeline.begin()
        list(pipeline.run_once())
        oracle.run("UPDATE T SET SECRET = -1 WHERE ID IN (3, 8)", "DELETE FROM T WHERE ID = 7")
        list(pipeline.run_once())
        [found] = pipeline.reconcile().tables
        assert (found.rows_oracle, found.rows_delta, found.differences) == (6, 6, 0)
        assert found.rows_where == "STATE = 'new'"
        [mirror] = (tmp_path / "lake" / "src" / "mirror").iterdir()
        DeltaTable(str(mirror)).delete("\"ID\" = '2'")
        DeltaTable(str(mirror)).update({"SECRET": "5"}, predicate="\"ID\" = '3'")
        assert pipeline.reconcile(keys_max=9).tables[0].keys == ("2", "3")
        list(pipeline.repair())
        [found] = pipeline.reconcile().tables
        assert (found.rows_oracle, found.rows_delta, found.differences) == (6, 6, 0)
