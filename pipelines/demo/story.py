"""What became of one flight on its way through redo, change log and mirror, and what can one do
next?"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
from rich.markup import escape

from cdc_core.config import LocalLandingConfig, SourceConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import MirrorWrite
from pipelines.commands.row import said_of, value_text
from pipelines.row_life import RowChange, RowLife, life_of
from redolake.reader import Lake, Table
from redolake.reader import open as open_lake

KEY = ("SCHED_DEP", "CARRIER", "FLIGHT_NO")
SHOWN = ("STATUS", "DEPARTED", "DEP_DELAY", "ARRIVED", "ARR_DELAY")
REDO_LENGTH_MAX = 150
_OPS = {"c": "insert", "u": "update", "d": "delete", "r": "read by the snapshot"}


def story(
    config: SourceConfig,
    writes: Mapping[TableId, Sequence[MirrorWrite]],
    command: str,
    elsewhere: str = "",
) -> list[str]:
    """Lines for the end of the demo: the life of the flight that changed most, who merged each
    table, where the tables are, a query to paste, and the way to one's own Oracle.

    Args:
        config: The demo's source.
        writes: How each mirror took its windows.
        command: What ``redolake`` is called here.
        elsewhere: The option that names the demo's configuration, where it is not the default one.
    """
    lake = open_lake(config.lake.path, source=config.name)
    flights = lake.table(str(config.tables[-1].table))
    key = _busiest(flights)
    lines = [] if key is None else ["", *_life(config, flights, key, command, elsewhere)]
    return [*lines, "", *_writers(writes), "", *_next(config, lake, command, elsewhere)]


def _busiest(flights: Table) -> tuple[str, ...] | None:
    """The key of the flight with the most changes among those that the airport entered while
    Redolake followed."""
    rows = flights.changes().where("_cdc_op IN ('c', 'u')").select("_cdc_op", "after").to_arrow()
    keys = [tuple(str(one[name]) for name in KEY) for one in rows["after"].to_pylist()]
    came = {key for key, op in zip(keys, rows["_cdc_op"].to_pylist(), strict=True) if op == "c"}
    counts = Counter(key for key in keys if key in came)
    return max(counts, key=lambda one: (counts[one], one), default=None)


def _life(
    config: SourceConfig, flights: Table, key: tuple[str, ...], command: str, elsewhere: str
) -> list[str]:
    found = life_of(flights, key)
    when, carrier, number = key
    lines = [f"[bold]The life of flight {carrier} {number}, scheduled {when[:16]}[/]"]
    if redo := _redo(config, found):
        lines += [
            "  Oracle's redo, by LogMiner, of its last change:",
            f"    [dim]{escape(redo)}[/]",
        ]
    lines.append("  the change log, every change in commit order:")
    lines += [
        f"    SCN {one.commit_scn}  {_OPS[one.op]:<7} {_said(one)}".rstrip()
        for one in found.changes
        if one.op != "u" or any(value is not None for value in one.after.values())
    ]
    lines.append(f"  the mirror, one row per flight: {_now(found)}")
    paste = " ".join([command, "row", flights.name, *map(shlex.quote, key)]) + elsewhere
    return [*lines, f"  To see all of it: [bold]{paste}[/]"]


def _redo(config: SourceConfig, found: RowLife) -> str:
    """The statement that LogMiner printed for the newest change, as it landed."""
    newest = next((one for one in reversed(found.changes) if one.rs_id), None)
    if newest is None or not isinstance(config.landing, LocalLandingConfig):
        return ""
    files = sorted(Path(config.landing.path, config.name, "windows").glob("*/redo-*.parquet"))
    if not files:
        return ""
    is_it = (pc.field("xid") == newest.xid) & (pc.field("rs_id") == newest.rs_id)
    rows = ds.dataset([str(one) for one in files]).to_table(columns=["sql_redo"], filter=is_it)
    text = next((one for one in rows["sql_redo"].to_pylist() if one), "").strip()
    return text if len(text) <= REDO_LENGTH_MAX else f"{text[: REDO_LENGTH_MAX - 1]}…"


def _said(one: RowChange) -> str:
    if one.op in ("c", "r"):
        return said_of(one, SHOWN)
    return said_of(one)


def _now(found: RowLife) -> str:
    if not found.now:
        return "it has none, since the flight was deleted"
    values = found.now[0]
    return ", ".join(f"{name} {value_text(values[name])}" for name in SHOWN if name in values)


def _writers(writes: Mapping[TableId, Sequence[MirrorWrite]]) -> list[str]:
    """Who merged the windows of each table, and why."""
    lines = ["[bold]Who merged[/]"]
    for table, found in sorted(writes.items()):
        counts = Counter(one.who for one in found)
        reasons = {one.who: one.reason for one in found}
        parts = [f"{count} × {who} ({reasons[who]})" for who, count in counts.most_common()]
        lines.append(f"  {table.name:<9} {', '.join(parts)}")
    if not any(one.way == "merge" for found in writes.values() for one in found):
        lines.append("  Spark's MERGE takes large windows: `redolake demo --fresh --merge spark`")
    return lines if writes else [*lines, "  no window changed a mirror"]


def _next(config: SourceConfig, lake: Lake, command: str, elsewhere: str) -> list[str]:
    airlines = lake.table(str(config.tables[0].table)).name
    read = f"open({config.lake.path!r}).at().table({airlines!r}).to_pandas()"
    python = "python" if command == "redolake" else f"{Path(command).parent}/python"
    return [
        "[bold]Next[/]",
        f"  the tables      {config.lake.path}/{config.name}/mirror",
        f'  read one        {python} -c "from redolake.reader import open; print({read})"',
        f"  in the browser  {command} ui{elsewhere}    (each chunk and each window is a partition)",
        f"  your Oracle     {command} init --help, then docs/getting-started.md",
        f"  no Oracle yet   {command} oracle serve",
    ]
