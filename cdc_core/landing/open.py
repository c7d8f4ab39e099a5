"""Which landing store is configured?"""

from __future__ import annotations

from typing import assert_never

from cdc_core.config import LandingConfig, LocalLandingConfig, ObjectLandingConfig, S3LandingConfig
from cdc_core.landing.store import LandingStore
from cdc_core.landing.store_local import LocalLandingStore
from cdc_core.objects.open import objects_at


def open_landing(config: LandingConfig) -> LandingStore:
    """Open the landing store that is configured.

    Raises:
        ConfigError: The local folder cannot be made.
        PreflightError: The client of the object store is not installed, or has no account.
    """
    if isinstance(config, LocalLandingConfig):
        return LocalLandingStore(config.path)
    from cdc_core.landing.store_objects import ObjectLandingStore

    match config:
        case S3LandingConfig():
            # boto3 takes a third of a second to import: only those who use S3 pay for it.
            from cdc_core.objects.s3 import S3Objects

            objects, root = S3Objects(config.endpoint_url), f"{config.bucket}/{config.prefix}"
            return ObjectLandingStore(objects, root, config.cache, config.cache_hours)
        case ObjectLandingConfig():
            return ObjectLandingStore(*objects_at(config.url), config.cache, config.cache_hours)
        case _:
            assert_never(config)
