"""What are LCRs as a stream of committed changes, and where do they come from?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cdc_core.change_reader import WindowWork
from cdc_core.change_stream.files import RecordFiles
from cdc_core.change_stream.form import Batch, DecodedLines, Wording
from cdc_core.config import TableConfig, XStreamConfig
from cdc_core.decode.records import Lines
from cdc_core.errors import DecodeError
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import Column, TableSchema
from cdc_core.xstream.events import LcrEvents
from cdc_core.xstream.lcrs import DECODER, not_an_lcr
from cdc_core.xstream.preflight import check_recordings
from cdc_core.xstream.runs import decoded_lcrs
from cdc_core.xstream.values import LcrRows

_LOG = logging.getLogger(__name__)


class LcrForm:
    """A :class:`~cdc_core.change_stream.form.StreamForm`."""

    wording = Wording(
        name="XStream",
        not_yet="`redolake xstream record` writes recordings there.",
    )
    decoder = DECODER

    def __init__(self, how: XStreamConfig) -> None:
        self._how = how

    def not_a_record(self, reason: str, **facts: object) -> DecodeError:
        """See :meth:`StreamForm.not_a_record`."""
        return not_an_lcr(reason, **facts)

    def decoded(self, data: Lines, decode: Callable[[bytes], Any]) -> DecodedLines:
        """See :meth:`StreamForm.decoded`."""
        return decoded_lcrs(data, decode)

    def reader(self, window: ScnWindow, state: Mapping[str, Any]) -> LcrEvents:
        """See :meth:`StreamForm.reader`."""
        return LcrEvents(window, self._how.database, state)

    def rows(self, schema: TableSchema, columns: Sequence[Column]) -> LcrRows:
        """See :meth:`StreamForm.rows`."""
        return LcrRows(schema, columns, reselects=self._how.reselects_lobs)


class Recordings:
    """A :class:`~cdc_core.change_stream.form.Stream`: LCRs that were recorded into files."""

    def __init__(self, how: XStreamConfig) -> None:
        self._how, self.form = how, LcrForm(how)

    def _files(self) -> RecordFiles:
        how = self._how
        assert how.folder is not None
        return RecordFiles(self.form, how.folder, how.files, how.window_bytes_max)

    def check(self, session: OracleSession, tables: Sequence[TableConfig]) -> list[Finding]:  # noqa: ARG002
        """See :meth:`Stream.check`; the recorded LCRs are looked at, not the outbound server."""
        return check_recordings(self._files, self._how.folder)

    def begins_at(self, low: Scn, *, is_first: bool) -> Scn | None:  # noqa: ARG002
        """See :meth:`Stream.begins_at`."""
        return self._files().begins_at()

    def cuts(self, low: Scn, *_: object) -> list[Scn]:
        """See :meth:`Stream.cuts`: files keep what they have."""
        return self._files().cuts(low)

    @contextmanager
    def open(
        self,
        work: WindowWork,
        landing: LandingStore,  # noqa: ARG002
    ) -> Iterator[Callable[[], Iterable[Batch]]]:
        """See :meth:`Stream.open`."""
        files = self._files()
        start = files.resume(work.reader, work.record.window.scn_low)
        yield lambda: files.blocks(start)
