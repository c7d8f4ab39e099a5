"""What are OpenLogReplicator's messages as a stream of committed changes, and where do they come
from?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cdc_core.change_reader import Start, WindowWork
from cdc_core.change_stream.files import RecordFiles
from cdc_core.change_stream.form import Batch, DecodedLines, Wording
from cdc_core.change_stream.spool import spooled
from cdc_core.config import OpenLogReplicatorConfig, TableConfig
from cdc_core.decode.records import Lines
from cdc_core.errors import DecodeError, RedoUnavailableError
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.openlogreplicator.events import MessageEvents, decoded_messages
from cdc_core.openlogreplicator.messages import DECODER, FLAGS_LINE, not_a_message
from cdc_core.openlogreplicator.network import NetworkMessages
from cdc_core.openlogreplicator.preflight import check_floats, check_messages, check_server
from cdc_core.openlogreplicator.values import RowReader
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import Column, TableSchema

_WORDING = Wording(
    name="OpenLogReplicator",
    keeps_files=", and set `append: 1` in OpenLogReplicator's file writer",
    not_yet="OpenLogReplicator's log says what it does.",
    columns='Set `"flags": 4128` of its source, so that it sends DDL, and let it read its dictionary again.',
    whole="Its format must not have bits 4 or 8 of `message`. Otherwise set `scn` in the checkpoint file of OpenLogReplicator "
    "below this transaction, `idx` to 0, and start it again: Redolake leaves out what it has.",
    restarted="OpenLogReplicator was restarted: transactions that it sent again count once; one that was open then may be missing "
    "from its files, see how-to/openlogreplicator.md",
    tells_that_it_runs=f"; with {FLAGS_LINE} of its source it sends checkpoints, which tell that it runs",
)


class MessageForm:
    """A :class:`~cdc_core.change_stream.form.StreamForm`."""

    wording = _WORDING
    decoder = DECODER

    def __init__(self, how: OpenLogReplicatorConfig) -> None:
        self._how = how

    def not_a_record(self, reason: str, **facts: object) -> DecodeError:
        """See :meth:`StreamForm.not_a_record`."""
        return not_a_message(reason, **facts)

    def decoded(self, data: Lines, decode: Callable[[bytes], Any]) -> DecodedLines:
        """See :meth:`StreamForm.decoded`."""
        return decoded_messages(data, decode)

    def reader(self, window: ScnWindow, state: Mapping[str, Any]) -> MessageEvents:  # noqa: ARG002
        """See :meth:`StreamForm.reader`."""
        return MessageEvents(self._how.database, state)

    def rows(self, schema: TableSchema, columns: Sequence[Column]) -> RowReader:
        """See :meth:`StreamForm.rows`."""
        return RowReader(schema, columns, self._how)


class MessageStream:
    """A :class:`~cdc_core.change_stream.form.Stream`: what OpenLogReplicator writes into files, or
    sends to its network client. Files keep everything; the network writer forgets what is
    confirmed."""

    def __init__(self, how: OpenLogReplicatorConfig) -> None:
        self._how, self.form = how, MessageForm(how)

    @property
    def _network(self) -> NetworkMessages | None:
        return None if self._how.host is None else NetworkMessages(self._how)

    def _files(self) -> RecordFiles:
        how = self._how
        assert how.folder is not None
        return RecordFiles(self.form, how.folder, how.files, how.window_bytes_max)

    def check(self, session: OracleSession, tables: Sequence[TableConfig]) -> list[Finding]:
        """See :meth:`Stream.check`; the messages are looked at, not OpenLogReplicator's
        configuration."""
        found = [*check_floats(session, tables, self._how)]
        if network := self._network:
            return [*found, *check_server(network)]
        return [*found, *check_messages(self._files, self._how.folder)]

    def begins_at(self, low: Scn, *, is_first: bool) -> Scn | None:
        """See :meth:`Stream.begins_at`."""
        if network := self._network:
            return network.begins_at(low, may_start=is_first)
        return self._files().begins_at()

    def cuts(
        self, low: Scn, present: Callable[[], Start], applied: Callable[[], Scn] | None
    ) -> list[Scn]:
        """See :meth:`Stream.cuts`: what is applied is confirmed to the network writer."""
        if network := self._network:
            return network.cuts(low, present(), None if applied is None else applied())
        return self._files().cuts(low)

    @contextmanager
    def open(
        self, work: WindowWork, landing: LandingStore
    ) -> Iterator[Callable[[], Iterable[Batch]]]:
        """See :meth:`Stream.open`."""
        window = work.record.window
        if network := self._network:
            if work.record.state != "planned":
                raise RedoUnavailableError(
                    "OpenLogReplicator's network writer discards applied messages, so that the window cannot be read again",
                    hint="`redolake table resnapshot OWNER.TABLE` reads a table again from Oracle.",
                    window=window.key,
                )
            sent = network.sent(window.scn_low)
            with spooled(self.form, network.source, sent, window, landing) as batches:
                yield batches
            return
        files = self._files()
        start = files.resume(work.reader, window.scn_low)
        yield lambda: files.blocks(start)
