"""Unity Catalog's own client knows what Redolake sends to its REST API: the kinds of tables and columns, for each type of Oracle's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cdc_core.steps import Pipeline
from tests.lake.test_unity_names import _config as config_of
from tests.lake.test_unity_names import running_unity
from tests.oracle.embedded import running_oracle
from tests.peers import unity_client
from tests.peers.programs import NoEnvironmentError, environment

CLIENT = ("unitycatalog-client==0.7.0",)


@pytest.mark.slow
def test_the_client_knows_every_kind_of_column(tmp_path: Path) -> None:
    try:
        python = environment("unity", CLIENT)
    except NoEnvironmentError as error:
        pytest.skip(f"Unity Catalog's client cannot be installed: {error}")
    with running_oracle() as oracle, running_unity() as unity:
        oracle.run(
            "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), P NUMBER(12,2), N NUMBER, D DATE, T TIMESTAMP,"
            " L TIMESTAMP WITH LOCAL TIME ZONE, R RAW(4), F BINARY_DOUBLE, G BINARY_FLOAT, C CLOB)",
            "INSERT INTO ORDERS (ID) VALUES (1)",
        )  # fmt: skip
        with Pipeline(config_of(oracle, tmp_path, unity.uri)) as pipeline:
            list(pipeline.run_once())
            assert [one.failed for one in pipeline.register_tables()] == [None]
        bodies = tmp_path / "bodies.json"
        bodies.write_text(json.dumps(list(unity.tables.values())))
    done = subprocess.run(
        [str(python), unity_client.__file__, str(bodies)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["orders"] == {
        "ID": "LONG",
        "V": "STRING",
        "P": "DECIMAL",
        "N": "STRING",
        "D": "TIMESTAMP_NTZ",
        "T": "TIMESTAMP_NTZ",
        "L": "STRING",
        "R": "BINARY",
        "F": "DOUBLE",
        "G": "FLOAT",
        "C": "STRING",
        "_cdc_commit_scn": "LONG",
        "_cdc_ordinal": "LONG",
    }
    changes = found["orders_changes"]
    assert (changes["after"], changes["_cdc_absent"], changes["_cdc_thread"]) == ("STRUCT", "ARRAY", "INT")  # fmt: skip
