"""What does a window cost when thousands of windows have gone before it, beside one with ten?

The history is made: the last commit that change log and mirror really got is repeated under new names, numbers, SCNs and times, one a minute, with
a checkpoint as often as Delta writes one, and all commits still in the log. The longest history is there once more after ``redolake maintain`` with
``log_hours: 24``. What is measured are windows of one change in the same warm Spark, in turns. The result is right if the mirror has every
change that the windows brought, and the change log as many as there were.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Form, Result, alternating
from cdc_core.config import LakeConfig, MaintenanceConfig
from cdc_core.lake.lake import Lake
from cdc_core.lake.tables import changelog_path, mirror_path
from tests.stage.landed import Source, order, orders_schema

FEW = 10
MANY = {Form.QUICK: (300,), Form.NORMAL: (1_000, 10_000), Form.LONG: (1_000, 10_000, 43_200)}
MAINTAINED = MaintenanceConfig(vacuum_hours=None, log_hours=24)
DAY = 24 * 60
ROUNDS, WARM_UP = 7, 3
ALLOWED = 1.1
ROWS = 1_000


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """One window behind each length of history, against the shortest."""
    many = MANY[form]
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            _Behind(windows): _Table(Path(folder) / str(windows), windows)
            for windows in (FEW, *many)
        }
        maintained = _Behind(many[-1], is_maintained=True)
        tables[maintained] = _Table(Path(folder) / "maintained", many[-1])
        tables[maintained].maintain()
        works = {str(behind): table.window for behind, table in tables.items()}
        alternating(works, repeats=WARM_UP)
        costs = alternating(works, repeats=ROUNDS)
        correct = {behind: table.is_right() for behind, table in tables.items()}
    first = _Behind(FEW)
    few = costs[str(first)]
    for behind in tables:
        ours = costs[str(behind)]
        if behind == first:
            continue
        for unit, mine, other in (
            ("s", ours.seconds, few.seconds),
            ("CPU s", ours.cpu_seconds, few.cpu_seconds),
        ):
            yield Result(
                f"a window of one change behind {behind}",
                mine,
                unit,
                f"{ALLOWED} times one behind {FEW}",
                ALLOWED * other,
                goal=1.0,
                correct=correct[first] and correct[behind],
                higher_is_better=False,
                cost=ours,
                is_warm=True,
            )


@dataclass(frozen=True, slots=True)
class _Behind:
    """What has gone before a window."""

    windows: int
    is_maintained: bool = False

    def __str__(self) -> str:
        how = f", maintained with {MAINTAINED.log_hours} hours of log" if self.is_maintained else ""
        return f"{self.windows:,} others{how}"


class _Table:
    """A table with a history of so many windows."""

    def __init__(self, folder: Path, windows: int) -> None:
        folder.mkdir(parents=True)
        config = LakeConfig(path=f"{folder}/lake")
        self.lake = Lake.open(config, "shop")
        self.source = Source(folder / "landing", orders_schema())
        tx = self.source.begin()
        self.rid = [tx.insert(order(at, f"name {at}", note=None)) for at in range(ROWS)][ROWS // 2]
        tx.commit()
        self.source.chunk().apply(self.lake)
        self.source.low, self.source.pending, self.source.ended = self.source.scn, [], []
        self.changes = ROWS
        self.window()
        table = self.source.schema.table
        self.log, self.mirror = (
            Path(path(config.path, "shop", table)) for path in (changelog_path, mirror_path)
        )
        scn = self.source.scn
        for at, every in ((self.log, 100), (self.mirror, 10)):  # delta-rs and Spark, by default
            _repeat_last_commit(at, windows - 1, scn, every)
        self.source.scn = self.source.low = scn + windows
        self.made = windows - 1

    def window(self) -> None:
        """One change of one row."""
        self.source.redo_paths.clear()
        tx = self.source.begin()
        tx.update(self.rid, {"NAME": f"changed at {self.source.scn}"})
        tx.commit()
        self.source.cut().apply(self.lake)
        self.changes += 1

    def maintain(self) -> None:
        """As `redolake maintain` does; the logs must get shorter where they are older than a day."""
        key = self.source.schema.key
        before = self.made
        for done in self.lake.maintain(self.source.schema.table, MAINTAINED, key):
            assert done.commits_removed > 0 or before < DAY, "maintenance left an old log as it was"

    def is_right(self) -> bool:
        """The mirror as the source is, and all changes that were applied in the change log, the repeated ones with them."""
        wanted = {row["ID"]: row["NAME"] for row in self.source.rows.values()}
        found = _read(self.mirror, 'select "ID", "NAME" from t')
        names = dict(zip(found["ID"].to_pylist(), found["NAME"].to_pylist(), strict=True))
        counted = _read(self.log, "select count(*) as n from t")["n"][0].as_py()
        return found.num_rows == ROWS and names == wanted and counted == self.changes + self.made


def _read(path: Path, sql: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(str(path))).execute(sql).read_all())


def _repeat_last_commit(table: Path, times: int, scn: int, every: int) -> None:
    """Commit what the newest commit of a Delta table did so many times more: the file that it added again under another name, in place of
    the last one where it had removed one. The newest checkpoint of each ``every`` commits is there."""
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
        # One of the days before yesterday too, without which no commit may go.
        if number % every == 0 and (number > times - every or number == _whole(times - DAY, every)):
            DeltaTable(str(table)).create_checkpoint()
    now = time.time()
    for name in folder.iterdir():
        if name.name[:20].isdigit():
            written = now - 60 * (version + times - int(name.name[:20]))
            os.utime(name, (written, written))


def _whole(number: int, every: int) -> int:
    """The last multiple up to a number."""
    return number - number % every


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
