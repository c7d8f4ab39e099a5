"""One run of the prover: events happen to a source, its workers and its database; then everything is compared.

A prover waits for each answer, so a seed repeats a run, but for what workers do side by side and where they are at random instants.
"""

from __future__ import annotations

from random import Random
from typing import Any

import oracledb

from tests.invariants.deadline import HungError
from tests.invariants.events import Event
from tests.invariants.fault_events import FaultEvents
from tests.invariants.pipeline_events import MAINTAINED_FIRST
from tests.invariants.proof import Proof
from tests.invariants.refused import REFUSALS
from tests.invariants.team import Team, WorkerFailedError
from tests.invariants.wild import WildLoad

ROWS = 130
END_ROUNDS_MAX = 8
"""Within so many rounds every table is ready. One that left in a round comes back in the next, and is read in the one behind that."""


class Life(FaultEvents):
    """One run in a folder of its own, against an embedded Oracle of its own."""

    def run(self) -> Proof:
        """Let everything happen and return the proof."""
        with self.server:
            if self._is_cluster:
                self.server.begin_cluster()
            try:
                self._live()
            except Exception as error:  # a run that stops is judged, too
                if not isinstance(error, (WorkerFailedError, HungError, oracledb.Error)):
                    raise
                self.proof.stopped = f"stopped in {self._now}: {str(error)[-3000:]}"
                self.proof.stopped_in = self._kind_of(self._now)
        self._enter("")
        return self.proof

    def _live(self) -> None:
        config = self._configure()
        with Team(config, lake=self.lake, sabotage=self.sabotage) as self.team:
            with self._phase("begin"):
                self._connect()
                self.load = WildLoad(self.connection, self.proof.seed, self._scn)
                self.load.create(ROWS)
                self.server.put_forward()
                self.load.draw("begin")
                self.load.long_part(0, self.server.connect)  # open at the snapshot's SCN
                self.do("capture", "plan_snapshot")
                self.load.step()
                self.do("capture", "read_chunks", at_most=len(self.tables) // 2)
                self.do("apply", "apply")
                self._note()
                if self.rewrites and self.lake == "delta":
                    self._maintain(MAINTAINED_FIRST)
            for event in self.events:
                self._happen(event)
            with self._phase("the end"):
                self._end()
            with self._phase("compare"):
                self._compare_noted(None)
                self._check_changelogs()
                self._check_hidden()
                self.proof.late["windows that a late commit belongs to"] += len(self._lacking)

    def _happen(self, event: Event) -> None:
        self.say.print(f"  {event}", style="dim")
        self.load.draw(str(event.number))
        self.dice = Random(f"{self.proof.seed}/{event.number}/dice")
        with self._phase(str(event)):
            if event.kind in REFUSALS:
                took_place = not self._services and REFUSALS[event.kind](self, event)
            else:
                took_place = getattr(self, f"_on_{event.kind.replace(' ', '_')}")(event)
            self._note()
        if took_place is not False:
            self.proof.happened[event.kind] += 1

    def _end(self) -> None:
        """Bring everything up to one SCN."""
        self.load.draw("end")
        event = Event(-1, "end", "NOTES" if self.lake == "delta" else "")
        self._on_resume(event)
        for number in sorted(self.load.long):
            self.load.long_end(number, commits=True)
        stopped: list[Any] = []
        for _ in range(END_ROUNDS_MAX):
            self._on_load(event)
            self.do("capture", "capture")
            self.do("capture", "read_chunks")
            self.do("apply", "apply")
            self._note()
            stopped.append(
                self._store("SELECT name, state, reason FROM tables WHERE state <> 'ready'")
            )
            if not self._on_come_back(event) and self._is_settled():
                break
        self.do("capture", "capture")
        self.do("apply", "apply")
        self._note()
        if self.lake == "delta" and not self.sabotage:
            whole = max(scn for scn, _ in self._noted)
            self.proof.reconciled.append(self.do("apply", "reconcile", scn=whole))
        lagging = {name: state for name, state in self._states.items() if state != "ready"}
        if lagging:
            raise WorkerFailedError(f"tables are not ready at the end, by round: {stopped}")

    def _is_settled(self) -> bool:
        waiting = self._store("SELECT 1 FROM chunks WHERE state <> 'applied'")
        return not waiting and set(self._states.values()) == {"ready"}
