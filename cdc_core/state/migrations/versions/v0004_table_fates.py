"""Each table has its own fate: where its stream begins and ends, and why."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Tables of an older store began with the source, and their stream has no end."""
    with op.batch_alter_table("tables") as table:
        table.add_column(sa.Column("generation", sa.Integer(), nullable=False, server_default="1"))
        table.add_column(
            sa.Column("first_ordinal", sa.BigInteger(), nullable=False, server_default="0")
        )
        table.add_column(sa.Column("mining_low", sa.BigInteger()))
        table.add_column(sa.Column("stopped_scn", sa.BigInteger()))
        table.add_column(sa.Column("reason", sa.Text()))
        table.add_column(sa.Column("way_out", sa.Text()))
        table.add_column(sa.Column("since", sa.Float()))
        table.add_column(sa.Column("asked_by", sa.String(length=20)))
