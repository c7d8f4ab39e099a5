"""Whose are the rows that LogMiner shows without a name?

With the online catalog a row of a segment that is gone has no owner and no table name, only its
object number: a partition was dropped, split or merged before the redo of its rows was read. The
rule, for each such number:

1. *Known*: it is a segment of a captured table. What is known of each table is what its partitions
   are at every pass, kept for ever.
2. *Shown*: the dictionary (DBA_OBJECTS) has it now, or had it as of the SCN of the number's last
   row. A segment is there before a row is written to it, and its transaction's lock keeps it there
   until it ends: what Oracle shows as of a row's SCN is the whole truth. If it is a captured
   table's, it is known from then on and the window is read again.
3. *Doubtful*: Oracle does not look back so far (no right, no undo), or shows only some objects.
   Only a table with partitions or with a top index can have lost a segment, and only by a DDL of
   its own after the row. Every captured table that was altered since then, or is gone, leaves the
   stream right before the row; if there is none, the rows are nobody's.

Rows without a name are asked for at all as long as a captured table has such segments. A table that
gets them in a window is met by its DDL row: then the window is read again with them.

Source: measured on 23ai by others; Oracle Database Development Guide 19c, "Using Oracle Flashback
Query".
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.ddl_reading import concerns_partitions
from cdc_core.schema.ddl_times import ddl_times
from cdc_core.schema.dictionary_queries import Queries, in_lists
from cdc_core.schema.segments import PAST_ERRORS, ask_objects, have_segments, knowing, read_segments
from cdc_core.schema.table import TableSchema

_LOG = logging.getLogger(__name__)

_OBJECTS = """
SELECT P.OBJECT_ID, P.OBJECT_TYPE, P.OBJECT_NAME, T.OBJECT_ID
  FROM {{objects}}{as_of} P LEFT JOIN {{objects}}{as_of} T
    ON T.OWNER = P.OWNER AND T.OBJECT_NAME = P.OBJECT_NAME AND T.OBJECT_TYPE = 'TABLE'
 WHERE P.OBJECT_ID IN ({numbers})"""
_UNALTERED = """
SELECT OBJECT_ID FROM {{objects}}
 WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_ID IN ({numbers})
   AND LAST_DDL_TIME < :before"""

_TOP_INDEX = re.compile(r"SYS_IOT_TOP_(\d+)\Z")


@dataclass(slots=True)
class SeenRows:
    """Rows of one number: their SCNs, the first and the last, and how many."""

    first: int
    last: int
    rows: int


class KnownSegments:
    """What is known of the captured tables' segments, over all passes of a window.

    ``is_watching``: rows without a name are asked for.
    """

    def __init__(self, tables: Sequence[TableSchema]) -> None:
        self._tables = list(tables)
        self._unseen: set[TableId] = set()
        self.is_watching = any(one.segments for one in tables)

    @property
    def tables(self) -> list[TableSchema]:
        """The tables with all segments that are known now."""
        return list(self._tables)

    def look(self, session: Queries) -> None:
        """Learn what the tables have now. Of a table whose segments one may not see it is known
        that it has some; where all objects are shown, there is none."""
        found, is_whole = read_segments(session, self._tables)
        self._learn(found)
        bare = [] if is_whole else [one.table for one in self._tables if not one.segments]
        self._unseen = have_segments(session, bare)
        self.is_watching |= bool(self._unseen)

    def of(self, table: TableId) -> tuple[int, ...]:
        """The segments of a table."""
        return next(one.segments for one in self._tables if one.table == table)

    def watch(self, ddl: Iterable[str]) -> bool:
        """Do these statements make a table have segments while no row without a name was asked for?
        From now on they are."""
        if self.is_watching or not any(map(concerns_partitions, ddl)):
            return False
        self.is_watching = True
        return True

    def resolve(
        self, session: Queries, seen: Mapping[int, SeenRows]
    ) -> tuple[bool, dict[int, SeenRows]]:
        """Ask Oracle whose the numbers are; was one a captured table's, and which ones does nobody
        know?"""
        left, doubtful = dict(seen), {}
        learned = self._take(_objects(session, left, None)[0], left)
        while left:
            scn = min(one.last for one in left.values())
            try:
                objects, is_whole = _objects(session, left, Scn(scn))
            except PAST_ERRORS as error:
                _LOG.warning("Oracle does not show its objects as of scn=%d: %s", scn, error)
                break
            learned |= self._take(objects, left)
            for number in [number for number, one in left.items() if one.last == scn]:
                one = left.pop(number)
                if number in objects or not is_whole:
                    doubtful[number] = one
        return learned, doubtful | left

    def doubtful(
        self, session: Queries, seen: Mapping[int, SeenRows], window: ScnWindow
    ) -> list[StreamEnd]:
        """The tables to which rows may belong that nobody knows."""
        if not seen:
            return []
        segmented = [one for one in self._tables if one.segments or one.table in self._unseen]
        first = min(one.first for one in seen.values())
        unaltered = _unaltered(session, segmented, Scn(first))
        rows = sum(one.rows for one in seen.values())
        return [
            StreamEnd(
                one.table,
                Scn(max(window.scn_low, first - 1)),
                f"{rows} rows of a segment that is gone may belong to the table, and Oracle no longer shows whose segment it was "
                f"(scn={first}, object={min(seen)})",
                f"`redolake table resnapshot {one.table.argument}` adds the table back with a new snapshot; capture more often than partitions are dropped, and "
                "GRANT SELECT, FLASHBACK ON SYS.DBA_OBJECTS, so that it does not happen again.",
                "unsupported_ddl",
            )
            for one in segmented
            if one.object_id not in unaltered
        ]

    def _take(self, objects: Mapping[int, int | None], left: dict[int, SeenRows]) -> bool:
        """Learn the captured tables' numbers, and leave out those of others; was there one to
        learn?"""
        by_id = {one.object_id: one.table for one in self._tables if one.object_id}
        found: dict[TableId, set[int]] = {}
        for number, table in objects.items():
            if table is None:
                continue
            del left[number]
            if table in by_id:
                found.setdefault(by_id[table], set()).add(number)
        self._learn(found)
        return bool(found)

    def _learn(self, segments: Mapping[TableId, Iterable[int]]) -> None:
        self._tables = [knowing(one, segments.get(one.table, ())) for one in self._tables]
        self.is_watching |= any(one.segments for one in self._tables)


def note_rows(
    seen: dict[int, SeenRows], numbers: npt.NDArray[np.int64], scns: npt.NDArray[np.int64]
) -> None:
    """Add rows to what was seen of their numbers. No segment has the number 0."""
    for number in np.unique(numbers[numbers != 0]).tolist():
        own = scns[numbers == number]
        low, high = int(own.min()), int(own.max())
        one = seen.setdefault(number, SeenRows(low, high, 0))
        one.first, one.last = min(one.first, low), max(one.last, high)
        one.rows += len(own)


_NO_TABLE = 0
"""In place of a table's number: the object is none, or none that has rows of its own."""


def _objects(
    session: Queries, numbers: Iterable[int], scn: Scn | None
) -> tuple[dict[int, int | None], bool]:
    """Per number that is an object's, the number of its table; None where it is an index whose name
    does not tell that. And were all objects asked, not only those that one may see?"""
    as_of = "" if scn is None else " AS OF SCN :scn"
    binds = None if scn is None else {"scn": scn}
    found: dict[int, int | None] = {}
    is_whole = True
    for listed in in_lists(numbers):
        sql = _OBJECTS.format(as_of=as_of, numbers=listed)
        rows, are_all = ask_objects(session, sql, binds)
        is_whole &= are_all
        for number, kind, name, table in rows:
            if kind.startswith("INDEX"):
                match = _TOP_INDEX.match(name)
                found[int(number)] = int(match[1]) if match else None
            else:
                found[int(number)] = _NO_TABLE if table is None else int(table)
    return found, is_whole


def _unaltered(session: Queries, tables: Sequence[TableSchema], scn: Scn) -> set[int]:
    """The numbers of the tables that no DDL has altered since an SCN."""
    found: set[int] = set()
    try:
        binds = {"before": ddl_times(session, scn).before}
        for listed in in_lists(one.object_id for one in tables):
            rows, _ = ask_objects(session, _UNALTERED.format(numbers=listed), binds)
            found |= {int(number) for (number,) in rows}
    except PAST_ERRORS:
        return set()  # Oracle maps the SCN to no time any more
    return found
