"""Which captured columns are masked, and which masks cannot be?"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_core.config import TableConfig
from cdc_core.schema.forms import form_of
from cdc_core.schema.table import Column
from cdc_core.schema.types import MASKED_TYPES


def masks_of(config: TableConfig, captured: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    """The captured columns that the configuration masks, and how, by name."""
    masks = ((column.name, config.mask_of(column.name)) for column in captured)
    return tuple(sorted((name, mask) for name, mask in masks if mask is not None))


def mask_refusal(config: TableConfig, captured: Sequence[Column], key: Sequence[str]) -> str | None:
    """Why the configuration's masks cannot be; None if they can.

    A masked key would make one row of many, or give a row another key than Oracle's. A LOB is
    written in pieces, of which each would have to be masked alone.
    """
    of_key = [name for name in key if config.mask_of(name) is not None]
    if of_key:
        return f"columns_mask names columns of the key: {', '.join(of_key)}"
    formed = [
        column.name
        for column in captured
        if config.mask_of(column.name) is not None and form_of(config, column, key)
    ]
    if formed:
        return f"columns_mask and columns_as (or types_as) both name {', '.join(formed)}"
    others = [
        f"{column.name} {column.data_type}"
        for column in captured
        if config.mask_of(column.name) is not None and column.data_type not in MASKED_TYPES
    ]
    return f"columns_mask masks short text alone, not {', '.join(others)}" if others else None
