"""Indexes on expressions and in descending order bring hidden virtual columns, which no row holds: capture goes on across them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.model.scn import SLACK_SECONDS
from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of

BEFORE = ("CREATE INDEX T_UP ON T (UPPER(V))", "CREATE INDEX T_DOWN ON T (V DESC, UPPER(S))")
BETWEEN = ("CREATE INDEX T_LOW ON T (LOWER(V))", "CREATE INDEX T_LESS ON T (S DESC)")


@pytest.mark.parametrize("told", [(), ("S",)], ids=["all", "one-left-out"])
def test_a_table_whose_only_key_descends_goes_on_across_indexes(
    tmp_path: Path, told: tuple[str, ...]
) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) NOT NULL, V VARCHAR2(1500), S VARCHAR2(20))",
            "CREATE UNIQUE INDEX T_ID ON T (ID DESC)",
            *BEFORE,
            "INSERT INTO T VALUES (1, 'first', 'x')",
        )
        with source_of(oracle, tmp_path, "T") as source:
            source.configure({"name": "T", "columns_exclude": list(told)})
            source.run()
            for number, ddl in enumerate(
                (*BETWEEN, "ALTER TABLE T ADD (W NUMBER(9))", "DROP INDEX T_UP"), 2
            ):
                oracle.run(
                    f"INSERT INTO T (ID, V) VALUES ({number}, 'before')",
                    ddl,
                    f"UPDATE T SET V = 'after {number}' WHERE ID < {number}",
                )
                oracle.clock.ahead += 3 * SLACK_SECONDS
                source.windows()
                source.check_current("T")
                assert source.record("T").state == "ready"
