"""Nothing is lost and nothing is doubled, whatever happens and whatever is killed; and the prover sees it when a rule is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.invariants.events import (
    LONG_LIFE,
    OFTEN,
    WEIGHTS,
    Event,
    numbers_text,
    parse_numbers,
    plan,
)
from tests.invariants.life import Life
from tests.invariants.points import IN_MERGE, IN_REWRITING, LINK, Capture, Role, points_of
from tests.invariants.proof import Proof, show
from tests.invariants.prove import prove, shrink
from tests.invariants.sabotage import RESUMED, SABOTAGES
from tests.invariants.sums import ROWS_MIN
from tests.invariants.ways import LEFT_OUT, reads_of
from tests.invariants.wild import WILD_TABLES

SHORT = (
    ("long", ""), ("tpcc", ""), ("side by side", ""), ("snapshot where", ""), ("again", ""), ("chunks", ""), ("signal", ""),
    ("kill at a point", "chunk files renamed, no manifest"), ("grow", ""), ("apply", ""), ("leave", ""), ("switch", ""),
    ("long", ""), ("shift", ""), ("kill at a point", "window landed, not recorded"), ("kill at random", ""), ("come back", ""),
    ("load", ""), ("kill at a point", "Delta committed, store not"), ("delete logs", ""), ("snapshot too old", ""),
    ("stop", LINK), ("long end", ""), ("lost connection", ""), ("truncate", ""), ("partitions", ""), ("lose landing", ""), ("lose store", ""),
    ("pause", ""), ("load", ""), ("short read", ""), ("other instance", ""), ("apply", ""), ("resume", ""), ("replay", ""),
    ("damage landing", ""), ("kill Oracle", ""),
)  # fmt: skip
LONG_EVENTS = 400
SHORT_DELTA = (
    ("load", "NOTES"), ("long", ""), ("capture", ""), ("snapshot where", ""), ("load", "NOTES"),
    ("kill at a point", IN_MERGE), ("load", "NOTES"), ("kill the JVM", ""), ("replay", ""),
)  # fmt: skip
"""Few events on two tables where Spark is: what it does after a kill takes it long, for each table."""
SHORT_REWRITING = (
    ("load", "NOTES"), ("long", ""), ("capture", ""), ("load", "NOTES"), ("kill at a point", IN_REWRITING), ("load", "NOTES"),
    ("kill at a point", IN_REWRITING), ("load", "NOTES"), ("kill at a point", "Delta committed, store not"), ("long end", ""),
    ("load", "NOTES"), ("replay", ""),
)  # fmt: skip


def events_of(kinds: Sequence[tuple[str, str]]) -> list[Event]:
    return [Event(at, kind, what) for at, (kind, what) in enumerate(kinds)]


def events_through(capture: Capture, seed: int) -> list[Event]:
    """Those of the short life that it meets through a reader."""
    left_out = LEFT_OUT[reads_of(capture, seed)]
    return [one for one in events_of(SHORT) if one.kind not in left_out]


def check(proof: Proof, tables: tuple[str, ...], scns: int) -> None:
    """Nothing lost, nothing doubled, and the proof looked at something."""
    show(proof, Console(width=160, highlight=False))
    assert proof.faults == []
    for table in tables:
        found = [one for one in proof.comparisons if one.table == table]
        assert len(found) >= scns, f"{table} was compared at {[one.scn for one in found]} only"
        rows = min(one.verdict.rows_oracle for one in found)
        assert rows >= ROWS_MIN, f"{table} had {rows} rows"


def test_a_long_life_in_short() -> None:
    """Windows, chunks, ad hoc snapshots, DDL, kills at points and at random instants; each table is compared at several SCNs."""
    proof = prove(2013, events=events_of(SHORT), scns_compared=3)
    check(proof, WILD_TABLES, 2)
    assert proof.kills.total() == sum(kind.startswith("kill ") for kind, _ in SHORT), proof.kills
    missed = {kind for kind, _ in SHORT} - set(proof.happened) - {"kill at random"}
    assert not missed, f"did not take place: {missed}"
    assert proof.consistent, "TPC-C's conditions were not asked"
    assert proof.late["windows with late redo"], "no redo came late"
    assert proof.late["windows that a late commit belongs to"], "no commit came late"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("capture", "seed"),
    [
        pytest.param("openlogreplicator", 2014, id="OpenLogReplicator's files"),
        pytest.param("openlogreplicator", 2015, id="its network writer"),
        pytest.param("xstream", 2014, id="recordings of LCRs"),
    ],
)
def test_the_same_life_through_another_reader(capture: Capture, seed: int) -> None:
    """But for what LogMiner alone meets."""
    events = events_through(capture, seed)
    proof = prove(seed, events=events, capture=capture, scns_compared=3)
    check(proof, WILD_TABLES, 2)
    assert proof.kills.total() == sum(one.kind.startswith("kill ") for one in events), proof.kills
    missed = {one.kind for one in events} - set(proof.happened) - {"kill at random"}
    assert not missed, f"did not take place: {missed}"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_table_equals_oracle_after_a_kill_in_a_merge_and_shuffled_replays() -> None:
    """Delta Lake through Spark in short. Whatever needs no Spark is in the test above; what Spark does after a kill at other
    points has tests/lake, which applies windows and chunks again that Delta has."""
    tables = ("NOTES", "EVENTS")
    events = events_of(SHORT_DELTA)
    proof = prove(2013, events=events, lake="delta", tables=tables, scns_compared=4)
    check(proof, tables, 2)
    killed = {IN_MERGE: 1, "the JVM alone": 1}
    assert dict(proof.kills) == killed, proof.kills
    assert proof.replayed, "nothing was replayed"
    assert proof.reconciled, "nothing was reconciled"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_table_equals_oracle_after_kills_where_files_are_written_anew() -> None:
    """Delta Lake without Spark's MERGE: before the commit that exchanges files, behind it, and for a second table of the same window."""
    tables = ("NOTES", "EVENTS")
    events = events_of(SHORT_REWRITING)
    proof = prove(2014, events=events, lake="delta", tables=tables, scns_compared=4)
    check(proof, tables, 2)
    assert dict(proof.kills) == {IN_REWRITING: 2, "Delta committed, store not": 1}, proof.kills
    assert proof.replayed, "nothing was replayed"


@pytest.mark.story
def test_no_value_of_an_excluded_column_is_anywhere() -> None:
    """Redo, rolled back and not, snapshot, lake and store."""
    events = events_of((("load", "EVENTS"), ("capture", ""), ("load", "EVENTS"), ("apply", "")))
    proof = prove(5, events=events, tables=("EVENTS",), scns_compared=2)
    assert proof.faults == []
    assert proof.read_for_marks > 10


@pytest.mark.slow
def test_a_table_that_fails_before_the_first_window_begins_anew() -> None:
    """Its chunk was planned before a DDL, and nothing was captured: what it had missed is in its new snapshot."""
    events = events_of((("grow", ""), ("chunks", ""), ("come back", ""), ("capture", "")))
    assert prove(2, events=events, tables=("GROWING", "EVENTS"), scns_compared=2).faults == []


@pytest.mark.slow
def test_a_life_ends_when_a_table_that_failed_again_and_again_is_back(tmp_path: Path) -> None:
    """Each new snapshot of GROWING meets a DDL between its plan and its reading, four times at the end."""
    life = StoppedByDDL(tmp_path, 3, events_of((("capture", ""),)), tables=("GROWING", "EVENTS"))
    assert life.run().faults == []
    assert life.left == 0


class StoppedByDDL(Life):
    """A life whose table GROWING changes whenever it is about to be read."""

    left = 4

    def do(self, role: Role, command: str, **arguments: Any) -> Any:
        if command == "read_chunks" and self.left and self._now == "the end":
            if self.left == 4:
                super().do("capture", "plan_snapshot", table=self.name("GROWING"))
            self.left -= 1
            self._on_grow(Event(-1, "grow"))
        return super().do(role, command, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SABOTAGES))
def test_the_prover_sees_every_broken_rule(name: str) -> None:
    """A proof that cannot fail proves nothing: rules that are broken on purpose. Oracle lives, so that what is open can commit."""
    capture: Capture = "openlogreplicator" if name == RESUMED else "logminer"
    events = [one for one in events_through(capture, 11) if one.kind != "kill Oracle"]
    assert prove(11, events=events, capture=capture, sabotage=name).faults


def test_a_seed_plans_the_same_events_and_numbers_name_them() -> None:
    events = plan(7, LONG_EVENTS, "kept")
    assert plan(7, LONG_EVENTS, "kept") == events
    assert plan(8, LONG_EVENTS, "kept") != events
    assert {one.what for one in events if one.kind == "kill at a point"} == set(points_of("kept"))
    for lake, count in LONG_LIFE.items():
        kinds = Counter(one.kind for one in plan(7, count, lake))
        assert all(kinds[kind] >= times for kind, times in OFTEN[lake].items()), kinds
    some = [events[at] for at in (1, 2, 3, 9, 11)]
    assert numbers_text(some) == "1-3,9,11"
    assert parse_numbers("1-3,9,11") == {one.number for one in some}


@pytest.mark.parametrize(("capture", "seed"), [("openlogreplicator", 7), ("xstream", 7)])
def test_what_logminer_alone_meets_is_left_out(capture: Capture, seed: int) -> None:
    left_out = LEFT_OUT[reads_of(capture, seed)]
    assert left_out
    assert set(left_out) < set(WEIGHTS)
    events = plan(seed, LONG_EVENTS, "kept", capture)
    assert not {one.kind for one in events} & set(left_out)
    met = {one.what for one in events if one.kind == "kill at a point"}
    assert met == set(points_of("kept", capture))


def test_a_failing_run_shrinks_to_the_events_that_matter() -> None:
    events = plan(7, 64, "kept")
    guilty = {events[10], events[40]}
    short = shrink(events, lambda chosen: guilty <= set(chosen), runs=200)
    assert set(short) == guilty
