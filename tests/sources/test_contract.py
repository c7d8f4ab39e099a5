"""Every reader of redo goes through the same stories; what one cannot do is declared, and refused by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cdc_core.change_reader import Prefetcher
from cdc_core.errors import CdcError, RedoUnavailableError
from cdc_core.steps.windows.capture import window_work
from docs.tools.mentions import ROOT
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.sources.adapters import CANNOT, READERS, Reader
from tests.steps.harness import Source, source_of, table_id

oracle = oracle_with(
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, C CLOB)",
    "CREATE TABLE LATE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    "INSERT INTO K VALUES (1, 'a')",
    "INSERT INTO L VALUES (1, 'text')",
    "INSERT INTO LATE VALUES (1, 'a')",
)


@dataclass
class Story:
    """A source that has its snapshots, and the reader that it reads through."""

    name: str
    oracle: Oracle
    reader: Reader
    source: Source

    def windows(self) -> None:
        """Windows up to the present, captured and applied."""
        self.reader.bring()
        self.source.windows()


@pytest.fixture(params=READERS)
def story(request: pytest.FixtureRequest, oracle: Oracle, tmp_path: Path) -> Iterator[Story]:
    with (
        READERS[request.param](oracle, tmp_path) as reader,
        source_of(
            oracle, tmp_path, "K", "L", capture=reader.capture, policies={"on_truncate": "follow"}
        ) as source,
    ):
        source.run()
        yield Story(request.param, oracle, reader, source)


def test_changes_and_what_is_rolled_back(story: Story) -> None:
    with story.oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO K VALUES (2, 'b')")
        cursor.execute("SAVEPOINT S")
        cursor.execute("UPDATE K SET V = 'gone'")
        cursor.execute("ROLLBACK TO SAVEPOINT S")
        cursor.execute("UPDATE K SET ID = 3 WHERE ID = 1")
        connection.commit()
        cursor.execute("DELETE FROM K")
        connection.rollback()
    story.windows()
    assert story.source.ops("K") == "cu"
    story.source.check_exact("K")


def test_a_transaction_that_is_open_over_windows(story: Story) -> None:
    with story.oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO K VALUES (10, 'long')")
        for number in (2, 3):
            story.oracle.run(f"INSERT INTO K VALUES ({number}, 'b')")
            story.windows()
        connection.cursor().execute("UPDATE K SET V = 'longer' WHERE ID = 10")
        connection.commit()
    story.windows()
    assert story.source.ops("K") == "cccu"
    story.source.check_exact("K")


def test_lobs(story: Story) -> None:
    story.oracle.run("INSERT INTO L VALUES (2, 'new')", "UPDATE L SET C = 'other' WHERE ID = 1")
    story.oracle.run("UPDATE L SET ID = 5 WHERE ID = 2")
    story.windows()
    story.source.check_exact("L")


def test_ddl(story: Story) -> None:
    story.oracle.run("INSERT INTO K VALUES (2, 'before')")
    story.oracle.run("ALTER TABLE K ADD (MORE NUMBER(5))")
    story.oracle.run("UPDATE K SET MORE = 7 WHERE ID = 2")
    story.windows()
    story.source.check_followed("K")


def test_truncate(story: Story) -> None:
    story.oracle.run("INSERT INTO K VALUES (2, 'before')")
    story.oracle.run("TRUNCATE TABLE K")
    story.oracle.run("INSERT INTO K VALUES (3, 'behind')")
    story.windows()
    story.source.check_followed("K")


def test_a_table_joins_late(story: Story) -> None:
    with story.oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO LATE VALUES (2, 'open')")
        story.windows()
        story.source.configure("K", "L", "LATE")
        story.reader.bring()
        story.source.run()
        connection.commit()
    story.oracle.run("UPDATE LATE SET V = 'x' WHERE ID = 1")
    story.windows()
    story.source.check_exact("K", "LATE")


def test_killed_between_capture_and_apply(story: Story) -> None:
    story.oracle.run("INSERT INTO K VALUES (2, 'b')")
    story.reader.bring()
    story.source.capture()
    story.source.close()
    story.oracle.run("INSERT INTO K VALUES (3, 'b')")
    story.windows()
    assert story.source.ops("K") == "cc"
    story.source.check_exact("K")


def test_replays_change_nothing(story: Story) -> None:
    windows = []
    for number in (2, 3, 4):
        story.oracle.run(f"INSERT INTO K VALUES ({number}, 'b')", "UPDATE K SET V = V || 'x'")
        story.reader.bring()
        windows += story.source.windows()
    story.source.check_replayed("K", windows)


def test_what_is_lost_stops_it_and_the_gap_can_be_skipped(story: Story) -> None:
    story.oracle.run("INSERT INTO K VALUES (2, 'b')")
    story.windows()
    story.oracle.run("INSERT INTO K VALUES (3, 'b')")
    story.reader.lose()
    story.oracle.run("INSERT INTO K VALUES (4, 'b')")
    story.reader.bring()
    with pytest.raises(RedoUnavailableError) as caught:
        story.source.windows()
    assert story.source.ops("K") == "c"
    if (story.name, "a gap is skipped") in CANNOT:
        assert "start the source over" in caught.value.hint
        return
    assert story.source.pipeline.skip_gap() is not None
    story.reader.bring()
    story.source.pipeline.resnapshot_tables([table_id("K"), table_id("L")])
    story.reader.bring()
    story.source.run()
    story.oracle.run("INSERT INTO K VALUES (5, 'b')")
    story.windows()
    story.source.check_exact("K", "L")


def test_prefetch(story: Story) -> None:
    can = isinstance(story.source.pipeline.change_reader, Prefetcher)
    assert can == ((story.name, "prefetch") not in CANNOT)


def test_captured_again(story: Story) -> None:
    """An applied window, into a landing of its own."""
    story.oracle.run("INSERT INTO K VALUES (2, 'b')")
    story.windows()
    ctx = story.source.pipeline
    record = ctx.store.windows.find(newest_first=True, limit=1)[0]
    work = window_work(ctx, record, None, ())

    def again() -> Any:
        return ctx.change_reader.capture_window(work, ctx.landing)

    if (story.name, "captured again") in CANNOT:
        with pytest.raises(RedoUnavailableError):
            again()
        return
    with pytest.raises(CdcError, match="landed"):  # read whole, and refused by landing alone
        again()


def test_an_idle_database_gives_a_window(story: Story) -> None:
    story.windows()
    position = story.source.record("K").mirror_scn
    story.oracle.run("CREATE TABLE OTHER (ID NUMBER)")
    story.windows()
    assert (story.source.record("K").mirror_scn or 0) > (position or 0)
    assert story.source.lake.tables[table_id("K")].rows


@pytest.mark.parametrize(("reader", "story"), CANNOT)
def test_the_documents_say_what_a_reader_cannot_do(reader: str, story: str) -> None:
    text = (ROOT / "docs" / "extending.md").read_text()
    row = re.search(rf"^\| {story} \|.*$", text, re.MULTILINE)
    assert row is not None
    cells = [cell.strip() for cell in row[0].strip("|").split("|")]
    assert cells[1 + list(READERS).index(reader)] == f"no: {CANNOT[reader, story]}"
