"""What one version writes, the next one reads: a change of a stored format is made on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.formats.written import KEPT, formats

ON_PURPOSE = (
    "A format that outlives a process is not what {file} says. Before the first release, run "
    "`python -m tests.formats.written` and commit what it writes (shapes, and a kept folder) with your change. After it, data of "
    "the last release must still be read: write a migration of the metadata store, or a reader of both "
    "forms, with a test that opens data of that release; then run the same. Different: {places}"
)


def test_stored_formats_change_on_purpose_alone() -> None:
    kept = json.loads(KEPT.read_text())
    now = json.loads(json.dumps(formats()))
    places = ", ".join(different(kept, now))
    assert kept == now, ON_PURPOSE.format(file=f"tests/formats/{KEPT.name}", places=places)


def different(kept: Any, now: Any, place: str = "") -> Iterator[str]:
    """Where two shapes are not the same."""
    if isinstance(kept, dict) and isinstance(now, dict):
        for name in sorted(kept.keys() | now.keys()):
            yield from different(kept.get(name), now.get(name), f"{place}/{name}")
    elif isinstance(kept, list) and isinstance(now, list) and kept and now:
        yield from different(kept[0], now[0], f"{place}/each")
    elif kept != now:
        yield place


def test_the_place_of_a_difference_is_named() -> None:
    kept = {"store": {"leases": {"token": "INTEGER"}}, "lake": [{"a": "text"}]}
    now = {"store": {"leases": {"token": "TEXT", "more": "TEXT"}}, "lake": [{"a": "null"}]}
    assert list(different(kept, now)) == [
        "/lake/each/a",
        "/store/leases/more",
        "/store/leases/token",
    ]
