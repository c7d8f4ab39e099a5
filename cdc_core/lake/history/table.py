"""How does a table's history, one row per state or the last one per key, follow its change log?

The change log is the truth, and what its history says is derived from it by
:mod:`cdc_core.stage.states`. The history's position is the version of the change log's Delta table
that it was derived from, kept under a transaction identifier of its own. Doing it twice changes
nothing, and a crash leaves the history at its old position. Newer commits of the change log get
into it in one of three ways, each of which ends in the same table:

* Changes that are newer than all from before meet the current states of their keys, and nothing
  else: an update costs what is new, whatever the change log and the history have.
* Where changes are late (late commits, snapshots of what windows have brought already), or what
  they lack is not known, the states of the keys that they touch are derived from the whole change
  log. Those that differ are exchanged.
* After a TRUNCATE, another definition of the table, another configuration of its history, or a
  commit that rewrote the change log, all states are derived and the table is overwritten.

No Spark is needed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from cdc_core.config import LakeConfig
from cdc_core.delta.appending import (
    CommitInfo,
    FileChanges,
    NewFile,
    commit_files,
    create_table,
    overwrite_files,
)
from cdc_core.delta.history import (
    DeltaLog,
    commits_after,
    filesystem_of,
    move_aside,
    newest_metadata,
    read_log,
)
from cdc_core.delta.log_files import data_file
from cdc_core.delta.small_tables import vacuum
from cdc_core.delta.storage import storing
from cdc_core.errors import REPORT_HINT, LakeError, SchemaMismatchError
from cdc_core.lake.definitions.evolution import known_schema
from cdc_core.lake.history.derived_states import DerivedStates, with_images
from cdc_core.lake.history.files import (
    SMALL_BYTES,
    HistoryFiles,
    StateFile,
    StateWriter,
    put_together,
)
from cdc_core.lake.history.layout import HistoryLayout
from cdc_core.lake.rows.logged_changes import files_of, logged_changes, queried
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import Fence, TableWork, no_fence
from cdc_core.lake.tables import GENERATION_PROPERTY, KEY_PROPERTY, key_text
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import TableHistory
from cdc_core.runtime.arrow import whole
from cdc_core.schema.names import need_mapping
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import (
    ChangeFacts,
    Flags,
    LightChanges,
    LoggedChanges,
    key_codes,
)
from cdc_core.stage.layout import COMMIT_SCN
from cdc_core.stage.states import (
    TO_SCN,
    last_states,
    states_behind,
    states_schema,
)

_LOG = logging.getLogger(__name__)
_BRINGS_CHANGES = frozenset({"window", "chunk", "gone", "partitions"})
_DOING = "writing a history table"


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
        layout: HistoryLayout | None = None,
    ) -> None:
        root = config.root
        self._work = TableWork(
            root=root,
            source=source,
            table=table,
            generation=generation,
            fence=fence,
            open_session=self._no_session,
            paths=config.paths,
        )
        self._layout = HistoryLayout.of(config.history_table) if layout is None else layout
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
            LakeError: Delta refused, a file is gone, or the folder is another table's.
        """
        started, work = time.monotonic(), self._work
        log = read_log(work.changelog)
        schema = known_schema(log)
        if log is None or schema is None:
            return None
        if work.known_generation(log, work.changelog) < work.generation:
            return None  # the next chunk begins a new change log
        self._refuse(schema)
        there = self._of_generation()
        files = None if anew or there is None else self._newer_files(schema, log, there)
        if files == []:
            return None
        taken = None
        if there is not None and files is not None:
            taken = self._take(schema, files, log.version, there)
        added, removed = taken or self._write_anew(schema, log.version, there)
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
            is_whole=taken is None,
            seconds=time.monotonic() - started,
        )

    def maintain(self, vacuum_hours: int | None) -> None:
        """Remove states that ended longer ago than they are kept, put small files together, and
        remove files that no version of so many hours has (None: keep them)."""
        log = read_log(self.path)
        schema = known_schema(read_log(self._work.changelog))
        if log is None or schema is None or self._app not in log.transactions:
            return
        if newest_metadata(self.path, "layout") == self._layout.described(schema):
            self._compact(schema, log)  # another layout is written by the next update
        if vacuum_hours is not None:
            fence = self._work.fence
            vacuum(self.path, vacuum_hours, doing=_DOING, facts=self._facts, fence=fence)

    @property
    def _app(self) -> str:
        return f"{self._work.window_app}/history"

    @property
    def _facts(self) -> dict[str, object]:
        return self._work.facts(path=self.path)

    def _no_session(self) -> Any:
        raise LakeError("a history table is kept without Spark", hint=REPORT_HINT, **self._facts)

    def _refuse(self, schema: TableSchema) -> None:
        if need_mapping(schema.column_names):
            raise SchemaMismatchError(
                "columns have names that a history table cannot have",
                hint="Set history: none for the table, or name them under columns_exclude.",
                table=schema.table,
            )

    def _of_generation(self) -> DeltaLog | None:
        """The history's log; one of an older generation is moved aside."""
        log, work = read_log(self.path), self._work
        if log is None:
            return None
        work.refuse_other(self.path, log)
        found = work.known_generation(log, self.path)
        if found == work.generation:
            return log
        work.fence()
        move_aside(self.path, f".g{found}")
        return None

    def _files(self, schema: TableSchema) -> HistoryFiles:
        columns = self._layout.columns(schema)
        return HistoryFiles(self.path, columns, schema.key, self._layout.ends, self._facts)

    def _forgotten(self) -> int:
        """The SCN up to which ended states were removed."""
        return newest_metadata(self.path, "forgotten") or 0

    def _info(self, schema: TableSchema, version: int, reached: int, forgotten: int) -> CommitInfo:
        """What a commit carries; ``reached`` is the highest SCN of a change in the change log, and
        states that ended up to ``forgotten`` are not there any more."""
        done = self._work.position()
        scn = max(done.changelog_scn or 0, done.mirror_scn or 0)
        metadata = self._work.metadata(
            "history",
            scn,
            changelog_version=version,
            reached=reached,
            forgotten=forgotten,
            layout=self._layout.described(schema),
        )
        return CommitInfo(
            doing=_DOING, metadata=metadata, txn=(self._app, version), facts=self._facts
        )

    def _newer_files(self, schema: TableSchema, log: DeltaLog, there: DeltaLog) -> list[str] | None:
        """The change log's files with changes that the history has not taken; None where that is no
        question of some keys."""
        position = there.transactions.get(self._app)
        if newest_metadata(self.path, "layout") != self._layout.described(schema):
            return None
        if position is None or position > log.version:
            return None  # a change log that was put back has fewer commits than were taken
        found: list[str] = []
        try:
            for commit, files in commits_after(self._work.changelog, position, up_to=log.version):
                if files and commit.metadata.get("kind") not in _BRINGS_CHANGES:
                    return None
                found += files
        except LakeError as error:
            _LOG.info("all states are derived: %s", error.what_happened)
            return None
        return found if self._are_there(found) else None

    def _are_there(self, files: Sequence[str]) -> bool:
        """Are there files that the change log once had? Compaction may have replaced them."""
        filesystem, root = filesystem_of(self._work.changelog)
        with storing("looking for files of the change log", **self._facts):
            found = filesystem.get_file_info([data_file(root, one) for one in files])
        return all(one.type == pafs.FileType.File for one in found)

    def _take(
        self, schema: TableSchema, files: Sequence[str], version: int, there: DeltaLog
    ) -> tuple[int, int] | None:
        """Take the changes in some files of the change log; how many states came, and how many
        went. None where all states have to be derived."""
        reached = newest_metadata(self.path, "reached")
        with logged_changes(self._work.changelog, schema, with_images, files) as changes:
            facts = changes.facts()
            newest = max(reached, facts.scns[1]) if facts.changes else reached
            info = self._info(schema, version, newest, self._forgotten())
            is_newer = not facts.changes or facts.scns[0] > reached
            if is_newer and not facts.moved_absent:
                with self._exchanging(schema) as exchange:
                    if self._follow_on(exchange, changes, facts, schema):
                        return exchange.commit(info, there, self._work.fence)
            if changes.parts > 1 or self._leads_further(schema, is_newer=is_newer):
                return None
            with self._exchanging(schema) as exchange:
                self._derive(exchange, changes.light(), schema)
                return exchange.commit(info, there, self._work.fence)

    @contextmanager
    def _exchanging(self, schema: TableSchema) -> Iterator[_Exchange]:
        """Files that are written in the block go unless it closes them: a commit may name them."""
        files = self._files(schema)
        exchange = _Exchange(files, StateWriter(files, self._layout.starts))
        try:
            yield exchange
        finally:
            if not exchange.is_closed:
                exchange.writer.discard()

    def _follow_on(
        self, exchange: _Exchange, changes: LoggedChanges, facts: ChangeFacts, schema: TableSchema
    ) -> bool:
        """Let changes that are newer than all before meet the current states of their keys. False
        where these do not say enough."""
        layout, has_gaps = self._layout, QuarantineTable(self._work).exists
        parts = changes.parts_lacking(len(facts.absent))
        for part in range(parts):
            light = changes.light(part, parts)
            keys = _keys_of(light, schema)
            near, rows, places = exchange.states_of(keys, current=not layout.only_last)
            there = layout.read(rows, schema)
            is_current = there[TO_SCN].is_null()
            states = states_behind(
                there.filter(is_current),
                changes,
                light,
                schema,
                facts.absent,
                rule=layout.rule(schema),
                has_gaps=has_gaps,
            )
            if states is None:
                return False
            if layout.only_last:
                ended = there.filter(pc.invert(is_current))
                states = last_states(pa.concat_tables([ended, states]), schema)
            exchange.take(layout.stored(states, schema), near, rows, places)
        return True

    def _derive(self, exchange: _Exchange, touched: LightChanges, schema: TableSchema) -> None:
        """Derive the states of the keys that some changes touch from the whole change log."""
        forgotten = self._forgotten()
        states = [
            self._layout.stored(_kept(one, forgotten), schema)
            for one in self._states(schema).of_keys(touched)
        ]
        near, rows, places = exchange.states_of(_keys_of(touched, schema), current=False)
        derived = pa.concat_tables([exchange.files.columns.empty_table(), *states])
        exchange.take(derived, near, rows, places)

    def _leads_further(self, schema: TableSchema, *, is_newer: bool) -> bool:
        """May late changes lead to keys that they do not touch? A later change of key may have
        carried along what one of them says."""
        if is_newer:
            return False
        everything = files_of(self._work)
        with logged_changes(self._work.changelog, schema, with_images, everything) as changes:
            return changes.facts().moved_absent

    def _write_anew(
        self, schema: TableSchema, version: int, there: DeltaLog | None
    ) -> tuple[int, int]:
        """Overwrite the table with all states, and its columns; how many there are now, and were
        before."""
        work = self._work
        if there is None:
            work.fence()
            # With all columns, so that the table has the features that any of them asks for.
            columns = states_schema(schema)
            create_table(
                self.path, columns, self._properties(schema), doing=_DOING, facts=self._facts
            )
        found = queried(work, f"SELECT MAX({COMMIT_SCN}) AS scn FROM changelog")
        forgotten = 0 if there is None or self._layout.days is None else self._forgotten()
        info = self._info(schema, version, found["scn"][0].as_py() or 0, forgotten)
        with self._exchanging(schema) as exchange:
            before = sum(one.rows for one in exchange.listed)
            for states in self._states(schema).of_keys(None):
                exchange.writer.add(self._layout.stored(_kept(states, forgotten), schema))
            added = exchange.close()
            overwrite_files(self.path, exchange.files.columns, added, info, fence=work.fence)
        return sum(one.rows for one in added), before

    def _states(self, schema: TableSchema) -> DerivedStates:
        return DerivedStates(self._work, self._layout, schema, self._facts)

    def _properties(self, schema: TableSchema) -> dict[str, str]:
        return {
            "delta.enableDeletionVectors": "false",
            # The end of a state stands behind the table's columns, however many they are.
            "delta.dataSkippingNumIndexedCols": "-1",
            # Each update lists the files: it reads the commits since the newest checkpoint.
            "delta.checkpointInterval": "20",
            "redolake.source": self._work.source,
            "redolake.table": str(schema.table),
            "redolake.role": "history",
            GENERATION_PROPERTY: str(self._work.generation),
            KEY_PROPERTY: key_text(schema),
        }

    def _compact(self, schema: TableSchema, log: DeltaLog) -> None:
        """Forget old states and write the small files into fewer ones, in one commit."""
        forgotten = max(self._forgotten(), self._outlived())
        with self._exchanging(schema) as exchange:
            exchange.forget(self._layout.limit(forgotten))
            for current in (True, False):
                small = [
                    one
                    for one in exchange.listed
                    if one.has_current == current and one.bytes <= SMALL_BYTES
                ]
                exchange.replaced += small if len(small) > 1 else []
            if not (exchange.replaced or exchange.gone):
                return
            said = {name: newest_metadata(self.path, name) for name in ("reached", "layout")}
            metadata = self._work.metadata(
                "maintenance", self.scn() or 0, forgotten=forgotten, **said
            )
            info = CommitInfo(doing=_DOING, metadata=metadata, facts=self._facts)
            exchange.commit(info, log, self._work.fence, changes_data=bool(exchange.gone))

    def _outlived(self) -> int:
        """The last SCN that is older than ended states are kept."""
        if self._layout.days is None:
            return 0
        time_, work = "_cdc_commit_timestamp", self._work
        newest = queried(work, f"SELECT MAX({time_}) AS at FROM changelog")
        if (at := newest["at"][0].as_py()) is None:
            return 0
        until = (at - timedelta(days=self._layout.days)).isoformat(sep=" ")
        sql = f"SELECT MAX({COMMIT_SCN}) AS scn FROM changelog WHERE {time_} <= TIMESTAMP '{until}'"
        return queried(work, sql)["scn"][0].as_py() or 0


@dataclass(slots=True)
class _Exchange:
    """States that go, and files with those that come. ``gone`` are the places of those that go, by
    the name of their file."""

    files: HistoryFiles
    writer: StateWriter
    listed: list[StateFile] = field(default_factory=list)
    replaced: list[StateFile] = field(default_factory=list)
    gone: dict[str, list[npt.NDArray[np.int64]]] = field(default_factory=dict)
    is_closed: bool = False

    def __post_init__(self) -> None:
        self.listed = self.files.listed()

    def states_of(
        self, keys: pa.Table, *, current: bool
    ) -> tuple[list[StateFile], pa.Table, pa.Table]:
        """The files near some keys, their states there, and where these are."""
        near = self.files.near(self.listed, keys, current=current)
        return near, *self.files.states_of(near, keys, current=current)

    def take(
        self, states: pa.Table, near: Sequence[StateFile], rows: pa.Table, places: pa.Table
    ) -> None:
        """Exchange the rows of some files for states, where they differ."""
        is_new, is_old = _apart(states, rows)
        self.writer.add(states.filter(pa.array(is_new)))
        gone = places.filter(pa.array(is_old))
        of_file = gone["file"].to_numpy()
        for at in np.unique(of_file).tolist():
            own = gone["place"].to_numpy()[of_file == at]
            self.gone.setdefault(near[at].name, []).append(own)

    def forget(self, limit: int) -> None:
        """Let the states go whose end is not above a limit."""
        for one in self.listed:
            if one.ended_from is None or one.ended_from > limit:
                continue
            if len(places := self.files.ended_up_to(one, limit)):
                self.gone[one.name] = [places]

    def commit(
        self, info: CommitInfo, log: DeltaLog, fence: Fence, *, changes_data: bool = True
    ) -> tuple[int, int]:
        """Write what stays of the files with states that go, and of small ones, into new ones and
        commit them; how many states came, and how many went."""
        added = sum(self.writer.rows.values())
        removed = sum(len(own) for places in self.gone.values() for own in places)
        others = self.gone.keys() - {one.name for one in self.replaced}
        self.replaced += [one for one in self.listed if one.name in others]
        for current, rows in list(self.writer.rows.items()):
            own = [one for one in self.listed if one.has_current == current]
            self.replaced += put_together(own, rows, self.replaced)
        for one in self.replaced:
            gone = self.gone.get(one.name, [np.empty(0, np.int64)])
            for states in self.files.without(one, np.concatenate(gone)):
                self.writer.add(states)
        changes = FileChanges(
            added=self.close(),
            replaced=[one.old for one in self.replaced],
            changes_data=changes_data,
        )
        commit_files(self.files.path, changes, info, fence=fence, version=log.version)
        return added, removed

    def close(self) -> list[NewFile]:
        """The new files, which are committed next."""
        self.is_closed = True
        return self.writer.close()


def _kept(states: pa.Table, forgotten: int) -> pa.Table:
    """The states that did not end up to an SCN."""
    return states.filter(pc.fill_null(pc.greater(states[TO_SCN], forgotten), True))


def _keys_of(light: LightChanges, schema: TableSchema) -> pa.Table:
    """The keys that changes touch, some of them more than once."""
    columns = {}
    for name, before, after in zip(schema.key, light.before, light.after, strict=True):
        own = before.filter(pa.array(light.own_before)), after.filter(pa.array(light.own_after))
        columns[name] = pa.concat_arrays(own)
    return pa.table(columns)


def _apart(states: pa.Table, rows: pa.Table) -> tuple[Flags, Flags]:
    """Which of the states are not among the rows, and which of the rows not among the states?"""
    codes = key_codes(
        [pa.concat_arrays([whole(states[name]), whole(rows[name])]) for name in states.column_names]
    )
    own, others = codes[: states.num_rows], codes[states.num_rows :]
    return ~np.isin(own, others), ~np.isin(others, own)
