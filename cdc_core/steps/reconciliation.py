"""Is every mirror equal to Oracle as of one SCN, and if not, how does it become so?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cdc_core.config import LocalLandingConfig
from cdc_core.errors import (
    CdcError,
    SnapshotTooOldError,
    TerminalError,
)
from cdc_core.lake.comparison.sides import (
    Differences,
    MirrorComparison,
    Side,
    Suspects,
    added,
    suspects,
    total,
)
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.open import open_landing
from cdc_core.model.chunks import REPAIR, ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import ComparisonEngine, LeftOut, Reconciliation, TableComparison
from cdc_core.model.scn import Scn
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.masks import masked_key
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.keys import key_texts
from cdc_core.snapshot.plan import ChunkKeys, ChunkPart, ChunkRange
from cdc_core.snapshot.read import read_chunk, unread_chunk
from cdc_core.steps.consistent_cut import exact_tables
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.snapshots.apply import settle_quarantine
from cdc_core.steps.snapshots.plan import plan_parts
from cdc_core.steps.snapshots.row_filter import complement, held_filter
from cdc_core.steps.snapshots.shared import fetch_options, ranges_of

REPAIR_KEYS_MAX = 10_000
"""Up to so many differing keys of a table are read again by themselves, beyond them the whole
table."""

REPAIR_CHUNK_KEYS = 500
"""Keys in one statement; Oracle takes no more than 1,000 values in a list."""


def reconcile(
    ctx: Context,
    tables: list[TableId] | None = None,
    *,
    scn: int | None = None,
    keys_max: int = 0,
) -> Reconciliation:
    """Compare mirrors with Oracle ``AS OF SCN``: all rows, all columns.

    Oracle is read in chunks of ``snapshot.chunk_rows`` rows, of which one at a time is on disk;
    tables that differ are read once more. Two rows that differ have the same digest once in 2^60
    times.

    Args:
        tables: All captured tables when None. One that cannot be compared at the SCN (paused behind
            it, stopped, not read yet, ahead of it by an ad hoc snapshot) is named in ``left_out``;
            the others are compared.
        scn: The upper end of an applied window; by default that of the last window that all tables
            in their stream have taken.
        keys_max: How many of the differing keys to name. They are row values: for the operator who
            asks.

    Raises:
        ConfigError: ``scn`` is not the end of an applied window.
        NotYetError: No table can be compared, and why the first one cannot.
        SnapshotTooOldError: Oracle no longer has the undo for the SCN, of a table that is compared
            alone.
    """
    at, comparable, left_out = exact_tables(ctx, ctx.configured(tables), scn)
    compared = []
    for table in comparable:
        started = time.monotonic()
        try:
            found = _compare(ctx, table, at, keys_max=keys_max)
        except (TerminalError, SnapshotTooOldError) as error:
            if len(comparable) == 1:
                raise
            left_out.append(_failed(table, error))
            continue
        one = _comparison(table, found, seconds_since(started))
        ctx.store.comparisons.keep(table, scn=at, rows=one.rows_oracle, differences=one.differences)
        compared.append(one)
    return Reconciliation(at, tuple(compared), tuple(left_out))


def start_repair(
    ctx: Context, tables: list[TableId] | None = None
) -> tuple[list[ChunkKey], list[LeftOut]]:
    """Compare, and plan an ad hoc snapshot of what differs, as of the SCN that was compared.

    Up to :data:`REPAIR_KEYS_MAX` keys of a table are read again by themselves: the chunk replaces
    what the mirror has of them, and those that Oracle does not have go. Beyond them the whole table
    is read again. The chunks go the way of every ad hoc snapshot, through change log and mirror, so
    that the log alone still gives the mirror.

    Rows in quarantine up to that SCN count no more once the chunks are applied, or at once where
    nothing differs.

    Returns:
        The planned chunks, none if nothing differs; and the tables that cannot be compared.

    Raises:
        ConfigError, NotYetError, SnapshotTooOldError: As for :func:`reconcile`.
    """
    at, comparable, left_out = exact_tables(ctx, ctx.configured(tables), None)
    planned: list[ChunkKey] = []
    for table in comparable:
        try:
            found = _compare(ctx, table, at, keys_max=REPAIR_KEYS_MAX + 1)
        except (TerminalError, SnapshotTooOldError) as error:
            if len(comparable) == 1:
                raise
            left_out.append(_failed(table, error))
            continue
        if found.differences.count + found.wanted.differences_beyond:
            parts = _parts_to_repair(found)
            planned += plan_parts(ctx, table, at, prefix=REPAIR, parts=parts)
        else:
            with ctx.writing(table) as lease:
                settle_quarantine(ctx, ctx.table_record(table), at, lease.check)
    return planned, left_out


@dataclass(frozen=True, slots=True)
class _Found:
    """What comparing one table found. ``rows_where`` is the table's own filter: of the other rows
    only those were compared that the mirror has."""

    schema: TableSchema
    rows_where: str | None
    oracle: Side
    delta: Side
    wanted: Suspects
    differences: Differences
    engine: ComparisonEngine


def _parts_to_repair(found: _Found) -> list[ChunkPart] | None:
    """The differing keys in lists, or None for the whole table: also where hashes are the keys, by
    which Oracle finds no row."""
    keys = found.differences.keys
    if masked_key(found.schema) or found.wanted.differences_beyond or len(keys) > REPAIR_KEYS_MAX:
        return None
    texts = [key_texts(key, found.schema) for key in keys]
    return [
        ChunkKeys(tuple(texts[at : at + REPAIR_CHUNK_KEYS]))
        for at in range(0, len(texts), REPAIR_CHUNK_KEYS)
    ]


def _failed(table: TableId, error: CdcError) -> LeftOut:
    return LeftOut(str(table), error.what_happened, error.hint)


def _compare(ctx: Context, table: TableId, at: Scn, *, keys_max: int) -> _Found:
    with ctx.database.session() as session:
        config = ctx.config.table(table)
        schema = ctx.store.schemas.at(table, at) or read_table_schema(session, config, scn=at)
        schema = ctx.visible(schema)
        lake = ctx.lake.table(table)
        comparison = lake.comparison(schema, lake.mirror_version_at(at))
        own = held_filter(ctx, ctx.table_record(table), schema)
        conditions = [own] if own is None else [own, complement(own)]
        plans = [
            (condition, part)
            for condition in conditions
            for part in ranges_of(ctx, session, schema, at, condition)
        ]
        delta = comparison.sums_of_mirror()
        oracle = added(
            comparison.sums_of_files(paths, held_only=condition != own)
            for condition, paths in _oracle_rows(ctx, session, schema, plans, at)
        )
        wanted = suspects(oracle, delta, rows_max=comparison.rows_at_once)
        differences = Differences(0, ())
        if wanted.buckets:
            rows = _oracle_rows(ctx, session, schema, plans, at)
            kept = ((condition != own, paths) for condition, paths in rows)
            differences = _look_into(comparison, kept, wanted, keys_max)
    return _Found(schema, own, oracle, delta, wanted, differences, comparison.engine)


def _look_into(
    comparison: MirrorComparison,
    rows: Iterator[tuple[bool, list[str]]],
    wanted: Suspects,
    keys_max: int,
) -> Differences:
    with tempfile.TemporaryDirectory(prefix="redolake-reconcile-") as folder:
        kept = []
        for number, (held_only, paths) in enumerate(rows):
            kept.append(f"{folder}/{number}")
            comparison.keep_keys(paths, wanted, kept[-1], held_only=held_only)
        return comparison.differing_keys(kept, wanted, keys_max=keys_max)


def _oracle_rows(
    ctx: Context,
    session: OracleSession,
    schema: TableSchema,
    plans: Sequence[tuple[str | None, ChunkRange]],
    at: Scn,
) -> Iterator[tuple[str | None, list[str]]]:
    """Files with a table's rows as of the SCN, part by part, each behind the condition that its
    rows meet; each part's files go when the next one is asked for."""
    for number, (condition, part) in enumerate(plans):
        with tempfile.TemporaryDirectory(prefix="redolake-reconcile-") as folder:
            landing = open_landing(LocalLandingConfig(path=folder))
            key = ChunkKey(schema.table, f"s{at}", number)
            read = partial(
                read_chunk,
                session,
                unread_chunk(ctx.source, schema, key, part, at, condition),
                part,
                landing,
                fetch_options(ctx, schema.table),
                masks=ctx.masks(schema.table),
            )
            manifest = read_after_ddl(session, [schema.table], read)
            yield condition, landing.local_paths(chunk_folder(ctx.source, key), manifest.files)


def _comparison(table: TableId, found: _Found, seconds: float) -> TableComparison:
    oracle, delta = total(found.oracle), total(found.delta)
    beyond = found.wanted.differences_beyond
    return TableComparison(
        table=str(table),
        rows_oracle=oracle.rows,
        rows_delta=delta.rows,
        double_keys_oracle=oracle.double_keys,
        double_keys_delta=delta.double_keys,
        differences=found.differences.count + beyond,
        is_lower_bound=bool(beyond),
        keys=tuple(",".join(map(_key_text, key)) for key in found.differences.keys),
        digest_oracle=f"{oracle.digest:x}",
        digest_delta=f"{delta.digest:x}",
        rows_where=found.rows_where,
        engine=found.engine,
        seconds=seconds,
    )


def _key_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)
