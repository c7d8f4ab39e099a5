"""What a client may say of itself at log-in and later: other users, passwords, editions, contexts, packet sizes."""

from __future__ import annotations

from collections.abc import Iterator

import oracledb
import pytest

from oracle_embedded.database import ADMIN, OpenDatabase
from oracle_embedded.server import EmbeddedServer

_PASSWORD = "Old/pass@1"


@pytest.fixture
def server(database: OpenDatabase) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(database.engine) as running:
        yield running


@pytest.fixture
def admin(server: EmbeddedServer, database: OpenDatabase) -> oracledb.Connection:
    connection = oracledb.connect(user=ADMIN, password=database.password(ADMIN), dsn=server.dsn)
    cursor = connection.cursor()
    cursor.execute(f'create user ann identified by "{_PASSWORD}"')
    cursor.execute("create user bob identified by bob")
    cursor.execute("grant connect to ann, bob")
    return connection


def one(connection: oracledb.Connection, sql: str) -> object:
    cursor = connection.cursor()
    cursor.execute(sql)
    row = cursor.fetchone()
    assert row is not None
    return row[0]


@pytest.mark.usefixtures("admin")
def test_a_password_is_changed_in_a_session_and_at_log_in(server: EmbeddedServer) -> None:
    with oracledb.connect(user="ann", password=_PASSWORD, dsn=server.dsn) as connection:
        with pytest.raises(oracledb.DatabaseError, match="ORA-28008"):
            connection.changepassword("wrong", "Second1")
        with pytest.raises(oracledb.DatabaseError, match="ORA-00988"):
            connection.changepassword(_PASSWORD, "x" * 31)
        with pytest.raises(oracledb.DatabaseError, match="ORA-28008"):
            connection.changepassword("x" * 31, "Second1")
        connection.changepassword(_PASSWORD, "Second1")
        connection.changepassword("Second1", "Third1")
    with pytest.raises(oracledb.DatabaseError, match="ORA-01017"):
        oracledb.connect(user="ann", password="Second1", dsn=server.dsn)
    with oracledb.connect(user="ann", password="Third1", newpassword="Fourth1", dsn=server.dsn):
        pass
    oracledb.connect(user="ann", password="Fourth1", dsn=server.dsn).close()


def test_a_user_works_for_another_if_that_one_allows_it(
    server: EmbeddedServer, admin: oracledb.Connection
) -> None:
    with pytest.raises(oracledb.DatabaseError, match="ORA-28150"):
        oracledb.connect(user="bob[ann]", password="bob", dsn=server.dsn)
    admin.cursor().execute("alter user ann grant connect through bob")
    with oracledb.connect(user="bob[ann]", password="bob", dsn=server.dsn) as connection:
        assert one(connection, "select user from dual") == "ANN"
        assert one(connection, "select sys_context('userenv', 'proxy_user') from dual") == "BOB"
    assert one(admin, "select proxy || '>' || client from proxy_users") == "BOB>ANN"
    admin.cursor().execute("alter user ann revoke connect through bob")
    with pytest.raises(oracledb.DatabaseError, match="ORA-28150"):
        oracledb.connect(user="bob[ann]", password="bob", dsn=server.dsn)


def test_editions_and_schemas_are_told_to_the_client(
    server: EmbeddedServer, admin: oracledb.Connection
) -> None:
    cursor = admin.cursor()
    cursor.execute("create edition e1")
    cursor.execute("grant use on edition e1 to ann")
    with oracledb.connect(user="bob", password="bob", dsn=server.dsn, edition="e1") as connection:
        name = "select sys_context('userenv', 'current_edition_name') from dual"
        assert one(connection, name) == "E1"
        connection.cursor().execute("alter session set edition = ora$base")
        connection.cursor().execute("alter session set current_schema = ann")
        assert (connection.edition, connection.current_schema) == ("ORA$BASE", "ANN")
    with pytest.raises(oracledb.DatabaseError, match="ORA-38802"):
        oracledb.connect(user="bob", password="bob", dsn=server.dsn, edition="e2")
    cursor.execute("drop edition e1")
    assert one(admin, "select count(*) from all_editions") == 1


def test_a_client_has_a_context_a_driver_and_a_packet_size(
    server: EmbeddedServer, admin: oracledb.Connection
) -> None:
    with oracledb.connect(
        user="bob",
        password="bob",
        dsn=server.dsn,
        appcontext=[("CLIENTCONTEXT", "A", "1"), ("CLIENTCONTEXT", "B", "2")],
        driver_name="mine",
        sdu=1024,
    ) as connection:
        both = "select sys_context('clientcontext', 'a') || sys_context('clientcontext', 'b') from dual"
        assert one(connection, both) == "12"
        assert connection.sdu == 1024
        assert one(connection, "select rpad('x', 4000, 'x') from dual") == "x" * 4000
        assert one(admin, "select client_driver from v$session_connect_info natural join v$session where username = 'BOB'") == "mine"  # fmt: skip
        assert (connection.db_name, connection.db_domain) == ("ORCLCDB", None)
    with pytest.raises(oracledb.DatabaseError, match="ORA-28267"):
        oracledb.connect(user="bob", password="bob", dsn=server.dsn, appcontext=[("OTHER", "A", "1")])  # fmt: skip


def test_who_logs_in_as_sysdba_is_sys(
    server: EmbeddedServer, database: OpenDatabase, admin: oracledb.Connection
) -> None:
    """SYS itself, and whom SYS has given the privilege; nobody else, and SYS not otherwise."""
    as_sysdba = {"dsn": server.dsn, "mode": oracledb.AUTH_MODE_SYSDBA}
    facts = "select user || ' ' || sys_context('USERENV', 'ISDBA') || ' ' || sys_context('USERENV', 'CURRENT_SCHEMA') from dual"
    with oracledb.connect(user="sys", password=database.password("SYS"), **as_sysdba) as session:
        assert one(session, facts) == "SYS TRUE SYS"
        assert one(session, "select user# from v$session where sid = sys_context('USERENV', 'SID')") == 0  # fmt: skip
        cursor = session.cursor()
        cursor.execute("grant sysdba to ann")
        cursor.execute("create table bob.t (n number)")
        cursor.execute("alter session set current_schema = bob")
        cursor.execute("insert into t values (1)")
        with pytest.raises(oracledb.DatabaseError, match="ORA-03001"):
            cursor.execute("grant sysoper to ann")
        session.changepassword(database.password("SYS"), "Changed1")
        cursor.execute("alter user sys identified by Changed2")
    with oracledb.connect(user="ann", password=_PASSWORD, **as_sysdba) as session:
        assert one(session, facts) == "SYS TRUE SYS"
        session.cursor().execute("revoke sysdba from ann")
    assert one(admin, facts).endswith(" FALSE REDOLAKE_ADMIN")  # type: ignore[attr-defined]
    for user, password, mode, error in (
        ("ann", _PASSWORD, oracledb.AUTH_MODE_SYSDBA, "ORA-01031"),
        ("ann", "wrong", oracledb.AUTH_MODE_SYSDBA, "ORA-01017"),
        ("sys", "Changed2", oracledb.AUTH_MODE_DEFAULT, "ORA-28009"),
        ("sys", "Changed1", oracledb.AUTH_MODE_SYSDBA, "ORA-01017"),
        ("sys", "Changed2", oracledb.AUTH_MODE_SYSOPER, "ORA-01031"),
    ):
        with pytest.raises(oracledb.DatabaseError, match=error):
            oracledb.connect(user=user, password=password, dsn=server.dsn, mode=mode)
    with oracledb.connect(user="ann", password=_PASSWORD, dsn=server.dsn) as session:
        assert one(session, facts) == "ANN FALSE ANN"
        with pytest.raises(oracledb.DatabaseError, match="ORA-00942"):
            session.cursor().execute("select * from bob.t")
