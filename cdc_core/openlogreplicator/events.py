"""What happened in the messages of a window, up to the one that proves it complete?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cdc_core.errors import ConfigError, LogsNotReadyError, PreflightError
from cdc_core.landing.layout import ORDINAL_SHIFT
from cdc_core.model.scn import ScnWindow
from cdc_core.openlogreplicator.messages import Message, Payload, lacking


class Resume(Protocol):
    """Where the next window's messages begin."""

    def as_json(self) -> Mapping[str, Any]:
        """For the manifest of the window before; not empty."""


class Batch(Protocol):
    """Some messages that follow each other."""

    @property
    def messages(self) -> Sequence[Message]:
        """The messages, at least one."""

    def place(self, at: int) -> Resume:
        """Before the message with that number."""


@dataclass(frozen=True, slots=True)
class Event:
    """One element of a message. ``ordinal`` is its number in the source, ``commit_scn`` that of its
    transaction; 0 for a checkpoint."""

    ordinal: int
    commit_scn: int
    message: Message
    payload: Payload


class WindowEvents:
    """The events of a window.

    Args:
        window: Its bounds.
        ordinal: Its number.
        database: The pluggable database whose messages count; None where there is one only.
    """

    def __init__(self, window: ScnWindow, ordinal: int, database: str | None) -> None:
        self._window, self._base, self._wanted = window, ordinal << ORDINAL_SHIFT, database
        self._database: str | None = None
        self._thread: int | None = None
        self.end: Resume | None = None
        """Behind the events: where the next window's begin."""

    def read(self, batches: Callable[[], Iterable[Batch]]) -> Iterator[Event]:
        """The events from the beginning on, again at each call.

        Raises:
            PreflightError: A message lacks what every change needs.
            LogsNotReadyError: The messages end before they prove the window complete.
        """
        number = self._base
        for batch in batches():
            for at, message in enumerate(batch.messages):
                proved = message.proves
                if proved is not None and proved >= self._window.scn_high:
                    self.end = batch.place(at)
                    return
                counts = self._counts(message)
                for payload in message.payload:
                    number += 1
                    if counts and payload.op != "chkpt":
                        yield Event(number, _commit_scn(message, payload), message, payload)
        raise LogsNotReadyError(
            "OpenLogReplicator's messages do not reach the end of the window yet",
            hint="The window is captured with the next run. If files were removed, copy them back.",
            window=self._window.key,
        )

    def _counts(self, message: Message) -> bool:
        """Is the message of the captured database? All are of one redo thread."""
        if message.rth is not None and message.rth != self._thread:
            if self._thread is not None:
                raise PreflightError(
                    "OpenLogReplicator's messages are of more than one redo thread",
                    hint="What one thread has sent proves nothing of the other: read a cluster through LogMiner.",
                    threads=f"{self._thread}, {message.rth}",
                )
            self._thread = message.rth
        if message.db is None or message.db == self._database:
            return True
        if self._wanted is not None:
            return message.db == self._wanted
        if self._database is not None:
            raise ConfigError(
                "OpenLogReplicator's messages are of more than one database",
                hint="Name the one to capture under capture.database.",
                databases=f"{self._database}, {message.db}",
            )
        self._database = message.db
        return True


def _commit_scn(message: Message, payload: Payload) -> int:
    scn = message.commit_scn
    if scn is None and payload.op == "ddl":
        scn = message.change_scn
    if scn is None:
        raise lacking("e_scn", op=payload.op)
    return scn
