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

**In which units.** DBMS_LOB counts UTF-16 units, of which a character outside of the basic plane
has two; whether LogMiner's offsets and lengths do is not known (the probe ``lob.offset-units``
asks). Where the two readings give different values, what a statement wrote may say which it is: it
goes on where it stopped, and is cut where it ends. What calls of DBMS_LOB wrote need not. Where
nothing says it, the value is not known.

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
    LobEnd,
    LobErase,
    LobPlace,
    LobTrim,
    LobUnclear,
    LobWrite,
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
from cdc_core.stage.missing_lobs import (
    NOTHING_RESELECTED,
    Key,
    MissingLob,
    MissingLobs,
    ReselectedValues,
    Slot,
    Transaction,
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

Data = str | bytes


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
    reselected: ReselectedValues = NOTHING_RESELECTED,
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
    stage = _Stage(ends, version_at, NOTHING_RESELECTED, missing)
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


@dataclass(frozen=True, slots=True)
class Begin:
    """Where among the calls on a LOB a statement, or a call of DBMS_LOB, begins to write it."""

    at: int
    is_call: bool


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
        reselected: ReselectedValues,
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
            if _replaced(current.calls) is not None:
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
        where = f" where {done.place.where}" if done.place.where else ""
        sql = f'update {schema.table.sql} set "{slot[1]}" = {literal}{where};'
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
        sql = self._reselected.sql_of(done.last["ordinal"])
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


def value_of_calls(
    base: Data | None, calls: Sequence[LobCall], empty: Data, begins: Sequence[Begin] = ()
) -> Data | None:
    """The LOB after the calls; None where that is not known. As :func:`written`, in the units that
    ``begins`` show.

    Raises:
        TwoReadingsError: Characters and UTF-16 units give different values, and nothing shows which
            is meant.
    """
    by_characters = written(base, calls, empty)
    texts = [base, *(call.data for call in calls if isinstance(call, LobWrite))]
    if not any(isinstance(text, str) and _is_beyond_basic(text) for text in texts):
        return by_characters
    split = [_split_call(call) for call in calls]
    by_units = _joined_pairs(written(_split_pairs(base), split, empty))
    if by_units == by_characters:
        return by_characters
    shown = {
        value
        for is_shown, value in (
            (_is_in_these_units(calls, begins), by_characters),
            (_is_in_these_units(split, begins), by_units),
        )
        if is_shown
    }
    if len(shown) != 1:
        raise TwoReadingsError("a LOB can be read in two ways", hint="See its table's reason.")
    return shown.pop()


def _is_beyond_basic(text: str) -> bool:
    return not text.isascii() and max(text) > "\uffff"


def _split_pairs(value: Data | None) -> Data | None:
    """Each character outside of the basic plane as its two UTF-16 units."""
    if not isinstance(value, str) or value.isascii():
        return value
    units = np.frombuffer(value.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    return units.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _joined_pairs(value: Data | None) -> Data | None:
    """The text of UTF-16 units; None where a half of a character is left."""
    if not isinstance(value, str):
        return value
    try:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None


def _split_call(call: LobCall) -> LobCall:
    if isinstance(call, LobWrite):
        data = _split_pairs(call.data)
        assert data is not None
        return replace(call, data=data)
    return call


def _is_in_these_units(calls: Sequence[LobCall], begins: Sequence[Begin]) -> bool:
    """Did statements write all that they wrote from the LOB's first character on without a gap, and
    cut it where that ends? Only then these are the units that offsets and lengths have. False where
    no statement did."""
    ends = [*(one.at for one in begins[1:]), len(calls)]
    found = False
    for begin, end in zip(begins, ends, strict=False):
        if begin.is_call:
            continue
        length = 0
        for call in calls[begin.at : end]:
            match call:
                case LobWrite(offset, data) if offset == length + 1:
                    length += len(data)
                case LobTrim(cut) if cut in (0, length):
                    pass
                case _:
                    return False
        found = True
    return found


def written(base: Data | None, calls: Sequence[LobCall], empty: Data) -> Data | None:
    """The LOB after the calls; None where that is not known.

    Args:
        base: The LOB before them; None where it is not known.
        calls: In their order, at least one.
        empty: A value without length, of the column's type.
    """
    if any(isinstance(call, LobUnclear) for call in calls):
        return None
    if isinstance(calls[-1], LobAppend | LobEnd):
        return _joined(calls)
    if (whole := _replaced(calls)) is not None:
        return whole
    cut = max((at for at, call in enumerate(calls) if call == LobTrim(0)), default=-1)
    if cut >= 0:
        base, calls = empty, calls[cut + 1 :]
    if not calls:
        return base
    if base is None:
        return None
    appended = _appended(base, calls)
    return _changed(base, calls) if appended is None else appended


def _replaced(calls: Sequence[LobCall]) -> Data | None:
    """What an UPDATE gives a LOB: the last calls write it from its beginning on, and cut it inside
    of that, whatever was there before. None for other calls."""
    *writes, last = calls
    if not isinstance(last, LobTrim):
        return None
    begin = len(writes)
    while begin and isinstance(call := writes[begin - 1], LobWrite):
        begin -= 1
        if call.offset == 1:
            break
    whole = _appended(None, writes[begin:])
    return whole[: last.length] if whole is not None and last.length <= len(whole) else None


def _joined(calls: Sequence[LobCall]) -> Data | None:
    """A value that was written as a whole; None where its end is missing, or it has other calls."""
    parts: list[Any] = [call.data for call in calls if isinstance(call, LobAppend)]
    if not parts or len(parts) != len(calls) - 1 or not isinstance(calls[-1], LobEnd):
        return None
    full = [part for part in parts if part] or parts[:1]
    if len({type(part) for part in full}) > 1:
        return None
    joined: Data = type(full[0])().join(full)
    return joined


def _appended(base: Data | None, calls: Sequence[LobCall]) -> Data | None:
    """The LOB after writes that go on where it ends; None for other calls."""
    length = 0 if base is None else len(base)
    parts: list[Any] = [] if base is None else [base]
    for call in calls:
        if not isinstance(call, LobWrite) or call.offset != length + 1:
            return None
        parts.append(call.data)
        length += len(call.data)
    if not parts:
        return None
    joined: Data = type(parts[0])().join(parts)
    return joined


def _changed(base: Data, calls: Sequence[LobCall]) -> Data:
    """The LOB after any calls. What is written behind its end is reached by blanks, or zeros."""
    parts: Any = list(base) if isinstance(base, str) else bytearray(base)
    blank: Any = " " if isinstance(base, str) else 0
    for call in calls:
        match call:
            case LobWrite(offset, data):
                parts.extend([blank] * (offset - 1 - len(parts)))
                parts[offset - 1 : offset - 1 + len(data)] = data
            case LobErase(offset, amount):
                end = min(offset - 1 + amount, len(parts))
                parts[offset - 1 : end] = [blank] * (end - offset + 1)
            case LobTrim(length):
                del parts[length:]
    return "".join(parts) if isinstance(base, str) else bytes(parts)
