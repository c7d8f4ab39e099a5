"""A change log is shown as Debezium's events, by two engines."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.delta.appending import create_table
from cdc_core.delta.history import commits_after, read_log
from cdc_core.lake.tables import changelog_properties
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.scn import SCN_MAX, Scn, ScnWindow
from cdc_core.stage.layout import change_schema
from cdc_core.stage.skipped_operations import SkipRules
from cdc_core.steps.snapshots.plan import start_snapshot
from cdc_core.steps.source_view import logged_tables, origin_of
from cdc_core.views.envelope import LoggedTable, Origin, events_sql
from cdc_core.views.events import envelope_json, events_of, key_json
from tests.jvm import small_session
from tests.oracle.embedded import running_oracle
from tests.steps.harness import Source as OracleSource
from tests.steps.harness import source_of, table_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cdc_core.lake.delta_lake import DeltaLake
    from cdc_core.schema.table import TableSchema
    from tests.stage.landed import Row, Source

SOURCE_FIELDS = [
    "version", "connector", "name", "ts_ms", "snapshot", "db", "sequence", "ts_us", "ts_ns", "schema", "table", "txId", "scn",
    "commit_scn", "lcr_position", "rs_id", "ssn", "redo_thread", "user_name", "redo_sql", "row_id", "commit_ts_ms", "start_scn",
    "start_ts_ms", "txSeq",
]  # fmt: skip
"""Of Debezium 3's Oracle connector, in its order."""


def events_by_duckdb(sql: str) -> list[dict[str, Any]]:
    """The query's rows in order; delta-rs reads the tables, so that DuckDB needs no extension."""
    with duckdb.connect() as connection:
        for number, path in enumerate(dict.fromkeys(re.findall(r"delta_scan\('([^']*)'\)", sql))):
            connection.register(f"t{number}", DeltaTable(path).to_pyarrow_table())
            sql = sql.replace(f"delta_scan('{path}')", f"t{number}")
        sql = (
            f"SELECT * FROM ({sql}) ORDER BY _cdc_commit_scn, _cdc_ordinal, transaction.total_order"
        )
        return connection.sql(sql).to_arrow_table().to_pylist()


def written(source: OracleSource, name: str) -> None:
    """Write a table's change log of the lake in memory as Delta, where the pipeline looks for it."""
    found = source.lake.tables[table_id(name)]
    assert found.schema is not None
    config = source.pipeline.config
    path = f"{config.lake.path}/{config.name}/changelog/{table_id(name).path}"
    columns = change_schema(found.schema)
    rows = [{field.name: row.get(field.name) for field in columns} for row in found.history]
    properties = changelog_properties(config.name, found.schema, 1)
    create_table(path, columns, properties, doing="creating", facts={})
    write_deltalake(path, pa.Table.from_pylist(rows, columns), mode="append")


def test_events_are_debeziums(tmp_path: Path) -> None:
    """Who changed what, when and in which transaction, numbered over all tables; a change of key is two events, one that
    changes nothing none."""
    more = {"lake": {"path": str(tmp_path / "lake")}, "events": {"skip_unchanged": True}}
    with running_oracle() as oracle, source_of(oracle, tmp_path, "ONE", "TWO", **more) as source:
        oracle.run(
            *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))" for name in ("ONE", "TWO")),
            "INSERT INTO ONE VALUES (1, 'old')",
        )  # fmt: skip
        source.run()
        with oracle.owner() as connection, connection.cursor() as cursor:
            connection.client_identifier = "till 7"
            cursor.execute("INSERT INTO TWO VALUES (5, 'a')")
            cursor.execute("UPDATE ONE SET ID = 2 WHERE ID = 1")
            cursor.execute("SAVEPOINT S")
            cursor.execute("INSERT INTO TWO VALUES (6, 'never')")
            cursor.execute("ROLLBACK TO SAVEPOINT S")
            cursor.execute("UPDATE TWO SET V = V WHERE ID = 5")
            cursor.execute("DELETE FROM TWO WHERE ID = 5")
            cursor.execute("UPDATE ONE SET V = 'new' WHERE ID = 2")
            connection.commit()
        source.windows()
        for name in ("ONE", "TWO"):
            written(source, name)
        query = source.pipeline.records.events_sql
        read, deleted, created, updated = events_by_duckdb(query(table_id("ONE"), "duckdb", "UTC"))
        of_two = events_by_duckdb(query(table_id("TWO"), "duckdb", "Europe/Berlin"))
        counts = [
            source.pipeline.lake.table(table_id(name)).count_events(ScnWindow(Scn(0), Scn(SCN_MAX)))
            for name in ("ONE", "TWO")
        ]
        [ledger] = source.pipeline.store.windows.find(newest_first=True, limit=1)
        manifest: WindowManifest = source.pipeline.window_manifest(ledger.window)[0]

    xid, at = updated["source"]["txId"], int(updated["source"]["commit_scn"])
    assert [one.to_pylist() for one in counts] == [
        [{"xid": xid, "commit_scn": at, "events": events}] for events in (2, 2)
    ]
    assert list(read)[:8] == ["before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]  # fmt: skip
    assert [one["key"] for one in (read, deleted, created, updated)] == [{"ID": key} for key in (1, 1, 2, 2)]  # fmt: skip
    assert [one["key"] for one in of_two] == [{"ID": 5}] * 2
    assert list(read["source"]) == SOURCE_FIELDS
    assert (read["op"], read["transaction"], read["source"]["snapshot"]) == ("r", None, "true")
    assert read["source"]["commit_scn"] is None
    assert read["source"]["scn"] == str(read["_cdc_commit_scn"])
    events = [deleted, created, updated]
    assert [(one["op"], one["before"] and one["before"]["ID"], one["after"] and one["after"]["ID"]) for one in events] == [
        ("d", 1, None), ("c", None, 2), ("u", 2, 2),
    ]  # fmt: skip
    assert [one["transaction"] for one in events] == [
        {"id": xid, "total_order": total, "data_collection_order": own}
        for total, own in ((2, 1), (3, 2), (5, 3))
    ]
    assert [
        (one["op"], one["transaction"]["total_order"], one["transaction"]["data_collection_order"])
        for one in of_two
    ] == [("c", 1, 1), ("d", 4, 2)]
    facts = updated["source"]
    assert (facts["connector"], facts["name"], facts["schema"], facts["table"]) == ("oracle", "src", "DEMO", "ONE")  # fmt: skip
    assert (facts["user_name"], facts["snapshot"], facts["redo_thread"], facts["txSeq"]) == ("DEMO", "false", 1, 4)  # fmt: skip
    assert int(facts["start_scn"]) <= int(facts["scn"]) < int(facts["commit_scn"])
    assert facts["start_ts_ms"] <= facts["ts_ms"] <= facts["commit_ts_ms"]
    assert facts["ts_ns"] == facts["ts_us"] * 1000 == facts["ts_ms"] * 1_000_000
    assert facts["ssn"] is not None
    assert facts["rs_id"].startswith("0x")
    assert manifest.landed is not None
    landed = datetime.fromisoformat(manifest.landed)
    assert updated["ts_us"] == round(landed.timestamp() * 1_000_000)
    # The database's clock is Berlin's, says this query: its times are an hour or two earlier than the same times of UTC.
    behind = deleted["source"]["ts_ms"] - of_two[-1]["source"]["ts_ms"]
    assert behind in (3_600_000, 7_200_000)
    history = source.lake.tables[table_id("ONE")].history
    assert {row["_cdc_client_id"] for row in history if row["_cdc_op"] != "r"} == {"till 7"}


def test_statements_are_kept_on_wish_without_what_must_not_land(tmp_path: Path) -> None:
    """Of changes, whatever their version of the table; both engines show them."""
    more = {"lake": {"path": str(tmp_path / "lake"), "change_log_columns": ["redo_sql"]}}
    hiding = {"name": "ONE", "columns_exclude": ["SECRET"], "columns_mask": {"V": "stars(3)"}}
    columns = "ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), SECRET VARCHAR2(20)"
    with running_oracle() as oracle, source_of(oracle, tmp_path, "ONE", **more) as source:
        oracle.run(f"CREATE TABLE ONE ({columns})", "INSERT INTO ONE VALUES (1, 'shy', 'hush')")
        source.configure(hiding)
        source.run()
        oracle.run("UPDATE ONE SET V = 'open', SECRET = 'hush2' WHERE ID = 1")
        oracle.run("ALTER TABLE ONE ADD (W NUMBER(3))", "INSERT INTO ONE VALUES (2, 'new', 'x', 5)")
        source.windows()
        written(source, "ONE")
        query = source.pipeline.records.events_sql(table_id("ONE"), "duckdb", "UTC")
        origin = origin_of(source.pipeline.store, source.pipeline.config, "UTC")
        [logged] = logged_tables(source.pipeline.config)
    commits = commits_after(logged.path, -1, up_to=logged.log.version)
    files = [name for _, added in commits for name in added]
    found = [one["source"]["redo_sql"] for one in events_by_duckdb(query)]
    read, updated, inserted = found
    assert read is None
    assert updated.startswith('update "DEMO"."ONE" set ')
    assert inserted.startswith('insert into "DEMO"."ONE"')
    assert "'5'" in inserted
    assert not [
        one for one in (updated, inserted) for word in ("hush", "shy", "open", "new") if word in one
    ]
    by_row = [envelope_json(event, logged.schema, origin) for event in events_of(logged, files)]
    assert [one["source"]["redo_sql"] for one in by_row] == found


def test_rows_of_snapshots_say_of_which_kind_and_when_they_were_read(tmp_path: Path) -> None:
    """The first snapshot, a blocking one and an ad hoc one; the query and who reads row by row say the same."""
    more = {"lake": {"path": str(tmp_path / "lake")}}
    with running_oracle() as oracle, source_of(oracle, tmp_path, "ONE", **more) as source:
        oracle.run("CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO ONE VALUES (1)")
        begun = datetime.now(UTC).timestamp() * 1000
        source.run()
        pipeline = source.pipeline
        for is_blocking in (True, False):
            start_snapshot(pipeline, [table_id("ONE")], is_blocking=is_blocking)
            source.run()
        oracle.run("DELETE FROM ONE")
        source.windows()
        written(source, "ONE")
        query = pipeline.records.events_sql(table_id("ONE"), "duckdb", "America/New_York")
        origin = origin_of(pipeline.store, pipeline.config, "America/New_York")
        [logged] = logged_tables(pipeline.config)
    commits = commits_after(logged.path, -1, up_to=logged.log.version)
    files = [name for _, added in commits for name in added]
    found = events_by_duckdb(query)
    by_row = [
        (envelope_json(event, logged.schema, origin), key_json(event, logged.schema))
        for event in events_of(logged, files)
    ]
    assert [(one["op"], one["source"]["snapshot"]) for one in found] == [
        ("r", "true"), ("r", "true"), ("r", "incremental"), ("d", "false"),
    ]  # fmt: skip
    at = [one["source"]["ts_ms"] for one in found[:3]]
    assert begun - 1 <= at[0] < at[1] < at[2] < datetime.now(UTC).timestamp() * 1000
    assert at == [one["ts_ms"] for one in found[:3]], "whatever the zone of the database's clock is"
    assert [(one["source"] | {"txSeq": None}, one["key"]) for one in found] == [
        (one["source"], key) for one, key in by_row
    ]


def test_what_an_event_does_not_carry_has_the_placeholder(tmp_path: Path) -> None:
    """Texts and bytes alone, as in Debezium; what is there or NULL stays as it is. Without a placeholder all of it is NULL."""
    more = {"lake": {"path": str(tmp_path / "lake")}}
    with running_oracle() as oracle, source_of(oracle, tmp_path, "ONE", **more) as source:
        oracle.run("CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), C CLOB, B BLOB)")
        source.run()
        oracle.run("INSERT INTO ONE VALUES (1, NULL, 'text', HEXTORAW('00FF'))")
        oracle.run("UPDATE ONE SET V = 'new' WHERE ID = 1")
        oracle.run("DELETE FROM ONE WHERE ID = 1")
        source.windows()
        written(source, "ONE")
        query = source.pipeline.records.events_sql
        shown = [
            events_by_duckdb(query(table_id("ONE"), "duckdb", "UTC", unavailable=placeholder))
            for placeholder in ("it's away", None)
        ]
    away, nothing = ("it's away", b"it's away"), (None, None)
    for events, absent in zip(shown, (away, nothing), strict=True):
        updated = next(one for one in events if one["op"] == "u" and one["after"]["V"] == "new")
        for image, value in (("before", None), ("after", "new")):
            found = updated[image]
            assert (found["V"], found["C"], found["B"]) == (value, *absent), image
        [deleted] = [one for one in events if one["op"] == "d"]
        assert (deleted["before"]["C"], deleted["before"]["B"], deleted["after"]) == (*absent, None)
        values = [one["after"]["C"] for one in events if one["op"] != "d"]
        assert "text" in values


def test_columns_have_the_names_of_now_in_events(tmp_path: Path) -> None:
    """A CLOB got the name of a text that was renamed, and neither is taken for the other in what an event lacks."""
    more = {"lake": {"path": str(tmp_path / "lake")}}
    with running_oracle() as oracle, source_of(oracle, tmp_path, "ONE", **more) as source:
        oracle.run("CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), C CLOB)")
        source.run()
        oracle.run("INSERT INTO ONE VALUES (1, 'v', 'text')")
        oracle.run("ALTER TABLE ONE RENAME COLUMN V TO W", "ALTER TABLE ONE RENAME COLUMN C TO V")
        oracle.run("UPDATE ONE SET W = 'new' WHERE ID = 1")
        source.windows()
        written(source, "ONE")
        query = source.pipeline.records.events_sql
        events = events_by_duckdb(query(table_id("ONE"), "duckdb", "UTC", unavailable="away"))
    assert events[0]["after"]["W"] == "v"
    assert events[-1]["after"] == {"ID": 1, "W": "new", "V": "away"}
    assert events[-1]["_cdc_absent"] == ["V"]


@pytest.mark.spark(merges=False)
def test_two_engines_show_the_same_events(
    open_lake: Callable[..., DeltaLake],
    source: Source,
    row: Callable[..., Row],
    changelog: Callable[[TableSchema], list[Row]],
    mirror: Callable[..., list[Row]],
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "lake" / "shop" / "changelog" / source.schema.table.path)
    lake = open_lake()
    tx = source.begin()
    first = tx.insert(row(1))
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    tx = source.begin()
    tx.insert(row(2, "it's"))
    tx.update(first, {"ID": 9})
    tx.commit()
    window = source.cut()
    window.apply(lake, skipping=SkipRules(operations=frozenset("c")))
    assert mirror(source.schema) == source.state(window.scn_high)
    read, *changes = sorted(changelog(source.schema), key=lambda one: str(one["_cdc_op"] != "r"))
    assert {one["_cdc_start_scn"] for one in changes} == {tx.start_scn}
    assert read["_cdc_start_scn"] is None
    log = read_log(path)
    assert log is not None
    origin = Origin(name="shop", database="PDB", version="1", time_zone="America/New_York")
    logged = LoggedTable(source.schema, path, log)
    by_engine = [events_sql(logged.table, [logged], origin, engine) for engine in ("spark", "duckdb")]  # fmt: skip
    spark = small_session(tmp_path / "lake")
    rows = spark.sql(by_engine[0]).orderBy("_cdc_commit_scn", "_cdc_ordinal", "transaction.total_order")  # fmt: skip
    by_spark = [one.asDict(recursive=True) for one in rows.collect()]
    assert by_spark == events_by_duckdb(by_engine[1])
    assert [one["op"] for one in by_spark] == ["r", "d", "c"]
    skipped = {one["after"]["ID"]: one["_cdc_skipped"] for one in changes}
    assert skipped == {2: "operation", 9: None}
    of_window = window.manifest.window
    assert lake.table(source.schema.table).count_events(of_window)["events"].to_pylist() == [1]
    at = datetime(2026, 1, 2, 8, 4, 6, tzinfo=UTC).timestamp()  # 03:04:06 in New York
    assert by_spark[-1]["source"]["commit_ts_ms"] == at * 1000
