"""How are stored procedures, functions, packages and triggers made and removed?"""

from __future__ import annotations

import re
from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.sql import plsql_nodes
from oracle_embedded.engine.sql.units import parse_unit
from oracle_embedded.engine.storage.catalog import ProgramDef, TableDef

_PLACE = re.compile(r"line (\d+), column (\d+):\n(.*)", re.DOTALL)
Errors = tuple[tuple[int, int, str], ...]


def create_program(run: DdlRun, node: nodes.CreateProgram) -> None:
    """CREATE [OR REPLACE]; a program whose text does not compile is made as well, and is
    invalid."""
    word = "TRIGGER" if node.kind == "TRIGGER" else "PROCEDURE"
    owner, name = run.own_name(node.name, f"CREATE {word}", f"CREATE ANY {word}")
    catalog = run.session.database.store.catalog
    existing = catalog.program(owner, name, node.kind)
    taken = existing
    if node.kind not in ("PACKAGE BODY", "TRIGGER"):
        taken = catalog.find(owner, name)  # type: ignore[assignment]
    if taken is not None and not (node.replace and taken is existing):
        raise (
            ora(955)
            if node.kind != "TRIGGER"
            else OracleError(4081, f"trigger '{name}' already exists")
        )
    unit, errors = _compiled(node.text)
    table = enabled = None
    if node.kind == "TRIGGER":
        if not isinstance(unit, plsql_nodes.Trigger):
            raise OracleError(24344, errors[0][2] if errors else "invalid trigger")
        table, enabled = _table_of(run, owner, unit), unit.enabled
    made = ProgramDef(
        object_id=existing.object_id if existing is not None else catalog.new_id(),
        owner=owner,
        name=name,
        kind=node.kind,
        text=node.text,
        errors=errors,
        created=existing.created if existing is not None else run.now,
        changed=run.now,
        table=table.object_id if table is not None else 0,
        enabled=enabled is not False,
    )
    run.put(made)
    run.about(owner, name, made.object_id)
    run.has_warning = bool(errors)


def _compiled(text: str) -> tuple[plsql_nodes.Unit | None, Errors]:
    """The tree of a program, or where its text is wrong."""
    try:
        return parse_unit(text, lambda _name: None), ()
    except OracleError as error:
        place = _PLACE.match(error.text)
        if place is None:
            return None, ((1, 1, str(error)),)
        return None, ((int(place[1]), int(place[2]), place[3].split("\nORA-")[0]),)


def _table_of(run: DdlRun, owner: str, unit: plsql_nodes.Trigger) -> TableDef:
    table_owner = unit.table[0] if len(unit.table) > 1 else owner
    found = run.session.database.find(run.session, table_owner, unit.table[-1])
    if not isinstance(found, TableDef):
        raise ora(942)
    if found.owner != owner and not run.session.has_privilege("CREATE ANY TRIGGER"):
        raise ora(1031)
    unknown = [name for name in unit.columns if name not in found.by_name]
    if unknown:
        raise ora(904, f'"{unknown[0]}"')
    return found


def alter_program(run: DdlRun, node: nodes.AlterProgram) -> None:
    """ALTER … COMPILE, which changes nothing here, and ALTER TRIGGER … ENABLE or DISABLE."""
    found = _existing(run, node.kind, node.name)
    if node.action in ("ENABLE", "DISABLE"):
        found = replace(found, enabled=node.action == "ENABLE", changed=run.now)
        run.put(found)
    run.has_warning = bool(found.errors)
    run.about(found.owner, found.name, found.object_id)


def drop_program(run: DdlRun, node: nodes.Drop) -> None:
    """DROP; a package takes its body with it."""
    found = _existing(run, node.kind, node.name)
    if node.kind == "PACKAGE":
        body = run.session.database.store.catalog.program(found.owner, found.name, "PACKAGE BODY")
        if body is not None:
            run.drop(body)
    run.drop(found)
    run.about(found.owner, found.name, found.object_id)


def _existing(run: DdlRun, kind: str, name: tuple[str, ...]) -> ProgramDef:
    session = run.session
    owner = name[0] if len(name) > 1 else session.schema
    found = session.database.store.catalog.program(owner, name[-1], kind)
    word = "TRIGGER" if kind == "TRIGGER" else "PROCEDURE"
    may = owner == session.username or session.has_privilege(f"DROP ANY {word}")
    if found is None or not may:
        if kind == "TRIGGER":
            raise OracleError(4080, f"trigger '{name[-1]}' does not exist")
        raise OracleError(4043, f"object {name[-1]} does not exist")
    return found


def drop_triggers(run: DdlRun, table: TableDef) -> None:
    """Remove the triggers of a table that goes."""
    for item in list(run.session.database.store.catalog.all()):
        if (
            isinstance(item, ProgramDef)
            and item.kind == "TRIGGER"
            and item.table == table.object_id
        ):
            run.drop(item)
