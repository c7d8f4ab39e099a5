"""Which changes break a rule, and which tests must notice?

Read from ``rule_NN.toml`` beside this file, one for each rule:

``[[mutant]]``
    A sentence of the rule that is broken: ``name`` (what happens then), ``at``
    (``module:function``), one edit (:mod:`tests.mutants.edits`), and ``test`` (file or node id).
``[[functions]]``
    Functions that keep the rule (``of``), and the files that test them (``tests``, the fastest
    first). The operators (:mod:`tests.mutants.operators`) change whatever the functions hold.
``[[equivalent]]``
    A change by an operator that leaves the behaviour as it is: ``at``, ``change`` (as the run
    prints it), ``reason``.

``bundle.toml`` names mutants that are made at once, and says in which event of the prover's lives
each is seen, or why no life can.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.mutants.edits import FORMS, Change, Place, change_of, find
from tests.mutants.operators import changes

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One sentence of a rule, broken in one place."""

    name: str
    rule: int
    at: str
    form: str
    value: str | tuple[str, ...]
    tests: tuple[str, ...]

    @cached_property
    def place(self) -> Place:
        """Where the definition is.

        Raises:
            UnplacedEdit: It is nowhere, or in several modules.
        """
        return find(ROOT, self.at)

    @cached_property
    def change(self) -> Change:
        """What the edit does; raises as :meth:`place`."""
        return change_of(self.place, self.form, self.value)


@dataclass(frozen=True, kw_only=True)
class Generated:
    """One change by an operator."""

    name: str
    rule: int
    at: str
    place: Place
    change: Change
    tests: tuple[str, ...]


AnyMutant = Mutant | Generated


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The mutants of one rule; ``equivalent`` has the reasons by definition and change."""

    number: int
    mutants: tuple[Mutant, ...]
    functions: tuple[tuple[str, tuple[str, ...]], ...]
    equivalent: dict[tuple[str, str], str]

    def generated(self) -> Iterator[Generated]:
        """What the operators make of the functions, without what is equivalent.

        Raises:
            UnplacedEdit: A function is nowhere, or in several modules.
        """
        for at, tests in self.functions:
            place = find(ROOT, at)
            for text, change in changes(place.node):
                if (at, text) not in self.equivalent:
                    yield Generated(
                        name=f"{place.name}: {text}",
                        rule=self.number,
                        at=at,
                        place=place,
                        change=change,
                        tests=tests,
                    )


@dataclass(frozen=True, slots=True)
class Bundled:
    """One of those that are made at once.

    ``seen_by`` is the kind of event in which the prover sees it, with which ``lake``
    (:mod:`tests.mutants.lives`); ``own_test`` is the reason why only its own test can.
    """

    mutant: Mutant
    seen_by: str
    lake: str
    own_test: str


def read_rules(folder: Path = HERE) -> list[Rule]:
    """All rules, by number."""
    return [_rule(int(path.stem[5:]), path) for path in sorted(folder.glob("rule_*.toml"))]


def read_mutants(folder: Path = HERE) -> list[Mutant]:
    """The sentences that are broken, by rule."""
    return [one for rule in read_rules(folder) for one in rule.mutants]


def read_bundle() -> list[Bundled]:
    """The mutants that are made at once."""
    by_name = {one.name: one for one in read_mutants()}
    entries = tomllib.loads((HERE / "bundle.toml").read_text())["entry"]
    return [
        Bundled(
            by_name[one["name"]],
            one.get("seen_by", ""),
            one.get("lake", "kept"),
            one.get("own_test", ""),
        )
        for one in entries
    ]


def texts_of(bundle: Sequence[AnyMutant]) -> dict[Path, str]:
    """The modules that mutants change, each with all its changes, by paths below :data:`ROOT`."""
    by_path: dict[Path, list[AnyMutant]] = {}
    for one in bundle:
        by_path.setdefault(one.place.path.relative_to(ROOT), []).append(one)
    return {
        path: ast.unparse(
            Change(tuple(place for one in those for place in one.change.places)).of(
                those[0].place.module
            )
        )
        for path, those in by_path.items()
    }


def whole_text(mutant: AnyMutant) -> str:
    """A mutant's module without it, printed as :func:`texts_of` prints: without comments."""
    return ast.unparse(mutant.place.module)


def _rule(number: int, path: Path) -> Rule:
    data = tomllib.loads(path.read_text())
    return Rule(
        number=number,
        mutants=tuple(_mutant(number, one) for one in data["mutant"]),
        functions=tuple(
            (at, tuple(group["tests"])) for group in data["functions"] for at in group["of"]
        ),
        equivalent={
            (one["at"], one["change"]): one["reason"] for one in data.get("equivalent", [])
        },
    )


def _mutant(rule: int, entry: dict[str, Any]) -> Mutant:
    (form,) = [form for form in FORMS if form in entry]
    value = entry[form] if isinstance(entry[form], str) else tuple(entry[form])
    return Mutant(
        name=entry["name"],
        rule=rule,
        at=entry["at"],
        form=form,
        value=value,
        tests=(entry["test"],),
    )
