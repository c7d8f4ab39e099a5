"""What can a user configure of one source?

One frozen tree; unknown keys are refused; the string under a field is its documentation. ``pipelines`` reads files and
environment, everything below receives these values.
"""

from cdc_core.config.base import ConfigModel, split_url_password
from cdc_core.config.source import (
    ChangeLogColumn,
    CloseAt,
    DeletionVectors,
    EventsConfig,
    ExecutorsFrom,
    LakeConfig,
    LocalLandingConfig,
    LogMinerConfig,
    LogsBy,
    MaintenanceConfig,
    OracleConfig,
    S3LandingConfig,
    SnapshotConfig,
    SourceConfig,
    StateConfig,
    Strategy,
)
from cdc_core.config.tables import MatchedTable, Policy, PolicyConfig, TableConfig

__all__ = [
    "ChangeLogColumn",
    "CloseAt",
    "ConfigModel",
    "DeletionVectors",
    "EventsConfig",
    "ExecutorsFrom",
    "LakeConfig",
    "LocalLandingConfig",
    "LogMinerConfig",
    "LogsBy",
    "MaintenanceConfig",
    "MatchedTable",
    "OracleConfig",
    "Policy",
    "PolicyConfig",
    "S3LandingConfig",
    "SnapshotConfig",
    "SourceConfig",
    "StateConfig",
    "Strategy",
    "TableConfig",
    "split_url_password",
]
