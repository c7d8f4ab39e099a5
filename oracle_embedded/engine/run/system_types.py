"""Which collection types does every database have?

Source: Oracle Database Data Cartridge Developer's Guide 19c, "Extensible Indexing Interface",
system-defined interface constants and types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from oracle_embedded.api import OraType
from oracle_embedded.engine.datatypes.types import DATE, NUMBER, SqlType, UserType, raw, varchar
from oracle_embedded.engine.storage.catalog import TypeDef

_ELEMENTS = {
    "ODCINUMBERLIST": ("NUMBER", NUMBER),
    "ODCIVARCHAR2LIST": ("VARCHAR2(4000)", varchar(4000)),
    "ODCIDATELIST": ("DATE", DATE),
    "ODCIRAWLIST": ("RAW(2000)", raw(2000)),
}
_MOST = 32767


def _type(name: str, printed: str, element: SqlType) -> TypeDef:
    oid = hashlib.md5(f"SYS.{name}".encode(), usedforsecurity=False).hexdigest()
    user = UserType(owner="SYS", name=name, oid=oid, element=element, limit=_MOST)
    kind = SqlType(OraType.OBJECT, user=user)
    text = f"TYPE {name} AS VARRAY({_MOST}) OF {printed}"
    return TypeDef(object_id=0, owner="SYS", name=name, type=kind, text=text)


SYSTEM_TYPES: Mapping[str, TypeDef] = {
    name: _type(name, printed, element) for name, (printed, element) in _ELEMENTS.items()
}
"""Types of SYS by name, which everybody may use."""
