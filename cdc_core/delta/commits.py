"""How does a commit get into the log of a Delta table on a disk or in an object store, without
delta-rs?

delta-rs reads the names of all live files before a commit, and the commits since the newest
checkpoint before and after it. Measured with deltalake 1.6: behind 10,000 commits of one row, a
commit on a disk took three times as long as behind ten, and a commit on S3 asked it 200 times
behind ten others, and up to 500 times where the newest checkpoint was long ago. The next version is
known without that, and is put only where it is not there yet, as delta-rs does it too: by a hard
link on a disk, by a conditional write in an object store.

Tables which ask of their writers more than what is written here are refused. Source: the Delta
transaction log protocol, sections "Delta log entries", "Actions" and "Requirements for Writers".
"""

from __future__ import annotations

import errno
import json
import os
import re
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from cdc_core.delta.history import DeltaLog
from cdc_core.delta.log_files import Action, actions_of, commit_name, log_folder, objects_of
from cdc_core.delta.row_tracking import ROW_TRACKING_FEATURE

PLAIN_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""What a Delta table that is as it was created asks of its writers."""

VECTORS_FEATURE = "deletionVectors"
"""What a table asks of its readers and writers in which a file may have a deletion vector."""

MAPPING_FEATURE = "columnMapping"
"""What a table asks of its readers and writers whose files may have other names for its columns."""

GUARD_FEATURE = "domainMetadata"
"""A feature that asks nothing of a commit which brings no domains, and that delta-rs does not
write. Measured with deltalake 1.6: its VACUUM removes deletion vectors that are in use, and in a
table with this feature it refuses before it removes anything. Readers need not know it."""

ICEBERG_FEATURE = "icebergCompatV2"
"""What a table asks of its writers whose files readers of Iceberg tables know, too."""

RULE_FEATURES = frozenset(
    {"checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"}
)
"""Features that ask something of writers only where a property or a column uses them: older writer
versions stand for them, and what was switched off stays in the protocol."""

_TIMES_FEATURE = "inCommitTimestamp"
_TIMES_SWITCH = "delta.enableInCommitTimestamps"

_FEATURES = PLAIN_FEATURES | {
    MAPPING_FEATURE,
    VECTORS_FEATURE,
    GUARD_FEATURE,
    "clustering",
    "v2Checkpoint",
    "variantType",
    _TIMES_FEATURE,
    ROW_TRACKING_FEATURE,
    ICEBERG_FEATURE,
    *RULE_FEATURES,
}
"""Files have the names and numbers that column mapping gave their columns before they get here, a
commit that removes one names its vector, one of a table with times in its commits has such a time,
and one of a table that tracks rows the IDs of new ones. Clustering asks nothing of what is
appended, checkpoints nothing of commits, and Iceberg's readers nothing of files that column mapping
does not ask for too. Readers of a change feed take the rows of files that come and go. No file has
variants: delta-rs names them where it sets any property. Other rules are in no use
(:func:`why_refused`)."""

_RULES_OF_COLUMNS = ("delta.generationExpression", "delta.identity.")

_PLAIN_PATH = re.compile(r"([A-Za-z0-9]+/)?[A-Za-z0-9._-]+")
"""The log has such names of files as they are; others are encoded. Spark puts the files of a table
with column mapping into folders of random names."""

_INTERVAL = "delta.checkpointInterval"
_COMMITS_PER_CHECKPOINT = 100
"""As delta-rs has it where the table says nothing."""


def takes_commits(filesystem: pafs.FileSystem, log: DeltaLog, removed: Iterable[str]) -> bool:
    """May :func:`put_commit` add files to a table, and remove these ones?"""
    return why_refused(filesystem, log, removed) is None


def why_refused(filesystem: pafs.FileSystem, log: DeltaLog, removed: Iterable[str]) -> str | None:
    """What a table has that keeps :func:`put_commit` from adding files to it and removing these
    ones; None where nothing does. Rows that move into other files keep their IDs in a table that
    tracks them, which is left to Spark."""
    names, rules = list(removed), log.metadata.get("schemaString") or ""
    keeps_all = log.properties.get("delta.appendOnly", "false").lower() != "false"
    found = {
        ", ".join(sorted(log.writer_features - _FEATURES)): not log.writer_features <= _FEATURES,
        "checkConstraints": any(one.startswith("delta.constraints.") for one in log.properties),
        "generatedColumns": any(one in rules for one in _RULES_OF_COLUMNS),
        "partitions": bool(log.partition_columns),
        "files under other names": not are_plain(names),
        "delta.appendOnly": bool(names) and keeps_all,
        ROW_TRACKING_FEATURE: bool(names) and ROW_TRACKING_FEATURE in log.writer_features,
        "a store of another kind": not isinstance(filesystem, pafs.LocalFileSystem)
        and objects_of(filesystem) is None,
    }
    return next((what for what, is_so in found.items() if is_so), None)


def are_plain(names: Iterable[str]) -> bool:
    """Do files lie in their table's folder, under names that the log has as they are? Not all that
    somebody else wrote."""
    return all(map(_PLAIN_PATH.fullmatch, names))


def in_commit_time(filesystem: pafs.FileSystem, root: str, log: DeltaLog, now: int) -> int | None:
    """What the next commit must say of its time, in milliseconds: later than the one before it.
    None where the table keeps no such times.

    Raises:
        FileNotFoundError: The newest commit is gone; the log was cut.
    """
    if log.properties.get(_TIMES_SWITCH, "false").lower() != "true":
        return None
    actions = actions_of(filesystem, f"{log_folder(root)}/{commit_name(log.version)}")
    infos = (action["commitInfo"] for action in actions if "commitInfo" in action)
    said: dict[str, Any] = next(infos, {})
    return max(now, int(said.get("inCommitTimestamp") or said.get("timestamp") or 0) + 1)


def takes_vectors(log: DeltaLog) -> bool:
    """May a commit to this table, if :func:`put_commit` may make it, give a file a deletion vector,
    or take away one that has a vector?"""
    return VECTORS_FEATURE in log.writer_features


def put_commit(
    filesystem: pafs.FileSystem, root: str, version: int, actions: Sequence[Action]
) -> None:
    """Put a commit into the log of the table in a local folder or an object store, whole and for
    good, or not at all. Its ``commitInfo`` gets a ``txnId``, so that no other commit is the same:
    where the store's answer was lost, that tells whose commit is there.

    A process that dies here leaves at most a file beside the commits under the name that delta-rs
    gives its own: nothing reads it.

    Raises:
        FileExistsError: The log has this version.
        OSError: The disk refuses.
        PreflightError: The object store overwrites what is there.
        StoreUnavailableError: The store cannot be reached. Whether the log has the commit, its next
            reader sees.
    """
    own = str(uuid.uuid4())
    marked = [
        {"commitInfo": {**action["commitInfo"], "txnId": own}} if "commitInfo" in action else action
        for action in actions
    ]
    text = "\n".join(json.dumps(action, separators=(",", ":")) for action in marked)
    if (objects := objects_of(filesystem)) is not None:
        objects.put_new(f"{log_folder(root)}/{commit_name(version)}", text.encode())
    else:
        _link(Path(log_folder(root)), version, f"_commit_{own}.json.tmp", text)


def _link(folder: Path, version: int, temporary_name: str, text: str) -> None:
    temporary = folder / temporary_name
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A hard link, unlike a rename, fails where the name is taken: two writers cannot both win.
        os.link(temporary, folder / commit_name(version))
        _sync(folder)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where its file system can: what was applied by the
    metadata store must be there after a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def is_checkpoint_due(log: DeltaLog, version: int) -> bool:
    """Shall a checkpoint follow the commit of this version?"""
    said = log.properties.get(_INTERVAL, "")
    every = int(said) if said.isdecimal() and int(said) else _COMMITS_PER_CHECKPOINT
    return version % every == 0
