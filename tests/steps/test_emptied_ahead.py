"""Rows that DDL removes behind a snapshot that was read ahead of the windows: the change log has their end too, by itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_emptied_partitions import DAYS_OF_REGIONS, FOLLOW, LISTS, RANGES

P = table_id("P")
COLUMNS = "ID NUMBER(9) PRIMARY KEY, K NUMBER(9), R VARCHAR2(9), D DATE, NOTE CLOB"
IN, OUT = "9, 'DE', DATE '2026-03-01'", "15, 'US', DATE '2026-03-09'"
"""Values of a row in the partition that goes, and of one that stays."""

oracle = oracle_with()


def before(oracle: Oracle) -> None:
    """Rows of each kind: unchanged, changed in place, moved into the partition and out of it, with another key, deleted, new; a LOB that is
    written alone, two rows that exchange their keys."""
    oracle.run(
        *(f"INSERT INTO P VALUES ({key}, {IN}, 'note')" for key in (20, 21, 22, 23)),
        f"INSERT INTO P VALUES (24, {OUT}, 'note')",
        "UPDATE P SET NOTE = 'changed' WHERE ID IN (2, 20)",
        "UPDATE P SET R = 'it''s' WHERE ID = 20",
        "UPDATE P SET K = 9, R = 'DE', D = DATE '2026-03-01' WHERE ID IN (5, 24)",
        "UPDATE P SET K = 15, R = 'US', D = DATE '2026-03-09' WHERE ID IN (3, 21)",
        "UPDATE P SET ID = 40 WHERE ID = 22",
        "DELETE FROM P WHERE ID IN (4, 23)",
        "UPDATE P SET ID = DECODE(ID, 1, 6, 1) WHERE ID IN (1, 6)",
    )


def after(oracle: Oracle) -> None:
    """The same keys in the partition again and outside of it, and a new one in it."""
    oracle.run(
        f"INSERT INTO P VALUES (2, {IN}, 'again')",
        f"INSERT INTO P VALUES (20, {OUT}, 'again')",
        f"INSERT INTO P VALUES (50, {IN}, 'new')",
    )


def folded(changes: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The rows to which a change log leads who takes its changes one by one, in order; each change finds what it changes."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for one in sorted(changes, key=lambda one: (one["_cdc_commit_scn"], one["_cdc_ordinal"])):
        op, old, new = one["_cdc_op"], one["before"], one["after"]
        if op == "t":
            rows.clear()
        if op in "ud":
            found = rows.get(old["ID"], [])
            assert found or one.get("_cdc_snapshot"), f"{op} of a row that is not there"
            if found:
                kept = found.pop(0)
                new = new and {**new, **{name: kept[name] for name in one["_cdc_absent"] or ()}}
        if op == "r":
            rows[new["ID"]] = [new]
        elif new is not None:
            rows.setdefault(new["ID"], []).append(new)
    assert all(len(found) < 2 for found in rows.values()), "a key has two rows"
    return {key: found[0] for key, found in rows.items() if found}


def check(source: Source) -> None:
    """The mirror equals Oracle, and the change log leads to it."""
    source.check_current("P")
    table = source.lake.tables[P]
    assert folded(table.history) == {key: one[0] for (key,), one in table.rows.items()}


def ended(source: Source) -> list[int]:
    """The keys of the ``d`` rows at the SCN of the last DDL, in order."""
    scn = source.lake.tables[P].partitions_scn
    changes = [one for one in source.lake.tables[P].changes if one["_cdc_commit_scn"] == scn]
    assert {one["_cdc_op"] for one in changes} == {"d"}
    return sorted(one["before"]["ID"] for one in changes)


@pytest.mark.parametrize("condition", [None, "ID IN (2, 3, 20, 50)"], ids=["whole", "a-part"])
@pytest.mark.parametrize(
    ("partitioned", "ddl"),
    [
        pytest.param(RANGES, "ALTER TABLE P DROP PARTITION P2", id="drop-a-range"),
        pytest.param(RANGES, "ALTER TABLE P TRUNCATE PARTITION P2", id="truncate-a-range"),
        pytest.param(LISTS, "ALTER TABLE P DROP PARTITION EU", id="drop-a-list"),
        pytest.param(DAYS_OF_REGIONS, "ALTER TABLE P TRUNCATE SUBPARTITION D1_EU", id="truncate-a-subpartition"),
        pytest.param(RANGES, "TRUNCATE TABLE P", id="truncate-the-table"),
    ],
)  # fmt: skip
def test_the_change_log_ends_what_went_though_a_chunk_was_read_behind_it(
    oracle: Oracle, tmp_path: Path, partitioned: str, ddl: str, condition: str | None
) -> None:
    """The mirror has not the rows that went, but those that a chunk read behind the DDL, under the same keys too: these stay, and have no end in
    the change log."""
    oracle.run(f"CREATE TABLE P ({COLUMNS}) {partitioned} ENABLE ROW MOVEMENT")
    oracle.run(*(f"INSERT INTO P VALUES ({key}, {IN}, 'note')" for key in (1, 2, 3, 4)))
    oracle.run(*(f"INSERT INTO P VALUES ({key}, {OUT}, 'note')" for key in (5, 6)))
    with source_of(oracle, tmp_path, "P", **FOLLOW) as source:
        source.run()
        before(oracle)
        oracle.run(ddl)
        after(oracle)
        for chunk in source.pipeline.start_snapshot([P], condition=condition):
            source.pipeline.snapshot_chunk(chunk)
            source.pipeline.apply_chunk(chunk)
        windows = source.windows()
        record = source.record("P")
        assert (record.state, record.generation) == ("ready", 1), record.reason
        check(source)
        if ddl.startswith("ALTER"):
            assert ended(source) == [2, 5, 6, 20, 24, 40]
        source.check_replayed("P", windows)
        oracle.run("UPDATE P SET NOTE = 'and on'", "DELETE FROM P WHERE ID = 3")
        source.windows()
        check(source)
