"""Where a source begins and where its newest window may end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cdc_core.capture.logs.coverage import read_logs, read_threads
from cdc_core.capture.logs.positions import read_start, resetlogs_change, upper_bound
from cdc_core.errors import LogsNotReadyError, TransientError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import SCN_MAX, Scn
from cdc_core.oracle.database import current_scn
from tests.oracle.fake_session import FakeSession


def counter(*scns: int) -> Callable[[Any], list[tuple[Any, ...]]]:
    left = iter(scns)
    return lambda _binds: [(next(left),)]


def written(last: int = 990, *, thread: int = 1, enabled: str = "PUBLIC") -> tuple[Any, ...]:
    """A thread that is open, in a database at SCN 1000."""
    return (thread, "OPEN", enabled, 1, 0, 5, last, 7, 1000)


def database(**more: Any) -> FakeSession:
    return FakeSession(
        {
            "SELECT CURRENT_SCN": counter(1005, 1010, 1015),
            "FROM V$THREAD": [written()],
            "FROM V$LOG L": [],
            "V$TRANSACTION": [],
            "SELECT RESETLOGS_CHANGE#": [(7,)],
            **more,
        }
    )


def start(session: FakeSession, **more: Any) -> Any:
    return read_start(session, sleep=lambda _seconds: None, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("oldest", "low"),
    [
        pytest.param(None, 999, id="nothing-open"),
        pytest.param(500, 499, id="an-old-transaction"),
        pytest.param(1003, 999, id="begun-between-the-two-reads"),
    ],
)
def test_the_first_window_reads_from_before_the_oldest_open_transaction(
    oldest: int | None, low: int
) -> None:
    begun = start(database(**{"V$TRANSACTION": [("A", oldest), ("B", 1004)] if oldest else []}))
    assert (begun.snapshot_scn, begun.mining_low) == (1005, low)
    assert (begun.resetlogs_change, begun.database_name, begun.dbid) == (7, "ORCL", 42)


def test_open_transactions_are_read_between_the_two_scns() -> None:
    """One that begins after the view was read began behind the first SCN, and one before it is in the view."""
    session = database(**{"V$TRANSACTION": [("A", 600)]})
    start(session)
    read = [
        "transactions" if "V$TRANSACTION" in sql else "scn"
        for sql, _ in session.sent
        if "V$TRANSACTION" in sql or "CURRENT_SCN" in sql
    ]
    assert read == ["scn", "transactions", "scn"]


def looks(*looks: list[tuple[str, int]]) -> Callable[[Any], list[tuple[str, int]]]:
    """What the view of transactions shows at each look; the last one again and again."""
    left = iter(looks)
    return lambda _binds: next(left, looks[-1])


@pytest.mark.parametrize(
    ("seen", "low"),
    [
        pytest.param(looks([("A", 0)], [("A", 1)], [("A", 600)]), 599, id="it-gets-one"),
        pytest.param(looks([("A", 0), ("B", 600)], [("B", 600)]), 599, id="it-ends"),
        pytest.param(looks([("A", 0)], [("B", 0)], [("C", 0)]), 999, id="others-come-all-the-time"),
        pytest.param(looks([("A", 700), ("B", 0)], [("B", 690), ("C", 0)]), 689, id="the-younger-is-older"),
    ],
)  # fmt: skip
def test_a_start_scn_that_is_not_assigned_yet_is_asked_for_again(
    seen: Callable[[Any], list[tuple[str, int]]], low: int
) -> None:
    """Of the transactions that the first look showed; others began after it."""
    assert start(database(**{"V$TRANSACTION": seen})).mining_low == low


def test_a_transaction_that_gets_no_start_scn_is_named() -> None:
    with pytest.raises(TransientError, match="no start SCN") as caught:
        start(database(**{"V$TRANSACTION": [("A", 0), ("B", 600)]}))
    assert caught.value.facts["xids"] == "A"


def test_in_a_cluster_transactions_of_all_instances_count() -> None:
    session = database(**{"FROM V$THREAD": [written(), written(thread=2)]})
    session.answers = {"GV$TRANSACTION": [("A", 300)], **session.answers}
    assert start(session).mining_low == 299


def test_the_snapshot_scn_is_later_than_the_last_ddl() -> None:
    recent = counter(1, 0)
    begun = start(database(**{"LAST_DDL_TIME": recent}), tables=[TableId("HR", "EMP")])
    assert begun.snapshot_scn == 1010


def test_a_window_ends_below_the_last_redo_on_disk() -> None:
    assert upper_bound(database(), "online") == 989  # type: ignore[arg-type]
    ahead = database(**{"FROM V$THREAD": [written(2000)]})
    assert upper_bound(ahead, "online") == 1000  # type: ignore[arg-type]
    with pytest.raises(LogsNotReadyError, match="no redo thread"):
        upper_bound(database(**{"FROM V$THREAD": []}), "online")  # type: ignore[arg-type]
    closed = (1, "CLOSED", "PUBLIC", 1, 0, 5, 990, 7, 1000)
    with pytest.raises(LogsNotReadyError, match="no redo thread"):
        upper_bound(database(**{"FROM V$THREAD": [closed]}), "online")  # type: ignore[arg-type]


def test_a_completed_window_ends_where_the_logs_of_every_open_thread_have_ended() -> None:
    logs = [
        (1, 9, "/1.9", 900, None, 50, "CURRENT"), (1, 8, "/1.8", 800, 900, 50, "ACTIVE"),
        (2, 4, "/2.4", 700, None, 50, "CURRENT"), (2, 3, "/2.3", 500, 650, 50, "INACTIVE"),
        (3, 2, "/3.2", 100, None, 50, "CURRENT"),
    ]  # fmt: skip
    closed = (3, "CLOSED", "PUBLIC", 1, 0, 150, 150, 7, 1000)
    threads = [written(950), written(940, thread=2, enabled="PRIVATE"), closed]
    both = database(**{"FROM V$LOG L": logs, "FROM V$THREAD": threads})
    assert upper_bound(both, "completed_logs") == 649  # type: ignore[arg-type]
    one = database(**{"FROM V$LOG L": logs, "FROM V$THREAD": threads[:1]})
    assert upper_bound(one, "completed_logs") == 899  # type: ignore[arg-type]
    first = [(1, 1, "/1.1", 600, None, 50, "CURRENT")]
    new = database(**{"FROM V$LOG L": first, "FROM V$THREAD": threads[:1]})
    assert upper_bound(new, "completed_logs") == 599, "no log of the thread has ended"  # type: ignore[arg-type]


def test_a_thread_whose_logs_are_not_listed_for_a_moment_makes_the_window_wait() -> None:
    threads = [written(950)]
    with pytest.raises(LogsNotReadyError, match="thread=1"):
        upper_bound(database(**{"FROM V$LOG L": [], "FROM V$THREAD": threads}), "completed_logs")  # type: ignore[arg-type]


def test_scn_and_incarnation_are_read() -> None:
    assert current_scn(database()) == 1005  # type: ignore[arg-type]
    assert resetlogs_change(database()) == 7  # type: ignore[arg-type]


def test_logs_are_read_with_all_their_copies() -> None:
    session = FakeSession(
        {
            "FROM V$LOG L": [
                (1, 9, "/r9", 900, 18446744073709551615, 50, "CURRENT"),
                (1, 8, "/r8", 800, 900, 50, "INACTIVE"),
                (1, 7, "/r7", 700, 800, 50, "INACTIVE"),
            ],
            "MAX(A.SEQUENCE#)": [(1, 7, 800), (2, 3, 700)],
            "A.BLOCKS": [
                (1, 8, "/a8", 800, 900, 40, "A", "YES", 1, 60),
                (1, 8, None, 800, 900, 40, "D", "YES", 2, 60),
                (2, 4, "/a4", 860, None, 40, "A", "NO", 1, None),
            ],
        }
    )
    logs = read_logs(session, Scn(850))  # type: ignore[arg-type]
    assert [(log.thread, log.sequence, log.state, log.next_change) for log in logs] == [
        (1, 9, "current", SCN_MAX),
        (1, 8, "online", 900),
        (1, 8, "archived", 900),
        (1, 8, "gone", 900),
        (2, 4, "gone", SCN_MAX),
        (1, 7, "before", 800),
        (2, 3, "before", 700),
    ]


def test_the_log_before_is_asked_for_only_where_redo_may_begin_in_it() -> None:
    online = [(1, 9, "/r9", 900, None, 50, "CURRENT"), (1, 8, "/r8", 800, 900, 50, "INACTIVE")]
    session: Any = FakeSession(
        {"FROM V$LOG L": online, "A.BLOCKS": [], "MAX(A.SEQUENCE#)": [(1, 7, 800)]}
    )
    for scn, states in ((799, ["current", "online"]), (798, ["current", "online", "before"])):
        assert [log.state for log in read_logs(session, Scn(scn))] == states


def test_threads_are_read() -> None:
    session = FakeSession({"V$THREAD": [(1, "OPEN", "PUBLIC", 1, None, 5, 9, 1, 9), (2, "CLOSED", "DISABLED", 1, 7, 5, None, 1, 9)]})  # fmt: skip
    one, two = read_threads(session)  # type: ignore[arg-type]
    assert (one.is_open, one.last_redo_change, one.disable_change) == (True, 9, 0)
    assert (two.is_open, two.enabled, two.disable_change) == (False, "DISABLED", 7)
