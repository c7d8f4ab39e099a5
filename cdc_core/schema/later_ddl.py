"""Was a table altered after an SCN, where Oracle does not show its definition as of then?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_core.config import TableConfig
from cdc_core.errors import (
    SchemaMismatchError,
    SnapshotTooOldError,
)
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.ddl_times import ddl_times
from cdc_core.schema.dictionary_queries import UserQueries, tables_condition
from cdc_core.schema.table import (
    TableSchema,
)

_LATER_DDL = """
SELECT OWNER, OBJECT_NAME, CASE WHEN LAST_DDL_TIME > :behind THEN 1 ELSE 0 END
  FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND {tables}
   AND LAST_DDL_TIME > :before"""


def timeless(schemas: Sequence[TableSchema]) -> list[TableSchema]:
    """The definitions without the SCN from which they hold, to be compared."""
    return [replace(one, scn_from=Scn(0)) for one in schemas]


def refuse_later_ddl(
    session: UserQueries, configs: Sequence[TableConfig], scn: Scn, cause: Exception
) -> tuple[list[TableId], bool]:
    """The tables whose last DDL lies within seconds of the SCN, before it or after it, and whether
    these seconds are an hour, which the host's clock repeats."""
    condition, binds = tables_condition(
        [config.table for config in configs], "OWNER", "OBJECT_NAME"
    )
    try:
        times = ddl_times(session, scn)
    except SnapshotTooOldError as error:  # after some five days Oracle maps an SCN to no time
        raise SchemaMismatchError(
            "whether the tables were altered after this SCN is no longer known, and Oracle does not show their earlier definition",
            hint="Plan a new snapshot of the tables: `redolake table resnapshot OWNER.TABLE`.",
            tables=", ".join(str(config.table) for config in configs),
            scn=scn,
        ) from error
    binds |= {"before": times.before, "behind": times.behind}
    changed = session.fetch_all(_LATER_DDL.format(tables=condition), binds)
    later = [TableId(owner, name) for owner, name, is_certain in changed if is_certain]
    if later:
        raise altered_since(session, later, scn) from cause
    return [TableId(owner, name) for owner, name, _ in changed], bool(times.repeated)


def altered_since(session: UserQueries, tables: Sequence[TableId], scn: Scn) -> SchemaMismatchError:
    """The error for tables whose definition as of the SCN Oracle does not show."""
    return SchemaMismatchError(
        "the tables were altered after this SCN, or within seconds of it, and Oracle does not show their earlier definition",
        hint="GRANT FLASHBACK on SYS.ALL_TAB_COLS, ALL_CONSTRAINTS, ALL_CONS_COLUMNS, ALL_INDEXES, ALL_IND_COLUMNS and "
        f"ALL_OBJECTS TO {session.user}, or plan a new snapshot of the tables.",
        tables=", ".join(map(str, tables)),
        scn=scn,
    )
