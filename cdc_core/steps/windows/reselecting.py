"""How does landing get what the redo of a window does not carry: values of LOBs, documents and long
texts of which it has a part, and rows of tables of which LogMiner shows none?

Once all redo of a window is in its files, and before its manifest makes it landed: the transactions
that commit in it are read through as apply will read them, and what
:mod:`cdc_core.stage.missing_lobs` finds missing is asked of Oracle by key AS OF the transaction's
commit. It lands as a file of the window, so a replay needs no Oracle, and a window that is captured
again after a crash asks for the same. What Oracle does not tell stays a part of a value, which
whoever decodes refuses. Rows are :mod:`cdc_core.steps.windows.reselecting_rows`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from typing import Any

import pyarrow as pa

from cdc_core.config import SourceConfig
from cdc_core.decode.lob import lob_literal
from cdc_core.decode.masking import Masks, masked
from cdc_core.errors import CdcError, LandingDamagedError
from cdc_core.landing.layout import REDO_SCHEMA, change_file_schema, window_folder
from cdc_core.landing.manifest import LandedFile, WindowManifest
from cdc_core.landing.redo_files import REDO_DICTIONARY
from cdc_core.landing.store import LandingWriter
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.records import WindowRecord
from cdc_core.model.scn import Scn
from cdc_core.model.texts import TextReplacement
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.masks import masked_key
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import as_read
from cdc_core.snapshot.keys import key_texts
from cdc_core.snapshot.plan import Bound, ChunkKeys
from cdc_core.snapshot.present_names import renames
from cdc_core.snapshot.read import FetchOptions, exact_rows_by_scn
from cdc_core.stage.committed import LandedInput
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.lobs import missing_lobs
from cdc_core.stage.missing_lobs import MissingLob
from cdc_core.stage.window import lob_ends, located_rows
from cdc_core.steps.context import Context
from cdc_core.steps.table_errors import READING_ERRORS
from cdc_core.steps.windows.past_rows import VALUES_AT_ONCE, attempts, parts_of, reading_past
from cdc_core.steps.windows.redo_inputs import redo_inputs
from cdc_core.steps.windows.reselecting_rows import changed_rows, touched_rows, with_versions

_LOG = logging.getLogger(__name__)

AskedRow = dict[str, MissingLob]
"""The changes of a row's LOBs whose values Oracle is asked for, by column."""

Asked = tuple[Scn, list[AskedRow]]
"""Rows that are asked for as of one commit: a part of a statement."""

_Rows = tuple[pa.Array, pa.RecordBatch]


def reselects(config: SourceConfig) -> bool:
    """May a window ask Oracle for what the redo does not carry?"""
    return config.capture.reselects_lobs or any(one.reselects_some for one in config.tables)


def with_reselected(ctx: Context, record: WindowRecord, manifest: WindowManifest) -> WindowManifest:
    """Land what Oracle has of LOBs that the window's redo carries in part, and of rows that
    LogMiner does not show; the manifest names the files of each table that has some."""
    files, by_table = list(manifest.redo_files), dict(manifest.files_by_table)
    unfit: dict[str, int] = {}
    for schema in sorted(manifest.schemas, key=lambda one: str(one.table)):
        name = str(schema.table)
        if name not in manifest.tables_committed:
            continue
        given: list[LandedFile] = []
        if _decoder(ctx, manifest, schema).is_reselected:
            lost: list[int] = []
            land = partial(_landed_rows, ctx, record, unfit=lost.append)
            given = _land(manifest, schema, len(files), land)
            unfit |= {name: sum(lost)} if any(lost) else {}
        elif ctx.config.capture.reselects_lobs and _may_be_asked(schema):
            given = _land(manifest, schema, len(files), partial(_landed, ctx, record))
        for landed in given:
            by_table[name] = (*by_table.get(name, ()), len(files))
            files.append(landed)
            _LOG.info(
                "values read from Oracle window=%s table=%s rows=%d",
                manifest.window.key, schema.table, landed.rows,
            )  # fmt: skip
    if len(files) == len(manifest.redo_files):
        return manifest
    return replace(
        manifest,
        redo_files=tuple(files),
        files_by_table=dict(sorted(by_table.items())),
        unfit_values=unfit,
    )


def _may_be_asked(schema: TableSchema) -> bool:
    """Has the table LOBs, and does Oracle find its rows by the keys that land?"""
    return any(column.is_lob for column in schema.columns) and not masked_key(schema)


_Landing = Callable[[WindowManifest, TableSchema, int], list[LandedFile]]


def _land(
    manifest: WindowManifest, schema: TableSchema, number: int, landing: _Landing
) -> list[LandedFile]:
    """Land the rows of one table; the first file has the number. What is about the table alone
    gives its files up: apply meets the same, and stops the table."""
    try:
        return attempts()(landing, manifest, schema, number)
    except (*READING_ERRORS, LandingDamagedError) as error:
        _warn(schema.table, manifest.window.scn_high, error)
        return []


def _landed_rows(
    ctx: Context,
    record: WindowRecord,
    manifest: WindowManifest,
    schema: TableSchema,
    number: int,
    *,
    unfit: Callable[[int], None],
) -> list[LandedFile]:
    """What transactions changed in a table of which LogMiner shows no row: a file for each version
    of the table."""
    table = schema.table
    decoder, landed = _decoder(ctx, manifest, schema), _input(ctx, record, manifest, table)
    files: list[LandedFile] = []
    with reading_past(ctx, table, "rows") as (session, present):
        hidden, _ = landed.rows(landed.committed()).parted(decoder.hides)
        touched = with_versions(session, schema, touched_rows(hidden))
        by_version = groupby(touched, key=lambda one: decoder.version_at(one.commit_scn))
        for version, some in by_version:
            name = f"changed-{number + len(files):05d}.parquet"
            folder = window_folder(ctx.source, manifest.window)
            with ctx.landing.writer(folder, name, change_file_schema(version)) as file:
                for batch in changed_rows(
                    session,
                    version,
                    list(some),
                    renames(version, present),
                    ctx.masks(table),
                    ctx.config.replacing(table),
                    unfit,
                ):
                    file.write(batch)
                files.append(file.close())
    return files


def _landed(
    ctx: Context, record: WindowRecord, manifest: WindowManifest, schema: TableSchema, number: int
) -> list[LandedFile]:
    table, masks = schema.table, ctx.masks(schema.table)
    replacing = ctx.config.replacing(table)
    file: LandingWriter | None = None
    try:
        for missing in _missing(ctx, record, manifest, schema):
            with reading_past(ctx, table, "values of LOBs") as (session, present):
                for batch in _landing_rows(session, missing, present, masks, replacing):
                    file = file or _begun(ctx, manifest, number)
                    file.write(batch)
    except BaseException:
        if file is not None:
            file.abort()
        raise
    return [] if file is None else [file.close()]


def _begun(ctx: Context, manifest: WindowManifest, number: int) -> LandingWriter:
    folder, name = window_folder(ctx.source, manifest.window), f"reselected-{number:05d}.parquet"
    return ctx.landing.writer(folder, name, REDO_SCHEMA, dictionary=REDO_DICTIONARY)


def _missing(
    ctx: Context, record: WindowRecord, manifest: WindowManifest, schema: TableSchema
) -> Iterator[list[MissingLob]]:
    """What the redo of the window's transactions carries in part, as apply will find it."""
    landed = _input(ctx, record, manifest, schema.table)
    taken = landed.rows(landed.committed())
    ends = lob_ends(taken)
    if not ends:
        return
    decoder = _decoder(ctx, manifest, schema)
    rows = located_rows(taken, decoder)
    yield from missing_lobs(rows, ends, decoder.version_at)


def _input(
    ctx: Context, record: WindowRecord, manifest: WindowManifest, table: TableId
) -> LandedInput:
    above = 0 if str(table) in manifest.tables_late else None
    return redo_inputs(ctx, record, manifest, ctx.table_record(table), above)


def _decoder(ctx: Context, manifest: WindowManifest, schema: TableSchema) -> ChangeDecoder:
    table = schema.table
    earlier = [version.schema for version in ctx.store.schemas.versions(table)]
    earlier += [one.schema for one in manifest.schema_changes if one.schema.table == table]
    return ChangeDecoder(
        ctx.visible(schema),
        manifest.window.scn_high,
        earlier=tuple(map(ctx.visible, earlier)),
        excluded=schema.excluded,
    )


def _landing_rows(
    session: OracleSession,
    missing: Sequence[MissingLob],
    present: Sequence[str],
    masks: Masks,
    replacing: TextReplacement,
) -> Iterator[pa.RecordBatch]:
    """The rows that stand for these changes: of those that others follow, then of each query's."""
    followed = [one for one in missing if not one.is_last]
    if followed:
        yield _batch((one, one.sql_without) for one in followed)
    asked = sorted(_asked_rows(one for one in missing if one.is_last), key=_query_of)
    for _, group in groupby(asked, key=lambda row: _query_of(row)[:2]):
        for parts in parts_of(group, lambda row: _query_of(row)[2]):
            yield from _looked_up(session, parts, present, masks, replacing)


def _asked_rows(missing: Iterable[MissingLob]) -> Iterable[AskedRow]:
    rows: dict[tuple[Any, ...], AskedRow] = {}
    for one in missing:
        row = one.row["commit_scn"], one.schema.scn_from, one.place.key
        rows.setdefault(row, {})[one.place.column] = one
    return rows.values()


def _query_of(row: AskedRow) -> tuple[int, tuple[str, ...], int]:
    """Rows of one version that miss the same LOBs are asked for at once, by commit."""
    one = next(iter(row.values()))
    return one.schema.scn_from, tuple(sorted(row)), one.row["commit_scn"]


def _looked_up(
    session: OracleSession,
    parts: Sequence[Asked],
    present: Sequence[str],
    masks: Masks,
    replacing: TextReplacement,
) -> Iterator[pa.RecordBatch]:
    """The rows with the values that a chunk as of their commits has, masked ones as masks; none for
    a key that Oracle does not have then, or does not tell. ``present``: the names that the table's
    columns have now.

    Where Oracle refuses a statement for several commits, the rows that it did not give are asked
    for in two halves, until it is known which commit Oracle does not tell any more.
    """
    first = next(iter(parts[0][1][0].values()))
    columns = sorted(parts[0][1][0])
    schema, names = _narrow(first.schema, columns), renames(first.schema, present)
    left: list[dict[Bound, AskedRow]] = []
    try:
        left = [dict(zip(_keys(asked, schema), asked, strict=True)) for _, asked in parts]
        wanted = [(scn, tuple(left[at])) for at, (scn, _) in enumerate(parts)]
        read = partial(_begin, session, schema, wanted, names, replacing)
        begun, rest = read_after_ddl(session, [schema.table], read)
        with closing(rest):
            for places, found in chain([begun], rest):
                batch = masked(found, masks)
                keys = zip(places.to_pylist(), _keys_of(batch, schema), strict=True)
                known = [left[place].pop(key, {}) for place, key in keys]
                yield _batch(
                    (row[column], row[column].sql_with(_literal(value)))
                    for column in columns
                    for row, value in zip(known, batch[column].to_pylist(), strict=True)
                    if row
                )
    except READING_ERRORS as error:
        if len(parts) == 1:
            _warn(schema.table, parts[0][0], error)
            return
        again = list(parts)
        if left:
            again = [(scn, list(rows.values())) for (scn, _), rows in zip(parts, left, strict=True)]
            again = [(scn, rows) for scn, rows in again if rows]
        half = (len(again) + 1) // 2
        for some in filter(None, (again[:half], again[half:])):
            yield from _looked_up(session, some, present, masks, replacing)


def _literal(value: Any) -> str:
    return "NULL" if value is None else lob_literal(value)


def _begin(
    session: OracleSession,
    schema: TableSchema,
    parts: Sequence[tuple[Scn, tuple[Bound, ...]]],
    names: Mapping[str, str],
    replacing: TextReplacement,
) -> tuple[_Rows, Generator[_Rows]]:
    """The first rows of the query, and the others."""
    asked = [(scn, ChunkKeys(keys)) for scn, keys in parts]
    options = FetchOptions(rows=VALUES_AT_ONCE, names=names, replacing=replacing)
    rows = exact_rows_by_scn(session, schema, asked, options)
    return next(rows), rows


def _narrow(schema: TableSchema, columns: Sequence[str]) -> TableSchema:
    """The key and some LOBs, as Oracle has them: the lake's own forms come with the decoding."""
    wanted = {*schema.key, *columns}
    return replace(
        schema, columns=tuple(as_read(one) for one in schema.columns if one.name in wanted)
    )


def _keys(asked: Sequence[AskedRow], schema: TableSchema) -> list[Bound]:
    """The rows' keys, as a query takes them."""
    changes = [next(iter(row.values())) for row in asked]
    if schema.is_by_row_id:
        return [key_texts(one.place.key, schema) for one in changes]
    # The compiled decoder takes a second to import, and few windows need it here.
    from cdc_core.decode.dml import decode_dml

    rows = decode_dml(pa.array([one.sql_without for one in changes], pa.large_string()), schema)
    return _keys_of(pa.RecordBatch.from_struct_array(rows.before), schema)


def _keys_of(rows: pa.RecordBatch, schema: TableSchema) -> list[Bound]:
    columns = (rows[name].to_pylist() for name in schema.key)
    return [key_texts(key, schema) for key in zip(*columns, strict=True)]


def _batch(rows: Iterable[tuple[MissingLob, str]]) -> pa.RecordBatch:
    """Rows of landing: each has the facts of the redo row that it stands for."""
    return pa.RecordBatch.from_pylist([_row(one, sql) for one, sql in rows], schema=REDO_SCHEMA)


def _row(one: MissingLob, sql: str) -> dict[str, Any]:
    table, code = one.schema.table, int(Operation.RESELECTED)
    own = {"seg_owner": table.owner, "table_name": table.name, "operation_code": code}
    facts = {name: one.row.get(name) for name in REDO_SCHEMA.names}
    return {**facts, **own, "status": 0, "sql_redo": sql}


def _warn(table: TableId, scn: int, error: CdcError) -> None:
    _LOG.warning("values cannot be read from Oracle table=%s scn=%d: %s", table, scn, error.message)
