"""Who may read what Redolake writes on this machine, and what if the disk does not tell?"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from cdc_core.change_stream.folders import files_in
from cdc_core.errors import StoreUnavailableError
from cdc_core.landing.manifest import MANIFEST_NAME
from cdc_core.landing.store_local import LocalLandingStore
from cdc_core.state.store import Store


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def _rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_landing_and_metadata_store_are_for_their_user_alone(
    tmp_path: Path, open_umask: None
) -> None:
    LocalLandingStore(str(tmp_path / "landing"))
    assert _rights(tmp_path / "landing") == 0o700
    with Store.open(f"sqlite:///{tmp_path}/state.db", "src"):
        assert {_rights(file) for file in tmp_path.glob("state.db*")} == {0o600}


def test_rights_that_somebody_gave_are_kept(tmp_path: Path, open_umask: None) -> None:
    shared = tmp_path / "landing"
    shared.mkdir(mode=0o750)
    LocalLandingStore(str(shared))
    assert _rights(shared) == 0o750


def _fails(*_: object, **__: object) -> None:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def test_a_folder_that_cannot_be_looked_at_has_not_lost_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share that hangs: what "has not landed" would be removed and read again."""
    store = LocalLandingStore(str(tmp_path))
    store.write_manifest("src/windows/a-b", b"{}")
    with monkeypatch.context() as away:
        away.setattr(Path, "stat", _fails)
        for look in (
            lambda: store.exists("src/windows/a-b", MANIFEST_NAME),
            lambda: store.remove_unlanded("src/windows/a-b"),
            lambda: store.writer("src/windows/a-b", "f.parquet", pa.schema([])),
        ):
            with pytest.raises(StoreUnavailableError, match="cannot be read"):
                look()
    with monkeypatch.context() as away:
        away.setattr(os, "scandir", _fails)
        with pytest.raises(StoreUnavailableError, match="cannot be read"):
            store.list_folders("src/windows")
    assert store.list_folders("src/windows") == ["src/windows/a-b"]
    assert store.list_folders("src/elsewhere") == []
    assert not store.exists("src/windows/a-b/manifest.json", "below a file")


def test_a_record_file_that_cannot_be_looked_at_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies in it would be missing in a window that those behind it prove to be whole."""
    for name in ("1.json", "2.json", "3.txt"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "9.json").symlink_to(tmp_path / "nowhere")
    found = files_in(str(tmp_path), "*.json")
    assert found is not None
    assert sorted(one.name for one in found) == ["1.json", "2.json"]
    assert files_in(str(tmp_path / "nowhere"), "*.json") is None
    with monkeypatch.context() as away:
        away.setattr(Path, "stat", _fails)
        with pytest.raises(StoreUnavailableError, match=r"capture\.folder cannot be read"):
            files_in(str(tmp_path), "*.json")
