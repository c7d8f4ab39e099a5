"""What do rows hold by the whole change log?

A key's state is derived from everything that the change log has of it, in commit order, whatever
the mirror holds and in whatever order the changes got there: by the functions of ``stage``, in
Spark's tasks (:mod:`cdc_core.lake.rows.by_key`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdc_core.delta.history import read_log
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.definitions.evolution import added_columns
from cdc_core.lake.rows.by_key import KeyedChanges, Reduction
from cdc_core.lake.rows.carried_columns import carried_sql, carried_view, history_origin
from cdc_core.lake.rows.logged_changes import files_of, logged_changes, rows_sql
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import listed, of_image, string_literal
from cdc_core.schema.table import TableSchema
from cdc_core.stage.carried_columns import carry_columns
from cdc_core.stage.changes import OwnRows, below, since, up_to
from cdc_core.stage.layout import COMMIT_SCN


def rederived(
    work: TableWork,
    session: Any,
    changes: str,
    schema: TableSchema,
    *,
    position: int,
    covered_scn: int,
    is_late: bool = False,
) -> Any:
    """A DataFrame of the rows that the mirror has otherwise than the change log up to ``position``
    says, of the keys that ``changes`` (a relation of SQL) touch; for a MERGE that takes it as the
    truth.

    Where changes came to light late (``is_late``), later changes of key may have carried a column
    along that a late one set. All keys are then looked at if any change of key lacks a column.
    """
    keys = " UNION ".join(
        f"SELECT {of_image(schema.key, image)} FROM {changes} WHERE {image} IS NOT NULL"
        for image in ("before", "after")
    )
    history = _History(work, session, schema, position)
    wanted: str | None = f"({keys})"
    if is_late:
        every = history.keyed(schema, None)
        wanted = None if every.kinds().moved_absent else wanted
    return history.derived(wanted, covered_scn, is_compared=True)


def derived(work: TableWork, session: Any, schema: TableSchema, position: int) -> Any:
    """A DataFrame with the columns of ``stage.reduction.source_schema`` from the change log up to
    ``position``, of all keys."""
    return _History(work, session, schema, position).derived(None, 0)


def derived_before(
    work: TableWork,
    session: Any,
    schema: TableSchema,
    scn: int,
    *,
    columns: Sequence[str],
    within: str,
) -> Any:
    """The same of what was there right before ``scn`` by the changes below it, of the keys that may
    have had a row that fulfils ``within``, a condition on ``columns``. There are no other columns
    than these and the key's."""
    history = _History(work, session, schema, scn, is_below=True)
    added = added_columns(read_log(work.changelog))
    names = ", ".join(map(string_literal, columns))
    older = "".join(f" OR _cdc_columns <= {added[one].place}" for one in columns if one in added)
    keys = listed(schema.key)
    wanted = (
        f"(SELECT DISTINCT {keys} FROM (SELECT after.*, _cdc_absent, _cdc_columns FROM {history.rows}"
        f" WHERE after IS NOT NULL) WHERE ({within}) OR ARRAYS_OVERLAP(_cdc_absent, ARRAY({names})){older})"
    )
    needed = (*schema.key, *columns)
    held = schema.lacking([one for one in schema.column_names if one not in needed])
    # Rows that a snapshot found gone may have changes behind it: their end is what is looked for.
    return history.reduced(held, wanted, Reduction(held, has_gaps=True))


class _History:
    """A table's change log up to the mirror's position, since its last TRUNCATE; ``is_below``: what
    is at the position itself is left out."""

    def __init__(
        self,
        work: TableWork,
        session: Any,
        schema: TableSchema,
        position: int,
        *,
        is_below: bool = False,
    ) -> None:
        self._work, self._session, self._schema = work, session, schema
        counts_from = truncated_scn(work, read_log(work.changelog))
        self._own: OwnRows = up_to(position)
        which = f"(_cdc_snapshot IS NOT NULL OR _cdc_window <= {position})"
        if counts_from:
            self._own = since(counts_from, self._own)
            which += f" AND _cdc_op <> 't' AND {COMMIT_SCN} >= {counts_from}"
        if is_below:
            self._own = below(position, self._own)
            which += f" AND {COMMIT_SCN} < {position}"
        self.rows = f"(SELECT * FROM {rows_sql(work, session, schema)} WHERE {which})"

    def keyed(self, held: TableSchema, wanted: str | None, rows: str | None = None) -> KeyedChanges:
        """Its changes by their keys; ``held`` is the table with the columns that matter."""
        return KeyedChanges(
            work=self._work,
            session=self._session,
            rows=self.rows if rows is None else rows,
            schema=held,
            added=added_columns(read_log(self._work.changelog)),
            wanted=wanted,
        )

    def derived(self, wanted: str | None, covered_scn: int, *, is_compared: bool = False) -> Any:
        """What the table's rule says of the wanted keys."""
        rule = Reduction(self._schema, QuarantineTable(self._work).exists, covered_scn)
        return self.reduced(self._schema, wanted, rule, is_compared=is_compared)

    def reduced(
        self, held: TableSchema, wanted: str | None, rule: Reduction, *, is_compared: bool = False
    ) -> Any:
        """One row per key, in which changes of key have what they carry along."""
        keyed, work, session = self.keyed(held, wanted), self._work, self._session
        if keyed.kinds().moved_absent:
            # Following rows over their changes of key may lead to keys outside the window.
            absent = self.keyed(held, None).kinds().absent
            with logged_changes(work.changelog, held, self._own, files_of(work)) as changes:
                carried = carry_columns(changes, held, absent, has_gaps=rule.has_gaps)
            view = carried_view(work, session, carried, has_mirror=False)
            added = added_columns(read_log(work.changelog))
            origin = history_origin(self.rows, held, absent, added)
            rows = carried_sql(self.rows, held, absent, added, origin, view)
            keyed = self.keyed(held, wanted, f"({rows})")
        return keyed.derived(rule, is_compared=is_compared)
