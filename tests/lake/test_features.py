"""Mirrors get the features of Delta that readers ask for, lose them again, and go on meanwhile; change logs take those that others switch on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pydantic import ValidationError

from cdc_core.config import DeltaFeature, SourceConfig
from cdc_core.delta.history import read_log
from cdc_core.lake.maintenance.housekeeping import feature_properties
from cdc_core.lake.tables import FEATURES_PROPERTY, MAPPED
from cdc_core.steps import Pipeline
from tests.jvm import small_session
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.harness import table_id

FEATURES = ["row_tracking", "iceberg_compatibility", "change_data_feed"]
ON = {
    "delta.enableRowTracking": "true",
    "delta.enableIcebergCompatV2": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.columnMapping.mode": "name",
}


@pytest.mark.parametrize(
    ("wanted", "properties", "changed"),
    [
        pytest.param([], {}, {}, id="none"),
        pytest.param(
            ["row_tracking"],
            {},
            {"delta.enableRowTracking": "true", FEATURES_PROPERTY: '["row_tracking"]'},
            id="one",
        ),
        pytest.param(
            ["row_tracking"],
            {"delta.enableRowTracking": "true", FEATURES_PROPERTY: '["row_tracking"]'},
            {},
            id="it-has-it",
        ),
        pytest.param(
            [],
            {"delta.enableRowTracking": "true", FEATURES_PROPERTY: '["row_tracking"]'},
            {"delta.enableRowTracking": "false", FEATURES_PROPERTY: "[]"},
            id="no-more",
        ),
        pytest.param([], {"delta.enableRowTracking": "true"}, {}, id="of-somebody-else"),
        pytest.param(
            ["iceberg_compatibility"],
            {},
            {
                **MAPPED,
                "delta.enableIcebergCompatV2": "true",
                FEATURES_PROPERTY: '["iceberg_compatibility"]',
            },
            id="needs-mapping",
        ),
        pytest.param(
            ["iceberg_compatibility", "column_mapping"],
            {"delta.columnMapping.mode": "id"},
            {
                "delta.enableIcebergCompatV2": "true",
                FEATURES_PROPERTY: '["column_mapping", "iceberg_compatibility"]',
            },
            id="is-mapped",
        ),
    ],
)
def test_properties_follow_what_is_wanted(
    wanted: Sequence[DeltaFeature], properties: dict[str, str], changed: dict[str, str]
) -> None:
    assert feature_properties(wanted, properties) == changed


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            "INSERT INTO T SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 5",
        )
        yield running


def _config(oracle: Oracle, path: Path, *features: str, **of_source: Any) -> SourceConfig:
    table = {"name": f"{OWNER}.T", "delta_features": list(features)}
    return oracle.config(path, tables=[table], maintenance={"vacuum_hours": None, **of_source})


def test_deletion_vectors_and_iceberg_exclude_each_other(oracle: Oracle, tmp_path: Path) -> None:
    """Said of the source, of a table, or of both; a table may say otherwise than the source."""
    for more in (
        {"tables": [{"name": f"{OWNER}.T", "delta_features": FEATURES}], "maintenance": {"deletion_vectors": "always"}},
        {"tables": [{"name": f"{OWNER}.T", "deletion_vectors": "always"}], "maintenance": {"delta_features": FEATURES}},
        {"maintenance": {"delta_features": FEATURES, "deletion_vectors": "always"}},
    ):  # fmt: skip
        with pytest.raises(ValidationError, match="forbids deletion vectors"):
            oracle.config(tmp_path, "T", **more)
    config = _config(oracle, tmp_path, deletion_vectors="always")
    assert config.deletion_vectors(table_id("T")) == "always"
    config = _config(oracle, tmp_path, *FEATURES)
    assert config.deletion_vectors(table_id("T")) == "never"
    maintenance = config.maintenance_of(table_id("T"))
    assert (maintenance.deletion_vectors, list(maintenance.delta_features)) == ("never", FEATURES)


def _window(oracle: Oracle, pipeline: Pipeline, *statements: str) -> None:
    oracle.run(*statements)
    list(pipeline.run_once())
    assert [one.differences for one in pipeline.reconcile().tables] == [0]


def _path(tmp_path: Path, layer: str) -> str:
    return str(tmp_path / "lake" / "src" / layer / "demo.t")


def _properties(path: str) -> dict[str, str]:
    log = read_log(path)
    assert log is not None
    return dict(log.properties)


def _row_ids(config: SourceConfig, path: str, key: str = "ID") -> dict[Any, int]:
    sql = f"SELECT {key}, _metadata.row_id FROM delta.`{path}`"
    return {row[0]: row[1] for row in small_session(config.lake).sql(sql).collect()}


@pytest.mark.spark
def test_a_mirror_gets_features_and_loses_them(
    oracle: Oracle, tmp_path: Path, spark_process: None
) -> None:
    del spark_process
    config, path = _config(oracle, tmp_path, *FEATURES), _path(tmp_path, "mirror")
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        assert FEATURES_PROPERTY not in _properties(path)
        list(pipeline.maintain())
        assert ON.items() <= _properties(path).items()
        version = DeltaTable(path).version()
        list(pipeline.maintain())
        assert DeltaTable(path).version() == version, "it has what it is to have"
        ids = _row_ids(config, path)
        _window(oracle, pipeline, "UPDATE T SET V = 'second' WHERE ID = 2", "DELETE FROM T WHERE ID = 3", "INSERT INTO T VALUES (6, 'new')")  # fmt: skip
        after = _row_ids(config, path)
        assert {key: after[key] for key in (1, 2, 4, 5)} == {key: ids[key] for key in (1, 2, 4, 5)}
        assert after[6] not in ids.values()
        _window(oracle, pipeline, "ALTER TABLE T ADD (W NUMBER(5))", "UPDATE T SET W = 7 WHERE ID = 1")  # fmt: skip
        pipeline.rebuild_mirror(table_id("T"))
        assert ON.items() <= _properties(path).items()
        assert all(number > 0 for name in DeltaTable(path).file_uris() for number in _numbers(name))
        _window(oracle, pipeline, "UPDATE T SET W = 8 WHERE ID = 2")
    with Pipeline(_config(oracle, tmp_path)) as pipeline:
        list(pipeline.maintain())
        said = _properties(path)
        assert {name for name in ON if said.get(name) == "true"} == set()
        assert (said["delta.columnMapping.mode"], said[FEATURES_PROPERTY]) == ("name", "[]")
        _window(oracle, pipeline, "UPDATE T SET W = 9 WHERE ID = 2")


def _numbers(file: str) -> list[int]:
    """The numbers of a file's columns and their parts, which readers of Iceberg go by; 0 without one."""
    schema = pq.read_schema(file)
    return [number for one in schema for number in _numbers_of(one)]


def _numbers_of(one: pa.Field) -> Iterator[int]:
    yield int((one.metadata or {}).get(b"PARQUET:field_id", 0))
    if pa.types.is_struct(one.type):
        for part in one.type:
            yield from _numbers_of(part)
    elif pa.types.is_list(one.type):
        yield from _numbers_of(one.type.value_field)


@pytest.mark.spark
def test_a_change_log_takes_features_of_others(
    oracle: Oracle, tmp_path: Path, spark_process: None
) -> None:
    """Redolake appends to it: each new row has an ID that no other has, through a checkpoint too, and each new file numbers for Iceberg."""
    del spark_process
    config, path = oracle.config(tmp_path, "T"), _path(tmp_path, "changelog")
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        spark = small_session(config.lake)
        for properties in (
            "'delta.enableRowTracking' = 'true', 'delta.checkpointInterval' = '2'",
            "'delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true'",
        ):
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({properties})")
        before = set(DeltaTable(path).file_uris())
        for number in range(5):
            _window(oracle, pipeline, f"INSERT INTO T VALUES ({10 + number}, 'new')", f"UPDATE T SET V = 'again {number}' WHERE ID = 1")  # fmt: skip
        added = set(DeltaTable(path).file_uris()) - before
        assert len(added) == 5
        assert all(number > 0 for name in added for number in _numbers(name))
        keys = "struct(_cdc_commit_scn, _cdc_ordinal, after.ID)"
        ids = _row_ids(config, path, keys)
        assert len(ids) == len(set(ids.values())) == 15
        assert list(Path(path, "_delta_log").glob("*.checkpoint.parquet"))
        spark.sql(f"OPTIMIZE delta.`{path}`")
        assert _row_ids(config, path, keys) == ids, "each row keeps its ID for life"
        _window(oracle, pipeline, "DELETE FROM T WHERE ID = 1", "ALTER TABLE T ADD (W NUMBER(5))", "INSERT INTO T VALUES (20, 'x', 3)")  # fmt: skip
        found = _row_ids(config, path, keys)
        assert ids.items() <= found.items()
        assert len(found) == len(set(found.values())) == 17
        rows = QueryBuilder().register("t", DeltaTable(path)).execute("select count(*) as n from t")
        assert pa.table(rows.read_all())["n"].to_pylist() == [17]
