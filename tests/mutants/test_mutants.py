"""The list of mutants fits the sources, and has some for every rule; ``make mutate`` runs them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutants.mutants import ROOT, Mutant, read_bundle, read_mutants, texts_of

MUTANTS = read_mutants()
RULES = range(1, 17)
BUNDLE_RULES_MIN = 30
MUTANTS_PER_RULE_MIN = 5
MUTANTS_IN_STEPS_MIN = 10


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


def test_the_bundle_breaks_thirty_rules_at_once() -> None:
    bundle = read_bundle()
    assert len(set(bundle)) == len(bundle) >= BUNDLE_RULES_MIN
    for name, text in texts_of(bundle, ROOT).items():
        assert text != (ROOT / name).read_text()
        compile(text, name, "exec")
