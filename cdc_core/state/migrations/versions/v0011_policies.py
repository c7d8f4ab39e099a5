"""Policies: what trouble stopped a table, and when a policy had it read again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """No policy has answered; which trouble stopped a table of an older store is not known."""
    with op.batch_alter_table("tables") as table:
        table.add_column(sa.Column("trouble", sa.String(length=20)))
        table.add_column(sa.Column("read_again", sa.Text()))
        table.add_column(sa.Column("rest_waits", sa.Text()))
