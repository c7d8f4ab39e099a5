"""What does a database administrator run, so that a source can be captured?

The statements are those of the findings' remedies, as the platform wants them, each with what takes
it back. A remedy that is no statement becomes a comment.

Source: Oracle Database SQL Language Reference 19c, GRANT, REVOKE, ALTER DATABASE, ALTER TABLE and
ALTER USER; Amazon RDS User Guide, "Performing common system tasks for Oracle DB instances".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cdc_core.config import LogsBy
from cdc_core.errors import OracleError
from cdc_core.model.findings import Finding
from cdc_core.oracle.session import ROOT, OracleSession

Platform = Literal["non-cdb", "cdb", "pdb", "rds", "autonomous"]
"""A database without containers; one whose root LogMiner runs in; a pluggable database whose root
is out of reach; Amazon RDS; Autonomous Database."""

_RUN_AS: dict[Platform, str] = {
    "non-cdb": "a database without containers: run it as SYSDBA",
    "cdb": "a container database: run it as SYSDBA in CDB$ROOT",
    "pdb": "a pluggable database whose root is out of reach: run it there, as a user with the role "
    "PDB_DBA and grants on SYS's views",
    "rds": "Amazon RDS: run it as the master user, with containers in the tenant database",
    "autonomous": "Autonomous Database: run it as ADMIN",
}
_CLOUD = "SELECT SYS_CONTEXT('USERENV', 'CLOUD_SERVICE') FROM DUAL"
_CONTAINER = (
    "SELECT SYS_CONTEXT('USERENV', 'CDB_NAME'), SYS_CONTEXT('USERENV', 'CON_NAME') FROM DUAL"
)
"""Known without a right; CDB_NAME is NULL in a database without containers."""

_RDS = "SELECT COUNT(*) FROM ALL_USERS WHERE USERNAME = 'RDSADMIN'"
_OF_ROOT = ("V_$", "GV_$", "DBMS_LOGMNR", "UTL_RAW")
"""Objects of SYS that LogMiner's session needs too, which runs in the root."""

_IF_IT_EXISTS = "If it exists: "
"""Before the right on a table that the user cannot see, which may be none."""

_NAME = r'(?:"[^"]+"|[\w$#]+)'
_GRANT_ON = re.compile(rf"GRANT ([A-Z, ]+?) ON ({_NAME}\.{_NAME}) TO ({_NAME})")
_GRANT = re.compile(rf"GRANT ([A-Z ]+?) TO ({_NAME})")
_ALL_COLUMNS = re.compile(
    rf"ALTER TABLE ({_NAME}\.{_NAME}) ADD SUPPLEMENTAL LOG DATA \(ALL\) COLUMNS"
)
_CONTAINER_DATA = re.compile(rf"ALTER USER ({_NAME}) SET CONTAINER_DATA = ALL CONTAINER = CURRENT")
_PDB = re.compile(rf"ALTER PLUGGABLE DATABASE ({_NAME}) (OPEN|SAVE STATE)")
_LOG_DATA = re.compile(r"ALTER DATABASE ADD SUPPLEMENTAL LOG DATA")
_FORCE = re.compile(r"ALTER DATABASE FORCE LOGGING")
_ARCHIVE = re.compile(
    r"SHUTDOWN IMMEDIATE; STARTUP MOUNT; ALTER DATABASE ARCHIVELOG; ALTER DATABASE OPEN"
)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a source's tables are: the platform, and the container that they are in."""

    platform: Platform
    container: str


@dataclass(frozen=True, slots=True)
class Statement:
    """What to run in a container (empty: where the script is run), and what takes it back."""

    container: str
    run: str
    undo: str


def read_site(session: OracleSession, logs_by: LogsBy) -> Site:
    """Ask a database what it is."""
    try:
        [(service,)] = session.fetch_all(_CLOUD)
    except OracleError:
        service = None  # a release that does not know the parameter
    [(amazon,)] = session.fetch_all(_RDS)
    [(database, container)] = session.fetch_all(_CONTAINER)
    if service or amazon:
        return Site("autonomous" if service else "rds", container)
    if database is None:
        return Site("non-cdb", container)
    return Site("cdb" if logs_by == "files" else "pdb", container)


def dba_script(source: str, found: Sequence[tuple[Site, Sequence[Finding]]]) -> str:
    """The script for a source, or for the parts of one in several pluggable databases.

    What is missing is to be run; what is only recommended, and what takes all of it back, stands in
    comments that begin with ``--optional`` and ``--undo``. Without a finding it has no statement.
    """
    needed: list[tuple[Statement, str]] = []
    optional: list[tuple[Statement, str]] = []
    words: list[str] = []
    for site, findings in found:
        for finding in findings:
            statements = list(statements_of(finding.remedy, site))
            into = needed if finding.is_problem else optional
            into += [(one, finding.problem) for one in statements]
            if not statements and finding.is_problem:
                words.append(f"-- * {finding.problem}: {finding.remedy}")
    needed, optional = _once(needed), _once(optional)
    platforms = dict.fromkeys(_RUN_AS[site.platform] for site, _ in found)
    lines = [
        f"-- What `redolake doctor` found missing for the source {source}.",
        *(f"-- {one[0].upper()}{one[1:]}." for one in platforms),
        "-- Then run `redolake doctor` again: a right that is missing can hide another one.",
        "WHENEVER SQLERROR EXIT FAILURE",
    ]
    lines += _section("", needed) if needed else ["", "-- No statement is missing."]
    if words:
        lines += ["", "-- Missing too, and no matter of SQL:", *dict.fromkeys(words)]
    if optional:
        lines += ["", "-- Recommended: sed -n 's/^--optional //p' prints these statements."]
        lines += _section("--optional ", optional)
    if needed or optional:
        lines += ["", "-- Undo: sed -n 's/^--undo //p' prints these statements."]
        lines += _undo("--undo ", needed)
        lines += _undo("--undo-optional ", optional)
    return "\n".join(lines) + "\n"


def statements_of(remedy: str, site: Site) -> Iterator[Statement]:
    """The statements of a remedy, as the platform wants them; none if it has none, or if they are
    not for who runs the script."""
    if _ARCHIVE.match(remedy):
        yield from _database_wide(_archive_mode, site)
        return
    for part in remedy.split(";"):
        text = part.strip().rpartition(_IF_IT_EXISTS)[2]
        if found := _GRANT_ON.match(text):
            yield from _grant_on(found[1], found[2], found[3], site)
        elif found := _GRANT.match(text):
            yield from _grant(found[1], found[2], site)
        elif found := _ALL_COLUMNS.match(text):
            table = f"ALTER TABLE {found[1]}"
            what = "SUPPLEMENTAL LOG DATA (ALL) COLUMNS"
            yield Statement(_tables_place(site), f"{table} ADD {what};", f"{table} DROP {what};")
        elif _LOG_DATA.match(text):
            yield from _database_wide(_log_data, site)
        elif _FORCE.match(text):
            yield from _database_wide(_force_logging, site)
        elif (found := _CONTAINER_DATA.match(text)) and site.platform == "cdb":
            user = f"ALTER USER {found[1]} SET CONTAINER_DATA ="
            end = "CONTAINER = CURRENT;"
            yield Statement(ROOT, f"{user} ALL {end}", f"{user} DEFAULT {end}")
        elif (found := _PDB.match(text)) and site.platform == "cdb":
            name = f"ALTER PLUGGABLE DATABASE {found[1]}"
            undo = "CLOSE" if found[2] == "OPEN" else "DISCARD STATE"
            yield Statement(ROOT, f"{name} {found[2]};", f"{name} {undo};")


def _grant_on(privileges: str, name: str, user: str, site: Site) -> Iterator[Statement]:
    is_of_sys = name.startswith("SYS.")
    if site.platform == "rds" and is_of_sys:
        if privileges in ("SELECT", "EXECUTE"):
            given = f"'{name.removeprefix('SYS.')}', '{user.upper()}', '{privileges}'"
            yield Statement(
                "",
                _rds(f"grant_sys_object({given})"),
                _rds(f"revoke_sys_object({given})"),
            )
        return
    everywhere = _is_common(user, site) and name.startswith(tuple(f"SYS.{one}" for one in _OF_ROOT))
    end = " CONTAINER = ALL;" if everywhere else ";"
    yield Statement(
        ROOT if everywhere else _tables_place(site),
        f"GRANT {privileges} ON {name} TO {user}{end}",
        f"REVOKE {privileges} ON {name} FROM {user}{end}",
    )


def _grant(privilege: str, user: str, site: Site) -> Iterator[Statement]:
    everywhere = _is_common(user, site)
    end = " CONTAINER = ALL;" if everywhere else ";"
    yield Statement(
        ROOT if everywhere else _tables_place(site),
        f"GRANT {privilege} TO {user}{end}",
        f"REVOKE {privilege} FROM {user}{end}",
    )


def _database_wide(made: Callable[[Site], Statement | None], site: Site) -> Iterator[Statement]:
    """A setting of the whole database: nothing where its root is out of reach."""
    statement = made(site) if site.platform in ("non-cdb", "cdb", "rds") else None
    if statement is not None:
        yield statement


def _log_data(site: Site) -> Statement:
    if site.platform == "rds":
        return Statement(
            "",
            _rds("alter_supplemental_logging('ADD')"),
            _rds("alter_supplemental_logging('DROP')"),
        )
    what = "SUPPLEMENTAL LOG DATA;"
    return Statement(_root(site), f"ALTER DATABASE ADD {what}", f"ALTER DATABASE DROP {what}")


def _force_logging(site: Site) -> Statement:
    if site.platform == "rds":
        return Statement(
            "",
            _rds("force_logging(p_enable => true)"),
            _rds("force_logging(p_enable => false)"),
        )
    return Statement(
        _root(site), "ALTER DATABASE FORCE LOGGING;", "ALTER DATABASE NO FORCE LOGGING;"
    )


def _archive_mode(site: Site) -> Statement | None:
    """It restarts the database; on RDS, automated backups set it."""
    if site.platform == "rds":
        return None
    restart = "SHUTDOWN IMMEDIATE\nSTARTUP MOUNT\nALTER DATABASE {};\nALTER DATABASE OPEN;"
    return Statement(_root(site), restart.format("ARCHIVELOG"), restart.format("NOARCHIVELOG"))


def _rds(call: str) -> str:
    return f"BEGIN rdsadmin.rdsadmin_util.{call}; END;\n/"


def _root(site: Site) -> str:
    return ROOT if site.platform == "cdb" else ""


def _tables_place(site: Site) -> str:
    return site.container if site.platform == "cdb" else ""


def _is_common(user: str, site: Site) -> bool:
    return site.platform == "cdb" and user.upper().startswith("C##")


def _once(found: Sequence[tuple[Statement, str]]) -> list[tuple[Statement, str]]:
    """Each statement once, those of the root first."""
    first: dict[Statement, str] = {}
    for statement, why in found:
        first.setdefault(statement, why)
    return sorted(first.items(), key=lambda one: (one[0].container != ROOT, one[0].container))


def _section(prefix: str, found: Sequence[tuple[Statement, str]]) -> Iterator[str]:
    here = ""
    for statement, why in found:
        yield ""
        if statement.container != here:
            here = statement.container
            yield f"{prefix}ALTER SESSION SET CONTAINER = {here};"
        yield f"-- {why}"
        yield from (f"{prefix}{line}" for line in statement.run.splitlines())


def _undo(prefix: str, found: Sequence[tuple[Statement, str]]) -> Iterator[str]:
    here = ""
    for statement, _why in reversed(found):
        if statement.container != here:
            here = statement.container
            yield f"{prefix}ALTER SESSION SET CONTAINER = {here};"
        yield from (f"{prefix}{line}" for line in statement.undo.splitlines())
