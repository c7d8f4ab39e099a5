"""What is compared of a life: mirrors with Oracle at noted SCNs, change logs, and what nobody may see."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow.parquet as pq

from cdc_core.model.identifiers import TableId
from tests.invariants.changelog import Stream, check_table
from tests.invariants.compare import judge
from tests.invariants.hidden import HIDDEN, files_with_marks
from tests.invariants.histories import check_history
from tests.invariants.lakes import JudgedDelta
from tests.invariants.life_setting import STOPPED_BY_DDL, LifeSetting
from tests.invariants.load import KEYS
from tests.invariants.proof import Comparison
from tests.invariants.shapes import PARTS
from tests.invariants.team import WorkerFailedError
from tests.invariants.wild import TPCC, inconsistencies

ORDINAL_SHIFT = 40
"""A row's number in the source is behind that of its window."""
STANDS = """
SELECT mirror_scn, name FROM tables WHERE mirror_scn >= consistent_scn
 UNION
SELECT w.scn_high, t.name FROM windows w JOIN tables t ON t.source = w.source
 WHERE w.state = 'applied' AND w.inexact IS NULL AND w.scn_high BETWEEN t.consistent_scn AND t.mirror_scn
  AND w.ordinal >= t.first_ordinal AND w.scn_high > t.snapshot_scn"""
INEXACT = "SELECT scn_low, scn_high, inexact FROM windows WHERE inexact IS NOT NULL"


class JudgedLife(LifeSetting):
    """A life that notes which SCNs its mirrors show, and compares them in the end."""

    def _note(self) -> None:
        """Note where each table stands, and when its streams begin and end."""
        rows = self._store(
            "SELECT name, state, generation, first_ordinal, snapshot_scn, stopped_scn, reason, mirror_scn FROM tables"
        )
        for name, state, generation, ordinal, snapshot_scn, stopped_scn, reason, mirror_scn in rows:
            self._states[name] = state
            if state == "failed" and name not in STOPPED_BY_DDL:
                raise WorkerFailedError(f"{name} failed: {reason}")
            if snapshot_scn is None or state == "new":
                continue
            known = self._lives.get(name)
            if known is None or known[0] != generation:
                self.streams[name] = []
                self._noted = {one for one in self._noted if one[1] != name}
            streams = self.streams[name]
            if known != (generation, ordinal):
                self._lives[name] = (generation, ordinal)
                if streams:  # what its mirror had not taken yet, the new snapshot brings
                    streams[-1] = Stream(streams[-1].start, self._positions[name])
                streams.append(Stream(int(snapshot_scn)))
            elif mirror_scn is None:  # it began again before there was a window
                streams[-1] = Stream(int(snapshot_scn))
            if stopped_scn is not None:
                streams[-1] = Stream(streams[-1].start, int(stopped_scn))
            self._positions[name] = max(int(mirror_scn or 0), streams[-1].start)
            self._joined.add((name, int(ordinal)))
        self._count_late()
        self._noted |= {(int(scn), name) for scn, name in self._store(STANDS)}
        for low, high, found in self._store(INEXACT):
            inexact = json.loads(found)
            self._lacking[int(low), int(high)] = (int(inexact["scn"]), tuple(inexact["tables"]))
        self._noted = {one for one in self._noted if not self._lacks_commits(*one)}

    def _lacks_commits(self, scn: int, table: str) -> bool:
        """Did commits of the table up to the SCN come to light after the window in which it lies?"""
        return any(
            low < scn <= high and first <= scn and self.name(table) in tables
            for (low, high), (first, tables) in self._lacking.items()
        )

    def _compare_noted(self, only: str | None) -> None:
        """Compare tables where they were seen to stand: at some SCNs of each, the last one among them."""
        for table in self.tables if only is None else (only,):
            scns = sorted(
                scn
                for scn, name in self._noted - self._compared
                if name == table and scn >= self._blind_below.get(table, 0)
            )
            chosen = self.dice.sample(scns, min(self.scns_compared, len(scns)))
            for scn in sorted({*chosen, *scns[-1:]}):
                self._compare(table, scn)
            self._compared |= {(scn, table) for scn in scns}
        if only is None:
            self._ask_tpcc()

    def _compare(self, table: str, scn: int) -> None:
        found = judge(
            self.connection, table, KEYS[table], scn,
            lambda names: self._judged.values(table, scn, names), without=HIDDEN.get(table, ()),
        )  # fmt: skip
        self.proof.comparisons.append(Comparison(scn, table, found))

    def _check_hidden(self) -> None:
        """No value of a column that is not captured is in a file: of landing (where it is a folder), lake, store and logs."""
        found, self.proof.read_for_marks = files_with_marks(self.folder, without="oracle")
        self.proof.violations += [
            f"a value that is not captured: {one.relative_to(self.folder)}" for one in found
        ]

    def _ask_tpcc(self) -> None:
        times = Counter(scn for scn, table in self._noted if table in TPCC)
        whole = sorted(scn for scn, tables in times.items() if tables == len(TPCC))
        for scn in self.dice.sample(whole, min(self.scns_compared, len(whole))):
            images = {}
            for table in TPCC:
                names = self._columns(table)
                rows = self._judged.values(table, scn, names)
                images[table] = [dict(zip(names, row, strict=True)) for row in rows]
            self.proof.violations += [f"{one} (SCN {scn})" for one in inconsistencies(images)]
            self.proof.consistent += 1

    def _check_changelogs(self) -> None:
        positions = {name: int(scn) for name, scn in self._store("SELECT name, mirror_scn FROM tables")}  # fmt: skip
        for table in self.tables:
            self.proof.violations += check_table(
                table,
                self._judged.changelog(table),
                self._judged.mirror(table),
                self.load.committed,
                self.streams[table],
                positions[table],
                self.load.dropped.get(table, ()),
                renamed=self.load.renamed.get(table, ()),
                loses_columns=self.follows,
                emptied=self.load.emptied if table == PARTS else (),
            )
            if isinstance(self._judged, JudgedDelta):
                found, states = check_history(
                    table,
                    TableId.parse(self.name(table)),
                    self.folder / "lake",
                    self._judged.changelog_path(table),
                    self.streams[table],
                    self.load.renamed.get(table, ()),
                )
                self.proof.violations += found
                self.proof.states += states
        if self.proof.states and not self.proof.states["ended"]:
            self.proof.violations.append("no table's history has a state that ended")

    def _count_late(self) -> None:
        """Count new windows with redo from below them that came late, but for what the first window and tables that join read back."""
        for manifest in sorted((self.folder / "landing").glob("*/windows/*/*.json")):
            folder = manifest.parent
            if folder in self._counted:
                continue
            self._counted.add(folder)
            low = int(folder.name.split("-")[-2])
            self.proof.late["windows with late redo"] += any(
                row["scn"] <= low
                and (number := row["ordinal"] >> ORDINAL_SHIFT)
                and (row["table_name"], number) not in self._joined
                for path in folder.glob("redo*.parquet")
                for row in pq.read_table(path, columns=["scn", "table_name", "ordinal"]).to_pylist()
            )
