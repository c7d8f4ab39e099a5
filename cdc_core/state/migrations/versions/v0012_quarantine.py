"""Quarantine: how many redo rows of a table, and of a window, could not be decoded."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Nothing was in quarantine."""
    for name, column in (("tables", "in_quarantine"), ("window_tables", "quarantined")):
        with op.batch_alter_table(name) as table:
            table.add_column(sa.Column(column, sa.BigInteger(), nullable=False, server_default="0"))
