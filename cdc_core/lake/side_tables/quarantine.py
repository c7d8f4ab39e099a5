"""What does the quarantine table of a captured table hold, and how does it change? A small Delta
table, without Spark.

It has the redo rows that could not be decoded, window by window. It exists from the first such row
on, and holds row values (``sql_redo``): it lies beside mirror and change log, with its own folder,
so that readers of these need no right to it.

A window's rows are put in the place of those that an earlier attempt left of the same window, in
one commit with its own transaction
identifier, and before the change log takes the window: so whoever finds the window in the change
log finds its quarantine complete. A row counts until the table's rows were read at a later SCN,
which is then its ``resolved_scn``.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.history import read_log
from cdc_core.delta.small_tables import SmallTable
from cdc_core.errors import RESNAPSHOT, LakeError
from cdc_core.lake.table_context import TableWork
from cdc_core.runtime.arrow import whole
from cdc_core.stage.quarantine import QUARANTINE_SCHEMA, Suspects


class QuarantineTable:
    """The quarantine of one captured table; empty where its Delta table is not there."""

    def __init__(self, work: TableWork) -> None:
        self._work = work
        self.path = f"{work.root.rstrip('/')}/{work.source}/quarantine/{work.table.path}"
        self.exists = read_log(self.path) is not None
        self._table = SmallTable(
            path=self.path,
            name="quarantine",
            schema=QUARANTINE_SCHEMA,
            indexed=("_cdc_window", "_cdc_commit_scn", "resolved_scn"),
            properties={
                "redolake.source": work.source,
                "redolake.table": str(work.table),
                "redolake.role": "quarantine",
            },
            facts=work.facts(path=self.path),
            fence=work.fence,
        )

    def require(self, rows: int) -> None:
        """The rows that are in quarantine say which rows of the mirror are not certain.

        Raises:
            LakeError: There are some, and somebody has removed the Delta table.
        """
        if rows and not self.exists:
            raise LakeError(
                "the quarantine, which records the uncertain rows of the mirror, does not exist",
                hint=f"Restore its folder. Without a copy, {RESNAPSHOT} reads the table again.",
                **self._work.facts(path=self.path, rows=rows),
            )

    def read(self, columns: list[str]) -> pa.Table:
        """Some columns of all rows."""
        return self._table.read(columns)

    def count_unresolved(self) -> int:
        """How many rows count still."""
        return int(self.read(["resolved_scn"])["resolved_scn"].null_count)

    def counts(self) -> dict[int, int]:
        """How many rows each window put there, by its scn_high."""
        windows = whole(self.read(["_cdc_window"])["_cdc_window"]).value_counts()
        return {one["values"]: one["counts"] for one in windows.to_pylist()}

    def suspects(self) -> Suspects:
        """Whose former state is not certain."""
        rows = self.read(["_cdc_row_id", "resolved_scn"])
        return Suspects.of(rows.filter(pc.is_null(rows["resolved_scn"]))["_cdc_row_id"].to_pylist())

    def reasons(self) -> dict[tuple[str, str], int]:
        """How many rows count still, by operation and reason."""
        rows = self.read(["operation", "reason", "resolved_scn"])
        rows = rows.filter(pc.is_null(rows["resolved_scn"]))
        found = rows.group_by(["operation", "reason"]).aggregate([([], "count_all")]).to_pylist()
        return {
            (one["operation"], one["reason"]): one["count_all"]
            for one in sorted(found, key=lambda one: (-one["count_all"], one["reason"]))
        }

    def put(self, rows: pa.Table, window: int) -> None:
        """Let these be the window's rows. Repeatable; makes no commit where they are there, or
        where there are none."""
        there = self.read(["_cdc_window", "_cdc_ordinal", "reason"])
        there = there.filter(pc.equal(there["_cdc_window"], window)).sort_by("_cdc_ordinal")
        if there.equals(rows.select(there.column_names)):
            return
        if not self.exists:
            self._table.create()
            self.exists = True
        from deltalake import write_deltalake

        with self._table.committing(*self._said("quarantine", window)) as properties:
            write_deltalake(
                self.path,
                rows,
                mode="overwrite",
                predicate=f"_cdc_window = {window}",
                commit_properties=properties,
            )

    def resolve(self, scn: int) -> None:
        """Note that the table's rows were read at an SCN: rows that committed up to there count no
        more. Repeatable."""
        rows = self.read(["_cdc_commit_scn", "resolved_scn"])
        is_open = pc.and_(
            pc.is_null(rows["resolved_scn"]), pc.less_equal(rows["_cdc_commit_scn"], scn)
        )
        if pc.any(is_open).as_py():
            where = f"resolved_scn IS NULL AND _cdc_commit_scn <= {scn}"
            self._update({"resolved_scn": str(scn)}, where, "resolve", scn)

    def forget_text(self) -> bool:
        """Remove the redo text of all rows; was there any? Old files hold it until VACUUM removes
        them. Repeatable."""
        text = self.read(["sql_redo"])["sql_redo"]
        if text.null_count == len(text):
            return False
        self._update({"sql_redo": "NULL"}, "sql_redo IS NOT NULL", "purge", 0)
        return True

    def maintain(self, vacuum_hours: int | None) -> None:
        """Put the windows' small files together, and remove files that no version of so many hours
        has (None: keep them): each window looks through the whole table. No row changes."""
        if self.exists:
            self._table.maintain(vacuum_hours, *self._said("maintenance", 0))

    def _update(self, values: dict[str, str], where: str, kind: str, scn: int) -> None:
        from deltalake import DeltaTable

        with self._table.committing(*self._said(kind, scn)) as properties:
            DeltaTable(self.path).update(values, predicate=where, commit_properties=properties)

    def _said(self, kind: str, scn: int) -> tuple[str, tuple[str, int]]:
        """User metadata and transaction identifier of a commit."""
        work = self._work
        return work.metadata(kind, scn), (f"{work.window_app}/{kind}", scn)
