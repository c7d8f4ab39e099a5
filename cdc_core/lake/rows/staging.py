"""How does a MERGE get rows that were staged in Arrow? Few as a local relation, many as Parquet
files beside the tables.

Either can be read again and gives the same rows, so that Delta need not materialize the source of
the MERGE once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.delta.errors import at_work
from cdc_core.delta.history import filesystem_of
from cdc_core.delta.storage import storing
from cdc_core.lake.mirror.merge_audit import Audit
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import quote_name, spark_type
from cdc_core.spark.session import configure, translated

LOCAL_ROWS_MAX = 20_000
"""Up to so many rows go to Spark as they are."""

_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"


BROADCAST_BYTES_MAX = 64 * 1024 * 1024
"""Rows of up to so many bytes may be sent whole to each executor."""

_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows for a MERGE: ``frame`` is a DataFrame of them, ``sent`` has counted them, ``rows`` are
    they themselves where they are few enough to be sent to each executor."""

    frame: Any
    sent: Audit
    rows: pa.Table | None = None

    def broadcast(self) -> None:
        """Let a MERGE that need not shuffle the mirror leave it where it is. Spark guesses sizes;
        these rows are known to be few."""
        configure(self.frame.sparkSession, {_BROADCAST: str(8 * BROADCAST_BYTES_MAX)})


@contextmanager
def staged_rows(
    work: TableWork, session: Any, tables: Iterator[pa.Table], sent: Audit
) -> Iterator[StagedRows]:
    """The rows of the tables, of which there is at least one, for as long as the block lasts.

    A MERGE in the block reads them as they are. Two tables are held at most.
    """
    first = next(tables)
    second = next(tables, None)
    ddl = ddl_of(first.schema)
    configure(session, {_MATERIALIZE: "none"})
    if second is None and first.num_rows <= LOCAL_ROWS_MAX:
        with translated("handing rows to Spark", **work.facts()):
            # Where no key differs there is no row, and PySpark takes no column without a chunk.
            frame = session.createDataFrame(
                first if first.num_rows else first.schema.empty_table(), ddl
            )
        yield StagedRows(frame, sent, first)
        return
    filesystem, folder = filesystem_of(work.staging)
    _clear(filesystem, folder)
    with storing("staging rows for Spark", **work.facts()):
        filesystem.create_dir(folder, recursive=True)
    try:
        rest = [] if second is None else [second]
        for number, rows in enumerate(chain([first], rest, tables)):
            path = f"{folder}/{number:05d}.parquet"
            with storing("staging rows for Spark", **work.facts()):
                write_staged(path, filesystem, rows)
        with translated("handing rows to Spark", **work.facts()):
            frame = session.read.schema(ddl).parquet(work.staging)
        is_small = second is None and first.nbytes <= BROADCAST_BYTES_MAX
        yield StagedRows(frame, sent, first if is_small else None)
    finally:
        _clear(filesystem, folder)


def write_staged(path: str, filesystem: pafs.FileSystem, rows: pa.Table) -> None:
    """Write a file of staged rows. It is read twice and thrown away: looking for what repeats would
    not pay."""
    pq.write_table(
        rows,
        path,
        filesystem=filesystem,
        compression="lz4",
        use_dictionary=False,
        write_statistics=False,
    )


@contextmanager
def staged_by_executors(
    work: TableWork,
    session: Any,
    schema: pa.Schema,
    write: Callable[[], Sequence[str]],
    sent: Audit,
) -> Iterator[StagedRows]:
    """The same of the files that ``write`` lets executors stage, whose paths it returns. Others may
    be there: of tasks that ran twice."""
    filesystem, folder = filesystem_of(work.staging)
    _clear(filesystem, folder)
    configure(session, {_MATERIALIZE: "none"})
    try:
        paths = write()
        with translated("handing rows to Spark", **work.facts()):
            frame = session.read.schema(ddl_of(schema)).parquet(*paths)
        yield StagedRows(frame, sent)
    finally:
        _clear(filesystem, folder)


def ddl_of(schema: pa.Schema) -> str:
    """Columns as Spark SQL names and types them."""
    return ", ".join(f"{quote_name(field.name)} {spark_type(field.type)}" for field in schema)


def _clear(filesystem: pafs.FileSystem, folder: str) -> None:
    """Remove what this work, or one that ended by a crash, staged for the table: its lease says
    that nobody else does."""
    with storing("removing staged rows", path=folder):
        if filesystem.get_file_info(folder).type == pafs.FileType.Directory:
            filesystem.delete_dir(folder)


FOUND_ROWS = 50_000
"""So many rows of what a query found are held at once."""


@dataclass(frozen=True, slots=True)
class FoundRows:
    """What a query of Spark found, in files beside the tables, so that nobody holds it whole;
    ``rows`` is how many."""

    filesystem: pafs.FileSystem
    paths: Sequence[str]
    rows: int
    facts: dict[str, object]

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, or some of their columns.

        Raises:
            StoreUnavailableError, LakeError: A file cannot be read.
        """
        with at_work("reading what Spark found", self.facts):
            for path in self.paths:
                with _opened(path, self.filesystem) as file:
                    yield from file.iter_batches(FOUND_ROWS, columns=columns)


@contextmanager
def found_rows(
    work: TableWork, session: Any, sql: str, *, doing: str, part: str = "found"
) -> Iterator[FoundRows]:
    """What a query finds, for as long as the block lasts. ``part`` tells results apart that are
    needed at once."""
    folder_url = f"{work.staging}/{part}"
    filesystem, folder = filesystem_of(folder_url)
    facts = work.facts()
    try:
        with translated(doing, **facts):
            session.sql(sql).write.mode("overwrite").parquet(folder_url)
        with at_work(doing, facts):
            files = filesystem.get_file_info(pafs.FileSelector(folder))
            paths = [one.path for one in files if one.path.endswith(".parquet")]
            rows = 0
            for path in paths:
                with _opened(path, filesystem) as file:
                    rows += file.metadata.num_rows
        yield FoundRows(filesystem, paths, rows, facts)
    finally:
        _clear(filesystem, folder)


def _opened(path: str, filesystem: pafs.FileSystem) -> pq.ParquetFile:
    """Spark's older form of points in time has more digits than Arrow's years."""
    return pq.ParquetFile(path, filesystem=filesystem, coerce_int96_timestamp_unit="us")
