"""Which captured columns are masked, and which masks cannot be?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cdc_core.config import TableConfig
from cdc_core.schema.forms import form_of
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import MASKED_TYPES

_MASKED = MASKED_TYPES | {"CLOB", "NCLOB"}
_KEY_DIGITS_MIN = 32
"""So many hexadecimal digits, 128 bits, are the same for no two values that anyone has."""
_DIGITS = re.compile(r", ?(\d+)")


def masks_of(config: TableConfig, captured: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    """The captured columns that the configuration masks, and how, by name."""
    masks = ((column.name, config.mask_of(column.name)) for column in captured)
    return tuple(sorted((name, mask) for name, mask in masks if mask is not None))


def mask_refusal(config: TableConfig, captured: Sequence[Column], key: Sequence[str]) -> str | None:
    """Why the configuration's masks cannot be; None if they can.

    Of a key, stars or a few characters would make one row of many; a hash of
    :data:`_KEY_DIGITS_MIN` digits does not.
    """
    masks = {one.name: mask for one in captured if (mask := config.mask_of(one.name)) is not None}
    weak = [name for name in key if not _tells_apart(masks.get(name))]
    if weak:
        return (
            f"columns_mask masks columns of the key otherwise than by a hash of {_KEY_DIGITS_MIN} "
            f"characters or more: {', '.join(weak)}"
        )
    formed = [one.name for one in captured if one.name in masks and form_of(config, one, key)]
    if formed:
        return f"columns_mask and columns_as (or types_as) both name {', '.join(formed)}"
    others = [
        f"{one.name} {one.data_type}"
        for one in captured
        if one.name in masks and one.data_type not in _MASKED
    ]
    return f"columns_mask masks text alone, not {', '.join(others)}" if others else None


def masked_key(schema: TableSchema) -> tuple[str, ...]:
    """The columns of the key of which hashes land, so that no value of the lake finds a row in
    Oracle, and ranges of Oracle's values are none of the lake's."""
    masked = {name for name, _ in schema.masked}
    return tuple(name for name in schema.key if name in masked)


def _tells_apart(mask: str | None) -> bool:
    """Has a column without a mask, or with this one, another value for another value of
    Oracle's?"""
    if mask is None:
        return True
    digits = _DIGITS.search(mask)
    return mask.startswith("hash") and (not digits or int(digits[1]) >= _KEY_DIGITS_MIN)
