"""Who may do what?"""

from __future__ import annotations

from oracle_embedded.engine.storage.catalog import Catalog, Definition, TableDef, TypeDef, UserDef

ROLES = {
    "CONNECT": ("CREATE SESSION", "SET CONTAINER"),
    "RESOURCE": ("CREATE TABLE", "CREATE CLUSTER", "CREATE SEQUENCE", "CREATE PROCEDURE", "CREATE TRIGGER", "CREATE TYPE"),
    "SELECT_CATALOG_ROLE": (),
    "EXECUTE_CATALOG_ROLE": (),
    "DBA": (
        "CREATE SESSION", "SET CONTAINER", "ALTER SESSION", "ALTER SYSTEM", "ALTER DATABASE", "CREATE TABLE", "CREATE ANY TABLE",
        "ALTER ANY TABLE", "DROP ANY TABLE", "SELECT ANY TABLE", "INSERT ANY TABLE", "UPDATE ANY TABLE", "DELETE ANY TABLE",
        "LOCK ANY TABLE", "FLASHBACK ANY TABLE", "COMMENT ANY TABLE", "CREATE VIEW", "CREATE ANY VIEW", "DROP ANY VIEW",
        "CREATE CLUSTER", "CREATE ANY CLUSTER", "DROP ANY CLUSTER", "CREATE SEQUENCE", "CREATE ANY SEQUENCE", "DROP ANY SEQUENCE", "SELECT ANY SEQUENCE", "CREATE SYNONYM",
        "CREATE ANY SYNONYM", "CREATE PUBLIC SYNONYM", "DROP ANY SYNONYM", "DROP PUBLIC SYNONYM", "CREATE ANY INDEX",
        "DROP ANY INDEX", "CREATE USER", "ALTER USER", "DROP USER", "CREATE ROLE", "GRANT ANY PRIVILEGE", "GRANT ANY ROLE",
        "GRANT ANY OBJECT PRIVILEGE", "SELECT ANY DICTIONARY", "SELECT ANY TRANSACTION", "LOGMINING", "UNLIMITED TABLESPACE",
        "SELECT_CATALOG_ROLE", "EXECUTE_CATALOG_ROLE", "ANALYZE ANY", "CREATE PROCEDURE", "CREATE ANY PROCEDURE",
        "ALTER ANY PROCEDURE", "DROP ANY PROCEDURE", "EXECUTE ANY PROCEDURE", "CREATE TRIGGER", "CREATE ANY TRIGGER",
        "ALTER ANY TRIGGER", "DROP ANY TRIGGER", "CREATE MATERIALIZED VIEW", "CREATE ANY MATERIALIZED VIEW",
        "DROP ANY MATERIALIZED VIEW", "CREATE TYPE", "CREATE ANY TYPE", "DROP ANY TYPE", "EXECUTE ANY TYPE", "CREATE ANY EDITION", "DROP ANY EDITION", "ALTER ANY EDITION",
        "EXEMPT REDACTION POLICY",
    ),
}  # fmt: skip
ROLES.update(
    dict.fromkeys(
        (
            "AQ_ADMINISTRATOR_ROLE", "AQ_USER_ROLE", "CTXAPP", "DATAPUMP_EXP_FULL_DATABASE", "DATAPUMP_IMP_FULL_DATABASE",
            "EXP_FULL_DATABASE", "IMP_FULL_DATABASE", "GATHER_SYSTEM_STATISTICS", "HS_ADMIN_ROLE", "JAVAUSERPRIV", "OEM_MONITOR",
            "PLUSTRACE", "RECOVERY_CATALOG_OWNER", "SCHEDULER_ADMIN", "SODA_APP", "XDBADMIN",
        ),
        (),
    )
)  # fmt: skip
SYSTEM_PRIVILEGES = frozenset(
    [name for names in ROLES.values() for name in names if name not in ROLES]
    + [
        "SYSDBA", "SYSOPER", "SYSBACKUP", "ADVISOR", "ADMINISTER DATABASE TRIGGER", "ALTER ANY INDEX", "ALTER ANY MATERIALIZED VIEW",
        "ALTER ANY PROCEDURE", "ALTER ANY ROLE", "ALTER ANY SEQUENCE", "ALTER ANY TRIGGER", "ALTER ANY TYPE", "ALTER PROFILE",
        "ALTER TABLESPACE", "AUDIT ANY", "AUDIT SYSTEM", "BECOME USER", "CHANGE NOTIFICATION", "CREATE ANY CONTEXT",
        "CREATE ANY DIRECTORY", "CREATE ANY MATERIALIZED VIEW", "CREATE ANY PROCEDURE", "CREATE ANY TRIGGER", "CREATE ANY TYPE",
        "CREATE DATABASE LINK", "CREATE DIMENSION", "CREATE INDEXTYPE", "CREATE JOB", "CREATE LIBRARY",
        "CREATE MATERIALIZED VIEW", "CREATE OPERATOR", "CREATE PROCEDURE", "CREATE PROFILE", "CREATE PUBLIC DATABASE LINK",
        "CREATE ROLLBACK SEGMENT", "CREATE TABLESPACE", "CREATE TRIGGER", "CREATE TYPE", "DEBUG ANY PROCEDURE",
        "DEBUG CONNECT SESSION", "DROP ANY DIRECTORY", "DROP ANY MATERIALIZED VIEW", "DROP ANY PROCEDURE", "DROP ANY ROLE",
        "DROP ANY TRIGGER", "DROP ANY TYPE", "DROP TABLESPACE", "EXECUTE ANY PROCEDURE", "EXECUTE ANY TYPE",
        "EXEMPT ACCESS POLICY", "FLASHBACK ARCHIVE ADMINISTER", "FORCE ANY TRANSACTION", "FORCE TRANSACTION", "GLOBAL QUERY REWRITE",
        "INHERIT ANY PRIVILEGES", "KEEP DATE TIME", "MANAGE SCHEDULER", "MANAGE TABLESPACE", "ON COMMIT REFRESH", "QUERY REWRITE",
        "READ ANY TABLE", "RESTRICTED SESSION", "RESUMABLE", "UNDER ANY TABLE", "UNDER ANY TYPE", "UNDER ANY VIEW",
    ]
)  # fmt: skip
"""What exists in Oracle and may be granted; most of it means nothing here."""


SYS = "SYS"
ADMINISTRATIVE = frozenset({"SYSDBA", "SYSOPER", "SYSBACKUP"})
"""What only SYS grants, and what no role brings."""

_Closure = tuple[frozenset[str], tuple[UserDef, ...]]


class Security:
    """Answers from the catalog's users, roles and grants."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._closures: dict[str, tuple[int, _Closure]] = {}

    def _closure(self, name: str) -> _Closure:
        """All privileges and roles of a user, and the users and roles that hold object grants for
        it, until a definition changes."""
        version = self._catalog.version
        kept = self._closures.get(name)
        if kept is None or kept[0] != version:
            kept = self._closures[name] = (version, self._find_closure(name))
        return kept[1]

    def _find_closure(self, name: str) -> _Closure:
        found: set[str] = set()
        holders: list[UserDef] = []
        waiting = [name, "PUBLIC"]
        while waiting:
            current = waiting.pop()
            user = self._catalog.user(current)
            direct = ("DBA", *SYSTEM_PRIVILEGES) if current == SYS else ROLES.get(current, ())
            if user is not None:
                holders.append(user)
                direct += user.privileges
            for privilege in direct:
                if privilege not in found:
                    found.add(privilege)
                    waiting.append(privilege)
        return frozenset(found), tuple(holders)

    def has(self, user: str, privilege: str) -> bool:
        """Does a user hold a system privilege or role, directly or by a role? SYS holds all, and
        the role DBA all that are not administrative."""
        found, _ = self._closure(user)
        by_dba = "DBA" in found and privilege in SYSTEM_PRIVILEGES - ADMINISTRATIVE
        return privilege in found or by_dba or user == SYS

    def all_of(self, user: str) -> frozenset[str]:
        """All system privileges and roles of a user."""
        return self._closure(user)[0]

    def granted(self, user: str, privilege: str, owner: str, name: str) -> bool:
        """Does a user hold a privilege on one object?"""
        _, holders = self._closure(user)
        wanted = {(privilege, owner, name), ("ALL", owner, name)}
        return any(wanted & set(holder.grants) for holder in holders)

    def may_select(self, user: str, definition: Definition) -> bool:
        """May a user read a table, view or sequence, or use a type?"""
        if isinstance(definition, UserDef):
            return False
        owner, name = definition.owner, definition.name
        if isinstance(definition, TypeDef):
            if owner == user or self.has(user, "EXECUTE ANY TYPE"):
                return True
            return self.granted(user, "EXECUTE", owner, name)
        if owner == user or self.has(user, "SELECT ANY TABLE"):
            return True
        return any(
            self.granted(user, word, owner, name)
            for word in ("SELECT", "READ", "INSERT", "UPDATE", "DELETE")
        )

    def may_flashback(self, user: str, definition: Definition) -> bool:
        """May a user query the past of a table or view?"""
        if isinstance(definition, UserDef):
            return False
        if definition.owner == user or self.has(user, "FLASHBACK ANY TABLE"):
            return True
        return self.granted(user, "FLASHBACK", definition.owner, definition.name)

    def may_change(self, user: str, table: TableDef, privilege: str) -> bool:
        """May a user INSERT, UPDATE or DELETE?"""
        if table.owner == user or self.has(user, f"{privilege} ANY TABLE"):
            return True
        return self.granted(user, privilege, table.owner, table.name)

    def may_lock(self, user: str, table: TableDef) -> bool:
        """May a user lock a table? Whoever may change it may."""
        if table.owner == user or self.has(user, "LOCK ANY TABLE"):
            return True
        return any(self.may_change(user, table, word) for word in ("INSERT", "UPDATE", "DELETE"))

    def may_read_catalog(self, user: str, view: str) -> bool:
        """May a user read DBA_ and V$ views? V$ views may also be granted one by one as V_$…"""
        if any(
            self.has(user, name) for name in ("SELECT_CATALOG_ROLE", "SELECT ANY DICTIONARY", "DBA")
        ):
            return True
        underlying = view.replace("V$", "V_$", 1) if view.startswith(("V$", "GV$")) else view
        return any(
            self.granted(user, privilege, "SYS", name)
            for privilege in ("SELECT", "READ")
            for name in (underlying, view)
        )
