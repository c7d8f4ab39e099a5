"""Which changes do the redo statements of one table mean? The main thing of this package:
:func:`decode_dml`.

Compiled loops (``kernels``) read all rows; those that they do not understand are read by the plain
form (``plain``, ``literals``), which decodes rare forms and refuses the rest. So the loops may give
up at any doubt, and every refusal is worded in one place.

Choices where Oracle and Delta differ: ``''`` is NULL as in Oracle, in CLOBs as well;
``EMPTY_CLOB()`` is the empty text, which is what the snapshot path reads from an empty CLOB. CHAR
keeps its blanks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.decode.batch import ScannedBatch, names_where, scan_batch
from cdc_core.decode.column_forms import in_form_or_null
from cdc_core.decode.plain import DELETE, INSERT, PlainChange, decode_statement
from cdc_core.decode.plan import TablePlan, plan_table
from cdc_core.decode.text_source import one_text_array, replace_rows
from cdc_core.schema.table import TableSchema


@dataclass(frozen=True, slots=True)
class DecodedDml:
    """The changes of a batch of redo rows, one entry per row, in the rows' order.

    Attributes:
        op: int8: 1 insert, 2 delete, 3 update (LogMiner's operation codes).
        before: struct of the table's columns; null for an insert. Columns that the statement does
            not carry are null.
        after: struct of the table's columns; null for a delete. An update's is ``before`` overlaid
            by SET.
        absent: list<string>: columns that ``after`` does not carry, for a delete those that
            ``before`` does not carry.
        before_absent: list<string>: columns that ``before`` does not carry; empty for an insert.
        unfit: How many values of ``after`` are NULL because the form of their column does not hold
            them.
    """

    op: pa.Array
    before: pa.StructArray
    after: pa.StructArray
    absent: pa.ListArray
    before_absent: pa.ListArray
    unfit: int = 0


def decode_dml(sql: pa.Array | pa.ChunkedArray, schema: TableSchema) -> DecodedDml:
    """Decode redo statements of one table into typed columns.

    Args:
        sql: string or large_string: SQL_REDO with continuation rows joined; some thousand rows a
            call are best.
        schema: The table at the statements' SCN.

    Raises:
        DecodeError: A statement or a value is not understood, or a value does not fit its column
            exactly; the facts name the first such row by index, and the column, never a value.
        SchemaMismatchError: A statement names a column that the table does not have.
        UnsupportedTypeError: A column's type is not captured.
    """
    plan = plan_table(schema)
    text = one_text_array(sql)
    if text.null_count:
        text = text.fill_null("")  # refused by the plain form, as empty text is
    scanned = scan_batch(text, plan)
    left = np.flatnonzero(scanned.operations == 0)
    plain = {int(row): decode_statement(text[int(row)].as_py(), plan, row=int(row)) for row in left}
    operations = scanned.operations
    for row, change in plain.items():
        operations[row] = change.op
    before, _ = _images(scanned.before, operations == INSERT, plan, plain, is_after=False)
    after, unfit = _images(scanned.after, operations == DELETE, plan, plain, is_after=True)
    return DecodedDml(
        op=pa.array(operations, pa.int8()),
        before=before,
        after=after,
        absent=_absent(scanned, plan, plain),
        before_absent=_before_absent(scanned, plan, plain),
        unfit=unfit,
    )


def _images(
    columns: list[pa.Array] | None,
    is_null: npt.NDArray[np.bool_],
    plan: TablePlan,
    plain: dict[int, PlainChange],
    *,
    is_after: bool,
) -> tuple[pa.StructArray, int]:
    if columns is None and not plain:  # INSERTs alone have no old images, DELETEs no new ones
        return pa.nulls(len(is_null), pa.struct(plan.row_fields)), 0
    if columns is None:
        columns = [pa.nulls(len(is_null), column.type) for column in plan.columns]
    if plain:
        sides = [change.after if is_after else change.before for change in plain.values()]
        columns = [
            replace_rows(values, list(plain), [(side or {}).get(column.name) for side in sides])
            for values, column in zip(columns, plan.columns, strict=True)
        ]
    unfit, read, source_of = 0, list(columns), dict(plan.beside)
    for at, column in plan.held:
        columns[at], own = in_form_or_null(read[source_of.get(at, at)], column)
        unfit += own
    mask = pa.array(is_null) if is_null.any() else None
    return pa.StructArray.from_arrays(columns, fields=plan.row_fields, mask=mask), unfit


def _absent(scanned: ScannedBatch, plan: TablePlan, plain: dict[int, PlainChange]) -> pa.ListArray:
    missing = ~scanned.carried
    for row, change in plain.items():
        missing[:, row] = [column.name in change.absent for column in plan.columns]
    return _named(missing, plan)


def _before_absent(
    scanned: ScannedBatch, plan: TablePlan, plain: dict[int, PlainChange]
) -> pa.ListArray:
    if scanned.before is None and not plain:
        return names_where(np.zeros((0, len(scanned.operations)), np.bool_), [])
    missing = ~scanned.carried_before
    for row, change in plain.items():
        carried = change.before or {}
        missing[:, row] = [column.name not in carried for column in plan.columns]
    missing[:, scanned.operations == INSERT] = False
    return _named(missing, plan)


def _named(missing: npt.NDArray[np.bool_], plan: TablePlan) -> pa.ListArray:
    for at, source in plan.beside:
        missing[at] = missing[source]
    return names_where(missing, [column.name for column in plan.columns])
