"""What replaces a masked column's values? The one place for both paths: redo text and the
rows of chunks.

A mask is a function of the value alone (and of the salt), so that a row has the same masked values
however it was read: an update's old image names what the insert before it wrote, and a comparison
with Oracle masks what it reads. NULL stays NULL, and an empty CLOB empty; where a mask leaves
nothing of a value, that is NULL, as an empty text is in Oracle.

``hash(…)`` is the hexadecimal digest of the salt's bytes and the value's, both in UTF-8, as
Debezium's ``column.mask.hash.v2`` has it. ``hash_v1(…)`` is that of ``column.mask.hash``, whose
digest is of the value's serialized form in Java. Debezium cuts both to the column's length: a
number behind the digest's name does.

Source: Debezium 3, ``io.debezium.relational.mapping.MaskStrings``; Java Object Serialization
Specification, "Grammar for the Stream Format" and "Modified UTF-8".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import TypeAlias

import pyarrow as pa

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.patterns import fitting, is_name_pattern

Masking: TypeAlias = Callable[[str], str]
"""What becomes of a value, which is not empty; an empty text is NULL."""
Masks: TypeAlias = Mapping[str, Masking]
"""A table's masked columns, by name; perhaps by patterns of names (:func:`masks_among`)."""

_MASK = re.compile(
    r"(stars|truncate|hash|hash_v1)\((\w+)(?:, ?(\d+))?(?:, ?salt=\w+)?\)(?:#[0-9a-f]{8})?"
)
_MARK_ROUNDS = 100_000
"""To guess a salt by its mark is no easier than by a hash of a value that one knows."""
_STRING, _LONG_STRING = b"\xac\xed\x00\x05t", b"\xac\xed\x00\x05|"
"""How Java's serialized form of a text begins, by its length."""
_STRING_BYTES_MAX = 0xFFFF


def masks_by_table(config: SourceConfig) -> dict[TableId, Masks]:
    """The masks of all tables that have some.

    Raises:
        ConfigError: A column is hashed, and there is no salt.
    """
    return {
        one.table: PatternMasks(
            (name, _masking(mask, config)) for name, mask in one.columns_mask.items()
        )
        for one in config.tables
        if one.columns_mask and not one.is_pattern
    }


def with_marked_salts(config: SourceConfig) -> SourceConfig:
    """The configuration with a mark of its salt behind each mask that hashes
    (``hash(sha256)#5f0c33a1``). Definitions keep masks as they are here, so another salt is noticed
    as another mask is: rows that are keyed by hashes would be there twice.

    Raises:
        ConfigError: A column is hashed, and there is no salt.
    """

    def marked(mask: str) -> str:
        return f"{mask}#{_mark(_salt(mask, config))}" if mask.startswith("hash") else mask

    tables = tuple(
        one.model_copy(
            update={"columns_mask": {name: marked(mask) for name, mask in one.columns_mask.items()}}
        )
        if one.columns_mask
        else one
        for one in config.tables
    )
    return config.model_copy(update={"tables": tables}) if tables != config.tables else config


@lru_cache(maxsize=64)
def _mark(salt: bytes) -> str:
    return hashlib.pbkdf2_hmac("sha256", salt, b"redolake", _MARK_ROUNDS, 4).hex()


class PatternMasks(dict[str, Masking]):
    """A table's masks as the configuration names its columns: by names and patterns."""


def masks_among(masks: Masks, columns: Iterable[str]) -> Masks:
    """The masks of some columns by their own names; masks that are not from the configuration are
    that already."""
    if not isinstance(masks, PatternMasks) or not any(map(is_name_pattern, masks)):
        return masks
    found = ((name, fitting(masks, name)) for name in columns)
    return {name: masking for name, masking in found if masking is not None}


def masked(batch: pa.RecordBatch, masks: Masks) -> pa.RecordBatch:
    """Rows with the masks in place of the values; columns that the batch lacks do not matter."""
    for name, masking in masks_among(masks, batch.schema.names).items():
        at = batch.schema.get_field_index(name)
        if at >= 0:
            # Each distinct value is masked once.
            encoded = batch.column(at).dictionary_encode()
            texts = [
                masking(text) or None if text else text for text in encoded.dictionary.to_pylist()
            ]
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
        case version:
            form = _serialized if version == "hash_v1" else str.encode
            length = None if found[3] is None else int(found[3])
            return partial(_hashed, found[2], _salt(mask, config), form, length)


def _salt(mask: str, config: SourceConfig) -> bytes:
    salt = config.masks.salt_of(mask)
    if salt is None or not salt.get_secret_value():
        raise ConfigError(
            "columns_mask hashes a column, and the salt is empty",
            hint="Put a secret text into the environment variable that masks.salt_env (or masks.salts_env) names. Keep it: with another salt, equal values get "
            "other hashes.",
        )
    return salt.get_secret_value().encode()


def _stars(length: int, _value: str) -> str:
    return "*" * length


def _truncated(length: int, value: str) -> str:
    return value[:length]


def _hashed(
    algorithm: str, salt: bytes, form: Callable[[str], bytes], length: int | None, value: str
) -> str:
    found = hashlib.new(algorithm, salt + form(value), usedforsecurity=False)
    return found.hexdigest()[:length]


def _serialized(value: str) -> bytes:
    """A text as Java's ObjectOutputStream writes it: each half of a surrogate pair by itself, and a
    NUL in two bytes."""
    units = memoryview(value.encode("utf-16-le")).cast("H")
    text = "".join(map(chr, units)).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    if len(text) > _STRING_BYTES_MAX:
        return _LONG_STRING + len(text).to_bytes(8) + text
    return _STRING + len(text).to_bytes(2) + text
