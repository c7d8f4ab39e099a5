"""What the ledger keeps of each open transaction besides its rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Transactions that are there are open; how many of their rows are undo rows is not known, so none."""
    with op.batch_alter_table("open_transactions") as table:
        table.add_column(sa.Column("undone", sa.BigInteger(), nullable=False, server_default="0"))
        table.add_column(
            sa.Column("state", sa.String(length=20), nullable=False, server_default="open")
        )
        table.add_column(sa.Column("session_id", sa.BigInteger()))
        table.add_column(sa.Column("serial", sa.BigInteger()))
        table.add_column(sa.Column("absent_scn", sa.BigInteger()))
