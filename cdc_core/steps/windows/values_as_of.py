"""What has Oracle in some columns of changed rows, each as of the commit of its change?

For readers that bring changes without these values: pieces of LOBs, binary floats with six digits.
Rows are asked for by ROWID. One that Oracle does not have there was deleted in the same
transaction, so nobody misses its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby

import pyarrow as pa
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_core.change_reader import PLACE
from cdc_core.decode.masking import masked
from cdc_core.errors import AlteredMeanwhileError, DecodeError
from cdc_core.model.scn import Scn
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.hidden_rows import seeing_all
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import ROW_ID, ROW_ID_COLUMN, TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.snapshot.plan import ChunkKeys
from cdc_core.snapshot.present_names import present_names, renames
from cdc_core.snapshot.read import FetchOptions, exact_rows_by_scn
from cdc_core.steps.context import Context
from cdc_core.steps.table_errors import READING_ERRORS
from cdc_core.steps.windows.reselecting import refuse_other_names

_ROWS_AT_ONCE = 1000
"""A list of one statement takes no more (ORA-01795)."""
_COMMITS_AT_ONCE = 100
_FETCH_ROWS = 10
"""Values of so many rows are fetched at once; a LOB has to fit into memory anyway."""
_ATTEMPTS = 3
"""How often rows are asked for of a table whose columns get other names meanwhile."""


def values_as_of(
    ctx: Context, version: TableSchema, columns: Sequence[str], wanted: Sequence[tuple[Scn, str]]
) -> pa.Table:
    """A :data:`~cdc_core.change_reader.ValuesAsOf`."""
    kept = tuple(one for one in version.as_in_rows().columns if one.name in columns)
    by_row_id = replace(version, columns=(ROW_ID_COLUMN, *kept), key=(ROW_ID,))
    places = {one: at for at, one in enumerate(wanted)}
    attempts = Retrying(
        retry=retry_if_exception_type(AlteredMeanwhileError),
        stop=stop_after_attempt(_ATTEMPTS),
        reraise=True,
    )
    found = [arrow_schema(by_row_id).append(pa.field(PLACE, pa.int64())).empty_table()]
    try:
        for part in _statements(sorted(wanted)):
            found += attempts(_read, ctx, by_row_id, part, places)
    except READING_ERRORS as error:
        raise DecodeError(
            f"Oracle does not tell values as of a commit: {error.message}",
            hint="With `on_undecodable: resnapshot`, such a table is read again. A longer UNDO_RETENTION keeps the past.",
            table=version.table,
        ) from error
    return pa.concat_tables(found).drop_columns([ROW_ID])


_Part = tuple[Scn, list[str]]
"""ROWIDs that are asked for as of one commit."""


def _statements(wanted: Sequence[tuple[Scn, str]]) -> Iterator[list[_Part]]:
    """The parts of one statement after the other."""
    parts: list[_Part] = []
    room = _ROWS_AT_ONCE
    for scn, rows in groupby(wanted, key=lambda one: one[0]):
        left = [row_id for _, row_id in rows]
        while left:
            if not room or len(parts) == _COMMITS_AT_ONCE:
                yield parts
                parts, room = [], _ROWS_AT_ONCE
            own, left = left[:room], left[room:]
            parts.append((scn, own))
            room -= len(own)
    if parts:
        yield parts


def _read(
    ctx: Context,
    version: TableSchema,
    parts: Sequence[_Part],
    places: dict[tuple[Scn, str], int],
) -> list[pa.Table]:
    table = version.table
    with ctx.database.session() as session, seeing_all(session, table):
        present = present_names(session, table)
        read = partial(_rows, ctx, session, version, parts, renames(version, present), places)
        found = read_after_ddl(session, [table], read)
        refuse_other_names(session, table, present, "values")
    return found


def _rows(
    ctx: Context,
    session: OracleSession,
    version: TableSchema,
    parts: Sequence[_Part],
    names: dict[str, str],
    places: dict[tuple[Scn, str], int],
) -> list[pa.Table]:
    table = version.table
    asked = [(scn, ChunkKeys(tuple((one,) for one in row_ids))) for scn, row_ids in parts]
    options = FetchOptions(rows=_FETCH_ROWS, names=names, replacing=ctx.config.replacing(table))
    found: list[pa.Table] = []
    with closing(exact_rows_by_scn(session, version, asked, options)) as rows:
        for part_of, batch in rows:
            keys = zip(part_of.to_pylist(), batch[ROW_ID].to_pylist(), strict=True)
            own = pa.array([places[parts[at][0], row_id] for at, row_id in keys], pa.int64())
            batch = masked(batch, ctx.masks(table)).append_column(PLACE, own)
            found.append(pa.Table.from_batches([batch]))
    return found
