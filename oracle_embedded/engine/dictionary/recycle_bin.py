"""What do the views of the recycle bin show?

Source: Oracle Database Reference 19c, USER_RECYCLEBIN, DBA_RECYCLEBIN; RECYCLEBIN is a synonym of
the former.
"""

from __future__ import annotations

from collections.abc import Iterator

from oracle_embedded.engine.dictionary.registry import Row, View, Views, date_from_epoch
from oracle_embedded.engine.formats.dates import print_date
from oracle_embedded.engine.storage.catalog import TableDef

VIEWS = Views()

_COLUMNS = (
    "OBJECT_NAME:v128 ORIGINAL_NAME:v128 OPERATION:v9 TYPE:v25 TS_NAME:v30 CREATETIME:v19 DROPTIME:v19 DROPSCN:n PARTITION_NAME:v128"
    " CAN_UNDROP:v3 CAN_PURGE:v3 RELATED:n BASE_OBJECT:n PURGE_OBJECT:n SPACE:n"
)


@VIEWS.single("DBA_RECYCLEBIN", f"OWNER:v128 {_COLUMNS}")
def _of_all(view: View) -> Iterator[Row]:
    for table in view.definitions():
        if isinstance(table, TableDef) and table.original_name is not None:
            yield {
                "OWNER": table.owner, "OBJECT_NAME": table.name, "ORIGINAL_NAME": table.original_name, "OPERATION": "DROP",
                "TYPE": "TABLE", "TS_NAME": "USERS", "CREATETIME": _moment(table.created), "DROPTIME": _moment(table.changed),
                "DROPSCN": table.scn_from, "CAN_UNDROP": "YES", "CAN_PURGE": "YES", "RELATED": table.object_id,
                "BASE_OBJECT": table.object_id, "PURGE_OBJECT": table.object_id, "SPACE": 8,
            }  # fmt: skip


def _of_user(view: View) -> Iterator[Row]:
    return (row for row in _of_all(view) if row["OWNER"] == view.session.username)


for _name in ("USER_RECYCLEBIN", "RECYCLEBIN"):
    VIEWS.single(_name, _COLUMNS)(_of_user)


def _moment(seconds: float) -> str:
    return print_date(date_from_epoch(seconds), "YYYY-MM-DD:HH24:MI:SS")
