"""Which keys does a transaction leave unchecked until its end, and does one of them stand in two rows then?

Oracle keeps such a key by an index that is not unique: rows of the transaction may share it for a while. Of rows that other
transactions have written and not committed, a statement waits for the end here, as it does for keys that are checked at once.

Source: SQL Language Reference 19c, constraint ("constraint_state") and SET CONSTRAINT[S]; Database Concepts 19c, "Deferrable
Constraints".
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
    """What SET CONSTRAINTS said in a transaction, and the keys that wait for its end: object id, columns, values."""

    for_all: bool | None = None
    chosen: dict[ConstraintId, bool] = field(default_factory=dict)
    unchecked: set[tuple[int, tuple[int, ...], tuple[Value, ...]]] = field(default_factory=set)

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
    """ORA-00001 for the first key that a row of the transaction (its number) shares; of some constraints only, if any are given."""
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
    return None


def unique_violated(table: TableDef, name: str) -> OracleError:
    """ORA-00001 for a key or an index."""
    return OracleError(1, f"unique constraint ({table.owner}.{name}) violated")
