"""How much memory does the comparison of a large table with its mirror take?

Oracle's side comes in chunks, as ``redolake reconcile`` reads them; they are made up here, so that
the figure is that of the comparison alone. One row of the mirror has another value, so that the
comparison goes down to its key.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.common import Form, Result, measured
from cdc_core.config import LakeConfig
from cdc_core.lake.comparison.sides import added, suspects, total
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_schema
from tests.landing.facts import LANDED

ROWS = {Form.QUICK: 300_000, Form.NORMAL: 1_000_000, Form.LONG: 5_000_000}
CHUNK_ROWS = 250_000
DRIVER_MEMORY = "1g"
ALLOWED_MEGABYTES = 2048
"""The JVM's heap and as much again: for Spark's own memory outside of the heap, and for Python."""


def _number(name: str, precision: int | None, scale: int | None) -> Column:
    return Column(name, "NUMBER", 22, 0, precision, scale, nullable=False)


SCHEMA = TableSchema(
    TableId("BENCH", "LARGE"),
    Scn(1),
    (
        _number("ID", 12, 0),
        Column("NAME", "VARCHAR2", 40, 40, None, None, nullable=True),
        _number("AMOUNT", 14, 2),
        _number("BIG", 38, 0),
        _number("ANY", None, None),
        Column("NOTE", "VARCHAR2", 200, 200, None, None, nullable=True),
    ),
    ("ID",),
)


def rows(form: Form = Form.NORMAL) -> list[Result]:
    """Peak memory and time, measured in a process of its own."""
    count = ROWS[form]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        megabytes, seconds, correct = pool.apply(_measure, (count,))
    return [
        Result(
            f"peak memory of comparing {count:,} rows with their mirror, JVM and Python",
            megabytes,
            "MB",
            f"twice the driver's {DRIVER_MEMORY} of heap",
            ALLOWED_MEGABYTES,
            goal=1.0,
            correct=correct,
            higher_is_better=False,
        ),
        Result("the same: rows compared", count / seconds, "rows/s", "–", correct=correct),
    ]


def _measure(count: int) -> tuple[float, float, bool]:
    with tempfile.TemporaryDirectory() as folder:
        lake = DeltaLake(LakeConfig(path=f"{folder}/lake", driver_memory=DRIVER_MEMORY), "bench")
        for number, path in enumerate(_parts(count, Path(folder), damaged=True)):
            manifest = ChunkManifest(
                source="bench",
                schema=SCHEMA,
                snapshot_id="s100",
                number=number,
                scn=Scn(100),
                files=(),
                rows=min(CHUNK_ROWS, count - number * CHUNK_ROWS),
                condition=None,
                seconds=0.0,
                landed=LANDED,
            )
            lake.table(manifest.schema.table).apply_chunk(manifest, [path])
        with measured() as watch:
            comparison = lake.table(SCHEMA.table).comparison(
                SCHEMA, lake.table(SCHEMA.table).mirror_version_at(100)
            )
            delta = comparison.sums_of_mirror()
            parts = (_parts(count, Path(folder), damaged=False) for _ in range(2))
            oracle = added(comparison.sums_of_files([path]) for path in next(parts))
            wanted = suspects(oracle, delta, rows_max=comparison.rows_at_once)
            kept = []
            for number, path in enumerate(next(parts)):
                kept.append(f"{folder}/kept-{number}")
                comparison.keep_keys([path], wanted, kept[-1])
            found = comparison.differing_keys(kept, wanted, keys_max=10)
        correct = total(oracle).rows == total(delta).rows == count and found.keys == (
            (count // 2,),
        )
        return _peak_megabytes(), watch.seconds, correct


def _parts(count: int, folder: Path, *, damaged: bool) -> Iterator[str]:
    """Files of ``CHUNK_ROWS`` rows, one at a time on disk."""
    path = folder / "part.parquet"
    for low in range(0, count, CHUNK_ROWS):
        pq.write_table(_rows(low, min(low + CHUNK_ROWS, count), count // 2, damaged), path)
        yield str(path)


def _rows(low: int, high: int, at: int, damaged: bool) -> pa.Table:
    ids = pa.array(range(low, high), pa.int64())
    texts = pc.cast(ids, pa.string())
    amounts = [Decimal(i + (damaged and i == at)).scaleb(-2) for i in range(low, high)]
    columns: list[Any] = [
        ids,
        pc.binary_join_element_wise("name ", texts, ""),
        pa.array(amounts, pa.decimal128(14, 2)),
        pc.cast(ids, pa.decimal128(38, 0)),
        texts,
        pc.binary_repeat(texts, 8),
    ]
    schema = arrow_schema(SCHEMA)
    arrays = [array.cast(field.type) for array, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _peak_megabytes() -> float:
    """The highest resident memory that this process and each of its living children had."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return own + sum(_peak_of(child) for child in _children())


def _children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    texts = [(task / "children").read_text() for task in tasks]
    return [int(pid) for text in texts for pid in text.split()]


def _peak_of(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peak) / 1024
