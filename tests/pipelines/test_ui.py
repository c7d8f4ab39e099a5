"""The UI's folder and start, without starting it."""

from __future__ import annotations

import socket
from pathlib import Path

import dagster as dg
import pytest
from rich.console import Console

from cdc_core.errors import ConfigError, PreflightError
from pipelines.ui import dagster_home, prepare_home, serve_ui
from tests.free_port import free_port

SOURCE = """\
type: assets.components.OracleCdc
attributes:
  name: hr
  oracle: {dsn: "localhost:1521/X", user: cdc, password_env: HR_PASSWORD}
  tables: [{name: HR.EMPLOYEES}]
  landing: {type: local, path: landing}
  lake: {path: lake}
  state: {url: "sqlite:///state.db"}
"""


@pytest.mark.parametrize(
    ("file", "environ", "home"),
    [
        pytest.param("/srv/hr/defs.yaml", {}, "/srv/hr/.redolake/dagster", id="beside-the-file"),
        pytest.param("/p/.redolake/demo/defs.yaml", {}, "/p/.redolake/demo/dagster", id="demo"),
        pytest.param("/srv/hr/defs.yaml", {"DAGSTER_HOME": "/var/d"}, "/var/d", id="named"),
    ],
)
def test_dagster_keeps_its_files(file: str, environ: dict[str, str], home: str) -> None:
    assert dagster_home(Path(file), environ) == Path(home)


def test_our_settings_are_valid_and_never_overwrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    prepare_home(tmp_path / "home")
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        assert not instance.telemetry_enabled
        assert instance.run_monitoring_enabled
        limits = instance.get_concurrency_config()
        assert limits.run_queue_config is not None
        assert limits.run_queue_config.max_concurrent_runs == 4
    (tmp_path / "home" / "dagster.yaml").write_text("# mine\n")
    prepare_home(tmp_path / "home")
    assert (tmp_path / "home" / "dagster.yaml").read_text() == "# mine\n"


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    (tmp_path / "defs.yaml").write_text(SOURCE)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PreflightError, match="port of the web page is taken"):
            serve_ui(tmp_path / "defs.yaml", port=port, console=Console())


def test_a_password_that_is_not_set_is_told_before_dagster_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    (tmp_path / "defs.yaml").write_text(SOURCE)
    with pytest.raises(ConfigError, match="HR_PASSWORD is not set"):
        serve_ui(tmp_path / "defs.yaml", port=free_port(), console=Console())
