"""The fixture ``oracle`` of a module, in one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from tests.oracle.embedded import Oracle, running_oracle


def oracle_with(
    *statements: str, scope: Literal["function", "module"] = "function", **options: Any
) -> Any:
    """A fixture: a fresh embedded Oracle, whose owner has run the statements.

    ``options`` are those of :func:`running_oracle`. A module says
    ``oracle = oracle_with("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")``.
    """

    @pytest.fixture(scope=scope)
    def oracle() -> Iterator[Oracle]:
        with running_oracle(**options) as running:
            if statements:
                running.run(*statements)
            yield running

    return oracle
