"""Exports of V$LOGMNR_CONTENTS, made of the embedded Oracle as the documentation says, and written in each format."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import oracledb
import pyarrow as pa
import pyarrow.parquet as pq

from oracle_embedded.database import CAPTURE
from tests.oracle.embedded import OWNER, PASSWORDS, Oracle

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "explain.md"
TABLES = ("NOTES", "ORDERS")
SCRIPT = f"""
CREATE TABLE {OWNER}.NOTES (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), BODY CLOB, EXTRA JSON);
CREATE TABLE {OWNER}.ORDERS (ID NUMBER(9), LINE NUMBER(3), AMOUNT NUMBER(9,2), AT DATE, NOTE VARCHAR2(4000), PRIMARY KEY (ID, LINE));
"""
FORMATS = ("csv", "jsonl", "parquet")


@dataclass(frozen=True)
class Rows:
    """A query's result: names as Oracle gives them, and rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def select(self, *columns: str) -> Rows:
        """Some of the columns."""
        places = [self.columns.index(name) for name in columns]
        return Rows(columns, [tuple(row[at] for at in places) for row in self.rows])

    def without(self, *columns: str) -> Rows:
        """All but some columns."""
        return self.select(*(name for name in self.columns if name not in columns))

    def only(self, *rows: int) -> Rows:
        """Some rows, by their numbers from 1 on."""
        return Rows(self.columns, [self.rows[number - 1] for number in rows])

    def changed(self, number: int, **values: Any) -> Rows:
        """Other values in one row."""
        rows = list(self.rows)
        rows[number - 1] = tuple(
            values.get(name.replace("#", ""), value)
            for name, value in zip(self.columns, rows[number - 1], strict=True)
        )
        return Rows(self.columns, rows)

    def mapped(self, column: str, function: Any) -> Rows:
        """Other values in one column."""
        at = self.columns.index(column)
        return Rows(
            self.columns, [(*row[:at], function(row[at]), *row[at + 1 :]) for row in self.rows]
        )

    def renamed(self, function: Any) -> Rows:
        """Other names."""
        return Rows(tuple(function(name) for name in self.columns), self.rows)

    def write(self, path: Path) -> Path:
        """Write the file that the path's ending says."""
        WRITERS[path.suffix[1:]](path, self)
        return path


def _write_csv(path: Path, found: Rows) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(found.columns)
        writer.writerows(found.rows)


def _write_jsonl(path: Path, found: Rows) -> None:
    lines = (json.dumps(dict(zip(found.columns, row, strict=True)), default=_plain) for row in found.rows)  # fmt: skip
    path.write_text("".join(f"{line}\n" for line in lines))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value.hex()


def _write_parquet(path: Path, found: Rows) -> None:
    columns = list(zip(*found.rows, strict=True)) or [() for _ in found.columns]
    pq.write_table(pa.table([pa.array(list(one)) for one in columns], list(found.columns)), path)


WRITERS = {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}


def documented(number: int) -> list[str]:
    """The statements of a block of SQL in the documentation."""
    block = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)[number]
    settings, *blocks = re.split(r";\n(?=BEGIN)", block.strip())
    return [settings, *(one.strip().removesuffix("/").strip() for one in blocks)]


def _of(query: str, tables: Sequence[str]) -> str:
    names = ", ".join(f"'{name}'" for name in tables)
    return query.replace("'SHOP'", f"'{OWNER}'").replace("IN ('ORDERS', 'NOTES')", f"IN ({names})")


def exported(oracle: Oracle, tables: Sequence[str]) -> Rows:
    """The redo of the owner's tables, as the documentation says, all logs of the database."""
    settings, start = documented(0)
    [query] = documented(1)
    query = _of(query, tables)
    with oracledb.connect(
        user=CAPTURE, password=PASSWORDS[CAPTURE], dsn=oracle.server.dsn
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
        cursor.execute(settings)
        cursor.execute(
            "SELECT F.MEMBER FROM V$LOG L, V$LOGFILE F WHERE F.GROUP# = L.GROUP# AND L.STATUS = 'CURRENT'"
        )
        [(name,)] = cursor.fetchall()
        cursor.execute(start.replace("/u01/arch/1_1201_1.arc", name))
        cursor.execute(query)
        columns = tuple(column[0] for column in cursor.description)
        return Rows(columns, cursor.fetchall())


def described(oracle: Oracle, tables: Sequence[str]) -> Rows:
    """The dictionary's rows of the tables, as the documentation says."""
    [query] = documented(2)
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute(_of(query, tables))
        return Rows(tuple(column[0] for column in cursor.description), cursor.fetchall())
