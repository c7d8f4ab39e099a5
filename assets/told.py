"""What does Dagster show of notifications? Each is an observation, of what it is about."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import dagster as dg

from assets.translator import Layer, Translator
from cdc_core.model.identifiers import TableId
from cdc_core.model.notifications import TABLE, Notification

AT_ONCE = 500
"""Notifications that one tick shows at most; the next one goes on behind them."""


def observations_of(
    found: Sequence[Notification], names: Translator, tables: Collection[TableId]
) -> list[dg.AssetObservation]:
    """The observations of notifications, in order: of a table's mirror where it is about its
    stream, of its chunks where it is about its snapshot, and of the redo where it is about no
    table.

    Args:
        found: The notifications.
        names: The source's assets.
        tables: Those that are loaded.
    """
    return [
        dg.AssetObservation(
            key,
            description=f"{one.aggregate_type}: {one.type}",
            metadata={
                "cdc/notification": one.type,
                "cdc/notification_id": one.id,
                "cdc/notification_time": dg.MetadataValue.timestamp(one.timestamp),
                **{f"cdc/{name}": value for name, value in one.data.items()},
            },
        )
        for one in found
        for key in _keys(one, names, tables)
    ]


def _keys(one: Notification, names: Translator, tables: Collection[TableId]) -> list[dg.AssetKey]:
    named = (
        one.data.get("scanned_collection")
        or one.data.get("current_collection_in_progress")
        or one.data.get("data_collections", "")
    )
    about = [TableId.parse(text) for text in named.split(", ") if text]
    layer: Layer = "mirror" if one.aggregate_type == TABLE else "snapshot"
    keys = [names.key(layer, table) for table in about if table in tables]
    return keys if about else [names.redo_key]
