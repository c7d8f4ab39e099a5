"""Which ways into a mirror are open to a change, and what would each cost?

Rewriting and marking need a table of which Redolake knows all features, and that its own commit can
exchange files of. Of the ways that are open, the one that is estimated to take the least time is
taken. The estimates are measured on two cores of a cloud machine with tables of 13 and 19 columns
on a local disk; only their order has to be right, and ``benchmarks/growth.py`` shows whether it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.commits import (
    GUARD_FEATURE,
    MAPPING_FEATURE,
    PLAIN_FEATURES,
    RULE_FEATURES,
    VECTORS_FEATURE,
    are_plain,
)
from cdc_core.delta.file_names import FILE_NAME, FILE_NUMBER
from cdc_core.lake.mirror.files import MirrorFiles, files_near
from cdc_core.model.reports import WriteWay
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import is_running
from cdc_core.stage.changes import Bounds
from cdc_core.stage.layout import mirror_schema

ROWS_MAX = 20_000_000
"""So many rows are looked through at most where files are written anew: ten bytes of each are held
until they are written, and the keys of one file."""

MARKED_ROWS_MAX = 200_000_000
"""So many where rows are marked: keys are read, and forgotten file by file."""

VECTORS_ROWS_MIN = 500_000
"""A mirror gets deletion vectors by itself from so many rows on; below half of them it loses them
again. In a small one they cost more than they save."""

COPIED_PER_CHANGE_MIN = 4
"""And only where so many rows are copied for each row that changes. Measured (1 million rows of 19
columns, CPU seconds, rewritten and marked): of 50 for one 0.50 and 0.17, of 10 for one 1.0 and 0.6,
of three for one 2.2 and 2.1."""

_OWN_FEATURES = RULE_FEATURES | {GUARD_FEATURE, MAPPING_FEATURE}
"""Those with which a mirror is left to Spark where Redolake cannot commit itself."""

_NAMED = {FILE_NAME, FILE_NUMBER}
_CONSTRAINTS = "delta.constraints."
_SET = ("delta.appendOnly", "delta.enableChangeDataFeed", "delta.enableRowTracking")

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MergeSize:
    """What a change meets: its own rows, and files, rows and bytes of the mirror that can have
    their keys."""

    changes: int
    files: int
    rows: int
    bytes: int

    @property
    def copied_share(self) -> float:
        """Which share of the files changes at most: each row may be in a file of its own."""
        return min(1.0, self.changes / max(self.files, 1))

    @property
    def rows_copied(self) -> int:
        """So many rows would be written as they are, at most."""
        return max(0, int(self.rows * self.copied_share) - self.changes)


def rewriting_seconds(size: MergeSize) -> float:
    """Of copy-on-write without Spark: keys are read, each change finds its row, bytes are written
    anew."""
    copied = size.bytes * size.copied_share / _MIB
    return 0.05 + size.rows * 0.1e-6 + size.changes * 5e-6 + copied * 0.018


def marking_seconds(size: MergeSize) -> float:
    """Of deletion vectors without Spark: keys are read, each change marks its row."""
    return 0.05 + size.rows * 0.1e-6 + size.changes * 7e-6


def spark_seconds(size: MergeSize, cores: int, *, is_warm: bool) -> float:
    """Of Spark's MERGE: its fixed part, and a start of the JVM if there is none, stay whatever the
    number of cores. All rows are joined, which is most of it where they are narrow (measured: 100
    million rows of two columns, 72 CPU seconds)."""
    copied = size.bytes * size.copied_share / _MIB
    work = size.changes * 50e-6 + size.rows * 0.6e-6 + copied * 0.06
    return (2.5 if is_warm else 18.0) + work / max(cores, 1)


@dataclass(frozen=True, slots=True)
class Choice:
    """The way of a change into its mirror. ``expected`` are the estimated seconds of the ways that
    are open."""

    way: WriteWay
    reason: str
    expected: dict[WriteWay, float]


def choose(mirror: MirrorFiles, schema: TableSchema, bounds: Bounds, changes: int) -> Choice:
    """The quickest of the ways that are open.

    Args:
        mirror: The mirror.
        schema: The table.
        bounds: Between which values the change's keys lie.
        changes: About how many rows it has.
    """
    near = files_near(mirror, bounds)
    names: list[str] = near["path"].to_pylist()
    size = MergeSize(
        changes,
        len(names),
        pc.sum(near["num_records"]).as_py() or 0,
        pc.sum(near["size_bytes"]).as_py() or 0,
    )
    spark = spark_seconds(size, mirror.work.spark_cores, is_warm=is_running())
    if (reason := _why_foreign(mirror, schema, near)) is not None:
        return Choice("merge", reason, {"merge": spark})
    marks = marks_rows(mirror, names) or _will_mark(mirror, names, size)
    way: WriteWay = "deletion vectors" if marks else "copy-on-write"
    own = marking_seconds(size) if marks else rewriting_seconds(size)
    expected: dict[WriteWay, float] = {way: own, "merge": spark}
    too_large = _too_large(mirror, names, size, marks=marks)
    if too_large is not None:
        return Choice("merge", too_large, {"merge": spark})
    if spark < own:
        return Choice("merge", f"{way} would take about {own:,.0f} s", expected)
    return Choice(way, f"mirror of {size.bytes / _MIB:,.1f} MB", expected)


def why_rewritten_by_spark(mirror: MirrorFiles, schema: TableSchema) -> str | None:
    """Why all files of a mirror must be written anew by Spark; None where this process can."""
    if (reason := _why_foreign(mirror, schema, mirror.files)) is not None:
        return reason
    names = mirror.files["path"].to_pylist()
    if mirror.have_vectors(names) and not _takes_vectors(mirror, names):
        return "its files have deletion vectors"
    size = pc.sum(mirror.files["size_bytes"]).as_py() or 0
    return f"its files have {size} bytes" if size > mirror.work.rewrite_bytes_max else None


def _why_foreign(mirror: MirrorFiles, schema: TableSchema, files: pa.Table) -> str | None:
    """Why Spark alone may write these files of a mirror; None where Redolake may.

    What delta-rs refuses, or writes without what the feature asks for, is Spark's. Measured with
    deltalake 1.6: its ``remove`` actions name no deletion vector, so that the rows of such a file
    would be there twice (our own commits name it); it refuses clustering and row tracking, and
    writes past change data, constraints and invariants without an error.
    """
    log = mirror.log
    if others := sorted(log.features - PLAIN_FEATURES - {VECTORS_FEATURE} - _OWN_FEATURES):
        return f"the mirror has features: {', '.join(others)}"
    if found := [
        name
        for name, value in log.properties.items()
        if name.startswith(_CONSTRAINTS) or (name in _SET and value.lower() == "true")
    ]:
        return f"the mirror has properties: {', '.join(sorted(found))}"
    if not mirror.are_named:
        return "the mirror has column mapping by number"
    fields = log.fields
    if {one.name for one in fields} != set(mirror_schema(schema).names):
        return "the mirror has columns of somebody else"
    if any(
        not one.nullable or any(name.startswith("delta.") for name in one.metadata.keys() - _NAMED)
        for one in fields
    ):
        return "the mirror has columns with rules"
    if log.partition_columns:
        return "the mirror is partitioned"
    names = files["path"].to_pylist()
    if not are_plain(names):
        return "the mirror has files of somebody else"
    if files["num_records"].null_count:
        return "nobody counted the rows of its files"
    own = sorted(_OWN_FEATURES & log.features)
    if own and not mirror.takes_commits(names):
        return f"the mirror has features: {', '.join(own)}"
    if not mirror.are_readable(names):
        return "its files have deletion vectors in another place"
    return None


def _too_large(
    mirror: MirrorFiles, names: Sequence[str], size: MergeSize, *, marks: bool
) -> str | None:
    """Why its size keeps a mirror from being written without Spark; None where it does not."""
    if size.rows > (MARKED_ROWS_MAX if marks else ROWS_MAX):
        return f"its files have many rows: {size.rows}"
    if marks:
        return None
    if size.bytes > mirror.work.rewrite_bytes_max:
        return f"its files have {size.bytes} bytes"
    has_vectors = mirror.have_vectors(names) and not _takes_vectors(mirror, names)
    return "its files have deletion vectors" if has_vectors else None


def marks_rows(mirror: MirrorFiles, names: Sequence[str]) -> bool:
    """Does a change mark rows of these files as deleted? Where vectors are switched on, and
    Redolake's own commit can name them."""
    has_statistics = all(mirror.said(name).statistics for name in names)
    return mirror.has_vectors_on and has_statistics and _takes_vectors(mirror, names)


def gets_vectors(mirror: MirrorFiles, rows_copied: int, changes: int) -> bool:
    """Shall a change that would copy so many rows switch deletion vectors on? Where they are off,
    wanted, and can be switched on by Redolake's own commit."""
    wanted = mirror.work.vectors
    if mirror.has_vectors_on or wanted == "never" or not rows_copied:
        return False
    if wanted == "auto":
        rows = pc.sum(mirror.files["num_records"]).as_py() or 0
        if rows < VECTORS_ROWS_MIN or rows_copied < COPIED_PER_CHANGE_MIN * max(changes, 1):
            return False
    return mirror.takes_commits(mirror.files["path"].to_pylist())


def _will_mark(mirror: MirrorFiles, names: Sequence[str], size: MergeSize) -> bool:
    has_vectors = mirror.have_vectors(names)  # switched off, and not written into the files yet
    return not has_vectors and gets_vectors(mirror, size.rows_copied, size.changes)


def _takes_vectors(mirror: MirrorFiles, names: Sequence[str]) -> bool:
    return VECTORS_FEATURE in mirror.log.features and mirror.takes_commits(names)
