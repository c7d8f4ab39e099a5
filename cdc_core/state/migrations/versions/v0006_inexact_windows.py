"""Which windows lacked commits that came to light later."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Of windows that are there nothing is known to be missing: a table that met a late commit was stopped."""
    with op.batch_alter_table("windows") as table:
        table.add_column(sa.Column("inexact", sa.Text()))
