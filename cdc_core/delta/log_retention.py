"""Which files of a Delta table's log may go, and how do they?

Spark cleans up at its own checkpoints, so a table to which nobody else commits would keep each
commit for ever, and every listing reads them all. Here one rule counts for every table: no version
that is younger than the limit is lost, and the checkpoint that the oldest of them needs stays.
Transaction identifiers are in every checkpoint, for as long as
``delta.setTransactionRetentionDuration`` is not set, which nothing of ours does. Source: the Delta
transaction log protocol, section "Metadata Cleanup".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow.fs as pafs

from cdc_core.delta.history import filesystem_of
from cdc_core.delta.log_files import commit_names, log_folder, newest_checkpoint
from cdc_core.delta.storage import storing

_VERSIONED = re.compile(
    r"\.?(\d{20})\.(?:json|crc|checkpoint(?:\.\d{10}\.\d{10}|\.[0-9A-Fa-f-]{36})?\.(?:parquet|json))(?:\.crc)?\Z"
)
"""A commit, its checksum or a checkpoint, or what Hadoop's local file system puts beside each of
them."""

_THREADS = 8
_DOING = "cleaning up a Delta table's log"


def expired_names(written: Mapping[str, int], limit: int) -> list[str]:
    """The files of a log that no version needs which was committed at or after ``limit``, oldest
    first.

    Args:
        written: When each file of the log was written, by name.
        limit: In the same unit.
    """
    commits = commit_names(sorted(written))
    if not commits:
        return []
    wanted = [version for version, name in commits.items() if written[name] >= limit]
    oldest = min(wanted, default=max(commits))
    below = [name for name in sorted(written) if _version_of(name) <= oldest]
    start, _ = newest_checkpoint(below)
    names = [name for name in written if 0 <= _version_of(name) < start]
    return sorted(names, key=lambda name: (_version_of(name), name))


def _version_of(name: str) -> int:
    """-1 where a name is of no version, or of something else."""
    found = _VERSIONED.match(name)
    return int(found[1]) if found else -1


def clean_up_log(path: str, limit_seconds: float, fence: Callable[[], None]) -> int:
    """Remove the files of the log of the Delta table at ``path`` that no version needs which was
    committed since; how many commits went.

    Repeatable, and safe to stop anywhere: the oldest go first.

    Raises:
        StoreUnavailableError: The disk or the bucket fails.
        FencedError: This process lost its lease.
    """
    filesystem, root = filesystem_of(path)
    folder = log_folder(root)
    with storing(_DOING, path=path):
        found = filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    written = {one.base_name: one.mtime_ns for one in found if one.is_file}
    expired = expired_names(written, int(limit_seconds * 1_000_000_000))
    if expired:
        fence()
    with (
        storing(_DOING, path=path),
        ThreadPoolExecutor(_THREADS, thread_name_prefix="log") as pool,
    ):
        list(pool.map(lambda name: _remove(filesystem, f"{folder}/{name}"), expired))
    return len(commit_names(expired))


def _remove(filesystem: pafs.FileSystem, name: str) -> None:
    try:
        filesystem.delete_file(name)
    except FileNotFoundError:  # Spark cleans up at its checkpoints
        return
