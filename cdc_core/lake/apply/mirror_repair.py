"""Replay: which rows of a mirror differ from what its whole change log says of a window's keys,
and how are they put right? (Rule 6, backward.)

Where both Delta tables are small, they are compared in hand, by columns (``stage.reduction``,
``stage.difference``), and Spark has to do with it only if the mirror is to be mended. Where they
are large, and where a change leads to keys beyond the window's, Spark's tasks derive the rows
(``rows.derivation``). Either way the rows that differ are merged as the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_core.delta.appending import CommitInfo
from cdc_core.delta.history import read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.mirror.merge import TruthRule
from cdc_core.lake.mirror.merge_audit import SentRows
from cdc_core.lake.mirror.write import ChangeRows, MirrorChange
from cdc_core.lake.rows.derivation import rederived
from cdc_core.lake.rows.logged_changes import batches_of, files_of, logged_changes, window_sql
from cdc_core.lake.rows.staging import StagedRows, staged_rows
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.changes import LightChanges, LoggedChanges, of_window, since, up_to
from cdc_core.stage.difference import different_rows, rows_of_keys, touching
from cdc_core.stage.layout import mirror_schema
from cdc_core.stage.reduction import merge_source, reduce_changes

IN_HAND_ROWS_MAX = 500_000
"""Up to so many rows of change log and mirror together are looked through in hand; it takes some
hundred bytes for each change."""


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
        rule = TruthRule(schema=schema, absent=self.absent, covered_scn=covered_scn)
        return MirrorChange(rows=self, rule=rule, commit=info)

    @property
    def count(self) -> int:
        """How many they are."""
        return self.sent.rows + self.sent.gone

    @property
    def why_spark(self) -> str:
        """Why Spark alone can merge them."""
        return "rows are derived from the whole change log"

    @contextmanager
    def staged(self, work: TableWork) -> Iterator[StagedRows]:
        """All of them for a MERGE."""
        if self.rows is None:
            yield StagedRows(self.frame, self.sent)
            return
        session, rows = work.session_for(self.rows.num_rows), iter([self.rows])
        with staged_rows(work, session, rows, self.sent) as staged:
            yield staged


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
        sent = SentRows.of_frame(frame, schema, None, facts, are_different=True)
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
    counts = [count_rows(path) for path in (work.changelog, work.mirror)]
    if None in counts or sum(count or 0 for count in counts) > IN_HAND_ROWS_MAX:
        return None
    path, own = work.changelog, of_window(scn_high)
    with logged_changes(path, schema, own, files_of(work, scn_high)) as changes:
        window = changes.light()
    counts_from = truncated_scn(work, read_log(path))
    known = since(counts_from, up_to(position)) if counts_from else up_to(position)
    with logged_changes(path, schema, known, files_of(work)) as history:
        light = history.light()
        near = touching(light, window)
        absent, moved_absent = (light if is_late else near).kinds(schema.column_names)
        if moved_absent:
            return None  # the row's former key may be another window's
        derived = _derived(work, history, near, schema)
    keys = derived.select(list(schema.key))
    rows = rows_of_keys(_mirror_parts(work, schema), keys)
    found = different_rows(derived, rows, schema, covered_scn=covered_scn)
    return None if found is None else (found, history.in_order(absent))


def _derived(
    work: TableWork, history: LoggedChanges, near: LightChanges, schema: TableSchema
) -> pa.Table:
    """One row per key."""
    absent = history.in_order(near.kinds(schema.column_names)[0])
    reduced = reduce_changes(near, schema, absent, has_gaps=QuarantineTable(work).exists)
    return merge_source(history, reduced, schema)


def _mirror_parts(work: TableWork, schema: TableSchema) -> Iterator[pa.Table]:
    """The mirror, part by part, in the columns of ``stage.layout.mirror_schema``; read without
    Spark."""
    columns = mirror_schema(schema)
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in columns.names)
    yield columns.empty_table()
    for rows in batches_of(work, "mirror", f"SELECT {listed} FROM mirror"):
        yield rows.cast(columns)
