"""How is JSON kept in a text column: compact, keys in order, non-ASCII as it is."""

from __future__ import annotations

import json
from typing import Any

from cdc_core.model.json_form import as_json


def text_from_json(value: Any) -> str:
    """Print the JSON form of a value; :func:`json_from_text` reads that again."""
    return json.dumps(as_json(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def json_from_text(text: str) -> Any:
    """Read what :func:`text_from_json` printed."""
    return json.loads(text)
