"""Fields that nothing ever set are gone."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Why a table stopped is its reason; a source is never set back. No value is lost: there was none."""
    for table, column in (
        ("sources", "generation"),
        ("sources", "last_error"),
        ("tables", "last_error"),
        ("chunks", "last_error"),
    ):
        with op.batch_alter_table(table) as batch:
            batch.drop_column(column)
