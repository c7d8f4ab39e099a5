"""Rules of the design, broken on purpose: the prover must see each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa


def _absent_as_null() -> None:
    """Rule 7 broken: every change is taken to carry every column, so an unchanged LOB becomes NULL in the mirror."""
    from cdc_core.stage import decoding

    decoding._with_later_columns = lambda absent, *_: pa.array([[]] * len(absent), absent.type)


def _mining_from_the_snapshot() -> None:
    """Rule 4 broken: mining starts at the snapshot SCN, not at the oldest transaction open there."""
    from cdc_core.capture.source import LogMinerReader

    original = LogMinerReader.read_start

    def wrapped(self: Any, tables: Any, **more: Any) -> Any:
        start = original(self, tables, **more)
        return replace(start, mining_low=start.snapshot_scn)

    LogMinerReader.read_start = wrapped  # type: ignore[method-assign]


def _rollbacks_ignored() -> None:
    """Rule 1 broken: what ROLLBACK TO SAVEPOINT undid stays."""
    from cdc_core.stage import rollback

    def wrapped(rows: Any, **_: Any) -> rollback.RolledBackRows:
        undo = rows.filter(rows["rollback"])
        return rollback.RolledBackRows(undo["ordinal"].to_numpy(), {})

    rollback.find_undone = wrapped


def _resumed_as_debezium_does() -> None:
    """Each window goes on from the last message before it, and leaves out what began before that one's transaction did: a position
    taken from the beginnings of transactions, which come in the order of their commits."""
    from cdc_core.openlogreplicator import events, stream
    from cdc_core.openlogreplicator.messages import Message

    class Resuming(events.MessageEvents):
        def __init__(self, database: str | None, state: Mapping[str, Any]) -> None:
            super().__init__(database, state)
            self._from = self._last = int(state.get("c_scn", 0))
            self._is_withheld = False

        def events(self, message: Any, ordinals: Any) -> Iterator[Any]:
            if isinstance(message, Message) and message.payload[0].op == "begin":
                self._last = message.c_scn or 0
                self._is_withheld = self._last < self._from
            if not self._is_withheld:
                yield from super().events(message, ordinals)

        def state(self) -> Mapping[str, Any]:
            return {**super().state(), "c_scn": self._last}

    stream.MessageEvents = Resuming  # type: ignore[attr-defined]


RESUMED = "resumed as Debezium does"
"""Of OpenLogReplicator alone; the others are of LogMiner."""
SABOTAGES: dict[str, Callable[[], None]] = {
    "absent column as NULL": _absent_as_null,
    "mining starts at the snapshot": _mining_from_the_snapshot,
    "rollbacks ignored": _rollbacks_ignored,
    RESUMED: _resumed_as_debezium_does,
}
