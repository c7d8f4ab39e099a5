"""What a user of Debezium chooses, all of it in one table and on every way into Delta tables: tables by a regular expression, a hash as the
key, a converter of the user's own, folders by a template, and the statements of changes. Each is worked out anew from Oracle's rows."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from cdc_core.steps import Pipeline
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps import converters_of_users
from tests.steps.harness import table_id

SALT = "sea-salt"
NAMES = ("ORDERS_1", "ORDERS_22")
CHOICES: dict[str, Any] = {
    "tables": [
        {
            "name": r"re:DEMO\.ORDERS_\d+",
            "columns_mask": {"re:.*_CODE": "hash(sha256)"},
            "columns_as": {"re:.*_YN": f"{converters_of_users.__name__}:YesNo"},
        }
    ],
    "masks": {"salt": SALT},
    "snapshot": {"chunk_rows": 100},
}
LAKE = {
    "mirror_path": "now/{owner_lower}/{table}",
    "changelog_path": "{source}/log/{table_lower}",
    "change_log_columns": ["redo_sql"],
}
SECRETS = ("code-", "hidden")


@pytest.mark.spark
def test_choices_hold_on_every_way(tmp_path: Path, spark_process: None) -> None:
    with running_oracle() as oracle:
        for name in NAMES:
            oracle.run(
                f"CREATE TABLE {name} (ORDER_CODE VARCHAR2(80) PRIMARY KEY, PAID_YN CHAR(1), NOTE VARCHAR2(9))",
                f"INSERT INTO {name} SELECT 'code-' || LEVEL, 'Y', 'first' FROM DUAL CONNECT BY LEVEL <= 250",
            )
        oracle.run("CREATE TABLE ORDERS_OLD (ID NUMBER(9) PRIMARY KEY)")
        lake = {**LAKE, "path": str(tmp_path / "lake")}
        with Pipeline(oracle.config(tmp_path, **CHOICES, lake=lake)) as pipeline:
            list(pipeline.run_once())
            assert {one.table.name for one in pipeline.records.tables()} == {*NAMES}
            check(oracle, pipeline, tmp_path)
            for name in NAMES:
                oracle.run(
                    f"INSERT INTO {name} VALUES ('hidden', 'N', 'new')",
                    f"UPDATE {name} SET PAID_YN = 'N' WHERE ORDER_CODE = 'code-7'",
                    f"UPDATE {name} SET ORDER_CODE = 'hidden-8' WHERE ORDER_CODE = 'code-8'",
                    f"DELETE FROM {name} WHERE ORDER_CODE = 'code-9'",
                )
            list(pipeline.run_once())
            check(oracle, pipeline, tmp_path)
            for window in [one.window for one in pipeline.records.windows()]:
                pipeline.replay_window(window)
            check(oracle, pipeline, tmp_path)
            assert [one.differences for one in pipeline.reconcile().tables] == [0, 0]
            check_statements(tmp_path)
        excluding = [{**one, "columns_exclude": ["NOTE"]} for one in CHOICES["tables"]]
        config = oracle.config(tmp_path, **{**CHOICES, "tables": excluding}, lake=lake)
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            pipeline.purge_column(table_id(NAMES[0]), "NOTE")
            log = rows_of(tmp_path / "lake" / "src" / "log" / NAMES[0].lower())
            assert set(log["_cdc_redo_sql"].to_pylist()) == {None}, "each had a value of it"
    landed = [
        str(pq.read_table(one).to_pylist()) for one in (tmp_path / "landing").rglob("*.parquet")
    ]
    assert any("'" in text for text in landed)
    assert not any(secret in text for text in landed for secret in SECRETS)


def check(oracle: Oracle, pipeline: Pipeline, path: Path) -> None:
    """Each mirror is where the template puts it, and has Oracle's rows under the choices."""
    for name in NAMES:
        record = pipeline.records.table(table_id(name))
        assert record is not None
        assert record.state == "ready", record.reason
        with oracle.owner() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name} AS OF SCN :scn", scn=record.mirror_scn)
            expected = sorted(
                (sha256(f"{SALT}{code}".encode()).hexdigest(), paid == "Y", note)
                for code, paid, note in cursor
            )
        assert len(expected) >= 249
        found = rows_of(path / "lake" / "now" / "demo" / name)
        names = ("ORDER_CODE", "PAID_YN", "NOTE")
        assert sorted(zip(*(found[one].to_pylist() for one in names), strict=True)) == expected


def check_statements(path: Path) -> None:
    """Each change has its statement, without a value that must not land."""
    for name in NAMES:
        rows = rows_of(path / "lake" / "src" / "log" / name.lower())
        by_op = {"r": 0, "c": 0, "u": 0, "d": 0}
        for op, text in zip(
            rows["_cdc_op"].to_pylist(), rows["_cdc_redo_sql"].to_pylist(), strict=True
        ):
            by_op[op] += 1
            assert (text is None) == (op == "r")
            assert text is None or not any(one in text for one in SECRETS)
        assert by_op == {"r": 250, "c": 1, "u": 2, "d": 1}


def rows_of(path: Path) -> pa.Table:
    return DeltaTable(str(path)).to_pyarrow_table()
