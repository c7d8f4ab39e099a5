"""A table that was altered without a DDL row of its own in the redo is noticed with the next window, and stops alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.capture.altered import SLACK_SECONDS
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    """The key of ONE is a unique index, which has a name of its own in the redo."""
    with running_oracle() as running:
        running.run(
            "CREATE TABLE ONE (ID NUMBER(9) NOT NULL, V VARCHAR2(40))",
            "CREATE UNIQUE INDEX ONE_KEY ON ONE (ID)",
            "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
            "INSERT INTO ONE VALUES (1, 'first')",
            "INSERT INTO TWO VALUES (1, 'first')",
        )
        yield running


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "ONE", "TWO") as opened:
        opened.run()
        later(oracle, opened)
        yield opened


def later(oracle: Oracle, source: Source) -> None:
    """Some time passes, and a window."""
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run("INSERT INTO TWO SELECT MAX(ID) + 1, 'later' FROM TWO")
    source.windows()


def test_a_key_whose_index_was_dropped_is_noticed(oracle: Oracle, source: Source) -> None:
    """Rows may have one key then, and the mirror would have one of them."""
    later(oracle, source)
    position = source.record("ONE").mirror_scn
    oracle.run("DROP INDEX ONE_KEY")
    oracle.run("INSERT INTO ONE VALUES (1, 'second')")
    later(oracle, source)
    one = source.record("ONE")
    assert (one.state, one.trouble) == ("failed", "unsupported_ddl")
    assert one.stopped_scn == position
    assert "without a row in the redo" in (one.reason or "")
    assert "no primary key and no unique index" in (one.reason or "")
    source.check_current("TWO")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX ONE_V ON ONE (V)",
        "COMMENT ON COLUMN ONE.V IS 'a text'",
        "GRANT SELECT ON ONE TO PUBLIC",
        "ALTER TABLE ONE ADD (W NUMBER(9))",
        "ALTER TABLE TWO MODIFY (V VARCHAR2(50))",
    ],
)
def test_what_leaves_the_definition_alone_or_is_followed_stops_nothing(
    oracle: Oracle, source: Source, statement: str
) -> None:
    oracle.run(statement)
    oracle.run("INSERT INTO ONE (ID, V) VALUES (2, 'after')")
    for _ in range(2):
        later(oracle, source)
        source.check_current("ONE", "TWO")
        assert source.record("ONE").state == "ready"


def test_all_tables_are_asked_for_at_once(oracle: Oracle, tmp_path: Path) -> None:
    """A window costs as many statements for many tables as for one."""
    counts = []
    for number, names in enumerate((("ONE",), ("ONE", "TWO"))):
        sent: list[str] = []
        with source_of(oracle, tmp_path / str(number), *names) as source:
            source.run()
            source.pipeline._ctx.database._on_statement = sent.append
            oracle.run(f"INSERT INTO TWO VALUES ({number + 50}, 'x')")
            [window] = source.pipeline.plan_windows()
            sent.clear()
            source.pipeline.capture_window(window)
        counts.append(len(sent))
    assert counts[0] == counts[1] > 0
