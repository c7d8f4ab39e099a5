"""What does it save that a chunk's rows are encoded once?

Made rows of 19 columns go the way of a chunk behind Oracle: into a landing file, and from there
into change log and mirror of a new lake. What lands has the mirror's columns, so the mirror gets
the file and the change log its pages. Beside it stands a landing file without the mirror's two
columns, whose rows are encoded for each table. Both ways run in turns; a result is right if both
give the same tables.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.common import Form, Result, alternating
from benchmarks.made import SOURCE, Flights, flights
from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.landing.store_local import LocalLandingStore
from cdc_core.model.scn import Scn
from cdc_core.stage.snapshot import mirror_rows

GOAL = 1.5
ROUNDS = 5
ROWS = {Form.QUICK: 20_000, Form.NORMAL: 300_000, Form.LONG: 2_000_000}
_NAME, _SCN = "FLIGHTS", 1_000
_LANDED = "2026-01-01T00:00:00+00:00"
_BATCH_ROWS = 10_000


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """CPU seconds of both ways."""
    count = ROWS[form]
    with tempfile.TemporaryDirectory() as name:
        ways = _Ways(Path(name), count, _made(count))
        ways.once()
        ways.thrice()
        found = alternating({"once": ways.once, "thrice": ways.thrice}, repeats=ROUNDS)
        yield Result(
            f"a chunk of {count:,} rows of 19 columns into landing, change log and mirror",
            found["once"].cpu_seconds,
            "CPU s",
            "its rows encoded for each of the three",
            found["thrice"].cpu_seconds,
            goal=GOAL,
            correct=ways.are_alike(),
            higher_is_better=False,
            cost=found["once"],
            is_warm=True,
        )


def _made(count: int) -> list[pa.RecordBatch]:
    table = Flights(_NAME)
    ids = table.grow(count, 2)
    found: list[pa.RecordBatch] = flights(ids, table.stages[ids], table.remarks[ids]).to_batches(
        _BATCH_ROWS
    )
    return found


@dataclass(slots=True)
class _Ways:
    """Each run has a landing folder and a lake of its own."""

    folder: Path
    count: int
    made: list[pa.RecordBatch]
    runs: int = 0

    def once(self) -> None:
        """What lands has the mirror's columns."""
        self._run("once")

    def thrice(self) -> None:
        """What lands has the table's columns alone."""
        self._run("thrice")

    def _run(self, way: str) -> None:
        self.runs += 1
        schema = Flights(_NAME).schema
        landed = self.made
        if way == "once":
            landed = list(mirror_rows(landed, _SCN, schema))
        landing = LocalLandingStore(str(self.folder / f"landing-{self.runs}"))
        with landing.writer("chunk", "rows-00000.parquet", landed[0].schema) as writer:
            for batch in landed:
                writer.write(batch)
        file = writer.close()
        manifest = ChunkManifest(
            source=SOURCE,
            schema=schema,
            snapshot_id="s1",
            number=0,
            scn=Scn(_SCN),
            files=(file,),
            rows=self.count,
            condition=None,
            seconds=0.0,
            landed=_LANDED,
        )
        lake = DeltaLake(LakeConfig(path=self._lake(way)), SOURCE)
        paths = landing.local_paths("chunk", (file,))
        lake.table(schema.table).apply_chunk(manifest, paths)

    def _lake(self, way: str, run: int | None = None) -> str:
        return str(self.folder / f"lake-{way}-{self.runs if run is None else run}")

    def are_alike(self) -> bool:
        """Have the lakes of the last round the same rows?"""
        ways = {"once": self.runs - 1, "thrice": self.runs}
        for layer in ("changelog", "mirror"):
            found = [self._rows(self._lake(way, run), layer) for way, run in ways.items()]
            if found[0].num_rows != self.count or not found[0].equals(found[1]):
                return False
        return True

    def _rows(self, lake: str, layer: str) -> pa.Table:
        [log] = (Path(lake) / SOURCE / layer).glob("*/_delta_log")
        return DeltaTable(str(log.parent)).to_pyarrow_table()
