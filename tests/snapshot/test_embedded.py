"""Chunks through the driver: every row once, as of the SCN, with exact values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from cdc_core.config import SnapshotConfig, SourceConfig
from cdc_core.config.snapshot import Cut
from cdc_core.errors import (
    ConfigError,
    OracleUnavailableError,
    SchemaMismatchError,
    SnapshotTooOldError,
)
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.manifest import MANIFEST_NAME, ChunkManifest, read_chunk_manifest
from cdc_core.landing.open import open_landing
from cdc_core.landing.store import LandingStore
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.scn import Scn
from cdc_core.model.signals import Signal
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import TableSchema
from cdc_core.signals.oracle_channel import OracleChannel
from cdc_core.snapshot import cutting
from cdc_core.snapshot.conditions import checked_condition
from cdc_core.snapshot.cutting import plan_chunks
from cdc_core.snapshot.plan import ChunkRange
from cdc_core.snapshot.read import FetchOptions, read_chunk, unread_chunk
from cdc_core.state.store import Store
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.backends import BACKENDS, Database, open_backend
from tests.oracle.embedded import Oracle, running_oracle
from tests.snapshot.landed_rows import user_columns


@pytest.fixture(scope="module", params=BACKENDS)
def oracle(request: pytest.FixtureRequest) -> Iterator[Database]:
    with open_backend(request.param) as oracle:
        yield oracle


_STAMP = "TO_TIMESTAMP(:1, 'YYYY-MM-DD HH24:MI:SS.FF6')"


class Reader:
    """Snapshots one table of a database and reads back what landed."""

    def __init__(self, oracle: Database, path: Path, table: str, **more: Any) -> None:
        self.config: SourceConfig = oracle.config(path, table, **more)
        self.session: OracleSession = oracle.capture_session(self.config)
        self.landing: LandingStore = open_landing(self.config.landing)
        self.scn = current_scn(self.session)

    def schema(self) -> TableSchema:
        return read_table_schema(self.session, self.config.tables[0], scn=self.scn)

    def plan(
        self, rows: int = 100, by: Literal["key", "rowid"] = "key", condition: str | None = None
    ) -> list[ChunkRange]:
        config = SnapshotConfig(chunk_rows=rows, cut=by)
        return plan_chunks(
            self.session, self.schema(), scn=self.scn, config=config, condition=condition
        )

    def read(
        self, chunk: ChunkRange, number: int = 0, condition: str | None = None
    ) -> tuple[ChunkManifest, pa.Table]:
        schema = self.schema()
        key = ChunkKey(schema.table, "s", number)
        unread = unread_chunk("src", schema, key, chunk, self.scn, condition)
        manifest = read_chunk(
            self.session, unread, chunk, self.landing, FetchOptions(rows=1000), masks={}
        )
        folder = chunk_folder("src", key)
        assert read_chunk_manifest(self.landing.read(folder, MANIFEST_NAME), where="") == manifest
        paths = self.landing.local_paths(folder, manifest.files)
        return manifest, pa.concat_tables([user_columns(path) for path in paths])

    def read_all(self, ranges: list[ChunkRange], condition: str | None = None) -> list[pa.Table]:
        return [self.read(one, at, condition)[1] for at, one in enumerate(ranges)]


def fill(oracle: Database, ddl: str, sql: str, rows: list[Any]) -> None:
    with oracle.owner() as connection:
        connection.cursor().execute(ddl)
        if rows:
            connection.cursor().executemany(sql, rows)
        connection.commit()


@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        pytest.param("K_NUMBER", "K NUMBER(10)", list(range(-300, 700)), id="number"),
        pytest.param("K_FLOAT", "K NUMBER", [Decimal(n) / 8 for n in range(1000)], id="fraction"),
        pytest.param("K_TEXT", "K VARCHAR2(20)", [f"{n:x}é'\"%" for n in range(1000)], id="text"),
        pytest.param("K_CHAR", "K CHAR(6)", [f"{n:x}" for n in range(1000)], id="char"),
        pytest.param(
            "K_DATE", "K DATE", [datetime(1999, 1 + n % 12, 1 + n % 28, n % 24, n // 24) for n in range(1000)],
            id="date",
        ),
        pytest.param(
            "K_STAMP", "K TIMESTAMP(6)", [f"2024-01-01 00:00:{n // 60:02}.{n:06}" for n in range(1000)],
            id="timestamp",
        ),
        pytest.param("K_RAW", "K RAW(4)", [n.to_bytes(4, "little") for n in range(1000)], id="raw"),
    ],
)  # fmt: skip
def test_every_row_is_in_one_chunk_whatever_the_keys_type(
    oracle: Database, tmp_path: Path, name: str, key: str, values: list[Any]
) -> None:
    distinct = sorted(set(values))
    fill(
        oracle,
        f"CREATE TABLE {name} ({key} PRIMARY KEY)",
        f"INSERT INTO {name} VALUES ({_STAMP if 'TIMESTAMP' in key else ':1'})",
        [(value,) for value in distinct],
    )
    reader = Reader(oracle, tmp_path, name)
    ranges = reader.plan(100)
    tables = reader.read_all(ranges)
    assert len(ranges) == -(-len(distinct) // 100)
    assert [table.num_rows for table in tables[:-1]] == [100] * (len(ranges) - 1)
    keys = [value for table in tables for value in table.column("K").to_pylist()]
    assert len(keys) == len(set(keys)) == len(distinct)


@pytest.fixture(scope="module")
def wide(oracle: Database) -> str:
    """A table with a key of two columns in another order than the table's."""
    fill(
        oracle,
        "CREATE TABLE WIDE (B VARCHAR2(5), V NUMBER(10,2), A NUMBER(5), PRIMARY KEY (A, B))",
        "INSERT INTO WIDE VALUES (:1, :2, :3)",
        [(f"b{n % 7}", Decimal(n) / 100, n // 7) for n in range(1000)],
    )
    return "WIDE"


@pytest.mark.parametrize("by", ["key", "rowid"])
def test_a_table_with_a_composite_key_is_cut_without_gap_or_overlap(
    oracle: Database, tmp_path: Path, wide: str, by: Literal["key", "rowid"]
) -> None:
    reader = Reader(oracle, tmp_path, wide)
    ranges = reader.plan(120, by)
    assert len(ranges) > 3
    assert (ranges[0].low, ranges[-1].high) == (None, None)
    tables = reader.read_all(ranges)
    assert sum(table.num_rows for table in tables) == 1000
    assert len({(row["A"], row["B"]) for table in tables for row in table.to_pylist()}) == 1000


def test_a_large_table_is_cut_by_a_sample_of_its_blocks(
    oracle: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks are of about the same size, and each row is in one; without statistics as large the keys are sorted."""
    monkeypatch.setattr(cutting, "_SAMPLED_PER_CHUNK", 50)
    numbers = [(number * 7 % 4001, "x" * 300) for number in range(4001)]
    fill(
        oracle,
        "CREATE TABLE SAMPLED (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(400))",
        "INSERT INTO SAMPLED VALUES (:1, :2)",
        numbers,
    )
    oracle.run("BEGIN DBMS_STATS.GATHER_TABLE_STATS(USER, 'SAMPLED'); END;")
    reader = Reader(oracle, tmp_path, "SAMPLED")
    config = SnapshotConfig(chunk_rows=500, sample_from_rows=4000)
    sampled = plan_chunks(reader.session, reader.schema(), scn=reader.scn, config=config)
    parts = [reader.read(chunk, at)[1]["ID"].to_pylist() for at, chunk in enumerate(sampled)]
    assert sorted(key for keys in parts for key in keys) == list(range(4001))
    assert 4 <= len(parts) <= 16
    assert max(map(len, parts)) < 2000
    whole = config.model_copy(update={"sample_from_rows": 4002})
    sorted_ = plan_chunks(reader.session, reader.schema(), scn=reader.scn, config=whole)
    assert [len(reader.read(one, 100 + at)[1]) for at, one in enumerate(sorted_)] == [500] * 8 + [1]


def cut(reader: Reader, cut: Cut, rows: int = 100, **more: Any) -> list[ChunkRange]:
    config = SnapshotConfig(cut=cut, chunk_rows=rows, **more)
    return plan_chunks(reader.session, reader.schema(), scn=reader.scn, config=config)


def ids(reader: Reader, ranges: list[ChunkRange]) -> list[list[int]]:
    """The values of ID in each chunk; each row is in one."""
    found = [table.column("ID").to_pylist() for table in reader.read_all(ranges)]
    assert len(one := [number for part in found for number in part]) == len(set(one))
    return found


def test_a_partitioned_table_is_cut_into_its_segments(oracle: Database, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE PARTED (ID NUMBER(9) PRIMARY KEY, G NUMBER(3)) PARTITION BY RANGE (ID) SUBPARTITION BY LIST (G)"
        " SUBPARTITION TEMPLATE (SUBPARTITION EVEN VALUES (0), SUBPARTITION ODD VALUES (1))"
        " (PARTITION LOW VALUES LESS THAN (100), PARTITION HIGH VALUES LESS THAN (MAXVALUE))",
        "INSERT INTO PARTED SELECT LEVEL, MOD(LEVEL, 2) FROM DUAL CONNECT BY LEVEL <= 300",
    )
    reader = Reader(oracle, tmp_path, "PARTED")
    ranges = cut(reader, "partition")
    assert {one.kind for one in ranges} == {"rowid"}
    wanted = [range(2, 100, 2), range(1, 100, 2), range(100, 301, 2), range(101, 301, 2)]
    assert sorted(map(sorted, ids(reader, ranges))) == sorted(map(list, wanted))


def test_a_table_without_partitions_is_cut_as_by_auto(oracle: Database, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE UNPARTED (ID NUMBER(9) PRIMARY KEY)",
        "INSERT INTO UNPARTED SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 250",
    )
    ranges = cut(Reader(oracle, tmp_path, "UNPARTED"), "partition")
    assert [one.kind for one in ranges] == ["key"] * 3


@pytest.mark.parametrize("is_sampled", [False, True])
def test_without_a_look_at_extents_rowids_of_the_rows_cut(
    oracle: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sampled: bool
) -> None:
    name = f"HIDDEN_{is_sampled}".upper()
    oracle.run(
        f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(300))",
        f"INSERT INTO {name} SELECT LEVEL, RPAD('x', 300, 'x') FROM DUAL CONNECT BY LEVEL <= 4000",
        f"BEGIN DBMS_STATS.GATHER_TABLE_STATS(USER, '{name}'); END;",
    )
    monkeypatch.setattr(cutting, "_SAMPLED_PER_CHUNK", 50)
    monkeypatch.setattr(cutting, "_extents", lambda *_: [])
    reader = Reader(oracle, tmp_path, name)
    ranges = cut(reader, "rowid", 1000, sample_from_rows=4000 if is_sampled else None)
    assert {one.kind for one in ranges} == {"rowid"}
    sizes = [len(part) for part in ids(reader, ranges)]
    assert sum(sizes) == 4000
    assert 2 <= len(sizes) <= 10 if is_sampled else sizes == [1000] * 4


def test_an_index_organized_table_is_cut_by_its_key(oracle: Database, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE ORGANIZED (ID NUMBER(9) PRIMARY KEY) ORGANIZATION INDEX",
        "INSERT INTO ORGANIZED SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 250",
    )
    reader = Reader(oracle, tmp_path, "ORGANIZED")
    ranges = cut(reader, "rowid")
    assert [one.kind for one in ranges] == ["key"] * 3
    assert sum(map(len, ids(reader, ranges))) == 250


def test_a_key_without_ranges_is_cut_by_rowids(oracle: Database, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE DOUBLES (D BINARY_DOUBLE PRIMARY KEY, ID NUMBER(9))",
        "INSERT INTO DOUBLES SELECT LEVEL / 7, LEVEL FROM DUAL CONNECT BY LEVEL <= 2500",
    )
    reader = Reader(oracle, tmp_path, "DOUBLES")
    ranges = cut(reader, "auto", 400)
    assert {one.kind for one in ranges} == {"rowid"}
    assert len(ranges) > 1
    assert sum(map(len, ids(reader, ranges))) == 2500
    with pytest.raises(ConfigError, match=r"snapshot\.cut"):
        cut(reader, "key", 400)


def test_a_surrogate_key_stands_for_the_key_where_a_table_has_it(
    oracle: Database, tmp_path: Path
) -> None:
    oracle.run(
        "CREATE TABLE NUMBERED (T VARCHAR2(40) PRIMARY KEY, ID NUMBER(9), N NUMBER(9))",
        "INSERT INTO NUMBERED SELECT 't' || LEVEL, LEVEL, CASE WHEN LEVEL > 30 THEN MOD(LEVEL, 90) END"
        " FROM DUAL CONNECT BY LEVEL <= 500",
    )
    reader = Reader(oracle, tmp_path, "NUMBERED")
    ranges = cut(reader, "auto", surrogate_key="n")
    assert {one.column for one in ranges} == {"N"}
    assert sum(map(len, ids(reader, ranges))) == 500
    assert {one.column for one in cut(reader, "key", surrogate_key="ELSEWHERE")} == {None}


def test_chunks_show_the_table_as_of_their_scn(oracle: Database, tmp_path: Path) -> None:
    rows = [(n, n) for n in range(250)]
    fill(oracle, "CREATE TABLE MOVING (ID NUMBER(5) PRIMARY KEY, V NUMBER(5))", "INSERT INTO MOVING VALUES (:1, :2)", rows)  # fmt: skip
    reader = Reader(oracle, tmp_path, "MOVING")
    oracle.run("DELETE FROM MOVING WHERE ID > 5", "UPDATE MOVING SET V = -1")
    oracle.run("INSERT INTO MOVING VALUES (1000, 0)")
    tables = reader.read_all(reader.plan(100))
    assert sorted(row for table in tables for row in table.column("V").to_pylist()) == list(
        range(250)
    )


def test_a_large_chunk_is_several_files(
    oracle: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle.run(
        "CREATE TABLE LARGE (ID NUMBER(9) PRIMARY KEY)",
        "INSERT INTO LARGE SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 2500",
    )
    monkeypatch.setattr("cdc_core.snapshot.read.FILE_ROWS_MAX", 1000)
    reader = Reader(oracle, tmp_path, "LARGE")
    manifest, rows = reader.read(ChunkRange.whole())
    assert [file.rows for file in manifest.files] == [1000, 1000, 500]
    assert sorted(rows.column("ID").to_pylist()) == list(range(1, 2501))


def test_an_empty_table_is_one_empty_chunk_with_the_schema(
    oracle: Database, tmp_path: Path
) -> None:
    fill(oracle, "CREATE TABLE EMPTY (ID NUMBER(5) PRIMARY KEY, T VARCHAR2(5))", "", [])
    reader = Reader(oracle, tmp_path, "EMPTY")
    for by in ("key", "rowid"):
        [chunk] = reader.plan(100, by)
        assert (chunk.low, chunk.high) == (None, None)
    manifest, table = reader.read(ChunkRange.whole())
    assert (manifest.rows, len(manifest.files)) == (0, 1)
    assert table.schema.types == [pa.int64(), pa.string()]


def test_values_are_exact_in_every_type(oracle: Database, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE EXACT_VALUES (ID NUMBER(5) PRIMARY KEY, N NUMBER, P NUMBER(38), S NUMBER(10,2), M NUMBER(5,-2),"
        " D DATE, T TIMESTAMP(6), T9 TIMESTAMP(9), R RAW(10), F BINARY_DOUBLE, C CLOB, H CHAR(4), V VARCHAR2(20))",
        "INSERT INTO EXACT_VALUES VALUES (1, 0.1234567890123456789012345678901234567890,"
        " 12345678901234567890123456789012345678, -0.05, 123449, DATE '2013-02-28',"
        " TIMESTAMP '2013-02-28 23:59:59.999999', TIMESTAMP '2013-02-28 23:59:59.123456789', HEXTORAW('00FF'), 0.1,"
        " 'long é', 'ab', 'x''y')",
        "INSERT INTO EXACT_VALUES (ID, N, C) VALUES (2, -1E-130, NULL)",
        "INSERT INTO EXACT_VALUES (ID, C) VALUES (3, EMPTY_CLOB())",
    )
    _, table = Reader(oracle, tmp_path, "EXACT_VALUES").read(ChunkRange.whole())
    first, second, third = sorted(table.to_pylist(), key=lambda row: row["ID"])
    assert third["C"] == ""
    assert first == {
        "ID": 1,
        "N": "0.123456789012345678901234567890123456789",
        "P": Decimal("12345678901234567890123456789012345678"),
        "S": Decimal("-0.05"),
        "M": 123400,
        "D": datetime(2013, 2, 28),
        "T": datetime(2013, 2, 28, 23, 59, 59, 999999),
        "T9": "2013-02-28 23:59:59.123456789",
        "R": b"\x00\xff",
        "F": 0.1,
        "C": "long é",
        "H": "ab  ",
        "V": "x'y",
    }
    assert second["N"] == "-0." + "0" * 129 + "1"
    assert {name for name, value in second.items() if value is not None} == {"ID", "N"}


def test_a_condition_limits_plan_and_rows(oracle: Database, tmp_path: Path, wide: str) -> None:
    reader = Reader(oracle, tmp_path, wide)
    condition = checked_condition("A < 10 OR B = 'b3'", reader.schema())
    tables = reader.read_all(reader.plan(100, condition=condition), condition)
    rows = [row for table in tables for row in table.to_pylist()]
    assert len(tables) == 3
    assert len(rows) == sum(n // 7 < 10 or n % 7 == 3 for n in range(1000))
    assert all(row["A"] < 10 or row["B"] == "b3" for row in rows)


def test_a_table_altered_after_the_scn_asks_for_a_new_snapshot(
    oracle: Database, tmp_path: Path
) -> None:
    fill(oracle, "CREATE TABLE ALTERED (ID NUMBER(5) PRIMARY KEY)", "", [])
    reader = Reader(oracle, tmp_path, "ALTERED")
    schema = reader.schema()
    oracle.run("ALTER TABLE ALTERED ADD (V NUMBER(5))")
    reader.schema = lambda: schema  # type: ignore[method-assign]
    with pytest.raises(SchemaMismatchError, match="redolake table resnapshot"):
        reader.read(ChunkRange.whole())


def test_a_table_that_is_not_there_is_named_with_near_names(
    oracle: Database, tmp_path: Path, wide: str
) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean .*DEMO\.WIDE"):
        Reader(oracle, tmp_path, "WIDTH").schema()


def test_a_signal_table_is_read_once(oracle: Database, tmp_path: Path, wide: str) -> None:
    oracle.run(
        "CREATE TABLE SIGNALS (ID VARCHAR2(42) PRIMARY KEY, TYPE VARCHAR2(32), DATA VARCHAR2(2048))",
        "INSERT INTO SIGNALS VALUES ('a', 'execute-snapshot', '{\"data-collections\": [\"DEMO.WIDE\"]}')",
        "INSERT INTO SIGNALS VALUES ('b', 'execute-snapshot', 'no json')",
        "INSERT INTO SIGNALS VALUES ('c-open', 'snapshot-window-open', '{}')",
        "INSERT INTO SIGNALS VALUES ('d', 'log', NULL)",
    )
    reader = Reader(oracle, tmp_path, wide, signals={"table": "DEMO.SIGNALS"})
    with Store.open(reader.config.state.url, "src") as store:
        _look(reader, store)
        found = store.signals.find()
        assert found[0] == Signal(
            id="a",
            source="src",
            type="execute-snapshot",
            data={"data-collections": ["DEMO.WIDE"]},
            channel="oracle",
        )
        assert [(one.id, one.state) for one in found] == [
            ("a", "pending"),
            ("b", "rejected"),
            ("d", "pending"),
        ]
        _look(reader, store)
        assert store.signals.find() == found
    with pytest.raises(ConfigError, match=r"signals\.table"):
        OracleChannel(reader.session, oracle.config(tmp_path, wide), Scn(1))


def _look(reader: Reader, store: Store) -> None:
    channel = OracleChannel(reader.session, reader.config, Scn(1))
    for signal in channel.read(store.signals):
        store.signals.add(signal)
    channel.acknowledge()


def test_scns_are_numbers_and_grow(oracle: Database, tmp_path: Path, wide: str) -> None:
    reader = Reader(oracle, tmp_path, wide)
    assert Scn(0) < reader.scn <= current_scn(reader.session)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        pytest.param(
            Fault(FaultKind.LOST_CONNECTION), OracleUnavailableError, id="connection-lost"
        ),
        pytest.param(Fault(FaultKind.ORA_ERROR, code=1555), SnapshotTooOldError, id="undo-gone"),
    ],
)
def test_a_chunk_that_fails_in_the_middle_leaves_nothing_and_can_be_read_again(
    tmp_path: Path, fault: Fault, error: type[Exception]
) -> None:
    """Faults are the embedded Oracle's."""
    with running_oracle() as oracle:
        fill(
            oracle,
            "CREATE TABLE MANY (ID NUMBER(5) PRIMARY KEY)",
            "INSERT INTO MANY VALUES (:1)",
            [(n,) for n in range(1000)],
        )
        _fail_once(oracle, tmp_path, fault, error)


def _fail_once(oracle: Oracle, tmp_path: Path, fault: Fault, error: type[Exception]) -> None:
    reader = Reader(oracle, tmp_path, "MANY")
    fault.sql_contains = "AS OF SCN"
    schema = reader.schema()
    oracle.server.faults.arm(fault)
    key, whole = ChunkKey(schema.table, "s", 0), ChunkRange.whole()
    unread = unread_chunk("src", schema, key, whole, reader.scn)
    with pytest.raises(error):
        read_chunk(reader.session, unread, whole, reader.landing, FetchOptions(rows=100), masks={})
    assert not reader.landing.exists(chunk_folder("src", key), MANIFEST_NAME)
    again = Reader(oracle, tmp_path, "MANY")
    assert again.read(ChunkRange.whole())[0].rows == 1000
