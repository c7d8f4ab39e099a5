"""Where Oracle does not show a definition as of an SCN, the present one serves if no DDL came since, and nothing is guessed."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc_core.config import SourceConfig
from cdc_core.errors import SchemaMismatchError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

REFUSALS = [1555, 8180, 8181, 1466]

oracle = oracle_with("CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY, V VARCHAR2(20))")


@pytest.fixture
def config(oracle: Oracle, tmp_path: Path) -> SourceConfig:
    return oracle.config(tmp_path, "EMP")


@pytest.fixture
def session(oracle: Oracle, config: SourceConfig) -> OracleSession:
    return oracle.capture_session(config)


def refuse(oracle: Oracle, code: int, statement: str) -> None:
    oracle.database.faults.arm(
        Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, statement, code=code, times=0)
    )


@pytest.mark.parametrize("code", REFUSALS)
def test_the_present_definition_serves_where_no_ddl_came_since(
    oracle: Oracle, config: SourceConfig, session: OracleSession, code: int
) -> None:
    oracle.clock.ahead += 30
    scn = current_scn(session)
    refuse(oracle, code, "AS OF SCN")
    schema = read_table_schema(session, config.tables[0], scn=scn)
    assert (schema.scn_from, schema.column_names) == (scn, ("ID", "V"))


@pytest.mark.parametrize("code", REFUSALS)
def test_a_definition_that_a_later_ddl_changed_is_not_guessed(
    oracle: Oracle, config: SourceConfig, session: OracleSession, code: int
) -> None:
    scn = current_scn(session)
    oracle.clock.ahead += 30
    oracle.run("ALTER TABLE EMP ADD (W NUMBER(5))")
    refuse(oracle, code, "AS OF SCN")
    with pytest.raises(SchemaMismatchError, match="altered after this SCN"):
        read_table_schema(session, config.tables[0], scn=scn)


def test_an_scn_that_oracle_no_longer_maps_to_a_time_stops_the_table_alone(
    oracle: Oracle, config: SourceConfig, session: OracleSession
) -> None:
    """After some five days nobody can say whether a DDL came since: it counts as if one did, for this table."""
    scn = current_scn(session)
    refuse(oracle, 1555, "AS OF SCN")
    refuse(oracle, 8181, "SCN_TO_TIMESTAMP")
    with pytest.raises(SchemaMismatchError, match="no longer known"):
        read_table_schema(session, config.tables[0], scn=scn)


# --- DDL within seconds of the SCN, where times cannot tell ------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, 1, 2, 3])
def test_a_ddl_right_after_the_scn_is_not_mistaken(
    oracle: Oracle, config: SourceConfig, session: OracleSession, seconds: float
) -> None:
    """Oracle dates SCNs with a grain of three seconds, so the SCN may seem to be as late as the DDL, or later."""
    oracle.clock.ahead += 30
    before = read_table_schema(session, config.tables[0])
    scn = current_scn(session)
    oracle.clock.ahead += seconds
    oracle.run("ALTER TABLE EMP ADD (W NUMBER(5))")
    refuse(oracle, 1031, "AS OF SCN")
    with pytest.raises(SchemaMismatchError, match="within seconds of it"):
        read_table_schema(session, config.tables[0], scn=scn)
    with pytest.raises(SchemaMismatchError, match="within seconds of it"):
        read_table_schema(session, config.tables[0], scn=scn, before=before)


@pytest.mark.parametrize("seconds", [0, 1, 2, 3])
def test_a_ddl_right_before_the_scn_is_in_the_definition(
    oracle: Oracle, config: SourceConfig, session: OracleSession, seconds: float
) -> None:
    """As what was read before the SCN shows, or who looked for later DDL; else it counts as later."""
    oracle.run("ALTER TABLE EMP ADD (W NUMBER(5))")
    before = read_table_schema(session, config.tables[0])
    oracle.clock.ahead += seconds - 5
    scn = current_scn(session)
    refuse(oracle, 1031, "AS OF SCN")
    asked: list[object] = []

    def is_altered(table: TableId, at: Scn) -> bool:
        asked.append((table, at))
        return False

    found = read_table_schema(session, config.tables[0], scn=scn, before=before)
    assert (found.column_names, found.scn_from) == (("ID", "V", "W"), scn)
    found = read_table_schema(session, config.tables[0], scn=scn, altered_after=is_altered)
    assert (found.column_names, asked) == (("ID", "V", "W"), [(TableId("DEMO", "EMP"), scn)])
    with pytest.raises(SchemaMismatchError, match="within seconds of it"):
        read_table_schema(session, config.tables[0], scn=scn)


@pytest.mark.parametrize("away", [0, 4], ids=["in-that-hour", "that-night"])
def test_a_ddl_of_the_hour_that_autumn_repeats_is_not_mistaken(
    oracle: Oracle, config: SourceConfig, session: OracleSession, away: int
) -> None:
    """The host's clock goes back by an hour, as London's does, and a DDL behind the SCN has an earlier time."""
    went_back = datetime(2027, 10, 31, 1 + away, 50, tzinfo=UTC).timestamp()
    oracle.clock.ahead = went_back - time.time()
    before = read_table_schema(session, config.tables[0])
    scn = current_scn(session)
    oracle.clock.ahead -= 3600 - 60
    oracle.run("ALTER TABLE EMP ADD (W NUMBER(5))")
    refuse(oracle, 1031, "AS OF SCN")

    def found() -> tuple[str, ...]:
        known = read_table_schema(
            session, config.tables[0], scn=scn, before=before, altered_after=lambda *_: False
        )
        return known.column_names

    if away:
        assert found() == ("ID", "V", "W"), "no clock of the world goes back then"
    else:
        with pytest.raises(SchemaMismatchError, match="within seconds of it"):
            found()
