"""Which redo logs cover a range of SCNs, proved thread by thread?

A window is read only from logs without a gap: sequence numbers follow each other and SCNs join, in
one incarnation. What is not there yet makes the window wait; what is gone stops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from cdc_core.config import LogMinerConfig
from cdc_core.errors import RESNAPSHOT, LogsNotReadyError, RedoUnavailableError
from cdc_core.model.scn import OPEN_ENDED_FROM, SCN_MAX, Scn
from cdc_core.oracle.session import OracleSession

_ONLINE = """
SELECT L.THREAD#, L.SEQUENCE#, MIN(F.MEMBER), L.FIRST_CHANGE#, L.NEXT_CHANGE#, L.BYTES, L.STATUS
  FROM V$LOG L, V$LOGFILE F
 WHERE F.GROUP# = L.GROUP# AND L.STATUS IN ('CURRENT', 'ACTIVE', 'INACTIVE')
 GROUP BY L.THREAD#, L.SEQUENCE#, L.FIRST_CHANGE#, L.NEXT_CHANGE#, L.BYTES, L.STATUS"""
_ARCHIVED = """
SELECT A.THREAD#, A.SEQUENCE#, A.NAME, A.FIRST_CHANGE#, A.NEXT_CHANGE#, A.BLOCKS * A.BLOCK_SIZE, {status}, A.ARCHIVED,
       A.DEST_ID, (SYSDATE - A.COMPLETION_TIME) * 86400
  FROM V$ARCHIVED_LOG A, V$DATABASE D
 WHERE A.NEXT_CHANGE# > :scn AND A.STANDBY_DEST = 'NO'
   AND A.RESETLOGS_CHANGE# = D.RESETLOGS_CHANGE# AND A.RESETLOGS_TIME = D.RESETLOGS_TIME"""
_STATUS = "A.STATUS"
_STATUS_OF_YOUNGER = "CASE WHEN A.FIRST_TIME >= SYSDATE - :hours / 24 THEN A.STATUS ELSE 'D' END"
_ALL_LOGS = LogMinerConfig()
_BEFORE = """
SELECT A.THREAD#, MAX(A.SEQUENCE#), MAX(A.NEXT_CHANGE#)
  FROM V$ARCHIVED_LOG A, V$DATABASE D
 WHERE A.NEXT_CHANGE# <= :scn
   AND A.RESETLOGS_CHANGE# = D.RESETLOGS_CHANGE# AND A.RESETLOGS_TIME = D.RESETLOGS_TIME
 GROUP BY A.THREAD#"""
_THREADS = """
SELECT T.THREAD#, T.STATUS, T.ENABLED, T.ENABLE_CHANGE#, T.DISABLE_CHANGE#, T.CHECKPOINT_CHANGE#, T.LAST_REDO_CHANGE#,
       D.RESETLOGS_CHANGE#, D.CURRENT_SCN
  FROM V$THREAD T, V$DATABASE D"""

MISSING_SECONDS = 300
"""How long after a later log was archived one that neither V$LOG nor V$ARCHIVED_LOG shows counts as
gone. Archiver processes finish in any order, and a standby registers logs as they arrive."""

_FIRST_SEQUENCE = 1
"""Of each thread, in each incarnation."""

LogState = Literal["current", "online", "archived", "gone", "before"]

_RANK: dict[str, int] = {"archived": 0, "online": 1, "current": 2, "gone": 3, "before": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoLog:
    """One copy of one redo log; thread and sequence name the log. Its redo has
    ``first_change <= SCN < next_change``.

    ``state``: ``current`` is being written (``next_change`` is then ``SCN_MAX``), ``online`` was
    and may be overwritten, ``archived`` stays (since ``archived_seconds``), ``gone`` was deleted,
    ``before`` ended before the range that was asked for (only its sequence counts).
    """

    thread: int
    sequence: int
    name: str
    first_change: int
    next_change: int
    bytes: int
    state: LogState
    destination: int = 0
    archived_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoThread:
    """A redo thread as V$THREAD shows it."""

    thread: int
    is_open: bool
    enabled: Literal["PUBLIC", "PRIVATE", "DISABLED"]
    enable_change: int
    disable_change: int
    checkpoint_change: int
    last_redo_change: int

    @property
    def is_written(self) -> bool:
        """Does an instance write this thread now? PRIVATE means that one instance asks for it by
        its number: it counts."""
        return self.is_open and self.enabled != "DISABLED"


@dataclass(frozen=True, slots=True)
class LogStart:
    """Where a thread's newest online log begins (FIRST_CHANGE#), and where its newest switched log
    ends (NEXT_CHANGE#; None if it shows none)."""

    first_change: int
    switched_change: int | None


@dataclass(frozen=True, slots=True)
class RedoThreads:
    """The redo threads, and the incarnation (RESETLOGS_CHANGE#) and the SCN of the database in
    which they were read."""

    threads: tuple[RedoThread, ...]
    resetlogs_change: int
    current_scn: Scn

    @property
    def written(self) -> list[RedoThread]:
        """Those that an instance writes now."""
        return [one for one in self.threads if one.is_written]


@dataclass(frozen=True, slots=True)
class RedoState:
    """The online logs, and the redo threads a moment later: a thread that opens in between is known
    without its logs, and makes a window wait."""

    online: tuple[RedoLog, ...]
    database: RedoThreads


def read_redo_state(session: OracleSession) -> RedoState:
    """What is written now.

    Raises:
        LogsNotReadyError: The database shows no redo thread.
    """
    online = read_online_logs(session)
    return RedoState(tuple(online), read_redo_threads(session))


def read_logs(
    session: OracleSession,
    scn: Scn,
    how: LogMinerConfig = _ALL_LOGS,
    *,
    online: Sequence[RedoLog] | None = None,
) -> list[RedoLog]:
    """Every log with redo above ``scn`` that the configuration lets Redolake read, all copies, of
    the present incarnation; and per thread the log before, where that says more
    (:func:`begin_with`).

    Online logs are read first: one that is archived in between then appears in both, never in
    neither.

    Args:
        online: The online logs, if they were read a moment ago.
    """
    shown: Sequence[RedoLog] = []
    if not how.reads_archived_only:
        shown = read_online_logs(session) if online is None else online
    logs = [log for log in shown if log.next_change > scn]
    logs += read_archived_logs(session, scn, how)
    if not how.reads_archived_only and begin_with(logs, scn):
        return logs
    for thread, sequence, next_change in session.fetch_all(_BEFORE, {"scn": scn}):
        logs.append(
            RedoLog(
                thread=int(thread),
                sequence=int(sequence),
                name="",
                first_change=0,
                next_change=int(next_change),
                bytes=0,
                state="before",
            )
        )
    return logs


def read_online_logs(session: OracleSession) -> list[RedoLog]:
    """The online logs with redo, one member of each group."""
    return [_online_log(row) for row in session.fetch_all(_ONLINE)]


def read_archived_logs(
    session: OracleSession, scn: Scn, how: LogMinerConfig = _ALL_LOGS
) -> list[RedoLog]:
    """The archived logs with redo above ``scn``, deleted ones among them."""
    status = _STATUS
    binds: dict[str, object] = {"scn": scn}
    if how.archive_hours is not None:
        status, binds = _STATUS_OF_YOUNGER, {**binds, "hours": how.archive_hours}
    rows = session.fetch_all(_ARCHIVED.format(status=status), binds)
    return _of_destinations([_archived_log(row) for row in rows], how.archive_destinations)


def begin_with(logs: Sequence[RedoLog], scn: int) -> bool:
    """Does each thread show a log with the SCN behind ``scn``? Then its redo above ``scn`` begins
    there, and the log before that one says nothing more. The current log of each thread is always
    among the online ones. Pure."""
    lowest: dict[int, int] = {}
    for log in logs:
        lowest[log.thread] = min(lowest.get(log.thread, SCN_MAX), log.first_change)
    return bool(lowest) and all(first <= scn + 1 for first in lowest.values())


def _of_destinations(logs: list[RedoLog], names: Sequence[str]) -> list[RedoLog]:
    """The copies in the named destinations, in the order of the names (``destination`` counts
    them); all logs if none is named."""
    if not names:
        return logs
    # DEST_ID is the number in the destination's name (Oracle Database Reference, V$ARCHIVE_DEST).
    places = {int(name.rpartition("_")[2]): at for at, name in enumerate(names)}
    return [
        replace(log, destination=places[log.destination])
        for log in logs
        if log.destination in places
    ]


def archived_end(logs: Iterable[RedoLog], threads: Iterable[RedoThread]) -> Scn | None:
    """The last SCN up to which the archived logs of every thread that is written go; None if a
    thread has none. Pure."""
    ends: dict[int, int] = {}
    for log in logs:
        if log.state in ("archived", "before"):
            ends[log.thread] = max(ends.get(log.thread, 0), log.next_change)
    written = [one.thread for one in threads if one.is_written]
    if not written or any(thread not in ends for thread in written):
        return None
    return Scn(min(ends[thread] for thread in written) - 1)


def read_redo_threads(session: OracleSession) -> RedoThreads:
    """All redo threads, with what the database is.

    Raises:
        LogsNotReadyError: There is none.
    """
    rows = session.fetch_all(_THREADS)
    if not rows:
        raise _none_open()
    threads = tuple(
        RedoThread(
            thread=int(thread),
            is_open=status == "OPEN",
            enabled=enabled,
            enable_change=int(enable or 0),
            disable_change=int(disable or 0),
            checkpoint_change=int(checkpoint or 0),
            last_redo_change=int(last or 0),
        )
        for thread, status, enabled, enable, disable, checkpoint, last, *_ in rows
    )
    resetlogs_change, scn = rows[0][-2:]
    return RedoThreads(threads, int(resetlogs_change), Scn(int(scn)))


def read_threads(session: OracleSession) -> list[RedoThread]:
    """All redo threads; errors as for :func:`read_redo_threads`."""
    return list(read_redo_threads(session).threads)


def log_starts(state: RedoState) -> dict[int, LogStart]:
    """Per thread that is written now: where its newest online log begins, and where its newest
    switched one ends. Pure.

    Raises:
        LogsNotReadyError: No thread is open, or one shows no log, as for a moment while it is
            switched.
    """
    found = {}
    for thread in state.database.written:
        own = [log for log in state.online if log.thread == thread.thread]
        if not own:
            raise _not_ready(thread, 0, thread.last_redo_change)
        ends = [log.next_change for log in own if log.next_change != SCN_MAX]
        newest = max(own, key=lambda log: log.sequence)
        found[thread.thread] = LogStart(newest.first_change, max(ends, default=None))
    if not found:
        raise _none_open()
    return found


def _none_open() -> LogsNotReadyError:
    return LogsNotReadyError(
        "no redo thread of the database is open",
        hint="Capture continues as soon as the database is open.",
    )


def cover(
    logs: Iterable[RedoLog],
    threads: Sequence[RedoThread],
    scn_low: Scn,
    scn_high: Scn,
    *,
    resetlogs_change: int = 0,
) -> list[RedoLog]:
    """Choose the logs that hold all redo with ``scn_low < SCN <= scn_high``, one copy each, by
    thread and sequence. Pure.

    Args:
        resetlogs_change: Where the present incarnation, to which all of ``logs`` belong, began.

    Raises:
        LogsNotReadyError: A log is not archived or not registered yet, or redo is not written yet.
        RedoUnavailableError: A log that is needed is gone, or the range begins before the oldest
            log.
    """
    if scn_low + 1 < resetlogs_change:
        raise RedoUnavailableError(
            "the window begins before the database was opened with RESETLOGS",
            hint="Start the source over with a snapshot of all its tables.",
            scn=scn_low,
            resetlogs_change=resetlogs_change,
        )
    chosen: list[RedoLog] = []
    copies = list(logs)
    for thread in sorted(threads, key=lambda one: one.thread):
        bounds = _needed(thread, scn_low, scn_high)
        if bounds is not None:
            own = best_copies(log for log in copies if log.thread == thread.thread)
            chosen += _cover_thread(thread, own, *bounds)
    if not chosen:
        raise LogsNotReadyError(
            "no redo thread has redo in this range",
            hint="Capture continues as soon as the database is open.",
            scn_low=scn_low,
            scn_high=scn_high,
        )
    return chosen


def best_copies(logs: Iterable[RedoLog]) -> list[RedoLog]:
    """One copy of each log, by thread and sequence: archived before online, the first destination
    before others."""
    best: dict[tuple[int, int], RedoLog] = {}
    for log in sorted(logs, key=lambda one: (_RANK[one.state], one.destination)):
        best.setdefault((log.thread, log.sequence), log)
    return sorted(best.values(), key=lambda one: (one.thread, one.sequence))


def _needed(thread: RedoThread, low: int, high: int) -> tuple[int, int] | None:
    """The part of ``(low, high]`` in which the thread can have redo, as first and last SCN; None if
    there is none."""
    first, last = low + 1, high
    if thread.enabled == "DISABLED":
        last = min(last, thread.disable_change)
    if not thread.is_open and (thread.checkpoint_change or thread.enabled != "DISABLED"):
        # All redo of a closed thread lies below its last checkpoint, where its last log ends; it is
        # closed before it is disabled.
        last = min(last, thread.checkpoint_change - 1)
    first = max(first, thread.enable_change)
    return (first, last) if first <= last else None


def _cover_thread(thread: RedoThread, logs: list[RedoLog], first: int, last: int) -> list[RedoLog]:
    by_sequence = {log.sequence: log for log in logs}
    at = _starting_log(thread, logs, first)
    chosen = [at]
    while chosen[-1].next_change <= last:
        after = chosen[-1]
        log = by_sequence.get(after.sequence + 1)
        if log is None:
            raise _missing(thread, logs, after.sequence + 1, after.next_change)
        if log.state == "gone":
            raise _gone(log)
        if log.first_change < after.next_change:
            raise RedoUnavailableError(
                "two redo logs of one thread overlap, so they belong to different incarnations",
                hint=_NEW_SNAPSHOT,
                thread=log.thread,
                sequence=log.sequence,
            )
        chosen.append(log)
    if chosen[-1].state == "current" and thread.is_open and thread.last_redo_change < last:
        raise LogsNotReadyError(
            "redo up to the end of the window is not on disk yet",
            hint="Redolake can capture the window shortly afterwards.",
            thread=thread.thread,
            scn=last,
            written=thread.last_redo_change,
        )
    return chosen


def _starting_log(thread: RedoThread, logs: list[RedoLog], first: int) -> RedoLog:
    for log in logs:
        if log.state != "before" and log.first_change <= first < log.next_change:
            if log.state == "gone":
                raise _gone(log)
            return log
    for earlier, later in pairwise(logs):
        if earlier.next_change <= first < later.first_change:
            if later.sequence == earlier.sequence + 1:
                # The thread was closed in between: no redo was written, as the unbroken sequence
                # shows.
                if later.state == "gone":
                    raise _gone(later)
                return later
            raise _missing(thread, logs, earlier.sequence + 1, first)
    if logs and logs[-1].next_change <= first:
        raise _not_ready(thread, logs[-1].sequence + 1, first)
    if not logs:
        raise _not_ready(thread, 0, first)
    if logs[0].sequence == _FIRST_SEQUENCE:
        # A thread that was enabled, and not opened yet: before its first log there was no redo.
        if logs[0].state == "gone":
            raise _gone(logs[0])
        return logs[0]
    raise RedoUnavailableError(
        "no redo log covers the start of the window",
        hint=_NEW_SNAPSHOT,
        thread=thread.thread,
        scn=first,
        oldest=min(log.first_change for log in logs if log.state != "before"),
    )


_NEW_SNAPSHOT = (
    "Restore the archived logs (RMAN: RESTORE ARCHIVELOG), or run `redolake source skip-gap`: the tables that need this redo leave, "
    f"and {RESNAPSHOT} brings each back after the gap."
)


def _missing(
    thread: RedoThread, logs: Sequence[RedoLog], sequence: int, scn: int
) -> LogsNotReadyError | RedoUnavailableError:
    """A log that nobody shows: late, or gone for good once a later one has been archived for
    :data:`MISSING_SECONDS`."""
    later = [log for log in logs if log.sequence > sequence and log.state in ("archived", "gone")]
    if not any(log.archived_seconds >= MISSING_SECONDS for log in later):
        return _not_ready(thread, sequence, scn)
    known = {log.sequence for log in logs}
    last = next(one - 1 for one in range(sequence + 1, max(known) + 1) if one in known)
    which = str(sequence) if last == sequence else f"{sequence}-{last}"
    until = "" if last == sequence else f" UNTIL SEQUENCE {last}"
    word = "SEQUENCE" if last == sequence else "FROM SEQUENCE"
    return RedoUnavailableError(
        "a redo log that the window needs is neither online nor archived, although later ones are archived",
        hint=f"In RMAN, RESTORE ARCHIVELOG {word} {sequence}{until} THREAD {thread.thread}; or, if the files are there, "
        "CATALOG START WITH '<their folder>'. If they are lost, `redolake source skip-gap` ends the streams of the tables that need this redo, and "
        f"{RESNAPSHOT} brings each back after the gap.",
        thread=thread.thread,
        sequence=which,
        scn=scn,
    )


def _not_ready(thread: RedoThread, sequence: int, scn: int) -> LogsNotReadyError:
    return LogsNotReadyError(
        "a redo log is not archived or not registered yet",
        hint="The window waits; if that lasts, look for archiver errors in the alert log.",
        thread=thread.thread,
        sequence=sequence,
        scn=scn,
    )


def _gone(log: RedoLog) -> RedoUnavailableError:
    return RedoUnavailableError(
        "a redo log that the window needs was deleted, or is older than capture.archive_hours",
        hint=_NEW_SNAPSHOT,
        thread=log.thread,
        sequence=log.sequence,
        first_change=log.first_change,
        next_change=log.next_change,
    )


def _online_log(row: tuple[object, ...]) -> RedoLog:
    thread, sequence, name, first, following, size, status = row
    current = status == "CURRENT"
    return RedoLog(
        thread=_int(thread),
        sequence=_int(sequence),
        name=str(name),
        first_change=_int(first),
        next_change=_next(following, is_open=current),
        bytes=_int(size),
        state="current" if current else "online",
    )


def _archived_log(row: tuple[object, ...]) -> RedoLog:
    thread, sequence, name, first, following, size, status, archived, destination, age = row
    usable = status == "A" and archived == "YES" and name is not None
    return RedoLog(
        thread=_int(thread),
        sequence=_int(sequence),
        name=str(name or ""),
        first_change=_int(first),
        next_change=_next(following),
        bytes=_int(size),
        state="archived" if usable else "gone",
        destination=_int(destination),
        archived_seconds=float(str(age)) if age is not None else 0.0,
    )


def _next(value: object, *, is_open: bool = False) -> int:
    """NEXT_CHANGE# as an exclusive end; NULL and the huge values that Oracle shows for a log in use
    mean "no end yet"."""
    if is_open or value is None or _int(value) >= OPEN_ENDED_FROM:
        return SCN_MAX
    return _int(value)


def _int(value: object) -> int:
    return int(str(value)) if value is not None else 0
