"""A column is renamed to a name that another one had: dropped before, renamed away, or in exchange for its own."""

from __future__ import annotations

from typing import Any

import pytest

from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

T = table_id("T")
REPLACED = [
    "ALTER TABLE T ADD (B_NEW NUMBER(9))",
    "ALTER TABLE T DROP COLUMN B",
    "ALTER TABLE T RENAME COLUMN B_NEW TO B",
]
SWAPPED = [
    "ALTER TABLE T RENAME COLUMN A TO X",
    "ALTER TABLE T RENAME COLUMN B TO A",
    "ALTER TABLE T RENAME COLUMN X TO B",
]
LOBS_SWAPPED = [
    "ALTER TABLE T RENAME COLUMN D TO X",
    "ALTER TABLE T RENAME COLUMN E TO D",
    "ALTER TABLE T RENAME COLUMN X TO E",
]
BACK = ["ALTER TABLE T RENAME COLUMN A TO X", "ALTER TABLE T RENAME COLUMN X TO A"]
KEYS_SWAPPED = [
    "ALTER TABLE T RENAME COLUMN ID TO X",
    "ALTER TABLE T RENAME COLUMN C TO ID",
    "ALTER TABLE T RENAME COLUMN X TO C",
]
CUTS = ("", "everywhere", "in-front", "pause")

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), B VARCHAR2(20), C NUMBER(9), D CLOB, E CLOB)",
    *(
        f"INSERT INTO T VALUES ({key}, 'a{key}', 'b{key}', {key * 10}, 'd{key}', 'e{key}')"
        for key in range(1, 7)
    ),
    warts=[Wart.UNNAMED_COLUMNS],
)
"""Two texts that may change places, two CLOBs that the redo of other changes does not carry, and a number like the key."""
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


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(
    ("statements", "wanted"),
    [
        pytest.param(REPLACED, ("ID", "A", "B__dropped_", "C", "D", "E", "B"), id="replaced"),
        pytest.param(
            [*REPLACED, *(one.replace("NUMBER(9)", "DATE") for one in REPLACED)],
            ("ID", "A", "B__dropped_", "C", "D", "E", "B__dropped_", "B"), id="replaced-twice",
        ),
        pytest.param(SWAPPED, ("ID", "B", "A", "C", "D", "E"), id="swapped"),
        pytest.param(SWAPPED * 2, ("ID", "A", "B", "C", "D", "E"), id="swapped-twice"),
        pytest.param(LOBS_SWAPPED, ("ID", "A", "B", "C", "E", "D"), id="lobs-swapped"),
        pytest.param(LOBS_SWAPPED * 3, ("ID", "A", "B", "C", "E", "D"), id="lobs-swapped-thrice"),
        pytest.param(BACK, ("ID", "A", "B", "C", "D", "E"), id="there-and-back"),
        pytest.param(BACK * 2, ("ID", "A", "B", "C", "D", "E"), id="there-and-back-twice"),
        pytest.param(
            ["ALTER TABLE T RENAME COLUMN A TO A2", "ALTER TABLE T RENAME COLUMN B TO A"],
            ("ID", "A2", "A", "C", "D", "E"), id="onto-one-that-was-renamed-away",
        ),
        pytest.param(
            [
                "ALTER TABLE T RENAME COLUMN A TO X", "ALTER TABLE T ADD (A NUMBER(9))",
                "ALTER TABLE T DROP COLUMN A", "ALTER TABLE T RENAME COLUMN X TO A",
            ],
            ("ID", "A", "B", "C", "D", "E", "A__dropped_"), id="back-over-a-dropped-one",
        ),
        pytest.param(
            [*SWAPPED, "ALTER TABLE T ADD (X NUMBER(9))"],
            ("ID", "B", "A", "C", "D", "E", "X"), id="swapped-and-the-third-name-taken",
        ),
    ],
)  # fmt: skip
def test_a_column_is_renamed_to_the_name_of_another(
    oracle: Oracle, source: Source, statements: list[str], wanted: tuple[str, ...], cut: str
) -> None:
    """It keeps its values under the name, and so does the other under its own; rows of all versions are read by their own names."""
    oracle.run("UPDATE T SET C = C + 1, E = 'last' WHERE ID = 1", "DELETE FROM T WHERE ID = 2")
    oracle.run("UPDATE T SET ID = 30 WHERE ID = 3")
    if cut in ("in-front", "everywhere"):
        source.windows()
    for number, statement in enumerate(statements):
        oracle.run(statement)
        oracle.run(f"UPDATE T SET C = {number} WHERE ID = 4")
        oracle.run(f"UPDATE T SET ID = {500 + number} WHERE ID = {499 + number if number else 5}")
        oracle.run(f"INSERT INTO T (ID, C) VALUES ({number + 100}, 1)")
        if cut == "everywhere":
            source.windows()
    oracle.run("UPDATE T SET D = 'of the last version' WHERE ID = 6")
    if cut == "pause":
        oracle.clock.ahead += 4 * 24 * 3600
        fault = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0)
        oracle.server.faults.arm(fault)
    source.windows()
    oracle.server.faults.disarm_all()
    source.check_followed("T")
    assert columns(source) == wanted
    rows, at = held(source), wanted.index
    kept = {key: list(row.values()) for key, row in rows.items()}
    if "B__dropped_" in wanted:
        assert [kept[key][at("B__dropped_")] for key in (1, 30)] == ["b1", "b3"]
    source.pipeline.rebuild_from_landing(T)
    assert held(source) == rows


@pytest.mark.parametrize("cut", ["", "everywhere"])
def test_columns_of_the_key_change_names_with_others(
    oracle: Oracle, source: Source, cut: str
) -> None:
    oracle.run("UPDATE T SET ID = 30 WHERE ID = 3")
    for number, statement in enumerate(KEYS_SWAPPED):
        oracle.run(statement)
        oracle.run(f"UPDATE T SET A = 'step {number}' WHERE B = 'b4'")
        oracle.run(f"DELETE FROM T WHERE B = 'b{number + 5}'")
        if cut:
            source.windows()
    oracle.run("UPDATE T SET C = 60, ID = 6 WHERE B = 'b3'")
    source.windows()
    source.check_followed("T")


@pytest.mark.parametrize("gone", ["ALTER TABLE T DROP COLUMN B", ""])
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"columns_mask": {"B": "stars(3)"}}, "names that columns_mask names"),
        ({"columns_exclude": ["B"]}, "became virtual or excluded: B"),
    ],
)
def test_a_pattern_s_protection_does_not_come_behind_the_values(
    oracle: Oracle, source: Source, entry: dict[str, Any], reason: str, gone: str
) -> None:
    """A column that is renamed to a protected name has values in the lake that are not."""
    source.close()
    oracle.run("CREATE TABLE P (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20))")
    if gone:
        oracle.run("ALTER TABLE P ADD (B VARCHAR2(20))")
    oracle.run("INSERT INTO P (ID, A) VALUES (1, 'open')")
    source.configure({"name": "P*", **entry})
    source.run()
    oracle.run(*filter(None, [gone.replace(" T ", " P ")]), "ALTER TABLE P RENAME COLUMN A TO B")
    oracle.run("INSERT INTO P VALUES (2, 'shut')")
    source.windows()
    record = source.record("P")
    assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
    assert reason in str(record.reason)
