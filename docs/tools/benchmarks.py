"""What did the newest benchmark run find? The tables of the benchmarks' page, from
``benchmarks/results.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.run import figure
from docs.tools.markdown import table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results.json"


def markdown() -> str:
    """The run, and its rows."""
    run = json.loads(RESULTS.read_text())
    head = (
        "Question",
        "Redolake",
        "Compared with",
        "Ratio",
        "Goal",
        "CPU seconds",
        "Load",
        "Right",
    )
    rows = [_cells(row) for row in run["rows"]]
    return "\n\n".join([_sentence(run), table(head, rows), *_failed(run["failed"])])


def _sentence(run: Mapping[str, Any]) -> str:
    machine = run["machine"]
    when = "" if run["began"] is None else f" of {run['began'][:10]}"
    took = "" if run["minutes"] is None else f", {run['minutes']:g} minutes"
    before = "" if run["load_before"] is None else f", load {run['load_before']:g} before it began"
    return f"The {run['form']} run{when} on {machine['cores']} cores{took}{before}."


def _cells(row: Mapping[str, Any]) -> list[str]:
    used = ", ".join(
        f"{name} {figure(spent)}" for name, spent in row["cpu_seconds"].items() if spent
    )
    ends = row.get("spread", {}).get("cpu_seconds")
    if ends:
        used += f" ({figure(ends[0])}–{figure(ends[1])} in all, {row['runs']} runs)"
    return [
        row["question"] + (" (warm)" if row["warm"] else ""),
        f"{figure(row['ours'])} {row['unit']}",
        row["against"] if row["theirs"] is None else f"{row['against']}: {figure(row['theirs'])}",
        figure(row["ratio"]),
        figure(row["goal"]),
        used or "–",
        figure(row["load"]),
        "yes" if row["correct"] else "**no**",
    ]


def _failed(failed: Mapping[str, str]) -> list[str]:
    return [f"* `{name}` did not run to the end: {reason}." for name, reason in failed.items()]
