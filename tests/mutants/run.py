"""``make mutate``: break each rule in many small ways, and show that the test that is named for it notices.

    python -m tests.mutants.run [--rule N …] [--name TEXT] [--list]

Every edit is made in a copy of the tree, one at a time, and its test alone runs there, in a process forked from one that has
imported the libraries. Before that all named tests must pass in the copy. Exits 1 if a mutant survives, or if an entry does not
fit the sources any more.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.mutants.mutants import ROOT, Mutant, read_mutants

LIBRARIES = (
    "alembic.command", "deltalake", "hypothesis", "numba", "oracledb", "pandas", "psycopg2", "pyarrow.compute", "pyarrow.dataset",
    "pyarrow.parquet", "pydantic", "pyspark.sql", "pytest", "rich.console", "sqlalchemy", "sqlglot", "tenacity", "typer", "yaml",
)  # fmt: skip
TEST_SECONDS_MAX = 200
PASSED, FAILED = 0, 1


def copy_tree(target: Path) -> None:
    """The tracked and new files of the working tree, compiled so that a changed source is always seen."""
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
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    for package in ("cdc_core", "oracle_embedded", "pipelines", "assets", "tests"):
        compileall.compile_dir(target / package, quiet=1, invalidation_mode=mode)


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
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    given = parser.parse_args()
    console = Console(highlight=False)
    chosen = [
        one
        for one in read_mutants()
        if given.name in one.name and (not given.rule or one.rule in given.rule)
    ]
    if given.list:
        for one in chosen:
            console.print(f"{one.rule:2}  {one.name}  ({one.file})  {one.test}")
        return
    for name in LIBRARIES:
        importlib.import_module(name)
    sys.exit(0 if mutate(chosen, console) else 1)


def mutate(mutants: Sequence[Mutant], console: Console) -> bool:
    """Run the mutants and say what became of each; were all caught?"""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="redolake-mutants-") as folder:
        tree, log = Path(folder, "tree"), Path(folder, "log")
        copy_tree(tree)
        tests = sorted({one.test for one in mutants})
        if run_tests(tree, tests, log) != PASSED:
            console.print(log.read_text()[-4000:])
            console.print("the named tests do not pass without any mutant", style="red")
            return False
        survivors = [one for one in mutants if not _is_caught(one, tree, log, console)]
    caught = len(mutants) - len(survivors)
    console.print(
        f"{len(mutants)} mutants, {caught} caught, {len(survivors)} survived, {time.monotonic() - started:.0f} s"
    )
    for one in survivors:
        console.print(f"  rule {one.rule}: {one.name}: {one.test}", style="red")
    return not survivors


def _is_caught(mutant: Mutant, tree: Path, log: Path, console: Console) -> bool:
    path = tree / mutant.file
    started = time.monotonic()
    original = path.read_text()
    try:
        path.write_text(mutant.applied_to(tree))
        code = run_tests(tree, [mutant.test], log)
    except ValueError as error:
        console.print(f"  out of date: {mutant.name}: {error}", style="red")
        return False
    finally:
        path.write_text(original)
    verdict = {PASSED: "SURVIVED", FAILED: "caught"}.get(code, f"could not run ({code})")
    console.print(
        f"  {verdict}: rule {mutant.rule}: {mutant.name} ({time.monotonic() - started:.1f} s)"
    )
    if code not in (PASSED, FAILED):
        console.print(log.read_text()[-2000:], style="dim")
    return code == FAILED


if __name__ == "__main__":
    main()
