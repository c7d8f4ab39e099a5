"""How does OpenLogReplicator answer what the steps ask of a source?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from cdc_core.capture import positions
from cdc_core.capture.rules import CaptureRules
from cdc_core.capture.times import times_of
from cdc_core.config import OpenLogReplicatorConfig, SourceConfig, TableConfig
from cdc_core.errors import ConfigError, LogsNotReadyError
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.openlogreplicator.files import FilePosition, MessageFiles, Place
from cdc_core.openlogreplicator.messages import FLAGS_LINE
from cdc_core.openlogreplicator.preflight import check_files, check_tables
from cdc_core.openlogreplicator.window import WindowReader
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import OracleSession
from cdc_core.source import NextWindow, Start, WindowWork


class OpenLogReplicatorSource:
    """A :class:`~cdc_core.source.Source` that reads the files of OpenLogReplicator's file writer.

    Windows end where the messages prove that all transactions up to there were sent: at a later
    transaction, or a checkpoint message. Dictionary and existing rows come from Oracle.
    """

    def __init__(self, config: SourceConfig, database: OracleDatabase) -> None:
        assert isinstance(config.capture, OpenLogReplicatorConfig)
        self._config, self._database = config, database
        self._how: OpenLogReplicatorConfig = config.capture

    @cached_property
    def _rules(self) -> CaptureRules:
        return CaptureRules.of(self._config)

    def check(self, tables: Sequence[TableConfig]) -> list[Finding]:
        """See :meth:`Source.check`; the messages are looked at, not OpenLogReplicator's
        configuration."""
        with self._database.session() as session:
            findings = check_tables(session, tables, self._how)
        return [*findings, *check_files(self._how)]

    def read_start(self, tables: Sequence[TableId], *, is_first: bool = False) -> Start:
        """See :meth:`Source.read_start`.

        Raises:
            LogsNotReadyError: A transaction that is open now began before the oldest message: it
                would be read in part.
        """
        files = MessageFiles(self._how)
        begins = files.begins_at()
        with self._database.session() as session:
            start = positions.read_start(session, tables=tables)
        begun = self._config.snapshot.start_scn
        if is_first and begun is not None:
            if begun > start.snapshot_scn:
                raise ConfigError(
                    "snapshot.start_scn lies ahead of the database",
                    hint="Name an SCN that the database has reached.",
                    start_scn=begun,
                    current=start.snapshot_scn,
                )
            reads_from = self._config.snapshot.start_reads_from or begun
            start = replace(start, snapshot_scn=Scn(begun), mining_low=Scn(reads_from - 1))
        if begins is None or begins > start.mining_low:
            raise LogsNotReadyError(
                "OpenLogReplicator's messages do not begin before every transaction that is open now",
                hint=f"Let it run until transactions from before its start have ended; with {FLAGS_LINE} of its source it sends "
                "checkpoints, which tell that it runs. Then start the snapshot again.",
                begins=begins,
                open_since=start.mining_low,
            )
        return start

    def next_windows(
        self,
        low: Scn,
        *,
        read_from: Scn,  # noqa: ARG002 - transactions come whole
        until: Scn | None,
    ) -> list[NextWindow]:
        """See :meth:`Source.next_windows`."""
        ends = MessageFiles(self._how).cuts(low)
        if until is not None:
            ends = [end for end in ends if end < until] + ([until] if ends[-1:] >= [until] else [])
        if not ends:
            return []
        windows = [ScnWindow(*pair) for pair in zip([low, *ends[:-1]], ends, strict=True)]
        with self._database.session() as session:
            times = times_of(session, ends)
        return [NextWindow(window, ended) for window, ended in zip(windows, times, strict=True)]

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        """See :meth:`Source.capture_window`."""
        files = MessageFiles(self._how)
        start = self._start(files, work)

        def capture(session: OracleSession) -> None:
            WindowReader(
                session, work, self._rules, self._how, lambda: files.blocks(start), landing
            ).capture()

        self._database.read(capture)

    def _start(self, files: MessageFiles, work: WindowWork) -> FilePosition:
        if work.reader:
            return files.resume(Place(**work.reader))
        return files.start(work.record.window.scn_low)
