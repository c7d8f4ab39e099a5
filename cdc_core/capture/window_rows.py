"""Which rows of a window land, and are they as many as were read and as the ledger knows?"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import numpy as np

from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.capture.passes.rows import landing_rows
from cdc_core.capture.stream_ends.ddl_rows import DdlRow
from cdc_core.capture.transactions.ledger import TransactionLedger
from cdc_core.errors import (
    REPORT_HINT,
    RowCountError,
)
from cdc_core.landing.layout import TRANSACTION_SCHEMA
from cdc_core.landing.ledger import ledger_batch
from cdc_core.landing.manifest import (
    LandedFile,
)
from cdc_core.landing.redo_files import RedoFiles
from cdc_core.landing.store import LandingStore
from cdc_core.model.transactions import OpenTransaction
from cdc_core.schema.table import TableSchema

TRANSACTIONS_NAME = "transactions.parquet"
ENDED_ROWS = 50_000


@dataclass(slots=True)
class LandedWindow:
    """What a window has in landing: its redo files, which of them have rows of each table, and the
    transactions that ended in it or are ``open`` after it."""

    redo: list[LandedFile] = field(default_factory=list)
    by_table: dict[str, tuple[int, ...]] = field(default_factory=dict)
    transactions: LandedFile | None = None
    open: list[OpenTransaction] = field(default_factory=list)


class WindowRows:
    """The rows of one window on their way to landing: each goes through the ledger, is counted, and
    is written.

    Args:
        window: The window's key, for errors.
        tables: The captured tables, by their places in batches.
        ledger: What follows the transactions.
        landing: Where they land.
        folder: The window's folder there.
    """

    def __init__(
        self,
        *,
        window: str,
        tables: Sequence[TableSchema],
        ledger: TransactionLedger,
        landing: LandingStore,
        folder: str,
    ) -> None:
        self._window = window
        self._tables = tables
        self._ledger = ledger
        self._landing = landing
        self._folder = folder
        self._counts = np.zeros(len(tables), dtype=np.int64)
        self._ddl: list[tuple[DdlRow, str]] = []

    def land(
        self,
        batches: Generator[MinedBatch],
        still_open: Callable[[], list[OpenTransaction]],
    ) -> LandedWindow:
        """Write the batches' rows and the ledger. ``still_open`` gives the transactions that are
        open after the last batch.

        Raises:
            RowCountError: Rows got lost or doubled on the way.
        """
        self._landing.remove_unlanded(self._folder)
        landed = LandedWindow()
        with ExitStack() as stack:
            transactions = stack.enter_context(
                self._landing.writer(self._folder, TRANSACTIONS_NAME, TRANSACTION_SCHEMA)
            )
            redo = stack.enter_context(RedoFiles(self._landing, self._folder))
            for batch in stack.enter_context(closing(batches)):
                self._take(batch, redo)
                if self._ledger.ended_count >= ENDED_ROWS:
                    transactions.write(self._ledger.drain())
            self._ledger.finish()
            transactions.write(self._ledger.drain())
            landed.open = still_open()
            transactions.write(ledger_batch(landed.open))
            landed.redo = redo.close()
            landed.by_table = redo.by_table
            landed.transactions = transactions.close()
        self._check_counts(landed)
        return landed

    @property
    def rows_by_table(self) -> dict[str, int]:
        """Rows of each table that has any."""
        counted = zip(self._tables, self._counts.tolist(), strict=True)
        return {str(schema.table): count for schema, count in counted if count}

    def ddl_rows(self) -> list[DdlRow]:
        """DDL of captured tables, with the SCN at which it committed, as the ledger knows it."""
        return [
            DdlRow(
                table=row.table,
                ordinal=row.ordinal,
                row_scn=row.row_scn,
                scn=self._ledger.ddl_commit_scn(xid),
                text=row.text,
            )
            for row, xid in self._ddl
        ]

    def _take(self, batch: MinedBatch, redo: RedoFiles) -> None:
        batch = self._ledger.take(batch)
        self._note_ddl(batch)
        changed = batch.tables[batch.is_change]
        self._counts += np.bincount(changed, minlength=len(self._counts))
        rows = landing_rows(batch, self._tables)
        if rows is not None:
            redo.write(rows)

    def _note_ddl(self, batch: MinedBatch) -> None:
        for at in batch.ddl.tolist():
            row = {name: batch.rows.column(name)[at].as_py() for name in ("scn", "xid", "sql_redo")}
            table = self._tables[batch.tables[at]].table
            ddl = DdlRow(
                table=table,
                ordinal=int(batch.ordinals[at]),
                row_scn=row["scn"],
                scn=None,
                text=row["sql_redo"] or "",
            )
            self._ddl.append((ddl, row["xid"]))

    def _check_counts(self, landed: LandedWindow) -> None:
        """Three counts, each made elsewhere, of the rows of captured tables: those that the window
        has, those that landed, and those of which the ledger knows the transaction, or doubts
        it."""
        changes = int(self._counts.sum())
        rows = sum(file.rows for file in landed.redo)
        if not changes + len(self._ddl) == rows == self._ledger.rows + len(self._ddl):
            raise RowCountError(
                "rows that were read, rows that landed and rows that the ledger counted differ; the window has not landed",
                hint=REPORT_HINT,
                window=self._window,
                changes=changes,
                ddl=len(self._ddl),
                landed=rows,
                counted=self._ledger.rows,
            )
