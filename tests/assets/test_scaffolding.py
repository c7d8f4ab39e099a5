"""``dg scaffold`` writes a file that loads: through the function of Dagster's that ``dg`` calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster.components.component_scaffolding import scaffold_object

from assets.components import OracleCdc
from cdc_core.errors import ConfigError

TYPE = "assets.components.OracleCdc"


def _scaffold(path: Path, *, form: str = "yaml", append: bool = False) -> None:
    scaffold_object(path, TYPE, None, form, None, append=append)


@pytest.mark.parametrize(
    ("folder", "name"),
    [("orders", "orders"), ("My Orders-2", "my_orders_2"), ("2026", "source_2026")],
)
def test_what_is_written_loads(tmp_path: Path, folder: str, name: str) -> None:
    _scaffold(tmp_path / folder)
    source = OracleCdc.from_file(tmp_path / folder / "defs.yaml")
    assert source.config.name == name
    keys = {key.to_user_string() for key in source.build_defs().resolve_all_asset_keys()}
    assert f"{name}/mirror/SHOP/ORDERS".lower() in {key.lower() for key in keys}


def test_a_second_source_gets_a_name_of_its_own(tmp_path: Path) -> None:
    _scaffold(tmp_path / "orders")
    file = tmp_path / "orders" / "defs.yaml"
    _scaffold(file, append=True)
    names = [OracleCdc.from_file(file, document=number).config.name for number in (0, 1)]
    assert names == ["orders", "orders_2"]


def test_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="described in YAML"):
        _scaffold(tmp_path / "orders", form="python")
