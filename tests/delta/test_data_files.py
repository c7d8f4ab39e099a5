"""Where a table's data files lie, by the names that its log has."""

from __future__ import annotations

import pytest

from cdc_core.delta.log_files import data_file, is_in_folder
from cdc_core.errors import LakeError


@pytest.mark.parametrize(
    ("name", "path"),
    [
        pytest.param("part-1.parquet", "lake/t/part-1.parquet", id="in-the-folder"),
        pytest.param("DAY=2%3A1/a.parquet", "lake/t/DAY=2:1/a.parquet", id="percent-encoded"),
    ],
)
def test_a_file_is_named_relative_to_its_table(name: str, path: str) -> None:
    assert is_in_folder(name)
    assert data_file("lake/t", name) == path


@pytest.mark.parametrize("name", ["/other/a.parquet", "file:///other/a.parquet", "s3://other/a"])
def test_a_file_of_a_shallow_clone_is_refused(name: str) -> None:
    assert not is_in_folder(name)
    with pytest.raises(LakeError, match="outside of its folder") as raised:
        data_file("lake/t", name)
    assert "DEEP CLONE" in (raised.value.hint or "")
