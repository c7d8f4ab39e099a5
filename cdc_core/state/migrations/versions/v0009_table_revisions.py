"""How often a table's record or definitions changed: landing keeps the newest of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Tables that are there have not been kept in landing yet: their first revision is 1."""
    with op.batch_alter_table("tables") as table:
        table.add_column(sa.Column("revision", sa.BigInteger(), nullable=False, server_default="1"))
