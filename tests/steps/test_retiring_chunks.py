"""Landing files of chunks go when nothing needs them any more: whatever can rebuild a table stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_core.errors import LandingDamagedError
from cdc_core.landing.manifest import moment_of
from cdc_core.model.chunks import ChunkKey
from cdc_core.steps.snapshots import retire
from tests.oracle.embedded import ADMIN
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

T, U = table_id("T"), table_id("U")

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY)" for name in "TU"),
    *(f"INSERT INTO {name} SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 250" for name in "TU"),
)


source = capturing(
    "T",
    "U",
    snapshot={"chunk_rows": 100},
    retention={"chunk_days": 30, "window_days": 30},
)


@pytest.fixture
def days_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything landed 31 days ago."""
    monkeypatch.setattr(retire, "moment_of", lambda text: moment_of(text) - timedelta(days=31))


def landed(source: Source, name: str) -> dict[str, int]:
    """The folders of chunks that landing has of a table, by snapshot."""
    root = source.path / "landing" / "src" / "chunks" / table_id(name).path
    return {one.name: len(list(one.iterdir())) for one in root.iterdir() if list(one.iterdir())}


def read_again(source: Source, name: str) -> str:
    """The table begins another stream; the snapshot with which the one before began."""
    before = source.record(name).snapshot_id
    source.pipeline.resnapshot_tables([table_id(name)], fresh=True)
    source.run()
    assert before is not None
    return before


def test_chunks_of_an_earlier_stream_go_and_those_of_the_present_one_stay(
    source: Source, days_later: None
) -> None:
    before = read_again(source, "T")
    source.oracle.run("INSERT INTO T VALUES (1000)")
    source.run()
    list(source.pipeline.start_snapshot([T]))  # an ad hoc one belongs to the stream
    source.run()
    all_of_them = landed(source, "T")
    assert len(all_of_them) == 3
    list(source.pipeline.maintain())
    del all_of_them[before]
    assert landed(source, "T") == all_of_them
    assert set(landed(source, "U").values()) == {3}
    source.pipeline.rebuild_from_landing(T)
    source.check_current("T", "U")


def test_nothing_goes_before_its_days_are_over(source: Source) -> None:
    read_again(source, "T")
    list(source.pipeline.maintain())
    assert set(landed(source, "T").values()) == {3}
    assert len(landed(source, "T")) == 2


def test_nothing_goes_by_default_or_when_single_tables_are_maintained(
    source: Source, days_later: None
) -> None:
    read_again(source, "T")
    list(source.pipeline.maintain([T, U]))
    source.more = {"snapshot": {"chunk_rows": 100}}
    source.close()
    list(source.pipeline.maintain())
    assert len(landed(source, "T")) == 2


def test_once_a_window_of_the_table_was_retired_its_chunks_are_of_no_use(
    source: Source, days_later: None
) -> None:
    source.oracle.run("INSERT INTO T VALUES (1000)")
    source.run()
    for number in range(3):
        source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        source.oracle.run(f"INSERT INTO U VALUES ({2000 + number})")
        source.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cdc_core.steps.windows.retire.datetime", _Later)
        source.pipeline.retire_windows()
    list(source.pipeline.maintain())
    assert landed(source, "T") == {}
    with pytest.raises(LandingDamagedError):
        source.pipeline.rebuild_from_landing(T)
    chunks = source.pipeline.store.chunks.find(T)
    keys = [ChunkKey(one.table, one.snapshot_id, one.number) for one in chunks]
    assert all(step.repeated for step in source.pipeline.carry_chunks(keys))
    assert landed(source, "T") == {}, "nothing was read again"
    source.windows()
    source.check_current("T", "U")


class _Later(datetime):
    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        del tz
        return datetime.now(UTC) + timedelta(days=40)


def test_chunks_of_a_table_that_left_go(source: Source, days_later: None) -> None:
    source.configure("U")
    source.run()
    list(source.pipeline.maintain())
    assert landed(source, "T") == {}
    assert set(landed(source, "U").values()) == {3}
