"""A COMMIT that comes to light after its window, through the driver: it is applied, and the windows that lacked it are marked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from cdc_core.config import SourceConfig
from cdc_core.delta.appending import create_table
from cdc_core.delta.history import commits_after
from cdc_core.lake.tables import changelog_properties
from cdc_core.model.scn import ScnWindow
from cdc_core.stage.layout import change_schema
from cdc_core.steps import Pipeline
from cdc_core.steps.source_view import SourceView, logged_tables
from cdc_core.steps.windows.shared import lacks_commits
from cdc_core.views.envelope import LoggedTable
from cdc_core.views.events import events_of
from cdc_core.views.transaction_order import TransactionLog, window_of
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_counted_rows_delta import check, no_spark

ONLINE = {"capture": {"close_at": "online"}}


@pytest.fixture
def cluster() -> Iterator[Oracle]:
    """Two instances, and a table of seven rows."""
    with running_oracle(threads=2) as oracle:
        oracle.run(
            "CREATE TABLE EMP (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(20))",
            *(f"INSERT INTO EMP VALUES ({key}, 'first')" for key in range(7)),
        )
        yield oracle


def second_instance(oracle: Oracle) -> Any:
    connection = oracle.owner()
    connection.cursor().execute("BEGIN DBMS_REDOLAKE_FAULTS.USE_THREAD(2); END;")
    return connection


def test_a_commit_of_another_instance_that_comes_late_is_applied_under_what_came_after_it(
    cluster: Oracle, tmp_path: Path
) -> None:
    with source_of(cluster, tmp_path, "EMP", **ONLINE) as source:
        source.run()
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
        source.run()
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
        assert "an insert meets a row of its key" in (stopped.reason or "")
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
        source.run()
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


@pytest.mark.parametrize("is_missed", [False, True], ids=["of-others", "of-a-row-that-goes"])
def test_equal_rows_of_a_commit_that_comes_late_are_counted_where_they_belong(
    cluster: Oracle, tmp_path: Path, *, is_missed: bool
) -> None:
    """A row that goes before its insert came to light stops the table; what brings the insert is right after a resume."""
    cluster.run(
        "CREATE TABLE LOOSE (A NUMBER(9), B VARCHAR2(9))",
        *("INSERT INTO LOOSE VALUES (1, 'same')" for _ in range(3)),
    )
    with source_of(cluster, tmp_path, **ONLINE) as source:
        source.configure({"name": "LOOSE", "identity": "all_columns"})
        source.run()
        source.windows()
        late = second_instance(cluster)
        for statement in (
            "INSERT INTO LOOSE VALUES (1, 'same')",
            "INSERT INTO LOOSE VALUES (9, 'late')",
            "DELETE FROM LOOSE WHERE A = 1 AND ROWNUM <= 2",
        ):
            late.cursor().execute(statement)
        late.commit()
        cluster.run("INSERT INTO LOOSE VALUES (1, 'same')")
        if is_missed:
            cluster.run("UPDATE LOOSE SET B = 'newer' WHERE A = 9")
        cluster.server.faults.arm(Fault(FaultKind.SHORT_READ))
        source.windows()
        assert source.record("LOOSE").state == ("failed" if is_missed else "ready")
        cluster.run("INSERT INTO LOOSE VALUES (1, 'same')", "DELETE FROM LOOSE WHERE A = 9")
        source.windows()
        if is_missed:
            source.pipeline.resume_tables([table_id("LOOSE")])
            source.run()
        assert source.record("LOOSE").state == "ready"
        found = source.lake.tables[table_id("LOOSE")]
        assert found.schema is not None
        rows = dict(found.rows)
        assert len(rows) == 4
        source.lake.rebuild_mirror(table_id("LOOSE"), found.schema)
        assert found.rows == rows
        assert sorted(number for _, number in rows) == [1, 2, 3, 4]


def _between_two_late_windows(cluster: Oracle, pipeline: Pipeline) -> list[ScnWindow]:
    """A window brings a commit of an earlier one, and lacks one itself, without which a row of it goes that is not there. The table stops until
    the third window has brought that commit, and comes back by a resume: the mirror takes the second of these windows. Returns all three."""
    same = "INSERT INTO LOOSE VALUES (1, 'same', 1)"
    list(pipeline.run_once())
    late = second_instance(cluster)
    for statement in ("INSERT INTO LOOSE VALUES (2, 'other', 2)", "DELETE FROM LOOSE WHERE A = 1"):
        late.cursor().execute(same)
        late.commit()
        cluster.run(statement)
        cluster.server.faults.arm(Fault(FaultKind.SHORT_READ))
        reports = list(pipeline.run_windows())
        cluster.run("ALTER SYSTEM ARCHIVE LOG CURRENT", user=ADMIN)
    assert any("does not have" in one.reason for report in reports for one in report.stopped)
    cluster.run("INSERT INTO LOOSE VALUES (3, 'last', 3)")
    list(pipeline.run_windows())
    pipeline.resume_tables([table_id("LOOSE")])
    windows = [one.window for one in pipeline.records.windows()][-3:]
    pipeline.apply_window(windows[1])
    return windows


def _is_known_to_lack_commits(pipeline: Pipeline) -> bool:
    ctx = pipeline
    return lacks_commits(ctx, ctx.table_record(table_id("LOOSE")))


def _loose(cluster: Oracle, path: Path, **lake: Any) -> SourceConfig:
    cluster.run(
        "CREATE TABLE LOOSE (A NUMBER(9), B VARCHAR2(40), C BINARY_DOUBLE)",
        "INSERT INTO LOOSE VALUES (0, 'first', 0)",
    )
    return cluster.config(
        path,
        tables=[{"name": "DEMO.LOOSE", "identity": "all_columns"}],
        lake=lake,
    )


def test_equal_rows_of_commits_that_come_late_one_after_the_other_are_counted(
    cluster: Oracle, tmp_path: Path
) -> None:
    """In Delta tables, without Spark. Replays in between find nothing to correct: the mirror is right as far as anybody knows."""
    with Pipeline(_loose(cluster, tmp_path), spark=no_spark) as pipeline:
        windows = _between_two_late_windows(cluster, pipeline)
        for window in (*windows[:2], windows[1]):
            [replayed] = pipeline.replay_window(window).tables
            assert replayed.skipped
        assert _is_known_to_lack_commits(pipeline)
        list(pipeline.run_once())
        assert not _is_known_to_lack_commits(pipeline)
        check(cluster, pipeline, tmp_path)
        for window in windows:
            [replayed] = pipeline.replay_window(window).tables
            assert replayed.skipped


@pytest.mark.slow
@pytest.mark.spark
def test_a_mirror_of_equal_rows_is_rebuilt_between_commits_that_come_late(
    cluster: Oracle, tmp_path: Path, spark_process: None
) -> None:
    with Pipeline(_loose(cluster, tmp_path)) as pipeline:
        _between_two_late_windows(cluster, pipeline)
        pipeline.rebuild_mirror(table_id("LOOSE"))
        list(pipeline.run_once())
        check(cluster, pipeline, tmp_path)


def test_a_transaction_that_comes_late_has_its_places_with_the_window_that_brings_it(
    cluster: Oracle, tmp_path: Path
) -> None:
    """Over two tables, once: in front of the transactions of that window, and in none before it."""
    cluster.run("CREATE TABLE DEPT (ID NUMBER(9) PRIMARY KEY)")
    with source_of(cluster, tmp_path, "EMP", "DEPT", **ONLINE) as source:
        source.run()
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
