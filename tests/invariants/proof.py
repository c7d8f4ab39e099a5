"""What has a run of the prover found?"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.invariants.compare import Verdict
from tests.invariants.events import Event, numbers_text


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table at one SCN, by the prover's own comparison."""

    scn: int
    table: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Passed:
    """In an event of this kind (and of what it asked for), something was not answered as it must be."""

    kind: str
    what: str


@dataclass
class Proof:
    """``happened`` counts events that took place by kind, ``kills`` by point. ``comparisons`` are the prover's own, ``reconciled``
    is what the pipeline says of itself; ``replayed`` counts windows and chunks; ``late`` are windows with redo that came late, where
    landing is a folder, and windows of which commits came to light later; ``states`` those of histories; ``violations`` are illegal walks, wrong counts and inconsistent mirrors; ``consistent``
    counts SCNs at which TPC-C's conditions were asked, ``read_for_marks`` files that were searched for values that are not captured. ``passed`` is what was not refused although it must be, or is refused as
    something else. ``stopped`` is why the run did not come to its end, ``stopped_in`` in which kind of event."""

    seed: int
    events: list[Event]
    happened: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    not_reached: list[str] = field(default_factory=list)
    replayed: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    comparisons: list[Comparison] = field(default_factory=list)
    consistent: int = 0
    read_for_marks: int = 0
    reconciled: list[dict[str, Any]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    stopped: str | None = None
    stopped_in: str = ""
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def let_pass(self, kind: str, what: str) -> None:
        """Note what was not answered as it must be."""
        self.passed.append(Passed(kind, what))

    @property
    def differences(self) -> list[str]:
        """Comparisons that found the two sides unequal, over all tables and SCNs."""
        return [
            f"{one.table} at SCN {one.scn}: {one.verdict}"
            for one in self.comparisons
            if not one.verdict.is_equal
        ]

    @property
    def disagreements(self) -> list[str]:
        """Where ``reconcile`` and the prover's own comparison do not say the same."""
        own = {(one.scn, one.table): one.verdict.is_equal for one in self.comparisons}
        return [
            f"{table['table']} at SCN {one['scn']}: reconcile and the prover disagree"
            for one in self.reconciled
            for table in one["tables"]
            if own.get((one["scn"], table["table"].partition(".")[2].strip('"')))
            is not (table["differences"] == 0)
        ]

    @property
    def faults(self) -> list[str]:
        """All that is wrong, as text without values; empty if nothing was lost or doubled and each point was met."""
        return [
            *([self.stopped] if self.stopped else []),
            *(f"unequal: {text}" for text in self.differences),
            *self.violations,
            *(f"{one.kind}: {one.what}" for one in self.passed),
            *self.disagreements,
            *(f"never reached: {point}" for point in self.not_reached),
        ]


def counted(times: Counter[str]) -> str:
    """What happened how often, as text."""
    return ", ".join(f"{name} {number}" for name, number in sorted(times.items())) or "none"


def show(proof: Proof, console: Console) -> None:
    """Print a proof."""
    table = Table(title=f"proof with seed {proof.seed}")
    for name in (
        "table",
        "SCNs compared",
        "rows, least",
        "rows, most",
        "double keys",
        "only in one",
    ):
        table.add_column(name, justify="left" if name == "table" else "right")
    for name in dict.fromkeys(one.table for one in proof.comparisons):
        found = [one.verdict for one in proof.comparisons if one.table == name]
        rows = [one.rows_oracle for one in found]
        double = sum(one.double_oracle + one.double_delta for one in found)
        only = sum(one.only_oracle + one.only_delta for one in found)
        table.add_row(name, *map(str, (len(found), min(rows), max(rows), double, only)))
    console.print(table)
    console.print(f"{proof.happened.total()} events: {counted(proof.happened)}", soft_wrap=True)
    console.print(f"{proof.kills.total()} kills: {counted(proof.kills)}", soft_wrap=True)
    console.print(
        f"shuffled replays of {counted(proof.replayed)}; late: {counted(proof.late)}; states of histories: {counted(proof.states)}; {len(proof.comparisons)} comparisons, {len(proof.differences)} unequal,"
        f" TPC-C's conditions at {proof.consistent} SCNs, {proof.read_for_marks} files searched for excluded values,"
        f" {len(proof.violations)} violations",
        soft_wrap=True,
    )
    parts = ", ".join(
        f"{name} {seconds:.0f}" for name, seconds in Counter(proof.seconds).most_common(12)
    )
    console.print(f"{sum(proof.seconds.values()):.0f} seconds: {parts}", soft_wrap=True)
    for text in proof.faults[:20]:
        console.print(f"  {text}", style="red", markup=False, soft_wrap=True)
    if proof.faults:
        console.print(f"  events: {numbers_text(proof.events)}", style="red", soft_wrap=True)
