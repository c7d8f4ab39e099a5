"""Which small edits break a rule, and which test must notice each? Read from ``rule_*.toml`` beside this file.

Each entry has ``name`` (what is broken, as a sentence), ``rule`` (its number in ARCHITECTURE.md, section 1), ``file``, ``from``
(text that the file holds once), ``to``, and ``test`` (a file, or a test's node id). ``bundle.toml`` names those that are made at
once, and says in which event of the prover's lives each is seen, or why no life can.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One edit."""

    name: str
    rule: int
    file: str
    before: str
    after: str
    test: str

    def applied_to(self, tree: Path) -> str:
        """The file's text with the edit.

        Raises:
            ValueError: The file does not hold the text exactly once, so the entry is out of date.
        """
        return self.applied_to_text((tree / self.file).read_text())

    def applied_to_text(self, text: str) -> str:
        """A text of the file with the edit, as :meth:`applied_to`."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.file} holds {text.count(self.before)} times: {self.before!r}")
        return text.replace(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Bundled:
    """One of those that are made at once: the kind of event in which the prover sees it, with which lake (:mod:`tests.mutants.lives`);
    or the reason why only its own test can."""

    mutant: Mutant
    seen_by: str
    lake: str
    own_test: str


def read_mutants(folder: Path = HERE) -> list[Mutant]:
    """All entries, by file and place."""
    return [
        Mutant(
            name=entry["name"],
            rule=entry["rule"],
            file=entry["file"],
            before=entry["from"],
            after=entry["to"],
            test=entry["test"],
        )
        for path in sorted(folder.glob("rule_*.toml"))
        for entry in tomllib.loads(path.read_text())["mutant"]
    ]


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


def texts_of(bundle: Sequence[Mutant], tree: Path) -> dict[str, str]:
    """The files of a tree with all edits of a bundle."""
    texts: dict[str, str] = {}
    for one in bundle:
        text = texts.get(one.file) or (tree / one.file).read_text()
        texts[one.file] = one.applied_to_text(text)
    return texts
