"""How much does a window ask of the metadata store? Each statement is a round trip to PostgreSQL,
and a tenth of a millisecond on SQLite."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from tests.oracle.embedded import running_oracle
from tests.state.statements import statements
from tests.steps.harness import source_of

OF_A_WINDOW = 85
OF_AN_IDLE_WINDOW = 50


def test_a_window_asks_the_store_for_little_whatever_the_number_of_tables(tmp_path: Path) -> None:
    """Of the tables that it does not touch, it asks together."""
    counts = []
    for number in (2, 9):
        names = [f"T{one}" for one in range(number)]
        with running_oracle() as oracle:
            oracle.run(
                *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY)" for name in names),
                "CREATE TABLE ELSEWHERE (ID NUMBER(9))",
            )
            with source_of(oracle, tmp_path / str(number), *names) as source:
                (tmp_path / str(number)).mkdir()
                source.run()
                busy, idle = [], []
                for row in range(
                    5
                ):  # each forgets the idle one before, if that had no open transaction
                    oracle.run(f"INSERT INTO T0 VALUES ({row})")
                    with statements(source.pipeline.store) as sent:
                        assert len(source.windows()) == 1
                    busy.append(len(sent))
                    oracle.run("INSERT INTO ELSEWHERE VALUES (1)")
                    with statements(source.pipeline.store) as sent:
                        assert len(source.windows()) == 1
                    idle.append(len(sent))
                source.check_current(*names)
                counts.append((median(busy), median(idle)))
    (busy_few, idle_few), (busy_many, idle_many) = counts
    assert busy_few <= OF_A_WINDOW
    assert idle_few <= OF_AN_IDLE_WINDOW
    assert (busy_many, idle_many) == (busy_few, idle_few)
