"""How do Spark's executors run a function of ours? A task is a number: what it works on, it finds
by itself, and it says what JSON holds. Or it takes the rows of a partition as they come, and gives
others.

Executors run the Python of ``spark.pyspark.python``, which must have Redolake in the driver's
version. Errors cross to the driver as text, those that are not ours without what they say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version as installed_version
from typing import Any

import pyarrow as pa

from cdc_core.errors import (
    DEBUG_HINT,
    REPORT_HINT,
    CdcError,
    LakeError,
    PreflightError,
    RowCountError,
    SparkMemoryError,
)
from cdc_core.spark.session import packed_error, translated

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_ENDED = "Python worker exited unexpectedly"
_NO_PYTHON = ("Cannot run program", "PYTHON_VERSION_MISMATCH")


Task = Callable[[int], dict[str, Any]]
"""What executors do, by the number of a part: what JSON holds comes back. It is pickled; its
modules are found where Redolake is installed."""


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


def map_rows(
    frame: Any,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    columns: str,
    *,
    doing: str,
    facts: dict[str, object],
) -> Any:
    """A DataFrame with such ``columns`` of what executors make of the rows of each partition, in
    their order. It is computed once, and kept.

    Raises:
        PreflightError: The executors' Python lacks Redolake, or has another version of it.
        SparkMemoryError: It has ended.
        CdcError: What the function raised, and what ``spark.translated`` raises.
    """
    own_version = _version()

    def guarded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _guarded(doing, own_version):
            yield from function(batches)

    with translated(doing, **facts):
        try:
            return frame.mapInArrow(guarded, columns).localCheckpoint()
        except Exception as error:
            raise _known(str(error), doing, facts) or error from None


def _rows_of(
    task: Task, doing: str, version: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What runs in an executor's Python: the numbers that come in, and what the task says of
    each."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with _guarded(doing, version, part=number):
                    done = json.dumps(task(number))
                yield pa.RecordBatch.from_pydict({"part": [number], "found": [done]})

    return rows


@contextmanager
def _guarded(doing: str, version: str, **facts: object) -> Iterator[None]:
    """Errors cross to the driver as text, and those that are not ours without what they say, which
    may be values."""
    try:
        if _version() != version:
            raise PreflightError(
                "an executor's Python has another version of Redolake than the driver",
                hint="Install the driver's version there.",
                driver=version,
                executor=_version(),
            )
        yield
        return
    except CdcError as error:
        text = packed_error(error)
    except Exception as error:  # whatever it is, it must not print values
        unknown = LakeError(f"{doing} failed", hint=DEBUG_HINT, **facts, cause=type(error).__name__)
        text = packed_error(unknown)
    raise RuntimeError(text) from None


def _version() -> str:
    return installed_version("redolake")


def _known(text: str, doing: str, facts: dict[str, object]) -> CdcError | None:
    """The error where an executor's Python cannot run Redolake, or has ended; None where ``text``
    says something else."""
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
