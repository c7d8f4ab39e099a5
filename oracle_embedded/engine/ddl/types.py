"""How are object types and collection types made, looked up and removed?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.datatypes.types import SqlType, UserType
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.run.user_types import find_type
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.storage.catalog import Catalog, TableDef, TypeDef

_IN_USE = "cannot drop or replace a type with type or table dependents"


def create_type(run: DdlRun, node: nodes.CreateType) -> None:
    """CREATE TYPE. One that names a type that is not there is made with errors, and cannot be
    used."""
    catalog = run.session.database.store.catalog
    owner, name = run.own_name(node.name, "CREATE TYPE", "CREATE ANY TYPE")
    existing = catalog.find(owner, name)
    if not isinstance(existing, TypeDef):
        run.must_be_new(owner, name)
        existing = None
    elif not node.replacing:
        raise ora(955)
    elif _is_used(catalog, existing):
        raise OracleError(2303, _IN_USE)
    identifier = existing.object_id if existing is not None else catalog.new_id()
    number = hashlib.md5(f"{owner}.{name}.{identifier}".encode(), usedforsecurity=False)
    names = [attribute for attribute, _ in node.attributes]
    if len(set(names)) != len(names):
        raise ora(957)
    errors: tuple[tuple[int, int, str], ...] = ()
    try:
        user = UserType(
            owner=owner,
            name=name,
            oid=number.hexdigest(),
            attributes=tuple(
                (attribute, known_type(run, kind)) for attribute, kind in node.attributes
            ),
            element=None if node.element is None else known_type(run, node.element),
            limit=node.limit,
        )
    except OracleError as error:
        if error.code != 902:
            raise
        errors = ((0, 0, "PLS-00201: identifier must be declared"),)
        user = UserType(owner=owner, name=name, oid=number.hexdigest())
    made = TypeDef(
        object_id=identifier,
        owner=owner,
        name=name,
        type=SqlType(OraType.OBJECT, user=user),
        text=node.text,
        errors=errors,
        created=existing.created if existing is not None else run.now,
        changed=run.now,
    )
    run.put(made)
    run.about(owner, name, identifier)
    run.has_warning = bool(errors)


def drop_type(run: DdlRun, node: nodes.Drop) -> None:
    """DROP TYPE, of one that nothing else has, with FORCE as well."""
    session = run.session
    catalog = session.database.store.catalog
    owner = node.name[0] if len(node.name) > 1 else session.schema
    found = catalog.find(owner, node.name[-1])
    if not isinstance(found, TypeDef):
        raise OracleError(4043, f"object {node.name[-1]} does not exist")
    if owner != session.username and not session.has_privilege("DROP ANY TYPE"):
        raise ora(1031)
    if _is_used(catalog, found):
        raise OracleError(2303, _IN_USE)
    run.drop(found)
    run.about(owner, found.name, found.object_id)


def known_type(run: DdlRun, kind: SqlType) -> SqlType:
    """A type as read, or the object type or collection type that it names.

    Raises:
        OracleError: ORA-00902, there is none of that name that the user may use.
    """
    if kind.user is None or kind.user.oid:
        return kind
    name = (kind.user.owner, kind.user.name) if kind.user.owner else (kind.user.name,)
    found = find_type(run.session, name)
    if found is None or found.errors:
        raise OracleError(902, "invalid datatype")
    return found.type


def _is_used(catalog: Catalog, found: TypeDef) -> bool:
    """Do tables or other types have a type?"""
    assert found.type.user is not None
    oid = found.type.user.oid
    for item in catalog.all():
        if isinstance(item, TableDef) and any(oid in _numbers(one.type) for one in item.columns):
            return True
        if isinstance(item, TypeDef) and item is not found and oid in _numbers(item.type):
            return True
    return False


def _numbers(kind: SqlType) -> Iterator[str]:
    """The numbers of a type and of all that are inside of it."""
    if kind.user is None:
        return
    yield kind.user.oid
    for _, item in kind.user.attributes:
        yield from _numbers(item)
    if kind.user.element is not None:
        yield from _numbers(kind.user.element)
