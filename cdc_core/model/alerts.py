"""What must somebody look at, and how urgent is it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AlertKind = Literal["oracle", "window", "table", "quarantine", "lag", "archived_logs", "lease"]
"""What an alert is about: the database does not answer; a window cannot be carried; a table left
the stream; rows could not be decoded; a table is late; redo will be deleted before it is read; a
process holds work and is dead, or two carry one source."""

ALERT_KINDS: tuple[AlertKind, ...] = (
    "oracle",
    "window",
    "archived_logs",
    "lease",
    "table",
    "quarantine",
    "lag",
)
OF_SOURCE: tuple[AlertKind, ...] = ALERT_KINDS[:4]
"""Kinds that are about the whole source; the others are about one table each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One of them. ``is_error`` where data is late or may be lost until somebody acts, else a
    warning. ``what`` is a sentence without values of rows; ``what_to_do`` names a command."""

    kind: AlertKind
    what: str
    what_to_do: str
    table: str | None = None
    is_error: bool = True

    @property
    def key(self) -> str:
        """The same for the same trouble, whatever numbers its sentence has."""
        return self.kind if self.table is None else f"{self.kind}:{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHeadroom:
    """How long archived logs that are still to be read stay, if Oracle goes on deleting as it did.

    ``hours`` lie between the oldest archived log that Oracle still has and the one that Redolake
    reads next; None where it has deleted none so far, 0 where the one that is needed is gone.
    ``logs`` and ``bytes`` of redo are still to be read.
    """

    hours: float | None
    logs: int
    bytes: int
