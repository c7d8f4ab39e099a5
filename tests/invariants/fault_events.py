"""What breaks in a life: processes that are killed or stopped, and files that are lost."""

from __future__ import annotations

import os
import shutil
import signal

from tests.invariants.copies import files_of
from tests.invariants.events import Event
from tests.invariants.life_setting import ATTEMPTS
from tests.invariants.pipeline_events import PipelineEvents
from tests.invariants.points import (
    FENCE,
    IN_MERGE,
    IN_REWRITING,
    LINK,
    POINTS,
    UNFENCED,
    Role,
    points_of,
)
from tests.invariants.team import is_writable

REFUSED_AT = {
    FENCE: {"FencedError"},
    UNFENCED: {"FencedError"},
    LINK: {"FencedError", "CommitConflictError"},
    "change log committed, mirror not": {"FencedError", "CommitConflictError"},
}
"""What a worker must say that was stopped there past its lease; elsewhere it may find that the other one did the same."""
COMMANDS: dict[Role, tuple[str, ...]] = {
    "capture": ("capture", "capture", "read_chunks", "retire"),
    "apply": ("apply",),
}


class FaultEvents(PipelineEvents):
    """A life in which something breaks."""

    def _on_kill_at_a_point(self, event: Event) -> bool:
        """Kill the point's worker when it gets there; where it does not, there was too little to do."""
        point = event.what or self.dice.choice(list(points_of(self.lake, self.capture)))
        if point in (IN_MERGE, IN_REWRITING):
            point = IN_REWRITING if self.rewrites else IN_MERGE
        role = POINTS[point].role
        for attempt in range(ATTEMPTS):
            self._give_work(point)
            hit = 2 if POINTS[point].is_per_table and attempt == 0 and self.dice.random() < 0.5 else 1  # fmt: skip
            answer = self.team[role].ask(self._command_at(point), meet=point, hit=hit)
            if answer.met:
                self._kill(role)
                self.proof.kills[point] += 1
                return True
            self._settle(role, answer)
        self.proof.not_reached.append(point)
        return False

    def _give_work(self, point: str) -> None:
        """Something to do that leads to the point."""
        self.load.step()
        self.load.tpcc()
        self.end_logs()
        is_there = "planned" if POINTS[point].role == "capture" else "landed"
        if point.startswith("chunk ") and not self._store(
            "SELECT 1 FROM chunks c JOIN tables t ON t.source = c.source AND t.name = c.name"
            f" WHERE c.state IN ('planned', '{is_there}') AND t.state <> 'failed'"
        ):
            self._on_snapshot(Event(0, "snapshot"))
        if POINTS[point].role == "apply":
            self.do("capture", "read_chunks", at_most=2)
            self.do("capture", "capture")

    def _command_at(self, point: str) -> str:
        if POINTS[point].role == "apply":
            return "apply"
        return "read_chunks" if point.startswith("chunk ") else "capture"

    def _on_kill_at_random(self, _event: Event) -> bool:
        """Kill a worker some time after it was asked for something; one that was done before gets more to do and less time."""
        role: Role = self.dice.choice(("capture", "apply"))
        worker, seconds = self.team[role], self.dice.random() * 0.15
        for _ in range(ATTEMPTS):
            self._give_work(self.dice.choice(("window landed, not recorded", "chunk landed, not recorded")))  # fmt: skip
            if role == "apply":
                self.do("capture", "capture")
            worker.send(self.dice.choice(COMMANDS[role]))
            if not worker.answers_within(seconds):
                self._kill(role)
                self.proof.kills[f"{role} at random"] += 1
                return True
            self._settle(role, worker.answer())
            seconds /= 3
        return False

    def _on_kill_the_JVM(self, _event: Event) -> bool:
        """The JVM goes while it works; the process that started it says so, and the next one finishes."""
        self.load.step()
        self.do("capture", "capture")
        worker = self.team["apply"]
        children = worker.ask("children").done
        if not children:
            return False
        worker.send("apply")
        worker.answers_within(self.dice.random() * 2)
        for child in children:
            os.kill(child, signal.SIGKILL)
        self._settle("apply", worker.answer())
        self.proof.kills["the JVM alone"] += 1
        self._kill("apply")
        return True

    def _on_stop(self, event: Event) -> bool:
        """Two workers have one role; one is stopped past its lease right before it commits, and goes on when the other is done."""
        point = event.what
        role = POINTS[point].role
        for _ in range(ATTEMPTS):
            self._give_work(point)
            stopped = self.team[role]
            answer = stopped.ask(self._command_at(point), meet=point)
            if answer.met:
                break
            self._settle(role, answer)
        else:
            self.proof.not_reached.append(f"stopped: {point}")
            return False
        # Its renewing of a lease may hold the store's lock of writers, which it would keep.
        stopped.stop_where(self._is_writable)
        self.team.replace(role)
        self.do(role, self._command_at(point))
        self.load.step()
        stopped.signal(signal.SIGCONT)
        answer = stopped.go_on()
        if answer.failed not in REFUSED_AT.get(point, {answer.failed}):
            said = answer.failed or f"done {answer.done}"
            self.proof.let_pass(f"stop: {point}", f"it said {said} {answer.text[-600:]}")  # fmt: skip
        self.proof.happened[f"stopped: {point}"] += 1
        return True

    def _is_writable(self) -> bool:
        """In PostgreSQL writers hold an advisory lock."""
        if self._services:
            return not self._store("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted")
        return is_writable(self.folder / "state.db")

    def _on_lose_landing(self, _event: Event) -> bool:
        """A window's files are lost before it is applied; the documented way out."""
        self.load.step()
        self.do("capture", "capture")
        waiting = self._store("SELECT scn_low, scn_high FROM windows WHERE state = 'captured'")
        folders = sorted((self.folder / "landing").glob("*/windows/*"))
        if not waiting or not folders:
            return False
        low, high = waiting[0]
        [folder] = [one for one in folders if f"{low}" in one.name and f"{high}" in one.name]
        shutil.rmtree(folder)
        self.do("capture", "recapture")
        return True

    def _on_damage_landing(self, _event: Event) -> bool:
        """A byte of a waiting window's redo changes: apply names the file and stops, and the documented way out reads it again."""
        landing = self.folder / "landing"
        if not landing.is_dir() or self._states.get("SHIFTED") != "ready":
            return False
        self.load.shift()  # it commits, and its table takes every window
        self.do("capture", "capture")
        waiting = self._store("SELECT MAX(scn_high) FROM windows WHERE state = 'captured'")
        found = files_of(landing.glob(f"*/windows/*-*{waiting[0][0]}"), "SHIFTED")
        if not found:
            return False
        whole = found[0].read_bytes()
        content = bytearray(whole)
        content[self.dice.randrange(len(content))] ^= 1 << self.dice.randrange(8)
        found[0].write_bytes(content)
        answer = self.team["apply"].ask("apply")
        if answer.failed != "LandingDamagedError":
            found[0].write_bytes(whole)
            self.proof.let_pass("damage landing", f"a changed byte was read: {answer}")
        self.do("capture", "recapture")
        self.do("capture", "capture")
        self.do("apply", "apply")
        return True

    def _on_lose_store(self, _event: Event) -> bool:
        """The metadata store is lost, and made anew from landing and lake."""
        store = self.folder / "state.db"
        if not store.exists() or not self._states:
            return False
        for role in ("capture", "apply"):
            self._kill(role)
        for path in self.folder.glob("state.db*"):
            path.unlink()
        self.do("apply" if self.lake == "delta" else "capture", "rebuild_state")
        return True
