"""Read the tables of a lake as of one SCN, and their changes, without Spark and without Oracle.

It needs pyarrow and deltalake alone::

    from redolake.reader import open

    lake = open("/data/lake")
    cut = lake.at()                       # the newest SCN that all tables have
    orders = cut.table("SHOP.ORDERS").to_arrow()
    lines = cut.table("SHOP.LINES").to_pandas()   # the same moment

    changes = lake.table("SHOP.ORDERS").changes(since=position)
    for batch in changes.to_batches():
        ...
    position = changes.position           # keep it: the next call continues there

Every error is one of :mod:`cdc_core.errors`, with what happened, where, and what to do.
"""

from cdc_core.errors import CdcError, ConfigError, LakeError, NotYetError, PreflightError
from redolake.reader.changes import ChangePosition, Changes
from redolake.reader.lake import Cut, Lake, Table, TableVersion, open
from redolake.reader.rows import Rows

__all__ = [
    "CdcError",
    "ChangePosition",
    "Changes",
    "ConfigError",
    "Cut",
    "Lake",
    "LakeError",
    "NotYetError",
    "PreflightError",
    "Rows",
    "Table",
    "TableVersion",
    "open",
]
