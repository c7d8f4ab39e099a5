"""Which redo from before a window belongs to the tables that join with it?

A joining table's snapshot was read as of an SCN at or above the window's lower end. Changes of
transactions that were open then may lie before the window: they are read again, for these tables
alone. Transactions that ended at or below the lower end are in the snapshot; those that are open
there are in the ledger, so the ledger decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.model.transactions import UNRESOLVED, OpenTransaction, slot_of


def uncounted(opened: Sequence[OpenTransaction], tables: Set[str]) -> list[OpenTransaction]:
    """The ledger as a window's pass begins in which these tables join: none of their rows counts
    yet, since those of an earlier life are never taken, and those from before the window are read
    again. What was displaced is not theirs any more."""
    living = [one for one in opened if one.state != "displaced"]
    displaced = [_without(one, tables) for one in opened if one.state == "displaced"]
    return [one for one in displaced if one.tables] + [
        replace(
            one,
            table_rows=tuple(
                0 if name in tables else rows
                for name, rows in zip(one.tables, one.table_rows, strict=True)
            ),
        )
        for one in living
    ]


def _without(one: OpenTransaction, tables: Set[str]) -> OpenTransaction:
    left = {
        name: rows
        for name, rows in zip(one.tables, one.table_rows, strict=True)
        if name not in tables
    }
    return replace(one, tables=tuple(left), table_rows=tuple(left.values()))


class JoiningRows:
    """Chooses rows of one window's pass.

    Args:
        mining_lows: Per position of a joining table: its rows are read again from above this SCN.
        opened: The ledger at the window's lower end.
    """

    def __init__(self, mining_lows: Mapping[int, int], opened: Sequence[OpenTransaction]) -> None:
        self._mining_lows = dict(mining_lows)
        self._starts = {one.xid: one.start_scn or 0 for one in opened}
        # LogMiner may not know the sequence part of a transaction that began before its session.
        living = [one for one in opened if one.state != "displaced"]
        by_age = sorted(living, key=lambda one: one.first_ordinal)
        self._starts |= {slot_of(one.xid) + UNRESOLVED: one.start_scn or 0 for one in by_age}

    def keep(self, batch: MinedBatch, is_new: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Per row: is it new to all tables, or one that a joining table lacks?"""
        again = ~is_new & batch.is_change
        if not again.any():
            return is_new
        scns = batch.rows.column("scn").to_numpy()
        return is_new | (again & self._is_lacking(batch, scns) & self._is_open(batch, scns))

    def _is_lacking(self, batch: MinedBatch, scns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        lacking = np.zeros(len(scns), dtype=np.bool_)
        for table, low in self._mining_lows.items():
            lacking |= (batch.tables == table) & (scns > low)
        return lacking

    def _is_open(self, batch: MinedBatch, scns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """An undo slot is used again: a row from before its transaction's start is an earlier
        transaction's."""
        encoded = batch.rows.column("xid").dictionary_encode()
        never = np.iinfo(np.int64).max
        starts = [self._starts.get(xid, never) for xid in encoded.dictionary.to_pylist()]
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        opened: npt.NDArray[np.bool_] = scns >= np.array(starts, dtype=np.int64)[codes]
        return opened
