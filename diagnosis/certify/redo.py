"""Do logs, redo threads and open transactions look as capture takes them to?"""

from __future__ import annotations

from itertools import pairwise

from cdc_core.model.scn import OPEN_ENDED_FROM, SCN_MAX
from diagnosis.certify.probes import (
    Answers,
    LookProbe,
    Verdict,
    cannot_tell,
    decided,
    first_of,
    holds,
    known_words,
    otherwise,
    rows_of,
)

_REFERENCE = "Oracle Database Reference 19c"
_SEEN_LOGS = 200
_SCN = "SELECT CURRENT_SCN FROM V$DATABASE"
_LAST_REDO = """
SELECT MIN(LAST_REDO_CHANGE#) FROM V$THREAD WHERE STATUS = 'OPEN' AND ENABLED IN ('PUBLIC', 'PRIVATE')"""
_IDLE_SECONDS = 4.0
_LOG_STATES = {"CURRENT", "ACTIVE", "INACTIVE", "UNUSED", "CLEARING", "CLEARING_CURRENT"}
_ARCHIVED_STATES = {"A", "D", "U", "X"}
_ENABLED = {"PUBLIC", "PRIVATE", "DISABLED"}
_GIB = 1024**3


def _scn_moves(answers: Answers) -> Verdict:
    first, later = int(first_of(answers, "scn")[0]), int(first_of(answers, "later")[0])
    return decided(first <= later, f"{later - first} SCNs from one look to the next")


def _scn_fits(answers: Answers) -> Verdict:
    scn = int(first_of(answers, "scn")[0])
    return decided(0 < scn <= SCN_MAX, f"an SCN of {scn.bit_length()} bits")


def _one_current(answers: Answers) -> Verdict:
    rows = rows_of(answers, "logs")
    counts = [int(count) for _thread, count in rows]
    if not counts:
        return cannot_tell("no thread is open")
    if min(counts) == 0:
        return cannot_tell("a log was being switched")
    return decided(max(counts) == 1, f"{len(counts)} open threads, {max(counts)} current logs each")


def _open_end(answers: Answers) -> Verdict:
    ends = [one for (one,) in rows_of(answers, "ends")]
    if not ends:
        return cannot_tell("no current log")
    shown = sorted({"NULL" if one is None else str(int(one)) for one in ends})
    return decided(
        all(one is None or int(one) >= OPEN_ENDED_FROM for one in ends), ", ".join(shown)
    )


def _chain(answers: Answers) -> Verdict:
    """Does each log begin where the one before it ended?"""
    rows = rows_of(answers, "logs")
    joined = broken = missing = 0
    for before, after in pairwise(rows):
        if before[:2] != after[:2] or before[2] == after[2]:
            continue
        if int(after[2]) != int(before[2]) + 1:
            missing += 1
        elif int(after[3]) == int(before[4]):
            joined += 1
        else:
            broken += 1
    if not joined + broken:
        return cannot_tell(f"fewer than two archived logs in a row ({len(rows)} shown)")
    return decided(
        not broken, f"{joined} borders join, {broken} do not, {missing} sequences missing"
    )


def _copies(answers: Answers) -> Verdict:
    rows = rows_of(answers, "logs")
    if not rows:
        return cannot_tell("no online log is archived yet")
    differing = sum(int(online) != int(archived) for online, archived in rows)
    return decided(not differing, f"{len(rows)} logs in both views, {differing} differ")


def _log_states(answers: Answers) -> Verdict:
    words = {str(word) for (word,) in rows_of(answers, "states")}
    return decided(words <= _LOG_STATES, known_words(words, _LOG_STATES))


def _archived_states(answers: Answers) -> Verdict:
    words = {str(word) for (word,) in rows_of(answers, "states")}
    if not words:
        return cannot_tell("no log is archived yet")
    return decided(words <= _ARCHIVED_STATES, known_words(words, _ARCHIVED_STATES))


def _threads(answers: Answers) -> Verdict:
    rows = rows_of(answers, "threads")
    words = {str(enabled) for _status, enabled in rows}
    written = sum(status == "OPEN" and enabled != "DISABLED" for status, enabled in rows)
    good = words <= _ENABLED and {str(status) for status, _ in rows} <= {"OPEN", "CLOSED"}
    return decided(
        good, f"{len(rows)} threads, {written} written: {known_words(words, _ENABLED)}",
        threads=written,
    )  # fmt: skip


def _last_redo(answers: Answers) -> Verdict:
    last, scn = first_of(answers, "last")[0], first_of(answers, "scn")[0]
    if last is None:
        return cannot_tell("no thread is open")
    ahead = int(last) - int(scn)
    return decided(ahead <= 0, f"{-ahead} SCNs behind CURRENT_SCN")


def _idle_redo(answers: Answers) -> Verdict:
    first, later = (first_of(answers, name)[0] for name in ("first", "later"))
    if first is None or later is None:
        return cannot_tell("no thread is open")
    moved = int(later) - int(first)
    if moved > 0:
        return holds(f"{moved} SCNs in {_IDLE_SECONDS:.0f} seconds")
    return otherwise(f"no advance in {_IDLE_SECONDS:.0f} seconds")


def _resetlogs(answers: Answers) -> Verdict:
    rows = rows_of(answers, "newest")
    if not rows or rows[0][0] is None:
        return cannot_tell("no log is archived yet")
    [(same,)] = rows
    return decided(bool(same), "the newest archived log is of the present incarnation" if same else
                   "the newest archived log is of another incarnation")  # fmt: skip


def _switches(answers: Answers) -> Verdict:
    count, written = first_of(answers, "day")
    largest, groups = first_of(answers, "online")
    count, written = int(count or 0), int(written or 0)
    seen = (
        f"{count} logs and {written / _GIB:.2f} GiB in 24 hours; {int(groups)} online logs of up to "
        f"{int(largest) / 1024**2:.0f} MiB"
    )
    facts = {"logs_a_day": count, "redo_bytes_a_day": written, "log_bytes": int(largest)}
    if not count:
        return cannot_tell(f"no log was archived; {seen}", **facts)
    return decided(count <= 6 * 24, seen, **facts)


def _kept(answers: Answers) -> Verdict:
    hours = first_of(answers, "kept")[0]
    if hours is None:
        return cannot_tell("no log is archived yet")
    return decided(
        int(hours) >= 24, f"archived logs go back {int(hours)} hours", hours_kept=int(hours)
    )


def _archived_bytes(answers: Answers) -> Verdict:
    rows = rows_of(answers, "logs")
    if not rows:
        return cannot_tell("no online log is archived yet")
    larger = sum(int(used) > int(size) for used, size in rows)
    return decided(not larger, f"{len(rows)} logs, {larger} larger than their online log")


def _start_scn(answers: Answers) -> Verdict:
    unassigned, assigned = (int(count or 0) for count in first_of(answers, "open"))
    if unassigned:
        return holds(f"{unassigned} of {unassigned + assigned} open transactions have none yet")
    return cannot_tell(f"{assigned} open transactions, all with a START_SCN")


def _start_before(answers: Answers) -> Verdict:
    """CURRENT_SCN is read after the transactions."""
    newest, scn = first_of(answers, "open")[0], first_of(answers, "scn")[0]
    if newest is None:
        return cannot_tell("no transaction is open")
    return decided(int(newest) <= int(scn), "each open transaction began at or below CURRENT_SCN"
                   if int(newest) <= int(scn) else "one began above CURRENT_SCN")  # fmt: skip


def _members(answers: Answers) -> Verdict:
    groups, without = (int(one or 0) for one in first_of(answers, "groups"))
    return decided(not without, f"{groups} log groups, {without} without a file")


def _destinations(answers: Answers) -> Verdict:
    rows = rows_of(answers, "destinations")
    valid = sum(int(count) for status, kind, count in rows if (status, kind) == ("VALID", "LOCAL"))
    return decided(valid > 0, f"{valid} local destinations are valid")


REDO_PROBES: tuple[LookProbe, ...] = (
    LookProbe(
        id="scn.moves-forward",
        belief="CURRENT_SCN never goes back from one query to the next.",
        depends="rule 4, cdc_core/capture/logs/positions.py",
        otherwise="Positions would not be ordered. Stop, and report the platform.",
        source=f"{_REFERENCE}, V$DATABASE",
        queries={"scn": _SCN, "later": _SCN},
        judge=_scn_moves,
    ),
    LookProbe(
        id="scn.fits-64-bits",
        belief="SCNs fit into a signed integer of 64 bits.",
        depends="cdc_core/model/scn.py, landing files and Delta tables",
        otherwise="Landing files cannot hold the SCNs.",
        source=f"{_REFERENCE}, V$DATABASE; Big SCN of 12.2",
        queries={"scn": _SCN},
        judge=_scn_fits,
    ),
    LookProbe(
        id="log.one-current",
        belief="Each open redo thread has one log with STATUS CURRENT, but for a moment during a switch.",
        depends="rule 5, cdc_core/capture/logs/coverage.py",
        otherwise="Windows wait, or end at the wrong log. Report what V$LOG shows.",
        source=f"{_REFERENCE}, V$LOG",
        queries={
            "logs": """
SELECT T.THREAD#, COUNT(L.GROUP#)
  FROM V$THREAD T LEFT JOIN V$LOG L ON L.THREAD# = T.THREAD# AND L.STATUS = 'CURRENT'
 WHERE T.STATUS = 'OPEN' AND T.ENABLED IN ('PUBLIC', 'PRIVATE') GROUP BY T.THREAD#"""
        },
        judge=_one_current,
    ),
    LookProbe(
        id="log.open-end",
        belief="NEXT_CHANGE# of the current log is NULL, or beyond 48 bits.",
        depends="cdc_core/capture/logs/coverage.py (OPEN_ENDED_FROM)",
        otherwise="The current log would count as switched. Report the number.",
        source=f"{_REFERENCE}, V$LOG; 18446744073709551615 and 9295429630892703743 were seen",
        queries={"ends": "SELECT NEXT_CHANGE# FROM V$LOG WHERE STATUS = 'CURRENT'"},
        judge=_open_end,
    ),
    LookProbe(
        id="log.chain",
        belief="In each thread and incarnation, sequences follow each other, and an archived log "
        "begins at the SCN at which the one before it ends.",
        depends="rule 5, cdc_core/capture/logs/coverage.py (cover)",
        otherwise="Windows stop at each border that does not join. Report both rows of V$ARCHIVED_LOG.",
        source=f"{_REFERENCE}, V$ARCHIVED_LOG",
        queries={
            "logs": f"""
SELECT * FROM (
SELECT DISTINCT THREAD#, RESETLOGS_CHANGE#, SEQUENCE#, FIRST_CHANGE#, NEXT_CHANGE#
  FROM V$ARCHIVED_LOG
 WHERE STANDBY_DEST = 'NO' AND FIRST_TIME > SYSDATE - 2
 ORDER BY THREAD#, RESETLOGS_CHANGE#, SEQUENCE#)
 WHERE ROWNUM <= {_SEEN_LOGS}"""
        },
        judge=_chain,
    ),
    LookProbe(
        id="log.copies-agree",
        belief="A log that is online and archived begins at the same SCN in V$LOG and V$ARCHIVED_LOG.",
        depends="cdc_core/capture/logs/coverage.py",
        otherwise="The wrong copy may be read. Report both rows.",
        source=f"{_REFERENCE}, V$LOG, V$ARCHIVED_LOG",
        queries={
            "logs": """
SELECT L.FIRST_CHANGE#, A.FIRST_CHANGE#
  FROM V$LOG L, V$ARCHIVED_LOG A, V$DATABASE D
 WHERE A.THREAD# = L.THREAD# AND A.SEQUENCE# = L.SEQUENCE# AND A.RESETLOGS_CHANGE# = D.RESETLOGS_CHANGE#
   AND L.STATUS <> 'UNUSED'"""
        },
        judge=_copies,
    ),
    LookProbe(
        id="log.states",
        belief="V$LOG.STATUS is CURRENT, ACTIVE, INACTIVE, UNUSED or CLEARING.",
        depends="cdc_core/capture/logs/coverage.py",
        otherwise="Logs of another state are not read. Report the word.",
        source=f"{_REFERENCE}, V$LOG",
        queries={"states": "SELECT DISTINCT STATUS FROM V$LOG"},
        judge=_log_states,
    ),
    LookProbe(
        id="log.archived-states",
        belief="V$ARCHIVED_LOG.STATUS is A, D, U or X.",
        depends="cdc_core/capture/logs/coverage.py",
        otherwise="A log of another state counts as gone. Report the letter.",
        source=f"{_REFERENCE}, V$ARCHIVED_LOG",
        queries={"states": "SELECT DISTINCT STATUS FROM V$ARCHIVED_LOG WHERE STATUS IS NOT NULL"},
        judge=_archived_states,
    ),
    LookProbe(
        id="log.archived-size",
        belief="An archived log is at most as large as its online log.",
        depends="capture.window_redo_bytes_max",
        otherwise="Windows are larger than configured; nothing else follows.",
        source=f"{_REFERENCE}, V$ARCHIVED_LOG (BLOCKS, BLOCK_SIZE)",
        is_needed=False,
        queries={
            "logs": """
SELECT A.BLOCKS * A.BLOCK_SIZE, L.BYTES
  FROM V$LOG L, V$ARCHIVED_LOG A, V$DATABASE D
 WHERE A.THREAD# = L.THREAD# AND A.SEQUENCE# = L.SEQUENCE# AND A.RESETLOGS_CHANGE# = D.RESETLOGS_CHANGE#
   AND L.STATUS <> 'UNUSED'"""
        },
        judge=_archived_bytes,
    ),
    LookProbe(
        id="log.members",
        belief="Each log group in use has a file in V$LOGFILE.",
        depends="cdc_core/capture/logs/coverage.py",
        otherwise="The log cannot be named to LogMiner; windows wait until it is archived.",
        source=f"{_REFERENCE}, V$LOGFILE",
        queries={
            "groups": """
SELECT COUNT(*), SUM(CASE WHEN F.MEMBER IS NULL THEN 1 ELSE 0 END)
  FROM V$LOG L LEFT JOIN V$LOGFILE F ON F.GROUP# = L.GROUP#"""
        },
        judge=_members,
    ),
    LookProbe(
        id="log.incarnation",
        belief="The newest archived log has the RESETLOGS_CHANGE# of V$DATABASE.",
        depends="rule 5, cdc_core/capture/logs/proving.py",
        otherwise="Nothing of the present incarnation is archived yet; windows wait.",
        source=f"{_REFERENCE}, V$ARCHIVED_LOG",
        queries={
            "newest": """
SELECT MAX(CASE WHEN A.RESETLOGS_CHANGE# = D.RESETLOGS_CHANGE# THEN 1 ELSE 0 END)
  FROM V$ARCHIVED_LOG A, V$DATABASE D
 WHERE A.COMPLETION_TIME = (SELECT MAX(COMPLETION_TIME) FROM V$ARCHIVED_LOG)"""
        },
        judge=_resetlogs,
    ),
    LookProbe(
        id="log.switches",
        belief="Logs are switched six times an hour or less.",
        depends="latency of capture.close_at: completed_logs",
        otherwise="LogMiner opens many small logs. Enlarge the online logs to a quarter of the redo "
        "of a busy hour.",
        source="Oracle's advice on log size; measured by others",
        is_needed=False,
        queries={
            "day": """
SELECT COUNT(*), SUM(BLOCKS * BLOCK_SIZE) FROM V$ARCHIVED_LOG
 WHERE FIRST_TIME > SYSDATE - 1 AND STANDBY_DEST = 'NO'
   AND DEST_ID = (SELECT MIN(DEST_ID) FROM V$ARCHIVED_LOG WHERE STANDBY_DEST = 'NO')""",
            "online": "SELECT MAX(BYTES), COUNT(*) FROM V$LOG",
        },
        judge=_switches,
    ),
    LookProbe(
        id="log.kept",
        belief="Archived logs are kept for a day at least.",
        depends="how long capture may stop",
        otherwise="A longer stop of capture is a gap: keep logs longer, or alert early.",
        source="Redolake's advice",
        is_needed=False,
        queries={
            "kept": """
SELECT ROUND((SYSDATE - MIN(FIRST_TIME)) * 24) FROM V$ARCHIVED_LOG
 WHERE STATUS = 'A' AND ARCHIVED = 'YES' AND STANDBY_DEST = 'NO'"""
        },
        judge=_kept,
    ),
    LookProbe(
        id="log.destination",
        belief="V$ARCHIVE_DEST_STATUS shows a destination that is VALID and LOCAL.",
        depends="capture.archive_destinations",
        otherwise="Archived logs are not where the database can open them: windows of completed "
        "logs wait.",
        source=f"{_REFERENCE}, V$ARCHIVE_DEST_STATUS",
        is_needed=False,
        queries={
            "destinations": "SELECT STATUS, TYPE, COUNT(*) FROM V$ARCHIVE_DEST_STATUS GROUP BY STATUS, TYPE"
        },
        judge=_destinations,
    ),
    LookProbe(
        id="thread.words",
        belief="V$THREAD.ENABLED is PUBLIC, PRIVATE or DISABLED, and STATUS OPEN or CLOSED.",
        depends="rule 5, cdc_core/capture/logs/coverage.py",
        otherwise="A thread may be left out of the proof. Report the words.",
        source=f"{_REFERENCE}, V$THREAD",
        queries={"threads": "SELECT STATUS, ENABLED FROM V$THREAD"},
        judge=_threads,
    ),
    LookProbe(
        id="thread.last-redo",
        belief="LAST_REDO_CHANGE# of an open thread is not above CURRENT_SCN.",
        depends="cdc_core/capture/logs/positions.py (upper_bound)",
        otherwise="Windows of capture.close_at: online may end above the redo. Use completed_logs.",
        source=f"{_REFERENCE}, V$THREAD",
        queries={"last": _LAST_REDO, "scn": _SCN},
        judge=_last_redo,
    ),
    LookProbe(
        id="thread.idle-redo",
        belief="LAST_REDO_CHANGE# of every open thread, an idle one too, advances within seconds.",
        depends="capture.close_at: online",
        otherwise="Windows of an idle database wait for its next redo: set capture.flush_table, or "
        "use completed_logs with ARCHIVE_LAG_TARGET.",
        source="Measured on 23ai by others; not known of idle nodes of a cluster",
        is_needed=False,
        queries={"first": _LAST_REDO, "later": _LAST_REDO},
        pause_seconds=_IDLE_SECONDS,
        judge=_idle_redo,
    ),
    LookProbe(
        id="transaction.start-unassigned",
        belief="V$TRANSACTION can show START_SCN 0 of a transaction that has just begun.",
        depends="cdc_core/capture/logs/positions.py (read_start looks again)",
        otherwise="Nothing: a snapshot need not look twice.",
        source="Debezium passes over such rows with a warning",
        is_needed=False,
        wart="UNASSIGNED_START_SCNS",
        queries={
            "open": """
SELECT SUM(CASE WHEN START_SCN <= 1 THEN 1 ELSE 0 END), SUM(CASE WHEN START_SCN > 1 THEN 1 ELSE 0 END)
  FROM V$TRANSACTION"""
        },
        judge=_start_scn,
    ),
    LookProbe(
        id="transaction.start-below-scn",
        belief="START_SCN of an open transaction is not above a CURRENT_SCN that is read later.",
        depends="rule 4, cdc_core/capture/logs/positions.py",
        otherwise="The first window may begin too late. Report the release.",
        source=f"{_REFERENCE}, V$TRANSACTION",
        queries={"open": "SELECT MAX(START_SCN) FROM V$TRANSACTION", "scn": _SCN},
        judge=_start_before,
    ),
)
"""Of logs, threads and transactions."""
