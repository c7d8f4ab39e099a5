"""How is the ledger of open transactions kept with a landed window?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.landing.damage import reading_file
from cdc_core.landing.layout import TRANSACTION_SCHEMA, window_folder
from cdc_core.landing.manifest import WindowManifest
from cdc_core.landing.store import LandingStore
from cdc_core.model.transactions import LedgerState, OpenTransaction

LIVING_STATES: tuple[LedgerState, ...] = (
    "open",
    "undone",
    "ending",
    "released",
    "rolled_back",
    "displaced",
)
"""States of ``TRANSACTION_SCHEMA`` that are the ledger after a window; the others have ended in
it."""


def ledger_from_landing(landing: LandingStore, manifest: WindowManifest) -> list[OpenTransaction]:
    """The transactions that were open at the end of a landed window, oldest first."""
    folder = window_folder(manifest.source, manifest.window)
    [path] = landing.local_paths(folder, [manifest.transactions_file])
    rows: list[dict[str, Any]] = []
    # Reading with filters takes pyarrow's data sets, whose libraries an idle run does without
    # (tests/pipelines/test_idle_run.py).
    with reading_file(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            is_living = (pc.equal(batch["state"], state) for state in LIVING_STATES)
            rows += batch.filter(reduce(pc.or_, is_living)).to_pylist()
    return ledger_from_rows(rows)


def ledger_from_rows(rows: Iterable[dict[str, Any]]) -> list[OpenTransaction]:
    """The ledger that :func:`ledger_batch` wrote."""
    names = [one.name for one in fields(OpenTransaction)]
    return [
        OpenTransaction(
            **{name: row[name] for name in names if row[name] is not None}
            | {"start_scn": row["start_scn"]}
            | {name: tuple(row[name] or ()) for name in ("tables", "table_rows", "windows")}
        )
        for row in rows
    ]


def ledger_batch(ledger: Iterable[OpenTransaction]) -> pa.RecordBatch:
    """The ledger after a window as ``TRANSACTION_SCHEMA``; what says how a transaction ended is
    NULL."""
    rows = [
        {name: getattr(one, name) for name in (each.name for each in fields(OpenTransaction))}
        | {name: list(getattr(one, name)) for name in ("tables", "table_rows", "windows")}
        | {"late": False}
        for one in ledger
    ]
    return pa.RecordBatch.from_pylist(rows, schema=TRANSACTION_SCHEMA)
