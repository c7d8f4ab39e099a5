"""Every value is the same on the snapshot path and on the log path, through the driver, LogMiner and the decoder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.capture.logs.coverage import cover, read_logs, read_threads
from cdc_core.capture.logs.positions import upper_bound
from cdc_core.capture.passes.mining import mined_batches, mining
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.wanted_rows import WantedRows
from cdc_core.decode import decode_dml
from cdc_core.errors import DecodeError
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.open import open_landing
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.snapshot.plan import ChunkRange
from cdc_core.snapshot.read import FetchOptions, read_chunk, unread_chunk
from tests.oracle.backends import BACKENDS, Database, open_backend
from tests.oracle.embedded import wait_until
from tests.snapshot.landed_rows import user_columns

Row = dict[str, Any]


@pytest.fixture(scope="module", params=BACKENDS)
def oracle(request: pytest.FixtureRequest) -> Iterator[Database]:
    with open_backend(request.param) as oracle:
        yield oracle


class Paths:
    """Reads one table by both paths; made before the table's rows are written."""

    def __init__(self, oracle: Database, path: Path, table: str, **more: Any) -> None:
        found = oracle.config(path, table)
        [named] = found.tables
        self.config = found.model_copy(update={"tables": (named.model_copy(update=more),)})
        self.session = oracle.capture_session(self.config)
        self.start = current_scn(self.session)

    def snapshot(self) -> list[Row]:
        """The rows as a snapshot lands them, by ID."""
        scn = current_scn(self.session)
        schema = read_table_schema(self.session, self.config.tables[0], scn=scn)
        landing = open_landing(self.config.landing)
        whole = ChunkRange.whole()
        unread = unread_chunk("src", schema, ChunkKey(schema.table, "s", 0), whole, scn)
        manifest = read_chunk(
            self.session, unread, whole, landing, FetchOptions(rows=1000), masks={}
        )
        folder = chunk_folder("src", manifest.chunk_key)
        paths = landing.local_paths(folder, manifest.files)
        return _by_id([row for path in paths for row in user_columns(path).to_pylist()])

    def log(self) -> list[Row]:
        """The rows as the redo of their INSERTs means them, by ID."""
        now = current_scn(self.session)
        high = Scn(wait_until(now, lambda: upper_bound(self.session, "online")))
        schema = read_table_schema(self.session, self.config.tables[0], scn=now)
        with self.session.in_root():
            logs = cover(
                read_logs(self.session, self.start), read_threads(self.session), self.start, high
            )
            with mining(self.session, logs, self.start, high):
                wanted = WantedRows([schema], {}, False, Reading(self.start, None, {}))
                batches = list(mined_batches(self.session, wanted, high, rows=1000))
        redo = [
            row["sql_redo"]
            for batch in batches
            for row in batch.to_pylist()
            if row["operation_code"] in (Operation.INSERT, Operation.UPDATE)
        ]
        decoded = decode_dml(pa.array(redo), schema)
        rows: dict[int, Row] = {}
        # What an INSERT writes into a LOB follows as an UPDATE.
        for after, absent in zip(
            decoded.after.to_pylist(), decoded.absent.to_pylist(), strict=True
        ):
            carried = {name: value for name, value in after.items() if name not in absent}
            rows[after["ID"]] = {**after, **rows.get(after["ID"], {}), **carried}
        return _by_id(list(rows.values()))


def _by_id(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["ID"])


_NUMBERS = [
    "7",
    "1234567890123456789012345678",
    "12345678901234567890123456789",
    "12345678901234567890123456789012345678",
    "123456789012345678901234567890123456789",
    "1234567890123456789012345678901234567891",
    "0.1234567890123456789012345678901234567891",
    "0.00" + "3" * 40,
    "1.234567890123456789012345678901234567891E+99",
    "9.999999999999999999999999999999999999999E+125",
    "1E-130",
]


def test_numbers_are_equal_to_the_last_digit(oracle: Database, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE NUMBERS (ID NUMBER(5) PRIMARY KEY, N NUMBER, F FLOAT)")
    paths = Paths(oracle, tmp_path, "NUMBERS")
    numbers = [Decimal(sign + text) for text in _NUMBERS for sign in ("", "-")]
    with oracle.owner() as connection:
        # A FLOAT keeps 38 digits, to which the greatest NUMBER rounds out of range.
        connection.cursor().executemany(
            "INSERT INTO NUMBERS VALUES (:1, :2, :3)",
            [
                (at, number, number if number.adjusted() < 125 else None)
                for at, number in enumerate(numbers)
            ],
        )
        connection.commit()
    snapshot = paths.snapshot()
    assert [Decimal(row["N"]) for row in snapshot] == numbers
    assert paths.log() == snapshot


_DAYS = ["0001-01-01", "0999-12-31", "1500-02-28", "1582-10-04", "1582-10-15", "1969-12-31", "9999-12-31"]  # fmt: skip


def test_days_keep_their_labels_in_both_calendars(oracle: Database, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE DAYS (ID NUMBER(5) PRIMARY KEY, D DATE, T TIMESTAMP(6), T9 TIMESTAMP(9))"
    )
    paths = Paths(oracle, tmp_path, "DAYS")
    clock = "23:59:59"
    oracle.run(
        *[
            f"INSERT INTO DAYS VALUES ({at}, TO_DATE('{day} {clock}', 'YYYY-MM-DD HH24:MI:SS'),"
            f" TIMESTAMP '{day} {clock}.999999', TIMESTAMP '{day} {clock}.123456789')"
            for at, day in enumerate(_DAYS)
        ]
    )
    snapshot = paths.snapshot()
    assert snapshot == [
        {
            "ID": at,
            "D": datetime.fromisoformat(f"{day} {clock}"),
            "T": datetime.fromisoformat(f"{day} {clock}.999999"),
            "T9": f"{day} {clock}.123456789",
        }
        for at, day in enumerate(_DAYS)
    ]
    assert paths.log() == snapshot


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP(6)"])
@pytest.mark.parametrize(
    "day",
    [
        pytest.param("1500-02-29", id="julian-leap-day"),
        pytest.param("-0044-03-15", id="before-christ"),
        pytest.param("-4712-01-01", id="first-day"),
    ],
)
def test_a_day_that_delta_lacks_is_refused_on_both_paths_unless_it_is_text(
    oracle: Database, tmp_path: Path, kind: str, day: str
) -> None:
    name = f"LACKED_{kind[:4]}{kind[-2:-1]}_{day[-5:-3]}{day[1]}"
    oracle.run(f"CREATE TABLE {name} (ID NUMBER(5) PRIMARY KEY, V {kind})")
    paths = Paths(oracle, tmp_path, name)
    oracle.run(f"INSERT INTO {name} VALUES (1, DATE '{day}')")
    with pytest.raises(DecodeError, match="columns_exclude"):
        paths.snapshot()
    with pytest.raises(DecodeError):
        paths.log()
    assert current_scn(paths.session), "the session goes on"
    as_text = Paths(oracle, tmp_path, name, columns_as={"V": "text"})
    oracle.run(f"UPDATE {name} SET V = V + INTERVAL '1' SECOND")
    snapshot = as_text.snapshot()
    assert snapshot == [{"ID": 1, "V": f"{day} 00:00:01.000000000"}]
    assert as_text.log() == snapshot
