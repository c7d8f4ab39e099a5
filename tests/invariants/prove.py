"""``make prove``: load, kill, restart, replay, and then compare every table with Oracle at several SCNs.

    python -m tests.invariants.prove [--seed N] [--kills N] [--short] [--sabotage NAME]

Exits 0 if nothing was lost or doubled, 1 with what differs otherwise. The load goes on where the prover says so: between the
workers' commands, and while one of them waits at a point. So the seed repeats a run, but for what threads of one worker do side by
side.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.invariants.changelog import KEYS, check_changelog
from tests.invariants.compare import Verdict, compare
from tests.invariants.load import TABLES, Load
from tests.invariants.points import POINTS, Role
from tests.invariants.sabotage import SABOTAGES
from tests.invariants.server import EmbeddedServer, current_scn
from tests.invariants.team import Answer, Team, WorkerFailedError

SHORT_ROWS, LONG_ROWS = 60, 600
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Workers live for a few windows: the second compiler would cost them more than it gives back."""
ATTEMPTS = 3
SHORT_REPLAYED_WINDOWS, REPLAYED_WINDOWS = 2, 60
LONG_KILLS = 60
STATEMENT = "before a statement to Oracle"
COVERED = ("Delta committed, store not", "window in the lake, not recorded")
"""Left out of the short form, where each costs a start of Spark: tests/steps/test_crashes.py ends the process at every commit of
the metadata store, and tests/lake applies a window again that Delta has."""
STANDS = """
SELECT mirror_scn, name FROM tables WHERE mirror_scn >= consistent_scn
 UNION
SELECT w.scn_high, t.name FROM windows w JOIN tables t ON t.source = w.source
 WHERE w.state = 'applied' AND w.inexact IS NULL AND w.scn_high BETWEEN t.consistent_scn AND t.mirror_scn"""
LONG_POINTS = tuple(POINTS)
SHORT_POINTS = tuple(point for point in POINTS if point not in COVERED)
CHUNK_POINTS = tuple(point for point in POINTS if point.startswith("chunk "))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table at one SCN, by the prover's own comparison."""

    scn: int
    table: str
    verdict: Verdict


@dataclass
class Proof:
    """What a run of the prover found. ``comparisons`` are its own, ``reconciled`` is what the pipeline says of itself."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    not_reached: list[str] = field(default_factory=list)
    replayed: int = 0
    comparisons: list[Comparison] = field(default_factory=list)
    reconciled: list[dict[str, Any]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)

    @property
    def differences(self) -> int:
        """Comparisons that found the two sides unequal, over all tables and SCNs."""
        return sum(not one.verdict.is_equal for one in self.comparisons)

    @property
    def disagreements(self) -> list[str]:
        """Where ``reconcile`` and the prover's own comparison do not say the same."""
        own = {(one.scn, one.table): one.verdict.is_equal for one in self.comparisons}
        return [
            f"{table['table']} at SCN {one['scn']}: reconcile and the prover disagree"
            for one in self.reconciled
            for table in one["tables"]
            if own.get((one["scn"], table["table"].rpartition(".")[2]))
            is not (table["differences"] == 0)
        ]

    @property
    def failed(self) -> bool:
        """Was anything lost or doubled, or a kill point never reached?"""
        return bool(self.differences or self.violations or self.disagreements or self.not_reached)


class Prover:
    """One run in a folder of its own, against an embedded Oracle of its own."""

    def __init__(
        self, folder: Path, seed: int, *, is_short: bool, sabotage: str | None, say: Console
    ) -> None:
        self.folder, self.is_short, self.sabotage, self.say = folder, is_short, sabotage, say
        self.random = random.Random(seed)
        self.proof = Proof(seed)
        self.server = EmbeddedServer(folder / "oracle")
        self.comparable: dict[tuple[int, str], None] = {}
        self._part = 0
        self._now, self._since = "start", time.monotonic()

    def run(self, kills: int) -> Proof:
        """Run everything and return the proof."""
        with self.server:
            with self._phase("load"):
                self.connection = self.server.connect()
                self.long_connection = self.server.connect()
                clock = self.server.connect_capture()
                self.load = Load(self.connection, self.proof.seed, lambda: current_scn(clock))
                config = self._configure()
            with Team(config, sabotage=self.sabotage) as self.team:
                with self._phase("load"):
                    self.load.create(SHORT_ROWS if self.is_short else LONG_ROWS)
                    self._keep_open()
                self._snapshot(with_kills=kills > 0)
                for capture_points, apply_point in self._rounds(kills):
                    self._round(capture_points, apply_point)
                if not self.sabotage:
                    self._lost_connection()
                self._finish()
        return self.proof

    # -- events ------------------------------------------------------------------------------------------------------

    def _snapshot(self, *, with_kills: bool) -> None:
        for point in CHUNK_POINTS if with_kills else ():
            if POINTS[point].role == "capture":
                self._kill(point, "snapshot")
            self._load(2)
        self._do("capture", "snapshot")

    def _rounds(self, kills: int) -> Iterator[tuple[Sequence[str] | None, str | None]]:
        """Kill points by role, each once in random order, chunks' first; then more of them as long as there are kills.

        In the short form each round has a kill of the role that has Spark, and those of the other are shared out among them.
        """
        if not kills:
            yield from [((), None)] * 2
            return
        points = SHORT_POINTS if self.is_short else LONG_POINTS
        windows = [point for point in points if point not in CHUNK_POINTS]
        first = [point for point in CHUNK_POINTS if POINTS[point].role == "apply"]
        order = self.random.sample(windows, len(windows))
        order += self.random.choices(windows, k=max(0, kills - len(POINTS)))
        capture = [point for point in order if POINTS[point].role == "capture"]
        apply = [point for point in order if POINTS[point].role == "apply"]
        apply = [*first, *apply]
        if self.is_short:
            capture_shares = (capture[at :: len(apply)] for at in range(len(apply)))
        else:
            capture_shares = ([one] for one in capture)
        yield from zip_longest(capture_shares, apply, fillvalue=None)

    def _round(self, capture_points: Sequence[str] | None, apply_point: str | None) -> None:
        """Load, a window, load in its middle, and kills in either role.

        In the short form one table changes in a round: what a worker does after a kill takes Spark long, for each table.
        """
        self.load.only = self.random.choice(TABLES) if self.is_short else None
        self._load(6)
        self._keep_open()
        for capture_point in capture_points or ():
            self._kill(capture_point, "capture")
            self._load(2)
        self._load_during_capture()
        if apply_point is None:
            self._do("apply", "apply")
        else:
            self._kill(apply_point, "apply")
        self._note_positions()

    def _load_during_capture(self) -> None:
        """Commit right before one of the statements by which windows are planned and read."""
        with self._phase("capture"):
            worker = self.team["capture"]
            answer = worker.ask("capture", meet=STATEMENT, hit=self.random.randint(1, 30))
            if answer.met:
                self._load(2)
                answer = worker.go_on()
        self._expect(answer)

    def _kill(self, point: str, command: str) -> None:
        """Kill the point's worker when it gets there; where it does not, there was too little to do."""
        role, several = POINTS[point].role, POINTS[point].is_per_table and not self.is_short
        with self._phase(f"{role}, killed"):
            for attempt in range(ATTEMPTS):
                hit = self.random.choice((1, 2)) if several and attempt == 0 else 1
                answer = self.team[role].ask(command, meet=point, hit=hit)
                if answer.met:
                    code = self.team[role].kill()
                    assert code == -signal.SIGKILL, code
                    self.team.replace(role)
                    self.proof.kills[point] += 1
                    self.say.print(f"  killed: {point}")
                    return
                self._expect(answer)
                self._load(6)
                if role == "apply":
                    self._do("capture", "capture")
        self.proof.not_reached.append(point)

    def _lost_connection(self) -> None:
        self._load(3)
        self.server.arm("LOST_CONNECTION", sql_contains="V$LOGMNR_CONTENTS", nth=2)
        self._do("capture", "capture")
        self.server.clear_faults()

    def _load(self, steps: int) -> None:
        with self._phase("load"):
            for _ in range(steps):
                self.load.step()

    def _keep_open(self) -> None:
        """One more part of the transaction that stays open over all windows."""
        self.load.long_transaction(self.long_connection, self._part)
        self._part += 1

    def _finish(self) -> None:
        """Take the rest and much of the old once more, then compare at every SCN at which a table was seen to stand."""
        self.load.only = None
        self._load(6)
        self.load.commit_long_transaction(self.long_connection)
        self._do("capture", "capture")
        self._do("apply", "apply")
        self._note_positions()
        if not self.sabotage:
            windows = SHORT_REPLAYED_WINDOWS if self.is_short else REPLAYED_WINDOWS
            done = self._do("apply", "replay", seed=self.proof.seed, windows=windows)
            self.proof.replayed = done
        with self._phase("compare"):
            self.proof.comparisons = [
                self._compare(table, scn) for scn, table in sorted(self.comparable)
            ]
            lake = self.folder / "lake" / "proof"
            last = max(scn for scn, _ in self.comparable)
            self.proof.violations = check_changelog(lake, self.load.committed, last)
        whole = [scn for scn in self._whole() if scn in (min(self._whole()), last)]
        self.proof.reconciled = [self._do("apply", "reconcile", scn=scn) for scn in whole]

    # -- workers -----------------------------------------------------------------------------------------------------

    def _do(self, role: Role, command: str, **arguments: Any) -> Any:
        """Let a worker do something to the end; what is said to pass by itself is tried again."""
        self.say.print(f"  {command}")
        with self._phase(command):
            for _ in range(ATTEMPTS):
                answer = self.team[role].ask(command, **arguments)
                if not answer.is_transient:
                    break
                self.say.print(f"  {command} again after {answer.failed}", style="dim")
        return self._expect(answer)

    def _expect(self, answer: Answer) -> Any:
        if answer.failed is not None:
            raise WorkerFailedError(f"a worker failed: {answer.text[-3000:]}")
        return answer.done

    # -- the lake ----------------------------------------------------------------------------------------------------

    def _note_positions(self) -> None:
        """Remember where each table stands now, and the ends of the windows that it has taken, if it is the image of one SCN
        there."""
        with closing(sqlite3.connect(self.folder / "state.db")) as store:
            rows = store.execute(STANDS).fetchall()
        self.comparable |= {(int(scn), table): None for scn, table in rows}

    def _whole(self) -> list[int]:
        """SCNs at which all tables are compared."""
        scns = Counter(scn for scn, _ in self.comparable)
        return sorted(scn for scn, tables in scns.items() if tables == len(TABLES))

    def _compare(self, table: str, scn: int) -> Comparison:
        [mirror] = (self.folder / "lake" / "proof" / "mirror").glob(f"*.{table.lower()}")
        key = KEYS[table.lower()]
        return Comparison(scn, table, compare(self.connection, table, key, mirror, scn))

    def _configure(self) -> Path:
        owner = self.server.user.upper()
        config = {
            "name": "proof",
            "oracle": {
                "dsn": self.server.dsn, "user": self.server.capture_user, "password": self.server.capture_password,
                "fetch_rows": 100,
            },
            "tables": [{"name": f"{owner}.{table}"} for table in TABLES],
            "capture": {"close_at": "online"},
            "snapshot": {"chunk_rows": 100},
            "landing": {"type": "local", "path": str(self.folder / "landing")},
            "lake": {
                "path": str(self.folder / "lake"), "driver_memory": "1g",
                "spark_config": {"spark.driver.extraJavaOptions": SHORT_LIVED},
            },
            "state": {"url": f"sqlite:///{self.folder}/state.db"},
        }  # fmt: skip
        path = self.folder / "config.json"
        path.write_text(json.dumps(config))
        return path

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Count the block's seconds, without those of phases inside it."""
        outer = self._enter(name)
        try:
            yield
        finally:
            self._enter(outer)

    def _enter(self, name: str) -> str:
        now, before = time.monotonic(), self._now
        self.proof.seconds[before] += now - self._since
        self._now, self._since = name, now
        return before


def prove(
    seed: int,
    *,
    kills: int | None = None,
    short: bool = True,
    sabotage: str | None = None,
    say: Console | None = None,
) -> Proof:
    """Run the prover in a temporary folder.

    Args:
        seed: Repeats the load and the order of the kills.
        kills: How many kills; by default each point once, in the long form :data:`LONG_KILLS`: points of windows come again and
            again then.
        short: Few rows.
        sabotage: A rule to break on purpose; nothing is killed then.
        say: Where to print progress.
    """
    with tempfile.TemporaryDirectory(prefix="redolake-proof-") as folder:
        prover = Prover(
            Path(folder),
            seed,
            is_short=short,
            sabotage=sabotage,
            say=say or Console(quiet=True),
        )
        try:
            return prover.run(0 if sabotage else kills or (len(POINTS) if short else LONG_KILLS))
        except WorkerFailedError as error:
            if not sabotage:
                raise
            # The best outcome for a broken rule: the pipeline notices by itself and stops.
            prover.proof.violations.append(f"the pipeline stopped by itself: {str(error)[-300:]}")
            return prover.proof


def show(proof: Proof, console: Console) -> None:
    """Print a proof as tables."""
    table = Table(title=f"proof with seed {proof.seed}")
    for name in ("SCN", "table", "rows in Oracle", "rows in Delta", "double keys", "only in one"):
        table.add_column(name, justify="left" if name == "table" else "right")
    for one in proof.comparisons:
        found = one.verdict
        numbers = (
            found.rows_oracle,
            found.rows_delta,
            found.double_oracle + found.double_delta,
            found.only_oracle + found.only_delta,
        )
        table.add_row(str(one.scn), one.table, *map(str, numbers))
    console.print(table)
    console.print(
        f"{sum(proof.kills.values())} kills, {proof.replayed} shuffled replays, {proof.differences} unequal tables,"
        f" {len(proof.violations)} illegal walks in the change logs"
    )
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in proof.seconds.items())
    console.print(f"{sum(proof.seconds.values()):.0f} seconds: {parts}")
    for text in [
        *(f"never reached: {point}" for point in proof.not_reached),
        *proof.violations[:20],
        *proof.disagreements,
    ]:
        console.print(f"  {text}", style="red")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=2013)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--sabotage", choices=sorted(SABOTAGES))
    given = parser.parse_args()
    console = Console()
    proof = prove(
        given.seed, kills=given.kills, short=given.short, sabotage=given.sabotage, say=console
    )
    show(proof, console)
    sys.exit(1 if proof.failed else 0)


if __name__ == "__main__":
    main()
