"""What happens in a run of the prover, and in which order? Drawn from a seed, and left out again where a failing run is shortened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.invariants.points import FENCE, LINK, POINTS, UNFENCED, Capture, LakeKind, points_of
from tests.invariants.ways import LEFT_OUT, reads_of

WEIGHTS = {
    "load": 22, "tpcc": 12, "shift": 5, "again": 6, "long": 10, "long end": 4, "other instance": 6, "grow": 2, "truncate": 1,
    "switch": 4, "delete logs": 3, "capture": 12, "apply": 12, "side by side": 8, "chunks": 10, "snapshot": 3,
    "snapshot where": 3, "signal": 3, "leave": 2, "come back": 4, "pause": 2, "resume": 3, "kill at a point": 26,
    "kill at random": 22, "replay": 4, "lost connection": 3, "snapshot too old": 2, "kill Oracle": 2, "lose landing": 1,
    "damage landing": 2, "lose store": 1, "stop": 3, "retire": 2, "short read": 3, "savepoint": 2, "passing rows": 1,
    "out of order": 1, "leases": 1, "landed again": 1, "damaged file": 1, "damaged manifest": 1, "yesterday's store": 1, "needed log": 1,
    "hole": 1, "switch in progress": 1, "lagging database": 1, "resetlogs": 1, "no undo": 1, "late redo": 4, "other DDL": 2,
    "reshape": 2, "partitions": 3,
}  # fmt: skip
SPARK_WEIGHTS = {
    "load": 20, "tpcc": 10, "shift": 4, "again": 4, "long": 6, "long end": 2, "other instance": 3, "grow": 1, "switch": 3,
    "capture": 6, "apply": 8, "chunks": 4, "snapshot": 2, "snapshot where": 1, "signal": 1, "leave": 1, "come back": 2,
    "kill at a point": 5, "kill the JVM": 2, "replay": 4, "stop": 2, "savepoint": 1, "lose landing": 1, "damage landing": 1,
    "out of order": 1, "late redo": 2, "other DDL": 1, "reshape": 1, "maintain": 2, "partitions": 1,
}  # fmt: skip
OFTEN: dict[LakeKind, dict[str, int]] = {
    "kept": {
        "load": 4, "tpcc": 3, "long": 3, "late redo": 3, "short read": 4, "replay": 3, "stop": 3, "grow": 3, "reshape": 5, "other DDL": 1,
        "truncate": 1, "partitions": 2, "snapshot": 2, "snapshot where": 2, "signal": 2, "leave": 2, "come back": 2, "snapshot too old": 1,
        "kill Oracle": 1, "savepoint": 1, "delete logs": 2, "damage landing": 1, "lose landing": 1, "lose store": 1,
        "kill at a point": 18, "kill at random": 16,
    },
    "delta": {
        "load": 4, "tpcc": 2, "late redo": 1, "replay": 3, "stop": 2, "grow": 2, "reshape": 2, "partitions": 1, "snapshot": 1, "kill the JVM": 1, "maintain": 2,
        "kill at a point": 8,
    },
}  # fmt: skip
"""What a long life meets so often at least, however rare its seed would have it."""
LONG_LIFE: dict[LakeKind, int] = {"kept": 150, "delta": 60}
"""So many events has a long life at least."""


STOPS: dict[LakeKind, tuple[str, ...]] = {
    "kept": (FENCE, LINK, "window landed, not recorded"),
    "delta": (FENCE, UNFENCED, "change log committed, mirror not"),
}
"""Where a worker is stopped past its lease."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens. ``number`` is its place in the whole plan, from which its own random numbers come."""

    number: int
    kind: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.number} {self.kind}{': ' if self.what else ''}{self.what}"


def plan(seed: int, count: int, lake: LakeKind, capture: Capture = "logminer") -> list[Event]:
    """The events of a run; each point of its processes is there once at least where there are enough kills, and in a long life each
    kind as often as :data:`OFTEN` says. What another reader than LogMiner does not meet is left out."""
    dice = Random(f"plan {seed}")
    left_out = LEFT_OUT[reads_of(capture, seed)]
    drawn = WEIGHTS if lake == "kept" else SPARK_WEIGHTS
    weights = {kind: weight for kind, weight in drawn.items() if kind not in left_out}
    points = list(points_of(lake, capture))
    often = OFTEN[lake] if count >= LONG_LIFE[lake] else {}
    kinds = [kind for kind, times in often.items() if kind in weights for _ in range(times)]
    kinds += dice.choices(list(weights), list(weights.values()), k=count - len(kinds))
    if often:
        dice.shuffle(kinds)
    kills = [at for at, kind in enumerate(kinds) if kind == "kill at a point"]
    named = dice.sample(points, len(points))
    if lake == "delta":  # the kills are few, and capture's points are met with the other lake
        named.sort(key=lambda point: POINTS[point].role)
    named += dice.choices(points, k=len(kills))
    wanted = dict(zip(kills, named, strict=False))
    stops = dice.choices(STOPS[lake], k=count)
    return [
        Event(at, kind, wanted.get(at, "") or (stops[at] if kind == "stop" else ""))
        for at, kind in enumerate(kinds)
    ]


def parse_numbers(text: str) -> set[int]:
    """Numbers as ``3-9,14``."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def numbers_text(events: Sequence[Event]) -> str:
    """The inverse of :func:`parse_numbers`."""
    numbers = sorted(one.number for one in events)
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in parts)
