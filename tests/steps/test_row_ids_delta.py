"""A table without a key, known by ROWIDs, from chunks to Delta tables: through windows, replay, repair and rebuild."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from cdc_core.steps import Pipeline
from tests.invariants.compare import read_delta, version_at
from tests.oracle.embedded import ADMIN, Oracle, running_oracle
from tests.steps.harness import table_id

MANY = "INSERT INTO LOOSE SELECT MOD(LEVEL, 7), 'many', NULL FROM DUAL CONNECT BY LEVEL <= 250"


def test_a_table_without_a_key_reaches_delta(tmp_path: Path) -> None:
    """With minimal supplemental logging: updates name what they change alone."""
    with running_oracle(logging=False) as oracle:
        oracle.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)
        oracle.run("CREATE TABLE LOOSE (A NUMBER(9), B VARCHAR2(40), C NUMBER)", MANY)
        config = oracle.config(
            tmp_path,
            tables=[{"name": "DEMO.LOOSE", "identity": "rowid"}],
            snapshot={"chunk_rows": 100},
        )
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                "UPDATE LOOSE SET B = 'once' WHERE A = 1",
                "UPDATE LOOSE SET C = A WHERE A IN (1, 2)",
                "DELETE FROM LOOSE WHERE A = 3",
            )
            oracle.run(
                "INSERT INTO LOOSE SELECT 8, 'in its place', LEVEL FROM DUAL CONNECT BY LEVEL <= 40",
                "UPDATE LOOSE SET B = 'again' WHERE A = 8 AND C < 5",
            )
            list(pipeline.run_once())
            check(oracle, pipeline, tmp_path)
            first = pipeline.records.windows(newest_first=True, limit=1)[0].window
            oracle.run("DELETE FROM LOOSE WHERE B = 'again'", "UPDATE LOOSE SET A = 9 WHERE A = 0")
            oracle.run("ALTER TABLE LOOSE ADD (D NUMBER(5) DEFAULT 4)")
            oracle.run(
                "UPDATE LOOSE SET D = 5 WHERE A = 2 AND ROWNUM <= 3",
                "UPDATE LOOSE SET B = 'not of the new column' WHERE A = 4",
                "INSERT INTO LOOSE (A, D) VALUES (10, NULL)",
            )
            list(pipeline.run_once())
            check(oracle, pipeline, tmp_path)

            pipeline.replay_window(first)
            check(oracle, pipeline, tmp_path)
            mirror = tmp_path / "lake" / "src" / "mirror" / "demo.loose"
            DeltaTable(str(mirror)).delete("A = 9")
            [found] = pipeline.reconcile().tables
            assert found.differences > 0
            list(pipeline.repair())
            [found] = pipeline.reconcile().tables
            assert (found.differences, found.double_keys_delta) == (0, 0)
            check(oracle, pipeline, tmp_path)

            pipeline.rebuild_mirror(table_id("LOOSE"))
            check(oracle, pipeline, tmp_path)


def position_of(pipeline: Pipeline) -> int:
    table = pipeline.store.tables.get(table_id("LOOSE"))
    assert table is not None
    assert table.mirror_scn is not None
    return table.mirror_scn


def rows_of(oracle: Oracle, scn: int) -> list[tuple[Any, ...]]:
    with oracle.owner() as connection:
        query = "SELECT ROWIDTOCHAR(ROWID), TO_CHAR(C), L.* FROM LOOSE AS OF SCN :scn L"
        rows = connection.cursor().execute(query, scn=scn).fetchall()
    return [(rowid, a, b, c, *added) for rowid, c, a, b, _, *added in rows]


def check(oracle: Oracle, pipeline: Pipeline, path: Path) -> None:
    """The mirror's version of its position equals Oracle there, by the driver and delta-rs alone."""
    mirror, scn = path / "lake" / "src" / "mirror" / "demo.loose", position_of(pipeline)
    rows = rows_of(oracle, scn)
    names = ["_cdc_row_id", "A", "B", "C", "D"][: len(rows[0])]
    found = read_delta(mirror, names, version_at(mirror, scn))
    assert Counter(map(tuple, found)) == Counter(rows)


def test_a_table_without_a_key_that_has_lobs_reaches_delta(tmp_path: Path) -> None:
    """Rows of LOBs in pieces, on both paths, taken back and replayed."""
    with running_oracle(release="23ai") as oracle:
        big = "RPAD(TO_CLOB('x'), 3000, 'y') || RPAD('z', 3000, 'z')"
        oracle.run(
            "CREATE TABLE LOOSE (A NUMBER(9), B CLOB)",
            f"INSERT INTO LOOSE SELECT MOD(LEVEL, 3), {big} FROM DUAL CONNECT BY LEVEL <= 7",
        )
        config = oracle.config(
            tmp_path,
            tables=[{"name": "DEMO.LOOSE", "identity": "rowid"}],
        )
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                "INSERT INTO LOOSE VALUES (1, EMPTY_CLOB())",
                f"INSERT INTO LOOSE VALUES (1, {big})",
                "INSERT INTO LOOSE VALUES (1, 'short')",
                "SAVEPOINT HERE",
                f"UPDATE LOOSE SET B = {big}, A = 8 WHERE A = 1",
                "ROLLBACK TO SAVEPOINT HERE",
                f"UPDATE LOOSE SET B = B || {big} WHERE A = 2",
                "DELETE FROM LOOSE WHERE A = 0",
            )
            list(pipeline.run_once())
            check_lobs(oracle, pipeline, tmp_path)
            first = pipeline.records.windows(newest_first=True, limit=1)[0].window
            oracle.run("UPDATE LOOSE SET A = 5 WHERE A = 1", "INSERT INTO LOOSE VALUES (1, NULL)")
            list(pipeline.run_once())
            pipeline.replay_window(first)
            check_lobs(oracle, pipeline, tmp_path)
            [found] = pipeline.reconcile().tables
            assert (found.differences, found.double_keys_delta) == (0, 0)
            pipeline.rebuild_mirror(table_id("LOOSE"))
            check_lobs(oracle, pipeline, tmp_path)


def check_lobs(oracle: Oracle, pipeline: Pipeline, path: Path) -> None:
    mirror, scn = path / "lake" / "src" / "mirror" / "demo.loose", position_of(pipeline)
    with oracle.owner() as connection:
        query = "SELECT ROWIDTOCHAR(ROWID), A, B FROM LOOSE AS OF SCN :scn"
        rows = connection.cursor().execute(query, scn=scn).fetchall()
        expected = Counter((row, a, b and b.read()) for row, a, b in rows)
    found = read_delta(mirror, ["_cdc_row_id", "A", "B"], version_at(mirror, scn))
    assert Counter(map(tuple, found)) == expected
    assert len(found) > 5
