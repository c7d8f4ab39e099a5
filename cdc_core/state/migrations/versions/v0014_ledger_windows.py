"""In which windows an open transaction's captured rows landed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Of transactions that are open now, nobody knows: all windows since their first row are read for them."""
    with op.batch_alter_table("open_transactions") as table:
        table.add_column(sa.Column("windows", sa.Text()))
