"""Values of our own become JSON and themselves again, and what is none of them is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.scn import Scn


@dataclass(frozen=True)
class Part:
    table: TableId
    seconds: float = 0.0


@dataclass(frozen=True)
class Whole:
    scn: Scn
    parts: tuple[Part, ...]
    pair: tuple[str, int]
    by_name: dict[str, Part]
    at: datetime | None
    state: Literal["open", "closed"]
    below: Whole | None = None


TABLE = TableId("HR", "EMP")
WHOLE = Whole(
    Scn(7),
    (Part(TABLE, 1.5), Part(TABLE)),
    ("a", 1),
    {"x": Part(TABLE, 2)},
    datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    "open",
    Whole(Scn(8), (), ("b", 2), {}, None, "closed"),
)


def test_a_value_comes_back_from_its_json() -> None:
    assert from_json(Whole, json.loads(json.dumps(as_json(WHOLE)))) == WHOLE


def test_a_field_with_a_default_may_be_missing() -> None:
    data = as_json(WHOLE)
    del data["below"]
    assert from_json(Whole, data).below is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scn", "7"),
        ("scn", True),
        ("parts", "ab"),
        ("parts", [1]),
        ("pair", ["a"]),
        ("by_name", []),
        ("at", 5),
        ("at", "today"),
        ("state", "gone"),
        ("below", []),
        ("unknown", 1),
        ("parts", [{"table": {"owner": "HR"}}]),
    ],
)
def test_what_has_another_type_is_refused(field: str, value: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(Whole, {**as_json(WHOLE), field: value})
