"""DDL that is followed where Oracle does not show definitions as of an SCN, and only the redo tells what came right after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_core.capture.stream_ends.later_ddl import is_altered_soon_after
from cdc_core.config import LogMinerConfig
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.database import current_scn
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.capture.source import Source
from tests.oracle.embedded import LOCAL_CAPTURE, Oracle, running_oracle

EMP = TableId("DEMO", "EMP")
ADD_A = "ALTER TABLE EMP ADD (A NUMBER(5))"
ADD_B = "ALTER TABLE EMP ADD (B NUMBER(5))"
SILENT = "ALTER TABLE EMP ADD W NUMBER(5) DEFAULT (1)"
"""Its text alone does not say what the table became."""


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as oracle:
        oracle.add_local_capture()
        oracle.run("CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY)", "CREATE TABLE OTHER (ID NUMBER(10) PRIMARY KEY)")  # fmt: skip
        yield oracle


@pytest.fixture(params=["files", "scn_range"])
def source(request: pytest.FixtureRequest, oracle: Oracle, tmp_path: Path) -> Source:
    """A source without the right to look back in the dictionary."""
    more: dict[str, Any] = {"capture": {"close_at": "online", "logs": request.param}}
    if request.param == "scn_range":
        more["oracle"] = oracle.login(LOCAL_CAPTURE)
    oracle.clock.ahead += 30
    found = Source.begin(oracle, tmp_path, **more)
    no_right = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", code=1031, times=0)
    oracle.database.faults.arm(no_right)
    return found


def columns(manifest: WindowManifest) -> list[tuple[str, ...]]:
    return [change.schema.column_names for change in manifest.schema_changes]


def test_the_ddl_itself_is_no_later_one(oracle: Oracle, source: Source) -> None:
    """Oracle dates it by the second, and its SCN up to three seconds earlier."""
    oracle.clock.ahead += 2
    oracle.run(ADD_A)
    oracle.run("ALTER TABLE OTHER ADD (A NUMBER(5))")
    manifest = source.window()
    assert (columns(manifest), manifest.left) == ([("ID", "A")], ())


def test_a_ddl_right_behind_the_window_is_not_mistaken_for_it(
    oracle: Oracle, source: Source
) -> None:
    oracle.run(SILENT)
    [record] = source.store.windows.plan([ScnWindow(source.start.snapshot_scn, Scn(source.bound()))])  # fmt: skip
    oracle.clock.ahead -= 5
    oracle.run(ADD_B)
    manifest = source.capture(record)
    assert columns(manifest) == []
    [end] = manifest.left
    assert "within seconds of it" in end.reason


def test_of_two_in_one_window_the_first_cannot_be_known(oracle: Oracle, source: Source) -> None:
    oracle.run(SILENT, ADD_B)
    [end] = source.window().left
    assert "within seconds of it" in end.reason


def test_two_whose_texts_say_all_are_followed(oracle: Oracle, source: Source) -> None:
    oracle.run(ADD_A, ADD_B)
    manifest = source.window()
    assert (columns(manifest), manifest.left) == ([("ID", "A"), ("ID", "A", "B")], ())


def test_a_ddl_of_the_table_itself_right_after_an_scn_is_found(
    oracle: Oracle, source: Source
) -> None:
    session, logs_by = source.session, source.config.logminer.logs
    oracle.clock.ahead += 60
    oracle.run("INSERT INTO OTHER VALUES (1)")
    scn = current_scn(session)
    oracle.clock.ahead += 3
    oracle.run("ALTER TABLE OTHER ADD (A NUMBER(5))")
    assert not is_altered_soon_after(session, EMP, scn, how=LogMinerConfig(logs=logs_by))
    oracle.run(ADD_A, "INSERT INTO OTHER (ID) VALUES (2)")
    assert is_altered_soon_after(session, EMP, scn, how=LogMinerConfig(logs=logs_by))


def test_only_the_seconds_after_the_scn_are_looked_at(oracle: Oracle, source: Source) -> None:
    session, logs_by = source.session, source.config.logminer.logs
    scn = current_scn(session)
    assert not is_altered_soon_after(session, EMP, scn, how=LogMinerConfig(logs=logs_by))
    oracle.clock.ahead += 60
    oracle.run("INSERT INTO OTHER VALUES (1)")
    oracle.run(ADD_A)
    assert not is_altered_soon_after(session, EMP, scn, how=LogMinerConfig(logs=logs_by))
    assert any("START_LOGMNR" in sql for sql in oracle.sent), "the redo was read"
