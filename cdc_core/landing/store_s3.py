"""How do landing files live in S3 or a store that speaks its protocol?

A file is written to the local cache, then uploaded: an S3 object appears whole or not at all. The
manifest is put only if there is none (``If-None-Match: *``), so of two writers one wins.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import boto3
import pyarrow as pa
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cdc_core.config import S3LandingConfig
from cdc_core.errors import ConfigError, LandingDamagedError, StoreUnavailableError
from cdc_core.landing.damage import landed_already, missing_file
from cdc_core.landing.manifest import MANIFEST_NAME, LandedFile
from cdc_core.landing.store import LandingWriter
from cdc_core.landing.store_parquet import (
    TEMPORARY_SUFFIX,
    FileVerifier,
    ParquetLandingWriter,
    scratch_file,
    unavailable,
)

_ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
_TAKEN = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})
_DELETE_KEYS_MAX = 1000
_CONFIG = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=20)


class S3LandingStore:
    """A :class:`~cdc_core.landing.store.LandingStore` in an S3 bucket, with a local cache for
    reading and writing."""

    def __init__(self, config: S3LandingConfig) -> None:
        self._bucket = config.bucket
        self._prefix = config.prefix.strip("/")
        self._cache = Path(config.cache).absolute()
        self._verifier = FileVerifier()
        try:
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                "the cache folder of the landing store cannot be made",
                hint="Name a folder under landing.cache that this user may write to.",
                path=config.cache,
                reason=error.strerror,
            ) from error
        with _translated("S3 cannot be set up"):
            self._s3: Any = boto3.client("s3", endpoint_url=config.endpoint_url, config=_CONFIG)

    def exists(self, folder: str, name: str) -> bool:
        """Is there a complete file of that name?"""
        with _translated("S3 cannot be asked for a landing file"):
            try:
                self._s3.head_object(Bucket=self._bucket, Key=self._key(folder, name))
            except ClientError as error:
                if _code(error) in _ABSENT:
                    return False
                raise
            return True

    def read(self, folder: str, name: str) -> bytes:
        """The whole content of a small file."""
        key = self._key(folder, name)
        with _translated("a landing file cannot be read from S3"):
            try:
                content: bytes = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            except ClientError as error:
                if _code(error) in _ABSENT:
                    raise missing_file(self._url(key)) from error
                raise
            return content

    def writer(
        self, folder: str, name: str, schema: pa.Schema, *, dictionary: Sequence[str] | None = None
    ) -> LandingWriter:
        """Begin a Parquet file."""
        self._refuse_landed(folder)

        def publish(temporary: Path, landed: LandedFile) -> None:
            self._refuse_landed(folder)
            with _translated("a landing file cannot be written to S3"):
                self._s3.upload_file(str(temporary), self._bucket, self._key(folder, landed.name))
            temporary.replace(self._cache / folder / landed.name)

        return ParquetLandingWriter(
            self._cache / folder, name, schema, dictionary=dictionary, publish=publish
        )

    def write_manifest(self, folder: str, content: bytes) -> None:
        """Make the folder landed."""
        key = self._key(folder, MANIFEST_NAME)
        with _translated("the manifest cannot be written to S3"):
            try:
                self._s3.put_object(Bucket=self._bucket, Key=key, Body=content, IfNoneMatch="*")
            except ClientError as error:
                if _code(error) not in _TAKEN:
                    raise
                if self.read(folder, MANIFEST_NAME) != content:
                    raise landed_already(folder) from error

    def local_paths(self, folder: str, files: Sequence[LandedFile]) -> list[str]:
        """Paths of the files in the cache, downloaded where needed, verified."""
        paths = [self._cache / folder / file.name for file in files]
        for path, file in zip(paths, files, strict=True):
            try:
                self._verifier.verify(path, file)
            except (
                LandingDamagedError
            ):  # not there, cut, or from before the window was captured again
                self._download(folder, file.name, path)
                self._verifier.verify(path, file)
        return [str(path) for path in paths]

    def scratch(self) -> BinaryIO:
        """A file without a name, on the disk of the cache."""
        return scratch_file(self._cache)

    def list_folders(self, prefix: str, *, after: str = "") -> list[str]:
        """Folders below ``prefix`` that have landed, behind ``after``."""
        ending = f"/{MANIFEST_NAME}"
        root = f"{self._prefix}/" if self._prefix else ""
        keys = self._keys(prefix, after=f"{root}{after}" if after else "")
        found = (
            key.removeprefix(root).removesuffix(ending) for key in keys if key.endswith(ending)
        )
        return sorted(folder for folder in found if folder > after)

    def remove(self, folder: str) -> None:
        """Remove a folder, in S3 and in the cache; its manifest goes first, so that what is left of
        it has not landed."""
        with _translated("a folder in S3 that is no longer needed cannot be removed"):
            self._s3.delete_object(Bucket=self._bucket, Key=self._key(folder, MANIFEST_NAME))
        self.remove_unlanded(folder)

    def remove_unlanded(self, folder: str) -> None:
        """Remove what a crashed attempt left, in S3 and in the cache."""
        if self.exists(folder, MANIFEST_NAME):
            return
        keys = self._keys(folder)
        with _translated("an unfinished folder in S3 cannot be emptied"):
            for start in range(0, len(keys), _DELETE_KEYS_MAX):
                part = keys[start : start + _DELETE_KEYS_MAX]
                self._s3.delete_objects(
                    Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in part]}
                )
        shutil.rmtree(self._cache / folder, ignore_errors=True)

    def _download(self, folder: str, name: str, path: Path) -> None:
        key = self._key(folder, name)
        temporary = path.with_name(f".{name}.{uuid4().hex[:12]}{TEMPORARY_SUFFIX}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _translated("a landing file cannot be read from S3"):
                try:
                    self._s3.download_file(self._bucket, key, str(temporary))
                except ClientError as error:
                    if _code(error) in _ABSENT:
                        raise missing_file(self._url(key)) from error
                    raise
            temporary.replace(path)
        except OSError as error:
            raise unavailable("the cache of the landing store cannot be written", error) from error
        finally:
            temporary.unlink(missing_ok=True)

    def _keys(self, folder: str, *, after: str = "") -> list[str]:
        with _translated("S3 cannot be listed"):
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket,
                Prefix=self._key(folder, ""),
                **({"StartAfter": after} if after else {}),
            )
            return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def _refuse_landed(self, folder: str) -> None:
        if self.exists(folder, MANIFEST_NAME):
            raise landed_already(folder)

    def _key(self, folder: str, name: str) -> str:
        return "/".join(part for part in (self._prefix, folder.strip("/")) if part) + f"/{name}"

    def _url(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def _translated(message: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise StoreUnavailableError(
            message,
            hint="Check the bucket's name, the credentials and their rights.",
            code=_code(error),
        ) from error
    except (BotoCoreError, Boto3Error) as error:
        raise unavailable(message, error) from error
