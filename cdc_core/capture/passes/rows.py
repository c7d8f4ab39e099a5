"""How do rows of V$LOGMNR_CONTENTS become landing rows, a batch at a time?

All work is on whole columns; only statements that Oracle split over several rows are joined one by
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.logs.shown_names import ShownNames
from cdc_core.capture.passes.batches import NO_TABLE, MinedBatch
from cdc_core.capture.passes.log_writes import LogWrites
from cdc_core.capture.passes.mining import MINED_SCHEMA
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.unnamed_rows import SeenRows, note_rows
from cdc_core.errors import RESNAPSHOT, DecodeError, RedoUnavailableError
from cdc_core.landing.layout import ORDINAL_SHIFT, REDO_SCHEMA
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import CONTROL, Operation
from cdc_core.model.texts import TEXT_REPLACED, is_utf8, replaced, spoiled_rows
from cdc_core.model.transactions import NO_XID
from cdc_core.schema.table import TableSchema

_BY_NUMBER = "OBJ# "
"""So begins the name, in SEG_NAME or in some releases in TABLE_NAME too, of an object that the
dictionary does not know."""


def _refuse_hole(rows: pa.RecordBatch) -> None:
    """Wherever it lies: in redo that is looked at again, rows that came late may be in it."""
    holes = rows.column("operation_code").to_numpy() == Operation.MISSING_SCN
    if holes.any():
        raise RedoUnavailableError(
            "LogMiner found a hole in the redo (MISSING_SCN)",
            hint="Restore the missing archived logs, or run `redolake source skip-gap`: the streams of the tables that need this redo end, and "
            f"{RESNAPSHOT} brings each back after the gap.",
            scn=rows.column("scn")[int(np.argmax(holes))].as_py(),
        )


class RowReader:
    """Turns mined batches into whole, numbered rows, in the order in which they are followed.

    Holds at most one unfinished statement between batches, and what :class:`LogWrites` holds back.
    Columns behind those of ``MINED_SCHEMA`` are carried along.

    ``unnamed`` are the numbers of the rows that were read without a name and are of no known
    segment. With ``by_number`` the number of its object says whose a row is, before its name: the
    name is that of another time.
    """

    def __init__(
        self,
        ordinal: int,
        tables: Sequence[TableSchema],
        reading: Reading,
        shown: ShownNames | None = None,
        *,
        by_number: bool = False,
    ) -> None:
        self._by_number = by_number
        self._next = ordinal << ORDINAL_SHIFT
        self._reading = reading
        self._captured = {one.table: at for at, one in enumerate(tables)}
        names = {one.table: one.table for one in tables} | dict(shown or {})
        self._shown = {
            name: self._captured[table] for table, name in names.items() if name is not None
        }
        self._tables = [one.table for one in tables]
        self._objects = {one.object_id: at for at, one in enumerate(tables) if one.object_id}
        self._segments = {number: at for at, one in enumerate(tables) for number in one.segments}
        self.unnamed: dict[int, SeenRows] = {}
        self._unfinished: pa.RecordBatch | None = None
        self._log_writes = LogWrites()

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[MinedBatch]:
        """Yield batches of whole rows that were not read before, none of them empty.

        Raises:
            DecodeError: The last statement ends in the middle.
            RedoUnavailableError: LogMiner found a hole in the redo.
        """
        for batch in batches:
            yield from self.take(batch)
        yield from self.end()

    def take(self, batch: pa.RecordBatch) -> Iterator[MinedBatch]:
        """Take the next batch; give whole rows that were not read before and that nothing moves any
        more. :meth:`end` follows.

        Raises:
            RedoUnavailableError: LogMiner found a hole in the redo.
        """
        whole = _readable(self._whole(_named(batch)))
        if whole.num_rows:
            _refuse_hole(whole)
            whole = self._reading.take(whole)
        if whole.num_rows:
            yield from self._log_writes.take(self._numbered(whole))

    def end(self) -> Iterator[MinedBatch]:
        """All batches were taken: give the rows that are left.

        Raises:
            DecodeError: The last statement ends in the middle.
        """
        if self._unfinished is not None:
            raise DecodeError(
                "the last statement of the window has no end (CSF)",
                hint="Capture the window again; if it persists, report it with Oracle's version.",
                scn=self._unfinished.column("scn")[0].as_py(),
            )
        yield from self._log_writes.end()

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Join the pieces of split statements (CSF = 1: the next row goes on); keep an unfinished
        one back."""
        if self._unfinished is not None:
            both = pa.Table.from_batches([self._unfinished, batch]).combine_chunks()
            batch = both.to_batches()[0]
            self._unfinished = None
        goes_on = batch.column("csf").to_numpy(zero_copy_only=False) == 1
        if not goes_on.any():
            return batch
        starts = np.flatnonzero(np.concatenate(([True], ~goes_on[:-1])))
        if goes_on[-1]:
            self._unfinished = batch.slice(starts[-1])
            batch = batch.slice(0, starts[-1])
            starts = starts[:-1]
        if batch.num_rows == 0:
            return batch
        return _joined(batch, starts)

    def _numbered(self, rows: pa.RecordBatch) -> MinedBatch:
        operations = rows.column("operation_code").to_numpy()
        ordinals = np.arange(self._next, self._next + rows.num_rows, dtype=np.int64)
        self._next += rows.num_rows
        tables = self._tables_of(rows, operations)
        changes = np.where(operations == Operation.DDL, NO_TABLE, tables)
        return MinedBatch(self._under_captured_names(rows, changes), ordinals, operations, tables)

    def _tables_of(
        self, rows: pa.RecordBatch, operations: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Position of each row's captured table: of a DDL by the name that the table had then, of a
        change by the name that its rows have now, else by the table's number, and where it has no
        name by the number of a segment."""
        named = _Named.of(rows)
        found = named.tables(self._shown)
        is_ddl = operations == Operation.DDL
        if self._shown != self._captured and is_ddl.any():
            found = np.where(is_ddl, named.tables(self._captured), found)
        control = np.isin(operations, CONTROL)
        if self._by_number:
            self._correct(found, rows, ~control & ~is_ddl)
        found[control] = NO_TABLE
        lost = (found == NO_TABLE) & ~control
        if lost.any():
            numbers = rows.column("data_obj").fill_null(0).to_numpy(zero_copy_only=False)
            _give(found, lost, numbers, self._objects)
            # Under another table's name a number is not a segment's any more.
            lost &= (found == NO_TABLE) & named.has_none & ~is_ddl
            _give(found, lost, numbers, self._segments)
            lost &= found == NO_TABLE
            note_rows(self.unnamed, numbers[lost], rows.column("scn").to_numpy()[lost])
        if is_ddl.any():
            # Recursive DDL, such as that of statistics and segment management, changes nothing that
            # is captured.
            internal = pc.starts_with(rows.column("info"), "INTERNAL DDL").fill_null(False)
            found[is_ddl & internal.to_numpy(zero_copy_only=False)] = NO_TABLE
        return found

    def _correct(
        self, found: npt.NDArray[np.int32], rows: pa.RecordBatch, changes: npt.NDArray[np.bool_]
    ) -> None:
        """Give rows to the tables of their numbers. A captured name over a number that is not known
        says nothing: such a row counts as one without a name."""
        numbers = rows.column("data_obj").fill_null(0).to_numpy(zero_copy_only=False)
        scns = rows.column("scn").to_numpy()
        owners = self._segments | self._objects
        known = np.array([*self._objects.values()], dtype=np.int32)
        doubted = np.isin(found, known) & (numbers != 0)
        for number in np.unique(numbers[changes]).tolist():
            own = changes & (numbers == number)
            if number in owners:
                found[own] = owners[number]
            else:
                note_rows(self.unnamed, numbers[own & doubted], scns[own & doubted])
                found[own & doubted] = NO_TABLE

    def _under_captured_names(
        self, rows: pa.RecordBatch, tables: npt.NDArray[np.int32]
    ) -> pa.RecordBatch:
        """Statements of tables that have another name now, as they were under the captured one. The
        name comes first in each."""
        named = _Named.of(rows)
        by_name = named.tables(self._captured)
        rows = self._with_names(rows, tables, named.has_none)
        for at in np.unique(tables[(tables != NO_TABLE) & (by_name != tables)]).tolist():
            for owner, name in named.pairs(tables == at):
                if TableId(owner, name) == self._tables[at]:
                    continue
                texts = rows.column("sql_redo")
                renamed = pc.replace_substring(
                    texts,
                    TableId(owner, name).sql,
                    self._tables[at].sql,
                    max_replacements=1,
                )
                these = pa.array((tables == at) & named.is_pair(owner, name))
                rows = rows.set_column(
                    rows.schema.get_field_index("sql_redo"),
                    "sql_redo",
                    pc.if_else(these, renamed, texts),
                )
        return rows

    def _with_names(
        self,
        rows: pa.RecordBatch,
        tables: npt.NDArray[np.int32],
        has_none: npt.NDArray[np.bool_],
    ) -> pa.RecordBatch:
        """Statements of segments that are gone, under the captured name: they call the segment by
        its number."""
        own = has_none & (tables != NO_TABLE)
        if not own.any():
            return rows
        texts = rows.column("sql_redo").to_pylist()
        numbers = rows.column("data_obj").to_pylist()
        for at in np.flatnonzero(own).tolist():
            if texts[at] is not None:
                name = self._tables[tables[at]].sql
                texts[at] = texts[at].replace(f'"UNKNOWN"."OBJ# {numbers[at]}"', name, 1)
        place = rows.schema.get_field_index("sql_redo")
        return rows.set_column(place, rows.schema.field(place), pa.array(texts, pa.large_string()))


def landing_rows(batch: MinedBatch, tables: Sequence[TableSchema]) -> pa.RecordBatch | None:
    """The rows of captured tables as they land, ``REDO_SCHEMA``; None if there are none.

    Args:
        tables: The captured tables, by their places in the batch.
    """
    wanted = batch.tables != NO_TABLE
    if not wanted.any():
        return None
    batch = batch.filter(wanted)
    at, rows = pa.array(batch.tables), batch.rows
    ready = {
        "ordinal": pa.array(batch.ordinals),
        "seg_owner": pa.array([one.table.owner for one in tables], pa.string()).take(at),
        "table_name": pa.array([one.table.name for one in tables], pa.string()).take(at),
        "rollback": pc.equal(rows.column("rollback"), 1),
    }
    columns = [
        ready[field.name] if field.name in ready else rows.column(field.name)
        for field in REDO_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REDO_SCHEMA)


def _give(
    found: npt.NDArray[np.int32],
    lost: npt.NDArray[np.bool_],
    numbers: npt.NDArray[np.int64],
    places: Mapping[int, int],
) -> None:
    """Give the rows that nobody has yet to the tables of their numbers."""
    for number in np.unique(numbers[lost]).tolist():
        if number in places:
            found[lost & (numbers == number)] = places[number]


@dataclass(frozen=True, slots=True)
class _Named:
    """The names of a batch's rows: codes and distinct values of owners and of tables."""

    owner_codes: npt.NDArray[np.int64]
    owners: list[str]
    table_codes: npt.NDArray[np.int64]
    names: list[str]

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> _Named:
        return cls(*_encoded(rows.column("seg_owner")), *_encoded(rows.column("table_name")))

    @property
    def has_none(self) -> npt.NDArray[np.bool_]:
        """Per row: does LogMiner not name its table, or by a number only?"""
        names = [*(name.startswith(_BY_NUMBER) for name in self.names), True]
        none: npt.NDArray[np.bool_] = np.array(names, dtype=np.bool_)[self.table_codes]
        return none

    def tables(self, positions: Mapping[TableId, int]) -> npt.NDArray[np.int32]:
        """Per row the position of the table that has its name, or -1."""
        known = np.full((len(self.owners) + 1, len(self.names) + 1), NO_TABLE, dtype=np.int32)
        for row, owner in enumerate(self.owners):
            for column, name in enumerate(self.names):
                known[row, column] = positions.get(TableId(owner, name), NO_TABLE)
        found: npt.NDArray[np.int32] = known[self.owner_codes, self.table_codes]
        return found

    def pairs(self, rows: npt.NDArray[np.bool_]) -> list[tuple[str, str]]:
        """The distinct names of some rows; those without a name have none."""
        codes = set(
            zip(self.owner_codes[rows].tolist(), self.table_codes[rows].tolist(), strict=True)
        )
        return sorted(
            (self.owners[owner], self.names[name])
            for owner, name in codes
            if owner < len(self.owners) and name < len(self.names)
        )

    def is_pair(self, owner: str, name: str) -> npt.NDArray[np.bool_]:
        """Per row: has it this name?"""
        same: npt.NDArray[np.bool_] = (self.owner_codes == self.owners.index(owner)) & (
            self.table_codes == self.names.index(name)
        )
        return same


def _named(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch under our names and types, XIDs in lower case."""
    own = len(MINED_SCHEMA)
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns[:own], MINED_SCHEMA, strict=True)
    ]
    at = MINED_SCHEMA.get_field_index("xid")
    columns[at] = pc.ascii_lower(columns[at].fill_null(NO_XID))
    schema = pa.schema([*MINED_SCHEMA, *list(batch.schema)[own:]])
    return pa.RecordBatch.from_arrays([*columns, *batch.columns[own:]], schema=schema)


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Whole statements in UTF-8; the STATUS of those that had other bytes says so."""
    texts = batch.column("sql_redo")
    if is_utf8(texts):
        return batch
    spoiled = spoiled_rows(texts)
    status = batch.column("status")
    flagged = pc.bit_wise_or(status.fill_null(0), pa.scalar(TEXT_REPLACED, status.type))
    columns = {
        "sql_redo": replaced(texts, spoiled),
        "status": pc.if_else(pa.array(spoiled), flagged, status),
    }
    for name, values in columns.items():
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, batch.schema.field(at), values)
    return batch


def _joined(batch: pa.RecordBatch, starts: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """One row per statement: all attributes of its first row, the texts of all its rows.

    The texts of consecutive rows lie side by side in memory, so joining them is a matter of
    offsets.
    """
    texts = batch.column("sql_redo")
    filled = texts.fill_null("")
    _, offsets, data = filled.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[filled.offset : filled.offset + len(filled) + 1]
    joined = pa.LargeStringArray.from_buffers(
        len(starts), pa.py_buffer(ends[np.append(starts, len(filled))]), data
    )
    first = pa.array(starts)
    empty = pc.and_(pc.equal(pc.binary_length(joined), 0), texts.take(first).is_null())
    joined = pc.if_else(empty, pa.scalar(None, pa.large_string()), joined)
    rows = batch.take(first)
    return rows.set_column(rows.schema.get_field_index("sql_redo"), "sql_redo", joined)


def _encoded(column: pa.Array) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Codes and distinct values; NULL has the code after the last."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return codes, values
