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
"""From here on V$LOG.NEXT_CHANGE# means "not closed yet" (48 bits all set, and the later 64-bit form)."""

SLACK_SECONDS = 10
"""What a time that Oracle gives for an SCN, or a DDL, may be off by: about three seconds were measured, others allow for ten."""

_KEY_TIME = "%Y-%m-%dT%H:%M:%SZ"


def scn_text(scn: int) -> str:
    """Print an SCN with fixed width, so that text order is number order."""
    return f"{scn:020d}"


@dataclass(frozen=True, slots=True, order=True)
class ScnWindow:
    """A range of commit SCNs: ``scn_low < commit_scn <= scn_high``.

    The unit of work of the log path: one Dagster partition, one set of landing files, one Delta commit per table.
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
        """The landing folder, ``<low>-<high>`` with fixed width, so that a listing is in SCN order."""
        return f"{scn_text(self.scn_low)}-{scn_text(self.scn_high)}"

    def partition_key(self, ended: datetime, *, after: str | None = None) -> str:
        """The Dagster partition key, ``<UTC time of the upper end>_<low>-<high>``: people find a window by its time.

        Not padded: the UI cuts long keys in the middle. Keys sort as windows do: one that would sort before ``after``, the
        key of the window before, has that one's time, or the next second.
        """
        key = f"{ended.astimezone(UTC):{_KEY_TIME}}_{self.key}"
        if after is None or key > after or "_" not in after:
            return key
        before = datetime.strptime(after.partition("_")[0], _KEY_TIME).replace(tzinfo=UTC)
        key = f"{before:{_KEY_TIME}}_{self.key}"
        return key if key > after else f"{before + timedelta(seconds=1):{_KEY_TIME}}_{self.key}"

    @classmethod
    def parse(cls, text: str) -> ScnWindow:
        """Read what :attr:`key`, :attr:`folder` or :meth:`partition_key` printed.

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
