"""What does a window cost in a mirror of a hundred million narrow rows on a disk, without Spark and
by Spark's MERGE?

The mirror is made by chunks of a snapshot, as any is, from landing files that are made in columns.
Windows update, delete and insert rows whose keys lie all over it. Both ways write to one mirror, in
turns. The result is right if each changed key has its row, and the mirror as many rows as it must.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Cost, Form, Result, measured, median_cost
from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.landing.manifest import LandedFile
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from tests.stage.landed import Source, number

ROWS = {Form.QUICK: 1_000_000, Form.NORMAL: 10_000_000, Form.LONG: 100_000_000}
CHUNK_ROWS = 5_000_000
CHANGED = 1_000
"""Changes of a window: one half updates, a quarter each deletions and insertions."""
ROUNDS = 3
WAYS = ("auto", "spark")
_NAMES = {"auto": "as Redolake chooses", "spark": "by Spark's MERGE"}


def rows(
    form: Form = Form.NORMAL, *, many: int | None = None, ways: Sequence[str] = WAYS
) -> Iterator[Result]:
    """One window, each way. ``many`` is another number of rows."""
    wanted = many or ROWS[form]
    with tempfile.TemporaryDirectory() as folder:
        mirror = _Mirror(Path(folder), wanted)
        yield Result(
            f"a snapshot of {wanted:,} narrow rows into change log and mirror",
            wanted / mirror.loading.seconds,
            "rows/s",
            "nothing: it says what the mirror below took",
            cost=mirror.loading,
        )
        costs: dict[str, list[Cost]] = {way: [] for way in ways}
        for at in range(ROUNDS + 1):  # the first round warms up
            for way in ways:
                cost = mirror.window(way)
                if at:
                    costs[way].append(cost)
        is_right = mirror.is_right()
    medians = {way: median_cost(found) for way, found in costs.items()}
    for way in ways:
        others = [one for one in ways if one != way]
        yield Result(
            f"a window of {CHANGED:,} scattered changes in a mirror of {wanted:,} narrow rows, {_NAMES[way]}",
            medians[way].seconds,
            "s",
            _NAMES[others[0]] if others else "nothing",
            medians[others[0]].seconds if others else None,
            correct=is_right,
            higher_is_better=False,
            cost=medians[way],
            is_warm=True,
        )


class _Mirror:
    """A mirror of so many rows, of which the source knows those that windows will change."""

    def __init__(self, folder: Path, wanted: int) -> None:
        schema = TableSchema(
            TableId("SHOP", "ORDERS"), Scn(1), (number("ID", 10, 0), number("N", 9, 0)), ("ID",)
        )
        self.path = f"{folder}/lake"
        self.source = Source(folder / "landing", schema)
        self.rows = wanted
        step = max(wanted // (CHANGED * 2 * (ROUNDS + 1)), 1)
        tx = self.source.begin()
        self.known = {at: tx.insert(_row(at)) for at in range(0, wanted, step)}
        tx.commit()
        self.unchanged = iter(list(self.known))
        self.new = count(wanted)
        self.changed: dict[int, int | None] = {}
        with measured() as watch:
            self._load(wanted)
        self.loading = watch.cost
        self.source.low, self.source.pending, self.source.ended = self.source.scn, [], []

    def _load(self, wanted: int) -> None:
        """Chunk by chunk, each of keys of its own."""
        lake, chunk = DeltaLake(LakeConfig(path=self.path), "shop"), self.source.chunk()
        path = Path(chunk.paths[0])
        for at, start in enumerate(range(0, wanted, CHUNK_ROWS)):
            keys = np.arange(start, min(start + CHUNK_ROWS, wanted))
            schema = arrow_schema(self.source.schema)
            columns = [pa.array(keys), pa.array(keys % 1000)]
            table = pa.table([one.cast(kind) for one, kind in zip(columns, schema.types, strict=True)], schema)  # fmt: skip
            pq.write_table(table, path, compression="zstd")
            file = LandedFile(path.name, len(keys), path.stat().st_size, "")
            manifest = replace(
                chunk.manifest, number=at, files=(file,), rows=len(keys), have_own_keys=True
            )
            lake.table(manifest.schema.table).apply_chunk(manifest, [str(path)])

    def window(self, way: str) -> Cost:
        """Changes all over the mirror, in the order of their keys."""
        self.source.redo_paths.clear()
        lake = DeltaLake(LakeConfig.model_validate({"path": self.path, "merge": way}), "shop")
        tx = self.source.begin()
        for at, key in zip(range(CHANGED * 3 // 4), self.unchanged, strict=False):
            if at % 3:
                tx.update(self.known[key], {"N": 7_000_000 + key % 1000})
                self.changed[key] = 7_000_000 + key % 1000
            else:
                tx.delete(self.known[key])
                self.changed[key], self.rows = None, self.rows - 1
        for _, key in zip(range(CHANGED // 4), self.new, strict=False):
            tx.insert({"ID": key, "N": 5})
            self.changed[key], self.rows = 5, self.rows + 1
        tx.commit()
        landed = self.source.cut()
        with measured() as watch:
            landed.apply(lake)
        return watch.cost

    def is_right(self) -> bool:
        """Each changed key, and how many rows there are."""
        mirror = DEFAULT_PATHS.path("mirror", self.path, "shop", self.source.schema.table)
        engine = QueryBuilder().register("t", DeltaTable(mirror))
        counted = pa.table(engine.execute("select count(*) as n from t").read_all())["n"][0].as_py()
        keys = ", ".join(map(str, self.changed))
        sql = f'select "ID", "N" from t where "ID" in ({keys})'
        found = pa.table(engine.execute(sql).read_all()).to_pylist()
        there = {key: value for key, value in self.changed.items() if value is not None}
        values = {int(row["ID"]): int(row["N"]) for row in found}
        return counted == self.rows and values == there and len(found) == len(there)


def _row(key: int) -> dict[str, object]:
    return {"ID": key, "N": key % 1000}
