"""Where do redo rows get their ROWIDs from, if LogMiner shows placeholders and the ROWID identifies
the table's rows?

From what closes their statement (:mod:`cdc_core.stage.statements`). A statement without an address
is refused, row by row. So is an INSERT with what closes it if that is another statement's: if it
changes other columns than LOBs, or names other values than the INSERT's. Supplemental logging of
all columns is what names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.dml import decode_dml
from cdc_core.errors import CdcError
from cdc_core.model.operations import LOB_OPERATIONS, Operation
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import Flags, Rows, naming
from cdc_core.stage.committed import Transaction
from cdc_core.stage.difference import are_same
from cdc_core.stage.statements import (
    Statements,
    codes_of,
    is_unclosed,
    known_row_ids,
    statements_of,
    transactions_of,
)

ADDRESS_UNKNOWN = "address-unknown"
_STATEMENTS = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)


def with_addresses(
    pieces: Iterable[pa.Table],
    ends: Mapping[Transaction, int],
    version_at: Callable[[int], TableSchema],
) -> Iterator[pa.Table]:
    """The surviving redo rows of one table with the ROWIDs of their rows, without those that only
    close a statement.

    Holds the last statement of each open transaction until it is closed.

    Args:
        pieces: Rows (columns of ``committed.CommittedRows`` and ``problem``), each transaction's in
            order.
        ends: Ordinal of the COMMIT of each transaction.
        version_at: The table as it was at a row's SCN.
    """
    held: pa.Table | None = None
    for piece in pieces:
        rows = piece if held is None else pa.concat_tables([held, piece])
        found, held = _with_addresses(rows, ends, version_at, is_last=False)
        if found.num_rows:
            yield found
    if held is not None and held.num_rows:
        found, _ = _with_addresses(held, ends, version_at, is_last=True)
        if found.num_rows:
            yield found


def _with_addresses(
    rows: pa.Table,
    ends: Mapping[Transaction, int],
    version_at: Callable[[int], TableSchema],
    *,
    is_last: bool,
) -> tuple[pa.Table, pa.Table]:
    """The rows whose statements are over, in order, and the others."""
    newest = pc.max(rows["ordinal"]).as_py()
    rows = rows.sort_by(
        [("xid", "ascending"), ("commit_scn", "ascending"), ("ordinal", "ascending")]
    ).combine_chunks()
    operation = rows["operation_code"].to_numpy()
    row_ids = known_row_ids(whole(rows["row_id"])).dictionary_encode()
    row_id = row_ids.indices.fill_null(-1).to_numpy().astype(np.int64)
    transaction = transactions_of(rows)
    undo = rows["rollback"].to_numpy().astype(np.bool_)
    cut = statements_of(operation, row_id, codes_of(rows["rs_id"]), transaction, undo)
    is_over = np.ones(len(operation), dtype=np.bool_)
    if not is_last:
        is_over = ~_may_go_on(rows, cut, operation, row_id, transaction, ends, newest)
    address = np.where(_are_foreign(rows, cut, version_at), -1, cut.address)
    kept = is_over & (operation != Operation.INTERNAL)
    unknown = pa.array(address < 0)
    names_row = np.isin(operation, (*_STATEMENTS, *LOB_OPERATIONS))
    is_refused = pa.array((address < 0) & names_row)
    problems = pc.if_else(is_refused, ADDRESS_UNKNOWN, pa.scalar(None, pa.string()))
    shown = pc.if_else(unknown, None, pa.array(np.maximum(address, 0), pa.int32()))
    found = rows.set_column(
        rows.schema.get_field_index("row_id"),
        "row_id",
        row_ids.dictionary.take(shown)
        if len(row_ids.dictionary)
        else pa.nulls(len(rows), pa.string()),
    ).set_column(
        rows.schema.get_field_index("problem"), "problem", pc.coalesce(rows["problem"], problems)
    )
    return found.filter(pa.array(kept)).sort_by("ordinal"), rows.filter(pa.array(~is_over))


def _may_go_on(
    rows: pa.Table,
    cut: Statements,
    operation: npt.NDArray[np.int32],
    row_id: Rows,
    transaction: Rows,
    ends: Mapping[Transaction, int],
    newest: int,
) -> Flags:
    """Per row: is it of the last statement of a transaction that goes on behind these rows, and is
    that not closed?"""
    last = np.flatnonzero(np.diff(transaction, append=-1))
    is_open = (row_id[last] < 0) | np.isin(operation[last], LOB_OPERATIONS)
    last = last[is_open]
    names = zip(*(rows[name].take(last).to_pylist() for name in ("xid", "commit_scn")), strict=True)
    goes_on = [ends.get(name, newest) >= newest for name in names]
    held = cut.number[last[np.array(goes_on, dtype=np.bool_)]]
    first = cut.place[held]
    # Whether a row piece stands behind another one says whose is what follows.
    pieces = is_unclosed(operation, row_id)
    behind = pieces[first] & (first > 0) & pieces[first - 1]
    behind &= transaction[first] == transaction[first - 1]
    found: Flags = np.isin(cut.number, np.append(held, held[behind] - 1))
    return found


def _are_foreign(
    rows: pa.Table,
    cut: Statements,
    version_at: Callable[[int], TableSchema],
) -> Flags:
    """Per row: does its statement begin with an INSERT, and end with an UPDATE that is not the
    INSERT's?"""
    foreign = np.zeros(rows.num_rows, dtype=np.bool_)
    operation = rows["operation_code"].to_numpy()
    end = np.append(cut.place[1:], rows.num_rows) - 1
    has = (operation[cut.place] == Operation.INSERT) & (operation[end] == Operation.UPDATE)
    inserts, updates = cut.place[has], end[has]
    if len(inserts) == 0:
        return foreign
    scns = rows["scn"].to_numpy()[inserts]
    versions = {version.scn_from: version for version in map(version_at, np.unique(scns).tolist())}
    chosen = np.array([version_at(scn).scn_from for scn in scns.tolist()])
    texts = rows["sql_redo"]
    for scn_from, version in versions.items():
        at = np.flatnonzero(chosen == scn_from)
        one, other = texts.take(inserts[at]), texts.take(updates[at])
        belongs = _belong(one.combine_chunks(), other.combine_chunks(), version.as_in_rows())
        foreign |= np.isin(cut.number, cut.number[inserts[at[~belongs]]])
    return foreign


def _belong(inserts: pa.Array, updates: pa.Array, version: TableSchema) -> Flags:
    """Pair by pair: does the UPDATE name the INSERT's row, by all columns but LOBs, and change LOBs
    alone?

    Pairs with a statement that cannot be decoded belong to each other by their order: whoever
    decodes refuses that statement.
    """
    count = len(inserts)
    try:
        decoded = decode_dml(pa.concat_arrays([inserts, updates]), version)
    except CdcError:
        if count == 1:
            return np.ones(1, dtype=np.bool_)
        half = count // 2
        parts = ((inserts[:half], updates[:half]), (inserts[half:], updates[half:]))
        return np.concatenate([_belong(*part, version) for part in parts])
    inserted, before = decoded.after.slice(0, count), decoded.before.slice(count)
    after, lacking = decoded.after.slice(count), decoded.before_absent.slice(count)
    belong = np.ones(count, dtype=np.bool_)
    for column in version.columns:
        if column.is_lob:
            continue
        old = pc.struct_field(before, column.name)
        belong &= are_same(pc.struct_field(inserted, column.name), old)
        belong &= are_same(old, pc.struct_field(after, column.name))
        belong &= ~naming(lacking, column.name)
    return belong
