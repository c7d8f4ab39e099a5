"""How much is Oracle asked? Each statement is a round trip to a database that may be far away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest

from oracle_embedded.database import ADMIN
from tests.oracle.embedded import LOCAL_CAPTURE, Oracle, running_oracle
from tests.steps.harness import source_of

OF_A_WINDOW = {"files": 24, "scn_range": 25}
"""By where LogMiner runs: in the root, to which the session changes, or in the pluggable
database."""
OF_ANOTHER_CONTAINER = 4
"""So many of them change to the root and back again."""
OF_A_SNAPSHOT = 81
OF_ANOTHER_TABLE = 11
"""What a first snapshot asks for each table: where its chunks begin, and its rows."""


@contextmanager
def database(tables: int) -> Iterator[tuple[Oracle, list[str]]]:
    """A database with tables, whose names are given."""
    names = [f"T{number}" for number in range(tables)]
    with running_oracle() as oracle:
        oracle.add_local_capture()
        oracle.run(
            *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY)" for name in names),
            "CREATE TABLE ELSEWHERE (ID NUMBER(9))",
        )
        oracle.run(*(f"INSERT INTO {name} VALUES (1000)" for name in names))
        yield oracle, names


def told(statements: list[str]) -> str:
    """Their beginnings."""
    return "\n".join(" ".join(one.split())[:80] for one in statements)


@pytest.mark.parametrize("logs", OF_A_WINDOW)
def test_a_window_asks_for_little_whatever_the_number_of_tables(tmp_path: Path, logs: str) -> None:
    """Of all tables at once; in a session that was logged in for the window before."""
    counts = []
    for number in (2, 9):
        (path := tmp_path / str(number)).mkdir()
        with (
            database(number) as (oracle, names),
            source_of(oracle, path, *names, capture={"logs": logs}) as source,
        ):
            if logs == "scn_range":
                source.more["oracle"] = oracle.login(LOCAL_CAPTURE)
            sent = source.asked()
            source.run()
            oracle.clock.ahead += 3 * 3600  # the tables were made long ago
            windows: dict[str, list[list[str]]] = {"T0": [], "ELSEWHERE": []}
            for row, table in ((row, table) for row in range(4) for table in windows):
                oracle.run(f"INSERT INTO {table} VALUES ({row})")
                oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
                sent.clear()
                assert len(source.windows()) == 1
                windows[table].append(list(sent))
            source.check_current(*names)
        counts.append([median(map(len, found)) for found in windows.values()])
        switches = [sum("CONTAINER =" in one for one in found) for found in windows["ELSEWHERE"]]
        assert switches == [0 if logs == "scn_range" else OF_ANOTHER_CONTAINER // 2] * 4
        assert max(counts[-1]) <= OF_A_WINDOW[logs], told(windows["T0"][-1])
    assert counts[0] == counts[1]


def test_an_open_transaction_costs_a_window_two_statements(tmp_path: Path) -> None:
    """What Oracle knows of it: all transactions, then all sessions."""
    with (
        database(1) as (oracle, names),
        source_of(oracle, tmp_path, *names) as source,
        oracle.owner() as slow,
    ):
        sent = source.asked()
        source.run()
        counts = []
        for row in range(3):
            oracle.run(f"INSERT INTO T0 VALUES ({row})")
            sent.clear()
            source.windows()
            counts.append(len(sent))
            slow.cursor().execute(f"INSERT INTO T0 VALUES ({50 + row})")
        assert [count - counts[0] for count in counts] == [0, 0, 2], told(sent)
        slow.rollback()


def test_a_first_snapshot_asks_for_all_tables_at_once(tmp_path: Path) -> None:
    """But for each table's rows, and for where its chunks begin."""
    counts = []
    for number in (2, 9):
        (path := tmp_path / str(number)).mkdir()
        with (
            database(number) as (oracle, names),
            source_of(oracle, path, *names) as source,
        ):
            sent = source.asked()
            list(source.pipeline.run_snapshot())
            counts.append(len(sent))
            source.run()
            source.check_current(*names)
    few, many = counts
    assert few <= OF_A_SNAPSHOT, told(sent)
    assert (many - few) / 7 <= OF_ANOTHER_TABLE, told(sent)
