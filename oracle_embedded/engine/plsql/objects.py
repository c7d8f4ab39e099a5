"""How do objects and collections of SQL become records and collections of PL/SQL, and these images
again?"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from oracle_embedded.api import OraType, Value
from oracle_embedded.engine.datatypes.types import SqlType, UserType
from oracle_embedded.engine.plsql.composites import (
    PlType,
    PlValue,
    Record,
    RecordType,
    Table,
    TableType,
    listed,
)
from oracle_embedded.values import packed, unpacked

_INDEX_BYTES = 4


@lru_cache(maxsize=1024)
def pl_type(kind: SqlType) -> PlType:
    """The type of SQL as PL/SQL has it: object types are records, collection types collections."""
    user = kind.user
    if user is None:
        return kind
    if user.element is not None:
        return TableType(user.name, pl_type(user.element), user.index, user.limit, kind)
    fields = tuple((name, pl_type(item)) for name, item in user.attributes)
    return RecordType(user.name, fields, kind)


def sql_type(kind: PlType) -> SqlType | None:
    """The type of SQL behind one of PL/SQL; None for what is PL/SQL's alone."""
    return kind if isinstance(kind, SqlType) else kind.user


def shown_type(kind: PlType) -> SqlType | None:
    """The type that a query has of what a function returns: also of a collection that a package
    declares for it, and of its records. None for what no query sees."""
    known = sql_type(kind)
    if known is not None:
        return known
    if isinstance(kind, TableType):
        element = None if kind.index else shown_type(kind.element)
        if element is None:
            return None
        return SqlType(OraType.OBJECT, user=UserType(owner="", name=kind.name, element=element))
    assert isinstance(kind, RecordType)
    fields = [(name, shown_type(item)) for name, item in kind.fields]
    found = tuple((name, item) for name, item in fields if item is not None)
    if len(found) < len(fields):
        return None
    return SqlType(OraType.OBJECT, user=UserType(owner="", name=kind.name, attributes=found))


def value_of(image: Value, kind: PlType) -> PlValue:
    """The value of an image."""
    if image is None or isinstance(kind, SqlType):
        return image
    items = unpacked(image)
    if isinstance(kind, RecordType):
        pairs = zip(kind.fields, items, strict=True)
        return Record({name: value_of(item, one) for (name, one), item in pairs})
    if not kind.index:
        return listed(value_of(item, kind.element) for item in items)
    table = Table()
    for key, item in zip(items[::2], items[1::2], strict=True):
        table.put(int.from_bytes(key or b"", "big", signed=True), value_of(item, kind.element))
    return table


def image_of(value: PlValue, kind: PlType) -> Value:
    """The image of a value; elements that were deleted are left out."""
    if isinstance(kind, RecordType) and isinstance(value, Record):
        return packed(image_of(value.fields[name], item) for name, item in kind.fields)
    if isinstance(kind, TableType) and isinstance(value, Table):
        items: list[Value] = []
        for key in value.keys:
            if kind.index:
                items.append(cast("int", key).to_bytes(_INDEX_BYTES, "big", signed=True))
            items.append(image_of(value.elements[key], kind.element))
        return packed(items)
    return cast("Value", value)
