"""Which lives must see the bundle, and what do they see?

``python -m tests.mutants.lives kept|delta``, in a tree with broken rules, prints one JSON object:
for each kind of event, what was not answered as it must be; under ``comparison`` what the life left
that is wrong; and under the kind of event in which it stopped, why.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import defaultdict
from typing import Any

from tests.invariants.events import Event
from tests.invariants.points import FENCE, LINK, UNFENCED, LakeKind
from tests.invariants.proof import Proof
from tests.invariants.prove import prove
from tests.mutants.peeling import COMPARISON

SEED = 2013
"""Of a cluster whose windows end where redo was written last."""
EVENTS: dict[LakeKind, tuple[tuple[str, str], ...]] = {
    "kept": (
        *((kind, "") for kind in ("load", "out of order", "leases", "landed again")),
        *((kind, "") for kind in ("damaged file", "damaged manifest", "yesterday's store")),
        *((kind, "") for kind in ("needed log", "hole", "switch in progress", "lagging database")),
        *((kind, "") for kind in ("resetlogs", "no undo")),
        *(("stop", where) for where in (FENCE, LINK)),
        *((kind, "") for kind in ("long", "other instance", "capture", "long", "switch")),
        *((kind, "") for kind in ("capture", "long end", "tpcc", "apply", "shift", "load")),
    ),
    "delta": (
        *(("load", "NOTES"), ("out of order", ""), ("stop", UNFENCED), ("savepoint", "")),
        *(("snapshot", "NOTES"), ("load", "NOTES"), ("capture", ""), ("apply", "")),
        *(("chunks", ""), ("apply", ""), ("leave", "PASSING"), ("capture", "")),
        *(("passing rows", ""), ("truncate", ""), ("come back", ""), ("load", "NOTES")),
    ),
}
TABLES: dict[LakeKind, tuple[str, ...] | None] = {
    "kept": None,
    "delta": ("NOTES", "EVENTS", "PASSING"),
}


def main(lake: LakeKind) -> None:
    """Live, and print what was seen; ends what it has started when it is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the life was told to end"))
    events = [Event(at, kind, what) for at, (kind, what) in enumerate(EVENTS[lake])]
    tables = TABLES[lake]
    options: dict[str, Any] = {} if tables is None else {"tables": tables}
    proof = prove(SEED, events=events, lake=lake, scns_compared=4, **options)
    print(json.dumps(seen_in(proof)))


def seen_in(proof: Proof) -> dict[str, list[str]]:
    """What a life saw, by the kind of event."""
    found = defaultdict(list)
    for one in proof.passed:
        found[one.kind].append(one.what)
    for text in (*proof.differences, *proof.violations):
        found[COMPARISON].append(text)
    if proof.stopped is not None:
        found[proof.stopped_in].append(proof.stopped)
    for text in proof.not_reached:
        found["never reached"].append(text)
    return dict(found)


if __name__ == "__main__":
    main(sys.argv[1])  # type: ignore[arg-type]
