"""ROWIDs: what keeps a row's address, what gives it another one, and who gets the address of a row that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracle_embedded.api import OracleError
from tests.oracle_embedded.engine.conftest import Client

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Connect

CREATE = "create table t (id number, v varchar2(10))"
DATA_OBJECT = "select data_object_id from user_objects where object_name = 'T'"


def addresses(sql: Client) -> dict[str, str]:
    return dict(sql("select id, rowid from t"))


@pytest.fixture
def three(sql: Client) -> Client:
    sql(CREATE)
    sql("insert into t select level, 'x' from dual connect by level <= 3")
    sql.session.commit()
    return sql


def test_an_update_leaves_a_row_where_it_is(three: Client) -> None:
    before = addresses(three)
    three("update t set v = 'longer' where id = 2")
    assert addresses(three) == before


def test_move_gives_all_rows_addresses_of_another_data_object(three: Client) -> None:
    before, [(number,)] = addresses(three), three(DATA_OBJECT)
    three("alter table t move")
    after = addresses(three)
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert three(DATA_OBJECT) != [(number,)]


def test_shrink_moves_rows_inside_their_data_object(three: Client) -> None:
    """One row may get the address that another one had."""
    before, number = addresses(three), three(DATA_OBJECT)
    three("delete from t where id = 1")
    three.session.commit()
    with pytest.raises(OracleError, match="ROW MOVEMENT is not enabled"):
        three("alter table t shrink space")
    three("alter table t enable row movement")
    three("alter table t shrink space cascade")
    after = addresses(three)
    assert after == {"2": before["1"], "3": before["2"]}
    assert three(DATA_OBJECT) == number
    three("insert into t values (4, 'y')")
    assert addresses(three)["4"] == before["3"]


def test_a_new_row_takes_the_address_of_one_that_is_gone(three: Client, connect: Connect) -> None:
    """Once the delete has committed, and not before: it may be rolled back."""
    before = addresses(three)
    three("delete from t where id = 2")
    three("insert into t values (4, 'y')")
    assert addresses(three)["4"] not in before.values()
    three.session.commit()
    three("insert into t values (5, 'z')")
    three.session.commit()
    assert addresses(three)["5"] == before["2"]
    other = connect()
    assert addresses(other) == addresses(three)
