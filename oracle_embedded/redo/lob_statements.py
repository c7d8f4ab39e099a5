"""Which rows does LogMiner show for one change to a table with LOBs?

A value that fits into the row appears as a literal, a larger one is written through a locator, in
pieces: so one change has several rows. Their shape depends on the release
(:class:`~oracle_embedded.redo.settings.LobRows`), and with
:attr:`~oracle_embedded.redo.settings.Wart.LOB_STATEMENTS` most of them do not know the ROWID.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from oracle_embedded.api import StoredColumn
from oracle_embedded.redo import lob
from oracle_embedded.redo.settings import LobRows, Wart, XmlRows
from oracle_embedded.redo.statements import (
    DELETE,
    INSERT,
    NOTHING,
    UPDATE,
    Image,
    TableStatements,
)
from oracle_embedded.redo.store import LOB_CALL

OP_INTERNAL = 0
PLACEHOLDER_ROWID = b"A" * 18
_LOCATING = (lob.OP_SELECT_LOB_LOCATOR, lob.OP_EXTENDED_BEGIN, lob.OP_XML_BEGIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class LobRow:
    """A row of a change.

    Attributes:
        op: Operation code.
        redo: SQL_REDO.
        undo: SQL_UNDO.
        part: Which of the change's redo records; rows of one record share RS_ID.
        ssn: Tells apart the rows of one record.
        real: Is ROW_ID the row's, not the placeholder?
        closing: Is this the INTERNAL row that ends the statement's rows? Its SEQUENCE# is above 1.
        ending: Does the row end a document, and name its table nevertheless? Debezium 3.6.3 looks
            the table of such a row up without asking whether there is one, and its suite reads
            documents of real databases.
    """

    op: int
    redo: bytes | None = None
    undo: bytes | None = None
    part: int
    ssn: int = 0
    real: bool = True
    closing: bool = False
    ending: bool = False

    @property
    def is_named(self) -> bool:
        """Has it an owner and a table? Rows without a statement have neither (measured on 23ai),
        but for the end of a document where LOBs come in pieces."""
        return self.redo is not None or self.ending


class LobStatements:
    """Prints the changes of one table version that has LOBs.

    Args:
        statements: Prints its ordinary statements.
        warts: What a real LogMiner shows: with
            :attr:`~oracle_embedded.redo.settings.Wart.LOB_STATEMENTS` placeholder ROWIDs, and one
            undo row for a whole statement. Without it every row has its ROWID, and each is undone
            by one of its own.
        shape: How writing through a locator looks.
        xml: How documents are stored.
    """

    def __init__(
        self,
        statements: TableStatements,
        warts: Collection[Wart],
        *,
        shape: LobRows,
        xml: XmlRows,
    ) -> None:
        self._xml = xml
        self._statements = statements
        self._sets = statements.character_sets
        self._lobs = statements.lobs
        self._placeholders = Wart.LOB_STATEMENTS in warts
        self._unplaced = Wart.LOB_UPDATES_UNPLACED in warts
        self._in_utf16 = Wart.LOB_OFFSETS_IN_UNITS in warts
        self._shape = shape

    @property
    def is_block(self) -> bool:
        """Is each write a whole block, of which LogMiner says that it cannot be executed?"""
        return self._placeholders and self._shape is LobRows.BLOCKS

    def rows(
        self,
        op: int,
        rollback: bool,
        before: Image | None,
        after: Image | None,
        row_id: bytes,
        want_undo: bool,
    ) -> list[LobRow]:
        """The rows of one change, in the order in which the view shows them."""
        old, new = before or NOTHING, dict(after or NOTHING)
        call = new.pop(LOB_CALL, None)
        if call is not None and self._placeholders:
            return list(self._called(old, new, call))
        if rollback:
            undoing = self._undoing_statement if self._placeholders else self._undoing_rows
            return list(undoing(op, old, new, row_id))
        if op == DELETE:
            redo = self._statements.delete(old.get, new.get, row_id)
            undo = self._statements.undo(op, old, new, row_id) if want_undo else None
            return [LobRow(op=op, redo=redo, undo=undo, part=0)]
        changing = self._statement if self._placeholders else self._change
        return list(changing(op, old, new, row_id, want_undo))

    # --- as a real LogMiner shows it --------------------------------------------------------------

    def _statement(
        self, op: int, old: Image, new: Image, row_id: bytes, want_undo: bool
    ) -> Iterator[LobRow]:
        """The row without its values, the writes, and last what knows the ROWID.

        The row piece and the locators are of one redo record. An INSERT empties every LOB, NULL
        ones too; what is NULL or fits into the row follows in an UPDATE. When nothing follows, an
        INTERNAL row does.

        Source: measured on 23ai (both LOB storages), rows of whole statements; INTERNAL rows and
        RS_IDs on 26ai.
        """
        statements = self._statements
        large = self._large(new)
        if op == UPDATE and not large:
            is_placed = not self._unplaced or any(at in self._lobs for at in new)
            redo = statements.update(tuple(new), old, new, row_id)
            undo = statements.undo(op, old, new, row_id) if want_undo else None
            yield LobRow(op=op, redo=redo, undo=undo, part=0, real=is_placed)
            if not is_placed:
                yield LobRow(op=OP_INTERNAL, part=1, closing=True)
            return
        piece = self._piece(op, old, new, large, want_undo)
        if piece is not None:
            yield piece
        now = {**old, **new}
        part = 0
        for ssn, column in enumerate(large, 1):
            value = new[column.internal_id]
            assert value is not None
            replaces = op == UPDATE and old.get(column.internal_id) is not None
            for code, text in self._writes(column, value, now, replaces=replaces):
                located = code in _LOCATING
                part += not located
                yield LobRow(
                    op=code,
                    redo=text,
                    part=0 if located else part,
                    ssn=ssn if located else 0,
                    real=False,
                    ending=self._is_named_end(code),
                )
        inline = {at: new[at] for at in self._in_row(op, new)}
        if inline:
            redo = statements.update(tuple(inline), now, inline, row_id)
            yield LobRow(op=UPDATE, redo=redo, part=part + 1)
        else:
            yield LobRow(op=OP_INTERNAL, part=part + 1, closing=True)

    def _called(self, old: Image, new: Image, call: bytes) -> Iterator[LobRow]:
        """What a client wrote through a locator: the locator's row with the ROWID, then that call
        and no other.

        Source: measured on 23ai, for WRITE, WRITEAPPEND, ERASE and TRIM alike.
        """
        [(at, value)] = new.items()
        assert value is not None
        offset, length = map(int, call.split())
        column = self._lobs[at]
        where = self._statements.locator_where({**old, **new}, PLACEHOLDER_ROWID)
        place = lob.Place(column, self._statements.target, where, self._in_utf16)
        rows = lob.call_rows(place, value, offset, length, is_block=self.is_block)
        for part, (code, text) in enumerate(rows):
            yield LobRow(op=code, redo=text, part=part, real=code in _LOCATING)

    def _piece(
        self, op: int, old: Image, new: Image, large: list[StoredColumn], want_undo: bool
    ) -> LobRow | None:
        """The row piece: an INSERT without LOB values, or an UPDATE of the other columns if there
        are any.

        A LOB that was NULL is made empty before it is written.
        """
        statements = self._statements
        if op == INSERT:
            redo = statements.insert_emptied(old.get, new.get, PLACEHOLDER_ROWID)
            undo = statements.undo(op, old, new, PLACEHOLDER_ROWID) if want_undo else None
            return LobRow(op=op, redo=redo, undo=undo, part=0, real=False)
        emptied: Image = {
            c.internal_id: b""
            for c in large
            if lob.is_xml(c) or (old.get(c.internal_id) is None and not lob.is_extended(c))
        }
        changed: Image = {at: value for at, value in new.items() if at not in self._lobs} | emptied
        if not changed:
            return None
        redo = statements.update(tuple(changed), old, changed, PLACEHOLDER_ROWID)
        undo = statements.undo(op, old, changed, PLACEHOLDER_ROWID) if want_undo else None
        return LobRow(op=op, redo=redo, undo=undo, part=0, real=False)

    def _in_row(self, op: int, new: Image) -> list[int]:
        """LOB columns that are shown in the last row: those that fit, and NULL; an INSERT has
        emptied them already."""
        return [
            at
            for at, column in self._lobs.items()
            if at in new
            and not lob.is_large(column, new[at], self._sets)
            and not (op == INSERT and new[at] == b"")
        ]

    def _undoing_statement(
        self, op: int, old: Image, new: Image, row_id: bytes
    ) -> Iterator[LobRow]:
        """One row for all that a statement did to the row; a LOB that was large is shown empty.

        Source: measured on 23ai.
        """
        if op == UPDATE:
            large = {column.internal_id for column in self._large(new)}
            new = {at: b"" if at in large else value for at, value in new.items()}
        redo = self._statements.undo_row(op, old, new, row_id)
        yield LobRow(op=op, redo=redo, part=0)

    # --- tidied up --------------------------------------------------------------------------------

    def _change(
        self, op: int, old: Image, new: Image, row_id: bytes, want_undo: bool
    ) -> Iterator[LobRow]:
        """Every row with the ROWID and a redo record of its own."""
        part = 0
        for code, redo, undo in self._changed(op, old, new, row_id, want_undo):
            yield LobRow(op=code, redo=redo, undo=undo, part=part)
            part += 1
        now = {**old, **new}
        for column in self._large(new):
            value = new[column.internal_id]
            assert value is not None
            for code, text in self._writes(column, value, now, replaces=True):
                yield LobRow(op=code, redo=text, part=part, ending=self._is_named_end(code))
                part += 1

    def _is_named_end(self, code: int) -> bool:
        return code == lob.OP_XML_END and self._shape is LobRows.PIECES

    def _changed(
        self, op: int, old: Image, new: Image, row_id: bytes, want_undo: bool
    ) -> Iterator[tuple[int, bytes, bytes | None]]:
        statements = self._statements
        if op == INSERT:
            undo = statements.undo(op, old, new, row_id) if want_undo else None
            yield op, statements.insert(old.get, new.get, row_id), undo
            for at in self._small(new):
                yield UPDATE, statements.update((at,), new, {at: new[at]}, row_id), None
            return
        key = self._shown(new, written=new)
        if key:
            undo = statements.undo(op, old, {at: new[at] for at in key}, row_id)
            yield op, statements.update(key, old, new, row_id), undo if want_undo else None

    def _undoing_rows(self, op: int, old: Image, new: Image, row_id: bytes) -> Iterator[LobRow]:
        """One for each row that the change itself had, latest first; writes through a locator have
        none."""
        statements = self._statements
        part = 0
        if op == DELETE:
            for at in reversed(self._small(old)):
                redo = statements.rollback_update((at,), old, {at: b""}, row_id)
                yield LobRow(op=UPDATE, redo=redo, part=part)
                part += 1
        if op == UPDATE:
            key = self._shown(new, written=old)
            if not key:
                return
            # What the LOB held before is not in the redo.
            new = {at: b"" if at in self._lobs else new[at] for at in key}
        yield LobRow(op=op, redo=statements.undo_row(op, old, new, row_id), part=part)

    def _small(self, image: Image) -> list[int]:
        """LOB columns whose value is not NULL, not empty, and fits into the row."""
        return [
            at
            for at, column in self._lobs.items()
            if image.get(at) and not lob.is_large(column, image[at], self._sets)
        ]

    def _shown(self, new: Image, *, written: Image) -> tuple[int, ...]:
        """The columns that an UPDATE shows in SET: all but LOBs written through a locator."""
        return tuple(
            at
            for at in new
            if at not in self._lobs or not lob.is_large(self._lobs[at], written.get(at), self._sets)
        )

    # --- both -------------------------------------------------------------------------------------

    def _large(self, image: Image) -> list[StoredColumn]:
        """LOB columns whose value is written through a locator."""
        return [
            column
            for at, column in self._lobs.items()
            if lob.is_large(column, image.get(at), self._sets)
        ]

    def _writes(
        self, column: StoredColumn, value: bytes, now: Image, *, replaces: bool
    ) -> Iterator[tuple[int, bytes | None]]:
        where = self._statements.locator_where(now, PLACEHOLDER_ROWID)
        place = lob.Place(column, self._statements.target, where, self._in_utf16)
        if lob.is_xml(column):
            return lob.write_xml(place, value, self._xml, self._sets.database)
        if lob.is_extended(column):
            return lob.write_extended(place, value)
        if self.is_block:
            return lob.write_blocks(place, value, replaces=replaces)
        return lob.write_rows(place, value, replaces=replaces)
