"""The command line on a configuration of two pluggable databases, from the embedded Oracle into Delta tables."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner

from assets.components import OracleCdc
from cdc_core import fleet
from cdc_core.errors import (
    CdcError,
    OracleUnavailableError,
    PreflightError,
    StoreUnavailableError,
)
from pipelines.cli import app
from pipelines.commands import following
from tests.oracle.embedded import ContainerDatabase, container_database

ONE, TWO = "ORCLPDB1", "ORCLPDB2"


@pytest.fixture
def cdb() -> Iterator[ContainerDatabase]:
    with container_database() as cdb:
        for name, oracle in cdb.pdbs.items():
            oracle.run(
                "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
                f"INSERT INTO T VALUES (1, '{name}')",
            )
        cdb.pdbs[TWO].run("CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)")
        yield cdb


@pytest.fixture
def folder(cdb: ContainerDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    attributes = {
        "name": "erp",
        "oracle": {
            "dsn": cdb.dsn,
            "user": "C##REDOLAKE",
            "password_env": "ERP_PASSWORD",
            "pdbs": [ONE, TWO],
        },
        "tables": [{"name": "DEMO.T"}, {"name": f"{TWO}.DEMO.U"}],
        "capture": {"close_at": "online"},
        "landing": {"type": "local", "path": "landing"},
        "lake": {"path": "lake"},
        "state": {"url": "sqlite:///state.db"},
    }
    monkeypatch.setenv("ERP_PASSWORD", "capture")
    file = tmp_path / "defs.yaml"
    document = {"type": "assets.components.OracleCdc", "attributes": attributes}
    file.write_text(yaml.safe_dump(document))
    monkeypatch.setenv("REDOLAKE_CONFIG", str(file))
    return tmp_path


def redolake(*arguments: str) -> Any:
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, list(arguments))


def found_json(*arguments: str) -> Any:
    result = redolake(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def mirror(folder: Path, source: str) -> list[Any]:
    table = DeltaTable(str(folder / "lake" / source / "mirror" / "demo.t"))
    rows: pa.Table = table.to_pyarrow_table(columns=["ID", "V"])
    return sorted(zip(*rows.to_pydict().values(), strict=True))


def test_one_file_carries_both(folder: Path, cdb: ContainerDatabase) -> None:
    """Each into Delta tables of its own; all stand at one SCN, which `status` names."""
    result = redolake("run")
    assert result.exit_code == 0, result.output
    for name, oracle in cdb.pdbs.items():
        oracle.run(f"INSERT INTO T VALUES (2, '{name} new')")
    result = redolake("run")
    assert result.exit_code == 0, result.output
    assert f"{ONE}: 1 change in 1 window applied" in result.output
    for name in (ONE, TWO):
        assert mirror(folder, f"erp_{name.lower()}") == [(1, name), (2, f"{name} new")]
    found = found_json("status")
    positions = {table["position"] for one in found["pdbs"].values() for table in one["tables"]}
    assert positions == {found["common_scn"]}
    tables = found_json("table", "list")["pdbs"]
    assert {name: [one["table"] for one in found] for name, found in tables.items()} == {
        ONE: ["DEMO.T"], TWO: ["DEMO.T", "DEMO.U"]
    }  # fmt: skip


def test_one_that_is_gone_stops_alone_and_doctor_names_it(
    folder: Path, cdb: ContainerDatabase
) -> None:
    assert redolake("run").exit_code == 0
    cdb.drop(TWO)
    cdb.pdbs[ONE].run("INSERT INTO T VALUES (2, 'later')")
    result = redolake("run")
    assert result.exit_code == 2
    assert f"{TWO} stopped" in result.output
    assert "there is no such pluggable database" in result.output
    assert mirror(folder, "erp_orclpdb1") == [(1, ONE), (2, "later")]
    status = found_json("status")
    assert [one["scn_oracle"] is None for one in status["pdbs"].values()] == [False, True]
    checks = json.loads(redolake("doctor", "--json").stdout)["checks"]
    assert {f"{ONE}: Oracle", f"{TWO}: Oracle"} <= {one["name"] for one in checks}
    assert [(one["name"], "oracle.pdbs" in one["remedy"]) for one in checks if not one["ok"]] == [
        (f"{TWO}: Oracle", True)
    ]


def test_snapshot_and_capture_take_both_to_one_scn_in_steps_of_their_own(
    folder: Path, cdb: ContainerDatabase
) -> None:
    assert redolake("snapshot").exit_code == 0
    scn = found_json("status")["common_scn"]
    assert scn is not None
    cdb.pdbs[ONE].run("INSERT INTO T VALUES (2, 'new')")
    result = redolake("capture")
    assert result.exit_code == 0, result.output
    assert f"{ONE}: 1 window with" in result.output
    assert f"{TWO}: 1 window with" in result.output
    windows = {name: one["windows"] for name, one in found_json("windows")["pdbs"].items()}
    assert [one["key"] for one in windows[ONE]] == [one["key"] for one in windows[TWO]]
    assert redolake("apply").exit_code == 0
    [end] = [one["key"].split("_")[-1] for one in windows[ONE]]
    assert f"can be read as of SCN {end}." in redolake("status").output
    again = redolake("snapshot", "--table", "DEMO.U")
    assert again.exit_code == 0, again.output
    assert ONE not in again.output
    found = redolake("status").output
    assert f"DEMO.U in {TWO} was read as of SCN " in found
    assert f"and DEMO.T in {ONE} stands at SCN {end}: `redolake run` takes it there" in found


@pytest.mark.slow
def test_what_concerns_one_table_wants_to_know_where(folder: Path) -> None:
    assert redolake("run").exit_code == 0
    refused = redolake("table", "pause", "DEMO.T")
    assert refused.exit_code == 2
    assert f"Add --pdb with one of {ONE}, {TWO}" in refused.output
    assert redolake("--pdb", TWO.lower(), "table", "pause", "DEMO.T").exit_code == 0
    found = found_json("status")["pdbs"]
    states = {
        name: {one["table"]: one["state"] for one in source["tables"]}
        for name, source in found.items()
    }
    assert states == {ONE: {"DEMO.T": "ready"}, TWO: {"DEMO.T": "paused", "DEMO.U": "ready"}}
    assert [one["table"] for one in found_json("--pdb", ONE, "table", "list")] == ["DEMO.T"]
    unknown = redolake("--pdb", "HR", "status")
    assert "Leave --pdb out" in redolake("--pdb", ONE, "doctor").output
    assert unknown.exit_code == 2
    assert f"oracle.pdbs lists {ONE}, {TWO}" in unknown.output
    assert folder.exists()


@pytest.mark.slow
@pytest.mark.spark
def test_both_are_equal_to_oracle_at_the_scn_that_is_common(
    folder: Path, cdb: ContainerDatabase
) -> None:
    """Rows that are changed in both, by one Spark; what comes later in one of them, and is carried for it alone, does not count."""
    assert redolake("run").exit_code == 0
    for name, oracle in cdb.pdbs.items():
        oracle.run("UPDATE T SET V = V || ' changed'", f"INSERT INTO T VALUES (2, '{name}')")
    assert redolake("run").exit_code == 0
    scn = found_json("status")["common_scn"]
    cdb.pdbs[TWO].run("DELETE FROM T")
    assert mirror(folder, "erp_orclpdb2") == [(1, f"{TWO} changed"), (2, TWO)]
    assert redolake("--pdb", TWO, "run").exit_code == 0
    assert mirror(folder, "erp_orclpdb2") == []
    compared = found_json("reconcile")
    assert compared["common_scn"] == scn
    found = compared["pdbs"]
    assert {one["scn"] for one in found.values()} == {scn}
    rows = {
        name: {one["table"]: (one["rows_oracle"], one["rows_delta"]) for one in one["tables"]}
        for name, one in found.items()
    }
    assert rows == {ONE: {"DEMO.T": (2, 2)}, TWO: {"DEMO.T": (2, 2), "DEMO.U": (0, 0)}}
    assert not any(table["differences"] for one in found.values() for table in one["tables"])


def test_a_loop_goes_on_without_what_cannot_come_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may go away by itself is tried again."""
    rounds: list[dict[str, CdcError | None]] = [
        {TWO: OracleUnavailableError("the database is not open"), ONE: None},
        {TWO: PreflightError("there is no such pluggable database")},
        {ONE: PreflightError("the user is gone")},
    ]
    asked: list[list[str]] = []

    def run_together(pipelines: dict[str, Any], **_: Any) -> fleet.Round:
        asked.append(list(pipelines))
        errors = {name: error for name, error in rounds[len(asked) - 1].items() if error}
        return fleet.Round({name: [] for name in pipelines}, errors)

    pauses: list[float] = []
    monkeypatch.setattr(fleet, "run_together", run_together)
    clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(following, "time", clock)  # the loop's alone: threads of others sleep too
    assert redolake("run", "--loop", "--every", "1").exit_code == 2
    assert asked == [[ONE, TWO], [ONE, TWO], [ONE]]
    assert len(pauses) == 2
    assert folder.exists()


def test_a_loop_waits_out_what_stops_the_round_of_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their metadata store is away between two steps, or this process gets no memory."""
    rounds: list[BaseException] = [
        StoreUnavailableError("the metadata store failed"),
        MemoryError(),
        KeyboardInterrupt(),
    ]

    def run_together(pipelines: dict[str, Any], **_: Any) -> fleet.Round:
        assert list(pipelines) == [ONE, TWO]
        raise rounds.pop(0)

    pauses: list[float] = []
    monkeypatch.setattr(fleet, "run_together", run_together)
    clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(following, "time", clock)
    result = redolake("run", "--loop", "--every", "1")
    assert result.exit_code == 130
    assert pauses == [2.0, 4.0]
    assert "the metadata store failed" in result.stderr
    assert "does not have enough memory" in result.stderr
    assert folder.exists()


def test_dagster_has_the_assets_jobs_and_sensors_of_each(folder: Path) -> None:
    defs = OracleCdc.from_file(folder / "defs.yaml").build_defs()
    keys = {key.to_user_string() for key in defs.resolve_all_asset_keys()}
    assert {
        "erp_orclpdb1/mirror/demo/t",
        "erp_orclpdb2/mirror/demo/t",
        "erp_orclpdb2/mirror/demo/u",
    } <= keys
    assert "erp_orclpdb1/mirror/demo/u" not in keys
    sensors = {sensor.name for sensor in defs.sensors or ()}
    assert {"erp_orclpdb1_windows_sensor", "erp_orclpdb2_windows_sensor"} <= sensors
    jobs = [job.name for job in defs.resolve_all_job_defs()]
    ours = [name.removeprefix("erp_orclpdb1") for name in jobs if "orclpdb1" in name]
    assert ours
    assert ours == [name.removeprefix("erp_orclpdb2") for name in jobs if "orclpdb2" in name]
