"""The first form of the metadata store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "chunks",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("owner", sa.String(length=128), primary_key=True),
        sa.Column("name", sa.String(length=128), primary_key=True),
        sa.Column("snapshot_id", sa.String(length=80), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("scn", sa.BigInteger(), nullable=False),
        sa.Column("range", sa.Text(), nullable=False),
        sa.Column("condition", sa.Text()),
        sa.Column("signal_id", sa.String(length=200)),
        sa.Column("state", sa.String(length=20), nullable=False, index=True),
        sa.Column("rows", sa.BigInteger()),
        sa.Column("seconds", sa.Float()),
        sa.Column("apply_seconds", sa.Float()),
        sa.Column("applied", sa.Float()),
        sa.Column("manifest_sha256", sa.String(length=64)),
    )
    op.create_table(
        "comparisons",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("owner", sa.String(length=128), primary_key=True),
        sa.Column("name", sa.String(length=128), primary_key=True),
        sa.Column("scn", sa.BigInteger(), nullable=False),
        sa.Column("compared", sa.Float(), nullable=False),
        sa.Column("rows_compared", sa.BigInteger(), nullable=False),
        sa.Column("differences", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "found_tables",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("owner", sa.String(length=128), primary_key=True),
        sa.Column("name", sa.String(length=128), primary_key=True),
        sa.Column("columns_exclude", sa.Text(), nullable=False),
        sa.Column("left_out", sa.Text(), nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=800), primary_key=True),
        sa.Column("holder", sa.String(length=300)),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("heartbeat", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("expires_uptime", sa.Float()),
    )
    op.create_table(
        "open_transactions",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("xid", sa.String(length=16), primary_key=True),
        sa.Column("start_scn", sa.BigInteger()),
        sa.Column("first_ordinal", sa.BigInteger(), nullable=False),
        sa.Column("has_rollback", sa.Boolean(), nullable=False),
        sa.Column("tables", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("username", sa.String(length=128)),
        sa.Column("undone", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("session_id", sa.BigInteger()),
        sa.Column("serial", sa.BigInteger()),
        sa.Column("absent_scn", sa.BigInteger()),
        sa.Column("start_timestamp", sa.DateTime()),
        sa.Column("client_id", sa.String(length=64)),
        sa.Column("windows", sa.Text(), nullable=False),
    )
    op.create_table(
        "schema_versions",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("owner", sa.String(length=128), primary_key=True),
        sa.Column("name", sa.String(length=128), primary_key=True),
        sa.Column("scn_from", sa.BigInteger(), primary_key=True),
        sa.Column("schema", sa.Text(), nullable=False),
        sa.Column("ddl", sa.Text()),
    )
    op.create_table(
        "signal_tables",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("name", sa.String(length=300), primary_key=True),
        sa.Column("scn", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "signal_offsets",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("topic", sa.String(length=300), primary_key=True),
        sa.Column("partition", sa.Integer(), primary_key=True),
        sa.Column("next", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "notifications",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("number", sa.BigInteger(), primary_key=True),
        sa.Column("id", sa.String(length=300), nullable=False),
        sa.Column("aggregate_type", sa.String(length=40), nullable=False),
        sa.Column("type", sa.String(length=40), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
    )
    op.create_table(
        "snapshot_pauses",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("since", sa.Float(), nullable=False),
    )
    op.create_table(
        "signals",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("id", sa.String(length=200), primary_key=True),
        sa.Column("type", sa.String(length=40), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("channel", sa.String(length=40), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False, index=True),
        sa.Column("reason", sa.Text()),
        sa.Column("created", sa.Float(), nullable=False),
    )
    op.create_table(
        "sources",
        sa.Column("name", sa.String(length=40), primary_key=True),
        sa.Column("snapshot_scn", sa.BigInteger()),
        sa.Column("mining_low", sa.BigInteger()),
        sa.Column("resetlogs_change", sa.BigInteger()),
        sa.Column("database_name", sa.String(length=128)),
        sa.Column("dbid", sa.BigInteger()),
    )
    op.create_table(
        "tables",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("owner", sa.String(length=128), primary_key=True),
        sa.Column("name", sa.String(length=128), primary_key=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("snapshot_id", sa.String(length=80)),
        sa.Column("snapshot_scn", sa.BigInteger()),
        sa.Column("consistent_scn", sa.BigInteger()),
        sa.Column("mirror_scn", sa.BigInteger()),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("row_filter", sa.Text()),
        sa.Column("first_ordinal", sa.BigInteger(), nullable=False),
        sa.Column("mining_low", sa.BigInteger()),
        sa.Column("stopped_scn", sa.BigInteger()),
        sa.Column("reason", sa.Text()),
        sa.Column("way_out", sa.Text()),
        sa.Column("since", sa.Float()),
        sa.Column("asked_by", sa.String(length=20)),
        sa.Column("trouble", sa.String(length=20)),
        sa.Column("read_again", sa.Text()),
        sa.Column("rest_waits", sa.Text()),
        sa.Column("in_quarantine", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "totals",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("metric", sa.String(length=80), primary_key=True),
        sa.Column("labels", sa.String(length=600), primary_key=True),
        sa.Column("value", sa.Float(), nullable=False),
    )
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
        sa.Column("quarantined", sa.BigInteger(), nullable=False),
        sa.Column("write_way", sa.String(length=20)),
        sa.Column("write_reason", sa.Text()),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("applied", sa.Float(), nullable=False),
    )
    op.create_table(
        "windows",
        sa.Column("source", sa.String(length=40), primary_key=True),
        sa.Column("ordinal", sa.BigInteger(), primary_key=True),
        sa.Column("scn_low", sa.BigInteger(), nullable=False),
        sa.Column("scn_high", sa.BigInteger(), nullable=False),
        sa.Column("mining_low", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False, index=True),
        sa.Column("rows", sa.BigInteger()),
        sa.Column("seconds", sa.Float()),
        sa.Column("apply_seconds", sa.Float()),
        sa.Column("manifest_sha256", sa.String(length=64)),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("captured", sa.Float()),
        sa.Column("applied", sa.Float()),
        sa.Column("last_error", sa.Text()),
        sa.Column("positions", sa.Text()),
        sa.Column("key", sa.String(length=80), nullable=False),
        sa.Column("ended", sa.Float()),
        sa.Column("bytes", sa.BigInteger()),
        sa.Column("facts", sa.Text()),
        sa.Column("is_idle", sa.Boolean()),
        sa.Column("inexact", sa.Text()),
        sa.UniqueConstraint("source", "scn_high"),
        sa.UniqueConstraint("source", "scn_low"),
    )
