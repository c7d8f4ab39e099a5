"""What is a request from outside?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

SignalState = Literal["pending", "taken", "done", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A request from outside. ``id`` is the sender's and unique per source; ``reason`` says why it was rejected."""

    id: str
    source: str
    type: str
    data: dict[str, Any]
    channel: str = "store"
    state: SignalState = "pending"
    reason: str | None = None
    created: datetime | None = field(default=None, compare=False)
