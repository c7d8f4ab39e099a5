"""What are an outbound server's LCRs as a stream of committed changes?

The server keeps what is above its processed low watermark, and gives it to whoever attaches. So
nothing of it is kept here between two windows: each window is received from its lower end on. The
watermark moves behind the Delta commits only.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from cdc_core.change_reader import Start, WindowWork
from cdc_core.change_stream.files import RecordFiles
from cdc_core.change_stream.folders import make_folder, new_file
from cdc_core.change_stream.form import Batch
from cdc_core.change_stream.spool import spooled
from cdc_core.config import OracleConfig, TableConfig, XStreamConfig
from cdc_core.errors import RedoUnavailableError
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.database import OracleDatabase, current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.xstream.client import LcrSource, OciSource
from cdc_core.xstream.lcrs import Lcr, line_of
from cdc_core.xstream.preflight import check_server, outbound_server
from cdc_core.xstream.stream import LcrForm

_EMPTY_CALLS_MAX = 3


class OutboundServer:
    """A :class:`~cdc_core.change_stream.form.Stream`: the LCRs of one outbound server."""

    def __init__(self, how: XStreamConfig, oracle: OracleConfig, database: OracleDatabase) -> None:
        assert how.server is not None
        self._how, self._oracle, self._name = how, oracle, how.server
        self._database = database
        self.form = LcrForm(how)

    def check(self, session: OracleSession, tables: Sequence[TableConfig]) -> list[Finding]:  # noqa: ARG002
        """See :meth:`Stream.check`."""
        return check_server(session, self._how)

    def begins_at(self, low: Scn, *, is_first: bool) -> Scn | None:  # noqa: ARG002
        """See :meth:`Stream.begins_at`: of a transaction that commits above the watermark, the
        server keeps all, wherever it began."""
        with self._database.session() as session:
            return outbound_server(session, self._name).begins

    def cuts(
        self, low: Scn, present: Callable[[], Start], applied: Callable[[], Scn] | None
    ) -> list[Scn]:
        """See :meth:`Stream.cuts`: about every ``window_bytes_max`` bytes. The processed low
        watermark moves to what is applied. Where the server has let go of LCRs above ``low``,
        whoever captures the first window finds the gap."""
        high, processed = present().snapshot_scn, self._processed()
        rising, received, last = [low], 0, low
        with self._attached(max(low, processed or low)) as source:
            if applied is not None and (processed or 0) < (done := applied()) - 1:
                source.set_low_watermark(done)
            for lcr, line in lines_of(source, high):
                received += len(line)
                if lcr.proves is not None and lcr.proves > last:
                    last = Scn(lcr.proves)
                    if received >= self._how.window_bytes_max:
                        rising.append(last)
                        received = 0
        return [*rising[1:], *([last] if last > rising[-1] else [])]

    @contextmanager
    def open(
        self, work: WindowWork, landing: LandingStore
    ) -> Iterator[Callable[[], Iterable[Batch]]]:
        """See :meth:`Stream.open`.

        Raises:
            LogsNotReadyError: The server does not give what proves the window complete.
        """
        window = work.record.window
        if work.record.state != "planned":
            raise RedoUnavailableError(
                "an outbound server discards applied LCRs, so that the window cannot be read again",
                hint="`redolake table resnapshot OWNER.TABLE` reads a table again from Oracle.",
                window=window.key,
            )
        sent = self._sent(window)
        with spooled(self.form, self._name, sent, window, landing) as batches:
            yield batches

    def record(self, folder: str, *, low: Scn | None) -> int:
        """See :meth:`Recorder.record`: in the form of :mod:`cdc_core.xstream.lcrs`."""
        make_folder(folder)
        recorded = RecordFiles(self.form, folder, "*.jsonl", self._how.window_bytes_max)
        with self._database.session() as session:
            now = current_scn(session)
        begins = Scn(low or recorded.newest_proof() or now)
        name = f"lcrs_{recorded.newest_number() + 1:06d}.jsonl"
        count = 0
        with self._attached(begins) as source:
            start = Lcr(
                kind="start",
                position=source.position_of(begins).hex(),
                scn=begins,
                attributes={"RECORDING": uuid.uuid4().hex},
            )
            with new_file(folder, name, line_of(start)) as file:
                for _, line in lines_of(source, now):
                    file.write(line)
                    count += 1
        return count

    def _sent(self, window: ScnWindow) -> Generator[tuple[Lcr, bytes]]:
        with self._attached(window.scn_low) as source:
            yield from lines_of(source, window.scn_high)

    def _processed(self) -> Scn | None:
        with self._database.session() as session:
            return outbound_server(session, self._name).processed

    @contextmanager
    def _attached(self, low: Scn) -> Iterator[OciSource]:
        """The server above an SCN.

        Raises:
            RedoUnavailableError: It has let go of LCRs above it.
        """
        processed = self._processed()
        if processed is not None and processed > low:
            raise RedoUnavailableError(
                "the outbound server has discarded LCRs above the SCN that is read next: another client took them",
                hint="One outbound server serves one client. `redolake source skip-gap` continues after the gap.",
                scn=low,
                processed=processed,
            )
        with OciSource(self._how, self._oracle, self._database.logging_in) as source:
            source.attach(low)
            yield source
            source.detach()


def lines_of(source: LcrSource, high: int) -> Iterator[tuple[Lcr, bytes]]:
    """LCRs and their lines, up to the first that proves everything up to an SCN; fewer, if the
    server has nothing more, several calls in a row."""
    empty = 0
    while empty < _EMPTY_CALLS_MAX:
        empty += 1
        for lcr in source.receive():
            if lcr.kind != "low":
                empty = 0
            yield lcr, line_of(lcr)
            if lcr.proves is not None and lcr.proves >= high:
                return
