"""What people and schedules ask of the pipeline of a life."""

from __future__ import annotations

from tests.invariants.events import Event
from tests.invariants.shapes import TABLES as SHAPED
from tests.invariants.source_events import SourceEvents
from tests.invariants.wild import WILD_TABLES

MAINTAINED_FIRST, MAINTAINED = 6, 4
"""So many tables are maintained behind the first chunks, and by an event."""
CONDITIONS = {
    "ACCOUNTS": "BALANCE > 0",
    "EVENTS": "EVENT_ID > 20",
    "ORDERS": "O_OL_CNT < 4",
    "SHIFTED": "V = 'first'",
}
COMES_BACK = ("PASSING", "GROWING", "LOOSE", "NOTES", "BARE", *SHAPED)
"""Tables that leave and come back."""


class PipelineEvents(SourceEvents):
    """A life whose workers are asked for something."""

    def _on_snapshot_too_old(self, event: Event) -> None:
        self._on_snapshot(event)
        self.server.arm("ORA_ERROR", sql_contains="AS OF SCN", code=1555, nth=self.dice.randint(1, 2))  # fmt: skip
        self.do("capture", "read_chunks")
        self.server.clear_faults()

    def _on_capture(self, _event: Event) -> None:
        self.do("capture", "capture")

    def _on_apply(self, _event: Event) -> None:
        self.do("apply", "apply")

    def _on_side_by_side(self, event: Event) -> None:
        """Both roles and the load at once."""
        for role in ("capture", "apply"):
            self.team[role].send(role)
        self._on_load(event)
        self.load.tpcc()
        for role in ("capture", "apply"):
            answer = self.team[role].answer()  # type: ignore[index]
            if self._passes(answer):
                self.do(role, role)  # type: ignore[arg-type]
            else:
                self._expect(answer)

    def _on_chunks(self, _event: Event) -> None:
        """Some planned chunks are read, so tables become ready at different times."""
        self.do("capture", "read_chunks", at_most=self.dice.randint(1, 3))

    def _on_retire(self, _event: Event) -> None:
        self.do("capture", "retire")

    def _on_maintain(self, _event: Event) -> bool:
        """Mirrors get deletion vectors, or lose them; small files are put together."""
        return self._maintain(MAINTAINED)

    def _maintain(self, at_most: int) -> bool:
        ready = sorted(table for table, state in self._states.items() if state == "ready")
        chosen = self.dice.sample(ready, min(at_most, len(ready)))
        if chosen:
            with_vectors = self.do(
                "apply", "maintain", tables=[self.name(table) for table in chosen]
            )
            self.proof.late["mirrors maintained with deletion vectors"] += with_vectors
        return bool(chosen)

    def _on_replay(self, event: Event) -> None:
        done = self.do("apply", "replay", seed=event.number, windows=4, chunks=2)
        self.proof.replayed.update(done)

    def _on_snapshot(self, event: Event) -> bool:
        table = self.ready((event.what,) if event.what else WILD_TABLES)
        if table is None:
            return False
        self.do("capture", "plan_snapshot", table=self.name(table))
        return True

    def _on_snapshot_where(self, _event: Event) -> bool:
        table = self.ready(CONDITIONS)
        if table is None:
            return False
        self.do("capture", "plan_snapshot", table=self.name(table), condition=CONDITIONS[table])
        return True

    def _on_signal(self, _event: Event) -> bool:
        table = self.ready(CONDITIONS)
        if table is None:
            return False
        self._signals += 1
        condition = self.dice.choice((None, CONDITIONS[table]))
        self.do(
            "capture", "signal", name=f"s{self._signals}", table=self.name(table),
            condition=condition,
        )  # fmt: skip
        return True

    def _on_leave(self, event: Event) -> bool:
        table = self.ready((event.what,) if event.what else COMES_BACK)
        if table is None:
            return False
        self.do("capture", "remove", table=self.name(table))
        return True

    def _on_come_back(self, _event: Event) -> bool:
        gone = [table for table in COMES_BACK if self._states.get(table) in ("removed", "failed")]
        for table in gone:
            command = "add" if self._states[table] == "removed" else "resnapshot"
            self.do("capture", command, table=self.name(table))
        return bool(gone)

    def _on_pause(self, _event: Event) -> bool:
        table = self.ready(("ORDERS", "ACCOUNTS"))
        if table is None:
            return False
        self.do("capture", "pause", table=self.name(table))
        self._paused.add(table)
        return True

    def _on_resume(self, _event: Event) -> bool:
        paused, self._paused = self._paused, set()
        for table in sorted(paused):
            self.do("capture", "resume", table=self.name(table))
        return bool(paused)
