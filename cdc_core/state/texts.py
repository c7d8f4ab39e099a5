"""Which texts can every database hold?

PostgreSQL holds no NUL, and neither it nor SQLite takes half of a surrogate pair; Oracle and JSON
give both. What cannot be held is replaced where it enters the store, by the engine's own hook, so
no caller has to think of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_REPLACED = "\N{REPLACEMENT CHARACTER}"
_UNHELD = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """The text as the store keeps it: NULs at its end are left out, others and lone surrogates are
    replaced."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNHELD.sub(_REPLACED, text.rstrip("\0"))


def storable_parameters(parameters: Any) -> Any:
    """The same for all texts among a statement's parameters, or among those of many executions."""
    if isinstance(parameters, str):
        return storable(parameters)
    if isinstance(parameters, Mapping):
        return {name: storable_parameters(value) for name, value in parameters.items()}
    if isinstance(parameters, Sequence) and not isinstance(parameters, bytes):
        return type(parameters)(map(storable_parameters, parameters))  # type: ignore[call-arg]
    return parameters
