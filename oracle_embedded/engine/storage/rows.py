"""How is one row inserted, updated or deleted: history, undo, constraints, redo?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from oracle_embedded.api import OracleError, RowOp, Value
from oracle_embedded.engine.datatypes.scns import SCN_MAX
from oracle_embedded.engine.storage.blocks import row_bytes
from oracle_embedded.engine.storage.catalog import Constraint, TableDef
from oracle_embedded.engine.storage.deferred import unique_violated
from oracle_embedded.engine.storage.keys import matching, text_columns
from oracle_embedded.engine.storage.transactions import Busy, Transaction, Transactions

Row = tuple[Value, ...]
Image = dict[int, Value]
CheckRow = Callable[[TableDef, Image], None]


@dataclass(slots=True)
class Shape:
    """Prepared texts and facts of one version of a table."""

    texts: frozenset[int]
    insert: str
    names: dict[int, str]
    required: tuple[int, ...]
    updates: dict[tuple[int, ...], str] = field(default_factory=dict)


@dataclass
class RowWriter:
    """Changes rows for one statement of one transaction, under the store's lock.

    ``finish`` runs the checks that Oracle makes at the end of a statement.
    """

    transactions: Transactions
    transaction: Transaction
    check_row: CheckRow
    pending: list[Callable[[], object]] = field(default_factory=list)
    shapes: dict[tuple[int, int], Shape] = field(default_factory=dict)

    def _shape(self, table: TableDef) -> Shape:
        key = (table.object_id, table.object_version)
        shape = self.shapes.get(key)
        if shape is None:
            places = ", ".join("?" * (len(table.ids) + (table.partitioning is not None)))
            shape = Shape(
                text_columns(table),
                f"INSERT INTO t{table.object_id} (rid, vf, {table.row_storage}) VALUES (?, ?, {places})",
                {column.internal_id: column.name for column in table.columns},
                tuple(column.internal_id for column in table.columns if not column.nullable),
            )
            self.shapes[key] = shape
        return shape

    # --- the three changes ------------------------------------------------------------------------

    def insert(self, table: TableDef, values: Image) -> int:
        """Insert a row of fitted values; gives its address.

        A row whose key exists is written as well, as Oracle does before its index refuses it: the
        redo shows it and its undoing.
        """
        shape = self._shape(table)
        self._check_values(table, shape, values, shape.required, "insert NULL into ({})", 1400)
        violation = self._violation(table, values)
        for key in table.foreign_keys:
            self._check_parent_later(table, key, values)
        rid = self._put(table, shape, values)
        if violation is not None:
            raise violation
        for columns, constraint in table.deferrable_keys.items():
            self._check_key_later(table, constraint.name, columns, values, rid)
        self._check_expressions_later(table, rid)
        return rid

    def _put(self, table: TableDef, shape: Shape, values: Image) -> int:
        """Write a row; gives its address.

        Raises:
            OracleError: ORA-14400 if no partition takes it.
        """
        rows = self.transactions
        segment = table.object_id
        place: tuple[int, ...] = ()
        if table.partitioning is not None:
            leaf = table.leaf_of(values)
            if leaf is None:
                raise OracleError(14400, "inserted partition key does not map to any partition")
            segment, place = leaf.object_id, (leaf.data_object_id,)
        rows.note_change(self.transaction, table)
        row = [values[internal_id] for internal_id in table.ids]
        rid = rows.store.place(segment, row_bytes(row), table.cluster)
        stored = (rid, self.transaction.mark, *_bound(shape, table.ids, row), *place)
        rows.store.begin().execute(shape.insert, stored)
        rows.log(self.transaction, table.object_id, rid, RowOp.INSERT, 0, None)
        rows.report(self.transaction, table, rid, RowOp.INSERT, None, values)
        return rid

    def remove(self, table: TableDef, rid: int, old: Image) -> None:
        """Take a row out of its segment: a delete in the redo, without what deleting it means for
        other tables."""
        rows = self.transactions
        rows.note_change(self.transaction, table)
        hid = self._keep_past(table, rid)
        rows.store.begin().execute(f"DELETE FROM t{table.object_id} WHERE rid = ?", (rid,))
        rows.log(self.transaction, table.object_id, rid, RowOp.DELETE, hid, None)
        rows.report(self.transaction, table, rid, RowOp.DELETE, old, None)

    def put_again(self, table: TableDef, old: Image, new: Image) -> int:
        """Write a row that was taken out, with some new values; gives its new address."""
        shape = self._shape(table)
        merged = {**old, **new}
        required = [item for item in shape.required if item in new]
        self._check_values(table, shape, merged, required, "update ({}) to NULL", 1407)
        rid = self._put(table, shape, merged)
        self._check_keys_later(table, rid, old, merged, tuple(new))
        return rid

    def _violation(self, table: TableDef, values: Image) -> OracleError | None:
        try:
            for name, columns in table.unique_keys:
                if columns not in table.deferrable_keys:
                    self._check_unique(table, name, columns, values, None)
        except OracleError as error:
            return error
        return None

    def update(self, table: TableDef, rid: int, old: Image, new: Image) -> int:
        """Give some columns of a row new, fitted values; gives its address, which is a new one in
        another partition.

        Raises:
            OracleError: ORA-14402 if the row would have to go to another partition and may not.
        """
        shape = self._shape(table)
        merged = {**old, **new}
        if table.partitioning is not None and table.leaf_of(merged) is not table.leaf_of(old):
            if not table.has_row_movement:
                raise OracleError(
                    14402, "updating partition key column would cause a partition change"
                )
            self.remove(table, rid, old)
            return self.put_again(table, old, new)
        required = [item for item in shape.required if item in new]
        self._check_values(table, shape, merged, required, "update ({}) to NULL", 1407)
        rows = self.transactions
        rows.note_change(self.transaction, table)
        hid = self._keep_past(table, rid)
        columns = tuple(new)
        statement = shape.updates.get(columns)
        if statement is None:
            assigned = ", ".join(f"c{internal_id} = ?" for internal_id in columns)
            statement = f"UPDATE t{table.object_id} SET vf = ?, {assigned} WHERE rid = ?"
            shape.updates[columns] = statement
        values = _bound(shape, columns, list(new.values()))
        rows.store.begin().execute(statement, (self.transaction.mark, *values, rid))
        rows.log(
            self.transaction, table.object_id, rid, RowOp.UPDATE, hid, ",".join(map(str, columns))
        )
        rows.report(self.transaction, table, rid, RowOp.UPDATE, old, new)
        self._check_keys_later(table, rid, old, merged, columns)
        return rid

    def _check_keys_later(
        self, table: TableDef, rid: int, old: Image, merged: Image, columns: Sequence[int]
    ) -> None:
        for name, key in table.unique_keys:
            if any(item in columns and old[item] != merged[item] for item in key):
                self._check_key_later(table, name, key, merged, rid)
                self._check_children_later(table, key, old, deleting=False)
        self._check_expressions_later(table, rid)
        for foreign in table.foreign_keys:
            if any(item in columns for item in foreign.columns):
                self._check_parent_later(table, foreign, merged)

    def _check_key_later(
        self, table: TableDef, name: str, columns: tuple[int, ...], values: Image, rid: int
    ) -> None:
        """At the end of the statement; a key that the transaction defers is waited for there, and
        checked when that ends."""
        deferral = self.transaction.deferral
        constraint = table.deferrable_keys.get(columns)
        if constraint is not None and deferral.covers(table, constraint):
            key = tuple(values[internal_id] for internal_id in columns)
            deferral.unchecked.add((table.object_id, columns, key))
            self.pending.append(partial(self._is_taken, table, columns, values, rid))
        else:
            self.pending.append(partial(self._check_unique, table, name, columns, values, rid))

    def delete(self, table: TableDef, rid: int, old: Image) -> None:
        """Delete a row, and its children where a foreign key says so."""
        self.remove(table, rid, old)
        for _, key in table.unique_keys:
            self._check_children_later(table, key, old, deleting=True)

    def _keep_past(self, table: TableDef, rid: int) -> int:
        oid = table.object_id
        cursor = self.transactions.store.begin().execute(
            f"INSERT INTO h{oid} (rid, vf, vt, {table.row_storage}) SELECT rid, vf, ?, {table.row_storage} FROM t{oid} WHERE rid = ?",
            (self.transaction.mark, rid),
        )
        return cursor.lastrowid or 0

    def finish(self) -> None:
        """Run the checks of the end of a statement."""
        while self.pending:
            pending, self.pending = self.pending, []
            for check in pending:
                check()

    # --- constraints ------------------------------------------------------------------------------

    def _check_values(
        self,
        table: TableDef,
        shape: Shape,
        values: Image,
        required: Iterable[int],
        what: str,
        code: int,
    ) -> None:
        for internal_id in required:
            if values[internal_id] is None:
                name = f'"{table.owner}"."{table.name}"."{shape.names[internal_id]}"'
                raise OracleError(code, "cannot " + what.format(name))
        if table.checks:
            self.check_row(table, values)

    def _matching(
        self, table: TableDef, columns: Sequence[int], values: Sequence[Value]
    ) -> tuple[str, list[object]]:
        return matching(columns, values, self._shape(table).texts)

    def _check_expressions_later(self, table: TableDef, rid: int) -> None:
        """Hold a row against unique indexes on expressions, at the end of the statement. Each row
        is looked at: no index helps."""
        for name, values in table.unique_values:
            self.pending.append(partial(self._check_expressions, table, name, values, rid))

    def _check_expressions(
        self, table: TableDef, name: str, values: tuple[str, ...], rid: int
    ) -> None:
        sqlite = self.transactions.store.writer.sqlite
        rows = f"t{table.object_id}"
        own = sqlite.execute(
            f"SELECT {', '.join(values)} FROM {rows} WHERE rid = ?", (rid,)
        ).fetchone()
        if own is None or all(value is None for value in own):
            return
        of_own = f"(SELECT {{}} FROM {rows} WHERE rid = ?)"
        test = " AND ".join(f"{value} IS {of_own.format(value)}" for value in values)
        params: list[object] = [rid] * len(values)
        found = sqlite.execute(
            f"SELECT vf FROM {rows} WHERE rid <> ? AND {test}", (rid, *params)
        ).fetchall()
        for (version,) in found:
            if version > SCN_MAX and version != self.transaction.mark:
                raise Busy(version - SCN_MAX)
        if found:
            raise unique_violated(table, name)
        self._check_past(table, test, params)

    def _check_unique(
        self, table: TableDef, name: str, columns: tuple[int, ...], values: Image, own: int | None
    ) -> None:
        if self._is_taken(table, columns, values, own):
            raise unique_violated(table, name)

    def _is_taken(
        self, table: TableDef, columns: tuple[int, ...], values: Image, own: int | None
    ) -> bool:
        """Has another row than the own one this key?

        Raises:
            Busy: An open transaction of another session says so, or may say so.
        """
        key = [values[internal_id] for internal_id in columns]
        if all(value is None for value in key):
            return False
        test, params = self._matching(table, columns, key)
        sqlite = self.transactions.store.writer.sqlite
        oid = table.object_id
        found = sqlite.execute(f"SELECT rid, vf FROM t{oid} WHERE {test}", params).fetchall()
        others = [version for rid, version in found if rid != own]
        for version in others:
            if version > SCN_MAX and version != self.transaction.mark:
                raise Busy(version - SCN_MAX)
        if not others:
            self._check_past(table, test, params)
        return bool(others)

    def _check_past(self, table: TableDef, test: str, params: list[object]) -> None:
        """Wait for whoever has removed a matching row without committing yet."""
        oid = table.object_id
        if not self.transactions.store.activity[oid].writers - {self.transaction.number}:
            return
        row = self.transactions.store.writer.sqlite.execute(
            f"SELECT vt FROM h{oid} WHERE vt > ? AND vt <> ? AND vf <= ? AND {test}",
            (SCN_MAX, self.transaction.mark, SCN_MAX, *params),
        ).fetchone()
        if row is not None:
            raise Busy(row[0] - SCN_MAX)

    def _check_parent_later(self, table: TableDef, key: Constraint, values: Image) -> None:
        child = [values[internal_id] for internal_id in key.columns]
        if any(value is None for value in child):
            return
        if self.transaction.deferral.covers(table, key):
            self.transaction.deferral.orphans.add((table.object_id, key.name, tuple(child)))
            return
        self.pending.append(partial(self._check_parent, table, key, child))

    def _check_parent(self, table: TableDef, key: Constraint, child: list[Value]) -> None:
        parent = self.transactions.store.catalog.by_id(key.referenced)
        assert isinstance(parent, TableDef)
        target = next(item for item in parent.constraints if item.name == key.referenced_constraint)
        test, params = self._matching(parent, target.columns, child)
        rows = self.transactions.store.writer.sqlite.execute(
            f"SELECT vf FROM t{parent.object_id} WHERE {test}", params
        ).fetchall()
        for (version,) in rows:
            if version <= SCN_MAX or version == self.transaction.mark:
                return
            raise Busy(version - SCN_MAX)
        self._check_past(parent, test, params)
        raise OracleError(
            2291, f"integrity constraint ({table.owner}.{key.name}) violated - parent key not found"
        )

    def _check_children_later(
        self, table: TableDef, columns: tuple[int, ...], old: Image, *, deleting: bool
    ) -> None:
        constraint = {
            item.name for item in table.constraints if item.kind in "PU" and item.columns == columns
        }
        if not constraint:
            return
        key = [old[internal_id] for internal_id in columns]
        for child in self.transactions.store.catalog.tables():
            for foreign in child.foreign_keys:
                if (
                    foreign.referenced == table.object_id
                    and foreign.referenced_constraint in constraint
                ):
                    self.pending.append(
                        partial(self._check_children, table, columns, child, foreign, key, deleting)
                    )

    def _check_children(
        self,
        table: TableDef,
        columns: tuple[int, ...],
        child: TableDef,
        foreign: Constraint,
        key: list[Value],
        deleting: bool,
    ) -> None:
        sqlite = self.transactions.store.writer.sqlite
        still, still_params = self._matching(table, columns, key)
        if sqlite.execute(
            f"SELECT 1 FROM t{table.object_id} WHERE {still}", still_params
        ).fetchone():
            return
        test, params = self._matching(child, foreign.columns, key)
        found = sqlite.execute(
            f"SELECT rid, vf, {child.storage} FROM t{child.object_id} WHERE {test}", params
        ).fetchall()
        for rid, version, *values in found:
            if version > SCN_MAX and version != self.transaction.mark:
                raise Busy(version - SCN_MAX)
            image = dict(zip(child.ids, values, strict=True))
            if deleting and foreign.delete_rule == "CASCADE":
                self.transactions.claim(self.transaction, child, [rid])
                self.delete(child, rid, image)
            elif deleting and foreign.delete_rule == "SET NULL":
                self.transactions.claim(self.transaction, child, [rid])
                self.update(child, rid, image, dict.fromkeys(foreign.columns))
            elif self.transaction.deferral.covers(child, foreign):
                self.transaction.deferral.orphans.add((child.object_id, foreign.name, tuple(key)))
            else:
                raise OracleError(
                    2292,
                    f"integrity constraint ({child.owner}.{foreign.name}) violated - child record found",
                )


def _bound(shape: Shape, columns: Sequence[int], values: Sequence[Value]) -> list[object]:
    """Values as SQLite parameters: text as ``str``, the rest as it is."""
    texts = shape.texts
    return [
        value.decode() if value is not None and internal_id in texts else value
        for internal_id, value in zip(columns, values, strict=True)
    ]
