"""The tables that the patterns of the configuration name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """No pattern has been looked up."""
    op.create_table(
        "found_tables",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("owner", sa.String(length=128), primary_key=True),
        sa.Column("name", sa.String(length=128), primary_key=True),
        sa.Column("columns_exclude", sa.Text(), nullable=False),
        sa.Column("left_out", sa.Text(), nullable=False),
    )
