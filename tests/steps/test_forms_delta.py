"""Forms whose Delta types no column has by default, on every way into Delta tables; Oracle's own SQL says what they are worth."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.steps import Pipeline
from pipelines.metrics_server import exposition
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import table_id

T = table_id("T")
FORMS: dict[str, Any] = {
    "on_unfit_value": "null",
    "columns_as": {"RAWS": "text(WE8ISO8859P1)", "re:FLAG|ACTIVE": "boolean(>0)"},
    "types_as": {
        "TIMESTAMP WITH TIME ZONE": "instant+offset",
        "TIMESTAMP WITH LOCAL TIME ZONE": "instant",
        "DATE": "date",
    },
}
ROWS = (
    "TIMESTAMP '2018-03-27 01:34:56.007891 -11:00', TIMESTAMP '2018-03-27 01:34:56.5 +02:00', DATE '2024-02-29', 7, HEXTORAW('5AFC')",
    "TIMESTAMP '0001-01-01 14:00:00 +14:00', TIMESTAMP '1969-12-31 23:59:59.999999 +00:00', DATE '0001-01-01', -3, HEXTORAW('FF')",
    "TIMESTAMP '9999-12-31 11:59:59.999999 -12:00', NULL, DATE '9999-12-31', 0, NULL",
    "NULL, NULL, TO_DATE('2001-02-03 01', 'YYYY-MM-DD HH24'), 0, NULL",
    "NULL, NULL, NULL, NULL, NULL",
)
SHOWN = """SELECT ID, TO_CHAR(SYS_EXTRACT_UTC(AT), 'YYYY-MM-DD HH24:MI:SS.FF6'), TO_CHAR(AT, 'TZH:TZM'), TO_CHAR(SYS_EXTRACT_UTC(LOCAL), 'YYYY-MM-DD HH24:MI:SS.FF6'),
 TO_CHAR(DAY, 'YYYY-MM-DD'), SIGN(FLAG), RAWTOHEX(RAWS) FROM T AS OF SCN :scn
 WHERE MOD(ID, 10) <> 3 ORDER BY ID"""
UNFIT = 3
"""The row whose day has no place in the lake."""


@pytest.mark.spark
def test_forms_reach_delta_on_every_way(tmp_path: Path, spark_process: None) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, AT TIMESTAMP(6) WITH TIME ZONE, LOCAL TIMESTAMP(6) WITH LOCAL TIME ZONE,"
            " DAY DATE, FLAG NUMBER(1), RAWS RAW(10))",
            *(f"INSERT INTO T VALUES ({at}, {row})" for at, row in enumerate(ROWS)),
        )
        for way, rewritten_up_to_mb in enumerate((0, 128)):
            lake = {"history": "scd2", "rewrite_mirrors_up_to_mb": rewritten_up_to_mb}
            config = oracle.config(tmp_path, tables=[{"name": "DEMO.T", **FORMS}], lake=lake)
            with Pipeline(config) as pipeline:
                list(pipeline.run_once())
                first = 10 * (way + 1)
                oracle.run(
                    *(
                        f"INSERT INTO T (ID, AT, LOCAL, DAY, FLAG, RAWS) VALUES ({first + at}, {row})"
                        for at, row in enumerate(ROWS)
                    ),
                    "UPDATE T SET (AT, LOCAL, DAY, FLAG, RAWS) = (SELECT AT, LOCAL, DAY, FLAG, RAWS FROM T WHERE ID = 0) WHERE ID = 4",
                    "UPDATE T SET AT = NULL, DAY = DATE '1582-10-04' WHERE ID = 2",
                )
                if way:
                    oracle.run(
                        "ALTER TABLE T ADD (SINCE DATE DEFAULT DATE '2001-02-03', ACTIVE NUMBER(1) DEFAULT 1)"
                    )
                    oracle.run("UPDATE T SET FLAG = 1 WHERE ID = 1")
                list(pipeline.run_once())
                check(oracle, pipeline, tmp_path)
                told = exposition({"src": pipeline.measure})
                assert (
                    f'redolake_unfit_values_total{{source="src",table="DEMO.T"}} {way + 2}' in told
                )
                assert [one.differences for one in pipeline.reconcile().tables] == [0]
        with Pipeline(config) as pipeline:
            for window in [one.window for one in pipeline.records.windows()]:
                pipeline.replay_window(window)
            check(oracle, pipeline, tmp_path)
            pipeline.start_snapshot([T])
            list(pipeline.run_once())
            pipeline.rebuild_mirror(T)
            check(oracle, pipeline, tmp_path)
            assert {row[7:] for row in mirror(tmp_path)} == {(date(2001, 2, 3), True)}


def check(oracle: Oracle, pipeline: Pipeline, path: Path) -> None:
    record = pipeline.records.table(T)
    assert record is not None
    assert record.state == "ready", record.reason
    with oracle.owner() as connection, connection.cursor() as cursor:
        cursor.execute(SHOWN, scn=record.mirror_scn)
        expected = [
            (
                key,
                at and datetime.fromisoformat(f"{at}+00:00"),
                offset,
                local and datetime.fromisoformat(f"{local}+00:00"),
                day and date.fromisoformat(day),
                None if flag is None else flag > 0,
                raws and bytes.fromhex(raws).decode("latin-1"),
            )
            for key, at, offset, local, day, flag, raws in cursor
        ]
    rows = mirror(path)
    assert [row[:7] for row in rows if row[0] % 10 != UNFIT] == expected
    unfit = [row[1:6] for row in rows if row[0] % 10 == UNFIT]
    assert unfit == [(None, None, None, None, False)] * len(unfit)
    assert unfit


def mirror(path: Path) -> list[tuple[Any, ...]]:
    """The mirror's rows by key, as delta-rs reads them."""
    table = DeltaTable(str(path / "lake" / "src" / "mirror" / T.path))
    found = QueryBuilder().register("t", table).execute('SELECT * FROM t ORDER BY "ID"')
    rows = pa.table(found.read_all())
    names = [one for one in rows.schema.names if not one.startswith("_cdc_")]
    columns = [rows[name].to_pylist() for name in names]
    kinds = [str(rows.schema.field(name).type) for name in names[1:5]]
    assert (kinds[0], kinds[3]) == ("timestamp[us, tz=UTC]", "date32[day]")
    return list(zip(*columns, strict=True))
