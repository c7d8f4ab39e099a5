"""The Delta tables that a source has beside change logs and mirrors: its transactions, and what became of its tables' definitions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_core.errors import LakeError
from cdc_core.lake.side_tables.source_tables import DeltaSideTable
from cdc_core.lake.table_context import no_fence
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.memory_lake import MemorySideTable

ALL = {"lake": {"path": "unused", "transactions": True}}

oracle = oracle_with()


def make_tables(oracle: Oracle) -> None:
    for name in ("ONE", "TWO"):
        oracle.run(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))")


def transactions(source: Source) -> list[dict[str, Any]]:
    return source.lake.side_tables["transactions"].rows


def counted(source: Source, *names: str) -> dict[str, dict[str, int]]:
    """How many changes of each transaction the change logs have, by table."""
    found: dict[str, Counter[str]] = {}
    for name in names:
        for change in source.lake.tables[table_id(name)].changes:
            found.setdefault(change["_cdc_xid"], Counter())[f"DEMO.{name}"] += 1
    return {xid: dict(counts) for xid, counts in found.items()}


def told(source: Source) -> dict[str, dict[str, int]]:
    """The same, as the table of transactions says it."""
    return {
        one["id"]: {
            part["data_collection"]: part["event_count"] for part in one["data_collections"]
        }
        for one in transactions(source)
    }


def change(oracle: Oracle, number: int) -> None:
    """A transaction over both tables, of which a part is taken back."""
    with oracle.owner() as connection, connection.cursor() as cursor:
        connection.client_identifier = f"till {number}"
        cursor.execute(f"INSERT INTO ONE VALUES ({number}, 'a')")
        cursor.execute(f"INSERT INTO TWO VALUES ({number}, 'a')")
        cursor.execute("SAVEPOINT S")
        cursor.execute(f"UPDATE TWO SET V = 'never' WHERE ID = {number}")
        cursor.execute("ROLLBACK TO SAVEPOINT S")
        cursor.execute(f"UPDATE ONE SET V = 'b' WHERE ID = {number}")
        connection.commit()


def test_each_transaction_is_counted_as_the_change_logs_have_it(
    oracle: Oracle, tmp_path: Path
) -> None:
    make_tables(oracle)
    with source_of(oracle, tmp_path, "ONE", "TWO", **ALL) as source:
        source.begin()
        change(oracle, 1)
        with oracle.owner() as undone, undone.cursor() as cursor:
            cursor.execute("INSERT INTO ONE VALUES (50, 'x')")
            undone.rollback()
        source.windows()
        change(oracle, 2)
        change(oracle, 3)
        source.windows()
        first, *_ = found = transactions(source)
        assert told(source) == counted(source, "ONE", "TWO")
        assert [(one["status"], one["event_count"], one["client_id"]) for one in found] == [
            ("END", 3, f"till {number}") for number in (1, 2, 3)
        ]
        assert first["username"] == "DEMO"
        assert first["start_scn"] < first["commit_scn"] <= first["scn_high"]
        assert first["start_timestamp"] <= first["commit_timestamp"]
        puts = list(source.lake.side_tables["transactions"].puts)
        source.close()
        assert source.run() is not None
        assert source.lake.side_tables["transactions"].puts == puts


def test_a_table_that_takes_a_window_later_is_counted_then(oracle: Oracle, tmp_path: Path) -> None:
    make_tables(oracle)
    with source_of(oracle, tmp_path, "ONE", "TWO", **ALL) as source:
        source.begin()
        source.lake.fail(table_id("TWO"), LakeError("Delta refused"))
        change(oracle, 1)
        source.windows()
        [alone] = transactions(source)
        assert alone["data_collections"] == [{"data_collection": "DEMO.ONE", "event_count": 2}]
        source.pipeline.resume_tables([table_id("TWO")])
        source.run()
        [whole] = transactions(source)
        assert whole["event_count"] == 3
        assert told(source) == counted(source, "ONE", "TWO")


def test_a_process_that_dies_before_a_window_is_finished_counts_it_again(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the metadata store is lost with it: the rebuilt one does not call the window applied."""
    make_tables(oracle)
    with source_of(oracle, tmp_path, "ONE", "TWO", **ALL) as source:
        source.begin()
        change(oracle, 1)
        source.windows()
        change(oracle, 2)
        for number, is_store_lost in ((2, False), (3, True)):
            with monkeypatch.context() as dying:
                dying.setattr("cdc_core.steps.windows.apply.keep_side_tables", _die)
                with pytest.raises(KeyboardInterrupt):
                    source.windows()
            assert len(transactions(source)) == number - 1
            source.close()
            if is_store_lost:
                for file in tmp_path.glob("state.db*"):
                    file.unlink()
                source.pipeline.rebuild_state()
            source.run()
            assert len(transactions(source)) == number
            change(oracle, number + 1)
        source.run()
        assert told(source) == counted(source, "ONE", "TWO")


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_definitions_are_told_from_the_first_one_on(oracle: Oracle, tmp_path: Path) -> None:
    """What was followed and what was not, each once, over restarts and a lost metadata store."""
    make_tables(oracle)
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        oracle.run("ALTER TABLE ONE ADD (MORE NUMBER(5) DEFAULT 7)", "INSERT INTO ONE VALUES (1, 'a', 2)")  # fmt: skip
        source.windows()
        oracle.run("CREATE INDEX ONE_V ON ONE (V)", "INSERT INTO ONE VALUES (2, 'a', 2)")
        source.windows()
        source.close()
        for file in tmp_path.glob("state.db*"):
            file.unlink()
        source.pipeline.rebuild_state()
        oracle.run("TRUNCATE TABLE TWO", "INSERT INTO ONE VALUES (3, 'a', 2)")
        source.windows()
        rows = source.lake.side_tables["schema_changes"].rows
        by_type = {(one["table_name"], one["type"]): one for one in rows}
        assert len(by_type) == len(rows)
        assert set(by_type) == {("ONE", "CREATE"), ("TWO", "CREATE"), ("ONE", "ALTER"), ("TWO", "TRUNCATE")}  # fmt: skip
        altered, truncated = by_type["ONE", "ALTER"], by_type["TWO", "TRUNCATE"]
        assert altered["ddl"] == "ALTER TABLE ONE ADD (MORE NUMBER(5) DEFAULT 7);"
        assert altered["changes"] == ["MORE NUMBER(5,0) is new"]
        assert altered["columns"][2] == {
            "name": "MORE", "type": "NUMBER(5,0)", "nullable": True, "default": "7",
            "type_name": "NUMBER", "length": 5, "scale": 0, "position": 3, "previous_name": None,
            "identity": False, "character_set": None,
        }  # fmt: skip
        assert (altered["key"], altered["is_followed"]) == (["ID"], True)
        assert altered["timestamp"] is not None
        assert by_type["ONE", "CREATE"]["scn"] < altered["scn"] < truncated["scn"]
        assert (truncated["ddl"], truncated["is_followed"]) == ("TRUNCATE TABLE TWO;", False)
        assert truncated["columns"] is None
        assert [one["ddl"] for one in rows if one["type"] == "CREATE"] == [None, None]


def test_a_renamed_column_has_its_previous_name_in_its_change_alone(
    oracle: Oracle, tmp_path: Path
) -> None:
    make_tables(oracle)
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        for ddl in ("RENAME COLUMN V TO W", "ADD (MORE NUMBER(5))"):
            oracle.run(
                f"ALTER TABLE ONE {ddl}", "INSERT INTO ONE (ID) SELECT COUNT(*) + 1 FROM ONE"
            )
            source.windows()
        rows = [
            one
            for one in source.lake.side_tables["schema_changes"].rows
            if one["table_name"] == "ONE"
        ]
    told = [
        {one["name"]: one["previous_name"] for one in row["columns"]}
        for row in sorted(rows, key=lambda row: row["scn"])
    ]
    assert [one.get("W") for one in told] == [None, "V", None]
    assert [set(one.values()) for one in told] == [{None}, {None, "V"}, {None}]
    assert ["V" in one for one in told] == [True, False, False]


def test_a_column_tells_who_numbers_it_and_how_its_text_is_stored(
    oracle: Oracle, tmp_path: Path
) -> None:
    """An identity column, one with a sequence of the user's, and texts of either character set."""
    oracle.run(
        "CREATE SEQUENCE OWN_NUMBERS",
        "CREATE TABLE NUMBERED (ID NUMBER(9) GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,"
        " N NUMBER(9) DEFAULT OWN_NUMBERS.NEXTVAL, V VARCHAR2(9), W NVARCHAR2(9), C CLOB, B BLOB)",
    )
    with source_of(oracle, tmp_path, "NUMBERED") as source:
        source.run()
        oracle.run("INSERT INTO NUMBERED (V) VALUES ('a')")
        source.windows()
        [row] = source.lake.side_tables["schema_changes"].rows
    told = {one["name"]: (one["identity"], one["character_set"]) for one in row["columns"]}
    assert told == {
        "ID": (True, None),
        "N": (False, None),
        "V": (False, "AL32UTF8"),
        "W": (False, "AL16UTF16"),
        "C": (False, "AL32UTF8"),
        "B": (False, None),
    }


def test_a_definition_costs_the_same_however_many_came_before(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the newest window that brought rows, older ones are not read again."""
    make_tables(oracle)
    found: list[int] = []
    read = MemorySideTable.read

    def counting(self: MemorySideTable, *given: Any, **named: Any) -> pa.Table:
        rows = read(self, *given, **named)
        found.append(rows.num_rows)
        return rows

    monkeypatch.setattr(MemorySideTable, "read", counting)
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.run()
        for number in range(4):
            oracle.run(f"ALTER TABLE ONE ADD (X{number} NUMBER(9))", f"INSERT INTO ONE (ID) VALUES ({number})")  # fmt: skip
            source.windows()
        rows = source.lake.side_tables["schema_changes"].rows
        assert sorted((one["table_name"], one["type"]) for one in rows) == [
            *[("ONE", "ALTER")] * 4, ("ONE", "CREATE"), ("TWO", "CREATE"),
        ]  # fmt: skip
    assert len(found) >= 4
    assert max(found) <= 1


def test_independent_readers_see_the_same(tmp_path: Path, oracle: Oracle) -> None:
    """The Delta table itself: rows come once, a window's rows are replaced, and the position never goes back."""
    make_tables(oracle)
    with source_of(oracle, tmp_path / "source", "ONE", "TWO", **ALL) as source:
        source.begin()
        change(oracle, 1)
        change(oracle, 2)
        oracle.run("ALTER TABLE TWO ADD (MORE NUMBER(5))")
        source.windows()
        side_tables = dict(source.lake.side_tables)
    for name, memory in side_tables.items():
        table = DeltaSideTable(str(tmp_path), "src", name, no_fence)  # type: ignore[arg-type]
        window = memory.puts[-1]
        rows = memory.read(memory.schema.names, window)
        assert (table.position(), table.read(["scn_high"]).num_rows) == (None, 0)
        for _ in range(2):
            table.put(rows, window)
        delta = DeltaTable(table.path)
        assert (delta.version(), delta.transaction_version(f"redolake/src/{name}")) == (1, window)
        seen = duckdb.from_arrow(delta.to_pyarrow_table()).to_arrow_table()
        assert sorted(map(repr, seen.to_pylist())) == sorted(map(repr, rows.to_pylist()))
        table.put(rows.slice(1), window)
        table.put(rows.slice(0, 0), 1)
        assert table.read(["scn_high"]).num_rows == rows.num_rows - 1
        assert (DeltaTable(table.path).version(), table.position()) == (2, window)
        table.put(memory.read(memory.schema.names, memory.puts[0]).slice(0, 1), window + 1)
        before = sorted(map(repr, table.read(table.schema.names).to_pylist()))
        table.maintain(0)
        assert len(DeltaTable(table.path).file_uris()) == 1
        assert len(list(Path(table.path).glob("*.parquet"))) == 1
        assert sorted(map(repr, table.read(table.schema.names).to_pylist())) == before
        assert table.position() == window + 1
