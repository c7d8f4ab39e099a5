"""How can what a server sends once be read as often as one likes?

It waits in a file without a name, up to the record that proves a window complete. The server sends
it again to whoever captures the window again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from cdc_core.change_stream.form import Record, StreamForm
from cdc_core.errors import LogsNotReadyError
from cdc_core.landing.store import LandingStore
from cdc_core.model.scn import ScnWindow

_BATCH_BYTES = 4 * 1024**2

Sent = Generator[tuple[Record, bytes]]
"""Records and their lines, as they come; closing it ends the connection."""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """A window ends in what a server sends, which sends it again: nothing more is to be known."""

    server: str

    def as_json(self) -> dict[str, str]:
        """For a window's manifest."""
        return {"server": self.server}


@dataclass(frozen=True, slots=True)
class SentBatch:
    """Some records of a server."""

    records: Sequence[Any]
    server: str

    def place(self, at: int) -> ServerPlace:  # noqa: ARG002 - the server sends all again
        """See :meth:`Batch.place`."""
        return ServerPlace(self.server)


@contextmanager
def spooled(
    form: StreamForm, server: str, sent: Sent, window: ScnWindow, landing: LandingStore
) -> Iterator[Callable[[], Iterator[SentBatch]]]:
    """What a server sends, up to the record that proves a window complete, again at each call.

    Raises:
        LogsNotReadyError: It does not send that one.
    """
    with closing(landing.scratch()) as file:
        with closing(sent):
            for record, line in sent:
                file.write(line)
                if record.proves is not None and record.proves >= window.scn_high:
                    break
            else:
                raise LogsNotReadyError(
                    f"{form.wording.name}'s records do not reach the end of the window yet",
                    hint="The window is captured with the next run.",
                    window=window.key,
                )
        yield partial(_batches, form, server, file)


def _batches(form: StreamForm, server: str, file: BinaryIO) -> Iterator[SentBatch]:
    at = 0
    while True:
        file.seek(at)
        lines = file.read(_BATCH_BYTES) + file.readline()
        if not lines:
            return
        at = file.tell()
        yield SentBatch(form.decoded(lines, form.decoder.decode).records, server)
