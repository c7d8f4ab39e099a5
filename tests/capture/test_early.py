"""What a window takes of redo that was read before its turn, by a scripted session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from cdc_core.capture.passes.answer import Answer
from cdc_core.capture.passes.prefetch import prefetch
from cdc_core.capture.passes.unnamed_rows import SeenRows
from cdc_core.config import LocalLandingConfig
from cdc_core.errors import LogsChangedError
from cdc_core.landing.open import open_landing
from cdc_core.landing.store import LandingStore
from cdc_core.model.operations import Operation
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd
from tests.capture.test_logminer import RULES, answers, capture, work_of
from tests.capture.test_rows import EMP, X1, batch, row
from tests.oracle.fake_session import FakeSession

ENDED = [(1, 5, "/redo5", 80, 300, 1000, "ACTIVE"), (1, 6, "/redo6", 300, None, 1000, "CURRENT")]
NAMES = [("HR", "EMP", 501), ("HR", "Dept", 502)]


@pytest.fixture
def landing(tmp_path: Path) -> LandingStore:
    return open_landing(LocalLandingConfig(path=str(tmp_path)))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)


def session_of(*texts: str, **more: Any) -> FakeSession:
    """A session whose window has one transaction with these statements."""
    rows = [row(Operation.INSERT, sql_redo=text) for text in texts]
    batches = [batch(row(Operation.START, scn=120), *rows), batch(row(Operation.COMMIT, scn=180))]
    return FakeSession({**more, **answers(**{"FROM V$LOG L": ENDED} | more)}, batches)


def early_of(session: Any, landing: LandingStore) -> Answer:
    early = prefetch(session, work_of(), RULES, landing, Event())
    assert early is not None
    return early


def mined(session: FakeSession) -> bool:
    """Has the session asked LogMiner for rows?"""
    return any("V$LOGMNR_CONTENTS" in sql for sql, _ in session.sent)


def test_a_window_takes_the_rows_that_were_read_early_and_mines_nothing(
    landing: LandingStore,
) -> None:
    early = early_of(session_of("early"), landing)
    session = session_of("in its turn")
    manifest, _ = capture(session, landing, prefetched=early)
    assert not mined(session)
    assert manifest.rows_by_table == {"HR.EMP": 1}
    assert [one.address is not None for one in manifest.positions] == [True]
    early.close()


def test_a_log_that_changes_while_it_is_read_early_answers_nothing(landing: LandingStore) -> None:
    session = session_of("early")
    after = [(1, 8, "/redo5", 400, None, 1000, "CURRENT")]
    session.answers["FROM V$LOG L"] = lambda _: after if mined(session) else ENDED
    with pytest.raises(LogsChangedError):
        early_of(session, landing)


def test_a_table_that_is_renamed_while_it_is_read_early_answers_nothing(
    landing: LandingStore,
) -> None:
    session: Any = session_of("early")
    session.answers["OBJECT_ID IN"] = lambda _: (
        [("HR", "OTHER", 501), *NAMES[1:]] if mined(session) else NAMES
    )
    assert prefetch(session, work_of(), RULES, landing, Event()) is None


def test_an_attempt_that_failed_with_early_rows_is_followed_by_one_that_reads(
    landing: LandingStore,
) -> None:
    """A table has another name for a moment: what was read early may not be what is there then."""
    early = early_of(session_of("early"), landing)
    asked: list[int] = []

    def names(_binds: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        asked.append(1)
        return [("HR", "OTHER", 501), *NAMES[1:]] if len(asked) == 2 else NAMES

    session = session_of("read again", "and more")
    session.answers["OBJECT_ID IN"] = names
    manifest, _ = capture(session, landing, prefetched=early)
    assert len(asked) == 4
    assert mined(session)
    assert manifest.rows_by_table == {"HR.EMP": 2}


def test_what_was_seen_early_counts_in_the_window_s_turn(landing: LandingStore) -> None:
    early = early_of(session_of("early"), landing)
    end = StreamEnd(EMP.table, Scn(140), "a value could not be left out", "Read it again.")
    early.ends.append(end)
    early.unnamed[777] = SeenRows(150, 150, 1)
    session = session_of(**{"P.OBJECT_ID IN": [(777, "TABLE", "ANOTHER", 900)]})
    manifest, _ = capture(session, landing, prefetched=early)
    assert not mined(session)
    assert [one.table for one in manifest.left] == [EMP.table]
    assert any("P.OBJECT_ID IN (777)" in sql for sql, _ in session.sent)


def test_redo_that_may_have_come_late_is_read_in_the_window_s_turn(landing: LandingStore) -> None:
    """The window before it ended in a log that was being written: this one looks back further than it was read early."""
    early = early_of(session_of("early"), landing)
    session = session_of("in its turn", "and late")
    before = [position_of(first_scn=85, read_from=40)]
    capture(session, landing, prefetched=early, positions=before)
    assert mined(session)


def test_nothing_is_read_early_once_that_is_to_stop(landing: LandingStore) -> None:
    stop = Event()
    stop.set()
    session: Any = session_of("early")
    assert prefetch(session, work_of(), RULES, landing, stop) is None
    assert any("END_LOGMNR" in sql for sql, _ in session.sent)


def position_of(*, first_scn: int, read_from: int) -> ThreadPosition:
    return ThreadPosition(thread=1, first_scn=first_scn, address=None, read_from=read_from)


def test_the_same_xid_is_followed_from_early_rows(landing: LandingStore) -> None:
    """The ledger of the window before it meets the rows in their turn only."""
    early = early_of(session_of("early"), landing)
    manifest, ledger = capture(session_of(), landing, prefetched=early)
    assert manifest.transactions_committed == 1
    assert X1.lower() not in {one.xid for one in ledger}
