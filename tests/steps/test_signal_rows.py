"""A signal table that is captured like any other: its rows are signals by the redo, whatever becomes of them in the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_core.steps.signal_rows import RedoChannel
from oracle_embedded.database import CAPTURE
from tests.oracle.embedded import ADMIN, OWNER, Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id


def _log(text: str) -> str:
    return f'{{"message": "{text}"}}'


@pytest.fixture(params=["VARCHAR2(2048)", "CLOB"])
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Source]:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)",
            "INSERT INTO T VALUES (1)",
            f"CREATE TABLE ASKED (ID VARCHAR2(42) PRIMARY KEY, TYPE VARCHAR2(32), DATA {request.param})",
            f"INSERT INTO ASKED VALUES ('old', 'log', '{_log('old')}')",
        )
        more: dict[str, Any] = {"signals": {"table": f"{OWNER}.ASKED"}}
        with source_of(oracle, tmp_path, "T", "ASKED", **more) as source:
            source.run()
            source.run()  # the first look is behind
            yield source


def _came(source: Source) -> list[str]:
    """What the redo up to now brings."""
    source.windows()
    before = {one.id for one in source.pipeline.records.signals()}
    source.pipeline.take_signals()
    found = source.pipeline.records.signals()
    return [one.id for one in found if one.id not in before]


def _ask(oracle: Oracle, name: str) -> str:
    return f"INSERT INTO ASKED VALUES ('{name}', 'log', '{_log(name)}')"


def test_rows_that_are_deleted_at_once_are_signals(source: Source) -> None:
    """Nothing is asked of Oracle's undo: the right to look back is gone."""
    oracle = source.oracle
    [old] = source.pipeline.records.signals()
    assert (old.id, old.state) == ("old", "rejected")
    oracle.run(f"REVOKE FLASHBACK ANY TABLE FROM {CAPTURE}", user=ADMIN)
    oracle.run(_ask(oracle, "gone"), "DELETE FROM ASKED WHERE ID = 'gone'")
    oracle.run(_ask(oracle, "stays"))
    oracle.run("DELETE FROM ASKED", _ask(oracle, "all"))
    assert _came(source) == ["gone", "stays", "all"]
    assert _came(source) == []
    states = [one.state for one in source.pipeline.records.signals()]
    assert states == ["rejected", "done", "done", "done"]
    oracle.run(f"GRANT FLASHBACK ANY TABLE TO {CAPTURE}", user=ADMIN)
    source.run()
    source.check_current("T", "ASKED")


def test_the_order_is_that_of_the_commits(source: Source) -> None:
    oracle = source.oracle
    with oracle.owner() as first, oracle.owner() as second:
        first.cursor().execute(_ask(oracle, "a"))
        second.cursor().execute(_ask(oracle, "b"))
        second.cursor().execute("INSERT INTO ASKED VALUES ('bad', 'log', 'no JSON')")
        second.commit()
        assert _came(source) == ["b", "bad"]
        oracle.run(_ask(oracle, "c"))
        first.commit()
    assert _came(source) == ["c", "a"]
    states = {one.id: one.state for one in source.pipeline.records.signals()}
    assert states["bad"] == "rejected"


def test_rows_that_were_rolled_back_or_changed_later_ask_for_nothing(source: Source) -> None:
    oracle = source.oracle
    with oracle.owner() as connection:
        connection.cursor().execute(_ask(oracle, "taken back"))
        connection.rollback()
    oracle.run(_ask(oracle, "one"))
    assert _came(source) == ["one"]
    oracle.run("UPDATE ASKED SET DATA = '{}' WHERE ID = 'one'")
    oracle.run("INSERT INTO ASKED VALUES ('o', 'snapshot-window-open', '{}')")
    assert _came(source) == []


def test_a_run_acts_on_what_its_own_windows_bring(source: Source) -> None:
    ask = f'{{"data-collections": ["{OWNER}.T"]}}'
    source.oracle.run(f"INSERT INTO ASKED VALUES ('s', 'execute-snapshot', '{ask}')")
    kinds = [one.kind for one in source.run()]
    assert kinds.index("window-applied") < kinds.index("chunk-applied")
    assert source.pipeline.records.signal_progress() == {"s": (1, 1)}


def test_a_process_that_ends_before_it_has_noted_how_far_it_read_acts_once(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = source.oracle
    oracle.run(_ask(oracle, "one"))
    source.windows()

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RedoChannel, "acknowledge", dies)
    with pytest.raises(KeyboardInterrupt):
        source.pipeline.take_signals()
    monkeypatch.undo()
    source.close()
    source.run()
    source.run()
    found = [(one.id, one.state) for one in source.pipeline.records.signals()]
    assert found == [("old", "rejected"), ("one", "done")]


def test_a_signal_table_that_is_out_of_the_stream_is_queried(source: Source) -> None:
    oracle = source.oracle
    oracle.run("TRUNCATE TABLE ASKED")
    source.windows()
    assert source.record("ASKED").state == "failed"
    oracle.run(_ask(oracle, "asked"))
    source.pipeline.take_signals()
    assert [one.id for one in source.pipeline.records.signals()] == ["old", "asked"]


def test_signals_that_came_before_the_table_was_back_in_the_stream_are_taken(
    source: Source,
) -> None:
    """They are in a window that has no rows of the table, and nobody looked before it came back."""
    oracle = source.oracle
    oracle.run("TRUNCATE TABLE ASKED")
    source.windows()
    source.pipeline.take_signals()
    oracle.run(_ask(oracle, "between"))
    source.windows()
    source.pipeline.resnapshot_tables([table_id("ASKED")])
    oracle.run(_ask(oracle, "behind"))
    assert _came(source) == ["between", "behind"]
    assert _came(source) == []
    states = [one.state for one in source.pipeline.records.signals()]
    assert states == ["rejected", "done", "done"]


def test_windows_stay_until_their_signals_were_read(source: Source) -> None:
    oracle = source.oracle
    source.close()
    source.more["retention"] = {"window_days": 1}
    for name in ("first", "second", "third"):
        oracle.run(_ask(oracle, name))
        source.windows()
    store = source.pipeline.store
    with store._database.writing() as connection:  # what came in an outage is old when it is read
        connection.exec_driver_sql("UPDATE windows SET ended = ended - 200000")
    source.pipeline.retire_windows()
    assert _came(source) == ["first", "second", "third"]
    assert source.pipeline.retire_windows()
    assert _came(source) == []
