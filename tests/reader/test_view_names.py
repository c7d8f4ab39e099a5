"""Two tables of a cut never share a view."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.reports import Cut, MirrorVersion
from cdc_core.model.scn import Scn
from cdc_core.steps.consistent_cut import create_duckdb_views
from cdc_core.views.consistent_cut import refuse_shared_names


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


def test_a_file_of_duckdb_is_left_as_it_was(tmp_path: Path) -> None:
    cut = Cut(Scn(7), mirrors("A_B.C", "A.B_C"), ())
    with pytest.raises(ConfigError, match="same name"):
        create_duckdb_views(None, cut, tmp_path / "cut.duckdb")  # type: ignore[arg-type]
