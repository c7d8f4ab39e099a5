"""How do values of a column become values of the wider type that the lake holds them in since a
MODIFY?

By whole columns and exactly: the numbers and moments stay what they were, and text is the one that
both paths write for a column that was wide from the beginning.
``lake.definitions.type_widening`` has the same rules in SQL; a test holds both to each other.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.literals import canonical_number_text

_NINE_DIGITS = len("2026-01-01 00:00:00.123456789")


def widened(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of one type of the type table in another one that holds them; nulls stay.

    Raises:
        pyarrow.ArrowInvalid: A value does not fit.
    """
    own = values.type
    if own == kind:
        return values
    if pa.types.is_string(kind) and pa.types.is_timestamp(own):
        return pc.utf8_rpad(values.cast(kind), _NINE_DIGITS, "0")
    if pa.types.is_string(kind) and (pa.types.is_decimal(own) or pa.types.is_integer(own)):
        return _number_text(values.cast(kind))
    if pa.types.is_decimal(kind) and pa.types.is_integer(own):
        # Arrow asks for room for all digits of an int64, whatever the values are.
        return values.cast(pa.decimal256(19 + kind.scale, kind.scale)).cast(kind)
    return values.cast(kind)


def _number_text(texts: pa.Array) -> pa.Array:
    """Plain text of numbers without zeros at the end of a fraction."""
    with_exponent = pc.match_substring(texts, "E")
    if pc.any(with_exponent).as_py():  # Arrow prints decimals below a millionth so
        plain = [canonical_number_text(text) for text in texts.filter(with_exponent).to_pylist()]
        texts = pc.replace_with_mask(texts, with_exponent, pa.array(plain, texts.type))
    stripped = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return pc.if_else(pc.match_substring(texts, "."), stripped, texts)
