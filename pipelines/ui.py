"""What does ``redolake ui`` do?

Starts Dagster's webserver and daemon on loopback for one source, and the demo's database where the
source is the demo. First it shows Dagster what the command line has done, and releases runs whose
process died with an earlier UI.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from rich.console import Console

from assets.alerts import show_alerts
from assets.components import OracleCdc
from assets.history import add_partitions, remove_partitions, report_history
from assets.named_file import load_component
from assets.runs import release_dead_runs
from assets.waiting import snapshot_keys, window_keys
from cdc_core.errors import PreflightError
from cdc_core.model.wording import counted
from cdc_core.steps import Pipeline
from pipelines.config_file import CONFIG_ENV
from pipelines.demo_oracle import database_of

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = Path(__file__).with_name("dagster.yaml")
HOST = "127.0.0.1"
START_SECONDS = 120
STOP_SECONDS = 30
POLL_SECONDS = 0.5
HOME_ENV = "DAGSTER_HOME"
OUR_FOLDER = ".redolake"


def serve_ui(config_file: Path, *, port: int, console: Console) -> int:
    """Serve until Ctrl-C or SIGTERM; returns 0, or Dagster's exit code if it ends first.

    Raises:
        ConfigError: The configuration file is missing or wrong.
        PreflightError: The port is taken, or Dagster did not start.
    """
    component = load_component(config_file)
    _refuse_taken_port(port)
    home = dagster_home(config_file, os.environ)
    prepare_home(home)
    os.environ[HOME_ENV] = str(home)  # its dagster.yaml refers to it
    with database_of(config_file, os.environ) as environ:
        with dg.DagsterInstance.from_config(str(home)) as instance:
            off = [
                name
                for one in component.sources
                for name in _show_source(one, instance, environ, console)
            ]
        environ |= {CONFIG_ENV: str(config_file)}
        log = home / "dagster.log"
        with _dagster(port, environ, log) as process:
            url = f"http://{HOST}:{port}"
            _await_ready(process, url, log)
            console.print(f"Dagster is ready: [bold]{url}[/] (Ctrl-C ends it)")
            console.print(f"Its log: {log}", soft_wrap=True)
            if off:
                console.print(f"These are off, so nothing runs automatically: {', '.join(off)}.")
                console.print(f"Switch them on at {url}/automation", soft_wrap=True)
            return _wait(process)


def _show_source(
    source: OracleCdc, instance: dg.DagsterInstance, environ: Mapping[str, str], console: Console
) -> list[str]:
    """Show Dagster what was done of a source; returns the names of its sensors that are off."""
    config = source.read(environ)
    with Pipeline(config) as pipeline:
        keys = window_keys(config, source.translator) | set(
            snapshot_keys(config, source.translator)
        )
        released = release_dead_runs(instance, pipeline, config, keys)
        added = add_partitions(instance, pipeline.records, config, source.translator)
        events = report_history(instance, pipeline.records, config, source.translator)
        if pipeline.records.is_begun:
            events += show_alerts(instance, source.translator, pipeline.alerts())
        remove_partitions(instance, pipeline.records, source.translator)
    if released:
        console.print(
            f"Released {counted(len(released), 'run')} of dead processes; the next runs continue the work"
        )
    if added or events:
        console.print(
            f"Reported finished work to Dagster: {counted(added, 'partition')}, {counted(events, 'event')}"
        )
    on = sensors_on(source, instance)
    return [name for name in sensor_names(source) if name not in on]


def sensor_names(source: OracleCdc) -> list[str]:
    """The sensors that a source needs to run unattended; the schedule instead of one if it is
    configured."""
    name, has_cron = source.translator.source, source.options.windows.cron is not None
    windows = f"{name}_windows_schedule" if has_cron else f"{name}_windows_sensor"
    return [windows, f"{name}_snapshots_sensor"]


def sensors_on(source: OracleCdc, instance: dg.DagsterInstance) -> set[str]:
    """Those of them that somebody has switched on, or that the configuration does."""
    options = source.options
    enabled = (options.windows.enabled, options.snapshots.enabled)
    status = {
        state.instigator_name: state.status.value for state in instance.all_instigator_state()
    }
    on = ("RUNNING", "DECLARED_IN_CODE")
    return {
        name
        for name, by_default in zip(sensor_names(source), enabled, strict=True)
        if (status.get(name, "DECLARED_IN_CODE") in on if by_default else status.get(name) == on[0])
    }


def dagster_home(config_file: Path, environ: Mapping[str, str]) -> Path:
    """Where Dagster keeps its files: ``DAGSTER_HOME``, else ``.redolake/dagster`` next to the
    configuration file."""
    if environ.get(HOME_ENV):
        return Path(environ[HOME_ENV]).expanduser()
    folder = config_file.parent
    inside = OUR_FOLDER in folder.parts
    return folder / "dagster" if inside else folder / OUR_FOLDER / "dagster"


def prepare_home(home: Path) -> None:
    """Make the folder, with our settings unless it has some."""
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(TEMPLATE, home / "dagster.yaml")


def _refuse_taken_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise PreflightError(
                "the port of the web page is taken",
                hint="Stop the program that uses it, or choose another port: `redolake ui --port 3001`.",
                port=port,
            ) from error


@contextmanager
def _dagster(port: int, environ: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``dagster dev`` in its own process group, so that Ctrl-C reaches it once, from us."""
    command = [sys.executable, "-m", "dagster", "dev", "-h", HOST, "-p", str(port)]
    command += ["-m", "pipelines.definitions", "-d", str(ROOT)]
    paths = [str(ROOT), environ.get("PYTHONPATH", "")]
    own = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, env={**environ, **own}, stdout=output, stderr=output, start_new_session=True
        )
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            yield process
        finally:
            signal.signal(signal.SIGTERM, before)
            _stop(process)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _await_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/server_info", timeout=5):  # noqa: S310 - our own
                return
        except (urllib.error.URLError, OSError):
            time.sleep(POLL_SECONDS)
    raise PreflightError(
        "Dagster did not start",
        hint="See the log for its error message.",
        log=log,
        exit_code=process.poll(),
    )


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except KeyboardInterrupt:
        return 0


def _stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM ends webserver, daemon and code server; what is left of the group after a while is
    killed."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
