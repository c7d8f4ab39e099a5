"""Where do signals come from?

A channel is a place that senders write to and Redolake reads. What it gives is kept in the metadata
store first; from there each signal is acted on once. Only then does the channel forget it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from cdc_core.errors import LandingDamagedError, SignalsUnavailableError
from cdc_core.landing.layout import signals_folder
from cdc_core.landing.manifest import MANIFEST_NAME
from cdc_core.landing.store import LandingStore
from cdc_core.model.scn import Scn
from cdc_core.model.signals import SIGNAL_TYPE_MAX, Signal
from cdc_core.signals.data import refusal_of_id, shortened_id
from cdc_core.state.texts import storable

FILE_CHANNEL = "file"
LANDING_CHANNEL = "landing"
_UNFINISHED_LINE_SECONDS = 10
"""How long a last line without its line break may still be in the making."""


class KnownSignals(Protocol):
    """What a channel may ask of the metadata store, and note there."""

    def find(self) -> Sequence[Signal]:
        """All signals of the source."""

    def table_scn(self, name: str) -> Scn | None:
        """The SCN from which on rows of a signal table are signals; None before the first look."""

    def begin_table(self, name: str, scn: Scn) -> None:
        """Note the first look."""

    def offsets(self, topic: str) -> Mapping[int, int]:
        """Of each partition of a topic, the offset of the first record that was not read; none
        before the first look."""

    def keep_offsets(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Note how far partitions were read."""


class Channel(Protocol):
    """A place that signals come from.

    Whoever reads keeps what :meth:`read` gives, and calls :meth:`acknowledge` afterwards. Without
    that, the next channel object for the same place, in this process or another one, reads the same
    signals with the same ids again: nothing is lost, and the ids tell what is known.
    """

    @property
    def name(self) -> str:
        """Its name under ``signals.channels``, which its signals carry."""

    def read(self, known: KnownSignals) -> Sequence[Signal]:
        """Signals that may be new, in their order; none where there is nothing.

        What cannot be a signal is one that is rejected, with the reason, so that it stops nothing.
        No reason and no id holds text of a malformed signal.

        Raises:
            SignalsUnavailableError: The place cannot be reached.
        """

    def acknowledge(self) -> None:
        """Forget what was read. Does nothing where nothing was read; may be called twice. Raises as
        :meth:`read`."""


class FileChannel:
    """Lines of JSON in a file, as Debezium's file channel has them:
    ``{"id": …, "type": …, "data": {…}}``.

    The file is renamed before it is read, so a sender who opens it anew for each line loses
    nothing. It need not exist.
    """

    name = FILE_CHANNEL

    def __init__(self, source: str, path: Path) -> None:
        self._source = source
        self._path = path
        self._read: list[Path] = []

    def read(self, known: KnownSignals) -> list[Signal]:
        """The lines of the file, and of files that an earlier reader did not acknowledge."""
        del known
        with self._at_work():
            self._take()
            self._read = sorted(self._path.parent.glob(f"{escape(self._path.name)}.taken-*"))
            return [one for taken in self._read for one in self._signals(taken)]

    def acknowledge(self) -> None:
        """Remove what was read."""
        with self._at_work():
            for path in self._read:
                path.unlink(missing_ok=True)
        self._read = []

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SignalsUnavailableError(
                "the file of signals cannot be read",
                hint="Let this user read, rename and remove the file that signals.file names.",
                path=self._path,
                reason=error.strerror,
            ) from error

    def _take(self) -> None:
        if not self._path.is_file() or not (content := self._path.read_bytes()).strip():
            return
        age = time.time() - self._path.stat().st_mtime
        if not content.endswith(b"\n") and age < _UNFINISHED_LINE_SECONDS:
            last = content.rsplit(b"\n", 1)[-1]
            if _object(last) is None:
                return
        token = f"{time.time_ns():020d}-{uuid4().hex[:12]}"  # read in the order of their names
        self._path.replace(self._path.with_name(f"{self._path.name}.taken-{token}"))

    def _signals(self, path: Path) -> list[Signal]:
        token = path.name.rpartition("-")[2]
        lines = path.read_bytes().split(b"\n")
        return [
            signal_of_json(self._source, self.name, line, f"{token}-{number}")
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]


class LandingChannel:
    """Objects beside landing, on S3 as in a folder: ``<source>/signals/<id>/manifest.json``, each
    with ``{"type": …, "data": {…}}``."""

    name = LANDING_CHANNEL

    def __init__(self, source: str, landing: LandingStore) -> None:
        self._source = source
        self._landing = landing
        self._read: list[str] = []

    def read(self, known: KnownSignals) -> list[Signal]:
        """All objects, in the order of their folders' names."""
        del known
        found = []
        self._read = []
        for folder in self._landing.list_folders(signals_folder(self._source)):
            try:
                content = self._landing.read(folder, MANIFEST_NAME)
            except LandingDamagedError:  # another reader has acknowledged it
                continue
            self._read.append(folder)
            name = folder.rpartition("/")[2]
            found.append(signal_of_json(self._source, self.name, content, name))
        return found

    def acknowledge(self) -> None:
        """Remove what was read."""
        for folder in self._read:
            self._landing.remove(folder)
        self._read = []


def signal_from(
    source: str, channel: str, signal_id: str, kind: str, data: Any, *, refusal: str | None = None
) -> Signal:
    """A signal as a channel has it, whatever is in it: what cannot be one is a rejected one, under
    an id that the store can hold.

    Args:
        source: The source.
        channel: The channel's name.
        signal_id: The sender's id.
        kind: The sender's type.
        data: The data, already read from JSON.
        refusal: Why it cannot be a signal, if that is known.
    """
    refusal = refusal or refusal_of_id(signal_id)
    if len(kind) > SIGNAL_TYPE_MAX:
        refusal = refusal or f"its type has more than {SIGNAL_TYPE_MAX} characters"
    if not isinstance(data, dict):
        refusal = refusal or "its data is not a JSON object"
    if refusal is None:
        return Signal(id=signal_id, source=source, type=kind, data=data, channel=channel)
    return Signal(
        id=signal_id if refusal_of_id(signal_id) is None else shortened_id(signal_id, signal_id),
        source=source,
        type=storable(kind)[:SIGNAL_TYPE_MAX],
        data={},
        channel=channel,
        state="rejected",
        reason=refusal,
    )


def used_before(signal: Signal) -> Signal:
    """The signal as a rejected one under an id of its own, since its id is another signal's."""
    content = json.dumps([signal.id, signal.type, signal.data], sort_keys=True)
    return Signal(
        id=shortened_id(signal.id, content),
        source=signal.source,
        type=signal.type,
        data=signal.data,
        channel=signal.channel,
        state="rejected",
        reason="its id was used for another signal before; send it under a new id",
    )


def json_data(text: str | None) -> Any:
    """The data of a signal from JSON text; None where it is none."""
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None


def signal_of_json(source: str, channel: str, content: bytes, own_id: str) -> Signal:
    """A signal from the JSON ``{"id": …, "type": …, "data": {…}}``, as :func:`signal_from` gives
    it; ``own_id`` is the id of one that has none."""
    return _from_object(source, channel, _object(content), own_id)


def _object(content: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _from_object(source: str, channel: str, found: Mapping[str, Any] | None, own_id: str) -> Signal:
    if found is None:
        return signal_from(source, channel, own_id, "", {}, refusal="it is no JSON object in UTF-8")
    data = found.get("data")
    if isinstance(data, str):
        data = json_data(data)
    signal_id = found.get("id")
    return signal_from(
        source,
        channel,
        own_id if signal_id in (None, "") else str(signal_id),
        str(found.get("type") or ""),
        {} if "data" not in found else data,
    )
