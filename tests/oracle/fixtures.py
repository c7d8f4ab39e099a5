"""The fixture ``oracle`` of a module, in one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from tests.oracle.embedded import Oracle, Statement, running_oracle


def oracle_with(
    *statements: Statement, scope: Literal["function", "module"] = "function", **options: Any
) -> Any:
    """A fixture: a fresh embedded Oracle, in which the statements have been run.

    ``options`` are those of :func:`running_oracle`. A module says
    ``oracle = oracle_with("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")``.
    """

    @pytest.fixture(scope=scope)
    def oracle() -> Iterator[Oracle]:
        with running_oracle(*statements, **options) as running:
            yield running

    return oracle
