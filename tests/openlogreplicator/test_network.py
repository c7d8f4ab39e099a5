"""OpenLogReplicator's network writer: nothing is lost or doubled, whenever it, or Redolake, is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cdc_core.errors import LogsNotReadyError, PreflightError, RedoUnavailableError
from cdc_core.openlogreplicator.protocol import Answer, Connection, Request, request_bytes
from oracle_embedded.openlogreplicator_server import OlrServer
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of

oracle = oracle_with(
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))", "INSERT INTO K VALUES (1, 'a')"
)


@pytest.fixture
def server(oracle: Oracle) -> Iterator[OlrServer]:
    with OlrServer(oracle.database, "ORCL") as running:
        yield running


def capture_of(server: OlrServer, **more: Any) -> dict[str, Any]:
    reached = {"host": "127.0.0.1", "port": server.port, "source": "ORCL", "idle_seconds": 60}
    return {"type": "openlogreplicator", **reached, **more}


@pytest.fixture
def source(oracle: Oracle, server: OlrServer, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "K", capture=capture_of(server)) as opened:
        opened.run()
        yield opened


def test_requests_have_the_bytes_that_were_observed() -> None:
    """Enum 0 is left out, numbers are varints: an INFO begins with the name."""
    assert request_bytes(Request.INFO, "X") == b"\x12\x01X"
    assert request_bytes(Request.START, "X", scn=300) == b"\x08\x01\x12\x01X\x18\xac\x02"
    assert request_bytes(Request.CONTINUE, "X", c_scn=1) == b"\x08\x02\x12\x01X\x40\x01\x48\x00"
    assert (
        request_bytes(Request.CONFIRM, "X", c_scn=300) == b"\x08\x03\x12\x01X\x40\xac\x02\x48\x00"
    )


def test_windows_follow_and_are_confirmed_behind_their_commits(
    oracle: Oracle, server: OlrServer, source: Source
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')", "UPDATE K SET V = 'c' WHERE ID = 1")
    [first] = source.windows()
    assert source.ops("K") == "cu"
    assert all(scn <= first.scn_low for scn in server.confirmed)
    oracle.run("DELETE FROM K WHERE ID = 2")
    source.windows()
    assert source.ops("K") == "cud"
    assert server.confirmed
    assert max(server.confirmed) <= source.record("K").mirror_scn  # type: ignore[operator]
    source.check_exact("K")


def test_nothing_is_confirmed_beyond_a_transaction_that_is_open(
    oracle: Oracle, server: OlrServer, source: Source
) -> None:
    """It began before windows that are applied, and commits behind them: also through a restart of the server."""
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO K VALUES (100, 'long')")
        for number in range(2, 6):
            oracle.run(f"INSERT INTO K VALUES ({number}, 'b')")
            source.windows()
        cursor.execute("INSERT INTO K VALUES (101, 'long')")
        server.restart()
        oracle.run("INSERT INTO K VALUES (6, 'b')")
        connection.commit()
    source.windows()
    source.windows()
    assert source.ops("K") == "c" * 7
    source.check_exact("K")


def test_resuming_by_a_seen_position_loses_a_transaction(
    oracle: Oracle, server: OlrServer, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Debezium asks: from the beginning of the last transaction that was seen. The comparison with Oracle finds it."""
    asked: list[int] = []

    def resume(self: Connection) -> Any:
        return self._ask(request_bytes(Request.CONTINUE, self._name, c_scn=max([1, *asked])))

    monkeypatch.setattr(Connection, "resume", resume)
    with oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO K VALUES (100, 'long')")
        with oracle.owner() as other:
            other.cursor().execute("INSERT INTO K VALUES (2, 'b')")
            other.commit()
        source.windows()
        [seen] = [one["_cdc_start_scn"] for one in _changes(source)]
        asked.append(seen)
        connection.commit()
    oracle.run("INSERT INTO K VALUES (3, 'c')")
    source.windows()
    assert 100 not in {one["after"]["ID"] for one in _changes(source)}
    with pytest.raises(AssertionError):
        source.check_exact("K")


def test_the_server_dies_at_random_and_nothing_is_lost_or_doubled(
    oracle: Oracle, server: OlrServer, source: Source
) -> None:
    """In the middle of frames, and with restarts, under transactions that overlap."""
    rng = Random(11)
    key = 10
    with oracle.owner() as one, oracle.owner() as two:
        for _ in range(25):
            for connection in (one, two):
                cursor = connection.cursor()
                key += 1
                cursor.execute("INSERT INTO K VALUES (:1, 'x')", [key])
                if rng.random() < 0.4:
                    connection.commit()
                elif rng.random() < 0.2:
                    connection.rollback()
            server.cut_after = rng.choice([None, None, 0, 1, rng.randrange(2, 30)])
            if rng.random() < 0.15 and server.confirmed:
                server.restart()
            try:
                source.windows()
            except LogsNotReadyError:
                source.close()
        one.commit()
        two.commit()
    server.cut_after = None
    source.windows()
    source.windows()
    changes = [one["after"]["ID"] for one in _changes(source)]
    assert len(changes) == len(set(changes))
    source.check_exact("K")


def _changes(source: Source) -> list[dict[str, Any]]:
    [table] = source.lake.tables.values()
    return [one for one in table.changes if one["_cdc_op"] != "r"]


def test_a_full_queue_is_named(oracle: Oracle, tmp_path: Path) -> None:
    with (
        OlrServer(oracle.database, "ORCL", queue_size=20) as server,
        source_of(
            oracle, tmp_path, "K", capture=capture_of(server, queue_size=20, idle_seconds=5)
        ) as source,
    ):
        source.run()
        oracle.run(*(f"INSERT INTO K VALUES ({number}, 'x')" for number in range(10, 60)))
        with pytest.raises(PreflightError, match="queue is full") as caught:
            source.windows()
        assert "queue-size" in caught.value.hint


def test_a_server_that_lost_its_state_is_not_started_in_silence(
    oracle: Oracle, tmp_path: Path, server: OlrServer, source: Source
) -> None:
    server.saved = None
    server.restart()
    with pytest.raises(RedoUnavailableError, match="lost its state"):
        source.windows()
    with Connection("127.0.0.1", server.port, "ORCL") as connection:
        assert connection.info().code is Answer.READY


def test_doctor_says_what_the_server_is(oracle: Oracle, server: OlrServer, source: Source) -> None:
    config = source.pipeline.config
    findings = source.pipeline.change_reader.check(config.tables)
    assert [one for one in findings if "replicates from SCN" in one.problem]
    wrong = config.capture.model_copy(update={"source": "OTHER"})
    source.close()
    source.more = {"capture": wrong.model_dump()}
    findings = source.pipeline.change_reader.check(config.tables)
    assert [one for one in findings if "no source of that name" in one.problem and one.is_problem]


def test_an_applied_window_is_not_read_again(
    oracle: Oracle, server: OlrServer, source: Source
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    source.windows()
    ctx = source.pipeline
    [record] = ctx.store.windows.find(newest_first=True, limit=1)
    from cdc_core.steps.windows.capture import window_work

    with pytest.raises(RedoUnavailableError, match="discards applied messages"):
        ctx.change_reader.capture_window(window_work(ctx, record, None, ()), ctx.landing)
