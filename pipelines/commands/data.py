"""Commands that carry data: snapshot, capture, apply, run, replay."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cdc_core.errors import (
    CdcError,
    ConfigError,
    LeaseHeldError,
    NotYetError,
    TransientError,
    noticing_memory,
)
from cdc_core.model.scn import ScnWindow
from cdc_core.model.wording import counted
from pipelines.commands.following import Lines, View, view_of
from pipelines.commands.inspect import (
    EXIT_DIFFERENT,
    show_left_out,
    show_reconciliation,
)
from pipelines.commands.metrics import serving
from pipelines.commands.nightly import Nightly
from pipelines.commands.pdbs import all_opened, each, print_stopped
from pipelines.commands.shared import (
    EXIT_ERROR,
    EXIT_TABLES_FAILED,
    EXIT_UNFINISHED,
    ConfigOption,
    TablesOption,
    exit_if_tables_failed,
    exit_unless_finished,
    opened,
    out,
    print_error,
    tables_of,
)
from pipelines.config_file import SourceFile, config_path

if TYPE_CHECKING:
    from cdc_core.fleet import Round
    from cdc_core.model.alerts import Alert
    from cdc_core.model.records import WindowRecord, WindowState
    from cdc_core.model.reports import StepReport
    from cdc_core.steps import Pipeline

LOOP_SECONDS = 10.0
LOOP_RETRY_SECONDS_MAX = 300.0
ALERT_SECONDS = 60.0
"""How often a loop looks for alerts."""
ConditionOption = Annotated[
    str | None,
    typer.Option(
        "--condition",
        metavar="SQL",
        help="Read only rows that match, for example \"MONTH = 3 AND CARRIER = 'UA'\". Needs a "
        "table.",
    ),
]


def snapshot(
    table: TablesOption = None,
    condition: ConditionOption = None,
    config: ConfigOption = None,
) -> None:
    """Read existing rows from Oracle into change log and mirror.

    The first time, all captured tables are read as of one SCN, chunk by chunk. If it stops
    half-way, run the same command to continue. Later, --table reads a table again (all rows, or
    those of a condition) while change capture continues.
    `redolake plan` says before what would be read, and how long it takes.
    """
    _check_condition(table, condition)
    with opened(config) as pipeline:
        lines = Lines({"": pipeline}, out())
        if not table:
            _begin(pipeline, lines)
        steps = pipeline.run_snapshot(tables_of(table), condition=condition)
        told = lines.follow(steps)
        chunks = [step.rows for step in told if step.kind == "chunk-applied"]
        out().print(
            f"{counted(len(chunks), 'chunk')} with {counted(sum(chunks), 'row')} applied"
            if chunks
            else "Nothing to read: the first snapshot is complete. To read a table again, name "
            "it with --table."
        )
        exit_unless_finished(pipeline, tables_of(table))
        if chunks and not table:
            out().print("Next: `redolake run --loop` follows the redo.")


def snapshot_all(
    names: Sequence[str],
    *,
    table: list[str] | None,
    condition: str | None,
    config: SourceFile,
) -> None:
    """The same for all pluggable databases that the configuration lists; those that are new are
    read as of one SCN."""
    from cdc_core.fleet import begin_together

    _check_condition(table, condition)
    if not table:
        with all_opened(names, config) as pipelines:
            begin_together(pipelines)
    given = {"table": table, "condition": condition, "config": config}
    each(snapshot, names, given)


def capture(
    until: Annotated[
        int | None,
        typer.Option("--until", metavar="SCN", min=1, help="Capture up to this SCN only."),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Read redo up to the present into landing files, window by window. Needs no Spark."""
    with opened(config) as pipeline:
        rows = [step.rows for step in pipeline.run_capture(until=until)]
        out().print(
            f"{counted(len(rows), 'window')} with {counted(sum(rows), 'redo row')} captured"
        )
        exit_if_tables_failed(pipeline)


def capture_all(names: Sequence[str], *, until: int | None, config: SourceFile) -> None:
    """The same for all pluggable databases that the configuration lists, up to one SCN, from one
    reading of the redo where that can be."""
    from cdc_core.fleet import capture_together

    codes = []
    with all_opened(names, config) as pipelines:
        found = capture_together(pipelines, until=until)
        for name, pipeline in pipelines.items():
            windows = counted(len(found.done[name]), "window")
            rows = counted(sum(one.rows for one in found.done[name]), "redo row")
            out().print(f"{name}: {windows} with {rows} captured")
            if name in found.errors:
                print_stopped(name, found.errors[name])
                codes.append(EXIT_ERROR)
            else:
                codes.append(_code_of(exit_if_tables_failed, pipeline))
    if any(codes):
        raise typer.Exit(max(codes))


def recapture(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show which windows would be read.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Include windows that no table needs any more.")
    ] = False,
    first: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WINDOW",
            help="Reread this window and all later ones, even if they have landed.",
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Reread windows whose landing files are lost or damaged, as long as Oracle has their redo.

    Redolake also rereads every later window, because it finds the rows of open transactions by
    number. No table applies a window twice. --all includes windows that every table has applied, so
    that you can replay them and rebuild the metadata store. --from rereads a window that some table
    has not applied, for example because it landed under a wrong definition. Redolake keeps the
    landed files until it has read the window's redo again.
    """
    with opened(config, oracle=not dry_run) as pipeline:
        window = pipeline.window_named(first) if first else None
        found = pipeline.plan_recapture(needed_only=not everything, first=window)
        for record in found.lost:
            out().print(f"{record.key} is lost; {_need(record, is_needed=record in found.needed)}")
        if not found.again:
            out().print("No window needs to be read again.")
        elif dry_run:
            out().print(
                f"{counted(len(found.again), 'window')} would be read again, from {found.again[0].key} on."
            )
        else:
            before = pipeline.records.tables()
            read = list(pipeline.recapture(needed_only=not everything, first=window))
            out().print(
                f"{counted(len(read), 'window')} read again; `redolake run` applies pending "
                "windows."
            )
            stopped = [record.table for record in before if record.state == "failed"]
            for table in stopped:
                out().print(f"`redolake table resume {table.argument}` continues {table}.")
            exit_if_tables_failed(
                pipeline, [record.table for record in before if record.table not in stopped]
            )


def _need(record: WindowRecord, *, is_needed: bool) -> str:
    """Who needs a lost window. ``state rebuild`` proves idle ones from the windows that are
    left."""
    if is_needed:
        return "needed"
    if record.is_idle:
        return "every table has applied it: harmless"
    return (
        "every table has applied it, but `redolake state rebuild` and `redolake replay` need "
        "it: `redolake recapture --all` rereads it while Oracle has its redo"
    )


def skip_gap(
    config: ConfigOption = None,
    replaced: Annotated[
        bool,
        typer.Option(
            "--replaced",
            help="The database was replaced permanently, by a restored clone or by another "
            "pluggable database of the same name: read the new one from now on.",
        ),
    ] = False,
) -> None:
    """Skip redo that is permanently lost, so that windows continue after it.

    Use it when `redolake run` stops because an archived log was deleted and you cannot restore it.
    Redolake first tries once more to read the window. If its redo is still missing, all tables that
    need it leave the stream before it, and the window becomes a gap. `redolake table resnapshot`
    then brings each of these tables back, into its existing Delta tables. With
    `policies.on_redo_gone: resnapshot`, the next run does both.
    """
    with opened(config) as pipeline:
        found = pipeline.skip_gap(is_replaced=replaced)
        if found is None:
            out().print("There is no gap: no window has stopped because its redo is lost.")
            return
        record, tables = found
        if record is not None:
            out().print(f"{record.key} is a gap now.")
        for table in tables:
            out().print(
                f"{table.table} left the stream before it: `redolake table resnapshot "
                f"{table.table.argument}` brings it back."
            )


def apply(config: ConfigOption = None) -> None:
    """Apply captured windows to change logs and mirrors, in order. Needs no Oracle."""
    with opened(config, oracle=False) as pipeline:
        changes = [step.rows for step in pipeline.run_apply()]
        out().print(
            f"{counted(len(changes), 'window')} with {counted(sum(changes), 'change')} applied"
        )
        exit_if_tables_failed(pipeline)


def run(
    loop: Annotated[bool, typer.Option("--loop", help="Keep running until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Pause between rounds.")
    ] = LOOP_SECONDS,
    retry_max: Annotated[
        float,
        typer.Option(
            "--retry-max",
            metavar="SECONDS",
            min=0.1,
            help="Longest pause after failures, which double it.",
        ),
    ] = LOOP_RETRY_SECONDS_MAX,
    config: ConfigOption = None,
) -> None:
    """Do all pending work: first snapshot, waiting signals, windows up to the present.

    With --loop, Redolake keeps one process and one Spark session, and retries after temporary
    failures (a database that is down, redo that is not archived yet). If a table fails, the others
    continue. Without --loop, the command exits with code 1 while any table is in state `failed`, or
    if it could not finish something: chunks, windows, a history, a view, a table of the catalog.

    Once a day, at maintenance.daily_at_hour, --loop also maintains the Delta tables, as
    `redolake maintain` does.

    On a terminal, --loop shows a board: each table with its lag and rate, the last window, and when
    the next one can be expected. Into a file or a pipe, it prints a line for each round that had
    something to do.
    """
    with opened(config) as pipeline, pipeline.carrying_windows():
        if loop:
            with (
                serving([pipeline]),
                _nightly([pipeline], config) as nightly,
                view_of({"": pipeline}, out(), loop=True) as view,
            ):
                _loop(pipeline, view, nightly, every, retry_max)
        else:
            lines = Lines({"": pipeline}, out())
            _begin(pipeline, lines)
            done, is_whole = _round(pipeline, lines)
            out().print(done or f"Nothing to do: {_idle(pipeline)}")
            exit_unless_finished(pipeline)
            if not is_whole:
                raise typer.Exit(EXIT_UNFINISHED)


def _nightly(pipelines: Sequence[Pipeline], config: SourceFile | None) -> Nightly:
    """The daily maintenance of what a loop carries."""
    file = config or SourceFile()
    named = ["--config", str(config_path(file.named, os.environ))]
    one = [] if file.pdb is None else ["--pdb", file.pdb]
    source = pipelines[0].config

    def own() -> None:
        for pipeline in pipelines:
            try:
                for found in pipeline.maintain():
                    if found.left_alone:
                        out().print(f"{found.table} was left alone: {escape(found.left_alone)}")
            except CdcError as error:
                print_error(error)

    return Nightly(
        source.maintenance,
        [*one, "maintain", *named],
        own=None if source.lake.has_atomic_commits else own,
    )


def _loop(pipeline: Pipeline, view: View, nightly: Nightly, every: float, retry_max: float) -> None:
    """Rounds without end; a temporary failure puts the next one off."""
    failures, is_first, has_begun = 0, True, False
    alarm = _Alarm(pipeline)
    while True:
        try:
            with noticing_memory():
                if not has_begun:
                    _begin(pipeline, view)
                    has_begun = True
                done = _followed(pipeline, view, _summary(view.follow(pipeline.run_once())))
                said = done or (f"Nothing to do: {_idle(pipeline)}" if is_first else "")
            failures, is_first = 0, False
        except TransientError as error:
            # Another process at work is no failure: the next look is not put off.
            failures = 0 if isinstance(error, LeaseHeldError) else failures + 1
            view.failed(error)
        else:
            if said:
                view.say(said)
        alarm.look()
        if said := nightly.look():
            view.say(said)
        pipeline.release_sessions()
        view.rests(_pause(every, failures, retry_max))


def _followed(pipeline: Pipeline, view: View, done: str) -> str:
    """Let everything follow what a round of a loop did; what to say of all. What cannot follow is
    printed, and no window waits for it."""
    try:
        return _with_followers(pipeline, done)[0]
    except CdcError as error:
        view.failed(error)
        return done


class _Alarm:
    """Sends a notification when an alert of a source begins or ends, where notifications go
    anywhere."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._before: Sequence[Alert] = ()
        self._looked = -ALERT_SECONDS

    def look(self) -> None:
        """Look, unless that was done a moment ago."""
        is_due = time.monotonic() - self._looked >= ALERT_SECONDS
        if not self._pipeline.config.notifications.channels or not is_due:
            return
        self._looked = time.monotonic()
        try:
            self._before = self._pipeline.tell_changes(self._before)
        except CdcError as error:
            print_error(error)


def _round(pipeline: Pipeline, view: View) -> tuple[str, bool]:
    """All pending work, once; what to say of it, empty when captured tables had nothing, and
    whether all of it was done that follows the windows."""
    return _with_followers(pipeline, _summary(view.follow(pipeline.run_once())))


def _with_followers(pipeline: Pipeline, done: str) -> tuple[str, bool]:
    """Let histories, views, catalog and Kafka follow what a round did; what to say of all, and
    whether all could."""
    states, is_whole = _historied(pipeline)
    done = _joined(done, counted(states, "state") + " in histories" if states else "")
    if done:
        is_whole &= _keep_views(pipeline)
    is_whole &= _registered(pipeline)
    return _joined(done, _published(pipeline)), is_whole


def _joined(done: str, more: str) -> str:
    return ", ".join(filter(None, (done, more)))


def run_all(
    names: Sequence[str],
    *,
    loop: bool,
    every: float,
    retry_max: float,
    config: SourceFile,
) -> None:
    """The same for all pluggable databases that the configuration lists, up to one SCN. One that
    stops does not affect the others: temporary failures are retried in a loop, anything else ends
    its part."""
    codes = []
    with (
        all_opened(names, config) as pipelines,
        ExitStack() as carrying,
        serving([*pipelines.values()]) if loop else nullcontext(),
    ):
        for pipeline in pipelines.values():
            carrying.enter_context(pipeline.carrying_windows())
        nightly = carrying.enter_context(_nightly([*pipelines.values()], config))
        view = carrying.enter_context(view_of(pipelines, out(), loop=loop))
        alarms = {name: _Alarm(one) for name, one in pipelines.items()}
        failures, begun = 0, set[str]()
        while pipelines:
            found = _round_of_all(pipelines, view, begun, loop=loop)
            for name, error in found.errors.items():
                view.failed(error, name)
                if not loop or not isinstance(error, TransientError):
                    del pipelines[name]
                    codes.append(EXIT_ERROR)
            for name, steps in found.done.items():
                done = _summary(steps)
                if name in pipelines and name not in found.errors:
                    try:
                        done, is_whole = _with_followers(pipelines[name], done)
                        codes += [] if loop or is_whole else [EXIT_UNFINISHED]
                    except CdcError as error:
                        view.failed(error, name)
                        codes += [] if loop else [EXIT_ERROR]
                if done:
                    view.say(done, name)
                elif not loop and name not in found.errors:
                    view.say(f"nothing to do, {_idle(pipelines[name])}", name)
            is_failed = any(not isinstance(one, LeaseHeldError) for one in found.errors.values())
            failures = failures + 1 if is_failed else 0
            if not loop:
                codes += [_code_of(exit_unless_finished, one) for one in pipelines.values()]
                break
            for name, pipeline in pipelines.items():
                alarms[name].look()
                pipeline.release_sessions()
            if said := nightly.look():
                view.say(said, next(iter(pipelines), ""))
            if pipelines:
                view.rests(_pause(every, failures, retry_max))
    if any(codes):
        raise typer.Exit(max(codes))


def _round_of_all(
    pipelines: Mapping[str, Pipeline], view: View, begun: set[str], *, loop: bool
) -> Round:
    """A round of several sources. In a loop, what stops the round, such as their metadata store,
    stops each of them for now.

    Args:
        begun: Those that have begun, which the others join.
    """
    from cdc_core.fleet import Round, run_together

    waiting: dict[str, CdcError] = {}
    for name in [one for one in pipelines if one not in begun]:
        try:
            _begin(pipelines[name], view, name)
            begun.add(name)
        except TransientError as error:
            if not loop:
                raise
            waiting[name] = error
    ready = {name: pipeline for name, pipeline in pipelines.items() if name in begun}
    try:
        with noticing_memory():
            found = run_together(ready, follow=lambda name, steps: view.follow(steps, name))
    except TransientError as error:
        if not loop:
            raise
        return Round({}, dict.fromkeys(ready, error) | waiting)
    return Round(found.done, {**found.errors, **waiting})


def _begin(pipeline: Pipeline, view: View, name: str = "") -> None:
    """Do what ``snapshot.mode`` says of a start, and say it where it is not the default."""
    if pipeline.config.snapshot.mode != "initial":
        view.say(f"snapshot.mode {pipeline.config.snapshot.mode}: {pipeline.begin()}", name)


def _historied(pipeline: Pipeline) -> tuple[int, bool]:
    """Bring the histories up to their change logs; how many states they have more, and whether all
    could follow."""
    found = list(pipeline.keep_history())
    failed = [one for one in found if one.failed is not None]
    for one in failed:
        out().print(f"[red]the history of {one.table} stays behind:[/] {escape(one.failed or '')}")
    return sum(one.added for one in found), not failed


def _keep_views(pipeline: Pipeline) -> bool:
    """Let the views of ``lake.current_views`` show what was done; False if they cannot be written.
    Neither that nor that no mirror is exact yet ends a loop: the next round tries again."""
    try:
        pipeline.keep_current_views()
    except NotYetError as error:
        out().print(f"[yellow]no views yet:[/] {escape(error.message)}")
    except CdcError as error:
        out().print(f"[red]the views are as they were:[/] {escape(str(error))}")
        return False
    return True


def _registered(pipeline: Pipeline) -> bool:
    """Let the catalog follow the tables, where there is one; say what failed, and whether nothing
    did."""
    if pipeline.config.lake.catalog is None:
        return True
    failed = [one for one in pipeline.register_tables() if one.failed is not None]
    for one in failed:
        text = f"[red]{one.table} is not in the catalog:[/] {escape(one.failed or '')}"
        out().print(text)
    return not failed


def _published(pipeline: Pipeline) -> str:
    """Send what is not out yet, where the configuration says where Kafka is; what to say of it."""
    if pipeline.config.publish.bootstrap_servers is None:
        return ""
    events = sum(one.events for one in pipeline.publish() if one.table is not None)
    return f"{counted(events, 'event')} published" if events else ""


def _code_of(ends: Callable[[Pipeline], None], pipeline: Pipeline) -> int:
    try:
        ends(pipeline)
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def _pause(every: float, failures: int, most: float) -> float:
    return min(every * 2.0 ** min(failures, 20), max(every, most))


def _idle(pipeline: Pipeline) -> str:
    """Up to where captured tables have no change that is not applied, and what makes later redo
    readable."""
    windows = pipeline.records.windows(newest_first=True, limit=1)
    tables = pipeline.records.tables()
    ends = [one.window.scn_high for one in windows] or [
        one.snapshot_scn for one in tables if one.snapshot_scn is not None
    ]
    so_far = f" up to SCN {max(ends)}" if ends else ""
    waits = pipeline.config.capture.waits_for_log_switch
    later = " Redolake reads later redo after the next log switch (capture.close_at)."
    still = [one for one in tables if one.state in ("failed", "paused")]
    if still:
        those = f"{counted(len(still), 'table')} did not take part (`redolake status`)"
        return f"no other table changed{so_far}; {those}." + (later if waits else "")
    return f"no captured table changed{so_far}." + (later if waits else "")


def _summary(steps: Iterable[StepReport]) -> str:
    """What a round did, for people; empty when captured tables had nothing."""
    chunks = windows = changes = 0
    for step in steps:
        chunks += step.kind == "chunk-applied"
        if step.kind == "window-applied" and step.rows:
            windows, changes = windows + 1, changes + step.rows
    parts = [f"{counted(chunks, 'chunk')} applied"] if chunks else []
    if windows:
        parts.append(f"{counted(changes, 'change')} in {counted(windows, 'window')} applied")
    return ", ".join(parts)


def replay(
    windows: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WINDOW]...", help="Windows as `redolake windows` lists them."),
    ] = None,
    scn_from: Annotated[
        int | None, typer.Option("--from", metavar="SCN", help="Replay windows from this SCN on.")
    ] = None,
    scn_to: Annotated[
        int | None, typer.Option("--to", metavar="SCN", help="Replay windows up to this SCN.")
    ] = None,
    table: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Replay windows that were already applied, in any order: an undamaged mirror stays as it is, a
    damaged one is repaired."""
    with opened(config, oracle=False) as pipeline:
        chosen = _chosen(pipeline, windows, scn_from, scn_to)
        reports = [pipeline.replay_window(window, tables_of(table)) for window in chosen]
        out().print(f"{counted(len(chosen), 'window')} replayed")
    left_out = [one for report in reports for one in report.left_out]
    if left_out:
        show_left_out("replayed everywhere", left_out, out())
        raise typer.Exit(EXIT_TABLES_FAILED)


def repair(table: TablesOption = None, config: ConfigOption = None) -> None:
    """Compare mirrors with Oracle, and reread rows that differ. Exits with code 1 if something
    still differs.

    Redolake reads rows that differ, are missing or are duplicated from Oracle by their keys, as of
    the SCN that it compared. They replace the mirror's rows for those keys. Redolake deletes keys
    that Oracle does not have. If more than 10,000 keys of a table differ, it rereads the whole
    table. The rows go through change log and mirror, as in every ad hoc snapshot.
    """
    with opened(config) as pipeline:
        tables = tables_of(table)
        steps = list(pipeline.repair(tables))
        chunks = [step for step in steps if step.kind == "chunk-applied"]
        if not chunks:
            out().print("Nothing differs.")
            left_out = [one for step in steps for one in step.left_out]
            show_left_out("compared", left_out, out())
            if left_out:
                raise typer.Exit(EXIT_TABLES_FAILED)
            return
        rows = counted(sum(step.rows for step in chunks), "row")
        out().print(f"{counted(len(chunks), 'chunk')} read again, {rows}")
        found = pipeline.reconcile(tables)
        show_reconciliation(found, out())
    if found.differences or found.left_out:
        raise typer.Exit(EXIT_DIFFERENT)


def _check_condition(table: list[str] | None, condition: str | None) -> None:
    if condition is not None and not table:
        raise ConfigError("a condition needs a table", hint="Add --table OWNER.TABLE.")


def _windows(pipeline: Pipeline, state: WindowState) -> list[ScnWindow]:
    return [record.window for record in pipeline.records.windows(states=(state,))]


def _chosen(
    pipeline: Pipeline, keys: list[str] | None, scn_from: int | None, scn_to: int | None
) -> list[ScnWindow]:
    if keys:
        return [pipeline.window_named(key) for key in keys]
    if scn_from is None and scn_to is None:
        raise ConfigError(
            "no window was named", hint="Name windows, or give --from and --to (SCNs)."
        )
    low = 0 if scn_from is None else scn_from
    high = float("inf") if scn_to is None else scn_to
    applied = _windows(pipeline, "applied")
    chosen = [one for one in applied if low <= one.scn_low and one.scn_high <= high]
    if not chosen:
        raise ConfigError(
            "no window that was applied lies in this range",
            hint="`redolake windows` lists them with their SCNs.",
            applied=len(applied),
        )
    return chosen
