"""Which object type or collection type does a name or a number mean?"""

from __future__ import annotations

from oracle_embedded.api import ObjectShape, OracleError
from oracle_embedded.engine.datatypes.types import XML_SHAPE, SqlType, shape_of
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.system_types import SYSTEM_TYPES
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import SynonymDef, TypeDef

_SYNONYMS_MAX = 8


def find_type(session: SessionState, name: ast.Name) -> TypeDef | None:
    """The type of a name that the user may use; None if there is none."""
    if len(name) > 2:
        return None
    database = session.database
    if len(name) == 2 and name[0] == "SYS" and name[1] in SYSTEM_TYPES:
        return SYSTEM_TYPES[name[1]]
    owner = name[0] if len(name) == 2 else session.schema
    found = database.find(session, owner, name[-1])
    if found is None and len(name) == 1:
        found = database.find(session, "PUBLIC", name[-1])
    for _ in range(_SYNONYMS_MAX):
        if not isinstance(found, SynonymDef):
            break
        found = database.find(session, found.target_owner, found.target_name)
    if not isinstance(found, TypeDef):
        return None
    return found if database.security.may_select(session.rights, found) else None


def shape_by_number(session: SessionState, oid: bytes) -> ObjectShape:
    """The type behind a number that the client has been told.

    Raises:
        OracleError: ORA-21700, there is none any more.
    """
    if oid == XML_SHAPE.oid:
        return XML_SHAPE
    packaged = session.database.packaged_types.get(oid.hex())
    shape = None if packaged is None else shape_of(packaged)
    if shape is not None:
        return shape
    for item in (*SYSTEM_TYPES.values(), *session.database.store.catalog.all()):
        if (
            isinstance(item, TypeDef)
            and item.type.user is not None
            and item.type.user.oid == oid.hex()
        ):
            found = shape_of(item.type)
            assert found is not None
            return found
    raise OracleError(21700, "object does not exist or is marked for delete")


def usable_type(session: SessionState, name: ast.Name) -> SqlType | None:
    """The type of a name as SQL uses it; None if there is none."""
    found = find_type(session, name)
    return None if found is None or found.errors else found.type
