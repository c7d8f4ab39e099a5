"""Programs of other projects against the embedded Oracle."""

from __future__ import annotations

import pytest

from tests.peers.programs import NoEnvironmentError, run_go, run_python
from tests.peers.sqlalchemy_suite import run_suite

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "uses"), [("django", 49), ("dbt", 12), ("airflow", 14), ("sling", 7)]
)
def test_a_program_in_python_works(name: str, uses: int) -> None:
    try:
        results = run_python(name)
    except NoEnvironmentError as error:
        pytest.skip(f"{name} cannot be installed: {error}")
    assert {use: result for use, result in results.items() if result != "ok"} == {}
    assert len(results) == uses


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
