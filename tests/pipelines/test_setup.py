"""Set-up: what is made from what, when it is skipped, and what a client's settings become."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cdc_core.errors import ConfigError
from cdc_core.runtime.jars import JARS
from pipelines import setup

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bootstrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The bootstrap script as a module, working in an empty folder."""
    spec = importlib.util.spec_from_file_location(
        "redolake_bootstrap", ROOT / "deploy" / "setup" / "bootstrap.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    state, venv = tmp_path / ".redolake", tmp_path / ".venv"
    for name, value in {
        "ROOT": tmp_path,
        "STATE": state,
        "TOOLS": state / "tools",
        "VENV": venv,
        "JARS": venv / "jars",
        "STAMP": state / "setup.json",
        "RUNNING": state / "setup.running",
        "INPUTS": (tmp_path / "requirements.lock",),
    }.items():
        monkeypatch.setattr(module, name, value)
    (tmp_path / "requirements.lock").write_text("uv==1.0\n")
    (venv / "bin").mkdir(parents=True)
    (venv / "jars").mkdir()
    state.mkdir()
    for name in ("bin/python", "bin/redolake", "jars/delta.jar"):
        (venv / name).write_text("made")
    return module


def test_set_up_is_skipped_after_the_stamp_was_written(bootstrap: ModuleType) -> None:
    assert not bootstrap.is_set_up()
    bootstrap.write_stamp()
    assert bootstrap.is_set_up()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("requirements.lock", "uv==2.0\n", id="another-lock-file"),
        pytest.param(".venv/jars/delta.jar", None, id="a-jar-is-gone"),
        pytest.param(".venv/jars/delta.jar", "cut", id="a-jar-has-another-size"),
        pytest.param(".venv/bin/redolake", None, id="the-command-is-gone"),
        pytest.param(".redolake/setup.json", "{", id="the-stamp-is-cut"),
    ],
)
def test_set_up_runs_again_when_something_changed(
    bootstrap: ModuleType, name: str, content: str | None
) -> None:
    bootstrap.write_stamp()
    path = bootstrap.ROOT / name
    path.unlink() if content is None else path.write_text(content)
    assert not bootstrap.is_set_up()


def test_a_venv_of_an_interrupted_set_up_is_made_anew(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packages that were being laid down when the end came cannot be trusted."""
    calls: list[str] = []
    monkeypatch.setattr(bootstrap, "uv", lambda _environment, *parts: calls.append(parts[0][0]))
    monkeypatch.setattr(bootstrap, "is_venv_usable", lambda: True)
    bootstrap.make_venv({})
    assert calls == ["pip"]
    assert bootstrap.RUNNING.exists()
    calls.clear()
    bootstrap.make_venv({})
    assert calls == ["venv", "pip"]


def test_a_venv_that_does_not_start_is_not_usable(bootstrap: ModuleType) -> None:
    assert not bootstrap.is_venv_usable()
    python = bootstrap.VENV / "bin" / "python"
    python.unlink()
    python.symlink_to(sys.executable)
    assert bootstrap.is_venv_usable()


def test_uv_comes_as_the_lock_file_pins_it(bootstrap: ModuleType) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = bootstrap.uv_requirement(lock)
    assert re.match(r"uv==[\d.]+ \\\n    --hash=sha256:", pinned)
    assert not pinned.rstrip("\n").endswith("\\")
    with pytest.raises(bootstrap.SetUpError, match="does not pin uv"):
        bootstrap.uv_requirement("ruff==1.0 \\\n    --hash=sha256:00\n")


def test_the_lock_file_pins_every_package_by_hash_and_names_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    entries = re.split(r"\n(?=[A-Za-z0-9])", lock.partition("\nalembic")[2])
    assert len(entries) > 100
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in lock
    assert "://" not in (ROOT / "deploy" / "setup" / "build.lock").read_text()


def test_pips_settings_reach_uv(bootstrap: ModuleType, tmp_path: Path) -> None:
    listing = (
        "global.index-url='https://mirror.example/simple'\n"
        ":env:.index-url='https://nearer.example/simple'\n"
        "global.cert='/etc/own.pem'\n"
        f"global.find-links='{tmp_path} /nowhere/at/all'\n"
        ":env:.disable-pip-version-check='1'\n"
    )
    assert bootstrap.uv_settings(bootstrap.pip_settings(listing)) == {
        "UV_DEFAULT_INDEX": "https://nearer.example/simple",
        "SSL_CERT_FILE": "/etc/own.pem",
        "UV_FIND_LINKS": str(tmp_path),
    }


def test_a_second_set_up_waits_for_the_first(bootstrap: ModuleType) -> None:
    with bootstrap.one_at_a_time():
        assert (bootstrap.STATE / "setup.lock").exists()
    with bootstrap.one_at_a_time():
        pass


def test_proxies_become_options_of_the_jvm() -> None:
    options = setup.proxy_options(
        {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "localhost,.corp.example"}
    )
    assert options == [
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.corp.example",
    ]
    assert setup.proxy_options({}) == []
    with pytest.raises(ConfigError, match="no host"):
        setup.proxy_options({"HTTPS_PROXY": "http://:3128"})


def test_mavens_mirrors_of_central_are_used(tmp_path: Path) -> None:
    settings = tmp_path / ".m2" / "settings.xml"
    settings.parent.mkdir()
    settings.write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors>'
        "<mirror><mirrorOf>central</mirrorOf><url>https://a.example/maven</url></mirror>"
        "<mirror><mirrorOf>*,!central</mirrorOf><url>https://b.example/maven</url></mirror>"
        "</mirrors></settings>"
    )
    assert setup.repository_options(tmp_path) == {
        "spark.jars.repositories": "https://a.example/maven"
    }
    assert setup.repository_options(tmp_path / "elsewhere") == {}
    settings.write_text("<settings>")
    with pytest.raises(ConfigError, match="Maven's settings cannot be read"):
        setup.repository_options(tmp_path)


def test_set_up_with_everything_there_fetches_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A repeated set-up names Java and jars, and starts no resolver."""
    made = [tmp_path / jar.file_name for jar in JARS]
    monkeypatch.setattr(setup, "verify_jars", lambda *_arguments: [])
    monkeypatch.setattr(setup, "install_jars", lambda *_args, **_options: made)
    lines: list[str] = []
    done = setup.set_up(tmp_path, say=lines.append)
    assert not done.fetched
    assert done.jars == tuple(made)
    assert len(lines) == 2
