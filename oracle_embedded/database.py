"""How is an embedded Oracle put together: storage, SQL engine, redo, and its first users?"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from oracle_embedded.api import VERSIONS
from oracle_embedded.charsets import character_sets
from oracle_embedded.engine.database import Database
from oracle_embedded.faults import PACKAGE as FAULTS
from oracle_embedded.faults import FaultRegistry
from oracle_embedded.redo import Redo, RedoSettings, open_redo

ADMIN = "REDOLAKE_ADMIN"
CAPTURE = "C##REDOLAKE"
OWNER = "DEMO"
_CAPTURE_VIEWS = (
    "V_$DATABASE", "V_$LOG", "V_$LOG_HISTORY", "V_$LOGMNR_LOGS", "V_$LOGMNR_CONTENTS", "V_$LOGMNR_PARAMETERS", "V_$LOGFILE",
    "V_$ARCHIVED_LOG", "V_$ARCHIVE_DEST_STATUS", "V_$TRANSACTION", "V_$MYSTAT", "V_$STATNAME", "V_$DATAFILE",
    "V_$TABLESPACE", "V_$PDBS", "GV_$SESSION",
)  # fmt: skip
_CAPTURE_PRIVILEGES = (
    "CREATE SESSION", "SET CONTAINER", "FLASHBACK ANY TABLE", "SELECT ANY TABLE", "SELECT_CATALOG_ROLE", "EXECUTE_CATALOG_ROLE",
    "SELECT ANY TRANSACTION", "LOGMINING", "CREATE TABLE", "LOCK ANY TABLE", "CREATE SEQUENCE",
)  # fmt: skip
_OWNER_PRIVILEGES = (
    "CREATE SESSION", "ALTER SESSION", "CREATE TABLE", "CREATE CLUSTER", "CREATE VIEW", "CREATE SEQUENCE", "CREATE SYNONYM", "UNLIMITED TABLESPACE",
    "CREATE PROCEDURE", "CREATE TRIGGER", "CREATE TYPE", "CREATE MATERIALIZED VIEW",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """An open database with its redo, and the faults that its server consults; ``close`` ends
    both."""

    engine: Database
    redo: Redo
    faults: FaultRegistry

    def password(self, user: str) -> str:
        """Clear password of one of the first users."""
        found = self.engine.password_of(user)
        if found is None:
            raise KeyError(user)
        return found

    def close(self) -> None:
        """End all sessions and release the storage. May be called twice."""
        self.engine.close()


def open_database(
    data_dir: Path | None = None,
    *,
    passwords: Mapping[str, str] | None = None,
    redo_settings: RedoSettings | None = None,
    now: Callable[[], float] = time.time,
    extended_strings: bool = False,
    character_set: str = "",
    national_character_set: str = "",
    release: str = "19c",
    container: str = "ORCLPDB1",
    container_id: int = 3,
    nls_sort: str = "",
    nls_comp: str = "",
    time_zone: str = "+00:00",
) -> OpenDatabase:
    """Open the database in a folder, making it if it is not there.

    A new database has the users REDOLAKE_ADMIN (administrator), C##REDOLAKE (capture, with the
    grants that LogMiner capture needs), DEMO (an ordinary schema owner) and SYS.

    Args:
        data_dir: Where the data stays between runs; None for a database that is gone when it is
            closed.
        passwords: Passwords of the first users by name; the others of a new database are generated.
        redo_settings: Sizes and behaviour of the redo.
        now: The clock, in seconds since 1970.
        extended_strings: MAX_STRING_SIZE is EXTENDED; a database never goes back from it.
        character_set: Of a new database, AL32UTF8 unless said; one of
            :data:`oracle_embedded.charsets.DATABASE_NAMES`.
        national_character_set: Likewise: AL16UTF16, or UTF8.
        release: Which release its views name, ``19c`` or ``23ai``.
        container: Name of the pluggable database.
        container_id: Its number.
        nls_sort: NLS_SORT of the instance, with which sessions begin: a database keeps its own,
            BINARY unless said.
        nls_comp: NLS_COMP likewise.
        time_zone: DBTIMEZONE of a new database: an offset, or the name of a region.

    Raises:
        ValueError: There is no such release, set or sort, or the database in the folder has another
            set.
    """
    if release not in VERSIONS:
        raise ValueError(f"there is no release {release}: choose from {', '.join(VERSIONS)}")
    sets = character_sets(character_set or "AL32UTF8", national_character_set or "AL16UTF16")
    engine = Database(
        data_dir,
        now=now,
        sets=sets,
        container=container,
        container_id=container_id,
        time_zone=time_zone,
    )
    for name, has in (
        (character_set, engine.character_sets.database.name),
        (national_character_set, engine.character_sets.national.name),
    ):
        if name and name != has:
            engine.close()
            raise ValueError(f"the database has the character set {has}, and keeps it")
    engine.release = release
    if nls_sort or nls_comp:
        engine.set_sort(nls_sort or engine.nls["NLS_SORT"], nls_comp or engine.nls["NLS_COMP"])
    if extended_strings:
        engine.extend_strings()
    if engine.is_new:
        grants = [("SELECT", "SYS", view) for view in _CAPTURE_VIEWS]
        grants += [
            ("EXECUTE", "SYS", package) for package in ("DBMS_LOGMNR", "DBMS_LOGMNR_D", FAULTS)
        ]
        engine.create_user("PUBLIC", "", (), is_role=True, common=True)
        engine.create_user(ADMIN, secrets.token_urlsafe(12), ("DBA", "SYSDBA"), common=True)
        engine.create_user(
            CAPTURE,
            secrets.token_urlsafe(12),
            _CAPTURE_PRIVILEGES,
            grants,
            common=True,
            container_data=True,
        )
        engine.create_user(OWNER, secrets.token_urlsafe(12), _OWNER_PRIVILEGES)
    for name, password in (passwords or {}).items():
        engine.set_password(name, password)
    faults = FaultRegistry()
    redo = open_redo(engine, settings=redo_settings, faults=faults)
    engine.attach(redo)
    engine.recover()
    engine.add_procedures(faults.procedures())
    return OpenDatabase(engine, redo, faults)
