"""Which notifications were there lately?"""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, insert, select

from cdc_core.model.notifications import Notification
from cdc_core.state.database import StorePart
from cdc_core.state.sql_tables import NOTIFICATIONS, values_of


class Notifications(StorePart):
    """The newest notifications of each source."""

    def add(self, notification: Notification, *, keep: int) -> None:
        """Add a notification, and forget the oldest beyond ``keep``."""
        own = NOTIFICATIONS.c.source == self._source
        with self._database.writing() as connection:
            newest = select(func.max(NOTIFICATIONS.c.number)).where(own)
            number = int(connection.execute(newest).scalar() or 0) + 1
            more = {"source": self._source, "number": number, "created": notification.timestamp}
            values = values_of(NOTIFICATIONS, notification, **more)
            connection.execute(insert(NOTIFICATIONS).values(values))
            connection.execute(
                delete(NOTIFICATIONS).where(own, NOTIFICATIONS.c.number <= number - keep)
            )

    def newest(self, *, limit: int) -> list[Notification]:
        """The newest notifications, oldest of them first."""
        query = select(NOTIFICATIONS).where(NOTIFICATIONS.c.source == self._source)
        query = query.order_by(NOTIFICATIONS.c.number.desc()).limit(limit)
        return [_notification(row) for row in reversed(self._rows(query))]

    def behind(self, number: int, *, limit: int) -> list[tuple[int, Notification]]:
        """The first notifications with a higher number, each with its own."""
        query = select(NOTIFICATIONS).where(
            NOTIFICATIONS.c.source == self._source, NOTIFICATIONS.c.number > number
        )
        query = query.order_by(NOTIFICATIONS.c.number).limit(limit)
        return [(int(row["number"]), _notification(row)) for row in self._rows(query)]


def _notification(row: Any) -> Notification:
    return Notification(
        id=row["id"],
        aggregate_type=row["aggregate_type"],
        type=row["type"],
        timestamp=row["created"],
        data=row["data"],
    )
