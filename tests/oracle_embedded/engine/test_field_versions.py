"""Client and server agree on the older layouts of both: a server that offers those of an older release is understood, and understands."""

from __future__ import annotations

import oracledb
import pytest

from oracle_embedded.database import OWNER, OpenDatabase
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.wire.session import WireSettings


@pytest.mark.parametrize("version", range(7, 13))
def test_a_program_works_with_the_layouts_of_each_release(
    database: OpenDatabase, version: int
) -> None:
    """7 is 12.1, 12 is 19c."""
    settings = WireSettings(field_version=version)
    with (
        EmbeddedServer(database.engine, settings=settings) as server,
        oracledb.connect(user=OWNER, password=database.password(OWNER), dsn=server.dsn) as client,
    ):
        assert client.version.startswith("19.3.0")
        cursor = client.cursor()
        cursor.execute("create type pair_t as object (a number, b varchar2(9))")
        cursor.execute("create table t (id number, s varchar2(40), c clob, at timestamp, p pair_t)")
        returned = cursor.var(int, arraysize=3)
        cursor.executemany(
            "insert into t values (:1, :2, :3, timestamp '2020-01-02 03:04:05', pair_t(1, 'x')) returning id into :4",
            [(number, "é" * number, "c" * 5000 * number, returned) for number in (1, 2, 3)],
            arraydmlrowcounts=True,
        )
        assert cursor.getarraydmlrowcounts() == [1, 1, 1]
        cursor.prefetchrows, cursor.arraysize = 1, 2
        cursor.execute("select id, s, c, at, p from t where id >= :low order by id", low=2)
        rows = [(number, s, c.read(), at.year, p.B) for number, s, c, at, p in cursor]
        assert rows == [(2, "éé", "c" * 10_000, 2020, "x"), (3, "ééé", "c" * 15_000, 2020, "x")]
        assert cursor.callfunc("length", int, ["abc"]) == 3
        opened = client.cursor()
        cursor.execute("begin open :1 for select count(*) from t; end;", [opened])
        assert opened.fetchall() == [(3,)]
