"""What does `redolake certify` ask? Listed from the probes themselves."""

from __future__ import annotations

from collections.abc import Sequence

from diagnosis.certify import PROBES, Level, Probe
from docs.tools.markdown import code, table

_LEVELS = {
    Level.LOOK: "Queries of the dictionary and of V$ views: some seconds, no load.",
    Level.MINE: "One pass of LogMiner over the two newest logs of each thread. The captured tables' rows are decoded and counted; "
    "nothing lands.",
    Level.TRY: "In a schema that you name, each probe has a table of its own, `REDOLAKE_CERTIFY_1` and so on. "
    "All are changed, their redo is read in one pass, and they are dropped.",
}


def markdown() -> str:
    """One table per level; a number for each subject in front."""
    parts = [_counted()]
    for level, probes in PROBES.items():
        parts += [f"## Level `{level}`", _LEVELS[level], _listed(probes)]
    return "\n\n".join(parts)


def _counted() -> str:
    counts: dict[str, int] = {}
    for probes in PROBES.values():
        for probe in probes:
            counts[probe.subject] = counts.get(probe.subject, 0) + 1
    listed = ", ".join(f"{count} about {code(subject)}" for subject, count in counts.items())
    return f"There are {sum(counts.values())} probes: {listed}."


def _listed(probes: Sequence[Probe]) -> str:
    rows = [
        (
            code(one.id),
            one.belief if one.is_needed else f"*{one.belief}*",
            one.depends,
            one.otherwise,
            one.source,
        )
        for one in probes
    ]
    return table(("probe", "belief", "depends on it", "if it is otherwise", "source"), rows)
