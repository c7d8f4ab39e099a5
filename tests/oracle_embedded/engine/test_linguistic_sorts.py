"""NLS_SORT and NLS_COMP other than BINARY, through the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import oracledb
import pytest

from oracle_embedded.database import OWNER, open_database
from oracle_embedded.server import EmbeddedServer

LETTERS = ["a", "A", "ä", "B", "b", "z"]


@pytest.fixture(scope="module")
def cursor() -> Iterator[Any]:
    """In a database whose sessions begin with GERMAN and LINGUISTIC."""
    opened = open_database(nls_sort="GERMAN", nls_comp="LINGUISTIC")
    try:
        with (
            EmbeddedServer(opened.engine) as server,
            oracledb.connect(
                user=OWNER, password=opened.password(OWNER), dsn=server.dsn
            ) as connection,
        ):
            found = connection.cursor()
            found.execute("CREATE TABLE t (v VARCHAR2(9), c CHAR(3), n NVARCHAR2(9))")
            found.executemany("INSERT INTO t VALUES (:1, :2, :3)", [[text] * 3 for text in LETTERS])
            yield found
    finally:
        opened.close()


def listed(cursor: Any, sql: str) -> list[Any]:
    """The first column."""
    cursor.execute(sql)
    return [row[0] for row in cursor]


def use(cursor: Any, sort: str, comparison: str) -> None:
    cursor.execute(f"ALTER SESSION SET NLS_SORT = {sort} NLS_COMP = {comparison}")


def test_sessions_begin_with_the_settings_of_the_instance(cursor: Any) -> None:
    query = "SELECT value FROM nls_{}_parameters WHERE parameter IN ('NLS_SORT', 'NLS_COMP') ORDER BY parameter"
    assert listed(cursor, query.format("instance")) == ["LINGUISTIC", "GERMAN"]
    assert listed(cursor, query.format("session")) == ["LINGUISTIC", "GERMAN"]
    assert listed(cursor, query.format("database")) == ["BINARY", "BINARY"]


@pytest.mark.parametrize(
    ("sort", "comparison", "ordered"),
    [
        pytest.param("BINARY", "LINGUISTIC", ["A", "B", "a", "b", "z", "ä"], id="binary"),
        pytest.param("GERMAN", "BINARY", ["a", "A", "ä", "b", "B", "z"], id="german"),
        pytest.param("GERMAN", "LINGUISTIC", ["a", "A", "ä", "b", "B", "z"], id="german-comparing"),
    ],
)
def test_order_by_follows_nls_sort_whatever_nls_comp_says(
    cursor: Any, sort: str, comparison: str, ordered: list[str]
) -> None:
    use(cursor, sort, comparison)
    assert listed(cursor, "SELECT v FROM t ORDER BY v") == ordered
    assert listed(cursor, "SELECT n FROM t ORDER BY 1 DESC") == ordered[::-1]
    assert listed(cursor, "SELECT v FROM t UNION ALL SELECT 'zz' FROM dual ORDER BY 1") == [
        *ordered[: ordered.index("z") + 1], "zz", *ordered[ordered.index("z") + 1 :]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "binary", "linguistic"),
    [
        pytest.param("v = 'A'", 1, 2, id="equal"),
        pytest.param("v <> 'A'", 5, 4, id="not-equal"),
        pytest.param("c = 'A'", 1, 2, id="padded"),
        pytest.param("n = unistr('A')", 1, 2, id="national"),
        pytest.param("v IN ('A', 'B')", 2, 4, id="in-list"),
        pytest.param("v IN ('A', 'B', 'C', 'D', 'E')", 2, 4, id="in-long-list"),
        pytest.param("v IN (SELECT 'A' FROM dual)", 1, 2, id="in-query"),
        pytest.param("v BETWEEN 'A' AND 'B'", 2, 4, id="between"),
        pytest.param("v LIKE 'A%'", 1, 2, id="like"),
        pytest.param("v > 'B'", 4, 2, id="greater"),
        pytest.param("decode(v, 'A', 1) = 1", 1, 2, id="decode"),
        pytest.param("CASE v WHEN 'A' THEN 1 END = 1", 1, 2, id="case"),
        pytest.param("v = nlssort('A')", 0, 0, id="keys-are-not-texts"),
        pytest.param("nlssort(v, 'NLS_SORT = BINARY_CI') = nlssort('A', 'NLS_SORT = BINARY_CI')", 2, 2, id="nlssort"),
        pytest.param("nlssort(v, 'NLS_SORT = BINARY_AI') = nlssort('A', 'NLS_SORT = BINARY_AI')", 3, 3, id="without-accents"),
    ],
)  # fmt: skip
def test_comparisons_follow_nls_sort_where_nls_comp_says_so(
    cursor: Any, condition: str, binary: int, linguistic: int
) -> None:
    query = f"SELECT count(*) FROM t WHERE {condition}"
    if condition.startswith("v = nlssort"):
        query = query.replace("v = ", "nlssort(v, 'NLS_SORT = GERMAN') = ")
    use(cursor, "BINARY_CI", "BINARY")
    assert listed(cursor, query) == [binary]
    use(cursor, "BINARY_CI", "LINGUISTIC")
    assert listed(cursor, query) == [linguistic]


def test_groups_and_distinct_values_follow_it_too(cursor: Any) -> None:
    queries = [
        "SELECT count(*) FROM (SELECT DISTINCT v FROM t)",
        "SELECT count(DISTINCT v) FROM t",
        "SELECT count(*) FROM (SELECT upper(v) FROM t GROUP BY upper(v))",
        "SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY v ORDER BY v) r FROM t) WHERE r = 1",
    ]  # fmt: skip
    found = []
    for comparison in ("BINARY", "LINGUISTIC"):
        use(cursor, "BINARY_CI", comparison)
        found.append([listed(cursor, query) for query in queries])
    assert found == [[[6], [6], [4], [6]], [[4], [4], [4], [4]]]
    use(cursor, "BINARY_CI", "LINGUISTIC")
    cursor.execute("SELECT min(v), max(v) FROM t WHERE v IN ('A', 'B', 'z')")
    low, high = cursor.fetchone()
    assert (low.upper(), high) == ("A", "z")
    with pytest.raises(oracledb.DatabaseError, match=r"ORA-03001.*UNION with"):
        cursor.execute("SELECT v FROM t UNION SELECT 'a' FROM dual")


def test_keys_are_binary_whatever_the_session_s_sort(cursor: Any) -> None:
    use(cursor, "BINARY_CI", "LINGUISTIC")
    cursor.execute("CREATE TABLE k (v VARCHAR2(9) PRIMARY KEY CHECK (v <> 'X'))")
    cursor.executemany("INSERT INTO k VALUES (:1)", [["a"], ["A"], ["x"]])
    with pytest.raises(oracledb.IntegrityError, match="ORA-02290"):
        cursor.execute("INSERT INTO k VALUES ('X')")
    cursor.execute("UPDATE k SET v = v || '1' WHERE v = 'a'")
    assert cursor.rowcount == 2


@pytest.mark.parametrize(
    ("expression", "key"),
    [
        pytest.param("nlssort('aB', 'NLS_SORT = BINARY')", "614200", id="binary"),
        pytest.param("nlssort('aB', 'NLS_SORT=BINARY_CI')", "616200", id="case"),
        pytest.param("nlssort('äB', 'nls_sort = binary_ai')", "616200", id="accents"),
    ],
)
def test_keys_of_binary_sorts_are_the_bytes(cursor: Any, expression: str, key: str) -> None:
    assert listed(cursor, f"SELECT {expression} FROM dual") == [bytes.fromhex(key)]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        pytest.param("ALTER SESSION SET NLS_SORT = KLINGON", "ORA-03001.*KLINGON", id="sort"),
        pytest.param("ALTER SESSION SET NLS_COMP = KLINGON", "ORA-03001", id="comparison"),
        pytest.param("SELECT nlssort('a', 'SORT=X') FROM dual", "ORA-12702", id="parameter"),
        pytest.param("SELECT nlssort('a', 'NLS_SORT=X') FROM dual", "ORA-03001", id="of-nlssort"),
    ],
)
def test_what_is_not_known_is_refused(cursor: Any, sql: str, error: str) -> None:
    with pytest.raises(oracledb.DatabaseError, match=error):
        cursor.execute(sql)
