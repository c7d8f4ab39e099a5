"""How is a window read where LogMiner itself assembles the transactions (COMMITTED_DATA_ONLY)?

It then shows each transaction whole, in the order of the commits, without what was rolled back, and with full XIDs. But it shows only
those that began *and* committed inside the range that it mines, and it holds each in the database's memory until the COMMIT. So:

* The range of a window reaches back to the beginning of the oldest transaction that was open at its lower end (:func:`reach`): redo is
  read again for as long as a transaction is open, and its logs must be there.
* Of what is shown, the rows of transactions that commit inside the window are its own (:class:`OwnCommits`). LogMiner leaves COMMIT_SCN
  empty for DDL: the COMMIT row of the statement's transaction says it, and where none is shown, the statement's own SCN.
* Which transactions are open says a look at the window's own redo without that option: at its START, COMMIT and ROLLBACK rows alone. The
  ledger keeps them as ``unread``: none of their rows has landed.

Windows must end at ends of logs that were switched: rows that come late could not be told, since nothing says in what order they
entered the log.

Source: Oracle Database Utilities 19c, "Showing Only Committed Transactions"; PL/SQL Packages and Types Reference 19c, DBMS_LOGMNR,
COMMITTED_DATA_ONLY. That DDL has no COMMIT_SCN is what Debezium's reader allows for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.capture.mining import MINED_SCHEMA
from cdc_core.errors import ConfigError
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.model.transactions import OpenTransaction


def reach(ledger: Sequence[OpenTransaction], mining_low: Scn, oldest: Scn) -> Scn:
    """Above which SCN LogMiner must read so that it sees every transaction whole that was open at the window's lower end.

    Args:
        ledger: After the window before.
        mining_low: Where the window's own redo begins.
        oldest: Above this SCN all redo of the source lies: for transactions whose beginning was not seen.
    """
    starts = [
        oldest if one.start_scn is None else one.start_scn - 1 for one in ledger if not one.is_over
    ]
    return Scn(min([mining_low, *starts]))


def to_follow(ledger: Iterable[OpenTransaction]) -> list[OpenTransaction]:
    """The ledger as START, COMMIT and ROLLBACK rows alone follow it. What was given up keeps its tables: its COMMIT ends them."""
    return [
        one
        if one.is_over
        else replace(one, state="open", tables=(), table_rows=(), rows=0, undone=0, has_rollback=False)
        for one in ledger
    ]  # fmt: skip


def unread(ledger: Iterable[OpenTransaction], tables: Sequence[str]) -> list[OpenTransaction]:
    """The ledger to keep. Which tables a transaction that is given up has changed, nobody knows: it counts as one of all."""
    return [
        replace(one, state="unread")
        if not one.is_over
        else one
        if one.tables
        else replace(one, tables=tuple(tables), table_rows=(1,) * len(tables), rows=len(tables))
        for one in ledger
    ]  # fmt: skip


def refuse_unread(ledger: Iterable[OpenTransaction]) -> None:
    """Rows of transactions that were open when a source was read with ``capture.reading: committed`` have not landed.

    Raises:
        ConfigError: There are such transactions.
    """
    missed = [one for one in ledger if one.state == "unread"]
    if missed:
        raise ConfigError(
            "capture.reading was changed from committed to uncommitted while transactions were open, whose rows have not landed",
            hint="Set capture.reading to committed again, and change it when no transaction is open at the end of the newest window "
            "(`redolake status` counts them).",
            transactions=len(missed),
            xid=missed[0].xid,
        )


class OwnCommits:
    """Takes the rows of transactions that commit above an SCN from a stream of whole transactions."""

    def __init__(self, commit_low: int) -> None:
        self._commit_low = commit_low

    def read(self, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
        """Batches of :data:`MINED_SCHEMA` in the stream's order, none of them empty.

        Args:
            batches: The same rows with ``commit_scn`` behind, those of a transaction side by side.
        """
        waiting: pa.RecordBatch | None = None
        for batch in batches:
            if waiting is not None:
                [batch] = pa.Table.from_batches([waiting, batch]).combine_chunks().to_batches()
            whole = _until_last_transaction(batch)
            waiting = batch.slice(whole) if whole < batch.num_rows else None
            if whole:
                yield from self._own(batch.slice(0, whole))
        if waiting is not None:
            yield from self._own(waiting)

    def _own(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        own = _commit_scns(batch) > self._commit_low
        rows = batch.select(MINED_SCHEMA.names)
        if not own.all():
            rows = rows.filter(pa.array(own))
        if rows.num_rows:
            yield rows


def _until_last_transaction(batch: pa.RecordBatch) -> int:
    """Where the batch's last transaction begins, if it is one without COMMIT_SCN whose COMMIT may come with the next batch."""
    rows: int = batch.num_rows
    if rows == 0 or batch.column("commit_scn")[-1].is_valid:
        return rows
    if batch.column("operation_code")[-1].as_py() == Operation.COMMIT:
        return rows
    codes = _codes(batch)
    others = np.flatnonzero(codes != codes[-1])
    return int(others[-1]) + 1 if len(others) else 0


def _commit_scns(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Per row where its transaction committed."""
    column = batch.column("commit_scn")
    found: npt.NDArray[np.int64] = column.fill_null(0).to_numpy(zero_copy_only=False).copy()
    open_ended = column.is_null().to_numpy(zero_copy_only=False)
    if not open_ended.any():
        return found
    scns = batch.column("scn").to_numpy(zero_copy_only=False)
    found[open_ended] = scns[open_ended]
    codes = _codes(batch)
    is_commit = batch.column("operation_code").to_numpy(zero_copy_only=False) == Operation.COMMIT
    ends = np.flatnonzero(is_commit)
    at = np.flatnonzero(open_ended)
    # The rows of a transaction stand side by side, its COMMIT last.
    following = np.searchsorted(ends, at)
    ended = following < len(ends)
    end = ends[following[ended]]
    same = codes[end] == codes[at[ended]]
    found[at[ended][same]] = scns[end[same]]
    return found


def _codes(batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
    """Per row a number of its XID."""
    encoded = batch.column("xid").dictionary_encode()
    codes: npt.NDArray[np.int32] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes
