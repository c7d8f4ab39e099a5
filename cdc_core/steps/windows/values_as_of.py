"""What has Oracle in some columns of changed rows, each as of the commit of its change?

For readers that bring changes without these values: pieces of LOBs, binary floats with six digits.
Rows are asked for by ROWID. One that Oracle does not have there was deleted in the same
transaction, so nobody misses its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import pyarrow as pa

from cdc_core.change_reader import PLACE
from cdc_core.decode.masking import masked
from cdc_core.errors import DecodeError
from cdc_core.model.scn import Scn
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import ROW_ID, ROW_ID_COLUMN, TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.snapshot.plan import ChunkKeys
from cdc_core.snapshot.present_names import renames
from cdc_core.snapshot.read import FetchOptions, exact_rows_by_scn
from cdc_core.steps.context import Context
from cdc_core.steps.table_errors import READING_ERRORS
from cdc_core.steps.windows.past_rows import VALUES_AT_ONCE, attempts, parts_of, reading_past

_Part = tuple[Scn, list[tuple[Scn, str]]]
"""Commits and ROWIDs that are asked for as of one commit."""


def values_as_of(
    ctx: Context, version: TableSchema, columns: Sequence[str], wanted: Sequence[tuple[Scn, str]]
) -> pa.Table:
    """A :data:`~cdc_core.change_reader.ValuesAsOf`."""
    kept = tuple(one for one in version.as_in_rows().columns if one.name in columns)
    by_row_id = replace(version, columns=(ROW_ID_COLUMN, *kept), key=(ROW_ID,))
    places = {one: at for at, one in enumerate(wanted)}
    found = [arrow_schema(by_row_id).append(pa.field(PLACE, pa.int64())).empty_table()]
    try:
        for part in parts_of(sorted(wanted), lambda one: one[0]):
            found += attempts()(_read, ctx, by_row_id, part, places)
    except READING_ERRORS as error:
        raise DecodeError(
            f"Oracle cannot read values as of a commit: {error.message}",
            hint="With `on_undecodable: resnapshot`, such a table is read again. A longer UNDO_RETENTION keeps the past.",
            table=version.table,
        ) from error
    return pa.concat_tables(found).drop_columns([ROW_ID])


def _read(
    ctx: Context,
    version: TableSchema,
    parts: Sequence[_Part],
    places: dict[tuple[Scn, str], int],
) -> list[pa.Table]:
    table = version.table
    with reading_past(ctx, table, "values") as (session, present):
        read = partial(_rows, ctx, session, version, parts, renames(version, present), places)
        return read_after_ddl(session, [table], read)


def _rows(
    ctx: Context,
    session: OracleSession,
    version: TableSchema,
    parts: Sequence[_Part],
    names: dict[str, str],
    places: dict[tuple[Scn, str], int],
) -> list[pa.Table]:
    table = version.table
    asked = [(scn, ChunkKeys(tuple((row_id,) for _, row_id in own))) for scn, own in parts]
    options = FetchOptions(rows=VALUES_AT_ONCE, names=names, replacing=ctx.config.replacing(table))
    found: list[pa.Table] = []
    with closing(exact_rows_by_scn(session, version, asked, options)) as rows:
        for part_of, batch in rows:
            keys = zip(part_of.to_pylist(), batch[ROW_ID].to_pylist(), strict=True)
            own = pa.array([places[parts[at][0], row_id] for at, row_id in keys], pa.int64())
            batch = masked(batch, ctx.masks(table)).append_column(PLACE, own)
            found.append(pa.Table.from_batches([batch]))
    return found
