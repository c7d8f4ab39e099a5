"""``make prove-long``: many lives, each in a process of its own, some side by side, and one summary of all.

    python -m tests.invariants.long [--seed N] [--resume] [--at-once N]

Lives with the lake in memory, one with PostgreSQL and S3, some through each other reader than LogMiner, and two with Delta Lake, of which one merges by Spark, under seeds that follow the given one.
What each printed, what it found, and the summary (JSON and Markdown) are in ``.redolake/prove/SEED``; ``--resume`` runs those lives that
have no result there. Exits 1 if a life found a fault (it has then shortened itself where it could), ended without a result, or if all
of them together met too little (:data:`tests.invariants.sums.ENOUGH`, each point of a kill).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tests.invariants.deadline import LIFE_SECONDS_MAX
from tests.invariants.points import Capture, LakeKind
from tests.invariants.sums import (
    LifeResult,
    events_text,
    kills_text,
    lacking,
    markdown,
    not_hit,
    sums,
    thin,
)

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".redolake" / "prove"
KEPT_LIVES = 8
KEPT_EVENTS = 220
DELTA_EVENTS = 60
AT_ONCE = 2
"""Lives side by side: of the processes of one, one at a time has something to do."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A life that is to be lived."""

    seed: int
    lake: LakeKind
    events: int
    services: bool = False
    capture: Capture = "logminer"

    @property
    def name(self) -> str:
        """Of its files."""
        reader = "" if self.capture == "logminer" else f"-{self.capture}"
        return f"{self.lake}{'-services' if self.services else ''}{reader}-{self.seed}"

    def command(self, result: Path) -> list[str]:
        """What lives it."""
        more = ["--services"] if self.services else []
        return [
            sys.executable, "-u", "-m", "tests.invariants.prove", "--seed", str(self.seed), "--events", str(self.events),
            "--lake", self.lake, "--capture", self.capture, "--result", str(result), *more,
        ]  # fmt: skip


def lives_of(seed: int) -> list[Planned]:
    """The long form under a seed; what takes longest begins first."""
    return [
        *(
            Planned(seed + at, "delta", DELTA_EVENTS) for at in range(2)
        ),  # with Spark's MERGE, and without
        Planned(seed + KEPT_LIVES, "kept", KEPT_EVENTS, services=True),
        *(Planned(seed + at, "kept", KEPT_EVENTS, capture="openlogreplicator") for at in range(2)),
        Planned(seed, "kept", KEPT_EVENTS, capture="xstream"),
        *(Planned(seed + at, "kept", KEPT_EVENTS) for at in range(KEPT_LIVES)),
    ]


def live(planned: Planned, folder: Path) -> str:
    """Live one life in a process; returns why it has no result, empty if it has one."""
    result, log = folder / f"{planned.name}.json", folder / f"{planned.name}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            planned.command(result),
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "160"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            code = process.wait(LIFE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            return f"{planned.name}: no end within {LIFE_SECONDS_MAX} seconds; see {log}"
    if result.exists():
        return ""
    return f"{planned.name}: ended with exit code {code} and without a result; see {log}"


def live_all(
    planned: Sequence[Planned], folder: Path, console: Console, at_once: int
) -> tuple[list[LifeResult], list[str]]:
    """Live what has no result yet; all results, and why some are missing."""

    def one(life: Planned) -> str:
        path = folder / f"{life.name}.json"
        if path.exists():
            return ""
        problem = live(life, folder)
        console.print(f"  {problem or _line(LifeResult.read(path))}", markup=False, soft_wrap=True)
        return problem

    with ThreadPoolExecutor(at_once) as pool:
        problems = [problem for problem in pool.map(one, planned) if problem]
    paths = [folder / f"{life.name}.json" for life in planned]
    return [LifeResult.read(path) for path in paths if path.exists()], problems


def _line(found: LifeResult) -> str:
    return (
        f"{found.name}: {sum(found.happened.values())} events, {sum(found.kills.values())} kills, {found.comparisons} comparisons,"
        f" {found.differences} unequal, {len(found.faults)} faults, {found.seconds / 60:.1f} minutes"
    )


def summarize(
    lives: Sequence[LifeResult],
    problems: Sequence[str],
    folder: Path,
    console: Console,
    seconds: float,
) -> list[str]:
    """Print and keep the summary; returns all that is wrong."""
    found = sums(lives)
    failed = [
        *problems,
        *(f"{one.name}: {text}" for one in lives for text in one.faults),
        *(f"{one.name}: {one.shrunk}" for one in lives if one.shrunk),
        *(f"{one.name}: {text}" for one in lives for text in thin(one)),
        *lacking(found),
        *not_hit(lives),
    ]
    seeds = [one.seed for one in lives]
    summary = {"seeds": seeds, "minutes": round(seconds / 60, 1), "sums": found, "failed": failed}
    (folder / "summary.json").write_text(json.dumps(summary, indent=1))
    (folder / "summary.md").write_text(markdown(lives, failed, seconds / 60))
    console.print(
        f"{len(lives)} lives, seeds {', '.join(map(str, seeds))}: "
        + ", ".join(f"{number} {name}" for name, number in found.items())
        + f"; {seconds / 60:.1f} minutes",
        soft_wrap=True,
    )
    console.print(f"kills: {kills_text(lives)}", soft_wrap=True)
    console.print(f"events: {events_text(lives)}", soft_wrap=True)
    for text in failed:
        console.print(f"  {text[-2000:]}", style="red", markup=False, soft_wrap=True)
    console.print(f"The summary is in {folder / 'summary.md'}", soft_wrap=True)
    return failed


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=2013, help="of the first life")
    parser.add_argument("--resume", action="store_true", help="keep the results of earlier lives")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="lives side by side")
    given = parser.parse_args()
    console = Console(highlight=False)
    folder = RESULTS / str(given.seed)
    folder.mkdir(parents=True, exist_ok=True)
    planned = lives_of(given.seed)
    if not given.resume:
        for life in planned:
            (folder / f"{life.name}.json").unlink(missing_ok=True)
    started = time.monotonic()
    lives, problems = live_all(planned, folder, console, given.at_once)
    failed = summarize(lives, problems, folder, console, time.monotonic() - started)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
