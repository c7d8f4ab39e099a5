"""Which statements does LogMiner show for one row change?

One :class:`TableStatements` serves one definition of a table at one level of supplemental logging, for one session's
style and literals. It compiles a function per shape of statement and keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from oracle_embedded.api import OraType, RowOp, StoredColumn, TableVersion, Value
from oracle_embedded.redo import lob
from oracle_embedded.redo.levels import Level
from oracle_embedded.redo.literals import LiteralCache
from oracle_embedded.redo.sink import LOB_TYPES
from oracle_embedded.redo.templates import Expression, Part, Render, Style, Template

Image = dict[int, Value]
Statement = tuple[int, bytes, bytes | None]
"""Operation code, SQL_REDO, SQL_UNDO."""

_NEVER_IN_WHERE = LOB_TYPES | {OraType.LONG, OraType.LONG_RAW, OraType.UROWID, OraType.BOOLEAN}
_NOTHING: Image = {}

INSERT, DELETE, UPDATE = int(RowOp.INSERT), int(RowOp.DELETE), int(RowOp.UPDATE)


class TableStatements:
    """Prints the changes of one table version."""

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
        self._template = Template(table, style, literals, raw)
        self._columns = {column.internal_id: column for column in table.columns}
        self._lobs = {c.internal_id: c for c in table.columns if c.type in LOB_TYPES}
        self._row = [c for c in table.columns if c.internal_id not in self._lobs]
        self._matched = [c for c in table.columns if c.type not in _NEVER_IN_WHERE]
        keys = set(table.key_columns)
        self._logged = {
            Level.ALL: self._matched,
            Level.KEY: [c for c in self._matched if c.name in keys],
        }.get(level, [])
        self._updates: dict[tuple[int, ...], Render] = {}
        self._update_undos: dict[tuple[int, ...], Render] = {}
        self._rollback_updates: dict[tuple[int, ...], Render] = {}

    def statements(
        self,
        op: int,
        rollback: bool,
        before: Image | None,
        after: Image | None,
        row_id: bytes,
        want_undo: bool,
    ) -> Sequence[Statement]:
        """The rows of one change, in the order of the redo."""
        old = before or _NOTHING
        new = after or _NOTHING
        if self._lobs:
            if rollback:
                return list(self._undoing(op, old, new, row_id))
            return list(self._with_lobs(op, old, new, row_id, want_undo))
        redo = self.redo(op, rollback, before, after, row_id)
        if rollback or not want_undo:
            return ((op, redo, None),)
        return ((op, redo, self._undo(op, old, new, row_id)),)

    @property
    def has_lobs(self) -> bool:
        """May one change have several rows?"""
        return bool(self._lobs)

    def redo(
        self, op: int, rollback: int, before: Image | None, after: Image | None, row_id: bytes
    ) -> bytes:
        """SQL_REDO of a change to a table without LOBs."""
        old = before or _NOTHING
        new = after or _NOTHING
        if rollback:
            return self._undo_row(op, old, new, row_id)
        if op == INSERT:
            return self._insert(old.get, new.get, row_id)
        if op == DELETE:
            return self._delete(old.get, new.get, row_id)
        return self._update(tuple(new), old, new, row_id)

    def _undo(self, op: int, old: Image, new: Image, row_id: bytes) -> bytes:
        """SQL_UNDO."""
        if op == INSERT:
            return self._delete_new(old.get, new.get, row_id)
        if op == DELETE:
            return self._insert_old(old.get, new.get, row_id)
        return self._update_undo(tuple(new), old, new, row_id)

    # --- whole rows --------------------------------------------------------------------------------------------------

    @cached_property
    def _insert(self) -> Render:
        return self._insert_of("new")

    @cached_property
    def _insert_old(self) -> Render:
        return self._insert_of("old")

    def _insert_of(self, source: str) -> Render:
        template = _LobTemplate(self._template) if self._lobs else self._template
        return template.insert(self._table.columns, source)

    @cached_property
    def _delete(self) -> Render:
        return self._delete_of("old")

    @cached_property
    def _delete_new(self) -> Render:
        return self._delete_of("new")

    def _delete_of(self, source: str) -> Render:
        where = [self._template.predicate(column, source) for column in self._matched]
        return self._template.delete([*where, *self._template.rowid_predicate()])

    @cached_property
    def _delete_rowid(self) -> Render:
        return self._template.delete(self._template.rowid_predicate())

    # --- updates -----------------------------------------------------------------------------------------------------

    def _update(self, key: tuple[int, ...], old: Image, new: Image, row_id: bytes) -> bytes:
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
        restored = [c for c in changed if c.internal_id not in self._lobs] or changed
        return self._templated(restored).update(
            restored, "old", [*where, *self._template.rowid_predicate()]
        )

    def _templated(self, columns: Sequence[StoredColumn]) -> Template:
        lobs = any(column.internal_id in self._lobs for column in columns)
        return _LobTemplate(self._template, literal=True) if lobs else self._template

    def _in_order(self, key: tuple[int, ...]) -> list[StoredColumn]:
        wanted = set(key)
        return [c for c in self._table.columns if c.internal_id in wanted]

    def _shown(self, changed: Sequence[StoredColumn]) -> list[StoredColumn]:
        """Columns of an UPDATE's where: the changed ones, and what supplemental logging adds."""
        ids = {c.internal_id for c in (*changed, *self._logged)}
        return [c for c in self._matched if c.internal_id in ids]

    # --- rows that undo ----------------------------------------------------------------------------------------------

    def _undo_row(self, op: int, old: Image, new: Image, row_id: bytes) -> bytes:
        if op == INSERT:
            return self._insert(old.get, new.get, row_id)
        if op == DELETE:
            return self._delete_rowid(old.get, new.get, row_id)
        return self._rollback_update(tuple(new), old, new, row_id)

    def _rollback_update(
        self, key: tuple[int, ...], old: Image, new: Image, row_id: bytes
    ) -> bytes:
        render = self._rollback_updates.get(key)
        if render is None:
            changed = self._in_order(key)
            render = self._rollback_updates[key] = self._templated(changed).update(
                changed, "new", self._template.rowid_predicate()
            )
        return render(old.get, new.get, row_id)

    def _undoing(self, op: int, old: Image, new: Image, row_id: bytes) -> Iterator[Statement]:
        """Undo rows of a table with LOBs: one for each row that the change itself had, latest first.

        Writes through a locator have none that LogMiner shows.
        """
        if op == DELETE:
            for column in reversed(self._inline(old)):
                emptied: Image = {column.internal_id: b""}
                yield UPDATE, self._rollback_update(tuple(emptied), old, emptied, row_id), None
        if op == UPDATE:
            key = self._in_row(new, written=old)
            if key:
                # What the LOB held before is not in the redo.
                kept = {at: b"" if at in self._lobs else new[at] for at in key}
                yield op, self._rollback_update(key, old, kept, row_id), None
            return
        yield op, self._undo_row(op, old, new, row_id), None

    # --- rows with LOBs ----------------------------------------------------------------------------------------------

    def _with_lobs(
        self, op: int, old: Image, new: Image, row_id: bytes, want_undo: bool
    ) -> Iterator[Statement]:
        if op == DELETE:
            undo = self._insert_old(old.get, new.get, row_id) if want_undo else None
            yield op, self._delete(old.get, new.get, row_id), undo
            return
        if op == INSERT:
            undo = self._delete_new(old.get, new.get, row_id) if want_undo else None
            yield op, self._insert(old.get, new.get, row_id), undo
            for column in self._inline(new):
                set_lob = {column.internal_id: new[column.internal_id]}
                yield UPDATE, self._update((column.internal_id,), new, set_lob, row_id), None
        else:
            key = self._in_row(new, written=new)
            if key:
                undo = self._update_undo(key, old, new, row_id) if want_undo else None
                yield op, self._update(key, old, new, row_id), undo
        now = {**old, **new}
        where = self._locator_where(now.get, now.get, row_id)
        for at, column in self._lobs.items():
            value = new.get(at)
            if value is not None and lob.is_large(column, value):
                for code, text in lob.write_rows(column, value, self._template.target, where):
                    yield code, text, None

    def _inline(self, image: Image) -> list[StoredColumn]:
        """LOB columns whose small value an INSERT shows in an UPDATE of its own."""
        return [
            column
            for at, column in self._lobs.items()
            if image.get(at) and not lob.is_large(column, image[at])
        ]

    def _in_row(self, new: Image, *, written: Image) -> tuple[int, ...]:
        """The columns that an UPDATE shows in SET: all but LOBs written through a locator."""
        return tuple(
            at
            for at in new
            if at not in self._lobs or not lob.is_large(self._lobs[at], written.get(at))
        )

    @cached_property
    def _locator_where(self) -> Callable[..., bytes]:
        where = [self._template.predicate(c, "new") for c in self._logged]
        parts = self._template.where([*where, *self._template.rowid_predicate()])
        return self._template.compile(parts) if parts else lambda *_images: b""


class _LobTemplate(Template):
    """A template that prints LOB columns: emptied in an INSERT, as literals in an UPDATE."""

    def __init__(self, template: Template, *, literal: bool = False) -> None:
        super().__init__(
            template.table, template.style, template.literals, template.raw, template.names
        )
        self._literal_lobs = literal

    def value(self, column: StoredColumn, source: str) -> Part:
        if column.type not in LOB_TYPES:
            return super().value(column, source)
        at = column.internal_id
        if self._literal_lobs:
            self.names[f"lob{at}"] = lambda value: lob.lob_literal(column, value)
            return Expression(f"lob{at}({source}({at}))")
        self.names[f"empty{at}"] = lob.empty_literal(column)
        return Expression(f"b'NULL' if {source}({at}) is None else empty{at}")
