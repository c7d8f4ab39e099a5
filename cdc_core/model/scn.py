"""What is an SCN, a window of SCNs, and how are windows written as text?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NewType

from cdc_core.errors import PartitionKeyError

Scn = NewType("Scn", int)

SCN_MAX = 2**63 - 1
"""Largest SCN that landing files and Delta can hold (a signed 64-bit integer)."""

OPEN_ENDED_FROM = 281_474_976_710_655
"""From here on V$LOG.NEXT_CHANGE# means "not closed yet" (48 bits all set, and the later 64-bit
form)."""

SLACK_SECONDS = 10
"""What a time that Oracle gives for an SCN, or a DDL, may be off by: about three seconds were
measured, others allow for ten."""

PARTITION_KEY_MAX = 30
"""Characters of a partition key that Dagster's lists show whole; they cut longer ones in the
middle."""

_KEY_TIME = "%Y-%m-%dT%H:%M:%SZ"
_KEY_TIME_SHORT = "%Y%m%d-%H%M%S"


def scn_text(scn: int) -> str:
    """Print an SCN with fixed width, so that text order is number order."""
    return f"{scn:020d}"


@dataclass(frozen=True, slots=True, order=True)
class ScnWindow:
    """A range of commit SCNs: ``scn_low < commit_scn <= scn_high``.

    The unit of work of the log path: one Dagster partition, one set of landing files, one Delta
    commit per table.
    """

    scn_low: Scn
    scn_high: Scn

    def __post_init__(self) -> None:
        if not 0 <= self.scn_low < self.scn_high <= SCN_MAX:
            raise ValueError(f"window ({self.scn_low}, {self.scn_high}] is empty or out of range")

    @property
    def key(self) -> str:
        """The window's name in messages and on the command line, ``<low>-<high>``."""
        return f"{self.scn_low}-{self.scn_high}"

    @property
    def folder(self) -> str:
        """The landing folder, ``<low>-<high>`` with fixed width, so that a listing is in SCN
        order."""
        return f"{scn_text(self.scn_low)}-{scn_text(self.scn_high)}"

    def partition_key(self, ended: datetime, *, after: str | None = None) -> str:
        """The Dagster partition key, ``<UTC time of the upper end>_<upper end>``: people find a
        window by its time.

        At most :data:`PARTITION_KEY_MAX` characters for SCNs up to 14 digits; from 10 digits on the
        time loses its punctuation. Keys sort as windows do: one that would sort before ``after``,
        the key of the window before, has that one's time, or the next second.
        """
        key = self._key_at(ended.astimezone(UTC))
        if after is None or key > after or "_" not in after:
            return key
        before = _key_time(after)
        key = self._key_at(before)
        return key if key > after else self._key_at(before + timedelta(seconds=1))

    def _key_at(self, moment: datetime) -> str:
        long = f"{moment:{_KEY_TIME}}_{self.scn_high}"
        return (
            long
            if len(long) <= PARTITION_KEY_MAX
            else f"{moment:{_KEY_TIME_SHORT}}_{self.scn_high}"
        )

    @classmethod
    def parse(cls, text: str) -> ScnWindow:
        """Read what :attr:`key` or :attr:`folder` printed, with a time before it or without.

        What :meth:`partition_key` prints says the upper end alone: :func:`window_end` reads it, and
        the metadata store knows the window.

        Raises:
            PartitionKeyError: The text is not a window.
        """
        low, dash, high = text.rpartition("_")[2].partition("-")
        if not (dash and low.isascii() and low.isdigit() and high.isascii() and high.isdigit()):
            raise PartitionKeyError(
                "this is not a window key",
                hint="Write two SCNs as <scn_low>-<scn_high>, for example 1000-2000.",
                key=text[:80],
            )
        try:
            return cls(Scn(int(low)), Scn(int(high)))
        except ValueError as error:
            raise PartitionKeyError(
                str(error), hint="scn_low must be less than scn_high.", key=text[:80]
            ) from error


def window_end(text: str) -> Scn:
    """The upper end of the window that a partition key, or the window's name, is of.

    Raises:
        PartitionKeyError: The text is neither.
    """
    before, mark, last = text.rpartition("_")
    if not (before and mark and last.isascii() and last.isdigit() and int(last) <= SCN_MAX):
        return ScnWindow.parse(text).scn_high
    return Scn(int(last))


def _key_time(key: str) -> datetime:
    """The time with which a partition key begins."""
    text = key.partition("_")[0]
    written = _KEY_TIME if text.endswith("Z") else _KEY_TIME_SHORT
    return datetime.strptime(text, written).replace(tzinfo=UTC)
