"""What can a user configure of one source?

One frozen tree; unknown keys are refused; the string under a field is its documentation.
``pipelines`` reads files and environment, everything below receives these values.
"""

from cdc_core.config.base import ConfigModel, Name, split_url_password
from cdc_core.config.capture import (
    CloseAt,
    LogMinerConfig,
    LogsBy,
    OpenLogReplicatorConfig,
    QueryFilterMode,
    Strategy,
    XStreamConfig,
)
from cdc_core.config.events import EventsConfig
from cdc_core.config.history import HistoryConfig
from cdc_core.config.lake import (
    ChangeLogColumn,
    DeletionVectors,
    DeltaFeature,
    ExecutorsFrom,
    LakeConfig,
    LandingConfig,
    LocalLandingConfig,
    MaintenanceConfig,
    ObjectLandingConfig,
    S3LandingConfig,
    UnityConfig,
)
from cdc_core.config.oracle import OracleConfig
from cdc_core.config.pdbs import refuse_several, sources_of
from cdc_core.config.snapshot import Reading, SnapshotConfig
from cdc_core.config.source import SourceConfig
from cdc_core.config.state import StateConfig
from cdc_core.config.tables import MatchedTable, Policy, PolicyConfig, TableConfig

__all__ = [
    "ChangeLogColumn",
    "CloseAt",
    "ConfigModel",
    "DeletionVectors",
    "DeltaFeature",
    "EventsConfig",
    "ExecutorsFrom",
    "HistoryConfig",
    "LakeConfig",
    "LandingConfig",
    "LocalLandingConfig",
    "LogMinerConfig",
    "LogsBy",
    "MaintenanceConfig",
    "MatchedTable",
    "Name",
    "ObjectLandingConfig",
    "OpenLogReplicatorConfig",
    "OracleConfig",
    "Policy",
    "PolicyConfig",
    "QueryFilterMode",
    "Reading",
    "S3LandingConfig",
    "SnapshotConfig",
    "SourceConfig",
    "StateConfig",
    "Strategy",
    "TableConfig",
    "UnityConfig",
    "XStreamConfig",
    "refuse_several",
    "sources_of",
    "split_url_password",
]
