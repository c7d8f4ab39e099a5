"""What do 1,000 random changes cost in a large mirror, beside the same in a small one?

The windows are landed by the tests' own table, of which only the rows that change are held in memory; the mirrors come from chunks
of made-up rows. The large mirror is measured as windows leave it, and again after ``redolake maintain``, which gives it deletion
vectors by itself. The result is right if every changed row, and their number, are what the windows say, read by delta-rs.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Form, Result, median_seconds
from cdc_core.config import LakeConfig, MaintenanceConfig
from cdc_core.lake.lake import Lake
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.schema.types import arrow_schema
from tests.stage.landed import Source, order, orders_schema

SMALL, LARGE, QUICK_LARGE = 100_000, 3_000_000, 600_000
CHANGES, WINDOWS, CHUNK_ROWS = 1_000, 5, 250_000
ALLOWED = 2.0


def rows(form: Form = Form.NORMAL) -> list[Result]:
    """Seconds of one window: before maintenance and after it."""
    large = QUICK_LARGE if form is Form.QUICK else LARGE
    with tempfile.TemporaryDirectory() as folder:
        small = _Table(Path(folder) / "small", SMALL)
        allowed = ALLOWED * small.seconds_of_a_window()
        table = _Table(Path(folder) / "large", large)
        before = table.seconds_of_a_window()
        table.maintain()
        after = table.seconds_of_a_window()
        correct = small.is_right() and table.is_right()
    question = f"{CHANGES:,} random changes into a mirror of {large:,} rows"
    against = f"{ALLOWED:g} times the same into {SMALL:,} rows"
    return [
        Result(
            name,
            ours,
            "s",
            against,
            allowed,
            goal=goal,
            correct=correct,
            higher_is_better=False,
        )
        for name, ours, goal in (
            (f"{question}, maintained", after, 1.0),
            (f"{question}, without maintenance", before, None),
        )
    ]


class _Table:
    """A mirror, and the windows that change ``CHANGES`` of its rows, the same ones each time."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count, self.folder = count, folder
        folder.mkdir()
        self.lake = Lake.open(LakeConfig(path=f"{folder}/lake", driver_memory="2g"), "shop")
        self.source = Source(folder / "landing", orders_schema())
        chosen = random.Random(count).sample(range(count), CHANGES)
        tx = self.source.begin()
        self.ids = [tx.insert(order(number, f"name {number}", note=None)) for number in chosen]
        tx.commit()
        scn = self.source.tick()
        self.source.low, self.source.pending, self.source.ended = scn, [], []
        path = folder / "part.parquet"
        for number, low in enumerate(range(0, count, CHUNK_ROWS)):
            pq.write_table(_rows(low, min(low + CHUNK_ROWS, count)), path)
            manifest = ChunkManifest(
                source="shop",
                schema=self.source.schema,
                snapshot_id="s1",
                number=number,
                scn=scn,  # type: ignore[arg-type]
                files=(),
                rows=CHUNK_ROWS,
                condition=None,
                seconds=0.0,
            )
            self.lake.apply_chunk(manifest, [str(path)])

    def seconds_of_a_window(self) -> float:
        """The median of some windows, after one that warms up."""
        work = self._window
        work()
        return median_seconds(work, repeats=WINDOWS)

    @property
    def _window(self) -> Callable[[], None]:
        def work() -> None:
            self.source.redo_paths.clear()
            tx = self.source.begin()
            for rid in self.ids:
                name = f"changed at {self.source.scn}"
                tx.update(rid, {"NAME": name})
            tx.commit()
            self.source.cut().apply(self.lake)

        return work

    def maintain(self) -> None:
        """As `redolake maintain` does by default; the mirror must get deletion vectors."""
        done, _ = self.lake.maintain(
            self.source.schema.table, MaintenanceConfig(vacuum_hours=None), ("ID",)
        )
        assert done.has_vectors, "maintenance left a large mirror with random changes as it was"

    def is_right(self) -> bool:
        """Does the mirror hold the changed rows as the last window left them, and all others as they were?"""
        mirror = self.folder / "lake" / "shop" / "mirror" / self.source.schema.table.path
        query = QueryBuilder().register("t", DeltaTable(str(mirror)))
        sql = 'select count(*) as n, count(distinct "ID") as k, sum(case when "NAME" like \'name %\' then 1 else 0 end) as same from t'
        [found] = pa.table(query.execute(sql).read_all()).to_pylist()
        changed = pa.table(
            query.execute('select "ID", "NAME" from t where "NAME" like \'changed%\'').read_all()
        )
        wanted = {row["ID"]: row["NAME"] for row in self.source.rows.values()}
        names = zip(changed["ID"].to_pylist(), changed["NAME"].to_pylist(), strict=True)
        counts = (found["n"], found["k"], found["same"])
        return counts == (self.count, self.count, self.count - CHANGES) and dict(names) == wanted


def _rows(low: int, high: int) -> pa.Table:
    ids = pa.array(range(low, high), pa.int64())
    names = pa.array([f"name {number}" for number in range(low, high)])
    amounts = pa.array([None] * (high - low), pa.decimal128(12, 2))
    notes = pa.array([None] * (high - low), pa.string())
    schema = arrow_schema(orders_schema())
    arrays = [
        array.cast(field.type)
        for array, field in zip((ids, names, amounts, notes), schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
