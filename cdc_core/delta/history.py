"""What does a Delta table's own log say: transaction identifiers, properties, columns, commits?

Read directly, without Spark, so that a repeated commit is seen as such in a few milliseconds and no
JVM is needed. Source: the Delta transaction log protocol, sections "Delta log entries",
"Checkpoints" and "Actions".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow.fs as pafs

from cdc_core.delta.checkpoints import table_actions
from cdc_core.delta.file_names import PLAIN_NAMES, FileNames
from cdc_core.delta.foreign_changes import (
    NOTHING_FOREIGN,
    ForeignChanges,
    brings_rows,
    commit_info,
    in_short,
)
from cdc_core.delta.log_cache import COMMITS_MAX, KnownLogs
from cdc_core.delta.log_files import (
    Action,
    actions_of,
    commit_name,
    commit_names,
    commits_behind,
    log_folder,
    log_names,
    newest_checkpoint,
)
from cdc_core.delta.row_tracking import row_id_high
from cdc_core.delta.storage import storing
from cdc_core.errors import LakeError

MAPPING = "delta.columnMapping.mode"
"""Table property: how a table's columns are found in its files."""

_NAMING_VERSION = 7
_IMPLIED = (
    (2, "appendOnly"),
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
    (5, "columnMapping"),
    (6, "identityColumns"),
)
"""From which writer version on a protocol that names no features stands for them."""


@dataclass(frozen=True, slots=True)
class DeltaCommit:
    """One commit that the log still has: version, operation, our user metadata (empty if it is not
    ours), Delta's metrics of the operation, and the transaction identifiers that came with it."""

    version: int
    operation: str
    metadata: dict[str, Any]
    metrics: dict[str, Any] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """A table's newest state: ``transactions`` maps application id to version, ``columns`` maps the
    names of the top-level columns to the protocol's type names (``struct`` and the like for nested
    ones), ``fields`` each struct to its fields and their type names, ``comments`` to those of its
    fields that have one. ``file_names`` are what files call them. ``writer_features`` are what the
    table asks of its writers (:func:`features_of`). ``foreign`` are changes of somebody
    else behind the newest rows that are ours. ``row_id_high`` is the highest ID that a table which
    tracks rows has given out. ``protocol`` and ``metadata`` are these actions."""

    version: int
    transactions: Mapping[str, int]
    properties: Mapping[str, str]
    columns: Mapping[str, str]
    fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    comments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    file_names: FileNames = PLAIN_NAMES
    writer_features: frozenset[str] = frozenset()
    partition_columns: tuple[str, ...] = ()
    foreign: ForeignChanges = NOTHING_FOREIGN
    row_id_high: int = -1
    protocol: Action = field(default_factory=dict)
    metadata: Action = field(default_factory=dict)

    @property
    def is_mapped(self) -> bool:
        """Has the table other names in its files than in its schema (column mapping)?"""
        return self.file_names.are_mapped


def read_log(path: str) -> DeltaLog | None:
    """The log of the Delta table at ``path`` (a folder, or a URI that pyarrow knows) as it is now;
    None if there is no table.

    Read as far as it is not known already; threads may ask at once.

    Raises:
        LakeError: The log has a gap or cannot be read.
    """
    filesystem, root = filesystem_of(path)
    return _known.newest(path, filesystem, root)


def file_names_of(path: str) -> FileNames:
    """What the files of the Delta table at ``path`` call its columns. Errors as for
    :func:`read_log`."""
    log = read_log(path)
    return PLAIN_NAMES if log is None else log.file_names


def _read_whole(filesystem: pafs.FileSystem, root: str, names: list[str]) -> DeltaLog | None:
    start, parts = newest_checkpoint(names)
    commits = commits_behind(names, start, root)
    if not commits and not parts:
        return None
    foreign = _foreign_up_to(filesystem, root, start)

    def actions() -> Iterator[Action]:
        nonlocal foreign
        yield from table_actions(filesystem, root, parts)
        for version, name in sorted(commits.items()):
            found = actions_of(filesystem, f"{log_folder(root)}/{name}")
            foreign = foreign.followed(version, found)
            yield from found

    log = _after(_NOTHING_SAID, actions())
    return replace(log, version=max(commits, default=start), foreign=foreign)


def _foreign_up_to(filesystem: pafs.FileSystem, root: str, version: int) -> ForeignChanges:
    """What a checkpoint does not say: who made the commits up to it. Those behind our newest one
    are few, if any."""
    commits: list[tuple[int, list[Action]]] = []
    for at, actions in islice(_back_from(filesystem, root, version), COMMITS_MAX):
        commits.append((at, in_short(actions)))
        if brings_rows(actions):
            break
    found = NOTHING_FOREIGN
    for at, actions in reversed(commits):
        found = found.followed(at, actions)
    return found


def _followed(log: DeltaLog, version: int, actions: Sequence[Action]) -> DeltaLog:
    foreign = log.foreign.followed(version, actions)
    return replace(_after(log, actions), version=version, foreign=foreign)


def _weight(log: DeltaLog) -> int:
    return len(log.transactions) + len(log.columns) + sum(map(len, log.fields.values()))


def folder_exists(path: str) -> bool:
    """Is there anything at the place of a Delta table?"""
    filesystem, root = filesystem_of(path)
    with storing("looking for a Delta table", path=path):
        return bool(filesystem.get_file_info(root).type != pafs.FileType.NotFound)


def move_aside(path: str, suffix: str) -> str:
    """Rename a Delta table's folder, in one step; return its new name.

    Raises:
        LakeError: The place cannot rename folders in one step, or something stands there already.
    """
    filesystem, root = filesystem_of(path)
    target = root + suffix
    taken = folder_exists(path.rstrip("/") + suffix)
    if taken or not isinstance(filesystem, pafs.LocalFileSystem | pafs.HadoopFileSystem):
        raise LakeError(
            "an old Delta table cannot be moved aside"
            + (": its new place is taken" if taken else ""),
            hint="Move the folder yourself, and run the command again.",
            path=path,
            wanted=target,
        )
    with storing("moving a Delta table aside", path=path):
        filesystem.move(root, target)
    return path.rstrip("/") + suffix


def read_commits(path: str) -> tuple[DeltaCommit, ...]:
    """The commits that the log of the Delta table at ``path`` still has, oldest first; none if
    there is no table.

    Reads every file of the log, which :func:`read_log` does not: ask it only for what no newest
    state tells. Commits that are cleaned up
    meanwhile are not among them, nor are those before them: there is never a gap.
    """
    return commits_in(*filesystem_of(path))


def commits_in(filesystem: pafs.FileSystem, root: str) -> tuple[DeltaCommit, ...]:
    """The same for the table whose folder is ``root`` in a file system of the caller's."""
    commits = commit_names(log_names(filesystem, root))
    found: list[DeltaCommit] = []
    for version, name in sorted(commits.items()):
        try:
            actions = actions_of(filesystem, f"{log_folder(root)}/{name}")
        except FileNotFoundError:
            found.clear()
            continue
        found.append(_commit(version, actions))
    return tuple(found)


def commits_after(
    path: str, version: int, *, up_to: int
) -> Iterator[tuple[DeltaCommit, list[str]]]:
    """The commits of the Delta table at ``path`` behind a version, oldest first, each with the
    files of rows that it added, as the log spells them.

    Raises:
        LakeError: One of them is cleaned up.
    """
    filesystem, root = filesystem_of(path)
    for at in range(version + 1, up_to + 1):
        try:
            actions = actions_of(filesystem, f"{log_folder(root)}/{commit_name(at)}")
        except FileNotFoundError as error:
            raise LakeError(
                "commits of a Delta table are cleaned up that were still to be read",
                hint="Begin again behind them.",
                path=path,
                version=at,
            ) from error
        added = [one["add"] for one in actions if one.get("add")]
        yield _commit(at, actions), [one["path"] for one in added if one.get("dataChange", True)]


def newest_commits(path: str) -> Iterator[DeltaCommit]:
    """The commits that the log of the Delta table at ``path`` still has, newest first, read one by
    one."""
    log = read_log(path)
    filesystem, root = filesystem_of(path)
    for version, actions in _back_from(filesystem, root, -1 if log is None else log.version):
        yield _commit(version, actions)


def _back_from(
    filesystem: pafs.FileSystem, root: str, version: int
) -> Iterator[tuple[int, list[Action]]]:
    """The commits up to a version, newest first, as far as the log is not cleaned up."""
    for at in range(version, -1, -1):
        try:
            actions = actions_of(filesystem, f"{log_folder(root)}/{commit_name(at)}")
        except FileNotFoundError:
            return
        yield at, actions


def newest_files(path: str, is_earlier: Callable[[DeltaCommit], bool]) -> list[str] | None:
    """The files that the newest commits of a Delta table added, down to the first commit that
    ``is_earlier``, as the log spells their paths. None where only the whole log tells: these
    commits rewrote files, are too many, or are cleaned up."""
    log = read_log(path)
    filesystem, root = filesystem_of(path)
    newest = -1 if log is None else log.version
    oldest, found = newest + 1, list[str]()
    for oldest, actions in islice(_back_from(filesystem, root, newest), COMMITS_MAX):
        if is_earlier(_commit(oldest, actions)):
            return found
        added = [one["add"] for one in actions if one.get("add")]
        if any(one.get("remove") for one in actions) or any(map(_has_vector, added)):
            return None
        found += [one["path"] for one in added]
    return found if oldest == 0 else None


def _has_vector(added: Action) -> bool:
    return bool(added.get("deletionVector"))


def newest_metadata(path: str, name: str) -> Any:
    """What the newest of our commits that has a name in its user metadata says there; None if no
    commit does.

    Commits are read newest first, and those between two of ours are few.
    """
    said = (one.metadata[name] for one in newest_commits(path) if name in one.metadata)
    return next(said, None)


def _after(log: DeltaLog, actions: Iterable[Action]) -> DeltaLog:
    """What a log says after more actions; later ones win."""
    transactions, high = dict(log.transactions), log.row_id_high
    said: dict[str, Any] = {}
    for action in actions:
        if txn := action.get("txn"):
            transactions[txn["appId"]] = txn["version"]
        if domain := action.get("domainMetadata"):
            high = row_id_high(domain, high)
        if protocol := action.get("protocol"):
            version, named = protocol["minWriterVersion"], protocol.get("writerFeatures")
            said |= {"protocol": protocol, "writer_features": features_of(version, named)}
        if metadata := action.get("metaData"):
            said |= _said_of_columns(metadata)
    return replace(log, transactions=transactions, row_id_high=high, **said)


def _said_of_columns(metadata: Action) -> dict[str, Any]:
    """The fields of a :class:`DeltaLog` that a ``metaData`` action fills."""
    properties = dict(metadata.get("configuration") or {})
    fields = json.loads(metadata["schemaString"])["fields"]
    columns = {one["name"]: _type_name(one["type"]) for one in fields}
    structs = {
        one["name"]: one["type"]["fields"] for one in fields if columns[one["name"]] == "struct"
    }
    is_mapped = properties.get(MAPPING, "none") != "none"
    return {
        "metadata": metadata,
        "partition_columns": tuple(metadata.get("partitionColumns") or ()),
        "properties": properties,
        "columns": columns,
        "fields": {
            name: {part["name"]: _type_name(part["type"]) for part in parts}
            for name, parts in structs.items()
        },
        "comments": {
            name: {
                part["name"]: said
                for part in parts
                if (said := (part.get("metadata") or {}).get("comment"))
            }
            for name, parts in structs.items()
        },
        "file_names": FileNames.of_fields(fields) if is_mapped else PLAIN_NAMES,
    }


def features_of(version: int, named: Iterable[str] | None = None) -> frozenset[str]:
    """What a table asks of its writers: the features that its protocol has ``named``, or that an
    older writer version stands for; of one that nobody knows its number."""
    if version == _NAMING_VERSION:
        return frozenset(named or ())
    if not 0 < version < _NAMING_VERSION:
        return frozenset({f"writer version {version}"})
    return frozenset(one for least, one in _IMPLIED if least <= version)


def _type_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])


_NOTHING_SAID = DeltaLog(-1, {}, {}, {}, writer_features=features_of(0))
_known = KnownLogs(_read_whole, _followed, _weight)


def _commit(version: int, actions: list[Action]) -> DeltaCommit:
    info, metadata = commit_info(actions)
    return DeltaCommit(
        version,
        info.get("operation", ""),
        metadata,
        metrics=info.get("operationMetrics") or {},
        transactions={
            one["txn"]["appId"]: one["txn"]["version"] for one in actions if one.get("txn")
        },
    )


def filesystem_of(path: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a path, and the path in it.

    Raises:
        PreflightError: The client of the object store is not installed, or has no account.
        StoreUnavailableError: The bucket does not say in which region it is.
    """
    if "://" not in path:
        return pafs.LocalFileSystem(), path.rstrip("/")
    with storing("opening the lake's storage", path=path):
        if path.startswith(("abfss://", "gs://")):
            from cdc_core.delta.cloud_files import cloud_filesystem
            from cdc_core.objects.clouds import parts_of

            url, root = parts_of(path)
            return cloud_filesystem(url), root
        filesystem, root = pafs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", path))
    return filesystem, root.rstrip("/")


def uri_of(filesystem: pafs.FileSystem, root: str) -> str:
    """A path in a file system, as delta-rs has it."""
    if isinstance(filesystem, pafs.S3FileSystem):
        return f"s3://{root}"
    url = getattr(getattr(filesystem, "handler", None), "url", None)
    return root if url is None else f"{url}/{root}"
