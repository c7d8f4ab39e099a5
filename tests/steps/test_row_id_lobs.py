"""Tables without a key that have LOBs: most rows of the redo have a placeholder for the ROWID that identifies the table's rows, and what
closes their statements has it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pytest

from cdc_core.errors import PreflightError
from cdc_core.steps.source_checks import oracle_findings
from oracle_embedded.faults import Fault, FaultKind
from oracle_embedded.redo import DEFAULT_WARTS, LobRows
from oracle_embedded.redo.lob_statements import LobRow, LobStatements
from tests.oracle.embedded import ADMIN, Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_excluded import landed

TABLE = "CREATE TABLE NOTES (A NUMBER(9), C CLOB, B BLOB)"
NOTES = {"name": "NOTES", "identity": "rowid"}
_SIZES = (0, 7, 9000)


@pytest.fixture(params=list(LobRows), ids=lambda shape: shape.value)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    with running_oracle(
        TABLE, warts=DEFAULT_WARTS, lob_rows=request.param, release="23ai"
    ) as running:
        yield running


def check(oracle: Oracle, source: Source) -> None:
    """The mirror equals Oracle as of its position, by the driver alone."""
    record = source.record("NOTES")
    assert record.state == "ready", record.reason
    assert images(source) == Counter(rows_of(oracle, record.mirror_scn or 0))


def images(source: Source) -> Counter[tuple[Any, ...]]:
    """The mirror's rows, each with its ROWID in front."""
    rows = source.lake.tables[table_id("NOTES")].rows.values()
    return Counter(tuple(values.values()) for values, _, _ in rows)


def rows_of(oracle: Oracle, scn: int) -> list[tuple[Any, ...]]:
    with oracledb.connect(user=ADMIN, password="admin", dsn=oracle.server.dsn) as connection:
        query = "SELECT ROWIDTOCHAR(ROWID), T.* FROM DEMO.NOTES AS OF SCN :scn T"
        rows = connection.cursor().execute(query, scn=scn).fetchall()
        return [
            tuple(one.read() if isinstance(one, oracledb.LOB) else one for one in row)
            for row in rows
        ]


def change(rng: random.Random, cursor: Any, text: str | None) -> None:
    """One statement: rows have few values, so many are equal."""
    a, body = rng.randrange(3), ":c" if text else rng.choice(("NULL", "EMPTY_CLOB()"))
    sql = rng.choice(
        (
            f"INSERT INTO NOTES VALUES ({a}, {body}, EMPTY_BLOB())",
            f"INSERT INTO NOTES VALUES ({a}, {body}, HEXTORAW('0A'))",
            f"UPDATE NOTES SET C = {body}, A = MOD(A + 1, 3) WHERE ROWNUM = 1",
            f"UPDATE NOTES SET C = {body} WHERE A = {a}",
            f"DELETE FROM NOTES WHERE A = {a} AND ROWNUM = 1",
        )
    )
    if ":c" not in sql:
        cursor.execute(sql)
        return
    cursor.setinputsizes(c=oracledb.DB_TYPE_CLOB)
    cursor.execute(sql, {"c": text})


def test_rows_with_lobs_have_the_rowids_that_oracle_gave_them(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Equal rows, several LOBs, transactions over windows, and parts that are taken back: also those that wrote LOBs."""
    rng = random.Random(11)
    with source_of(oracle, tmp_path) as source:
        source.configure(NOTES)
        oracle.run(
            "INSERT INTO NOTES VALUES (1, 'same', HEXTORAW('00'))",
            "INSERT INTO NOTES VALUES (1, 'same', HEXTORAW('00'))",
        )
        source.run()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            for step in range(60):
                text = "é" * rng.choice(_SIZES)
                if step % 4 == 1:
                    cursor.execute("SAVEPOINT here")
                change(rng, cursor, text)
                if step % 8 == 3:
                    cursor.execute("ROLLBACK TO SAVEPOINT here")
                if step % 20 == 9:
                    source.windows()
                if step % 8 == 7:
                    connection.commit()
            connection.commit()
        source.windows()
        check(oracle, source)
        for window in source.pipeline.records.windows():
            source.pipeline.replay_window(window.window)
        check(oracle, source)


def test_a_lob_that_is_left_out_is_nowhere(oracle: Oracle, tmp_path: Path) -> None:
    """Rows are known all the same, with what writes it and without."""
    with source_of(oracle, tmp_path) as source:
        source.configure({**NOTES, "columns_exclude": ["C"]})
        source.begin()
        rng = random.Random(3)
        with oracle.owner() as connection:
            for step in range(24):
                change(rng, connection.cursor(), "secret" * rng.choice((0, 1, 1500)))
                if step % 6 == 5:
                    connection.commit()
        source.windows()
        assert "secret" not in landed(source)
        assert source.record("NOTES").state == "ready"
        scn = source.record("NOTES").mirror_scn or 0
        assert images(source) == Counter((row, a, b) for row, a, _, b in rows_of(oracle, scn))


def test_a_statement_of_a_lob_that_is_left_out_is_taken_back_alone(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path) as source:
        source.configure({**NOTES, "columns_exclude": ["C", "B"]})
        oracle.run("INSERT INTO NOTES VALUES (1, NULL, NULL)")
        source.run()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            cursor.execute("UPDATE NOTES SET A = 2")
            cursor.execute("SAVEPOINT here")
            cursor.setinputsizes(c=oracledb.DB_TYPE_CLOB)
            cursor.execute("UPDATE NOTES SET C = :c", {"c": "secret" * 1500})
            cursor.execute("ROLLBACK TO SAVEPOINT here")
            connection.commit()
        source.windows()
        assert source.record("NOTES").state == "ready"
        assert [row[1] for row in images(source)] == [2]


def test_a_release_that_closes_statements_otherwise_stops_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without INTERNAL rows: the row that LogMiner does not show ends what is applied."""
    whole = LobStatements.rows

    def without(self: LobStatements, *given: Any) -> list[LobRow]:
        return [row for row in whole(self, *given) if not row.closing]

    monkeypatch.setattr(LobStatements, "rows", without)
    with (
        running_oracle(warts=DEFAULT_WARTS, release="23ai") as oracle,
        source_of(oracle, tmp_path) as source,
    ):
        oracle.run(TABLE)
        source.configure(NOTES)
        source.run()
        oracle.run("INSERT INTO NOTES VALUES (1, 'short', NULL)")
        source.windows()
        check(oracle, source)
        oracle.run(
            "INSERT INTO NOTES VALUES (2, EMPTY_CLOB(), EMPTY_BLOB())",
            "UPDATE NOTES SET C = 'other' WHERE A = 1",
        )
        source.windows()
        record = source.record("NOTES")
        assert (record.state, "does not show the ROWID" in (record.reason or "")) == (
            "failed",
            True,
        )
        assert images(source) == Counter(rows_of(oracle, record.mirror_scn or 0))


def test_the_first_lob_of_a_table_without_a_key_brings_it_a_new_snapshot(tmp_path: Path) -> None:
    """Until then nobody read what closes statements."""
    with (
        running_oracle(warts=DEFAULT_WARTS, release="23ai") as oracle,
        source_of(oracle, tmp_path, policies={"on_unsupported_ddl": "resnapshot"}) as source,
    ):
        oracle.run("CREATE TABLE NOTES (A NUMBER(9))", "INSERT INTO NOTES VALUES (1)")
        source.configure(NOTES)
        source.run()
        oracle.run("ALTER TABLE NOTES ADD (C CLOB)", "INSERT INTO NOTES VALUES (2, EMPTY_CLOB())")
        source.run()
        source.run()
        oracle.run("INSERT INTO NOTES VALUES (3, EMPTY_CLOB())", "UPDATE NOTES SET C = 'x'")
        source.run()
        check(oracle, source)
        assert len(images(source)) == 3
        oracle.run("ALTER TABLE NOTES DROP COLUMN C", "INSERT INTO NOTES VALUES (4)")
        source.run()
        oracle.run("DELETE FROM NOTES WHERE A = 1")
        source.run()
        assert source.record("NOTES").state == "ready"
        assert sorted(row[1] for row in images(source)) == [2, 3, 4]


def test_releases_of_which_nobody_knows_it_are_refused(tmp_path: Path) -> None:
    with running_oracle(release="19c") as oracle, source_of(oracle, tmp_path) as source:
        oracle.run(TABLE)
        source.configure(NOTES)
        with pytest.raises(PreflightError, match="needs Oracle 23ai"):
            source.run()
        oracle.run("ALTER TABLE NOTES DROP (C, B)")
        source.run()
        assert source.record("NOTES").state == "ready"


@pytest.mark.parametrize(
    ("column", "is_needed"), [("C CLOB", True), ("C VARCHAR2(9)", False)], ids=["lob", "text"]
)
def test_all_columns_must_be_logged_where_there_are_lobs(
    tmp_path: Path, column: str, is_needed: bool
) -> None:
    """What closes an INSERT names its values."""
    with running_oracle(logging=False, release="23ai") as oracle:
        oracle.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)
        oracle.run(f"CREATE TABLE NOTES (A NUMBER(9), {column})")
        config = oracle.config(tmp_path, tables=[{"name": "DEMO.NOTES", "identity": "rowid"}])
        findings, _ = oracle_findings(config)
        [found] = [one for one in findings if "no supplemental logging of all" in one.problem]
        assert found.is_problem is is_needed


def test_a_lob_that_is_written_through_its_locator_is_nobody_elses(tmp_path: Path) -> None:
    """Such a call has its ROWID and a part of the value: it stops the table, also among equal rows and before a row's own update."""
    with (
        running_oracle(warts=DEFAULT_WARTS, release="23ai") as oracle,
        source_of(oracle, tmp_path) as source,
    ):
        oracle.run(TABLE, *("INSERT INTO NOTES VALUES (1, EMPTY_CLOB(), NULL)" for _ in range(3)))
        source.configure(NOTES)
        source.run()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            locators = cursor.execute("SELECT C FROM NOTES FOR UPDATE").fetchall()
            for number, (locator,) in enumerate(locators):
                locator.write(f"é{number}", 1)
            cursor.execute("UPDATE NOTES SET C = 'short' WHERE ROWNUM = 1")
            connection.commit()
        source.windows()
        record = source.record("NOTES")
        assert (record.state, "a part of a LOB" in (record.reason or "")) == ("failed", True)
        assert images(source) == Counter(rows_of(oracle, record.mirror_scn or 0))


def test_a_lob_that_is_written_through_its_locator_is_its_rows(tmp_path: Path) -> None:
    """Of equal rows, in the transaction that inserted them; one call is taken back."""
    with (
        running_oracle(warts=DEFAULT_WARTS, release="23ai") as oracle,
        source_of(oracle, tmp_path) as source,
    ):
        oracle.run(TABLE)
        source.configure(NOTES)
        source.run()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            for _ in range(3):
                cursor.execute("INSERT INTO NOTES VALUES (1, EMPTY_CLOB(), NULL)")
            locators = cursor.execute("SELECT C FROM NOTES FOR UPDATE").fetchall()
            for number, (locator,) in enumerate(locators):
                locator.write("é" * 5000 + str(number), 1)
                locator.write("over", 3)
            cursor.execute("SAVEPOINT here")
            locators[2][0].write("taken back", 1)
            cursor.execute("ROLLBACK TO SAVEPOINT here")
            connection.commit()
        source.windows()
        check(oracle, source)
        assert len({row[2] for row in images(source)}) == 3


def part(cursor: Any, a: int, column: str, value: str | bytes, offset: int) -> None:
    """Write into a LOB of a row through its locator."""
    cursor.execute(f"SELECT {column} FROM NOTES WHERE A = :1 FOR UPDATE", [a])
    (lob,) = cursor.fetchone()
    lob.write(value, offset)


def long_notes(oracle: Oracle) -> None:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        for a in range(6):
            cursor.setinputsizes(None, oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_BLOB)
            cursor.execute(
                "INSERT INTO NOTES VALUES (:1, :2, :3)", [a, "old it's " * 900, b"b" * 9000]
            )
        connection.commit()


def test_parts_of_lobs_are_read_by_their_rows_rowids(oracle: Oracle, tmp_path: Path) -> None:
    """As of the commit: what came later, and what the transaction took back, is never taken for the value."""
    long_notes(oracle)
    more = {"capture": {"close_at": "online", "lobs": "reselect"}}
    with source_of(oracle, tmp_path, **more) as source:
        source.configure(NOTES)
        sent = source.asked()
        source.run()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            for a in range(3):
                part(cursor, a, "C", "new", 5)
                part(cursor, a, "B", b"\xff", 8000)
            part(cursor, 3, "C", "first", 1)
            part(cursor, 3, "C", "second", 3)
            part(cursor, 4, "C", "gone", 2)
            cursor.execute("DELETE FROM NOTES WHERE A = 4")
            cursor.execute("SAVEPOINT HERE")
            part(cursor, 5, "C", "taken back", 2)
            cursor.execute("ROLLBACK TO SAVEPOINT HERE")
            connection.commit()
            part(cursor, 0, "C", "LATER", 2)
            connection.commit()
        sent.clear()
        source.windows()
        check(oracle, source)
        asked = [sql for sql in sent if '"NOTES" AS OF SCN :p0_scn WHERE ROWID IN' in sql]
        assert len(asked) == 3, "both LOBs of three rows, one of a row, and the later commit's"
        assert sum('"C", "B"' in sql for sql in asked) == 1


def test_a_part_of_a_row_that_oracle_does_not_show_any_more_stays_a_part(
    oracle: Oracle, tmp_path: Path
) -> None:
    long_notes(oracle)
    more = {"capture": {"close_at": "online", "lobs": "reselect"}}
    with source_of(oracle, tmp_path, **more) as source:
        source.configure(NOTES)
        source.begin()
        with oracle.owner() as connection:
            part(connection.cursor(), 1, "C", "new", 5)
            connection.commit()
        query = 'FROM "DEMO"."NOTES" AS OF SCN'
        oracle.server.faults.arm(Fault(FaultKind.ORA_ERROR, sql_contains=query, code=1555))
        source.windows()
        assert source.record("NOTES").state == "failed"
        assert "a part of a LOB" in (source.record("NOTES").reason or "")
