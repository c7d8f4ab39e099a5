"""Which changes do the redo statements of one table mean? The main thing of this package: :func:`decode_dml`."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from cdc_core.decode.plain import decode_statement
from cdc_core.decode.plan import plan_table
from cdc_core.schema.table import TableSchema


@dataclass(frozen=True, slots=True)
class DecodedDml:
    """The changes of a batch of redo rows, one entry per row, in the rows' order.

    Attributes:
        op: int8: 1 insert, 2 delete, 3 update (LogMiner's operation codes).
        before: struct of the table's columns; null for an insert. Columns that the statement does not carry are null.
        after: struct of the table's columns; null for a delete. An update's is ``before`` overlaid by SET.
        absent: list<string>: columns that ``after`` does not carry, for a delete those that ``before`` does not carry.
    """

    op: pa.Array
    before: pa.StructArray
    after: pa.StructArray
    absent: pa.ListArray


def decode_dml(sql: pa.Array | pa.ChunkedArray, schema: TableSchema) -> DecodedDml:
    """Decode redo statements of one table into typed columns.

    Raises:
        DecodeError: A statement or a value is not understood, or a value does not fit its column exactly; the facts name
            the first such row by index, and the column, never a value.
        SchemaMismatchError: A statement names a column that the table does not have.
        UnsupportedTypeError: A column's type is not captured.
    """
    plan = plan_table(schema)
    changes = [decode_statement(text, plan, row=row) for row, text in enumerate(sql.to_pylist())]
    return DecodedDml(
        op=pa.array([change.op for change in changes], pa.int8()),
        before=pa.array([change.before for change in changes], plan.row_type),
        after=pa.array([change.after for change in changes], plan.row_type),
        absent=pa.array([change.absent for change in changes], pa.list_(pa.string())),
    )
