"""How does a table's history, one row per state, follow its change log?

The change log is the truth, and what its history says is derived from it by
:mod:`cdc_core.stage.states`. The history's position is the version of the change log's Delta table
that it was derived from, kept under a transaction identifier of its own. So windows, late commits
and chunks are all the same: the keys that newer commits of the change log touch have their states
derived from the whole change log, and those that differ are exchanged in one commit. Doing it twice
changes nothing, and a crash leaves the history at its old position.

After a TRUNCATE, another definition of the table, or a commit that rewrote the change log, all
states are derived and the table is overwritten, in one commit too.

No Spark is needed. The states of a part of the keys are held at a time. Where newer commits have
more changes than are held, all states are derived.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.config import LakeConfig
from cdc_core.delta.appending import (
    CommitInfo,
    FileChanges,
    NewFile,
    OldFile,
    commit_files,
    create_table,
    remove_file,
    write_file,
)
from cdc_core.delta.errors import at_work, committing
from cdc_core.delta.history import (
    DeltaLog,
    commits_after,
    filesystem_of,
    move_aside,
    newest_metadata,
    read_log,
)
from cdc_core.errors import REPORT_HINT, LakeError, SchemaMismatchError
from cdc_core.lake.changes import files_of, logged_changes, queried
from cdc_core.lake.evolution import in_mirror, known_schema
from cdc_core.lake.quarantine import QuarantineTable
from cdc_core.lake.table_context import Fence, TableWork, no_fence
from cdc_core.lake.tables import (
    GENERATION_PROPERTY,
    KEY_PROPERTY,
    key_text,
    mirror_columns,
    spark_type,
)
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import TableHistory
from cdc_core.schema.names import need_mapping
from cdc_core.schema.table import TableSchema
from cdc_core.stage.carrying import NOTHING_CARRIED, carry_columns
from cdc_core.stage.changes import (
    Flags,
    LightChanges,
    LoggedChanges,
    OwnRows,
    below,
    key_codes,
    since,
)
from cdc_core.stage.differing import touching
from cdc_core.stage.layout import COMMIT_SCN
from cdc_core.stage.states import FROM_SCN, TO_SCN, Truncated, states_of, states_schema

_LOG = logging.getLogger(__name__)
_BRINGS_CHANGES = frozenset({"window", "chunk", "gone", "partitions"})
_DOING = "writing a history table"
_READING = "reading a history table"
_BATCH_ROWS = 16_384
_PORTION_BYTES = 64 * 1024 * 1024
"""A new file gets so many bytes as Arrow holds them."""


class HistoryTable:
    """The history of one captured table. ``generation`` is that of its change log; ``fence`` is
    called right before each commit."""

    def __init__(
        self,
        config: LakeConfig,
        source: str,
        table: TableId,
        generation: int = 0,
        fence: Fence = no_fence,
    ) -> None:
        root = config.path if "://" in config.path else str(Path(config.path).absolute())
        self._work = TableWork(
            root=root,
            source=source,
            table=table,
            generation=generation,
            fence=fence,
            open_session=self._no_session,
            paths=config.paths,
        )
        self.path = config.paths.path("history", root, source, table)

    def scn(self) -> int | None:
        """As of which SCN the history is; None where there is none."""
        found: int | None = (
            None if read_log(self.path) is None else newest_metadata(self.path, "scn_high")
        )
        return found

    def follow(self, *, anew: bool = False) -> TableHistory | None:
        """Take what the change log has got since; with ``anew`` derive all states again. None where
        nothing was to be done.

        Raises:
            SchemaMismatchError: Rows of the table have no key of their own, or a column has a name
                that a plain Delta table does not hold.
            DecodeError: It cannot be said which row a key had.
            CommitConflictError: Another writer committed.
            LakeError: Delta refused, or a file is gone.
        """
        started, work = time.monotonic(), self._work
        log = read_log(work.changelog)
        known = known_schema(log)
        if log is None or known is None:
            return None
        if work.known_generation(log, work.changelog) < work.generation:
            return None  # the next chunk begins a new change log
        schema = in_mirror(work, known)
        self._refuse(schema)
        there = self._of_generation()
        position = None if there is None else there.transactions.get(self._app)
        is_as_before = there is not None and newest_metadata(self.path, "columns") == _layout(
            schema
        )
        if position == log.version and is_as_before and not anew:
            return None
        files = None
        # A change log that was put back to an older version has fewer commits than were taken.
        is_behind = position is not None and position <= log.version
        if position is not None and is_behind and is_as_before and not anew:
            files = self._touched_files(position, log.version)
        if files == []:
            return None
        touched = None if files is None else self._touched(schema, files)
        if touched is not None and self._leads_further(schema, touched):
            touched = None
        info = self._info(schema, log.version)
        if touched is None or there is None:
            added, removed = self._write_anew(schema, info, there)
        else:
            added, removed = self._exchange(schema, touched, info, there)
        _LOG.info(
            "history table=%s added=%d removed=%d version=%d",
            work.table,
            added,
            removed,
            log.version,
        )
        return TableHistory(
            table=work.table,
            added=added,
            removed=removed,
            is_whole=touched is None,
            seconds=time.monotonic() - started,
        )

    def maintain(self, vacuum_hours: int | None) -> None:
        """Put small files together, and remove files that no version of so many hours has (None:
        keep them). No row changes."""
        log = read_log(self.path)
        if log is None or self._app not in log.transactions:
            return
        from deltalake import CommitProperties, DeltaTable

        metadata = self._work.metadata(
            "maintenance", self.scn() or 0, columns=newest_metadata(self.path, "columns")
        )
        properties = CommitProperties(
            custom_metadata={"userMetadata": metadata}, max_commit_retries=0
        )
        self._work.fence()
        with committing(self.path, _DOING, self._facts):
            DeltaTable(self.path).optimize.compact(commit_properties=properties)
            if vacuum_hours is not None:
                DeltaTable(self.path).vacuum(
                    vacuum_hours, dry_run=False, enforce_retention_duration=False
                )

    @property
    def _app(self) -> str:
        return f"{self._work.window_app}/history"

    @property
    def _facts(self) -> dict[str, object]:
        return self._work.facts(path=self.path)

    def _no_session(self) -> Any:
        raise LakeError("a history table is kept without Spark", hint=REPORT_HINT, **self._facts)

    def _refuse(self, schema: TableSchema) -> None:
        if schema.is_by_all_columns:
            raise SchemaMismatchError(
                "rows that the values of all their columns identify have no states",
                hint="Set history: none for the table, or give it a key.",
                table=schema.table,
            )
        if need_mapping(schema.column_names):
            raise SchemaMismatchError(
                "columns have names that a history table cannot hold",
                hint="Set history: none for the table, or name them under columns_exclude.",
                table=schema.table,
            )

    def _of_generation(self) -> DeltaLog | None:
        """The history's log; one of an older generation is moved aside."""
        log, work = read_log(self.path), self._work
        if log is None:
            return None
        found = work.known_generation(log, self.path)
        if found == work.generation:
            return log
        work.fence()
        move_aside(self.path, f".g{found}")
        return None

    def _info(self, schema: TableSchema, version: int) -> CommitInfo:
        done = self._work.position()
        scn = max(done.changelog_scn or 0, done.mirror_scn or 0)
        metadata = self._work.metadata(
            "history", scn, changelog_version=version, columns=_layout(schema)
        )
        return CommitInfo(
            doing=_DOING, metadata=metadata, txn=(self._app, version), facts=self._facts
        )

    def _touched_files(self, position: int, version: int) -> list[str] | None:
        """The change log's files with changes behind a position; None where that is no question of
        some keys."""
        found: list[str] = []
        try:
            for commit, files in commits_after(self._work.changelog, position, up_to=version):
                if files and commit.metadata.get("kind") not in _BRINGS_CHANGES:
                    return None
                found += files
        except LakeError as error:
            _LOG.info("all states are derived: %s", error.what_happened)
            return None
        return found if set(found) <= set(files_of(self._work)) else None

    def _touched(self, schema: TableSchema, files: Sequence[str]) -> LightChanges | None:
        """The changes in some files; None where they are too many to hold the states of their
        keys."""
        with logged_changes(self._work.changelog, schema, _with_images, files) as changes:
            return changes.light() if changes.parts == 1 else None

    def _leads_further(self, schema: TableSchema, touched: LightChanges) -> bool:
        """May late changes lead to keys that they do not touch? A later change of key may have
        carried along what one of them says."""
        scn = pc.min(touched.table[COMMIT_SCN]).as_py()
        if scn is None or scn > (self.scn() or 0):
            return False
        everything = files_of(self._work)
        with logged_changes(self._work.changelog, schema, _with_images, everything) as changes:
            return changes.facts().moved_absent

    def _write_anew(
        self, schema: TableSchema, info: CommitInfo, there: DeltaLog | None
    ) -> tuple[int, int]:
        """Overwrite the table with all states, and its columns; how many there are now, and were
        before."""
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

        work, columns = self._work, _columns(schema)
        if there is None:
            work.fence()
            create_table(
                self.path, columns, self._properties(schema), doing=_DOING, facts=self._facts
            )
        count, found = 0, self._states(schema, None)

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for states in found:
                count += states.num_rows
                yield from states.cast(columns).to_batches()

        with committing(self.path, _DOING, self._facts):
            table = DeltaTable(self.path)
            before = sum(pa.table(table.get_add_actions())["num_records"].to_pylist())
            properties = CommitProperties(
                custom_metadata={"userMetadata": info.metadata},
                max_commit_retries=0,
                app_transactions=[Transaction(self._app, info.txn[1])] if info.txn else None,
            )
            work.fence()
            write_deltalake(
                table,
                pa.RecordBatchReader.from_batches(columns, batches()),
                mode="overwrite",
                schema_mode="overwrite",
                commit_properties=properties,
            )
        return count, before

    def _properties(self, schema: TableSchema) -> dict[str, str]:
        return {
            "delta.enableDeletionVectors": "false",
            "redolake.source": self._work.source,
            "redolake.table": str(schema.table),
            "redolake.role": "history",
            GENERATION_PROPERTY: str(self._work.generation),
            KEY_PROPERTY: key_text(schema),
        }

    def _states(self, schema: TableSchema, touched: LightChanges | None) -> Iterator[pa.Table]:
        """All states, or those of the keys that some changes touch."""
        work = self._work
        # delta-rs is asked now: it may be delta-rs that takes the states.
        everything, eras = files_of(work), list(self._eras())
        has_gaps = QuarantineTable(work).exists

        def states() -> Iterator[pa.Table]:
            for own, until in eras if everything else ():
                with logged_changes(work.changelog, schema, own, everything) as changes:
                    yield from _states_in(changes, schema, touched, until, has_gaps=has_gaps)

        return states()

    def _eras(self) -> Iterator[tuple[OwnRows, Truncated | None]]:
        """Which changes stand between two TRUNCATEs, and which one ended them."""
        sql = (
            f"SELECT {COMMIT_SCN} AS scn, _cdc_commit_timestamp AS at FROM changelog "
            f"WHERE _cdc_op = 't' ORDER BY {COMMIT_SCN}"
        )
        own: OwnRows = _with_images
        for one in queried(self._work, "changelog", sql).to_pylist():
            yield below(one["scn"], own), Truncated(one["scn"], one["at"])
            own = since(one["scn"], _with_images)
        yield own, None

    def _exchange(
        self, schema: TableSchema, touched: LightChanges, info: CommitInfo, there: DeltaLog
    ) -> tuple[int, int]:
        """Exchange the states of the keys that some changes touch, where they differ; how many
        came, and how many went."""
        columns = states_schema(schema)
        states = pa.concat_tables([columns.empty_table(), *self._states(schema, touched)])
        keys = _keys_of(touched, schema)
        old = self._files_near(keys)
        with at_work(_READING, self._facts):
            rows, numbers = self._rows_of(old, keys, columns)
        is_new, is_old = _apart(states, rows)
        gone = numbers.filter(pa.array(is_old))
        replaced = set(gone["file"].to_pylist())
        added = states.filter(pa.array(is_new))
        count = added.num_rows
        for at, one in enumerate(old):  # few files stay: small ones are put together
            if at not in replaced and one["num_records"] <= count:
                replaced.add(at)
                count += one["num_records"]
        with at_work(_READING, self._facts):
            new = self._written(schema, added, [old[at] for at in sorted(replaced)], gone, old)
        changes_ = FileChanges(
            schema=columns,
            added=new,
            replaced=[OldFile(old[at]["path"], old[at]["size_bytes"]) for at in sorted(replaced)],
        )
        commit_files(self.path, changes_, info, fence=self._work.fence, version=there.version)
        return added.num_rows, gone.num_rows

    def _files_near(self, keys: pa.Table) -> list[dict[str, Any]]:
        """The history's files that may have states of these keys, by the bounds of whole
        numbers."""
        from deltalake import DeltaTable

        with at_work(_READING, self._facts):
            found = pa.table(DeltaTable(self.path).get_add_actions(flatten=True))
        for name in keys.column_names:
            low, high = f"min.{name}", f"max.{name}"
            ends = pc.min_max(keys[name]) if pa.types.is_integer(keys[name].type) else None
            if ends is None or not ends["min"].is_valid or low not in found.column_names:
                continue
            near = pc.and_(
                pc.less_equal(found[low], ends["max"]), pc.greater_equal(found[high], ends["min"])
            )
            found = found.filter(pc.fill_null(near, True))
        files: list[dict[str, Any]] = found.select(
            ["path", "size_bytes", "num_records"]
        ).to_pylist()
        return files

    def _rows_of(
        self, files: Sequence[dict[str, Any]], keys: pa.Table, columns: pa.Schema
    ) -> tuple[pa.Table, pa.Table]:
        """The states of these keys, and of each its file and its place there."""
        found, numbers = [columns.empty_table()], [_PLACES.empty_table()]
        for at, one in enumerate(files):
            start = 0
            for batch in self._batches(one["path"], columns):
                near = np.flatnonzero(_are_among(batch, keys))
                found.append(batch.take(pa.array(near)))
                places = [pa.repeat(pa.scalar(at, pa.int64()), len(near)), pa.array(near + start)]
                numbers.append(pa.Table.from_arrays(places, schema=_PLACES))
                start += batch.num_rows
        return pa.concat_tables(found), pa.concat_tables(numbers)

    def _batches(self, name: str, columns: pa.Schema) -> Iterator[pa.Table]:
        filesystem, root = filesystem_of(self.path)
        yield from _read(filesystem, f"{root}/{unquote(name)}", columns)

    def _written(
        self,
        schema: TableSchema,
        added: pa.Table,
        replaced: Sequence[dict[str, Any]],
        gone: pa.Table,
        old: Sequence[dict[str, Any]],
    ) -> list[NewFile]:
        """The new states, and what stays of the files that are replaced, in new files."""
        columns = states_schema(schema)
        number = {one["path"]: at for at, one in enumerate(old)}

        def rows() -> Iterator[pa.RecordBatch]:
            yield from added.to_batches()
            for one in replaced:
                own = gone.filter(pc.equal(gone["file"], number[one["path"]]))
                places, start = own["place"].to_numpy(), 0
                for batch in self._batches(one["path"], columns):
                    stays = ~np.isin(np.arange(start, start + batch.num_rows), places)
                    yield from batch.filter(pa.array(stays)).to_batches()
                    start += batch.num_rows

        files: list[NewFile] = []
        indexed = [*schema.key, FROM_SCN, TO_SCN]
        left = rows()
        try:
            while (first := next(left, None)) is not None:
                file = write_file(self.path, columns, _portion(first, left), indexed)
                files += [] if file is None else [file]
        except BaseException:
            for file in files:
                remove_file(self.path, file)
            raise
        return files


_PLACES = pa.schema([("file", pa.int64()), ("place", pa.int64())])


def _with_images(rows: pa.Table) -> pa.Array:
    """All rows but those of TRUNCATEs."""
    return pc.not_equal(rows["_cdc_op"], "t")


def _states_in(
    changes: LoggedChanges,
    schema: TableSchema,
    touched: LightChanges | None,
    until: Truncated | None,
    *,
    has_gaps: bool,
) -> Iterator[pa.Table]:
    """The states that changes left, of all keys or of those that are touched, part by part."""
    facts = changes.facts()
    if not facts.changes:
        return
    carried = NOTHING_CARRIED
    if facts.moved_absent:
        columns = states_schema(schema)
        wanted = [columns.field(name) for name in dict.fromkeys((*schema.key, *facts.absent))]
        nobody = pa.schema([*wanted, pa.field(COMMIT_SCN, pa.int64())]).empty_table()
        found = carry_columns(changes, schema, facts.absent, has_gaps=has_gaps)
        carried = found.values(nobody, schema)
    parts = changes.parts_lacking(len(facts.absent))
    for part in range(parts):
        light = changes.light(part, parts)
        if touched is not None:
            light = touching(light, touched)
        yield states_of(
            changes,
            light,
            schema,
            facts.absent,
            has_gaps=has_gaps,
            carried=carried,
            until=until,
        )


def _layout(schema: TableSchema) -> dict[str, list[str]]:
    """What decides whether the table's columns are those of a definition: name, identity and type
    of each."""
    fields = states_schema(schema)
    return {
        one.name: [one.stored_as, spark_type(fields.field(one.name).type)] for one in schema.columns
    }


def _columns(schema: TableSchema) -> pa.Schema:
    """The table's columns with Oracle's types as comments."""
    said = mirror_columns(schema)
    return pa.schema(
        [
            one.with_metadata(said.field(one.name).metadata) if one.name in said.names else one
            for one in states_schema(schema)
        ]
    )


def _keys_of(light: LightChanges, schema: TableSchema) -> pa.Table:
    """The keys that changes touch, some of them more than once."""
    columns = {}
    for name, before, after in zip(schema.key, light.before, light.after, strict=True):
        own = before.filter(pa.array(light.own_before)), after.filter(pa.array(light.own_after))
        columns[name] = pa.concat_arrays(own)
    return pa.table(columns)


def _are_among(rows: pa.Table, keys: pa.Table) -> Flags:
    """Which rows have one of these keys?"""
    codes = key_codes(
        [pa.concat_arrays([_whole(keys[name]), _whole(rows[name])]) for name in keys.column_names]
    )
    found: Flags = np.isin(codes[keys.num_rows :], codes[: keys.num_rows])
    return found


def _apart(states: pa.Table, rows: pa.Table) -> tuple[Flags, Flags]:
    """Which of the states are not among the rows, and which of the rows not among the states?"""
    codes = key_codes(
        [
            pa.concat_arrays([_whole(states[name]), _whole(rows[name])])
            for name in states.column_names
        ]
    )
    own, others = codes[: states.num_rows], codes[states.num_rows :]
    return ~np.isin(own, others), ~np.isin(others, own)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _read(filesystem: pafs.FileSystem, path: str, columns: pa.Schema) -> Iterator[pa.Table]:
    with pq.ParquetFile(path, filesystem=filesystem) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns.names):
            yield pa.Table.from_batches([batch]).select(columns.names).cast(columns)


def _portion(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As many of the rows as one file gets."""
    size = first.nbytes
    yield first
    while size < _PORTION_BYTES and (batch := next(others, None)) is not None:
        size += batch.nbytes
        yield batch
