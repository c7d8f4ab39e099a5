"""What did a certification find, and how is it written down?

The report has no value and no name of the user's: verdicts say what a database showed in counts,
codes and Oracle's own words. It can be sent to whoever maintains Redolake.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from diagnosis.certify.probes import Level, Outcome, Probe, Verdict

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Found:
    """A probe with its verdict."""

    probe: Probe
    verdict: Verdict

    @property
    def is_wrong(self) -> bool:
        """Does Redolake rest on something that is not so?"""
        return self.probe.is_needed and self.verdict.outcome is Outcome.OTHERWISE


@dataclass(frozen=True, slots=True)
class Report:
    """What each probe of the chosen levels found, in their order."""

    levels: tuple[Level, ...]
    found: tuple[Found, ...]

    @property
    def is_certified(self) -> bool:
        """Is nothing that Redolake rests on refuted?"""
        return not any(one.is_wrong for one in self.found)

    def counts(self) -> Counter[Outcome]:
        """How many probes have each outcome."""
        return Counter(one.verdict.outcome for one in self.found)

    def facts(self) -> dict[str, str | int]:
        """All facts of the verdicts, by name."""
        return {name: fact for one in self.found for name, fact in one.verdict.facts.items()}

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object: these keys stay as they are."""
        return {
            "format": FORMAT,
            "levels": [str(level) for level in self.levels],
            "certified": self.is_certified,
            "counts": {str(outcome): self.counts()[outcome] for outcome in Outcome},
            "facts": self.facts(),
            "warts": _warts(self.found),
            "probes": [_probe_json(one) for one in self.found],
        }

    def text(self) -> str:
        """:meth:`as_json` as the text of a file."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"


def _warts(found: Iterable[Found]) -> dict[str, bool]:
    """Which warts of LogMiner the database showed, and which it did not; what no probe could tell
    is left out."""
    shown: dict[str, bool] = {}
    for one in found:
        wart, outcome = one.probe.wart, one.verdict.outcome
        if wart is not None and outcome is not Outcome.CANNOT_TELL:
            shown[wart] = outcome is Outcome.HOLDS
    return shown


def _probe_json(one: Found) -> dict[str, Any]:
    probe, verdict = one.probe, one.verdict
    return {
        "id": probe.id,
        "belief": probe.belief,
        "needed": probe.is_needed,
        "outcome": str(verdict.outcome),
        "seen": verdict.seen,
        "depends": probe.depends,
        "otherwise": probe.otherwise,
    }
