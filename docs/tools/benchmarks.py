"""What did the newest runs of the benchmarks find? The tables of the benchmarks' page, from
``benchmarks/history``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import Form
from benchmarks.history import FOLDER, newest
from benchmarks.run import BENCHMARKS, figure
from docs.tools.markdown import table


def markdown(folder: Path = FOLDER) -> str:
    """The rows of each benchmark in its newest run, and when that was."""
    runs = newest(BENCHMARKS, Form.NORMAL.value, folder)
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
    rows = [
        _cells(row) for name, run in runs.items() for row in run["rows"] if row["benchmark"] == name
    ]
    names: dict[str, list[str]] = {}
    for name, run in sorted(runs.items(), key=lambda one: str(one[1]["began"]), reverse=True):
        names.setdefault(_sentence(run), []).append(name)
    when = [f"* {sentence}: {_listed(own)}." for sentence, own in names.items()]
    failed = [
        f"* `{name}` did not run to the end: {run['failed'][name]}."
        for name, run in runs.items()
        if name in run["failed"]
    ]
    return "\n\n".join(filter(None, ["\n".join(when), table(head, rows), "\n".join(failed)]))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _sentence(run: Mapping[str, Any]) -> str:
    cores = run["machine"]["cores"]
    return (
        f"run of {run['began'][:10]} on {cores} cores, load {run['load_before']:g} before it began"
    )


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
