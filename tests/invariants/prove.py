"""``make prove``: load, kill, restart, replay, and then compare every table with Oracle at several SCNs.

    python -m tests.invariants.prove [--seed N] [--kills N] [--steps N] [--short] [--sabotage NAME]

Exits 0 if nothing was lost or doubled, 1 with what differs otherwise. The seed repeats the load and the order of the kills; which
commit falls into which window depends on time.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.invariants.changelog import KEYS, check_changelog
from tests.invariants.compare import Verdict, compare
from tests.invariants.load import TABLES, Load
from tests.invariants.sabotage import SABOTAGES
from tests.invariants.server import EmbeddedServer, current_scn
from tests.invariants.worker import KILL_POINTS

ROOT = Path(__file__).resolve().parents[2]
WORKER_SECONDS_MAX = 600
PER_TABLE = ("change log committed, mirror not", "Delta committed, store not")
SHORT_ROWS, LONG_ROWS = 60, 600
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Workers live for a few windows: the second compiler would cost them more than it gives back."""
SCNS_COMPARED = 4


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

    @property
    def differences(self) -> int:
        """Comparisons that found the two sides unequal, over all tables and SCNs."""
        return sum(not one.verdict.is_equal for one in self.comparisons)

    @property
    def disagreements(self) -> list[str]:
        """Where ``reconcile`` and the prover's own comparison do not say the same."""
        said = {
            (one["scn"], table["table"].rpartition(".")[2]): table["differences"] == 0
            for one in self.reconciled
            for table in one["tables"]
        }
        return [
            f"{one.table} at SCN {one.scn}: reconcile and the prover disagree"
            for one in self.comparisons
            if said.get((one.scn, one.table)) is not one.verdict.is_equal
        ]

    @property
    def failed(self) -> bool:
        """Was anything lost or doubled, or a kill point never reached?"""
        return bool(self.differences or self.violations or self.disagreements or self.not_reached)


class WorkerFailedError(AssertionError):
    """A worker ended with an error where it should not."""


class Prover:
    """One run in a folder of its own, against an embedded Oracle of its own."""

    def __init__(
        self, folder: Path, seed: int, *, rows: int, sabotage: str | None, say: Console
    ) -> None:
        self.folder, self.seed, self.rows, self.sabotage, self.say = (
            folder,
            seed,
            rows,
            sabotage,
            say,
        )
        self.random = random.Random(seed)
        self.proof = Proof(seed)
        self.server = EmbeddedServer(folder / "oracle")
        self.stop = threading.Event()
        self.load_error: BaseException | None = None

    def run(self, kill_points: list[str], *, settle_steps: int) -> Proof:
        """Run everything and return the proof."""
        with self.server:
            self.connection = self.server.connect()
            self.long_connection = self.server.connect()
            clock = self.server.connect_capture()
            self.load = Load(self.connection, self.seed, lambda: current_scn(clock))
            self.load.create(self.rows)
            self._configure()
            self.load.long_transaction(self.long_connection, 0)
            loader = threading.Thread(target=self._keep_loading, daemon=True)
            loader.start()
            try:
                for point in kill_points:
                    self._kill_at(point)
                self._worker("run")
                if not self.sabotage:
                    self._lost_connection()
            finally:
                self.stop.set()
                loader.join()
            if self.load_error is not None:
                raise self.load_error
            self._finish(settle_steps)
        return self.proof

    def _configure(self) -> None:
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
        (self.folder / "config.json").write_text(json.dumps(config))

    def _keep_loading(self) -> None:
        part = 1
        try:
            while not self.stop.wait(0.05):
                self.load.step()
                if self.random.random() < 0.1:
                    self.load.long_transaction(self.long_connection, part)
                    part += 1
        except BaseException as error:
            self.load_error = error

    def _kill_at(self, point: str) -> None:
        """Start workers until one was killed at the point; a worker that ends well did all there was to do."""
        for attempt in range(3):
            several = (
                attempt == 0 and point in PER_TABLE
            )  # a run has one window with several tables
            hit = str(self.random.choice((1, 2))) if several else "1"
            code, _ = self._worker("run", "--kill", point, "--hit", hit, check=False)
            if code == -signal.SIGKILL:
                self.proof.kills[point] += 1
                return
        self.proof.not_reached.append(point)

    def _lost_connection(self) -> None:
        self.server.arm("LOST_CONNECTION", sql_contains="V$LOGMNR_CONTENTS", nth=2)
        code, _ = self._worker("run", check=False)
        self.say.print(f"  connection lost in a fetch: the run ended with exit code {code}")
        self.server.clear_faults()

    def _finish(self, settle_steps: int) -> None:
        """Compare at several SCNs, after everything was taken once more; a broken rule shows in less."""
        scns = []
        for _ in range(1 if self.sabotage else SCNS_COMPARED - 1):
            for _ in range(settle_steps):
                self.load.step()
            self._worker("run")
            scns.append(self._position())
        self.load.commit_long_transaction(self.long_connection)
        self._worker("run")
        scns.append(self._position())
        if not self.sabotage:
            _, out = self._worker("replay", "--seed", str(self.seed))
            self.proof.replayed = json.loads(out[-1])["replayed"]
        _, out = self._worker("reconcile", "--scn", *map(str, scns))
        self.proof.reconciled = [json.loads(line) for line in out if line.startswith("{")]
        self.proof.comparisons = [self._compare(table, scn) for scn in scns for table in TABLES]
        lake = self.folder / "lake" / "proof"
        self.proof.violations = check_changelog(lake, self.load.committed, scns[-1])

    def _compare(self, table: str, scn: int) -> Comparison:
        [mirror] = (self.folder / "lake" / "proof" / "mirror").glob(f"*.{table.lower()}")
        key = KEYS[table.lower()]
        return Comparison(scn, table, compare(self.connection, table, key, mirror, scn))

    def _position(self) -> int:
        with closing(sqlite3.connect(self.folder / "state.db")) as store:
            [(scn,)] = store.execute("SELECT MIN(mirror_scn) FROM tables")
        return int(scn)

    def _worker(self, *arguments: str, check: bool = True) -> tuple[int, list[str]]:
        command = [
            sys.executable,
            "-m",
            "tests.invariants.worker",
            str(self.folder / "config.json"),
            *arguments,
        ]
        if self.sabotage:
            command += ["--sabotage", self.sabotage]
        started = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=WORKER_SECONDS_MAX,
            check=False,
        )
        self.say.print(
            f"  {' '.join(arguments)}: exit {done.returncode} after {time.monotonic() - started:.1f} s"
        )
        if check and done.returncode != 0:
            raise WorkerFailedError(f"the worker failed: {done.stderr[-3000:]}")
        if done.returncode not in (0, -signal.SIGKILL):
            self.say.print(done.stderr[-1500:], style="dim")
        return done.returncode, done.stdout.splitlines()


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
        kills: How many kills; by default each point once. Without ``short`` points come again and again.
        short: Few rows and steps.
        sabotage: A rule to break on purpose.
        say: Where to print progress.
    """
    points = sorted(KILL_POINTS)
    shuffler = random.Random(seed)
    if sabotage:
        wanted: list[str] = []
    else:
        chunk_points = [point for point in points if "chunk" in point and "log" not in point]
        window_points = [point for point in points if point not in chunk_points]
        more = max(0, (kills or len(points)) - len(points))
        wanted = [
            *chunk_points,
            *shuffler.sample(window_points, len(window_points)),
            *shuffler.choices(window_points, k=more),
        ]
    with tempfile.TemporaryDirectory(prefix="redolake-proof-") as folder:
        prover = Prover(
            Path(folder),
            seed,
            rows=SHORT_ROWS if short else LONG_ROWS,
            sabotage=sabotage,
            say=say or Console(quiet=True),
        )
        try:
            return prover.run(wanted, settle_steps=10 if short else 200)
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
