"""How fast is it, and compared with what? ``make bench`` runs this.

Each benchmark runs in a process of its own, one after the other, has so many seconds, and is ended
with all that it started when they are over. What it found until then counts. Rows are printed as a
table, and kept as a run in ``benchmarks/history/``, from which ``docs/reference/benchmarks.md`` is
made: of each benchmark the newest run. Rows are named that use a tenth more CPU seconds than in the
one before. ``--quick`` takes small inputs, ``--long`` the largest; ``--only`` names
benchmarks. One that fails stops nothing, is named at the end, and makes the exit code 1, and so
does a row whose result is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import Form, Result
from benchmarks.history import FOLDER, keep, path_of, regressions

BENCHMARKS: Mapping[str, int] = {
    "windows": 720,
    "merging": 1200,
    "in_dagster": 1200,
    "window_cost": 180,
    "snapshot": 300,
    "growth": 360,
    "behind": 240,
    "behind_s3": 240,
    "executors": 240,
    "large_mirror": 300,
    "large_snapshot": 420,
    "cluster_backfill": 300,
    "large_transaction": 180,
    "by_hand": 180,
    "capture": 180,
    "decode": 180,
    "streams": 240,
    "lobs": 120,
    "sessions": 180,
    "chunk_sessions": 180,
    "chunk_files": 120,
    "many_tables": 480,
    "reconcile": 180,
    "flights_year": 600,
}
"""Each with the seconds that it may take in its normal form. A quiet machine of two cores takes
about half of them."""
LONG_ALONE = ("flights_year",)
"""In the long form alone, unless it is named."""
LONG_TIMES = 8
"""So many times as long may each of them take in its long form."""
MINUTES = 75
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "benchmarks."
_LOG_WIDTH = 190
_TO_END_SECONDS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were asked for; 0 if all ran and gave right results."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    forms = parser.add_mutually_exclusive_group()
    for form in (Form.QUICK, Form.LONG):
        forms.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default=Form.NORMAL
        )
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS))
    parser.add_argument("--history", type=Path, help="the folder of all runs", default=FOLDER)
    parser.add_argument("--minutes", type=float, help="end after so many minutes", default=None)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.measure:
        return _measure(asked.measure, asked.form, asked.output)
    usual_minutes = MINUTES * (LONG_TIMES if asked.form is Form.LONG else 1)
    minutes = usual_minutes if asked.minutes is None else asked.minutes
    console = Console()
    if not console.is_terminal:
        console = Console(width=_LOG_WIDTH)
    usual = [name for name in BENCHMARKS if asked.form is Form.LONG or name not in LONG_ALONE]
    report = _run_all(asked.only or usual, asked.form, 60 * minutes, asked.history, console)
    console.print(table(report["rows"]))
    console.print(f"Written to {path_of(report, asked.history)}")
    for one in regressions(report, asked.history):
        console.print(f"[yellow]Dearer:[/] {one}", highlight=False, soft_wrap=True)
    for name, reason in report["failed"].items():
        console.print(f"[red]Did not run to the end: {name}[/] ({reason})", highlight=False)
    return 1 if report["failed"] or not all(row["correct"] for row in report["rows"]) else 0


def _run_all(
    names: Sequence[str], form: Form, seconds: float, history: Path, console: Console
) -> dict[str, Any]:
    """Run one after the other; what is found is written after each."""
    began = time.monotonic()
    report: dict[str, Any] = {
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "form": form.value,
        "machine": _machine(),
        "load_before": round(os.getloadavg()[0], 2),
        "rows": [],
        "failed": {},
    }
    for name in names:
        left = seconds - (time.monotonic() - began)
        seconds_max = min(left, BENCHMARKS[name] * (LONG_TIMES if form is Form.LONG else 1))
        console.print(f"[bold]{name}[/] …")
        started = time.monotonic()
        rows, failure = _run_one(name, form, seconds_max) if left > 0 else ([], "no time was left")
        report["rows"] += [{"benchmark": name, **row} for row in rows]
        if failure is not None:
            report["failed"][name] = failure
        console.print(f"  {len(rows)} rows in {time.monotonic() - started:.0f} s")
        report["minutes"] = round((time.monotonic() - began) / 60, 1)
        keep(report, history)
    return report


def _run_one(name: str, form: Form, seconds_max: float) -> tuple[list[dict[str, Any]], str | None]:
    """Rows of one benchmark, and why it did not run to the end; it runs in a session of its own, so
    that all of it can be ended."""
    with TemporaryDirectory() as folder:
        found = Path(folder) / "rows"
        command = [sys.executable, "-m", "benchmarks.run", "--measure", PACKAGE + name]
        command += ["--output", str(found)]
        if form is not Form.NORMAL:
            command.append(f"--{form}")
        environment = {**os.environ, "TMPDIR": folder}
        child = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
        failure = None
        try:
            code = child.wait(seconds_max)
            failure = None if code == 0 else f"exit code {code}"
        except subprocess.TimeoutExpired:
            failure = f"not done after {seconds_max:.0f} s"
        finally:
            _end(child)
        lines = found.read_text().splitlines() if found.exists() else []
        return [json.loads(line) for line in lines], failure


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the process and all of its session."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_TO_END_SECONDS)
            return


def _measure(name: str, form: Form, output: Path) -> int:
    """In the process of one benchmark: write each of its rows as it is found."""
    try:
        with output.open("a") as file:
            for row in importlib.import_module(name).rows(form):
                file.write(json.dumps(as_row(row)) + "\n")
                file.flush()
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return 1
    return 0


def as_row(result: Result | Mapping[str, object]) -> dict[str, object]:
    """A result in the form of the file."""
    return result.as_json() if isinstance(result, Result) else dict(result)


def _machine() -> dict[str, object]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory),
        "system": platform.system(),
        "processor": platform.machine(),
        "python": platform.python_version(),
    }


def table(results: Sequence[Mapping[str, Any]]) -> Table:
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
        ("CPU s", "right"),
        ("load", "right"),
        ("right", "center"),
    ):
        made.add_column(name, justify=justify)  # type: ignore[arg-type]
    for row in results:
        used = row["cpu_seconds"].values()
        made.add_row(
            str(row["question"]),
            figure(row["ours"]),
            str(row["unit"]),
            figure(row["theirs"]),
            str(row["against"]),
            _ratio(row["ratio"], row["goal"]),
            figure(row["goal"]),
            figure(sum(used)) if used else "–",
            figure(row["load"]),
            "[green]yes[/]" if row["correct"] else "[red]no[/]",
        )
    return made


def figure(value: object) -> str:
    """A number as people read it; a dash where there is none."""
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
