"""In which order did the rows of a transaction come about, where neither the view nor the windows
show it?

Which rows a transaction took back (:mod:`cdc_core.stage.rollback`) depends on the order of its
rows. Two things spoil that of landing:

* An undo row can have the SCN of its transaction's COMMIT (code 255: seen on 19c, in rows of
  production). It then lands with the window of the COMMIT, behind rows that came after it. Its
  address in the redo tells its place: all rows of a transaction lie in one thread, and address
  order is theirs. So transactions with such rows are read in the order of their addresses.
* Inside one log write, changes of one row can be shown against the order of their SCNs. Which order
  is the right one, nothing proves: a block's changes have rising SCNs, and LogMiner's column is not
  always the record's (see above). Such rows get the problem :data:`DISORDERED`. Capture says which
  transactions must be asked (``has_rollback`` of the ledger).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.model.operations import LOB_OPERATIONS
from cdc_core.runtime.arrow import whole
from cdc_core.stage.rollback import RolledBackRows
from cdc_core.stage.statements import UNKNOWN_ROW_ID

DISORDERED = "changes-disordered"
COLUMNS = ("scn", "rs_id")
"""What is read of a redo row beside what says what was taken back."""

_ADDRESS_DIGITS = 40
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RedoOrder:
    """Rows of one table of transactions that took something back, in the order of the redo.

    Attributes:
        rows: The rows, with ordinals in that order: within a transaction they are given out anew.
        disordered: The landed ordinals of the rows that get the problem :data:`DISORDERED`.
    """

    rows: pa.Table
    disordered: tuple[int, ...]
    _places: Ints
    _ordinals: Ints

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        """From rows with the columns of :data:`COLUMNS`,
        ``ordinal, xid, commit_scn, operation_code, row_id, rollback``."""
        rows = rows.combine_chunks()
        ordinals: Ints = rows["ordinal"].to_numpy()
        transaction = _transactions(rows)
        scns, undo = rows["scn"].to_numpy(), rows["rollback"].to_numpy().astype(np.bool_)
        at_commit = undo & (scns == rows["commit_scn"].to_numpy())
        places = ordinals
        if at_commit.any():
            asked = np.isin(transaction, transaction[at_commit])
            places = _by_address(rows, transaction, asked)
            at = rows.schema.get_field_index("ordinal")
            rows = rows.set_column(at, "ordinal", pa.array(places))
        falling = ordinals[_disordered(rows, transaction, ~at_commit)].tolist()
        order = np.argsort(places)
        return cls(rows, tuple(falling), places[order], ordinals[order])

    def ordinal_of(self, place: int) -> int:
        """The landed ordinal of a row that :attr:`rows` has under this one."""
        return int(self._ordinals[np.searchsorted(self._places, place)])

    def undone(self, found: RolledBackRows) -> RolledBackRows:
        """What was found of :attr:`rows`, by landed ordinals."""
        problems = {self.ordinal_of(place): name for place, name in found.problems.items()}
        problems = dict.fromkeys(self.disordered, DISORDERED) | problems
        gone = np.sort(self._ordinals[np.searchsorted(self._places, found.ordinals)])
        return RolledBackRows(gone[~np.isin(gone, list(problems))] if problems else gone, problems)


def _transactions(rows: pa.Table) -> Ints:
    """Per row a number of its transaction: an XID is used again after its end."""
    xid = whole(rows["xid"]).dictionary_encode().indices.to_numpy()
    commit = whole(rows["commit_scn"]).dictionary_encode().indices.to_numpy()
    found: Ints = xid.astype(np.int64) * (int(commit.max()) + 1) + commit
    return found


def _by_address(rows: pa.Table, transaction: Ints, asked: Mask) -> Ints:
    """The ordinals of the rows, of the ``asked`` ones given out anew in the order of their
    addresses within each transaction."""
    at = np.flatnonzero(asked)
    text = pc.ascii_lower(pc.utf8_trim_whitespace(rows["rs_id"].fill_null("")))
    text = pc.utf8_lpad(text, _ADDRESS_DIGITS, "0").combine_chunks().take(pa.array(at))
    address = pc.rank(text, tiebreaker="dense").to_numpy()
    ordinals: Ints = rows["ordinal"].to_numpy().copy()
    own, numbers = ordinals[at], transaction[at]
    ordinals[at[np.lexsort((own, address, numbers))]] = own[np.lexsort((own, numbers))]
    return ordinals


def _disordered(rows: pa.Table, transaction: Ints, counts: Mask) -> Mask:
    """Which rows have a lower SCN than a change of the same row before them, in one transaction."""
    row_id = whole(rows["row_id"])
    named = pc.fill_null(pc.not_equal(row_id, UNKNOWN_ROW_ID), False).to_numpy(zero_copy_only=False)
    is_piece = np.isin(rows["operation_code"].to_numpy(), LOB_OPERATIONS)
    at = np.flatnonzero(named & counts & ~is_piece)
    codes = row_id.dictionary_encode().indices.fill_null(-1).to_numpy()[at]
    ordinals, scns = rows["ordinal"].to_numpy()[at], rows["scn"].to_numpy()[at]
    order = np.lexsort((ordinals, codes, transaction[at]))
    same = (np.diff(codes[order]) == 0) & (np.diff(transaction[at][order]) == 0)
    falls = same & (np.diff(scns[order]) < 0)
    found = np.zeros(rows.num_rows, dtype=np.bool_)
    found[at[order[1:][falls]]] = True
    return found
