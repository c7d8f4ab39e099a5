"""How do Spark's executors do what the process's threads do: stage a window, and reduce it to one
row per key?

A task is a number. It runs the same functions of ``stage`` on the same files of landing and change
log, writes a file of its own into the change log's, the mirror's or the staging folder, and says
what is in it; the driver alone commits, behind its fence, and names the files of the tasks that
succeeded. What a task that is lost or repeated has written is named by no commit: VACUUM removes
it. So nothing but paths, counts and Delta's statistics of files comes back to the driver, and a
task holds what a thread would hold.

Executors run the Python of ``spark.pyspark.python``, which must have Redolake in the driver's
version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np

from cdc_core.delta.appending import NewFile, write_file
from cdc_core.delta.history import filesystem_of
from cdc_core.delta.storage import storing
from cdc_core.lake.mirror.append_only import write_inserted
from cdc_core.lake.mirror.merge import KeyRule
from cdc_core.lake.mirror.merge_audit import SentRows
from cdc_core.lake.rows.logged_changes import logged_changes
from cdc_core.lake.rows.staging import write_staged
from cdc_core.lake.tables import CHANGELOG_INDEXED
from cdc_core.model.json_form import as_json
from cdc_core.spark.tasks import run_tasks
from cdc_core.stage.changes import of_window
from cdc_core.stage.committed import CommittedTransactions, LandedInput
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.layout import change_schema
from cdc_core.stage.parts import WindowPart, check_parts, window_parts
from cdc_core.stage.reduction import merge_part
from cdc_core.stage.window import staged_changes


@dataclass(frozen=True, slots=True)
class StagedWindow:
    """The files of the change log that hold a window, which no commit names yet, and how many of
    its values no form holds, so that they are NULL."""

    files: tuple[NewFile, ...]
    unfit: int = 0

    @property
    def names(self) -> list[str]:
        """The files' names."""
        return [file.name for file in self.files]

    @property
    def rows(self) -> int:
        """How many changes they have."""
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class WindowStaging:
    """Stages a window of one table into files of its change log, about ``task_rows`` in a task."""

    landed: LandedInput
    decoder: ChangeDecoder
    changelog: str
    task_rows: int

    def run(
        self, session: Any, committed: CommittedTransactions, facts: dict[str, object]
    ) -> StagedWindow:
        """Stage all parts.

        Raises:
            PreflightError: The executors cannot run Redolake.
            RowCountError: Rows got lost or doubled on the way.
            CdcError: What a part raises.
        """
        parts = window_parts(committed, self.decoder, self.task_rows)
        found = run_tasks(
            session, len(parts), self, doing="staging a window on executors", facts=facts
        )
        rows = []
        for one in found:
            rows.append(np.zeros(one["transactions"], dtype=np.int64))
            rows[-1][one["places"]] = one["rows"]
        check_parts(parts, rows, self.landed.table, self.landed.window)
        files = tuple(NewFile(**one["file"]) for one in found if one["file"])
        return StagedWindow(files, sum(one["unfit"] for one in found))

    def __call__(self, number: int) -> dict[str, Any]:
        """Stage one part into a file of the change log's folder."""
        part = self._parts()[number]
        self.decoder.unfit.clear()  # a worker may stage several parts
        columns = change_schema(self.decoder.schema)
        changes = staged_changes(self.landed.rows(part.committed, part.share), self.decoder)
        file = write_file(self.changelog, columns, changes, CHANGELOG_INDEXED)
        places = np.flatnonzero(part.share.rows)
        return {
            "file": as_json(file),
            "unfit": sum(self.decoder.unfit),
            "transactions": part.committed.count,
            "places": places.tolist(),
            "rows": part.share.rows[places].tolist(),
        }

    def _parts(self) -> list[WindowPart]:
        return window_parts(self.landed.committed(), self.decoder, self.task_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """Reduces a window that is in the change log to one row per key, a part of the keys in each
    task.

    Attributes:
        changelog: The change log's folder …
        files: … and its files that hold the window.
        rule: What the rows do to those of the mirror.
        scn_high: The window.
        has_gaps: Changes of the table are in quarantine.
        parts: In how many parts.
        staging: The folder for what is merged …
        mirror: … or the mirror's, where its rows are to be appended.
        facts: Source and table, for errors.
    """

    changelog: str
    files: tuple[str, ...]
    rule: KeyRule
    scn_high: int
    has_gaps: bool
    parts: int
    staging: str
    facts: dict[str, object]
    mirror: str | None = None

    def merge_source(self, session: Any, sent: SentRows) -> list[str]:
        """Write the source of a MERGE under the staging folder; the paths of its files. ``sent``
        counts its rows."""
        filesystem, folder = filesystem_of(self.staging)
        with storing("staging rows for Spark", **self.facts):
            filesystem.create_dir(folder, recursive=True)
        found = self._run(session, sent)
        return [f"{self.staging}/{one['name']}" for one in found]

    def inserted(self, session: Any, sent: SentRows, mirror: str) -> list[NewFile]:
        """Write the rows that come into the mirror into files of its folder, which no commit names
        yet."""
        found = replace(self, mirror=mirror)._run(session, sent)
        return [NewFile(**one["file"]) for one in found if one["file"]]

    def _run(self, session: Any, sent: SentRows) -> list[dict[str, Any]]:
        found = run_tasks(
            session, self.parts, self, doing="reducing a window on executors", facts=self.facts
        )
        for one in found:
            sent.add(**one["sent"])
        return found

    def __call__(self, number: int) -> dict[str, Any]:
        """Reduce the changes of one part of the keys."""
        schema, absent, own = self.rule.schema, self.rule.absent, of_window(self.scn_high)
        sent = SentRows(schema, self.rule.read_scn, self.facts)
        with logged_changes(self.changelog, schema, own, self.files) as changes:
            rows = merge_part(changes, schema, absent, number, self.parts, has_gaps=self.has_gaps)
        [rows] = sent.counting(iter([rows]))
        if self.mirror is not None:
            file = write_inserted(self.mirror, schema, iter([rows]), self.rule.covered_scn)
            return {"file": as_json(file), "sent": sent.counts}
        filesystem, folder = filesystem_of(self.staging)
        name = f"{number:05d}-{uuid4()}.parquet"  # a task may run twice
        with storing("staging rows for Spark", **self.facts):
            write_staged(f"{folder}/{name}", filesystem, rows)
        return {"name": name, "sent": sent.counts}
