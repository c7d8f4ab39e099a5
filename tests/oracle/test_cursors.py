"""No cursor is left to the garbage collector, which may run while the driver holds its own lock."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import oracledb
import pytest

from cdc_core.errors import CdcError
from cdc_core.oracle.session import OracleSession
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with

QUERY = f"SELECT ID FROM {OWNER}.ITEMS"


oracle = oracle_with(
    "CREATE TABLE ITEMS (ID NUMBER PRIMARY KEY)",
    *(f"INSERT INTO ITEMS VALUES ({number})" for number in range(30)),
    scope="module",
)


@pytest.fixture
def session(oracle: Oracle, tmp_path: Path) -> Iterator[OracleSession]:
    with oracle.capture_session(oracle.config(tmp_path, "ITEMS")) as opened:
        yield opened


def _open_cursors() -> int:
    found = (thing for thing in gc.get_objects() if isinstance(thing, oracledb.Cursor))
    return sum(cursor._impl is not None for cursor in found)


def test_every_way_to_end_a_fetch_closes_its_cursor(session: OracleSession) -> None:
    before = _open_cursors()
    gc.disable()
    try:
        assert sum(batch.num_rows for batch in session.fetch_batches(QUERY, rows=10)) == 30
        assert _open_cursors() == before
        cut_short = session.fetch_batches(QUERY, rows=10)
        assert next(cut_short).num_rows == 10
        cut_short.close()
        with pytest.raises(CdcError):
            list(session.fetch_batches("SELECT NOTHING FROM NOWHERE", rows=10))
        with pytest.raises(CdcError):
            session.fetch_all("SELECT NOTHING FROM NOWHERE")
        assert session.fetch_all("SELECT COUNT(*) FROM DUAL") == [(1,)]
        gc.collect()
        assert _open_cursors() == before
    finally:
        gc.enable()


def test_the_collector_may_meet_a_cursor_while_a_statement_is_prepared(
    session: OracleSession,
) -> None:
    """With the driver's own cursors this waits for ever."""
    names = [f"b{number}" for number in range(200)]
    sql = f"SELECT 7 FROM DUAL WHERE 1 IN ({', '.join(f':{name}' for name in names)})"
    thresholds = gc.get_threshold()
    for threshold in range(20, 200, 20):
        cursor = session._connection.cursor()
        cursor.execute("SELECT 1 FROM DUAL")
        circle = [cursor]
        circle.append(circle)
        del cursor, circle
        gc.set_threshold(threshold)
        try:
            assert session.fetch_all(sql, dict.fromkeys(names, 1)) == [(7,)]
        finally:
            gc.set_threshold(*thresholds)
