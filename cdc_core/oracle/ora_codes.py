"""What does an error of the driver mean for the pipeline: try again, act, or which grant is
missing?

Messages are our own or Oracle's first line with quoted parts left out, so that no value and no
secret gets through.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cdc_core.errors import (
    RESNAPSHOT,
    CdcError,
    ConfigError,
    LogsChangedError,
    LogsNotReadyError,
    OracleError,
    OracleUnavailableError,
    PreflightError,
    RedoUnreadableError,
    SchemaMismatchError,
    SnapshotTooOldError,
    TransientError,
)

_CODE = re.compile(r"\b(ORA|DPY)-(\d{4,5})\b")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_INTERNAL = re.compile(r"\[(krvrdGetUID|krvrdccs10|krvrdccs30)\]")

_DSN = "Check oracle.dsn (host:port/service) and that the listener and the database are up."
_RETRY = "Run the step again; if the error persists, ask the database administrator."
_ACCOUNT = (
    "Check oracle.user, and the password in the variable that oracle.password_env names; the database administrator can unlock the account "
    "or set another password."
)

_HOST = "Check the host in oracle.dsn, and that this machine can resolve and reach it."
_TLS_HINT = (
    "Check oracle.dsn (tcps://host:port/service) and oracle.wallet_location: the folder whose ewallet.pem holds the "
    "certificates that the database's own must be signed by."
)
_TLS = re.compile(r"\[(SSL|X509): ?(\w+)\]|\b(DPY-2018|DPY-6006)\b")
_TLS_CODES = {
    "DPY-2018": "no ewallet.pem in the wallet's folder",
    "DPY-6006": "the server's certificate is for another name",
}
_DSN_FORMS = (
    "Write host:port/service, tcps://host:port/service, a descriptor, or a name that is in the tnsnames.ora below "
    "oracle.config_dir."
)

_ENCRYPTED = frozenset({"ORA-12660", "ORA-12650", "DPY-3001"})
"""The two sides do not agree on native network encryption or checksums."""
_RECURSIVE = "ORA-00604"
_WRAPPERS = frozenset({_RECURSIVE, "ORA-12801"})
"""Above the error that they are about: of recursive SQL, and of a server process of a parallel
query, by which Oracle reads a table that is declared PARALLEL."""
_FILE = re.compile(r"(?:archived log|redo log|file) '?([^'\s]*[/\\+][^'\s]*)'?")
_TOO_OLD = (
    "Read it as of a newer SCN, use smaller chunks (snapshot.chunk_rows), or raise UNDO_RETENTION."
)
_LOOK_UP = "Look the code up in Oracle's error messages (https://docs.oracle.com/error-help/db/) and remove the cause."
_UNREACHABLE = {
    "DPY-6000": "the listener refused the connection",
    "DPY-6001": "the listener does not know the service",
    "DPY-6003": "the listener does not know the SID",
    "DPY-6005": "the database cannot be reached",
    "ORA-12541": "no listener answers",
    "ORA-12514": "the listener does not know the service",
    "ORA-12505": "the listener does not know the SID",
    "ORA-12543": "the host cannot be reached",
    "ORA-12170": "connecting took too long",
    "ORA-12516": "the listener has no free handler for the service",
    "ORA-12518": "the listener cannot hand the connection on",
    "ORA-12519": "the listener has no free handler for the service",
    "ORA-12520": "the listener has no free handler for the service",
    "ORA-12521": "the listener does not know the instance",
    "ORA-12526": "the instances of the service are in restricted mode",
    "ORA-12527": "the instances of the service are in restricted mode",
    "ORA-12528": "the listener blocks new connections to the instance",
    "ORA-12535": "connecting took too long",
    "ORA-12545": "the host cannot be reached",
    "ORA-12560": "the database cannot be reached",
    "ORA-12564": "the listener refused the connection",
}
_Meaning = tuple[type[CdcError], str, str]
_AGAIN: _Meaning = (TransientError, "Oracle reported a temporary failure", _RETRY)
_MEANINGS: tuple[tuple[str, type[CdcError], str, str], ...] = (
    *((code, OracleUnavailableError, what, _DSN) for code, what in _UNREACHABLE.items()),
    (
        "DPY-4000 DPY-4017 DPY-4018 DPY-4025 DPY-4026 DPY-4027 DPY-4028 ORA-12154",
        ConfigError,
        "oracle.dsn is not a connect string",
        _DSN_FORMS,
    ),
    (
        " ".join(_ENCRYPTED),
        PreflightError,
        "the database demands native network encryption, and the connection has none that it takes",
        "Set oracle.thick, which connects through Oracle's client libraries; or let the database accept connections without it "
        "(SQLNET.ENCRYPTION_SERVER = ACCEPTED), or use TLS (tcps://). With oracle.thick, compare the algorithms in both sqlnet.ora.",
    ),
    (
        "DPY-1001 DPY-4011 ORA-00018 ORA-00020 ORA-00028 ORA-01012 ORA-01033 ORA-01034 ORA-01089 "
        "ORA-01090 ORA-01092 ORA-02392 ORA-02394 ORA-02396 ORA-02397 ORA-02399 ORA-03113 ORA-03114 "
        "ORA-03135 ORA-04068 ORA-12537 ORA-12547 ORA-12570 ORA-12571 ORA-25303 ORA-25408",
        OracleUnavailableError,
        "the session with the database was lost",
        _RETRY,
    ),
    (
        "DPY-4024 ORA-01013 ORA-03136",
        OracleUnavailableError,
        "a call to the database took too long",
        "Raise oracle.call_timeout_seconds, or find out what the database waits for.",
    ),
    (
        "ORA-00310 ORA-00334 ORA-01289 ORA-01368",
        LogsChangedError,
        "a redo log changed while LogMiner read it",
        "The redo is mined again.",
    ),
    (
        "ORA-00308 ORA-01284 ORA-01285 ORA-16226",
        RedoUnreadableError,
        "LogMiner cannot open a redo log that the control file names",
        "Restore the file, or CROSSCHECK ARCHIVELOG ALL in RMAN; if it is gone, run `redolake source skip-gap`, then "
        f"{RESNAPSHOT} for each table that it names.",
    ),
    (
        "ORA-01291 ORA-01327",
        LogsNotReadyError,
        "LogMiner cannot read one of the redo logs now",
        "The log may just have been switched or not be archived yet; the step can be run again.",
    ),
    (
        "ORA-04030 ORA-04036",
        TransientError,
        "the database has no memory left for the session",
        "Redolake runs the step again. If that does not help, raise PGA_AGGREGATE_LIMIT.",
    ),
    # A limit of a profile, or of a plan of the Resource Manager, has ended one call.
    (
        "ORA-00040 ORA-02393 ORA-02395 ORA-56720 ORA-56735",
        TransientError,
        "a limit of the database for one call was reached",
        "Redolake runs the step again. If that does not help, give the capture user a profile and a consumer group without limits for "
        "calls, or read less at once (capture.window_redo_bytes_max, snapshot.chunk_rows).",
    ),
    (
        f"{_RECURSIVE} ORA-00054 ORA-00060 ORA-00235 ORA-01001 ORA-01333 ORA-01343 ORA-04031 "
        "ORA-26653",
        *_AGAIN,
    ),
    ("ORA-01017", ConfigError, "Oracle refused user name or password", _ACCOUNT),
    ("ORA-01005", ConfigError, "the password is empty", _ACCOUNT),
    ("ORA-28000", ConfigError, "the database account is locked", _ACCOUNT),
    ("ORA-28001", ConfigError, "the password has expired", _ACCOUNT),
    (
        "ORA-01045",
        PreflightError,
        "the capture user may not log on",
        "GRANT CREATE SESSION TO {user}; deploy/oracle has all grants.",
    ),
    (
        "DPY-3015",
        PreflightError,
        "the database keeps an old password verifier of the user, which only Oracle's client libraries know",
        "Set the user's password again, with SQLNET.ALLOWED_LOGON_VERSION_SERVER 11 or higher; or set oracle.thick.",
    ),
    (
        "DPY-3012",
        PreflightError,
        "the driver does not read the national character set of the database",
        "Name the table's NCHAR, NVARCHAR2 and NCLOB columns under columns_exclude.",
    ),
    (
        "ORA-28150",
        PreflightError,
        "the proxy user may not connect as oracle.session_user",
        "ALTER USER {user} GRANT CONNECT THROUGH the user of oracle.user.",
    ),
    (
        "ORA-02391",
        PreflightError,
        "the capture user may not have so many sessions at once",
        "Lower capture.sessions and dagster's pools, or raise SESSIONS_PER_USER in the user's profile.",
    ),
    ("ORA-01555", SnapshotTooOldError, "Oracle no longer has the undo for this SCN", _TOO_OLD),
    (
        "ORA-22924",
        SnapshotTooOldError,
        "Oracle no longer has the old version of a LOB",
        "Read it as of a newer SCN, use smaller chunks, or raise the LOB's RETENTION.",
    ),
    (
        "ORA-08180",
        SnapshotTooOldError,
        "Oracle can no longer map this time to an SCN",
        "Read it as of a newer SCN.",
    ),
    (
        "ORA-01109",
        OracleUnavailableError,
        "the database is not open",
        "Open it (ALTER DATABASE OPEN; a pluggable one: ALTER PLUGGABLE DATABASE … OPEN, then SAVE STATE), then run the step again.",
    ),
    (
        "ORA-00257",
        OracleUnavailableError,
        "the database lets nobody in, because it cannot archive its redo",
        "An archive destination, or the fast recovery area, is full: make room there, and keep the "
        "logs that Redolake has not read yet. It continues then.",
    ),
    (
        "ORA-01035",
        OracleUnavailableError,
        "the database is in restricted mode",
        "Redolake continues when the restriction ends: ALTER SYSTEM DISABLE RESTRICTED SESSION.",
    ),
    (
        "ORA-16331",
        OracleUnavailableError,
        "a container whose redo is read is not open",
        "LogMiner needs every container open, captured or not: ALTER PLUGGABLE DATABASE ALL OPEN, then SAVE STATE.",
    ),
    (
        "ORA-65011",
        PreflightError,
        "there is no such pluggable database",
        "Check oracle.pdb and oracle.pdbs. One that was dropped or unplugged: take its name out; the Delta tables of its tables stay.",
    ),
    (
        "ORA-65053",
        PreflightError,
        "a global user cannot change from one container to another",
        "Use a common user with a password (deploy/oracle/user_cdb.sql), or name the service of the pluggable database in oracle.dsn.",
    ),
    (
        "ORA-65090",
        ConfigError,
        "oracle.pdb names a pluggable database, and the database has no containers",
        "Leave oracle.pdb and oracle.pdbs out.",
    ),
    (
        "ORA-08181",
        SnapshotTooOldError,
        "Oracle knows no data of this SCN",
        "Read it as of a newer SCN.",
    ),
    (
        "ORA-01300",
        PreflightError,
        "LogMiner needs a database that is open for writing, for this dictionary",
        "A standby that is open read-only takes only capture.strategy: dictionary_from_file; oracle.dsn must lead to the primary.",
    ),
    (
        "ORA-01371",
        OracleError,
        "the redo has no dictionary",
        "Run EXECUTE DBMS_LOGMNR_D.BUILD(OPTIONS => DBMS_LOGMNR_D.STORE_IN_REDO_LOGS), or mine with the online catalog.",
    ),
    (
        "ORA-01466 ORA-08103",
        SchemaMismatchError,
        "the table's definition changed after this SCN, so Oracle cannot read it as of then",
        f"{RESNAPSHOT} reads the table as it is now. To compare it, run `redolake run` first, which moves the position past the DDL.",
    ),
    (
        "ORA-00904",
        SchemaMismatchError,
        "a captured column does not exist",
        f"Compare the table with the configuration. After a DROP or RENAME COLUMN, {RESNAPSHOT} reads the table again.",
    ),
    (
        "ORA-00942",
        PreflightError,
        "a table or view does not exist, or the capture user may not read it",
        "Run redolake doctor, which names the missing grant, or the grants in deploy/oracle.",
    ),
    (
        "ORA-01031",
        PreflightError,
        "the capture user lacks a privilege",
        "Run redolake doctor, which names the missing grant, or the grants in deploy/oracle.",
    ),
    (
        "ORA-06550",
        PreflightError,
        "a PL/SQL package cannot be called",
        "GRANT EXECUTE ON SYS.DBMS_LOGMNR TO {user}; deploy/oracle has all grants.",
    ),
    (
        "ORA-01292",
        PreflightError,
        "LogMiner received no log files and cannot find any in this container",
        "LogMiner finds the logs of a range inside a pluggable database, from 19.10 on; elsewhere set capture.logs to files.",
    ),
    (
        "ORA-65040",
        PreflightError,
        "LogMiner takes named logs only in CDB$ROOT",
        "Use a common user (C##…) with SET CONTAINER; without access to the root, set capture.logs to scn_range. deploy/oracle has "
        "the grants for both.",
    ),
    (
        "ORA-01325",
        PreflightError,
        "the database is not in ARCHIVELOG mode",
        "See deploy/oracle: SHUTDOWN IMMEDIATE; STARTUP MOUNT; ALTER DATABASE ARCHIVELOG; ALTER DATABASE OPEN.",
    ),
)
_KNOWN: dict[str, _Meaning] = {
    code: (kind, message, hint)
    for codes, kind, message, hint in _MEANINGS
    for code in codes.split()
}
KNOWN_CODES = frozenset({*_KNOWN, *_TLS_CODES, "ORA-00600"})
"""All codes of Oracle or the driver that have a meaning of their own."""


@dataclass(frozen=True, slots=True)
class MoreCodes:
    """Codes that a configuration adds to those that pass, and to those with which rows cannot be
    read as of an SCN."""

    retriable: frozenset[str] = frozenset()
    resnapshot: frozenset[str] = frozenset()


NO_MORE = MoreCodes()


def extra_codes(retriable: Iterable[str], resnapshot: Iterable[str]) -> MoreCodes:
    """The codes that a configuration adds.

    Raises:
        ConfigError: Redolake gives one of them a meaning, which another one would hide: a wrong
            password that is tried again locks its account.
    """
    more = MoreCodes(frozenset(retriable), frozenset(resnapshot))
    if not more.retriable and not more.resnapshot:
        return NO_MORE
    if taken := sorted((more.retriable | more.resnapshot) & _KNOWN.keys()):
        raise ConfigError(
            "codes under oracle.retriable_ora_codes or resnapshot_ora_codes have a meaning already",
            hint="Leave them out; the reference of errors says what each does.",
            codes=", ".join(taken),
        )
    return more


def cdc_error(
    error: Exception, *, user: str = "the capture user", more: MoreCodes = NO_MORE
) -> CdcError:
    """Turn an error of the driver or of the network into ours; raise it ``from error``. ``user`` is
    who lacks a right.

    The facts hold ``ora``, the code as Oracle or the driver prints it (``ORA-01555``,
    ``DPY-6005``).
    """
    if isinstance(error, OSError):
        return _network_error(error)
    text = str(error)
    code = _inner_code(text, code_of(error))
    cause = (_listener_cause(text) if code.startswith("DPY") else None) or code
    if code == "DPY-6005" and (found := _TLS.search(text)):
        return PreflightError(
            "no encrypted connection can be made to the database",
            hint=_TLS_HINT,
            ora=code,
            tls=found[2] or _TLS_CODES[found[3]],
        )
    if {code, cause} & _ENCRYPTED or "DPY-3001" in text:
        code = cause = cause if cause in _ENCRYPTED else "DPY-3001"
    if code in more.retriable:
        return TransientError(
            "Oracle reported a failure that oracle.retriable_ora_codes names",
            hint=_RETRY,
            ora=code,
        )
    if code in more.resnapshot:
        return SnapshotTooOldError(
            "Oracle cannot read the rows as of this SCN, by oracle.resnapshot_ora_codes",
            hint=_TOO_OLD,
            ora=code,
        )
    named = cause if cause in _UNREACHABLE else code
    is_internal = code == "ORA-00600" and _INTERNAL.search(text)
    meaning = _AGAIN if is_internal else _KNOWN.get(named)
    if meaning is None:
        return OracleError(_first_line(text), hint=_LOOK_UP if code else _RETRY, ora=code or "none")
    kind, message, hint = meaning
    facts = _file_named(text) if kind is RedoUnreadableError else {}
    ora = cause if named in _UNREACHABLE else code
    return kind(message, hint=hint.format(user=user), ora=ora, **facts)


def _inner_code(text: str, code: str) -> str:
    """What an error of recursive SQL, or of a parallel query, is about: the next code of its
    stack."""
    if code not in _WRAPPERS:
        return code
    stack = (f"{prefix}-{digits}" for prefix, digits in _CODE.findall(text))
    return next((one for one in stack if one not in _WRAPPERS), code)


def _file_named(text: str) -> dict[str, object]:
    """The redo log's file, where the error names it; a file's name is neither a value nor a
    secret."""
    found = _FILE.search(text)
    return {"file": found[1]} if found else {}


def _network_error(error: OSError) -> CdcError:
    """What the operating system refused before the driver had a word for it."""
    if isinstance(error, socket.gaierror):
        return OracleUnavailableError(
            "the database's host name cannot be resolved", hint=_HOST, reason=error.strerror
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return PreflightError(
            "no encrypted connection can be made to the database",
            hint=_TLS_HINT,
            tls=error.verify_message,
        )
    if isinstance(error, ssl.SSLError):
        return OracleUnavailableError(
            "the encrypted connection to the database broke",
            hint=_TLS_HINT,
            tls=error.reason or "unknown",
        )
    if isinstance(error, TimeoutError):
        return OracleUnavailableError(
            "the database did not answer in time",
            hint=f"{_HOST} oracle.connect_timeout_seconds says how long to wait.",
        )
    return OracleUnavailableError(
        "the database cannot be reached", hint=_DSN, reason=error.strerror or type(error).__name__
    )


def code_of(error: Exception) -> str:
    """The code of a driver error: ``ORA-nnnnn``, ``DPY-nnnn``, or "" when it has none."""
    detail: Any = error.args[0] if error.args else None
    full = getattr(detail, "full_code", None)
    if full:
        return str(full)
    found = _CODE.search(str(error))
    return found.group() if found else ""


def _listener_cause(text: str) -> str | None:
    """The ORA code behind a driver message such as "DPY-6000: Listener refused connection. (Similar
    to ORA-12506)"."""
    for prefix, digits in _CODE.findall(text):
        if prefix == "ORA":
            return f"{prefix}-{digits}"
    return None


def _first_line(text: str) -> str:
    lines = text.splitlines() or ["unknown error"]
    return _QUOTED.sub("'…'", lines[0])[:200]
