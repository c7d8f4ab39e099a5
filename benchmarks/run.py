"""How fast is it, and compared with what? ``make bench`` runs this.

Runs every benchmark, prints a table and writes ``benchmarks/results.json``. ``--quick`` takes small inputs; ``--only`` names
benchmarks to run. A benchmark that fails stops nothing, is named at the end, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.common import Result

BENCHMARKS = ("decode", "capture", "window_cost", "flights_year", "reconcile", "growth", "sessions")
LOG_WIDTH = 190
RESULTS = Path(__file__).with_name("results.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were asked for; 0 if all ran and gave right results."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small inputs, for small machines")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS)
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=LOG_WIDTH)
    results: list[dict[str, object]] = []
    failed = []
    for name in asked.only:
        console.print(f"[bold]{name}[/] …")
        try:
            found = importlib.import_module(f"benchmarks.{name}").rows(quick=asked.quick)
            results += [as_row(row) for row in found]
        except Exception:  # one benchmark's failure must not hide the others' figures
            console.print(traceback.format_exc(), markup=False, highlight=False)
            failed.append(name)
        asked.output.write_text(json.dumps(results, indent=1) + "\n")
    console.print(table(results))
    console.print(f"Written to {asked.output}")
    if failed:
        console.print(f"[red]Did not run to the end: {', '.join(failed)}[/]")
    return 1 if failed or not all(row["correct"] for row in results) else 0


def as_row(result: Result | Mapping[str, object]) -> dict[str, object]:
    """A result in the form of the file."""
    return result.as_json() if isinstance(result, Result) else dict(result)


def table(results: Sequence[Mapping[str, object]]) -> Table:
    """The results for people."""
    made = Table(title="Benchmarks (ratio above 1: we are better)", title_justify="left")
    for name, justify in (
        ("question", "left"),
        ("ours", "right"),
        ("unit", "left"),
        ("theirs", "right"),
        ("against", "left"),
        ("ratio", "right"),
        ("goal", "right"),
        ("right", "center"),
    ):
        made.add_column(name, justify=justify)  # type: ignore[arg-type]
    for row in results:
        made.add_row(
            str(row["question"]),
            _figure(row["ours"]),
            str(row["unit"]),
            _figure(row["theirs"]),
            str(row["against"]),
            _ratio(row["ratio"], row["goal"]),
            _figure(row["goal"]),
            "[green]yes[/]" if row["correct"] else "[red]no[/]",
        )
    return made


def _figure(value: object) -> str:
    if not isinstance(value, (int, float)):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ratio(ratio: object, goal: object) -> str:
    if not isinstance(ratio, (int, float)):
        return "–"
    text = f"{ratio:.2f}"
    if not isinstance(goal, (int, float)):
        return text
    return f"[green]{text}[/]" if ratio >= goal else f"[yellow]{text}[/]"


if __name__ == "__main__":
    sys.exit(main())
