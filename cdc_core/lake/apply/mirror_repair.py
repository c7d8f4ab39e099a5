"""Replay: which rows of a mirror differ from what its whole change log says of a window's keys,
and how are they put right? (Rule 6, backward.)

Where both Delta tables are small, they are compared in hand, by columns (``stage.reduction``,
``stage.difference``), and Spark has nothing to do with it. Where they are large, or the mirror
has a key twice, Spark's tasks derive the rows (``rows.derivation``). Either way the rows that
differ are merged as the truth.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_core.delta.appending import CommitInfo
from cdc_core.delta.history import read_log
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.merge import KeyRule
from cdc_core.lake.mirror.merge_audit import SentRows
from cdc_core.lake.mirror.write import ChangeRows, MirrorChange
from cdc_core.lake.rows.derivation import rederived
from cdc_core.lake.rows.logged_changes import (
    files_of,
    logged_changes,
    mirror_parts,
    sizes_of_files,
    window_sql,
)
from cdc_core.lake.rows.staging import StagedRows, staged_rows
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.carried_columns import NOTHING_CARRIED, carry_columns
from cdc_core.stage.changes import LightChanges, LoggedChanges, of_window, since, up_to
from cdc_core.stage.difference import different_rows, rows_of_keys, touching
from cdc_core.stage.layout import mirror_schema
from cdc_core.stage.reduction import merge_source, reduce_changes

IN_HAND_ROWS_MAX = 500_000
"""Up to so many rows of change log and mirror together are looked through in hand; it takes some
hundred bytes for each change."""

IN_HAND_BYTES_MAX = 128 * 1024 * 1024
"""And where all of their rows are made anew, of files of the change log of up to so many bytes."""


@dataclass(frozen=True, slots=True)
class MirrorDifferences(ChangeRows):
    """What the mirror has otherwise: counts of it, the columns that some change lacks, and the
    rows, in hand or as Spark's."""

    sent: SentRows
    absent: tuple[str, ...]
    rows: pa.Table | None = None
    frame: Any = None

    def change(self, schema: TableSchema, info: CommitInfo, covered_scn: int = 0) -> MirrorChange:
        """The mirror, with ``schema``, is to have these rows."""
        rule = KeyRule(schema=schema, absent=self.absent, covered_scn=covered_scn, is_truth=True)
        return MirrorChange(rows=self, rule=rule, commit=info)

    @property
    def count(self) -> int:
        """How many they are."""
        return self.sent.rows + self.sent.gone

    @property
    def why_spark(self) -> str | None:
        return "Spark derives rows from the whole change log" if self.rows is None else None

    def in_hand(self, mirror: MirrorFiles) -> tuple[pa.Table, SentRows] | None:
        del mirror
        return None if self.rows is None else (self.rows, self.sent)

    def staged(self, work: TableWork) -> AbstractContextManager[StagedRows]:
        if self.rows is None:
            return nullcontext(StagedRows(self.frame, self.sent))
        session = work.session_for(self.rows.num_rows)
        return staged_rows(work, session, iter([self.rows]), self.sent)


def find_different(
    work: TableWork,
    schema: TableSchema,
    scn_high: int,
    *,
    position: int,
    covered_scn: int,
    facts: dict[str, object],
    is_late: bool = False,
) -> MirrorDifferences:
    """The rows that the mirror has otherwise than the change log up to ``position`` says, of the
    keys that a window touches.

    Args:
        work: The table's tools.
        schema: The table.
        scn_high: The window.
        position: How far the mirror is, or is to be.
        covered_scn: Keys that are not in the mirror are known to be gone as of this SCN.
        facts: Source, table and window, for errors.
        is_late: See :func:`~cdc_core.lake.rows.derivation.rederived`.

    Raises:
        DecodeError: It cannot be said which row a key has.
    """
    found = _in_hand(
        work, schema, scn_high, position=position, covered_scn=covered_scn, is_late=is_late
    )
    if found is not None:
        rows, absent = found
        return MirrorDifferences(SentRows.of_table(rows, schema, facts), absent, rows)
    session = work.session_for()
    changes = window_sql(work, session, scn_high, schema)
    with translated("deriving a window's keys", **work.facts()):
        frame = rederived(
            work, session, changes, schema, position=position, covered_scn=covered_scn,
            is_late=is_late,
        )  # fmt: skip
        sent = SentRows.of_frame(frame, schema, None, facts).as_truth()
        [lacking] = frame.selectExpr("ARRAY_DISTINCT(FLATTEN(COLLECT_SET(_cdc_missing)))").collect()
    return MirrorDifferences(sent, tuple(lacking[0]), frame=frame)


def _in_hand(
    work: TableWork,
    schema: TableSchema,
    scn_high: int,
    *,
    position: int,
    covered_scn: int,
    is_late: bool,
) -> tuple[pa.Table, tuple[str, ...]] | None:
    """The rows that differ, in the columns of ``stage.reduction.merge_source``, and the columns
    that some change lacks; None if Spark has to find them."""
    if not work.has_few_rows(IN_HAND_ROWS_MAX):
        return None
    own = of_window(scn_high)
    with logged_changes(work.changelog, schema, own, files_of(work, scn_high)) as changes:
        window = changes.light()
    with _history(work, schema, position) as history:
        light = history.light()
        # A later change of key may have carried along what a late change set.
        are_all = is_late and light.kinds(schema.column_names)[1]
        if are_all and not _has_few_bytes(work):
            return None
        near = light if are_all else touching(light, window)
        derived, absent = _derived(work, history, near, schema)
    keys = derived.select(list(schema.key))
    rows = rows_of_keys(mirror_parts(work, mirror_schema(schema)), keys)
    found = different_rows(derived, rows, schema, covered_scn=covered_scn)
    return None if found is None else (found, absent)


def whole_in_hand(work: TableWork, schema: TableSchema, position: int) -> pa.Table | None:
    """One row per key of the whole change log up to ``position``, in the columns of
    ``stage.reduction.merge_source``; None if Spark has to derive them."""
    if not work.has_few_rows(IN_HAND_ROWS_MAX) or not _has_few_bytes(work) or not files_of(work):
        return None
    with _history(work, schema, position) as history:
        return _derived(work, history, history.light(), schema)[0]


def _has_few_bytes(work: TableWork) -> bool:
    sizes = sizes_of_files(work.changelog)
    return sizes is not None and sum(sizes) <= IN_HAND_BYTES_MAX


def _history(
    work: TableWork, schema: TableSchema, position: int
) -> AbstractContextManager[LoggedChanges]:
    """The changes up to a position that count, those since the last TRUNCATE."""
    counts_from = truncated_scn(work, read_log(work.changelog))
    known = since(counts_from, up_to(position)) if counts_from else up_to(position)
    return logged_changes(work.changelog, schema, known, files_of(work))


def _derived(
    work: TableWork, history: LoggedChanges, near: LightChanges, schema: TableSchema
) -> tuple[pa.Table, tuple[str, ...]]:
    """One row per key of some changes, and the columns that one of them lacks."""
    has_gaps, carried = QuarantineTable(work).exists, NOTHING_CARRIED
    named, moved_absent = near.kinds(schema.column_names)
    if moved_absent:
        named = history.light().kinds(schema.column_names)[0]
        followed = carry_columns(history, schema, history.in_order(named), has_gaps=has_gaps)
        carried = followed.values(mirror_schema(schema).empty_table(), schema)
    absent = history.in_order(named)
    reduced = reduce_changes(near, schema, absent, has_gaps=has_gaps, carried=carried)
    return merge_source(history, reduced, schema, carried), absent
