"""When an SCN was, and how windows are named by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import OracleError, OracleUnavailableError, PartitionKeyError
from cdc_core.model.scn import PARTITION_KEY_MAX, Scn, ScnWindow, window_end
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.times import times_of
from tests.oracle.embedded import running_oracle
from tests.oracle.fake_session import FakeSession

NOON = datetime(2026, 11, 22, 12, 0, 0)
UNMAPPED = OracleError("no", ora="ORA-08181")


def times(mapped: dict[int, datetime | Exception], *scns: int, local: datetime = NOON) -> list[str]:
    def times_of_all(binds: Any) -> list[tuple[Any, ...]]:
        found = [mapped[scn] for scn in binds.values()]
        for one in found:
            if isinstance(one, Exception):
                raise one
        return [(NOON, local, *found)]

    session = FakeSession({"SYSTIMESTAMP": times_of_all})
    return [f"{at:%H:%M:%S}" for at in times_of(session, list(map(Scn, scns)))]  # type: ignore[arg-type]


def test_the_host_of_the_database_may_be_in_any_time_zone() -> None:
    berlin = NOON + timedelta(hours=1, microseconds=3)
    assert times({5: berlin - timedelta(minutes=10)}, 5, local=berlin) == ["11:50:00"]
    kathmandu = NOON + timedelta(hours=5, minutes=45)
    assert times({5: kathmandu}, 5, local=kathmandu) == ["12:00:00"]


def test_times_never_run_backwards_and_never_ahead() -> None:
    early, late = NOON - timedelta(seconds=9), NOON + timedelta(seconds=2)
    assert times({1: late, 2: early, 3: late}, 1, 2, 3) == ["11:59:51", "11:59:51", "12:00:00"]


def test_many_times_are_asked_for_some_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_core.oracle.times._AT_ONCE", 2)
    moments = {number: NOON - timedelta(seconds=9 - number) for number in range(1, 6)}
    expected = [f"11:59:{51 + number}" for number in range(1, 6)]
    assert times({**moments}, *moments) == expected


def test_an_scn_that_oracle_has_forgotten_has_the_time_of_the_next_one() -> None:
    early = NOON - timedelta(seconds=9)
    assert times({1: UNMAPPED, 2: early, 3: UNMAPPED}, 1, 2, 3) == [
        "11:59:51",
        "11:59:51",
        "12:00:00",
    ]
    with pytest.raises(OracleUnavailableError):
        times({1: OracleUnavailableError("gone")}, 1)


def test_oracle_says_when_its_present_scn_is(tmp_path: Path) -> None:
    with (
        running_oracle() as oracle,
        oracle.capture_session(oracle.config(tmp_path, "X")) as session,
    ):
        before = datetime.now(UTC) - timedelta(seconds=60)
        [at] = times_of(session, [current_scn(session)])
        now = datetime.fromtimestamp(oracle.clock(), UTC)
        assert before <= at <= now + timedelta(seconds=1)


def test_a_partition_key_begins_with_the_time_and_is_read_back() -> None:
    window = ScnWindow(Scn(1000), Scn(1500))
    berlin = datetime.fromisoformat("2026-11-22T06:33:20.900+01:00")
    key = window.partition_key(berlin)
    assert key == "2026-11-22T05:33:20Z_1500"
    for text in (f"2026-11-22T05:33:20Z_{window.key}", window.key, window.folder):
        assert ScnWindow.parse(text) == window
    for text in (key, f"2026-11-22T05:33:20Z_{window.key}", window.key, window.folder):
        assert window_end(text) == 1500
    for text in ("2026-11-22T05:33:20Z", "1500", "_1500", f"x_{2**63}", "x_", ""):
        with pytest.raises(PartitionKeyError):
            window_end(text)


@pytest.mark.parametrize("digits", range(1, 15))
def test_a_partition_key_is_short_enough_for_the_lists_of_the_ui(digits: int) -> None:
    high = Scn(10**digits - 1)
    ended = datetime(2026, 11, 22, 5, 33, 20, tzinfo=UTC)
    key = ScnWindow(Scn(high - 1), high).partition_key(ended)
    assert len(key) <= PARTITION_KEY_MAX
    assert window_end(key) == high
    before = ScnWindow(Scn(0), Scn(1)).partition_key(ended - timedelta(seconds=1))
    assert before < key, "also where the time loses its punctuation"
    nxt = ScnWindow(high, Scn(high + 1)).partition_key(ended - timedelta(days=9), after=key)
    assert nxt > key


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param([0, 1, 2], id="one-after-the-other"),
        pytest.param([0, 0, 0], id="within-one-second"),
        pytest.param([5, 3, 1], id="a-clock-that-was-set-back"),
        pytest.param([59, 59, 0], id="over-a-minute"),
    ],
)
def test_partition_keys_sort_like_their_windows(seconds: list[int]) -> None:
    bounds = [(8, 9), (9, 10), (10, 11)]  # as text, 10 sorts before 9
    keys: list[str] = []
    for (low, high), second in zip(bounds, seconds, strict=True):
        window = ScnWindow(Scn(low), Scn(high))
        ended = datetime(2026, 11, 22, 5, 0, second, tzinfo=UTC)
        keys.append(window.partition_key(ended, after=keys[-1] if keys else None))
    assert keys == sorted(keys)
    assert len(set(keys)) == 3
    assert [window_end(key) for key in keys] == [9, 10, 11]
