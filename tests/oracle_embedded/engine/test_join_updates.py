"""Rows of a table are updated through a join of which it is the key-preserved part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracle_embedded.api import OracleError

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client

_PAID = "(select o.state, o.note, c.name from orders o join customers c on c.id = o.customer)"


@pytest.fixture
def shop(sql: Client) -> Client:
    sql("create table customers (id number primary key, name varchar2(20), region number)")
    sql("create table regions (id number, code varchar2(9), constraint r unique (id))")
    sql("create table orders (id number primary key, customer number, state varchar2(9) default 'open', note varchar2(20))")  # fmt: skip
    sql("insert into regions values (7, 'north')")
    for number, name in ((1, "Ann"), (2, "Bob")):
        sql(f"insert into customers values ({number}, '{name}', {7 if number == 1 else 'null'})")
    for number, customer in ((10, "1"), (11, "1"), (12, "2"), (13, "null")):
        sql(f"insert into orders (id, customer, state) values ({number}, {customer}, 'new')")
    return sql


@pytest.mark.parametrize(
    ("update", "changed", "states"),
    [
        pytest.param(f"update {_PAID} set state = 'paid' where name = 'Ann'", 2, "paid paid new new", id="where"),
        pytest.param(f"update {_PAID} p set p.state = p.name", 3, "Ann Ann Bob new", id="other-table"),
        pytest.param(f"update {_PAID} set state = default", 3, "open open open new", id="default"),
        pytest.param("update (select o.state c0, c.name || '!' c1 from orders o, customers c where o.customer = c.id) set c0 = c1", 3, "Ann! Ann! Bob! new", id="names"),
        pytest.param("update (select * from orders o left join customers c on o.customer = c.id) set state = nvl(name, 'none')", 4, "Ann Ann Bob none", id="left-join"),
        pytest.param("update (select o.state, r.code from orders o join customers c on o.customer = c.id join regions r on r.id = c.region) set state = code", 2, "north north new new", id="three-tables"),
        pytest.param("update (select state s from orders) set s = 'x'", 4, "x x x x", id="one-table"),
    ],
)  # fmt: skip
def test_the_key_preserved_table_is_updated(
    shop: Client, update: str, changed: int, states: str
) -> None:
    assert shop(update) == changed
    assert " ".join(state for (state,) in shop("select state from orders order by id")) == states


@pytest.mark.parametrize(
    ("update", "error"),
    [
        (f"update {_PAID} set name = 'x'", "ORA-01779"),
        ("update (select o.state, c.name from orders o join customers c on o.id > c.id) set state = 'x'", "ORA-01779"),
        ("update (select o.state from customers c left join orders o on o.id = c.id) set state = 'x'", "ORA-01779"),
        ("update (select o.state, c.name from orders o join customers c on o.id = c.id) set state = 'x', name = 'y'", "ORA-01776"),
        ("update (select o.state || c.name s from orders o join customers c on o.customer = c.id) set s = 'x'", "ORA-01733"),
        (f"update {_PAID} set id = 1", "ORA-00904"),
        ("update (select o.state from orders o natural join customers c) set state = 'x'", "ORA-03001"),
    ],
)  # fmt: skip
def test_others_are_not(shop: Client, update: str, error: str) -> None:
    with pytest.raises(OracleError, match=error):
        shop(update)
