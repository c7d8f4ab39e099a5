"""What does the work on one captured table have in hand: session, folders, identifiers, and the
fence before each commit?"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa

from cdc_core.config import DeletionVectors, ExecutorsFrom
from cdc_core.delta.altering import create_mapped_table
from cdc_core.delta.appending import (
    CommitInfo,
    FileChanges,
    NewFile,
    commit_files,
    create_table,
    write_file,
)
from cdc_core.delta.foreign_changes import ForeignChanges
from cdc_core.delta.history import DeltaLog, folder_exists, move_aside, read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import LakeError, PreflightError
from cdc_core.lake.mirror.merge_audit import check_written
from cdc_core.lake.tables import (
    CHANGELOG_INDEXED,
    FORGETS_PROPERTY,
    GENERATION_PROPERTY,
    changelog_properties,
    mirror_columns,
    mirror_properties,
)
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer
from cdc_core.model.templates import DEFAULT_PATHS, PathTemplates
from cdc_core.schema.names import check_names, need_mapping
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import expect_small_work, translated
from cdc_core.stage.layout import OPTIONAL, change_schema

_LOG = logging.getLogger(__name__)

_APP_ID = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"

SMALL_ROWS_MAX = 50_000
"""Up to so many rows Spark interprets its plans: compiling them would take longer than the work."""

EXECUTOR_ROWS_MIN = 1_000_000
"""From so many rows on a cluster's executors stage a window, where the configuration says
``auto``."""
_TASKS_MIN = 4
"""A window that has just enough rows for executors is so many tasks."""
_TASKS_MAX = 64
"""A window is no more tasks than these, whatever the border, unless they would be too large: each
costs some hundredths of a second."""

Fence = Callable[[], None]
"""Called right before each commit; raises FencedError if this process lost its lease."""


def no_fence() -> None:
    """The fence of callers that hold no lease."""


@dataclass(frozen=True, slots=True)
class DeltaPosition:
    """The scn_high of the last window in each Delta table, by Delta's own transaction identifiers;
    None before the first. ``emptied_scn`` is the SCN of the last TRUNCATE that emptied the mirror,
    0 without one. ``foreign`` are changes of somebody else, ``forgetful`` the tables that are to
    forget transaction identifiers."""

    changelog_scn: int | None
    mirror_scn: int | None
    emptied_scn: int = 0
    foreign: Mapping[DeltaLayer, ForeignChanges] = field(default_factory=dict)
    forgetful: tuple[DeltaLayer, ...] = ()


@dataclass(slots=True)
class ExecutorPython:
    """What a lake has found out about the Python of its executors: whether it lacks Redolake."""

    lacks_redolake: bool = False


@dataclass(frozen=True, slots=True)
class TableWork:
    """One table's tools. ``open_session`` starts Spark when it is first asked for, and gives the
    one session of this work; ``optional`` are the optional columns that its change log holds;
    ``executors_from`` is the configuration's ``stage_on_executors_from_rows``;
    ``rewrite_bytes_max`` bytes of its mirror's files may be written anew without Spark, or none
    where Spark is to merge everything (``merges_by_spark``), which runs on so many
    ``spark_cores``. ``vectors``: may a window of the mirror switch deletion vectors on? ``paths``
    say where the Delta tables are."""

    root: str
    source: str
    table: TableId
    generation: int
    fence: Fence
    open_session: Callable[[], Any]
    optional: frozenset[str] = OPTIONAL
    executors_from: ExecutorsFrom = "never"
    executor_python: ExecutorPython = field(default_factory=ExecutorPython)
    rewrite_bytes_max: int = 0
    merges_by_spark: bool = False
    spark_cores: int = 2
    vectors: DeletionVectors = "never"
    paths: PathTemplates = DEFAULT_PATHS

    @property
    def mirror(self) -> str:
        """The mirror's folder."""
        return self.paths.path("mirror", self.root, self.source, self.table)

    @property
    def changelog(self) -> str:
        """The change log's folder."""
        return self.paths.path("changelog", self.root, self.source, self.table)

    @property
    def staging(self) -> str:
        """The folder for rows on their way into the mirror."""
        return f"{self.root.rstrip('/')}/{self.source}/staging/{self.table.path}"

    @property
    def window_app(self) -> str:
        """The transaction identifier of windows; its version is scn_high."""
        return f"redolake/{self.source}/{self.table.path}/{self.generation}"

    @property
    def truncation_app(self) -> str:
        """The transaction identifier of TRUNCATEs in both Delta tables; its version is their
        SCN."""
        return f"{self.window_app}/truncated"

    @property
    def partitions_app(self) -> str:
        """The transaction identifier of rows that went with partitions, in both Delta tables; its
        version is the SCN of the DDL."""
        return f"{self.window_app}/partitions"

    def chunk_app(self, snapshot_id: str, number: int | str) -> str:
        """The transaction identifier of one chunk, or of what its finished snapshot deletes; its
        version is 1."""
        return f"{self.window_app}/chunk/{snapshot_id}/{number}"

    def session_for(self, rows: int = 0) -> Any:
        """The session, told to expect little work if ``rows`` in hand and both tables are few."""
        session = self.open_session()
        if self.has_few_rows(SMALL_ROWS_MAX - rows):
            expect_small_work(session)
        return session

    def has_few_rows(self, rows_max: int) -> bool:
        """Have both tables together no more rows than that, by their logs?"""
        counts = [count_rows(path) for path in (self.changelog, self.mirror)]
        return None not in counts and sum(count or 0 for count in counts) <= rows_max

    def executors_for(self, rows: int) -> Any | None:
        """A session whose executors are to stage so many rows; None where this process does it by
        itself."""
        border = self._executor_rows
        if border is None or rows < border or self.executor_python.lacks_redolake:
            return None
        session = self.open_session()
        is_local = session.sparkContext.master.partition("[")[0] == "local"
        return session if self.executors_from != "auto" or not is_local else None

    def go_on_without_executors(self, error: PreflightError) -> None:
        """Let this process stage from now on, where nobody asked for executors.

        Raises:
            PreflightError: Somebody did; the given error.
        """
        if self.executors_from != "auto":
            raise error
        self.executor_python.lacks_redolake = True
        _LOG.warning(
            "this process stages all windows, since %s: %s", error.what_happened, error.hint
        )

    def task_rows(self, rows: int) -> int:
        """About so many of a window's rows are staged by one task of an executor."""
        border = min(self._executor_rows or EXECUTOR_ROWS_MIN, EXECUTOR_ROWS_MIN)
        small = max(1, border // _TASKS_MIN, rows // _TASKS_MAX)
        return min(small, EXECUTOR_ROWS_MIN // _TASKS_MIN)

    @property
    def _executor_rows(self) -> int | None:
        if self.executors_from == "never":
            return None
        return EXECUTOR_ROWS_MIN if self.executors_from == "auto" else self.executors_from

    def facts(self, **facts: object) -> dict[str, object]:
        """Source and table, for errors."""
        return {"source": self.source, "table": self.table, **facts}

    def position(self) -> DeltaPosition:
        """How far both tables are, by their own logs.

        Raises:
            LakeError: A newer generation has begun.
        """
        changelog, mirror = read_log(self.changelog), read_log(self.mirror)
        for log, path in ((changelog, self.changelog), (mirror, self.mirror)):
            if log is not None:
                self.known_generation(log, path)
        logs: dict[DeltaLayer, DeltaLog | None] = {"changelog": changelog, "mirror": mirror}
        there = {layer: log for layer, log in logs.items() if log is not None}
        return DeltaPosition(
            changelog.transactions.get(self.window_app) if changelog else None,
            mirror.transactions.get(self.window_app) if mirror else None,
            mirror.transactions.get(self.truncation_app, 0) if mirror else 0,
            {layer: log.foreign for layer, log in there.items()},
            tuple(layer for layer, log in there.items() if FORGETS_PROPERTY in log.properties),
        )

    def layer_without(
        self, snapshot_id: str, chunks: Collection[tuple[str, int]]
    ) -> DeltaLayer | None:
        """Which of both tables lacks one of some chunks with rows that it had, if any; where a
        table is missing, nothing is said.

        A mirror that was written anew from its change log has no identifiers of the chunks of
        before, so of a mirror without those of the first snapshot, ``snapshot_id``, nothing is said
        either.
        """
        changelog, mirror = read_log(self.changelog), read_log(self.mirror)
        if changelog is None or mirror is None:
            return None
        apps = [self.chunk_app(*one) for one in chunks]
        if any(app not in changelog.transactions for app in apps):
            return "changelog"
        first = self.chunk_app(snapshot_id, "")
        is_whole = any(app.startswith(first) for app in mirror.transactions)
        lacks = is_whole and any(app not in mirror.transactions for app in apps)
        return "mirror" if lacks else None

    def require_mirror(self) -> DeltaLog:
        """The mirror's log.

        Raises:
            LakeError: There is no mirror.
        """
        log = read_log(self.mirror)
        if log is None:
            raise LakeError(
                "the mirror does not exist",
                hint="`redolake snapshot` applies the table's first snapshot; `redolake table rebuild OWNER.TABLE` writes a lost mirror from its change log.",
                **self.facts(path=self.mirror),
            )
        return log

    def require_tables(self) -> None:
        """Both Delta tables must be there: they were, when the table got its position, and what is
        made again would lack rows.

        Raises:
            LakeError: Somebody has removed one of them.
        """
        self.require_mirror()
        if read_log(self.changelog) is None:
            raise LakeError(
                "the change log does not exist",
                hint="Restore its folder. Without a copy, `redolake table rebuild --from-landing OWNER.TABLE` writes both Delta tables "
                "from landing, or `redolake table resnapshot --fresh OWNER.TABLE` reads the table again into new ones.",
                **self.facts(path=self.changelog),
            )

    def create_tables(self, schema: TableSchema) -> None:
        """Create both Delta tables unless they are there; those of an older generation are moved
        aside.

        Raises:
            LakeError: A newer generation has begun, or the folder is another table's.
        """
        check_names(schema)
        for path in (self.changelog, self.mirror):
            log = read_log(path)
            self.refuse_other(path, log)
            found = self.generation if log is None else self.known_generation(log, path)
            if found < self.generation:
                self.fence()
                move_aside(path, moved_aside("", found))
                log = None
            if log is None:
                self.create_table(path, schema)

    def known_generation(self, log: DeltaLog, path: str) -> int:
        """The generation that has begun in a Delta table.

        Raises:
            LakeError: It is newer than the one of this work.
        """
        found = generation_in(log)
        if found > self.generation:
            raise LakeError(
                "a later snapshot has replaced this Delta table",
                hint="Another process serves this source from a newer metadata store; run this one with that store.",
                **self.facts(path=path, generation=self.generation, found=found),
            )
        return found

    def set_aside(self) -> list[str]:
        """Move the folders of both Delta tables aside, unless this generation has begun in them;
        return their new names."""
        moved = []
        for path in (self.changelog, self.mirror):
            if folder_exists(path) and self._generation_of(path) != self.generation:
                self.refuse_other(path, self._readable_log(path))
                self.fence()
                moved.append(move_aside(path, f".before-g{self.generation}"))
        return moved

    def set_damaged_mirror_aside(self) -> None:
        """Move the mirror's folder aside if its log cannot be read."""
        try:
            read_log(self.mirror)
        except LakeError as error:
            self.fence()
            suffixes = (f".damaged-{number}" for number in count(1))
            unused = next(one for one in suffixes if not folder_exists(self.mirror + one))
            moved = move_aside(self.mirror, unused)
            _LOG.warning("%s; the mirror was moved aside to %s", error.what_happened, moved)

    def _generation_of(self, path: str) -> int | None:
        """The generation of the Delta table in a folder; None if that cannot be read."""
        log = self._readable_log(path)
        return None if log is None else generation_in(log)

    def _readable_log(self, path: str) -> DeltaLog | None:
        try:
            return read_log(path)
        except LakeError:
            return None

    def refuse_other(self, path: str, log: DeltaLog | None) -> None:
        """A template of paths may lead to a folder of another table or source.

        Raises:
            LakeError: It does.
        """
        said = {} if log is None else log.properties
        owner = (said.get("redolake.source"), said.get("redolake.table"))
        if None not in owner and owner != (self.source, str(self.table)):
            raise LakeError(
                "another table's Delta table is in this folder",
                hint="Give the templates under lake another path, or move the folder away.",
                **self.facts(path=path, found=" ".join(map(str, owner))),
            )

    def create_table(self, path: str, schema: TableSchema) -> None:
        """Create the change log or the mirror, without rows; with column mapping where a column's
        name asks for it."""
        owner = (self.source, schema, self.generation)
        columns, properties, names = (
            (mirror_columns(schema), mirror_properties(*owner), schema.column_names)
            if path == self.mirror
            else (
                change_schema(schema),
                changelog_properties(*owner),
                schema.as_logged().column_names,
            )
        )
        self.fence()
        create = create_mapped_table if need_mapping(names) else create_table
        facts = self.facts(path=path)
        create(path, columns, properties, doing="creating a Delta table", facts=facts)

    def metadata(self, kind: str, scn_high: int, **more: object) -> str:
        """User metadata of a commit: which state of Oracle the table has from here on."""
        facts = {"source": self.source, "table": str(self.table), "kind": kind}
        return json.dumps({**facts, "scn_high": scn_high, **more}, sort_keys=True)

    @contextmanager
    def commit(
        self, session: Any, doing: str, metadata: str, txn: tuple[str, int] | None = None
    ) -> Iterator[None]:
        """Everything that one Delta commit by SQL must carry: fence, user metadata, transaction
        identifier."""
        settings: Mapping[str, str] = {_METADATA: metadata}
        if txn is not None:
            settings = {**settings, _APP_ID: txn[0], _VERSION: str(txn[1])}
        with translated(doing, **self.facts()):
            for setting, value in settings.items():
                session.conf.set(setting, value)
            try:
                self.fence()
                yield
            finally:
                for setting in settings:
                    session.conf.unset(setting)

    def info(self, doing: str, metadata: str, txn: tuple[str, int] | None = None) -> CommitInfo:
        """What a commit to one of the tables carries."""
        return CommitInfo(doing=doing, metadata=metadata, txn=txn, facts=self.facts())

    def append_changes(
        self,
        schema: TableSchema,
        changes: Iterable[pa.RecordBatch],
        info: CommitInfo,
        *,
        rows: int,
    ) -> None:
        """Append rows to the change log without Spark, in one commit; no commit if there are none.
        ``rows`` is how many there must be.

        Raises:
            RowCountError: There are more or fewer rows; nothing was committed.
        """
        file = write_file(self.changelog, change_schema(schema), changes, CHANGELOG_INDEXED)
        self.commit_written(self.changelog, () if file is None else (file,), info, rows=rows)

    def commit_written(
        self, path: str, files: Sequence[NewFile], info: CommitInfo, *, rows: int
    ) -> None:
        """Append files that are written to a Delta table, in one commit; no commit without a file.
        Errors as for :meth:`append_changes`."""
        check_written(info.doing, rows, sum(file.rows for file in files), self.facts())
        if files:
            commit_files(path, FileChanges(added=files), info, fence=self.fence)


def moved_aside(path: str, generation: int) -> str:
    """Where a Delta table of an older generation is."""
    return f"{path}.g{generation}"


def generation_in(log: DeltaLog) -> int:
    """Which of a table's Delta tables this is: each time they are begun again it is one more."""
    return int(log.properties.get(GENERATION_PROPERTY, 1))
