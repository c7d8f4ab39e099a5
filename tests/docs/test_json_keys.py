"""The page about --json names every key that a command prints, and no other."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import datetime
from typing import Any

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.model.lag import (
    LagFacts,
    LagPart,
    LagVerdict,
    RecentWork,
    TableWork,
    WaitingTable,
)
from cdc_core.model.notifications import Notification
from cdc_core.model.records import InexactImage, WindowRecord
from cdc_core.model.redo_profile import RedoProfile, RedoShare
from cdc_core.model.reports import (
    ColumnReport,
    DefinitionReport,
    EventDifference,
    EventsCompared,
    LeftOut,
    Maintenance,
    PolicyAnswer,
    SnapshotProgress,
    SourceStatus,
    StateRebuilt,
    TableComparison,
    TableMaintained,
    TableStatus,
    TransactionStatus,
)
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.signals import Signal
from diagnosis.certify import PROBES, Found, Level, Outcome, Report, Verdict
from pipelines import doctor
from pipelines.commands import listings, maintain
from tests.docs.json_page import keys_page

WINDOW = WindowRecord(
    source="s",
    ordinal=0,
    window=ScnWindow(Scn(1), Scn(2)),
    mining_low=Scn(1),
    state="planned",
    rows=None,
    seconds=None,
    apply_seconds=None,
    manifest_sha256=None,
    created=datetime(2026, 1, 1),
    captured=None,
    applied=None,
    last_error=None,
    key="k",
)
NOTIFICATION = Notification(
    id="a", aggregate_type="Table", type="JOINED", timestamp=datetime(2026, 1, 1)
)
SIGNAL = Signal(id="a", source="s", type="execute-snapshot", data={})
CHECKS = [doctor.Check(name="a", ok=True, found="b")]
CERTIFIED = Report(
    (Level.LOOK,), (Found(PROBES[Level.LOOK][0], Verdict(Outcome.HOLDS, "so")),)
).as_json()


def of(*kinds: type[Any]) -> set[str]:
    return {one.name for kind in kinds for one in fields(kind)}


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        pytest.param(
            "status",
            of(SourceStatus, TableStatus, TransactionStatus, PolicyAnswer, SnapshotProgress)
            - {"policy", "at"},
            id="status",
        ),
        pytest.param(
            "lag",
            of(LagFacts, LagPart, LagVerdict, RecentWork, TableWork, WaitingTable)
            | {"seconds", "scns", "verdict"},
            id="lag",
        ),
        pytest.param(
            "redo-profile", of(RedoProfile, RedoShare) | {"rows", "bytes"}, id="redo-profile"
        ),
        pytest.param("windows", {"windows", *listings._window_json(WINDOW, {}, [])}, id="windows"),
        pytest.param("signals", {"signals", *listings._signal_json(SIGNAL, {})}, id="signals"),
        pytest.param(
            "notifications", {"notifications", *NOTIFICATION.as_json()}, id="notifications"
        ),
        pytest.param(
            "reconcile",
            {"scn", "tables", "left_out"} | of(TableComparison, LeftOut),
            id="reconcile",
        ),
        pytest.param("compare-events", of(EventsCompared, EventDifference), id="compare-events"),
        pytest.param(
            "maintain",
            {"tables", *maintain._as_json(Maintenance(table=TableId("A", "B")))}
            | of(TableMaintained),
            id="maintain",
        ),
        pytest.param("certify", {*CERTIFIED} | {*CERTIFIED["probes"][0]}, id="certify"),
        pytest.param("doctor", {*doctor.as_json(CHECKS)} | of(doctor.Check), id="doctor"),
        pytest.param(
            "schema show",
            {"table", "as_of", "columns", "definitions"} | of(ColumnReport, DefinitionReport),
            id="schema show",
        ),
        pytest.param("state rebuild", of(StateRebuilt), id="state rebuild"),
    ],
)
def test_each_key_is_on_the_page(command: str, keys: set[str]) -> None:
    section = keys_page(command)
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert keys - named == set(), "a command prints these, and the page does not name them"


def test_inexact_windows_name_what_they_lack() -> None:
    section = keys_page("windows")
    assert all(f"`{one}`" in section for one in of(InexactImage))


@pytest.mark.parametrize("kind", [SourceStatus, TableStatus, TableComparison])
def test_the_first_column_names_keys_that_are_there(kind: type[Any]) -> None:
    command = "reconcile" if kind is TableComparison else "status"
    section = keys_page(command)
    cells = re.findall(r"(?m)^\| (`[^|]*) \|", section)
    named = {key for cell in cells for key in re.findall(r"`([a-z_]+)`", cell)}
    printed = (
        of(TableComparison)
        if kind is TableComparison
        else of(SourceStatus, TableStatus, TransactionStatus)
    )
    assert named <= printed
