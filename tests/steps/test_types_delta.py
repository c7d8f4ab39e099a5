"""Every value of the type parity suite in real Delta tables: from a chunk, merged into the mirror without Spark, and merged by Spark.

Oracle's side is read ``AS OF SCN`` by SQL of this file, the mirror by delta-rs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import oracledb
import pytest
from deltalake import DeltaTable

from cdc_core.steps import Pipeline
from tests.invariants.compare import Typed, read_delta, typed_value, version_at
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import table_id
from tests.steps.test_type_parity import LARGE, TYPES

DECLARED = [each for group in TYPES.values() for each in group.items()]
TABLES = {
    "PLAIN": [one for one in DECLARED if one[0] not in LARGE],
    "LOBS": [one for one in DECLARED if one[0] in LARGE],
}
"""Per table its declarations, a column for each, with their literals."""
UPDATED = (1000, 2000)
INSERTED = (3000, 4000)
"""What is added to the number of a literal's row: its rows that get the value in the first window, and in the second."""
KINDS = {
    oracledb.DB_TYPE_NUMBER: "number",
    oracledb.DB_TYPE_BINARY_DOUBLE: "float",
    oracledb.DB_TYPE_BINARY_FLOAT: "float",
    oracledb.DB_TYPE_DATE: "moment",
    oracledb.DB_TYPE_TIMESTAMP: "moment",
    oracledb.DB_TYPE_RAW: "bytes",
    oracledb.DB_TYPE_BLOB: "bytes",
}
"""How :mod:`tests.invariants.compare` compares a type; others are text."""
MOMENT = "SYYYY-MM-DD HH24:MI:SS.FF9"


@pytest.mark.spark
def test_every_type_is_the_same_in_delta_on_every_way(tmp_path: Path, spark_process: None) -> None:
    with running_oracle() as oracle:
        for name in TABLES:
            create(oracle, name)
        compared = 0
        for way, rewritten_up_to_mb in enumerate((128, 0)):
            lake = {"rewrite_mirrors_up_to_mb": rewritten_up_to_mb}
            with Pipeline(oracle.config(tmp_path, *TABLES, lake=lake)) as pipeline:
                list(pipeline.run_once())
                before = {name: len(operations(tmp_path, name)) for name in TABLES}
                change(oracle, way)
                list(pipeline.run_windows())
                for name in TABLES:
                    by_spark = "MERGE" in operations(tmp_path, name)[before[name] :]
                    assert by_spark == (way == 1), name
                    compared += check(oracle, pipeline, tmp_path, name, way)
        assert compared == 111 * 4, "an UPDATE and an INSERT of each literal, on both ways"


def literals(name: str) -> list[tuple[int, str, str]]:
    """Per literal of a table the number of its row, its column, and the literal."""
    listed = [(f"C{at}", one) for at, (_, group) in enumerate(TABLES[name]) for one in group]
    return [(number, *one) for number, one in enumerate(listed, 1)]


def insert(name: str, key: int, column: str, literal: str) -> str:
    return f"INSERT INTO {name} (ID, {column}) VALUES ({key}, {literal})"


def create(oracle: Oracle, name: str) -> None:
    """The rows of the chunk: each literal alone in its row, and rows without a value for the updates."""
    listed = ", ".join(f"C{at} {declaration}" for at, (declaration, _) in enumerate(TABLES[name]))
    rows = literals(name)
    oracle.run(
        f"CREATE TABLE {name} (ID NUMBER(5) PRIMARY KEY, {listed})",
        *(insert(name, *row) for row in rows),
        *(f"INSERT INTO {name} (ID) VALUES ({row[0] + more})" for row in rows for more in UPDATED),
    )


def change(oracle: Oracle, way: int) -> None:
    for name in TABLES:
        statements = []
        for number, column, literal in literals(name):
            key = number + UPDATED[way]
            statements += [
                f"UPDATE {name} SET {column} = {literal} WHERE ID = {key}",
                insert(name, number + INSERTED[way], column, literal),
            ]
        oracle.run(*statements)


def operations(path: Path, name: str) -> list[str]:
    """Of the mirror's commits, oldest first."""
    history = DeltaTable(str(mirror_of(path, name))).history()
    return [str(commit["operation"]) for commit in reversed(history)]


def mirror_of(path: Path, name: str) -> Path:
    return path / "lake" / "src" / "mirror" / table_id(name).path


def check(oracle: Oracle, pipeline: Pipeline, path: Path, name: str, way: int) -> int:
    """The mirror equals Oracle; and each literal's value is the chunk's to the letter, zeros with their sign. How many were held against it."""
    record = pipeline.records.table(table_id(name))
    assert record is not None
    assert record.state == "ready", record.reason
    scn = record.mirror_scn
    assert scn is not None
    names, kinds, expected = oracle_rows(oracle, name, scn)
    mirror = mirror_of(path, name)
    found = {row[0]: row for row in read_delta(mirror, names, version_at(mirror, scn))}
    typed = {key: [typed_value(*one) for one in zip(row, kinds, strict=True)] for key, row in found.items()}  # fmt: skip
    assert typed.keys() == expected.keys()
    for key, row in expected.items():
        assert typed[key] == row, (name, key)
    compared = 0
    for number, *_ in literals(name):
        for more in (UPDATED[way], INSERTED[way]):
            assert repr(found[number + more][1:]) == repr(found[number][1:]), (name, number, more)
            compared += 1
    return compared


def oracle_rows(
    oracle: Oracle, name: str, scn: int
) -> tuple[list[str], list[str], dict[int, list[Typed]]]:
    """Names and kinds of the columns, and the rows by key as of the SCN."""
    declared = [declaration for declaration, _ in TABLES[name]]
    listed = ", ".join(shown(f"C{at}", one) for at, one in enumerate(declared))
    with oracle.owner() as connection, connection.cursor() as cursor:
        cursor.execute("ALTER SESSION SET TIME_ZONE = '+00:00'")
        cursor.outputtypehandler = _number_as_text
        cursor.execute(f"SELECT ID, {listed} FROM {name} AS OF SCN :scn", scn=scn)
        kinds = [KINDS.get(column[1], "text") for column in cursor.description]
        rows = [
            [plain(value, kind, each) for value, kind, each in zip(row, kinds, ["", *declared], strict=True)]
            for row in cursor
        ]  # fmt: skip
    names = ["ID", *(f"C{at}" for at in range(len(declared)))]
    return names, kinds, {
        int(row[0]): [typed_value(*one) for one in zip(row, kinds, strict=True)] for row in rows
    }  # fmt: skip


def shown(column: str, declaration: str) -> str:
    """SQL of a column's value as the type table has it; :func:`plain` does the rest."""
    if declaration == "XMLTYPE":
        return f"XMLSERIALIZE(CONTENT {column} AS CLOB)"
    if declaration == "ROWID":
        return f"ROWIDTOCHAR({column})"
    if declaration.startswith("INTERVAL"):
        return f"TO_CHAR({column})"
    if declaration.endswith("WITH LOCAL TIME ZONE"):
        return f"LTRIM(TO_CHAR({column}, '{MOMENT}')) || NVL2({column}, ' +00:00', NULL)"
    if declaration.endswith("WITH TIME ZONE"):
        return f"LTRIM(TO_CHAR({column}, '{MOMENT} TZH:TZM'))"
    if re.match(r"TIMESTAMP\([789]\)", declaration):
        return f"LTRIM(TO_CHAR({column}, '{MOMENT}'))"
    return column


def plain(value: Any, kind: str, declaration: str) -> Any:
    """A fetched value in the words of the type table."""
    if isinstance(value, oracledb.LOB):
        return value.read() or (b"" if kind == "bytes" else "")
    if value is None or not declaration.startswith("INTERVAL"):
        return value
    found = re.fullmatch(r"([+-])0*(\d*)([- ].*?)(?:\.(\d+))?", value)
    assert found is not None, value
    sign, first, rest, fraction = found.groups("")
    text = f"{'-' if sign == '-' else ''}{first or 0}{rest}"
    return f"{text}.{fraction.ljust(9, '0')}" if declaration.startswith("INTERVAL DAY") else text


def _number_as_text(cursor: oracledb.Cursor, column: oracledb.FetchInfo) -> Any:
    """No digit is lost."""
    if column.type_code is oracledb.DB_TYPE_NUMBER:
        return cursor.var(str, 400, cursor.arraysize)
    return None
