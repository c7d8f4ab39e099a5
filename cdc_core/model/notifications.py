"""What is a notification?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

INITIAL = "Initial Snapshot"
INCREMENTAL = "Incremental Snapshot"
TABLE = "Table"
WINDOW = "Window"
ALERT = "Alert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """Something that happened, with Debezium's fields. Holds no values of rows.

    ``id`` is the signal's that asked for a snapshot, or the snapshot's own; ``aggregate_type`` what
    it is about; ``type`` what happened; ``data`` Debezium's ``additional_data``.
    """

    id: str
    aggregate_type: str
    type: str
    timestamp: datetime
    data: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The form in which every channel sends it; the time in milliseconds since 1970."""
        return {
            "id": self.id,
            "aggregate_type": self.aggregate_type,
            "type": self.type,
            "additional_data": self.data,
            "timestamp": int(self.timestamp.timestamp() * 1000),
        }
