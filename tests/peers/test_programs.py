"""Programs of other projects against the embedded Oracle."""

from __future__ import annotations

import pytest

from tests.peers.programs import NoEnvironmentError, run_django

pytestmark = pytest.mark.slow


def test_an_application_in_django_works() -> None:
    try:
        results = run_django()
    except NoEnvironmentError as error:
        pytest.skip(f"Django cannot be installed: {error}")
    assert {use: result for use, result in results.items() if result != "ok"} == {}
    assert len(results) == 49
