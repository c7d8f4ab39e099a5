"""How wide have a table's values been? The type ledger: each commit that appends to a change log
carries the widths of all that is there.

The newest commit has them, so that a ledger is never behind the rows, needs nothing else to be kept
or rebuilt, and begins anew with new Delta tables.
"""

from __future__ import annotations

import json
import logging

from cdc_core.delta.history import newest_metadata
from cdc_core.schema.table import TableSchema
from cdc_core.stage.widths import (
    ROOM_MIN,
    Width,
    Widths,
    both,
    room_of,
    widths_as_json,
    widths_from_json,
)

_LOG = logging.getLogger(__name__)
_NAME = "widths"


def widths_in(changelog: str) -> dict[str, Width]:
    """The widths of all rows of a change log, by what each column is stored as."""
    return widths_from_json(newest_metadata(changelog, _NAME) or {})


def kept_widths(changelog: str) -> dict[str, object]:
    """User metadata for a commit that appends nothing to a change log, so that the newest commit
    still tells; empty if there are none."""
    found = newest_metadata(changelog, _NAME)
    return {} if found is None else {_NAME: found}


def with_widths(metadata: str, changelog: str, schema: TableSchema, seen: Widths) -> str:
    """User metadata of a commit that appends rows which are so wide; it is told where a column has
    hardly room left."""
    before = widths_in(changelog)
    now = both(before, seen)
    for column in schema.columns:
        width = now.get(column.stored_as, Width())
        room = room_of(column, width)
        if room is not None and room <= ROOM_MIN and width != before.get(column.stored_as):
            _LOG.warning(
                "column is nearly full table=%s column=%s held_as=%s digits=%d room=%d",
                schema.table, column.name, column.form or column.data_type, width.whole, room,
            )  # fmt: skip
    return json.dumps({**json.loads(metadata), _NAME: widths_as_json(now)}, sort_keys=True)
