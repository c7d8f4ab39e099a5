"""What does a window cost when thousands of windows have gone before it, beside one with ten?

The history is made: the last commit that change log and mirror really got is repeated under new
names, numbers and SCNs, with a checkpoint as often as Delta writes one, and all commits still in
the log, as after some weeks. What is measured are windows of one change in the same warm Spark, in
turns; to each is added its share of the checkpoints that every 100th commit brings. The result is
right if the mirror has every change that the windows brought, and the change log as many as there
were.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Cost, Form, Result, alternating
from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.model.templates import DEFAULT_PATHS
from tests.stage.landed import Source, order, orders_schema

FEW = 10
MANY = {Form.QUICK: (300,), Form.NORMAL: (1_000, 10_000), Form.LONG: (1_000, 10_000, 43_200)}
ROUNDS, WARM_UP = 7, 3
ALLOWED = 1.1
ROWS = 1_000
COMMITS = 100
"""So many commits of a table share a checkpoint."""


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """One window behind each length of history, against the shortest."""
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            windows: History(Path(folder) / str(windows), windows) for windows in (FEW, *MANY[form])
        }
        works = {str(windows): table.window for windows, table in tables.items()}
        alternating(works, repeats=WARM_UP)
        costs = alternating(works, repeats=ROUNDS)
        writing = {str(windows): table.write_checkpoints for windows, table in tables.items()}
        checkpoints = alternating(writing, repeats=WARM_UP)
        correct = {windows: table.is_right() for windows, table in tables.items()}
    costs = {name: with_share(cost, checkpoints[name]) for name, cost in costs.items()}
    few = costs[str(FEW)]
    for windows in MANY[form]:
        ours = costs[str(windows)]
        for unit, mine, other in (
            ("s", ours.seconds, few.seconds),
            ("CPU s", ours.cpu_seconds, few.cpu_seconds),
        ):
            yield Result(
                f"a window of one change behind {windows:,} others",
                mine,
                unit,
                f"{ALLOWED} times one behind {FEW}",
                ALLOWED * other,
                goal=1.0,
                correct=correct[FEW] and correct[windows],
                higher_is_better=False,
                cost=ours,
                is_warm=True,
            )


def with_share(window: Cost, checkpoints: Cost) -> Cost:
    """A window, and what it would pay of the checkpoints."""
    cpu = {name: used + checkpoints.cpu[name] / COMMITS for name, used in window.cpu.items()}
    return replace(window, seconds=window.seconds + checkpoints.seconds / COMMITS, cpu=cpu)


class History:
    """A table with a history of so many windows, in ``lake`` of a folder."""

    def __init__(self, folder: Path, windows: int) -> None:
        folder.mkdir(parents=True)
        self.source = Source(folder / "landing", orders_schema())
        self.is_at(f"{folder}/lake")
        tx = self.source.begin()
        self.rid = [tx.insert(order(at, f"name {at}", note=None)) for at in range(ROWS)][ROWS // 2]
        tx.commit()
        self.source.chunk().apply(self.lake)
        self.source.low, self.source.pending, self.source.ended = self.source.scn, [], []
        self.changes = ROWS
        self.window()
        scn = self.source.scn
        for at, every in ((self.log, 100), (self.mirror, 10)):  # delta-rs and Spark, by default
            _repeat_last_commit(Path(at), windows - 1, scn, every)
        self.source.scn = self.source.low = scn + windows
        self.made = windows - 1

    def is_at(self, path: str) -> None:
        """The lake is at this path now."""
        self.lake = DeltaLake(LakeConfig(path=path), "shop")
        table = self.source.schema.table
        self.log, self.mirror = (
            DEFAULT_PATHS.path("changelog", path, "shop", table),
            DEFAULT_PATHS.path("mirror", path, "shop", table),
        )

    def window(self) -> None:
        """One change of one row."""
        self.source.redo_paths.clear()
        tx = self.source.begin()
        tx.update(self.rid, {"NAME": f"changed at {self.source.scn}"})
        tx.commit()
        self.source.cut().apply(self.lake)
        self.changes += 1

    def write_checkpoints(self) -> None:
        """As the windows do now and then."""
        for at in (self.log, self.mirror):
            DeltaTable(at).create_checkpoint()

    def is_right(self) -> bool:
        """The mirror as the source is, and all changes that were applied in the change log, the
        repeated ones with them."""
        wanted = {row["ID"]: row["NAME"] for row in self.source.rows.values()}
        found = _read(self.mirror, 'select "ID", "NAME" from t')
        names = dict(zip(found["ID"].to_pylist(), found["NAME"].to_pylist(), strict=True))
        counted = _read(self.log, "select count(*) as n from t")["n"][0].as_py()
        return found.num_rows == ROWS and names == wanted and counted == self.changes + self.made


def _read(path: str, sql: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(path)).execute(sql).read_all())


def _repeat_last_commit(table: Path, times: int, scn: int, every: int) -> None:
    """Commit what the newest commit of a Delta table did so many times more: the file that it added
    again under another name, in place of the last one where it had removed one. The newest
    checkpoint of each ``every`` commits is there."""
    folder = table / "_delta_log"
    newest = max(folder.glob("*.json"))
    version = int(newest.stem)
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    added = [one["add"] for one in actions if "add" in one]
    removes = any("remove" in one for one in actions)
    [last] = added
    before = last["path"]
    for number in range(1, times + 1):
        name = f"part-{number:08d}-{last['path']}"
        (table / name).hardlink_to(table / before)
        repeated = [_moved(one, scn + number) for one in actions if "remove" not in one]
        for one in repeated:
            if "add" in one:
                one["add"]["path"] = name
        if removes:
            repeated.append({"remove": _removed(last, before)})
        text = "".join(json.dumps(one) + "\n" for one in repeated)
        (folder / f"{version + number:020d}.json").write_text(text)
        before = name
        if number % every == 0 and number > times - every:
            DeltaTable(str(table)).create_checkpoint()


def _moved(action: dict[str, Any], scn: int) -> dict[str, Any]:
    """The same action for a later window."""
    made: dict[str, Any] = json.loads(json.dumps(action))
    if "txn" in made:
        made["txn"]["version"] = scn
    if "add" in made:
        statistics = json.loads(made["add"]["stats"])
        for ends in ("minValues", "maxValues"):
            if "_cdc_window" in statistics[ends]:
                statistics[ends]["_cdc_window"] = scn
        made["add"]["stats"] = json.dumps(statistics)
    if "commitInfo" in made:
        info = made["commitInfo"]
        info["userMetadata"] = json.dumps({**json.loads(info["userMetadata"]), "scn_high": scn})
    return made


def _removed(added: dict[str, Any], path: str) -> dict[str, Any]:
    return {
        "path": path,
        "deletionTimestamp": added["modificationTime"],
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": added["size"],
    }
