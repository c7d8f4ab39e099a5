"""Nothing is lost and nothing is doubled, whatever happens and whatever is killed; and the prover sees it when a rule is broken."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import pytest
from rich.console import Console

from tests.invariants.events import Event, numbers_text, parse_numbers, plan
from tests.invariants.points import LINK, points_of
from tests.invariants.proof import Proof, show
from tests.invariants.prove import prove, shrink
from tests.invariants.sabotage import SABOTAGES
from tests.invariants.wild import WILD_TABLES

SHORT = (
    ("long", ""), ("tpcc", ""), ("side by side", ""), ("snapshot where", ""), ("again", ""), ("chunks", ""), ("signal", ""),
    ("kill at a point", "chunk files renamed, no manifest"), ("grow", ""), ("apply", ""), ("leave", ""), ("switch", ""),
    ("long", ""), ("shift", ""), ("kill at a point", "window landed, not recorded"), ("kill at random", ""), ("come back", ""),
    ("load", ""), ("kill at a point", "Delta committed, store not"), ("delete logs", ""), ("snapshot too old", ""),
    ("stop", LINK), ("long end", ""), ("lost connection", ""), ("truncate", ""), ("lose landing", ""), ("lose store", ""),
    ("pause", ""), ("load", ""), ("short read", ""), ("other instance", ""), ("apply", ""), ("resume", ""), ("replay", ""),
    ("damage landing", ""), ("kill Oracle", ""),
)  # fmt: skip
LONG_EVENTS = 400
ROWS_MIN = 10
"""So many rows has every table whenever it is compared: a table that is nearly empty shows nothing."""
SHORT_DELTA = (
    ("load", "NOTES"), ("long", ""), ("capture", ""), ("snapshot where", ""), ("load", "NOTES"),
    ("kill at a point", "Spark in the middle of a MERGE"), ("load", "NOTES"), ("kill the JVM", ""), ("replay", ""),
)  # fmt: skip
"""Few events on two tables where Spark is: what it does after a kill takes it long, for each table."""


def events_of(kinds: Sequence[tuple[str, str]]) -> list[Event]:
    return [Event(at, kind, what) for at, (kind, what) in enumerate(kinds)]


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
    killed = {"Spark in the middle of a MERGE": 1, "the JVM alone": 1}
    assert dict(proof.kills) == killed, proof.kills
    assert proof.replayed, "nothing was replayed"
    assert proof.reconciled, "nothing was reconciled"


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("with_services", [False, True], ids=["files", "PostgreSQL and S3"])
def test_a_long_life(*, with_services: bool) -> None:
    """Every point and all that can happen; the printed seed repeats the run."""
    seed = secrets.randbelow(10**6)
    events = plan(seed, LONG_EVENTS, "kept")
    proof = prove(seed, events=events, with_services=with_services, say=Console())
    check(proof, WILD_TABLES, 4)
    assert set(proof.kills) >= set(points_of("kept")), proof.kills


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_a_long_life_with_delta_lake() -> None:
    """The same with Spark."""
    seed = secrets.randbelow(10**6)
    proof = prove(seed, events=plan(seed, 150, "delta"), lake="delta", say=Console())
    check(proof, WILD_TABLES, 2)
    assert set(proof.kills) >= {name for name, one in points_of("delta").items() if one.role == "apply"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SABOTAGES))
def test_the_prover_sees_every_broken_rule(name: str) -> None:
    """A proof that cannot fail proves nothing: rules that are broken on purpose. Oracle lives, so that what is open can commit."""
    events = [one for one in events_of(SHORT) if one.kind != "kill Oracle"]
    assert prove(11, events=events, sabotage=name).faults


def test_a_seed_plans_the_same_events_and_numbers_name_them() -> None:
    events = plan(7, LONG_EVENTS, "kept")
    assert plan(7, LONG_EVENTS, "kept") == events
    assert plan(8, LONG_EVENTS, "kept") != events
    assert {one.what for one in events if one.kind == "kill at a point"} == set(points_of("kept"))
    some = [events[at] for at in (1, 2, 3, 9, 11)]
    assert numbers_text(some) == "1-3,9,11"
    assert parse_numbers("1-3,9,11") == {one.number for one in some}


def test_a_failing_run_shrinks_to_the_events_that_matter() -> None:
    events = plan(7, 64, "kept")
    guilty = {events[10], events[40]}
    short = shrink(events, lambda chosen: guilty <= set(chosen), runs=200)
    assert set(short) == guilty
