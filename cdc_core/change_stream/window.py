"""How is one window read from a stream of committed changes into landing?

Changes land as they come, each by the version of its table that holds there. A DDL is followed as
one in redo is: the dictionary says what the table has become, once all DDL of the window is known.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime
from typing import Any

from cdc_core.capture.logs.proving import check_incarnation
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.stream_ends.altered import read_altered
from cdc_core.capture.stream_ends.ddl_rows import DdlRow, FollowedDdl, follow_ddl
from cdc_core.capture.stream_ends.unlogged import unlogged_ends
from cdc_core.change_reader import WindowWork
from cdc_core.change_stream.changes import WindowChanges
from cdc_core.change_stream.events import WindowEvents
from cdc_core.change_stream.form import Batch, Event, RunEvent, StreamForm, TableShape, Wording
from cdc_core.change_stream.landed import LandedTransactions
from cdc_core.change_stream.table_changes import TableChanges
from cdc_core.errors import SchemaMismatchError
from cdc_core.landing.change_files import ChangeFiles
from cdc_core.landing.definitions import keep_definitions
from cdc_core.landing.layout import TRANSACTION_SCHEMA, window_folder
from cdc_core.landing.manifest import LandedFile, WindowManifest, window_manifest_bytes
from cdc_core.landing.store import LandingStore
from cdc_core.model.identifiers import TableId
from cdc_core.model.streams import StreamBegin, StreamEnd
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.table import TableSchema

_LOG = logging.getLogger(__name__)
_TRANSACTIONS_NAME = "transactions.parquet"
_SHAPES_MAX = 10_000


class WindowReader:
    """Reads one window.

    Args:
        session: In the container of the tables.
        work: The planned window.
        rules: What the configuration says of DDL, masks and policies.
        form: Of the stream.
        batches: Gives the records from where the window before ended, again at each call.
        landing: Where the window lands.
    """

    def __init__(
        self,
        session: OracleSession,
        work: WindowWork,
        rules: CaptureRules,
        form: StreamForm,
        batches: Callable[[], Iterable[Batch]],
        landing: LandingStore,
    ) -> None:
        self._session, self._work, self._rules, self._form = session, work, rules, form
        self._batches, self._landing = batches, landing
        self._window = work.record.window
        self._history = SchemaHistory(list(work.tables))
        self._tables = {(str(one.owner), str(one.name)): one for one in self._history.tables}
        self._numbers = {one.object_id: one.table for one in work.tables if one.object_id}
        self._shapes: dict[Hashable, TableId | None] = {}
        self._changes: dict[TableId, TableChanges] = {}
        self._ddl: list[DdlRow] = []
        self._followed: FollowedDdl | None = None

    def capture(self) -> None:
        """Land the window; its manifest comes last.

        Raises:
            LogsNotReadyError: The records end before they prove the window complete.
            PreflightError, DecodeError: Records are not what they must be.
            RedoUnavailableError: The database is another one, or was opened with RESETLOGS.
        """
        started, work, landing = time.monotonic(), self._work, self._landing
        folder = window_folder(work.source.name, self._window)
        check_incarnation(self._session, work.source.resetlogs_change)
        landing.remove_unlanded(folder)
        events = WindowEvents(self._form, self._window, work.record.ordinal, work.reader)
        landed = LandedTransactions(
            landing, work.source.name, begins=work.source.snapshot_scn, low=self._window.scn_low
        )
        with (
            ChangeFiles(landing, folder) as files,
            landing.writer(folder, _TRANSACTIONS_NAME, TRANSACTION_SCHEMA) as ledger,
        ):
            changes = WindowChanges(self._window, files, ledger, landed, self._form.wording)
            self._read(events, changes)
            changes.close()
            redo, transactions = files.close(), ledger.close()
        left = self._ends(changes)
        check_incarnation(self._session, work.source.resetlogs_change)
        assert events.end is not None
        manifest = self._manifest(
            changes, files, redo, transactions, left, started, reader=events.end
        )
        definitions = keep_definitions(landing, work.source.name, manifest.schemas)
        landing.write_manifest(folder, window_manifest_bytes(manifest, definitions))
        _log(manifest, changes, self._form.wording)

    def _read(self, events: WindowEvents, changes: WindowChanges) -> None:
        if self._work.given:
            self._follow(events)
        for event in events.read(self._batches):
            if isinstance(event, RunEvent):
                if (table := self._table_of(event)) is not None:
                    changes.rows(event, self._changes_of(table, event))
                continue
            op = event.op
            if op == "begin":
                changes.begin(event)
            elif op == "commit":
                changes.commit(event)
            elif op == "ddl":
                self._take_ddl(event, events, changes)
            elif (table := self._table_of(event)) is not None:
                changes.change(event, self._changes_of(table, event))

    def _changes_of(self, table: TableId, event: Event | RunEvent) -> TableChanges:
        """Where changes of a table go, by its version of now."""
        of_table = self._changes.get(table)
        if of_table is None:
            schema = (
                self._history.latest(table) if self._followed is None else self._at(event, table)
            )
            masks = self._rules.masks.get(table, {})
            of_table = self._changes[table] = TableChanges(
                schema, self._form, masks, self._work.values_as_of
            )
        return of_table

    def _at(self, event: Event | RunEvent, table: TableId) -> TableSchema:
        """The version of a table behind the DDL that came before an event."""
        first = next(one for one in self._work.tables if one.table == table)
        assert self._followed is not None
        versions = [
            one.schema
            for one in self._followed.changes
            if one.schema.table == table and not one.empties and one.ordinal <= event.ordinal
        ]
        return versions[-1] if versions else first

    def _take_ddl(self, event: Event, events: WindowEvents, changes: WindowChanges) -> None:
        table = self._table_of(event)
        if table is None or event.commit_scn <= self._window.scn_low:
            return
        if self._followed is None:
            self._follow(events)
        assert self._followed is not None
        for end in self._followed.ends:
            changes.ends.setdefault(str(end.table), end)
        # What comes now is of the new version.
        if (of_table := self._changes.pop(table, None)) is not None:
            changes.write(of_table)

    def _follow(self, events: WindowEvents) -> None:
        """Look at all DDL of the window, and follow it."""
        low = self._window.scn_low
        self._ddl = [
            DdlRow(
                table=table,
                ordinal=event.ordinal,
                row_scn=event.scn,
                scn=event.commit_scn,
                text=event.sql,
            )
            for event in events.read(self._batches)
            if not isinstance(event, RunEvent)
            and event.op == "ddl"
            and event.commit_scn > low
            and (table := self._table_of(event)) is not None
        ]
        self._followed = follow_ddl(
            self._session,
            self._ddl,
            self._history,
            self._rules,
            # Whether another DDL came within seconds behind the window, no message says yet: where
            # Oracle's times do not tell either, the text of the DDL does.
            lambda _table, _scn: True,
            given=self._work.given,
            scn_low=low,
        )

    def _table_of(self, event: Event | RunEvent) -> TableId | None:
        """The captured table that an event is of; None where it is of another.

        Raises:
            PreflightError: The record does not say its table.
            DecodeError: It describes the table otherwise than the dictionary does.
        """
        described = event.table
        if described in self._shapes:
            return self._shapes[described]
        shape = event.shape()
        table = self._known(shape)
        is_ddl = not isinstance(event, RunEvent) and event.op == "ddl"
        if table is not None and not is_ddl and shape.columns is not None:
            self._check_columns(table, shape.columns, event)
        if len(self._shapes) >= _SHAPES_MAX:
            self._shapes.clear()
        self._shapes[described] = table
        return table

    def _known(self, shape: TableShape) -> TableId | None:
        if shape.number is not None:
            # The writer does not have the table's name, or not any more.
            return self._numbers.get(shape.number)
        return self._tables.get((shape.owner, shape.name))

    def _check_columns(
        self, table: TableId, named: frozenset[str], event: Event | RunEvent
    ) -> None:
        """The columns that an event names are those of the table's definition."""
        version = self._at(event, table) if self._followed else self._history.latest(table)
        own = {*version.as_in_rows().in_oracle().names_in_oracle}
        known = {*own, *version.stored, *version.excluded}
        if missing := sorted(own - named):
            raise SchemaMismatchError(
                f"{self._form.wording.name} does not know columns of a captured table",
                hint=self._form.wording.columns,
                table=table,
                columns=", ".join(missing),
                xid=event.xid,
            )
        others = sorted(name for name in named - known if not name.startswith("SYS_"))
        if others and version.stored:
            raise SchemaMismatchError(
                f"{self._form.wording.name} names columns that the captured table does not have",
                hint=f"{self._form.wording.columns} `redolake table resnapshot OWNER.TABLE` reads a "
                "table as it is now.",
                table=table,
                columns=", ".join(others),
            )

    def _ends(self, changes: WindowChanges) -> list[StreamEnd]:
        """Tables that leave: by DDL, by a row that is not understood, or by what no message
        tells."""
        session, work, rules = self._session, self._work, self._rules
        self._altered = read_altered(
            session,
            self._window,
            self._history,
            rules.tables,
            self._ddl,
            data_objects=work.data_objects,
            read_at=work.read_at,
        )
        ddl = [(row.table, row.text) for row in self._ddl]
        unlogged = unlogged_ends(session, work.tables, self._window, work.read_at, ddl)
        found = [
            *changes.ends.values(),
            *(self._followed.ends if self._followed else ()),
            *(
                one
                for one in unlogged
                if one.trouble != "unlogged" or one.table not in rules.ignores_unlogged
            ),
        ]
        ended = {end.table for end in found}
        found += [end for end in self._altered.ends if end.table not in ended]
        first: dict[TableId, StreamEnd] = {}
        for end in sorted(found, key=lambda one: one.scn):
            first.setdefault(end.table, end)
        return list(first.values())

    def _manifest(
        self,
        changes: WindowChanges,
        files: ChangeFiles,
        redo: list[LandedFile],
        transactions: LandedFile,
        left: list[StreamEnd],
        started: float,
        *,
        reader: dict[str, Any],
    ) -> WindowManifest:
        work, followed = self._work, self._followed
        return WindowManifest(
            source=work.source.name,
            window=self._window,
            ordinal=work.record.ordinal,
            mining_low=int(work.record.mining_low),
            redo_files=tuple(redo),
            files_by_table=files.by_table,
            transactions_file=transactions,
            rows_by_table=changes.rows_by_table,
            tables_committed=tuple(sorted(changes.tables_committed)),
            transactions_committed=changes.committed,
            transactions_rolled_back=0,
            transactions_open=0,
            logs=(),
            schemas=tuple(map(self._history.latest, self._history.tables)),
            schema_changes=tuple(followed.changes if followed else ()),
            signals=tuple(followed.signals if followed else ()),
            resetlogs_change=work.source.resetlogs_change,
            seconds=time.monotonic() - started,
            positions=(),
            reader=reader,
            unfit_values={
                table: number for table, number in changes.unfit_values.items() if number
            },
            joined=tuple(StreamBegin(table, low) for table, low in sorted(work.joins.items())),
            left=tuple(left),
            transactions_late=len(changes.late),
            late_scn=min(changes.late, default=None),
            tables_late=tuple(sorted(changes.tables_late)),
            planned=work.planned,
            data_objects={str(table): one for table, one in self._altered.data_objects.items()},
            landed=datetime.now(UTC).isoformat(),
        )


def _log(manifest: WindowManifest, changes: WindowChanges, wording: Wording) -> None:
    window = manifest.window.key
    _LOG.info(
        "window read from %s window=%s rows=%d transactions=%d seconds=%.2f",
        wording.name, window, sum(manifest.rows_by_table.values()),
        manifest.transactions_committed, manifest.seconds,
    )  # fmt: skip
    if changes.went_back and wording.restarted:
        _LOG.warning("%s window=%s restarts=%d", wording.restarted, window, changes.went_back)
    if manifest.late_scn is not None:
        _LOG.warning(
            "late transactions: they belong to earlier windows, this window applies them "
            "window=%s transactions=%d scn=%d tables=%s",
            window, manifest.transactions_late, manifest.late_scn, ",".join(manifest.tables_late),
        )  # fmt: skip
