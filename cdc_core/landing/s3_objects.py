"""How is an object put into S3 only if it is absent, and which objects follow a name?

Arrow reads and writes whole files there; it knows neither conditional writes (``If-None-Match: *``)
nor a listing from a name on. Both are asked through boto3, of the store that Arrow has, which is
proved before the first object is put: a store that knows no conditional writes overwrites, without
an error, what somebody else has put.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import boto3
import pyarrow.fs as pafs
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cdc_core.errors import PreflightError, StoreUnavailableError
from cdc_core.landing.store_parquet import unavailable

_ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
_TAKEN = frozenset({"412", "PreconditionFailed"})
_BUSY = frozenset({"409", "ConditionalRequestConflict"})
"""S3 has not decided yet which of two requests wins. Source: Amazon S3 User Guide, "How to prevent
object overwrites with conditional writes"."""

_UNKNOWN = frozenset({"501", "NotImplemented"})
_PUTS_MAX = 5
_CONFIG = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=20)


class S3Objects:
    """Objects of the store that a file system of Arrow's is; paths are its ones, ``bucket/key``.
    Threads may share it."""

    def __init__(self, filesystem: pafs.S3FileSystem) -> None:
        self._filesystem = filesystem
        with _translated("S3 cannot be set up"):
            self._s3: Any = boto3.client("s3", region_name=filesystem.region, config=_CONFIG)
        self._proved: set[str] = set()
        self._lock = Lock()

    def put_new(self, path: str, content: bytes) -> None:
        """Put an object whole, if there is none of that name. Contents differ: each has something
        that no other has.

        An answer that was lost is asked for again, so the object that is there may be ours: its
        content tells.

        Raises:
            FileExistsError: Somebody else has put it.
            PreflightError: The store overwrites objects, or is another one than Arrow's.
            StoreUnavailableError: S3 cannot be reached. Whether the object was put, its next reader
                sees.
        """
        self._prove(path)
        self._put(path, content)

    def names_behind(self, folder: str, name: str) -> list[str]:
        """The names of a folder's objects after a name, in order."""
        bucket, prefix = _parts(f"{folder}/")
        with _translated("S3 cannot be listed", path=folder):
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=prefix, Delimiter="/", StartAfter=prefix + name
            )
            keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return sorted(key.removeprefix(prefix) for key in keys)

    def read(self, path: str) -> bytes | None:
        """The content of a small object; None if there is none."""
        bucket, key = _parts(path)
        with _translated("an object cannot be read from S3", path=path):
            try:
                content: bytes = self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            except ClientError as error:
                if _code(error) in _ABSENT:
                    return None
                raise
            return content

    def _put(self, path: str, content: bytes) -> None:
        bucket, key = _parts(path)
        for _ in range(_PUTS_MAX):
            with _translated("an object cannot be put into S3", path=path):
                try:
                    self._s3.put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
                except ClientError as error:
                    if _code(error) not in _TAKEN | _BUSY:
                        raise
                else:
                    return
            found = self.read(path)
            if found == content:
                return
            if found is not None:
                raise FileExistsError(path)
        raise StoreUnavailableError(
            "S3 does not decide between writers of one object", hint="Try again.", path=path
        )

    def _is_arrow_s(self, path: str) -> bool:
        """Does Arrow see the object?"""
        try:
            return bool(self._filesystem.get_file_info(path).type == pafs.FileType.File)
        except OSError as error:
            raise unavailable("an object cannot be looked for in S3", error) from error

    def _prove(self, path: str) -> None:
        """Once for each bucket: a probe object next to the wanted one, which Arrow sees, cannot be
        put twice."""
        bucket = path.partition("/")[0]
        with self._lock:
            if bucket in self._proved:
                return
        trial = f"{path.rpartition('/')[0]}/_trial_{uuid.uuid4()}.tmp"
        try:
            self._put(trial, b"first")
            is_arrow_s = self._is_arrow_s(trial)
            keeps = self._keeps(trial)
        finally:
            with _translated("an object cannot be removed from S3", path=trial):
                self._s3.delete_object(Bucket=bucket, Key=_parts(trial)[1])
        if not is_arrow_s:
            raise PreflightError(
                "Redolake's clients of S3 reach different stores",
                hint="Set AWS_ENDPOINT_URL, AWS_REGION and the credentials in the environment, where boto3, Arrow and delta-rs find them.",
                bucket=bucket,
            )
        if not keeps:
            raise _overwriting(bucket)
        with self._lock:
            self._proved.add(bucket)

    def _keeps(self, trial: str) -> bool:
        try:
            self._put(trial, b"second")
        except FileExistsError:
            return True
        return False


def _overwriting(bucket: str) -> PreflightError:
    return PreflightError(
        "the object store knows no conditional writes (If-None-Match), so commits to the lake could overwrite each other without an error",
        hint="Keep the lake in Amazon S3, in a store that knows them, or on a file system.",
        bucket=bucket,
    )


_known: list[tuple[pafs.S3FileSystem, S3Objects]] = []
_known_lock = Lock()


def s3_objects(filesystem: pafs.S3FileSystem) -> S3Objects:
    """The objects of a file system; of equal ones the same, since a client takes long to make."""
    with _known_lock:
        for known, objects in _known:
            if known == filesystem:
                return objects
        objects = S3Objects(filesystem)
        _known.append((filesystem, objects))
        return objects


def _parts(path: str) -> tuple[str, str]:
    bucket, _, key = path.partition("/")
    return bucket, key


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def _translated(message: str, **facts: object) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = _code(error)
        if code in _UNKNOWN:
            raise _overwriting(str(facts.get("path", "")).partition("/")[0]) from error
        raise StoreUnavailableError(
            message,
            hint="Check the bucket's name, the credentials and their rights.",
            code=code,
            **facts,
        ) from error
    except BotoCoreError as error:
        raise StoreUnavailableError(
            message,
            hint="Try again, and see whether S3 can be reached.",
            reason=type(error).__name__,
            **facts,
        ) from error
