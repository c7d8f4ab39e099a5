"""How are objects put, found and read in S3, or a store that speaks its protocol? By boto3."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import boto3
import pyarrow.fs as pafs
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cdc_core.objects.store import ObjectStore, ObjectVersion, overwriting, refused, replaced

_ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
_TAKEN = frozenset({"412", "PreconditionFailed"})
_BUSY = frozenset({"409", "ConditionalRequestConflict"})
"""S3 has not decided yet which of two requests wins. Source: Amazon S3 User Guide, "How to prevent
object overwrites with conditional writes"."""

_UNKNOWN = frozenset({"501", "NotImplemented"})
_DELETED_AT_ONCE_MAX = 1000
_CONFIG = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=20)


class S3Objects(ObjectStore):
    """Objects in S3; paths are ``bucket/key``.

    Args:
        endpoint_url: Another address than the environment's.
        filesystem: The file system of Arrow that shall see the same objects.
    """

    service = "S3"

    def __init__(
        self, endpoint_url: str | None = None, filesystem: pafs.S3FileSystem | None = None
    ) -> None:
        super().__init__()
        self._filesystem = filesystem
        region = None if filesystem is None else filesystem.region
        with _translated("S3 cannot be set up"):
            self._s3: Any = boto3.client(
                "s3", endpoint_url=endpoint_url, region_name=region, config=_CONFIG
            )

    def read(self, path: str) -> bytes | None:
        """The content of a small object; None if there is none."""
        with _translated("an object cannot be read from S3", path=path):
            found = _found(self._s3.get_object, path)
            return None if found is None else bytes(found["Body"].read())

    def _head(self, path: str) -> tuple[str | None, Hashable, int] | None:
        with _translated("an object cannot be looked for in S3", path=path):
            found = _found(self._s3.head_object, path)
        if found is None:
            return None
        return found.get("ETag"), found["LastModified"], found["ContentLength"]

    def read_range(self, version: ObjectVersion, start: int, end: int) -> bytes:
        """The bytes from ``start`` to before ``end``."""
        bucket, key = _parts(version.path)
        asked = {"Bucket": bucket, "Key": key, "Range": f"bytes={start}-{end - 1}"}
        if version.etag is not None:
            asked["IfMatch"] = version.etag
        with _translated("an object cannot be read from S3", path=version.path):
            try:
                return bytes(self._s3.get_object(**asked)["Body"].read())
            except ClientError as error:
                if _code(error) in _ABSENT | _TAKEN:
                    raise replaced("S3", version.path) from error
                raise

    def names_behind(self, folder: str, name: str) -> list[str]:
        """The names of a folder's objects after a name, in order."""
        found = self._listed(f"{folder}/", after=f"{folder}/{name}", Delimiter="/")
        return [path.rpartition("/")[2] for path in found]

    def paths_below(self, folder: str, *, after: str = "") -> list[str]:
        """The paths of all objects below a folder, in order."""
        return self._listed(f"{folder}/", after=after)

    def _listed(self, prefix: str, *, after: str, **more: str) -> list[str]:
        bucket, key = _parts(prefix)
        if after:
            more["StartAfter"] = _parts(after)[1]
        with _translated("S3 cannot be listed", path=prefix):
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=key, **more
            )
            return sorted(
                f"{bucket}/{item['Key']}" for page in pages for item in page.get("Contents", ())
            )

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects of one bucket, in this order."""
        with _translated("objects cannot be removed from S3"):
            named = list(map(_parts, paths))
            for start in range(0, len(named), _DELETED_AT_ONCE_MAX):
                part = named[start : start + _DELETED_AT_ONCE_MAX]
                objects = {"Objects": [{"Key": key} for _, key in part], "Quiet": True}
                answer = self._s3.delete_objects(Bucket=part[0][0], Delete=objects)
                for error in answer.get("Errors", ()):
                    raise refused("S3", "an object cannot be removed from S3", error["Code"])

    def upload(self, file: Path, path: str) -> None:
        """Put a file's content."""
        with _translated("an object cannot be put into S3", path=path):
            self._s3.upload_file(str(file), *_parts(path))

    def download(self, path: str, file: Path) -> bool:
        """Write an object's content to a file; False if there is none."""
        with _translated("an object cannot be read from S3", path=path):
            try:
                self._s3.download_file(*_parts(path), str(file))
            except ClientError as error:
                if _code(error) in _ABSENT:
                    return False
                raise
            return True

    def _create(self, path: str, content: bytes) -> bool:
        bucket, key = _parts(path)
        with _translated("an object cannot be put into S3", path=path):
            try:
                self._s3.put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
            except ClientError as error:
                if _code(error) in _TAKEN | _BUSY:
                    return False
                raise
            return True

    def _bucket(self, path: str) -> str:
        return _parts(path)[0]

    def _is_seen(self, path: str) -> bool:
        if self._filesystem is None:
            return True
        try:
            return bool(self._filesystem.get_file_info(path).type == pafs.FileType.File)
        except OSError as error:
            raise refused("S3", "S3 cannot be asked by Arrow", type(error).__name__) from error


_known: list[tuple[pafs.S3FileSystem, S3Objects]] = []
_known_lock = Lock()


def s3_objects(filesystem: pafs.S3FileSystem) -> S3Objects:
    """The objects of a file system; of equal ones the same, since a client takes long to make."""
    with _known_lock:
        for known, objects in _known:
            if known == filesystem:
                return objects
        objects = S3Objects(filesystem=filesystem)
        _known.append((filesystem, objects))
        return objects


def _parts(path: str) -> tuple[str, str]:
    bucket, _, key = path.partition("/")
    return bucket, key


def _found(ask: Any, path: str) -> Any:
    """S3's answer about an object; None if there is none."""
    bucket, key = _parts(path)
    try:
        return ask(Bucket=bucket, Key=key)
    except ClientError as error:
        if _code(error) in _ABSENT:
            return None
        raise


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def _translated(message: str, **facts: object) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = _code(error)
        if code in _UNKNOWN:
            raise overwriting(str(facts.get("path", "")).partition("/")[0]) from error
        raise refused("S3", message, code, **facts) from error
    except (BotoCoreError, Boto3Error) as error:
        raise refused("S3", message, type(error).__name__, **facts) from error
