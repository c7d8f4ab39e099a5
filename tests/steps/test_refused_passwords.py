"""A password that Oracle refused locks the account if each process tries it for itself. They hear of
it from the metadata store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import oracledb
import pytest

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError
from cdc_core.oracle.refused_logins import PAUSE_SECONDS, RefusedLogins
from cdc_core.oracle.session import connect
from cdc_core.state.store import Store
from cdc_core.steps import Pipeline
from cdc_core.steps.source_checks import oracle_findings
from oracle_embedded.database import ADMIN, CAPTURE
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

oracle = oracle_with("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")


class Clock:
    now = 1.8e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The passwords that are sent to Oracle."""
    found, ask = list[str](), oracledb.connect

    def connected(**more: Any) -> Any:
        found.append(more["password"])
        return ask(**more)

    with monkeypatch.context() as patched:
        patched.setattr(oracledb, "connect", connected)
        yield found


class Processes:
    """Each call is a process of its own: it knows what the store knows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
        self._monkeypatch, self._clock = monkeypatch, clock

    def _begin(self) -> None:
        known = RefusedLogins(now=self._clock)
        for module in ("session", "database"):
            self._monkeypatch.setattr(f"cdc_core.oracle.{module}.REFUSED_LOGINS", known)

    def status(self, config: SourceConfig) -> str | None:
        """Why Oracle cannot be asked, by ``redolake status``."""
        self._begin()
        with Pipeline(config) as pipeline:
            return pipeline.status().oracle_error

    def doctor(self, config: SourceConfig) -> str | None:
        """What ``redolake doctor`` says of the login."""
        self._begin()
        try:
            oracle_findings(config)
        except ConfigError as error:
            return error.what_happened
        return None


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Processes:
    return Processes(monkeypatch, clock)


def _config(oracle: Oracle, folder: Path, password: str | None = None, **more: Any) -> SourceConfig:
    return oracle.config(folder, "T", oracle=oracle.login(CAPTURE, password), **more)


def test_processes_hear_of_each_others_refusals(
    oracle: Oracle, tmp_path: Path, processes: Processes, sent: list[str], clock: Clock
) -> None:
    """Twenty commands and runs of Dagster's, of two sources that share the account."""
    old = "Before-the-rotation"
    sources = [_config(oracle, tmp_path, old, name=name) for name in ("one", "two")]
    for _ in range(10):
        for config in sources:
            said = processes.status(config)
            assert said is not None
            assert "sent_again=2027-01-15 08:15:00 UTC, or when it changes" in said
    assert sent.count(old) == 1
    clock.now += PAUSE_SECONDS
    for config in sources * 5:
        assert "sent_again=when it changes" in (processes.status(config) or "")
        clock.now += 3600
    assert sent.count(old) == 2
    assert processes.status(_config(oracle, tmp_path)) is None
    assert "sent_again=when it changes" in (processes.status(sources[0]) or "")
    assert sent.count(old) == 2
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("state.db*"))
    assert old.encode() not in kept


def test_doctor_tries_once_and_all_processes_go_on_when_it_gets_in(
    oracle: Oracle, tmp_path: Path, processes: Processes, sent: list[str], clock: Clock
) -> None:
    """The account is put right for the password that the processes have."""
    oracle.run(f'ALTER USER {CAPTURE} IDENTIFIED BY "rotated"', user=ADMIN)
    try:
        config = _config(oracle, tmp_path)
        for _ in range(2):
            assert processes.status(config)
            clock.now += PAUSE_SECONDS
        said = processes.doctor(config)
        assert said is not None
        assert "sent_again=when it changes" in said
        assert sent.count("capture") == 3
    finally:
        oracle.run(f'ALTER USER {CAPTURE} IDENTIFIED BY "capture"', user=ADMIN)
    assert processes.status(config)
    assert sent.count("capture") == 3
    assert processes.doctor(config) is None
    assert processes.status(config) is None


def test_processes_that_log_in_at_once_send_a_refused_password_once(
    oracle: Oracle, tmp_path: Path, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve runs that begin at the full hour, behind a rotation; ten failures lock an account.
    Each thread has the memory of a process of its own."""
    attempt = SimpleNamespace(attempt=lambda *what, **more: RefusedLogins().attempt(*what, **more))
    monkeypatch.setattr("cdc_core.oracle.session.REFUSED_LOGINS", attempt)
    monkeypatch.setattr("cdc_core.oracle.refused_logins.TURN_SECONDS_MAX", 600)
    config = _config(oracle, tmp_path, "Before-the-rotation")
    url, together = config.state.url_with_password, threading.Barrier(12)

    def process() -> None:
        with Store.open(url, config.name) as store:
            together.wait()
            with pytest.raises(ConfigError, match="refused user name or password"):
                connect(config.oracle, refusals=store.refused_logins)

    with ThreadPoolExecutor(12) as pool:
        for one in [pool.submit(process) for _ in range(12)]:
            one.result()
    assert sent.count("Before-the-rotation") == 1
