"""What is known of a transaction while it is followed, before and behind that?"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

import pyarrow as pa

from cdc_core.capture.transactions.stream import Event
from cdc_core.landing.layout import TRANSACTION_SCHEMA
from cdc_core.model.transactions import LedgerState, OpenTransaction, with_window

_SHARED = tuple(
    one.name for one in fields(OpenTransaction) if one.name not in ("tables", "table_rows")
)
_COMMIT_ORDINAL = TRANSACTION_SCHEMA.get_field_index("commit_ordinal")


@dataclass(slots=True, kw_only=True)
class Entry:
    """A transaction while it is followed. ``tables`` has the captured rows of each table that it
    touched, None where a version that did not count by table saw it first; ``undone_at`` is the
    ordinal of the ROLLBACK row that set it aside, ``stated_scn`` what START_SCN says of its
    beginning where no START row was seen.

    ``has_rollback`` says that :mod:`cdc_core.stage.rollback` is asked: some rows take others back,
    or changes are shown against the order of their SCNs. ``met_scn`` is the SCN of its first row in
    this pass, ``change_scn`` the highest of its changes in it.
    """

    xid: str
    start_scn: int | None
    first_ordinal: int
    username: str | None = None
    session_id: int | None = None
    serial: int | None = None
    has_rollback: bool = False
    rows: int = 0
    undone: int = 0
    state: LedgerState = "open"
    absent_scn: int | None = None
    tables: dict[str, int] = field(default_factory=dict)
    undone_at: int = 0
    stated_scn: int = 0
    start_timestamp: datetime | None = None
    client_id: str | None = None
    windows: tuple[int, ...] = ()
    met_scn: int = 0
    change_scn: int = 0

    @property
    def began(self) -> int:
        """Where it began, as far as this pass shows."""
        return self.met_scn if self.start_scn is None else self.start_scn

    @property
    def has_changes(self) -> bool:
        """Is a captured change left that was not taken back?"""
        return self.rows > 2 * self.undone

    def count(self, table: str, rows: int, window: int) -> None:
        """Add captured rows of a table that land with a window."""
        self.tables[table] = self.tables.get(table, 0) + rows
        self.windows = with_window(self.windows, window)

    @property
    def by_table(self) -> dict[str, int]:
        """The tables in order."""
        return dict(sorted(self.tables.items()))

    @classmethod
    def of(cls, known: OpenTransaction) -> Entry:
        """A transaction that was open when the pass began."""
        values = {name: getattr(known, name) for name in _SHARED}
        return cls(**values, tables=dict(zip(known.tables, known.table_rows, strict=True)))

    def as_open(self) -> OpenTransaction:
        """The transaction for the next pass."""
        values = {name: getattr(self, name) for name in _SHARED}
        rows = self.by_table
        return OpenTransaction(**values, tables=tuple(rows), table_rows=tuple(rows.values()))

    def ended(self, state: str, event: Event, *, is_late: bool) -> tuple[object, ...]:
        """The transaction as a row ended it, one of those of :func:`ended_batch`."""
        rows = self.by_table
        return (
            self.xid, state, self.start_scn, event.scn, event.ordinal, event.timestamp or None, self.username,
            self.first_ordinal, self.has_rollback, list(rows), list(rows.values()), self.rows,
            self.undone, is_late, self.session_id, self.serial, self.absent_scn,
            self.start_timestamp, self.client_id, self.windows,
        )  # fmt: skip


def ended_batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Ended transactions as ``TRANSACTION_SCHEMA``."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(TRANSACTION_SCHEMA)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, one.type)
            for column, one in zip(columns, TRANSACTION_SCHEMA, strict=True)
        ],
        schema=TRANSACTION_SCHEMA,
    )


def commit_ordinal(ended: tuple[Any, ...]) -> int:
    """Of one of the tuples that become ``TRANSACTION_SCHEMA``."""
    found: int = ended[_COMMIT_ORDINAL]
    return found
