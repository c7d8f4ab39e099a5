"""What do the views of the instance, its parameters and its sessions show, as far as the engine
knows?"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator

from oracle_embedded.api import COMPATIBLE, ROOT_DBID, VERSIONS, session_address
from oracle_embedded.engine.dictionary.activity import container_number
from oracle_embedded.engine.dictionary.registry import Row, View, Views
from oracle_embedded.engine.functions.context import NLS_DEFAULTS
from oracle_embedded.engine.storage.catalog import UserDef
from oracle_embedded.engine.storage.editions import editions
from oracle_embedded.engine.storage.transactions import UNDO_RETENTION_DEFAULT

VIEWS = Views()


def _full(view: View) -> str:
    return VERSIONS[view.database.release]


def _base(view: View) -> str:
    major, _, _ = _full(view).partition(".")
    return f"{major}.0.0.0.0"


def _product(view: View) -> str:
    return f"Oracle Database {view.database.release} Enterprise Edition "


@VIEWS.single("V$VERSION", "BANNER:v80 BANNER_FULL:v160 BANNER_LEGACY:v80 CON_ID:n")
def _version(view: View) -> Iterator[Row]:
    banner = f"{_product(view)}Release {_base(view)} - Production"
    yield {
        "BANNER": banner,
        "BANNER_FULL": f"{banner}\nVersion {_full(view)}",
        "BANNER_LEGACY": banner,
        "CON_ID": 0,
    }


@VIEWS.single("PRODUCT_COMPONENT_VERSION", "PRODUCT:v80 VERSION:v80 VERSION_FULL:v80 STATUS:v80")
def _component(view: View) -> Iterator[Row]:
    yield {
        "PRODUCT": _product(view),
        "VERSION": _base(view),
        "VERSION_FULL": _full(view),
        "STATUS": "Production",
    }


@VIEWS.single(
    "V$INSTANCE",
    "INSTANCE_NUMBER:n INSTANCE_NAME:v16 HOST_NAME:v64 VERSION:v17 VERSION_LEGACY:v17 VERSION_FULL:v17 STARTUP_TIME:d STATUS:v12 PARALLEL:v3"
    " THREAD#:n ARCHIVER:v7 LOGINS:v10 SHUTDOWN_PENDING:v3 DATABASE_STATUS:v17 INSTANCE_ROLE:v18 ACTIVE_STATE:v9 BLOCKED:v3 CON_ID:n"
    " INSTANCE_MODE:v11 EDITION:v7 DATABASE_TYPE:v15",
)
def _instance(view: View) -> Iterator[Row]:
    yield {
        "INSTANCE_NUMBER": 1, "INSTANCE_NAME": view.database.instance_name, "HOST_NAME": "localhost", "VERSION": _base(view),
        "VERSION_LEGACY": _base(view), "VERSION_FULL": _full(view), "STARTUP_TIME": view.database.started, "STATUS": "OPEN", "PARALLEL": "NO",
        "THREAD#": 1, "ARCHIVER": "STARTED", "LOGINS": "ALLOWED", "SHUTDOWN_PENDING": "NO", "DATABASE_STATUS": "ACTIVE",
        "INSTANCE_ROLE": "PRIMARY_INSTANCE", "ACTIVE_STATE": "NORMAL", "BLOCKED": "NO", "CON_ID": 0, "INSTANCE_MODE": "REGULAR",
        "EDITION": "EE", "DATABASE_TYPE": "SINGLE",
    }  # fmt: skip


@VIEWS.single(
    "V$PDBS",
    "CON_ID:n DBID:n CON_UID:n NAME:v128 OPEN_MODE:v10 RESTRICTED:v3 OPEN_TIME:t CREATE_SCN:n TOTAL_SIZE:n",
)
def _pdbs(view: View) -> Iterator[Row]:
    """The session's own; in the root all, for users who may see what belongs to other
    containers."""
    in_root = view.session.container == "CDB$ROOT"
    user = view.database.store.catalog.user(view.session.username)
    if in_root and not (user and user.container_data) and not view.session.has_privilege("DBA"):
        return
    if in_root:
        known = view.database.other_containers
        for number, name in enumerate(
            sorted(view.database.closed_containers - {*known, view.database.container_name}), 5
        ):
            yield {"CON_ID": number, "NAME": name, "OPEN_MODE": "MOUNTED", "TOTAL_SIZE": 0}
        for name, number in known.items():
            yield {
                "CON_ID": number,
                "NAME": name,
                "OPEN_MODE": _open_mode(view, name),
                "TOTAL_SIZE": 0,
            }
    yield {
        "CON_ID": view.database.container_id, "DBID": view.database.container_dbid, "CON_UID": view.database.container_dbid, "NAME": view.database.container_name,
        "OPEN_MODE": _open_mode(view, view.database.container_name), "RESTRICTED": "NO", "OPEN_TIME": view.database.started, "CREATE_SCN": view.database.first_scn, "TOTAL_SIZE": 0,
    }  # fmt: skip


for _name in ("DBA_PDBS", "CDB_PDBS"):

    @VIEWS.single(
        _name,
        "PDB_ID:n PDB_NAME:v128 DBID:n CON_UID:n GUID:r16 STATUS:v10 CREATION_SCN:n VSN:n LOGGING:v9 CON_ID:n",
    )
    def _known_pdbs(view: View) -> Iterator[Row]:
        for row in _pdbs(view):
            yield {
                **row, "PDB_ID": row["CON_ID"], "PDB_NAME": row["NAME"], "STATUS": "NORMAL", "CREATION_SCN": row.get("CREATE_SCN"),
                "LOGGING": "LOGGING",
            }  # fmt: skip


def _open_mode(view: View, container: str) -> str:
    return "MOUNTED" if container in view.database.closed_containers else "READ WRITE"


@VIEWS.single("V$CONTAINERS", "CON_ID:n DBID:n NAME:v128 OPEN_MODE:v10 RESTRICTED:v3")
def _containers(view: View) -> Iterator[Row]:
    yield {
        "CON_ID": 1,
        "DBID": ROOT_DBID,
        "NAME": "CDB$ROOT",
        "OPEN_MODE": "READ WRITE",
        "RESTRICTED": "NO",
    }
    yield {
        "CON_ID": 3,
        "DBID": view.database.container_dbid,
        "NAME": view.database.container_name,
        "OPEN_MODE": "READ WRITE",
        "RESTRICTED": "NO",
    }


@VIEWS.single(
    "V$SESSION_CONNECT_INFO",
    "SID:n SERIAL#:n AUTHENTICATION_TYPE:v26 OSUSER:v128 NETWORK_SERVICE_BANNER:v4000 CLIENT_CHARSET:v40 CLIENT_CONNECTION:v13"
    " CLIENT_OCI_LIBRARY:v16 CLIENT_VERSION:v40 CLIENT_DRIVER:v30 CON_ID:n",
)
def _connect_info(view: View) -> Iterator[Row]:
    for session in list(view.database.sessions.values()):
        yield {
            "SID": session.session_id, "SERIAL#": session.serial, "AUTHENTICATION_TYPE": "PROXY" if session.logon.proxy else "DATABASE",
            "OSUSER": session.logon.os_user, "NETWORK_SERVICE_BANNER": "TCP/IP NT Protocol Adapter", "CLIENT_CHARSET": "AL32UTF8",
            "CLIENT_CONNECTION": "Heterogeneous", "CLIENT_DRIVER": session.logon.driver, "CON_ID": container_number(session.container),
        }  # fmt: skip


@VIEWS.single("V$SQL_MONITOR", "KEY:n STATUS:v19 USERNAME:v128 SID:n DBOP_NAME:v30 CON_ID:n")
def _monitored(view: View) -> Iterator[Row]:
    """Operations that clients have named; no statement is watched without one."""
    for session in list(view.database.sessions.values()):
        name = session.attributes.get("DBOP")
        if name:
            yield {"KEY": session.session_id, "STATUS": "EXECUTING", "USERNAME": session.username, "SID": session.session_id, "DBOP_NAME": name, "CON_ID": 3}  # fmt: skip


@VIEWS.single(
    "V$PROCESS",
    "ADDR:r8 PID:n SOSID:v24 SPID:v24 STID:v24 EXECUTION_TYPE:v20 PNAME:v5 USERNAME:v15 SERIAL#:n TERMINAL:v30 PROGRAM:v48"
    " TRACEID:v255 TRACEFILE:v513 BACKGROUND:v1 LATCHWAIT:v16 LATCHSPIN:v16 PGA_USED_MEM:n PGA_ALLOC_MEM:n PGA_FREEABLE_MEM:n"
    " PGA_MAX_MEM:n NUMA_DEFAULT:n NUMA_CURR:n CON_ID:n",
)
def _processes(view: View) -> Iterator[Row]:
    """The server's thread of each session."""
    for session in list(view.database.sessions.values()):
        number = str(session.session_id)
        yield {
            "ADDR": session_address(session.session_id).hex(), "PID": session.session_id, "SOSID": number, "SPID": number, "STID": number,
            "EXECUTION_TYPE": "THREAD", "USERNAME": "oracle", "SERIAL#": session.serial, "TERMINAL": "UNKNOWN",
            "PROGRAM": "oracle@localhost", "CON_ID": container_number(session.container),
        }  # fmt: skip


_OPTIONS = {
    "Partitioning": True, "Objects": True, "Real Application Clusters": False, "Advanced replication": False, "Java": False,
    "OLAP": False, "Spatial": False, "Oracle Label Security": False, "Oracle Database Vault": False, "Oracle Data Guard": True,
    "Flashback Table": True, "Flashback Database": False, "Fine-grained access control": True, "Deferred Segment Creation": False,
    "Materialized view rewrite": False, "Basic Compression": False, "Advanced Compression": False, "Real Application Testing": False,
    "Unified Auditing": False, "In-Memory Column Store": False, "XStream": False,
}  # fmt: skip
"""What this database has of an Enterprise Edition's options."""


@VIEWS.single("V$OPTION", "PARAMETER:v64 VALUE:v64 CON_ID:n")
def _options(_view: View) -> Iterator[Row]:
    return (
        {"PARAMETER": name, "VALUE": "TRUE" if is_there else "FALSE", "CON_ID": 0}
        for name, is_there in _OPTIONS.items()
    )


def _editions(view: View) -> Iterator[Row]:
    parent = None
    for name in editions(view.database.store.catalog):
        yield {"EDITION_NAME": name, "PARENT_EDITION_NAME": parent, "USABLE": "YES"}
        parent = name


for _name in ("ALL_EDITIONS", "DBA_EDITIONS"):
    VIEWS.single(_name, "EDITION_NAME:v128 PARENT_EDITION_NAME:v128 USABLE:v3")(_editions)


@VIEWS.single("PROXY_USERS", "PROXY:v128 CLIENT:v128 AUTHENTICATION:v3 FLAGS:v35")
def _proxies(view: View) -> Iterator[Row]:
    for user in view.database.store.catalog.all():
        for name in user.proxies if isinstance(user, UserDef) else ():
            yield {"PROXY": name, "CLIENT": user.name, "AUTHENTICATION": "NO", "FLAGS": "PROXY MAY ACTIVATE ALL CLIENT ROLES"}  # fmt: skip


def parameters_of(view: View) -> dict[str, str]:
    """Initialisation parameters in force."""
    catalog = view.database.store.catalog
    return {
        "compatible": COMPATIBLE, "db_block_size": "8192", "db_domain": "", "db_name": view.database.database_name, "db_unique_name": view.database.database_name,
        "enable_pluggable_database": "TRUE", "instance_name": view.database.instance_name, "max_string_size": "EXTENDED" if view.database.has_extended_strings else "STANDARD",
        "nls_length_semantics": "BYTE", "open_cursors": "300", "processes": "300", "undo_management": "AUTO",
        "undo_retention": catalog.setting("undo_retention") or str(UNDO_RETENTION_DEFAULT), "undo_tablespace": "UNDOTBS1",
        "enable_goldengate_replication": "FALSE", "streams_pool_size": "0", "statistics_level": "TYPICAL", "optimizer_mode": "ALL_ROWS",
    }  # fmt: skip


@VIEWS.single(
    "V$PARAMETER",
    "NUM:n NAME:v80 TYPE:n VALUE:v4000 DISPLAY_VALUE:v4000 DEFAULT_VALUE:v255 ISDEFAULT:v9 ISSES_MODIFIABLE:v5 ISSYS_MODIFIABLE:v9"
    " ISPDB_MODIFIABLE:v5 ISINSTANCE_MODIFIABLE:v5 ISMODIFIED:v10 DESCRIPTION:v255 CON_ID:n",
)
def _parameters(view: View) -> Iterator[Row]:
    for number, (name, value) in enumerate(sorted(parameters_of(view).items()), 1):
        yield {
            "NUM": number, "NAME": name, "TYPE": 3 if value.isdigit() else 1 if value in ("TRUE", "FALSE") else 2, "VALUE": value or None,
            "DISPLAY_VALUE": value or None, "ISDEFAULT": "TRUE", "ISSES_MODIFIABLE": "FALSE", "ISSYS_MODIFIABLE": "IMMEDIATE",
            "ISPDB_MODIFIABLE": "TRUE", "ISINSTANCE_MODIFIABLE": "TRUE", "ISMODIFIED": "FALSE", "CON_ID": 0,
        }  # fmt: skip


VIEWS.synonyms |= {"V$SYSTEM_PARAMETER": "V$PARAMETER"}


def _database_nls(view: View) -> dict[str, str]:
    sets = view.database.character_sets
    return {
        **NLS_DEFAULTS,
        "NLS_CHARACTERSET": sets.database.name,
        "NLS_NCHAR_CHARACTERSET": sets.national.name,
        "NLS_RDBMS_VERSION": _base(view),
    }


@VIEWS.single("NLS_DATABASE_PARAMETERS", "PARAMETER:v128 VALUE:v64")
def _nls_database(view: View) -> Iterator[Row]:
    return ({"PARAMETER": name, "VALUE": value} for name, value in _database_nls(view).items())


@VIEWS.single("NLS_INSTANCE_PARAMETERS", "PARAMETER:v128 VALUE:v64")
def _nls_instance(view: View) -> Iterator[Row]:
    return ({"PARAMETER": name, "VALUE": value} for name, value in view.database.nls.items())


@VIEWS.single("NLS_SESSION_PARAMETERS", "PARAMETER:v128 VALUE:v64")
def _nls_session(view: View) -> Iterator[Row]:
    return ({"PARAMETER": name, "VALUE": value} for name, value in view.session.nls.items())


@VIEWS.single("V$NLS_PARAMETERS", "PARAMETER:v64 VALUE:v64 CON_ID:n")
def _nls_parameters(view: View) -> Iterator[Row]:
    values = {**_database_nls(view), **view.session.nls}
    return (
        {"PARAMETER": name, "VALUE": value, "CON_ID": 0}
        for name, value in values.items()
        if name != "NLS_RDBMS_VERSION"
    )


@VIEWS.single("DATABASE_PROPERTIES", "PROPERTY_NAME:v128 PROPERTY_VALUE:v4000 DESCRIPTION:v4000")
def _properties(view: View) -> Iterator[Row]:
    values = {
        "DEFAULT_PERMANENT_TABLESPACE": "USERS",
        "DEFAULT_TEMP_TABLESPACE": "TEMP",
        "DBTIMEZONE": view.database.zone_at(),
        **_database_nls(view),
    }
    return ({"PROPERTY_NAME": name, "PROPERTY_VALUE": value} for name, value in values.items())


@VIEWS.single("GLOBAL_NAME", "GLOBAL_NAME:v128")
def _global_name(view: View) -> Iterator[Row]:
    yield {
        "GLOBAL_NAME": view.session.container
        if view.session.container != "CDB$ROOT"
        else view.database.database_name
    }


@VIEWS.single("V$TIMEZONE_NAMES", "TZNAME:v64 TZABBREV:v64 CON_ID:n")
def _zones(_view: View) -> Iterator[Row]:
    return (
        {"TZNAME": name, "TZABBREV": "LMT", "CON_ID": 0}
        for name in sorted(zoneinfo.available_timezones())
    )


@VIEWS.single(
    "DBA_TABLESPACES",
    "TABLESPACE_NAME:v30 BLOCK_SIZE:n STATUS:v9 CONTENTS:v21 LOGGING:v9 EXTENT_MANAGEMENT:v10",
)
def _tablespaces(_view: View) -> Iterator[Row]:
    for name, contents in (
        ("SYSTEM", "PERMANENT"),
        ("SYSAUX", "PERMANENT"),
        ("UNDOTBS1", "UNDO"),
        ("TEMP", "TEMPORARY"),
        ("USERS", "PERMANENT"),
    ):
        yield {
            "TABLESPACE_NAME": name,
            "BLOCK_SIZE": 8192,
            "STATUS": "ONLINE",
            "CONTENTS": contents,
            "LOGGING": "LOGGING",
            "EXTENT_MANAGEMENT": "LOCAL",
        }
