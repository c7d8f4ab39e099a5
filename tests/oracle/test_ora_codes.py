"""What driver errors become."""

from __future__ import annotations

import pickle

import oracledb
import pytest

from cdc_core.config import OracleConfig
from cdc_core.errors import (
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
from cdc_core.oracle.ora_codes import cdc_error
from cdc_core.oracle.session import connect


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("ORA-01555: snapshot too old: rollback segment", SnapshotTooOldError, "newer SCN"),
        ("ORA-01466: unable to read data", SchemaMismatchError, "resnapshot"),
        ("ORA-00942: table or view does not exist", PreflightError, "grant"),
        ('ORA-00904: "SECRET": invalid identifier', SchemaMismatchError, "column"),
        ("ORA-01031: insufficient privileges", PreflightError, "grant"),
        ("ORA-01017: invalid username/password; logon denied", ConfigError, "oracle.password"),
        ("ORA-01005: null password given; logon denied", ConfigError, "oracle.password"),
        ("ORA-28000: the account is locked", ConfigError, "locked"),
        ("ORA-01045: user X lacks CREATE SESSION", PreflightError, "CREATE SESSION"),
        ("DPY-6005: cannot connect to database. [Errno 111]", OracleUnavailableError, "oracle.dsn"),
        (
            "DPY-6001: Service is not registered. (Similar to ORA-12514)",
            OracleUnavailableError,
            "does not know the service",
        ),
        ("ORA-12541: TNS:no listener", OracleUnavailableError, "oracle.dsn"),
        ("DPY-4011: the database or network closed the connection", OracleUnavailableError, "lost"),
        ("ORA-03113: end-of-file on communication channel", OracleUnavailableError, "lost"),
        (
            "ORA-02399: exceeded maximum connect time, you are being logged off",
            OracleUnavailableError,
            "lost",
        ),
        ("ORA-02395: exceeded call limit on IO usage", TransientError, "limits for calls"),
        (
            "ORA-56735: elapsed time limit exceeded - call aborted",
            TransientError,
            "limits for calls",
        ),
        ("DPY-4024: call timeout of 10 ms exceeded", OracleUnavailableError, "call_timeout"),
        ("ORA-01291: missing log file", LogsNotReadyError, "again"),
        ("ORA-00310: archived log contains sequence 5", LogsChangedError, "mined again"),
        ("ORA-00334: archived log: '/arc/1_5.arc'", LogsChangedError, "mined again"),
        ("ORA-01289: cannot add duplicate logfile /arc/1_5.arc", LogsChangedError, "mined again"),
        ("ORA-01368: Redo log file header mismatch", LogsChangedError, "mined again"),
        ("ORA-01284: file /arc/1_5.arc cannot be opened", RedoUnreadableError, "file=/arc/1_5.arc"),
        (
            "ORA-00308: cannot open archived log '/a/1_5.arc'",
            RedoUnreadableError,
            "file=/a/1_5.arc",
        ),
        (
            "ORA-00308: cannot open archived log '+FRA/DB/1.2'",
            RedoUnreadableError,
            "file=+FRA/DB/1.2",
        ),
        ("ORA-01285: error reading file /arc/1_5.arc", RedoUnreadableError, "file=/arc/1_5.arc"),
        ("ORA-16226: DDL skipped due to lack of support", RedoUnreadableError, "CROSSCHECK"),
        ("ORA-00604: error occurred at recursive SQL level 1", TransientError, "again"),
        (
            "ORA-00604: error occurred at recursive SQL level 1\nORA-01284: file /a/5 cannot be opened\n"
            "ORA-00308: cannot open archived log '/a/5'",
            RedoUnreadableError,
            "file=/a/5",
        ),
        (
            "ORA-00604: error occurred at recursive SQL level 1\nORA-01555: snapshot too old",
            SnapshotTooOldError,
            "newer SCN",
        ),
        (
            "ORA-12801: error signaled in parallel query server P003\nORA-01555: snapshot too old",
            SnapshotTooOldError,
            "newer SCN",
        ),
        (
            "ORA-12801: error signaled in parallel query server P003, instance db2:ORCL2 (2)\n"
            "ORA-00604: error occurred at recursive SQL level 1\nORA-04031: out of shared memory",
            TransientError,
            "again",
        ),
        ("ORA-08103: object no longer exists", SchemaMismatchError, "resnapshot"),
        ("ORA-00257: Archiver error. Connect AS SYSDBA only", OracleUnavailableError, "make room"),
        (
            "ORA-01035: ORACLE only available to users with RESTRICTED SESSION privilege",
            OracleUnavailableError,
            "restricted mode",
        ),
        ("ORA-00235: control file read without a lock inconsistent", TransientError, "again"),
        ("ORA-12519: TNS:no appropriate service handler found", OracleUnavailableError, "handler"),
        (
            "DPY-6000: Listener refused connection. (Similar to ORA-12526)",
            OracleUnavailableError,
            "restricted mode",
        ),
        ("ORA-08181: specified number is not a valid SCN", SnapshotTooOldError, "newer SCN"),
        ("ORA-01371: complete LogMiner dictionary not found", OracleError, "DBMS_LOGMNR_D"),
        ("ORA-16331: container is not open", OracleUnavailableError, "PLUGGABLE DATABASE"),
        ("ORA-01109: database not open", OracleUnavailableError, "OPEN"),
        (
            "ORA-02391: exceeded simultaneous SESSIONS_PER_USER limit",
            PreflightError,
            "SESSIONS_PER_USER",
        ),
        ("ORA-12516: TNS:listener could not find available handler", OracleUnavailableError, "dsn"),
        ("ORA-12528: TNS:listener: all appropriate instances block", OracleUnavailableError, "dsn"),
        ("ORA-04068: existing state of packages discarded", OracleUnavailableError, "lost"),
        ("ORA-04036: PGA memory used exceeds the limit", TransientError, "again"),
        ("ORA-00600: internal error code, arguments: [krvrdccs10]", TransientError, "again"),
        ("ORA-00600: internal error code, arguments: [kcbz]", OracleError, "internal error"),
        ("ORA-06550: line 1, column 7: PLS-00201", PreflightError, "DBMS_LOGMNR"),
        ("ORA-65040: operation not allowed from within a PDB", PreflightError, "CDB"),
        ("ORA-65011: Pluggable database X does not exist.", PreflightError, "oracle.pdb"),
        ("ORA-65053: A global user cannot change the container", PreflightError, "dsn"),
        ("ORA-65090: only allowed in a container database", ConfigError, "oracle.pdb"),
        ("ORA-01722: invalid number", OracleError, "invalid number"),
    ],
)
def test_a_driver_error_becomes_one_that_says_what_to_do(
    text: str, kind: type[CdcError], words: str
) -> None:
    error = cdc_error(oracledb.DatabaseError(text))
    assert type(error) is kind
    assert words in str(error)
    assert "SECRET" not in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_values_in_quotes_stay_out_of_unknown_errors() -> None:
    error = cdc_error(oracledb.DatabaseError("ORA-01861: literal 'top secret' does not match"))
    assert "top secret" not in str(error)


def test_of_unknown_errors_some_hundred_characters_are_said() -> None:
    error = cdc_error(oracledb.DatabaseError(f"ORA-01861: {'no end ' * 100}\nand more"))
    assert str(error).startswith(f"ORA-01861: {'no end ' * 100}"[:200] + " (ora=")


def test_a_port_where_nobody_listens_is_unavailable_and_the_password_stays_out() -> None:
    config = OracleConfig(dsn="127.0.0.1:1/X", user="u", password="topsecret")
    with pytest.raises(OracleUnavailableError, match=r"oracle\.dsn") as caught:
        connect(config)
    assert "topsecret" not in str(caught.value)


def test_a_dsn_that_is_none_is_refused() -> None:
    config = OracleConfig(dsn="(((", user="u", password="topsecret")
    with pytest.raises(CdcError) as caught:
        connect(config)
    assert "topsecret" not in str(caught.value)
