"""How do Delta tables stay quick? Small files are put together, deletion vectors follow size and
work, old files and commits go.

Nothing here changes a row. Each commit names itself ``maintenance`` in its user metadata and leaves
the table's position where it was. Facts about Delta: OPTIMIZE, VACUUM and REORG of Delta 4; the
thresholds are measured (``benchmarks``, local disk, two cores).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs

from cdc_core.config import DeletionVectors, DeltaFeature, MaintenanceConfig
from cdc_core.delta.appending import CommitInfo
from cdc_core.delta.commits import GUARD_FEATURE
from cdc_core.delta.history import MAPPING, DeltaCommit, filesystem_of, read_commits, read_log
from cdc_core.delta.log_retention import clean_up_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.delta.storage import storing
from cdc_core.lake.definitions.altering import commit_properties
from cdc_core.lake.mirror.ways import COPIED_PER_CHANGE_MIN, VECTORS_ROWS_MIN
from cdc_core.lake.rows.logged_changes import sizes_of_files
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    FEATURES_PROPERTY,
    FORGETS_PROPERTY,
    MAPPED,
    delta,
    properties_sql,
    quote_name,
)
from cdc_core.model.reports import DeltaLayer, TableMaintained
from cdc_core.spark.session import configure, translated

RECENT_WINDOWS = 20

_DELTAS_RETENTION_HOURS = 168

_LOG_RETENTION = "delta.logRetentionDuration"
_FILE_RETENTION = "delta.deletedFileRetentionDuration"
_LOG_CLEANUP = "delta.enableExpiredLogCleanup"
_BY_DEFAULT = {
    _LOG_RETENTION: "interval 720 hours",
    _FILE_RETENTION: f"interval {_DELTAS_RETENTION_HOURS} hours",
    _LOG_CLEANUP: "true",
}
"""How Delta cleans up a table that says nothing."""

_SWITCHES: Mapping[DeltaFeature, str] = {
    "change_data_feed": "delta.enableChangeDataFeed",
    "row_tracking": "delta.enableRowTracking",
    "iceberg_compatibility": "delta.enableIcebergCompatV2",
}
_NEED_MAPPING: frozenset[DeltaFeature] = frozenset({"column_mapping", "iceberg_compatibility"})


def feature_properties(
    wanted: Iterable[DeltaFeature], properties: Mapping[str, str]
) -> dict[str, str]:
    """Which of a mirror's properties must change so that it has the features of Delta that are
    wanted, and no more those that were wanted before. What others switched on stays."""
    said = {FEATURES_PROPERTY: "[]", MAPPING: "none", **properties}
    listed, given = frozenset(wanted), json.loads(said[FEATURES_PROPERTY])
    needs_mapping = listed & _NEED_MAPPING and said[MAPPING] == "none"
    changed = dict(MAPPED) if needs_mapping else {}
    for feature, switch in _SWITCHES.items():
        is_wanted = feature in listed
        if is_wanted or feature in given:
            changed[switch] = str(is_wanted).lower()
    changed[FEATURES_PROPERTY] = json.dumps(sorted(listed))
    return {name: value for name, value in changed.items() if said.get(name) != value}


def log_properties(log_hours: int | None, properties: Mapping[str, str]) -> dict[str, str]:
    """Which of a Delta table's properties must change so that Delta's own clean-up keeps commits as
    long as ``maintenance.log_hours`` says.

    Delta refuses a log that is kept for less time than the names of removed files, which no version
    needs that has left the log.
    """
    wanted = {_LOG_CLEANUP: "false"}
    if log_hours is not None:
        wanted = {
            _LOG_CLEANUP: "true",
            _LOG_RETENTION: f"interval {log_hours} hours",
            _FILE_RETENTION: f"interval {min(log_hours, _DELTAS_RETENTION_HOURS)} hours",
        }
    now = {**_BY_DEFAULT, **properties}
    return {name: value for name, value in wanted.items() if now[name] != value}


def wants_vectors(
    setting: DeletionVectors, rows: int | None, commits: Iterable[DeltaCommit], *, has_them: bool
) -> bool:
    """Shall a mirror of so many rows have deletion vectors? ``commits`` are its own, oldest first;
    unknown ``rows`` change nothing."""
    if setting != "auto":
        return setting == "always"
    if rows is None:
        return has_them
    if has_them:
        return rows >= VECTORS_ROWS_MIN / 2
    windows = [one for one in commits if one.metadata.get("kind") == "window"]
    merges = [one for one in windows if one.metrics or "copied" in one.metadata]
    copied = changed = 0
    for one in merges[-RECENT_WINDOWS:]:
        copied += _count(one, "Copied")
        changed += sum(_count(one, what) for what in ("Inserted", "Updated", "Deleted"))
    return rows >= VECTORS_ROWS_MIN and copied >= COPIED_PER_CHANGE_MIN * max(changed, 1)


def _count(merge: DeltaCommit, what: str) -> int:
    """Of a MERGE by Spark's metrics, of one without Spark by its own metadata."""
    said = merge.metadata.get(what.lower())
    return int(merge.metrics.get(f"numTargetRows{what}", 0) if said is None else said)


def maintain(
    work: TableWork, options: MaintenanceConfig, key: tuple[str, ...]
) -> list[TableMaintained]:
    """Maintain the quarantine, and the others as
    :meth:`cdc_core.lake.lake.TableLake.maintain` says; safe to stop anywhere."""
    QuarantineTable(work).maintain(options.vacuum_hours)
    there = [one for one in _layers(work) if read_log(one[1]) is not None]
    return [_Maintenance(work, layer, path, options, key).run() for layer, path in there]


def _layers(work: TableWork) -> tuple[tuple[DeltaLayer, str], tuple[DeltaLayer, str]]:
    return ("mirror", work.mirror), ("changelog", work.changelog)


_CLUSTERING = "clustering"
"""The table feature of a table whose log says in words of its own by which columns it is
clustered."""

_FILES_TOGETHER_MIN = 2
"""So many small files can be put together; of fewer, OPTIMIZE would make a commit without files."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a Delta table has: so many files, of so many bytes, each of these ``sizes`` where nobody
    but the log was asked."""

    properties: Mapping[str, str]
    files: int
    bytes: int
    sizes: tuple[int, ...] = ()
    clustered_by: tuple[str, ...] = ()

    @property
    def has_vectors(self) -> bool:
        """Shall rows be marked as deleted?"""
        return self.properties.get("delta.enableDeletionVectors") == "true"

    @property
    def is_plain(self) -> bool:
        """Is a table as its files are, without vectors beside them, or an order?"""
        return len(self.sizes) == self.files and not self.has_vectors


@dataclass(frozen=True, slots=True)
class _Maintenance:
    """The maintenance of one Delta table."""

    work: TableWork
    layer: DeltaLayer
    path: str
    options: MaintenanceConfig
    key: tuple[str, ...]

    def run(self) -> TableMaintained:
        started = time.monotonic()
        before = self._look()
        has_vectors = before.has_vectors
        if self.layer == "mirror":  # rows are appended to the change log, and stay
            has_vectors = self._follow_vectors(has_them=has_vectors)
            self._follow_features()
            self._follow_clustering(before.clustered_by)
        self._follow_log_retention(before.properties)
        self._optimize()
        removed = self._vacuum()
        commits_removed = self._clean_up_log()
        after = self._look()
        return TableMaintained(
            table=self.work.table,
            layer=self.layer,
            files_before=before.files,
            files_after=after.files,
            bytes_before=before.bytes,
            bytes_after=after.bytes,
            files_removed=removed,
            commits_removed=commits_removed,
            had_vectors=before.has_vectors,
            has_vectors=has_vectors,
            seconds=time.monotonic() - started,
        )

    def _follow_vectors(self, *, has_them: bool) -> bool:
        rows, setting = count_rows(self.path), self.options.deletion_vectors
        commits = read_commits(self.path) if setting == "auto" and not has_them else ()
        wanted = wants_vectors(setting, rows, commits, has_them=has_them)
        log = read_log(self.path)
        is_guarded = log is not None and GUARD_FEATURE in log.writer_features
        if wanted != has_them or (wanted and not is_guarded):
            changed = {"delta.enableDeletionVectors": str(wanted).lower()}
            if wanted:
                changed[f"delta.feature.{GUARD_FEATURE}"] = "supported"
            sql = f"ALTER TABLE {delta(self.path)} SET TBLPROPERTIES {properties_sql(changed)}"
            self._commit(sql, "switching deletion vectors")
        if not wanted and has_them:
            self._commit(
                f"REORG TABLE {delta(self.path)} APPLY (PURGE)",
                "writing deletion vectors into files",
            )
        return wanted

    def _follow_features(self) -> None:
        log = read_log(self.path)
        properties = {} if log is None else log.properties
        if changed := feature_properties(self.options.delta_features, properties):
            sql = f"ALTER TABLE {delta(self.path)} SET TBLPROPERTIES {properties_sql(changed)}"
            self._commit(sql, "switching features of a Delta table")

    def _follow_clustering(self, columns: Sequence[str]) -> None:
        wanted = list(self.key) if self.options.cluster_by_key else []
        log = read_log(self.path)
        if log is None or not set(wanted) <= set(log.columns):
            return  # A window that renames a column of the key was captured, and is not applied yet.
        if list(columns) != wanted:
            by = f"({', '.join(map(quote_name, wanted))})" if wanted else "NONE"
            sql = f"ALTER TABLE {delta(self.path)} CLUSTER BY {by}"
            self._commit(sql, "clustering a mirror by its key")

    def _optimize(self) -> None:
        found, size = self._look(), self.options.target_file_mb * 1024 * 1024
        if found.is_plain and sum(one < size for one in found.sizes) < _FILES_TOGETHER_MIN:
            return
        of_files = "spark.databricks.delta.optimize"
        sizes = dict.fromkeys((f"{of_files}.minFileSize", f"{of_files}.maxFileSize"), str(size))
        configure(self.work.session_for(), sizes)
        self._commit(f"OPTIMIZE {delta(self.path)}", "putting small files together")

    def _vacuum(self) -> int:
        """Remove files that no version of the last hours has; how many went."""
        hours = self.options.vacuum_hours
        before, found = _data_files(self.path), self._look()
        if hours is None or (found.is_plain and before == found.files):
            return 0
        is_checked = str(hours >= _DELTAS_RETENTION_HOURS).lower()
        settings = {
            "spark.databricks.delta.retentionDurationCheck.enabled": is_checked,
            # The listing of the one folder is cut into so many tasks; Spark's default of 10,000
            # takes half a minute.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        }
        configure(self.work.session_for(), settings)
        self._commit(f"VACUUM {delta(self.path)} RETAIN {hours} HOURS", "removing old files")
        return before - _data_files(self.path)

    def _follow_log_retention(self, properties: Mapping[str, str]) -> None:
        if FORGETS_PROPERTY in properties:
            sql = f"ALTER TABLE {delta(self.path)} UNSET TBLPROPERTIES ('{FORGETS_PROPERTY}')"
            self._commit(sql, "keeping the position of a Delta table")
        if changed := log_properties(self.options.log_hours, properties):
            doing = "setting how long a Delta table's log reaches back"
            commit_properties(self.work, self.path, changed, self._info(doing))

    def _clean_up_log(self) -> int:
        hours = self.options.log_hours
        log = read_log(self.path)
        if hours is None or (log is not None and log.foreign.replacing):
            return 0  # the log alone says who took rows away
        return clean_up_log(self.path, time.time() - hours * 3600, self.work.fence)

    def _info(self, doing: str) -> CommitInfo:
        position = self.work.position()
        scn = position.mirror_scn if self.layer == "mirror" else position.changelog_scn
        return self.work.info(doing, self.work.metadata("maintenance", scn or 0))

    def _commit(self, sql: str, doing: str) -> None:
        session, info = self.work.session_for(), self._info(doing)
        with self.work.commit(session, doing, info.metadata):
            session.sql(sql).collect()

    def _look(self) -> _Found:
        """What the table has now. Spark is asked for what its log does not say plainly."""
        log, sizes = read_log(self.path), sizes_of_files(self.path)
        if log is not None and sizes is not None and _CLUSTERING not in log.writer_features:
            return _Found(log.properties, len(sizes), sum(sizes), tuple(sizes))
        session = self.work.session_for()
        with translated("looking at a Delta table", **self.work.facts(path=self.path)):
            [told] = session.sql(f"DESCRIBE DETAIL {delta(self.path)}").collect()
        clustered_by = tuple(told["clusteringColumns"] or ())
        properties = dict(told["properties"])
        return _Found(properties, told["numFiles"], told["sizeInBytes"], (), clustered_by)


def _data_files(path: str) -> int:
    """Files in a Delta table's folder but for its log, whether a version has them or not."""
    filesystem, root = filesystem_of(path)
    with storing("counting the files of a Delta table", path=path):
        found = filesystem.get_file_info(pafs.FileSelector(root, recursive=True))
    return sum(one.is_file and "/_delta_log/" not in one.path for one in found)
