"""How is one row per key merged into a mirror? Generated MERGE text.

The rule is the same for windows and chunks: a matched row changes only where the source's position
is greater than the row's own. A window or chunk that is applied twice therefore changes nothing the
second time. ``stage.merge`` is the same rule in Arrow, for windows whose part of the mirror is
small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from cdc_core.delta.appending import CommitInfo
from cdc_core.errors import CdcError
from cdc_core.lake.rows.staging import StagedRows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import delta, listed, quote_name, same_key, string_literal
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import packed_error, translated
from cdc_core.stage.changes import Bounds
from cdc_core.stage.layout import CHUNK_ORDINAL_MIN, COMMIT_SCN, ORDINAL, WATERMARK_ORDINAL
from cdc_core.stage.merge import (
    Merge,
    ReplaceMerge,
    TruncationMerge,
    WindowMerge,
    double_key,
    lacking_row,
    lost_columns,
)

NEWER = f"(s.{COMMIT_SCN} > t.{COMMIT_SCN} OR (s.{COMMIT_SCN} = t.{COMMIT_SCN} AND s.{ORDINAL} > t.{ORDINAL}))"


_SOURCE = "merge_source"
"""What the source of a MERGE is called in its session; nobody but the function that runs the MERGE
knows it."""


class MergeRule(Protocol):
    """What the rows of a change do to those of a mirror, in Spark's MERGE and by columns."""

    def statement(self, mirror: str, source: str, *, inserts: bool = True) -> str:
        """MERGE of a view into the Delta table in a folder; without ``inserts`` where no row can
        come."""
        ...

    @property
    def columns(self) -> TableSchema:
        """The mirror's columns, with the key by which rows are found."""
        ...

    def near(self, bounds: Bounds) -> Bounds:
        """Between which values of the mirror's columns the rows' keys lie, of keys between these
        bounds."""
        ...

    def in_arrow(self, rows: pa.Table) -> Merge:
        """The rule for these rows, by columns."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRule(MergeRule):
    """The apply rule of rows with a key.

    Attributes:
        schema: The mirror.
        absent: Columns that may be named in ``_cdc_missing``.
        covered_scn: Keys that are not in the mirror are known to be gone as of this SCN, so older
            changes do not bring them back.
        read_scn: Highest SCN as of which a chunk of the mirror was read. A change up to it that
            lacks columns and finds no row is one of a row that a chunk saw gone: its deletion comes
            with a later window, and nothing is inserted. A later one is an error, and so is one
            that brought the row from another key: the chunk of the new key may have been read
            before, and no chunk has the row. An insert up to it may meet its own row, which a chunk
            between two watermarks has.
        is_truth: The rows are what the mirror is to have of their keys, whatever the positions say:
            they were derived from the whole change log.
    """

    schema: TableSchema
    absent: Sequence[str] = ()
    covered_scn: int = 0
    read_scn: int | None = None
    is_truth: bool = False

    @property
    def columns(self) -> TableSchema:
        return self.schema

    def near(self, bounds: Bounds) -> Bounds:
        return bounds

    def in_arrow(self, rows: pa.Table) -> Merge:
        return WindowMerge(
            rows,
            self.schema,
            self.absent,
            covered_scn=self.covered_scn,
            read_scn=self.read_scn,
            is_truth=self.is_truth,
        )

    def statement(self, mirror: str, source: str, *, inserts: bool = True) -> str:
        return merge_sql(mirror, source, self, inserts=inserts)


@dataclass(frozen=True, slots=True)
class TruncationRule:
    """A :class:`MergeRule`: the one row is a TRUNCATE, and rows of the mirror from before its
    commit SCN go."""

    columns: TableSchema
    scn: int

    def near(self, bounds: Bounds) -> Bounds:
        del bounds
        return {}  # all rows may go

    def in_arrow(self, rows: pa.Table) -> Merge:
        del rows
        return TruncationMerge(self.scn, self.columns)

    def statement(self, mirror: str, source: str, *, inserts: bool = True) -> str:
        del inserts
        return (
            f"MERGE INTO {delta(mirror)} t USING {source} s ON t.{COMMIT_SCN} < s.{COMMIT_SCN}"
            " WHEN MATCHED THEN DELETE"
        )


@dataclass(frozen=True, slots=True)
class ReplaceRule:
    """A :class:`MergeRule`: the rows come in the place of whatever the mirror has of their keys, up
    to an SCN where one is given: what is from behind it stays."""

    columns: TableSchema
    scn: int | None = None

    def near(self, bounds: Bounds) -> Bounds:
        return bounds

    def in_arrow(self, rows: pa.Table) -> Merge:
        return ReplaceMerge(rows, self.columns, self.scn)

    def statement(self, mirror: str, source: str, *, inserts: bool = True) -> str:
        return replace_sql(mirror, source, self.columns, self.scn, inserts=inserts)


def run_merge(
    work: TableWork,
    staged: StagedRows,
    rule: MergeRule,
    commit: CommitInfo,
    *,
    inserts: bool = True,
) -> list[Any]:
    """MERGE staged rows into the mirror, in one commit; MERGE's own counts, none if Delta skipped a
    repeated transaction.

    Raises:
        RowCountError: The mirror took other rows than were staged.
    """
    frame = staged.frame
    with translated(commit.doing, **work.facts()):
        frame.createOrReplaceTempView(_SOURCE)
    sql = rule.statement(work.mirror, _SOURCE, inserts=inserts)
    with work.commit(frame.sparkSession, commit.doing, commit.metadata, commit.txn):
        counts = list(frame.sparkSession.sql(sql).collect())
    staged.sent.check(counts)
    return counts


def counts_as_metadata(counts: Mapping[str, int]) -> dict[str, int]:
    """MERGE's counts for the user metadata of a commit that has none of Spark's metrics;
    :mod:`cdc_core.lake.applied_in_delta` reads them."""
    return {what: counts[f"num_{what}_rows"] for what in ("inserted", "updated", "deleted")}


def merge_sql(mirror: str, source: str, rule: KeyRule, *, inserts: bool = True) -> str:
    """MERGE of ``source`` (columns as ``stage.reduction.merge_source`` gives them) into the Delta
    table at ``mirror``.

    Args:
        mirror: The mirror's folder.
        source: A view.
        rule: The table, and what is known of the mirror.
        inserts: False where the mirror is known to have a row of each key that has one in the
            source. Delta then joins the source to the mirror's files as they are, and shuffles and
            sorts nothing.
    """
    schema, absent, read_scn = rule.schema, rule.absent, rule.read_scn
    on = same_key(schema, "t", "s")
    newer = "TRUE" if rule.is_truth else NEWER
    columns = [*schema.column_names, COMMIT_SCN, ORDINAL]
    updates = ", ".join(
        f"t.{quote_name(column)} = {_new_value(column, rule)}"
        for column in columns
        if column not in schema.key
    )
    names = listed(columns)
    values = ", ".join(_inserted_value(column, schema, absent) for column in columns)
    comes = f"s._cdc_kind = 'row' AND s.{COMMIT_SCN} > {rule.covered_scn}"
    if absent and read_scn is not None:
        comes += f" AND (SIZE(s._cdc_missing) = 0 OR s._cdc_lost OR s.{COMMIT_SCN} > {read_scn})"
    inserted = f"WHEN NOT MATCHED AND {comes} THEN INSERT ({names}) VALUES ({values})"
    return f"""
MERGE INTO {delta(mirror)} t USING {source} s ON {on}
WHEN MATCHED AND {newer} AND s._cdc_kind = 'del' THEN DELETE
WHEN MATCHED AND {newer} AND s._cdc_kind = 'row' THEN UPDATE SET {updates}
{inserted if inserts else ""}
"""


def replace_sql(
    mirror: str,
    source: str,
    schema: TableSchema,
    scn: int | None = None,
    *,
    inserts: bool = True,
) -> str:
    """MERGE that puts ``source`` in the place of whatever the Delta table at ``mirror`` has of its
    keys, in one commit.

    ``source`` is a view with the mirror's columns and ``_cdc_kind``: each key once as ``del``, of
    which only the key is read, and once as ``row`` if it shall be there. All rows of a ``del`` key
    go, even if there are several, but for those from behind ``scn``; ``row`` rows match nothing and
    are inserted. Without ``inserts`` where there are none.
    """
    on = same_key(schema, "t", "s")
    columns = [*schema.column_names, COMMIT_SCN, ORDINAL]
    names, values = listed(columns), listed(columns, "s")
    older = "" if scn is None else f" AND t.{COMMIT_SCN} <= {scn}"
    inserted = f"WHEN NOT MATCHED AND s._cdc_kind = 'row' THEN INSERT ({names}) VALUES ({values})"
    return f"""
MERGE INTO {delta(mirror)} t USING {source} s ON s._cdc_kind = 'del' AND {on}
WHEN MATCHED{older} THEN DELETE
{inserted if inserts else ""}
"""


def _new_value(column: str, rule: KeyRule) -> str:
    schema, absent, plain = rule.schema, rule.absent, f"s.{quote_name(column)}"
    if column == COMMIT_SCN and not rule.is_truth:
        distance = f"{WATERMARK_ORDINAL} - t.{ORDINAL}"
        is_near = f"s._cdc_new_scn - t.{COMMIT_SCN} <= {distance}"
        is_seen = f"t.{ORDINAL} >= {CHUNK_ORDINAL_MIN} AND {is_near}"
        return f"IF(s._cdc_new AND NOT ({is_seen}), {_raise(double_key(schema))}, {plain})"
    if column == ORDINAL and absent and not rule.is_truth:
        error = lost_columns(schema)
        return f"IF(s._cdc_lost AND SIZE(s._cdc_missing) > 0, {_raise(error)}, {plain})"
    if column not in absent:
        return plain
    return f"IF(ARRAY_CONTAINS(s._cdc_missing, {string_literal(column)}), t.{quote_name(column)}, {plain})"


def _inserted_value(column: str, schema: TableSchema, absent: Sequence[str]) -> str:
    plain = f"s.{quote_name(column)}"
    if column != ORDINAL or not absent:
        return plain
    return f"IF(SIZE(s._cdc_missing) > 0, {_raise(lacking_row(schema))}, {plain})"


def _raise(error: CdcError) -> str:
    """Stops the MERGE before anything is committed. Stands in values, not in a clause's condition:
    Delta computes all conditions for every row, matched or not (4.4; tests/lake/test_absent.py
    shows it)."""
    return f"CAST(RAISE_ERROR({string_literal(packed_error(error))}) AS BIGINT)"
