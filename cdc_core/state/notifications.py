"""Which notifications were there lately?"""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, insert, select

from cdc_core.model.notifications import Notification
from cdc_core.state.database import StorePart, moment
from cdc_core.state.json_text import json_from_text, text_from_json
from cdc_core.state.sql_tables import NOTIFICATIONS


class Notifications(StorePart):
    """The newest notifications of each source."""

    def add(self, source: str, notification: Notification, *, keep: int) -> None:
        """Add a notification, and forget the oldest beyond ``keep``."""
        own = NOTIFICATIONS.c.source == source
        with self._database.writing() as connection:
            newest = select(func.max(NOTIFICATIONS.c.number)).where(own)
            number = int(connection.execute(newest).scalar() or 0) + 1
            connection.execute(
                insert(NOTIFICATIONS).values(
                    source=source,
                    number=number,
                    id=notification.id,
                    aggregate_type=notification.aggregate_type,
                    type=notification.type,
                    data=text_from_json(notification.data),
                    created=notification.timestamp.timestamp(),
                )
            )
            connection.execute(
                delete(NOTIFICATIONS).where(own, NOTIFICATIONS.c.number <= number - keep)
            )

    def newest(self, source: str, *, limit: int) -> list[Notification]:
        """The newest notifications, oldest of them first."""
        query = select(NOTIFICATIONS).where(NOTIFICATIONS.c.source == source)
        query = query.order_by(NOTIFICATIONS.c.number.desc()).limit(limit)
        with self._database.reading() as connection:
            rows = list(connection.execute(query).mappings())
        return [_notification(row) for row in reversed(rows)]

    def behind(self, source: str, number: int, *, limit: int) -> list[tuple[int, Notification]]:
        """The first notifications with a higher number, each with its own."""
        query = select(NOTIFICATIONS).where(
            NOTIFICATIONS.c.source == source, NOTIFICATIONS.c.number > number
        )
        query = query.order_by(NOTIFICATIONS.c.number).limit(limit)
        with self._database.reading() as connection:
            rows = list(connection.execute(query).mappings())
        return [(int(row["number"]), _notification(row)) for row in rows]


def _notification(row: Any) -> Notification:
    created = moment(row["created"])
    assert created is not None
    return Notification(
        id=row["id"],
        aggregate_type=row["aggregate_type"],
        type=row["type"],
        timestamp=created,
        data=json_from_text(row["data"]),
    )
