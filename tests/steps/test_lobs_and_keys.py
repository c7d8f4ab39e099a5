"""LOBs, and whatever else the redo names by key alone, on their way through changes of key: the mirror equals Oracle, or the table stops.

The lake in memory merges as the lake does without Spark.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from oracle_embedded.redo import DEFAULT_WARTS, LobRows
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.key_walks import KINDS, Walk, create, put
from tests.steps.memory_lake import MemoryLake
from tests.steps.test_lost_windows import FolderLake

SHORT = [(0, LobRows.BLOCKS), (1, LobRows.PIECES)]
LONG = [(seed, shape) for seed in range(2, 40) for shape in LobRows]

oracle = oracle_with(warts=DEFAULT_WARTS, extended_strings=True)


LARGE = {"c": "new" * 4000}
TO_101 = "UPDATE T SET ID = 101 WHERE ID = 1"
TO_201 = "UPDATE T SET ID = 201 WHERE ID = 101"
WRITE = ("UPDATE T SET C = :c WHERE ID = {}", LARGE)
COMMIT = "COMMIT"


def at(key: int) -> tuple[str, dict[str, object]]:
    return (WRITE[0].format(key), dict(LARGE))


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param((TO_101, COMMIT, at(101), COMMIT, TO_201), id="between-two-moves"),
        pytest.param((TO_101, at(101), TO_201), id="between-two-moves-in-one-transaction"),
        pytest.param(
            ("UPDATE T SET N = 5 WHERE ID = 1", COMMIT, at(1), COMMIT, TO_101),
            id="behind-an-update",
        ),
        pytest.param(
            ("UPDATE T SET N = 5 WHERE ID = 1", at(1), TO_101),
            id="behind-an-update-in-one-transaction",
        ),
        pytest.param(
            (
                (
                    "INSERT INTO T (ID, N, C, B) VALUES (7, 0, :c, :b)",
                    {"c": "c" * 9000, "b": b"b" * 9000},
                ),
                COMMIT,
                at(7),
                COMMIT,
                "UPDATE T SET ID = 107 WHERE ID = 7",
            ),
            id="behind-an-insert",
        ),
        pytest.param(
            (
                (
                    "INSERT INTO T (ID, N, C, B) VALUES (7, 0, :c, :b)",
                    {"c": "c" * 9000, "b": b"b" * 9000},
                ),
                at(7),
                "UPDATE T SET ID = 107 WHERE ID = 7",
            ),
            id="behind-an-insert-in-one-transaction",
        ),
        pytest.param(
            (
                "DELETE FROM T WHERE ID = 1",
                ("INSERT INTO T (ID, N, C) VALUES (1, 0, :c)", {"c": "c" * 9000}),
                COMMIT,
                at(1),
                COMMIT,
                TO_101,
            ),
            id="of-a-key-that-was-deleted-and-inserted",
        ),
        pytest.param(
            (
                "UPDATE T SET ID = 3 - ID WHERE ID < 3",
                COMMIT,
                at(1),
                COMMIT,
                "UPDATE T SET ID = 3 - ID WHERE ID < 3",
                COMMIT,
                ("UPDATE T SET B = :b WHERE ID = 2", {"b": b"swapped" * 2000}),
                COMMIT,
                "UPDATE T SET ID = ID + 100",
            ),
            id="of-rows-that-swap-their-keys",
        ),
        pytest.param(
            (
                "UPDATE T SET ID = ID + 1",
                COMMIT,
                at(2),
                at(3),
                COMMIT,
                "UPDATE T SET ID = ID + 1",
            ),
            id="of-keys-that-are-shifted",
        ),
        pytest.param(
            (
                TO_101,
                COMMIT,
                ("UPDATE T SET ID = 201, C = :c WHERE ID = 101", dict(LARGE)),
                COMMIT,
                "UPDATE T SET ID = 301 WHERE ID = 201",
            ),
            id="with-the-move-itself",
        ),
    ],
)
def test_a_lob_that_is_written_between_changes_of_key_is_kept(
    oracle: Oracle, tmp_path: Path, statements: tuple[str | tuple[str, dict[str, object]], ...]
) -> None:
    """Of what writes a LOB, the redo says the row's key and no ROW_ID."""
    create(oracle, "T", "clob-and-blob", rows=3)
    with source_of(oracle, tmp_path, "T") as source:
        source.begin()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            for one in statements:
                if one == COMMIT:
                    connection.commit()
                else:
                    sql, values = (one, {}) if isinstance(one, str) else one
                    put(cursor, sql, values)
            connection.commit()
        source.windows()
        assert source.record("T").reason is None
        source.check_current("T")


def test_small_windows_of_such_changes_need_no_spark(oracle: Oracle, tmp_path: Path) -> None:
    """What the changes lack comes from the mirror's files; of other columns of these rows nothing is read."""
    create(oracle, "T", "clob-and-blob", rows=6)
    with source_of(oracle, tmp_path, "T", capture={"close_at": "online"}) as source:
        source.lake = cast("MemoryLake", FolderLake())
        source.run()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            for sql in (TO_101, WRITE[0].format(101), TO_201, "UPDATE T SET ID = ID + 1"):
                put(cursor, sql, dict(LARGE) if ":c" in sql else {})
                connection.commit()
            cursor.execute("DELETE FROM T WHERE ID = 3")
            connection.commit()
        source.windows()
        assert source.record("T").reason is None
        table = DeltaTable(
            str(Path(source.pipeline.config.lake.path) / f"src/mirror/{table_id('T').path}")
        )
        query = QueryBuilder().register("t", table).execute('SELECT "ID", "N", "C", "B" FROM t')
        found = sorted(tuple(row.values()) for row in pa.table(query.read_all()).to_pylist())
        position = source.record("T").mirror_scn
        assert position is not None
        assert found == sorted(source.oracle_rows("T", position))
        assert [row[0] for row in found] == [4, 5, 6, 7, 202]


def walked(source: Source, oracle: Oracle, rng: random.Random, kinds: list[str]) -> list[str]:
    """Let rows of a table of each kind walk, a window after the other; the reasons of the tables that stopped, with what was done to them."""
    tables = {f"T{number}": kind for number, kind in enumerate(kinds)}
    for table, kind in tables.items():
        create(oracle, table, kind, rows=4)
    source.configure(*tables)
    source.run()
    stopped = []
    walks = [Walk(table, kind, rng) for table, kind in tables.items()]
    for _ in range(3):
        with oracle.owner() as connection:
            for walk in walks:
                walk.log.append("WINDOW")
                for _ in range(rng.randint(1, 6)):
                    walk.transaction(connection)
        source.windows()
        for walk in list(walks):
            record = source.record(walk.table)
            if record.reason is None:
                try:
                    source.check_current(walk.table)
                except AssertionError as error:
                    error.add_note("\n".join([walk.kind, *walk.log]))
                    raise
            else:
                stopped.append("\n".join([record.reason, walk.kind, *walk.log]))
                walks.remove(walk)
    return stopped


@pytest.mark.parametrize(
    ("seed", "shape"),
    [
        *(pytest.param(seed, shape, id=f"{seed}-{shape.value}") for seed, shape in SHORT),
        *(
            pytest.param(seed, shape, id=f"{seed}-{shape.value}", marks=pytest.mark.slow)
            for seed, shape in LONG
        ),
    ],
)
def test_rows_keep_what_they_hold_on_any_walk_through_keys(
    tmp_path: Path, seed: int, shape: LobRows
) -> None:
    """Every statement of a walk may be of a row that moved before, in the same transaction or window: a move, a swap, a shift of all keys, a
    DELETE with an INSERT of the key behind it, LOBs in the row and beside it, extended strings, documents."""
    kinds = [*KINDS, *KINDS, "clob-and-blob", "clob-and-blob"]
    with (
        running_oracle(warts=DEFAULT_WARTS, extended_strings=True, lob_rows=shape) as oracle,
        source_of(oracle, tmp_path) as source,
    ):
        stopped = walked(source, oracle, random.Random(seed), kinds)
        assert len(stopped) <= len(kinds) // 2, stopped[0]
