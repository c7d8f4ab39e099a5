"""How is the database reached, and how are its existing rows read?"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from cdc_core.config.base import ConfigModel, dsn_without_secret
from cdc_core.model.identifiers import container_name

PDB_PATTERN = r"[A-Za-z][A-Za-z0-9_]*"
"""Letters, digits and underscores, a letter first. Source: SQL Language Reference 19c, CREATE
PLUGGABLE DATABASE."""
PdbName = Annotated[
    str,
    Field(pattern=rf'^({PDB_PATTERN}|"{PDB_PATTERN}")$', max_length=130),
    AfterValidator(container_name),
]
"""As Oracle keeps it: in upper case, and in double quotes as it is written."""


class OracleConfig(ConfigModel):
    """How to reach the database."""

    dsn: str
    """Easy Connect string (``db.example.com:1521/ORCLPDB1``, ``tcps://…`` for TLS), descriptor, or
    a name of ``tnsnames.ora``. Without user and password."""

    pdb: PdbName | None = None
    """The pluggable database of the tables, where ``dsn`` leads to another container, such as the
    root: each session changes to it (``ALTER SESSION SET CONTAINER``), which needs a common user
    with SET CONTAINER. By default the container that ``dsn`` leads to. Put a name that is not upper
    case in double quotes, as for tables: ``'"sales"'``."""

    pdbs: tuple[PdbName, ...] = ()
    """Pluggable databases of the container database that ``dsn`` leads to, whose tables this file
    captures, for example ``[SALES, HR]``. Each becomes a separate source, named ``<name>_<pdb>``
    (``orders_sales``), with its own windows and Delta tables; connection, policies and all other
    options are shared. Tables named without a pluggable database are captured in each. Needs a
    common user, as ``pdb`` does. Not together with ``pdb``."""

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
    """Folder with ``tnsnames.ora``, for a dsn that is a name in it; the environment's ``TNS_ADMIN``
    by default."""

    wallet_location: str | None = None
    """Folder with ``ewallet.pem``: the certificates to trust and, for mutual TLS, the client's own
    with its key."""

    wallet_password: SecretStr | None = None
    """Password of the wallet's key. In a file, name an environment variable under
    ``wallet_password_env`` instead."""

    server_certificate_match: bool = True
    """Refuse a server whose certificate is for another host."""

    server_certificate_dn: str | None = None
    """Distinguished name that the server's certificate must have, instead of the host's name."""

    @field_validator("pdbs")
    @classmethod
    def _differ(cls, pdbs: tuple[str, ...]) -> tuple[str, ...]:
        # Their sources are called by their names in lower case.
        names = [pdb.lower() for pdb in pdbs]
        if twice := sorted({pdb for pdb in pdbs if names.count(pdb.lower()) > 1}):
            raise ValueError(f"pluggable databases named more than once: {', '.join(twice)}")
        return pdbs

    @model_validator(mode="after")
    def _has_one_or_several(self) -> Self:
        if self.pdb is not None and self.pdbs:
            raise ValueError(
                "pdb names one pluggable database, and pdbs several: leave one of them out"
            )
        return self

    @field_validator("dsn")
    @classmethod
    def _has_no_secret(cls, dsn: str) -> str:
        return dsn_without_secret(dsn)
