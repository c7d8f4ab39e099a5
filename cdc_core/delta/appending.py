"""How do rows get into a Delta table without Spark? A Parquet file in its folder, then one commit
that names it.

The table is read first, then the fence is asked, then the version that follows is put, only if it
is not there yet, and never behind another writer's commit: whoever committed since the table was
read wins, and the step is repeated. So a process that was stopped at any place and lost its lease
meanwhile adds nothing. A crash before the commit leaves a file that nothing names, and VACUUM
removes it.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version as installed_version
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.delta.column_chunks import DICTIONARY_BYTES_MAX
from cdc_core.delta.commits import (
    in_commit_time,
    is_checkpoint_due,
    put_commit,
    takes_vectors,
    why_refused,
)
from cdc_core.delta.deletion_vectors import Vector, VectorFile
from cdc_core.delta.errors import at_work, committing, conflict
from cdc_core.delta.file_statistics import statistics_of
from cdc_core.delta.history import DeltaLog, file_names_of, filesystem_of, read_log
from cdc_core.delta.row_tracking import ROW_TRACKING_FEATURE, with_row_ids
from cdc_core.delta.storage import storing
from cdc_core.errors import (
    FEATURE_HINT,
    REPORT_HINT,
    CdcError,
    LakeError,
    StoreUnavailableError,
)

_LOG = logging.getLogger(__name__)

ROW_GROUP_ROWS = 50_000
"""A row group has so many rows, or up to twice as many: those that are at hand make even ones."""
_CONSTRAINTS = "delta.constraints."


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file in a Delta table's folder that no commit names yet. ``statistics`` are
    Delta's, as JSON; ``is_mapped`` says whether its columns have the names that column mapping gave
    them."""

    name: str
    rows: int
    bytes: int
    statistics: str
    is_mapped: bool = False

    def as_action(self, now: int, *, changes_data: bool = True) -> dict[str, Any]:
        """Delta's action that adds it, at so many milliseconds."""
        return {
            "path": self.name,
            "partitionValues": {},
            "size": self.bytes,
            "modificationTime": now,
            "dataChange": changes_data,
            "stats": self.statistics,
        }


@dataclass(frozen=True, slots=True)
class OldFile:
    """A file that a Delta table has, with the deletion vector that it has."""

    name: str
    bytes: int
    vector: Vector | None = None

    def as_action(self, now: int, *, changes_data: bool = True) -> dict[str, Any]:
        """Delta's action that removes it, at so many milliseconds."""
        return {
            "path": self.name,
            "deletionTimestamp": now,
            "dataChange": changes_data,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": self.bytes,
            **_as_field(self.vector),
        }


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file that a Delta table has, of which more rows are deleted. ``statistics`` are those that
    it has, as JSON."""

    old: OldFile
    statistics: str
    vector: Vector

    def as_actions(self, now: int) -> list[dict[str, Any]]:
        """Delta's actions that take it away and bring it with its new vector, at so many
        milliseconds.

        Its bounds stay true, and are those of some row no more.
        """
        added = {
            "path": self.old.name,
            "partitionValues": {},
            "size": self.old.bytes,
            "modificationTime": now,
            "dataChange": True,
            "stats": json.dumps({**json.loads(self.statistics), "tightBounds": False}),
            **_as_field(self.vector),
        }
        return [{"remove": self.old.as_action(now)}, {"add": added}]


def _as_field(vector: Vector | None) -> dict[str, Any]:
    return {} if vector is None else {"deletionVector": vector.as_action()}


def new_file_name() -> str:
    """A name that no file of a Delta table has."""
    return f"part-{uuid.uuid4()}.zstd.parquet"


def write_file(
    table: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], indexed: Sequence[str]
) -> NewFile | None:
    """Write rows into a new file in the folder of a Delta table, under the names that its files
    have; None if there are none.

    Args:
        table: The table's folder.
        schema: The columns of the batches and of the file.
        batches: The rows.
        indexed: Columns of which the commit shall have statistics.

    Raises:
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
    """
    filesystem, root = filesystem_of(table)
    name = new_file_name()
    names = file_names_of(table)
    own = names.in_files(schema)
    found: list[pq.FileMetaData] = []
    path = f"{root}/{name}"
    writer: pq.ParquetWriter | None = None
    writing: Future[None] | None = None
    # Rows are encoded outside of Python's lock: the next ones are made meanwhile.
    with ThreadPoolExecutor(1, thread_name_prefix="write") as pool:
        try:
            for rows in _in_groups(own, map(names.to_files, batches)):
                with storing("writing a file of a Delta table", path=table):
                    writer = writer or pq.ParquetWriter(
                        path,
                        own,
                        filesystem=filesystem,
                        compression="zstd",
                        dictionary_pagesize_limit=DICTIONARY_BYTES_MAX,
                        metadata_collector=found,
                    )
                    if writing is not None:
                        writing.result()
                size = -(-rows.num_rows // max(1, rows.num_rows // ROW_GROUP_ROWS))
                writing = pool.submit(writer.write_table, rows, row_group_size=size)
            if writer is None or writing is None:
                return None
            with storing("writing a file of a Delta table", path=table):
                writing.result()
                writer.close()
                make_durable(filesystem, path)
        except BaseException:
            if writing is not None:
                wait([writing])
            if writer is not None:
                with suppress(OSError, RuntimeError):  # of what was not written nothing is known
                    writer.close()
                filesystem.delete_file(path)
            raise
    size = filesystem.get_file_info(path).size
    statistics = statistics_of(found[0], own, names.called(indexed))
    return NewFile(name, found[0].num_rows, size, statistics, names.are_mapped)


def remove_file(table: str, file: NewFile) -> None:
    """Remove a file that no commit names and none will name."""
    filesystem, root = filesystem_of(table)
    with storing("removing a file of a Delta table", path=table):
        filesystem.delete_file(f"{root}/{file.name}")


def _in_groups(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.Table]:
    """The rows in tables of about one row group."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= ROW_GROUP_ROWS:
            yield pa.Table.from_batches(held, schema)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held, schema)


def make_durable(filesystem: pafs.FileSystem, path: str) -> None:
    """What a commit names must be on the disk before it."""
    if isinstance(filesystem, pafs.LocalFileSystem):
        with open(path, "rb") as file:  # noqa: PTH123
            os.fsync(file.fileno())


def create_table(
    table: str,
    schema: pa.Schema,
    properties: Mapping[str, str],
    *,
    doing: str,
    facts: dict[str, object],
) -> None:
    """Create a Delta table without rows, unless it is there; the metadata of the schema's fields
    become those of the columns.

    Raises:
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
        LakeError: delta-rs refused.
    """
    from deltalake import DeltaTable

    with at_work(doing, facts):
        DeltaTable.create(
            table,
            schema,
            mode="ignore",
            configuration=dict(properties),
            raise_if_key_not_exists=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """What a commit carries beside files.

    Attributes:
        doing: What the commit is called in errors.
        metadata: Its user metadata, a JSON object.
        txn: Its transaction identifier: application and version; None where repeating it does no
            harm.
        facts: What errors say of the table.
    """

    doing: str
    metadata: str
    txn: tuple[str, int] | None = None
    facts: dict[str, object] = field(default_factory=dict)

    def saying(self, **more: object) -> CommitInfo:
        """The same with more in its user metadata."""
        return replace(
            self, metadata=json.dumps({**json.loads(self.metadata), **more}, sort_keys=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """What a commit does to a Delta table's files: some are ``added``, others ``replaced`` by them,
    of the ``marked`` ones rows are deleted, as the file ``vectors`` says. Without any, the commit
    says that nothing changed. ``changes_data`` is False where the same rows are in other files
    behind it."""

    added: Sequence[NewFile] = ()
    replaced: Sequence[OldFile] = ()
    marked: Sequence[MarkedFile] = ()
    vectors: VectorFile | None = None
    changes_data: bool = True


def commit_files(
    table: str,
    files: FileChanges,
    info: CommitInfo,
    *,
    fence: Callable[[], None],
    version: int | None = None,
) -> None:
    """Change the files of a Delta table in one commit; with ``version``, right behind that version
    or not at all.

    Args:
        table: The table's folder.
        files: What becomes of its files.
        info: What the commit carries.
        fence: Called right before the commit.
        version: The version that was read; None where any is right.

    Raises:
        CommitConflictError: Another writer committed since the table was read, or has done so under
            this identifier.
        StoreUnavailableError: The disk is full or fails, the bucket cannot be reached, or VACUUM
            has removed a file meanwhile.
        LakeError: The table has a feature that Redolake does not write, or constraints.
    """
    doing, facts = info.doing, info.facts
    filesystem, root = filesystem_of(table)
    with at_work(doing, facts):
        log = read_log(table)
        if log is None:
            raise FileNotFoundError(table)
        _refuse_constraints(log, info)
        is_other = version is not None and log.version != version
        has_vectors = bool(files.marked) or any(file.vector for file in files.replaced)
        is_other |= has_vectors and not takes_vectors(log)
        if is_other or _is_taken(log, info.txn):
            raise conflict(doing, facts)
        names = [file.name for file in files.replaced] + [file.old.name for file in files.marked]
        if refused := why_refused(filesystem, log, names):
            raise LakeError(
                f"{doing}: the Delta table has a feature that Redolake cannot work with",
                hint=FEATURE_HINT,
                **facts,
                features=refused,
            )
        _check_names(files.added, doing, facts, are_mapped=log.is_mapped)
        written = (*files.added, *([files.vectors] if files.vectors else ()))
        fence()
        _require_files(table, {file.name: file.bytes for file in written}, facts)
        parameters = {"mode": "Append", "partitionBy": "[]"}
        actions = [info_action(filesystem, root, log, info, "WRITE", parameters)]
        try:
            put_commit(filesystem, root, log.version + 1, [*actions, *_actions(log, files, info)])
        except FileExistsError as error:
            raise conflict(doing, facts) from error
    if is_checkpoint_due(log, log.version + 1):
        _checkpointed(table)


def overwrite_files(
    table: str,
    schema: pa.Schema,
    added: Sequence[NewFile],
    info: CommitInfo,
    *,
    fence: Callable[[], None],
) -> None:
    """Replace all files of a Delta table, and its columns, in one commit of delta-rs. The metadata
    of the schema's fields become those of the columns. Errors as for :func:`commit_files`."""
    from deltalake import CommitProperties, DeltaTable, Transaction
    from deltalake.transaction import AddAction

    now = _milliseconds()
    with committing(table, info.doing, info.facts):
        _refuse_constraints(read_log(table), info)
        found = DeltaTable(table)
        fence()
        _require_files(table, {file.name: file.bytes for file in added}, info.facts)
        found.create_write_transaction(
            [AddAction(one.name, one.bytes, {}, now, True, one.statistics) for one in added],
            "overwrite",
            schema,
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": info.metadata},
                max_commit_retries=0,
                app_transactions=[Transaction(*info.txn)] if info.txn else None,
            ),
        )


def _refuse_constraints(log: DeltaLog | None, info: CommitInfo) -> None:
    """Delta asks of each writer to check a table's constraints. Spark alone does: measured with
    deltalake 1.6, a commit of files goes through unchecked."""
    found = log.properties if log else ()
    names = [name.removeprefix(_CONSTRAINTS) for name in found if name.startswith(_CONSTRAINTS)]
    if names:
        dropped = ", ".join(f"`ALTER TABLE … DROP CONSTRAINT {name}`" for name in sorted(names))
        raise LakeError(
            f"{info.doing}: another writer gave the Delta table constraints, which Redolake cannot "
            "check",
            hint=f"Run in Spark {dropped}.",
            **info.facts,
            constraints=", ".join(sorted(names)),
        )


def _is_taken(log: DeltaLog, txn: tuple[str, int] | None) -> bool:
    """Has the table a commit with this transaction identifier, or a later one of its
    application?"""
    done = None if txn is None else log.transactions.get(txn[0])
    return txn is not None and done is not None and done >= txn[1]


def _actions(log: DeltaLog, files: FileChanges, info: CommitInfo) -> list[dict[str, Any]]:
    """What a commit says of files, and its transaction identifier."""
    now, changes = _milliseconds(), files.changes_data
    added = [file.as_action(now, changes_data=changes) for file in files.added]
    actions = [{"add": one} for one in added]
    if added and ROW_TRACKING_FEATURE in log.writer_features:
        rows = [file.rows for file in files.added]
        actions = with_row_ids(added, rows, log.row_id_high, log.version + 1)
    actions += ({"remove": one.as_action(now, changes_data=changes)} for one in files.replaced)
    actions += (action for file in files.marked for action in file.as_actions(now))
    if info.txn is not None:
        actions.append({"txn": {"appId": info.txn[0], "version": info.txn[1]}})
    return actions


def info_action(
    filesystem: pafs.FileSystem,
    root: str,
    log: DeltaLog,
    info: CommitInfo,
    operation: str,
    parameters: Mapping[str, str],
) -> dict[str, Any]:
    """The ``commitInfo`` of the commit behind a version that was read."""
    now = _milliseconds()
    time_said = in_commit_time(filesystem, root, log, now)
    said = {
        **({} if time_said is None else {"inCommitTimestamp": time_said}),
        "timestamp": now,
        "operation": operation,
        "operationParameters": parameters,
        "engineInfo": _engine(),
        "userMetadata": info.metadata,
    }
    return {"commitInfo": said}


def _checkpointed(table: str) -> None:
    """Write a checkpoint behind a commit, which counts without it: only the next readers of the log
    take longer."""
    from deltalake import DeltaTable

    try:
        with at_work("writing a checkpoint of a Delta table", {"path": table}):
            DeltaTable(table).create_checkpoint()
    except CdcError as error:
        _LOG.warning("%s; the commit before it counts: %s", error.message, error.facts)


def _milliseconds() -> int:
    return int(time.time() * 1000)


@cache
def _engine() -> str:
    return f"Redolake/{installed_version('redolake')}"


def _check_names(
    files: Sequence[NewFile], doing: str, facts: dict[str, object], *, are_mapped: bool
) -> None:
    """Files are written before their commit, and column mapping may have come in between."""
    if any(file.is_mapped != are_mapped for file in files):
        raise LakeError(
            f"{doing}: the Delta table has other names in its files than those that were written, so these rows would read as NULL",
            hint=REPORT_HINT,
            **facts,
        )


def _require_files(table: str, sizes: Mapping[str, int], facts: dict[str, object]) -> None:
    """No commit may name a file that is not there: VACUUM without a retention removes what no
    commit names yet.

    Raises:
        StoreUnavailableError: A file is gone, or has another size; the step writes another one.
    """
    filesystem, root = filesystem_of(table)
    found = filesystem.get_file_info([f"{root}/{name}" for name in sizes])
    for (name, size), info in zip(sizes.items(), found, strict=True):
        if info.size != size:
            raise StoreUnavailableError(
                "a file that was just written is missing, or was replaced",
                hint="Try again, and run VACUUM with a retention of at least an hour: it removes files that no commit names yet.",
                **facts,
                file=name,
            )
