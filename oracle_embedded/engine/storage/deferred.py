"""Which keys and foreign keys does a transaction leave unchecked until its end, and is one of them
violated then?

Oracle keeps such a key by an index that is not unique: rows of the transaction may share it for a
while. Of rows that other transactions have written and not committed, a statement waits for the end
here, as it does for keys that are checked at once.

A foreign key that is left for the end lets a child be written before its parent, and a parent go
before its child.

Source: SQL Language Reference 19c, constraint ("constraint_state") and SET CONSTRAINT[S]; Database
Concepts 19c, "Deferrable Constraints".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.datatypes.scns import SCN_MAX
from oracle_embedded.engine.storage.catalog import Constraint, TableDef
from oracle_embedded.engine.storage.keys import matching, text_columns
from oracle_embedded.engine.storage.store import Store

ConstraintId = tuple[int, str]
"""A constraint: its table's object id, its name."""


@dataclass(slots=True)
class Deferral:
    """What SET CONSTRAINTS said in a transaction, and the keys that wait for its end: object id,
    columns, values."""

    for_all: bool | None = None
    chosen: dict[ConstraintId, bool] = field(default_factory=dict)
    unchecked: set[tuple[int, tuple[int, ...], tuple[Value, ...]]] = field(default_factory=set)
    orphans: set[tuple[int, str, tuple[Value, ...]]] = field(default_factory=set)
    """Object id of a child's table, name of its foreign key, values: rows with these may have no
    parent."""

    @property
    def is_set(self) -> bool:
        """Did SET CONSTRAINTS say anything?"""
        return self.for_all is not None or bool(self.chosen)

    def set_mode(self, constraints: Collection[ConstraintId], *, deferred: bool) -> None:
        """Defer constraints, or check them at once from now on; none stand for ALL."""
        if not constraints:
            self.for_all = deferred
            self.chosen.clear()
        self.chosen.update(dict.fromkeys(constraints, deferred))

    def covers(self, table: TableDef, constraint: Constraint) -> bool:
        """Is this constraint left for the end?"""
        by_name = self.chosen.get((table.object_id, constraint.name), self.for_all)
        return constraint.deferred if by_name is None else by_name


def violation(
    store: Store, deferral: Deferral, number: int, constraints: Collection[ConstraintId] = ()
) -> OracleError | None:
    """ORA-00001 for the first key that a row of the transaction (its number) shares, ORA-02291 for
    the first child without a parent; of some constraints only, if any are given."""
    for object_id, columns, values in sorted(deferral.unchecked, key=repr):
        table = store.catalog.by_id(object_id)
        if not isinstance(table, TableDef):
            continue
        constraint = table.deferrable_keys.get(columns)
        if constraint is None or (constraints and (object_id, constraint.name) not in constraints):
            continue
        test, params = matching(columns, values, text_columns(table))
        versions = [
            version
            for (version,) in store.writer.sqlite.execute(
                f"SELECT vf FROM t{object_id} WHERE {test}", params
            )
        ]
        if len(versions) > 1 and SCN_MAX + number in versions:
            return unique_violated(table, constraint.name)
    return _orphan(store, deferral, number, constraints)


def _orphan(
    store: Store, deferral: Deferral, number: int, constraints: Collection[ConstraintId]
) -> OracleError | None:
    """ORA-02291 for the first child without a parent."""
    for object_id, name, values in sorted(deferral.orphans, key=repr):
        table = store.catalog.by_id(object_id)
        if not isinstance(table, TableDef) or (
            constraints and (object_id, name) not in constraints
        ):
            continue
        key = next((item for item in table.foreign_keys if item.name == name), None)
        parent = None if key is None else store.catalog.by_id(key.referenced)
        if key is None or not isinstance(parent, TableDef):
            continue
        target = next(one for one in parent.constraints if one.name == key.referenced_constraint)
        if _is_there(store, table, key.columns, values, number) and not _is_there(
            store, parent, target.columns, values, number
        ):
            return OracleError(
                2291, f"integrity constraint ({table.owner}.{name}) violated - parent key not found"
            )
    return None


def _is_there(
    store: Store, table: TableDef, columns: tuple[int, ...], values: tuple[Value, ...], number: int
) -> bool:
    """Has a row that the transaction sees these values?"""
    test, params = matching(columns, values, text_columns(table))
    row = store.writer.sqlite.execute(
        f"SELECT 1 FROM t{table.object_id} WHERE (vf <= ? OR vf = ?) AND {test}",
        (SCN_MAX, SCN_MAX + number, *params),
    ).fetchone()
    return row is not None


def unique_violated(table: TableDef, name: str) -> OracleError:
    """ORA-00001 for a key or an index."""
    return OracleError(1, f"unique constraint ({table.owner}.{name}) violated")
