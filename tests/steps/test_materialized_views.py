"""A materialized view is captured as the table that it is: what refreshes it is in the redo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of, table_id


@pytest.mark.parametrize("how", [{"key": ["ID"]}, {"identity": "rowid"}], ids=["key", "rowid"])
def test_refreshes_of_a_materialized_view_are_followed(tmp_path: Path, how: dict[str, Any]) -> None:
    """A complete refresh deletes all rows and inserts them again, in one transaction. Without one, changes of the table below change nothing."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
            "INSERT INTO ORDERS VALUES (1, 'one')",
            "INSERT INTO ORDERS VALUES (2, 'two')",
            "CREATE MATERIALIZED VIEW SEEN AS SELECT ID, V FROM ORDERS",
        )
        with source_of(oracle, tmp_path) as source:
            source.configure({"name": "SEEN", **how})

            def values() -> list[tuple[Any, Any]]:
                assert source.record("SEEN").state == "ready", source.record("SEEN").reason
                rows = source.lake.tables[table_id("SEEN")].rows.values()
                return sorted((row["ID"], row["V"]) for row, _, _ in rows)

            source.run()
            oracle.run(
                "UPDATE ORDERS SET V = 'changed' WHERE ID = 1",
                "DELETE FROM ORDERS WHERE ID = 2",
                "INSERT INTO ORDERS VALUES (3, 'three')",
            )
            source.windows()
            assert values() == [(1, "one"), (2, "two")]
            for _ in range(2):
                oracle.run("BEGIN DBMS_MVIEW.REFRESH('SEEN'); END;")
                source.windows()
                assert values() == [(1, "changed"), (3, "three")]
