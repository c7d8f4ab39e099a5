"""Which statements does LogMiner show for one row change?

One :class:`TableStatements` serves one definition of a table at one level of supplemental logging,
for one session's style and literals. It compiles a function per shape of statement and keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from oracle_embedded.api import OraType, RowOp, StoredColumn, TableVersion, Value
from oracle_embedded.redo import lob
from oracle_embedded.redo.levels import Level
from oracle_embedded.redo.literals import LiteralCache
from oracle_embedded.redo.templates import (
    ROWID_PREDICATE,
    Expression,
    Part,
    Render,
    Style,
    Template,
)

Image = dict[int, Value]
_NEVER_IN_WHERE = frozenset(
    {OraType.LONG, OraType.LONG_RAW, OraType.UROWID, OraType.BOOLEAN, OraType.JSON, OraType.VECTOR}
)
NOTHING: Image = {}

INSERT, DELETE, UPDATE = int(RowOp.INSERT), int(RowOp.DELETE), int(RowOp.UPDATE)


class TableStatements:
    """Prints the changes of one table version. ``lobs`` are its LOB columns by id."""

    def __init__(
        self,
        table: TableVersion,
        level: Level,
        style: Style,
        literals: LiteralCache,
        *,
        raw: bool = False,
    ) -> None:
        self._table = table
        self._level = level
        self.character_sets = literals.character_sets
        self._template = Template(table, style, literals, raw)
        self.lobs = {c.internal_id: c for c in table.columns if lob.is_lob(c)}
        self._matched = [
            c for c in table.columns if c.type not in _NEVER_IN_WHERE and not lob.is_lob(c)
        ]
        keys = set(table.key_columns)
        self._logged = {
            Level.ALL: self._matched,
            Level.KEY: [c for c in self._matched if c.name in keys],
        }.get(level, [])
        self._updates: dict[tuple[int, ...], Render] = {}
        self._update_undos: dict[tuple[int, ...], Render] = {}
        self._rollback_updates: dict[tuple[int, ...], Render] = {}

    def statement(
        self, op: int, before: Image | None, after: Image | None, row_id: bytes
    ) -> tuple[bytes, bytes]:
        """SQL_REDO and SQL_UNDO of a change to a table without LOBs, which undoes nothing
        itself."""
        old = before or NOTHING
        new = after or NOTHING
        return self.redo(op, 0, before, after, row_id), self.undo(op, old, new, row_id)

    def redo(
        self, op: int, rollback: int, before: Image | None, after: Image | None, row_id: bytes
    ) -> bytes:
        """SQL_REDO of a change to a table without LOBs."""
        old = before or NOTHING
        new = after or NOTHING
        if rollback:
            return self.undo_row(op, old, new, row_id)
        if op == INSERT:
            return self.insert(old.get, new.get, row_id)
        if op == DELETE:
            return self.delete(old.get, new.get, row_id)
        return self.update(tuple(new), old, new, row_id)

    def undo(self, op: int, old: Image, new: Image, row_id: bytes) -> bytes:
        """SQL_UNDO."""
        if op == INSERT:
            return self._delete_new(old.get, new.get, row_id)
        if op == DELETE:
            return self._insert_old(old.get, new.get, row_id)
        return self._update_undo(tuple(new), old, new, row_id)

    # --- whole rows -------------------------------------------------------------------------------

    @cached_property
    def insert(self) -> Render:
        """INSERT of the new row; a LOB that is not NULL is empty."""
        return self._insert_of("new")

    @cached_property
    def insert_emptied(self) -> Render:
        """INSERT of the new row, all LOBs empty, NULL or not."""
        return _LobTemplate(self._template, nulls=False).insert(self._table.columns, "new")

    @cached_property
    def _insert_old(self) -> Render:
        return self._insert_of("old")

    def _insert_of(self, source: str) -> Render:
        template = _LobTemplate(self._template) if self.lobs else self._template
        return template.insert(self._table.columns, source)

    @cached_property
    def delete(self) -> Render:
        """DELETE of the old row."""
        return self._delete_of("old")

    @cached_property
    def _delete_new(self) -> Render:
        return self._delete_of("new")

    def _delete_of(self, source: str) -> Render:
        where = [self._template.predicate(column, source) for column in self._matched]
        return self._template.delete([*where, *self._template.rowid_predicate()])

    @cached_property
    def _delete_rowid(self) -> Render:
        """By ROWID, with NO_ROWID_IN_STMT as well (measured on 23ai)."""
        return self._template.delete([ROWID_PREDICATE])

    # --- updates ----------------------------------------------------------------------------------

    def update(self, key: tuple[int, ...], old: Image, new: Image, row_id: bytes) -> bytes:
        """UPDATE that sets the columns ``key``; the old row is in WHERE."""
        render = self._updates.get(key)
        if render is None:
            render = self._updates[key] = self._compile_update(key)
        return render(old.get, new.get, row_id)

    def _update_undo(self, key: tuple[int, ...], old: Image, new: Image, row_id: bytes) -> bytes:
        render = self._update_undos.get(key)
        if render is None:
            render = self._update_undos[key] = self._compile_update_undo(key)
        return render(old.get, {**old, **new}.get, row_id)

    def _compile_update(self, key: tuple[int, ...]) -> Render:
        changed = self._in_order(key)
        where = [self._template.predicate(c, "old") for c in self._shown(changed)]
        return self._templated(changed).update(
            changed, "new", [*where, *self._template.rowid_predicate()]
        )

    def _compile_update_undo(self, key: tuple[int, ...]) -> Render:
        changed = self._in_order(key)
        where = [self._template.predicate(c, "new") for c in self._shown(changed)]
        # Old LOB values are not in the redo: the undo can restore only the others.
        restored = [c for c in changed if c.internal_id not in self.lobs] or changed
        return self._templated(restored).update(
            restored, "old", [*where, *self._template.rowid_predicate()]
        )

    def _templated(self, columns: Sequence[StoredColumn]) -> Template:
        lobs = any(column.internal_id in self.lobs for column in columns)
        return _LobTemplate(self._template, literal=True) if lobs else self._template

    def _in_order(self, key: tuple[int, ...]) -> list[StoredColumn]:
        wanted = set(key)
        return [c for c in self._table.columns if c.internal_id in wanted]

    def _shown(self, changed: Sequence[StoredColumn]) -> list[StoredColumn]:
        """Columns of an UPDATE's where: the changed ones, and what supplemental logging adds."""
        ids = {c.internal_id for c in (*changed, *self._logged)}
        return [c for c in self._matched if c.internal_id in ids]

    # --- rows that undo ---------------------------------------------------------------------------

    def undo_row(self, op: int, old: Image, new: Image, row_id: bytes) -> bytes:
        """SQL_REDO of a row that undoes another."""
        if op == INSERT:
            return self.insert(old.get, new.get, row_id)
        if op == DELETE:
            return self._delete_rowid(old.get, new.get, row_id)
        return self.rollback_update(tuple(new), old, new, row_id)

    def rollback_update(self, key: tuple[int, ...], old: Image, new: Image, row_id: bytes) -> bytes:
        """UPDATE that undoes another: the columns that were set, and no old row."""
        render = self._rollback_updates.get(key)
        if render is None:
            changed = self._in_order(key)
            render = self._rollback_updates[key] = self._templated(changed).update(
                changed, "new", self._template.rowid_predicate()
            )
        return render(old.get, new.get, row_id)

    # --- LOBs -------------------------------------------------------------------------------------

    @property
    def target(self) -> bytes:
        """``"OWNER"."TABLE"``."""
        return self._template.target

    def locator_where(self, now: Image, row_id: bytes) -> bytes:
        """`` where …`` that finds a row as it is ``now``, to write its LOBs."""
        return self._locator_where(now.get, now.get, row_id)

    @cached_property
    def _locator_where(self) -> Callable[..., bytes]:
        where = [self._template.predicate(c, "new") for c in self._logged]
        parts = self._template.where([*where, *self._template.rowid_predicate()])
        return self._template.compile(parts) if parts else lambda *_images: b""


class _LobTemplate(Template):
    """A template that prints LOB columns: as literals in an UPDATE, else empty; ``nulls`` lets NULL
    be NULL there."""

    def __init__(self, template: Template, *, literal: bool = False, nulls: bool = True) -> None:
        super().__init__(
            template.table, template.style, template.literals, template.raw, template.names
        )
        self._literal_lobs = literal
        self._nulls = nulls

    def value(self, column: StoredColumn, source: str) -> Part:
        if not lob.is_lob(column) or (self._literal_lobs and lob.is_extended(column)):
            return super().value(column, source)
        at = column.internal_id
        if self._literal_lobs:
            self.names[f"lob{at}"] = lambda value: lob.lob_literal(column, value)
            return Expression(f"lob{at}({source}({at}))")
        self.names[f"empty{at}"] = lob.empty_literal(column)
        if not self._nulls and not lob.is_xml(column):
            return Expression(f"empty{at}")
        return Expression(f"b'NULL' if {source}({at}) is None else empty{at}")
