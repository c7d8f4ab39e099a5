"""How is an image of a row written as JSON, so that nothing of its values is lost?"""

from __future__ import annotations

import json
import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa


def image_texts(images: pa.StructArray, absent: pa.ListArray) -> list[str | None]:
    """Each image as a JSON object of the columns that it carries; None where there is no image."""
    return [
        None if image is None else json.dumps(
            {name: plain_value(value) for name, value in image.items() if name not in lacking},
            ensure_ascii=False,
        )
        for image, lacking in zip(images.to_pylist(), absent.to_pylist(), strict=True)
    ]  # fmt: skip


def plain_value(value: Any) -> Any:
    """A value as JSON has it: numbers that are not whole and times as text, bytes as hexadecimal
    digits."""
    match value:
        case Decimal():
            return str(value)
        case datetime():
            return value.isoformat(sep=" ")
        case bytes():
            return value.hex()
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value
