"""Which values of PL/SQL have parts: records and collections, and what are their types?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.datatypes.types import SqlType

_INDEX_MAX = 2**31


@dataclass(frozen=True, slots=True)
class RecordType:
    """A record: names and types of its fields; ``defaults`` are made by whoever declares a
    variable.

    An object type of SQL is one whose values may be NULL as a whole; ``user`` is what SQL and
    clients know of it.
    """

    name: str
    fields: tuple[tuple[str, PlType], ...]
    user: SqlType | None = None

    @property
    def is_object(self) -> bool:
        """Is this an object type, made by CREATE TYPE?"""
        return self.user is not None and self.user.user is not None and not self.user.user.package


@dataclass(frozen=True, slots=True)
class TableType:
    """A collection. ``index`` is NUMBER or TEXT for an associative array; others begin at 1 and may
    have a ``limit``.

    ``user`` is what SQL and clients know of a type that is not PL/SQL's alone.
    """

    name: str
    element: PlType
    index: str = ""
    limit: int | None = None
    user: SqlType | None = None


PlType: TypeAlias = SqlType | RecordType | TableType


@dataclass(slots=True)
class Record:
    """The fields of a record; one that an outer join or a missing row leaves has NULL in all."""

    fields: dict[str, PlValue]


@dataclass(slots=True)
class Table:
    """The elements of a collection, and its keys in order. A NULL collection is None instead."""

    elements: dict[int | str, PlValue] = field(default_factory=dict)
    keys: list[int | str] = field(default_factory=list)

    def put(self, key: int | str, value: PlValue) -> None:
        """Give an element a value, making it if it is not there."""
        if key not in self.elements:
            self.keys.insert(bisect_left(self.keys, key), key)
        self.elements[key] = value

    def remove(self, keys: Iterable[int | str]) -> None:
        """Take elements out; those that are not there do not matter."""
        for key in list(keys):
            if self.elements.pop(key, self) is not self:
                self.keys.remove(key)

    def after(self, key: int | str) -> int | str | None:
        """The next key."""
        at = bisect_right(self.keys, key)
        return self.keys[at] if at < len(self.keys) else None

    def before(self, key: int | str) -> int | str | None:
        """The key before."""
        at = bisect_left(self.keys, key)
        return self.keys[at - 1] if at else None


PlValue: TypeAlias = Value | Record | Table


def copied(value: PlValue) -> PlValue:
    """A value of its own, as assignments give it."""
    match value:
        case Record():
            return Record({name: copied(item) for name, item in value.fields.items()})
        case Table():
            elements = {key: copied(item) for key, item in value.elements.items()}
            return Table(elements, list(value.keys))
    return value


def initial(kind: PlType) -> PlValue:
    """What a variable holds that nothing was assigned to."""
    match kind:
        case RecordType() if kind.is_object:
            return None
        case RecordType():
            return Record({name: initial(item) for name, item in kind.fields})
        case TableType() if kind.index:
            return Table()
    return None


def check_index(kind: TableType, table: Table | None, key: int | str) -> Table:
    """The collection, if a key may be used in it.

    Raises:
        OracleError: ORA-06531, ORA-06532, ORA-06533.
    """
    if table is None:
        raise OracleError(6531, "Reference to uninitialized collection")
    if kind.index:
        return table
    assert isinstance(key, int)
    if not 1 <= key < _INDEX_MAX or (kind.limit is not None and key > kind.limit):
        raise OracleError(6532, "Subscript outside of limit")
    if not table.keys or key > int(table.keys[-1]):
        raise OracleError(6533, "Subscript beyond count")
    return table


def listed(values: Iterable[PlValue]) -> Table:
    """A collection of values from 1 on."""
    elements: dict[int | str, PlValue] = dict(enumerate(values, 1))
    return Table(elements, list(elements))
