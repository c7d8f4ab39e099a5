"""Which states have the keys of a table by its whole change log? Changes and states of a part of
the keys are held at a time; a change log of several parts is spread over files once
(:mod:`cdc_core.lake.history.spread_changes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.lake.history.layout import HistoryLayout
from cdc_core.lake.history.spread_changes import spread
from cdc_core.lake.rows.logged_changes import files_of, logged_changes, queried
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.schema.table import TableSchema
from cdc_core.stage.carried_columns import NOTHING_CARRIED, carry_columns
from cdc_core.stage.changes import LightChanges, LoggedChanges, OwnRows, below, since
from cdc_core.stage.difference import touching
from cdc_core.stage.layout import COMMIT_SCN
from cdc_core.stage.states import Truncated, last_states, states_of, states_schema


@dataclass(frozen=True, slots=True)
class DerivedStates:
    """The states of one captured table, in the columns of ``stage.states``.

    Attributes:
        work: The table's tools.
        layout: What makes a state in its history.
        schema: The table.
        facts: Where its history is, for errors.
    """

    work: TableWork
    layout: HistoryLayout
    schema: TableSchema
    facts: dict[str, object]

    def of_keys(self, touched: LightChanges | None) -> Iterator[pa.Table]:
        """All states, or those of the keys that some changes touch, part of the keys by part."""
        changelog, everything, eras = self.work.changelog, files_of(self.work), list(self._eras())
        if not everything:
            return
        with ExitStack() as held:
            own = logged_changes(changelog, self.schema, with_images, everything)
            changes = held.enter_context(own)
            facts = changes.facts()
            parts = changes.parts_lacking(len(facts.absent))
            files: list[list[str]] | None = None
            # What a change of key lacks may stand in any part.
            if parts > 1 and touched is None and not facts.moved_absent:
                files = held.enter_context(spread(changes, parts, **self.facts))
            for part in range(parts):
                if files is not None and not files[part]:
                    continue
                found: list[pa.Table] = []
                for era, until in eras:
                    with (
                        logged_changes(changelog, self.schema, era, everything)
                        if files is None
                        else closing(changes.in_files(files[part], era))
                    ) as opened:
                        found += self._states_of(opened, touched, until, part, parts)
                yield from self._as_kept(found)

    def _states_of(
        self,
        changes: LoggedChanges,
        touched: LightChanges | None,
        until: Truncated | None,
        part: int,
        parts: int,
    ) -> Iterator[pa.Table]:
        """The states of one part of the keys that changes left; none without changes."""
        schema, facts, carried = self.schema, changes.facts(), NOTHING_CARRIED
        if not facts.changes:
            return
        has_gaps = QuarantineTable(self.work).exists
        if facts.moved_absent:
            columns, names = states_schema(schema), dict.fromkeys((*schema.key, *facts.absent))
            wanted = [columns.field(name) for name in names]
            nobody = pa.schema([*wanted, pa.field(COMMIT_SCN, pa.int64())]).empty_table()
            found = carry_columns(changes, schema, facts.absent, has_gaps=has_gaps)
            carried = found.values(nobody, schema)
        light = changes.light(part, parts)
        yield states_of(
            changes,
            light if touched is None else touching(light, touched),
            schema,
            facts.absent,
            rule=self.layout.rule(schema),
            has_gaps=has_gaps,
            carried=carried,
            until=until,
        )

    def _as_kept(self, found: Sequence[pa.Table]) -> Iterator[pa.Table]:
        """The states of some keys from all eras, as they are kept."""
        if not self.layout.only_last:
            yield from found
        elif found:
            yield last_states(pa.concat_tables(found), self.schema)

    def _eras(self) -> Iterator[tuple[OwnRows, Truncated | None]]:
        """Which changes stand between two TRUNCATEs, and which one ended them."""
        sql = (
            f"SELECT {COMMIT_SCN} AS scn, _cdc_commit_timestamp AS at FROM changelog "
            f"WHERE _cdc_op = 't' ORDER BY {COMMIT_SCN}"
        )
        own: OwnRows = with_images
        for one in queried(self.work, sql).to_pylist():
            yield below(one["scn"], own), Truncated(one["scn"], one["at"])
            own = since(one["scn"], with_images)
        yield own, None


def with_images(rows: pa.Table) -> pa.Array:
    """All rows but those of TRUNCATEs."""
    return pc.not_equal(rows["_cdc_op"], "t")
