"""Commands that list: windows and signals, with states, times and reasons."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cdc_core.errors import ConfigError
from pipelines.commands.shared import ConfigOption, JsonOption, opened, out, print_json

if TYPE_CHECKING:
    from cdc_core.model.records import WindowRecord
    from cdc_core.model.signals import Signal
    from cdc_core.steps import Pipeline

WINDOWS_SHOWN = 20
SIGNALS_SHOWN = 20
STATE_COLOURS = {
    "applied": "green",
    "captured": "yellow",
    "done": "green",
    "rejected": "red",
    "taken": "yellow",
}
MomentOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="UTC, for example 2026-11-22T15:00.")
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="How many, the newest ones.")]


def windows(
    since: MomentOption = None,
    until: MomentOption = None,
    limit: LimitOption = WINDOWS_SHOWN,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """List windows of commit SCNs: when each ended in Oracle, its state, what it brought, and its error.

    --since and --until choose windows by the time of their ends. Windows in which captured tables had nothing are marked idle.

    The reference page "What --json prints" names the keys of --json, which stay as they are.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.records.windows(
            newest_first=True,
            limit=limit,
            ended_from=_moment(since),
            ended_to=_moment(until),
        )[::-1]
        changes = _changes(pipeline, found)
    if json:
        print_json({"windows": [_window_json(one, changes.get(one.ordinal, {})) for one in found]})
        return
    table = Table(box=None, pad_edge=False)
    for column in ("end (UTC)", "window", "state", "changes"):
        table.add_column(column, overflow="fold")
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
        if one.inexact:
            out().print(
                f"[yellow]{one.window.key}[/]: commits of {', '.join(one.inexact.tables)} from SCN {one.inexact.scn} on came to "
                f"light with window {one.inexact.window}",
                soft_wrap=True,
            )
        if one.last_error:
            out().print(f"[red]{one.window.key}[/]: {escape(one.last_error)}", soft_wrap=True)


def signals(
    limit: LimitOption = SIGNALS_SHOWN, config: ConfigOption = None, json: JsonOption = False
) -> None:
    """List signals: what was asked for, when, what became of it, and why one was rejected.

    The reference page "What --json prints" names the keys of --json, which stay as they are.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.records.signals()[-limit:]
    if json:
        print_json({"signals": [_signal_json(one) for one in found]})
        return
    table = Table(box=None, pad_edge=False)
    for column in ("created (UTC)", "id", "state", "tables"):
        table.add_column(column, overflow="fold")
    for one in found:
        colour = STATE_COLOURS.get(one.state, "default")
        table.add_row(
            f"{one.created:%Y-%m-%d %H:%M:%S}" if one.created else "–",
            escape(one.id),
            f"[{colour}]{one.state}[/]",
            escape(", ".join(_tables(one))) or "–",
        )
    out().print(table if found else "No signals.")
    for one in found:
        if one.reason:
            out().print(f"[red]{escape(one.id)}[/]: {escape(one.reason)}", soft_wrap=True)


def _changes(pipeline: Pipeline, found: list[WindowRecord]) -> dict[int, dict[str, int]]:
    applied = pipeline.records.brought(found)
    return {
        ordinal: {str(one.table): one.changes for one in tables}
        for ordinal, tables in applied.items()
    }


def _window_json(one: WindowRecord, changes: dict[str, int]) -> dict[str, Any]:
    return {
        "window": one.window.key,
        "key": one.key,
        "ended": _iso(one.ended),
        "state": one.state,
        "is_idle": one.is_idle,
        "redo_rows": one.rows,
        "bytes": one.bytes,
        "changes": changes,
        "captured": _iso(one.captured),
        "applied": _iso(one.applied),
        "last_error": one.last_error,
        "inexact": asdict(one.inexact) if one.inexact else None,
    }


def _signal_json(one: Signal) -> dict[str, Any]:
    return {
        "id": one.id,
        "type": one.type,
        "state": one.state,
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
