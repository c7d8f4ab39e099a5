"""How do a window's files become the changes of one table?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.stage import rollback
from cdc_core.stage.committed import CommittedRows, CommittedTransactions
from cdc_core.stage.decoding import ChangeDecoder

BATCH_ROWS = 20_000
"""So many redo rows are decoded at once."""

THREADS = 2
"""Decoding runs outside of Python's lock for the most part; more threads than this gained nothing on two cores."""


def staged_changes(
    committed: CommittedTransactions,
    table: TableId,
    window: ScnWindow,
    redo_paths: Sequence[str],
    decoder: ChangeDecoder,
) -> Iterator[pa.RecordBatch]:
    """The changes in the columns of the change log, batch by batch, in the order of the files.

    Holds some batches and, where transactions took rows back, the addresses of these transactions' rows.

    Raises:
        DecodeError, SchemaMismatchError: A row cannot become a change without guessing.
        LandingDamagedError: A file is missing or cannot be read.
    """
    undone = rollback.NOTHING_UNDONE
    if committed.has_rollback:
        those = replace(committed, ledger=committed.ledger.filter(committed.ledger["has_rollback"]))
        read = [name for name in rollback.COLUMNS if name != "has_rollback"]
        rows = list(CommittedRows(those, table, window, redo_paths).batches(read))
        undone = rollback.find_undone(pa.concat_tables(rows)) if rows else undone
    pieces = (
        piece
        for rows in CommittedRows(committed, table, window, redo_paths).batches()
        for piece in _pieces(undone.left_of(rows))
    )
    return _decoded(pieces, decoder)


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(start, BATCH_ROWS)


def _decoded(pieces: Iterator[pa.Table], decoder: ChangeDecoder) -> Iterator[pa.RecordBatch]:
    """Decode some pieces ahead; the first error in order is the one that is raised."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="stage") as pool:
        running: deque[Future[pa.RecordBatch]] = deque()
        try:
            for piece in pieces:
                running.append(pool.submit(decoder, piece))
                if len(running) > THREADS:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for left in running:
                left.cancel()
