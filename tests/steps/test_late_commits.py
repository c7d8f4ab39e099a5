"""A COMMIT that comes to light after its window, through the driver: it is applied, and the windows that lacked it are marked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from cdc_core.delta.appending import create_table
from cdc_core.delta.history import commits_after
from cdc_core.lake.tables import changelog_properties
from cdc_core.model.scn import ScnWindow
from cdc_core.stage.layout import change_schema
from cdc_core.steps.source_view import SourceView, logged_tables
from cdc_core.views.envelope import LoggedTable
from cdc_core.views.events import events_of
from cdc_core.views.transaction_order import TransactionLog, window_of
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

ONLINE = {"capture": {"close_at": "online"}}


cluster = oracle_with(
    "CREATE TABLE EMP (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(20))",
    *(f"INSERT INTO EMP VALUES ({key}, 'first')" for key in range(7)),
    threads=2,
)
"""Two instances, and a table of seven rows."""


def second_instance(oracle: Oracle) -> Any:
    connection = oracle.owner()
    connection.cursor().execute("BEGIN DBMS_REDOLAKE_FAULTS.USE_THREAD(2); END;")
    return connection


def test_a_commit_of_another_instance_that_comes_late_is_applied_under_what_came_after_it(
    cluster: Oracle, tmp_path: Path
) -> None:
    with source_of(cluster, tmp_path, "EMP", **ONLINE) as source:
        source.begin()
        source.windows()
        late = second_instance(cluster)
        for statement in (
            "INSERT INTO EMP VALUES (90, 'late')",
            "INSERT INTO EMP VALUES (91, 'late, and gone')",
            "UPDATE EMP SET NAME = 'late' WHERE ID = 1",
            "UPDATE EMP SET NAME = 'late' WHERE ID = 2",
            "UPDATE EMP SET ID = 50 WHERE ID = 3",
            "DELETE FROM EMP WHERE ID = 4",
        ):
            late.cursor().execute(statement)
        late.commit()
        cluster.run(
            "UPDATE EMP SET NAME = 'newer' WHERE ID IN (1, 5)", "DELETE FROM EMP WHERE ID = 91"
        )
        # The pass ends before the newest log of the second instance, as reported of online logs.
        cluster.server.faults.arm(Fault(FaultKind.SHORT_READ))
        [short] = source.windows()
        expected = source.oracle_rows("EMP", short.scn_high)
        assert _image(source) != expected, "nothing was hidden"
        assert source.pipeline.status().windows_inexact == 0, "nobody knows it yet"

        cluster.run("UPDATE EMP SET NAME = 'newest' WHERE ID = 5")
        windows = source.windows()
        source.check_current("EMP")
        store = source.pipeline.store
        marked = [one for one in store.windows.find() if one.inexact]
        assert [one.window for one in marked] == [short]
        [inexact] = [one.inexact for one in marked if one.inexact]
        assert (inexact.tables, inexact.window) == (("DEMO.EMP",), windows[0].key)
        assert short.scn_low < inexact.scn <= short.scn_high
        assert source.pipeline.status().windows_inexact == 1
        assert source.status("EMP").state == "ready"


def test_a_key_that_came_again_before_its_late_delete_is_right_after_a_resume(
    cluster: Oracle, tmp_path: Path
) -> None:
    """The insert meets a row that nothing has deleted, and the table stops; the window behind it has the delete."""
    with source_of(cluster, tmp_path, "EMP", **ONLINE) as source:
        source.begin()
        source.windows()
        late = second_instance(cluster)
        late.cursor().execute("DELETE FROM EMP WHERE ID = 4")
        late.cursor().execute("INSERT INTO EMP VALUES (90, 'late')")
        late.commit()
        cluster.run(
            "INSERT INTO EMP VALUES (4, 'again')", "UPDATE EMP SET NAME = 'newer' WHERE ID = 90"
        )
        cluster.server.faults.arm(Fault(FaultKind.SHORT_READ))
        source.windows()
        stopped = source.record("EMP")
        assert stopped.state == "failed"
        assert "an insert finds a row with its key" in (stopped.reason or "")
        cluster.run("UPDATE EMP SET NAME = 'newest' WHERE ID = 5")
        source.windows()
        assert source.record("EMP").state == "failed"
        source.pipeline.resume_tables([table_id("EMP")])
        source.run()
        assert source.record("EMP").state == "ready"
        source.check_current("EMP")


def test_what_a_snapshot_holds_is_not_applied_again_when_its_commit_comes_late(
    cluster: Oracle, tmp_path: Path
) -> None:
    with source_of(cluster, tmp_path, "EMP", **ONLINE) as source:
        source.begin()
        source.windows()
        late = second_instance(cluster)
        late.cursor().execute("INSERT INTO EMP VALUES (90, 'late')")
        late.cursor().execute("DELETE FROM EMP WHERE ID = 4")
        late.commit()
        cluster.server.faults.arm(Fault(FaultKind.SHORT_READ))
        source.windows()
        source.pipeline.resnapshot_tables([table_id("EMP")])
        cluster.run("DELETE FROM EMP WHERE ID = 90")
        source.run()
        cluster.run("UPDATE EMP SET NAME = 'newest' WHERE ID = 5")
        source.run()
        source.check_current("EMP")


def _image(source: Source) -> list[tuple[Any, ...]]:
    return source.lake.image(table_id("EMP"))


def test_a_transaction_that_comes_late_has_its_places_with_the_window_that_brings_it(
    cluster: Oracle, tmp_path: Path
) -> None:
    """Over two tables, once: in front of the transactions of that window, and in none before it."""
    cluster.run("CREATE TABLE DEPT (ID NUMBER(9) PRIMARY KEY)")
    with source_of(cluster, tmp_path, "EMP", "DEPT", **ONLINE) as source:
        source.begin()
        late = second_instance(cluster)
        for statement in (
            "INSERT INTO EMP VALUES (90, 'late')",
            "INSERT INTO DEPT VALUES (1)",
            "UPDATE EMP SET ID = 50 WHERE ID = 3",
        ):
            late.cursor().execute(statement)
        late.commit()
        cluster.run("UPDATE EMP SET NAME = 'quick' WHERE ID = 1")
        cluster.server.faults.arm(Fault(FaultKind.SHORT_READ))
        [short] = source.windows()
        cluster.run("INSERT INTO DEPT VALUES (2)")
        [whole] = source.windows()
        for name in ("EMP", "DEPT"):
            _write_log(source, name, (short, whole))
        config, store = source.pipeline.config, source.pipeline.store
        tables = logged_tables(config)
        log = TransactionLog(tables, SourceView(store, config).taken_up_to)
    assert [one.scn_high for one in log.windows(short.scn_low)] == [short.scn_high, whole.scn_high]
    counts = [
        [list(one["events"].values()) for one in log.changes(window).transactions()]
        for window in (short, whole)
    ]
    assert counts == [[[1]], [[1, 3], [1]]], "a change of key is two events"
    places = {one.table.name: _places_of(log, one, (short, whole)) for one in tables}
    assert places["EMP"] == [("u", 1, 1, 1), ("c", 1, 1, 1), ("d", 3, 2, 3), ("c", 4, 3, 3)]
    assert places["DEPT"] == [("c", 2, 1, 2), ("c", 1, 1, 1)]


def _write_log(source: Source, name: str, windows: Sequence[ScnWindow]) -> None:
    """A table's change log of the lake in memory as Delta, a commit for each window."""
    found = source.lake.tables[table_id(name)]
    assert found.schema is not None
    config = source.pipeline.config
    path = f"{config.lake.path}/{config.name}/changelog/{table_id(name).path}"
    columns = change_schema(found.schema)
    properties = changelog_properties(config.name, found.schema, 1)
    create_table(path, columns, properties, doing="creating", facts={})
    for window in windows:
        rows = [one for one in found.changes if one["_cdc_window"] == window.scn_high]
        if not rows:
            continue
        said = {"kind": "window", "scn_low": window.scn_low, "scn_high": window.scn_high}
        of_window = CommitProperties(custom_metadata={"userMetadata": json.dumps(said)})
        table = pa.Table.from_pylist(
            [{field.name: row.get(field.name) for field in columns} for row in rows], columns
        )
        write_deltalake(path, table, mode="append", commit_properties=of_window)


def _places_of(
    log: TransactionLog, logged: LoggedTable, windows: Sequence[ScnWindow]
) -> list[tuple[str, int, int, int]]:
    """Of each event of a change log: what it is, and its place in its transaction."""
    commits = commits_after(logged.path, -1, up_to=logged.log.version)
    orders = {one.scn_high: log.order(logged, one) for one in windows}
    found = []
    for commit, files in commits:
        window = window_of(commit)
        if window is None or window.scn_high not in orders:
            continue
        for event in events_of(logged, files):
            place = orders[window.scn_high].of(event)
            assert place is not None
            found.append((event.op, place.total_order, place.data_collection_order, place.change))
    return found
