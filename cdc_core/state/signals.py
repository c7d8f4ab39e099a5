"""Which signals arrived, and what became of them?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, and_, delete, insert, select, update

from cdc_core.errors import TerminalError
from cdc_core.landing.manifest import SignalOutcome
from cdc_core.model.scn import Scn
from cdc_core.model.signals import Signal, SignalState
from cdc_core.state.database import StorePart, cached
from cdc_core.state.sql_tables import (
    SIGNAL_OFFSETS,
    SIGNAL_TABLES,
    SIGNALS,
    SNAPSHOT_PAUSES,
    of,
    values_of,
)


class Signals(StorePart):
    """Signals, by source and the sender's id."""

    def add(self, record: Signal) -> bool:
        """Add a signal; False if the source has one with this id already, which then stays as it
        is."""
        with self._database.writing() as connection:
            if _signal(connection, record.source, record.id) is not None:
                return False
            created = record.created or self._database.moment()
            connection.execute(insert(SIGNALS).values(values_of(SIGNALS, record, created=created)))
            return True

    @cached
    def find(self, *, states: Iterable[SignalState] | None = None) -> list[Signal]:
        """Signals in the order of their arrival."""
        query = select(SIGNALS).where(SIGNALS.c.source == self._source)
        if states is not None:
            query = query.where(SIGNALS.c.state.in_(list(states)))
        query = query.order_by(SIGNALS.c.created, SIGNALS.c.id)
        return [Signal(**row) for row in self._rows(query)]

    @cached
    def get(self, signal_id: str) -> Signal | None:
        """One signal."""
        with self._database.reading() as connection:
            return _signal(connection, self._source, signal_id)

    def pending(self) -> list[Signal]:
        """Signals that have not ended, oldest first: pending ones, and taken ones whose taker may
        have died."""
        return self.find(states=("pending", "taken"))

    def take(self, signal_id: str, data: Mapping[str, Any] | None = None) -> Signal | None:
        """Take a pending signal; None if it is not pending (any more): somebody else has it.
        ``data`` is what it says from now on."""
        with self._database.writing() as connection:
            record = _signal(connection, self._source, signal_id)
            if record is None or record.state != "pending":
                return None
            values = {"state": "taken"} | ({} if data is None else {"data": data})
            connection.execute(
                update(SIGNALS).where(of(SIGNALS, self._source, id=signal_id)).values(**values)
            )
            return _signal(connection, self._source, signal_id)

    def finish(
        self, signal_id: str, state: Literal["done", "rejected"] = "done", reason: str | None = None
    ) -> None:
        """Note what became of a signal. Repeatable.

        Raises:
            TerminalError: There is no such signal, or it ended otherwise.
        """
        with self._database.writing() as connection:
            record = _signal(connection, self._source, signal_id)
            if record is None or record.state not in ("pending", "taken", state):
                raise TerminalError(
                    "a finished signal keeps its outcome",
                    hint="Send a new signal with another id.",
                    source=self._source,
                    signal=signal_id,
                    state=record.state if record else "unknown",
                )
            connection.execute(
                update(SIGNALS)
                .where(of(SIGNALS, self._source, id=signal_id))
                .values(state=state, reason=reason)
            )

    @cached
    def table_scn(self, name: str) -> Scn | None:
        """The SCN from which on rows of a signal table are signals; None before the first look at
        it."""
        query = select(SIGNAL_TABLES.c.scn).where(of(SIGNAL_TABLES, self._source, name=name))
        with self._database.reading() as connection:
            found = connection.execute(query).scalar()
            return None if found is None else Scn(found)

    def begin_table(self, name: str, scn: Scn) -> None:
        """Note the first look at a signal table. Repeatable: the first SCN stays."""
        with self._database.writing() as connection:
            if not connection.execute(
                select(SIGNAL_TABLES.c.scn).where(of(SIGNAL_TABLES, self._source, name=name))
            ).first():
                connection.execute(
                    insert(SIGNAL_TABLES).values(source=self._source, name=name, scn=scn)
                )

    @cached
    def offsets(self, topic: str) -> dict[int, int]:
        """Of each partition of a topic, the offset of the first record that was not read."""
        at = SIGNAL_OFFSETS.c
        query = select(at.partition, at.next).where(at.source == self._source, at.topic == topic)
        with self._database.reading() as connection:
            return {row.partition: row.next for row in connection.execute(query)}

    def keep_offsets(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Note how far partitions of a topic were read. Repeatable."""
        at = SIGNAL_OFFSETS.c
        rows = [
            {"source": self._source, "topic": topic, "partition": partition, "next": offset}
            for partition, offset in offsets.items()
        ]
        with self._database.writing() as connection:
            own = and_(
                at.source == self._source, at.topic == topic, at.partition.in_(list(offsets))
            )
            connection.execute(delete(SIGNAL_OFFSETS).where(own))
            if rows:
                connection.execute(insert(SIGNAL_OFFSETS), rows)

    @cached
    def paused_since(self) -> datetime | None:
        """Since when no chunks are read; None where they are."""
        query = select(SNAPSHOT_PAUSES.c.since).where(SNAPSHOT_PAUSES.c.source == self._source)
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def pause_snapshots(self) -> bool:
        """Have no chunks read any more; False where they are not read already."""
        if self.paused_since() is not None:
            return False
        with self._database.writing() as connection:
            since = self._database.now()
            connection.execute(insert(SNAPSHOT_PAUSES).values(source=self._source, since=since))
            return True

    def resume_snapshots(self) -> bool:
        """Have chunks read again; False where they are read."""
        query = delete(SNAPSHOT_PAUSES).where(SNAPSHOT_PAUSES.c.source == self._source)
        with self._database.writing() as connection:
            return connection.execute(query).rowcount > 0


def settle_signals(connection: Connection, source: str, outcomes: Sequence[SignalOutcome]) -> None:
    """Note inside the caller's transaction what became of definitions that signals brought: it is
    rejected if one of them is refused. One that nobody knows any more (the store was made anew) is
    passed over."""
    for signal_id in dict.fromkeys(one.id for one in outcomes):
        record = _signal(connection, source, signal_id)
        if record is None:
            continue
        own = [one for one in outcomes if one.id == signal_id]
        refusals = [one.refusal for one in own if one.refusal is not None]
        connection.execute(
            update(SIGNALS)
            .where(of(SIGNALS, source, id=signal_id))
            .values(
                state="rejected" if refusals else "done",
                reason="; ".join(refusals) or None,
                data={**record.data, "scn": own[0].scn},
            )
        )


def _signal(connection: Connection, source: str, signal_id: str) -> Signal | None:
    query = select(SIGNALS).where(of(SIGNALS, source, id=signal_id))
    row = connection.execute(query).mappings().first()
    return Signal(**row) if row else None
