"""``make prove``: a source lives through everything, and then every table is compared with Oracle at several SCNs.

    python -m tests.invariants.prove [--seed N] [--events N] [--only 3-9,14] [--lake kept|delta] [--lives N] [--sabotage NAME]
        [--capture logminer|openlogreplicator|xstream] [--cluster] [--stage threads|executors] [--result FILE]

With the lake in memory (kept in files) processes are killed and started within a moment, so a minute holds hundreds of events; with
Delta Lake through Spark there are fewer; ``--cluster`` gives that Spark a master and two workers of its own, ``--stage executors`` lets its executors stage every window. Exits 0 if nothing was lost or doubled, 1 with what differs otherwise, and with the shortest
list of events that still shows it.

``--capture`` lets the source read its redo through another reader: what the embedded Oracle tells as OpenLogReplicator would, in
files under an even seed and from its network writer under an odd one, or recordings of LCRs. Events that LogMiner alone meets are
left out (:mod:`tests.invariants.ways`).
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

from rich.console import Console

from tests.invariants.events import Event, numbers_text, parse_numbers, plan
from tests.invariants.life import Life
from tests.invariants.points import Capture, LakeKind
from tests.invariants.proof import Proof, show
from tests.invariants.sabotage import SABOTAGES
from tests.invariants.services import other_services
from tests.invariants.sums import LifeResult, kills_text, sums
from tests.lake.cluster import cluster

EVENTS: dict[LakeKind, int] = {"kept": 100, "delta": 24}
SCNS: dict[LakeKind, int] = {"kept": 24, "delta": 6}
"""At so many of the SCNs at which a table stood it is compared, unless something else is asked for."""
SHRINK_RUNS = 12
SHRINK_SECONDS = 900


def prove(
    seed: int,
    *,
    events: Sequence[Event] | None = None,
    lake: LakeKind = "kept",
    capture: Capture = "logminer",
    sabotage: str | None = None,
    say: Console | None = None,
    with_services: bool = False,
    with_cluster: bool = False,
    on_executors: bool = False,
    **options: Any,
) -> Proof:
    """Run the prover once in a temporary folder.

    Args:
        seed: Repeats the load and what happens.
        events: What happens; by default what the seed plans.
        lake: Delta Lake through Spark, or the lake in memory.
        capture: The reader of its redo.
        sabotage: Rules to break on purpose.
        say: Where to print progress.
        with_services: PostgreSQL as metadata store and S3 as landing.
        with_cluster: Spark as a master and two workers, processes of their own.
        on_executors: Spark's executors stage every window.
        options: See :class:`~tests.invariants.life.Life`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="redolake-proof-", ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        if with_services:
            options["services"] = stack.enter_context(other_services(Path(folder)))
        if with_cluster:
            options["spark"] = stack.enter_context(cluster(Path(folder) / "spark")).url
        happening = plan(seed, EVENTS[lake], lake, capture) if events is None else events
        return Life(
            Path(folder),
            seed,
            happening,
            lake=lake,
            capture=capture,
            sabotage=sabotage,
            say=say,
            on_executors=on_executors,
            **{"scns_compared": SCNS[lake]} | options,
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
    parser.add_argument("--capture", choices=get_args(Capture), default="logminer")
    parser.add_argument("--services", action="store_true", help="PostgreSQL and S3")
    parser.add_argument(
        "--cluster", action="store_true", help="Spark as a master and two workers (--lake delta)"
    )
    parser.add_argument(
        "--stage", choices=("threads", "executors"), default="threads", help="(--lake delta)"
    )
    parser.add_argument("--sabotage", choices=sorted(SABOTAGES))
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--result", type=Path, help="where the last life's result goes, as JSON")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the prover was told to end"))
    if (given.cluster or given.stage == "executors") and given.lake != "delta":
        parser.error("--cluster and --stage executors need --lake delta")
    console = Console(highlight=False)
    lives: list[LifeResult] = []
    for seed in _seeds(given.seed, given.lives, given.minutes):
        events = plan(seed, given.events or EVENTS[given.lake], given.lake, given.capture)
        if given.only:
            events = [one for one in events if one.number in parse_numbers(given.only)]

        def run(chosen: Sequence[Event], seed: int = seed) -> Proof:
            return prove(
                seed, events=chosen, lake=given.lake, capture=given.capture, sabotage=given.sabotage,
                with_services=given.services, with_cluster=given.cluster, on_executors=given.stage == "executors", say=console if given.lives == 1 else None,
            )  # fmt: skip

        proof = run(events)
        show(proof, console)
        shrunk = ""
        if _is_wrong(proof) and not given.no_shrink:
            shrunk = _shrunk(seed, events, lambda chosen: _is_wrong(run(chosen)), console)
        lives.append(
            LifeResult.of(proof, given.lake, given.capture, services=given.services, shrunk=shrunk)
        )
        if given.result:
            lives[-1].write(given.result)
        if proof.faults:
            break
    _show_sums(lives, console)
    sys.exit(1 if any(one.faults for one in lives) else 0)


def _is_wrong(proof: Proof) -> bool:
    """A point that is not reached with fewer events is no fault of theirs."""
    return len(proof.faults) > len(proof.not_reached)


def _seeds(first: int, lives: int, minutes: float) -> Iterator[int]:
    until = time.monotonic() + 60 * minutes
    seed = first
    while seed < first + lives or time.monotonic() < until:
        yield seed
        seed += 1


def _shrunk(
    seed: int,
    events: Sequence[Event],
    fails: Callable[[Sequence[Event]], bool],
    console: Console,
) -> str:
    """Shorten and say how; returns what repeats the failure."""
    short = shrink(events, fails)
    text = (
        f"{len(short)} of {len(events)} events still show it: --seed {seed} --events {len(events)}"
        f" --only {numbers_text(short)}"
    )
    console.print(f"seed {seed}: {text}", style="red", soft_wrap=True)
    for one in short:
        console.print(f"  {one}", markup=False)
    return text


def _show_sums(lives: Sequence[LifeResult], console: Console) -> None:
    """One line for all."""
    minutes = sum(one.seconds for one in lives) / 60
    console.print(
        f"{len(lives)} lives (seeds {lives[0].seed} to {lives[-1].seed}): "
        + ", ".join(f"{number} {name}" for name, number in sums(lives).items())
        + f"; {minutes:.1f} minutes",
        soft_wrap=True,
    )
    console.print(f"kills: {kills_text(lives)}", soft_wrap=True)


if __name__ == "__main__":
    main()
