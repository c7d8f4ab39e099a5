"""Which rows did transactions change of a table of which LogMiner shows no row?

Capture asked Oracle for them: for each transaction and ROWID, the row before the commit and as of
it. These landed with the window as rows with images, whose operation code is
:attr:`~cdc_core.model.operations.Operation.RESELECTED`, and behind those of a transaction one
without ROWID: it has them all. So a transaction is here whole, or its redo rows are refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.landing.layout import IMAGES
from cdc_core.model.operations import Operation
from cdc_core.stage.committed import CommittedRows, Transaction

NOT_READ = "rows-not-read"


def reselected_changes(rows: CommittedRows) -> Iterator[pa.Table]:
    """The changes that Oracle told, and the redo rows of transactions of which it did not, with a
    ``problem``.

    Raises:
        LandingDamagedError: A file is missing or cannot be read.
        RowCountError: A transaction has more or fewer redo rows than were counted.
    """
    whole: set[Transaction] = set()
    for piece in rows.reselected():
        whole.update(_transactions(piece.filter(pc.is_null(piece["row_id"]))))
    for piece in rows.reselected():
        told = piece.filter(pc.and_(pc.is_valid(piece["row_id"]), _are_of(piece, whole)))
        if told.num_rows:
            yield _as_changes(told)
    for piece in rows.batches():
        # A TRUNCATE is shown, and no row that Oracle could tell.
        shown = pc.equal(piece["operation_code"], int(Operation.DDL))
        left = piece.filter(pc.or_(shown, pc.invert(_are_of(piece, whole))))
        if left.num_rows:
            left = left.drop_columns([one for one in IMAGES if one in left.column_names])
            problem = pc.if_else(
                pc.equal(left["operation_code"], int(Operation.DDL)),
                pa.scalar(None, pa.string()),
                NOT_READ,
            )
            yield left.append_column("problem", problem)


def _transactions(rows: pa.Table) -> list[Transaction]:
    return list(zip(rows["xid"].to_pylist(), rows["commit_scn"].to_pylist(), strict=True))


def _are_of(rows: pa.Table, whole: set[Transaction]) -> pa.Array:
    return pa.array([one in whole for one in _transactions(rows)], pa.bool_())


def _as_changes(rows: pa.Table) -> pa.Table:
    """The rows with what they are: an INSERT has no image before it, a DELETE none behind."""
    kind = rows["operation_code"].type
    code = pc.if_else(
        pc.is_null(rows["before"]),
        pa.scalar(int(Operation.INSERT), kind),
        pc.if_else(
            pc.is_null(rows["after"]),
            pa.scalar(int(Operation.DELETE), kind),
            pa.scalar(int(Operation.UPDATE), kind),
        ),
    )
    at = rows.schema.get_field_index("operation_code")
    rows = rows.set_column(at, "operation_code", code)
    return rows.append_column("problem", pa.nulls(rows.num_rows, pa.string()))
