"""How do a window's redo rows get into the change log, and what kinds of changes are in it?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_core.lake.committed import CommittedTransactions, committed_rows_sql
from cdc_core.lake.decoding import COLUMNS_READ, ChangeDecoder
from cdc_core.lake.reduce import moved_sql
from cdc_core.lake.rollback import surviving_sql
from cdc_core.lake.spark import translated
from cdc_core.lake.tables import change_ddl, delta, quote_name
from cdc_core.landing.layout import REDO_SCHEMA, TRANSACTION_SCHEMA
from cdc_core.landing.manifest import WindowManifest
from cdc_core.schema.table import TableSchema

OBSERVATION_SECONDS = 10.0
"""Longest wait for what Spark observed during a write, before it is counted again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFacts:
    """What the reduction must know before it is written: counts, columns that some change lacks, hard key changes.

    ``moved_absent`` counts changes of key that do not carry all columns. Where there are ``inserts`` and ``deletes``, two rows
    may have had one key inside a transaction.
    """

    changes: int
    inserts: int
    deletes: int
    absent: tuple[str, ...]
    moved: int
    moved_absent: int


def decoded_changes(
    session: Any,
    manifest: WindowManifest,
    schema: TableSchema,
    committed: CommittedTransactions,
    redo_paths: Sequence[str],
    transactions_paths: Sequence[str],
    decode: Callable[[Any, TableSchema], Any],
    earlier: Sequence[TableSchema] = (),
    excluded: Sequence[str] = (),
) -> Any:
    """A DataFrame with the window's changes of one table, in the change log's columns."""
    with translated("reading a window's files", table=schema.table, window=manifest.window.key):
        _parquet(session, redo_paths, "redo", _REDO_DDL)
        _parquet(session, transactions_paths, "transactions", _TRANSACTIONS_DDL)
        rows = committed_rows_sql(
            "redo",
            "transactions",
            schema.table,
            manifest.window,
            ordinal=manifest.ordinal,
            committed=committed,
        )
        session.sql(rows).createOrReplaceTempView("committed")
        session.sql(_without_undone(committed)).createOrReplaceTempView("surviving")
        frame = session.sql(f"SELECT {COLUMNS_READ} FROM surviving")
        decoder = ChangeDecoder(
            schema, manifest.window.scn_high, decode, tuple(earlier), tuple(excluded)
        )
        return frame.mapInArrow(decoder.__call__, change_ddl(schema))


def _without_undone(committed: CommittedTransactions) -> str:
    """Only transactions that took something back pay for the windows that find it."""
    plain = "SELECT *, CAST(NULL AS STRING) AS problem FROM committed"
    if not committed.has_rollback:
        return plain
    undone = surviving_sql("(SELECT * FROM committed WHERE has_rollback)")
    return f"{plain} WHERE NOT has_rollback UNION ALL ({undone})"


def change_facts(session: Any, view: str, schema: TableSchema) -> ChangeFacts:
    """Count and look through the changes in a view of the change log."""
    query = ", ".join(f"{sql} AS {slot}" for slot, sql in _facts_sql(schema).items())
    with translated("reading the change log", table=schema.table):
        row = session.sql(f"SELECT {query} FROM {view}").collect()[0]
    return _facts(row.asDict(), schema)


class ObservedFacts:
    """The same facts, counted on the way while a DataFrame is written: saves a job of its own per table and window."""

    def __init__(self, frame: Any, schema: TableSchema) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        self._schema = schema
        self._observation = Observation("change_facts")
        columns = [f.expr(sql).alias(slot) for slot, sql in _facts_sql(schema).items()]
        self.frame = frame.observe(self._observation, *columns)

    def get(self) -> ChangeFacts | None:
        """The facts after the write; None if Spark did not report them, which it does on another thread."""
        found: list[dict[str, Any]] = []
        waiter = threading.Thread(
            target=lambda: found.append(dict(self._observation.get)), daemon=True
        )
        waiter.start()
        waiter.join(OBSERVATION_SECONDS)
        return _facts(found[0], self._schema) if found else None


def _facts_sql(schema: TableSchema) -> dict[str, str]:
    return {
        "changes": "COUNT(*)",
        "inserts": "COUNT_IF(_cdc_op = 'c')",
        "deletes": "COUNT_IF(_cdc_op = 'd')",
        "absent": "ARRAY_DISTINCT(FLATTEN(COLLECT_SET(IF(_cdc_op = 'd', NULL, _cdc_absent))))",
        "moved": f"COUNT_IF({moved_sql(schema)})",
        "moved_absent": f"COUNT_IF({moved_sql(schema)} AND SIZE(_cdc_absent) > 0)",
    }


def _facts(row: dict[str, Any], schema: TableSchema) -> ChangeFacts:
    present = tuple(column for column in schema.column_names if column in set(row["absent"]))
    return ChangeFacts(
        changes=row["changes"],
        inserts=row["inserts"],
        deletes=row["deletes"],
        absent=present,
        moved=row["moved"],
        moved_absent=row["moved_absent"],
    )


def window_view(session: Any, changelog: str, scn_high: int, view: str = "changes") -> str:
    """A view of one window's rows of the change log."""
    rows = session.sql(
        f"SELECT * FROM {delta(changelog)} WHERE _cdc_window = {scn_high} AND _cdc_snapshot IS NULL"
    )
    rows.createOrReplaceTempView(view)
    return view


def _parquet(session: Any, paths: Sequence[str], view: str, ddl: str) -> None:
    reader = session.read.schema(ddl)
    frame = reader.parquet(*paths) if paths else session.createDataFrame([], ddl)
    frame.createOrReplaceTempView(view)


def _landing_ddl(schema: Any) -> str:
    """Spark's words for the landing schemas, so that no file is opened just to learn its columns."""
    kinds = {
        "int64": "BIGINT",
        "int32": "INT",
        "string": "STRING",
        "large_string": "STRING",
        "bool": "BOOLEAN",
        "timestamp[s]": "TIMESTAMP_NTZ",
        "list<item: string>": "ARRAY<STRING>",
        "list<element: string>": "ARRAY<STRING>",
    }
    return ", ".join(f"{quote_name(field.name)} {kinds[str(field.type)]}" for field in schema)


_REDO_DDL = _landing_ddl(REDO_SCHEMA)
_TRANSACTIONS_DDL = _landing_ddl(TRANSACTION_SCHEMA)
