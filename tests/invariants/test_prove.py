"""Nothing is lost and nothing is doubled, whatever is killed; and the prover sees it when a rule is broken."""

from __future__ import annotations

import secrets

import pytest
from rich.console import Console

from tests.invariants.load import TABLES
from tests.invariants.prove import LONG_POINTS, SHORT_POINTS, Proof, prove, show
from tests.invariants.sabotage import SABOTAGES

SCNS_COMPARED = 4


def check(proof: Proof) -> None:
    """Nothing lost, nothing doubled, and the proof looked at something."""
    show(proof, Console())
    for table in TABLES:
        assert sum(one.table == table for one in proof.comparisons) >= SCNS_COMPARED
    assert all(one.verdict.rows_oracle for one in proof.comparisons)
    assert proof.reconciled
    assert proof.replayed > 0
    assert proof.differences == 0
    assert proof.violations == []
    assert proof.disagreements == []
    assert proof.not_reached == []


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_every_table_equals_oracle_after_kills_and_shuffled_replays() -> None:
    """The short form: a kill at every point but the two that tests/steps/test_crashes.py has, a lost connection, windows and
    chunks replayed in shuffled order, each table compared wherever it stood. The long form has all points."""
    proof = prove(2013, say=Console())
    check(proof)
    assert set(proof.kills) == set(SHORT_POINTS)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_the_same_with_many_kills_and_a_seed_of_its_own() -> None:
    """The long form: every point, then points of windows again and again; the printed seed repeats the run."""
    proof = prove(secrets.randbelow(10**6), short=False, say=Console())
    check(proof)
    assert set(proof.kills) == set(LONG_POINTS)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SABOTAGES))
def test_the_prover_sees_every_broken_rule(name: str) -> None:
    """A proof that cannot fail proves nothing: all the rules that can be broken on purpose."""
    proof = prove(11, sabotage=name, say=Console())
    assert proof.differences or proof.violations
