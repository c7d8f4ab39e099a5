"""Commands that list: windows and signals, with states, times and reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from cdc_core.errors import ConfigError
from pipelines.commands.inspect import show_left_out
from pipelines.commands.shared import (
    EXIT_TABLES_FAILED,
    ConfigOption,
    JsonOption,
    err,
    listing,
    opened,
    out,
    print_json,
)

if TYPE_CHECKING:
    from cdc_core.model.records import WindowRecord
    from cdc_core.model.reports import Cut
    from cdc_core.model.signals import Signal
    from cdc_core.steps import Pipeline

WINDOWS_SHOWN = 20
SIGNALS_SHOWN = 20
STATE_COLOURS = {
    "applied": "green",
    "captured": "yellow",
    "done": "green",
    "rejected": "red",
    "running": "yellow",
    "taken": "yellow",
}
MomentOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="UTC, for example 2026-11-22T15:00.")
]
CutForm = Literal["text", "spark", "duckdb", "trino"]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="How many, the newest ones.")]


def windows(
    since: MomentOption = None,
    until: MomentOption = None,
    limit: LimitOption = WINDOWS_SHOWN,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """List windows of commit SCNs: when each ended in Oracle, its state, its changes, and its
    error.

    --since and --until select windows by the time of their ends. Windows without changes of
    captured tables are marked idle.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.records.windows(
            newest_first=True,
            limit=limit,
            ended_from=_moment(since),
            ended_to=_moment(until),
        )[::-1]
        changes = _changes(pipeline, found)
        behind = {
            ordinal: list(map(str, tables))
            for ordinal, tables in pipeline.records.tables_behind(found).items()
        }
    if json:
        print_json(
            {
                "windows": [
                    _window_json(one, changes.get(one.ordinal, {}), behind.get(one.ordinal, []))
                    for one in found
                ]
            }
        )
        return
    table = listing("end (UTC)", "window", "state", "changes")
    for one in found:
        colour = STATE_COLOURS.get(one.state, "default")
        brought = changes.get(one.ordinal, {})
        table.add_row(
            f"{one.ended:%Y-%m-%d %H:%M:%S}" if one.ended else "–",
            one.window.key,
            f"[{colour}]{one.state}[/]{', idle' if one.is_idle else ''}{', inexact' if one.inexact else ''}",
            ", ".join(f"{name} {count:,}" for name, count in brought.items()) or "–",
        )
    out().print(table if found else "No windows.")
    for one in found:
        if behind.get(one.ordinal):
            out().print(
                f"[yellow]{one.window.key}[/] is not applied to {', '.join(behind[one.ordinal])}: `redolake status` says why"
            )
        if one.inexact:
            out().print(
                f"[yellow]{one.window.key}[/]: commits of {', '.join(one.inexact.tables)} from "
                f"SCN {one.inexact.scn} on arrived late, with window {one.inexact.window}"
            )
        if one.last_error:
            out().print(f"[red]{one.window.key}[/]: {escape(one.last_error)}")


def at(
    moment: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCN|TIME]",
            help="An SCN, or a time in UTC such as 2026-11-22T15:00. Default: the newest SCN that all tables have.",
        ),
    ] = None,
    form: Annotated[
        CutForm,
        typer.Option(
            "--format",
            help="text, or a view of each table in the SQL of spark, duckdb or trino.",
        ),
    ] = "text",
    tables: Annotated[
        str | None,
        typer.Option(
            "--tables",
            metavar="TEMPLATE",
            help="Names of the mirrors in the engine's catalog, such as lake.{owner}.{table}. "
            "Default: Spark and DuckDB read them by their paths.",
        ),
    ] = None,
    views: Annotated[
        str | None,
        typer.Option(
            "--views",
            metavar="TEMPLATE",
            help="Names of the views. Default: {owner}_{table}, temporary views in Spark; with a dot, "
            "Spark keeps them in its catalog.",
        ),
    ] = None,
    create: Annotated[
        Path | None,
        typer.Option(
            "--create",
            metavar="FILE",
            help="Create the views of the cut in this DuckDB file.",
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Show the Delta version of every mirror as of one SCN: one consistent cut over all tables.

    A time means the last window that ended at or before it. A table without such a version (paused
    earlier, or ahead by an ad hoc snapshot) is listed with the reason, and the exit code is 1.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.cut_at(_scn_at(pipeline, moment))
        if create is not None:
            found = pipeline.create_duckdb_views(found, create)
        statements = (
            () if form == "text" else pipeline.cut_sql(found, form, view=views, table=tables)
        )
    if json:
        print_json(asdict(found))
    elif statements:
        for one in statements:
            out().print(one, highlight=False, markup=False)
    else:
        _show_cut(found)
    if found.left_out:
        if not json:
            console = err() if statements else out()
            show_left_out("in this cut", found.left_out, console)
        raise typer.Exit(EXIT_TABLES_FAILED)


def _scn_at(pipeline: Pipeline, moment: str | None) -> int | None:
    if moment is None or moment.isdigit():
        return None if moment is None else int(moment)
    windows = pipeline.records.windows(newest_first=True, ended_to=_moment(moment))
    ends = [one.window.scn_high for one in windows if one.state == "applied" and not one.inexact]
    if not ends:
        raise ConfigError(
            "no applied window ended at or before this time",
            hint="`redolake windows` lists the ends of windows.",
            time=moment[:40],
        )
    return ends[0]


def _show_cut(found: Cut) -> None:
    table = listing("table", "version", "path", title=f"Mirrors as of SCN {found.scn}")
    for one in found.tables:
        table.add_row(one.table, str(one.version), one.path)
    out().print(table)


def signals(
    limit: LimitOption = SIGNALS_SHOWN, config: ConfigOption = None, json: JsonOption = False
) -> None:
    """List signals: the request, its time, its state, and why one was rejected.

    A snapshot is running until all its chunks are applied; then it is done.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.records.signals()[-limit:]
        progress = pipeline.records.signal_progress()
    if json:
        print_json({"signals": [_signal_json(one, progress) for one in found]})
        return
    table = listing("created (UTC)", "id", "state", "chunks", "tables")
    for one in found:
        state = _state(one, progress)
        applied, planned = progress.get(one.id, (0, 0))
        table.add_row(
            f"{one.created:%Y-%m-%d %H:%M:%S}" if one.created else "–",
            escape(one.id),
            f"[{STATE_COLOURS.get(state, 'default')}]{state}[/]",
            f"{applied}/{planned}" if planned else "–",
            escape(", ".join(_tables(one))) or "–",
        )
    out().print(table if found else "No signals.")
    for one in found:
        if one.reason:
            out().print(f"[red]{escape(one.id)}[/]: {escape(one.reason)}")


def notifications(
    limit: LimitOption = SIGNALS_SHOWN, config: ConfigOption = None, json: JsonOption = False
) -> None:
    """List notifications, newest last: snapshots that began, progressed and ended, tables that
    stopped, gaps.

    Only where `notifications.channels` names `store`. --json prints Debezium's fields.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.records.notifications(limit=limit)
    if json:
        print_json({"notifications": [one.as_json() for one in found]})
        return
    table = listing("time (UTC)", "about", "what", "id", "facts")
    for one in found:
        facts = ", ".join(f"{k}: {v}" for k, v in one.data.items() if k != "connector_name")
        table.add_row(
            f"{one.timestamp:%Y-%m-%d %H:%M:%S}",
            one.aggregate_type,
            one.type,
            escape(one.id),
            escape(facts),
        )
    out().print(table if found else "No notifications.")


def _changes(pipeline: Pipeline, found: list[WindowRecord]) -> dict[int, dict[str, int]]:
    applied = pipeline.records.brought(found)
    return {
        ordinal: {str(one.table): one.changes for one in tables}
        for ordinal, tables in applied.items()
    }


def _window_json(one: WindowRecord, changes: dict[str, int], behind: list[str]) -> dict[str, Any]:
    return {
        "window": one.window.key,
        "key": one.key,
        "ended": _iso(one.ended),
        "state": one.state,
        "is_idle": one.is_idle,
        "redo_rows": one.rows,
        "bytes": one.bytes,
        "changes": changes,
        "not_applied_to": behind,
        "captured": _iso(one.captured),
        "applied": _iso(one.applied),
        "last_error": one.last_error,
        "inexact": asdict(one.inexact) if one.inexact else None,
    }


def _state(one: Signal, progress: Mapping[str, tuple[int, int]]) -> str:
    """``running`` is a snapshot that was planned and has chunks that are not applied yet."""
    applied, planned = progress.get(one.id, (0, 0))
    return "running" if one.state == "done" and applied < planned else one.state


def _signal_json(one: Signal, progress: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    applied, planned = progress.get(one.id, (0, 0))
    return {
        "id": one.id,
        "type": one.type,
        "state": _state(one, progress),
        "chunks_applied": applied,
        "chunks_planned": planned,
        "created": _iso(one.created),
        "channel": one.channel,
        "tables": _tables(one),
        "reason": one.reason,
    }


def _tables(one: Signal) -> list[str]:
    named = one.data.get("data-collections")
    if isinstance(changes := one.data.get("changes"), list):
        named = [each.get("id", "") for each in changes if isinstance(each, dict)]
    return [str(name) for name in named] if isinstance(named, list) else []


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            "this is not a time", hint="Write it like 2026-11-22T15:00, in UTC.", given=text[:40]
        ) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
