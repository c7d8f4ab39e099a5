"""How far each redo thread was read, with every window."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Windows that are there have no positions: the next one takes what lies above their ends."""
    op.add_column("windows", sa.Column("positions", sa.Text()))
