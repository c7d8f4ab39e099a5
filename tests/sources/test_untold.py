"""What a reader does not bring is read from Oracle as of the commit of its change: pieces of LOBs, and binary floats with six digits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.sources.adapters import READERS
from tests.steps.harness import Source, source_of, table_id

oracle = oracle_with(
    "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), C CLOB, B BLOB)",
    "CREATE TABLE F (ID NUMBER(9) PRIMARY KEY, D BINARY_DOUBLE, F BINARY_FLOAT, V VARCHAR2(9))",
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO L VALUES (1, 'a', 'text of a LOB', HEXTORAW('0102'))",
    "INSERT INTO F VALUES (1, 0.1, 0.1, 'a')",
)
MORE = {"lcr_files": {"lobs": "reselect"}, "olr_files": {"binary_floats": "reselect"}}
TABLE = {"lcr_files": "L", "olr_files": "F"}
AS_OF = 'FROM "DEMO"."{}" AS OF SCN'


class Story:
    """A source that asks Oracle for what its reader does not bring."""

    def __init__(self, oracle: Oracle, name: str, bring: Any, source: Source) -> None:
        self.oracle, self.name, self._bring, self.source = oracle, name, bring, source
        self.table = TABLE[name]

    def windows(self) -> None:
        self._bring()
        self.source.windows()

    def change(self, number: int, value: float) -> None:
        """A row changes in a way that its reader does not bring whole; twice in a transaction."""
        with self.oracle.owner() as connection:
            cursor = connection.cursor()
            for text in ("soon gone", f"piece {value}"):
                if self.table == "F":
                    sql = "UPDATE F SET D = :1, F = :2, V = :3 WHERE ID = :4"
                    cursor.execute(sql, [value / 3, value / 3, text[:9], number])
                    continue
                sql = "SELECT C, B FROM L WHERE ID = :1 FOR UPDATE"
                lob, binary = cursor.execute(sql, [number]).fetchone()
                lob.write(text, 3)
                binary.write(text.encode(), 2)
            connection.commit()

    def insert(self, number: int) -> None:
        values = "'a', 'long text', HEXTORAW('00')" if self.table == "L" else "2.718281828459045, 1, 'a'"  # fmt: skip
        self.oracle.run(f"INSERT INTO {self.table} VALUES ({number}, {values})")

    def news(self, column: str) -> list[Any]:
        """What the change log's updates have of a column, None where they lack it."""
        changes = self.source.lake.tables[table_id(self.table)].changes
        return [one["after"].get(column) for one in changes if one["_cdc_op"] == "u"]


@pytest.fixture(params=MORE)
def story(request: pytest.FixtureRequest, oracle: Oracle, tmp_path: Path) -> Iterator[Story]:
    name = request.param
    with (
        READERS[name](oracle, tmp_path) as reader,
        source_of(
            oracle, tmp_path, TABLE[name], "K", capture=reader.capture | MORE[name]
        ) as source,
    ):
        source.run()
        yield Story(oracle, name, reader.bring, source)


def test_each_commit_has_its_own_value(story: Story) -> None:
    """Of several changes of a row in one transaction the last one brings it; what is deleted in the same transaction, nobody misses."""
    for value in (1, 2):
        story.change(1, value)
    story.insert(2)
    story.change(2, 5)
    with story.oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute(f"UPDATE {story.table} SET V = 'gone' WHERE ID = 2")
        cursor.execute(f"DELETE FROM {story.table} WHERE ID = 2")
        connection.commit()
    story.windows()
    story.source.check_followed(story.table)
    column, told = (
        ("C", ["tepiece 1neOB", "tepiece 2neOB"]) if story.table == "L" else ("D", [1 / 3, 2 / 3])
    )
    assert [one for one in story.news(column) if one is not None][:2] == told


def test_a_table_leaves_where_oracle_does_not_tell(story: Story) -> None:
    """The undo is gone: the table says so, and others go on."""
    story.change(1, 1)
    story.oracle.run("INSERT INTO K VALUES (1)")
    story.oracle.server.faults.arm(
        Fault(FaultKind.ORA_ERROR, sql_contains=AS_OF.format(story.table), code=1555, times=0)
    )
    story.windows()
    record = story.source.record(story.table)
    assert record.state == "failed"
    assert "Oracle cannot read values as of a commit" in (record.reason or "")
    story.source.check_followed("K")
    story.oracle.server.faults.disarm_all()
    story.source.pipeline.resnapshot_tables([table_id(story.table)])
    story._bring()
    story.source.run()
    story.source.check_exact(story.table)
