"""What can a user configure of one source?

One frozen tree; unknown keys are refused; the string under a field is its documentation. ``pipelines`` reads files and
environment, everything below receives these values.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class ConfigModel(BaseModel):
    """Frozen, no unknown keys, documentation from the strings under the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class OracleConfig(ConfigModel):
    """How to reach the database."""

    dsn: str
    """Easy Connect string or descriptor, for example ``db.example.com:1521/ORCLPDB1``."""

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


class TableConfig(ConfigModel):
    """One captured table."""

    name: str
    """``OWNER.TABLE``; double quotes around a part that is not upper case."""

    columns_exclude: tuple[str, ...] = ()
    """Columns that are not captured, for example of types that are not supported."""

    key: tuple[str, ...] = ()
    """Columns that identify a row, all NOT NULL; by default the primary key, else a unique index over NOT NULL columns."""

    @field_validator("name")
    @classmethod
    def _is_table(cls, name: str) -> str:
        try:
            TableId.parse(name)
        except ConfigError as error:
            raise ValueError(str(error)) from error  # what pydantic gathers with the other problems
        return name

    @property
    def table(self) -> TableId:
        """The table that is named."""
        return TableId.parse(self.name)


class LogMinerConfig(ConfigModel):
    """Read redo through DBMS_LOGMNR."""

    type: Literal["logminer"] = "logminer"

    window_redo_bytes_max: Annotated[int, Field(gt=0)] = 2 * 1024**3
    """Redo handed to one window, in bytes; windows are cut at log boundaries to respect it."""

    windows_per_run_max: Annotated[int, Field(gt=0)] = 20
    """Windows that one scheduled run takes at most."""


class SnapshotConfig(ConfigModel):
    """How existing rows are read."""

    chunk_rows: Annotated[int, Field(ge=100)] = 500_000
    """Rows that a chunk should have, about."""

    chunk_by: Literal["key", "rowid"] = "key"
    """Cut chunks by ranges of the key, or by ROWID ranges from the table's extents."""


class LocalLandingConfig(ConfigModel):
    """Landing files in a folder."""

    type: Literal["local"] = "local"

    path: str
    """Folder; created if it is not there."""


class S3LandingConfig(ConfigModel):
    """Landing files in S3. Credentials come from the environment as boto3 finds them."""

    type: Literal["s3"] = "s3"

    bucket: str
    """Bucket, which must exist."""

    prefix: str = "redolake"
    """Key prefix."""

    endpoint_url: str | None = None
    """Another endpoint than AWS's, for S3-compatible stores."""

    cache: str
    """Local folder where files are kept while Spark reads them."""


class LakeConfig(ConfigModel):
    """Where the Delta tables are, and how Spark is started."""

    path: str
    """Folder below which tables stand: ``<path>/<source>/mirror/<owner.table>`` and ``…/changelog/<owner.table>``."""

    spark_master: str = "local[2]"
    """Spark's master URL."""

    spark_config: dict[str, str] = Field(default_factory=dict)
    """Further Spark settings; they win over ours."""

    driver_memory: str = "2g"
    """Heap of the Spark driver."""

    tables_at_once: Annotated[int, Field(ge=1, le=16)] = 2
    """Tables that are merged side by side."""


class StateConfig(ConfigModel):
    """The metadata store."""

    url: str
    """SQLAlchemy URL: ``sqlite:////absolute/path.db`` or ``postgresql+psycopg2://…``."""

    lease_seconds: Annotated[float, Field(gt=1)] = 60
    """A process that gave no sign of life for so long has lost its source to others, in seconds."""


class SignalConfig(ConfigModel):
    """Where signals come from besides the metadata store."""

    table: str | None = None
    """A signal table in Oracle (``id VARCHAR2``, ``type VARCHAR2``, ``data VARCHAR2``), read only; None for none."""


class SourceConfig(ConfigModel):
    """One Oracle database and the tables captured from it."""

    name: Name
    """Name of the source: part of asset keys, folders and Delta transaction identifiers. Never change it."""

    oracle: OracleConfig
    tables: Annotated[tuple[TableConfig, ...], Field(min_length=1)]
    capture: LogMinerConfig = LogMinerConfig()
    snapshot: SnapshotConfig = SnapshotConfig()
    landing: Annotated[LocalLandingConfig | S3LandingConfig, Field(discriminator="type")]
    lake: LakeConfig
    state: StateConfig
    signals: SignalConfig = SignalConfig()

    @model_validator(mode="after")
    def _tables_differ(self) -> SourceConfig:
        names = [config.table for config in self.tables]
        twice = {str(name) for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"tables named more than once: {', '.join(sorted(twice))}")
        return self

    def table(self, table: TableId) -> TableConfig:
        """The configuration of a captured table; KeyError if it is not captured."""
        for config in self.tables:
            if config.table == table:
                return config
        raise KeyError(str(table))
