"""Windows have a time, a key for people, and counts per table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add columns to windows, and a table. Windows that are there keep the key that Dagster knows them by."""
    for column in (
        sa.Column("key", sa.String(length=80)),
        sa.Column("ended", sa.Float()),
        sa.Column("bytes", sa.BigInteger()),
        sa.Column("facts", sa.Text()),
        sa.Column("is_idle", sa.Boolean()),
    ):
        op.add_column("windows", column)
    op.create_table(
        "window_tables",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("ordinal", sa.BigInteger(), primary_key=True),
        sa.Column("owner", sa.String(length=128), primary_key=True),
        sa.Column("name", sa.String(length=128), primary_key=True),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.Column("rows_inserted", sa.BigInteger(), nullable=False),
        sa.Column("rows_updated", sa.BigInteger(), nullable=False),
        sa.Column("rows_deleted", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("applied", sa.Float(), nullable=False),
    )
