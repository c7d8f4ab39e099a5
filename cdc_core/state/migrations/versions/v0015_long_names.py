"""Names of leases as long as two of Oracle's longest names and a chunk's key ask for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """SQLite keeps to no length; PostgreSQL does."""
    with op.batch_alter_table("leases") as table:
        table.alter_column("name", type_=sa.String(length=800), existing_nullable=False)
