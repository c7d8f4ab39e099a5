"""``make mutate``: break each rule in many small ways, and show that its tests notice.

    python -m tests.mutants.run [--rule N …] [--sample N] [--seed N] [--placed] [--name TEXT]
        [--test TEXT] [--resume] [--minutes N] [--list] [--bundle [kept] [delta]]

Each mutant (:mod:`tests.mutants.mutants`) is made in a copy of the tree, one at a time, and its
tests alone run there, in a process forked from one that has imported the libraries. Before its
first mutant each set of tests must pass in the copy. ``--sample`` takes as many mutants of each
rule, by the seed. Verdicts are kept in ``.redolake/mutants.jsonl``, line by line: ``--resume`` goes
on where a run was stopped, and takes from an earlier run what it found of the same change of the
same module by the same tests. ``--bundle`` makes many changes at once and shows that the prover's
lives see each (:mod:`tests.mutants.bundle`).

Prints kills per rule, and of each survivor its place and its diff. Exits 1 if the tests of a rule
kill fewer than 95 in 100, if a mutant that was placed by hand survives, if tests do not pass
without a mutant, or if an entry has no place in the sources any more.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import importlib
import itertools
import json
import math
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from tests.mutants.bundle import prover_sees_bundle
from tests.mutants.edits import UnplacedEdit
from tests.mutants.mutants import (
    ROOT,
    AnyMutant,
    Generated,
    Rule,
    read_rules,
    texts_of,
    whole_text,
)
from tests.mutants.tree import copy_tree, write_new

LIBRARIES = (
    "alembic.command",
    "deltalake",
    "hypothesis",
    "numba",
    "oracledb",
    "pandas",
    "psycopg2",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pydantic",
    "pyspark.sql",
    "pytest",
    "rich.console",
    "sqlalchemy",
    "sqlglot",
    "tenacity",
    "typer",
    "yaml",
)
TEST_SECONDS_MAX = 200
TEST_SECONDS_MIN = 20
"""Of a mutant that never ends; otherwise four times what the tests take without one."""
DATA_BYTES_MAX = 6 * 1024**3
KILLS_MIN = 0.95
"""Of the mutants of each rule."""
PASSED, FAILED = 0, 1
CAUGHT, SURVIVED = "caught", "SURVIVED"
UNFIT_TEST = "its tests do not pass without it"
VERDICTS = ROOT / ".redolake" / "mutants.jsonl"


def run_tests(tree: Path, tests: Sequence[str], log: Path, seconds_max: int) -> int:
    """pytest's exit code for tests in a tree, in a process of its own.

    ``seconds_max`` is for each test.
    """
    process = os.fork()
    if process == 0:
        code = 70
        try:
            code = _pytest_in(tree, tests, log, seconds_max)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _pytest_in(tree: Path, tests: Sequence[str], log: Path, seconds_max: int) -> int:
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX, DATA_BYTES_MAX))
    with log.open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    sys.path.insert(0, str(tree))
    import pytest

    plugins = ("-p", "no:cacheprovider", f"--timeout={seconds_max}", "--timeout-method=signal")
    return int(pytest.main(["-x", "-q", *plugins, *tests]))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rule", type=int, nargs="*", default=[])
    parser.add_argument("--sample", type=int, help="of each rule, so many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--placed", action="store_true", help="only what was placed by hand")
    parser.add_argument("--name", default="", help="only mutants whose name holds this text")
    parser.add_argument(
        "--test", default="", help="only mutants one of whose tests holds this text"
    )
    parser.add_argument(
        "--resume", action="store_true", help="skip mutants that an earlier run killed"
    )
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="start no test after as many minutes"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument(
        "--bundle",
        nargs="*",
        choices=("kept", "delta"),
        help="make the bundle's changes at once and run the prover, with these lakes (both)",
    )
    given = parser.parse_args()
    console = Console(highlight=False)
    try:
        if given.bundle is not None:
            lakes = given.bundle or ("kept", "delta")
            sys.exit(0 if prover_sees_bundle(console, lakes) else 1)
        rules = [one for one in read_rules() if not given.rule or one.number in given.rule]
        chosen = list(itertools.chain.from_iterable(_chosen(one, given) for one in rules))
    except UnplacedEdit as error:
        sys.exit(f"an entry is out of date: {error}")
    if given.list:
        for one in chosen:
            where = f"{one.place.path.relative_to(ROOT)}:{one.change.line}"
            console.print(f"{one.rule:2}  {where}  {one.name}", soft_wrap=True, markup=False)
        return
    for name in LIBRARIES:
        importlib.import_module(name)
    known = read_verdicts() if given.resume else {}
    run = Run(console, until=time.monotonic() + 60 * given.minutes, known=known)
    sys.exit(0 if run.all_hold(chosen) else 1)


def _chosen(rule: Rule, given: argparse.Namespace) -> list[AnyMutant]:
    every: list[AnyMutant] = [*rule.mutants, *([] if given.placed else rule.generated())]
    fitting = [
        one
        for one in every
        if given.name in one.name and any(given.test in test for test in one.tests)
    ]
    if given.sample is None or given.sample >= len(fitting):
        return fitting
    return random.Random(f"{given.seed} {rule.number}").sample(fitting, given.sample)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant: ``caught``, ``survived`` or why it could not be judged."""

    name: str
    digest: str
    found: str
    seconds: float


def read_verdicts() -> dict[str, Verdict]:
    """Verdicts of earlier runs by :func:`digest_of`; the last one counts."""
    if not VERDICTS.exists():
        return {}
    found = [Verdict(**json.loads(line)) for line in VERDICTS.read_text().splitlines()]
    return {one.digest: one for one in found}


def keep_verdict(verdict: Verdict) -> None:
    """Add a verdict to those that a later run may go on from."""
    VERDICTS.parent.mkdir(exist_ok=True)
    with VERDICTS.open("a") as out:
        out.write(json.dumps(asdict(verdict)) + "\n")


def digest_of(mutant: AnyMutant) -> str:
    """What a verdict is about: the module, the change, the tests and their files."""
    paths = [mutant.place.path, *(ROOT / name.partition("::")[0] for name in mutant.tests)]
    about = [diff_of(mutant), mutant.tests, [path.read_text() for path in paths]]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def diff_of(mutant: AnyMutant) -> str:
    """The lines of the definition that a mutant changes, as Python prints them without comments."""
    node = mutant.place.node
    before, after = (ast.unparse(one).splitlines() for one in (node, mutant.change.of(node)))
    return "\n".join(list(difflib.unified_diff(before, after, n=1, lineterm=""))[3:])


@dataclass(frozen=True, slots=True)
class Run:
    """Mutants of one set of tests after the other, until the time is over."""

    console: Console
    until: float
    known: dict[str, Verdict]

    def all_hold(self, mutants: Sequence[AnyMutant]) -> bool:
        """Judge the mutants and say what became of them; do the tests of every rule kill enough?"""
        digests = {id(one): digest_of(one) for one in mutants}
        found = {one: self.known.get(digest) for one, digest in digests.items()}
        verdicts = {one: was for one, was in found.items() if was and was.found == CAUGHT}
        todo = [one for one in mutants if id(one) not in verdicts]
        with tempfile.TemporaryDirectory(prefix="redolake-mutants-") as folder:
            tree, log = Path(folder, "tree"), Path(folder, "log")
            if todo:
                copy_tree(tree)
            for one in todo:
                write_new(tree / one.place.path.relative_to(ROOT), whole_text(one))
            for tests in dict.fromkeys(one.tests for one in todo):
                for one in (batch := [one for one in todo if one.tests == tests]):
                    if time.monotonic() > self.until:
                        break
                    if one is batch[0]:
                        seconds = self._seconds_without(tests, tree, log)
                    verdict = self._judged(one, digests[id(one)], seconds, tree, log)
                    verdicts[id(one)] = verdict
                    if verdict.found != UNFIT_TEST:
                        keep_verdict(verdict)
        return self._summary(mutants, verdicts)

    def _seconds_without(self, tests: Sequence[str], tree: Path, log: Path) -> float | None:
        """How long the tests take in the tree as it is; None if they do not pass."""
        started = time.monotonic()
        if run_tests(tree, tests, log, TEST_SECONDS_MAX) == PASSED:
            return time.monotonic() - started
        self.console.print(log.read_text()[-4000:], style="dim", markup=False)
        self.console.print(f"  {' '.join(tests)}: does not pass without a mutant", style="red")
        return None

    def _judged(
        self, mutant: AnyMutant, digest: str, whole: float | None, tree: Path, log: Path
    ) -> Verdict:
        if whole is None:
            return Verdict(mutant.name, digest, UNFIT_TEST, 0)
        path = mutant.place.path.relative_to(ROOT)
        started = time.monotonic()
        seconds_max = min(max(TEST_SECONDS_MIN, int(4 * whole)), TEST_SECONDS_MAX)
        try:
            write_new(tree / path, texts_of([mutant])[path])
            code = run_tests(tree, mutant.tests, log, seconds_max)
        finally:
            write_new(tree / path, whole_text(mutant))
        found = {PASSED: SURVIVED, FAILED: CAUGHT}.get(code, f"could not run ({code})")
        if code not in (PASSED, FAILED) and isinstance(mutant, Generated):
            found = CAUGHT
        seconds = round(time.monotonic() - started, 1)
        style = None if found == CAUGHT else "red"
        where = f"rule {mutant.rule}: {path}:{mutant.change.line}"
        text = f"  {found}: {where}: {mutant.name} ({seconds} s)"
        self.console.print(text, style=style, markup=False, soft_wrap=True)
        if found.startswith("could not run"):
            self.console.print(log.read_text()[-2000:], style="dim", markup=False)
        return Verdict(mutant.name, digest, found, seconds)

    def _summary(self, mutants: Sequence[AnyMutant], verdicts: dict[int, Verdict]) -> bool:
        holds = True
        for rule in sorted({one.rule for one in mutants}):
            those = [one for one in mutants if one.rule == rule and id(one) in verdicts]
            counted = Counter(verdicts[id(one)].found for one in those)
            left = sum(one.rule == rule for one in mutants) - len(those)
            is_enough = counted[CAUGHT] >= KILLS_MIN * len(those)
            holds &= is_enough and not left
            self.console.print(
                f"rule {rule:2}: {counted[CAUGHT]} of {len(those)} killed"
                + (f", {left} left for --resume" if left else "")
                + ("" if is_enough else f": fewer than {KILLS_MIN:.0%}"),
                style=None if is_enough else "red",
            )
        for one in mutants:
            verdict = verdicts.get(id(one))
            if verdict is None or verdict.found == CAUGHT:
                continue
            holds &= isinstance(one, Generated) and verdict.found == SURVIVED
            path = one.place.path.relative_to(ROOT)
            where = f"rule {one.rule}: {path}:{one.change.line}"
            text = f"{verdict.found}: {where}: {one.name}: {' '.join(one.tests)}"
            self.console.print(text, style="red", markup=False, soft_wrap=True)
            self.console.print(diff_of(one), style="dim", markup=False, soft_wrap=True)
        minutes = sum(one.seconds for one in verdicts.values()) / 60
        self.console.print(f"{len(verdicts)} mutants, {minutes:.1f} minutes")
        return holds


if __name__ == "__main__":
    main()
