"""How is a window split into parts that are staged apart, each by the same function?

A row becomes a change by itself, but where its transaction took rows back, or wrote a LOB piece by
piece: then the transaction's rows say together what is left. So such transactions stay whole, some
of them in each part, and the rows of all others are split by row groups, so that one large
transaction is many parts too. The split depends on the window's files alone: whoever makes it again
gets the same parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import REPORT_HINT, RowCountError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.stage.changes import Rows
from cdc_core.stage.committed import CommittedTransactions, Share, check_counts, in_order
from cdc_core.stage.decoding import ChangeDecoder


@dataclass(frozen=True, slots=True)
class WindowPart:
    """What is staged by itself: the rows that these transactions have in a share of the row
    groups."""

    committed: CommittedTransactions
    share: Share


def window_parts(
    committed: CommittedTransactions, decoder: ChangeDecoder, rows: int
) -> list[WindowPart]:
    """The parts of a window of one table, of about so many redo rows; each row is in one of
    them."""
    has_lobs = decoder.has_placeholders or any(one.is_lob for one in decoder.schema.columns)
    ledger = committed.ledger
    whole = pa.repeat(True, ledger.num_rows) if has_lobs else ledger["has_rollback"]
    apart = replace(committed, ledger=ledger.filter(pc.invert(whole)))
    shares = -(-apart.rows // rows) or 1
    parts = [WindowPart(apart, Share(number, shares)) for number in range(shares)]
    return [
        *(parts if apart.count else ()),
        *_of_whole_transactions(committed, ledger.filter(whole), rows),
    ]


def _of_whole_transactions(
    committed: CommittedTransactions, ledger: pa.Table, rows: int
) -> list[WindowPart]:
    """Those that begin behind each other stay together, so that a part reads few row groups."""
    if ledger.num_rows == 0:
        return []
    ledger = ledger.sort_by("first_ordinal")
    before = np.cumsum(ledger["table_rows"].to_numpy()) // rows
    ends = [*(np.flatnonzero(np.diff(before)) + 1).tolist(), ledger.num_rows]
    starts = [0, *ends[:-1]]
    return [
        WindowPart(replace(committed, ledger=ledger.slice(start, end - start)), Share())
        for start, end in zip(starts, ends, strict=True)
    ]


def check_parts(
    parts: Sequence[WindowPart],
    rows: Sequence[Rows],
    table: TableId,
    window: ScnWindow,
) -> None:
    """Hold the rows that were found in all parts against what was counted at capture: whoever
    staged them read the window's files again.

    Args:
        parts: All parts of the window.
        rows: Per part, the ``rows`` of its share.
        table: Whose rows.
        window: The window.

    Raises:
        RowCountError: A transaction has more or fewer, or a part had other transactions.
    """
    if any(len(found) != part.committed.count for part, found in zip(parts, rows, strict=True)):
        raise RowCountError(
            "a window's transactions have changed since they were read; nothing of the window "
            "was applied",
            hint=REPORT_HINT,
            table=table,
            window=window.key,
        )
    shares = [found for part, found in zip(parts, rows, strict=True) if part.share.of > 1]
    if shares:
        check_counts(in_order(parts[0].committed.ledger), np.sum(shares, axis=0), table, window)
    for part, found in zip(parts, rows, strict=True):
        if part.share.of == 1:
            check_counts(in_order(part.committed.ledger), found, table, window)
