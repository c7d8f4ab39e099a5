"""How do a window's files become the changes of one table?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.stage import rollback
from cdc_core.stage.committed import CommittedRows, CommittedTransactions
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.quarantine import Sieve

BATCH_ROWS = 20_000
"""So many redo rows are decoded at once."""

THREADS = 2
"""Decoding runs outside of Python's lock for the most part; more threads than this gained nothing on two cores."""

_T = TypeVar("_T")


def staged_changes(
    committed: CommittedTransactions,
    table: TableId,
    window: ScnWindow,
    redo_paths: Sequence[str],
    decoder: ChangeDecoder,
    sieve: Sieve | None = None,
) -> Iterator[pa.RecordBatch]:
    """The changes in the columns of the change log, batch by batch, in the order of the files. With a ``sieve``, what cannot be
    decoded goes into it.

    Holds some batches and, where transactions took rows back, the addresses of these transactions' rows.

    Raises:
        DecodeError, SchemaMismatchError: A row cannot become a change without guessing.
        LandingDamagedError: A file is missing or cannot be read.
    """
    pieces = surviving_rows(committed, table, window, redo_paths)
    if sieve is None:
        yield from _ahead(pieces, decoder)
        return
    for sieved in _ahead(pieces, sieve.split):
        yield from sieve.take(sieved)


def surviving_rows(
    committed: CommittedTransactions,
    table: TableId,
    window: ScnWindow,
    redo_paths: Sequence[str],
) -> Iterator[pa.Table]:
    """The redo rows that the transactions did not take back, piece by piece, in the order of the files."""
    undone = rollback.NOTHING_UNDONE
    if committed.has_rollback:
        those = replace(committed, ledger=committed.ledger.filter(committed.ledger["has_rollback"]))
        read = [name for name in rollback.COLUMNS if name != "has_rollback"]
        found = list(CommittedRows(those, table, window, redo_paths).batches(read))
        undone = rollback.find_undone(pa.concat_tables(found)) if found else undone
    for rows in CommittedRows(committed, table, window, redo_paths).batches():
        yield from _pieces(undone.left_of(rows))


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(start, BATCH_ROWS)


def _ahead(pieces: Iterator[pa.Table], decode: Callable[[pa.Table], _T]) -> Iterator[_T]:
    """Decode some pieces ahead; the first error in order is the one that is raised."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="stage") as pool:
        running: deque[Future[_T]] = deque()
        try:
            for piece in pieces:
                running.append(pool.submit(decode, piece))
                if len(running) > THREADS:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for left in running:
                left.cancel()
