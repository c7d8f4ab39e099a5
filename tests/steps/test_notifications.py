"""Who hears of what, over all channels: from a pipeline on an embedded Oracle."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.config.notifications import NotificationConfig
from cdc_core.errors import ConfigError
from cdc_core.model.signals import Signal
from cdc_core.signals.notification_channels import WebhookChannel, open_channels
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of

HEARD: list[tuple[str, dict[str, Any]]] = []


class Ear:
    """A channel as a user would write it."""

    def send(self, source: str, notification: dict[str, Any]) -> None:
        HEARD.append((source, notification))


class Deaf:
    """A channel that fails."""

    def send(self, source: str, notification: dict[str, Any]) -> None:
        raise RuntimeError(f"secret of {source}, {len(notification)}")


class Hook:
    """A web server that fails as often as it is told to."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.bodies: list[dict[str, Any]] = []
        self.secrets: list[str | None] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.bodies.append(json.loads(body))
                hook.secrets.append(self.headers["Authorization"])
                self.send_response(hook.codes.pop(0) if hook.codes else 200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/hook"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 150",
)


def source_with(oracle: Oracle, path: Path, **notifications: Any) -> Any:
    more = {"snapshot": {"chunk_rows": 100}, "notifications": notifications}
    return source_of(oracle, path, "T", **more)


def kinds(source: Source) -> list[tuple[str, str]]:
    found = source.pipeline.records.notifications(limit=100)
    return [(one.aggregate_type, one.type) for one in found]


FIRST = [
    ("Initial Snapshot", "STARTED"),
    ("Initial Snapshot", "IN_PROGRESS"),
    ("Initial Snapshot", "IN_PROGRESS"),
    ("Initial Snapshot", "TABLE_SCAN_COMPLETED"),
    ("Initial Snapshot", "COMPLETED"),
]


def test_every_step_of_snapshots_is_kept_with_debezium_s_fields(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_with(oracle, tmp_path, channels=["store"]) as source:
        source.run()
        assert [one for one in kinds(source) if one[0] != "Table"] == FIRST
        data = {"data-collections": [f"{OWNER}.T"]}
        for name, kind in (("go", "execute-snapshot"), ("hold", "pause-snapshot")):
            source.pipeline.add_signal(Signal(id=name, source="src", type=kind, data=data))
        source.pipeline.take_signals()
        for name, kind in (("on", "resume-snapshot"), ("end", "stop-snapshot")):
            source.pipeline.add_signal(Signal(id=name, source="src", type=kind, data={}))
        source.pipeline.take_signals()
        found = source.pipeline.records.notifications(limit=4)
        assert [(one.aggregate_type, one.type, one.id) for one in found] == [
            ("Incremental Snapshot", "STARTED", "go"),
            ("Incremental Snapshot", "PAUSED", "hold"),
            ("Incremental Snapshot", "RESUMED", "on"),
            ("Incremental Snapshot", "ABORTED", "end"),
        ]
        scanned = [
            one.as_json()
            for one in source.pipeline.records.notifications(limit=100)
            if one.type == "TABLE_SCAN_COMPLETED"
        ]
        assert scanned[0]["additional_data"] == {
            "connector_name": "src",
            "data_collections": f"{OWNER}.T",
            "scanned_collection": f"{OWNER}.T",
            "total_rows_scanned": "150",
            "status": "SUCCEEDED",
        }
        assert scanned[0]["timestamp"] > 1_600_000_000_000
        source.close()
        assert source.pipeline.begin().work == "stream"
        assert kinds(source)[-1] == ("Initial Snapshot", "SKIPPED")


def test_a_table_that_stops_is_told(oracle: Oracle, tmp_path: Path) -> None:
    with source_with(oracle, tmp_path, channels=["store"]) as source:
        source.run()
        source.oracle.run("TRUNCATE TABLE T", "INSERT INTO T VALUES (1)")
        source.run()
        stopped = source.pipeline.records.notifications(limit=1)[0]
        assert (stopped.aggregate_type, stopped.type) == ("Table", "STOPPED")
        assert stopped.data["scanned_collection"] == f"{OWNER}.T"


def test_the_store_keeps_the_newest(oracle: Oracle, tmp_path: Path) -> None:
    with source_with(oracle, tmp_path, channels=["store"], keep=2) as source:
        source.run()
        assert kinds(source)[-1] == FIRST[-1]
        assert len(kinds(source)) == 2


def test_a_class_and_the_log_hear_the_same_and_a_failing_one_stops_nothing(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    HEARD.clear()
    ear = "tests.steps.test_notifications:Ear"
    with (
        caplog.at_level("INFO", logger="cdc_core.notifications"),
        source_with(oracle, tmp_path, channels=["custom", "log"], custom=ear) as source,
    ):
        source.run()
    heard = [(one["aggregate_type"], one["type"]) for _, one in HEARD]
    assert [one for one in heard if one[0] != "Table"] == FIRST
    logged = [
        one.getMessage() for one in caplog.records if "notification source=src" in one.message
    ]
    assert len(logged) == len(heard)
    deaf = "tests.steps.test_notifications:Deaf"
    with source_with(oracle, tmp_path / "two", channels=["custom"], custom=deaf) as source:
        source.run()
        source.check_exact("T")
    assert "was not sent channel=Deaf" in caplog.text
    assert "secret" not in caplog.text


def test_a_webhook_is_tried_again_and_gets_the_secret() -> None:
    hook = Hook(503, 200)
    try:
        WebhookChannel(hook.url, "s3cret", 3).send("src", {"type": "STARTED"})
        assert hook.bodies == [{"type": "STARTED", "source": "src"}] * 2
        assert set(hook.secrets) == {"Bearer s3cret"}
        hook.codes = [403]
        with pytest.raises(OSError, match="403"):
            WebhookChannel(hook.url, None, 3).send("src", {"type": "COMPLETED"})
        assert len(hook.bodies) == 3, "what will not pass is sent once"
    finally:
        hook.close()


@pytest.mark.parametrize(
    "given",
    [
        {"channels": ["webhook"]},
        {"channels": ["custom"]},
        {"webhook_url": "ftp://x"},
        {"webhook_url": "https://me:pass@x"},
    ],
)
def test_what_cannot_be_sent_is_refused_beforehand(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        NotificationConfig.model_validate(given)
    assert "pass@" not in str(error.value)


def test_a_class_that_is_none_is_named() -> None:
    config = NotificationConfig(channels=("custom",), custom="tests.steps.test_notifications:HEARD")
    with pytest.raises(ConfigError, match=r"notifications\.custom"):
        open_channels(config)
