"""Histories as users keep them: through the driver, the command line and Delta, held against what Oracle showed after each transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import oracledb
import pytest
from deltalake import DeltaTable
from pydantic import ValidationError
from typer.testing import CliRunner

from cdc_core.config import HistoryConfig
from cdc_core.errors import ConfigError, LeaseHeldError, OracleUnavailableError
from cdc_core.leases import HeldLease
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.oracle.database import current_scn
from cdc_core.steps import Pipeline
from pipelines.cli import app
from pipelines.commands import history as command
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.harness import table_id

T = table_id("T")


class Story:
    """A source with a history, and the table as Oracle showed it at some SCNs."""

    def __init__(self, oracle: Oracle, pipeline: Pipeline, lake: Path) -> None:
        self.oracle, self.pipeline = oracle, pipeline
        self.path = str(lake / pipeline.source / "history" / T.path)
        self.shown: list[tuple[int, set[tuple[Any, ...]]]] = []

    def do(self, *statements: str) -> None:
        """One transaction, and what the table is behind it."""
        self.oracle.run(*statements)
        self.look()

    def look(self) -> None:
        with self.oracle.owner() as connection:
            rows = set(connection.cursor().execute("SELECT ID, V, NOTE FROM T").fetchall())
        with self.pipeline.database.session() as session:
            self.shown.append((current_scn(session), rows))

    def carry(self) -> list[ScnWindow]:
        """All there is to do, as `redolake run` does it."""
        done = list(self.pipeline.run_once())
        assert [one.failed for one in self.pipeline.keep_history() if one.failed] == []
        return [ScnWindow.parse(one.key) for one in done if one.kind == "window-applied"]

    @property
    def states(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = DeltaTable(self.path).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: (row["ID"], row["_cdc_valid_from_scn"]))

    def check(self, since: int) -> None:
        """Each moment is shown by the states that were valid then; the states of a key follow each other, none is empty, and one
        at most is current."""
        states = self.states
        for scn, rows in self.shown:
            if scn < since:
                continue
            found = [
                (one["ID"], one["V"], one["NOTE"])
                for one in states
                if one["_cdc_valid_from_scn"] <= scn < (one["_cdc_valid_to_scn"] or scn + 1)
            ]
            assert len(found) == len(set(found))
            assert set(found) == rows, scn
        for one, other in pairwise(states):
            if one["ID"] == other["ID"]:
                assert one["_cdc_valid_to_scn"] is not None
                assert one["_cdc_valid_to_scn"] <= other["_cdc_valid_from_scn"]
        for one in states:
            end = one["_cdc_valid_to_scn"]
            assert end is None or one["_cdc_valid_from_scn"] < end
            assert one["_cdc_is_current"] == (end is None) == (one["_cdc_op"] is None)


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    monkeypatch.setattr(oracledb.defaults, "fetch_lobs", False)
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), NOTE CLOB)",
            *(f"INSERT INTO T VALUES ({key}, 'v{key}', 'note {key}')" for key in range(1, 8)),
        )
        lake = tmp_path / "lake"
        config = oracle.config(
            tmp_path,
            "T",
            lake={"history": "scd2"},
            policies={"on_truncate": "follow"},
        )
        with Pipeline(config) as pipeline:

            @contextmanager
            def opened(*_args: Any, **_more: Any) -> Iterator[Pipeline]:
                yield pipeline

            monkeypatch.setattr(command, "opened", opened)
            yield Story(oracle, pipeline, lake)


def test_a_history_shows_each_moment_as_oracle_did(story: Story) -> None:
    """Changes of key, deletions and insertions again, several changes in a transaction, a TRUNCATE, a snapshot again, an old window
    again, and a new column."""
    story.carry()
    story.look()
    first = story.shown[0][0]
    story.check(first)
    story.do("UPDATE T SET V = 'a' WHERE ID = 1", "UPDATE T SET V = 'b' WHERE ID = 1")
    story.do("UPDATE T SET ID = 20 WHERE ID = 2")
    story.do("DELETE FROM T WHERE ID = 3")
    story.do("INSERT INTO T VALUES (3, 'again', NULL)")
    story.do("DELETE FROM T WHERE ID = 4", "INSERT INTO T VALUES (4, 'at once', 'n')")
    story.do(
        "UPDATE T SET V = V", "INSERT INTO T VALUES (99, 'x', NULL)", "DELETE FROM T WHERE ID = 99"
    )
    story.do("UPDATE T SET ID = 21 WHERE ID = 20", "UPDATE T SET NOTE = 'new' WHERE ID = 21")
    windows = story.carry()
    story.check(first)
    ended = {one["ID"]: one["_cdc_op"] for one in story.states if not one["_cdc_is_current"]}
    assert (ended[1], ended[2], ended[3]) == ("u", "u", "d")

    before = story.states
    list(story.pipeline.run_snapshot([T]))
    story.carry()
    assert story.states == before, "a snapshot that finds what is known begins no state"
    for window in windows:
        story.pipeline.replay_window(window)
    assert list(story.pipeline.keep_history()) == []

    story.do("TRUNCATE TABLE T")
    story.do("INSERT INTO T VALUES (1, 'b', 'note 1')", "INSERT INTO T VALUES (5, 'five', NULL)")
    story.carry()
    story.check(first)
    cut = [one for one in story.states if one["_cdc_op"] == "t"]
    assert len(cut) == 7
    assert all(one["_cdc_valid_to"] is not None for one in cut)

    story.oracle.run("ALTER TABLE T ADD (W VARCHAR2(5) DEFAULT 'w')")
    story.do("UPDATE T SET W = 'x' WHERE ID = 5")
    story.carry()
    story.check(first)
    assert {(one["ID"], one["W"]) for one in story.states if one["_cdc_is_current"]} == {(1, "w"), (5, "x")}  # fmt: skip

    [status] = story.pipeline.status(ask_oracle=False).tables
    assert status.history_scn == story.pipeline.lake.table(T, 1).position().mirror_scn
    story.oracle.run("ALTER TABLE T RENAME COLUMN W TO X")
    story.do("UPDATE T SET X = 'y' WHERE ID = 5")
    story.carry()
    story.check(first)
    found = [one["X"] for one in story.states if one["ID"] == 5 and one["V"] == "five"]
    assert found == ["w", "x", "y"]
    ours = story.states
    done = CliRunner().invoke(app, ["history", "--rebuild"])
    assert done.exit_code == 0, done.output
    assert f"{len(ours)} states written" in done.output
    assert story.states == ours
    assert "Nothing to do" in CliRunner().invoke(app, ["history"]).output


def test_who_has_a_history_is_configured_by_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody has one, the command does not say that all is well."""
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY)", "CREATE TABLE TWO (A NUMBER(9))")
        two = {"name": f"{OWNER}.TWO", "identity": "rowid"}
        tables = [{"name": f"{OWNER}.ONE", "history": "scd2"}, two]
        lake = {"path": str(tmp_path / "lake")}
        with Pipeline(oracle.config(tmp_path, tables=tables, lake=lake)) as pipeline:
            list(pipeline.run_once())
            [kept] = list(pipeline.keep_history())
            assert (kept.table, kept.failed) == (table_id("ONE"), None)
        with Pipeline(oracle.config(tmp_path, tables=[two], lake=lake)) as pipeline:
            monkeypatch.setattr(command, "opened", lambda *_, **__: nullcontext(pipeline))
            result = CliRunner().invoke(app, ["history"])
            assert (result.exit_code, result.stdout) == (2, "")
            assert "no table has a history" in result.stderr
            with pytest.raises(ConfigError, match="has no history"):
                list(pipeline.keep_history([table_id("TWO")]))


def test_rows_known_by_rowid_have_a_history_under_names_of_ones_own(tmp_path: Path) -> None:
    """Each deletion and each insertion is a row of its own; states are made by one column's changes."""
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (A NUMBER(9), B NUMBER(9))", "INSERT INTO T VALUES (1, 1)")
        table = {"name": f"{OWNER}.T", "identity": "rowid", "history_columns": ["A"]}
        lake = {
            "path": str(tmp_path / "lake"),
            "history": "scd2",
            "history_table": {"names": "auto_cdc", "columns": {"op": "ENDED_BY"}},
        }
        with Pipeline(oracle.config(tmp_path, tables=[table], lake=lake)) as pipeline:

            def carry(*statements: str) -> list[tuple[Any, ...]]:
                oracle.run(*statements)
                list(pipeline.run_once())
                [kept] = pipeline.keep_history()
                assert (kept.failed, kept.is_whole) == (None, not statements)
                path = tmp_path / "lake" / pipeline.source / "history" / T.path
                rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
                assert set(rows[0]) == {
                    "_cdc_row_id",
                    "A",
                    "B",
                    "__START_AT",
                    "__END_AT",
                    "ENDED_BY",
                }
                rows.sort(key=lambda row: (row["__START_AT"], row["A"]))
                return [
                    (row["A"], row["B"], row["__END_AT"] is None, row["ENDED_BY"]) for row in rows
                ]

            assert carry() == [(1, 1, True, None)]
            assert carry("UPDATE T SET B = 2") == [(1, 2, True, None)]
            assert carry("UPDATE T SET A = 2, B = 3") == [(1, 2, False, "u"), (2, 3, True, None)]
            found = carry("DELETE FROM T", "INSERT INTO T VALUES (2, 3)")
            assert found == [(1, 2, False, "u"), (2, 3, False, "d"), (2, 3, True, None)]


def test_a_row_that_was_deleted_stays_with_the_time_of_its_deletion(tmp_path: Path) -> None:
    """Deletions, changes of key, keys that come back, and a TRUNCATE; the mirror has living rows alone."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
            *(f"INSERT INTO T VALUES ({key}, 'v{key}')" for key in range(1, 5)),
        )
        lake = {"path": str(tmp_path / "lake"), "history": "soft_deletes"}
        config = oracle.config(tmp_path, "T", lake=lake, policies={"on_truncate": "follow"})
        with Pipeline(config) as pipeline:

            def carry(*statements: str) -> dict[int, tuple[str, str | None]]:
                oracle.run(*statements)
                list(pipeline.run_once())
                assert [one.failed for one in pipeline.keep_history()] == [None]
                path = tmp_path / "lake" / pipeline.source
                rows = DeltaTable(str(path / "history" / T.path)).to_pyarrow_table().to_pylist()
                mirror = DeltaTable(str(path / "mirror" / T.path)).to_pyarrow_table().to_pylist()
                living = [one for one in rows if one["_cdc_deleted_scn"] is None]
                assert {(one["ID"], one["V"]) for one in living} == {(one["ID"], one["V"]) for one in mirror}  # fmt: skip
                gone = [one for one in rows if one["_cdc_deleted_scn"] is not None]
                assert all(one["_cdc_deleted_at"] is not None for one in gone)
                assert len({one["ID"] for one in rows}) == len(rows)
                return {one["ID"]: (one["V"], one["_cdc_deleted_by"]) for one in rows}

            there = {key: (f"v{key}", None) for key in range(1, 5)}
            assert carry() == there
            assert carry("DELETE FROM T WHERE ID = 1") == {**there, 1: ("v1", "d")}
            assert carry("INSERT INTO T VALUES (1, 'w')", "UPDATE T SET ID = 20 WHERE ID = 2") == {
                1: ("w", None), 2: ("v2", "u"), 3: ("v3", None), 4: ("v4", None), 20: ("v2", None),
            }  # fmt: skip
            assert carry("DELETE FROM T WHERE ID = 4")[4] == ("v4", "d")
            found = carry("TRUNCATE TABLE T", "INSERT INTO T VALUES (3, 'again')")
            assert found == {
                1: ("w", "t"), 2: ("v2", "u"), 3: ("again", None), 4: ("v4", "d"), 20: ("v2", "t"),
            }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"columns": {"valid_to_scn": None}}, "cannot do without"),
        ({"columns": {"op": "__start_at"}, "names": "auto_cdc"}, "have one name"),
        ({"columns": {"op": "_cdc_deleted_scn"}}, "have one name"),
        ({"changes": "all", "end": "inclusive"}, "would end before it begins"),
    ],
)
def test_a_history_that_cannot_be_kept_is_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        HistoryConfig(**table)


def test_a_table_that_another_process_writes_keeps_no_history_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY)", "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY)")  # fmt: skip
        tables = [{"name": f"{OWNER}.{one}", "history": "scd2"} for one in ("ONE", "TWO")]
        lake = {"path": str(tmp_path / "lake")}
        with Pipeline(oracle.config(tmp_path, tables=tables, lake=lake)) as pipeline:
            list(pipeline.run_once())
            writing, error = pipeline.writing, LeaseHeldError("another process has it")

            def held_by_another(table: TableId) -> AbstractContextManager[HeldLease]:
                if table == table_id("ONE"):
                    raise error
                return writing(table)

            monkeypatch.setattr(pipeline, "writing", held_by_another)
            one, two = pipeline.keep_history()
            assert "another process has it" in (one.failed or "")
            assert (two.table, two.failed) == (table_id("TWO"), None)

            def gone(_table: TableId) -> AbstractContextManager[HeldLease]:
                raise OracleUnavailableError("nothing answers")

            monkeypatch.setattr(pipeline, "writing", gone)
            with pytest.raises(OracleUnavailableError):
                list(pipeline.keep_history())
