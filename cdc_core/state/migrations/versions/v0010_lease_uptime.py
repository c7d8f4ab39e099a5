"""Leases of one machine run by its uptime, which no change of the clock touches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Leases that are held end by the database's clock."""
    with op.batch_alter_table("leases") as table:
        table.add_column(sa.Column("expires_uptime", sa.Float()))
