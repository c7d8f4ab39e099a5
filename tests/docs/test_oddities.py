"""The page of what the embedded Oracle shows names every switch, and tests that exist; what it calls refused is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import oracledb
import pytest

from oracle_embedded.database import OWNER, open_database
from oracle_embedded.redo import Wart
from oracle_embedded.server import EmbeddedServer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "embedded-oracle.md").read_text()


def test_each_test_is_there() -> None:
    named = re.findall(r"`(tests/[^`:]+)(?:::(\w+))?`", PAGE)
    assert len(named) > 60
    for path, function in named:
        assert (ROOT / path).is_file(), path
        if function:
            assert f"def {function}(" in (ROOT / path).read_text(), f"{path}::{function}"


def test_every_row_has_a_test() -> None:
    for section in PAGE.split("\n## ")[1:-1]:
        rows = [row for row in section.splitlines() if row.startswith("| ")][1:]
        assert rows
        assert [row for row in rows if "`tests/" not in row] == []


def test_every_switch_has_a_row() -> None:
    assert {wart.value for wart in Wart} <= set(re.findall(r"`([A-Z_]+)`", PAGE))


@pytest.fixture(scope="module")
def cursor() -> Iterator[oracledb.Cursor]:
    opened = open_database()
    with (
        EmbeddedServer(opened.engine) as server,
        oracledb.connect(user=OWNER, password=opened.password(OWNER), dsn=server.dsn) as connection,
    ):
        yield connection.cursor()
    opened.close()


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("alter session set nls_sort = thai_m", "ORA-03001"),
        ("create table c (v varchar2(9) collate binary_ci)", "ORA-03001"),
        ("create table c (j json)", "ORA-00902"),
        ("create table c (b boolean)", "ORA-00902"),
        ("create private temporary table ora$ptt_t (n number)", "ORA-03001"),
        ("create dimension d level l is (t.n)", "ORA-03001"),
        ("create database link l", "ORA-03001"),
        ("create type m as object (n number, member function f return number)", "ORA-03001"),
        ("create table c (f bfile)", "ORA-00902"),
        ("select xmlagg(xmlelement(\"A\", 1)) from dual", "ORA-03001"),
        ("select dbms_xplan.display from dual", "ORA-03001"),
        ("select dbms_assert.noop('a') from dual", "ORA-03001"),
    ],
)  # fmt: skip
def test_what_is_called_refused_is_refused(
    cursor: oracledb.Cursor, statement: str, error: str
) -> None:
    with pytest.raises(oracledb.DatabaseError, match=error):
        cursor.execute(statement)
