"""What lies in a column for which SQL has no type that both databases share: a moment, or a value
of our own as JSON?"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, get_origin

from sqlalchemy import Dialect, Float, Text, TypeDecorator

from cdc_core.model.json_form import as_json, from_json


class Moment(TypeDecorator[datetime]):
    """A moment, as seconds since 1970. Such seconds are taken, too."""

    impl = Float
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """What the database gets."""
        del dialect
        return value.timestamp() if isinstance(value, datetime) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """The moment in UTC."""
        del dialect
        return None if value is None else datetime.fromtimestamp(value, UTC)


class Json(TypeDecorator[Any]):
    """A value of one ``kind`` as JSON: compact, keys in order, non-ASCII as it is."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """A condition compares the text."""
        del op, value
        return Text()

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """What the database gets."""
        del dialect
        return None if value is None else json_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """The value again."""
        del dialect
        if value is None:
            return None
        return (
            _value(self.kind, value) if get_origin(self.kind) is dict else _known(self.kind, value)
        )


def json_text(value: Any) -> str:
    """The text of a value."""
    return json.dumps(as_json(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _value(kind: Any, text: str) -> Any:
    return from_json(kind, json.loads(text))


_known = lru_cache(maxsize=2048)(_value)
"""Of values that nothing changes, such as definitions: every window asks for all of them."""
