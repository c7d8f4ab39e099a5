"""Many definitions are kept once for all windows that share them, not in each window's manifest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdc_core.config import LocalLandingConfig
from cdc_core.errors import LandingDamagedError
from cdc_core.landing.definitions import KeptDefinitions, keep_definitions
from cdc_core.landing.manifest import (
    WindowManifest,
    read_window_manifest,
    window_manifest_bytes,
)
from cdc_core.landing.open import open_landing
from cdc_core.landing.store import LandingStore
from cdc_core.model.identifiers import TableId
from cdc_core.schema.table import TableSchema
from tests.fuzz.test_inputs import MANIFEST
from tests.stage.landed import orders_schema


@pytest.fixture
def landing(tmp_path: Path) -> LandingStore:
    return open_landing(LocalLandingConfig(path=str(tmp_path)))


def schemas(tables: int, *, key: str = "ID") -> tuple[TableSchema, ...]:
    orders = replace(orders_schema(), key=(key,))
    return tuple(replace(orders, table=TableId("SHOP", f"T{at:04d}")) for at in range(tables))


def kept(landing: LandingStore, tables: int) -> tuple[WindowManifest, str, bytes]:
    """A window of so many tables, the digest of their definitions, and its manifest."""
    manifest = replace(MANIFEST, schemas=schemas(tables))
    digest = keep_definitions(landing, "src", manifest.schemas)
    assert digest is not None
    return manifest, digest, window_manifest_bytes(manifest, digest)


def sets_of(folder: Path) -> list[Path]:
    return sorted((folder / "src" / "kept" / "definitions").glob("*/manifest.json"))


def test_the_manifest_of_a_window_of_a_thousand_tables_is_small(
    landing: LandingStore, tmp_path: Path
) -> None:
    manifest, digest, content = kept(landing, 1000)
    assert len(content) < 4_000 < 800_000 < len(window_manifest_bytes(manifest))
    read = read_window_manifest(content, where="", definitions=KeptDefinitions(landing, "src"))
    assert read == manifest
    assert keep_definitions(landing, "src", manifest.schemas[::-1]) == digest
    assert len(sets_of(tmp_path)) == 1, "the next window names the same set, whatever the order"
    keep_definitions(landing, "src", schemas(1000, key="NAME"))
    assert len(sets_of(tmp_path)) == 2


def test_a_few_definitions_stand_in_the_manifest(landing: LandingStore, tmp_path: Path) -> None:
    assert keep_definitions(landing, "src", schemas(5)) is None
    assert not sets_of(tmp_path)


@pytest.mark.parametrize("damage", ["gone", "cut", "another set's"])
def test_a_set_that_is_not_what_its_name_says_stops_the_window(
    landing: LandingStore, tmp_path: Path, damage: str
) -> None:
    """Who captures the window again writes it again."""
    manifest, digest, content = kept(landing, 1000)
    [path] = sets_of(tmp_path)
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    else:
        other = keep_definitions(landing, "src", schemas(1000, key="NAME"))
        path.write_bytes((path.parents[1] / str(other) / path.name).read_bytes())
    with pytest.raises(LandingDamagedError):
        read_window_manifest(content, where="", definitions=KeptDefinitions(landing, "src"))
    assert kept(landing, 1000)[1] == digest
    found = KeptDefinitions(landing, "src")(digest)
    assert found == manifest.schemas


def test_a_set_is_read_once_and_only_the_last_few_are_held(landing: LandingStore) -> None:
    digests = [keep_definitions(landing, "src", schemas(500 + at)) or "" for at in range(6)]
    reads: list[str] = []
    original = landing.read
    landing.read = lambda folder, name: (reads.append(folder), original(folder, name))[1]  # type: ignore[method-assign,func-returns-value]
    reader = KeptDefinitions(landing, "src")
    for digest in [*digests, *digests[-4:]]:
        reader(digest)
    assert len(reads) == 6
    reader(digests[0])
    assert len(reads) == 7
