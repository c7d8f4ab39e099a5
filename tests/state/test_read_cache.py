"""An answer of the metadata store is served again only while it is what the store would answer now."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_core.errors import FencedError
from cdc_core.leases import RENEWALS_PER_LEASE, held
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import SourceRecord, TableRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.state.machine import Machine, this_process
from cdc_core.state.store import Store
from tests.state.statements import statements
from tests.state.test_store import Clock, postgresql, url  # noqa: F401
from tests.state.writing import save_table

SOURCE = SourceRecord(name="src", snapshot_scn=Scn(100), mining_low=Scn(90), resetlogs_change=1)
EMP = TableId("HR", "EMP")
WINDOW = ScnWindow(Scn(100), Scn(200))


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'state.db'}"


def test_the_same_question_is_asked_again_only_after_a_change(file: str) -> None:
    """A change by this process, or by another one; leases of this process are no change."""
    with Store.open(file, "src") as store, Store.open(file, "src") as other:
        store.source.save(SOURCE)
        with statements(store) as sent:
            assert [store.source.get() for _ in range(3)] == [SOURCE] * 3
            assert len(sent) == 1
            with held(store, "src/capture", seconds=60):
                sent.clear()
                assert store.source.get() == SOURCE
                assert store.windows.find(states=["planned"]) == []
                assert store.windows.find(states=("planned",)) == []
            assert [one.split()[0] for one in sent] == ["SELECT", "UPDATE"]
            sent.clear()
            store.windows.plan([WINDOW])
            sent.clear()
            assert [one.window for one in store.windows.find(states=("planned",))] == [WINDOW]
            assert len(sent) == 1
        later = replace(SOURCE, mining_low=Scn(95))
        other.source.save(later)
        assert store.source.get() == later


def test_what_a_caller_makes_of_an_answer_is_its_own(file: str) -> None:
    with Store.open(file, "src") as store:
        save_table(store, TableRecord(source="src", table=EMP))
        for _ in range(2):
            found, revisions = store.tables.all(), store.tables.revisions()
            assert ([one.table for one in found], revisions) == ([EMP], {("HR", "EMP"): 1})
            found.clear()
            revisions.clear()


def test_long_answers_are_asked_for_each_time(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_core.state.read_cache._ROWS_MAX", 1)
    with Store.open(file, "src") as store:
        store.source.save(SOURCE)
        store.windows.plan([WINDOW, ScnWindow(Scn(200), Scn(300))])
        with statements(store) as sent:
            assert [len(store.windows.find()) for _ in range(2)] == [2, 2]
            assert [len(store.windows.find(limit=1)) for _ in range(2)] == [1, 1]
        assert len(sent) == 3


def test_the_newest_answers_are_cached_however_many_came_before(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that works alone asks for another window each time, for days."""
    monkeypatch.setattr("cdc_core.state.read_cache._ANSWERS_MAX", 3)
    with Store.open(file, "src") as store:
        store.source.save(SOURCE)
        for low in range(100, 110):
            assert store.windows.get(ScnWindow(Scn(low), Scn(low + 1))) is None
        with statements(store) as sent:
            assert [store.source.get() for _ in range(3)] == [SOURCE] * 3
        assert len(sent) == 1


def test_a_thread_that_reads_while_another_one_writes_sees_what_was_before(file: str) -> None:
    """The writer has the process's connection; what it has not committed is nobody's answer."""
    with Store.open(file, "src") as store:
        store.source.save(SOURCE)
        seen: list[SourceRecord | None] = []
        with store._database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM sources")
            reader = threading.Thread(target=lambda: seen.append(store.source.get()))
            reader.start()
            reader.join()
        assert seen == [SOURCE]
        assert store.source.get() is None


def test_threads_that_read_and_write_at_once_see_each_value_once_it_is_there(file: str) -> None:
    """A value that a call has written is what each call reads that begins afterwards."""
    with Store.open(file, "src") as store:
        store.source.save(SOURCE)
        newest, stale = [90], list[tuple[int, int]]()
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                least = newest[0]
                found = store.source.get()
                assert found is not None
                if (found.mining_low or 0) < least:
                    stale.append((found.mining_low or 0, least))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for one in readers:
            one.start()
        for scn in range(91, 191):
            store.source.save(replace(SOURCE, mining_low=Scn(scn)))
            newest[0] = scn
        done.set()
        for one in readers:
            one.join()
        assert stale == []


def test_a_store_that_was_closed_answers_as_a_new_one(file: str) -> None:
    """A step in the background may ask once more; its answers are of the file as it is then."""
    store = Store.open(file, "src")
    store.source.save(SOURCE)
    assert store.source.get() == SOURCE
    store.close()
    with Store.open(file, "src") as other:
        other.source.save(replace(SOURCE, mining_low=Scn(95)))
    found = store.source.get()
    assert found is not None
    assert found.mining_low == 95
    store.close()


def test_a_lease_that_somebody_has_taken_is_lost_at_once(url: str, tmp_path: Path) -> None:  # noqa: F811
    """A commit asks for its lease however lately it has asked before."""
    uptime = Clock()
    machine = Machine("worker", "b1", "1", tmp_path, uptime)
    with (
        Store.open(url, "src", machine=machine) as store,
        Store.open(url, "src", machine=machine) as other,
        held(store, "src/table/HR.EMP", seconds=60) as lease,
    ):
        fence = store.leases.fence()
        for ask in (lease.check, fence) * 2:
            ask()
        [taken] = other.leases.all()
        other.leases.release(taken)
        other.leases.acquire(taken.name, "elsewhere", 60)
        for ask in (lease.check, fence) * 2:
            with pytest.raises(FencedError):
                ask()


def test_a_lease_is_renewed_before_a_commit_when_that_is_due(url: str, tmp_path: Path) -> None:  # noqa: F811
    """Until then it is asked for. A process that stood still finds that it is due, whatever its
    thread that renews leases has done."""
    uptime = Clock()
    machine = Machine("worker", "b1", "1", tmp_path, uptime)
    with (
        Store.open(url, "src", machine=machine) as store,
        held(store, "src/table/HR.EMP", seconds=600) as lease,
    ):
        uptime.now += 600 / RENEWALS_PER_LEASE - 1
        with statements(store) as sent:
            lease.check()
            lease.check()
        assert not [one for one in sent if one.startswith("UPDATE leases")]
        uptime.now += 1
        with statements(store) as sent:
            lease.check()
            lease.check()
        assert len([one for one in sent if one.startswith("UPDATE leases")]) == 1
        uptime.now += 599
        [seen] = store.leases.all()
        assert not seen.is_expired
        assert seen.holder == this_process(machine)


def test_a_lease_that_another_thread_gives_up_is_lost(file: str) -> None:
    """What a source does that is closed while a step goes on in the background."""
    with Store.open(file, "src") as store, held(store, "src/capture", seconds=60) as lease:
        fence = store.leases.fence()
        fence()
        closing = threading.Thread(target=lease.give_up)
        closing.start()
        closing.join()
        with pytest.raises(FencedError):
            fence()
        with pytest.raises(FencedError):
            lease.check()
