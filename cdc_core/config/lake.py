"""Where do landing files and Delta tables go, and how are they kept?"""

from __future__ import annotations

import os
import re
from math import prod
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from cdc_core.config.base import ConfigModel, checked, split_url_password
from cdc_core.config.history import HistoryConfig, HistoryKind
from cdc_core.model.identifiers import TableId
from cdc_core.model.templates import (
    DEFAULT_PATHS,
    LakeLayer,
    PathTemplates,
    check_path,
    check_table_name,
    filled,
)

_CLUSTER_CORES = 8
_CLOUD_URL = re.compile(r"abfss://[^@/:]+@[^@/:]+\.[^@/:?]+(/[^@?]*)?|gs://[^@/:?]+(/[^@?]*)?")
_NOT_A_CLOUD_URL = (
    "it is neither abfss://container@account.dfs.core.windows.net/path nor gs://bucket/path; "
    "credentials come from the environment"
)


class LocalLandingConfig(ConfigModel):
    """Landing files in a folder."""

    type: Literal["local"] = "local"

    path: str
    """Folder; created if it does not exist."""

    @property
    def uri(self) -> str:
        """Where the files are."""
        return f"file://{self.path}"


class CachedLandingConfig(ConfigModel):
    """Landing files in an object store, with copies on this machine."""

    cache: str
    """Local folder for the files that this machine writes and applies."""

    cache_hours: Annotated[int, Field(ge=1)] | None = 24
    """Hours after its last use when a file leaves the cache; each process cleans up when it starts.
    `null` keeps files until their window or chunk is removed from landing."""


class S3LandingConfig(CachedLandingConfig):
    """Landing files in S3. Credentials come from the environment as boto3 finds them."""

    type: Literal["s3"] = "s3"

    bucket: str
    """Bucket, which must exist."""

    prefix: str = "redolake"
    """Key prefix."""

    endpoint_url: str | None = None
    """Another endpoint than AWS's, for S3-compatible stores."""

    @field_validator("endpoint_url")
    @classmethod
    def _has_no_secret(cls, url: str | None) -> str | None:
        if url is not None and "@" in url:
            raise ValueError(
                "it holds a name or a key: credentials come from the environment as boto3 finds them "
                "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE …)"
            )
        return url

    @property
    def uri(self) -> str:
        """Where the files are."""
        return f"s3://{self.bucket}/{self.prefix}"


class ObjectLandingConfig(CachedLandingConfig):
    """Landing files in Azure Blob Storage or Google Cloud Storage. Credentials come from the
    environment. Needs the extra ``redolake[azure]`` or ``redolake[gcs]``."""

    type: Literal["object_store"] = "object_store"

    url: str
    """``abfss://container@account.dfs.core.windows.net/path`` or ``gs://bucket/path``. Container or
    bucket must exist."""

    @field_validator("url")
    @classmethod
    def _is_known(cls, url: str) -> str:
        if not _CLOUD_URL.fullmatch(url):
            raise ValueError(_NOT_A_CLOUD_URL)
        return url

    @property
    def uri(self) -> str:
        """Where the files are."""
        return self.url


LandingConfig = LocalLandingConfig | S3LandingConfig | ObjectLandingConfig
"""Where landing files are."""

_S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
_LOG_STORES = {
    **dict.fromkeys(_S3_SCHEMES, "S3SingleDriverLogStore"),
    "abfss": "AzureLogStore",
    "gs": "GCSLogStore",
}
"""By scheme: Delta's own log store for it."""

_OF_CLOUDS = frozenset({"abfs", "abfss", "adl", "az", "azure", "gs", "gcs", "wasb", "wasbs"})

_S3_DYNAMODB = "S3DynamoDBLogStore"


ExecutorsFrom = Annotated[int, Field(ge=1)] | Literal["auto", "never"]

PathTemplate = Annotated[str, AfterValidator(lambda text: checked(text, check_path))]

ChangeLogColumn = Literal["ssn", "start_scn", "start_timestamp", "client_id", "landed", "redo_sql"]


class CurrentViewsConfig(ConfigModel):
    """Views of all mirrors as of one SCN, the newest that all tables in the stream have, so that a
    join over them always reads one SCN. `redolake run` renews them after each round, and a window
    run of Dagster at its end, as the asset ``<source>/current_views``."""

    spark: bool = False
    """Views ``<source>_current.<owner>_<table>`` in the catalog of Spark's session, which must
    persist them, for example with ``spark.sql.catalogImplementation: hive`` under
    ``lake.spark_config``."""

    duckdb: str | None = None
    """A DuckDB file with a view ``<owner>_<table>`` for each table, which Redolake replaces with
    each change. Needs ``pip install duckdb``."""

    @property
    def is_any(self) -> bool:
        """Are there to be views?"""
        return self.spark or self.duckdb is not None


NameTemplate = Annotated[str, AfterValidator(lambda text: checked(text, check_table_name))]


class UnityConfig(ConfigModel):
    """A Unity Catalog, open-source or of Databricks, in which Redolake registers tables through the
    REST API, without Spark."""

    uri: str
    """Its address, such as ``https://unity.example.com``, or that of a workspace of Databricks."""

    token: SecretStr | None = None
    """An access token. In a file, name an environment variable under ``token_env`` instead."""

    @field_validator("uri")
    @classmethod
    def _is_an_address(cls, uri: str) -> str:
        if not uri.startswith(("http://", "https://")):
            raise ValueError("write an address that begins with https:// or http://")
        if split_url_password(uri)[1] is not None:
            raise ValueError("it holds a password: name the token under token_env")
        return uri

    @field_validator("token")
    @classmethod
    def _fits_into_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        said = "" if token is None else token.get_secret_value()
        if not (said.isascii() and said.isprintable()):
            raise ValueError("it has a line break, or another character that no token has")
        return token


class CatalogConfig(ConfigModel):
    """Names of the Delta tables in a catalog. Fields are those of ``lake.mirror_path``, and
    ``{catalog}``."""

    catalog: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")] = "spark_catalog"
    """What ``{catalog}`` stands for: the session's own catalog, or another one that its
    configuration names."""

    mirror_name: NameTemplate = "{catalog}.{owner_lower}.{table_lower}"
    """Name of a table's mirror."""

    changelog_name: NameTemplate | None = None
    """Name of a table's change log, such as ``{catalog}.{owner_lower}.{table_lower}_changes``; by
    default, Redolake does not register it."""

    history_name: NameTemplate | None = None
    """Name of a table's history, likewise."""

    unity: UnityConfig | None = None
    """Register the names through the REST API of a Unity Catalog, without Spark. Name one of its
    catalogs under ``catalog``; names have three parts. By default, Spark's session registers
    them."""

    @model_validator(mode="after")
    def _unity_has_three_parts(self) -> Self:
        names = (self.mirror_name, self.changelog_name, self.history_name)
        if self.unity is not None and (
            self.catalog == "spark_catalog"
            or any(name is not None and name.count(".") != 2 for name in names)
        ):
            raise ValueError(
                "with unity, name a catalog of Unity Catalog under catalog, and three parts in each"
                " template, such as {catalog}.{owner_lower}.{table_lower}"
            )
        return self

    def name_of(self, layer: LakeLayer, source: str, table: TableId) -> str | None:
        """The name of one Delta table; None if it is not registered."""
        template: str | None = getattr(self, f"{layer}_name")
        return None if template is None else filled(template, source, table, catalog=self.catalog)


class LakeConfig(ConfigModel):
    """Where the Delta tables are, and how to start Spark."""

    path: str
    """Folder of the Delta tables: ``<path>/<source>/mirror/<owner.table>`` and
    ``…/changelog/<owner.table>``. On S3 (``s3a://bucket/path``, after ``redolake setup --s3``) one
    process writes at a time. In Azure Blob Storage:
    ``abfss://container@account.dfs.core.windows.net/path``, in Google Cloud Storage:
    ``gs://bucket/path``, with the extra ``redolake[azure]`` or ``redolake[gcs]``."""

    mirror_path: PathTemplate = DEFAULT_PATHS.mirror
    """Where a table's mirror is, below ``path``, such as ``bronze/{owner_lower}/{table_lower}``.
    Fields are ``{source}``, ``{owner}`` and ``{table}`` as in Oracle's dictionary,
    ``{owner_lower}``, ``{table_lower}``, and ``{digest}``, eight digits that distinguish tables
    whose names differ only in case. Redolake refuses two tables whose folders differ only in case,
    or are one inside the other. To change a template once tables exist, move their folders."""

    changelog_path: PathTemplate = DEFAULT_PATHS.changelog
    """Where a table's change log is, likewise."""

    history_path: PathTemplate = DEFAULT_PATHS.history
    """Where a table's history is, likewise."""

    catalog: CatalogConfig | None = None
    """Register the Delta tables in the catalog of Spark's session (Hive's metastore, Unity Catalog,
    Glue), or in a Unity Catalog without Spark, with Oracle's comments of tables and columns.
    ``catalog: {}`` uses the default names. By default, tables have only paths."""

    spark_master: str = "local[2]"
    """Spark's master URL: ``local[N]`` for N threads in Redolake's process, or a cluster such as
    ``spark://host:7077``. A cluster's executors get Delta's jars from the driver; every executor
    must see landing and lake under the same path. If executors cannot reach the driver at the
    address that Spark chooses, set another as ``spark.driver.host`` under ``spark_config``.
    Redolake refuses Spark Connect (``sc://``)."""

    spark_config: dict[str, str] = Field(default_factory=dict)
    """Further Spark settings, which override Redolake's own."""

    driver_memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[kmgtKMGT]b?$")] = "2g"
    """Heap of the Spark driver: a number and a unit, as in ``2g`` or ``512m``."""

    tables_at_once: Annotated[int, Field(ge=1, le=16)] = 2
    """Number of tables that Redolake merges at once."""

    stage_on_executors_from_rows: ExecutorsFrom = "auto"
    """If a window has at least this many redo rows of one table, Spark's executors stage it: they
    decode the rows, write the change log's files and reduce the changes to one row per key. Threads
    of Redolake's process stage smaller windows. ``auto``: 1,000,000 rows, and only on a cluster. A
    number also applies to ``local[N]``. ``never``: executors run no Python. Executors that stage
    need the same version of Redolake in their Python (``spark.pyspark.python`` under
    ``spark_config``; by default the path of the driver's Python). With landing in an object store,
    threads stage all windows; with ``auto``, also if the executors lack Redolake."""

    merge: Literal["auto", "spark"] = "auto"
    """How Redolake merges changes into mirrors. ``auto``: Redolake appends rows whose keys a mirror
    cannot have without Spark, and for all others uses the method with the shortest estimate:
    copy-on-write or deletion vectors, both without Spark, or Spark's MERGE. ``spark``: always
    Spark's MERGE. The resulting rows are the same. Each window's report shows the method, the
    reason, and the estimated time."""

    rewrite_mirrors_up_to_mb: Annotated[int, Field(ge=0, le=16384)] = 1024
    """How many MiB of a mirror's files Redolake may rewrite for a window without Spark. Only files
    that can contain the window's keys count: with whole numbers as keys, the files whose key ranges
    match; with other keys, all files of the mirror. Above this limit, Spark merges the window. In a
    mirror with deletion vectors, Redolake marks rows instead of rewriting files, in files of
    together up to 200 million rows, whatever their size. 0: Spark merges all windows."""

    change_log_columns: tuple[ChangeLogColumn, ...] = (
        "ssn",
        "start_scn",
        "start_timestamp",
        "client_id",
        "landed",
    )
    """Optional columns ``_cdc_…`` of the change log; a column that you omit here is NULL. All
    except ``ssn`` and ``redo_sql`` are the same for a whole transaction or window, and take little
    space. ``redo_sql``, which is off by default, is the statement as LogMiner showed it, without
    the values that ``columns_exclude`` and ``columns_mask`` keep from landing; it takes about as
    much space as all other columns. OpenLogReplicator and XStream show no statements."""

    history: HistoryKind = "none"
    """A third Delta table per captured table, ``<path>/<source>/history/<owner.table>``. ``scd2``:
    one row per state of a row (slowly changing dimension, type 2). ``soft_deletes``: one row per
    key, with the current values or, if it was deleted, the last ones, and SCN and time of its
    deletion. `redolake run`, the window runs of Dagster and `redolake history` update it. Needs a
    key, or ``identity: rowid``."""

    history_table: HistoryConfig = HistoryConfig()
    """Columns of history tables, and what begins a state."""

    current_views: CurrentViewsConfig = CurrentViewsConfig()
    """Views of the newest consistent cut."""

    transactions: bool = False
    """Keep a Delta table of the transactions in the change logs: ``<path>/<source>/transactions``,
    one row for each, with the number of its changes per table, so that a reader knows when it has
    all of them. It costs one commit per window."""

    schema_changes: bool = True
    """Keep a Delta table of every change of the tables' definitions:
    ``<path>/<source>/schema_changes``."""

    @field_validator("spark_master")
    @classmethod
    def _is_classic(cls, url: str) -> str:
        if url.startswith("sc:"):
            raise ValueError(
                "Spark Connect is not supported: each table's work needs a separate session, and a Connect client has one; "
                "name the cluster itself (spark://host:port)"
            )
        return url

    @model_validator(mode="after")
    def _keeps_commits(self) -> Self:
        """Delta's log stores for other storage write to an object store as to a file system that
        renames in one step, and the one with locks in DynamoDB knows nothing of what delta-rs
        commits: commits get lost."""
        own = _LOG_STORES.get(self._scheme)
        for name in (f"spark.delta.logStore.{self._scheme}.impl", "spark.delta.logStore.class"):
            given = self.spark_config.get(name, "").rpartition(".")[2]
            if own is None or given in ("", own):
                continue
            if given == _S3_DYNAMODB:
                raise ValueError(
                    f"spark_config.{name}: Redolake commits by itself too, without this log store's locks in DynamoDB, "
                    "so commits to S3 could overwrite each other without an error; leave it out: one process writes at a time"
                )
            raise ValueError(
                f"spark_config.{name}: with this log store, commits to an object store overwrite each other without an error; leave it out"
            )
        return self

    @field_validator("path")
    @classmethod
    def _is_known(cls, path: str) -> str:
        scheme, has_scheme, _ = path.partition("://")
        if scheme in _OF_CLOUDS and not _CLOUD_URL.fullmatch(path):
            raise ValueError(_NOT_A_CLOUD_URL)
        if has_scheme and scheme not in _LOG_STORES:
            raise ValueError(
                f"Redolake commits to no Delta tables under {scheme}://; name a folder, or a place in "
                "s3://, abfss:// or gs://"
            )
        return path

    @property
    def root(self) -> str:
        """``path``, absolute where it is a folder."""
        return self.path if "://" in self.path else str(Path(self.path).absolute())

    @property
    def paths(self) -> PathTemplates:
        """Where the Delta tables of captured tables are."""
        return PathTemplates(self.mirror_path, self.changelog_path, self.history_path)

    @property
    def is_local(self) -> bool:
        """Do the executors run in the driver's process?"""
        return self.spark_master.partition("[")[0] == "local"

    @property
    def spark_cores(self) -> int:
        """How many tasks Spark runs at once, as far as that is configured; a cluster that says
        nothing has eight."""
        if self.is_local:
            said = self.spark_master.partition("[")[2].rstrip("]").partition(",")[0]
            return int(said) if said.isdecimal() else os.cpu_count() or 1
        cores = self.spark_config.get("spark.cores.max", "")
        if cores.isdecimal():
            return int(cores)
        names = ("spark.executor.instances", "spark.executor.cores")
        found = [self.spark_config.get(name, "") for name in names]
        return prod(map(int, found)) if all(map(str.isdecimal, found)) else _CLUSTER_CORES

    @property
    def is_on_s3(self) -> bool:
        """Are the Delta tables in S3, or a store that speaks its protocol?"""
        return self._scheme in _S3_SCHEMES

    @property
    def has_atomic_commits(self) -> bool:
        """Does a commit fail where another writer made one? Delta's own way of writing to S3
        overwrites it without an error."""
        return not self.is_on_s3

    @property
    def _scheme(self) -> str:
        scheme, has_scheme, _ = self.path.partition("://")
        return scheme if has_scheme else ""

    @property
    def log_store(self) -> dict[str, str]:
        """The setting of Spark that names Delta's own log store for the lake's scheme; none where
        Delta chooses the right one by itself."""
        name = f"spark.delta.logStore.{self._scheme}.impl"
        return {name: "io.delta.storage.GCSLogStore"} if self._scheme == "gs" else {}


class RetentionConfig(ConfigModel):
    """How long Redolake keeps landing files. Change logs and mirrors are not affected."""

    window_days: Annotated[int, Field(ge=1)] | None = 30
    """Days for which Redolake keeps an applied window's landing files and record, so that you can
    replay it; `null` keeps them forever. Windows of open transactions always stay."""

    chunk_days: Annotated[int, Field(ge=1)] | None = None
    """Days after which `redolake maintain` removes the landing files of applied chunks that are no
    longer needed: chunks of earlier streams of a table, of tables that left, and of a table with
    changes in windows that ``window_days`` retired; `null` keeps them. Files that
    ``redolake table rebuild --from-landing`` can use always stay."""


DeletionVectors = Literal["auto", "always", "never"]

DeltaFeature = Literal[
    "change_data_feed", "column_mapping", "row_tracking", "iceberg_compatibility"
]


class MaintenanceConfig(ConfigModel):
    """What `redolake maintain` does to mirrors and change logs."""

    daily_at_hour: Annotated[int, Field(ge=0, le=23)] | None = 3
    """The hour of the day, in UTC, at which `redolake run --loop` maintains the Delta tables, as
    `redolake maintain` does; ``null`` for never. Spark needs about 1.5 GB of memory for it. In
    Dagster, ``dagster.maintain`` schedules this instead."""

    deletion_vectors: DeletionVectors = "auto"
    """Whether windows merge on read: they mark rows of a mirror as deleted instead of rewriting
    their files, with or without Spark. ``auto``: in mirrors of 500,000 rows and more, from the
    first window on that would copy 4 times as many rows as it changes. A mirror with deletion
    vectors needs readers that support them (Spark, Databricks, Trino, DuckDB; of delta-rs
    ``QueryBuilder``, not ``to_pyarrow_table``)."""

    cluster_by_key: bool = False
    """Keep mirrors clustered by their key (liquid clustering): MERGE reads fewer files if a
    window's keys are close together."""

    delta_features: tuple[DeltaFeature, ...] = ()
    """Delta features that readers of the mirrors need. `redolake maintain` enables them, and
    disables those that leave this list (column mapping stays). With all but column mapping, Spark
    merges the mirror.
    ``change_data_feed``: readers can ask Delta which rows changed. ``row_tracking``: each row has a
    permanent ID. ``iceberg_compatibility``: files for Iceberg readers (IcebergCompatV2, which
    UniForm requires), with column mapping and without deletion vectors: Redolake refuses it
    together with ``deletion_vectors: always``, and ``auto`` means ``never``."""

    history_days: Annotated[int, Field(ge=1)] | None = None
    """Days for which histories keep ended states, or deleted rows, counted back from the newest
    change of the table; `null` keeps them. Change logs keep all changes: without this setting,
    `redolake history --rebuild` restores such states."""

    target_file_mb: Annotated[int, Field(ge=1, le=1024)] = 128
    """Size up to which `redolake maintain` compacts small files, in MiB. A MERGE without deletion
    vectors writes whole files."""

    vacuum_hours: Annotated[int, Field(ge=1)] | None = 168
    """Age in hours after which `redolake maintain` removes files that only older versions use; time
    travel and `redolake reconcile --scn` reach back no further. `null` keeps them."""

    log_hours: Annotated[int, Field(ge=1)] | None = 720
    """Age in hours after which `redolake maintain` removes commits from the logs of mirrors and
    change logs; 30 days by default, like Delta. Time travel, `redolake reconcile --scn` and
    streaming readers that were stopped cannot reach back further. Readers list these logs: if many
    windows a day change a table, a day or a week makes them faster. `null` keeps all commits."""
