"""The list of mutants fits the sources, and has some for every rule; ``make mutate`` runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.mutants.lives import EVENTS
from tests.mutants.mutants import ROOT, Bundled, Mutant, read_bundle, read_mutants, texts_of
from tests.mutants.peeling import COMPARISON, Peeling

MUTANTS = read_mutants()
RULES = range(1, 17)
BUNDLE_RULES_MIN = 30
MUTANTS_PER_RULE_MIN = 5
MUTANTS_IN_STEPS_MIN = 10


@pytest.mark.slow  # make mutate asks it first; a rebuild need not re-type edits on the way
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_an_entry_fits_the_sources(mutant: Mutant) -> None:
    assert mutant.applied_to(ROOT) != (ROOT / mutant.file).read_text()
    compile(mutant.applied_to(ROOT), mutant.file, "exec")
    path, _, test = mutant.test.partition("::")
    assert f"def {test.partition('[')[0]}" in (ROOT / path).read_text()


def test_names_are_different() -> None:
    assert not [name for name, times in Counter(one.name for one in MUTANTS).items() if times > 1]


def test_every_rule_and_the_steps_have_mutants() -> None:
    rules = Counter(one.rule for one in MUTANTS)
    assert sorted(rules) == list(RULES)
    assert min(rules.values()) >= MUTANTS_PER_RULE_MIN, rules
    assert sum("/steps/" in one.file for one in MUTANTS) >= MUTANTS_IN_STEPS_MIN


@pytest.mark.slow
def test_the_bundle_breaks_thirty_rules_at_once() -> None:
    bundle = [one.mutant for one in read_bundle()]
    assert len(set(bundle)) == len(bundle) >= BUNDLE_RULES_MIN
    for name, text in texts_of(bundle, ROOT).items():
        assert text != (ROOT / name).read_text()
        compile(text, name, "exec")


def test_each_of_the_bundle_names_the_event_that_sees_it_or_why_none_can() -> None:
    for one in read_bundle():
        assert bool(one.seen_by) != bool(one.own_test), one.mutant.name
        if one.seen_by:
            kinds = {kind for kind, _ in EVENTS[one.lake]} | {COMPARISON}  # type: ignore[index]
            assert one.seen_by.partition(":")[0] in kinds, one.mutant.name


def test_what_was_seen_is_taken_out_and_the_rest_is_shown_again() -> None:
    """Until a life sees nothing; and what none saw is named."""
    bundle = [_bundled("a", "leases"), _bundled("b", "hole"), _bundled("c", own_test="memory")]
    lives: list[list[str]] = []

    def life(lake: str, broken: Sequence[Mutant]) -> dict[str, list[str]]:
        lives.append([lake, *(one.name for one in broken)])
        return {"leases": ["it was given"]} if any(one.name == "a" for one in broken) else {}

    found = Peeling(life, lambda _text: None)
    assert found.peel(bundle) == ["b"]
    assert lives == [["kept"], ["kept", "a", "b", "c"], ["kept", "b", "c"]]
    assert found.seen == {"a": "kept: leases"}


def test_a_fault_that_nobody_names_is_no_proof() -> None:
    found = Peeling(lambda _lake, broken: {"load": ["x"]} if broken else {}, lambda _text: None)
    assert found.peel([_bundled("a", "leases")]) == ["a"]
    found = Peeling(lambda _lake, _broken: {"load": ["x"]}, lambda _text: None)
    assert found.peel([_bundled("a", "load")]) == ["a"]


def _bundled(name: str, seen_by: str = "", own_test: str = "") -> Bundled:
    mutant = Mutant(name=name, rule=1, file="", before="", after="", test="")
    return Bundled(mutant, seen_by, "kept", own_test)
