"""How is the database reached, and how are its existing rows read?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

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


OraCode = Annotated[str, Field(pattern=r"^(ORA-[0-9]{5}|DP[YI]-[0-9]{4})$")]
"""A code as Oracle or the driver prints it."""

DRIVER_PARAMETERS: Mapping[str, type] = {
    "cclass": str,
    "connection_id_prefix": str,
    "disable_oob": bool,
    "edition": str,
    "https_proxy": str,
    "https_proxy_port": int,
    "machine": str,
    "osuser": str,
    "retry_count": int,
    "retry_delay": int,
    "sdu": int,
    "server_type": str,
    "terminal": str,
    "thick_mode_dsn_passthrough": bool,
    "use_eztls": bool,
    "use_sni": bool,
    "use_tcp_fast_open": bool,
}
"""Parameters of python-oracledb's ``ConnectParams`` that a source may set, and their types. Secrets
and what Redolake sets itself are not among them."""

_ANSWERS = frozenset({"ORA-01306", "ORA-01307", "ORA-08180", "ORA-08186"})
"""Codes that say that LogMiner is not started, and that no SCN is known for a time: they are
looked for, and would be tried again for ever."""


class ThickConfig(ConfigModel):
    """Oracle's client libraries, which python-oracledb then works through (thick mode)."""

    lib_dir: str | None = None
    """Folder of the libraries (Oracle Instant Client). By default, the driver looks for them in the
    system's library search path. On Linux they must always be there, because one library loads the
    others."""

    config_dir: str | None = None
    """Folder of ``sqlnet.ora``, ``tnsnames.ora`` and ``oraaccess.xml``; by default the
    environment's ``TNS_ADMIN``, or ``network/admin`` below the libraries."""


class OracleConfig(ConfigModel):
    """How to reach the database."""

    dsn: str
    """Easy Connect string (``db.example.com:1521/ORCLPDB1``, ``tcps://…`` for TLS), descriptor, or
    a name in ``tnsnames.ora``, without user and password."""

    pdb: PdbName | None = None
    """The pluggable database of the tables, if ``dsn`` leads to another container, such as the
    root. Each session switches to it (``ALTER SESSION SET CONTAINER``), which needs a common user
    with SET CONTAINER. By default, the container that ``dsn`` leads to. Put a name that is not
    upper case in double quotes, as for tables: ``'"sales"'``."""

    pdbs: tuple[PdbName, ...] = ()
    """Pluggable databases of the container database that ``dsn`` leads to, whose tables this file
    captures, for example ``[SALES, HR]``. Each becomes a separate source, named ``<name>_<pdb>``
    (``orders_sales``), with its own windows and Delta tables; they share connection, policies and
    all other options. Redolake captures tables named without a pluggable database in each. Needs a
    common user, like ``pdb``. Not together with ``pdb``."""

    user: str
    """The capture user; `deploy/oracle/` has the grants that it needs."""

    password: SecretStr
    """Its password. In a file, name an environment variable under ``password_env`` instead. Omit it
    with ``external_auth``."""

    session_user: str | None = None
    """The user whose rights the sessions have, if ``user`` connects as its proxy, after ``ALTER
    USER <session_user> GRANT CONNECT THROUGH <user>``. This user then needs the grants."""

    external_auth: bool = False
    """Log in through the operating system, a Kerberos ticket or a wallet, without a password. Needs
    ``thick``; ``user`` names the database's user, for example ``KERB@EXAMPLE.COM``, and appears
    only in hints."""

    thick: ThickConfig | None = None
    """Connect through Oracle's client libraries, for databases that require native network
    encryption (``SQLNET.ENCRYPTION_SERVER = REQUIRED``) or Kerberos. Connection parameters then
    come from ``dsn``, ``sqlnet.ora`` and ``tnsnames.ora``. ``thick: {}`` finds the libraries in the
    system's search path. By default, the driver needs no libraries."""

    call_timeout_seconds: Annotated[int, Field(gt=0)] = 600
    """Longest time that one call to the database may take, in seconds."""

    connect_timeout_seconds: Annotated[float, Field(gt=0)] = 20
    """Longest time that connecting may take, in seconds."""

    keepalive_minutes: Annotated[int, Field(ge=1)] | None = None
    """Minutes without traffic after which the operating system probes the connection (TCP
    keep-alive), so that firewalls do not cut it and a lost peer is detected. Some firewalls cut
    after four minutes. By default the connect string's ``EXPIRE_TIME``, or never."""

    driver: dict[str, bool | int | str] = Field(default_factory=dict)
    """Further parameters of the driver, by their names in python-oracledb's ``ConnectParams``:
    ``cclass``, ``connection_id_prefix``, ``disable_oob``, ``edition``, ``https_proxy``,
    ``https_proxy_port``, ``machine``, ``osuser``, ``retry_count``, ``retry_delay``, ``sdu``,
    ``server_type``, ``terminal``, ``thick_mode_dsn_passthrough``, ``use_eztls``, ``use_sni``,
    ``use_tcp_fast_open``."""

    retriable_ora_codes: tuple[OraCode, ...] = ()
    """Further codes of temporary errors, after which Redolake runs the step again, for example
    ``ORA-00600`` or ``ORA-12012``. Redolake refuses codes that already have a meaning."""

    resnapshot_ora_codes: tuple[OraCode, ...] = ()
    """Further codes with which the database refuses to read rows as of an SCN, likewise. As after
    ORA-01555, Redolake then reads chunks as of a newer SCN, by
    ``policies.on_snapshot_too_old``."""

    fetch_rows: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    """Rows per fetch and per Arrow batch."""

    config_dir: str | None = None
    """Folder with ``tnsnames.ora``, if ``dsn`` is a name in it; by default the environment's
    ``TNS_ADMIN``."""

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

    @field_validator("driver")
    @classmethod
    def _are_parameters(cls, given: dict[str, bool | int | str]) -> dict[str, bool | int | str]:
        for name, value in given.items():
            kind = DRIVER_PARAMETERS.get(name)
            if kind is None:
                raise ValueError(
                    f"{name} is not a parameter that you can set: {', '.join(DRIVER_PARAMETERS)}"
                )
            if type(value) is not kind:
                raise ValueError(f"{name} is of type {kind.__name__}")
        return given

    @model_validator(mode="before")
    @classmethod
    def _needs_no_password(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("external_auth") is True:
            return {"password": "", **given}
        return given

    @model_validator(mode="after")
    def _can_log_in(self) -> Self:
        if self.external_auth and self.thick is None:
            raise ValueError("external_auth needs Oracle's client libraries: set thick too")
        if self.external_auth and self.password.get_secret_value():
            raise ValueError("external_auth takes no password: leave one of them out")
        if both := sorted({*self.retriable_ora_codes} & {*self.resnapshot_ora_codes}):
            raise ValueError(f"in retriable_ora_codes and resnapshot_ora_codes: {', '.join(both)}")
        if answers := sorted(_ANSWERS & {*self.retriable_ora_codes, *self.resnapshot_ora_codes}):
            raise ValueError(
                f"with these codes Oracle answers questions of Redolake: {', '.join(answers)}"
            )
        return self

    @property
    def working_user(self) -> str:
        """The user whose rights count."""
        return self.session_user or self.user

    @field_validator("dsn")
    @classmethod
    def _has_no_secret(cls, dsn: str) -> str:
        return dsn_without_secret(dsn)
