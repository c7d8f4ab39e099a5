"""How are users, roles and grants made and removed?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.run.security import ADMINISTRATIVE, ROLES, SYS, SYSTEM_PRIVILEGES
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.storage.catalog import (
    Catalog,
    ProgramDef,
    SequenceDef,
    TableDef,
    TypeDef,
    UserDef,
    ViewDef,
)

_OBJECT_PRIVILEGES = frozenset(
    {
        "SELECT",
        "READ",
        "INSERT",
        "UPDATE",
        "DELETE",
        "ALTER",
        "INDEX",
        "REFERENCES",
        "FLASHBACK",
        "EXECUTE",
        "DEBUG",
        "ON COMMIT REFRESH",
        "QUERY REWRITE",
    }
)


_DICTIONARY_USERS = frozenset({SYS, "SYSTEM"})


def create_user(run: DdlRun, node: nodes.CreateUser) -> None:
    """CREATE USER, CREATE ROLE, ALTER USER."""
    catalog = run.session.database.store.catalog
    kind = "ROLE" if node.role else "USER"
    if node.alter:
        own = (
            node.name == run.session.username
            and node.locked is None
            and not node.container_data
            and not node.proxies
        )
        if not own and not run.session.has_privilege("ALTER USER"):
            raise ora(1031)
        if node.name == SYS == run.session.username and node.password is not None:
            catalog.set_setting("sys_password", node.password)
            run.about(SYS, SYS, 0)
            return
        if node.name in _DICTIONARY_USERS:
            raise ora(1031)
        user = catalog.user(node.name)
        if user is None:
            raise OracleError(1918, f"user '{node.name}' does not exist")
        changed = replace(
            user, password=node.password if node.password is not None else user.password
        )
        if node.locked is not None:
            changed = replace(changed, locked=node.locked)
        if node.container_data:
            if not user.common or run.session.container != "CDB$ROOT":
                raise OracleError(
                    65057, "CONTAINER_DATA attribute must always include the current container"
                )
            changed = replace(changed, container_data=True)
        if node.proxies:
            changed = replace(changed, proxies=_proxies(catalog, user, node))
        run.put(changed)
        run.about("SYS", node.name, user.object_id)
        return
    if not run.session.has_privilege(f"CREATE {kind}"):
        raise ora(1031)
    if catalog.user(node.name) is not None or node.name in _DICTIONARY_USERS:
        raise OracleError(
            1920 if not node.role else 1921,
            f"user name '{node.name}' conflicts with another user or role name",
        )
    common = node.name.startswith("C##")
    if common and run.session.container != "CDB$ROOT":
        raise OracleError(65094, "invalid local user or role name")
    if not common and run.session.container == "CDB$ROOT":
        raise OracleError(65096, "common user or role name must start with C##")
    made = UserDef(
        catalog.new_id(),
        node.name,
        node.password or "",
        locked=bool(node.locked),
        is_role=node.role,
        created=run.now,
        common=common,
    )
    run.put(made)
    run.about("SYS", node.name, made.object_id)


def _proxies(catalog: Catalog, user: UserDef, node: nodes.CreateUser) -> tuple[str, ...]:
    """Who may log in for a user."""
    for name in node.proxies:
        if catalog.user(name) is None:
            raise OracleError(1918, f"user '{name}' does not exist")
    if node.revokes_proxies:
        return tuple(name for name in user.proxies if name not in node.proxies)
    return tuple(dict.fromkeys((*user.proxies, *node.proxies)))


def drop_user(run: DdlRun, node: nodes.Drop) -> None:
    """DROP USER [CASCADE], DROP ROLE."""
    database = run.session.database
    catalog = database.store.catalog
    user = catalog.user(node.name[-1])
    if user is None or user.is_role != (node.kind == "ROLE"):
        raise OracleError(
            1918 if node.kind == "USER" else 1919,
            f"{node.kind.lower()} '{node.name[-1]}' does not exist",
        )
    if not run.session.has_privilege("DROP USER"):
        raise ora(1031)
    if database.is_connected(user.name):
        raise OracleError(1940, "cannot drop a user that is currently connected")
    owned = [
        item for item in catalog.all() if not isinstance(item, UserDef) and item.owner == user.name
    ]
    if owned and not node.cascade:
        raise OracleError(1922, f"CASCADE must be specified to drop '{user.name}'")
    for item in owned:
        run.drop(item)
        if isinstance(item, TableDef):
            database.store.drop_table(item)
        elif isinstance(item, SequenceDef):
            database.sequences.forget(item.object_id)
    run.drop(user)
    run.about("SYS", user.name, user.object_id)


def grant(run: DdlRun, node: nodes.Grant) -> None:
    """GRANT and REVOKE."""
    catalog = run.session.database.store.catalog
    object_grants: list[tuple[str, str, str]] = []
    if node.target:
        object_grants = _object_grants(run, node)
    else:
        _check_system(run, node)
    for name in node.users:
        user = catalog.user(name)
        if user is None:
            raise OracleError(1917, f"user or role '{name}' does not exist")
        if node.target:
            _change_grants(run, node, user, object_grants)
            continue
        if node.revoke:
            missing = [item for item in node.privileges if item not in user.privileges]
            if missing:
                raise OracleError(1952, f"system privileges not granted to '{name}'")
            kept = tuple(item for item in user.privileges if item not in node.privileges)
        else:
            kept = tuple(dict.fromkeys((*user.privileges, *node.privileges)))
        run.put(replace(user, privileges=kept))
    run.about("SYS", None, 0)


def _change_grants(
    run: DdlRun, node: nodes.Grant, user: UserDef, changes: list[tuple[str, str, str]]
) -> None:
    if node.revoke:
        if any(item not in user.grants for item in changes):
            raise OracleError(1927, "cannot REVOKE privileges you did not grant")
        run.put(replace(user, grants=tuple(item for item in user.grants if item not in changes)))
    else:
        run.put(replace(user, grants=tuple(dict.fromkeys((*user.grants, *changes)))))


def _check_system(run: DdlRun, node: nodes.Grant) -> None:
    catalog = run.session.database.store.catalog
    for privilege in node.privileges:
        role = catalog.user(privilege)
        known = (
            privilege in SYSTEM_PRIVILEGES
            or privilege in ROLES
            or (role is not None and role.is_role)
        )
        if not known:
            raise OracleError(
                990 if " " in privilege else 1919,
                f"role '{privilege}' does not exist"
                if " " not in privilege
                else "missing or invalid privilege",
            )
    administrative = ADMINISTRATIVE & set(node.privileges)
    is_sys = run.session.username == SYS
    if not run.session.has_privilege("GRANT ANY PRIVILEGE") or (administrative and not is_sys):
        raise ora(1031)
    if administrative - {"SYSDBA"}:
        raise unsupported(f"grants of {', '.join(sorted(administrative - {'SYSDBA'}))}")


def _object_grants(run: DdlRun, node: nodes.Grant) -> list[tuple[str, str, str]]:
    session = run.session
    database = session.database
    owner = node.target[0] if len(node.target) > 1 else session.schema
    name = node.target[-1]
    found = database.store.catalog.find(owner, name)
    if not isinstance(found, TableDef | ViewDef | SequenceDef | ProgramDef | TypeDef):
        if not database.is_system_object(owner, name):
            raise ora(942)
        owner = "SYS"
    if owner != session.username and not session.has_privilege("GRANT ANY OBJECT PRIVILEGE"):
        raise ora(1031)
    grants = []
    for privilege in node.privileges:
        word = "ALL" if privilege == "ALL PRIVILEGES" else privilege
        if word != "ALL" and word not in _OBJECT_PRIVILEGES:
            raise OracleError(990, "missing or invalid privilege")
        grants.append((word, owner, name))
    return grants
