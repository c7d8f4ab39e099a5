"""How do the rows that write a LOB piece by piece become one change of its row?

LogMiner shows a LOB that does not fit into its row as rows of their own, behind the INSERT or
UPDATE of the same statement. Such rows of a transaction that follow each other and mean one LOB
become one UPDATE of that column, which names its row by the key, or by its ROWID where that
identifies it, and carries nothing else; its position is the last one's. The statement's other rows
stay as they are.

**Which value it is.** The rows tell what was written, not what was there before. So the value is
known only where

* the LOB was made empty, or written as a whole, earlier in the transaction: what is written changes
  that value; or
* what is written begins with the first character and has no gap, and a trim ends the LOB there; or
* it is written as a whole, from a row that begins it to one that ends it, as extended strings and
  documents are.

Anything else is a part of a value of which the redo has no other part, as is a document of XMLDIFF
in an XMLTYPE: Oracle logs the changed portion alone where it updates a document in place. With
``capture.lobs: reselect`` landing has what the change made of the LOB
(:mod:`cdc_core.stage.missing_lobs`); otherwise the row is marked, and whoever decodes refuses it. A
part is never taken for the whole. The same holds for a row of another form, where it is clear which
LOB it is about.

Memory: one LOB at a time for each open transaction, and the last :data:`KNOWN_BYTES_MAX` of known
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.character_sets import stored_text
from cdc_core.decode.literals import LiteralRefusedError
from cdc_core.decode.lob import (
    BEGINS,
    ENDS,
    LobAppend,
    LobCall,
    LobPlace,
    LobUnclear,
    TwoReadingsError,
    is_difference,
    lob_literal,
    read_lob_row,
)
from cdc_core.decode.plain import decode_statement
from cdc_core.decode.plan import TablePlan, plan_table
from cdc_core.errors import CdcError
from cdc_core.model.operations import Operation
from cdc_core.model.texts import TEXT_REPLACED
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage.committed import Transaction
from cdc_core.stage.lob_calls import Begin, Data, replaced, value_of_calls
from cdc_core.stage.missing_lobs import (
    Key,
    MissingLob,
    MissingLobs,
    Slot,
    SqlOf,
    no_sql,
)
from cdc_core.stage.statements import known_row_ids

PIECES = (
    Operation.SELECT_LOB_LOCATOR,
    Operation.LOB_WRITE,
    Operation.LOB_TRIM,
    Operation.LOB_ERASE_DOCUMENTED,
    Operation.LOB_ERASE,
    Operation.EXTENDED_BEGIN,
    Operation.EXTENDED_WRITE,
    Operation.EXTENDED_END,
    Operation.XML_DOC_BEGIN,
    Operation.XML_DOC_WRITE,
    Operation.XML_DOC_END,
)
"""Rows that write a part of a LOB, or of a text or document that is stored as one."""

INCOMPLETE = "lob-incomplete"
NOT_UNDERSTOOD = "lob-not-understood"
TWO_READINGS = "lob-two-readings"

KNOWN_BYTES_MAX = 64 * 2**20
KNOWN_VALUES_MAX = 100_000
"""How much is remembered of what a transaction wrote, in case that it writes more: the values that
were used last."""

_STATEMENTS = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)


def lob_transactions(batches: Iterable[pa.Table]) -> set[str]:
    """The XIDs of redo rows (columns ``xid``, ``operation_code``) that write parts of LOBs."""
    wanted = pa.array(list(PIECES), pa.int32())
    found: set[str] = set()
    for batch in batches:
        own = batch.filter(pc.is_in(batch["operation_code"], value_set=wanted))
        found.update(pc.unique(own["xid"]).to_pylist())
    return found


def without_beginnings(rows: pa.Table) -> pa.Table:
    """The redo rows but for those that only say that a LOB is written: locators of releases whose
    writes name their LOB, and what is left of the rows of a column that is left out. The end of a
    value needs no text."""
    pieces = pa.array([code for code in PIECES if code not in ENDS], pa.int32())
    is_piece = pc.is_in(rows["operation_code"], value_set=pieces)
    says_nothing = pc.and_(is_piece, pc.is_null(rows["sql_redo"]))
    return rows.filter(pc.invert(says_nothing)) if pc.any(says_nothing).as_py() else rows


def with_whole_lobs(
    pieces: Iterable[pa.Table],
    ends: Mapping[Transaction, int],
    version_at: Callable[[int], TableSchema],
    reselected: SqlOf = no_sql,
) -> Iterator[pa.Table]:
    """The redo rows of one table, those that write a LOB replaced by updates.

    Args:
        pieces: Surviving rows (columns of ``committed.CommittedRows`` and ``problem``), each
            transaction's in order.
        ends: Ordinal of the COMMIT of each transaction that has rows which write LOBs; other
            transactions pass unread.
        version_at: The table as it was at a row's SCN.
        reselected: What landing has in place of changes that the redo carries in part.
    """
    stage = _Stage(ends, version_at, reselected)
    xids = pa.array({xid for xid, _ in ends}, pa.string())
    schema: pa.Schema | None = None
    for piece in pieces:
        schema = piece.schema
        concerned = np.flatnonzero(pc.is_in(piece["xid"], value_set=xids).to_numpy())
        if len(concerned):
            piece = stage.take(piece, concerned.tolist())
        if piece.num_rows:
            yield piece
    if schema is not None and (left := stage.finish()):
        yield pa.Table.from_pylist(left, schema)


def missing_lobs(
    pieces: Iterable[pa.Table],
    ends: Mapping[Transaction, int],
    version_at: Callable[[int], TableSchema],
) -> Iterator[list[MissingLob]]:
    """The changes of one table of which :func:`with_whole_lobs` would not know the LOB: those that
    say what it is at the end of their transaction, and those that a later change of it follows.
    Arguments as there; of some transactions at once, when they have ended.
    """
    missing = MissingLobs()
    stage = _Stage(ends, version_at, no_sql, missing)
    xids = pa.array({xid for xid, _ in ends}, pa.string())
    for piece in pieces:
        concerned = np.flatnonzero(pc.is_in(piece["xid"], value_set=xids).to_numpy())
        if len(concerned):
            stage.take(piece, concerned.tolist())
            if found := missing.take():
                yield found
    stage.finish()
    if found := missing.take():
        yield found


@dataclass(slots=True)
class _Known:
    """LOB values that a transaction has made so far, the last used at the end."""

    values: dict[Slot, Data] = field(default_factory=dict)
    size: int = 0

    def put(self, slot: Slot, value: Data) -> None:
        self.pop(slot)
        self.values[slot] = value
        self.size += len(value)
        while self.size > KNOWN_BYTES_MAX or len(self.values) > KNOWN_VALUES_MAX:
            self.pop(next(iter(self.values)))

    def pop(self, slot: Slot) -> Data | None:
        value = self.values.pop(slot, None)
        self.size -= len(value or "")
        return value

    def follow(
        self, old: Key | None, new: Key | None, after: Mapping[str, Any], lobs: Sequence[str]
    ) -> None:
        """What an INSERT, UPDATE or DELETE means for the known values of ``lobs``: the row had the
        key ``old``, and has ``new``."""
        for name in lobs:
            held = None if old is None else self.pop((old, name))
            value = after.get(name, held)
            if new is not None and value is not None:
                self.put((new, name), value)


IS_CALL = "is_call"
"""The column of redo rows that says of a locator's row whether a call of DBMS_LOB begins with it,
not a statement's writes."""


def with_calls(rows: pa.Table) -> pa.Table:
    """The redo rows with :data:`IS_CALL`: a locator's row has the ROWID where a call begins
    (measured on 23ai)."""
    is_locator = pc.equal(rows["operation_code"], int(Operation.SELECT_LOB_LOCATOR))
    is_known = pc.is_valid(known_row_ids(whole(rows["row_id"])))
    return rows.append_column(IS_CALL, pc.and_(is_locator, is_known))


@dataclass(slots=True)
class _Open:
    """A transaction's LOB that is being written: where, the calls so far, the facts of the last
    row, and the first one that is not understood."""

    place: LobPlace
    calls: list[LobCall] = field(default_factory=list)
    begins: list[Begin] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    unclear: dict[str, Any] | None = None

    @property
    def awaits_end(self) -> bool:
        """Is it a value that is written as a whole, and has no end yet?"""
        return bool(self.calls) and isinstance(self.calls[-1], LobAppend | LobUnclear)


class _Stage:
    def __init__(
        self,
        ends: Mapping[Transaction, int],
        version_at: Callable[[int], TableSchema],
        reselected: SqlOf,
        missing: MissingLobs | None = None,
    ) -> None:
        self._reselected = reselected
        self._missing = MissingLobs(limit=0) if missing is None else missing
        self._ends = ends
        self._version_at = version_at
        self._open: dict[Transaction, _Open] = {}
        self._known: dict[Transaction, _Known] = {}
        self._made: list[dict[str, Any]] = []
        self._begun: dict[Transaction, bool] = {}
        self._plans: dict[int, TablePlan] = {}
        self._spoiled: set[Transaction] = set()

    def _definition(self, scn: int) -> tuple[TableSchema, TablePlan]:
        schema = self._version_at(scn)
        plan = self._plans.get(schema.scn_from)
        if plan is None:
            plan = self._plans[schema.scn_from] = plan_table(schema.as_in_rows())
        return schema, plan

    def take(self, piece: pa.Table, concerned: Sequence[int]) -> pa.Table:
        """The piece with what became whole in it, in order."""
        self._close_before(piece["ordinal"][concerned[0]].as_py())
        kept = np.ones(piece.num_rows, dtype=np.bool_)
        rows = piece.take(pa.array(concerned)).to_pylist()
        for at, row in zip(concerned, rows, strict=True):
            transaction = row["xid"], row["commit_scn"]
            if transaction not in self._ends:
                continue
            if (row["status"] or 0) & TEXT_REPLACED:
                self._spoiled.add(transaction)
            if row["operation_code"] in PIECES and row["problem"] is None:
                kept[at] = False
                self._write(row, transaction)
            else:
                self._close(transaction)
                self._note(row, transaction)
        made, self._made = self._made, []
        piece = piece.filter(pa.array(kept))
        if not made:
            return piece
        whole = pa.Table.from_pylist(made, piece.schema)
        return pa.concat_tables([piece, whole]).sort_by("ordinal")

    def finish(self) -> list[dict[str, Any]]:
        """What is whole at the end of the last piece."""
        for transaction in self._known | self._open:
            self._close(transaction)
            self._missing.end(transaction)
        return self._made

    def _close_before(self, ordinal: int) -> None:
        """Forget the transactions that ended before a row."""
        for transaction in [one for one in self._known | self._open if self._ends[one] < ordinal]:
            self._close(transaction)
            self._known.pop(transaction, None)
            self._begun.pop(transaction, None)
            self._spoiled.discard(transaction)
            self._missing.end(transaction)

    def _note(self, row: dict[str, Any], transaction: Transaction) -> None:
        """Remember what a statement makes of LOBs. One that is not understood is refused where all
        are decoded."""
        if row["problem"] is not None:
            self._missing.doubt(transaction)
        if row["operation_code"] not in _STATEMENTS:
            self._missing.doubt(transaction)
            return
        schema, plan = self._definition(row["scn"])
        try:
            change = decode_statement(row["sql_redo"], plan, row=0)
        except CdcError:
            self._missing.doubt(transaction)
            return
        known = self._known.setdefault(transaction, _Known())
        old, new = (_key(image, row, schema) for image in (change.before, change.after))
        lobs = [column.name for column in schema.columns if column.is_lob]
        known.follow(old, new, change.after or {}, lobs)
        self._missing.follow(transaction, old, new, change.before or {}, change.after or {})

    def _write(self, row: dict[str, Any], transaction: Transaction) -> None:
        current = self._open.get(transaction)
        if row["operation_code"] == Operation.SELECT_LOB_LOCATOR and IS_CALL in row:
            self._begun[transaction] = bool(row[IS_CALL])
        is_end = row["operation_code"] in ENDS and current is not None and current.awaits_end
        if not row["sql_redo"] and not is_end:
            return  # a locator's row on 23ai, where each write names its LOB, or one about a column that is left out
        schema, plan = self._definition(row["scn"])
        before = current.place if current else None
        try:
            place, call = read_lob_row(
                row["sql_redo"] or "", row["operation_code"], plan, schema.as_in_rows().key, before
            )
        except CdcError:
            self._close(transaction)
            self._missing.doubt(transaction)
            self._made.append({**row, "problem": NOT_UNDERSTOOD})
            return
        if schema.is_by_row_id:
            place = replace(place, key=(row["row_id"],))
        begins = row["operation_code"] in BEGINS
        if before is None or begins or (place.column, place.key) != (before.column, before.key):
            self._close(transaction)
            current = self._open[transaction] = _Open(place)
        if call is not None and current is not None:
            is_call = self._begun.pop(transaction, None)
            if is_call is not None:
                current.begins.append(Begin(len(current.calls), is_call=is_call))
            current.calls.append(call)
            current.last = {**row, "sql_redo": None}
            if isinstance(call, LobUnclear):
                current.unclear = current.unclear or row
            if replaced(current.calls) is not None:
                self._close(transaction)
                self._open[transaction] = _Open(place)

    def _close(self, transaction: Transaction) -> None:
        """What was written last is the LOB's value, as far as that is known."""
        done = self._open.pop(transaction, None)
        if done is None or not done.calls:
            return
        known = self._known.setdefault(transaction, _Known())
        slot = done.place.key, done.place.column
        schema, plan = self._definition(done.last["scn"])
        empty: Data = b"" if schema.column(slot[1]).data_type == "BLOB" else ""
        try:
            value = value_of_calls(known.pop(slot), done.calls, empty, done.begins)
        except TwoReadingsError:
            self._made += self._unknown(done, schema, transaction, TWO_READINGS)
            return
        if value is None or (
            schema.column(slot[1]).data_type == "XMLTYPE" and is_difference(value)
        ):
            self._made += self._unknown(done, schema, transaction)
            return
        self._missing.settle(transaction, slot)
        known.put(slot, value)
        try:
            literal = _literal(value, schema.column(slot[1]), plan)
        except LiteralRefusedError:
            self._made.append({**done.last, "problem": NOT_UNDERSTOOD})
            return
        sql = MissingLob(done.place, schema, done.last).sql_with(literal)
        self._made.append({**done.last, **self._update(sql, transaction)})

    def _unknown(
        self,
        done: _Open,
        schema: TableSchema,
        transaction: Transaction,
        problem: str = INCOMPLETE,
    ) -> list[dict[str, Any]]:
        """A change that the redo carries in part: as landing has it, or marked; nothing where a
        later change has the value."""
        self._missing.put(transaction, MissingLob(done.place, schema, done.last))
        sql = self._reselected(done.last["ordinal"])
        if sql is None and done.unclear is not None:
            is_ambiguous = LobUnclear(is_ambiguous=True) in done.calls
            return [{**done.unclear, "problem": TWO_READINGS if is_ambiguous else NOT_UNDERSTOOD}]
        if sql is None:
            return [{**done.last, "problem": problem}]
        return [{**done.last, **self._update(sql, transaction)}] if sql else []

    def _update(self, sql: str, transaction: Transaction) -> dict[str, Any]:
        """What a row becomes that stands for several: a value may go back to any of the
        transaction's earlier ones."""
        status = TEXT_REPLACED if transaction in self._spoiled else 0
        return {"operation_code": int(Operation.UPDATE), "status": status, "sql_redo": sql}


def _key(
    image: Mapping[str, Any] | None, row: Mapping[str, Any], schema: TableSchema
) -> Key | None:
    """What names the row of an image of a change; None where there is no such image."""
    if image is None:
        return None
    return (row["row_id"],) if schema.is_by_row_id else tuple(map(image.get, schema.key))


def _literal(value: Data, column: Column, plan: TablePlan) -> str:
    """The literal of a whole value. A document may be in bytes, and has no empty one but NULL."""
    if column.data_type != "XMLTYPE":
        return lob_literal(value)
    if isinstance(value, bytes):
        [charset] = [one.charset for one in plan.columns if one.name == column.name]
        value = stored_text(value, charset)
    return lob_literal(value) if value else "NULL"
