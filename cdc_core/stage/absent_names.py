"""Under which names do lists say which columns a row does not carry?"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

LISTS = ("_cdc_absent", "_cdc_before_absent")
"""The change log's columns that have such lists, with what columns are stored as."""


def renamed_lists(lists: pa.ListArray, names: Mapping[str, str]) -> pa.ListArray:
    """Lists of columns under other names; one that has none keeps its own. NULL stays NULL."""
    changed = {old: new for old, new in names.items() if old != new}
    if not changed or len(lists) == 0:
        return lists
    items = pc.list_flatten(lists)
    places = pc.index_in(items, value_set=pa.array(list(changed), items.type))
    found = pc.coalesce(pa.array(list(changed.values()), items.type).take(places), items)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = pa.array([0, *lengths.cumsum()], pa.int32())
    return pa.ListArray.from_arrays(offsets, found, mask=lists.is_null())
