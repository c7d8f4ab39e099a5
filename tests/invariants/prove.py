"""``make prove``: a source lives through everything, and then every table is compared with Oracle at several SCNs.

    python -m tests.invariants.prove [--seed N] [--events N] [--only 3-9,14] [--lake kept|delta] [--lives N] [--sabotage NAME]

With the lake in memory (kept in files) processes are killed and started within a moment, so a minute holds hundreds of events; with
Delta Lake through Spark there are fewer. Exits 0 if nothing was lost or doubled, 1 with what differs otherwise, and with the shortest
list of events that still shows it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.invariants.events import Event, numbers_text, parse_numbers, plan
from tests.invariants.life import Life
from tests.invariants.points import LakeKind
from tests.invariants.proof import Proof, counted, show
from tests.invariants.sabotage import SABOTAGES
from tests.invariants.services import other_services

EVENTS: dict[LakeKind, int] = {"kept": 100, "delta": 24}
AD_HOC = ("snapshot", "snapshot where", "signal")
SHRINK_RUNS = 12
SHRINK_SECONDS = 900


def prove(
    seed: int,
    *,
    events: Sequence[Event] | None = None,
    lake: LakeKind = "kept",
    sabotage: str | None = None,
    say: Console | None = None,
    with_services: bool = False,
    **options: Any,
) -> Proof:
    """Run the prover once in a temporary folder.

    Args:
        seed: Repeats the load and what happens.
        events: What happens; by default what the seed plans.
        lake: Delta Lake through Spark, or the lake in memory.
        sabotage: Rules to break on purpose.
        say: Where to print progress.
        with_services: PostgreSQL as metadata store and S3 as landing.
        options: See :class:`~tests.invariants.life.Life`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="redolake-proof-", ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        if with_services:
            options["services"] = stack.enter_context(other_services(Path(folder)))
        happening = plan(seed, EVENTS[lake], lake) if events is None else events
        return Life(
            Path(folder), seed, happening, lake=lake, sabotage=sabotage, say=say, **options
        ).run()


def shrink(
    events: Sequence[Event], fails: Callable[[Sequence[Event]], bool], runs: int = SHRINK_RUNS
) -> list[Event]:
    """A shorter list of events that fails as well: ever smaller parts are left out, as long as runs and time last."""
    found, size = list(events), max(1, len(events) // 2)
    until = time.monotonic() + SHRINK_SECONDS
    while runs and size and time.monotonic() < until:
        for at in range(0, len(found), size):
            shorter = found[:at] + found[at + size :]
            if not runs or not shorter:
                break
            runs -= 1
            if fails(shorter):
                found = shorter
                break
        else:
            size //= 2
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=2013, help="of the first life")
    parser.add_argument("--lives", type=int, default=1, help="so many, each with the next seed")
    parser.add_argument("--minutes", type=float, default=0, help="or as many as begin within these")
    parser.add_argument("--events", type=int, help="how many in a life")
    parser.add_argument("--only", default="", help="numbers of the events that happen, as 3-9,14")
    parser.add_argument("--lake", choices=("kept", "delta"), default="kept")
    parser.add_argument("--services", action="store_true", help="PostgreSQL and S3")
    parser.add_argument("--sabotage", choices=sorted(SABOTAGES))
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args()
    console = Console(highlight=False)
    total = _Total(console)
    for seed in _seeds(given.seed, given.lives, given.minutes):
        events = plan(seed, given.events or EVENTS[given.lake], given.lake)
        if given.only:
            events = [one for one in events if one.number in parse_numbers(given.only)]

        def run(chosen: Sequence[Event], seed: int = seed) -> Proof:
            return prove(
                seed, events=chosen, lake=given.lake, sabotage=given.sabotage,
                with_services=given.services, say=console if given.lives == 1 else None,
            )  # fmt: skip

        proof = run(events)
        show(proof, console)
        total.add(proof)
        if proof.faults and not given.no_shrink:
            _show_shrunk(seed, events, lambda chosen: _is_wrong(run(chosen)), console)
        if proof.faults:
            break
    total.show()
    sys.exit(1 if total.faults else 0)


def _is_wrong(proof: Proof) -> bool:
    """A point that is not reached with fewer events is no fault of theirs."""
    return len(proof.faults) > len(proof.not_reached)


def _seeds(first: int, lives: int, minutes: float) -> Iterator[int]:
    until = time.monotonic() + 60 * minutes
    seed = first
    while seed < first + lives or time.monotonic() < until:
        yield seed
        seed += 1


def _show_shrunk(
    seed: int,
    events: Sequence[Event],
    fails: Callable[[Sequence[Event]], bool],
    console: Console,
) -> None:
    short = shrink(events, fails)
    console.print(
        f"seed {seed}: {len(short)} of {len(events)} events still show it: --seed {seed}"
        f" --events {len(events)} --only {numbers_text(short)}",
        style="red",
        soft_wrap=True,
    )
    for one in short:
        console.print(f"  {one}", markup=False)


class _Total:
    """Sums over lives."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._proofs: list[Proof] = []

    def add(self, proof: Proof) -> None:
        self._proofs.append(proof)

    @property
    def faults(self) -> int:
        return sum(len(proof.faults) for proof in self._proofs)

    def show(self) -> None:
        """One line for all."""
        proofs = self._proofs
        seeds = [proof.seed for proof in proofs]
        happened = sum((proof.happened for proof in proofs), Counter[str]())
        kills = sum((proof.kills for proof in proofs), Counter[str]())
        at_random = sum(times for name, times in kills.items() if name.endswith("at random"))
        sums = {
            "events": happened.total(),
            "kills": kills.total(),
            "at random": at_random,
            "at points and of Oracle or the JVM": kills.total() - at_random,
            "two workers, one stopped": happened["stop"],
            "of DDL": happened["grow"] + happened["truncate"],
            "ad hoc snapshots": sum(happened[kind] for kind in AD_HOC),
            "comparisons": sum(len(proof.comparisons) for proof in proofs),
            "unequal": sum(len(proof.differences) for proof in proofs),
            "faults": self.faults,
        }
        self._console.print(
            f"{len(proofs)} lives (seeds {seeds[0]} to {seeds[-1]}): "
            + ", ".join(f"{number} {name}" for name, number in sums.items())
            + f"; replays: {counted(sum((proof.replayed for proof in proofs), Counter()))}"
            + f"; late: {counted(sum((proof.late for proof in proofs), Counter()))};"
            f" {sum(sum(proof.seconds.values()) for proof in proofs) / 60:.1f} minutes",
            soft_wrap=True,
        )
        self._console.print(f"kills: {counted(kills)}", soft_wrap=True)


if __name__ == "__main__":
    main()
