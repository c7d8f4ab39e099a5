"""What have several lives met, and is that enough? Each life is a JSON file, so a long run can be taken up again and looked at later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from tests.invariants.points import Capture, LakeKind, points_of
from tests.invariants.proof import Proof, counted

AD_HOC = ("snapshot", "snapshot where", "signal")
OF_DDL = ("grow", "reshape", "truncate", "partitions", "other DDL")
AT_RANDOM = "at random"
ENOUGH: Mapping[str, int] = {
    "kills": 200,
    "kills at random": 60,
    "kills at points, of Oracle and of the JVM": 100,
    "replays": 50,
    "two workers, one stopped": 15,
    "DDL": 15,
    "ad hoc snapshots": 30,
    "windows with late redo": 10,
    "windows with late commits": 6,
    "comparisons": 1500,
    "SCNs at which TPC-C's conditions hold": 60,
}
"""What the long form meets at least, over all its lives."""
ROWS_MIN = 10
"""So many rows has every table whenever it is compared: a table that is nearly empty shows nothing."""
SCNS_MIN = 2
"""At so many SCNs is each table of a life compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeResult:
    """What one life met and found, as text without values. ``compared`` has for each table the number of its SCNs and the least number of
    rows; ``shrunk`` repeats a failure with few events."""

    seed: int
    lake: LakeKind
    services: bool
    planned: int
    happened: dict[str, int]
    kills: dict[str, int]
    replayed: dict[str, int]
    late: dict[str, int]
    comparisons: int
    compared: dict[str, list[int]]
    differences: int
    consistent: int
    seconds: float
    faults: list[str]
    shrunk: str = ""
    capture: Capture = "logminer"

    @classmethod
    def of(
        cls, proof: Proof, lake: LakeKind, capture: Capture, *, services: bool, shrunk: str = ""
    ) -> Self:
        """The result of a proof."""
        return cls(
            seed=proof.seed,
            lake=lake,
            services=services,
            planned=len(proof.events),
            happened=dict(proof.happened),
            kills=dict(proof.kills),
            replayed=dict(proof.replayed),
            late=dict(proof.late),
            comparisons=len(proof.comparisons),
            compared=_compared(proof),
            differences=len(proof.differences),
            consistent=proof.consistent,
            seconds=round(sum(proof.seconds.values()), 1),
            faults=proof.faults,
            shrunk=shrunk,
            capture=capture,
        )

    @classmethod
    def read(cls, path: Path) -> Self:
        """The inverse of :meth:`write`."""
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        """Write it whole or not at all."""
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(self), indent=1))
        scratch.replace(path)

    @property
    def name(self) -> str:
        """Lake and seed."""
        services = " with PostgreSQL and S3" if self.services else ""
        reader = "" if self.capture == "logminer" else f" through {self.capture}"
        return f"{self.lake}{services}{reader}, seed {self.seed}"


def sums(lives: Sequence[LifeResult]) -> dict[str, int]:
    """What all lives met, by the names of :data:`ENOUGH`, and what they found."""
    happened, kills = _counted(one.happened for one in lives), _counted(one.kills for one in lives)
    late = _counted(one.late for one in lives)
    at_random = sum(times for name, times in kills.items() if name.endswith(AT_RANDOM))
    return {
        "events": happened.total(),
        "kills": kills.total(),
        "kills at random": at_random,
        "kills at points, of Oracle and of the JVM": kills.total() - at_random,
        "replays": _counted(one.replayed for one in lives).total(),
        "two workers, one stopped": happened["stop"],
        "DDL": sum(happened[kind] for kind in OF_DDL),
        "ad hoc snapshots": sum(happened[kind] for kind in AD_HOC),
        "windows with late redo": late["windows with late redo"],
        "windows with late commits": late["windows that a late commit belongs to"],
        "comparisons": sum(one.comparisons for one in lives),
        "SCNs at which TPC-C's conditions hold": sum(one.consistent for one in lives),
        "differences": sum(one.differences for one in lives),
        "faults": sum(len(one.faults) for one in lives),
    }


def lacking(found: Mapping[str, int], wanted: Mapping[str, int] = ENOUGH) -> list[str]:
    """What was met too rarely."""
    return [
        f"too few: {name}: {found[name]} of {least}"
        for name, least in wanted.items()
        if found[name] < least
    ]


def not_hit(lives: Sequence[LifeResult]) -> list[str]:
    """Points at which no life with their lake was killed; what captures is the same with each lake."""
    hit = _counted(one.kills for one in lives)
    points = {name for one in lives for name in points_of(one.lake, one.capture)}
    return [f"never killed at: {name}" for name in sorted(points) if not hit[name]]


def thin(one: LifeResult) -> list[str]:
    """Tables of which a life's comparisons say little."""
    return [
        f"{table} was compared at {times} SCNs with {rows} rows at least"
        for table, (times, rows) in one.compared.items()
        if times < SCNS_MIN or rows < ROWS_MIN
    ]


def kills_text(lives: Sequence[LifeResult]) -> str:
    """How often each point was hit, over all lives."""
    return counted(_counted(one.kills for one in lives))


def events_text(lives: Sequence[LifeResult]) -> str:
    """How often each kind of event took place, over all lives."""
    return counted(_counted(one.happened for one in lives))


def markdown(lives: Sequence[LifeResult], failed: Sequence[str], minutes: float) -> str:
    """A page: the sums, each life, and what is wrong."""
    found = sums(lives)
    lines = [
        f"# {len(lives)} lives, {found['differences']} differences, {len(failed)} faults, {minutes:.1f} minutes",
        "",
        "| met | times |",
        "|---|---|",
        *(f"| {name} | {number} |" for name, number in found.items()),
        "",
        "| life | events | kills | replays | comparisons | differences | faults | minutes |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(one) for one in lives),
        "",
        f"Kills: {kills_text(lives)}.",
        "",
        f"Events: {events_text(lives)}.",
        *(f"\n* {text}" for text in failed),
    ]
    return "\n".join(lines) + "\n"


def _row(one: LifeResult) -> str:
    numbers = (
        sum(one.happened.values()), sum(one.kills.values()), sum(one.replayed.values()), one.comparisons, one.differences,
        len(one.faults), f"{one.seconds / 60:.1f}",
    )  # fmt: skip
    return f"| {one.name} | {' | '.join(map(str, numbers))} |"


def _compared(proof: Proof) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in proof.comparisons:
        found.setdefault(one.table, []).append(one.verdict.rows_oracle)
    return {table: [len(rows), min(rows)] for table, rows in found.items()}


def _counted(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total
