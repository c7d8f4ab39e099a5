"""Which stored programs does a name mean, and what has a session of packages?"""

from __future__ import annotations

from dataclasses import dataclass

from oracle_embedded.api import OracleError
from oracle_embedded.engine.plsql.declaring import declare
from oracle_embedded.engine.plsql.objects import pl_type
from oracle_embedded.engine.plsql.state import Closure, Frame, Named, Overloads
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.user_types import usable_type
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import plsql_nodes as nodes
from oracle_embedded.engine.sql.units import parse_unit
from oracle_embedded.engine.storage.catalog import ProgramDef, SynonymDef


@dataclass(slots=True)
class Instance:
    """What a session has of a program: its names, those of them that others see, and of which texts
    it was made."""

    definitions: tuple[ProgramDef | None, ...]
    names: dict[str, Named]
    public: frozenset[str]


def find_stored(frame: Frame, name: ast.Name) -> Named | None:
    """What a name means that is not declared: a stored routine, or what a package declares."""
    session = frame.session
    plain = name[1:] if name[0] == "SYS" and len(name) > 1 else name
    if len(plain) > 3:
        return None
    kind = usable_type(session, plain)
    if kind is not None:
        return pl_type(kind)
    if len(plain) < 3:
        found = _program(session, session.schema, plain[0])
        if found is not None:
            return _in_program(frame, found, plain[1:])
    if len(plain) > 1:
        found = _program(session, plain[0], plain[1])
        if found is not None:
            return _in_program(frame, found, plain[2:])
    return None


def _program(session: SessionState, owner: str, name: str) -> ProgramDef | None:
    database = session.database
    found = database.find(session, owner, name)
    if found is None:
        found = database.find(session, "PUBLIC", name) if owner == session.schema else None
    for _ in range(8):
        if not isinstance(found, SynonymDef):
            break
        found = database.find(session, found.target_owner, found.target_name)
    if not isinstance(found, ProgramDef):
        return None
    security = database.security
    user = session.rights
    may = (
        found.owner == user
        or security.has(user, "EXECUTE ANY PROCEDURE")
        or security.granted(user, "EXECUTE", found.owner, found.name)
    )
    return found if may else None


def _in_program(frame: Frame, definition: ProgramDef, rest: ast.Name) -> Named | None:
    is_package = definition.kind == "PACKAGE"
    if len(rest) != int(is_package):
        return None
    instance = instance_of(frame, definition)
    if not is_package:
        return instance.names[definition.name]
    return instance.names[rest[0]] if rest[0] in instance.public else None


def instance_of(frame: Frame, definition: ProgramDef) -> Instance:
    """What the session has of a program; made again when its text has changed.

    Raises:
        OracleError: PLS-00905 for a program that does not compile.
    """
    session = frame.session
    body = None
    if definition.kind == "PACKAGE":
        catalog = session.database.store.catalog
        body = catalog.program(definition.owner, definition.name, "PACKAGE BODY")
    texts = (definition, body)
    instance = session.packages.get(definition.object_id)
    if isinstance(instance, Instance) and instance.definitions == texts:
        return instance
    for item in texts:
        if item is not None and item.errors:
            raise OracleError(
                6550,
                f"line 1, column 7:\nPLS-00905: object {item.owner}.{item.name} is invalid\n"
                "ORA-06550: line 1, column 7:\nPL/SQL: Statement ignored",
            )
    instance = Instance(texts, {}, frozenset())
    session.packages[definition.object_id] = instance
    try:
        _fill(frame, instance, definition, body)
    except BaseException:
        session.packages.pop(definition.object_id, None)
        raise
    return instance


def _fill(
    frame: Frame, instance: Instance, definition: ProgramDef, body: ProgramDef | None
) -> None:
    unit = parse_unit(definition.text, lambda _name: None)
    place = f"{definition.owner}.{definition.name}"
    if isinstance(unit, nodes.Routine):
        owner = None if unit.runs_as_caller else definition.owner
        closure = Closure(unit, {}, definition.text, owner, definition.owner, place)
        instance.names[definition.name] = Overloads([closure])
        return
    assert isinstance(unit, nodes.Package)
    owner = None if unit.runs_as_caller else definition.owner
    like = Closure(
        nodes.Routine("", (), None, None), instance.names, definition.text, owner, definition.owner, place
    )  # fmt: skip
    session = frame.session
    before = session.rights, session.schema
    session.rights, session.schema = definition.owner, definition.owner
    try:
        declare(frame.inner(definition.text, instance.names), unit.declarations, like=like)
        instance.public = frozenset(instance.names)
        if body is None:
            return
        inside = parse_unit(body.text, lambda _name: None)
        assert isinstance(inside, nodes.Package)
        inner = frame.inner(body.text, instance.names)
        declare(inner, inside.declarations, like=like)
        if inside.body is not None:
            start = nodes.Routine("", (), None, inside.body)
            frame.services.execute(
                inner, Closure(start, instance.names, body.text, None, "", place)
            )
    finally:
        session.rights, session.schema = before
