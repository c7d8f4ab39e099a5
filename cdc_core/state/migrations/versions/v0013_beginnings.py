"""Who began an open transaction, and when: the database's time and the session's CLIENT_IDENTIFIER."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Of transactions that are open now, nobody knows."""
    with op.batch_alter_table("open_transactions") as table:
        table.add_column(sa.Column("start_timestamp", sa.DateTime()))
        table.add_column(sa.Column("client_id", sa.String(length=64)))
