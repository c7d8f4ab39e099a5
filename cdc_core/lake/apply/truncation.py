"""How does a TRUNCATE empty a table: one row of the change log, and everything older out of the
mirror?

The apply rule holds for it as for any change: what was read or committed below its SCN goes, what a
chunk read at or above it, and what committed behind it, stays. TRUNCATE locks the table, so that no
transaction with changes of it reaches over that SCN; windows are taken in two parts, before and
behind it (``steps.windows.table_ranges``).

The row of the change log comes first (``_cdc_op`` ``t``, without images), under a transaction
identifier of its own. From then on nothing that is older counts: neither for what is derived from
the whole change log, nor for chunks that were read before. Then the mirror takes the TRUNCATE under
the same identifier, as any change by ``mirror_write.write``; whoever comes upon a mirror that lags
behind empties it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from cdc_core.delta.history import DeltaLog, read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import RESNAPSHOT_HINT, RowsGoneError
from cdc_core.lake.definitions.evolution import known_schema
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.merge import TruncationRule
from cdc_core.lake.mirror.merge_audit import SentRows
from cdc_core.lake.mirror.write import ChangeRows, MirrorChange, MirrorCommit, write
from cdc_core.lake.rows.staging import StagedRows, staged_rows
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import SCN_MAX, Scn, ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.stage.committed import read_committed
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, change_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """A TRUNCATE of a captured table, or of the ``partitions`` that are named: where it committed,
    and its redo row's place and facts, as far as they are known. ``skipped`` says why its deletions
    are no events, if they are none."""

    scn: int
    ordinal: int
    partitions: tuple[PartitionRows, ...] = ()
    skipped: str | None = None
    row_scn: int | None = None
    xid: str | None = None
    timestamp: datetime | None = None
    rs_id: str | None = None
    thread: int | None = None
    landed: datetime | None = None


def truncate(
    work: TableWork, truncation: Truncation, transactions_paths: Sequence[str]
) -> TableApplied:
    """Take a TRUNCATE into change log and mirror, each once; the window's transactions before it
    were taken. Repeatable.

    Raises:
        RowsGoneError: A transaction committed at its SCN, so nothing says which came first.
        LakeError: A Delta table is missing, or Delta refused.
    """
    work.require_tables()
    changelog = read_log(work.changelog)
    schema = known_schema(changelog)
    assert schema is not None
    scn = truncation.scn
    is_new = truncated_scn(work, changelog) < scn
    if is_new:
        refuse_equal(work, scn, transactions_paths)
        doing, txn = "appending a TRUNCATE to the change log", (work.truncation_app, scn)
        info = work.info(doing, work.metadata("truncate", scn), txn)
        work.append_changes(schema, [_row(truncation, schema, work)], info, rows=1)
    written = settle_truncation(work)
    gone = written.deleted if written else 0
    quarantine = QuarantineTable(work)
    quarantine.resolve(scn)
    return TableApplied(
        table=work.table,
        changes=int(is_new),
        operations={"t": int(is_new)},
        rows_deleted=gone,
        write=written.how if written and gone else None,
        in_quarantine=quarantine.count_unresolved(),
        skipped=not is_new and not gone,
    )


def truncated_scn(work: TableWork, log: DeltaLog | None) -> int:
    """The SCN of the last TRUNCATE in a Delta table, 0 without one: what is older does not count
    any more, and the mirror has it no more."""
    return log.transactions.get(work.truncation_app, 0) if log else 0


def settle_truncation(work: TableWork) -> MirrorCommit | None:
    """Empty the mirror where it lags behind its change log; None where it does not, and so the
    second time.

    Raises:
        LakeError: There is no mirror, or Delta refused.
    """
    changelog, mirror = read_log(work.changelog), work.require_mirror()
    scn, schema = truncated_scn(work, changelog), known_schema(changelog)
    if schema is None or truncated_scn(work, mirror) >= scn:
        return None
    info = work.info(
        "emptying the mirror", work.metadata("truncate", scn), (work.truncation_app, scn)
    )
    rows = _TruncationRow(work, schema, scn)
    change = MirrorChange(rows=rows, rule=TruncationRule(schema, scn), commit=info)
    return write(work, change)


@dataclass(frozen=True, slots=True)
class _TruncationRow(ChangeRows):
    """A TRUNCATE as the one row of a change of the mirror."""

    work: TableWork
    schema: TableSchema
    scn: int
    count: int = 1
    why_spark: str | None = None

    def in_hand(self, mirror: MirrorFiles) -> tuple[pa.Table, SentRows]:
        del mirror
        return self._row, self._audit()

    def staged(self, work: TableWork) -> AbstractContextManager[StagedRows]:
        return staged_rows(work, work.session_for(), iter([self._row]), self._audit())

    @property
    def _row(self) -> pa.Table:
        return pa.table({COMMIT_SCN: pa.array([self.scn], pa.int64())})

    def _audit(self) -> SentRows:
        """No more rows go than the mirror has."""
        sent, rows = SentRows(self.schema, None, self.work.facts()), count_rows(self.work.mirror)
        sent.gone = SCN_MAX if rows is None else rows
        return sent


def refuse_equal(work: TableWork, scn: int, transactions_paths: Sequence[str]) -> None:
    """Refuse a TRUNCATE at whose SCN a transaction of the table committed.

    Raises:
        RowsGoneError: One did.
    """
    window = ScnWindow(Scn(scn - 1), Scn(scn))
    if read_committed(transactions_paths, work.table, window).count:
        raise RowsGoneError(
            "a transaction of the table and its TRUNCATE have one commit SCN, and nothing says which came first",
            hint=RESNAPSHOT_HINT,
            **work.facts(scn=scn),
        )


def _row(truncation: Truncation, schema: TableSchema, work: TableWork) -> pa.RecordBatch:
    values: dict[str, object] = {"_cdc_op": "t", "_cdc_absent": [], "_cdc_before_absent": []}
    values |= change_values(truncation, schema, work)
    fields = change_schema(schema)
    columns = [pa.array([values.get(field.name)], field.type) for field in fields]
    return pa.RecordBatch.from_arrays(columns, schema=fields)


def change_values(
    truncation: Truncation, schema: TableSchema, work: TableWork
) -> dict[str, object]:
    """What a row of the change log says of the statement that it comes from."""
    return {
        COMMIT_SCN: truncation.scn,
        ORDINAL: truncation.ordinal,
        "_cdc_scn": truncation.row_scn,
        "_cdc_xid": truncation.xid,
        "_cdc_window": truncation.scn,
        "_cdc_timestamp": truncation.timestamp,
        "_cdc_commit_timestamp": truncation.timestamp,
        "_cdc_rs_id": truncation.rs_id,
        "_cdc_thread": truncation.thread,
        "_cdc_columns": len(schema.columns),
        "_cdc_landed": truncation.landed if "landed" in work.optional else None,
    }
