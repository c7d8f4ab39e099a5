"""The mutants have places in the sources, and every rule has some; ``make mutate`` runs them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.edits import UnplacedEdit, change_of, find
from tests.mutants.lives import EVENTS
from tests.mutants.mutants import (
    ROOT,
    Bundled,
    Mutant,
    Rule,
    read_bundle,
    read_mutants,
    read_rules,
    texts_of,
    whole_text,
)
from tests.mutants.operators import changes
from tests.mutants.peeling import COMPARISON, Peeling

RULES = read_rules()
MUTANTS = read_mutants()
BUNDLE_RULES_MIN = 30
MUTANTS_PER_RULE_MIN = 5
GENERATED_PER_RULE_MIN = 15


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_sentence_has_its_place_in_the_sources(mutant: Mutant) -> None:
    """The message of a failure says how to mend the entry."""
    (text,) = texts_of([mutant]).values()
    assert text != whole_text(mutant)
    compile(text, mutant.at, "exec")
    _is_a_test(mutant.tests[0])


@pytest.mark.parametrize("rule", RULES, ids=lambda one: str(one.number))
def test_the_operators_find_the_functions_of_a_rule(rule: Rule) -> None:
    generated = list(rule.generated())
    assert len(generated) >= GENERATED_PER_RULE_MIN
    every = [(at, text) for at, _ in rule.functions for text, _ in changes(find(ROOT, at).node)]
    unknown = [one for one in rule.equivalent if one not in every]
    assert not unknown, "listed as equivalent, and no operator makes it any more: delete the entry"
    for test in {test for one in generated for test in one.tests}:
        _is_a_test(test)


def _is_a_test(test: str) -> None:
    path, _, name = test.partition("::")
    wanted = f"def {name.partition('[')[0]}"
    if not (ROOT / path).is_file() or wanted not in (ROOT / path).read_text():
        others = [
            one for one in sorted((ROOT / "tests").rglob("test_*.py")) if wanted in one.read_text()
        ]
        paths = [str(one.relative_to(ROOT)) for one in others] if name else []
        pytest.fail(f"there is no test {test}; name the one that must notice, of: {paths}")


def test_names_are_different() -> None:
    assert not [name for name, times in Counter(one.name for one in MUTANTS).items() if times > 1]


def test_every_rule_of_the_architecture_has_mutants() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text().split("## 1. Rules")[1].split("\n## ")[0]
    listed = [int(one) for one in re.findall(r"^(\d+)\. \*\*", section, re.MULTILINE)]
    assert set(listed) <= {one.number for one in RULES}
    assert min(len(one.mutants) for one in RULES) >= MUTANTS_PER_RULE_MIN


SOURCE = '''
class Rows:
    LIMIT = 3

    def take(self, rows, low, high):
        """Take rows above low."""
        with self.lock(low):
            self.note(rows)
            if rows is None or low >= high:
                return []
        return [row for row in rows if row.scn > low and row.scn <= self.LIMIT]
'''


@pytest.mark.parametrize(
    ("form", "value", "line"),
    [
        ("never", "rows None", "if False or low >= high:"),
        ("always", "low high", "if rows is None or True:"),
        ("drop", "note", "pass"),
        ("drop", "lock", "self.note(rows)"),
        ("call", ["note", "print(rows)"], "print(rows)"),
        ("returns", "[]", "return []"),
        (
            "operator",
            ["scn low", ">="],
            "return [row for row in rows if row.scn >= low and row.scn <= self.LIMIT]",
        ),
        (
            "operator",
            ["scn LIMIT", "or"],
            "return [row for row in rows if row.scn > low or row.scn <= self.LIMIT]",
        ),
        (
            "replace",
            ["self.LIMIT", "9"],
            "return [row for row in rows if row.scn > low and row.scn <= 9]",
        ),
    ],
    ids=str,
)
def test_an_edit_finds_its_place_by_words(
    form: str, value: str | list[str], line: str, tmp_path: Path
) -> None:
    place = find(_tree(tmp_path), "assets.rows:Rows.take")
    assert place.node.lineno == 5
    change = change_of(place, form, value)
    assert line in [one.strip() for one in ast.unparse(change.of(place.node)).splitlines()]


@pytest.mark.parametrize(
    ("at", "form", "words", "message"),
    [
        ("assets.rows:Rows.takes", "never", "rows", "names like it there: Rows.take"),
        ("assets.rows:Rows.take", "never", "colour", "no condition with 'colour' any more"),
        ("assets.rows:Rows.take", "never", "scn", "more than one condition with 'scn'"),
        ("assets.rows:Rows.take", "replace", "high.low", "does not hold the code"),
    ],
)
def test_an_edit_without_a_place_says_how_to_mend_it(
    at: str, form: str, words: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UnplacedEdit, match=re.escape(message)):
        change_of(find(_tree(tmp_path), at), form, words if form == "never" else [words, "0"])


def test_a_definition_that_moved_is_found_where_it_is(tmp_path: Path) -> None:
    assert find(_tree(tmp_path), "assets.former:Rows.take").path == tmp_path / "assets" / "rows.py"


def test_operators_change_all_that_a_function_does(tmp_path: Path) -> None:
    """And neither its texts nor what it asserts."""
    found = [text for text, _ in changes(find(_tree(tmp_path), "assets.rows:Rows.take").node)]
    assert "low >= high -> low < high" in found
    assert "low >= high -> low > high" in found
    assert "rows is None or low >= high -> rows is None and low >= high" in found
    assert "self.note(rows) -> pass" in found
    assert not [one for one in found if "Take rows" in one]


def _tree(folder: Path) -> Path:
    (folder / "assets").mkdir()
    (folder / "assets" / "rows.py").write_text(SOURCE)
    return folder


def test_the_bundle_breaks_thirty_rules_at_once() -> None:
    bundle = [one.mutant for one in read_bundle()]
    assert len({one.name for one in bundle}) == len(bundle) >= BUNDLE_RULES_MIN
    for path, text in texts_of(bundle).items():
        compile(text, str(path), "exec")


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
    mutant = Mutant(name=name, rule=1, at="", form="never", value="", tests=())
    return Bundled(mutant, seen_by, "kept", own_test)
