"""What `redolake run --loop` shows: a board on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from cdc_core.errors import OracleUnavailableError, StoreUnavailableError
from cdc_core.steps import Pipeline
from pipelines.commands import following
from pipelines.commands.following import Board, Lines, view_of
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))", "INSERT INTO T VALUES (1, 'a')"
)


@pytest.fixture
def pipeline(oracle: Oracle, tmp_path: Path) -> Iterator[Pipeline]:
    with Pipeline(oracle.config(tmp_path, "T")) as opened:
        yield opened


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=110, color_system=None)


def shown(board: Board) -> str:
    console = Console(file=io.StringIO(), width=110)
    console.print(board._shown())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_board_has_tables_the_last_window_and_what_comes_next(
    oracle: Oracle, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        following, "time", SimpleNamespace(sleep=lambda _: None, monotonic=lambda: 1000.0)
    )
    logger = logging.getLogger("cdc_core")
    before = list(logger.handlers)
    with Board({"": pipeline}, terminal()) as board:
        kinds = [step.kind for step in board.follow(pipeline.run_once())]
        assert "chunk-applied" in kinds
        assert "Last window:  none with changes yet" in shown(board)
        oracle.run("INSERT INTO T VALUES (2, 'b')", "INSERT INTO T VALUES (3, 'c')")
        list(board.follow(pipeline.run_once()))
        board.rests(7.6)
        text = shown(board)
        [row] = [line.split() for line in text.splitlines() if line.startswith(" DEMO.T")]
        assert (row[1], row[-5]) == ("ready", "2"), text
        assert text.splitlines()[0].startswith("src  Oracle is at SCN ")
        assert "2 changes in 1 table" in text
        assert "Next window:  as soon as there is redo; next look in 7 s. Ctrl-C stops." in text
        logger.warning("a transaction is open for %d hours", 3)
        logger.info("nobody needs this")
        board.failed(OracleUnavailableError("the database cannot be reached"))
        assert "a transaction is open for 3 hours" in shown(board)
        [failure] = [line for line in shown(board).splitlines() if "cannot be reached" in line]
        assert "times" not in failure
        board.failed(OracleUnavailableError("the database cannot be reached"))
        [failure] = [line for line in shown(board).splitlines() if "cannot be reached" in line]
        assert ", 2 times since " in failure
        assert "over since" not in failure
        list(board.follow(pipeline.run_once()))
        [failure] = [line for line in shown(board).splitlines() if "cannot be reached" in line]
        assert "over since" in failure
        assert "nobody" not in shown(board)
    assert logger.handlers == before


def test_a_table_that_stopped_says_why(oracle: Oracle, pipeline: Pipeline) -> None:
    with Board({"": pipeline}, terminal()) as board:
        list(board.follow(pipeline.run_once()))
        oracle.run("TRUNCATE TABLE T")
        list(board.follow(pipeline.run_once()))
        assert "DEMO.T failed: " in shown(board)
        assert "ddl=TRUNCATE TABLE T" in shown(board)


def test_several_pluggable_databases_stand_one_below_the_other(
    oracle: Oracle, pipeline: Pipeline, tmp_path: Path
) -> None:
    """Each with its own windows and sentence; a warning says of which it is."""
    config = oracle.config(tmp_path / "other", "T", name="other")
    with Pipeline(config) as other, Board({"ONE": pipeline, "TWO": other}, terminal()) as board:
        list(board.follow(pipeline.run_once(), "ONE"))
        list(board.follow(other.run_once(), "TWO"))
        oracle.run("INSERT INTO T VALUES (2, 'b')")
        list(board.follow(other.run_once(), "TWO"))
        board.failed(OracleUnavailableError("the database is not open"), "ONE")
        first, second = shown(board).split("other  Oracle is at SCN ")
        assert first.startswith("src  Oracle does not answer; ")
        assert "Last window:  none with changes yet" in first
        assert "1 change in 1 table" in second
        assert "ONE: the database is not open" in second


def test_only_a_loop_on_a_terminal_has_a_board(pipeline: Pipeline) -> None:
    lines = Console(file=io.StringIO())
    assert isinstance(view_of({"": pipeline}, terminal(), loop=True), Board)
    assert isinstance(view_of({"": pipeline}, lines, loop=True), Lines)
    assert isinstance(view_of({"": pipeline}, terminal(), loop=False), Lines)


def test_a_metadata_store_that_fails_does_not_end_the_loop(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board cannot ask it how far the source is, and says what failed."""
    board = Board({"": pipeline}, terminal())
    down = StoreUnavailableError("the metadata store failed", hint="Look at it.")

    def fails(**_: object) -> None:
        raise down

    monkeypatch.setattr(pipeline, "status", fails)
    board.failed(down)
    assert "the last round failed; " in shown(board)
    assert "the metadata store failed" in shown(board)


def test_a_warning_may_come_while_warnings_are_looked_through() -> None:
    """Threads that capture and apply log; the board must not end the loop for that."""
    warnings = following._Warnings()

    class Meanwhile(str):
        def __eq__(self, other: object) -> bool:
            warnings.add(f"while {self} is compared")
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    for one in range(3):
        warnings.add(f"failure {one}", failed=Meanwhile("hr"))
    warnings.are_over("hr")
    lines = [str(one) for one in warnings.shown()]
    assert [one for one in lines if "failure" in one] == [one for one in lines if "over" in one]
    assert "while hr is compared" in lines[-1]
