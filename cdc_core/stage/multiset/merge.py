"""What does a window make of rows of a mirror whose equal rows are counted? MERGE's rule for them,
by columns.

``lake.rows.multiset.merge_copies_sql`` is the same rule for Spark; one test holds both to each
other (``tests/lake/test_rewriting.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import ANY_TABLE, CdcError, LakeError
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import ROW_COPY, ROW_DIGEST, TableSchema
from cdc_core.stage.changes import Flags, Rows
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema
from cdc_core.stage.merge import Effects, Merge, places_of


def another_mirror(schema: TableSchema) -> CdcError:
    """A copy that is to come is there, or one that is to go or to get another position is not."""
    return LakeError(
        "the mirror has changed since it was read",
        hint="Another process has written to it. Run the command again; if the error comes again, "
        f"`redolake table rebuild {ANY_TABLE}` writes the mirror from its change log.",
        table=schema.table,
    )


class CopiesMerge(Merge):
    """The copies of a window, on their way into a mirror. As of ``stage.merge.WindowMerge``, all
    of its rows that can have one of their digests are looked at before rows are made.

    Args:
        rows: One row per digest and number, in the columns of ``multiset.copies.copies_source``.
        schema: The table.
    """

    def __init__(self, rows: pa.Table, schema: TableSchema) -> None:
        self._schema, self._columns = schema, mirror_schema(schema)
        self._rows = rows.combine_chunks()
        self.least_scn = pc.min(rows[COMMIT_SCN]).as_py() or 0
        self._digests = pc.unique(self._rows[ROW_DIGEST])
        self._is_row: Flags = pc.equal(rows["_cdc_kind"], "row").to_numpy()
        self._comes: Flags = self._is_row & rows["_cdc_new"].to_numpy()
        self._is_there = np.zeros(rows.num_rows, dtype=np.bool_)
        self.rows_updated = self.rows_deleted = self.read_scn = 0

    @property
    def kept_columns(self) -> Sequence[str]:
        """All: a copy that stays has its values."""
        return list(self._columns.names)

    def near(self, there: pa.Table) -> Rows:
        """The places of the rows that have one of the window's digests, ascending."""
        return np.flatnonzero(pc.is_in(there[ROW_DIGEST], self._digests).to_numpy())

    def effects(self, there: pa.Table) -> Effects:
        """What becomes of rows of the mirror, by ``_cdc_row_digest`` and ``_cdc_copy``.

        Raises:
            LakeError: A copy that is to come is there.
        """
        source = np.full(there.num_rows, -1, dtype=np.int64)
        near = self.near(there)
        own = [ROW_DIGEST, ROW_COPY]
        source[near] = places_of(there.select(own).take(pa.array(near)), self._rows.select(own))
        found = source >= 0
        met = source[found]
        if self._comes[met].any():
            raise another_mirror(self._schema)
        self._is_there[met] = True
        updates, deletes = found.copy(), found.copy()
        updates[found], deletes[found] = self._is_row[met], ~self._is_row[met]
        self.rows_updated += int(updates.sum())
        self.rows_deleted += int(deletes.sum())
        return Effects(source, updates, deletes)

    def merged(self, there: pa.Table, effects: Effects) -> pa.Table:
        """The rows of the mirror as they are after the window, in their order: a copy that stays
        has its values, and perhaps another position."""
        if not effects.change_something:
            return there
        places = np.arange(there.num_rows)
        places[effects.updates] = there.num_rows + np.arange(int(effects.updates.sum()))
        sent = pa.array(effects.source[effects.updates])
        for name in (COMMIT_SCN, ORDINAL):
            both = [whole(there[name]), whole(self._rows[name]).take(sent)]
            moved = pa.concat_arrays(both).take(pa.array(places))
            there = there.set_column(there.schema.get_field_index(name), name, moved)
        return there.filter(pa.array(~effects.deletes)).cast(self._columns)

    @property
    def rows_inserted(self) -> int:
        """How many copies come, when all of the mirror's rows are looked at.

        Raises:
            LakeError: A copy that is to go, or to get another position, is not there.
        """
        if not (self._is_there | self._comes).all():
            raise another_mirror(self._schema)
        return int(self._comes.sum())

    def inserted(self) -> pa.Table:
        """The rows of the copies that come."""
        found = self._rows.filter(pa.array(self._comes))
        return found.select(self._columns.names).cast(self._columns)
