"""Which failures are about the place where the lake is kept, and about no table?

A full disk, a folder that takes nothing, a bucket that does not answer: the step ends with one
error, whoever wrote, and the same step succeeds when the place is well again.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cdc_core.errors import CdcError, StoreUnavailableError

_CODES = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.ESTALE,
)  # fmt: skip
REASONS = tuple(os.strerror(code) for code in _CODES)
"""What the operating system says where storage takes no more, in the words that a JVM passes on:
with room, quota, limit of a file's size, a file system that is mounted to be read, a disk that
fails, rights, and a network file system that is gone."""

_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_NO_FOLDER = re.compile(r"Could not create local directory.*\bcode: (\d+)", re.DOTALL)
_BUCKET_ERROR = re.compile(r"Generic (S3|MicrosoftAzure|GCS) error")
_DISK_CLASSES = ("java.io.", "java.nio.file.", "org.apache.hadoop.fs.FSError")
_REMOTE_CLASSES = ("org.apache.hadoop.fs.s3a.", "org.apache.hadoop.fs.azurebfs.")
_CAUSES_MAX = 20


def storage_error(doing: str, reason: str, **facts: object) -> StoreUnavailableError:
    """The error where the lake's storage refuses while ``doing``; ``reason`` is the system's."""
    return StoreUnavailableError(
        f"{doing}: the lake's storage refuses: {reason}",
        hint="Free space, or repair the disk or the bucket at lake.path; then try again.",
        **facts,
    )


@contextmanager
def storing(doing: str, **facts: object) -> Iterator[None]:
    """What storage refuses to Python, or to delta-rs, is not about the table, and may pass.

    Raises:
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
    """
    try:
        yield
    except CdcError:
        raise
    except Exception as error:
        reason = _reason_of(error)
        if reason is None:
            raise
        raise storage_error(doing, reason, **facts) from error


def _reason_of(error: Exception) -> str | None:
    """delta-rs gives some of the system's errors as ``OSError`` without a number, some as its own:
    the number is in the text."""
    found = _OS_ERROR.search(str(error))
    code = getattr(error, "errno", None) or (int(found[1]) if found else None)
    if isinstance(error, OSError):
        is_missing = isinstance(error, FileNotFoundError)
        return None if is_missing else os.strerror(code) if code else "it failed"
    if code in _CODES:
        return os.strerror(code)
    if no_folder := _NO_FOLDER.search(str(error)):  # of a table that is still to be made
        return os.strerror(int(no_folder[1]))
    bucket = _BUCKET_ERROR.search(str(error))
    return f"{bucket[1]} failed" if bucket else None


def refused_by_storage(error: BaseException) -> str | None:
    """What the storage said that made Spark fail; None if it is not to blame.

    Read from the chain of Java's exceptions, and never from a message as a whole, which may quote a
    row's value.
    """
    for name, message in _java_causes(error):
        if name.startswith(_REMOTE_CLASSES):
            return name.rpartition(".")[2]
        if name == "java.nio.file.AccessDeniedException":
            return os.strerror(errno.EACCES)
        if name.startswith(_DISK_CLASSES):
            for reason in REASONS:
                if message.endswith((reason, f"({reason})")):
                    return reason
    return None


def _java_causes(error: BaseException) -> Iterator[tuple[str, str]]:
    """Class and message of each Java exception behind an error of PySpark's or Py4J's, outermost
    first."""
    found: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(_CAUSES_MAX):
        if found is None:
            return
        yield found.getClass().getName(), found.getMessage() or ""
        found = found.getCause()
