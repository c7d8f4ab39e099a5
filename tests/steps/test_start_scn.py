"""A source that takes over from another tool: it begins at an SCN that has passed."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cdc_core.config.snapshot import SnapshotConfig
from cdc_core.errors import ConfigError, RedoUnavailableError
from cdc_core.oracle.database import current_scn
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, N NUMBER(9))",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T VALUES (1, 1)",
)


source = capturing("T", "U", runs=False)


def now(source: Source) -> int:
    with source.pipeline.database.session() as session:
        return int(current_scn(session))


def begin(source: Source, **snapshot: int) -> None:
    source.close()
    source.more = {"snapshot": {"mode": "no_data", **snapshot}}
    source.pipeline.begin()
    source.run()


def changes(source: Source, name: str) -> list[tuple[str, int]]:
    found = source.lake.tables[table_id(name)].changes
    return [(one["_cdc_op"], int((one["after"] or one["before"])["ID"])) for one in found]


def test_every_transaction_that_commits_above_the_scn_is_captured(source: Source) -> None:
    """Also one that was open at the SCN, whole; and none that had committed."""
    oldest = now(source)
    with source.oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO T VALUES (2, 2)")
        source.oracle.run("INSERT INTO T VALUES (3, 3)")
        scn = now(source)
        source.oracle.run("INSERT INTO T VALUES (4, 4)", "DELETE FROM T WHERE ID = 1")
        cursor.execute("INSERT INTO T VALUES (5, 5)")
        connection.commit()
    begin(source, start_scn=scn, start_reads_from=oldest)
    assert changes(source, "T") == [("c", 4), ("d", 1), ("c", 2), ("c", 5)]
    source.oracle.run("INSERT INTO T VALUES (6, 6)")
    source.run()
    assert changes(source, "T")[-1] == ("c", 6)
    assert source.status("T").is_partial
    list(source.pipeline.run_snapshot([table_id("T")]))
    source.run()
    source.check_current("T")


def test_a_transaction_that_began_before_the_redo_stops_its_tables(source: Source) -> None:
    with source.oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO T VALUES (2, 2)")
        scn = now(source)
        cursor.execute("INSERT INTO T VALUES (5, 5)")
        connection.commit()
    source.oracle.run("INSERT INTO U VALUES (1)")
    begin(source, start_scn=scn)
    assert source.status("T").state == "failed"
    assert "is not proved to be complete" in (source.status("T").reason or "")
    assert changes(source, "U") == [("c", 1)]


def test_the_scn_must_have_passed_and_its_redo_be_there(source: Source) -> None:
    with pytest.raises(ConfigError, match="is ahead of the database"):
        begin(source, start_scn=now(source) + 1_000_000)
    assert source.pipeline.store.source.get() is None
    with pytest.raises(RedoUnavailableError, match="redo after it is gone"):
        begin(source, start_scn=now(source), start_reads_from=1)


@pytest.mark.parametrize(
    "options",
    [{"start_scn": 5}, {"mode": "no_data", "start_reads_from": 5},
     {"mode": "no_data", "start_scn": 5, "start_reads_from": 6}],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="needs"):
        SnapshotConfig.model_validate(options)


def test_a_definition_that_oracle_cannot_look_back_at_is_the_present_one_without_a_ddl(
    source: Source,
) -> None:
    """The undo of the dictionary is gone. A table that was altered since does not begin."""
    source.oracle.clock.ahead += 60  # Oracle maps an SCN to a time that is exact to some seconds
    scn = now(source)
    source.oracle.clock.ahead += 60
    source.oracle.run("ALTER TABLE U ADD (M NUMBER(9))", "INSERT INTO T VALUES (9, 9)")
    source.oracle.database.faults.arm(
        Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "ALL_TAB_COLS AS OF SCN", times=0)
    )
    begin(source, start_scn=scn)
    assert source.status("U").state == "failed"
    source.oracle.database.faults.disarm_all()
    source.run()
    assert changes(source, "T") == [("c", 9)]
