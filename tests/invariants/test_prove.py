"""Nothing is lost and nothing is doubled, whatever is killed; and the prover sees it when a rule is broken."""

from __future__ import annotations

import pytest
from rich.console import Console

from tests.invariants.load import TABLES
from tests.invariants.prove import SCNS_COMPARED, prove, show
from tests.invariants.sabotage import SABOTAGES
from tests.invariants.worker import KILL_POINTS


@pytest.mark.spark
@pytest.mark.timeout(2400)
def test_every_table_equals_oracle_after_a_kill_at_each_point_and_shuffled_replays() -> None:
    """One kill at each point, a lost connection, everything replayed in shuffled order, four SCNs compared."""
    proof = prove(2013, say=Console())
    show(proof, Console())
    assert set(proof.kills) == set(KILL_POINTS)
    assert len(proof.comparisons) == SCNS_COMPARED * len(TABLES)
    assert len(proof.reconciled) == SCNS_COMPARED
    assert proof.replayed > 0
    assert proof.differences == 0
    assert proof.violations == []
    assert proof.disagreements == []


@pytest.mark.spark
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["absent column as NULL", "mining starts at the snapshot"])
def test_the_prover_sees_a_broken_rule(name: str) -> None:
    """A proof that cannot fail proves nothing."""
    proof = prove(7, sabotage=name, say=Console())
    assert proof.differences or proof.violations


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("name", sorted(SABOTAGES))
def test_the_prover_sees_every_broken_rule(name: str) -> None:
    """All the rules that can be broken on purpose."""
    proof = prove(11, sabotage=name, say=Console())
    assert proof.differences or proof.violations
