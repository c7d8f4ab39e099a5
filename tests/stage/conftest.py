"""The world of ``landed`` as fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stage.landed import Source, orders_schema


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """An empty SHOP.ORDERS (ID, NAME, AMOUNT, NOTE CLOB) at SCN 100."""
    return Source(tmp_path / "landing", orders_schema())
