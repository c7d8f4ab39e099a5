"""How do a window's changes, which are in the change log, become the rows of a change of its
mirror?

Three places make them by one function: this process, executors where the window is large, and
Spark's tasks (:mod:`cdc_core.lake.rows.by_key`) where many changes of key lack columns that
the mirror alone has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_core.delta.appending import CommitInfo, NewFile
from cdc_core.delta.history import read_log
from cdc_core.lake.definitions.evolution import added_columns
from cdc_core.lake.mirror.append_only import write_inserted
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.merge import KeyRule
from cdc_core.lake.mirror.merge_audit import SentRows
from cdc_core.lake.mirror.write import ChangeRows, MirrorChange
from cdc_core.lake.rows.by_key import KeyedChanges
from cdc_core.lake.rows.by_key import Reduction as KeyReduction
from cdc_core.lake.rows.carried_columns import carried_sql, carried_view, mirror_origin
from cdc_core.lake.rows.executors import Reduction
from cdc_core.lake.rows.logged_changes import window_sql
from cdc_core.lake.rows.spark_reading import layer_sql
from cdc_core.lake.rows.staging import StagedRows, staged_by_executors, staged_rows
from cdc_core.lake.table_context import TableWork
from cdc_core.spark.session import translated
from cdc_core.stage.carried_columns import (
    ASKED_MAX,
    NOTHING_CARRIED,
    CarriedPlaces,
    CarriedValues,
    carry_columns,
)
from cdc_core.stage.changes import ChangeFacts, LoggedChanges
from cdc_core.stage.layout import COMMIT_SCN, mirror_schema
from cdc_core.stage.reduction import merge_sources, source_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRows(ChangeRows):
    """The rows of a window of a table with a key.

    Attributes:
        work: The table's tools.
        changes: The window's changes …
        files: … in these files of the change log …
        found: … and what they say.
        scn_high: The window.
        rule: What the rows do to those of the mirror.
        has_gaps: Changes of the table are in quarantine, or come with a later window.
        facts: Source, table and window, for errors.
    """

    work: TableWork
    changes: LoggedChanges
    files: Sequence[str]
    found: ChangeFacts
    scn_high: int
    rule: KeyRule
    has_gaps: bool
    facts: dict[str, object]

    def change(self, info: CommitInfo) -> MirrorChange:
        """They, as a change of the mirror."""
        return MirrorChange(rows=self, rule=self.rule, commit=info, bounds=self.found.bounds)

    @property
    def count(self) -> int:
        """How many changes they come from."""
        return self.found.changes

    @property
    def why_spark(self) -> str | None:
        if self.changes.parts > 1 or self._executors is not None:
            return "the window is large"
        return None

    def inserted(self, mirror: MirrorFiles) -> tuple[Sequence[NewFile], SentRows]:
        sent, path, rule = self._audit(), mirror.work.mirror, self.rule
        if self._executors is not None:
            return self._reduction.inserted(self._executors, sent, path), sent
        one = write_inserted(path, rule.schema, sent.counting(self._parts()), rule.covered_scn)
        return [] if one is None else [one], sent

    def in_hand(self, mirror: MirrorFiles) -> tuple[pa.Table, SentRows] | None:
        """None where the mirror is to be asked for what many changes of key carry along."""
        carried = self._carried(mirror)
        if carried is None:
            return None
        sent = self._audit()
        [rows] = sent.counting(self._parts(carried))
        return rows, sent

    @contextmanager
    def staged(self, work: TableWork) -> Iterator[StagedRows]:
        session, sent, schema = work.session_for(self.count), self._audit(), self.rule.schema
        if self.found.moved_absent:
            # The window does not say all. A change of key takes the columns that it lacks from the
            # mirror's row of the old key.
            with translated("reducing a window", **work.facts()):
                frame = self._with_carried(session)
                counted = SentRows.of_frame(frame, schema, self.rule.read_scn, self.facts)
            yield StagedRows(frame, counted)
        elif (executors := self._executors) is None:
            with staged_rows(work, session, sent.counting(self._parts()), sent) as staged:
                yield staged
        else:
            with staged_by_executors(
                work,
                session,
                source_schema(schema),
                lambda: self._reduction.merge_source(executors, sent),
                sent,
            ) as staged:
                yield staged

    def _parts(self, carried: CarriedValues = NOTHING_CARRIED) -> Iterator[pa.Table]:
        schema, absent = self.rule.schema, self.found.absent
        return merge_sources(self.changes, schema, absent, has_gaps=self.has_gaps, carried=carried)

    @property
    def _executors(self) -> Any | None:
        return self.work.executors_for(self.count)

    @property
    def _reduction(self) -> Reduction:
        """How executors reduce the window."""
        return Reduction(
            changelog=self.work.changelog,
            files=tuple(self.files),
            rule=self.rule,
            scn_high=self.scn_high,
            has_gaps=self.has_gaps,
            parts=max(1, self.count // (2 * self.work.task_rows(self.count))),  # smaller than redo
            staging=self.work.staging,
            facts=self.facts,
        )

    def _audit(self) -> SentRows:
        return SentRows(self.rule.schema, self.rule.read_scn, self.facts)

    def _places(self) -> CarriedPlaces:
        schema, absent = self.rule.schema, self.found.absent
        return carry_columns(self.changes, schema, absent, has_gaps=self.has_gaps)

    def _carried(self, mirror: MirrorFiles) -> CarriedValues | None:
        """What changes of key carry along; None where the mirror is to be asked for many rows."""
        if not self.found.moved_absent:
            return NOTHING_CARRIED
        schema, carried = self.rule.schema, self._places()
        asked = pa.table(dict(zip(schema.key, carried.asked, strict=True)))
        if asked.num_rows > ASKED_MAX or any(map(pa.types.is_floating, asked.schema.types)):
            return None
        columns = [one for one in self.found.absent if one not in schema.key]
        wanted = mirror_schema(schema)
        wanted = pa.schema([wanted.field(one) for one in (*schema.key, *columns, COMMIT_SCN)])
        return carried.values(mirror.rows_of(asked, wanted, self.found.bounds), schema)

    def _with_carried(self, session: Any) -> Any:
        """A DataFrame with one row per key, in which changes of key carry the columns that can be
        proved."""
        work, schema, absent = self.work, self.rule.schema, self.found.absent
        added = added_columns(read_log(work.changelog))
        view = carried_view(work, session, self._places(), has_mirror=True)
        mirror = layer_sql(work, session, "mirror", mirror_schema(schema))
        origin = mirror_origin(mirror, schema, absent)
        rows = window_sql(work, session, self.scn_high, schema)
        keyed = KeyedChanges(
            work=work,
            session=session,
            rows=f"({carried_sql(rows, schema, absent, added, origin, view)})",
            schema=schema,
            added=added,
            wanted=None,
        )
        return keyed.derived(KeyReduction(schema, self.has_gaps))
