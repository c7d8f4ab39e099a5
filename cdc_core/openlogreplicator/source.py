"""How does OpenLogReplicator answer what the steps ask of a source?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property

from cdc_core.capture import positions
from cdc_core.capture.rules import CaptureRules
from cdc_core.config import OpenLogReplicatorConfig, SourceConfig, TableConfig
from cdc_core.errors import ConfigError, LogsNotReadyError, RedoUnavailableError
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.openlogreplicator.events import Batch
from cdc_core.openlogreplicator.files import MessageFiles, Place
from cdc_core.openlogreplicator.messages import FLAGS_LINE
from cdc_core.openlogreplicator.network import NetworkMessages
from cdc_core.openlogreplicator.preflight import check_files, check_server, check_tables
from cdc_core.openlogreplicator.window import WindowReader
from cdc_core.oracle.database import OracleDatabase, current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.oracle.times import times_of
from cdc_core.source import NextWindow, Start, WindowWork


class OpenLogReplicatorSource:
    """A :class:`~cdc_core.source.Source` that reads what OpenLogReplicator writes into files, or
    sends to its network client.

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

    @property
    def _is_network(self) -> bool:
        return self._how.host is not None

    def check(self, tables: Sequence[TableConfig]) -> list[Finding]:
        """See :meth:`Source.check`; the messages are looked at, not OpenLogReplicator's
        configuration."""
        with self._database.session() as session:
            findings = check_tables(session, tables, self._how)
        looked = check_server if self._is_network else check_files
        return [*findings, *looked(self._how)]

    def read_start(self, tables: Sequence[TableId], *, is_first: bool = False) -> Start:
        """See :meth:`Source.read_start`. A network writer that has not begun begins now.

        Raises:
            LogsNotReadyError: A transaction that is open now began before the oldest message: it
                would be read in part.
        """
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
        begins = self._begins_at(start.mining_low, is_first=is_first)
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
        ends = self._cuts(low)
        if until is not None:
            ends = [end for end in ends if end < until] + ([until] if ends[-1:] >= [until] else [])
        if not ends:
            return []
        windows = [ScnWindow(*pair) for pair in zip([low, *ends[:-1]], ends, strict=True)]
        with self._database.session() as session:
            times = times_of(session, ends)
        return [NextWindow(window, ended) for window, ended in zip(windows, times, strict=True)]

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        """See :meth:`Source.capture_window`.

        Raises:
            RedoUnavailableError: The network writer may have forgotten the window's messages.
        """
        if self._is_network and work.record.state != "planned":
            raise RedoUnavailableError(
                "OpenLogReplicator's network writer forgets messages that are applied, so that the window cannot be read again",
                hint="`redolake table resnapshot OWNER.TABLE` reads a table again from Oracle.",
                window=work.record.window.key,
            )
        with self._messages(work, landing) as batches:

            def capture(session: OracleSession) -> None:
                WindowReader(session, work, self._rules, self._how, batches, landing).capture()

            self._database.read(capture)

    def release(self, applied: Scn) -> None:
        """See :meth:`Releaser.release`: what is applied is confirmed to the network writer."""
        if self._is_network:
            with self._database.session() as session:
                NetworkMessages(self._how).confirm(session, applied)

    def _begins_at(self, low: Scn, *, is_first: bool) -> Scn | None:
        if self._is_network:
            return NetworkMessages(self._how).begins_at(low, may_start=is_first)
        return MessageFiles(self._how).begins_at()

    def _cuts(self, low: Scn) -> list[Scn]:
        if not self._is_network:
            return MessageFiles(self._how).cuts(low)
        with self._database.session() as session:
            enough = current_scn(session)
        return NetworkMessages(self._how).cuts(low, enough)

    @contextmanager
    def _messages(
        self, work: WindowWork, landing: LandingStore
    ) -> Iterator[Callable[[], Iterable[Batch]]]:
        """Gives the messages of a window, from the first on at each call."""
        window = work.record.window
        if self._is_network:
            with closing(NetworkMessages(self._how).spool(window, landing)) as spool:
                yield spool.batches
            return
        files = MessageFiles(self._how)
        start = files.resume(Place(**work.reader)) if work.reader else files.start(window.scn_low)
        yield lambda: files.blocks(start)
