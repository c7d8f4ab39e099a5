"""Whatever stands in Oracle's signal table is taken or rejected by name: no row of it stops the source. Over both kinds of metadata store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import oracledb
import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.signals import SIGNAL_ID_MAX, Signal
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.state.test_store import postgresql, url  # noqa: F401
from tests.steps.harness import Source, source_of

ASKS = json.dumps({"data-collections": [f"{OWNER}.T"]})
DEEP = "[" * 3000 + "]" * 3000
ROWS = [
    ("good", "execute-snapshot", ASKS, "done", None),
    ("i" * 200, "execute-snapshot", ASKS, "done", None),
    ("j" * 201, "execute-snapshot", ASKS, "rejected", "more than 200 characters"),
    ("é" * 500 + "1", "execute-snapshot", ASKS, "rejected", "more than 200 characters"),
    ("é" * 500 + "2", "execute-snapshot", ASKS, "rejected", "more than 200 characters"),
    ("nul\0", "execute-snapshot", ASKS, "rejected", "cannot hold"),
    ("n\0ul", "execute-snapshot", ASKS, "rejected", "cannot hold"),
    ("type", "x" * 60, ASKS, "rejected", "type has more than 40"),
    ("half", "execute-snapshot", '{"data-collections": ["\\ud800"]}', "rejected", None),
    ("zero", "execute-snapshot", '{"data-collections": ["\\u0000"]}', "rejected", None),
    ("deep", "execute-snapshot", DEEP, "rejected", "not a JSON object"),
    ("long", "execute-snapshot", "1" * 3900, "rejected", "not a JSON object"),
]

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T VALUES (1)",
    "CREATE TABLE SIGNALS (ID VARCHAR2(2000), TYPE VARCHAR2(200), DATA CLOB)",
)


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path, url: str) -> Iterator[Source]:  # noqa: F811
    more = {"state": {"url": url.replace(":@", "@")}, "signals": {"table": f"{OWNER}.SIGNALS"}}
    with source_of(oracle, tmp_path, "T", **more) as source:
        yield source


def test_no_row_of_the_signal_table_stops_the_source(source: Source) -> None:
    source.run()
    login = source.oracle.login(OWNER)
    with oracledb.connect(**login) as connection:
        cursor = connection.cursor()
        for name, kind, data, *_ in ROWS:
            cursor.execute("INSERT INTO SIGNALS VALUES (:1, :2, :3)", [name, kind, data])
        connection.commit()
    source.run()
    found = source.pipeline.store.signals.find()
    assert len(found) == len(ROWS), "each has its own record"
    assert sorted(one.state for one in found) == sorted(state for *_, state, _ in ROWS)
    for name, _, _, state, why in ROWS:
        own = [one for one in found if one.id == name] or [
            one for one in found if why is not None and why in (one.reason or "")
        ]
        assert own, name
        assert {one.state for one in own} == {state}, name
        assert why is None or all(why in (one.reason or "") for one in own), name
    assert all(len(one.id) <= SIGNAL_ID_MAX for one in found)
    source.oracle.run("INSERT INTO T VALUES (2)")
    source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    source.run()
    source.check_current("T")
    assert source.pipeline.store.signals.find() == found, "none is taken twice"


@pytest.mark.parametrize("name", ["x" * 201, "n\0ul"])
def test_an_id_that_the_store_cannot_hold_is_refused_where_it_is_typed(
    source: Source, name: str
) -> None:
    asked = Signal(id=name, source="src", type="execute-snapshot", data=json.loads(ASKS))
    with pytest.raises(ConfigError, match="cannot be sent"):
        source.pipeline.add_signal(asked)
