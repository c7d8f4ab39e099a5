"""What can be asked of the objects in a bucket or container, whichever service has them?

Files of rows go through Arrow, which reads ranges and writes parts. What Arrow does not know is
here: a conditional put, which decides between two writers of one commit, and a listing from a name
on.
"""

from __future__ import annotations

import io
import uuid
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from cdc_core.errors import PreflightError, StoreUnavailableError

_PUTS_MAX = 5
_READ_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """What an object is until somebody puts another one in its place. ``etag`` is None where the
    service gives none; ``size`` is in bytes."""

    path: str
    etag: str | None
    size: int


class ObjectStore(ABC):
    """The objects of one service. Paths have ``/`` between their parts, as the file system of Arrow
    has them that stands beside it. Threads may share it.

    Every method raises StoreUnavailableError where the service cannot be reached or refuses.
    """

    service: str
    """Its name, for messages."""

    def __init__(self) -> None:
        self._proved: set[str] = set()
        self._lock = Lock()

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """The content of a small object; None if there is none."""

    @abstractmethod
    def _head(self, path: str) -> tuple[str | None, Hashable, int] | None:
        """ETag, time and size of an object; None if there is none."""

    def exists(self, path: str) -> bool:
        """Is there an object of that name?"""
        return self._head(path) is not None

    def mark(self, path: str) -> Hashable | None:
        """What tells an object from every other that ever had its name; None if it is not there, or
        the service gives no ETag."""
        found = self._head(path)
        return found if found and found[0] else None

    def version(self, path: str) -> ObjectVersion | None:
        """What an object is now; None if it is not there."""
        found = self._head(path)
        return None if found is None else ObjectVersion(path, found[0], found[2])

    @abstractmethod
    def read_range(self, version: ObjectVersion, start: int, end: int) -> bytes:
        """The bytes from ``start`` to before ``end``.

        Raises:
            StoreUnavailableError: Too if the object is another one by now, or gone.
        """

    def open_version(self, version: ObjectVersion) -> io.BufferedReader:
        """An object to read ranges of. All of them are that version's, or :meth:`read_range`
        refuses."""
        return io.BufferedReader(_VersionReader(self, version), _READ_BYTES)

    @abstractmethod
    def names_behind(self, folder: str, name: str) -> list[str]:
        """The names of a folder's objects after a name, in order."""

    @abstractmethod
    def paths_below(self, folder: str, *, after: str = "") -> list[str]:
        """The paths of all objects below a folder, in order; only those behind the path
        ``after``."""

    @abstractmethod
    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects, in this order. Absent ones are fine."""

    @abstractmethod
    def upload(self, file: Path, path: str) -> None:
        """Put a file's content, in parts where it is large; nobody sees the object before it is
        whole."""

    @abstractmethod
    def download(self, path: str, file: Path) -> bool:
        """Write an object's content to a file; False if there is none.

        Raises:
            OSError: The file cannot be written.
        """

    @abstractmethod
    def _create(self, path: str, content: bytes) -> bool:
        """One try to put an object if there is none of that name; False where there may be one."""

    @abstractmethod
    def _bucket(self, path: str) -> str:
        """Bucket or container of a path."""

    def _is_seen(self, path: str) -> bool:
        """Do the other clients see an object? Asked once for each bucket."""
        del path
        return True

    def put_new(self, path: str, content: bytes) -> None:
        """Put an object whole, if there is none of that name.

        An answer that was lost is asked for again, so the object that is there may be ours: its
        content tells. Of commits, each has something that no other has.

        Raises:
            FileExistsError: Somebody else has put it.
            PreflightError: The store overwrites objects, or is another one than the other clients'.
            StoreUnavailableError: The service cannot be reached. Whether the object was put, its
                next reader sees.
        """
        self._prove(path)
        self._put(path, content)

    def _put(self, path: str, content: bytes) -> None:
        for _ in range(_PUTS_MAX):
            if self._create(path, content):
                return
            found = self.read(path)
            if found == content:
                return
            if found is not None:
                raise FileExistsError(path)
        raise StoreUnavailableError(
            f"{self.service} does not decide between writers of one object",
            hint="Try again.",
            path=path,
        )

    def _prove(self, path: str) -> None:
        """Once for each bucket: a probe object next to the wanted one, which the other clients see,
        cannot be put twice."""
        bucket = self._bucket(path)
        with self._lock:
            if bucket in self._proved:
                return
        trial = f"{path.rpartition('/')[0]}/_trial_{uuid.uuid4()}.tmp"
        try:
            self._put(trial, b"first")
            is_seen = self._is_seen(trial)
            keeps = self._keeps(trial)
        finally:
            self.delete([trial])
        if not is_seen:
            raise PreflightError(
                f"Redolake's clients of {self.service} reach different stores",
                hint="Set address, region and credentials in the environment, where all clients find them.",
                bucket=bucket,
            )
        if not keeps:
            raise overwriting(bucket)
        with self._lock:
            self._proved.add(bucket)

    def _keeps(self, trial: str) -> bool:
        try:
            self._put(trial, b"second")
        except FileExistsError:
            return True
        return False


class _VersionReader(io.RawIOBase):
    """A version of an object, each read of which is a request."""

    def __init__(self, objects: ObjectStore, version: ObjectVersion) -> None:
        self._objects, self._version, self._at = objects, version, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._version.size}
        self._at = bases[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._version.size)
        if end <= self._at:
            return 0
        data = self._objects.read_range(self._version, self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def replaced(service: str, path: str) -> StoreUnavailableError:
    """The error of a version of an object that is no longer there."""
    return StoreUnavailableError(
        f"an object in {service} was replaced or removed while it was read",
        hint="The next attempt reads the new version. Upload a growing object less often.",
        path=path,
    )


def overwriting(bucket: str) -> PreflightError:
    """The error of a store that knows no conditional put."""
    return PreflightError(
        "the object store does not support conditional writes (If-None-Match), so commits to the lake could overwrite each other without an error",
        hint="Keep the lake in Amazon S3, Azure Blob Storage or Google Cloud Storage, in a store that supports them, or on a file system.",
        bucket=bucket,
    )


def refused(service: str, message: str, reason: str, **facts: object) -> StoreUnavailableError:
    """The error of a service that answers and refuses, or fails; ``reason`` is its code, or the
    class of the error."""
    return StoreUnavailableError(
        message,
        hint=f"Check that {service} can be reached, the bucket's name, the credentials and their rights.",
        reason=reason,
        **facts,
    )
