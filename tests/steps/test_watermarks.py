"""Chunks that are read without a flashback query: what the load does before, at and behind the moment at which a chunk is read, the mirror
is the table as soon as the windows have passed it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import settings_block
from cdc_core.steps import Pipeline
from cdc_core.steps.snapshots import watermarks
from cdc_core.steps.source_checks import oracle_findings
from oracle_embedded.database import CAPTURE
from oracle_embedded.faults import Fault, FaultKind
from tests.lake.who_merges import no_spark
from tests.oracle.embedded import ADMIN, Oracle, running_oracle
from tests.steps.harness import source_of, table_id

BIG = "RPAD(TO_CLOB('x'), 3000, 'y') || RPAD(TO_CLOB('z'), 3000, 'w')"
BETWEEN: dict[str, Any] = {"read": "watermarks", "chunk_rows": 100}
AS_OF = 'FROM "DEMO"."T" AS OF SCN'


def at_watermarks(
    monkeypatch: pytest.MonkeyPatch,
    *,
    low: Callable[[], None] = lambda: None,
    high: Callable[[], None] = lambda: None,
    read: Callable[[], None] = lambda: None,
) -> None:
    """For the next chunk: do something behind the low watermark, before the high one is asked for (when the rows of the chunk are fixed), and
    before rows are read."""
    asked = 0

    def asking(session: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 3:
            high()
        scn = current_scn(session)
        if asked == 2:
            low()
        if asked == 3:
            read()
        return scn

    monkeypatch.setattr(watermarks, "current_scn", asking)


def _made(oracle: Oracle) -> None:
    oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, G NUMBER(9), C CLOB)")
    oracle.run(
        "INSERT INTO T (ID, G) SELECT LEVEL, LEVEL FROM DUAL CONNECT BY LEVEL <= 250",
        f"UPDATE T SET C = {BIG} WHERE ID < 20",
    )


def _load(oracle: Oracle, first: int) -> None:
    """All that can become of a row, by rows of one moment's own."""
    oracle.run(
        f"INSERT INTO T VALUES ({1000 + first}, 1, {BIG})",
        f"UPDATE T SET G = -1 WHERE ID = {first + 1}",
        f"DELETE FROM T WHERE ID = {first + 2}",
    )
    oracle.run(f"UPDATE T SET G = -2 WHERE ID = {1000 + first}")
    oracle.run(
        f"DELETE FROM T WHERE ID = {first + 3}",
        f"INSERT INTO T VALUES ({first + 3}, 7, 'new')",
        f"INSERT INTO T VALUES ({2000 + first}, 1, NULL)",
    )
    oracle.run(f"UPDATE T SET G = -3 WHERE ID = {first + 4}")
    oracle.run(f"DELETE FROM T WHERE ID IN ({2000 + first}, {first + 4})")


def _moments(oracle: Oracle, source: Pipeline, *, windows: bool) -> dict[str, Callable[[], None]]:
    """A load for each moment; a transaction is open at each, and commits behind it."""
    late = oracle.owner()

    def load(first: int) -> Callable[[], None]:
        def run() -> None:
            late.commit()
            late.cursor().execute(f"UPDATE T SET G = 99 WHERE ID = {first + 5}")
            _load(oracle, first)
            if windows:
                source.plan_windows()

        return run

    def last() -> None:
        load(40)()
        late.commit()
        late.close()

    return {"low": load(0), "high": load(10), "read": load(20), "last": last}


@pytest.mark.parametrize("windows", [False, True], ids=["in-one-window", "in-a-window-each"])
@pytest.mark.parametrize("how", [{}, {"cut": "rowid"}], ids=["key", "rowid"])
def test_changes_around_the_moment_of_a_chunk_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], windows: bool
) -> None:
    """A process that has lost its store finds out from landing up to which SCN the rows may have been read."""
    more = {"snapshot": {**BETWEEN, **how}}
    with running_oracle() as oracle, source_of(oracle, tmp_path, "T", **more) as source:
        _made(oracle)
        oracle.clock.ahead += 60  # LAST_DDL_TIME of ranges of ROWIDs is not near
        keys = source.pipeline.start_snapshot([table_id("T")])
        moments = _moments(oracle, source.pipeline, windows=windows)
        for key in keys:
            last = moments.pop("last", lambda: None)
            at_watermarks(monkeypatch, **moments)
            source.pipeline.snapshot_chunk(key)
            source.pipeline.apply_chunk(key)
            monkeypatch.undo()
            moments.clear()
            last()
        record = source.record("T")
        chunk, *_ = source.pipeline.store.chunks.find(table_id("T"))
        assert chunk.scn_high is not None
        assert chunk.scn < chunk.scn_high <= (record.consistent_scn or 0)
        assert source.status("T").consistent_from == record.consistent_scn
        source.pipeline.rebuild_state(replace=True)
        assert source.record("T").consistent_scn == record.consistent_scn
        source.run()
        source.check_followed("T")
        assert 1000 in {row[0] for row in source.lake.image(table_id("T"))}


def _check_delta(oracle: Oracle, pipeline: Pipeline) -> None:
    path = DEFAULT_PATHS.path("mirror", str(pipeline.config.lake.path), "src", table_id("T"))
    rows = pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist()
    found = sorted((int(row["ID"]), int(row["G"]), row["C"]) for row in rows)
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.outputtypehandler = lambda cursor, kind: (
            cursor.var(str, arraysize=cursor.arraysize) if kind.name == "C" else None
        )
        assert found == sorted(cursor.execute("SELECT ID, G, C FROM T").fetchall())


@pytest.mark.parametrize("windows", [False, True], ids=["in-one-window", "in-a-window-each"])
def test_chunks_are_appended_and_put_right_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, windows: bool
) -> None:
    with running_oracle() as oracle:
        _made(oracle)
        lake = {"path": str(tmp_path / "lake"), "rewrite_mirrors_up_to_mb": 128}
        config = oracle.config(tmp_path, "T", snapshot={**BETWEEN, "sessions": 1}, lake=lake)
        opened = partial(DeltaLake, spark=no_spark)
        sent: list[str] = []
        with Pipeline(config, open_lake=opened, on_statement=sent.append) as pipeline:
            moments = _moments(oracle, pipeline, windows=windows)
            last = moments.pop("last")
            at_watermarks(monkeypatch, **moments)
            reports = list(pipeline.run_snapshot())
            monkeypatch.undo()
            written = [one.tables[0].write for one in reports if one.kind == "chunk-applied"]
            assert len(written) > 1
            assert {one.way for one in written if one} == {"append"}
            plain = (
                "SELECT",
                "ALTER SESSION",
                "SET TRANSACTION READ ONLY",
                "ROLLBACK",
                "BEGIN SYS.DBMS_LOGMNR",
                settings_block(),
            )
            assert {sql for sql in map(str.lstrip, sent) if not sql.startswith(plain)} == set()
            past = {sql for sql in sent if AS_OF in sql}
            assert all("ROWNUM = 0" in sql for sql in past), "the doctor asks whether it could"
            last()
            list(pipeline.run_once())
            _check_delta(oracle, pipeline)


def test_chunks_that_replace_their_rows_are_put_right_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges of ROWIDs are not of the key, so that each chunk replaces its rows."""
    with running_oracle() as oracle:
        _made(oracle)
        config = oracle.config(tmp_path, "T", snapshot={**BETWEEN, "cut": "rowid", "sessions": 1})
        with Pipeline(config, open_lake=partial(DeltaLake, spark=no_spark)) as pipeline:
            moments = _moments(oracle, pipeline, windows=False)
            oracle.clock.ahead += 60  # LAST_DDL_TIME of ranges of ROWIDs is not near
            last = moments.pop("last")
            at_watermarks(monkeypatch, **moments)
            reports = list(pipeline.run_snapshot())
            monkeypatch.undo()
            assert not [one.stopped for one in reports if one.stopped]
            last()
            list(pipeline.run_once())
            _check_delta(oracle, pipeline)


def test_a_source_without_the_flashback_right_is_read(tmp_path: Path) -> None:
    """With ``flashback`` it is refused; with ``auto`` the doctor says what comes of it."""
    with running_oracle() as oracle:
        _made(oracle)
        oracle.run(f"REVOKE FLASHBACK ANY TABLE FROM {CAPTURE}", user=ADMIN)
        for reading, problems in (("flashback", 1), ("auto", 0), ("watermarks", 0)):
            more = {"snapshot": {**BETWEEN, "read": reading}}
            with source_of(oracle, tmp_path / reading, "T", **more) as source:
                found, _tables = oracle_findings(source.pipeline.config)
                rights = [one for one in found if "lacks FLASHBACK" in one.problem]
                assert [one.is_problem for one in rights] == [reading == "flashback"]
                if problems:
                    continue
                list(source.pipeline.run_snapshot())
                oracle.run("UPDATE T SET G = G + 1 WHERE ID < 50", "DELETE FROM T WHERE ID > 240")
                source.run()
                oracle.run(f"GRANT FLASHBACK ANY TABLE TO {CAPTURE}", user=ADMIN)
                source.check_followed("T")
                oracle.run(f"REVOKE FLASHBACK ANY TABLE FROM {CAPTURE}", user=ADMIN)


def test_auto_reads_between_watermarks_what_the_undo_does_not_reach(tmp_path: Path) -> None:
    more = {"snapshot": {**BETWEEN, "read": "auto"}}
    with running_oracle() as oracle, source_of(oracle, tmp_path, "T", **more) as source:
        _made(oracle)
        first, *others = source.pipeline.start_snapshot([table_id("T")])
        source.pipeline.snapshot_chunk(first)
        oracle.server.faults.arm(Fault(FaultKind.ORA_ERROR, sql_contains=AS_OF, code=1555, times=0))
        for key in others:
            source.pipeline.snapshot_chunk(key)
        oracle.server.faults.disarm_all()
        for key in (first, *others):
            source.pipeline.apply_chunk(key)
        chunks = source.pipeline.store.chunks.find(table_id("T"))
        assert [one.scn_high is None for one in chunks] == [True] + [False] * len(others)
        _load(oracle, 0)
        source.run()
        source.check_followed("T")


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param(["ALTER TABLE T ADD (D NUMBER(9) DEFAULT 5)", "UPDATE T SET D = 6"], id="add"),
        pytest.param(["TRUNCATE TABLE T", "INSERT INTO T VALUES (1, 1, 'behind')"], id="truncate"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("moment", ["low", "high", "read"])
def test_a_chunk_that_met_a_ddl_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ddl: list[str], moment: str
) -> None:
    more = {
        "snapshot": {**BETWEEN, "chunk_rows": 1000},
        "policies": {"on_truncate": "follow"},
    }
    with running_oracle() as oracle, source_of(oracle, tmp_path, "T", **more) as source:
        _made(oracle)

        def altered() -> None:
            for statement in ddl:
                oracle.run(statement)

        [key] = source.pipeline.start_snapshot([table_id("T")])
        at_watermarks(monkeypatch, **{moment: altered})
        source.pipeline.snapshot_chunk(key)
        monkeypatch.undo()
        source.run()
        source.run()
        source.check_current("T")
        assert len(source.lake.image(table_id("T"))) in (250, 1)


@pytest.mark.parametrize("code", [1466, 904, 8103, 1555])
def test_a_chunk_that_oracle_refuses_for_a_ddl_is_read_again(tmp_path: Path, code: int) -> None:
    """Oracle itself may notice the DDL, before the objects of the table are compared."""
    more = {"snapshot": {**BETWEEN, "chunk_rows": 1000}}
    with running_oracle() as oracle, source_of(oracle, tmp_path, "T", **more) as source:
        _made(oracle)
        [key] = source.pipeline.start_snapshot([table_id("T")])
        fault = Fault(FaultKind.ORA_ERROR, sql_contains='FROM "DEMO"."T"', code=code, times=2)
        oracle.server.faults.arm(fault)
        source.pipeline.snapshot_chunk(key)
        assert fault.seen >= 2
        source.run()
        source.check_current("T")


@pytest.mark.parametrize(
    ("columns", "table", "more", "reason"),
    [
        ("G NUMBER(9), C CLOB", {"surrogate_key": "G"}, {}, "that an UPDATE leaves alone"),
        (
            "G NUMBER(9), L LONG",
            {"surrogate_key": "G", "columns_as": {"L": "snapshot"}},
            {},
            "that an UPDATE leaves alone",
        ),
        ("G NUMBER(9)", {}, {"mode": "initial_only"}, "captures no changes"),
    ],
    ids=["surrogate-key-beside-lobs", "surrogate-key-beside-longs", "no-redo"],
)
def test_a_table_that_the_redo_does_not_put_right_is_refused(
    tmp_path: Path, columns: str, table: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    with running_oracle() as oracle:
        oracle.run(f"CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, {columns})")
        oracle.run("INSERT INTO T (ID, G) SELECT LEVEL, LEVEL FROM DUAL CONNECT BY LEVEL <= 250")
        snapshot = {"snapshot": {**BETWEEN, **more}}
        with source_of(oracle, tmp_path, "T", **snapshot) as source:
            source.configure({"name": "T", **table})
            source.pipeline.start_snapshot()
            record = source.record("T")
            assert record.state == "failed"
            assert reason in (record.reason or "")
            assert "flashback" in (record.way_out or "")
