"""Where does the stream of one table begin and end?

A table's stream is what redo brings of it, window after window. It begins when the table joins, and ends at an SCN when the
table meets something that cannot be followed; it may begin again later. The streams of other tables are never touched.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_core.model.identifiers import TableId


@dataclass(frozen=True, slots=True)
class StreamBegin:
    """A table joins with a window, which reads the table's redo again from above ``mining_low``: changes of transactions that
    were open when the table's snapshot was read."""

    table: TableId
    mining_low: int


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """A table leaves: what committed at or below ``scn`` belongs to its stream, later changes do not.

    ``reason`` says why, ``way_out`` what to do; neither holds row values.
    """

    table: TableId
    scn: int
    reason: str
    way_out: str
