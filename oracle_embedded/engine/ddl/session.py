"""What do ALTER SESSION, ALTER SYSTEM and ALTER DATABASE do?"""

from __future__ import annotations

import re
from functools import lru_cache

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes import temporal
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.formats.dates import print_date
from oracle_embedded.engine.functions.sorting import is_sort
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.sql.lexer import normalise
from oracle_embedded.engine.storage.editions import checked_edition

_FORMATS = {
    "NLS_DATE_FORMAT",
    "NLS_TIMESTAMP_FORMAT",
    "NLS_TIMESTAMP_TZ_FORMAT",
    "NLS_TIME_FORMAT",
    "NLS_TIME_TZ_FORMAT",
}
_FIXED = {
    "NLS_CALENDAR": ("GREGORIAN",),
    "NLS_DATE_LANGUAGE": ("AMERICAN", "ENGLISH"),
    "NLS_LANGUAGE": ("AMERICAN", "ENGLISH"),
    "NLS_COMP": ("BINARY", "ANSI", "LINGUISTIC"),
}
_WITHOUT_EFFECT = frozenset(
    [
        "SORT_AREA_SIZE",
        "HASH_AREA_SIZE",
        "SORT_AREA_RETAINED_SIZE",
        "WORKAREA_SIZE_POLICY",
        "OPTIMIZER_MODE",
        "DB_FILE_MULTIBLOCK_READ_COUNT",
        "CURSOR_SHARING",
        "EVENTS",
        "STATISTICS_LEVEL",
        "TRACEFILE_IDENTIFIER",
        "SQL_TRACE",
        "PLSQL_OPTIMIZE_LEVEL",
        "DDL_LOCK_TIMEOUT",
        "SESSION_CACHED_CURSORS",
        "PARALLEL_DEGREE_POLICY",
        "NLS_LENGTH_SEMANTICS",
    ]
)
_SYSTEM_WITHOUT_EFFECT = frozenset(
    {"RESOURCE_LIMIT", "OPEN_CURSORS", "PROCESSES", "STATISTICS_LEVEL"}
)
_RETENTION_MAX = 2**31 - 1
_DATABASE_ZONE = re.compile(r"SET\s+TIME_ZONE\s*=\s*'([^']+)'", re.IGNORECASE)
_KILLED = re.compile(
    r"KILL SESSION (\d+)\s*,\s*(\d+)(?:\s*,\s*@\d+)?(?: IMMEDIATE| FORCE| NOREPLAY)*"
)


def alter_session(session: SessionState, node: nodes.AlterSession) -> None:
    """ALTER SESSION SET …

    Raises:
        OracleError: ORA-02248 for an unknown setting, ORA-01821 and the like for values that cannot
            be.
    """
    for name, value in node.settings:
        _set(session, name, value)


def _set(session: SessionState, name: str, value: str) -> None:
    if name in _FORMATS:
        _check_format(value)
        session.nls[name] = value
    elif name == "TIME_ZONE":
        zone = {"LOCAL": "+00:00", "DBTIMEZONE": session.database.zone_at()}.get(
            value.upper(), value
        )
        temporal.zone_offset(zone, temporal.now())
        session.time_zone = zone
    elif name == "RECYCLEBIN":
        session.has_recycle_bin = value.upper() == "ON"
    elif name == "ISOLATION_LEVEL":
        session.is_serializable = value.upper() == "SERIALIZABLE"
    elif name == "CURRENT_SCHEMA":
        session.set_schema(value)
    elif name == "ROW ARCHIVAL VISIBILITY":
        session.shows_archived = value == "ALL"
    elif name == "EDITION":
        if session.transaction is not None:
            raise OracleError(38814, "ALTER SESSION SET EDITION must be first statement of transaction")  # fmt: skip
        session.edition = checked_edition(session.database.store.catalog, value.upper())
    elif name == "CONTAINER":
        _set_container(session, value)
    elif name == "NLS_NUMERIC_CHARACTERS":
        if (
            len(value) != 2
            or value[0] == value[1]
            or any(letter.isdigit() or letter in "+-<>" for letter in value)
        ):
            raise OracleError(
                12705, "Cannot access NLS data files or invalid environment specified"
            )
        session.nls[name] = value
    elif name == "NLS_SORT":
        if not is_sort(value.upper()):
            raise OracleError(3001, f"unimplemented feature: {name} = {value}")
        session.nls[name] = value.upper()
    elif name in _FIXED:
        if value.upper() not in _FIXED[name]:
            raise OracleError(3001, f"unimplemented feature: {name} = {value}")
        session.nls[name] = value.upper()
    elif name in session.nls and name not in _WITHOUT_EFFECT:
        session.nls[name] = value
    elif name not in _WITHOUT_EFFECT:
        raise OracleError(2248, "invalid option for ALTER SESSION")


@lru_cache(maxsize=256)
def _check_format(model: str) -> None:
    """Raises what a date format model that cannot be raises."""
    print_date(temporal.zoned_of(0, 0), model)


def _set_container(session: SessionState, name: str) -> None:
    database = session.database
    if name not in ("CDB$ROOT", database.container_name, *database.other_containers):
        raise OracleError(65011, f"Pluggable database {name} does not exist.")
    if name == session.container:
        return
    user = database.store.catalog.user(session.username)
    if user is None or not user.common:
        raise ora(1031)
    if not session.has_privilege("SET CONTAINER"):
        raise ora(1031)
    if session.transaction is not None:
        raise OracleError(65023, "active transaction exists in container " + session.container)
    if session.move is not None:
        session.move(name)
    elif name in database.other_containers:
        raise OracleError(3001, "unimplemented feature: a session that changes its container")
    else:
        session.container = name


def alter_system(session: SessionState, node: nodes.AlterSystem, text: str) -> None:
    """ALTER SYSTEM and ALTER DATABASE.

    Raises:
        OracleError: ORA-01031 without the right, ORA-02065 or ORA-03001 for what this database does
            not have.
    """
    database = session.database
    if node.target == "INDEX":
        return
    privilege = "ALTER SYSTEM" if node.target == "SYSTEM" else "ALTER DATABASE"
    if not session.has_privilege(privilege):
        raise ora(1031)
    if node.settings:
        for name, value in node.settings:
            _set_system(session, name, value)
        return
    words = normalise(node.words)
    if node.target == "SYSTEM" and words in ("FLUSH SHARED_POOL", "FLUSH BUFFER_CACHE", "REGISTER"):
        return
    if node.target == "SYSTEM" and words.startswith("KILL SESSION"):
        _kill_session(session, words)
        return
    if node.target != "SYSTEM" and (found := _DATABASE_ZONE.fullmatch(node.words.strip())):
        database.set_time_zone(found[1])
        return
    hooks = (
        database.alter_system_hooks()
        if node.target == "SYSTEM"
        else database.alter_database_hooks()
    )
    hook = hooks.get(words)
    if hook is None:
        raise OracleError(3001, f"unimplemented feature: ALTER {node.target} {words}")
    hook(session)
    if node.target != "SYSTEM":
        database.log_ddl(session, text)


def _kill_session(session: SessionState, words: str) -> None:
    found = _KILLED.fullmatch(words)
    if found is None:
        raise OracleError(26, "missing or invalid session ID")
    session_id, serial = map(int, found.groups())
    victim = session.database.sessions.get(session_id)
    if victim is None or victim.serial != serial:
        raise OracleError(30, "User session ID does not exist.")
    if victim is session:
        raise OracleError(27, "cannot kill current session")
    victim.kill()


def _set_system(session: SessionState, name: str, value: str) -> None:
    database = session.database
    if name == "UNDO_RETENTION":
        if not value.isdigit() or int(value) > _RETENTION_MAX:
            raise OracleError(
                2097, "parameter cannot be modified because specified value is invalid"
            )
        with database.store.writing():
            database.store.catalog.set_setting("undo_retention", value)
    elif name in database.system_settings:
        with database.store.writing():
            database.store.catalog.set_setting(f"parameter.{name}", value)
    elif name not in _SYSTEM_WITHOUT_EFFECT:
        raise OracleError(2065, "illegal option for ALTER SYSTEM")
