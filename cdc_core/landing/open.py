"""Which landing store is configured?"""

from __future__ import annotations

from typing import assert_never

from cdc_core.config import LocalLandingConfig, S3LandingConfig
from cdc_core.landing.store import LandingStore
from cdc_core.landing.store_local import LocalLandingStore


def open_landing(config: LocalLandingConfig | S3LandingConfig) -> LandingStore:
    """Open the landing store that is configured.

    Raises:
        ConfigError: The local folder cannot be made.
    """
    match config:
        case LocalLandingConfig():
            return LocalLandingStore(config.path)
        case S3LandingConfig():
            # boto3 takes a third of a second to import: only those who use S3 pay for it.
            from cdc_core.landing.store_s3 import S3LandingStore

            return S3LandingStore(config)
        case _:
            assert_never(config)
