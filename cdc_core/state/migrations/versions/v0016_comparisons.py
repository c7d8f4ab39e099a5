"""Comparisons: what became of each table's last comparison with Oracle."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add a table; what an older version has compared is not known."""
    op.create_table(
        "comparisons",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("owner", sa.String(length=128), primary_key=True),
        sa.Column("name", sa.String(length=128), primary_key=True),
        sa.Column("scn", sa.BigInteger(), nullable=False),
        sa.Column("compared", sa.Float(), nullable=False),
        sa.Column("rows_compared", sa.BigInteger(), nullable=False),
        sa.Column("differences", sa.BigInteger(), nullable=False),
    )
