"""OpenLogReplicator's files in an object store: S3 (moto's server), Azure (Azurite), Google (see ``clouds.py``)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from cdc_core.config import OpenLogReplicatorConfig
from cdc_core.errors import RedoUnavailableError, StoreUnavailableError
from cdc_core.objects.open import objects_at
from oracle_embedded.openlogreplicator import OlrSettings, OpenLogReplicator
from tests.landing.clouds import make_bucket
from tests.landing.s3_process import S3Process
from tests.openlogreplicator.olr import olr_capture
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of

oracle = oracle_with(
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))", "INSERT INTO K VALUES (1, 'a')"
)


@pytest.fixture(params=["s3", "azure", "google"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder without objects."""
    name = f"b{uuid.uuid4().hex[:20]}"
    if request.param != "s3":
        made: str = request.getfixturevalue(request.param)(name)
        return f"{made}/from/olr"
    server: S3Process = request.getfixturevalue("bucket_server")
    for variable, value in server.environment().items():
        monkeypatch.setenv(variable, value)
    make_bucket(server, name)
    return f"s3://{name}/from/olr"


@dataclass
class Copied:
    """OpenLogReplicator's folder, and the objects that somebody copies from it."""

    olr: OpenLogReplicator
    url: str

    def bring(self) -> None:
        """Put each file as it is now, whole or not."""
        self.olr.write()
        objects, root = objects_at(self.url)
        for file in self.olr.folder.glob("*.json"):
            objects.upload(file, f"{root}/{file.name}")

    def remove(self, name: str) -> None:
        """Remove a file and its object."""
        objects, root = objects_at(self.url)
        objects.delete([f"{root}/{name}"])
        (self.olr.folder / name).unlink()


@pytest.fixture
def copied(oracle: Oracle, tmp_path: Path, url: str) -> Copied:
    made = Copied(
        OpenLogReplicator(oracle.database, tmp_path / "olr", OlrSettings(file_bytes_max=1)), url
    )
    made.bring()
    return made


@pytest.fixture
def source(oracle: Oracle, copied: Copied, tmp_path: Path) -> Iterator[Source]:
    with source_of(
        oracle, tmp_path, "K", capture=olr_capture(copied.olr, folder=copied.url)
    ) as opened:
        opened.run()
        yield opened


def test_objects_are_read_as_files_are(oracle: Oracle, copied: Copied, source: Source) -> None:
    """In the order of their numbers, from 9 to 10 too; one that is put again, longer, goes on; one that ends in the middle of a line
    waits; and one that is gone before it is read stops the source."""
    objects, root = objects_at(copied.url)
    other = copied.olr.folder.parent / "other"
    other.write_text("no message\n")
    objects.upload(other, f"{root}/notes.txt")
    objects.upload(other, f"{root}/below/changes_0.json")
    for number in range(2, 13):
        oracle.run(f"INSERT INTO K VALUES ({number}, 'x')")
        copied.olr.write()
    copied.bring()
    source.windows()
    assert source.ops("K") == "c" * 11

    copied.olr.settings = OlrSettings()
    oracle.run("UPDATE K SET V = 'grown' WHERE ID = 2")
    copied.bring()
    source.windows()
    assert source.ops("K") == "c" * 11 + "u"
    newest = max(copied.olr.folder.glob("*.json"), key=lambda one: one.stat().st_mtime_ns)
    oracle.run("DELETE FROM K WHERE ID = 3")
    copied.olr.write()
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-200])
    objects.upload(newest, f"{root}/{newest.name}")
    source.windows()
    newest.write_bytes(whole)
    copied.bring()
    source.windows()
    assert source.ops("K") == "c" * 11 + "ud"
    source.check_exact("K")

    copied.remove(newest.name)
    oracle.run("DELETE FROM K WHERE ID = 4")
    copied.bring()
    with pytest.raises(RedoUnavailableError, match=r"gone, or was overwritten|begin above"):
        source.windows()
    assert source.ops("K") == "c" * 11 + "ud"


def test_an_object_is_one_version_while_it_is_read(url: str, tmp_path: Path) -> None:
    """What would be read of another one is refused, and read by the next attempt."""
    objects, root = objects_at(url)
    path, file = f"{root}/changes_0.json", tmp_path / "file"
    size = 1024 * 1024
    file.write_bytes(b"a" * size)
    assert objects.version(path) is None
    objects.upload(file, path)
    version = objects.version(path)
    assert version is not None
    assert version.size == size
    opened = objects.open_version(version)
    assert opened.read(10) == b"a" * 10
    assert opened.seek(-3, 2) == size - 3
    assert opened.read() == b"aaa"
    opened.seek(10)
    file.write_bytes(b"b" * size)
    objects.upload(file, path)
    with pytest.raises(StoreUnavailableError, match="replaced or removed"):
        opened.read()
    again = objects.version(path)
    assert again is not None
    opened = objects.open_version(again)
    assert opened.read() == b"b" * size
    objects.delete([path])
    opened.seek(0)
    with pytest.raises(StoreUnavailableError, match="replaced or removed"):
        opened.read(1)


@pytest.mark.parametrize("url", ["s3"], indirect=True)
def test_a_doctor_says_what_the_objects_lack(
    oracle: Oracle, copied: Copied, source: Source, url: str
) -> None:
    def problems(folder: str) -> list[str]:
        source.more = {"capture": olr_capture(copied.olr, folder=folder)}
        source.configure("K")
        pipeline = source.pipeline
        return [one.problem for one in pipeline.change_reader.check(pipeline.config.tables)]

    assert not problems(url)
    assert any("has not written a message into" in one for one in problems(f"{url}/more"))
    assert any("S3 cannot be listed" in one for one in problems("s3://b-is-not-there/olr"))


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param("s3://bucket", id="no-path"),
        pytest.param("s3://KEY:SECRET@bucket/olr", id="secret"),
        pytest.param("https://bucket.s3.amazonaws.com/olr", id="scheme"),
        pytest.param("abfss://container/olr", id="no-account"),
        pytest.param("gs://bucket//olr", id="empty-part"),
    ],
)
def test_what_is_no_url_of_a_folder_is_refused(folder: str) -> None:
    with pytest.raises(ValidationError, match="credentials come from the environment"):
        OpenLogReplicatorConfig(folder=folder)
