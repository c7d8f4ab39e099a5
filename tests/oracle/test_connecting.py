"""How a source connects: with which client, as whom, with which parameters of the driver."""

from __future__ import annotations

import gc
import inspect
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import oracledb
import pytest
from pydantic import ValidationError

from cdc_core.config import OracleConfig
from cdc_core.config.oracle import DRIVER_PARAMETERS
from cdc_core.errors import ConfigError, PreflightError, SnapshotTooOldError, TransientError
from cdc_core.oracle.ora_codes import extra_codes
from cdc_core.oracle.refused_logins import RefusedLogins
from cdc_core.oracle.session import connect
from cdc_core.steps import Pipeline
from oracle_embedded.database import ADMIN, CAPTURE, OWNER
from oracle_embedded.wire import connect as wire_connect
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

oracle = oracle_with()


def _config(oracle: Oracle, **more: Any) -> OracleConfig:
    return OracleConfig.model_validate({**oracle.login(CAPTURE), **more})


def test_each_parameter_that_may_be_set_is_one_of_the_driver() -> None:
    known = inspect.signature(oracledb.ConnectParams.__init__).parameters
    for name, kind in DRIVER_PARAMETERS.items():
        assert str(known[name].annotation).startswith(kind.__name__), name


def test_keep_alive_and_parameters_reach_the_driver(oracle: Oracle) -> None:
    config = _config(oracle, keepalive_minutes=4, driver={"machine": "etl-7", "sdu": 16384})
    port = oracle.server.dsn.partition("/")[0].rpartition(":")[2]
    with connect(config) as session:
        assert session.fetch_all("SELECT SYS_CONTEXT('USERENV', 'HOST') FROM DUAL") == [("etl-7",)]
        sockets = [
            one
            for one in gc.get_objects()
            if isinstance(one, socket.socket)
            and one.fileno() >= 0
            and one.type == socket.SOCK_STREAM
            and _peer(one) == port
        ]
        idle = {one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) for one in sockets}
        assert 4 * 60 in idle


def _peer(one: socket.socket) -> str:
    try:
        return str(one.getpeername()[1])
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"driver": {"sdv": 1}}, "is not a parameter that you can set", id="unknown"),
        pytest.param({"driver": {"sdu": "8192"}}, "of type int", id="wrong type"),
        pytest.param(
            {"driver": {"access_token": "x"}}, "is not a parameter that you can set", id="a secret"
        ),
        pytest.param({"external_auth": True}, "set thick too", id="external in thin mode"),
        pytest.param(
            {"external_auth": True, "thick": {}}, "takes no password", id="external with password"
        ),
        pytest.param({"retriable_ora_codes": ["600"]}, "pattern", id="no code"),
        pytest.param(
            {"retriable_ora_codes": ["ORA-20001"], "resnapshot_ora_codes": ["ORA-20001"]},
            "in retriable_ora_codes and resnapshot_ora_codes",
            id="both",
        ),
        pytest.param(
            {"retriable_ora_codes": ["ORA-20001", "ORA-01307"]},
            "answers questions of Redolake: ORA-01307",
            id="an answer",
        ),
        pytest.param({"resnapshot_ora_codes": ["ORA-08186"]}, "answers", id="another answer"),
    ],
)
def test_what_cannot_connect_is_refused_by_the_configuration(
    given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValidationError, match=says):
        OracleConfig.model_validate({"dsn": "db/x", "user": "u", "password": "p", **given})


def test_a_password_is_missing_without_external_authentication() -> None:
    with pytest.raises(ValidationError, match="Field required"):
        OracleConfig.model_validate({"dsn": "db/x", "user": "u"})
    kerberos = {"dsn": "db/x", "user": "CDC@EXAMPLE.COM", "thick": {}, "external_auth": True}
    assert OracleConfig.model_validate(kerberos).working_user == "CDC@EXAMPLE.COM"


def test_a_proxy_user_captures_with_the_rights_of_another(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
    login = {**oracle.login(OWNER), "session_user": CAPTURE}
    with pytest.raises(PreflightError, match=f"ALTER USER {CAPTURE} GRANT CONNECT THROUGH"):
        connect(OracleConfig.model_validate(login))
    oracle.run(f"ALTER USER {CAPTURE} GRANT CONNECT THROUGH {OWNER}", user=ADMIN)
    with Pipeline(oracle.config(tmp_path, "T", oracle=login)) as pipeline:
        list(pipeline.run_snapshot())
        assert [one.state for one in pipeline.status().tables] == ["ready"]
    with connect(OracleConfig.model_validate(login)) as session:
        assert session.fetch_all("SELECT USER FROM DUAL") == [(CAPTURE,)]
        assert session.user == CAPTURE


def test_codes_of_the_configuration_pass_or_ask_for_a_newer_scn(oracle: Oracle) -> None:
    config = _config(oracle, retriable_ora_codes=["ORA-20001"], resnapshot_ora_codes=["ORA-20002"])
    with connect(config) as session:
        for code, kind in ((20001, TransientError), (20002, SnapshotTooOldError)):
            with pytest.raises(kind, match=f"ORA-{code}"):
                session.execute_block(f"BEGIN RAISE_APPLICATION_ERROR(-{code}, 'later'); END;")


def test_a_code_that_has_a_meaning_keeps_it(oracle: Oracle) -> None:
    with pytest.raises(ConfigError, match="codes=ORA-01017, ORA-03113"):
        extra_codes(["ORA-03113", "ORA-20001"], ["ORA-01017"])
    with pytest.raises(ConfigError, match="have a meaning already"):
        connect(_config(oracle, retriable_ora_codes=["ORA-28000"]))


@pytest.mark.parametrize("by", ["the server", "the listener"])
def test_a_database_that_demands_encryption_says_how(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "the server":
        monkeypatch.setattr(wire_connect, "_SERVICES_OFF", 0x1C)
    else:
        monkeypatch.setattr(wire_connect, "refusal_code", lambda *_: 12660)
    with pytest.raises(PreflightError, match=r"native network encryption.*Set oracle\.thick"):
        connect(_config(oracle))


_THICK = """
from cdc_core.config import OracleConfig
from cdc_core.oracle.session import connect
login = {"dsn": "127.0.0.1:1/X", "user": "u", "password": "topsecret"}
for given in LOGINS:
    try:
        connect(OracleConfig.model_validate({**login, **given}))
    except Exception as error:
        print(type(error).__name__, error)
"""


def _in_process(logins: list[dict[str, Any]]) -> list[str]:
    """What connecting one after another says, in a process of its own: it has one mode."""
    done = subprocess.run(
        [sys.executable, "-c", _THICK.replace("LOGINS", repr(logins))],
        capture_output=True, text=True, check=True, env={**os.environ, "LD_LIBRARY_PATH": ""},
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_missing_client_library_says_what_to_install(tmp_path: Path) -> None:
    [said] = _in_process([{"thick": {"lib_dir": str(tmp_path)}}])
    assert said.startswith("PreflightError Oracle's client libraries")
    for word in ("DPI-1047", str(tmp_path), "Instant Client", "libaio", "LD_LIBRARY_PATH"):
        assert word in said
    assert "topsecret" not in said


def test_one_process_has_one_mode(oracle: Oracle, tmp_path: Path) -> None:
    thin = oracle.login(CAPTURE)
    [thick] = _in_process([thin, {**thin, "thick": {"lib_dir": str(tmp_path)}}])
    assert thick.startswith("PreflightError the Oracle driver cannot change to thick mode")
    assert "processes of their own" in thick


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that are sent; no other test's refusals are known."""
    found, ask = list[str](), oracledb.connect
    monkeypatch.setattr("cdc_core.oracle.session.REFUSED_LOGINS", RefusedLogins())

    def connected(**more: Any) -> Any:
        found.append(more["password"])
        return ask(**more)

    monkeypatch.setattr(oracledb, "connect", connected)
    return found


def test_a_refused_password_is_sent_once_more_and_then_never(
    oracle: Oracle, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sensor that ticks each minute, for two days; a strict profile allows three failures.
    Another password is sent at once."""
    clock = [1.8e9]
    refused = RefusedLogins(now=lambda: clock[0])
    monkeypatch.setattr("cdc_core.oracle.session.REFUSED_LOGINS", refused)
    wrong = OracleConfig.model_validate(oracle.login(CAPTURE, "before the rotation"))
    said = list[str]()
    for _ in range(2 * 24 * 60):
        with pytest.raises(ConfigError, match="refused user name or password") as error:
            connect(wrong)
        assert "`redolake doctor` sends this one too" in error.value.hint
        said.append(str(error.value.facts["sent_again"]))
        clock[0] += 60
    first = "2027-01-15 08:15:00 UTC, or when it changes"
    assert said == [first] * 15 + ["when it changes"] * (len(said) - 15)
    assert len(sent) == 2
    connect(_config(oracle)).close()
    assert len(sent) == 3


def test_a_password_that_came_before_the_database_had_it_is_sent_again(
    oracle: Oracle, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1.8e9]
    refused = RefusedLogins(now=lambda: clock[0])
    monkeypatch.setattr("cdc_core.oracle.session.REFUSED_LOGINS", refused)
    oracle.run('CREATE USER EARLY IDENTIFIED BY "old"', "GRANT CREATE SESSION TO EARLY", user=ADMIN)
    early = OracleConfig.model_validate({**oracle.login(CAPTURE, "new"), "user": "EARLY"})
    with pytest.raises(ConfigError):
        connect(early)
    oracle.run('ALTER USER EARLY IDENTIFIED BY "new"', user=ADMIN)
    with pytest.raises(ConfigError):
        connect(early)
    clock[0] += 15 * 60
    for _ in range(3):
        connect(early).close()
    assert sent.count("new") == 4


def test_an_account_that_is_unlocked_is_used_at_once(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for a locked account makes nothing worse, and the DBA is not to wait."""

    def locked(**_: Any) -> Any:
        raise oracledb.DatabaseError("ORA-28000: The account is locked.")

    monkeypatch.setattr("cdc_core.oracle.session.REFUSED_LOGINS", RefusedLogins())
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(oracledb, "connect", locked)
        with pytest.raises(ConfigError, match="account is locked"):
            connect(_config(oracle))
    connect(_config(oracle)).close()


def test_a_line_break_behind_the_password_is_told(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file has it into which it was written by `echo`."""
    monkeypatch.setattr("cdc_core.oracle.session.REFUSED_LOGINS", RefusedLogins())
    with pytest.raises(ConfigError, match="refused user name") as error:
        connect(OracleConfig.model_validate(oracle.login(CAPTURE, "capture\n")))
    assert "ends with white space, perhaps a line break" in error.value.hint
    with pytest.raises(ConfigError, match="refused user name") as error:
        connect(OracleConfig.model_validate(oracle.login(CAPTURE, "wrong")))
    assert "white space" not in error.value.hint


def test_threads_that_log_in_at_once_send_a_refused_password_once(
    oracle: Oracle, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sessions of a snapshot, behind a rotation; ten failures lock an account."""
    monkeypatch.setattr("cdc_core.oracle.refused_logins.TURN_SECONDS_MAX", 600)
    wrong = OracleConfig.model_validate(oracle.login(CAPTURE, "before the rotation"))
    with ThreadPoolExecutor(10) as pool:
        refused = [one.exception() for one in [pool.submit(connect, wrong) for _ in range(10)]]
    assert {type(one) for one in refused} == {ConfigError}
    assert len(sent) == 1
