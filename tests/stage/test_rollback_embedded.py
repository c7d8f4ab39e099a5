"""Partial rollbacks of a table with LOBs through the driver, LogMiner and capture: what survives is the table."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.decode.dml import decode_dml
from cdc_core.model.operations import Operation
from cdc_core.stage.statements import UNKNOWN_ROW_ID
from cdc_core.stage.undone_statements import NotUnderstoodError
from oracle_embedded.redo.settings import Wart
from tests.capture.source import Source
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.stage.plain_rollback import RedoRow, surviving

oracle = oracle_with(
    "CREATE TABLE NOTES (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), BODY CLOB)",
    warts=[Wart.LOB_STATEMENTS],
)


def change(rng: random.Random, cursor: Any, there: set[int]) -> None:
    """One statement; also one that Oracle refuses and undoes."""
    free = [key for key in range(8) if key not in there]
    match rng.randrange(5):
        case 0 | 1 if free:
            key = rng.choice(free)
            body = rng.choice([None, "", f"body {rng.random()}"])
            cursor.execute("INSERT INTO NOTES VALUES (:1, :2, :3)", [key, f"n{key}", body])
            there.add(key)
        case 2 if there:
            key = rng.choice(sorted(there))
            cursor.execute("DELETE FROM NOTES WHERE ID = :1", [key])
            there.discard(key)
        case 3 if there:
            with pytest.raises(Exception, match="ORA-00001"):
                cursor.execute("INSERT INTO NOTES VALUES (:1, 'x', 'y')", [min(there)])
        case _ if there:
            column = rng.choice(("NAME", "BODY"))
            key = rng.choice(sorted(there))
            value = f"{column} {rng.random()}"
            cursor.execute(f"UPDATE NOTES SET {column} = :1 WHERE ID = :2", [value, key])


def test_savepoints_in_a_table_with_lobs(oracle: Oracle, tmp_path: Path) -> None:
    source = Source.begin(oracle, tmp_path, "NOTES")
    rng = random.Random(20)
    there: set[int] = set()
    with oracle.owner() as connection:
        cursor = connection.cursor()
        for _ in range(40):
            for _ in range(rng.randint(1, 5)):
                saved = set(there)
                cursor.execute("SAVEPOINT here")
                for _ in range(rng.randint(0, 4)):
                    change(rng, cursor, there)
                if rng.random() < 0.5:
                    cursor.execute("ROLLBACK TO SAVEPOINT here")
                    there = saved
            connection.commit()
    rows = source.rows(source.window())
    schema = source.store.schemas.at(source.config.tables[0].table, source.start.snapshot_scn)
    assert schema is not None
    transactions: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["operation_code"] in (Operation.INSERT, Operation.DELETE, Operation.UPDATE):
            transactions.setdefault(row["xid"], []).append(row)
    table: dict[int, dict[str, Any]] = {}
    undone = 0
    for redo in transactions.values():
        facts = [
            RedoRow(
                row["operation_code"],
                None if row["row_id"] == UNKNOWN_ROW_ID else row["row_id"],
                row["rollback"],
            )
            for row in redo
        ]
        left = surviving(facts)
        undone += len(redo) - len(left)
        apply(table, [redo[place]["sql_redo"] for place in left], schema)
    assert undone > 50
    assert sum(row["row_id"] == UNKNOWN_ROW_ID for row in rows) > 50
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT ID, NAME, BODY FROM NOTES", fetch_lobs=False)
        wanted = {row[0]: row[1:] for row in cursor.fetchall()}
    found = {key: (row["NAME"], row["BODY"]) for key, row in table.items()}
    assert {key: (name, body or None) for key, (name, body) in found.items()} == wanted


def apply(table: dict[int, dict[str, Any]], statements: list[str], schema: Any) -> None:
    """Carry decoded statements out on rows by key."""
    if not statements:
        return
    decoded = decode_dml(pa.array(statements, pa.large_string()), schema)
    for op, before, after, absent in zip(
        decoded.op.to_pylist(),
        decoded.before.to_pylist(),
        decoded.after.to_pylist(),
        decoded.absent.to_pylist(),
        strict=True,
    ):
        if op == Operation.DELETE:
            del table[before["ID"]]
        else:
            old = table.pop(before["ID"]) if before else {}
            new = {name: value for name, value in after.items() if name not in absent}
            assert after["ID"] not in table
            table[after["ID"]] = {"BODY": None, **old, **new}


def test_a_large_lob_that_an_update_wrote_and_took_back_is_refused(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Nothing shows whether the undo row means the LOB or the update before it."""
    oracle.run("INSERT INTO NOTES VALUES (1, 'one', 'small')")
    source = Source.begin(oracle, tmp_path, "NOTES")
    oracle.run(
        "UPDATE NOTES SET NAME = 'two' WHERE ID = 1",
        "SAVEPOINT here",
        "UPDATE NOTES SET BODY = TO_CLOB(RPAD('x', 4000, 'x')) WHERE ID = 1",
        "ROLLBACK TO SAVEPOINT here",
    )
    rows = source.rows(source.window())
    facts = [
        RedoRow(
            row["operation_code"],
            None if row["row_id"] == UNKNOWN_ROW_ID else row["row_id"],
            row["rollback"],
        )
        for row in rows
    ]
    with pytest.raises(NotUnderstoodError):
        surviving(facts)
