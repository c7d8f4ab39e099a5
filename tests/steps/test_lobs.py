"""LOBs of any size through the driver, LogMiner, landing and the stage of LOBs: the mirror equals Oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.redo import DEFAULT_WARTS, LobRows
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import run_random_changes, source_of, table_id
from tests.steps.test_excluded import landed

_SIZES = (0, 5, 1500, 4500, 9000)
_TABLE = "CREATE TABLE DOCS (ID NUMBER(9) PRIMARY KEY, N NUMBER(9), C CLOB, NC NCLOB, B BLOB)"


@pytest.fixture(params=list(LobRows), ids=lambda shape: shape.value)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    with running_oracle(_TABLE, warts=DEFAULT_WARTS, lob_rows=request.param) as running:
        yield running


def value(rng: random.Random, column: str, size: int) -> str | bytes | None:
    """Text with what redo must quote, and characters beyond 16 bits; or bytes."""
    if column == "B":
        return rng.randbytes(size) if size else None
    return "".join(rng.choices("ab'|();é日🔥 \n", k=size)) or None


def put(cursor: Any, sql: str, values: dict[str, Any]) -> None:
    kinds = {"C": oracledb.DB_TYPE_CLOB, "NC": oracledb.DB_TYPE_NCLOB, "B": oracledb.DB_TYPE_BLOB}
    cursor.setinputsizes(
        **{name.lower(): kinds[name] for name in kinds if f":{name.lower()}" in sql}
    )
    cursor.execute(sql, {name.lower(): held for name, held in values.items()})


def change(rng: random.Random, cursor: Any, key: int, *, is_new: bool) -> None:
    row = {name: value(rng, name, rng.choice(_SIZES)) for name in ("C", "NC", "B")}
    if is_new:
        put(cursor, "INSERT INTO DOCS VALUES (:id, 1, :c, :nc, :b)", {"ID": key, **row})
        return
    names = rng.sample(sorted(row), rng.randint(1, 3))
    sets = ", ".join(f"{name} = :{name.lower()}" for name in names)
    more = ", N = N + 1" if rng.random() < 0.3 else ""
    chosen = {name: row[name] for name in names}
    put(cursor, f"UPDATE DOCS SET {sets}{more} WHERE ID = :id", {"ID": key, **chosen})


def test_lobs_of_any_size_are_the_same_in_the_mirror(oracle: Oracle, tmp_path: Path) -> None:
    """Several in a row, in transactions that take INSERTs back, and that lie in several windows."""
    rng = random.Random(7)
    with source_of(oracle, tmp_path, "DOCS") as source:
        source.begin()
        last = "DELETE FROM DOCS WHERE ID = 3"
        run_random_changes(source, rng, change, steps=32, created=12, last=last)
        source.check_current("DOCS")
        assert source.record("DOCS").state == "ready"
        changed = [one["after"] for one in source.lake.tables[table_id("DOCS")].changes]
        sizes = {len(row["C"]) for row in changed if row and row["C"]}
        assert max(sizes) > 4066, "more than one piece"


def test_of_several_values_that_a_transaction_gives_a_lob_the_last_stays(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Its statements follow each other without a row between them, and nothing else of the transaction has the old value."""
    with source_of(oracle, tmp_path, "DOCS") as source:
        with oracle.owner() as connection:
            cursor = connection.cursor()
            row = {"C": "old" * 1500, "NC": "n" * 3000, "B": bytes(range(256)) * 40}
            for key in (1, 2):
                put(cursor, "INSERT INTO DOCS VALUES (:id, 0, :c, :nc, :b)", {"ID": key, **row})
            connection.commit()
            source.run()
            for size in (9000, 4500, 5000):
                values = {"C": "c" * size, "B": b"\xff" * size}
                for name, held in values.items():
                    sql = f"UPDATE DOCS SET {name} = :{name.lower()} WHERE ID = :id"
                    put(cursor, sql, {"ID": 1, name: held})
                    put(cursor, sql, {"ID": 1, name: held[1:]})
            cursor.execute("SELECT C, B FROM DOCS WHERE ID = 2 FOR UPDATE")
            for lob, part in zip(cursor.fetchone(), ("new", b"new"), strict=True):
                lob.trim(0)
                lob.write(part, 1)
                lob.write(part, 4)
            connection.commit()
        source.windows()
        assert source.record("DOCS").reason is None
        source.check_current("DOCS")
        changes = source.lake.tables[table_id("DOCS")].changes
        updates = [one["after"] for one in changes if one["_cdc_op"] == "u"]
        assert [len(row["C"]) for row in updates if row["C"] and row["ID"] == 1] == [
            9000, 8999, 4500, 4499, 5000, 4999,
        ]  # fmt: skip


def test_a_lob_that_is_left_out_stops_nothing(oracle: Oracle, tmp_path: Path) -> None:
    """Its value does not land, and the other LOB of the row is whole."""
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "DOCS", "columns_exclude": ["C", "B"]})
        source.begin()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            row = {"C": "secret" * 900, "NC": "kept" * 1100, "B": b"\xab\xcd" * 2000}
            put(cursor, "INSERT INTO DOCS VALUES (:id, 1, :c, :nc, :b)", {"ID": 1, **row})
            put(cursor, "INSERT INTO DOCS VALUES (:id, 1, :c, :nc, :b)", {"ID": 2, **row})
            put(cursor, "UPDATE DOCS SET C = :c WHERE ID = :id", {"ID": 1, "C": row["C"]})
            put(cursor, "UPDATE DOCS SET NC = :nc WHERE ID = :id", {"ID": 1, "NC": "new" * 1500})
            connection.commit()
        source.windows()
        assert "secret" not in landed(source)
        assert "abcdabcd" not in landed(source).lower()
        assert source.lake.image(table_id("DOCS")) == [(1, 1, "new" * 1500), (2, 1, row["NC"])]
        assert source.record("DOCS").state == "ready"


@pytest.mark.parametrize(
    ("ddl", "out"),
    [
        ("ADD (X NUMBER)", []),
        ("ADD (X NUMBER)", ["B"]),
        ("RENAME COLUMN C TO TEXT", []),
        ("RENAME COLUMN ID TO NUM", []),
        ("DROP COLUMN N", []),
    ],
)
def test_lobs_that_were_written_before_a_ddl_are_whole(
    oracle: Oracle, tmp_path: Path, ddl: str, out: list[str]
) -> None:
    """LogMiner has no names for their columns (``COL n``), nor for those by which their row is named."""
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "DOCS", "columns_exclude": out})
        source.begin()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            for key in (1, 2):
                row = {"ID": key, "C": "é🔥" * 4500, "NC": "n" * 5000, "B": b"\xab\xcd" * 4000}
                put(cursor, "INSERT INTO DOCS VALUES (:id, 1, :c, :nc, :b)", row)
            put(cursor, "UPDATE DOCS SET C = :c WHERE ID = :id", {"ID": 2, "C": "new" * 3000})
            connection.commit()
        oracle.run(f"ALTER TABLE DOCS {ddl}")
        source.run()
        record = source.record("DOCS")
        assert (record.state, record.reason) == ("ready", None)
        source.check_current("DOCS")
        assert ("abcdabcd" in landed(source).lower()) == (out == [])


def test_a_lob_column_that_came_later_is_not_taken_for_one_that_is_left_out(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "DOCS", "columns_exclude": ["B"]})
        source.begin()
        oracle.run("ALTER TABLE DOCS ADD (LATER CLOB)")
        with oracle.owner() as connection:
            row = {"ID": 1, "C": "c" * 9000, "NC": "later" * 2000, "B": b"\xab\xcd" * 4000}
            put(connection.cursor(), "INSERT INTO DOCS VALUES (:id, 1, :c, NULL, :b, :nc)", {**row})
            connection.commit()
        source.run()
        record = source.record("DOCS")
        assert (record.state, record.reason) == ("ready", None)
        source.check_current("DOCS")
        assert "abcdabcd" not in landed(source).lower()


@pytest.mark.parametrize("others", [["C", "NC", "B"], ["C", "B"]], ids=["every-lob", "some"])
def test_a_statement_of_a_lob_that_is_left_out_is_not_taken_for_another(
    oracle: Oracle, tmp_path: Path, others: list[str]
) -> None:
    """One undo row stands for it, and looks like that of the row's update before it."""
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "DOCS", "columns_exclude": others})
        oracle.run("INSERT INTO DOCS VALUES (1, 1, NULL, 'kept', NULL)")
        source.run()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            cursor.execute("UPDATE DOCS SET N = 2")
            put(cursor, "UPDATE DOCS SET C = :c WHERE ID = :id", {"ID": 1, "C": "secret" * 900})
            connection.commit()
            source.windows()
            assert source.lake.image(table_id("DOCS"))[0][:2] == (1, 2)
            cursor.execute("UPDATE DOCS SET N = 3")
            cursor.execute("SAVEPOINT here")
            put(cursor, "UPDATE DOCS SET C = :c WHERE ID = :id", {"ID": 1, "C": "secret" * 1900})
            cursor.execute("ROLLBACK TO SAVEPOINT here")
            connection.commit()
        source.windows()
        assert "secret" not in landed(source)
        assert "for update" not in landed(source), "where the row is named by all columns"
        record = source.record("DOCS")
        assert (record.state, "partial rollback" in (record.reason or "")) == ("failed", True)
        assert source.lake.image(table_id("DOCS"))[0][:2] == (1, 2)
