"""Actions of signals, as a user would write them."""

from __future__ import annotations

from typing import Any

CALLS: list[tuple[str, dict[str, Any], str, int | None]] = []


def tell(signal_id: str, data: dict[str, Any], *, source: str, position: int | None) -> str:
    """Keep what was said."""
    CALLS.append((signal_id, data, source, position))
    return f"told {data['to']}"


def fail(signal_id: str, data: dict[str, Any], *, source: str, position: int | None) -> None:
    """Fail with a text that nobody else may see."""
    raise RuntimeError(f"secret of {signal_id}, {len(data)}, {source}, {position}")
