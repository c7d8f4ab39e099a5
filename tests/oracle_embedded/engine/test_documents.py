"""JSON in text and BLOBs: the condition, the functions, and JSON_TABLE."""

from __future__ import annotations

import oracledb
import pytest

from oracle_embedded.api import OracleError
from tests.oracle_embedded.engine.conftest import Client

_DOCUMENT = '{"colour":"red","price":12.50,"sizes":[1,2],"ok":true,"reviews":[{"rating":5,"text":"fine"},{"rating":3}]}'


def test_a_check_takes_documents_only(sql: Client) -> None:
    sql("create table p (id number, doc clob check (doc is json), old varchar2(10) check (old is not json))")  # fmt: skip
    assert sql("insert into p values (1, :1, 'plain')", _DOCUMENT) == 1
    for values in ("2, 'nope', null", "2, '1', null", "2, null, '[]'"):
        with pytest.raises(OracleError, match="2290"):
            sql(f"insert into p values ({values})")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("json_value(doc, '$.colour')", "red"),
        ("json_value(doc, '$.price')", "12.50"),
        ("json_value(doc, '$.price' returning number) + 1", "13.5"),
        ("json_value(doc, '$.sizes[1]')", "2"),
        ("json_value(doc, '$.sizes')", None),
        ("json_value(doc, '$.ok')", "true"),
        ("json_query(doc, '$.sizes')", "[1,2]"),
        ("json_query(doc, '$.colour')", None),
        ("case when json_exists(doc, '$.reviews[1].rating') then 1 else 0 end", "1"),
        ("case when json_exists(doc, '$.reviews[2]') then 1 else 0 end", "0"),
    ],
)
def test_paths_find_values(sql: Client, expression: str, value: str | None) -> None:
    assert sql.one(f"select {expression} from (select :1 doc from dual)", _DOCUMENT) == value


def test_json_table_gives_a_row_per_nested_item(sql: Client) -> None:
    sql("create table p (id number, doc varchar2(4000))")
    sql("insert into p values (1, :1)", _DOCUMENT)
    sql('insert into p values (2, \'{"colour":"blue"}\')')
    rows = sql(
        "select p.id, j.* from p, json_table(p.doc, '$' columns (colour varchar2(10) path '$.colour', has exists path '$.sizes',"
        " nested path '$.reviews[*]' columns (n for ordinality, rating number path '$.rating', text varchar2(9) path '$.text'))) j order by 1, 4"
    )
    assert rows == [
        ("1", "red", "1", "1", "5", "fine"),
        ("1", "red", "1", "2", "3", None),
        ("2", "blue", "0", None, None, None),
    ]


def test_a_wrong_path_is_refused(sql: Client) -> None:
    with pytest.raises(OracleError, match="40597"):
        sql("select json_value('{}', 'colour') from dual")


def test_a_column_that_a_constraint_holds_to_be_json_is_described_as_such(
    driver: oracledb.Connection,
) -> None:
    cursor = driver.cursor()
    cursor.execute("create table j (id number, d varchar2(99) check (d is json), e clob)")
    cursor.execute("select d, e, d || 'x', t.d as f from j t")
    assert [one.is_json for one in cursor.description] == [True, False, False, True]


def test_longs_have_no_size_and_hold_much(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    cursor.execute("create table l (id number, v long raw)")
    cursor.setinputsizes(None, oracledb.DB_TYPE_LONG_RAW)
    cursor.execute("insert into l values (:1, :2)", [1, b"x" * 50_000])
    [(value,)] = cursor.execute("select v from l").fetchall()
    assert len(value) == 50_000
    assert cursor.description[0].internal_size is None
