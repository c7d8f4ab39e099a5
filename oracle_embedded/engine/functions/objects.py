"""Which functions of objects and collections are registered: images made and taken apart?"""

from __future__ import annotations

import json

from oracle_embedded.api import OracleError
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.registry import AGGREGATES, Entries, register
from oracle_embedded.values import packed, unpacked

_LARGER = OracleError(22814, "attribute or element value is larger than specified in type")


def _object(*values: str | bytes | None) -> bytes:
    return packed(value.encode() if isinstance(value, str) else value for value in values)


def _joined(*images: bytes) -> bytes:
    """One image of the values of several."""
    return images[0] + b"".join(image[1:] for image in images[1:])


def _part(image: bytes, place: int) -> bytes | None:
    return unpacked(image)[place]


def _levels(count: int | None) -> str:
    """The numbers from 1 to a limit, at least 1, as a list in JSON."""
    return json.dumps(list(range(1, max(count or 1, 1) + 1)))


def _elements(image: bytes) -> str:
    """The elements as JSON, each in hexadecimal: rows of ``json_each``."""
    return json.dumps([None if item is None else item.hex() for item in unpacked(image)])


def _fit_text(
    context: CallContext, value: str, characters: int, most: int, is_padded: int, form: int
) -> str:
    """Text as an attribute holds it: of ``characters`` at most, or of ``most`` bytes where that is
    0."""
    own = context.character_sets.of(form)
    value = own.keep(value)
    size = len(value) if characters else len(own.encode(value))
    limit = characters or most
    if size > limit:
        raise _LARGER
    return value + " " * (limit - size) if is_padded else value


def _fit_raw(value: bytes, most: int) -> bytes:
    if len(value) > most:
        raise _LARGER
    return value


_ENTRIES: Entries = (
    ("o_part", _part, 2),
    ("o_elements", _elements, 1),
    ("o_levels", _levels, 1),
    ("o_unhex", bytes.fromhex, 1),
    ("o_fit_raw", _fit_raw, 2),
)
for _name, _run, _arguments in _ENTRIES:
    register(_name, _run, _arguments)
register("o_fit_text", _fit_text, 5, with_context=True)


class Rows:
    """The rows of a query as an image of images."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []

    def step(self, *cells: str | bytes | None) -> None:
        """One more row."""
        self._rows.append(_object(*cells))

    def finalize(self) -> bytes:
        """All rows."""
        return packed(self._rows)


AGGREGATES["o_rows"] = (Rows, -1)
register("o_object", _object, -1, takes_nulls=True)
register("o_joined", _joined, -1)
