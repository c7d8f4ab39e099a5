"""How does a batch become columns? The outermost loop of decoding: block by block, so that
statements and entries are still in the processor's cache when their bytes are written.
"""

from __future__ import annotations

from cdc_core.decode.kernels.cache import entry, inner
from cdc_core.decode.kernels.finish import copy_old, has_any, measure, overlay, write
from cdc_core.decode.kernels.json_rows import scan_json_rows
from cdc_core.decode.kernels.memory import load8, store8, store32
from cdc_core.decode.kernels.scan import scan_rows
from cdc_core.decode.kernels.table import (
    AFTER,
    BEFORE,
    CAPACITY,
    ENTRIES,
    KIND,
    NEEDED,
    OFFSETS,
    SCRATCH,
    STATES,
    TOTAL,
    field,
    is_measured,
    set_field,
)

OWN, SHARED, PARTED = 0, 1, 2
"""Of a column's new values: written for themselves; so far the old ones, which are written once; no
longer, from this block on."""


@entry
def decode_blocks(
    data: int,
    tail: int,
    tail_row: int,
    offsets: int,
    scanned: int,
    first: int,
    rows: int,
    block: int,
    table: int,
    columns: int,
    names: int,
    table_name: int,
    table_name_length: int,
    memo: int,
    operations: int,
    has_before: bool,
    has_after: bool,
    shared: int,
    is_json: bool,
) -> int:
    """Read rows and write their columns, as long as there is room for text and bytes.

    Args:
        data: Address of the statements' bytes; the arguments that are not described here are
            :func:`scan.scan_rows`'s.
        scanned: Rows before this one were scanned by an earlier call.
        first: The first row that is not written yet.
        rows: Number of rows of the batch.
        block: Rows of a block, a multiple of 8.
        has_before: Has the table memory for old images?
        has_after: Has the table memory for new images?
        is_json: ``offsets`` is the address of records' words, ``operations`` has their operations.
        shared: Address of a byte per column, OWN or SHARED at first. What is SHARED at the end has
            its old values as new ones, and nothing was copied.

    Returns:
        The first row that is not written: ``rows`` at the end, else that of a block for which a
        column's CAPACITY is too small.
    """
    if scanned == 0:
        for column in range(columns):
            if is_measured(field(table, column, KIND)):
                if has_before:
                    store32(field(table, column, OFFSETS + BEFORE), 0)
                if has_after:
                    store32(field(table, column, OFFSETS + AFTER), 0)
    while first < rows:
        last = min(first + block, rows)
        if last > scanned:
            if has_before:
                _begin_block(table, columns, first, BEFORE)
            if has_after:
                _begin_block(table, columns, first, AFTER)
            if is_json:
                scan_json_rows(offsets, first, last, table, columns, memo, operations)
            else:
                scan_rows(
                    data,
                    tail,
                    tail_row,
                    offsets,
                    first,
                    last,
                    table,
                    columns,
                    names,
                    table_name,
                    table_name_length,
                    memo,
                    operations,
                )
            scanned = last
        if has_before and has_after:
            _part(table, columns, first, last, shared)
            for column in range(columns):
                if load8(shared + column) != SHARED:
                    overlay(table, column, first, last, operations)
        if not _has_room(table, columns, first, last, has_before, has_after, shared):
            return first
        for column in range(columns):
            if load8(shared + column) == PARTED:
                copy_old(table, column, first)
                store8(shared + column, OWN)
            if has_before:
                write(table, column, first, last, BEFORE)
            if has_after and load8(shared + column) != SHARED:
                write(table, column, first, last, AFTER)
        first = last
    return first


@inner
def _begin_block(table: int, columns: int, first: int, side: int) -> None:
    """Entries of text and bytes are needed until a block is written; so they stand at the same
    place for each block."""
    for column in range(columns):
        if is_measured(field(table, column, KIND)):
            set_field(
                table, column, ENTRIES + side, field(table, column, SCRATCH + side) - first * 16
            )


@inner
def _part(table: int, columns: int, first: int, last: int, shared: int) -> None:
    """Columns that an update of the block sets have new values of their own from here on."""
    for column in range(columns):
        if load8(shared + column) == SHARED and has_any(
            field(table, column, STATES + AFTER), first, last
        ):
            store8(shared + column, PARTED)


@inner
def _has_room(
    table: int,
    columns: int,
    first: int,
    last: int,
    has_before: bool,
    has_after: bool,
    shared: int,
) -> bool:
    """May the block's text and bytes be written? Where not, TOTAL of no column has changed."""
    is_enough = True
    for column in range(columns):
        if not is_measured(field(table, column, KIND)):
            continue
        if has_before:
            total = field(table, column, TOTAL + BEFORE)
            total += measure(table, column, first, last, BEFORE)
            is_enough = _fits(table, column, BEFORE, total) and is_enough
        how = load8(shared + column)
        if has_after and how != SHARED:
            total = field(table, column, TOTAL + (BEFORE if how == PARTED else AFTER))
            total += measure(table, column, first, last, AFTER)
            is_enough = _fits(table, column, AFTER, total) and is_enough
    return is_enough


@inner
def _fits(table: int, column: int, side: int, total: int) -> bool:
    set_field(table, column, NEEDED + side, total)
    return total <= field(table, column, CAPACITY + side)
