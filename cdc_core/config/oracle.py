"""How is the database reached, and how are its existing rows read?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from cdc_core.config.base import ConfigModel, dsn_without_secret


class OracleConfig(ConfigModel):
    """How to reach the database."""

    dsn: str
    """Easy Connect string (``db.example.com:1521/ORCLPDB1``, ``tcps://…`` for TLS), descriptor, or a name of
    ``tnsnames.ora``. Without user and password."""

    user: str
    """The capture user; `deploy/oracle/` has the grants that it needs."""

    password: SecretStr
    """Its password. In a file, name an environment variable under ``password_env`` instead."""

    call_timeout_seconds: Annotated[int, Field(gt=0)] = 600
    """Longest time that one call to the database may take, in seconds."""

    connect_timeout_seconds: Annotated[float, Field(gt=0)] = 20
    """Longest time that connecting may take, in seconds."""

    fetch_rows: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    """Rows per fetch and per Arrow batch."""

    config_dir: str | None = None
    """Folder with ``tnsnames.ora``, for a dsn that is a name in it; the environment's ``TNS_ADMIN`` by default."""

    wallet_location: str | None = None
    """Folder with ``ewallet.pem``: the certificates to trust and, for mutual TLS, the client's own with its key."""

    wallet_password: SecretStr | None = None
    """Password of the wallet's key. In a file, name an environment variable under ``wallet_password_env`` instead."""

    server_certificate_match: bool = True
    """Refuse a server whose certificate is for another host."""

    server_certificate_dn: str | None = None
    """Distinguished name that the server's certificate must have, instead of the host's name."""

    @field_validator("dsn")
    @classmethod
    def _has_no_secret(cls, dsn: str) -> str:
        return dsn_without_secret(dsn)


class SnapshotConfig(ConfigModel):
    """How existing rows are read."""

    chunk_rows: Annotated[int, Field(ge=100)] = 500_000
    """Rows that a chunk should have, about."""

    chunk_by: Literal["key", "rowid"] = "key"
    """Cut chunks by ranges of the key, or by ROWID ranges from the table's extents."""

    sample_from_rows: Annotated[int, Field(ge=1)] | None = 5_000_000
    """From so many rows on, by the table's statistics, chunks are cut by a sample of its blocks, and are of about the same size; below,
    and for null, all keys are read and sorted, unless one chunk holds the table. A table without statistics is read."""
