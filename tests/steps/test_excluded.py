"""What the configuration leaves out, never lands from then on, and never reaches the lake."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cdc_core.errors import ConfigError, PreflightError
from oracle_embedded.redo import LobRows, Wart
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

T, U = table_id("T"), table_id("U")

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(40) DEFAULT 'default', NOTE VARCHAR2(40))",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T VALUES (1, 'old secret', 'a')",
    "INSERT INTO T VALUES (2, 'old secret', 'b')",
)
source = capturing("T", "U")


def landed(source: Source) -> str:
    """The text of all redo that has landed."""
    folder = source.path / "landing" / "src" / "windows"
    texts = [pq.read_table(path)["sql_redo"].to_pylist() for path in folder.rglob("redo-*.parquet")]
    return "\n".join(text or "" for batch in texts for text in batch)


def test_a_column_excluded_later_stops_at_once_on_both_paths(
    oracle: Oracle, source: Source
) -> None:
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    oracle.run(
        "INSERT INTO T VALUES (3, 'top secret', 'c')",
        "UPDATE T SET SECRET = 'top secret' WHERE ID = 1",
        "UPDATE T SET NOTE = 'new' WHERE ID = 2",
        "UPDATE T SET SECRET = 'top secret', NOTE = 'd' WHERE ID = 3",
    )
    source.run()
    assert landed(source).count("top secret") == 0
    assert landed(source).count("old secret") == 0
    assert source.lake.image(T) == [(1, None, "a"), (2, None, "new"), (3, None, "d")]
    record = source.record("T")
    assert (record.state, "SECRET" in (record.reason or "")) == ("ready", True)
    assert "redolake table purge-column DEMO.T SECRET" in (record.way_out or "")
    source.pipeline.resnapshot_tables([T])
    source.run()
    assert source.lake.image(T) == [(1, None, "a"), (2, None, "new"), (3, None, "d")]


def test_what_is_in_the_lake_already_goes_by_one_command(oracle: Oracle, source: Source) -> None:
    oracle.run("INSERT INTO T VALUES (3, 'landed before', 'c')")
    [before] = source.windows()
    with pytest.raises(ConfigError, match="would return"):
        source.pipeline.purge_column(T, "SECRET")
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    oracle.run("INSERT INTO T VALUES (4, 'top secret', 'd')")
    source.run()
    purged = source.pipeline.purge_column(T, "SECRET")
    assert {row[1] for row in source.lake.image(T)} == {None}
    assert [before.folder in folder for folder in purged.landing if "/windows/" in folder] == [True]
    assert any("/chunks/" in folder for folder in purged.landing)
    assert source.record("T").reason is None


def test_redo_that_landed_with_the_column_is_applied_without_it(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("INSERT INTO T VALUES (3, 'landed before', 'c')")
    [window] = source.pipeline.plan_windows()
    source.pipeline.capture_window(window)
    assert "landed before" in landed(source)
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    source.run()
    assert source.lake.image(T)[-1] == (3, None, "c")


def test_a_chunk_that_landed_with_the_column_is_applied_without_it(
    oracle: Oracle, source: Source
) -> None:
    source.read_chunk(T)
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    source.run()
    assert source.lake.image(T) == [(1, None, "a"), (2, None, "b")]


def test_values_without_names_do_not_land(oracle: Oracle, source: Source) -> None:
    """A DDL that leaves each column in its place keeps the table; after another one no place says which column it is."""
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    source.run()
    oracle.database.redo.set_wart(Wart.UNNAMED_COLUMNS, shown=True)
    oracle.run("INSERT INTO T VALUES (3, 'top secret', 'c')")
    oracle.run("ALTER TABLE T ADD (N NUMBER)")
    oracle.run("INSERT INTO T VALUES (4, 'top secret', 'd', 1)")
    oracle.run("ALTER TABLE T MODIFY (NOTE VARCHAR2(77))")
    source.run()
    assert source.record("T").state == "ready"
    assert [row[:3] for row in source.lake.image(T)[2:]] == [(3, None, "c"), (4, None, "d")]

    oracle.run("ALTER TABLE T DROP COLUMN NOTE")
    oracle.run("INSERT INTO T VALUES (5, 'top secret', 2)")
    oracle.run("ALTER TABLE T MODIFY (N DEFAULT 5)")
    source.run()
    assert source.record("T").state == "failed"
    assert b"top secret".hex() not in landed(source)
    assert "top secret" not in landed(source)


def test_values_without_names_do_not_land_behind_a_ddl_that_moves_them(
    oracle: Oracle, source: Source
) -> None:
    """The excluded column is another one's neighbour since the DDL: its old place is not its own any more."""
    source.configure({"name": "T", "columns_exclude": ["NOTE"]}, "U")
    source.run()
    oracle.database.redo.set_wart(Wart.UNNAMED_COLUMNS, shown=True)
    oracle.run("ALTER TABLE T DROP COLUMN SECRET")
    oracle.run("INSERT INTO T VALUES (5, 'top secret')")
    oracle.run("ALTER TABLE T ADD (N NUMBER)")
    source.run()
    assert source.record("T").state == "failed"
    assert b"top secret".hex() not in landed(source)
    assert "top secret" not in landed(source)


def test_rows_of_a_form_that_is_not_understood_do_not_land(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    monkeypatch.setattr("cdc_core.decode.redact.redact_statement", lambda *_, **__: None)
    oracle.run("INSERT INTO T VALUES (3, 'top secret', 'c')", "INSERT INTO U VALUES (1)")
    source.run()
    assert "top secret" not in landed(source)
    assert (source.record("T").state, source.record("U").state) == ("failed", "ready")
    source.check_current("U")
    monkeypatch.undo()
    source.pipeline.resnapshot_tables([T])
    source.run()
    assert (3, None, "c") in source.lake.image(T)


def test_a_name_that_a_left_out_column_got_is_not_taken_for_a_new_one(
    oracle: Oracle, source: Source
) -> None:
    """Another DDL has the name, and nothing of the old one."""
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    source.run()
    oracle.run("ALTER TABLE T RENAME COLUMN SECRET TO Z", "ALTER TABLE T MODIFY (Z VARCHAR2(99))")
    oracle.run("INSERT INTO T VALUES (3, 'top secret', 'c')", "INSERT INTO U VALUES (1)")
    source.run()
    assert "top secret" not in landed(source)
    assert (source.record("T").state, source.record("U").state) == ("failed", "ready")


def test_a_table_with_an_excluded_lob_stays_captured(oracle: Oracle, tmp_path: Path) -> None:
    """A large value is written in rows of its own, which hold nothing else; a small one stands in the INSERT."""
    oracle.run("CREATE TABLE PICS (ID NUMBER(9) PRIMARY KEY, N NUMBER(9), PIC BLOB)")
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "PICS", "columns_exclude": ["PIC"]})
        source.run()
        with oracle.owner() as connection:
            for number, size in ((1, 20_000), (2, 10)):
                connection.cursor().execute(
                    "INSERT INTO PICS VALUES (:1, 5, :2)", [number, b"\xab\xcd" * (size // 2)]
                )
            connection.cursor().execute("UPDATE PICS SET N = 6, PIC = :1", [b"\xab\xcd" * 9_000])
            connection.commit()
        source.windows()
        assert "abcdabcd" not in landed(source).lower()
        assert source.lake.image(table_id("PICS")) == [(1, 6), (2, 6)]
        source.check_current("PICS")


def test_an_added_column_of_a_refused_type_is_a_stop_that_the_told_way_out_ends(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("ALTER TABLE T ADD (PIC LONG RAW)")
    oracle.run("INSERT INTO T VALUES (3, 's', 'c', NULL)", "INSERT INTO U VALUES (1)")
    source.run()
    source.check_current("U")
    assert source.record("T").state == "failed"
    source.configure({"name": "T", "columns_exclude": ["PIC"]}, "U")
    source.pipeline.resnapshot_tables([T])
    source.run()
    source.check_current("T", "U")


def test_a_column_that_is_captured_again_joins_with_a_snapshot(
    oracle: Oracle, source: Source
) -> None:
    """Until then it stays out: the redo alone does not know the values of rows that do not change."""
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    source.run()
    source.configure("T", "U")
    oracle.run("INSERT INTO T VALUES (3, 'known again', 'c')")
    source.run()
    assert source.lake.image(T)[-1] == (3, None, "c")
    oracle.run("ALTER TABLE T ADD (MORE NUMBER(9))")
    oracle.run("INSERT INTO T VALUES (4, 'known again', 'd', 7)")
    source.run()
    assert source.record("T").state == "ready"
    assert source.lake.image(T)[-1] == (4, None, "d", 7)
    record = source.record("T")
    assert "now captures columns that the lake lacks" in (record.reason or "")
    assert "SECRET" in (record.reason or "")
    assert "redolake table resnapshot DEMO.T" in (record.way_out or "")
    source.pipeline.resnapshot_tables([T])
    source.run()
    assert source.lake.image(T)[-1] == (4, "known again", "d", 7)
    assert (source.record("T").reason, source.record("T").generation) == (None, 1)
    source.check_current("T", "U")


def test_each_column_that_is_left_out_is_told(oracle: Oracle, source: Source) -> None:
    source.configure({"name": "T", "columns_exclude": ["SECRET"]}, "U")
    source.run()
    source.configure({"name": "T", "columns_exclude": ["SECRET", "NOTE"]}, "U")
    for _ in range(2):
        source.run()
    reason, way_out = source.record("T").reason or "", source.record("T").way_out or ""
    assert [(reason + way_out).count(name) for name in ("SECRET", "NOTE")] == [2, 2]
    assert source.record("T").state == "ready"


def test_another_key_asks_for_new_delta_tables(oracle: Oracle, source: Source) -> None:
    source.configure({"name": "T", "key": ["NOTE"]}, "U")
    source.run()
    record = source.record("T")
    assert (record.state, "--fresh" in (record.way_out or "")) == ("failed", True)
    assert source.record("U").state == "ready"
    source.configure({"name": "T", "columns_exclude": ["ID"]}, "U")
    source.run()
    assert source.record("T").state == "failed"


@pytest.fixture
def keyed(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    """K, captured by the configured key CODE, which a unique index holds beside its primary key ID; and U."""
    oracle.run(
        "CREATE TABLE K (ID NUMBER(9) CONSTRAINT K_PK PRIMARY KEY, CODE VARCHAR2(9) NOT NULL CONSTRAINT K_CODE UNIQUE)",
        "INSERT INTO K VALUES (1, 'one')",
    )
    with source_of(oracle, tmp_path) as opened:
        opened.configure({"name": "K", "key": ["CODE"]}, "U")
        opened.run()
        yield opened


def test_a_key_that_is_not_configured_any_more_is_noticed_at_the_next_run(
    oracle: Oracle, keyed: Source
) -> None:
    """Without a DDL and without a snapshot: the table has another key of its own."""
    keyed.configure("K", "U")
    oracle.run("INSERT INTO K VALUES (2, 'two')")
    keyed.run()
    record = keyed.record("K")
    assert (record.state, record.asked_by) == ("failed", "configuration")
    assert "the key is (ID) now, and the Delta tables have (CODE)" in (record.reason or "")
    assert "--fresh" in (record.way_out or "")
    keyed.check_current("U")
    keyed.pipeline.resnapshot_tables([table_id("K")], fresh=True)
    keyed.run()
    assert keyed.record("K").state == "ready"
    keyed.check_current("K", "U")


def test_a_configured_key_that_is_the_tables_own_may_go(oracle: Oracle, keyed: Source) -> None:
    """Once the table names it, its definition alone is followed; a key that comes back is noticed, too."""
    oracle.run("ALTER TABLE K DROP CONSTRAINT K_PK")
    keyed.run()
    keyed.configure("K", "U")
    oracle.run("INSERT INTO K VALUES (2, 'two')")
    for _ in range(2):
        keyed.run()
        assert keyed.record("K").state == "ready"
    keyed.check_current("K", "U")
    keyed.configure({"name": "K", "key": ["CODE"]}, "U")
    keyed.run()
    keyed.check_current("K", "U")
    oracle.run("ALTER TABLE K DROP CONSTRAINT K_CODE")
    keyed.run()
    assert keyed.record("K").state == "ready"
    keyed.configure("K", "U")
    keyed.run()
    assert keyed.record("K").state == "failed"
    assert "no primary key" in (keyed.record("K").reason or "")


def test_a_column_held_otherwise_needs_fresh_delta_tables(oracle: Oracle, tmp_path: Path) -> None:
    """A configuration that asks for another type stops the table until it is read into new ones."""
    oracle.run("CREATE TABLE V (ID NUMBER(9) PRIMARY KEY, N NUMBER)", "INSERT INTO V VALUES (1, 2)")
    with source_of(oracle, tmp_path, "V") as source:
        source.run()
        source.configure({"name": "V", "columns_as": {"N": "decimal(12,2)"}})
        source.run()
        assert source.record("V").state == "failed"
        assert "columns_as" in (source.record("V").reason or "")
        source.pipeline.resnapshot_tables([table_id("V")], fresh=True)
        oracle.run("INSERT INTO V VALUES (7, 1.5)")
        source.run()
        assert source.lake.image(table_id("V")) == [(1, Decimal("2.00")), (7, Decimal("1.50"))]


def test_a_column_of_the_key_is_held_as_it_is(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE V (ID NUMBER(9) PRIMARY KEY, N NUMBER)")
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "V", "columns_as": {"ID": "double"}})
        with pytest.raises(PreflightError, match="columns_as names columns of the key"):
            source.run()


@pytest.mark.parametrize("shape", list(LobRows), ids=lambda shape: shape.value)
def test_rows_that_write_a_lob_name_their_row_without_what_is_left_out(
    tmp_path: Path, shape: LobRows
) -> None:
    """LogMiner puts all columns of a table into the query for a LOB's locator, excluded and masked ones too."""
    with running_oracle(warts=[Wart.LOB_STATEMENTS], lob_rows=shape) as oracle:
        oracle.run(
            "CREATE TABLE V (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(40), CODE VARCHAR2(40), DOC CLOB)"
        )
        with source_of(oracle, tmp_path) as source:
            source.configure(
                {"name": "V", "columns_exclude": ["SECRET"], "columns_mask": {"CODE": "stars(3)"}}
            )
            source.run()
            with oracle.owner() as connection:
                connection.cursor().execute(
                    "INSERT INTO V VALUES (1, 'hidden', 'it''s in clear', :1)", ["seen " * 4000]
                )
                connection.commit()
            source.run()
            assert source.lake.image(table_id("V")) == [(1, "***", "seen " * 4000)]
            text = landed(source)
            assert [word in text for word in ("seen", "***", "hidden", "clear")] == [True, True, False, False]  # fmt: skip
