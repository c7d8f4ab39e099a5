"""What do the dictionary views of objects, users, privileges, views, sequences and synonyms
show?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from oracle_embedded.engine.dictionary.registry import Row, View, Views, date_from_epoch
from oracle_embedded.engine.formats.dates import print_date
from oracle_embedded.engine.run.security import ROLES, SYS
from oracle_embedded.engine.storage.catalog import (
    ClusterDef,
    IndexDef,
    ProgramDef,
    SequenceDef,
    SynonymDef,
    TableDef,
    TypeDef,
    UserDef,
    ViewDef,
)
from oracle_embedded.engine.storage.partitions import Partition

VIEWS = Views()
VIEWS.synonyms |= {"OBJ": "USER_OBJECTS", "SEQ": "USER_SEQUENCES", "SYN": "USER_SYNONYMS"}

_SYSTEM_OBJECT_FIRST = 1000
_MATERIALIZED_FIRST = 1_000_000_000
_SYSTEM_KINDS = ("VIEW", "PACKAGE")


@VIEWS.family(
    "OBJECTS",
    "OWNER:v128 OBJECT_NAME:v128 SUBOBJECT_NAME:v128 OBJECT_ID:n DATA_OBJECT_ID:n OBJECT_TYPE:v23 CREATED:d LAST_DDL_TIME:d TIMESTAMP:v19"
    " STATUS:v7 TEMPORARY:v1 GENERATED:v1 SECONDARY:v1 NAMESPACE:n EDITION_NAME:v128 SHARING:v18 EDITIONABLE:v1 ORACLE_MAINTAINED:v1",
    object_name="OBJECT_NAME",
)
def _objects(view: View) -> Iterator[Row]:
    for item in view.definitions():
        if isinstance(item, TableDef):
            if not item.original_name:
                yield from _table_objects(item)
        elif isinstance(item, ClusterDef):
            yield _object(
                item.owner,
                item.name,
                item.object_id,
                item.data_object_id,
                "CLUSTER",
                item.created,
                item.changed,
            )
        elif isinstance(item, ViewDef):
            yield _object(
                item.owner, item.name, item.object_id, None, "VIEW", item.created, item.changed
            )
        elif isinstance(item, SequenceDef):
            yield _object(
                item.owner, item.name, item.object_id, None, "SEQUENCE", item.created, item.changed
            )
        elif isinstance(item, SynonymDef):
            yield _object(
                item.owner, item.name, item.object_id, None, "SYNONYM", item.created, item.changed
            )
        elif isinstance(item, TypeDef):
            row = _object(
                item.owner, item.name, item.object_id, None, "TYPE", item.created, item.changed
            )
            yield {**row, "STATUS": "INVALID" if item.errors else "VALID"}
        elif isinstance(item, ProgramDef):
            row = _object(
                item.owner, item.name, item.object_id, None, item.kind, item.created, item.changed
            )
            yield {**row, "STATUS": "INVALID" if item.errors else "VALID"}
    if view.wants("OWNER", "SYS") and any(
        view.wants("OBJECT_TYPE", kind) for kind in _SYSTEM_KINDS
    ):
        yield from _system_objects(
            frozenset(view.database.computed_views()),
            frozenset(package for package, _ in view.database.procedures),
            float(view.database.store.catalog.setting("created") or 0),
        )


def _table_objects(table: TableDef) -> Iterator[Row]:
    """A table, its partitions and its indexes; and the materialized view whose rows it holds, which
    has a number of its own."""
    temporary: Row = {"TEMPORARY": "Y"} if table.temporary else {}
    has_segment = not (table.partitioning or table.is_index_organized or table.temporary)
    names, times = (table.owner, table.name), (table.created, table.changed)
    data_object = table.data_object_id if has_segment else None
    yield _object(*names, table.object_id, data_object, "TABLE", *times) | temporary
    if table.query is not None:
        number = _MATERIALIZED_FIRST + table.object_id
        yield _object(*names, number, None, "MATERIALIZED VIEW", *times)
    for one in table.partitioning.partitions if table.partitioning else ():
        yield from _partitions(table, one)
    for index in table.indexes:
        data_object = None if table.temporary else _index_data_object(table, index)
        row = _object(
            index.owner,
            index.name,
            index.object_id,
            data_object,
            "INDEX",
            table.created,
            table.created,
        )
        yield row | temporary


@lru_cache(maxsize=64)
def _system_objects(
    views: frozenset[str], packages: frozenset[str], created: float
) -> tuple[Row, ...]:
    """Computed views and packages, which are the same as long as the database runs."""
    names = [
        (name.replace("V$", "V_$", 1) if name.startswith(("V$", "GV$")) else name, "VIEW")
        for name in sorted(views)
    ]
    names += [(name, "PACKAGE") for name in sorted(packages)]
    return tuple(
        {
            **_object("SYS", name, number, None, kind, created, created),
            "ORACLE_MAINTAINED": "Y",
        }
        for number, (name, kind) in enumerate(names, _SYSTEM_OBJECT_FIRST)
    )


def _index_data_object(table: TableDef, index: IndexDef) -> int:
    """The rows of an index-organized table lie in its top index, which gets another segment with
    them."""
    is_top = index == table.top_index and table.data_object_id != table.object_id
    return table.data_object_id if is_top else index.object_id


def _partitions(table: TableDef, one: Partition) -> Iterator[Row]:
    """A partition that has subpartitions has no segment."""
    for part, kind in (
        (one, "TABLE PARTITION"),
        *((sub, "TABLE SUBPARTITION") for sub in one.subpartitions),
    ):
        data_object = part.data_object_id or None
        row = _object(
            table.owner,
            table.name,
            part.object_id,
            data_object,
            kind,
            table.created,
            table.changed,
        )
        yield {**row, "SUBOBJECT_NAME": part.name}


def _object(
    owner: str,
    name: str,
    object_id: int,
    data_object_id: int | None,
    kind: str,
    created: float,
    changed: float,
) -> Row:
    return {
        "OWNER": owner, "OBJECT_NAME": name, "OBJECT_ID": object_id, "DATA_OBJECT_ID": data_object_id, "OBJECT_TYPE": kind,
        "CREATED": created, "LAST_DDL_TIME": changed,
        "TIMESTAMP": _printed(changed), "STATUS": "VALID", "TEMPORARY": "N",
        "GENERATED": "N", "SECONDARY": "N", "NAMESPACE": 4 if kind == "INDEX" else 1, "SHARING": "NONE", "ORACLE_MAINTAINED": "N",
    }  # fmt: skip


@lru_cache(maxsize=4096)
def _printed(seconds: float) -> str:
    return print_date(date_from_epoch(seconds), "YYYY-MM-DD:HH24:MI:SS")


@VIEWS.single("TAB", "TNAME:v128 TABTYPE:v13 CLUSTERID:n")
def _named(view: View) -> Iterator[Row]:
    """The user's tables, views, clusters and synonyms."""
    for row in _objects(view):
        kind = row["OBJECT_TYPE"]
        if row["OWNER"] == view.session.username and kind in (
            "TABLE",
            "VIEW",
            "CLUSTER",
            "SYNONYM",
        ):
            yield {"TNAME": row["OBJECT_NAME"], "TABTYPE": kind}


@VIEWS.family("CATALOG", "OWNER:v128 TABLE_NAME:v128 TABLE_TYPE:v11", object_name="TABLE_NAME")
def _catalog(view: View) -> Iterator[Row]:
    for row in _objects(view):
        kind = row["OBJECT_TYPE"]
        if kind in ("TABLE", "VIEW", "CLUSTER", "SYNONYM", "SEQUENCE"):
            yield {"OWNER": row["OWNER"], "TABLE_NAME": row["OBJECT_NAME"], "TABLE_TYPE": kind}


@VIEWS.single("DICTIONARY", "TABLE_NAME:v128 COMMENTS:v4000")
def _dictionary(view: View) -> Iterator[Row]:
    return ({"TABLE_NAME": name} for name in sorted(view.database.computed_views()))


VIEWS.synonyms |= {"CAT": "USER_CATALOG", "DICT": "DICTIONARY"}


@VIEWS.family(
    "VIEWS",
    "OWNER:v128 VIEW_NAME:v128 TEXT_LENGTH:n TEXT:v32767 TEXT_VC:v4000 TYPE_TEXT_LENGTH:n TYPE_TEXT:v4000 OID_TEXT_LENGTH:n"
    " OID_TEXT:v4000 VIEW_TYPE_OWNER:v128 VIEW_TYPE:v128 SUPERVIEW_NAME:v128 EDITIONING_VIEW:v1 READ_ONLY:v1 CONTAINER_DATA:v1"
    " BEQUEATH:v12 ORIGIN_CON_ID:n DEFAULT_COLLATION:v100 CONTAINERS_DEFAULT:v3 CONTAINER_MAP:v3 EXTENDED_DATA_LINK:v3"
    " EXTENDED_DATA_LINK_MAP:v3 HAS_SENSITIVE_COLUMN:v3 ADMIT_NULL:v3 PDB_LOCAL_ONLY:v3",
    object_name="VIEW_NAME",
)
def _views(view: View) -> Iterator[Row]:
    for item in view.definitions():
        if isinstance(item, ViewDef):
            yield {
                "OWNER": item.owner, "VIEW_NAME": item.name, "TEXT_LENGTH": len(item.text), "TEXT": item.text, "TEXT_VC": item.text[:4000],
                "EDITIONING_VIEW": "N", "READ_ONLY": "N", "CONTAINER_DATA": "N", "BEQUEATH": "DEFINER", "ORIGIN_CON_ID": 3,
                "DEFAULT_COLLATION": "USING_NLS_COMP", "CONTAINERS_DEFAULT": "NO", "CONTAINER_MAP": "NO", "EXTENDED_DATA_LINK": "NO",
                "EXTENDED_DATA_LINK_MAP": "NO", "HAS_SENSITIVE_COLUMN": "NO", "ADMIT_NULL": "NO", "PDB_LOCAL_ONLY": "NO",
            }  # fmt: skip


@VIEWS.family(
    "SEQUENCES",
    "SEQUENCE_OWNER:v128 SEQUENCE_NAME:v128 MIN_VALUE:n MAX_VALUE:n INCREMENT_BY:n CYCLE_FLAG:v1 ORDER_FLAG:v1 CACHE_SIZE:n LAST_NUMBER:n"
    " SCALE_FLAG:v1 EXTEND_FLAG:v1 SESSION_FLAG:v1 KEEP_VALUE:v1",
    owner="SEQUENCE_OWNER",
    object_name="SEQUENCE_NAME",
)
def _sequences(view: View) -> Iterator[Row]:
    for item in view.definitions():
        if isinstance(item, SequenceDef):
            yield {
                "SEQUENCE_OWNER": item.owner, "SEQUENCE_NAME": item.name, "MIN_VALUE": item.minimum, "MAX_VALUE": item.maximum,
                "INCREMENT_BY": item.increment, "CYCLE_FLAG": "Y" if item.cycle else "N", "ORDER_FLAG": "Y" if item.order else "N",
                "CACHE_SIZE": item.cache, "LAST_NUMBER": view.database.sequences.last_number(item), "SCALE_FLAG": "N",
                "EXTEND_FLAG": "N", "SESSION_FLAG": "N", "KEEP_VALUE": "N",
            }  # fmt: skip


@VIEWS.family(
    "SYNONYMS",
    "OWNER:v128 SYNONYM_NAME:v128 TABLE_OWNER:v128 TABLE_NAME:v128 DB_LINK:v128 ORIGIN_CON_ID:n",
)
def _synonyms(view: View) -> Iterator[Row]:
    for item in view.definitions():
        if isinstance(item, SynonymDef):
            yield {
                "OWNER": item.owner,
                "SYNONYM_NAME": item.name,
                "TABLE_OWNER": item.target_owner,
                "TABLE_NAME": item.target_name,
                "ORIGIN_CON_ID": 3,
            }


# --- users and privileges -------------------------------------------------------------------------

_USER_COLUMNS = (
    "USERNAME:v128 USER_ID:n ACCOUNT_STATUS:v32 LOCK_DATE:d EXPIRY_DATE:d DEFAULT_TABLESPACE:v30 TEMPORARY_TABLESPACE:v30 CREATED:d"
    " PROFILE:v128 AUTHENTICATION_TYPE:v8 COMMON:v3 ORACLE_MAINTAINED:v1 LAST_LOGIN:d"
)


def _users(view: View) -> Iterator[Row]:
    yield _user("SYS", 0, False, view.database.started, common=True, maintained=True)
    yield _user("SYSTEM", 9, True, view.database.started, common=True, maintained=True)
    for item in view.definitions():
        if isinstance(item, UserDef) and not item.is_role:
            yield _user(
                item.name,
                item.object_id,
                item.locked,
                item.created,
                common=item.common,
                maintained=False,
            )


def _user(
    name: str, number: int, locked: bool, created: float, *, common: bool, maintained: bool
) -> Row:
    return {
        "USERNAME": name, "USER_ID": number, "ACCOUNT_STATUS": "LOCKED" if locked else "OPEN", "DEFAULT_TABLESPACE": "USERS",
        "TEMPORARY_TABLESPACE": "TEMP", "CREATED": created, "PROFILE": "DEFAULT", "AUTHENTICATION_TYPE": "PASSWORD",
        "COMMON": "YES" if common else "NO", "ORACLE_MAINTAINED": "Y" if maintained else "N",
    }  # fmt: skip


_LIMITS = {
    "KERNEL": (
        "COMPOSITE_LIMIT", "SESSIONS_PER_USER", "CPU_PER_SESSION", "CPU_PER_CALL", "LOGICAL_READS_PER_SESSION", "LOGICAL_READS_PER_CALL",
        "IDLE_TIME", "CONNECT_TIME", "PRIVATE_SGA",
    ),
    "PASSWORD": (
        "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LIFE_TIME", "PASSWORD_REUSE_TIME", "PASSWORD_REUSE_MAX", "PASSWORD_VERIFY_FUNCTION",
        "PASSWORD_LOCK_TIME", "PASSWORD_GRACE_TIME", "INACTIVE_ACCOUNT_TIME",
    ),
}  # fmt: skip


@VIEWS.single(
    "DBA_PROFILES",
    "PROFILE:v128 RESOURCE_NAME:v32 RESOURCE_TYPE:v8 LIMIT:v128 COMMON:v3 INHERITED:v3 IMPLICIT:v3",
)
def _profiles(_view: View) -> Iterator[Row]:
    """DEFAULT, which limits nothing here."""
    for kind, names in _LIMITS.items():
        for name in names:
            yield {
                "PROFILE": "DEFAULT", "RESOURCE_NAME": name, "RESOURCE_TYPE": kind, "COMMON": "NO", "INHERITED": "NO", "IMPLICIT": "NO",
                "LIMIT": "NULL" if name == "PASSWORD_VERIFY_FUNCTION" else "UNLIMITED",
            }  # fmt: skip


@VIEWS.single(
    "V$PWFILE_USERS",
    "USERNAME:v128 SYSDBA:v5 SYSOPER:v5 SYSASM:v5 SYSBACKUP:v5 SYSDG:v5 SYSKM:v5 ACCOUNT_STATUS:v30 PASSWORD_PROFILE:v128"
    " LAST_LOGIN:d LOCK_DATE:d EXPIRY_DATE:d EXTERNAL_NAME:v1024 AUTHENTICATION_TYPE:v8 COMMON:v3 CON_ID:n",
)
def _administrators(view: View) -> Iterator[Row]:
    """Who may log in AS SYSDBA."""
    for row in _users(view):
        user = view.database.store.catalog.user(str(row["USERNAME"]))
        if row["USERNAME"] == SYS or (user is not None and "SYSDBA" in user.privileges):
            names = ("SYSOPER", "SYSASM", "SYSBACKUP", "SYSDG", "SYSKM")
            yield {**row, "SYSDBA": "TRUE", **dict.fromkeys(names, "FALSE"), "CON_ID": 0}


VIEWS.single("DBA_USERS", _USER_COLUMNS)(_users)
VIEWS.single("ALL_USERS", "USERNAME:v128 USER_ID:n CREATED:d COMMON:v3 ORACLE_MAINTAINED:v1")(
    _users
)


@VIEWS.single("USER_USERS", _USER_COLUMNS)
def _own_user(view: View) -> Iterator[Row]:
    return (row for row in _users(view) if row["USERNAME"] == view.session.username)


def _grantees(view: View) -> Iterator[UserDef]:
    return (item for item in view.definitions() if isinstance(item, UserDef))


def _role_names(view: View) -> set[str]:
    return set(ROLES) | {item.name for item in _grantees(view) if item.is_role}


def _system_privileges(view: View) -> Iterator[Row]:
    roles = _role_names(view)
    for item in _grantees(view):
        for privilege in item.privileges:
            if privilege not in roles:
                yield {
                    "GRANTEE": item.name,
                    "USERNAME": item.name,
                    "PRIVILEGE": privilege,
                    "ADMIN_OPTION": "NO",
                    "COMMON": "NO",
                    "INHERITED": "NO",
                }
    for role, privileges in ROLES.items():
        for privilege in privileges:
            if privilege not in roles:
                yield {
                    "GRANTEE": role,
                    "PRIVILEGE": privilege,
                    "ADMIN_OPTION": "NO",
                    "COMMON": "YES",
                    "INHERITED": "NO",
                }


def _role_grants(view: View) -> Iterator[Row]:
    roles = _role_names(view)
    for item in _grantees(view):
        for privilege in item.privileges:
            if privilege in roles:
                yield {
                    "GRANTEE": item.name,
                    "USERNAME": item.name,
                    "GRANTED_ROLE": privilege,
                    "ADMIN_OPTION": "NO",
                    "DEFAULT_ROLE": "YES",
                    "COMMON": "NO",
                }


VIEWS.single("DBA_SYS_PRIVS", "GRANTEE:v128 PRIVILEGE:v40 ADMIN_OPTION:v3 COMMON:v3 INHERITED:v3")(
    _system_privileges
)
VIEWS.single(
    "DBA_ROLE_PRIVS", "GRANTEE:v128 GRANTED_ROLE:v128 ADMIN_OPTION:v3 DEFAULT_ROLE:v3 COMMON:v3"
)(_role_grants)


@VIEWS.single(
    "USER_SYS_PRIVS", "USERNAME:v128 PRIVILEGE:v40 ADMIN_OPTION:v3 COMMON:v3 INHERITED:v3"
)
def _own_system_privileges(view: View) -> Iterator[Row]:
    return (row for row in _system_privileges(view) if row["GRANTEE"] == view.session.username)


@VIEWS.single(
    "USER_ROLE_PRIVS", "USERNAME:v128 GRANTED_ROLE:v128 ADMIN_OPTION:v3 DEFAULT_ROLE:v3 COMMON:v3"
)
def _own_role_grants(view: View) -> Iterator[Row]:
    return (row for row in _role_grants(view) if row["GRANTEE"] == view.session.username)


@VIEWS.single("SESSION_PRIVS", "PRIVILEGE:v40")
def _session_privileges(view: View) -> Iterator[Row]:
    roles = _role_names(view)
    for privilege in sorted(view.database.security.all_of(view.session.username)):
        if privilege not in roles:
            yield {"PRIVILEGE": privilege}


@VIEWS.single("SESSION_ROLES", "ROLE:v128")
def _session_roles(view: View) -> Iterator[Row]:
    roles = _role_names(view)
    for privilege in sorted(view.database.security.all_of(view.session.username)):
        if privilege in roles:
            yield {"ROLE": privilege}


def _roles_of(view: View) -> set[str]:
    """The roles of which a user sees what they hold: its own, and all for who reads the catalog."""
    roles = _role_names(view)
    security, user = view.database.security, view.session.username
    return roles if security.may_read_catalog(user, "DBA_ROLES") else roles & security.all_of(user)


@VIEWS.single("ROLE_SYS_PRIVS", "ROLE:v128 PRIVILEGE:v40 ADMIN_OPTION:v3 COMMON:v3 INHERITED:v3")
def _system_privileges_of_roles(view: View) -> Iterator[Row]:
    shown = _roles_of(view)
    rows = (row for row in _system_privileges(view) if row["GRANTEE"] in shown)
    return ({**row, "ROLE": row["GRANTEE"]} for row in rows)


@VIEWS.single(
    "ROLE_ROLE_PRIVS", "ROLE:v128 GRANTED_ROLE:v128 ADMIN_OPTION:v3 COMMON:v3 INHERITED:v3"
)
def _roles_of_roles(view: View) -> Iterator[Row]:
    shown = _roles_of(view)
    granted = [(row["GRANTEE"], row["GRANTED_ROLE"]) for row in _role_grants(view)]
    granted += [(role, one) for role, held in ROLES.items() for one in held if one in ROLES]
    for role, one in granted:
        if role in shown:
            yield {"ROLE": role, "GRANTED_ROLE": one, "ADMIN_OPTION": "NO", "COMMON": "YES", "INHERITED": "NO"}  # fmt: skip


@VIEWS.single(
    "ROLE_TAB_PRIVS",
    "ROLE:v128 OWNER:v128 TABLE_NAME:v128 COLUMN_NAME:v128 PRIVILEGE:v40 GRANTABLE:v3 COMMON:v3 INHERITED:v3",
)
def _grants_of_roles(view: View) -> Iterator[Row]:
    shown = _roles_of(view)
    rows = (row for row in _table_grants(view) if row["GRANTEE"] in shown)
    return ({**row, "ROLE": row["GRANTEE"], "COLUMN_NAME": None} for row in rows)


@VIEWS.single("DBA_ROLES", "ROLE:v128 PASSWORD_REQUIRED:v8 COMMON:v3 ORACLE_MAINTAINED:v1")
def _roles(view: View) -> Iterator[Row]:
    for role in sorted(_role_names(view)):
        yield {
            "ROLE": role,
            "PASSWORD_REQUIRED": "NO",
            "COMMON": "YES",
            "ORACLE_MAINTAINED": "Y" if role in ROLES else "N",
        }


def _table_grants(view: View) -> Iterator[Row]:
    for item in _grantees(view):
        for privilege, owner, name in item.grants:
            yield {
                "GRANTEE": item.name, "OWNER": owner, "TABLE_SCHEMA": owner, "TABLE_NAME": name, "GRANTOR": owner, "PRIVILEGE": privilege,
                "GRANTABLE": "NO", "HIERARCHY": "NO", "COMMON": "NO", "TYPE": "TABLE", "INHERITED": "NO",
            }  # fmt: skip


_GRANT_COLUMNS = " TABLE_NAME:v128 GRANTOR:v128 PRIVILEGE:v40 GRANTABLE:v3 HIERARCHY:v3 COMMON:v3 TYPE:v24 INHERITED:v3"
VIEWS.single("DBA_TAB_PRIVS", "GRANTEE:v128 OWNER:v128" + _GRANT_COLUMNS)(_table_grants)


@VIEWS.single(
    "ALL_TAB_PRIVS",
    "GRANTOR:v128 GRANTEE:v128 TABLE_SCHEMA:v128 TABLE_NAME:v128 PRIVILEGE:v40 GRANTABLE:v3 HIERARCHY:v3 COMMON:v3 TYPE:v24 INHERITED:v3",
)
def _visible_grants(view: View) -> Iterator[Row]:
    mine = {view.session.username, "PUBLIC", *view.database.security.all_of(view.session.username)}
    return (
        row
        for row in _table_grants(view)
        if row["GRANTEE"] in mine or row["OWNER"] == view.session.username
    )


@VIEWS.single("USER_TAB_PRIVS", "GRANTEE:v128 OWNER:v128" + _GRANT_COLUMNS)
def _own_grants(view: View) -> Iterator[Row]:
    mine = view.session.username
    return (row for row in _table_grants(view) if mine in (row["GRANTEE"], row["OWNER"]))
