"""Why is a source behind, and what is the one thing to change?

Facts in, verdict out: nothing here asks a database or a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cdc_core.model.reports import TransactionStatus, WriteWay
from cdc_core.model.wording import counted

Stretch = Literal["table", "apply", "capture", "open"]
"""What the newest redo waits for on its way into a table, in the order in which a lag is made of
them: for one table that stands still, for applying, for capture, for its window to close."""

LagCause = Literal[
    "nothing",
    "transaction",
    "oracle",
    "snapshot",
    "error",
    "nobody",
    "table",
    "log-switch",
    "redo-end",
    "reader",
    "redo-missing",
    "logminer-start",
    "logminer-fetch",
    "landing",
    "staging",
    "spark-merge",
    "copy-on-write",
    "deletion-vectors",
    "append",
]

KEEPS_UP_SECONDS = 60
"""A source that is less behind needs no change."""

ALONE_SECONDS = 120
"""Work that waits longer, while no process holds a lease or has finished a step, is left alone. A
loop between two rounds holds none."""

LONG_TRANSACTION_SECONDS = 600
"""A transaction that is open longer is named where nothing else is behind."""

SESSIONS_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LagPart:
    """A stretch of the lag: its SCNs, ``(scn_low, scn_high]``, and its seconds by Oracle's clock;
    None where Oracle is not reached."""

    what: Stretch
    scn_low: int
    scn_high: int
    seconds: float | None

    @property
    def scns(self) -> int:
        """How many SCNs it has."""
        return self.scn_high - self.scn_low


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWork:
    """What the last windows took for one table. ``seconds`` of applying, ``ways`` in which its
    mirror was written, the costliest first. ``stage_seconds`` and ``merge_seconds`` are counted
    since the metadata store was made: their proportion counts."""

    table: str
    changes: int
    seconds: float
    ways: tuple[WriteWay, ...]
    stage_seconds: float
    merge_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentWork:
    """What the newest captured ``windows`` took. ``redo_seconds`` are those of the database that
    they hold, None for fewer than two windows; ``capture_seconds`` contain ``start_seconds``
    (naming logs, starting LogMiner) and ``fetch_seconds`` (waiting for its rows). LogMiner gave
    ``rows_mined`` rows, of which ``rows_landed`` of captured tables landed. ``tables``: the
    costliest first."""

    windows: int
    redo_seconds: float | None
    logs: int
    rows_mined: int
    rows_landed: int
    capture_seconds: float
    start_seconds: float
    fetch_seconds: float
    apply_seconds: float
    tables: tuple[TableWork, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTable:
    """A table that takes no windows, or that has no position yet: its state, its position, why, and
    what brings it back."""

    table: str
    state: str
    position: int | None
    reason: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LagFacts:
    """What is known of a source that may be behind.

    ``scn_oracle`` is Oracle's SCN now, ``scn_closable`` the SCN up to which windows can be closed
    now, ``scn_captured`` the end of the newest captured window, ``scn_applied`` the SCN that all
    tables have which take windows, ``scn_table`` that of the table that is furthest behind; None
    where there is none. ``parts`` lie between these and make up the whole lag.
    ``work_waits_seconds`` says for how long the oldest window could have been carried,
    ``idle_seconds`` how long ago the last step ended, None if there was none; ``holders`` are the
    living processes' leases. ``not_closable`` says why the reader gives no window (its error and
    its hint), ``last_error`` the error of the first window that is not applied. ``reader`` is
    ``capture.type``; ``waits_for_log_switch``, ``can_close_online``, ``reads_dictionary``,
    ``sessions`` and ``merges_by_spark`` (``lake.merge: spark``) are as configured.
    """

    source: str
    scn_oracle: int | None
    scn_closable: int | None
    scn_captured: int | None
    scn_applied: int | None
    scn_table: int | None
    parts: tuple[LagPart, ...]
    oracle_error: str | None
    not_closable: tuple[str, str] | None
    last_error: str | None
    windows_to_capture: int
    windows_to_apply: int
    work_waits_seconds: float | None
    idle_seconds: float | None
    holders: tuple[str, ...]
    waiting: tuple[WaitingTable, ...]
    oldest_open: TransactionStatus | None
    work: RecentWork
    reader: str
    waits_for_log_switch: bool
    can_close_online: bool
    reads_dictionary: bool
    sessions: int
    merges_by_spark: bool

    @property
    def seconds(self) -> float | None:
        """How far the table that is furthest behind is behind Oracle."""
        known = [one.seconds for one in self.parts if one.seconds is not None]
        return sum(known) if known else None

    @property
    def scns(self) -> int:
        """The same in SCNs."""
        return sum(one.scns for one in self.parts)


@dataclass(frozen=True, slots=True)
class LagVerdict:
    """The cause with the largest part in the lag, in a sentence, and the one thing to change."""

    cause: LagCause
    why: str
    change: str


def explain_lag(facts: LagFacts) -> LagVerdict:
    """Name the cause and the one thing to change.

    First what stops everything; then, if the lag is worth a word, its longest stretch. Of a stretch
    that is work, the part that took the most seconds in the last windows counts.
    """
    if facts.oracle_error is not None:
        return LagVerdict(
            "oracle",
            facts.oracle_error,
            "`redolake doctor` says what is missing",
        )
    if facts.scn_table is None:
        return LagVerdict(
            "snapshot",
            "no table has been read to the end yet, so none takes windows",
            "`redolake snapshot` reads them",
        )
    if facts.last_error is not None:
        return LagVerdict(
            "error",
            f"the next window fails: {facts.last_error}",
            "`redolake run` tries it again once its cause is gone",
        )
    if (facts.seconds or 0) < KEEPS_UP_SECONDS:
        return _keeps_up(facts)
    longest = max(facts.parts, key=lambda one: one.seconds or 0)
    if longest.what == "table":
        return _of_table(facts)
    if longest.what == "open":
        return _of_open_end(facts)
    if _is_left_alone(facts):
        return LagVerdict(
            "nobody",
            f"{counted(facts.windows_to_capture, 'window')} to capture and {facts.windows_to_apply} to apply, "
            "and no process works on them",
            "`redolake run --loop`, or the schedule or sensor that does this in Dagster",
        )
    return _of_capture(facts) if longest.what == "capture" else _of_apply(facts)


def _keeps_up(facts: LagFacts) -> LagVerdict:
    oldest = facts.oldest_open
    if oldest is not None and (oldest.open_seconds or 0) >= LONG_TRANSACTION_SECONDS:
        return LagVerdict(
            "transaction",
            f"the tables have all that is committed; transaction {oldest.xid} of "
            f"{oldest.username or 'an unknown user'} has been open for {oldest.open_seconds:.0f} s,"
            f" and its {counted(oldest.rows, 'row')} will come with its COMMIT",
            "Have its session commit; `redolake status` names it",
        )
    return LagVerdict("nothing", "the source keeps up", "Nothing")


def _is_left_alone(facts: LagFacts) -> bool:
    idle = facts.idle_seconds is None or facts.idle_seconds >= ALONE_SECONDS
    return not facts.holders and idle and (facts.work_waits_seconds or 0) >= ALONE_SECONDS


def _of_table(facts: LagFacts) -> LagVerdict:
    """Of the tables that take no windows, the one that is furthest behind."""
    known = [one for one in facts.waiting if one.position is not None]
    slowest = min(known, key=lambda one: one.position or 0)
    return LagVerdict(
        "table",
        f"{slowest.table} {'has' if slowest.state == 'failed' else 'is'} {slowest.state} and takes no windows: {slowest.reason}",
        slowest.way_out,
    )


def _of_open_end(facts: LagFacts) -> LagVerdict:
    """What cannot be read yet."""
    if facts.not_closable is not None:
        return LagVerdict("redo-missing", *facts.not_closable)
    if facts.reader != "logminer":
        return LagVerdict(
            "reader",
            f"{facts.reader} has not written the newest changes yet",
            f"Look whether {facts.reader} runs: its log says what it waits for",
        )
    if not facts.waits_for_log_switch:
        return LagVerdict(
            "redo-end",
            "an idle instance has not written its redo, so windows end below it",
            "Set capture.flush_table",
        )
    change = (
        "Set capture.close_at: online"
        if facts.can_close_online
        else "ALTER SYSTEM SET ARCHIVE_LAG_TARGET = 300, which makes Oracle switch logs"
    )
    return LagVerdict(
        "log-switch", "Oracle has not switched its redo log, so no window can close", change
    )


def _of_capture(facts: LagFacts) -> LagVerdict:
    work = facts.work
    own = work.capture_seconds - work.start_seconds - work.fetch_seconds
    longest = max(work.start_seconds, work.fetch_seconds, own)
    spent = f"of {work.capture_seconds:.1f} s of capture, {longest:.1f} s"
    if longest == own and own > 0:
        return LagVerdict(
            "landing",
            f"{spent} went into writing what LogMiner gave",
            "Put `landing` on faster storage",
        )
    if longest == work.fetch_seconds:
        change = (
            f"Set capture.sessions: {min(SESSIONS_MAX, 2 * facts.sessions)}"
            if facts.sessions < SESSIONS_MAX
            else "Take out of `tables` what nobody needs: `redolake redo-profile` counts rows and bytes"
        )
        return LagVerdict(
            "logminer-fetch",
            f"{spent} went into waiting for LogMiner's {counted(work.rows_mined, 'row')}",
            change,
        )
    change = (
        "Set capture.strategy: online_catalog, which reads no dictionary from the redo"
        if facts.reads_dictionary
        else "Raise capture.window_redo_bytes_max: fewer windows start LogMiner less often"
    )
    return LagVerdict(
        "logminer-start",
        f"{spent} went into starting LogMiner over {counted(work.logs, 'log')}",
        change,
    )


_MERGING: dict[WriteWay, tuple[LagCause, str]] = {
    "merge": (
        "spark-merge",
        "Set maintenance.deletion_vectors: always, so that windows mark rows",
    ),
    "copy-on-write": (
        "copy-on-write",
        "Set maintenance.deletion_vectors: always, so that windows mark rows",
    ),
    "deletion vectors": (
        "deletion-vectors",
        "`redolake maintain` puts its files together",
    ),
    "append": ("append", "Raise lake.tables_at_once"),
}


def _of_apply(facts: LagFacts) -> LagVerdict:
    """The costliest table decides: staging or merging, and by which writer."""
    if not facts.work.tables:
        return LagVerdict(
            "staging", "windows wait to be applied, and none was timed yet", "`redolake run`"
        )
    table = facts.work.tables[0]
    spent = f"{table.table} took {table.seconds:.1f} s of {facts.work.apply_seconds:.1f} s"
    if table.stage_seconds >= table.merge_seconds or not table.ways:
        return LagVerdict(
            "staging",
            f"{spent}, most of it to decode its changes and to write the change log",
            "Raise lake.tables_at_once",
        )
    cause, change = _MERGING[table.ways[0]]
    if cause == "spark-merge" and facts.merges_by_spark:
        change = "Set lake.merge: auto, so that Redolake merges into small mirrors without Spark"
    by = "Spark's MERGE" if table.ways[0] == "merge" else table.ways[0]
    return LagVerdict(cause, f"{spent}, most of it to merge into its mirror ({by})", change)
