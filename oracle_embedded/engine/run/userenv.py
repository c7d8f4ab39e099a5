"""What does SYS_CONTEXT('USERENV', …) know?"""

from __future__ import annotations

from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.security import SYS


def user_environment(session: SessionState, name: str) -> str | None:
    """A value of the USERENV namespace; None for one that is not set or not known.

    Source:
        Oracle SQL Language Reference 19c, function SYS_CONTEXT, table of USERENV parameters.
    """
    database = session.database
    in_root = session.container == "CDB$ROOT"
    user = database.store.catalog.user(session.username)
    schema = database.store.catalog.user(session.schema)
    values: dict[str, str | None] = {
        "CURRENT_SCHEMA": session.schema,
        "CURRENT_SCHEMAID": str(schema.object_id) if schema else None,
        "CURRENT_USER": session.rights,
        "CURRENT_USERID": str(user.object_id) if user else None,
        "SESSION_USER": session.username,
        "SESSION_USERID": str(user.object_id) if user else None,
        "PROXY_USER": session.logon.proxy or None,
        "AUTHENTICATED_IDENTITY": session.logon.proxy or session.username,
        "CURRENT_EDITION_NAME": session.edition,
        "SESSION_EDITION_NAME": session.edition,
        "AUTHENTICATION_METHOD": "PASSWORD",
        "DB_NAME": session.container if not in_root else database.database_name,
        "CDB_NAME": database.database_name,
        "CON_NAME": session.container,
        "CON_ID": "1" if in_root else "3",
        "DB_UNIQUE_NAME": database.database_name,
        "DB_DOMAIN": None,
        "DATABASE_ROLE": "PRIMARY",
        "INSTANCE": "1",
        "INSTANCE_NAME": database.instance_name,
        "SERVER_HOST": "localhost",
        "SERVICE_NAME": session.container.lower(),
        "SID": str(session.session_id),
        "SESSION_SERIAL": str(session.serial),
        "SESSIONID": str(session.session_id * 1000 + session.serial % 1000),
        "HOST": session.logon.machine,
        "TERMINAL": session.logon.terminal,
        "OS_USER": session.logon.os_user,
        "IP_ADDRESS": "127.0.0.1",
        "NETWORK_PROTOCOL": "tcp",
        "LANGUAGE": f"AMERICAN_AMERICA.{session.database.character_sets.database.name}",
        "LANG": "US",
        "NLS_CALENDAR": session.nls["NLS_CALENDAR"],
        "NLS_CURRENCY": session.nls["NLS_CURRENCY"],
        "NLS_DATE_FORMAT": session.nls["NLS_DATE_FORMAT"],
        "NLS_DATE_LANGUAGE": session.nls["NLS_DATE_LANGUAGE"],
        "NLS_SORT": session.nls["NLS_SORT"],
        "NLS_TERRITORY": session.nls["NLS_TERRITORY"],
        "ISDBA": "TRUE" if session.username == SYS else "FALSE",
        "CLIENT_PROGRAM_NAME": session.logon.program,
        "MODULE": session.attributes.get("MODULE", session.logon.program),
        "ACTION": session.attributes.get("ACTION"),
        "CLIENT_IDENTIFIER": session.attributes.get("CLIENT_IDENTIFIER"),
        "CLIENT_INFO": session.attributes.get("CLIENT_INFO"),
        "CLOUD_SERVICE": None,
        "ORACLE_HOME": "/opt/oracle/product/19c/dbhome_1",
        "PLATFORM_SLASH": "/",
    }
    return values.get(name)
