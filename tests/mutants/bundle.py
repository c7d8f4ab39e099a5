"""Does the prover see many broken rules at once?

The changes of ``bundle.toml`` are made together in a copy of the tree, and the prover's lives run
there until they see nothing more (:mod:`tests.mutants.peeling`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.invariants.deadline import LIFE_SECONDS_MAX
from tests.mutants.mutants import ROOT, Mutant, read_bundle, texts_of, whole_text
from tests.mutants.peeling import Peeling
from tests.mutants.tree import copy_tree, write_new


def prover_sees_bundle(console: Console, lakes: Sequence[str]) -> bool:
    """Do the prover's lives see all that the bundle breaks, and nothing in a whole tree?"""
    bundle = [one for one in read_bundle() if one.lake in lakes]
    with tempfile.TemporaryDirectory(prefix="redolake-bundle-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        whole = {one.mutant.place.path.relative_to(ROOT): whole_text(one.mutant) for one in bundle}

        def life(lake: str, broken: Sequence[Mutant]) -> dict[str, list[str]]:
            for path, text in (whole | texts_of(broken)).items():
                write_new(tree / path, text)
            console.print(f"{lake}: a life with {len(broken)} rules broken", style="dim")
            return _life_in(tree, lake)

        peeling = Peeling(life, lambda text: console.print(text, markup=False, soft_wrap=True))
        missed = peeling.peel(bundle)
    for one in bundle:
        by = peeling.seen.get(one.mutant.name) or (
            f"its own test: {one.own_test}" if one.own_test else "NOT SEEN"
        )
        console.print(f"  {one.mutant.name}: {by}", markup=False, soft_wrap=True)
    own = sum(bool(one.own_test) for one in bundle)
    console.print(
        f"{len(bundle)} rules broken at once: {len(peeling.seen)} seen by the prover,"
        f" {own} by their own tests alone, {len(missed)} not seen"
    )
    return not missed


def _life_in(tree: Path, lake: str) -> dict[str, list[str]]:
    """What a life in the tree saw.

    It prints to files: a pipe would be open as long as any process that it has left.
    """
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
