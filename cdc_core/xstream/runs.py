"""Which LCRs of a block are changed rows that can be read by columns?

Rows that follow each other in a transaction are one record. All others are read one by one: those
with chunks, flags or a form of their own, and whole blocks that Arrow's reader of JSON does not
take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from cdc_core.change_stream.form import DecodedLines, RunEvent, TableShape
from cdc_core.decode.batch import Operations
from cdc_core.decode.kernels.scan import DELETE, INSERT, UPDATE
from cdc_core.decode.records import Lines
from cdc_core.xstream.columns import Numbers
from cdc_core.xstream.lcrs import DECODER, FIRST_VERSION_BYTES, Lcr

_VALUE = pa.struct(
    [("name", pa.string()), ("type", pa.int64()), ("value", pa.string()), ("flags", pa.int64()), ("charset", pa.int64())]
)  # fmt: skip
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("lcr", "position", "command", "database", "owner", "object", "transaction", "time")),
        *((name, pa.int64()) for name in ("scn", "commit_scn", "flags")),
        ("attributes", pa.struct([("ROW_ID", pa.string()), ("THREAD#", pa.string())])),
        *((name, pa.list_(_VALUE)) for name in ("old", "new")),
        ("chunks", pa.list_(pa.struct([("name", pa.string())]))),
    ]
)  # fmt: skip
_OPERATIONS = {"INSERT": INSERT, "UPDATE": UPDATE, "DELETE": DELETE}
_FACTS = ("ordinal", "scn", "xid", "operation", "row_id", "time", "thread")
_TIME_LENGTHS = (19, 26)
"""Of a time without a zone: whole seconds, or microseconds."""
_ROW_ID_LENGTH = 18
_COMMIT_DIGITS = 12
"""Of a position of the first version: where it has the commit's SCN."""

_RUN_MIN = 8
"""Fewer rows are read faster one by one."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowLcrs:
    """Changed rows that follow each other in a transaction, as one record: their columns, and the
    line of the first."""

    rows: pa.Table
    positions: npt.NDArray[np.bytes_]
    commit_scn: int
    line: bytes

    @property
    def proves(self) -> int | None:
        """See :class:`Record`."""
        return self.commit_scn - 1

    @property
    def first(self) -> Lcr:
        """The first one."""
        found = DECODER.decode(self.line)
        assert isinstance(found, Lcr)
        return found

    @property
    def last_position(self) -> bytes:
        """The last one's position."""
        return bytes.fromhex(self.positions[-1].decode())

    def behind(self, position: bytes) -> RowLcrs:
        """Those whose position is higher."""
        at = int(np.searchsorted(self.positions, position.hex().encode(), side="right"))
        return RowLcrs(self.rows.slice(at), self.positions[at:], self.commit_scn, self.line)

    def runs(self, first: int, xid: str) -> Iterator[LcrRun]:
        """The changes of each table, numbered from an ordinal on."""
        rows = self.rows.append_column(
            "ordinal", pa.array(np.arange(first, first + len(self.rows)))
        )
        rows = rows.append_column("xid", pa.repeat(xid, len(rows)))
        names = [pc.unique(rows[one]) for one in ("owner", "object")]
        if max(map(len, names)) == 1:
            yield LcrRun((names[0][0].as_py(), names[1][0].as_py()), rows, self.commit_scn)
            return
        owners, objects = (rows[one].to_pylist() for one in ("owner", "object"))
        tables = list(zip(owners, objects, strict=True))
        for table in dict.fromkeys(tables):
            own = pa.array([one == table for one in tables])
            yield LcrRun(table, rows.filter(own), self.commit_scn)


@dataclass(frozen=True, slots=True)
class HeldLcrs:
    """Changed rows of one table, as :class:`~cdc_core.change_stream.form.HeldRows`."""

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def size(self) -> int:
        """See :class:`HeldRows`."""
        return int(self.rows.nbytes)

    @property
    def operations(self) -> Operations:
        """See :class:`HeldRows`."""
        return self._numbers("operation").astype(np.int8)

    def commit_scn(self, at: int) -> int:
        """See :class:`HeldRows`."""
        return int(self.rows["commit_scn"][at].as_py())

    def facts(self) -> list[pa.Array]:
        """See :class:`HeldRows`."""
        return [self.rows[name].combine_chunks() for name in _FACTS]

    def first(self, count: int) -> HeldLcrs:
        """See :class:`HeldRows`."""
        return HeldLcrs(self.rows.slice(0, count))

    @staticmethod
    def joined(parts: Sequence[HeldLcrs]) -> HeldLcrs:
        """See :class:`HeldRows`."""
        return HeldLcrs(pa.concat_tables([one.rows for one in parts]))

    def values(self, side: str) -> pa.ListArray:
        """The lists of columns, ``old`` or ``new``."""
        return self.rows[side].combine_chunks()

    def _numbers(self, name: str) -> Numbers:
        found: Numbers = self.rows[name].to_numpy()
        return found


@dataclass(frozen=True, slots=True)
class LcrRun(RunEvent):
    """Changes of one table in one transaction."""

    rows: pa.Table
    commit: int

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def ordinal(self) -> int:
        """See :class:`RunEvent`."""
        return int(self.rows["ordinal"][0].as_py())

    @property
    def commit_scn(self) -> int:
        """See :class:`Event`."""
        return self.commit

    @property
    def xid(self) -> str:
        """See :class:`Event`."""
        return str(self.rows["xid"][0].as_py())

    def held(self) -> HeldLcrs:
        """See :meth:`RunEvent.held`."""
        return HeldLcrs(self.rows)

    def shape(self) -> TableShape:
        """See :class:`Event`: which columns a table has, an LCR does not say."""
        assert isinstance(self.table, tuple)
        return TableShape(*self.table)


def decoded_lcrs(data: Lines, decode: Callable[[bytes], Any]) -> DecodedLines:
    """The LCRs of whole lines; changed rows that follow each other in a transaction are one
    record."""
    try:
        block = _Block(data)
    except pa.ArrowException:
        return DecodedLines.one_by_one(data, decode)
    records: list[Any] = []
    offsets: list[int] = []
    for start, end in block.parts():
        lines = [bytes(data[block.starts[at] : block.ends[at]]) for at in range(start, end)]
        if block.is_row[start] and end - start >= _RUN_MIN:
            records.append(block.rows(start, end, lines[0]))
            offsets.append(block.starts[start])
        else:
            records += map(decode, lines)
            offsets += block.starts[start:end]
    return DecodedLines(records, offsets)


class _Block:
    """Lines as columns.

    Raises:
        pa.ArrowException: Arrow does not take them.
    """

    def __init__(self, data: Lines) -> None:
        breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        self.ends = breaks.tolist()
        self.starts = [0, *self.ends[:-1]]
        read = json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        parse = json.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
        self._table = json.read_json(pa.BufferReader(data), read, parse).combine_chunks()
        if self._table.num_rows != len(self.ends) or data[-1:] != b"\n":
            raise pa.ArrowInvalid("a line is empty")
        self._positions, self._has_digits = self._fixed_positions()
        commits = self._table["commit_scn"].combine_chunks()
        self._commits: Numbers = (
            pc.coalesce(commits, self._from_positions()).fill_null(-1).to_numpy()
        )
        self.is_row = self._rows_that_are_plain()
        self._plain = self._of_plain_rows()

    def parts(self) -> Iterator[tuple[int, int]]:
        """Where records begin and end: runs of rows, and single LCRs."""
        if not self.ends:
            return
        columns = [pc.dictionary_encode(self._text(name)).indices.fill_null(-1).to_numpy() for name in ("transaction", "database")]  # fmt: skip
        goes_on = self.is_row[1:] & self.is_row[:-1] & (self._positions[1:] > self._positions[:-1])
        for one in (*columns, self._commits):
            goes_on &= one[1:] == one[:-1]
        starts = [0, *(np.flatnonzero(~goes_on) + 1).tolist()]
        yield from zip(starts, [*starts[1:], len(self.ends)], strict=True)

    def rows(self, start: int, end: int, line: bytes) -> RowLcrs:
        """A run of rows."""
        count = end - start
        commit = int(self._commits[start])
        return RowLcrs(self._plain.slice(start, count), self._positions[start:end], commit, line)

    def _text(self, name: str) -> pa.Array:
        return self._table[name].combine_chunks()

    def _fixed_positions(self) -> tuple[npt.NDArray[np.bytes_], Flags]:
        """Positions, and which of them are small hexadecimal digits, as many as the longest
        has."""
        texts = self._text("position").fill_null("")
        lengths = pc.utf8_length(texts).to_numpy()
        size = int(lengths.max(initial=1))
        found = np.array([one.encode() for one in texts.to_pylist()], f"S{size}")
        digits = found.view(np.uint8).reshape(len(found), size)
        is_digit = ((digits >= 48) & (digits <= 57)) | ((digits >= 97) & (digits <= 102))
        return found, (lengths == size) & is_digit.all(axis=1)

    def _from_positions(self) -> pa.Array:
        """SCNs of commits, as positions of the first version have them."""
        count, size = len(self._positions), self._positions.dtype.itemsize
        if size != 2 * FIRST_VERSION_BYTES:
            return pa.nulls(count, pa.int64())
        digits = self._positions.view(np.uint8).reshape(count, size).astype(np.int64)
        nibbles = np.where(digits < 58, digits - 48, digits - 87)
        scns = nibbles[:, :_COMMIT_DIGITS] @ (16 ** np.arange(_COMMIT_DIGITS, dtype=np.int64)[::-1])
        is_first = (nibbles[:, -2] == 0) & (nibbles[:, -1] == 1)
        return pa.array(scns, mask=~is_first)

    @cached_property
    def _attributes(self) -> dict[str, pa.Array]:
        found = self._table["attributes"].combine_chunks()
        return dict(zip(("row_id", "thread"), found.flatten(), strict=True))

    def _rows_that_are_plain(self) -> Flags:
        lengths = pc.utf8_length(self._text("time"))
        wanted = (
            pc.equal(self._text("lcr"), "row"),
            pc.is_in(self._text("command"), pa.array(list(_OPERATIONS))),
            pc.equal(pc.fill_null(self._text("flags"), 0), 0),
            pc.equal(pc.fill_null(pc.list_value_length(self._text("chunks")), 0), 0),
            pc.equal(pc.utf8_length(self._attributes["row_id"]), _ROW_ID_LENGTH),
            pc.is_in(lengths, pa.array(_TIME_LENGTHS, lengths.type)),
            pc.is_valid(self._text("owner")),
            pc.is_valid(self._text("object")),
            pc.is_valid(self._text("transaction")),
        )
        found: Flags = (self._commits >= 0) & self._has_digits
        for one in wanted:
            found &= pc.fill_null(one, False).to_numpy(zero_copy_only=False)
        return found

    def _of_plain_rows(self) -> pa.Table:
        """What is asked of rows; nonsense of other LCRs."""
        commands = self._text("command")
        codes = pc.index_in(commands, pa.array(list(_OPERATIONS))).fill_null(0).to_numpy()
        is_row = pa.array(self.is_row)
        seconds = pc.utf8_slice_codeunits(self._text("time"), 0, _TIME_LENGTHS[0])
        threads = pc.if_else(is_row, self._attributes["thread"], None).cast(pa.int64()).fill_null(1)
        columns = {
            "owner": self._text("owner"),
            "object": self._text("object"),
            "scn": pc.coalesce(self._text("scn"), pa.array(self._commits)),
            "commit_scn": pa.array(self._commits),
            "operation": pa.array(np.array(list(_OPERATIONS.values()))[codes].astype(np.int64)),
            "row_id": self._attributes["row_id"],
            "time": pc.if_else(is_row, seconds, None).cast(pa.timestamp("s")),
            "thread": pc.if_else(pc.equal(threads, 0), 1, threads),
            "old": self._text("old"),
            "new": self._text("new"),
        }
        return pa.table(columns)
