"""Signal tables: from which SCN on rows of each are signals."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add a table; the first look at a signal table writes its row."""
    op.create_table(
        "signal_tables",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("name", sa.String(length=300), primary_key=True),
        sa.Column("scn", sa.BigInteger(), nullable=False),
    )
