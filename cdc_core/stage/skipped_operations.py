"""Which changes does the configuration not want among a table's events?

They are marked in the change log, with the reason, and stay in it: what the mirror is made of, and
made of again, is all changes. So no transaction is cut, mirrors go on being images of Oracle, and a
mark that is not wanted any more harms nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.model.patterns import name_fits
from cdc_core.runtime.arrow import whole
from cdc_core.stage.changes import Flags, naming
from cdc_core.stage.difference import are_same

USER, CLIENT, OPERATION, UNCHANGED = "user", "client", "operation", "unchanged"
"""Reasons, the first that holds being the one that is told."""


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Which names are wanted: those of ``include`` alone if it has any, never those of ``exclude``.
    A name that is not known always is. Both may hold patterns."""

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def unwanted(self, names: pa.Array) -> Flags:
        """Which names are not wanted."""
        known, patterns = pc.is_valid(names), self.include or self.exclude
        there = pc.unique(names.drop_null()).to_pylist()
        fitting = [one for one in there if any(name_fits(pattern, one) for pattern in patterns)]
        listed = pc.is_in(names, value_set=pa.array(fitting, pa.string()))
        if self.include:
            listed = pc.invert(listed)
        found: Flags = pc.and_(known, listed).to_numpy(zero_copy_only=False)
        return found


@dataclass(frozen=True, slots=True)
class SkipRules:
    """What is not wanted: transactions of some users and clients, operations (``c``, ``u``, ``d``),
    updates that change nothing.

    A change of key is an update.
    """

    operations: frozenset[str] = frozenset()
    unchanged: bool = False
    users: NameFilter = NameFilter()
    clients: NameFilter = NameFilter()

    def reasons(self, changes: pa.Table, clients: pa.Array) -> pa.Array:
        """Per change why it is skipped; NULL where it is not.

        Args:
            changes: Columns ``_cdc_op, _cdc_username, _cdc_absent, _cdc_before_absent, before,
                after``.
            clients: The CLIENT_IDENTIFIER of each change's session.
        """
        rows = changes.num_rows
        found = np.full(rows, None, dtype=object)
        if self.unchanged:
            found[_change_nothing(changes)] = UNCHANGED
        if self.operations:
            skipped = pc.is_in(changes["_cdc_op"], value_set=pa.array(sorted(self.operations)))
            found[skipped.to_numpy()] = OPERATION
        for names, kept, reason in (
            (clients, self.clients, CLIENT),
            (whole(changes["_cdc_username"]), self.users, USER),
        ):
            if kept != NameFilter():
                found[kept.unwanted(names.cast(pa.string()))] = reason
        return pa.array(found, pa.string())


NOTHING_SKIPPED = SkipRules()


def _change_nothing(changes: pa.Table) -> Flags:
    """Updates after which every captured column is what it was before. A column that ``after`` does
    not carry did not change; one that ``before`` does not carry may have."""
    same: Flags = pc.equal(changes["_cdc_op"], "u").to_numpy().copy()
    places = np.flatnonzero(same)
    if len(places) == 0:
        return same
    updates = changes.take(pa.array(places))
    before, after = (whole(updates[image]) for image in ("before", "after"))
    equal = np.ones(len(places), dtype=np.bool_)
    for field in after.type:
        untouched = naming(whole(updates["_cdc_absent"]), field.name)
        unknown = naming(whole(updates["_cdc_before_absent"]), field.name)
        values = (pc.struct_field(image, field.name) for image in (before, after))
        equal &= untouched | (~unknown & _equal(*values))
    same[places] = equal
    return same


def _equal(old: pa.Array, new: pa.Array) -> Flags:
    if not pa.types.is_nested(old.type):
        return are_same(old, new)
    pairs = zip(old.to_pylist(), new.to_pylist(), strict=True)
    return np.array([one == other for one, other in pairs], dtype=np.bool_)
