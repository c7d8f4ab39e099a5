"""What do 1,000 random changes cost in a large mirror, beside the same in a small one?

The windows are landed by the tests' own table, of which only the rows that change are held in
memory; the mirrors come from chunks of made-up rows. They are merged as Redolake does it by
default, without Spark, and by Spark alone; the large mirror is measured as windows leave it, and
again after ``redolake maintain``, which gives it deletion vectors by itself. The result is right if
every changed row, and their number, are what the windows say, read by delta-rs.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Cost, Form, Result, repeated
from cdc_core.config import LakeConfig, MaintenanceConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.schema.types import arrow_schema
from tests.landing.facts import LANDED
from tests.stage.landed import Source, order, orders_schema

SMALL = 100_000
LARGE = {Form.QUICK: (600_000,), Form.NORMAL: (3_000_000,), Form.LONG: (3_000_000, 30_000_000)}
CHANGES, WINDOWS, CHUNK_ROWS = 1_000, 3, 250_000
ALLOWED = 2.0


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """Seconds of one window: random keys before maintenance and after it, and keys at the table's
    end."""
    with tempfile.TemporaryDirectory() as folder:
        small = _Table(Path(folder) / "small", SMALL)
        allowed = small.cost_of_a_window()
        small.merge_by_spark()
        allowed_by_spark = small.cost_of_a_window()
        small_is_right = small.is_right()
        for count in LARGE[form]:
            table = _Table(Path(folder) / str(count), count)
            ours, ours_tail = table.cost_of_a_window(), table.cost_of_a_window(at_the_end=True)
            table.merge_by_spark()
            before = table.cost_of_a_window()
            table.maintain()
            after = table.cost_of_a_window()
            tail = table.cost_of_a_window(at_the_end=True)
            table.merge_by_default()
            marked, marked_tail = (
                table.cost_of_a_window(),
                table.cost_of_a_window(at_the_end=True),
            )
            correct = small_is_right and table.is_right()
            shutil.rmtree(table.folder)
            question = f"{CHANGES:,} %s changes into a mirror of {count:,} rows of 4 columns%s"
            for where, how, cost, base, goal in (
                ("random", ", maintained", marked, allowed, 1.0),
                ("tail", ", maintained", marked_tail, allowed, 1.0),
                ("random", ", without maintenance", ours, allowed, None),
                ("tail", ", without maintenance", ours_tail, allowed, 1.0),
                ("random", ", by Spark, maintained", after, allowed_by_spark, 1.0),
                ("random", ", by Spark, without maintenance", before, allowed_by_spark, None),
                ("tail", ", by Spark, maintained", tail, allowed_by_spark, 1.0),
            ):
                yield Result(
                    question % (where, how),
                    cost.seconds,
                    "s",
                    f"{ALLOWED:g} times {CHANGES:,} random changes into {SMALL:,} rows, merged alike",
                    ALLOWED * base.seconds,
                    goal=goal,
                    correct=correct,
                    higher_is_better=False,
                    cost=cost,
                    is_warm=True,
                )


class _Table:
    """A mirror, and the windows that change ``CHANGES`` of its rows, the same ones each time."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count, self.folder = count, folder
        folder.mkdir()
        self.config = LakeConfig(path=f"{folder}/lake", driver_memory="2g")
        self.lake = DeltaLake(self.config, "shop")
        self.source = Source(folder / "landing", orders_schema())
        ends = range(count - CHANGES, count)
        chosen = random.Random(count).sample(range(count - CHANGES), CHANGES)
        tx = self.source.begin()
        self.random, self.tail = (
            [tx.insert(order(number, f"name {number}", note=None)) for number in numbers]
            for numbers in (chosen, ends)
        )
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
                rows=min(CHUNK_ROWS, count - low),
                condition=None,
                seconds=0.0,
                landed=LANDED,
            )
            self.lake.table(manifest.schema.table).apply_chunk(manifest, [str(path)])

    def merge_by_default(self) -> None:
        """From now on, as the default configuration has it."""
        self.lake = DeltaLake(self.config, "shop")

    def merge_by_spark(self) -> None:
        """From now on, whatever the size."""
        config = self.config.model_copy(update={"rewrite_mirrors_up_to_mb": 0})
        self.lake = DeltaLake(config, "shop")

    def cost_of_a_window(self, *, at_the_end: bool = False) -> Cost:
        """The median of some windows, after one that warms up."""
        ids = self.tail if at_the_end else self.random
        self._window(ids)
        return repeated(lambda: self._window(ids), repeats=WINDOWS)

    def _window(self, ids: Sequence[str]) -> None:
        self.source.redo_paths.clear()
        tx = self.source.begin()
        for rid in ids:
            tx.update(rid, {"NAME": f"changed at {self.source.scn}"})
        tx.commit()
        self.source.cut().apply(self.lake)

    def maintain(self) -> None:
        """As `redolake maintain` does by default; the mirror must get deletion vectors."""
        done, _ = self.lake.table(self.source.schema.table).maintain(
            MaintenanceConfig(vacuum_hours=None), ("ID",)
        )
        assert done.has_vectors, "maintenance left a large mirror with random changes as it was"

    def is_right(self) -> bool:
        """Does the mirror hold the changed rows as the last window left them, and all others as
        they were?"""
        mirror = self.folder / "lake" / "shop" / "mirror" / self.source.schema.table.path
        query = QueryBuilder().register("t", DeltaTable(str(mirror)))
        sql = 'select count(*) as n, count(distinct "ID") as k, sum(case when "NAME" like \'name %\' then 1 else 0 end) as same from t'
        [found] = pa.table(query.execute(sql).read_all()).to_pylist()
        changed = pa.table(
            query.execute('select "ID", "NAME" from t where "NAME" like \'changed%\'').read_all()
        )
        changed_rows = [
            row for row in self.source.rows.values() if row["NAME"].startswith("changed")
        ]
        wanted = {row["ID"]: row["NAME"] for row in changed_rows}
        names = zip(changed["ID"].to_pylist(), changed["NAME"].to_pylist(), strict=True)
        counts = (found["n"], found["k"], found["same"])
        return (
            counts == (self.count, self.count, self.count - len(wanted)) and dict(names) == wanted
        )


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
