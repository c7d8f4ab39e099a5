"""OpenLineage's client is told of windows and chunks: runs that start and end, tables in their order, columns through renames and masks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdc_core.errors import ConfigError, PreflightError
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), SECRET VARCHAR2(20))",
    "INSERT INTO T VALUES (1, 'a', 'hidden')",
)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the client writes, as its own configuration says."""
    file = tmp_path / "lineage.jsonl"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    (tmp_path / "openlineage.yml").write_text(yaml.safe_dump({"transport": transport}))
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(tmp_path / "openlineage.yml"))
    return file


@pytest.fixture
def source(oracle: Oracle, told: Path, tmp_path: Path) -> Iterator[Source]:
    more = {"openlineage": {"enabled": True, "namespace": "cdc"}}
    with source_of(oracle, tmp_path, **more) as opened:
        opened.configure({"name": "T", "columns_mask": {"SECRET": "stars(3)"}})
        opened.run()
        yield opened


def events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def test_each_window_is_a_run_from_oracle_to_the_mirror(
    oracle: Oracle, source: Source, told: Path
) -> None:
    before = len(events(told))
    assert before == 4, "one chunk: change log and mirror, begun and ended"
    oracle.run("ALTER TABLE T RENAME COLUMN V TO W", "UPDATE T SET W = 'b'")
    source.windows()
    found = events(told)[before:]
    assert [one["eventType"] for one in found] == ["START", "COMPLETE"] * 2
    assert len({one["run"]["runId"] for one in found}) == 2
    job = f"{source.pipeline.config.name}.{OWNER}.T"
    assert [one["job"]["name"] for one in found[::2]] == [f"{job}.changelog", f"{job}.mirror"]
    assert {one["job"]["namespace"] for one in found} == {"cdc"}
    log, mirror = found[1], found[3]
    [table], [changelog] = log["inputs"], log["outputs"]
    host, _, service = oracle.server.dsn.partition("/")
    assert (table["namespace"], table["name"]) == (f"oracle://{host}", f"{service}.{OWNER}.T")
    assert changelog["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert [(one["namespace"], one["name"]) for one in mirror["inputs"]] == [
        (changelog["namespace"], changelog["name"])
    ]
    assert made_of(log) == {
        "after.ID": ("ID", "IDENTITY", False),
        "after.V": ("W", "IDENTITY", False),
        "after.SECRET": ("SECRET", "TRANSFORMATION", True),
    }
    assert made_of(mirror)["W"] == ("after.V", "IDENTITY", False)
    assert found[0]["eventTime"] <= log["eventTime"]


def made_of(event: dict[str, Any]) -> dict[str, tuple[str, str, bool]]:
    [output] = event["outputs"]
    found = {}
    for name, one in output["facets"]["columnLineage"]["fields"].items():
        [source] = one["inputFields"]
        [how] = source["transformations"]
        found[name] = (source["field"], how["subtype"], how["masking"])
    assert found.keys() == {one["name"] for one in output["facets"]["schema"]["fields"]}
    return found


def test_a_table_that_stops_is_a_run_that_failed(
    oracle: Oracle, source: Source, told: Path
) -> None:
    oracle.run("INSERT INTO T VALUES (2, 'b', 's')", "DROP TABLE T")
    source.windows()
    [failed] = [one for one in events(told) if one["eventType"] == "FAIL"]
    assert failed["job"]["name"].endswith(f"{OWNER}.T.changelog")
    assert failed["run"]["facets"]["errorMessage"]["message"]
    assert "hidden" not in told.read_text()


def test_a_transport_that_fails_costs_no_window(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineage = source.pipeline.lineage
    assert lineage is not None

    def fails(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(lineage._client, "emit", fails)
    oracle.run("UPDATE T SET V = 'b'")
    source.windows()
    assert source.ops("T").endswith("u")


def test_a_transport_that_fails_at_the_end_keeps_nothing_open(
    source: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lineage = source.pipeline.lineage
    assert lineage is not None

    def fails(**_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(lineage._client, "close", fails)
    source.close()
    assert "lineage was not delivered: ConnectionError" in caplog.text
    source.run()


def test_its_own_configuration_is_refused_by_our_error(
    oracle: Oracle, tmp_path: Path, told: Path
) -> None:
    (tmp_path / "openlineage.yml").write_text("transport: {type: nowhere}")
    with (
        pytest.raises(ConfigError, match="does not take its configuration"),
        source_of(oracle, tmp_path, "T", openlineage={"enabled": True}) as opened,
    ):
        opened.run()


def test_it_says_which_package_is_missing(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with (
        pytest.raises(PreflightError, match="OpenLineage's client") as refused,
        source_of(oracle, tmp_path, "T", openlineage={"enabled": True}) as opened,
    ):
        opened.run()
    assert "redolake[openlineage]" in (refused.value.hint or "")
