"""How does a stream of committed changes answer what the steps ask of a source?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from cdc_core.capture.logs import positions
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.change_reader import NextWindow, Start, WindowWork
from cdc_core.change_stream.form import RecordedStream, Stream
from cdc_core.change_stream.preflight import check_tables
from cdc_core.change_stream.window import WindowReader
from cdc_core.config import SourceConfig, TableConfig
from cdc_core.errors import ConfigError, LogsNotReadyError
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import OracleSession
from cdc_core.oracle.times import times_of


class StreamReader:
    """A :class:`~cdc_core.change_reader.ChangeReader` that reads a stream of committed changes.

    Windows end where the records prove that all transactions up to there came. Dictionary and
    existing rows come from Oracle.
    """

    def __init__(self, config: SourceConfig, database: OracleDatabase, stream: Stream) -> None:
        self._config, self._database, self._stream = config, database, stream

    @cached_property
    def _rules(self) -> CaptureRules:
        return CaptureRules.of(self._config)

    def check(self, tables: Sequence[TableConfig]) -> list[Finding]:
        """See :meth:`ChangeReader.check`."""
        with self._database.session() as session:
            return [*check_tables(session, tables), *self._stream.check(session, tables)]

    def read_start(self, tables: Sequence[TableId], *, is_first: bool = False) -> Start:
        """See :meth:`ChangeReader.read_start`. A stream that has not begun begins now.

        Raises:
            LogsNotReadyError: A transaction that is open now began before the oldest record: it
                would be read in part.
        """
        with self._database.session() as session:
            start = positions.read_start(session, tables=tables)
        begun = self._config.snapshot.start_scn
        if is_first and begun is not None:
            if begun > start.snapshot_scn:
                raise ConfigError(
                    "snapshot.start_scn is ahead of the database",
                    hint="Name an SCN that the database has reached.",
                    start_scn=begun,
                    current=start.snapshot_scn,
                )
            reads_from = self._config.snapshot.start_reads_from or begun
            start = replace(start, snapshot_scn=Scn(begun), mining_low=Scn(reads_from - 1))
        begins = self._stream.begins_at(start.mining_low, is_first=is_first)
        wording = self._stream.form.wording
        if begins is None or begins > start.mining_low:
            raise LogsNotReadyError(
                f"{wording.name}'s records do not begin before every transaction that is open now",
                hint="Let it run until transactions from before its start have ended"
                f"{wording.tells_that_it_runs}. Then start the snapshot again.",
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
        applied: Callable[[], Scn] | None = None,
    ) -> list[NextWindow]:
        """See :meth:`ChangeReader.next_windows`."""
        ends = self._stream.cuts(low, self._present, applied)
        if until is not None:
            ends = [end for end in ends if end < until] + ([until] if ends[-1:] >= [until] else [])
        if not ends:
            return []
        windows = [ScnWindow(*pair) for pair in zip([low, *ends[:-1]], ends, strict=True)]
        with self._database.session() as session:
            times = times_of(session, ends)
        return [NextWindow(window, ended) for window, ended in zip(windows, times, strict=True)]

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        """See :meth:`ChangeReader.capture_window`."""
        with self._stream.open(work, landing) as batches:

            def capture(session: OracleSession) -> None:
                form = self._stream.form
                WindowReader(session, work, self._rules, form, batches, landing).capture()

            self._database.read(capture)

    def _present(self) -> Start:
        with self._database.session() as session:
            return positions.read_start(session)


class RecordedStreamReader(StreamReader):
    """One whose stream writes what it receives into files: a
    :class:`~cdc_core.change_reader.Recorder`."""

    def __init__(
        self, config: SourceConfig, database: OracleDatabase, stream: RecordedStream
    ) -> None:
        super().__init__(config, database, stream)
        self._recorded = stream

    def record(self, folder: str, *, low: Scn | None) -> int:
        """See :meth:`Recorder.record`."""
        return self._recorded.record(folder, low=low)
