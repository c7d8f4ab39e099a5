"""Was a table altered after an SCN, where Oracle does not show its definition as of then?"""

from __future__ import annotations

from cdc_core.errors import ANY_TABLE, SchemaMismatchError, SnapshotTooOldError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.ddl_times import ddl_times
from cdc_core.schema.dictionary_queries import UserQueries, rows_about

_LATER_DDL = """
SELECT OWNER, OBJECT_NAME, CASE WHEN LAST_DDL_TIME > :behind THEN 1 ELSE 0 END
  FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND {tables}
   AND LAST_DDL_TIME > :before"""


def refuse_later_ddl(
    session: UserQueries, table: TableId, scn: Scn, cause: Exception
) -> tuple[bool, bool]:
    """Does the table's last DDL lie within seconds of the SCN, before it or after it; and are these
    seconds an hour, which the host's clock repeats?

    Raises:
        SchemaMismatchError: It lies behind, or nobody can know any more.
    """
    try:
        times = ddl_times(session, scn)
    except SnapshotTooOldError as error:  # after some five days Oracle maps an SCN to no time
        raise SchemaMismatchError(
            "whether the table was altered after this SCN is no longer known, and Oracle does not show its earlier definition",
            hint=f"Plan a new snapshot of the table: `redolake table resnapshot {ANY_TABLE}`.",
            table=table,
            scn=scn,
        ) from error
    bounds = {"before": times.before, "behind": times.behind}
    changed = rows_about(session, _LATER_DDL, [table], bounds, name="OBJECT_NAME")
    if any(is_certain for _, is_certain in changed):
        raise altered_since(session, table, scn) from cause
    return bool(changed), bool(times.repeated)


def altered_since(session: UserQueries, table: TableId, scn: Scn) -> SchemaMismatchError:
    """The error for a table whose definition as of the SCN Oracle does not show."""
    return SchemaMismatchError(
        "the table was altered after this SCN, or within seconds of it, and Oracle does not show its earlier definition",
        hint="GRANT FLASHBACK on SYS.ALL_TAB_COLS, ALL_CONSTRAINTS, ALL_CONS_COLUMNS, ALL_INDEXES, ALL_IND_COLUMNS and "
        f"ALL_OBJECTS TO {session.user}, or plan a new snapshot of the table.",
        table=table,
        scn=scn,
    )
