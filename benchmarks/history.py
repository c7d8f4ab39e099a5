"""Has a benchmark become dearer since it ran last on such a machine?

Each run is kept in ``benchmarks/history/``, one file by its date. A row is compared with the newest
one of the same name, form and kind of machine, by the CPU seconds of all processes but the
database: seconds on the clock tell more of the machine's neighbours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("history")
DEARER = 1.1
"""More than so many times the CPU seconds of before is shown."""
SECONDS_MIN = 0.05
"""Less than that is in the noise of the clock."""
_MACHINE = ("cores", "processor", "system")


@dataclass(frozen=True, slots=True)
class Regression:
    """A row that costs more than it did."""

    question: str
    before: float
    now: float
    since: str

    def __str__(self) -> str:
        return (
            f"{self.question}: {self.now:.3g} CPU s, {self.before:.3g} before ({self.since}), "
            f"{self.now / self.before - 1:+.0%}"
        )


def path_of(report: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """The file of a run's report."""
    return folder / f"{report['began'].replace(':', '')[:17]}-{report['form']}.json"


def keep(report: Mapping[str, Any], folder: Path = FOLDER) -> None:
    """Put a run's report with the others, or in the place of what was known of it before."""
    folder.mkdir(exist_ok=True)
    path_of(report, folder).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def newest(names: Iterable[str], form: str, folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Of each of these benchmarks that has rows: the newest report of this form with some."""
    reports = [one for one in _earlier(folder) if one["form"] == form]
    found = {}
    for name in names:
        of_it = (one for one in reports if any(row["benchmark"] == name for row in one["rows"]))
        if (report := next(of_it, None)) is not None:
            found[name] = report
    return found


def regressions(report: Mapping[str, Any], folder: Path = FOLDER) -> Iterator[Regression]:
    """The rows of a report that use more CPU seconds than they did in the newest earlier run that
    has them."""
    earlier = [one for one in _earlier(folder) if _is_alike(one, report)]
    for row in _by_name(report).values():
        name = _name(row)
        before = next((found[name] for one in earlier if name in (found := _by_name(one))), None)
        if before is None:
            continue
        then, now = _used(before), _used(row)
        if then and now > DEARER * then and now - then >= SECONDS_MIN:
            since = next(one["began"] for one in earlier if name in _by_name(one))
            yield Regression(row["question"], then, now, since[:10])


def _earlier(folder: Path) -> list[dict[str, Any]]:
    """The reports that are kept, newest first."""
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return sorted(found, key=lambda one: str(one["began"]), reverse=True)


def _is_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    machines = (one["machine"], other["machine"])
    same = all(machines[0].get(name) == machines[1].get(name) for name in _MACHINE)
    return same and one["form"] == other["form"] and one["began"] < other["began"]


def _by_name(report: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """One row for each question: its cost is the same beside each peer."""
    return {_name(row): row for row in report["rows"]}


def _name(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["benchmark"], row["question"]


def _used(row: Mapping[str, Any]) -> float:
    used: Mapping[str, float] = row["cpu_seconds"]
    return sum(spent for name, spent in used.items() if name != "database")
