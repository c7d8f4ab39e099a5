"""Which records can a query's conditions on V$LOGMNR_CONTENTS need at all?"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from oracle_embedded import values
from oracle_embedded.api import RowOp, Value
from oracle_embedded.redo.contents_row import OP_UNSUPPORTED, OPERATIONS, ObjectFacts
from oracle_embedded.redo.sink import OP_ROLLBACK, OP_SAVEPOINT_UNDONE

SCN_MAX = 2**63 - 1

# Records that a row of an operation can come from: LOBs are shown in rows of their own, and the end
# of a rollback to a savepoint as a ROLLBACK.
_STORED_FOR = {
    0: {0, 1, 3},
    3: {1, 2, 3},
    9: {1, 3},
    10: {1, 3},
    11: {1, 3},
    OP_UNSUPPORTED: {int(op) for op in RowOp},
    OP_ROLLBACK: {OP_ROLLBACK, OP_SAVEPOINT_UNDONE},
}
_COMPARISONS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(slots=True)
class Filter:
    """A superset of the records that a query needs; ``ops`` None means all of them."""

    scn_low: int = 0
    scn_high: int = SCN_MAX
    commit_low: int = 0
    commit_high: int = SCN_MAX
    ops: set[int] | None = None
    names: list[tuple[str, bytes]] = field(default_factory=list)
    empty: bool = False

    def accepts(self, thing: ObjectFacts) -> bool:
        """Can a row of this object be wanted?"""
        found = {"SEG_OWNER": thing.owner, "TABLE_NAME": thing.name, "SEG_NAME": thing.segment}
        return all(found[column] == value for column, value in self.names)


def filter_from(constraints: Sequence[tuple[str, str, Value]]) -> Filter:
    """Read the conditions; those that do not help are left to the engine, which checks all of them
    again."""
    found = Filter()
    codes: set[int] | None = None
    for column, sign, value in constraints:
        if value is None:
            found.empty = True  # nothing compares with NULL
        elif column == "SCN":
            found.scn_low, found.scn_high = _narrow(found.scn_low, found.scn_high, sign, value)
        elif column == "COMMIT_SCN":
            found.commit_low, found.commit_high = _narrow(
                found.commit_low, found.commit_high, sign, value
            )
        elif column == "OPERATION_CODE":
            compare, bound = _COMPARISONS[sign], values.decimal_from_number(value)
            allowed = {code for code in OPERATIONS if compare(Decimal(code), bound)}
            codes = allowed if codes is None else codes & allowed
        elif column in ("SEG_OWNER", "TABLE_NAME", "SEG_NAME") and sign == "=":
            found.names.append((column, value))
    if codes is not None:
        found.ops = {stored for code in codes for stored in _STORED_FOR.get(code, {code})}
    if found.ops == set() or found.scn_low > found.scn_high:
        found.empty = True
    return found


def _narrow(low: int, high: int, sign: str, value: bytes) -> tuple[int, int]:
    bound = values.decimal_from_number(value)
    if not bound.is_finite() or abs(bound) > SCN_MAX:
        return low, high
    floor = int(bound.to_integral_value(ROUND_FLOOR))
    ceiling = int(bound.to_integral_value(ROUND_CEILING))
    if sign in ("=", ">="):
        low = max(low, ceiling)
    if sign in ("=", "<="):
        high = min(high, floor)
    if sign == ">":
        low = max(low, floor + 1)
    if sign == "<":
        high = min(high, ceiling - 1)
    return low, high
