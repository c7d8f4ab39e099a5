"""Names get into a Unity Catalog by its REST API, without Spark; what stands for its server answers as its specification says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pydantic import SecretStr, ValidationError

from cdc_core.config import LakeConfig, SourceConfig, UnityConfig
from cdc_core.errors import LakeError
from cdc_core.lake.unity import UnityNames
from cdc_core.spark import session
from cdc_core.steps import Pipeline
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import Oracle, running_oracle

API = "/api/2.1/unity-catalog"
TOKEN = "a-token"


class Unity(ThreadingHTTPServer):
    """What stands for a Unity Catalog with the catalog ``unity``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.schemas: set[str] = set()
        self.tables: dict[str, dict[str, Any]] = {}
        self.is_busy = False
        self.status: int | None = None
        self.page: bytes | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Requests(BaseHTTPRequestHandler):
    server: Unity

    def do_GET(self) -> None:
        kind, _, name = self._asked().partition("/")
        found: Any = self.server.tables.get(name)
        if kind == "schemas":
            found = {"name": name} if name in self.server.schemas else None
        self._answer(404 if found is None else 200, found or {})

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if said["catalog_name"] != "unity":
            self._answer(404, {"error_code": "NOT_FOUND"})
            return
        if self._asked() == "schemas":
            self.server.schemas.add(f"unity.{said['name']}")
        else:
            name = f"unity.{said['schema_name']}.{said['name']}"
            assert f"unity.{said['schema_name']}" in self.server.schemas
            assert name not in self.server.tables
            self.server.tables[name] = said
        self._answer(200, said)

    def do_DELETE(self) -> None:
        del self.server.tables[self._asked().removeprefix("tables/")]
        self._answer(200, {})

    def _asked(self) -> str:
        assert self.headers["Authorization"] == f"Bearer {TOKEN}"
        return unquote(self.path).removeprefix(f"{API}/")

    def _answer(self, status: int, said: Any) -> None:
        body = json.dumps(said).encode() if self.server.page is None else self.server.page
        self.send_response(503 if self.server.is_busy else self.server.status or status)
        if self.server.status is not None:
            self.send_header("Location", f"{self.server.uri}{API}/tables/there")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def running_unity() -> Iterator[Unity]:
    with Unity() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run(
            "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), P NUMBER(12,2))",
            "COMMENT ON TABLE ORDERS IS 'Orders of customers'",
            "COMMENT ON COLUMN ORDERS.V IS 'What the customer''s order says'",
            "INSERT INTO ORDERS VALUES (1, 'first', 1.5)",
        )
        yield running


def _config(oracle: Oracle, path: Path, uri: str, **lake: Any) -> SourceConfig:
    catalog = {
        "catalog": "unity",
        "changelog_name": "{catalog}.{owner_lower}.{table_lower}_changes",
        "unity": {"uri": uri, "token": SecretStr(TOKEN)},
    }
    return oracle.config(path, "ORDERS", lake={"catalog": {**catalog, **lake}})


def _failures(pipeline: Pipeline) -> list[str | None]:
    return [one.failed for one in pipeline.register_tables(looks_at_all=True)]


def test_tables_are_named_without_spark(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*_: object, **__: object) -> None:
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr(session, "parent_session", no_spark)
    with running_unity() as unity, Pipeline(_config(oracle, tmp_path, unity.uri)) as pipeline:
        list(pipeline.run_once())
        [found] = pipeline.register_tables()
        assert found.names == ("unity.demo.orders", "unity.demo.orders_changes")
        assert list(pipeline.register_tables()) == []
        assert _failures(pipeline) == []
        mirror = unity.tables["unity.demo.orders"]
        assert (mirror["table_type"], mirror["data_source_format"]) == ("EXTERNAL", "DELTA")
        path = tmp_path / "lake/src/mirror/demo.orders"
        assert mirror["storage_location"] == path.as_uri()
        columns = {one["name"]: one for one in mirror["columns"]}
        assert (columns["ID"]["type_text"], columns["ID"]["type_name"]) == ("bigint", "LONG")
        price = columns["P"]
        assert (price["type_text"], price["type_precision"], price["type_scale"]) == ("decimal(12,2)", 12, 2)  # fmt: skip
        assert json.loads(price["type_json"])["type"] == "decimal(12,2)"
        changes = {one["name"]: one for one in unity.tables["unity.demo.orders_changes"]["columns"]}
        assert changes["_cdc_absent"]["type_text"] == "array<string>"
        assert changes["after"]["type_text"].startswith("struct<`ID`:bigint,`V`:string")
        assert changes["after"]["type_name"] == "STRUCT"
        table = DeltaTable(path)
        assert table.metadata().description == "Orders of customers"
        said = {one.name: one.metadata.get("comment") for one in table.schema().fields}
        assert said["V"] == "VARCHAR2(20): What the customer's order says"

        oracle.run("ALTER TABLE ORDERS ADD (W NUMBER(5))", "COMMENT ON COLUMN ORDERS.W IS 'Grams'", "INSERT INTO ORDERS VALUES (2, 'second', 2, 7)")  # fmt: skip
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        list(pipeline.run_once())
        assert [one.failed for one in pipeline.register_tables()] == [None]
        said = {one.name: one.metadata.get("comment") for one in DeltaTable(path).schema().fields}
        assert said["W"] == "NUMBER(5,0): Grams"
        assert [one.differences for one in pipeline.reconcile().tables] == [0]

        del unity.tables["unity.demo.orders"]
        assert _failures(pipeline) == [None]
        assert "unity.demo.orders" in unity.tables


def test_a_catalog_that_refuses_says_why(oracle: Oracle, tmp_path: Path) -> None:
    with running_unity() as unity:
        with Pipeline(_config(oracle, tmp_path, unity.uri)) as pipeline:
            list(pipeline.run_once())
            unity.is_busy = True
            assert "does not answer" in str(_failures(pipeline))
            unity.is_busy = False
            unity.tables["unity.demo.orders"] = {"storage_location": "file:///elsewhere"}
            assert "another table under this name" in str(_failures(pipeline))
        with Pipeline(_config(oracle, tmp_path, unity.uri, catalog="nowhere")) as pipeline:
            assert "Unity Catalog refused" in str(_failures(pipeline))
    with Pipeline(_config(oracle, tmp_path, unity.uri)) as pipeline:
        assert "does not answer" in str(_failures(pipeline)), "nobody listens any more"


def test_a_redirection_and_a_page_are_no_answers(tmp_path: Path) -> None:
    """A proxy that sends a browser to its login, or to https: nothing was registered, and the token goes nowhere else."""
    write_deltalake(tmp_path, pa.table({"ID": [1]}))
    with running_unity() as unity:
        names = UnityNames(UnityConfig(uri=unity.uri, token=SecretStr(TOKEN)))
        unity.schemas.add("unity.demo")
        unity.tables["there"] = {}
        for status in (301, 302, 303, 307, 308):
            unity.status = status
            with pytest.raises(LakeError, match="refused") as error:
                names.create("unity.demo.orders", str(tmp_path))
            assert error.value.facts["status"] == status
        unity.status, unity.page = None, b"<html>log in</html>"
        with pytest.raises(LakeError, match="does not answer"):
            names.place("there")


@pytest.mark.parametrize(
    ("catalog", "says"),
    [
        ({"unity": {"uri": "https://u"}}, "three parts"),
        ({"catalog": "u", "mirror_name": "a.{table}", "unity": {"uri": "https://u"}}, "three parts"),
        ({"catalog": "u", "unity": {"uri": "u"}}, "begins with https"),
        ({"catalog": "u", "unity": {"uri": "https://a:secret@u"}}, "token_env"),
        ({"catalog": "u", "unity": {"uri": "https://u", "token": "secret\n"}}, "line break"),
    ],
)  # fmt: skip
def test_what_is_no_catalog_is_refused(catalog: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says) as caught:
        LakeConfig.model_validate({"path": "/l", "catalog": catalog})
    assert "secret" not in str(caught.value)
