"""Sessions that serve one block after another, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cdc_core.errors import CdcError, OracleUnavailableError
from cdc_core.oracle import database
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import OracleSession, settings_block
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


def test_a_session_that_has_served_for_long_is_replaced(
    opened: OracleDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = numbers(opened, 1)
    monkeypatch.setattr(database, "SESSION_SECONDS_MAX", 0)
    assert numbers(opened, 1) != first


def test_work_that_reads_much_goes_on_in_a_session_that_is_there(opened: OracleDatabase) -> None:
    first = numbers(opened, 1)
    assert [opened.read(number), opened.read(number)] == first * 2


def test_work_in_a_session_that_was_lost_is_done_in_a_new_one(
    oracle: Oracle, opened: OracleDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is alive is not asked right after it answered."""
    monkeypatch.setattr(database, "ANSWERED_SECONDS", 600)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)
    with opened.session() as session:
        first, [(serial,)] = number(session), session.fetch_all(SERIAL)
    oracle.run(f"ALTER SYSTEM KILL SESSION '{first},{serial}'", user=ADMIN)
    tried: list[OracleSession] = []

    def work(session: OracleSession) -> int:
        tried.append(session)
        return number(session)

    assert opened.read(work) != first
    assert len(tried) == 2


def test_work_is_given_up_when_every_session_is_lost(
    opened: OracleDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)
    tried: list[int] = []

    def work(session: OracleSession) -> None:
        tried.append(number(session))
        raise OracleUnavailableError("lost")

    with pytest.raises(OracleUnavailableError):
        opened.read(work)
    assert len(set(tried)) == database.SESSION_ATTEMPTS


def test_what_was_closed_serves_nobody(oracle: Oracle, tmp_path: Path) -> None:
    sent: list[str] = []
    config = oracle.config(tmp_path, "T").oracle
    with closing(OracleDatabase(config, on_statement=sent.append)) as made:
        first = numbers(made, 2)
        made.close()
        assert numbers(made, 1) != first[:1]
    assert sent.count(settings_block()) == 2
