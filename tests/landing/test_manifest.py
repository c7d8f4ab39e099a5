"""Which files a manifest says that a table has; and manifests of newer versions, which are refused."""

from __future__ import annotations

import json

import pytest

from cdc_core.errors import LandingDamagedError
from cdc_core.landing.manifest import (
    LandedFile,
    digest_of,
    read_window_manifest,
    window_manifest_bytes,
)
from cdc_core.model.identifiers import TableId
from tests.fuzz.test_inputs import MANIFEST

EMP, ORDERS = TableId("HR", "EMP"), TableId("SHOP", "ORDERS")


def printed(version: int = 1, **body: object) -> bytes:
    """The manifest with another version, or another body."""
    seal = json.loads(window_manifest_bytes(MANIFEST))
    seal["body"] |= body
    text = json.dumps(seal["body"], sort_keys=True, separators=(",", ":"))
    seal |= {"version": version, "sha256": digest_of(text.encode())}
    return json.dumps(seal).encode()


def test_a_manifest_that_does_not_say_which_files_have_a_table_s_rows_is_damaged() -> None:
    seal = json.loads(window_manifest_bytes(MANIFEST))
    del seal["body"]["files_by_table"]
    text = json.dumps(seal["body"], sort_keys=True, separators=(",", ":"))
    content = json.dumps(seal | {"sha256": digest_of(text.encode())}).encode()
    with pytest.raises(LandingDamagedError, match="a field is missing"):
        read_window_manifest(content, where="there")


def test_a_window_says_which_files_have_a_table_s_rows() -> None:
    files = [{"name": name, "rows": 1, "bytes": 9, "sha256": "a"} for name in ("one", "two")]
    by_table = {"SHOP.ORDERS": [0, 1], "HR.EMP": [1]}
    found = read_window_manifest(printed(redo_files=files, files_by_table=by_table), where="")
    assert found.files_of(ORDERS) == found.redo_files
    assert found.files_of(EMP) == (LandedFile("two", 1, 9, "a"),)
    assert found.files_of(TableId("HR", "DEPT")) == ()


def test_a_newer_version_s_manifest_is_refused_with_the_reason() -> None:
    with pytest.raises(LandingDamagedError, match="newer version of Redolake"):
        read_window_manifest(printed(2), where="there")
