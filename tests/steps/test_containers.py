"""Two pluggable databases of one container database, one source each: both mine in the root, and each takes its own container's rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import ADMIN, running_oracle, second_container
from tests.steps.harness import Source, source_of
from tests.steps.ways import ARCHIVE, changes

COMPLETED = {"close_at": "completed_logs"}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Source, Source]]:
    """In each a table of one name and one number, with other rows."""
    with ExitStack() as stack:
        one = stack.enter_context(running_oracle(warts=DEFAULT_WARTS))
        two = stack.enter_context(second_container(one))
        sources = []
        for name, oracle in (("one", one), ("two", two)):
            oracle.run(
                "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
                *(f"INSERT INTO T VALUES ({key}, '{name}')" for key in range(1, 4)),
            )
            folder = tmp_path / name
            folder.mkdir()
            sources.append(stack.enter_context(source_of(oracle, folder, "T", capture=COMPLETED)))
        yield sources[0], sources[1]


def archive(source: Source) -> None:
    source.oracle.run(ARCHIVE, user=ADMIN)


def test_each_source_takes_the_rows_of_its_container_alone(
    both: tuple[Source, Source],
) -> None:
    """Also of transactions with one XID that are open in both, over the border of a window, where one ends and one is taken back."""
    for source in both:
        source.more["capture"] = COMPLETED
        source.run()
    with both[0].oracle.owner() as first, both[1].oracle.owner() as second:
        for connection, name in ((first, "one"), (second, "two")):
            connection.cursor().execute(f"UPDATE T SET V = '{name} changed' WHERE ID = 1")
            connection.cursor().execute(f"INSERT INTO T VALUES (4, '{name} new')")
        archive(both[0])
        for source in both:
            source.windows()
        first.commit()
        second.rollback()
    both[0].oracle.run("DELETE FROM T WHERE ID = 2")
    both[1].oracle.run("UPDATE T SET ID = 12 WHERE ID = 2")
    archive(both[1])
    for source, name in zip(both, ("one", "two"), strict=True):
        source.windows()
        source.check_current("T")
        images = [change[side] for change in changes(source) for side in ("before", "after")]
        values = {image["V"].split()[0] for image in images if image and image.get("V")}
        assert values == {name}
    assert [change["_cdc_op"] for change in changes(both[0])] == ["u", "c", "d"]


def test_ddl_of_a_table_of_that_name_in_the_other_container_changes_nothing(
    both: tuple[Source, Source],
) -> None:
    """Neither its definition nor its stream."""
    one, two = both
    for source in both:
        source.run()
    one.oracle.run("ALTER TABLE T ADD (C NUMBER(5))", "INSERT INTO T VALUES (5, 'one', 5)")
    two.oracle.run("INSERT INTO T VALUES (5, 'two')")
    archive(one)
    for source in both:
        source.windows()
        source.check_current("T")
    one.oracle.run("DROP TABLE T PURGE")
    two.oracle.run("DELETE FROM T WHERE ID = 5")
    archive(one)
    two.windows()
    two.check_current("T")
    one.windows()
    assert one.record("T").state == "failed"
    assert two.record("T").state == "ready"
