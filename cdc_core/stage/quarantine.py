"""What becomes of redo rows that cannot be decoded, and of the changes that would need them?

A quarantined change leaves its row in the mirror as it was: missing after an insert, there still
after a delete, stale after an update. What follows is judged by what a change needs. One that
carries all columns needs nothing of the row's former state: it is applied, and puts the row right.
One that lacks columns keeps the mirror's values of these; it would mix two states of the row, or
make a row of some columns. It goes into quarantine as well where the quarantined change may have
been one of the same row: it has the same ROW_ID, or the ROW_ID of one of the two is not known, or
the two addresses are in different segments: ALTER TABLE MOVE and an update of a partition key give
a row another address, and a ROW_ID begins with the number of its segment's data object (SHRINK
SPACE stays in the segment, and writes each row that it moves into the redo as a delete and an
insert). So no row of the mirror is ever made of parts.

What is not about one row stops the table as before: rows that a transaction took back in a way that
is not understood, a TRUNCATE, a definition that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import DecodeError
from cdc_core.model.texts import STATUS_MASK
from cdc_core.stage.decoding import ChangeDecoder, RefusedRow, operation_name
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL
from cdc_core.stage.statements import UNKNOWN_ROW_ID

QUARANTINE_SCHEMA = pa.schema(
    [
        ("_cdc_window", pa.int64()),
        (ORDINAL, pa.int64()),
        (COMMIT_SCN, pa.int64()),
        ("_cdc_scn", pa.int64()),
        ("_cdc_xid", pa.string()),
        ("_cdc_timestamp", pa.timestamp("us")),
        ("_cdc_commit_timestamp", pa.timestamp("us")),
        ("_cdc_username", pa.string()),
        ("_cdc_rs_id", pa.string()),
        ("_cdc_thread", pa.int32()),
        ("_cdc_row_id", pa.string()),
        ("operation", pa.string()),
        ("status", pa.int32()),
        ("reason", pa.string()),
        ("sql_redo", pa.string()),
        ("resolved_scn", pa.int64()),
    ]
)
"""Columns of a quarantine table; those that the change log has too mean the same. ``sql_redo``
holds row values. ``resolved_scn`` is the SCN of a later reading of the table's rows, which made the
row count no more."""

FOLLOWS = "the change lacks columns, and may follow a change of its row that is in quarantine"


@dataclass(slots=True)
class Suspects:
    """Rows whose former state is not certain: those with these addresses, and rows of other
    segments than theirs, where one of them may have gone; any row where ``is_any``."""

    row_ids: set[str] = field(default_factory=set)
    segments: set[str] = field(default_factory=set)
    is_any: bool = False

    @classmethod
    def of(cls, row_ids: Iterable[str | None]) -> Suspects:
        """Those of quarantined changes with these addresses, None where one is not known."""
        suspects = cls()
        for row_id in row_ids:
            suspects.add(row_id)
        return suspects

    def add(self, row_id: str | None) -> None:
        """A change of the row at this address is in quarantine."""
        if row_id is None:
            self.is_any = True
        else:
            self.row_ids.add(row_id)
            self.segments.add(_segment(row_id))

    def __bool__(self) -> bool:
        return self.is_any or bool(self.row_ids)

    def may_be(self, row_id: str | None) -> bool:
        """May the row at this address be one of them?"""
        if not self or self.is_any or row_id is None:
            return bool(self)
        return row_id in self.row_ids or self.segments != {_segment(row_id)}


@dataclass(frozen=True, slots=True)
class SievedRows:
    """Some redo rows after the sieve: the ``changes`` of those that can be decoded, and the
    ``refused`` ones."""

    rows: pa.Table
    changes: Sequence[pa.RecordBatch]
    refused: Sequence[RefusedRow]


class Sieve:
    """Parts the redo rows of one window and table. Pieces come in the order of the redo.

    Args:
        decoder: Decodes the rows.
        suspects: Rows in quarantine from earlier windows, whose former state is not certain.
        covered_scn: What committed at or below is in rows that were read since, so it makes nothing
            uncertain.
        room: So many rows may come into quarantine.
        keeps_text: Is the redo text of rows kept?
    """

    def __init__(
        self,
        decoder: ChangeDecoder,
        suspects: Suspects,
        *,
        covered_scn: int,
        room: int,
        keeps_text: bool = True,
    ) -> None:
        self._keeps_text = keeps_text
        self._decoder = decoder
        self._suspects = suspects
        self._covered_scn = covered_scn
        self._room = room
        self._kept: list[pa.Table] = []
        self._open = 0

    @property
    def suspects(self) -> bool:
        """Is there a row whose former state is not certain?"""
        return bool(self._suspects)

    @property
    def rows(self) -> pa.Table:
        """The rows for the quarantine, in :data:`QUARANTINE_SCHEMA`."""
        return pa.concat_tables([QUARANTINE_SCHEMA.empty_table(), *self._kept])

    def split(self, rows: pa.Table) -> SievedRows:
        """Decode a piece. Safe to call from many threads.

        Raises:
            DecodeError: Something is not understood that is not about one row.
            SchemaMismatchError: As of :class:`ChangeDecoder`.
        """
        changes, refused = self._decoder.split(rows)
        return SievedRows(rows, changes, refused)

    def take(self, piece: SievedRows) -> Iterator[pa.RecordBatch]:
        """The changes of the next piece that may be applied; the others are kept for the
        quarantine."""
        if not piece.refused and not self._suspects:
            yield from piece.changes
            return
        following = self._following(piece)
        left_out = pa.array(following, pa.int64())
        for batch in piece.changes:
            yield batch.filter(pc.invert(pc.is_in(batch[ORDINAL], left_out)))
        reasons = dict.fromkeys(following, FOLLOWS)
        reasons |= {one.ordinal: one.reason for one in piece.refused}
        self._keep(piece.rows, reasons)

    def _following(self, piece: SievedRows) -> list[int]:
        """Ordinals of the changes that need a former state which is not certain."""
        places = [(one.ordinal, one.commit_scn, one.row_id, True) for one in piece.refused]
        for batch in piece.changes:
            partial = batch.filter(_is_partial(batch))
            columns = (partial[name].to_pylist() for name in (ORDINAL, COMMIT_SCN, "_cdc_row_id"))
            places += [(*place, False) for place in zip(*columns, strict=True)]
        found = []
        for ordinal, scn, row_id, is_refused in sorted(places, key=lambda place: place[0]):
            if scn <= self._covered_scn:
                continue
            if is_refused:
                self._suspects.add(row_id)
            elif self._suspects.may_be(row_id):
                self._suspects.add(row_id)
                found.append(ordinal)
        return found

    def _keep(self, rows: pa.Table, reasons: dict[int, str]) -> None:
        if not reasons:
            return
        kept = quarantined(rows, reasons, self._decoder, covered_scn=self._covered_scn)
        if not self._keeps_text:
            kept = without_text(kept)
        self._open += kept["resolved_scn"].null_count
        if self._open > self._room:
            raise DecodeError(
                "more rows cannot be decoded than the quarantine may hold",
                hint="`redolake table quarantine OWNER.TABLE` counts the rows by reason. Fix what they have in common, or raise "
                "policies.quarantine_rows_max.",
                table=self._decoder.schema.table,
            )
        self._kept.append(kept)


def quarantined(
    rows: pa.Table, reasons: dict[int, str], decoder: ChangeDecoder, *, covered_scn: int
) -> pa.Table:
    """Redo rows in the columns of a quarantine table, by ordinal and reason; their redo text lacks
    the values of columns that are left out."""
    rows = rows.filter(pc.is_in(rows["ordinal"], pa.array(list(reasons), pa.int64())))
    rows = rows.sort_by("ordinal").combine_chunks()
    count = rows.num_rows
    row_ids = rows["row_id"]
    unknown = pc.fill_null(pc.equal(row_ids, UNKNOWN_ROW_ID), True)
    is_covered = pc.less_equal(rows["commit_scn"], covered_scn)
    nothing = pa.scalar(None, pa.string())
    columns = {
        "_cdc_window": pa.repeat(pa.scalar(decoder.window, pa.int64()), count),
        ORDINAL: rows["ordinal"],
        COMMIT_SCN: rows["commit_scn"],
        "_cdc_scn": rows["scn"],
        "_cdc_xid": rows["xid"],
        "_cdc_timestamp": rows["timestamp"],
        "_cdc_commit_timestamp": rows["commit_timestamp"],
        "_cdc_username": rows["username"],
        "_cdc_rs_id": rows["rs_id"],
        "_cdc_thread": rows["thread"],
        "_cdc_row_id": pc.if_else(unknown, nothing, row_ids),
        "operation": pa.array(
            [operation_name(one) for one in rows["operation_code"].to_pylist()], pa.string()
        ),
        "status": pc.bit_wise_and(rows["status"], pa.scalar(STATUS_MASK, pa.int32())),
        "reason": pa.array([reasons[one] for one in rows["ordinal"].to_pylist()], pa.string()),
        "sql_redo": decoder.redacted(rows),
        "resolved_scn": pc.if_else(is_covered, pa.scalar(covered_scn, pa.int64()), None),
    }
    return pa.table(
        [columns[field.name].cast(field.type) for field in QUARANTINE_SCHEMA],
        schema=QUARANTINE_SCHEMA,
    )


def without_text(rows: pa.Table) -> pa.Table:
    """Rows of a quarantine that say where and why, and no value."""
    at = rows.schema.get_field_index("sql_redo")
    return rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.string()))


def _segment(row_id: str) -> str:
    """The number of the data object, as the first six of a ROWID's characters have it (SQL Language
    Reference 19c, "ROWID")."""
    return row_id[:6]


def _is_partial(batch: pa.RecordBatch) -> pa.Array:
    """Does a change keep values of its row's former state?"""
    lacks = pc.greater(pc.list_value_length(batch["_cdc_absent"]), 0)
    return pc.fill_null(pc.and_(pc.equal(batch["_cdc_op"], "u"), lacks), False)
