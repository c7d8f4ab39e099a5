"""After a long pause Oracle shows the dictionary of then no more: DDL is followed by its text, as far as that says all, or the table stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import source_of


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run(
            "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY)",
        )
        yield running


def no_undo(oracle: Oracle) -> None:
    oracle.server.faults.arm(Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0))


def test_several_ddls_are_followed_by_their_texts(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.run()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')", "INSERT INTO TWO VALUES (1)")
        oracle.run("ALTER TABLE ONE ADD A NUMBER(5,2) /* MODIFY */")
        oracle.run("INSERT INTO ONE VALUES (2, 'second', 2.25)")
        oracle.run("ALTER TABLE ONE ADD (B VARCHAR2(9) CHECK (B > 'A'), CHECK (A < 100))")
        oracle.run("INSERT INTO ONE (ID, V, A) VALUES (3, 'third', 3)")
        oracle.run("COMMENT ON TABLE ONE IS 'DROP COLUMN V'", "GRANT SELECT ON ONE TO PUBLIC")
        oracle.run("ALTER TABLE ONE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
        oracle.run("UPDATE ONE SET V = 'changed', B = 'Other' WHERE ID = 2")
        oracle.run("ALTER TABLE ONE ADD Z TIMESTAMP(3)")
        oracle.run("INSERT INTO ONE (ID, Z) VALUES (4, TIMESTAMP '2024-02-29 12:00:00.125')")
        oracle.clock.ahead += 4 * 24 * 3600
        no_undo(oracle)
        source.windows()
        oracle.server.faults.disarm_all()
        one = source.status("ONE")
        assert one.state == "ready", one.reason
        source.check_current("ONE")
        source.check_current("TWO")


@pytest.mark.parametrize(
    "ddls",
    [
        pytest.param(
            ["ALTER TABLE ONE ADD A NUMBER(5)", "ALTER TABLE ONE MODIFY A NUMBER(9)"],
            id="has-another-type-now",
        ),
        pytest.param(
            ["ALTER TABLE ONE ADD A NUMBER(5) DEFAULT 1", "ALTER TABLE ONE MODIFY A DEFAULT 2"],
            id="has-another-default-now",
        ),
        pytest.param(
            ["ALTER TABLE ONE ADD A NUMBER(5)", "ALTER TABLE ONE DROP COLUMN A"],
            id="is-gone-now",
        ),
        pytest.param(
            ["ALTER TABLE ONE MODIFY V VARCHAR2(30)", "ALTER TABLE ONE ADD A NUMBER(5)"],
            id="does-more-than-add",
        ),
    ],
)
def test_what_the_text_does_not_say_stops_that_table(
    oracle: Oracle, tmp_path: Path, ddls: list[str]
) -> None:
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.run()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')", "INSERT INTO TWO VALUES (1)")
        for ddl in ddls:
            oracle.run(ddl)
        oracle.clock.ahead += 4 * 24 * 3600
        no_undo(oracle)
        source.windows()
        oracle.server.faults.disarm_all()
        status = source.status("ONE")
        assert status.state == "failed"
        assert "altered after this SCN" in (status.reason or "")
        source.check_current("TWO")
        source.pipeline.resnapshot_tables([source.record("ONE").table], fresh=True)
        source.run()
        source.check_current("ONE")
