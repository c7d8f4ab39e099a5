"""What a pipeline wrote is read without it: one moment over all tables, and each change once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.config import SourceConfig
from cdc_core.lake.side_tables.positions import positions_path
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault, FaultKind
from redolake.reader import ChangePosition, ConfigError, Lake, NotYetError
from redolake.reader import open as open_lake
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.test_late_commits import second_instance

ONE, TWO = f"{OWNER}.ONE", f"{OWNER}.TWO"


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    """Two tables of one row each, and a second instance."""
    with running_oracle(threads=2) as running:
        for name in ("ONE", "TWO"):
            running.run(
                f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
                f"INSERT INTO {name} VALUES (1, 'first')",
            )
        yield running


@pytest.fixture
def config(oracle: Oracle, tmp_path: Path) -> SourceConfig:
    """A source whose mirrors are written without Spark."""
    return oracle.config(tmp_path, "ONE", "TWO")


def _window(oracle: Oracle, pipeline: Pipeline, *statements: str) -> int:
    """Run the statements, take them in windows, and return the SCN up to which."""
    oracle.run(*statements)
    oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    list(pipeline.run_once())
    return pipeline.records.windows(newest_first=True, limit=1)[0].window.scn_high


def _both(value: str) -> list[str]:
    return [f"UPDATE {name} SET V = '{value}'" for name in ("ONE", "TWO")]


def _values(lake: Lake, moment: Any = None) -> list[list[str]]:
    cut = lake.at(moment)
    return [one.select("V").to_arrow()["V"].to_pylist() for one in cut.tables()]


def test_a_cut_is_oracle_as_of_one_scn(
    oracle: Oracle, config: SourceConfig, tmp_path: Path
) -> None:
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        then = _window(oracle, pipeline, *_both("then"))
        only = _window(oracle, pipeline, "UPDATE ONE SET V = 'only'")
        idle = _window(oracle, pipeline)
        lake = open_lake(tmp_path / "lake")
        assert lake.tables() == (ONE, TWO)
        assert lake.at().scn == idle
        assert pipeline.cut_at().scn == idle
        assert _values(lake) == [["only"], ["then"]]
        assert _values(lake, only) == [["only"], ["then"]]
        assert _values(lake, then) == [["then"], ["then"]]
        for moment in (then, only):
            ours = {one.table: one.version for one in pipeline.cut_at(moment).tables}
            assert {one.name: one.version for one in lake.at(moment).tables()} == ours
        [ended] = [one.ended for one in pipeline.records.windows() if one.window.scn_high == then]
        assert ended is not None
        assert _values(lake, ended) == [["then"], ["then"]]
        with pytest.raises(NotYetError, match="no window"):
            lake.at(ended - timedelta(days=1))
        with pytest.raises(NotYetError, match="inside a window that changed the table"):
            lake.at(only - 1).table(ONE)
        assert lake.at(only - 1).table(TWO).to_pandas()["V"].tolist() == ["then"]
        assert lake.at(then).table(TWO).where("\"V\" = 'first'").to_arrow().num_rows == 0
        assert lake.at(then).table(TWO).to_duckdb().count("*").fetchall() == [(1,)]
        with pytest.raises(ConfigError, match="does not have the table"):
            lake.table("SHOP.NONE")


def test_what_neither_log_nor_positions_prove_is_refused(
    oracle: Oracle, config: SourceConfig, tmp_path: Path
) -> None:
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        then = _window(oracle, pipeline, *_both("then"))
        only = _window(oracle, pipeline, "UPDATE ONE SET V = 'only'")
        lake = open_lake(tmp_path / "lake")
        oracle.run("UPDATE ONE SET V = 'ahead'")
        for key in pipeline.start_snapshot([TableId.parse(ONE)]):
            pipeline.snapshot_chunk(key)
            pipeline.apply_chunk(key)
        assert _values(lake) == [["only"], ["then"]], "the version before the chunk"
        assert _values(lake, then) == [["then"], ["then"]]
        with pytest.raises(NotYetError, match="newer SCN"):
            lake.at(only + 1).table(ONE)
        assert list(lake.at(only + 1_000_000).left_out()) == [ONE, TWO]
        Path(positions_path(str(tmp_path / "lake"), "src")).unlink()
        assert lake.at().scn == then, "nothing but its windows says that TWO is further"
        assert _values(lake, then) == [["then"], ["then"]]
        with pytest.raises(NotYetError, match="says nothing of SCNs behind"):
            lake.at(only).table(TWO)
        newest = _window(oracle, pipeline, *_both("newest"))
        assert _values(lake, newest) == [["newest"], ["newest"]]
        assert _values(lake, only) == [["only"], ["then"]]
        pipeline.resnapshot_tables([TableId.parse(TWO)], fresh=True)
        list(pipeline.run_once())
        assert list(lake.at(newest).left_out()) == [TWO]


def test_each_change_comes_once_late_commits_and_snapshots_included(
    oracle: Oracle, config: SourceConfig, tmp_path: Path
) -> None:
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        table = open_lake(tmp_path / "lake").table(ONE)
        seen: list[tuple[Any, ...]] = []
        position: ChangePosition | None = None

        def take() -> list[str]:
            nonlocal position
            changes = table.changes(since=position)
            rows = changes.to_arrow().to_pylist()
            position = ChangePosition.parse(str(changes.position))
            seen.extend(map(_identity, rows))
            rows.sort(key=lambda row: (row["_cdc_commit_scn"], row["_cdc_ordinal"]))
            return [f"{row['_cdc_op']} {(row['after'] or row['before'])['V']}" for row in rows]

        assert take() == ["r first"]
        first = _window(oracle, pipeline, "UPDATE ONE SET V = 'second'")
        assert take() == ["u second"]
        assert take() == []
        late = second_instance(oracle)
        late.cursor().execute("INSERT INTO ONE VALUES (2, 'late')")
        late.commit()
        oracle.server.faults.arm(Fault(FaultKind.SHORT_READ))
        short = _window(oracle, pipeline, "UPDATE ONE SET V = 'third' WHERE ID = 1")
        got = take()
        [replayed] = [one for one in pipeline.records.windows() if one.window.scn_high == first]
        pipeline.replay_window(replayed.window)
        got += take()
        _window(oracle, pipeline, "UPDATE TWO SET V = 'other'")
        got += take()
        assert sorted(got) == ["c late", "u third"], "the replay brought nothing"
        for key in pipeline.start_snapshot([TableId.parse(ONE)]):
            pipeline.snapshot_chunk(key)
            pipeline.apply_chunk(key)
        assert sorted(take()) == ["r late", "r third"]
        whole = table.changes().to_arrow().to_pylist()
        assert sorted(seen) == sorted(map(_identity, whole))
        parts = [*_rows(table.changes(until=first)), *_rows(table.changes(since=first))]
        assert sorted(map(_identity, parts)) == sorted(map(_identity, whole))
        assert sorted(row["_cdc_op"] for row in _rows(table.changes(until=first))) == ["r", "u"]
        assert short > first
        life = table.history(1).to_arrow().to_pylist()
        assert [(row["_cdc_op"], row["after"]["V"]) for row in life] == [
            ("r", "first"), ("u", "second"), ("u", "third"), ("r", "third"),
        ]  # fmt: skip
        with pytest.raises(ConfigError, match="another table"):
            open_lake(tmp_path / "lake").table(TWO).changes(since=position)
        pipeline.resnapshot_tables([TableId.parse(ONE)], fresh=True)
        list(pipeline.run_once())
        with pytest.raises(ConfigError, match="begun anew"):
            table.changes(since=position)


def test_columns_that_were_renamed_are_read_under_the_names_of_their_time(
    oracle: Oracle, config: SourceConfig, tmp_path: Path
) -> None:
    """The mirror has column mapping from there on; the change log keeps the first names."""
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        then = _window(oracle, pipeline, "UPDATE ONE SET V = 'then'")
        now = _window(
            oracle,
            pipeline,
            "ALTER TABLE ONE RENAME COLUMN V TO W",
            "ALTER TABLE ONE RENAME COLUMN ID TO NR",
            "UPDATE ONE SET W = 'now'",
        )
        lake = open_lake(tmp_path / "lake")
        hidden = {"_cdc_commit_scn": 0, "_cdc_ordinal": 0}
        for scn, row in ((then, {"ID": 1, "V": "then"}), (now, {"NR": 1, "W": "now"})):
            [found] = lake.at(scn).table(ONE).to_arrow().to_pylist()
            assert found | hidden == row | hidden
        life = lake.table(ONE).history({"NR": 1}).select("after").to_arrow().to_pylist()
        assert [row["after"] for row in life] == [
            {"ID": 1, "V": value} for value in ("first", "then", "now")
        ]
        with pytest.raises(ConfigError, match="not the table's key"):
            lake.table(ONE).history({"ID": 1})


def _rows(changes: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.Table.from_batches(list(changes.to_batches())).to_pylist()
    return found


def _identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["_cdc_commit_scn"], row["_cdc_ordinal"], row["_cdc_snapshot"] or "", str(row)
