"""What the built distributions hold: the product in one, the embedded Oracle in the other, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.distribution.wheels import ROOT, build, install

PACKAGES = {
    "redolake": {"cdc_core", "diagnosis", "assets", "pipelines", "redolake"},
    "redolake_oracle_embedded": {"oracle_embedded"},
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ZipFile]:
    """Both wheels, built from this folder."""
    return build(tmp_path_factory.mktemp("dist"))


def _metadata(wheel: ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_holds_its_packages_whole_and_no_other(
    wheels: dict[str, ZipFile], name: str
) -> None:
    held = {file for file in wheels[name].namelist() if ".dist-info/" not in file}
    assert {file.split("/")[0] for file in held} == PACKAGES[name]
    modules = {
        str(path.relative_to(ROOT))
        for package in PACKAGES[name]
        for path in (ROOT / package).rglob("*.py")
    }
    assert {file for file in held if file.endswith(".py")} == modules


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("redolake", "cdc_core/py.typed"),
        ("redolake", "assets/py.typed"),
        ("redolake", "pipelines/py.typed"),
        ("redolake", "redolake/py.typed"),
        ("redolake", "cdc_core/state/migrations/script.py.mako"),
        ("redolake", "pipelines/dagster.yaml"),
        ("redolake", "pipelines/debezium/properties.csv"),
        ("redolake_oracle_embedded", "oracle_embedded/py.typed"),
    ],
)
def test_a_wheel_holds_the_files_that_its_code_reads(
    wheels: dict[str, ZipFile], name: str, file: str
) -> None:
    assert file in wheels[name].namelist()


@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_names_its_licence_and_its_authors(wheels: dict[str, ZipFile], name: str) -> None:
    found = _metadata(wheels[name])
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Author"] == "Redolake contributors"
    [licence] = [file for file in wheels[name].namelist() if file.endswith("licenses/LICENSE")]
    assert wheels[name].read(licence) == (ROOT / "LICENSE").read_bytes()


def test_the_extra_demo_asks_for_the_embedded_oracle_of_the_same_version(
    wheels: dict[str, ZipFile],
) -> None:
    main, embedded = (_metadata(wheels[name]) for name in PACKAGES)
    wanted = f"redolake-oracle-embedded=={embedded['Version']}; extra == 'demo'"
    assert wanted in main.get_all("Requires-Dist", [])
    assert main["Version"] == embedded["Version"]


def test_the_wheel_installs_the_command(wheels: dict[str, ZipFile]) -> None:
    [name] = [name for name in wheels["redolake"].namelist() if name.endswith("entry_points.txt")]
    text = wheels["redolake"].read(name).decode()
    assert re.search(r"^redolake = pipelines\.cli:main$", text, re.MULTILINE)


@pytest.mark.slow
def test_both_wheels_work_in_an_empty_environment(
    wheels: dict[str, ZipFile], tmp_path: Path
) -> None:
    """Installed elsewhere, without the clone; only what they depend on comes from this environment."""
    programs = install(wheels.values(), tmp_path / "empty")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: str) -> str:
        ended = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
        )
        return ended.stdout

    redolake = str(programs / "redolake")
    assert run(redolake, "--version").split() == [
        "redolake",
        _metadata(wheels["redolake"])["Version"],
    ]
    assert "--scale" in run(redolake, "demo", "--help")
    code = "import assets, cdc_core, oracle_embedded, pipelines.definitions as p; print(p.__file__, cdc_core.__file__)"
    assert all(
        file.startswith(str(programs.parent))
        for file in run(str(programs / "python"), "-c", code).split()
    )
