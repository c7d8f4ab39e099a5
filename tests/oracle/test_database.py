"""Sessions that serve one block after another, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cdc_core.errors import CdcError
from cdc_core.oracle import database
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import SETTINGS, OracleSession
from tests.oracle.embedded import ADMIN, Oracle
from tests.oracle.fixtures import oracle_with

OWN = "SELECT SYS_CONTEXT('USERENV', 'SID') FROM DUAL"
SERIAL = "SELECT SERIAL# FROM V$SESSION WHERE SID = SYS_CONTEXT('USERENV', 'SID')"

oracle = oracle_with(scope="module")


@pytest.fixture
def opened(oracle: Oracle, tmp_path: Path) -> Iterator[OracleDatabase]:
    with closing(OracleDatabase(oracle.config(tmp_path, "T").oracle)) as made:
        yield made


def number(session: OracleSession) -> int:
    return int(session.fetch_all(OWN)[0][0])


def numbers(opened: OracleDatabase, blocks: int) -> list[int]:
    found = []
    for _ in range(blocks):
        with opened.session() as session:
            found.append(number(session))
    return found


def test_one_session_serves_blocks_one_after_another(opened: OracleDatabase) -> None:
    assert len(set(numbers(opened, 3))) == 1


def test_no_two_blocks_share_a_session(opened: OracleDatabase) -> None:
    with opened.session() as one, opened.session() as other:
        assert number(one) != number(other)
    assert len(set(numbers(opened, 3))) == 1


def test_a_session_that_an_error_left_is_not_kept(opened: OracleDatabase) -> None:
    first = numbers(opened, 1)
    with pytest.raises(CdcError), opened.session() as session:
        session.fetch_all("SELECT 1 FROM NO_SUCH_TABLE")
    assert numbers(opened, 1) != first


def test_a_session_that_was_lost_meanwhile_is_replaced(
    oracle: Oracle, opened: OracleDatabase
) -> None:
    with opened.session() as session:
        first, [(serial,)] = number(session), session.fetch_all(SERIAL)
    oracle.run(f"ALTER SYSTEM KILL SESSION '{first},{serial}'", user=ADMIN)
    assert numbers(opened, 1) != [first]


def test_a_session_that_nobody_needed_for_long_is_replaced(
    opened: OracleDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = numbers(opened, 1)
    monkeypatch.setattr(database, "KEPT_SECONDS", 0)
    assert numbers(opened, 1) != first


def test_work_that_reads_much_has_a_session_of_its_own(opened: OracleDatabase) -> None:
    first = numbers(opened, 1)
    assert opened.read(number) != opened.read(number)
    assert numbers(opened, 1) == first


def test_what_was_closed_serves_nobody(oracle: Oracle, tmp_path: Path) -> None:
    sent: list[str] = []
    config = oracle.config(tmp_path, "T").oracle
    with closing(OracleDatabase(config, on_statement=sent.append)) as made:
        first = numbers(made, 2)
        made.close()
        assert numbers(made, 1) != first[:1]
    assert sent.count(SETTINGS) == 2
