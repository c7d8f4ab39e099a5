"""Six connectors as people run them are imported by the command line, and what was written captures: first snapshot, then changes.

``connectors/NAME.json`` or ``.properties`` is the connector, ``connectors/NAME.said.yaml`` what is said of each of its properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cdc_core.steps import Pipeline
from oracle_embedded.openlogreplicator_server import OlrServer
from pipelines.cli import app
from pipelines.config_file import load_config
from pipelines.debezium.connector_file import read_connector
from pipelines.debezium.converting import imported
from tests.kafka_broker import KafkaBroker
from tests.oracle.embedded import ADMIN, CAPTURE, Oracle, running_oracle

FOLDER = Path(__file__).with_name("connectors")
SECRET = "what-no-file-gets"


@dataclass(frozen=True, slots=True)
class Story:
    """What a connector's database has, what happens in it, and which rows the mirrors then have."""

    tables: tuple[str, ...]
    later: tuple[str, ...]
    mirrors: dict[str, list[dict[str, Any]]]
    exit_code: int = 0
    salts: dict[str, str] = field(default_factory=dict)


STORIES = {
    "small.json": Story(
        (
            "CREATE TABLE ITEMS (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(20))",
            "CREATE TABLE STOCK (ID NUMBER(9) PRIMARY KEY, PIECES NUMBER(9))",
            "CREATE TABLE OTHERS (ID NUMBER(9) PRIMARY KEY)",
            "INSERT INTO ITEMS VALUES (1, 'bolt')",
        ),
        ("INSERT INTO STOCK VALUES (1, 20)", "UPDATE ITEMS SET NAME = 'nut'"),
        {"ITEMS": [{"ID": 1, "NAME": "nut"}], "STOCK": [{"ID": 1, "PIECES": 20}]},
    ),
    "flattened.properties": Story(
        (
            "CREATE TABLE INVOICES (ID NUMBER(9) PRIMARY KEY, AT DATE, TOTAL NUMBER(9,2))",
            "CREATE TABLE INVOICE_LINES (INVOICE_ID NUMBER(9) NOT NULL, LINE_NO NUMBER(3) NOT NULL, WHAT VARCHAR2(9))",
            "INSERT INTO INVOICES VALUES (1, DATE '2026-05-06', 9.5)",
        ),
        ("INSERT INTO INVOICE_LINES VALUES (1, 2, 'x')", "UPDATE INVOICES SET TOTAL = 10"),
        {
            "INVOICES": [{"ID": 1, "AT": "2026-05-06T00:00:00Z", "TOTAL": "10"}],
            "INVOICE_LINES": [{"INVOICE_ID": 1, "LINE_NO": 2, "WHAT": "x"}],
        },
    ),
    "masked.json": Story(
        (
            "CREATE TABLE EMPLOYEES (ID NUMBER(9) PRIMARY KEY, SSN VARCHAR2(9), BONUS NUMBER(9), NOTE_A VARCHAR2(9), PHONE VARCHAR2(20),"
            " NICK VARCHAR2(20), EMAIL VARCHAR2(80), ACTIVE NUMBER(1), TAG RAW(4))",
            "CREATE TABLE EMP_AUDIT (ID NUMBER(9) PRIMARY KEY)",
            "INSERT INTO EMPLOYEES VALUES (1, 's', 5, 'n', '0123', 'Maximilian', 'm@x', 1, HEXTORAW('0A'))",
        ),
        ("INSERT INTO EMPLOYEES (ID, SSN, NICK, ACTIVE) VALUES (2, 't', 'Jo', 0)",),
        {
            "EMPLOYEES": [
                {"ID": 1, "PHONE": "******", "NICK": "Max", "ACTIVE": True, "TAG": "0a",
                 "EMAIL": sha256(b"sea-salt" + b"m@x").hexdigest()},
                {"ID": 2, "PHONE": None, "NICK": "Jo", "ACTIVE": False, "TAG": None, "EMAIL": None},
            ]
        },
        salts={"HR_SALT": "sea-salt"},
    ),
    "confluent.json": Story(
        (
            "CREATE TABLE ACCOUNTS (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(20))",
            "CREATE TABLE CONTACTS (ID NUMBER(9) PRIMARY KEY, NOTE CLOB)",
            "INSERT INTO ACCOUNTS VALUES (1, 'a')",
        ),
        ("INSERT INTO CONTACTS VALUES (1, 'long')", "DELETE FROM ACCOUNTS"),
        {"ACCOUNTS": [], "CONTACTS": [{"ID": 1, "NOTE": "long"}]},
    ),
    "cluster.json": Story(
        (
            "CREATE TABLE PAYMENTS (ID NUMBER(9) PRIMARY KEY, AMOUNT NUMBER)",
            "INSERT INTO PAYMENTS VALUES (1, 1.5)",
        ),
        ("UPDATE PAYMENTS SET AMOUNT = 2.5", "INSERT INTO PAYMENTS VALUES (2, NULL)"),
        {"PAYMENTS": [{"ID": 1, "AMOUNT": 2.5}, {"ID": 2, "AMOUNT": None}]},
    ),
    "signalled.json": Story(
        (
            "CREATE TABLE SHIPMENTS (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
            "CREATE TABLE DEPOTS (ID NUMBER(9) PRIMARY KEY)",
            "CREATE TABLE DEBEZIUM_SIGNAL (ID VARCHAR2(64) PRIMARY KEY, TYPE VARCHAR2(32), DATA VARCHAR2(2048))",
            f"GRANT SELECT ON DEBEZIUM_SIGNAL TO {CAPTURE}",
            "INSERT INTO SHIPMENTS VALUES (1, 'before')",
        ),
        ("INSERT INTO SHIPMENTS VALUES (2, 'after')", "INSERT INTO DEPOTS VALUES (7)"),
        {"SHIPMENTS": [{"ID": 2, "V": "after"}], "DEPOTS": [{"ID": 7}]},
    ),
}  # fmt: skip


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        yield running


@pytest.fixture
def connector(oracle: Oracle, kafka: KafkaBroker, tmp_path: Path) -> Iterator[Callable[[str], Path]]:  # fmt: skip
    """Writes a connector's file for this database."""
    host, _, rest = oracle.server.dsn.partition(":")
    port, _, service = rest.partition("/")
    login = oracle.login(CAPTURE)
    places = {"HOST": host, "PORT": port, "SERVICE": service, "USER": login["user"], "KAFKA": kafka.address}  # fmt: skip
    with ExitStack() as servers:

        def written(name: str) -> Path:
            text = (FOLDER / name).read_text()
            if "@OLR_PORT@" in text:
                server = servers.enter_context(OlrServer(oracle.database, "ORCL"))
                places["OLR_PORT"] = str(server.port)
            for place, value in {**places, "PASSWORD": SECRET}.items():
                text = text.replace(f"@{place}@", value)
            (tmp_path / name).write_text(text)
            return tmp_path / name

        yield written


@pytest.mark.parametrize("name", STORIES)
def test_each_property_is_told_of(name: str, connector: Callable[[str], Path]) -> None:
    """Every property of the file, with its kind; hashes without their salts."""
    file = connector(name)
    made = imported(read_connector(file))
    told: dict[str, set[str]] = {}
    for one in made.remarks:
        told.setdefault(one.name, set()).add(str(one.outcome))
    kinds = {one: "; ".join(sorted(told[one])) for one in sorted(told)}
    assert kinds == yaml.safe_load((FOLDER / f"{file.stem}.said.yaml").read_text())


@pytest.mark.parametrize("name", STORIES)
def test_what_was_imported_captures(
    name: str,
    oracle: Oracle,
    connector: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the command line to a file, which loads; then snapshot and windows into Delta, without Spark."""
    story = STORIES[name]
    oracle.run(*story.tables)
    file = connector(name)
    monkeypatch.chdir(tmp_path)
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["import-debezium", str(file)])
    assert result.exit_code == story.exit_code, result.output
    written = yaml.safe_load((tmp_path / "defs.yaml").read_text())["attributes"]
    assert SECRET not in (tmp_path / "defs.yaml").read_text() + result.output
    password = oracle.login(CAPTURE)["password"]
    environ = {written["oracle"]["password_env"]: password, **story.salts}
    config = load_config(tmp_path / "defs.yaml", environ=environ)
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
    oracle.run(*story.later)
    oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        names = {str(one.table.name) for one in pipeline.records.tables()}
    assert names == set(story.mirrors)
    for table, rows in story.mirrors.items():
        assert mirror(config, table) == rows


def mirror(config: Any, table: str) -> list[dict[str, Any]]:
    """The rows of a mirror by delta-rs, without the positions."""
    from deltalake import DeltaTable

    path = f"{config.lake.path}/{config.name}/mirror/demo.{table.lower()}"
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    shown = [{name: one for name, one in row.items() if not name.startswith("_cdc")} for row in rows]  # fmt: skip
    return sorted(shown, key=lambda row: str(next(iter(row.values()))))
