"""However the query of V$LOGMNR_CONTENTS says of which tables it wants rows (``capture.query_filter``), the same files land."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import oracledb
import pytest

from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.wanted_rows import (
    PATTERN_BYTES_MAX,
    QueryFilter,
    WantedRows,
    condition_of,
    expression_of,
)
from cdc_core.config import QueryFilterMode
from cdc_core.landing import redo_files
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.patterns import TablePattern
from cdc_core.model.scn import Scn
from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.capture.test_rows import EMP, batch, row
from tests.oracle.embedded import CAPTURE, OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.ways import WINDOW, Step, play

MODES: tuple[QueryFilterMode, ...] = ("in", "none", "regex")
TABLES: list[dict[str, Any]] = [
    {"name": f"{OWNER}.SALE*", "exclude": [f"{OWNER}.SALES_NOT"]},
    {"name": f"{OWNER}.P"},
    {"name": f"{OWNER}.L"},
]
CAPTURED = ("SALES_A", "SALES_B", "P", "L")
OF_THE_PASS = (
    "seconds", "mining_start_seconds", "mining_fetch_seconds", "rows_mined", "landed", "planned",
)  # fmt: skip
"""What a manifest says of the reading and not of what landed; filters differ in the rows that LogMiner gives."""
LONG = "RPAD(TO_CLOB('begin '), 3000, 'x') || RPAD(TO_CLOB('-'), 3000, 'y')"

STORY: list[Step] = [
    *(f"INSERT INTO NOISE VALUES ({key}, RPAD('not to land', 3000, 'n'), RPAD('n', 3000, 'n'))" for key in range(9)),
    ("a", "INSERT INTO SALES_A VALUES (10, 'a')"),
    ("a", "INSERT INTO NOISE VALUES (90, 'not to land', NULL)"),
    ("a", "SAVEPOINT S"),
    ("a", "UPDATE SALES_A SET V = 'goes'"),
    ("a", "ROLLBACK TO S"),
    ("b", "INSERT INTO SALES_NOT VALUES (1, 'not to land')"),
    ("b", "UPDATE SALES_B SET V = 'b'"),
    ("only noise", "UPDATE NOISE SET A = 'not to land'"),
    f"INSERT INTO L VALUES (2, {LONG})",
    f"INSERT INTO OTHER_L VALUES (2, {LONG})",
    WINDOW,
    *(f"INSERT INTO P VALUES ({key}, {key * 10})" for key in range(1, 6)),
    # The redo before it is shown under the number of a segment that is gone.
    "ALTER TABLE P SPLIT PARTITION P0 AT (35) INTO (PARTITION P00, PARTITION P01)",
    "ALTER TABLE OTHER_L ADD (N NUMBER)",
    ("a", "INSERT INTO SALES_A VALUES (11, 'a')"),
    ("a", "COMMIT"),
    "ALTER TABLE SALES_A ADD (N NUMBER(3))",
    "UPDATE SALES_A SET N = 7, V = 'n'",
    "INSERT INTO SALES_A SELECT LEVEL + 100, 'many', NULL FROM DUAL CONNECT BY LEVEL <= 130",
    "INSERT INTO SALES_NOT SELECT LEVEL + 100, 'not to land' FROM DUAL CONNECT BY LEVEL <= 70",
    "UPDATE SALES_A SET N = 8 WHERE ID > 100",
    f"UPDATE L SET C = {LONG} WHERE ID = 1",
    "CREATE TABLE GONE (ID NUMBER)",
    "INSERT INTO GONE VALUES (1)",
    "DROP TABLE GONE PURGE",
    WINDOW,
    ("b", "COMMIT"),
    ("only noise", "COMMIT"),
    "UPDATE SALES_B SET V = 'before it is renamed'",
    "ALTER TABLE SALES_B RENAME TO WAS_B",
    "ALTER TABLE SALES_NOT RENAME TO SALES_B",
    "UPDATE SALES_B SET V = 'not to land'",
]  # fmt: skip

oracle = oracle_with(
    "CREATE TABLE SALES_A (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE SALES_B (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(30))",
    "CREATE TABLE SALES_NOT (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(30))",
    "CREATE TABLE NOISE (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(4000), B VARCHAR2(4000))",
    "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, C CLOB)",
    "CREATE TABLE OTHER_L (ID NUMBER(9) PRIMARY KEY, C CLOB)",
    "CREATE TABLE P (ID NUMBER(9) PRIMARY KEY, K NUMBER(9)) PARTITION BY RANGE (K)"
    " (PARTITION P0 VALUES LESS THAN (100), PARTITION P1 VALUES LESS THAN (MAXVALUE))",
    "INSERT INTO SALES_A VALUES (1, 'first')",
    "INSERT INTO SALES_B VALUES (1, 'first')",
    "INSERT INTO L VALUES (1, 'small')",
    warts=DEFAULT_WARTS,
)


@contextmanager
def beside_each_other(oracle: Oracle, path: Path) -> Iterator[dict[str, Source]]:
    """One source after its snapshot, as many times as there are modes: each reads the same windows."""
    (path / "first").mkdir()
    capture = {"close_at": "completed_logs"}
    with source_of(oracle, path / "first", capture=capture) as first:
        first.tables = TABLES
        first.more["oracle"] = {**oracle.login(CAPTURE), "fetch_rows": 100}
        first.run()
        first.close()
        sources: dict[str, Source] = {}
        for mode in MODES:
            shutil.copytree(path / "first", path / mode)
            own = {**first.more, "capture": {**capture, "query_filter": mode}}
            lake = copy.deepcopy(first.lake)
            sources[mode] = replace(first, path=path / mode, lake=lake, more=own, _pipeline=None)
        try:
            yield sources
        finally:
            for source in sources.values():
                source.close()


def landed(source: Source) -> list[dict[str, Any]]:
    """What every window has in landing, with the digests of its files."""
    windows = [one.window for one in source.pipeline.records.windows()]
    manifests = [source.pipeline.window_manifest(window)[0] for window in windows]
    return [
        {
            field.name: getattr(one, field.name)
            for field in fields(one)
            if field.name not in OF_THE_PASS
        }
        for one in manifests
    ]


def test_the_same_files_land_with_every_filter(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captured tables and others in one transaction, tables that are renamed into each other's names, DDL of both, LOBs of both, rows
    without a name of segments that are gone. Batches and row groups are small, and row groups end where batches do."""
    monkeypatch.setattr(redo_files, "HELD_ROWS_MAX", 50)
    with beside_each_other(oracle, tmp_path) as sources:
        play(oracle, sources, STORY)
        expected = landed(sources["in"])
        assert len(expected) >= 3
        assert any(one["left"] for one in expected), "a table was renamed"
        for mode, source in sources.items():
            assert landed(source) == expected, mode
            source.check_exact("SALES_A", "P", "L")
            for file in (tmp_path / mode).rglob("redo-*.parquet"):
                assert b"not to land" not in file.read_bytes()
            for name in CAPTURED:
                own = source.lake.tables[table_id(name)]
                assert [without_time(one) for one in own.changes] == [
                    without_time(one) for one in sources["in"].lake.tables[table_id(name)].changes
                ]


def without_time(change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in change.items() if name != "_cdc_landed"}


SHOP, ODD = TableId("SHOP", "ORDERS"), TableId("SHOP", "was ORDERS")


def wanted(
    mode: QueryFilterMode, *patterns: str, shown: TableId = SHOP, unnamed: bool = False
) -> WantedRows:
    schema = replace(EMP, table=SHOP, object_id=501)
    query_filter = QueryFilter(mode, tuple(map(TablePattern.parse, patterns)))
    return WantedRows([schema], {SHOP: shown}, unnamed, Reading(Scn(100), (), {}), query_filter)


def test_without_a_filter_the_query_says_nothing_of_tables() -> None:
    sql, binds = condition_of(wanted("none", "SHOP.*", unnamed=True))
    assert not binds
    assert not re.search("TABLE_NAME|SEG_OWNER|DATA_OBJ", sql)


def test_a_pattern_stands_for_the_names_that_it_took_in() -> None:
    sql, binds = condition_of(wanted("regex", "HR.*", "SHOP.ORDER?"))
    assert binds == {"r1": r"^SHOP\.ORDER.$"}
    assert "REGEXP_LIKE(SEG_OWNER || '.' || TABLE_NAME, :r1, 'in')" in sql
    assert "DATA_OBJ# IN (501)" in sql
    assert "TABLE_NAME IN" not in sql


@pytest.mark.parametrize(
    ("patterns", "shown"),
    [
        pytest.param([], SHOP, id="named-in-full"),
        pytest.param(["HR.*"], SHOP, id="of-another-pattern"),
        pytest.param([r"re:SHOP\..*"], SHOP, id="of-an-expression"),
        pytest.param(["SHOP.ORDER*"], ODD, id="renamed-since"),
        pytest.param([f"SHOP.*{'*' * PATTERN_BYTES_MAX}"], SHOP, id="too-long-for-oracle"),
        pytest.param(["HR.*", "SHOP.X*", "SHOP.ORDERS?"], SHOP, id="of-none-of-several"),
    ],
)
def test_a_name_that_no_expression_has_stands_in_the_list(
    patterns: list[str], shown: TableId
) -> None:
    sql, binds = condition_of(wanted("regex", *patterns, shown=shown))
    assert shown.name in binds.values()
    assert sql.count("TABLE_NAME IN (:n0)") == 1


@pytest.mark.parametrize("unnamed", [False, True])
def test_rows_are_taken_by_name_or_number(unnamed: bool) -> None:
    """The last row of each operation is nobody's; INTERNAL rows are wanted of tables with statements that such a row closes."""
    rows = [
        row(Operation.START, seg_owner=None, table_name=None, data_obj=0),
        row(1, seg_owner="SHOP", table_name="was ORDERS", data_obj=700),
        row(1, seg_owner="SHOP", table_name="ORDERS", data_obj=700),
        row(1, seg_owner=None, table_name=None, data_obj=501),
        row(1, seg_owner="SHOP", table_name="OTHER", data_obj=501),
        row(1, seg_owner="SHOP", table_name="OTHER", data_obj=502),
        row(3, seg_owner="UNKNOWN", table_name="OBJ# 502", data_obj=502),
        row(3, seg_owner=None, table_name=None, data_obj=None),
        row(Operation.INTERNAL, seg_owner=None, table_name=None, data_obj=501),
        row(Operation.DDL, seg_owner="SHOP", table_name="ORDERS", data_obj=700),
        row(Operation.DDL, seg_owner=None, table_name=None, data_obj=502),
        row(Operation.MISSING_SCN, seg_owner=None, table_name=None, data_obj=None),
    ]
    own = wanted("none", shown=ODD, unnamed=unnamed)
    taken = [True, True, True, True, True, False, unnamed, unnamed, False, True, False, True]
    numbered = [{**one, "ssn": at} for at, one in enumerate(rows)]
    found = own.selected_from(batch(*numbered)).column("ssn").to_pylist()
    assert found == [at for at, is_taken in enumerate(taken) if is_taken]


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        pytest.param("SHOP.O*", ["SHOP.O", "SHOP.ORDERS"], ["MYSHOP.O", "SHOP.XO"], id="anchored"),
        pytest.param("A.MLOG$_?", ["A.MLOG$_X"], ["A.MLOG$_", "A.MLOG_X"], id="dollar"),
        pytest.param('"a+(b".*', ["a+(b.T"], ["aab.T"], id="quoted"),
        pytest.param('"A|B\\"."x.[y]^{2}*"', ["A|B\\.x.[y]^{2}z"], ["A.x", "B\\.xyy"], id="all"),
    ],
)
def test_oracle_reads_an_expression_as_the_pattern_is_meant(
    oracle: Oracle, pattern: str, names: list[str], others: list[str]
) -> None:
    expression = expression_of(TablePattern.parse(pattern))
    with oracle.owner() as connection:
        cursor = connection.cursor()
        for name in [*names, *others]:
            cursor.execute(
                "SELECT COUNT(*) FROM DUAL WHERE REGEXP_LIKE(:1, :2, 'in')", [name, expression]
            )
            assert cursor.fetchall() == [(int(name in names),)], name


def test_oracle_refuses_a_long_expression(oracle: Oracle) -> None:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        sql = "SELECT COUNT(*) FROM DUAL WHERE REGEXP_LIKE('A', :1)"
        assert cursor.execute(sql, ["." * PATTERN_BYTES_MAX]).fetchall() == [(0,)]
        with pytest.raises(oracledb.DatabaseError, match="ORA-12733"):
            cursor.execute(sql, ["." * (PATTERN_BYTES_MAX + 1)]).fetchall()
