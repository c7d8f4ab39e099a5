"""Rules of the design, broken on purpose: the prover must see each."""

from __future__ import annotations

from collections.abc import Callable
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


SABOTAGES: dict[str, Callable[[], None]] = {
    "absent column as NULL": _absent_as_null,
    "mining starts at the snapshot": _mining_from_the_snapshot,
    "rollbacks ignored": _rollbacks_ignored,
}
