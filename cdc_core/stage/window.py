"""How do a window's files become the changes of one table?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from cdc_core.errors import REPORT_HINT, RowCountError
from cdc_core.runtime.cores import worker_threads
from cdc_core.stage import redo_order, rollback
from cdc_core.stage.addresses import with_addresses
from cdc_core.stage.closing_updates import COLUMNS as UPDATE_COLUMNS
from cdc_core.stage.closing_updates import updates_apart
from cdc_core.stage.committed import CommittedRows, CommittedTransactions, Transaction
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.lobs import (
    lob_transactions,
    with_calls,
    with_whole_lobs,
    without_beginnings,
)
from cdc_core.stage.missing_lobs import LandedLobs
from cdc_core.stage.quarantine import Sieve
from cdc_core.stage.reselected import reselected_changes
from cdc_core.stage.statements import without_closes

BATCH_ROWS = 20_000
"""So many redo rows are decoded at once."""

_T = TypeVar("_T")


def staged_changes(
    rows: CommittedRows, decoder: ChangeDecoder, sieve: Sieve | None = None
) -> Iterator[pa.RecordBatch]:
    """The changes in the columns of the change log, batch by batch, in the order of the files. With
    a ``sieve``, what cannot be decoded goes into it. Rows of a share are those of transactions that
    took nothing back, and wrote no LOB.

    Holds some batches and, where transactions took rows back, the addresses of these transactions'
    rows.

    Raises:
        DecodeError, SchemaMismatchError: A row cannot become a change without guessing.
        LandingDamagedError: A file is missing or cannot be read.
        RowCountError: Rows got lost or doubled on the way; nothing was committed then.
    """
    wanted = decoded = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal wanted
        for piece in decodable_rows(rows, decoder):
            wanted += piece.num_rows
            yield piece

    for batch in _decoded(counted(), decoder, sieve):
        decoded += batch.num_rows
        yield batch
    quarantined = 0 if sieve is None else sieve.rows.num_rows
    if wanted != decoded + quarantined:
        raise RowCountError(
            "decoded changes, and rows in quarantine, are not as many as the rows that were to be decoded; nothing of the window was "
            "applied",
            hint=REPORT_HINT,
            table=rows.landed.table,
            window=rows.landed.window.key,
            rows=wanted,
            decoded=decoded,
            quarantined=quarantined,
        )


def _decoded(
    pieces: Iterator[pa.Table], decoder: ChangeDecoder, sieve: Sieve | None
) -> Iterator[pa.RecordBatch]:
    if sieve is None:
        yield from _ahead(pieces, decoder)
        return
    for sieved in _ahead(pieces, sieve.split):
        yield from sieve.take(sieved)


def decodable_rows(rows: CommittedRows, decoder: ChangeDecoder) -> Iterator[pa.Table]:
    """The rows that become changes: those that the transactions did not take back, LOBs in one
    piece.

    Raises:
        LandingDamagedError: A file is missing or cannot be read.
        RowCountError: As :func:`surviving_rows`.
    """
    if not decoder.is_reselected:
        return _shown_rows(rows, decoder)
    hidden, shown = rows.parted(decoder.hides)
    return chain(_shown_rows(shown, decoder), reselected_changes(hidden))


def _shown_rows(rows: CommittedRows, decoder: ChangeDecoder) -> Iterator[pa.Table]:
    located = located_rows(rows, decoder)
    leaves_out = decoder.leaves_out or decoder.has_placeholders
    if not any(column.is_lob for column in decoder.schema.columns):
        return filter(len, map(without_beginnings, located) if leaves_out else located)
    ends = lob_ends(rows)
    landed = LandedLobs(rows.landed.table, rows.landed.redo_paths).sql_of
    return with_whole_lobs(located, ends, decoder.version_at, landed) if ends else located


def located_rows(rows: CommittedRows, decoder: ChangeDecoder) -> Iterator[pa.Table]:
    """The rows that the transactions did not take back, LOBs piece by piece, with the ROWIDs that
    identify the table's rows.

    Raises:
        LandingDamagedError: A file is missing or cannot be read.
        RowCountError: As :func:`surviving_rows`.
    """
    located = surviving_rows(rows, decoder)
    if any(column.is_lob for column in decoder.schema.columns):
        located = map(with_calls, located)
    if decoder.has_placeholders:
        return with_addresses(located, _ends(rows.committed), decoder.version_at)
    if decoder.is_undone_by_statement:
        return filter(len, map(without_closes, located))
    return located


def lob_ends(rows: CommittedRows) -> dict[Transaction, int]:
    """The transactions that write parts of LOBs of the table, and the ordinals of their COMMITs.

    Raises:
        LandingDamagedError, RowCountError: As :class:`~cdc_core.stage.committed.CommittedRows`.
    """
    xids = lob_transactions(rows.batches(["xid", "operation_code"]))
    return {name: end for name, end in _ends(rows.committed).items() if name[0] in xids}


def _ends(committed: CommittedTransactions) -> dict[Transaction, int]:
    named = committed.ledger.select(["xid", "commit_scn", "commit_ordinal"]).to_pylist()
    return {(xid, scn): end for xid, scn, end in (row.values() for row in named)}


def surviving_rows(rows: CommittedRows, decoder: ChangeDecoder) -> Iterator[pa.Table]:
    """The redo rows that the transactions did not take back, piece by piece, in the order of the
    files.

    Raises:
        LandingDamagedError: A file is missing or cannot be read.
        RowCountError: At the end: rows are not as many as the ledger counted, or got lost while
            others were left out.
    """
    undone = rollback.NOTHING_UNDONE
    if rows.committed.has_rollback:
        undone = _undone(rows.taking_back(), decoder)
    landed = left = 0
    for batch in rows.batches():
        surviving = undone.left_of(batch)
        landed += batch.num_rows
        left += surviving.num_rows
        yield from _pieces(surviving)
    if landed != left + len(undone.ordinals):
        raise RowCountError(
            "rows that were taken back, and those that are left, are not as many as landed; nothing of the window was applied",
            hint=REPORT_HINT,
            table=rows.landed.table,
            window=rows.landed.window.key,
            landed=landed,
            left=left,
            taken_back=len(undone.ordinals),
        )


def _undone(rows: CommittedRows, decoder: ChangeDecoder) -> rollback.RolledBackRows:
    """What the transactions took back."""
    columns = rollback.STATEMENT_COLUMNS if decoder.is_undone_by_statement else rollback.COLUMNS
    read = dict.fromkeys((*columns, *redo_order.COLUMNS))
    del read["has_rollback"]  # of the transaction
    found = list(rows.batches([*read]))
    if not found:
        return rollback.NOTHING_UNDONE
    order = redo_order.RedoOrder.of(pa.concat_tables(found))

    def apart(candidates: Mapping[int, Sequence[int]]) -> set[int]:
        if not candidates:
            return set()
        landed = {
            order.ordinal_of(update): [order.ordinal_of(one) for one in its]
            for update, its in candidates.items()
        }
        closing = updates_apart(rows.batches(UPDATE_COLUMNS), landed, decoder.version_at)
        return {update for update in candidates if order.ordinal_of(update) in closing}

    undone = rollback.find_undone(order.rows, apart=apart, closes_shown=decoder.closes_shown)
    return order.undone(undone)


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(start, BATCH_ROWS)


def _ahead(pieces: Iterator[pa.Table], decode: Callable[[pa.Table], _T]) -> Iterator[_T]:
    """Decode some pieces ahead; the first error in order is the one that is raised."""
    threads = worker_threads()
    with ThreadPoolExecutor(threads, thread_name_prefix="stage") as pool:
        running: deque[Future[_T]] = deque()
        try:
            for piece in pieces:
                running.append(pool.submit(decode, piece))
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for left in running:
                left.cancel()
