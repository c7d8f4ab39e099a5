"""What is a signal?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

SignalState = Literal["pending", "taken", "done", "rejected"]

SIGNAL_ID_MAX = 200
"""Characters of an id that the metadata store holds."""
SIGNAL_TYPE_MAX = 40
"""Characters of a type; no type that is known has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A request from outside. ``id`` is the sender's and unique per source; ``reason`` says why it
    was rejected."""

    id: str
    source: str
    type: str
    data: dict[str, Any]
    channel: str = "store"
    state: SignalState = "pending"
    reason: str | None = None
    created: datetime | None = field(default=None, compare=False)
