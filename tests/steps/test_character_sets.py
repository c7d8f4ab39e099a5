"""A source whose database has another character set than AL32UTF8, through the driver, LogMiner and the stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import PreflightError
from cdc_core.preflight import redo as preflight
from oracle_embedded.redo import DEFAULT_WARTS
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id

EURO = "\u20ac"

oracle = oracle_with(warts=DEFAULT_WARTS, character_set="WE8MSWIN1252")


def test_rows_from_before_a_ddl_are_read_in_the_database_s_set(
    oracle: Oracle, tmp_path: Path
) -> None:
    """LogMiner prints their bytes: 0xE9 0x80 is é€ here."""
    oracle.run(
        "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), C CHAR(4), N NVARCHAR2(20))"
    )
    with source_of(oracle, tmp_path, "T") as source:
        source.run()
        oracle.run(
            f"INSERT INTO T VALUES (1, 'é{EURO}日', '{EURO}', UNISTR('\\65E5') || '{EURO}')",
            "INSERT INTO T VALUES (2, 'a', 'b', 'c')",
            f"UPDATE T SET V = '{EURO}' WHERE ID = 2",
        )
        oracle.run("ALTER TABLE T ADD (EXTRA NUMBER(9))")
        oracle.run("INSERT INTO T VALUES (3, 'ÿ', NULL, NULL, 1)")
        source.windows()
        source.check_current("T")
        rows = source.lake.tables[table_id("T")].rows
        assert rows[1,][0]["V"] == f"é{EURO}¿"
        assert rows[2,][0]["V"] == EURO


def test_key_ranges_follow_oracle_s_order(oracle: Oracle, tmp_path: Path) -> None:
    """In the set the euro sign is below é, as a code point above: a row is in one chunk all the same."""
    oracle.run("CREATE TABLE K (V VARCHAR2(8) PRIMARY KEY, N NUMBER(9))")
    letters = f"az{EURO}\u0160\u0178éÿ"
    keys = [f"{first}{second}{at}" for first in letters for second in letters for at in range(12)]
    with oracle.owner() as connection:
        connection.cursor().executemany(
            "INSERT INTO K VALUES (:1, :2)", [(key, at) for at, key in enumerate(keys)]
        )
        connection.commit()
    with source_of(oracle, tmp_path, "K", snapshot={"chunk_rows": 100, "cut": "key"}) as source:
        reports = source.run()
        assert sum(report.kind == "chunk-applied" for report in reports) > 4
        source.check_exact("K")
        read = [report.rows for report in reports if report.kind == "chunk-landed"]
        assert sum(read) == len(keys), "each row is in one chunk"
        oracle.run(
            f"DELETE FROM K WHERE V LIKE '{EURO}%'", f"UPDATE K SET V = 'é{EURO}' WHERE N = 0"
        )
        source.windows()
        source.check_current("K")


def test_lobs_in_pieces_are_whole(oracle: Oracle, tmp_path: Path) -> None:
    """Of a text in bytes of one character each, also where the client's bytes are three."""
    oracle.run("CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, C CLOB, N NCLOB)")
    texts = [f"{EURO}é" * size for size in (1, 1900, 1990, 4100, 9000)]
    with source_of(oracle, tmp_path, "L") as source:
        source.run()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            for at, text in enumerate(texts):
                cursor.execute("INSERT INTO L (ID, C) VALUES (:1, :2)", [at, text])
                cursor.execute("INSERT INTO L (ID, N) VALUES (:1, :2)", [100 + at, text])
            cursor.execute("UPDATE L SET C = :1 WHERE ID = 0", [texts[-1]])
            connection.commit()
        source.windows()
        source.check_current("L")
        rows = source.lake.tables[table_id("L")].rows
        assert [rows[at,][0]["C"] for at in range(1, 5)] == texts[1:]


def test_a_set_whose_bytes_cannot_be_read_is_refused_before_the_snapshot(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "KNOWN", frozenset({"AL32UTF8"}))
    oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")
    with source_of(oracle, tmp_path, "T") as source:
        with pytest.raises(PreflightError, match="WE8MSWIN1252"):
            source.run()
        assert not source.lake.tables


def test_national_columns_in_utf8_are_refused_and_may_be_left_out(tmp_path: Path) -> None:
    with running_oracle(national_character_set="UTF8") as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, N NVARCHAR2(9), V VARCHAR2(9))")
        oracle.run("INSERT INTO T VALUES (1, 'n', 'v')")
        with source_of(oracle, tmp_path, "T") as source:
            with pytest.raises(
                PreflightError, match=r"national character set UTF8 of N .*DPY-3012"
            ):
                source.run()
            source.configure({"name": "T", "columns_exclude": ["N"]})
            source.run()
            oracle.run("UPDATE T SET N = 'm', V = 'w'")
            source.windows()
            source.check_current("T")
