"""The first form of the metadata store: the tables of :mod:`cdc_core.state.sql_tables`, as long as
no migration follows. The second one freezes them here."""

from __future__ import annotations

from alembic import op

from cdc_core.state.sql_tables import METADATA

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    METADATA.create_all(op.get_bind())
