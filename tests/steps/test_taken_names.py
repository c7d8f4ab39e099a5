"""A new column under the name of one that was dropped, or renamed away, before: another column, beside what the lake keeps of the old one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

T = table_id("T")
DROP = "ALTER TABLE T DROP COLUMN B"
UNUSED = "ALTER TABLE T SET UNUSED (B)"
AWAY = "ALTER TABLE T RENAME COLUMN B TO B2"
NEW = "ALTER TABLE T ADD (B DATE)"

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), B VARCHAR2(20), C NUMBER(9,1))",
    *(f"INSERT INTO T VALUES ({key}, 'a{key}', 'b{key}', {key}.5)" for key in range(1, 7)),
    warts=[Wart.UNNAMED_COLUMNS],
)
"""T has columns in front of and behind the one whose name is taken; rows from before a DDL have no names."""
source = capturing("T")


def held(source: Source) -> dict[int, dict[str, Any]]:
    """The mirror's rows by key."""
    return {key[0]: values for key, (values, _, _) in source.lake.tables[T].rows.items()}


def columns(source: Source) -> tuple[str, ...]:
    """The Delta tables' columns; the SCN at the end of a kept name is left out."""
    schema = source.lake.tables[T].schema
    assert schema is not None
    return tuple(
        name.rstrip("0123456789") if "__" in name else name for name in schema.column_names
    )


@pytest.mark.parametrize(
    ("statements", "wanted", "cut"),
    [
        pytest.param([DROP, NEW], ("B__dropped_", "C", "B"), "", id="dropped"),
        pytest.param([DROP, NEW], ("B__dropped_", "C", "B"), "everywhere", id="dropped-in-windows"),
        pytest.param([DROP, NEW], ("B__dropped_", "C", "B"), "in-front", id="dropped-behind-a-window"),
        pytest.param([DROP, NEW], ("B__dropped_", "C", "B"), "pause", id="dropped-long-ago"),
        pytest.param([UNUSED, NEW], ("B__dropped_", "C", "B"), "", id="unused"),
        pytest.param([UNUSED, NEW], ("B__dropped_", "C", "B"), "named", id="unused-with-names"),
        pytest.param([AWAY, NEW], ("B2", "C", "B"), "", id="renamed"),
        pytest.param([AWAY, NEW], ("B2", "C", "B"), "everywhere", id="renamed-in-windows"),
        pytest.param([AWAY, NEW], ("B2", "C", "B"), "pause", id="renamed-long-ago"),
        pytest.param(
            [DROP, "ALTER TABLE T ADD (B NUMBER(9))", DROP, NEW],
            ("B__dropped_", "C", "B__dropped_", "B"), "", id="dropped-twice",
        ),
        pytest.param(
            [DROP, "ALTER TABLE T ADD (B NUMBER(9))", DROP, NEW],
            ("B__dropped_", "C", "B__dropped_", "B"), "everywhere", id="dropped-twice-in-windows",
        ),
        pytest.param(
            [AWAY, "ALTER TABLE T ADD (B VARCHAR2(9))", "ALTER TABLE T RENAME COLUMN B TO B3", NEW],
            ("B2", "C", "B3", "B"), "", id="renamed-twice",
        ),
        pytest.param(
            [AWAY, "ALTER TABLE T DROP COLUMN B2", "ALTER TABLE T ADD (B2 NUMBER(9))", NEW],
            ("B2__dropped_", "C", "B2", "B"), "everywhere", id="renamed-and-dropped",
        ),
    ],
)  # fmt: skip
def test_a_new_column_takes_the_name_of_another_one(
    oracle: Oracle, source: Source, statements: list[str], wanted: tuple[str, ...], cut: str
) -> None:
    """The old one keeps what it has, under its own new name or one that says since when; rows of all versions are read by their own."""
    oracle.database.redo.set_wart(Wart.UNNAMED_COLUMNS, shown=cut != "named")
    oracle.run("UPDATE T SET A = 'changed', B = 'last' WHERE ID = 1", "DELETE FROM T WHERE ID = 2")
    oracle.run("UPDATE T SET ID = 30 WHERE ID = 3")
    if cut in ("in-front", "everywhere"):
        source.windows()
    for number, statement in enumerate(statements):
        oracle.run(statement)
        oracle.run(f"UPDATE T SET A = 'step {number}' WHERE ID = 4")
        oracle.run(f"INSERT INTO T (ID, A) VALUES ({number + 100}, 'new')")
        if cut == "everywhere":
            source.windows()
    oracle.run("UPDATE T SET B = DATE '2026-01-05' WHERE ID = 5")
    oracle.run("INSERT INTO T (ID, B) VALUES (7, DATE '2026-01-07')")
    if cut == "pause":
        oracle.clock.ahead += 4 * 24 * 3600
        fault = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0)
        oracle.server.faults.arm(fault)
    source.windows()
    oracle.server.faults.disarm_all()
    source.check_followed("T")
    assert columns(source) == ("ID", "A", *wanted)
    schema, rows = source.lake.tables[T].schema, held(source)
    assert schema is not None
    old = schema.column_names[2]
    assert [rows[key][old] for key in (1, 30, 6)] == ["last", "b3", "b6"]
    assert rows[5].get(old) == ("b5" if old == "B2" else None)
    assert rows[7]["B"] == datetime(2026, 1, 7)
    assert rows[6].get("B") is None
