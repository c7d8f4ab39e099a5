"""Programs of other projects against the embedded Oracle."""

from __future__ import annotations

import pytest

from tests.peers.programs import NoEnvironmentError, run_django, run_go
from tests.peers.sqlalchemy_suite import run_suite

pytestmark = pytest.mark.slow


def test_an_application_in_django_works() -> None:
    try:
        results = run_django()
    except NoEnvironmentError as error:
        pytest.skip(f"Django cannot be installed: {error}")
    assert {use: result for use, result in results.items() if result != "ok"} == {}
    assert len(results) == 49


def test_a_program_in_go_works() -> None:
    try:
        results = run_go()
    except NoEnvironmentError as error:
        pytest.skip(f"go-ora cannot be built: {error}")
    assert {use: result for use, result in results.items() if result != "ok"} == {}
    assert len(results) == 19


def test_sqlalchemys_own_suite_passes() -> None:
    try:
        result = run_suite()
    except NoEnvironmentError as error:
        pytest.skip(f"SQLAlchemy's tests cannot be fetched: {error}")
    assert result.share > 0.98, result.failed
    assert result.passed > 1800
