"""How is a number's text made canonical, so that snapshot and log path hold the same text for the same NUMBER?"""

from __future__ import annotations

import pyarrow as pa

from cdc_core.decode.literals import LiteralRefusedError, canonical_number_text
from cdc_core.errors import DecodeError


def canonical_number(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Canonical text of NUMBERs: no exponent, no leading zeros but ``0.5``, no trailing zeros of a fraction, ``-0`` is ``0``.

    Args:
        array: string or large_string, as ``TO_CHAR`` or SQL_REDO prints numbers (``.5``, ``-.00012``, ``1E+10``); nulls stay.

    Returns:
        string array of the same length.

    Raises:
        DecodeError: A text is not a number; the facts name its row.
    """
    return pa.array(
        [
            None if text is None else _canonical(text, row)
            for row, text in enumerate(array.to_pylist())
        ],
        pa.string(),
    )


def _canonical(text: str, row: int) -> str:
    try:
        return canonical_number_text(text)
    except LiteralRefusedError as error:
        raise DecodeError(error.what, hint=error.hint, row=row) from None
