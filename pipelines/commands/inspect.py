"""Commands that look: status and reconcile."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from cdc_core.errors import CdcError
from cdc_core.model.alerts import Alert
from cdc_core.model.metrics import Sample
from cdc_core.model.reports import (
    ComparisonEngine,
    LeftOut,
    Reconciliation,
    SnapshotProgress,
    SourceStatus,
    TableStatus,
    TransactionStatus,
)
from cdc_core.model.wording import counted
from pipelines.commands.pdbs import all_opened, each, print_stopped
from pipelines.commands.shared import (
    STATE_COLOURS,
    ConfigOption,
    JsonOption,
    TablesOption,
    listing,
    opened,
    out,
    print_json,
    tables_of,
)
from pipelines.config_file import SourceFile

if TYPE_CHECKING:
    from cdc_core.steps import Pipeline

EXIT_DIFFERENT = 1
EXIT_WARNINGS = 1
EXIT_ERRORS = 2
"""As plugins of Nagios have it."""


CheckOption = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Print one line, and exit with 1 for warnings, 2 for errors: for cron and monitoring.",
    ),
]


def status(
    check: CheckOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Show the status of a source and its tables: state, position, lag, open transactions, last
    window, and what stops them.

    --check prints one line: `orders OK: 3 tables, 12 s behind`, or what is wrong. The exit code is
    0 if all is well, 1 for warnings, and 2 for errors: a table that left the stream, rows in
    quarantine, a window that fails, Oracle that does not answer, or what the
    configuration's `alerts` bounds.
    """
    with opened(config) as pipeline:
        found = pipeline.status()
        measured = pipeline.measure(found) if json else []
        alerts = pipeline.alerts(found) if check else ()
    if check:
        _check({found.source: (found, alerts)})
    elif json:
        print_json(_as_json(found, measured))
    else:
        show_status(found, out())


def _check(found: Mapping[str, tuple[SourceStatus, Sequence[Alert]]]) -> None:
    """Print a line for each source, and exit with code 1 if one has an alert."""
    for one, alerts in found.values():
        behind = max((each.lag_seconds for each in one.tables if each.lag_seconds), default=None)
        lag = "" if behind is None else f", {duration(behind)} behind"
        said = "; ".join(each.what.rstrip(".") for each in alerts)
        verdict = "OK" if not alerts else "ERROR" if _is_error(alerts) else "WARNING"
        said = said or f"{counted(len(one.tables), 'table')}{lag}"
        out().print(f"{one.source} {verdict}: {said}", markup=False)
    every = [each for _, alerts in found.values() for each in alerts]
    if every:
        raise typer.Exit(EXIT_ERRORS if _is_error(every) else EXIT_WARNINGS)


def _is_error(alerts: Sequence[Alert]) -> bool:
    return any(one.is_error for one in alerts)


def status_of_all(
    names: Sequence[str],
    *,
    check: bool,
    config: SourceFile,
    json: bool,
) -> None:
    """The same for all pluggable databases that the configuration lists, and the SCN as of which
    all of them can be read."""
    from cdc_core.fleet import common_scn, what_delays

    with all_opened(names, config) as pipelines:
        found = {name: _status_of(name, pipeline) for name, pipeline in pipelines.items()}
        measured = {
            name: one.measure(found[name]) if json else [] for name, one in pipelines.items()
        }
        checked = {
            name: (found[name], one.alerts(found[name]) if check else ())
            for name, one in pipelines.items()
        }
        scn = common_scn(pipelines)
        why = "" if scn is not None else what_delays(pipelines)
    if check:
        _check(checked)
        return
    if json:
        every = {name: _as_json(one, measured[name]) for name, one in found.items()}
        print_json({"pdbs": every, "common_scn": scn})
        return
    for one in found.values():
        show_status(one, out())
    out().print(
        f"No SCN is common to all pluggable databases yet: {escape(why)}."
        if scn is None
        else f"All pluggable databases can be read as of SCN {scn}."
    )


def _as_json(found: SourceStatus, measured: Sequence[Sample]) -> dict[str, object]:
    return {**asdict(found), "metrics": [one.as_json() for one in measured]}


def _status_of(name: str, pipeline: Pipeline) -> SourceStatus:
    """One whose pluggable database no longer exists is shown as the metadata store has it."""
    try:
        return pipeline.status()
    except CdcError as error:
        print_stopped(name, error)
        return pipeline.status(ask_oracle=False)


def reconcile(
    table: TablesOption = None,
    scn: Annotated[
        int | None,
        typer.Option(
            "--scn",
            help="Compare as of this end of an applied window. Default: the position; of several pluggable databases the newest SCN that is "
            "common to them.",
        ),
    ] = None,
    keys: Annotated[
        int,
        typer.Option(
            "--keys",
            metavar="N",
            min=0,
            help="Name up to N differing rows of each table by their keys, which are values of your rows.",
        ),
    ] = 0,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Compare every mirror with Oracle AS OF one SCN: all rows, all columns. Exit code 1 on a
    difference.

    A table that cannot be compared at that SCN (paused, stopped, ahead of it by an ad hoc snapshot)
    is named with the reason; the others are compared, and the exit code is 1. Redolake counts,
    digests and searches each side for duplicate keys separately, then compares keys where the
    digests differ. Oracle is read in chunks of snapshot.chunk_rows rows, so a table of any size
    needs little memory and disk. `redolake repair` fixes what differs.
    """
    with opened(config) as pipeline:
        found = pipeline.reconcile(tables_of(table), scn=scn, keys_max=keys)
    if json:
        print_json(
            {
                "scn": found.scn,
                "tables": [{**asdict(one), "keys": list(one.keys)} for one in found.tables],
                "left_out": [asdict(one) for one in found.left_out],
            }
        )
    else:
        show_reconciliation(found, out())
    if found.differences or found.left_out:
        raise typer.Exit(EXIT_DIFFERENT)


def reconcile_all(
    names: Sequence[str],
    *,
    table: list[str] | None,
    scn: int | None,
    keys: int,
    config: SourceFile,
    json: bool,
) -> None:
    """The same for all pluggable databases that the configuration lists: as of the newest SCN that
    is common to them, if there is one."""
    from cdc_core.fleet import common_scn, what_delays

    if scn is None:
        with all_opened(names, config) as pipelines:
            scn = common_scn(pipelines)
            if scn is None and not json:
                why = escape(what_delays(pipelines))
                out().print(f"Each is compared at its own position, since no SCN is common: {why}.")
    given = {"table": table, "scn": scn, "keys": keys, "config": config, "json": json}
    each(reconcile, names, given, common_scn=scn)


def show_status(found: SourceStatus, console: Console) -> None:
    """Print a source's status for people."""
    if found.scn_oracle is not None:
        console.print(f"[bold]{found.source}[/]: Oracle is at SCN {found.scn_oracle}")
    else:
        why = escape(found.oracle_error or "Oracle cannot be reached")
        console.print(f"[bold]{found.source}[/]: [red]{why}[/]")
    console.print(
        f"windows: {found.windows_applied} applied, {found.windows_captured} captured, "
        f"{found.windows_planned} planned; open transactions: {found.open_transactions}"
        + (f" (oldest since SCN {found.oldest_open_scn})" if found.oldest_open_scn else "")
        + (f"; signals waiting: {found.signals_pending}" if found.signals_pending else "")
    )
    if not found.snapshot_decision.endswith("the source continues where it was"):
        console.print(f"at a start: {escape(found.snapshot_decision)}")
    if found.snapshots_paused:
        console.print(
            f"[yellow]snapshots are paused[/] since {found.snapshots_paused}; "
            "`redolake signal resume-snapshot` continues them."
        )
    if len(found.carriers) > 1:
        console.print(
            f"[yellow]{len(found.carriers)} processes carry the windows of this source[/], and take "
            f"work from each other: {escape(', '.join(found.carriers))}"
        )
    if found.progress is not None:
        console.print(f"snapshots: {progress_text(found.progress)}")
    table = listing("table", "state", "chunks", "position", "as of (UTC)", "lag")
    for one in found.tables:
        colour = STATE_COLOURS.get(one.state, "default")
        table.add_row(
            one.table,
            f"[{colour}]{one.state}[/]",
            f"{one.chunks_applied}/{one.chunks_planned}",
            "–" if one.position is None else str(one.position),
            time_text(one.position_time),
            _lag(one),
        )
    console.print(table)
    for transaction in found.oldest_open:
        console.print(_open_text(transaction))
    if found.oldest_open and (more := found.open_transactions - len(found.oldest_open)) > 0:
        console.print(f"… and {counted(more, 'younger open transaction')}.")
    for orphan in found.transactions_released:
        console.print(
            f"[yellow]abandoned[/]: transaction {orphan.xid} of {', '.join(orphan.tables) or 'no captured table'}. Oracle no longer lists "
            "it, and its redo shows neither COMMIT nor ROLLBACK. If a COMMIT appears later, its tables leave the stream."
        )
    for lost in found.transactions_evicted:
        console.print(
            f"[yellow]evicted[/]: transaction {lost.xid} of {', '.join(lost.tables)}. Its redo shows neither COMMIT nor ROLLBACK, and another "
            "transaction uses its undo slot, so its changes are left out. `redolake reconcile` shows whether rows are missing."
        )
    if found.windows_inexact:
        console.print(
            f"[yellow]inexact[/]: {counted(found.windows_inexact, 'window')} lacked commits that a later window delivered. "
            "`redolake windows` lists them."
        )
    if found.last_error:
        console.print(f"[red]next window[/]: {escape(found.last_error)}")
    for one in found.tables:
        if one.reason:
            console.print(
                f"[red]{one.table}[/] {one.state} since {time_text(one.since)}: {escape(one.reason)}"
            )
            console.print(f"  {escape(one.way_out or '')}")
        if one.rest_waits:
            console.print(
                f"[red]{one.table}[/] cannot apply its remaining changes: {escape(one.rest_waits)}"
            )
            console.print(f"  `redolake table resume {shlex.quote(one.table)}` tries again.")
        if one.consistent_from is not None:
            console.print(
                f"[yellow]{one.table}[/] is not an exact image until its position reaches SCN "
                f"{one.consistent_from}: a snapshot read some of its rows at that SCN. `redolake "
                "run` advances it."
            )
        if one.rows_where is not None:
            console.print(f"{one.table}: snapshots read the rows WHERE {escape(one.rows_where)}")
        if one.columns_omitted:
            console.print(
                f"{one.table}: columns left out for their types: "
                f"{escape(', '.join(one.columns_omitted))}"
            )
        if one.columns_reselected:
            console.print(
                f"{one.table}: rows are read from Oracle as of their commits, for "
                f"{escape(', '.join(one.columns_reselected))}"
            )
        if one.columns_left_out:
            console.print(
                f"{one.table}: columns left out by the configuration: "
                f"{escape(', '.join(one.columns_left_out))}"
            )
        if one.is_partial:
            console.print(
                f"[yellow]{one.table}[/] holds a part of its rows: no snapshot has read them all. "
                f"`redolake snapshot --table {shlex.quote(one.table)}` does."
            )
        if one.history_scn is not None:
            console.print(f"{one.table}: its history has all changes up to SCN {one.history_scn}")
        if one.progress is not None:
            console.print(f"{one.table}: {progress_text(one.progress)}")
        for snapshot in one.snapshots:
            console.print(
                f"[yellow]{one.table}[/] snapshot {snapshot.snapshot_id}: {progress_text(snapshot)}. "
                "`redolake snapshot` or `redolake run` applies the others."
            )
        if one.in_quarantine:
            console.print(
                f"[red]{one.table}[/] has {counted(one.in_quarantine, 'redo row')} in quarantine: rows of its mirror are missing, stale or left "
                f"over. `redolake table quarantine {shlex.quote(one.table)}` says why, `redolake repair --table {shlex.quote(one.table)}` corrects them."
            )
        for answer in one.read_again:
            console.print(
                f"{one.table} was read again by {answer.policy} at {answer.at}: {escape(answer.reason)}"
            )
    console.print("More detail: `redolake windows`, `redolake signals`.", highlight=False)


def progress_text(one: SnapshotProgress) -> str:
    """How far snapshots are, in one line: ``3 of 8 chunks applied, 1,200,000 of about 3,200,000
    rows, 41,000 rows/s, 49 s left``."""
    text = f"{one.chunks_applied:,} of {counted(one.chunks_planned, 'chunk')} applied"
    if one.rows_expected is not None:
        text += f", {one.rows:,} of about {one.rows_expected:,} rows"
    if one.rows_per_second is not None:
        text += f", {one.rows_per_second:,.0f} rows/s"
    if one.seconds_left is not None:
        hours, seconds = divmod(round(one.seconds_left), 3600)
        minutes, seconds = divmod(seconds, 60)
        left = (
            f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{seconds} s"
        )
        text += f", {left} left"
    return text


_ENGINES: dict[ComparisonEngine, str] = {"arrow": "Redolake", "spark": "Spark"}


def show_reconciliation(found: Reconciliation, console: Console) -> None:
    """Print a comparison for people: tables, the keys that were asked for, no other values."""
    counts = ("rows in Oracle", "rows in Delta", "double keys", "differences", "seconds")
    title = f"Oracle AS OF SCN {found.scn} and Delta"
    table = listing("table", *counts, "by", right=counts, title=title)
    for one in found.tables:
        colour = "red" if one.differences else "green"
        table.add_row(
            one.table,
            f"{one.rows_oracle:,}",
            f"{one.rows_delta:,}",
            f"{one.double_keys_oracle + one.double_keys_delta:,}",
            f"[{colour}]{'at least ' if one.is_lower_bound else ''}{one.differences:,}[/]",
            f"{one.seconds:.1f}",
            _ENGINES[one.engine],
        )
    console.print(table)
    for one in found.tables:
        if one.rows_where is not None:
            console.print(
                f"{one.table}: rows WHERE {escape(one.rows_where)}, and those of the others that the"
                " mirror has"
            )
        if one.keys:
            console.print(f"[red]{one.table}[/] differs at: {escape(', '.join(one.keys))}")
    show_left_out("compared", found.left_out, console)
    if found.differences:
        console.print(
            "`redolake reconcile --keys 20` names rows by their keys, `redolake repair` fixes them."
        )


def show_left_out(done: str, left_out: Sequence[LeftOut], console: Console) -> None:
    """Name the tables that a command left out, once each, with the reason and the way out."""
    for one in dict.fromkeys(left_out):
        console.print(f"[yellow]{one.table}[/] was not {done}: {escape(one.reason)}")
        console.print(f"  {escape(one.way_out)}")


def _open_text(one: TransactionStatus) -> str:
    """One line: which transaction, whose, since when, and what it holds back."""
    session = "" if one.session_id is None else f" (session {one.session_id},{one.serial})"
    client = f", client {one.client_id}" if one.client_id else ""
    since = f" since {time_text(one.started)} (time of the database's host)" if one.started else ""
    age = "" if one.open_seconds is None else f", for at least {duration(one.open_seconds)}"
    changed = f"{counted(one.rows, 'row')} of {', '.join(one.tables) or 'no captured table'}"
    if one.state in ("undone", "ending"):
        changed += ", rolled back, perhaps to a savepoint only"
    kept = [f"windows from {one.keeps_windows_from} on"] if one.keeps_windows_from else []
    return f"[yellow]open[/]: transaction {one.xid} of " + escape(
        f"{one.username or 'an unknown user'}{session}{client}{since}{age}: {changed}; "
        f"keeps {' and '.join(kept) or 'nothing'}"
    )


def duration(seconds: float) -> str:
    """The two largest units: ``3 d 4 h``, ``2 h 5 min``, ``40 s``."""
    minutes = max(0, int(seconds)) // 60
    if minutes >= 24 * 60:
        return f"{minutes // (24 * 60)} d {minutes // 60 % 24} h"
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{max(0, int(seconds))} s"


def time_text(iso: str | None) -> str:
    """A time of a report, to the second."""
    return "–" if iso is None else iso[:19].replace("T", " ")


def _lag(one: TableStatus) -> str:
    parts = []
    if one.lag_scns is not None:
        parts.append(f"{one.lag_scns:,} SCNs")
    if one.lag_seconds is not None:
        parts.append(f"{one.lag_seconds:.0f} s")
    return ", ".join(parts) or "–"
