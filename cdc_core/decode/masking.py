"""What replaces a masked column's values? The one place for both paths: redo text and the
rows of chunks.

A mask is a function of the value alone (and of the salt), so that a row has the same masked values
however it was read: an update's old image names what the insert before it wrote, and a comparison
with Oracle masks what it reads. NULL stays NULL.

``hash(…)`` is the hexadecimal digest of the salt's bytes and the value's, both in UTF-8, as
Debezium's ``column.mask.hash.v2`` has it before it cuts the digest to the column's length.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId

Masking: TypeAlias = Callable[[str], str]
"""What becomes of a value, which is not empty."""
Masks: TypeAlias = Mapping[str, Masking]
"""A table's masked columns."""

_MASK = re.compile(r"(stars|truncate|hash)\((\w+)\)")


def masks_by_table(config: SourceConfig) -> dict[TableId, Masks]:
    """The masks of all tables that have some.

    Raises:
        ConfigError: A column is hashed, and there is no salt.
    """
    return {
        one.table: {name: _masking(mask, config) for name, mask in one.columns_mask.items()}
        for one in config.tables
        if one.columns_mask and not one.is_pattern
    }


def masked(batch: pa.RecordBatch, masks: Masks) -> pa.RecordBatch:
    """Rows with the masks in place of the values; columns that the batch lacks do not matter."""
    for name, masking in masks.items():
        at = batch.schema.get_field_index(name)
        if at >= 0:
            # Each distinct value is masked once.
            encoded = batch.column(at).dictionary_encode()
            texts = [masking(text) if text else text for text in encoded.dictionary.to_pylist()]
            values = pa.array(texts, batch.schema.field(at).type).take(encoded.indices)
            batch = batch.set_column(at, batch.schema.field(at), values)
    return batch


def _masking(mask: str, config: SourceConfig) -> Masking:
    found = _MASK.fullmatch(mask)
    assert found, mask
    match found[1]:
        case "stars":
            return partial(_stars, int(found[2]))
        case "truncate":
            return partial(_truncated, int(found[2]))
        case _:
            return partial(_hashed, found[2], _salt(config))


def _salt(config: SourceConfig) -> bytes:
    salt = config.masks.salt
    if salt is None or not salt.get_secret_value():
        raise ConfigError(
            "columns_mask hashes a column, and the salt is empty",
            hint="Put a secret text into the environment variable that masks.salt_env names. Keep it: with another salt, equal values get "
            "other hashes.",
        )
    return salt.get_secret_value().encode()


def _stars(length: int, _value: str) -> str:
    return "*" * length


def _truncated(length: int, value: str) -> str:
    return value[:length]


def _hashed(algorithm: str, salt: bytes, value: str) -> str:
    return hashlib.new(algorithm, salt + value.encode()).hexdigest()
