"""Which objects does a URL name?"""

from __future__ import annotations

from functools import lru_cache

from cdc_core.objects.store import ObjectStore


def objects_at(url: str) -> tuple[ObjectStore, str]:
    """The object store, and the path in it, of ``s3://bucket/path``,
    ``abfss://container@account.dfs.core.windows.net/path`` or ``gs://bucket/path``. Addresses and
    credentials come from the environment.

    Raises:
        PreflightError: The client is not installed, or has no account.
        StoreUnavailableError: It cannot be set up.
    """
    if url.startswith("s3://"):
        return _s3(), url.removeprefix("s3://").strip("/")
    from cdc_core.objects.clouds import cloud_objects, parts_of

    container, path = parts_of(url)
    return cloud_objects(container), path


@lru_cache
def _s3() -> ObjectStore:
    """S3 as the environment has it. boto3 takes a third of a second to import: only those who use
    S3 pay for it."""
    from cdc_core.objects.s3 import S3Objects

    return S3Objects()
