"""Which errors are about one table, and how does it stop by itself?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from cdc_core.errors import (
    ANY_TABLE,
    MEMORY_HINT,
    TRACEBACKS,
    CdcError,
    ConfigError,
    DecodeError,
    DuplicateKeyError,
    LakeError,
    OracleError,
    PreflightError,
    RowCountError,
    RowsGoneError,
    SchemaMismatchError,
    SnapshotBrokenError,
    SnapshotTooOldError,
    SparkMemoryError,
    SparkUnavailableError,
    StoreUnavailableError,
    TableStoppedError,
    UnsupportedTypeError,
)
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd, Trouble
from cdc_core.steps.context import Context

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
_TRACEBACKS = logging.getLogger(TRACEBACKS)

TABLE_ERRORS = (
    DecodeError,
    DuplicateKeyError,
    SchemaMismatchError,
    UnsupportedTypeError,
    LakeError,
    RowCountError,
)
"""What one table's rows, definition or Delta tables may raise. Everything else (the database,
landing, the metadata store or Spark out of reach, redo gone, a lost lease) is about the source, and
stops all tables."""

READING_ERRORS = (*TABLE_ERRORS, ConfigError, PreflightError, OracleError, SnapshotTooOldError)
"""What reading one table's definition or rows may raise on top of that."""


_TROUBLES: tuple[tuple[type[CdcError], Trouble], ...] = (
    (DecodeError, "undecodable"),
    (RowsGoneError, "truncate"),
    (SchemaMismatchError, "unsupported_ddl"),
    (SnapshotBrokenError, "snapshot_too_old"),
)
"""Which errors a policy is about; the first that fits counts."""


def stop_table(
    ctx: Context,
    table: TableId,
    error: CdcError,
    *,
    scn: int,
    failed_as: TableRecord | None = None,
) -> StreamEnd | None:
    """Let a table fail in the lake, at the SCN that its mirror shows, while its redo goes on being
    captured. None where another process has brought the table on since it stood as ``failed_as``:
    the error is then about what was.

    Raises:
        StoreUnavailableError: The lake has none of the source's tables: it is about no table.
    """
    _refuse_lost_lake(ctx, error)
    way_out = way_back(table, error)
    trouble = next((one for kind, one in _TROUBLES if isinstance(error, kind)), None)
    end = StreamEnd(table, scn, error.what_happened, way_out, trouble)
    is_stopped = ctx.store.tables.fail(end, failed_as=failed_as)
    if failed_as is not None and not is_stopped:
        _LOG.warning("another process brought the table on table=%s error=%s", table, error.message)
        return None
    _LOG.warning("table stopped table=%s scn=%d reason=%s", table, scn, error.message)
    _TRACEBACKS.debug("table stopped table=%s", table, exc_info=error)
    return end


def _refuse_lost_lake(ctx: Context, error: CdcError) -> None:
    """A disk that is not mounted has an empty folder in its place: each table would fail in
    turn."""
    if not isinstance(error, LakeError):
        return
    begun = [one for one in ctx.store.tables.all() if one.is_captured and one.mirror_scn]
    if len(begun) > 1 and all(_has_no_folders(ctx, one) for one in begun):
        raise StoreUnavailableError(
            "the lake has none of the source's Delta tables",
            hint="Mount the disk or share of lake.path; windows then continue. If somebody removed the "
            f"tables, `redolake table rebuild --from-landing {ANY_TABLE}` writes each.",
            path=ctx.config.lake.path,
        ) from error


def _has_no_folders(ctx: Context, record: TableRecord) -> bool:
    try:
        return all(names is None for names in ctx.table_lake(record).missing_files().values())
    except LakeError:  # a damaged log is one
        return False


def again_alone(
    done: Mapping[TableId, TableApplied | CdcError],
    work: Callable[[TableId], TableApplied | CdcError],
) -> dict[TableId, TableApplied | CdcError]:
    """Where Spark ran out of memory, do the work of each table that it took along once more, one
    after the other; what a table needs by itself and does not get is about that table.

    Raises:
        SparkUnavailableError: Spark ended for another reason.
    """
    ended = {one: error for one, error in done.items() if isinstance(error, SparkUnavailableError)}
    if ended and not any(isinstance(error, SparkMemoryError) for error in ended.values()):
        raise next(iter(ended.values()))
    again = {table: work(table) for table in ended}
    for table, error in again.items():
        if isinstance(error, SparkMemoryError):
            again[table] = out_of_memory_alone(error)
        elif isinstance(error, SparkUnavailableError):
            raise error
    return again


def stop_failed(
    ctx: Context,
    done: Mapping[TableId, TableApplied | CdcError],
    scn: Scn,
    before: Mapping[TableId, TableRecord],
) -> tuple[StreamEnd, ...]:
    """Stop the tables that an error was about, at ``scn``, as long as they stand as they did
    ``before``. What stops all of several tables is not about one of them, and is raised."""
    failed = {table: error for table, error in done.items() if isinstance(error, CdcError)}
    for error in failed.values():
        _refuse_lost_lake(ctx, error)
    if (
        len(failed) > 1
        and len(failed) == len(done)
        and all(isinstance(error, LakeError) for error in failed.values())
    ):
        raise next(iter(failed.values()))
    ends = [
        stop_table(ctx, table, error, scn=scn, failed_as=before[table])
        for table, error in failed.items()
    ]
    return tuple(end for end in ends if end is not None)


def way_back(table: TableId, error: CdcError) -> str:
    """How the table comes back: by the command that the hint names, or by what the hint asks for
    first and a command then."""
    hint = error.hint.replace(ANY_TABLE, table.argument)
    if any(f"table {command} " in hint for command in ("resume", "resnapshot")):
        return hint
    return (
        f"{hint} Then `redolake table resume {table.argument}` continues where the table stopped. If it stops again, "
        f"`redolake table resnapshot {table.argument}` reads its rows again."
    )


@contextmanager
def stop_alone(
    ctx: Context, table: TableId, *, joining: TableRecord | None = None
) -> Iterator[None]:
    """Stop a table whose block meets an error that is about it alone, so that the others go on.

    Args:
        ctx: The source.
        table: Whose definition or rows the block reads.
        joining: Its record while it joins. One that has no stream yet is kept from joining. That it
            stopped is reported then, and the caller goes on with the next table.

    Raises:
        TableStoppedError: It stopped at one of its chunks; the caller leaves the table's other
            ones.
    """
    try:
        yield
    except READING_ERRORS as error:
        if joining is None:
            record = ctx.table_record(table)
            end = stop_table(ctx, table, error, scn=record.mirror_scn or record.snapshot_scn or 0)
            assert end is not None
            raise TableStoppedError(end.reason, hint=end.way_out, table=table) from error
        if joining.is_captured:
            end = stop_table(ctx, table, error, scn=joining.snapshot_scn or 0)
            assert end is not None
        else:
            end = _refuse_joining(ctx, joining, error)
        ctx.tell("table-stopped", table, stopped=(end,))


def _refuse_joining(ctx: Context, record: TableRecord, error: CdcError) -> StreamEnd:
    """A table that cannot join has no stream that it could go on with."""
    hint = error.hint.replace(ANY_TABLE, record.table.argument)
    way_out = f"{hint} Then `redolake table add {record.table.argument}` adds the table."
    end = StreamEnd(record.table, record.stopped_scn or 0, error.what_happened, way_out)
    ctx.store.tables.refuse(record, end)
    _LOG.warning("table cannot join table=%s reason=%s", record.table, error.message)
    _TRACEBACKS.debug("table cannot join table=%s", record.table, exc_info=error)
    return end


def out_of_memory_alone(error: SparkMemoryError) -> LakeError:
    """The error of a table for whose work alone Spark has not enough memory; this one stops it."""
    return LakeError(f"{error.message}, for this table alone", hint=MEMORY_HINT, **error.facts)


def retried_out_of_memory(work: Callable[[], T]) -> T:
    """Do a table's work once more where Spark ran out of memory: other work at the same time may
    have taken it.

    Raises:
        LakeError: It ran out of memory again.
    """
    try:
        return work()
    except SparkMemoryError as error:
        _LOG.warning("Spark ran out of memory, and starts again: %s", error.message)
    try:
        return work()
    except SparkMemoryError as error:
        raise out_of_memory_alone(error) from error
