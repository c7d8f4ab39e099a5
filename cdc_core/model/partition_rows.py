"""Which rows of a table are a partition's?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """The rows of a partition: those whose ``column`` (by what it is stored as) is at or above
    ``low`` and below ``high`` (None: without bound), or is one of ``listed``, or none of
    ``unlisted``; and those where it is NULL, if it ``has_null``. Values are texts: of a number, of
    a text itself, of a moment in ISO form. Those of a subpartition are the rows of its partition
    that are the subpartition's, too (``sub``).
    """

    partition: str
    column: str
    low: str | None = None
    high: str | None = None
    listed: tuple[str, ...] | None = None
    unlisted: tuple[str, ...] | None = None
    has_null: bool = False
    sub: PartitionRows | None = None
