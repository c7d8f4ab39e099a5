"""Which captured tables are gone without a DDL of their own in the redo?

DROP USER … CASCADE takes a user's tables along, and the redo names the user alone. Such a table would stand still for ever, and look as if
nothing happened to it. Tables that the dictionary does not show as of a window's end, by the numbers of their objects, leave with that
window: all of their redo is in it or below. Only the view of all objects tells; a table that one may not see is there still.

Source: Oracle Database SQL Language Reference 19c, DROP USER; Database Reference 19c, DBA_OBJECTS.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cdc_core.capture.unnamed_rows import PAST_ERRORS
from cdc_core.model.scn import ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.segments import Queries, ask_objects, in_lists
from cdc_core.schema.table import TableSchema

_LOG = logging.getLogger(__name__)

_THERE = """
SELECT OBJECT_ID FROM {{objects}} AS OF SCN :scn
 WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_ID IN ({numbers})"""


def gone_ends(
    session: Queries, tables: Sequence[TableSchema], window: ScnWindow
) -> list[StreamEnd]:
    """Tables that were there no more at the window's end; they leave there."""
    there: set[int] = set()
    for listed in in_lists(one.object_id for one in tables):
        try:
            rows, is_whole = ask_objects(
                session, _THERE.format(numbers=listed), {"scn": window.scn_high}
            )
        except PAST_ERRORS as error:
            _LOG.info("whether tables are there still is not known as of scn=%d: %s", window.scn_high, error)  # fmt: skip
            return []
        if not is_whole:
            return []
        there |= {int(number) for (number,) in rows}
    return [
        StreamEnd(
            one.table,
            window.scn_high,
            f"the table is gone, and no DDL of it is in the redo: its owner was dropped with it (table={one.table})",
            f"Remove it from the configuration, or `redolake table resnapshot {one.table.argument}` once there is a table of that name again.",
            "drop",
        )
        for one in tables
        if one.object_id and one.object_id not in there
    ]
