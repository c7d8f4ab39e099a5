"""What does a window of random rows cost in a large mirror, by Redolake as it is configured by
default and by those who merge by hand?

The lake is in files; the rows have 19 columns of all usual kinds, with a text that does not
compress away; each key changes once in a window. Redolake begins with landed redo, decodes it and
keeps a change log; the others get the same rows typed, in one Parquet file, and append them to a
table before they merge: Spark's MERGE as people write it, with and without deletion vectors, and
delta-rs' ``merge``. DuckDB joins and writes the files anew, without a Delta log: a bound for a
copy. All of them change the same rows, in turns, in mirrors of their own. The result is right if
each mirror has exactly the rows that it must.

The first window is a row of its own: with it Redolake may give the mirror deletion vectors.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from benchmarks.common import Cost, Form, Result, measured, median_cost
from benchmarks.made import SOURCE, Flights, MadeSource, flights
from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.spark.session import start_session

NAME = "FLIGHTS"
FILES = 4
"""A mirror of the others begins in so many files."""
SIZES: Mapping[Form, tuple[tuple[int, int], ...]] = {
    Form.QUICK: ((200_000, 20_000),),
    Form.NORMAL: ((1_000_000, 300_000), (3_000_000, 300_000), (3_000_000, 1_000)),
    Form.LONG: (
        (100_000, 30_000),
        (1_000_000, 300_000),
        (3_000_000, 300_000),
        (3_000_000, 1_000),
        (10_000_000, 300_000),
        (10_000_000, 1_000),
    ),
}
"""Rows of the mirror, and rows that a window changes."""
ROUNDS = {Form.QUICK: 2, Form.NORMAL: 5, Form.LONG: 10}
FEW = 10_000
"""Windows of fewer changes are measured in seconds, larger ones in changes a second."""
GOALS = {"hand": 5.0, "hand, vectors": 3.0, "delta-rs": None, "copy": None}
WHO = {
    "hand": "hand-written PySpark MERGE and append, typed input",
    "hand, vectors": "the same with deletion vectors",
    "delta-rs": "delta-rs merge and append, typed input",
    "copy": "DuckDB reads, joins and writes the files: no log, no decoding",
}


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """Each size against each of the others."""
    for count, changes in SIZES[form]:
        with tempfile.TemporaryDirectory() as folder:
            yield from _Match(Path(folder), count, changes).rows(ROUNDS[form])


class _Match:
    """Mirrors of one size, and windows that change so many of their rows."""

    def __init__(self, folder: Path, count: int, changes: int) -> None:
        self._folder, self._count, self._changes = folder, count, changes
        self._source = MadeSource(folder, [NAME])
        self._table: Flights = self._source.tables[NAME]
        self._chance = np.random.default_rng(changes)
        self._config = LakeConfig(path=f"{folder}/lake")
        self._lake = DeltaLake(self._config, SOURCE)
        self._source.load(self._lake, NAME, count)
        self._session = start_session(self._config)
        self._made = 0
        loaded = self._table.rows()
        for who in WHO:
            self._load(who, loaded)

    def rows(self, rounds: int) -> Iterator[Result]:
        """One window alone, then so many in turns."""
        first = self._round()
        costs = [self._round() for _ in range(rounds)]
        ours = median_cost([one["ours"] for one in costs])
        correct = self._source.is_right(self._config.path)
        yield self._row("first window", "itself", first["ours"], None, correct=correct)
        for who, text in WHO.items():
            theirs = median_cost([one[who] for one in costs])
            is_right = correct and self._has_all(who)
            text += f" ({theirs.cpu_seconds:.3g} CPU s)"
            goal = GOALS[who] if self._changes >= FEW else None
            yield self._row("later windows", text, ours, theirs, goal=goal, correct=is_right)

    def _row(
        self,
        which: str,
        against: str,
        ours: Cost,
        theirs: Cost | None,
        *,
        goal: float | None = None,
        correct: bool,
    ) -> Result:
        is_many = self._changes >= FEW

        def figure(cost: Cost) -> float:
            return self._changes / cost.seconds if is_many else cost.seconds

        return Result(
            f"{self._changes:,} random rows, each key once, into a mirror of {self._count:,} rows"
            f" of 19 columns, default configuration, {which}",
            figure(ours),
            "changes/s" if is_many else "s",
            against,
            None if theirs is None else figure(theirs),
            goal=goal,
            correct=correct,
            higher_is_better=is_many,
            cost=ours,
            is_warm=which != "first window",
        )

    def _round(self) -> dict[str, Cost]:
        """The same window for all."""
        ids = np.sort(self._chance.choice(self._count, self._changes, replace=False))
        window = self._source.window(self._table.remark(ids, 1))
        typed = flights(ids, self._table.stages[ids], self._table.remarks[ids])
        path = str(self._folder / "window.parquet")
        pq.write_table(typed, path, compression="zstd")
        works: dict[str, Callable[[], object]] = {
            "ours": lambda: window.apply(self._lake, NAME),
            "hand": lambda: self._merge_by_spark("hand", path),
            "hand, vectors": lambda: self._merge_by_spark("hand, vectors", path),
            "delta-rs": lambda: self._merge_by_delta_rs(path),
            "copy": lambda: self._copy(path),
        }
        found = {}
        for who, work in works.items():
            with measured() as watch:
                work()
            found[who] = watch.cost
        self._made += 1
        return found

    def _load(self, who: str, loaded: pa.Table) -> None:
        """A mirror and a log."""
        if who == "copy":
            Path(self._mirror(who)).mkdir(parents=True)
            pq.write_table(loaded, f"{self._mirror(who)}/rows.parquet", compression="zstd")
            return
        vectors = {"delta.enableDeletionVectors": "true"} if who == "hand, vectors" else {}
        part = -(-loaded.num_rows // FILES)
        for low in range(0, loaded.num_rows, part):
            rows = loaded.slice(low, part)
            write_deltalake(self._mirror(who), rows, mode="append")
        write_deltalake(self._log(who), loaded.slice(0, 0), mode="append")
        for name, value in vectors.items():
            self._session.sql(
                f"ALTER TABLE delta.`{self._mirror(who)}` SET TBLPROPERTIES ('{name}' = '{value}')"
            )

    def _merge_by_spark(self, who: str, path: str) -> None:
        rows = self._session.read.parquet(path)
        rows.write.format("delta").mode("append").save(self._log(who))
        rows.createOrReplaceTempView("changes")
        self._session.sql(
            f"MERGE INTO delta.`{self._mirror(who)}` t USING changes s ON t.ID = s.ID"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def _merge_by_delta_rs(self, path: str) -> None:
        rows = pq.read_table(path)
        write_deltalake(self._log("delta-rs"), rows, mode="append")
        (
            DeltaTable(self._mirror("delta-rs"))
            .merge(rows, "t.ID = s.ID", source_alias="s", target_alias="t")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    def _copy(self, path: str) -> None:
        before, after = Path(self._mirror("copy")), self._folder / "copied"
        after.mkdir()
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT * FROM '{before}/*.parquet' t ANTI JOIN '{path}' s USING (ID) "
                f"UNION ALL SELECT * FROM '{path}') TO '{after}/rows.parquet' (COMPRESSION zstd)"
            )
            connection.execute(
                f"COPY (SELECT * FROM '{path}') TO '{self._folder}/log-{self._made}.parquet' "
                "(COMPRESSION zstd)"
            )
        shutil.rmtree(before)
        after.rename(before)

    def _has_all(self, who: str) -> bool:
        """Are the rows those that they must be?"""
        wanted, path = self._table.rows(), self._mirror(who)
        if who == "copy":
            found = pq.read_table(path)
        else:
            rows: Any = self._session.read.format("delta").load(path)
            found = rows.toArrow()
        found = found.select(wanted.column_names).sort_by("ID")
        return bool(found.cast(wanted.schema).equals(wanted))

    def _mirror(self, who: str) -> str:
        return f"{self._folder}/{who}/mirror"

    def _log(self, who: str) -> str:
        return f"{self._folder}/{who}/log"
