"""``make mutate``: break each rule in many small ways, and show that the test that is named for it notices.

    python -m tests.mutants.run [--rule N …] [--name TEXT] [--resume] [--minutes N] [--list] [--bundle [kept] [delta]]

Every edit is made in a copy of the tree, one at a time, and its test alone runs there, in a process forked from one that has
imported the libraries. Before its first mutant each test must pass in the copy. Verdicts are kept in ``.redolake/mutants.jsonl``,
line by line: ``--resume`` goes on where a run was stopped, and takes from an earlier run what it found of the same edit in the
same file by the same test. ``--bundle`` makes many edits at once and shows that the prover's lives see each (:mod:`tests.mutants.peeling`). Exits 1 if a mutant survives, if a test does not pass without one, or if an entry does not fit the
sources any more.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from tests.invariants.deadline import LIFE_SECONDS_MAX
from tests.mutants.mutants import ROOT, Mutant, read_bundle, read_mutants, texts_of
from tests.mutants.peeling import Peeling

LIBRARIES = (
    "alembic.command", "deltalake", "hypothesis", "numba", "oracledb", "pandas", "psycopg2", "pyarrow.compute", "pyarrow.dataset",
    "pyarrow.parquet", "pydantic", "pyspark.sql", "pytest", "rich.console", "sqlalchemy", "sqlglot", "tenacity", "typer", "yaml",
)  # fmt: skip
TEST_SECONDS_MAX = 200
PASSED, FAILED = 0, 1
CAUGHT, SURVIVED = "caught", "SURVIVED"
UNFIT_TEST = "its test does not pass without it"
_TIMES = itertools.count(int(time.time()) + 10)
VERDICTS = ROOT / ".redolake" / "mutants.jsonl"


def copy_tree(target: Path) -> None:
    """The tracked and new files of the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / name)


def _write_new(path: Path, text: str) -> None:
    """Write a source under a time that it never had, so that Python compiles it again however alike it is."""
    path.write_text(text)
    os.utime(path, (next(_TIMES), next(_TIMES)))


def run_tests(tree: Path, tests: Sequence[str], log: Path) -> int:
    """pytest's exit code for some tests in a tree, in a process of its own."""
    process = os.fork()
    if process == 0:
        code = 70
        try:
            code = _pytest_in(tree, tests, log)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _pytest_in(tree: Path, tests: Sequence[str], log: Path) -> int:
    with log.open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    sys.path.insert(0, str(tree))
    import pytest

    plugins = ("-p", "no:cacheprovider", f"--timeout={TEST_SECONDS_MAX}", "--timeout-method=signal")
    return int(pytest.main(["-x", "-q", *plugins, *tests]))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rule", type=int, nargs="*", default=[])
    parser.add_argument("--name", default="", help="only mutants whose name holds this text")
    parser.add_argument("--test", default="", help="only mutants whose test holds this text")
    parser.add_argument(
        "--resume", action="store_true", help="skip mutants that an earlier run caught"
    )
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="start no test after as many minutes"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument(
        "--bundle",
        nargs="*",
        choices=("kept", "delta"),
        help="make the bundle's edits at once and run the prover, with these lakes (both)",
    )
    given = parser.parse_args()
    console = Console(highlight=False)
    if given.bundle is not None:
        lakes = given.bundle or ("kept", "delta")
        sys.exit(0 if prover_sees_bundle(console, lakes) else 1)
    chosen = [
        one
        for one in read_mutants()
        if given.name in one.name
        and given.test in one.test
        and (not given.rule or one.rule in given.rule)
    ]
    if given.list:
        for one in chosen:
            console.print(f"{one.rule:2}  {one.name}  ({one.file})  {one.test}", soft_wrap=True)
        return
    for name in LIBRARIES:
        importlib.import_module(name)
    if not given.resume and chosen == read_mutants():
        VERDICTS.unlink(missing_ok=True)
    known = read_verdicts() if given.resume else {}
    run = Run(console, until=time.monotonic() + 60 * given.minutes, known=known)
    sys.exit(0 if run.all_caught(chosen) else 1)


def prover_sees_bundle(console: Console, lakes: Sequence[str]) -> bool:
    """Do the prover's lives in a copy of the tree see all that the bundle breaks, and nothing where it is whole?"""
    bundle = [one for one in read_bundle() if one.lake in lakes]
    with tempfile.TemporaryDirectory(prefix="redolake-bundle-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        whole = {one.mutant.file: (tree / one.mutant.file).read_text() for one in bundle}

        def life(lake: str, broken: Sequence[Mutant]) -> dict[str, list[str]]:
            for name, text in whole.items():
                _write_new(tree / name, text)
            for name, text in texts_of(broken, tree).items():
                _write_new(tree / name, text)
            console.print(f"{lake}: a life with {len(broken)} rules broken", style="dim")
            return _life_in(tree, lake)

        peeling = Peeling(life, lambda text: console.print(text, markup=False, soft_wrap=True))
        missed = peeling.peel(bundle)
    for one in bundle:
        by = peeling.seen.get(one.mutant.name) or (f"its own test: {one.own_test}" if one.own_test else "NOT SEEN")  # fmt: skip
        console.print(f"  {one.mutant.name}: {by}", markup=False, soft_wrap=True)
    own = sum(bool(one.own_test) for one in bundle)
    console.print(
        f"{len(bundle)} rules broken at once: {len(peeling.seen)} seen by the prover, {own} by their own tests alone, {len(missed)} not seen"
    )
    return not missed


def _life_in(tree: Path, lake: str) -> dict[str, list[str]]:
    """What a life in the tree saw. It prints to files: a pipe would be open as long as any process that it has left."""
    out, err = tree / "life.out", tree / "life.err"
    with out.open("w") as printed, err.open("w") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.lives", lake],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            stdout=printed,
            stderr=told,
        )
        try:
            code = process.wait(LIFE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.terminate()
            code = process.wait()
    lines = out.read_text().splitlines()
    if code or not lines:
        return {"no answer": [f"exit code {code}: {err.read_text()[-2000:]}"]}
    found: dict[str, list[str]] = json.loads(lines[-1])
    return found


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


def digest_of(mutant: Mutant) -> str:
    """What a verdict is about: the edit, the file that it is made in, the test and the test's file."""
    texts = [(ROOT / name).read_text() for name in (mutant.file, mutant.test.partition("::")[0])]
    return hashlib.sha256(json.dumps([asdict(mutant), texts]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Run:
    """Mutants of one test after the other, until the time is over."""

    console: Console
    until: float
    known: dict[str, Verdict]

    def all_caught(self, mutants: Sequence[Mutant]) -> bool:
        """Judge the mutants and say what became of them; were all caught?"""
        verdicts = {one: self.known[digest_of(one)] for one in mutants if self._is_known(one)}
        tests = dict.fromkeys(one.test for one in mutants if one not in verdicts)
        with tempfile.TemporaryDirectory(prefix="redolake-mutants-") as folder:
            tree, log = Path(folder, "tree"), Path(folder, "log")
            if tests:
                copy_tree(tree)
            for test in tests:
                todo = [one for one in mutants if one.test == test and one not in verdicts]
                verdicts |= self._judged_by(test, todo, tree, log)
        self._summary(mutants, verdicts)
        return all(one in verdicts and verdicts[one].found == CAUGHT for one in mutants)

    def _is_known(self, mutant: Mutant) -> bool:
        found = self.known.get(digest_of(mutant))
        return found is not None and found.found == CAUGHT

    def _judged_by(
        self, test: str, mutants: Sequence[Mutant], tree: Path, log: Path
    ) -> dict[Mutant, Verdict]:
        if time.monotonic() > self.until:
            return {}
        if run_tests(tree, [test], log) != PASSED:
            self.console.print(log.read_text()[-4000:], style="dim", markup=False)
            self.console.print(f"  {test} does not pass without a mutant", style="red")
            return {one: Verdict(one.name, digest_of(one), UNFIT_TEST, 0) for one in mutants}
        verdicts = {}
        for one in mutants:
            if time.monotonic() > self.until:
                break
            verdicts[one] = self._judged(one, tree, log)
            keep_verdict(verdicts[one])
        return verdicts

    def _judged(self, mutant: Mutant, tree: Path, log: Path) -> Verdict:
        path = tree / mutant.file
        started = time.monotonic()
        original = path.read_text()
        try:
            _write_new(path, mutant.applied_to(tree))
            code = run_tests(tree, [mutant.test], log)
            found = {PASSED: SURVIVED, FAILED: CAUGHT}.get(code, f"could not run ({code})")
        except ValueError as error:
            found = f"out of date: {error}"
        finally:
            _write_new(path, original)
        seconds = round(time.monotonic() - started, 1)
        style = None if found == CAUGHT else "red"
        text = f"  {found}: rule {mutant.rule}: {mutant.name} ({seconds} s)"
        self.console.print(text, style=style, markup=False, soft_wrap=True)
        if found.startswith("could not run"):
            self.console.print(log.read_text()[-2000:], style="dim", markup=False)
        return Verdict(mutant.name, digest_of(mutant), found, seconds)

    def _summary(self, mutants: Sequence[Mutant], verdicts: dict[Mutant, Verdict]) -> None:
        counted = Counter(one.found for one in verdicts.values())
        others = {one: found for one, found in verdicts.items() if found.found != CAUGHT}
        minutes = sum(one.seconds for one in verdicts.values()) / 60
        self.console.print(
            f"{len(mutants)} mutants, {counted[CAUGHT]} caught, {counted[SURVIVED]} survivors,"
            f" {len(others) - counted[SURVIVED]} not judged, {len(mutants) - len(verdicts)} left for --resume,"
            f" {minutes:.1f} minutes",
            soft_wrap=True,
        )
        for one, verdict in others.items():
            text = f"  {verdict.found}: rule {one.rule}: {one.name}: {one.test}"
            self.console.print(text, style="red", markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
