"""How many redo rows of which table, operation and user does a landed window hold?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.landing.damage import reading_file
from cdc_core.landing.layout import window_folder
from cdc_core.landing.manifest import WindowManifest
from cdc_core.landing.store import LandingStore
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation

Share = tuple[str, str, str | None]
"""Table, operation, user."""

_KEYS = ("seg_owner", "table_name", "operation_code", "rollback", "xid")
_ROLLBACK = Operation.ROLLBACK.name


def count_redo(landing: LandingStore, manifest: WindowManifest) -> Iterator[tuple[Share, int, int]]:
    """Shares of a window's redo with their rows and bytes, one share perhaps several times; batch
    by batch, so memory grows with the window's transactions alone.

    Bytes are those of the redo text; of rows without one, their part of the file. Rows that
    Redolake has added to the redo are left out.

    Raises:
        LandingDamagedError: A file is missing or changed.
    """
    folder = window_folder(manifest.source, manifest.window)
    [ledger] = landing.local_paths(folder, [manifest.transactions_file])
    users = _users(ledger)
    paths = landing.local_paths(folder, manifest.redo_files)
    for path, written in zip(paths, manifest.redo_files, strict=True):
        share = written.bytes / written.rows if written.rows else 0.0
        with reading_file(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=[*_KEYS, "sql_redo"]):
                yield from _counted(batch, users, share)


def _users(path: str) -> dict[str, str | None]:
    """The user of each transaction of the window."""
    found: dict[str, str | None] = {}
    with reading_file(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=["xid", "username"]):
            xids, names = batch["xid"].to_pylist(), batch["username"].to_pylist()
            found.update(zip(xids, names, strict=True))
    return found


def _counted(
    batch: pa.RecordBatch, users: Mapping[str, str | None], share: float
) -> Iterator[tuple[Share, int, int]]:
    size = pc.binary_length(batch["sql_redo"]).cast(pa.float64()).fill_null(share)
    keys = pa.table({name: batch[name] for name in _KEYS} | {"bytes": size})
    groups = keys.group_by(list(_KEYS)).aggregate([("bytes", "sum"), ([], "count_all")])
    for row in groups.to_pylist():
        code = row["operation_code"]
        if code == Operation.RESELECTED:
            continue
        name = _ROLLBACK if row["rollback"] else _name(code)
        table = str(TableId(row["seg_owner"], row["table_name"]))
        yield (table, name, users.get(row["xid"])), row["count_all"], round(row["bytes_sum"])


def _name(code: int) -> str:
    return Operation(code).name if code in set(Operation) else f"OPERATION_CODE {code}"
