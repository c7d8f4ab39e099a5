"""How do Spark's executors do what the process's threads do: stage a window, and reduce it to one row per key?

A task is a number. It runs the same functions of ``stage`` on the same files of landing and change log, writes a file of its own into the
change log's, the mirror's or the staging folder, and says what is in it; the driver alone commits, behind its fence, and names the files
of the tasks that succeeded. What a task that is lost or repeated has written is named by no commit: VACUUM removes it. So nothing but
paths, counts and Delta's statistics of files comes back to the driver, and a task holds what a thread would hold.

Executors run the Python of ``spark.pyspark.python``, which must have Redolake in the driver's version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa

from cdc_core.delta.appending import NewFile, write_file
from cdc_core.delta.history import filesystem_of
from cdc_core.delta.storage import storing
from cdc_core.errors import (
    DEBUG_HINT,
    REPORT_HINT,
    CdcError,
    LakeError,
    PreflightError,
    RowCountError,
    SparkMemoryError,
)
from cdc_core.lake.append_only import write_inserted
from cdc_core.lake.changes import logged_changes
from cdc_core.lake.merge_audit import Sent
from cdc_core.lake.staging import write_staged
from cdc_core.lake.tables import CHANGELOG_INDEXED
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import packed_error, translated
from cdc_core.stage.absent_names import as_listed
from cdc_core.stage.changes import of_window
from cdc_core.stage.committed import CommittedTransactions, LandedInput
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.layout import change_schema
from cdc_core.stage.parts import WindowPart, check_parts, window_parts
from cdc_core.stage.reducing import merge_part
from cdc_core.stage.widths import Width, WidthCounter, both, widths_as_json, widths_from_json
from cdc_core.stage.window import staged_changes

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_ENDED = "Python worker exited unexpectedly"
_NO_PYTHON = ("Cannot run program", "PYTHON_VERSION_MISMATCH")


class Task(Protocol):
    """What executors do, by number. It is pickled; its modules are found where Redolake is installed."""

    def __call__(self, number: int) -> dict[str, Any]:
        """Do one part; returns what JSON holds."""


@dataclass(frozen=True, slots=True)
class StagedWindow:
    """The files of the change log that hold a window, which no commit names yet, and how wide its values are."""

    files: tuple[NewFile, ...]
    widths: dict[str, Width]


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
        widths: dict[str, Width] = {}
        for one in found:
            widths = both(widths, widths_from_json(one["widths"]))
        files = tuple(NewFile(**one["file"]) for one in found if one["file"])
        return StagedWindow(files, widths)

    def __call__(self, number: int) -> dict[str, Any]:
        """Stage one part into a file of the change log's folder."""
        part = self._parts()[number]
        columns, counter = change_schema(self.decoder.schema), WidthCounter(self.decoder.schema)
        changes = staged_changes(self.landed.rows(part.committed, part.share), self.decoder)
        listed = as_listed(counter.passing(changes), self.decoder.schema)
        file = write_file(self.changelog, columns, listed, CHANGELOG_INDEXED)
        places = np.flatnonzero(part.share.rows)
        return {
            "file": None if file is None else file.as_json(),
            "widths": widths_as_json(counter.seen),
            "transactions": part.committed.count,
            "places": places.tolist(),
            "rows": part.share.rows[places].tolist(),
        }

    def _parts(self) -> list[WindowPart]:
        return window_parts(self.landed.committed(), self.decoder, self.task_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """Reduces a window that is in the change log to one row per key, a part of the keys in each task.

    Attributes:
        changelog: The change log's folder …
        files: … and its files that hold the window.
        schema: The table.
        scn_high: The window.
        absent: Columns that some change does not carry.
        has_gaps: Changes of the table are in quarantine.
        read_scn: As of ``sent.Sent``.
        parts: In how many parts.
        staging: The folder for what is merged …
        mirror: … or the mirror's, where its rows are to be appended, with …
        covered_scn: … this lower bound.
        facts: Source and table, for errors.
    """

    changelog: str
    files: tuple[str, ...]
    schema: TableSchema
    scn_high: int
    absent: tuple[str, ...]
    has_gaps: bool
    read_scn: int | None
    parts: int
    staging: str
    facts: dict[str, object]
    mirror: str | None = None
    covered_scn: int = 0

    def merge_source(self, session: Any, sent: Sent) -> list[str]:
        """Write the source of a MERGE under the staging folder; the paths of its files. ``sent`` counts its rows."""
        filesystem, folder = filesystem_of(self.staging)
        with storing("staging rows for Spark", **self.facts):
            filesystem.create_dir(folder, recursive=True)
        found = self._run(session, sent)
        return [f"{self.staging}/{one['name']}" for one in found]

    def inserted(self, session: Any, sent: Sent, mirror: str, covered_scn: int) -> list[NewFile]:
        """Write the rows that come into the mirror into files of its folder, which no commit names yet."""
        own = replace(self, mirror=mirror, covered_scn=covered_scn)
        found = own._run(session, sent)
        return [NewFile(**one["file"]) for one in found if one["file"]]

    def _run(self, session: Any, sent: Sent) -> list[dict[str, Any]]:
        found = run_tasks(
            session, self.parts, self, doing="reducing a window on executors", facts=self.facts
        )
        for one in found:
            sent.add(**one["sent"])
        return found

    def __call__(self, number: int) -> dict[str, Any]:
        """Reduce the changes of one part of the keys."""
        sent = Sent(self.schema, self.read_scn, self.facts)
        with logged_changes(
            self.changelog, self.schema, of_window(self.scn_high), self.files
        ) as changes:
            rows = merge_part(
                changes, self.schema, self.absent, number, self.parts, has_gaps=self.has_gaps
            )
        counted = sent.counting(iter([rows]))
        done = self._stage(number, counted) if self.mirror is None else self._insert(counted)
        return {**done, "sent": sent.counts}

    def _stage(self, number: int, rows: Iterator[pa.Table]) -> dict[str, Any]:
        filesystem, folder = filesystem_of(self.staging)
        name = f"{number:05d}-{uuid4()}.parquet"  # a task may run twice
        with storing("staging rows for Spark", **self.facts):
            for table in rows:
                write_staged(f"{folder}/{name}", filesystem, table)
        return {"name": name}

    def _insert(self, rows: Iterator[pa.Table]) -> dict[str, Any]:
        file = write_inserted(self.mirror or "", self.schema, rows, self.covered_scn)
        return {"file": None if file is None else file.as_json()}


def run_tasks(
    session: Any, count: int, task: Task, *, doing: str, facts: dict[str, object]
) -> list[dict[str, Any]]:
    """Let executors do ``count`` parts of a task; what each of them returned, in their order.

    Raises:
        PreflightError: The executors' Python lacks Redolake, or has another version of it.
        SparkMemoryError: It has ended.
        RowCountError: A part is missing, or there twice.
        CdcError: What a task raised, and what ``spark.translated`` raises.
    """
    with translated(doing, **facts):
        parts = session.range(0, count, 1, count)
        try:
            found = parts.mapInArrow(
                _rows_of(task, doing, _version()), "part BIGINT, found STRING"
            ).toArrow()
        except Exception as error:
            raise _known(str(error), doing, facts) or error from None
    by_number = {row["part"]: json.loads(row["found"]) for row in found.to_pylist()}
    if found.num_rows != count or sorted(by_number) != list(range(count)):
        raise RowCountError(
            f"{doing}: the executors did not do each part once; nothing was committed",
            hint=REPORT_HINT,
            **facts,
            parts=count,
            done=found.num_rows,
        )
    return [by_number[number] for number in range(count)]


def _rows_of(
    task: Task, doing: str, version: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What runs in an executor's Python: the numbers that come in, and what the task says of each."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                done = json.dumps(_done(task, number, doing, version))
                yield pa.RecordBatch.from_pydict({"part": [number], "found": [done]})

    return rows


def _done(task: Task, number: int, doing: str, version: str) -> dict[str, Any]:
    """One part; errors cross to the driver as text, and those that are not ours without what they say, which may be values."""
    try:
        if _version() != version:
            raise PreflightError(
                "an executor's Python has another version of Redolake than the driver",
                hint="Install the driver's version there.",
                driver=version,
                executor=_version(),
            )
        return task(number)
    except CdcError as error:
        text = packed_error(error)
    except Exception as error:  # whatever it is, it must not print values
        unknown = LakeError(
            f"{doing} failed", hint=DEBUG_HINT, part=number, cause=type(error).__name__
        )
        text = packed_error(unknown)
    raise RuntimeError(text)


def _version() -> str:
    return installed_version("redolake")


def _known(text: str, doing: str, facts: dict[str, object]) -> CdcError | None:
    """The error where an executor's Python cannot run Redolake, or has ended; None where ``text`` says something else."""
    missing = _MISSING.search(text)
    if _ENDED in text:
        return SparkMemoryError(
            f"{doing}: an executor's Python has ended, most likely because its machine ran out "
            "of memory",
            hint="Nothing is lost. Leave the workers more memory beside spark.executor.memory, or give them fewer cores.",
            **facts,
        )
    if missing is None and not any(mark in text for mark in _NO_PYTHON):
        return None
    return PreflightError(
        "the executors' Python cannot run Redolake"
        + (f": it has no module {missing[1]}" if missing else ""),
        hint="Install Redolake in the driver's version on every worker, in the Python that spark.pyspark.python of lake.spark_config names "
        "(the driver's path if it names none). Or let the driver stage all windows: lake.stage_on_executors_from_rows: never.",
    )


def names_of(files: Sequence[NewFile]) -> list[str]:
    """The files' names."""
    return [file.name for file in files]
