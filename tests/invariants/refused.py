"""What must be refused, and is it? Events in which a life is asked for what would break a rule.

Each is tried on a copy of the life (:mod:`tests.invariants.copies`) and judged by the type of the error and words of its message, so that
a net is not taken for the one behind it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.invariants.copies import Copy, copied, copy_store, files_of
from tests.invariants.events import Event
from tests.invariants.points import POINTS
from tests.invariants.server import EmbeddedServer
from tests.invariants.team import Answer

if TYPE_CHECKING:
    from tests.invariants.life import Life

ONLINE_LOGS = 4
"""Behind so many switches no online log holds what was written before."""
UNDO_SECONDS = 60
FAR = 10**6
"""SCNs that the database does not reach in the meantime."""
Window = list[int]


def out_of_order(life: Life, event: Event) -> bool:
    """Of two windows the second comes first, at each step and at each net behind it; and a position goes back."""
    life.load.shift()  # it commits, so a mirror has a window
    _catch_up(life)
    judge = _Judge(life, event)
    with _copy(life) as copy:
        windows = [_planned(life, copy), _planned(life, copy)]
        first, second = ({"low": low, "high": high} for low, high in windows)

        def refuses(what: str, error: str, words: str, **window: int) -> None:
            with _copy_of(life, copy) as other:
                judge.refused(other.ask("attempt", what=what, **window), error, words, of=what)

        judge.refused(
            copy.ask("capture_one", **second), "NotYetError", "is not captured", of="capture_one"
        )
        refuses("record_captured", "NotYetError", "earlier window", **second)
        refuses("plan_with_a_gap", "WindowConflictError", "where the last one ended")
        copy.ask("capture_planned")
        with _copy_of(life, copy) as other:
            answer = other.ask("apply_one", **second)
            judge.refused(answer, "NotYetError", "the mirrors have not applied", of="apply_one")
        answer = copy.ask("replay_one", **first)
        judge.refused(answer, "NotYetError", "applied can be replayed", of="replay_one")
        refuses("advance", "NotYetError", "has not applied the previous window", **second)
        refuses("record_applied", "NotYetError", "earlier window", **second)
        if life.lake == "delta":
            refuses("merge_early", "NotYetError", "the mirror has not applied", **second)
            refuses("merge_overlapping", "WindowConflictError", "overlaps")
        for window in (first, second):
            judge.done(copy.ask("apply_one", **window), of="apply_one")
        moved = copy.ask("attempt", what="move_back")
        judge.that(moved.done == 0, f"a position went back: {_told(moved)}", of="move_back")
    return True


def leases(life: Life, event: Event) -> bool:
    """A lease is held once, and a lost one never comes back."""
    with _copy(life) as copy:
        judge = _Judge(life, event)
        for what, error in (
            ("take_held_lease", "LeaseHeldError"),
            ("renew_lost_lease", "FencedError"),
            ("renew_older_lease", "FencedError"),
        ):
            judge.refused(copy.ask("attempt", what=what), error, of=what)
    return True


def landed_again(life: Life, event: Event) -> bool:
    """A folder that has landed is written again."""
    _catch_up(life)
    with _copy(life) as copy:
        answer = copy.ask("attempt", what="write_landed")
        _Judge(life, event).refused(answer, "OvertakenError", "landed already")
    return True


def damaged_file(life: Life, event: Event) -> bool:
    """A byte of a waiting window's redo has changed."""
    if life.ready(("SHIFTED",)) is None:
        return False
    _catch_up(life)
    life.load.shift()  # it commits, so the window is applied to its table
    life.end_logs()
    with _copy(life) as copy:
        copy.ask("capture")
        found = files_of(copy.folder.glob("landing/*/windows/*"), "SHIFTED")
        _change_a_byte(found[-1], life.dice)
        _Judge(life, event).refused(copy.ask("apply"), "LandingDamagedError")
    return True


def damaged_manifest(life: Life, event: Event) -> bool:
    """A process ended when its window had landed; before the next one records it, a number of its manifest changes."""
    _catch_up(life)
    life.load.step()
    life.end_logs()
    with _copy(life) as copy:
        point = "window landed, not recorded"
        worker = copy.worker(POINTS[point].role)
        met = worker.ask("capture", meet=point).met
        worker.signal(signal.SIGKILL)
        if not met:
            return False
        [path] = sorted(copy.folder.glob("landing/*/windows/*/*.json"), key=_age)[-1:]
        text = path.read_text()
        place = text.index('"rows"') + len('"rows": ')
        at = next(at for at in range(place, len(text)) if text[at].isdigit())
        path.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
        copy.worker(is_new=True)
        _Judge(life, event).refused(copy.ask("capture"), "LandingDamagedError")
    return True


def yesterdays_store(life: Life, event: Event) -> bool:
    """The metadata store of yesterday is put back."""
    yesterday = life.folder / "yesterday"
    yesterday.mkdir(exist_ok=True)
    copy_store(life.folder, yesterday)
    life.load.step()
    _catch_up(life)
    with _copy(life) as copy:
        copy_store(yesterday, copy.folder)
        _Judge(life, event).refused(copy.ask("capture"), "StoreBehindError")
    return True


def needed_log(life: Life, event: Event) -> bool:
    """An archived log goes that a planned window needs. The life has it still, and reads the window later."""
    with _copy_with_two_logs(life) as (copy, server):
        low, high = _planned(life, copy, is_new=False)
        for _ in range(ONLINE_LOGS):
            server.administer("ALTER SYSTEM SWITCH LOGFILE")
        with server.connect_capture() as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT MAX(SEQUENCE#) FROM V$ARCHIVED_LOG WHERE THREAD# = 1 AND FIRST_CHANGE# > :1 AND FIRST_CHANGE# <= :2",
                [low, high],
            )
            [(sequence,)] = cursor.fetchall()
        if sequence is None:
            return False
        server.administer("BEGIN DBMS_REDOLAKE_FAULTS.DELETE_ARCHIVED_LOG(:1); END;", **{"1": int(sequence)})  # fmt: skip
        answer = copy.ask("capture_one", low=low, high=high)
        _Judge(life, event).refused(answer, "RedoUnavailableError", "was deleted")
    return True


def hole(life: Life, event: Event) -> bool:
    """LogMiner shows that redo is missing."""
    with _copy_with_two_logs(life) as (copy, server):
        server.arm("MISSING_SCN", times=0)
        answer = copy.ask("capture")
        _Judge(life, event).refused(answer, "RedoUnavailableError", "MISSING_SCN")
    return True


def switch_in_progress(life: Life, event: Event) -> bool:
    """V$LOG lacks the log that is being written, and a planned window ends in it."""
    if life.completes:
        return False
    with _copy_with_two_logs(life) as (copy, server):
        low, high = _planned(life, copy, is_new=False)
        server.arm("SWITCH_IN_PROGRESS", times=0)
        answer = copy.ask("capture_one", low=low, high=high)
        _Judge(life, event).refused(answer, "LogsNotReadyError", "not registered yet")
    return True


def lagging_database(life: Life, event: Event) -> bool:
    """A planned window ends above what the database has written, as of one that was put back or lags behind."""
    _catch_up(life)
    with _copy(life) as copy:
        low, high = _planned(life, copy)
        further = {"low": high, "high": high + FAR}
        copy.ask("capture_one", low=low, high=high)
        copy.ask("attempt", what="plan", **further)
        answer = copy.ask("capture_one", **further)
        _Judge(life, event).refused(answer, "LogsNotReadyError", "not on disk yet")
    return True


def resetlogs(life: Life, event: Event) -> bool:
    """The database was opened with RESETLOGS: what was written before is of another history."""
    with _copy_with_two_logs(life) as (copy, server):
        server.administer("BEGIN DBMS_REDOLAKE_FAULTS.OPEN_RESETLOGS; END;")
        answer = copy.ask("capture")
        _Judge(life, event).refused(answer, "RedoUnavailableError", "RESETLOGS")
    return True


def no_undo(life: Life, event: Event) -> bool:
    """Oracle has no undo any more of the SCN at which a chunk was planned: it is read at a newer one."""
    table = life.ready(("ACCOUNTS",))
    if table is None:
        return False
    with _copy(life, with_oracle=True) as copy:
        server = copy.server
        assert server is not None
        judge = _Judge(life, event)
        server.administer(f"ALTER SYSTEM SET UNDO_RETENTION = {UNDO_SECONDS}")
        judge.done(copy.ask("plan_snapshot", table=life.name(table)))
        with server.connect() as connection, connection.cursor() as cursor:
            for _ in range(2):
                cursor.execute(f"UPDATE {table} SET BALANCE = BALANCE + 1")
                connection.commit()
                server.put_forward(3 * UNDO_SECONDS)
        judge.done(copy.ask("read_chunks"))
    return True


REFUSALS: dict[str, Callable[[Life, Event], bool]] = {
    "out of order": out_of_order,
    "leases": leases,
    "landed again": landed_again,
    "damaged file": damaged_file,
    "damaged manifest": damaged_manifest,
    "yesterday's store": yesterdays_store,
    "needed log": needed_log,
    "hole": hole,
    "switch in progress": switch_in_progress,
    "lagging database": lagging_database,
    "resetlogs": resetlogs,
    "no undo": no_undo,
}


class _Judge:
    """Notes what was not refused, or refused as something else; ``of`` names it where an event asks for several things."""

    def __init__(self, life: Life, event: Event) -> None:
        self._life, self._kind = life, event.kind

    def refused(self, answer: Answer, error: str, words: str = "", *, of: str = "") -> None:
        """It must be this error, with these words."""
        is_right = answer.failed == error and words in answer.text
        self.that(is_right, f"not {error}: {_told(answer)}", of=of)

    def done(self, answer: Answer, *, of: str = "") -> None:
        """It must be done."""
        self.that(answer.failed is None, f"not done: {_told(answer)}", of=of)

    def that(self, is_right: bool, text: str, *, of: str = "") -> None:
        """Note the text unless it is right."""
        if not is_right:
            self._life.proof.let_pass(f"{self._kind}: {of}" if of else self._kind, text)


def _told(answer: Answer) -> str:
    return f"{answer.failed or 'done'} {answer.done if answer.failed is None else answer.text[-600:]}"  # fmt: skip


def _place(life: Life) -> Path:
    life.copies += 1
    return life.folder / f"copy-{life.copies}"


@contextmanager
def _copy(life: Life, *, with_oracle: bool = False) -> Iterator[Copy]:
    with copied(life.folder, _place(life), life.server, life.lake, with_oracle=with_oracle) as copy:
        yield copy


@contextmanager
def _copy_of(life: Life, copy: Copy) -> Iterator[Copy]:
    """A copy of a copy, for what may change its store or its lake."""
    with copied(copy.folder, _place(life), life.server, life.lake, with_oracle=False) as other:
        yield other


@contextmanager
def _copy_with_two_logs(life: Life) -> Iterator[tuple[Copy, EmbeddedServer]]:
    """A copy whose next window is in two logs, with its Oracle."""
    _catch_up(life)
    life.load.step()
    life.server.administer("ALTER SYSTEM ARCHIVE LOG CURRENT")
    for _ in range(2):
        life.load.step()
    life.end_logs()
    with _copy(life, with_oracle=True) as copy:
        assert copy.server is not None
        yield copy, copy.server


def _catch_up(life: Life) -> None:
    """Nothing is planned, landed or captured that is not applied."""
    life.do("capture", "capture")
    life.do("capture", "read_chunks")
    life.do("apply", "apply")


def _planned(life: Life, copy: Copy, *, is_new: bool = True) -> Window:
    """The newest window that the copy plans; ``is_new``: of changes that the life makes now."""
    if is_new:
        for _ in range(2):
            life.load.step()
            life.load.tpcc()
        life.end_logs()
    found: list[Window] = copy.ask("plan").done
    return found[-1]


def _change_a_byte(path: Path, dice: Random) -> None:
    content = bytearray(path.read_bytes())
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns
