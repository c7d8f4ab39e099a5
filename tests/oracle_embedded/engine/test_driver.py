"""Two clients that were not written here: the driver, and SQLAlchemy's dialect through it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import oracledb
import pytest
import sqlalchemy as sa

from oracle_embedded.database import CAPTURE, OpenDatabase
from oracle_embedded.server import EmbeddedServer
from tests.oracle.embedded import running_oracle


@pytest.fixture
def engine(database: OpenDatabase, server: EmbeddedServer) -> Iterator[sa.Engine]:
    url = sa.URL.create(
        "oracle+oracledb",
        "DEMO",
        database.password("DEMO"),
        "127.0.0.1",
        server.port,
        query={"service_name": "ORCLPDB1"},
    )
    made = sa.create_engine(url)
    yield made
    made.dispose()


def test_the_driver_changes_and_reads_rows(database: OpenDatabase, server: EmbeddedServer) -> None:
    dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
    with oracledb.connect(user="DEMO", password=database.password("DEMO"), dsn=dsn) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "create table t (id number(9) primary key, v varchar2(10), n number(10,2), l clob)"
        )
        cursor.executemany(
            "insert into t values (:1, :2, :3, :4)",
            [(n, f"v{n}", Decimal("1.25"), "lob") for n in range(300)],
        )
        assert cursor.rowcount == 300
        connection.commit()
        cursor.execute("select id, v, n, l from t where id < :most order by id", most=2)
        rows = [(i, v, n, lob.read()) for i, v, n, lob in cursor]
        assert rows == [(0, "v0", 1.25, "lob"), (1, "v1", 1.25, "lob")]
        with pytest.raises(oracledb.IntegrityError, match="ORA-00001"):
            cursor.execute("insert into t (id) values (1)")
        frames = list(connection.fetch_df_batches("select id, v from t order by id", size=100))
        assert sum(frame.num_rows() for frame in frames) == 300


@pytest.mark.parametrize(
    ("connect_data", "container"),
    [
        pytest.param("SERVICE_NAME=ORCLPDB1", "ORCLPDB1", id="pluggable-database"),
        pytest.param("SERVICE_NAME=orclcdb", "CDB$ROOT", id="root"),
        pytest.param("SID=ORCLCDB", "CDB$ROOT", id="sid"),
    ],
)
def test_a_service_leads_to_its_container(
    database: OpenDatabase, server: EmbeddedServer, connect_data: str, container: str
) -> None:
    dsn = (
        f"(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=127.0.0.1)(PORT={server.port}))"
        f"(CONNECT_DATA=({connect_data})))"
    )
    with oracledb.connect(user=CAPTURE, password=database.password(CAPTURE), dsn=dsn) as connection:
        cursor = connection.cursor()
        cursor.execute("select sys_context('USERENV', 'CON_NAME') from dual")
        assert cursor.fetchone() == (container,)


def test_the_root_has_no_local_users(database: OpenDatabase, server: EmbeddedServer) -> None:
    dsn = f"127.0.0.1:{server.port}/ORCLCDB"
    with pytest.raises(oracledb.DatabaseError, match="ORA-01017"):
        oracledb.connect(user="DEMO", password=database.password("DEMO"), dsn=dsn)


def test_an_unknown_service_is_refused(database: OpenDatabase, server: EmbeddedServer) -> None:
    dsn = f"127.0.0.1:{server.port}/ORCLPDB2"
    with pytest.raises(oracledb.OperationalError, match=r"DPY-6001.*ORA-12514"):
        oracledb.connect(user="DEMO", password=database.password("DEMO"), dsn=dsn)


def test_sqlalchemy_reflects_and_queries(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("create table parent (id number(9) primary key)")
        connection.exec_driver_sql(
            "create table child (id number(9) constraint child_pk primary key, parent number(9) constraint child_fk references parent,"
            " name varchar2(30) not null constraint child_u unique, made date default sysdate, price number(8,2),"
            " constraint child_c check (price > 0))"
        )
        connection.exec_driver_sql("create index child_i on child (parent, name)")
        connection.exec_driver_sql("comment on table child is 'a child'")
    inspector = sa.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["child", "parent"]
    assert inspector.get_pk_constraint("child") == {
        "constrained_columns": ["id"],
        "name": "child_pk",
    }
    assert [item["referred_table"] for item in inspector.get_foreign_keys("child")] == ["parent"]
    assert inspector.get_indexes("child")[0]["column_names"] == ["parent", "name"]
    assert inspector.get_unique_constraints("child")[0]["column_names"] == ["name"]
    assert inspector.get_check_constraints("child")[0]["sqltext"] == "price > 0"
    assert inspector.get_table_comment("child") == {"text": "a child"}
    child = sa.Table("child", sa.MetaData(), autoload_with=engine)
    parent = child.c.parent.foreign_keys.copy().pop().column.table
    shown = [repr(column.type).partition("(asdecimal")[0] for column in child.columns]
    assert [name.split("(")[0] for name in shown] == [
        "NUMBER",
        "NUMBER",
        "VARCHAR",
        "DATE",
        "NUMBER",
    ]
    price: Any = child.c.price.type
    assert (price.precision, price.scale) == (8, 2)
    with engine.begin() as connection:
        connection.execute(parent.insert(), [{"id": 1}, {"id": 2}])
        connection.execute(
            child.insert(),
            [{"id": n, "parent": 1, "name": f"n{n}", "price": n} for n in range(1, 6)],
        )
        query = (
            sa.select(child.c.name, sa.func.count().over())
            .join(parent)
            .where(child.c.price > 1)
            .order_by(child.c.name.desc())
            .limit(2)
            .offset(1)
        )
        assert connection.execute(query).fetchall() == [("n4", 4), ("n3", 4)]


def test_the_driver_fetches_from_cursors_that_a_block_opens(
    database: OpenDatabase, server: EmbeddedServer
) -> None:
    dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
    with oracledb.connect(user="DEMO", password=database.password("DEMO"), dsn=dsn) as connection:
        cursor = connection.cursor()
        cursor.execute("create table t (id number(9) primary key, v varchar2(10), l clob)")
        cursor.executemany(
            "insert into t values (:1, :2, :3)", [[n, f"v{n}", f"lob {n}"] for n in range(250)]
        )
        found = cursor.var(oracledb.DB_TYPE_CURSOR)
        for block, values in [
            ("begin open :c for select id, v from t where id < :n order by id; end;", [200]),
            (
                "declare x sys_refcursor; begin open x for 'select id, v from t where id < :1 order by 1'"
                " using :n; :c := x; end;",
                [200],
            ),
        ]:
            binds = [found, *values] if block.startswith("begin") else [*values, found]
            cursor.execute(block, binds)
            rows = found.getvalue().fetchall()
            assert rows == [(n, f"v{n}") for n in range(200)]
        cursor.execute("begin open :c for select l from t where id = 7; end;", [found])
        [[lob]] = found.getvalue().fetchall()
        assert lob.read() == "lob 7"


def test_a_cursor_is_opened_for_queries_only(
    database: OpenDatabase, server: EmbeddedServer
) -> None:
    dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
    with oracledb.connect(user="DEMO", password=database.password("DEMO"), dsn=dsn) as connection:
        cursor = connection.cursor()
        with pytest.raises(oracledb.DatabaseError, match="ORA-06539"):
            cursor.execute("declare x sys_refcursor; begin open x for 'commit'; end;")
        with pytest.raises(oracledb.DatabaseError, match="PLS-00382"):
            cursor.execute("declare x number; begin open x for select 1 from dual; end;")
        with pytest.raises(oracledb.DatabaseError, match="PLS-00382"):
            cursor.execute("declare x sys_refcursor; begin x := 5; end;")


@pytest.mark.parametrize(
    ("release", "version", "full"),
    [("19c", "19.0.0.0.0", "19.3.0.0.0"), ("23ai", "23.0.0.0.0", "23.26.2.0.0")],
)
def test_the_views_name_the_release_that_the_database_is_told(
    release: str, version: str, full: str
) -> None:
    with running_oracle(release=release) as oracle, oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("select version, version_full, product from product_component_version")
        [(short, long, product)] = cursor.fetchall()
        assert (short, long, release in product) == (version, full, True)
        [(banner,)] = cursor.execute("select banner_full from v$version").fetchall()
        assert banner.endswith(f"Version {full}")
