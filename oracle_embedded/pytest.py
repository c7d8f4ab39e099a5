"""How do the tests of a project get an Oracle database, new for each test?

``pytest_plugins = ["oracle_embedded.pytest"]`` in a project's ``conftest.py`` gives these fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from oracle_embedded.testing import EmbeddedOracle, KeptState, oracle


@pytest.fixture(scope="session")
def oracle_schema() -> Sequence[str]:
    """Statements that make what every test finds, of the user DEMO; none unless a project has a
    fixture of this name."""
    return ()


@pytest.fixture(scope="session")
def oracle_database(
    oracle_schema: Sequence[str],
) -> Iterator[tuple[EmbeddedOracle, KeptState]]:
    """The database of a test run with its schema, and the state in which each test finds it."""
    with oracle() as database:
        if oracle_schema:
            database.run(*oracle_schema)
        yield database, database.keep()


@pytest.fixture(name="oracle")
def oracle_of_a_test(
    oracle_database: tuple[EmbeddedOracle, KeptState],
) -> Iterator[EmbeddedOracle]:
    """The database as the schema left it, whatever other tests did."""
    database, state = oracle_database
    yield database
    database.restore(state)


@pytest.fixture
def oracle_connection(oracle: EmbeddedOracle) -> Iterator[Any]:
    """A connection of DEMO, by python-oracledb."""
    connection = oracle.connect()
    yield connection
    connection.close()
