"""How does a Trino start for a test, on loopback and without Docker?

Its server comes from Maven Central: 476 is the newest there. It needs Java 24 or newer. Of its connectors the one for Delta Lake is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.free_port import free_port

VERSION = "476"
_SHA256 = "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f"
_FOLDER = Path(__file__).parents[2] / ".redolake" / "peers" / "trino"
_JAVA_MIN = 24
_JVM_OPTIONS = (
    "-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=256M",
    "-Djdk.attach.allowAttachSelf=true", "-Djdk.nio.maxCachedBufferSize=2000000",
    "--enable-native-access=ALL-UNNAMED", "--add-modules", "jdk.incubator.vector",
)  # fmt: skip
_START_SECONDS = 240
_HEADERS = {"X-Trino-User": "tests", "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME"}
"""Without the second, a client is taken for an old one, which gets times in milliseconds."""
_FETCH_SECONDS = 900


class RefusedError(Exception):
    """Trino refuses a statement."""


@dataclass(frozen=True, slots=True)
class Trino:
    """A running server, whose catalog ``delta`` has Delta tables by their names."""

    uri: str

    def ask(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a statement.

        Raises:
            RefusedError: With Trino's own words.
        """
        request = Request(f"{self.uri}/v1/statement", sql.encode(), _HEADERS)
        rows: list[dict[str, Any]] = []
        while True:
            with urlopen(request, timeout=120) as answer:
                said = json.load(answer)
            if error := said.get("error"):
                raise RefusedError(error["message"])
            names = [one["name"] for one in said.get("columns", ())]
            rows += [dict(zip(names, row, strict=True)) for row in said.get("data", ())]
            if "nextUri" not in said:
                return rows
            request = Request(said["nextUri"])

    def register(self, schema: str, name: str, path: str) -> None:
        """Give a Delta table a name."""
        self.ask(f"CREATE SCHEMA IF NOT EXISTS delta.{schema}")
        self.ask(f"CALL delta.system.register_table('{schema}', '{name}', 'file://{path}')")


@contextmanager
def running_trino(folder: Path) -> Iterator[Trino]:
    """Start it for the block; skips the test where it cannot be had."""
    java, home = _java(), _installed()
    port = free_port()
    catalogs = folder / "catalogs"
    catalogs.mkdir()
    _write(catalogs / "delta.properties", {
        "connector.name": "delta_lake",
        "hive.metastore": "file",
        "hive.metastore.catalog.dir": f"file://{folder / 'metastore'}",
        "fs.hadoop.enabled": "true",
        "delta.register-table-procedure.enabled": "true",
    })  # fmt: skip
    config = folder / "config.properties"
    _write(config, {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": str(port),
        "discovery.uri": f"http://127.0.0.1:{port}",
        "query.max-memory": "256MB",
        "query.max-memory-per-node": "192MB",
        "memory.heap-headroom-per-node": "128MB",
        "plugin.dir": str(home / "plugin"),
        "catalog.config-dir": str(catalogs),
        "node.environment": "tests",
        "node.id": "one",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
    })  # fmt: skip
    log = folder / "trino.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(java), *_JVM_OPTIONS, f"-Dconfig={config}", "-cp", f"{home / 'lib'}/*", "io.trino.server.TrinoServer"],
            cwd=folder, stdout=out, stderr=out,
        )  # fmt: skip
    try:
        _wait(process, log)
        yield Trino(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait(30)


def _write(path: Path, values: dict[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if "SERVER STARTED" in log.read_text(errors="replace"):
            return
        time.sleep(0.3)
    raise RuntimeError(f"Trino did not start: {log.read_text(errors='replace')[-3000:]}")


def _java() -> Path:
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    homes += sorted(Path("/usr/lib/jvm").glob("*"))
    for home in homes:
        with suppress(OSError):
            found = re.search(r'JAVA_VERSION="(\d+)', (home / "release").read_text())
            if found and int(found[1]) >= _JAVA_MIN:
                return home / "bin" / "java"
    pytest.skip(f"there is no Java {_JAVA_MIN} or newer")


def _installed() -> Path:
    """The folder of the server, which Maven fetches once."""
    if shutil.which("mvn") is None:
        pytest.skip("Maven fetches Trino's server, and there is none")
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home = _FOLDER / VERSION
        if not home.exists():
            _unpack(_fetched(), home)
    return home


def _fetched() -> Path:
    artifact = f"io.trino:trino-server:{VERSION}:tar.gz"
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={_FOLDER}"],
        capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False,
    )  # fmt: skip
    archive = _FOLDER / f"trino-server-{VERSION}.tar.gz"
    if done.returncode or not archive.exists():
        pytest.skip(f"Maven does not fetch {artifact}: {done.stdout[-300:]}")
    with archive.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == _SHA256
    return archive


def _unpack(archive: Path, home: Path) -> None:
    """The server and one connector: jars of several are links to one file, so all are unpacked first."""
    work = home.with_suffix(".unpacking")
    shutil.rmtree(work, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(work, filter="tar")
    archive.unlink()
    [top] = work.iterdir()
    for plugin in (top / "plugin").iterdir():
        if plugin.name != "delta-lake":
            shutil.rmtree(plugin)
    shutil.rmtree(top / "secrets-plugin", ignore_errors=True)
    top.rename(home)
    work.rmdir()
