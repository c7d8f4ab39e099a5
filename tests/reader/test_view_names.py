"""Two tables of a cut never share a view."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.reports import Cut, MirrorVersion
from cdc_core.model.scn import Scn
from cdc_core.steps.consistent_cut import create_duckdb_views
from cdc_core.views.consistent_cut import refuse_shared_names, view_sql


def mirrors(*names: str) -> tuple[MirrorVersion, ...]:
    return tuple(MirrorVersion(name, 1, f"/lake/{name}") for name in names)


@pytest.mark.parametrize(
    ("names", "template"),
    [
        (("A_B.C", "A.B_C"), None),
        (("A.ONE", "B.ONE"), "now.{table}"),
        (('A."one"', "A.ONE"), "{owner}.{table}"),
    ],
)
def test_views_that_would_have_one_name_are_refused(
    names: tuple[str, ...], template: str | None
) -> None:
    with pytest.raises(ConfigError, match="same name") as refused:
        refuse_shared_names(mirrors(*names), template)
    assert all(name in str(refused.value.facts["tables"]) for name in names)
    refuse_shared_names(mirrors(*names[:1], "X.Y"), template)


def test_duckdb_gets_the_scheme_for_which_its_extension_finds_secrets() -> None:
    """tests/peers/test_views_on_s3.py has the extension itself."""
    one = MirrorVersion("A.ONE", 3, "s3a://bucket/lake/one")
    assert "delta_scan('s3://bucket/lake/one', version => 3)" in view_sql("duckdb", one)
    assert "delta.`s3a://bucket/lake/one`" in view_sql("spark", one)


def test_a_file_of_duckdb_is_left_as_it_was(tmp_path: Path) -> None:
    cut = Cut(Scn(7), mirrors("A_B.C", "A.B_C"), ())
    with pytest.raises(ConfigError, match="same name"):
        create_duckdb_views(None, cut, tmp_path / "cut.duckdb")  # type: ignore[arg-type]
