"""Of which captured tables were rows replaced without a row of redo that names them?

Other statements can put other rows in the place of a table's: EXCHANGE PARTITION … WITH TABLE,
TRUNCATE CLUSTER, TRUNCATE … CASCADE of a parent, DROP or TRUNCATE PARTITION of the parent of a
table that is partitioned by reference. Only the other object's name is in the redo. Each of them
gives the table another data object (DATA_OBJECT_ID), or one of its partitions.

So the data objects of every table are known as of an SCN, from its snapshot on, and each window
holds those as of its end against them. A data object that is gone with no DDL row of the table
itself ends its stream. One more replaces nothing: ADD PARTITION, an interval.

A DDL of the table itself (MOVE, TRUNCATE, partitions that are split) explains other numbers, and
could hide such a statement beside it. Where one may have run in the window's time, the dictionary
as of before, between and behind the table's own DDL tells; where Oracle does not show that, the
table leaves.

Where Oracle does not look back at all, the present tells, of tables that were not altered after the
window.

Source: Oracle Database Reference 19c, ALL_OBJECTS (DATA_OBJECT_ID: of the segment that contains the
object); SQL Language Reference 19c, ALTER TABLE (exchange_partition_subpart), TRUNCATE TABLE
(CASCADE), TRUNCATE CLUSTER; VLDB and Partitioning Guide 19c, "Reference Partitioning".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from cdc_core.capture.stream_ends.ddl_rows import DdlRow
from cdc_core.model.data_objects import DataObjects
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.ddl_reading import read_ddl
from cdc_core.schema.ddl_times import ddl_times
from cdc_core.schema.dictionary_queries import Queries, rows_about, tables_condition
from cdc_core.schema.segments import PAST_ERRORS, ask_objects, read_data_objects
from cdc_core.schema.table import TableSchema

_LOG = logging.getLogger(__name__)

_OBJECT_TYPES = "'TABLE', 'TABLE PARTITION', 'TABLE SUBPARTITION'"
_ALTERED_PARTITIONS = f"""
SELECT DISTINCT OWNER, OBJECT_NAME, OBJECT_TYPE
  FROM {{objects}}
 WHERE OBJECT_TYPE IN ({_OBJECT_TYPES}) AND OBJECT_TYPE <> 'TABLE'
   AND LAST_DDL_TIME > :before"""
_UNALTERED_PARENTS = f"""
SELECT OWNER, OBJECT_NAME
  FROM {{{{objects}}}}
 WHERE OBJECT_TYPE IN ({_OBJECT_TYPES}) AND {{tables}}
 GROUP BY OWNER, OBJECT_NAME
HAVING MAX(LAST_DDL_TIME) <= :before"""
_PARENTS = """
SELECT C.OWNER, C.TABLE_NAME, P.OWNER, P.TABLE_NAME, C.DELETE_RULE
  FROM ALL_CONSTRAINTS C LEFT JOIN ALL_CONSTRAINTS P
    ON P.OWNER = C.R_OWNER AND P.CONSTRAINT_NAME = C.R_CONSTRAINT_NAME
 WHERE C.CONSTRAINT_TYPE = 'R' AND C.STATUS = 'ENABLED' AND {tables}"""
_PARTITIONED = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE PARTITIONED = 'YES' AND {tables}"
_EXPLAINING = frozenset({"partitions", "rows moved", "rows removed"})

REPLACED = "its rows were put in another place, or others in theirs"
HIDDEN = (
    "it was moved, truncated or repartitioned, and in that time partitions of another table were altered, or a parent was: "
    "its rows may have been exchanged for theirs, or have gone with the parent's"
)


@dataclass(frozen=True, slots=True)
class ReplacedTables:
    """Tables that leave at the window's lower end, each with the reason, and the data objects that
    are known as of its upper end."""

    reasons: Mapping[TableId, str]
    data_objects: dict[TableId, DataObjects]


def read_replaced(
    session: Queries,
    window: ScnWindow,
    schemas: Sequence[TableSchema],
    rows: Sequence[DdlRow],
    *,
    known: Mapping[TableId, DataObjects] | None,
    read_at: Mapping[TableId, Scn],
    settled: Set[TableId],
) -> ReplacedTables:
    """Hold the tables' data objects as of a window's end against those that are known.

    Args:
        session: In the container of the tables.
        window: The window.
        schemas: The captured tables.
        rows: The DDL of these tables that the window has.
        known: Their data objects as of the window's lower end, or of the snapshot with which a
            table joins; None if a window is read again and nothing is known of the one before: then
            its own are learned.
        read_at: The SCN of each table's snapshot.
        settled: Tables of which the present is what they were at the window's end.
    """
    high = window.scn_high
    # A snapshot as of a later SCN has whatever happened up to there.
    tables = [one.table for one in schemas if read_at.get(one.table, 0) < high]
    look = _Look(session, high)
    now = look.read(tables, settled)
    before = dict(known or {})
    if known is not None:
        older = [one for one in now if one not in before and read_at.get(one, 0) <= window.scn_low]
        before |= look.past(older, window.scn_low)
    by_row_id = {one.table for one in schemas if one.is_by_row_id}
    own = _explaining(rows, read_at, by_row_id)
    kept: dict[TableId, DataObjects] = {}
    reasons: dict[TableId, str] = {}
    doubtful = []
    for table in tables:
        was, found = before.get(table), now.get(table)
        if table in own:
            doubtful.append(table)
            kept |= {} if found is None else {table: found}
        elif found is None:
            kept |= {} if was is None else {table: was}
        elif was is None:
            doubtful.extend([] if known is None else [table])
            kept[table] = found
        elif found == was or look.has_all(table, was):
            kept[table] = found
        else:
            reasons[table] = REPLACED
    visible = [one for one in doubtful if one in before or one in now]
    whole = {one for one in visible if (was := before.get(one)) and look.has_all(one, was)}
    for table in _may_be_replaced(session, window, visible, whole):
        if not look.is_continuous(table, before.get(table), own.get(table, ())):
            reasons[table] = HIDDEN
    return ReplacedTables(
        reasons, {table: one for table, one in kept.items() if table not in reasons}
    )


def _explaining(
    rows: Sequence[DdlRow], read_at: Mapping[TableId, Scn], by_row_id: Set[TableId]
) -> dict[TableId, list[DdlRow]]:
    """The DDL that explains other data objects. Where rows are known by their ROWIDs, which begin
    with that number, TRUNCATE alone does: what moves rows stops such a table anyway."""
    found: dict[TableId, list[DdlRow]] = {}
    for row in rows:
        ddl = read_ddl(row.text)
        explains = ddl.effects & _EXPLAINING
        if row.table in by_row_id:
            explains = ddl.effects & {"rows removed"}
        if explains and (row.scn is None or row.scn > read_at.get(row.table, 0)):
            found.setdefault(row.table, []).append(row)
    return found


class _Look:
    """What the dictionary shows of data objects, as of a window's end or now."""

    def __init__(self, session: Queries, high: Scn) -> None:
        self._session = session
        self._at: Scn | None = high

    def read(self, tables: Sequence[TableId], settled: Set[TableId]) -> dict[TableId, DataObjects]:
        try:
            return read_data_objects(self._session, tables, scn=self._at)
        except PAST_ERRORS as error:
            _LOG.info("data objects are not known as of scn=%s: %s", self._at, error)
        self._at = None
        return read_data_objects(self._session, [one for one in tables if one in settled])

    def past(self, tables: Sequence[TableId], scn: Scn) -> dict[TableId, DataObjects]:
        """As of an SCN; nothing where Oracle does not look back."""
        if self._at is None or not tables:
            return {}
        try:
            return read_data_objects(self._session, tables, scn=scn)
        except PAST_ERRORS:
            return {}

    def has_all(self, table: TableId, was: DataObjects) -> bool:
        """Are all that were known still there?"""
        return self._is_after(table, was, self._at)

    def is_continuous(self, table: TableId, was: DataObjects | None, own: Sequence[DdlRow]) -> bool:
        """Does the dictionary show that nothing but the table's own DDL replaced data objects?"""
        if self._at is None or was is None:
            return False
        try:
            for row in own:
                if row.scn is None:
                    return False
                if not self._is_after(table, was, Scn(row.row_scn - 1)):
                    return False
                found = read_data_objects(self._session, [table], scn=Scn(row.scn)).get(table)
                if found is None:
                    return False
                was = found
            return self._is_after(table, was, self._at)
        except PAST_ERRORS:
            return False

    def _is_after(self, table: TableId, was: DataObjects, scn: Scn | None) -> bool:
        found = read_data_objects(self._session, [table], scn=scn, newest=was.newest)
        return found.get(table) == was


def _may_be_replaced(
    session: Queries, window: ScnWindow, tables: Sequence[TableId], whole: Set[TableId]
) -> list[TableId]:
    """Those of the tables that a statement about another one may have touched since the window's
    lower end.

    A partitioned table is exchanged with a partition that has subpartitions, and loses all its data
    objects then; those in ``whole`` have lost none.
    """
    if not tables:
        return []
    try:
        binds = {"before": ddl_times(session, window.scn_low).before}
        altered, _ = ask_objects(session, _ALTERED_PARTITIONS, binds)
        partitioned = {table for (table,) in rows_about(session, _PARTITIONED, tables)}
        cascading = _with_altered_parents(session, tables, partitioned, binds)
    except PAST_ERRORS:
        return list(tables)  # Oracle maps the window to no time any more

    def is_exchanged(table: TableId) -> bool:
        kinds = {kind for owner, name, kind in altered if TableId(owner, name) != table}
        if table in partitioned:
            return "TABLE SUBPARTITION" in kinds and table not in whole
        return bool(kinds)

    return [one for one in tables if one in cascading or is_exchanged(one)]


def _with_altered_parents(
    session: Queries,
    tables: Sequence[TableId],
    partitioned: Set[TableId],
    binds: Mapping[str, datetime],
) -> set[TableId]:
    """Tables whose rows may go with a parent's, near or far, that was altered; a parent that one
    may not see counts as altered."""
    ancestors: dict[TableId, set[TableId | None]] = {table: set() for table in tables}
    children: dict[TableId, set[TableId]] = {table: {table} for table in tables}
    seen: set[TableId] = set()
    while fresh := set(children) - seen:
        seen |= fresh
        rows = rows_about(session, _PARENTS, fresh, owner="C.OWNER", name="C.TABLE_NAME")
        for child, above, parent, rule in rows:
            if rule != "CASCADE" and child not in partitioned:
                continue
            found = None if parent is None else TableId(above, parent)
            for table in children[child]:
                ancestors[table].add(found)
            if found is not None:
                children.setdefault(found, set()).update(children[child])
    known = {one for found in ancestors.values() for one in found if one is not None}
    if not known:
        return {table for table, found in ancestors.items() if found}
    condition, named = tables_condition(known, "OWNER", "OBJECT_NAME")
    rows, _ = ask_objects(session, _UNALTERED_PARENTS.format(tables=condition), {**binds, **named})
    unaltered = {TableId(owner, name) for owner, name in rows}
    return {table for table, found in ancestors.items() if found - unaltered}
