"""What stands in tests for Azure Blob Storage and Google Cloud Storage, on loopback.

Azure: Azurite, Microsoft's own emulator, from npm. Google: moto's S3 server behind the XML API's
own headers. Google's XML API has the requests of S3's; what differs is the condition of a put
(``x-goog-if-generation-match: 0`` in place of ``If-None-Match: *``) and the login. No server of the
package registries keeps that condition over the XML API. ``google_json.py`` gives Spark the JSON API of
the same buckets.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import boto3
import pyarrow.fs as pafs
import pytest

from tests.free_port import free_port
from tests.landing.s3_process import S3Process

AZURITE = "azurite@3.37.0"
ACCOUNT = "devstoreaccount1"
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""Azurite's own, which its documentation prints: no secret."""

_FOLDER = Path(__file__).parents[2] / ".redolake" / "peers" / "azurite"
_START_SECONDS = 300
_INSTALL_SECONDS = 300


def azure_url(container: str) -> str:
    """Where a container is, for clients that are told to speak to the emulator."""
    return f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net"


def azure_environment(endpoint: str) -> dict[str, str]:
    """What clients of Azure need in their environment to find Azurite."""
    return {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": endpoint}


def google_environment(endpoint: str, folder: Path) -> dict[str, str]:
    """What clients of Google need to find another server: a service account without a key."""
    account = folder / "service_account.json"
    account.write_text(
        json.dumps(
            {
                "gcs_base_url": endpoint,
                "disable_oauth": True,
                "client_email": "",
                "private_key": "",
                "private_key_id": "",
            }
        )
    )
    return {"GOOGLE_SERVICE_ACCOUNT": str(account)}


def make_container(endpoint: str, name: str) -> None:
    """Make a container in Azurite."""
    address = endpoint.removeprefix("http://")
    azure = pafs.AzureFileSystem(
        ACCOUNT,
        account_key=AZURITE_KEY,
        blob_storage_authority=address,
        dfs_storage_authority=address,
        blob_storage_scheme="http",
        dfs_storage_scheme="http",
    )
    azure.create_dir(name)


def make_bucket(server: S3Process, name: str) -> None:
    """Make a bucket in the server that stands for S3 and Google's."""
    login = boto3.Session("test", "test", region_name="us-east-1")
    login.client("s3", endpoint_url=server.endpoint).create_bucket(Bucket=name)


@contextmanager
def running_azurite() -> Iterator[str]:
    """Its endpoint, for the block. Skips the test where it cannot be installed."""
    main = _installed() / "node_modules/azurite/dist/src/blob/main.js"
    port = free_port()
    options = ["--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    server = subprocess.Popen(
        ["node", str(main), *options, "--blobPort", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _installed() -> Path:
    """The folder with Azurite, which npm fetches once."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("Azurite needs Node.js")
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = _FOLDER / AZURITE
        if not ready.exists():
            quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(_FOLDER)]
            done = subprocess.run(
                ["npm", "install", *quiet, AZURITE],
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
                env={**os.environ, "npm_config_update_notifier": "false"},
                check=False,
            )
            if done.returncode:
                pytest.skip(f"npm does not install Azurite: {done.stderr[-300:]}")
            ready.touch()
    return _FOLDER


def _wait_for(port: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("Azurite did not start")
