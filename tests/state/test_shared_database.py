"""A PostgreSQL database that others use too, by roles and poolers with habits of their own; and texts that it cannot hold."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Engine, create_engine, text

from cdc_core.errors import LeaseHeldError, StoreUnavailableError
from cdc_core.landing.manifest import SchemaChange
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.signals import Signal
from cdc_core.model.streams import StreamEnd
from cdc_core.state import database
from cdc_core.state.store import Store
from cdc_core.state.texts import storable
from tests.state.test_store import (  # noqa: F401
    EMP,
    SOURCE,
    Clock,
    clock,
    manifest_of,
    planned,
    postgresql,
    schema_of,
    store,
    url,
    window,
)
from tests.state.writing import save_table

FOREIGN_REVISION = "29b539ebc72a"
ROLES = {
    "repeatable-read": "-cdefault_transaction_isolation=repeatable\\ read",
    "serializable": "-cdefault_transaction_isolation=serializable",
    "read-only": "-cdefault_transaction_read_only=on",
    "hasty": "-cstatement_timeout=3s -clock_timeout=3s -cidle_in_transaction_session_timeout=3s",
}
"""What ``ALTER ROLE … SET`` may have made a role's default. What reads is held to it, so it must
suffice for a short answer of a busy machine."""


@pytest.fixture
def empty(postgresql: str) -> Iterator[Engine]:  # noqa: F811
    engine = create_engine(postgresql, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for schema in ("public", "one", "two"):
            connection.execute(text(f"DROP SCHEMA IF EXISTS {schema} CASCADE"))
            connection.execute(text(f"CREATE SCHEMA {schema}"))
    yield engine
    engine.dispose()


def url_of(engine: Engine, options: str | None = None) -> str:
    made = engine.url if options is None else engine.url.update_query_dict({"options": options})
    return made.render_as_string(hide_password=False)


def begin_other_program(engine: Engine) -> None:
    """What Dagster's storage does at its first start: its tables, and its revision where Alembic keeps it by default."""
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE runs (id INTEGER)"))
        connection.execute(
            text("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
        )
        connection.execute(text(f"INSERT INTO alembic_version VALUES ('{FOREIGN_REVISION}')"))


def foreign_revisions(engine: Engine) -> list[str] | None:
    with engine.connect() as connection:
        if connection.execute(text("SELECT to_regclass('alembic_version')")).scalar() is None:
            return None
        return list(connection.execute(text("SELECT version_num FROM alembic_version")).scalars())


def test_another_program_that_keeps_a_revision_may_have_come_first(empty: Engine) -> None:
    begin_other_program(empty)
    for _ in range(2):
        with Store.open(url_of(empty), "src") as store:  # noqa: F811
            store.source.save(SOURCE)
    assert foreign_revisions(empty) == [FOREIGN_REVISION]


def test_another_program_that_keeps_a_revision_may_come_later(empty: Engine) -> None:
    with Store.open(url_of(empty), "src") as store:  # noqa: F811
        store.source.save(SOURCE)
    assert foreign_revisions(empty) is None
    begin_other_program(empty)
    with Store.open(url_of(empty), "src") as store:
        assert store.source.get() == SOURCE


@pytest.mark.parametrize("options", ROLES.values(), ids=ROLES.keys())
def test_whatever_a_role_s_defaults_are_one_of_many_gets_a_lease_and_the_others_are_told(
    empty: Engine, options: str
) -> None:
    stores = [Store.open(url_of(empty, options), "src") for _ in range(4)]
    outcomes: list[str] = []

    def want(own: Store) -> None:
        for _ in range(25):
            try:
                lease = own.leases.acquire("src/capture", f"{threading.get_ident()}", 60)
            except LeaseHeldError:
                outcomes.append("held")
                continue
            own.leases.renew(lease)
            own.leases.release(lease)
            outcomes.append("had")

    def counted(own: Store) -> None:
        try:
            want(own)
        except Exception as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=counted, args=(own,)) for own in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own in stores:
        own.close()
    assert set(outcomes) <= {"had", "held"}
    assert len(outcomes) == 100
    with empty.connect() as connection:
        token = connection.execute(text("SELECT token FROM leases")).scalar_one()
    assert token == outcomes.count("had"), "no two of them had one token"


def test_a_hasty_role_s_writer_waits_for_its_turn(empty: Engine) -> None:
    with (
        Store.open(url_of(empty, ROLES["hasty"]), "src") as one,
        Store.open(url_of(empty, ROLES["hasty"]), "src") as other,
    ):
        with one._database.writing():
            writer = threading.Thread(target=other.source.save, args=(SOURCE,))
            writer.start()
            writer.join(3.5)
            assert writer.is_alive()
        writer.join()
        assert one.source.get() == SOURCE


def test_who_stands_still_in_a_transaction_keeps_nobody_waiting(
    empty: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(url_of(empty), "src") as one, Store.open(url_of(empty), "src") as other:
        stands, errors = threading.Event(), list[StoreUnavailableError]()

        def stand_still() -> None:
            with monkeypatch.context() as hasty:
                hasty.setattr(database, "IDLE_SECONDS", 1)
                with one._database.writing() as connection:
                    hasty.undo()  # others take their time
                    own = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
                    connection.execute(text("DELETE FROM sources"))
                    stands.set()
                    while is_there(own):
                        time.sleep(0.05)
                    connection.execute(text("SELECT 1"))

        def be_ended() -> None:
            with pytest.raises(StoreUnavailableError) as caught:
                stand_still()
            errors.append(caught.value)
            stands.set()  # it stood, and nobody was there to see it

        def is_there(process: int) -> bool:
            found = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :process")
            with empty.connect() as connection:
                return bool(connection.execute(found, {"process": process}).scalar_one())

        other.source.save(SOURCE)
        be_ended()
        assert other.source.get() == SOURCE
        stands.clear()
        writer = threading.Thread(target=be_ended)
        writer.start()
        stands.wait()
        other.source.save(SOURCE)
        writer.join()
        said = [re.search(r"idle-in-transaction|terminat|closed", str(error)) for error in errors]
        assert len(said) == 2
        assert all(said)
        assert one.source.get() == SOURCE


def test_what_is_read_together_is_one_state_of_the_database(url: str) -> None:  # noqa: F811
    with Store.open(url, "src") as one, Store.open(url, "src") as other:
        one.source.save(SOURCE)
        with one._database.reading() as connection:
            names = text("SELECT name FROM sources ORDER BY name")
            before = connection.execute(names).all()
            other.source.save(replace(SOURCE, name="new"))
            assert connection.execute(names).all() == before
        assert one.of("new").source.get() is not None


def test_nothing_of_a_transaction_is_left_in_the_session(empty: Engine) -> None:
    """A pooler gives it to somebody else then."""
    with Store.open(url_of(empty), "src") as store:  # noqa: F811
        for _ in range(8):
            store.source.save(SOURCE)
            store.source.get()
        with store._database._engine.connect() as connection:
            for name, value in (
                ("statement_timeout", "0"),
                ("lock_timeout", "0"),
                ("idle_in_transaction_session_timeout", "0"),
                ("default_transaction_isolation", "read committed"),
                ("default_transaction_read_only", "off"),
            ):
                assert connection.execute(text(f"SHOW {name}")).scalar_one() == value
            for view in ("pg_prepared_statements", "pg_cursors", "pg_listening_channels()"):
                found = connection.execute(text(f"SELECT count(*) FROM {view}")).scalar_one()
                assert found == 0, view
            locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            assert connection.execute(text(locks)).scalar_one() == 0


def test_stores_in_several_schemas_of_one_database_are_apart(empty: Engine) -> None:
    with Store.open(url_of(empty, "-csearch_path=one"), "src") as one:
        one.source.save(SOURCE)
        with Store.open(url_of(empty, "-csearch_path=two"), "src") as two:
            assert two.source.get() is None
        with Store.open(url_of(empty, "-csearch_path=one,public"), "src") as again:
            assert again.source.get() == SOURCE


def test_a_schema_that_is_not_there_is_said(empty: Engine) -> None:
    with pytest.raises(StoreUnavailableError, match="no schema has been selected"):
        Store.open(url_of(empty, "-csearch_path=nowhere"), "src")


# --- texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("ALTER TABLE T ADD C NUMBER\0", "ALTER TABLE T ADD C NUMBER"),
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        ("half \ud83d", "half \N{REPLACEMENT CHARACTER}"),
        ("é\0\0", "é"),
        ("whole 🔥", "whole 🔥"),
        ("", ""),
    ],
)
def test_what_no_database_holds_is_replaced(given: str, kept: str) -> None:
    assert storable(given) == kept


def test_texts_that_cannot_be_held_stop_nothing(planned: Store) -> None:  # noqa: F811
    change = SchemaChange(150, 1 << 40, "ALTER TABLE EMP ADD A\0", schema_of(scn=150, extra="A"))
    manifest = manifest_of(window(100, 200), 0, (change,))
    save_table(planned, TableRecord(source="src", table=EMP, state="ready"))
    end = StreamEnd(EMP, 180, "reason \0 of \ud800", "way\0out")
    planned.windows.record_captured(replace(manifest, left=(end,)), "a" * 64, [])
    assert planned.schemas.versions(EMP)[-1].ddl == "ALTER TABLE EMP ADD A"
    record = planned.tables.get(EMP)
    assert record is not None
    assert record.reason == "reason \N{REPLACEMENT CHARACTER} of \N{REPLACEMENT CHARACTER}"
    planned.windows.record_error(window(200, 300), "error\0")
    assert planned.windows.find()[1].last_error == "error"
    signal = Signal(id="a\0b", source="src", type="x\0", data={"k\0": "half \ud83d"})
    assert planned.signals.add(signal)
    assert not planned.signals.add(signal)
    planned.signals.finish("a\0b", state="rejected", reason="why\0")
    [found] = planned.signals.find()
    assert (found.type, found.reason) == ("x", "why")
    assert found.data["k\0"] == "half \N{REPLACEMENT CHARACTER}"


def test_a_lease_is_named_by_the_longest_names(store: Store) -> None:  # noqa: F811
    table = TableId("O" * 128, "t" * 128)
    save_table(store, TableRecord(source="s" * 40, table=table))
    name = f"{'s' * 40}/chunk/{table}/r{2**62}-12345678:000001"
    lease = store.leases.acquire(name, "one", 60)
    assert [one.name for one in store.leases.all()] == [lease.name]
