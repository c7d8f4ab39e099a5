"""Faults are armed through Python and through the procedure that SQL calls."""

from __future__ import annotations

import pytest

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.faults import (
    Fault,
    FaultEvent,
    FaultKind,
    FaultRegistry,
    LostConnectionFaultError,
)
from tests.oracle_embedded.wire.fake_engine import FakeEngine, FakeSession

_SESSION = FakeSession(FakeEngine(), 1, "SCOTT", "test")


def _outcomes(registry: FaultRegistry, count: int, sql: str = "select 1 from t") -> list[str]:
    """What happens at each of ``count`` fetches."""
    outcomes = []
    for _ in range(count):
        try:
            registry.check(FaultEvent.FETCH, sql)
            outcomes.append("")
        except OracleError as error:
            outcomes.append(str(error.code))
        except LostConnectionFaultError:
            outcomes.append("lost")
    return outcomes


@pytest.mark.parametrize(
    ("nth", "times", "outcomes"),
    [
        pytest.param(1, 1, ["1555", "", "", ""], id="first"),
        pytest.param(3, 1, ["", "", "1555", ""], id="third"),
        pytest.param(2, 2, ["", "1555", "1555", ""], id="twice"),
        pytest.param(2, 0, ["", "1555", "1555", "1555"], id="for-ever"),
    ],
)
def test_faults_happen_when_they_are_due(nth: int, times: int, outcomes: list[str]) -> None:
    registry = FaultRegistry()
    registry.arm(Fault(FaultKind.ORA_ERROR, nth=nth, times=times))
    assert _outcomes(registry, 4) == outcomes


def test_faults_count_matching_statements_only() -> None:
    registry = FaultRegistry()
    registry.arm(Fault(FaultKind.LOST_CONNECTION, sql_contains="from ORDERS", nth=2))
    assert _outcomes(registry, 3) == ["", "", ""]
    assert _outcomes(registry, 2, "SELECT a FROM orders o") == ["", "lost"]


def test_faults_are_armed_and_disarmed_by_procedures() -> None:
    registry = FaultRegistry()
    arm, disarm = registry.procedures()
    assert [(p.package, p.name) for p in (arm, disarm)] == [
        ("DBMS_REDOLAKE_FAULTS", "ARM"),
        ("DBMS_REDOLAKE_FAULTS", "DISARM_ALL"),
    ]
    assert arm.parameters[0].type is OraType.VARCHAR
    arm.run(_SESSION, {"KIND": "ora_error", "SQL_CONTAINS": "t", "NTH": 2, "CODE": 1291})
    assert _outcomes(registry, 3) == ["", "1291", ""]
    arm.run(_SESSION, {"KIND": "DELAY", "DELAY_MS": 1, "EVENT": "execute", "TIMES": None})
    assert registry.armed()[1].delay_seconds == 0.001
    disarm.run(_SESSION, {})
    assert registry.armed() == ()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"KIND": "FIRE"}, id="kind"),
        pytest.param({"KIND": None}, id="no-kind"),
        pytest.param({"KIND": "DELAY", "EVENT": "ROLLBACK"}, id="event"),
        pytest.param({"KIND": "DELAY", "NTH": 0}, id="nth"),
        pytest.param({"KIND": "DELAY", "DELAY_MS": -1}, id="delay"),
        pytest.param({"KIND": "ORA_ERROR", "CODE": 0}, id="code"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object]) -> None:
    registry = FaultRegistry()
    with pytest.raises(OracleError):
        registry.procedures()[0].run(_SESSION, arguments)
    assert registry.armed() == ()
