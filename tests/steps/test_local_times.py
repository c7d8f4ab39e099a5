"""Times with zone in rows from before a DDL, in databases whose time zone is not UTC: through the driver, LogMiner and the stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.model.scn import Scn
from cdc_core.schema.dictionary import read_table_schema
from oracle_embedded.database import ADMIN
from oracle_embedded.redo import DEFAULT_WARTS
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

_COLUMNS = (
    "ID NUMBER(9) PRIMARY KEY, L TIMESTAMP(9) WITH LOCAL TIME ZONE, S TIMESTAMP(0) WITH LOCAL TIME ZONE, "
    "Z TIMESTAMP(6) WITH TIME ZONE"
)
_VALUES = (
    ("TIMESTAMP '2024-01-01 00:10:00.123456789 +00:00'", "2024-01-01 00:10:00.123456789 +00:00"),
    ("TIMESTAMP '2024-02-29 23:59:59.000000000 +00:00'", "2024-02-29 23:59:59.000000000 +00:00"),
    ("TIMESTAMP '2024-10-27 00:30:00.500000000 +00:00'", "2024-10-27 00:30:00.500000000 +00:00"),
    ("TIMESTAMP '2024-10-27 01:30:00.500000000 +00:00'", "2024-10-27 01:30:00.500000000 +00:00"),
    ("TIMESTAMP '0001-06-15 05:00:00.000000001 +00:00'", "0001-06-15 05:00:00.000000001 +00:00"),
    ("TIMESTAMP '9999-06-15 20:00:00.999999999 +00:00'", "9999-06-15 20:00:00.999999999 +00:00"),
)


def _fill(oracle: Oracle, first: int = 1) -> None:
    for at, (literal, _) in enumerate(_VALUES, first):
        oracle.run(f"INSERT INTO T (ID, L, S, Z) VALUES ({at}, {literal}, {literal}, {literal})")
    oracle.run(f"INSERT INTO T (ID) VALUES ({first + len(_VALUES)})")


def _check(source: Source, first: int = 1) -> None:
    source.check_current("T")
    rows = source.lake.tables[table_id("T")].rows
    read = [rows[at,][0]["L"] for at in range(first, first + len(_VALUES))]
    assert read == [text for _, text in _VALUES]


@pytest.mark.parametrize("zone", ["+00:00", "+02:00", "-05:30", "+13:45", "-12:00", "UTC"])
def test_local_times_from_before_a_ddl_are_read_in_the_zone_of_the_database(
    tmp_path: Path, zone: str
) -> None:
    """LogMiner prints the bytes of the block, a wall clock in DBTIMEZONE."""
    with running_oracle(warts=DEFAULT_WARTS, time_zone=zone) as oracle:
        oracle.run(f"CREATE TABLE T ({_COLUMNS})")
        _fill(oracle, 100)
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            _check(source, 100)
            _fill(oracle)
            oracle.run("UPDATE T SET Z = TIMESTAMP '2024-07-01 12:00:00 +05:45' WHERE ID = 1")
            oracle.run("UPDATE T SET L = L + 1 WHERE ID = 2", "UPDATE T SET L = L - 1 WHERE ID = 2")
            oracle.run("ALTER TABLE T ADD (EXTRA NUMBER(9))")
            _fill(oracle, 200)
            source.windows()
            _check(source)
            _check(source, 200)


def test_several_ddls_of_one_window_keep_the_zone(tmp_path: Path) -> None:
    """The versions in between are read from the texts of the DDL."""
    with running_oracle(warts=DEFAULT_WARTS, time_zone="+02:00") as oracle:
        oracle.run(f"CREATE TABLE T ({_COLUMNS})")
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            _fill(oracle)
            oracle.run("ALTER TABLE T ADD (M TIMESTAMP(3) WITH LOCAL TIME ZONE)")
            _fill(oracle, 100)
            oracle.run("UPDATE T SET M = L WHERE ID BETWEEN 2 AND 4")
            oracle.run("ALTER TABLE T ADD (EXTRA NUMBER(9))")
            _fill(oracle, 200)
            oracle.run("ALTER TABLE T DROP COLUMN EXTRA")
            source.windows()
            for first in (1, 100, 200):
                _check(source, first)


def test_rows_keep_the_zone_in_which_they_were_written(tmp_path: Path) -> None:
    """The zone changes while no column keeps it; what was written before is decoded again by its own definition."""
    with running_oracle(warts=DEFAULT_WARTS, time_zone="+02:00") as oracle:
        oracle.run(f"CREATE TABLE T ({_COLUMNS})")
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            _fill(oracle)
            oracle.run("ALTER TABLE T ADD (EXTRA NUMBER(9))")
            source.windows()
            _check(source)
            _fill(oracle, 100)
            oracle.run("ALTER TABLE T DROP (L, S)")
            oracle.run("ALTER DATABASE SET TIME_ZONE = '-08:00'", user=ADMIN)
            source.pipeline.database.close()  # it holds after a restart, which no session survives
            source.windows()
            source.check_current("T")
            oracle.run("ALTER TABLE T ADD (N TIMESTAMP(9) WITH LOCAL TIME ZONE)")
            source.windows()
            for at, (literal, _) in enumerate(_VALUES, 200):
                oracle.run(f"INSERT INTO T (ID, N) VALUES ({at}, {literal})")
            oracle.run("ALTER TABLE T ADD (LAST NUMBER(9))")
            source.windows()
            source.check_current("T")
            rows = source.lake.tables[table_id("T")].rows
            read = [rows[at,][0]["N"] for at in range(200, 200 + len(_VALUES))]
            assert read == [text for _, text in _VALUES]


def test_a_region_as_the_zone_of_the_database_stops_the_table_and_a_snapshot_brings_it_back(
    tmp_path: Path,
) -> None:
    """An hour of its autumn comes twice, so bytes do not say which moment they are."""
    with running_oracle(warts=DEFAULT_WARTS, time_zone="Europe/Berlin") as oracle:
        oracle.run(f"CREATE TABLE T ({_COLUMNS})")
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            _fill(oracle)
            source.windows()
            _check(source)
            _fill(oracle, 100)
            oracle.run("ALTER TABLE T ADD (EXTRA NUMBER(9))")
            source.windows()
            status = source.status("T")
            assert "which is a region" in str(status), "not silently another hour"
            source.pipeline.resnapshot_tables([table_id("T")])
            source.run()
            _check(source)
            _check(source, 100)


def test_a_past_definition_takes_the_zone_of_now_only_with_a_column_that_kept_it(
    tmp_path: Path,
) -> None:
    """DBTIMEZONE has no past; a column that is there still says that it was the same."""
    with running_oracle(warts=DEFAULT_WARTS, time_zone="+02:00") as oracle:
        oracle.run(f"CREATE TABLE T ({_COLUMNS})")
        with source_of(oracle, tmp_path, "T") as source:
            config = source.pipeline.config.table(table_id("T"))
            past = Scn(oracle.database.engine.current_scn())

            def zone_then() -> str:
                with source.pipeline.database.session() as session:
                    return read_table_schema(session, config, scn=past).time_zone

            oracle.run("ALTER TABLE T DROP COLUMN L")
            assert zone_then() == "+02:00"
            oracle.run("ALTER TABLE T DROP COLUMN S")
            oracle.run("ALTER DATABASE SET TIME_ZONE = '-08:00'", user=ADMIN)
            assert zone_then() == ""
            oracle.run("ALTER TABLE T ADD (N TIMESTAMP(9) WITH LOCAL TIME ZONE)")
            assert zone_then() == ""
