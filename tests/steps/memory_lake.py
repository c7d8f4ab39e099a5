"""A lake in memory: what the steps ask of :class:`cdc_core.lake.lake.Lake`, without a JVM.

It decodes landed redo with the same pure functions as the lake, keeps change logs and mirrors as Python values, and
is as strict about order and repetition as Delta is. ``fail`` makes the next calls for a table raise; ``calls`` is what was
asked, in order.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from inspect import signature
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.config import LakeConfig, MaintenanceConfig
from cdc_core.decode.defaults import scalar_of_older_rows
from cdc_core.decode.widened import widened
from cdc_core.errors import CdcError, LakeError, NotYetError, RowsGoneError, SchemaMismatchError
from cdc_core.lake.applied_in_delta import AppliedInDelta
from cdc_core.lake.apply.chunk_prewrite import ChunkAhead
from cdc_core.lake.apply.emptied_partitions import refuse_stale
from cdc_core.lake.apply.truncation import Truncation
from cdc_core.lake.catalog import Registration
from cdc_core.lake.comparison.sides import MirrorComparison
from cdc_core.lake.lake import Lake, TableLake
from cdc_core.lake.side_tables.positions import Positions
from cdc_core.lake.side_tables.source_tables import BesideName
from cdc_core.lake.table_context import DeltaPosition, Fence, no_fence
from cdc_core.lake.table_part import PLAIN_RULES, ApplyRules, MirrorState, TablePart
from cdc_core.landing.manifest import ChunkManifest, SchemaChange, WindowManifest, moment_of
from cdc_core.model.identifiers import TableId
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.model.reports import DeltaLayer, TableApplied, TableMaintained
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.evolution import holding, judge
from cdc_core.schema.partition_bounds import bound_value
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.stage.absent_names import LISTS
from cdc_core.stage.committed import read_committed
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.definitions import SCHEMA_CHANGES
from cdc_core.stage.layout import OPTIONAL, change_schema
from cdc_core.stage.quarantine import (
    QUARANTINE_SCHEMA,
    Sieve,
    Suspects,
    left_out_rows,
    without_text,
)
from cdc_core.stage.transactions import TRANSACTIONS
from cdc_core.stage.window import decodable_rows, staged_changes
from tests.steps import counted_rows

Key = tuple[Any, ...]
CHUNK_ORDINAL = 2**63 - 1
WATERMARK_ORDINAL = CHUNK_ORDINAL - 1


@dataclass
class MemoryTable:
    """Change log and mirror of one table. ``rows`` maps a key to (values, commit SCN, ordinal); ``history`` are the change log's
    rows, those of chunks included. ``displaced`` are rows whose key another row has taken, as in ``SET id = id + 1``: each moves
    on in the same transaction."""

    rows: dict[Key, tuple[dict[str, Any], int, int]] = field(default_factory=dict)
    displaced: dict[Key, dict[str, Any]] = field(default_factory=dict)
    touched: dict[Key, int] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    transactions: dict[str, int] = field(default_factory=dict)
    read: dict[str, set[Key]] = field(default_factory=lambda: defaultdict(set))
    history: list[dict[str, Any]] = field(default_factory=list)
    brought: dict[int, TableApplied] = field(default_factory=dict)
    quarantine: dict[int, pa.Table] = field(default_factory=dict)
    schema: TableSchema | None = None
    generation: int = 1
    read_scn: int = 0
    truncated_scn: int = 0
    partitions_scn: int = 0
    digests: counted_rows.Digests = field(default_factory=counted_rows.Digests)

    @property
    def logged(self) -> list[dict[str, Any]]:
        """The change log's rows as Delta has them, each column as it is stored."""
        if self.schema is None or self.schema.as_logged() is self.schema:
            return self.history
        names, rows = self.schema.stored_names, [dict(one) for one in self.history]
        for row in rows:
            for image in ("before", "after"):
                values = row[image]
                row[image] = values and {names.get(name, name): one for name, one in values.items()}
            for lists in {*LISTS} & {*row}:
                row[lists] = [names.get(name, name) for name in row[lists]]
        return rows

    @property
    def in_quarantine(self) -> pa.Table:
        """The rows in quarantine that count still."""
        rows = pa.concat_tables([QUARANTINE_SCHEMA.empty_table(), *self.quarantine.values()])
        return rows.filter(pc.is_null(rows["resolved_scn"]))


_BESIDE = {"transactions": TRANSACTIONS, "schema_changes": SCHEMA_CHANGES}


@dataclass
class MemoryBeside:
    """A table beside change logs and mirrors. ``puts`` are the windows that brought rows, in order."""

    schema: pa.Schema
    rows: list[dict[str, Any]] = field(default_factory=list)
    puts: list[int] = field(default_factory=list)

    def position(self) -> int | None:
        return max(self.puts, default=None)

    def read(
        self, columns: Sequence[str], window: int | None = None, *, since: int = 0
    ) -> pa.Table:
        rows = [one for one in self.rows if window is None or one["scn_high"] == window]
        rows = [one for one in rows if not since or one["scn"] >= since]
        return pa.Table.from_pylist(rows, self.schema).select(list(columns))

    def put(self, rows: pa.Table, window: int) -> None:
        there = [one for one in self.rows if one["scn_high"] == window]
        if there != (new := rows.to_pylist()):
            self.rows = [one for one in self.rows if one["scn_high"] != window] + new
            self.puts.append(window)

    def maintain(self, vacuum_hours: int | None) -> None:
        del vacuum_hours


@dataclass(frozen=True)
class _OneTable:
    """A table of a lake in memory, whose methods are given table, generation and fence where they ask for them."""

    lake: MemoryLake
    table: TableId
    generation: int
    fence: Fence

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.lake, name)
        takes = signature(method).parameters
        takes_all = any(one.kind is one.VAR_KEYWORD for one in takes.values())
        given = {"generation": self.generation, "fence": self.fence}
        options = {one: value for one, value in given.items() if takes_all or one in takes}
        return partial(method, *[self.table] * ("table" in takes), **options)


@dataclass
class MemoryLake:
    """The tables of one source."""

    tables: dict[TableId, MemoryTable] = field(default_factory=lambda: defaultdict(MemoryTable))
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    failures: dict[TableId, list[CdcError]] = field(default_factory=lambda: defaultdict(list))
    besides: dict[str, MemoryBeside] = field(default_factory=dict)
    published: Positions | None = None
    before: Callable[[str, TableId], None] = lambda _call, _table: None

    def open(self, _config: LakeConfig, _source: str) -> Lake:
        """What a pipeline is given as ``open_lake``: every pipeline opens the same tables."""
        return self

    def table(self, table: TableId, generation: int = 0, fence: Fence = no_fence) -> TableLake:
        """What the methods below do for one table."""
        return cast("TableLake", _OneTable(self, table, generation, fence))

    def start(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        """Nothing to close."""

    def fail(self, table: TableId, error: CdcError, *, times: int = 1) -> None:
        """Let the next calls for the table raise."""
        self.failures[table] += [error] * times

    def image(self, table: TableId, *, of_oracle: bool = False) -> list[tuple[Any, ...]]:
        """The mirror's rows as sorted tuples of all columns, in the table's order; ``of_oracle``: without those that Oracle
        does not have any more."""
        found = self.tables[table]
        schema = found.schema.in_oracle() if found.schema and of_oracle else found.schema
        if schema and schema.is_by_all_columns:
            schema = schema.as_in_rows()
        names = schema.column_names if schema else ()
        rows = [tuple(values.get(name) for name in names) for values, _, _ in found.rows.values()]
        return sorted(rows, key=repr)

    def rows_by_name(self, table: TableId) -> list[dict[str, Any]]:
        """The mirror's rows, each value by the name of its column."""
        found = self.tables[table]
        names = found.schema.column_names if found.schema else ()
        return [{name: values.get(name) for name in names} for values, _, _ in found.rows.values()]

    # -- what the steps call -----------------------------------------------------------------------------------------

    def prepare_schema(
        self,
        change: SchemaChange | TableSchema,
        generation: int = 0,
        *,
        drops_columns: bool = False,
        fence: Fence = no_fence,
    ) -> None:
        del drops_columns  # a mirror in memory keeps what Oracle dropped
        schema = change.schema if isinstance(change, SchemaChange) else change
        self._enter("prepare_schema", schema.table, str(generation), fence)
        found = self._begun(schema.table, generation)
        found.schema = _settled(found, schema)

    def definition(self, table: TableId, generation: int = 0) -> TableSchema | None:
        return self._begun(table, generation).schema

    def apply_window(
        self,
        part: TablePart,
        state: MirrorState,
        rules: ApplyRules = PLAIN_RULES,
        *,
        generation: int = 0,
        fence: Fence = no_fence,
    ) -> TableApplied:
        table, window = part.table, part.window
        position, read_scn = state.position, state.read_scn
        found = self._begun(table, generation)
        assert read_scn is None or found.read_scn <= read_scn, "a chunk was read later than that"
        app = f"{generation}"
        done = found.transactions.get(app)
        if done is not None and done >= window.scn_high:
            brought = found.brought.get(window.scn_high, TableApplied(table=table))
            is_noted = position is None or position >= window.scn_high
            return replace(TableApplied(table=table) if is_noted else brought, skipped=True)
        if (done is not None and done > window.scn_low) or (
            position is not None and position < window.scn_low
        ):
            raise NotYetError("windows of a table are out of order", table=table)
        schema = _settled(found, part.schema)
        decoder = ChangeDecoder(
            schema,
            window.scn_high,
            earlier=tuple(part.earlier),
            excluded=part.schema.excluded,
            optional=OPTIONAL,
            landed=moment_of(part.manifest.landed),
            skipping=rules.skipping,
            replacing=rules.replacing,
        )
        sieve = None
        if rules.quarantine_max is not None:
            before = found.in_quarantine
            sieve = Sieve(
                decoder,
                Suspects.of(before["_cdc_row_id"].to_pylist()),
                covered_scn=state.covered_scn,
                room=rules.quarantine_max - before.num_rows,
                keeps_text=rules.keeps_text,
            )
        batches = staged_changes(part.landed.rows(part.landed.committed()), decoder, sieve)
        changes = _in_order(batches, schema)
        refused = QUARANTINE_SCHEMA.empty_table() if sieve is None else sieve.rows
        self._enter("apply_window", table, window.key, fence)
        found.quarantine.pop(window.scn_high, None)
        if refused.num_rows:
            found.quarantine[window.scn_high] = refused
        self.before("quarantined", table)
        found.schema = schema
        for image in (one[side] for one in changes for side in ("before", "after") if one[side]):
            if schema.is_by_all_columns:
                found.digests.check(schema, image)
        if any(change["_cdc_commit_scn"] <= window.scn_low for change in changes):
            late_scn = part.manifest.late_scn
            if late_scn is not None and late_scn < found.partitions_scn:
                raise RowsGoneError("a commit is from before rows went with a partition")
            self.derive(found, schema, changes)
        elif schema.is_by_all_columns:
            for change in changes:
                if change["_cdc_commit_scn"] > found.read_scn:
                    counted_rows.pile(found.rows, schema, change, has_gaps=part.is_inexact)
        else:
            covered = state.covered_scn
            self.merge(found, schema, changes, covered, read_scn or -1, has_gaps=part.is_inexact)
        found.changes += changes
        found.history += changes
        found.transactions[app] = window.scn_high
        found.brought[window.scn_high] = TableApplied(
            table=table,
            changes=len(changes),
            quarantined=refused.num_rows,
            unfit_values=sum(decoder.unfit),
            in_quarantine=found.in_quarantine.num_rows,
        )
        return found.brought[window.scn_high]

    def merge(
        self,
        found: MemoryTable,
        schema: TableSchema,
        changes: Sequence[dict[str, Any]],
        covered_scn: int,
        read_scn: int,
        *,
        has_gaps: bool,
    ) -> None:
        """Bring a window's changes into the mirror, one after the other."""
        del has_gaps  # this way of merging takes whatever comes
        for change in changes:
            _take(found, schema, change, covered_scn, read_scn)

    def derive(
        self,
        found: MemoryTable,
        schema: TableSchema,
        changes: list[dict[str, Any]],
        read_scn: int = -1,
    ) -> None:
        """The mirror by the whole change log and what comes now."""
        if schema.is_by_all_columns:
            every = [*found.history, *changes]
            counted_rows.derive(found.rows, schema, every, found.truncated_scn)
            return
        found.rows.clear()
        found.touched.clear()
        history = [
            one
            for one in (*found.history, *changes)
            if one["_cdc_op"] != "t" and one["_cdc_commit_scn"] >= found.truncated_scn
        ]
        place = operator.itemgetter("_cdc_commit_scn", "_cdc_ordinal")
        self.take_in_order(found, schema, sorted(history, key=place), read_scn)

    def take_in_order(
        self,
        found: MemoryTable,
        schema: TableSchema,
        changes: Sequence[dict[str, Any]],
        read_scn: int,
    ) -> None:
        """Make an empty mirror of all that a change log says."""
        for change in changes:
            _take(found, schema, change, -1, read_scn)

    def truncate(
        self,
        table: TableId,
        truncation: Truncation,
        transactions_paths: Sequence[str],
        generation: int = 0,
        *,
        read_scn: int = 0,
        fence: Fence = no_fence,
    ) -> TableApplied:
        found, scn = self._begun(table, generation), truncation.scn
        window = ScnWindow(Scn(scn - 1), Scn(scn))
        assert not read_committed(transactions_paths, table, window).count
        if truncation.partitions:
            return self._empty_partitions(found, table, truncation, read_scn, fence)
        if found.truncated_scn >= scn:
            return TableApplied(table=table, skipped=True)
        self._enter("truncate", table, str(scn), fence)
        row = {
            "_cdc_op": "t", "_cdc_commit_scn": scn, "_cdc_ordinal": truncation.ordinal, "_cdc_window": scn, "_cdc_xid": truncation.xid,
            "_cdc_absent": [], "_cdc_before_absent": [], "_cdc_skipped": None, "before": None, "after": None,
        }  # fmt: skip
        found.changes.append(row)
        found.history.append(row)
        found.truncated_scn = scn
        gone = [key for key, (_, read, _) in found.rows.items() if read < scn]
        for key in gone:
            del found.rows[key]
        self.resolve_quarantine(table, scn)
        return TableApplied(table=table, changes=1, rows_deleted=len(gone))

    def _empty_partitions(
        self,
        found: MemoryTable,
        table: TableId,
        truncation: Truncation,
        read_scn: int,
        fence: Fence,
    ) -> TableApplied:
        scn, schema = truncation.scn, found.schema
        if found.partitions_scn >= scn:
            return TableApplied(table=table, skipped=True)
        self._enter("truncate", table, str(scn), fence)
        refuse_stale(table, found.in_quarantine.num_rows, scn)
        assert schema is not None
        there = {key: values for key, (values, read, _) in found.rows.items() if read < scn}
        rows_gone = len(_of_partitions(truncation, there, schema))
        if read_scn >= scn:
            there = self._logged_before(found, schema, truncation) | there
        gone = _of_partitions(truncation, there, schema)
        absent = [one for one in schema.column_names if one not in schema.key]
        for values in gone.values():
            row = {
                "_cdc_op": "d", "_cdc_commit_scn": scn, "_cdc_ordinal": truncation.ordinal, "_cdc_window": scn, "_cdc_xid": truncation.xid,
                "_cdc_absent": absent, "_cdc_before_absent": absent, "_cdc_skipped": truncation.skipped, "_cdc_snapshot": None, "after": None,
                "before": {name: values[name] for name in schema.key},
            }  # fmt: skip
            found.changes.append(row)
            found.history.append(row)
            _take(found, schema, row, -1, -1)
        found.partitions_scn = scn
        return TableApplied(table=table, changes=len(gone), rows_deleted=rows_gone)

    def _logged_before(
        self, found: MemoryTable, schema: TableSchema, truncation: Truncation
    ) -> dict[Key, dict[str, Any]]:
        """The rows from right before a DDL by the change log alone: their keys, and what says whose partition they are."""
        names = set(schema.key)
        for one in truncation.partitions:
            names |= {schema.held(part.column).name for part in (one, one.sub) if part}

        def narrow(image: dict[str, Any] | None) -> dict[str, Any] | None:
            return image and {name: image[name] for name in names if name in image}

        older = MemoryTable(truncated_scn=found.truncated_scn)
        for row in found.history:
            if row["_cdc_commit_scn"] < truncation.scn:
                absent = [name for name in row["_cdc_absent"] if name in names]
                images = {side: narrow(row[side]) for side in ("before", "after")}
                older.history.append({**row, **images, "_cdc_absent": absent})
        try:
            self.derive(older, schema, [])
        except LakeError as error:
            raise RowsGoneError("a row that may have been a partition's is not known") from error
        return {key: values for key, (values, _, _) in older.rows.items()}

    def restore_quarantine(
        self,
        part: TablePart,
        *,
        covered_scn: int = 0,
        keeps_text: bool = True,
    ) -> int:
        found, window = self.tables[part.table], part.window
        if window.scn_high not in found.quarantine:
            decoder = ChangeDecoder(part.schema, window.scn_high, earlier=tuple(part.earlier))
            pieces = decodable_rows(part.landed.rows(part.landed.committed()), decoder)
            own = [one for one in found.changes if one["_cdc_window"] == window.scn_high]
            known = np.array([one["_cdc_ordinal"] for one in own], np.int64)
            left = left_out_rows(pieces, known, decoder, covered_scn=covered_scn)
            left = left if keeps_text else without_text(left)
            if left.num_rows:
                found.quarantine[window.scn_high] = left
        return found.in_quarantine.num_rows

    def resolve_quarantine(
        self, table: TableId, scn: int, generation: int = 0, *, fence: Fence = no_fence
    ) -> int:
        del generation, fence
        found = self.tables[table]
        for window, rows in found.quarantine.items():
            resolved = [
                scn if old is None and commit <= scn else old
                for old, commit in zip(
                    rows["resolved_scn"].to_pylist(),
                    rows["_cdc_commit_scn"].to_pylist(),
                    strict=True,
                )
            ]
            place = rows.schema.get_field_index("resolved_scn")
            found.quarantine[window] = rows.set_column(
                place, "resolved_scn", pa.array(resolved, pa.int64())
            )
        return found.in_quarantine.num_rows

    def quarantine_reasons(self, table: TableId) -> dict[tuple[str, str], int]:
        rows = self.tables[table].in_quarantine.to_pylist()
        return dict(Counter((row["operation"], row["reason"]) for row in rows))

    def purge_quarantine(
        self, table: TableId, generation: int = 0, *, fence: Fence = no_fence
    ) -> list[str]:
        del generation, fence
        return [f"quarantine/{table.path}"] if self.tables[table].quarantine else []

    def replay_window(
        self,
        table: TableId,
        manifest: WindowManifest,
        schema: TableSchema,
        generation: int = 0,
        *,
        covered_scn: int = 0,
        applied_scn: int = 0,
        is_inexact: bool = False,
        fence: Fence = no_fence,
    ) -> TableApplied:
        """The window's keys by the whole change log; an undamaged mirror stays as it is."""
        del generation, applied_scn, is_inexact
        self._enter("replay_window", table, manifest.window.key, fence)
        found, window = self.tables[table], manifest.window
        derived = _derived_from(found)
        self.derive(derived, schema, [], read_scn=found.read_scn)
        changes = [
            one
            for one in found.changes
            if window.scn_low < one["_cdc_commit_scn"] <= window.scn_high
        ]
        sides = [side for one in changes for side in (one["before"], one["after"]) if side]
        wrong: set[Key] = {
            key
            for key in {_key(schema, side) for side in sides}
            if _differs(found.rows.get(key), derived.rows.get(key), covered_scn)
        }
        if schema.is_by_all_columns:
            wrong = counted_rows.wrong_places(found.rows, derived.rows, schema, changes)
        for key in wrong:
            found.rows.pop(key, None)
            if key in derived.rows:
                found.rows[key] = derived.rows[key]
        return TableApplied(table=table, changes=len(wrong), skipped=not wrong)

    def begin_chunk(
        self,
        schema: TableSchema,
        snapshot_id: str,
        number: int,
        scn: int,
        landed: datetime,
        *,
        generation: int = 0,
        is_exact: bool = True,
        have_own_keys: bool = False,
    ) -> None:
        """Nothing is written before it is applied."""
        del schema, snapshot_id, number, scn, landed, generation, is_exact, have_own_keys

    def apply_chunk(
        self,
        manifest: ChunkManifest,
        paths: Sequence[str],
        *,
        generation: int = 0,
        position: int | None = None,
        asked: Sequence[Sequence[Any]] | None = None,
        ahead: ChunkAhead | None = None,
        fence: Fence = no_fence,
    ) -> TableApplied:
        del position, asked, ahead  # a mirror in memory keeps what a chunk was asked for and lacks
        table = manifest.schema.table
        found = self._begun(table, generation)
        app = f"{generation}/chunk/{manifest.snapshot_id}/{manifest.number}"
        if app in found.transactions:
            return TableApplied(table=table, skipped=True)
        if manifest.scn < found.partitions_scn:
            raise RowsGoneError("a chunk is from before rows went with a partition")
        self._enter("apply_chunk", table, f"{manifest.snapshot_id}:{manifest.number}", fence)
        found.schema = _settled(found, manifest.schema)
        found.read_scn = max(found.read_scn, manifest.read_up_to)
        ordinal = CHUNK_ORDINAL if manifest.is_exact else WATERMARK_ORDINAL
        is_counted = manifest.schema.is_by_all_columns
        landed = manifest.schema.as_in_rows() if is_counted else manifest.schema
        names = list(landed.column_names)
        held = found.schema
        rows = [
            row
            for path in paths
            for row in _as_held(
                pq.read_table(path, columns=names), manifest.schema, held
            ).to_pylist()
        ]
        keys = set()
        if is_counted:
            assert not found.changes, "no window comes before the snapshot is complete"
            assert all(one["_cdc_commit_scn"] == manifest.scn for one in found.history), "one SCN"
        name = f"{manifest.snapshot_id}/{manifest.number}"
        facts = {"_cdc_snapshot": name, "_cdc_landed": moment_of(manifest.landed)}
        for row in rows:
            found.history.append(_read_row(row, manifest.scn, ordinal) | facts)
            if is_counted:
                counted_rows.pile(found.rows, manifest.schema, found.history[-1], has_gaps=False)
                continue
            key = _key(held, row)
            keys.add(key)
            if max(found.touched.get(key, -1), found.truncated_scn) <= manifest.scn:
                found.rows[key] = (row, manifest.scn, ordinal)
        found.read[f"{generation}/{manifest.snapshot_id}"] |= keys
        found.transactions[app] = 1
        return TableApplied(table=table, changes=len(rows), rows_inserted=len(rows))

    def set_aside(self, table: TableId, *, generation: int, fence: Fence = no_fence) -> list[str]:
        self._enter("set_aside", table, str(generation), fence)
        if self.tables[table].generation != generation:
            self.tables[table] = MemoryTable(generation=generation)
        return []

    def purge_column(
        self,
        table: TableId,
        column: str,
        key: tuple[str, ...],
        generation: int = 0,
        *,
        fence: Fence = no_fence,
    ) -> list[str]:
        assert column not in key
        self._enter("purge_column", table, f"{generation}:{column}", fence)
        for values, _, _ in self.tables[table].rows.values():
            values[column] = None
        return [f"mirror/{table.path}"]

    def maintain(
        self,
        table: TableId,
        options: MaintenanceConfig,
        key: tuple[str, ...],
        *,
        generation: int = 0,
        fence: Fence = no_fence,
    ) -> list[TableMaintained]:
        how = f"clustered={options.cluster_by_key} {options.vacuum_hours} h {key}"
        self._enter("maintain", table, f"{options.deletion_vectors} {how}", fence)
        self._begun(table, generation)
        return []

    def remove_gone(
        self,
        table: TableId,
        snapshot_id: str,
        scn_lowest: int,
        *,
        generation: int = 0,
        position: int | None = None,
        fence: Fence = no_fence,
    ) -> TableApplied:
        del position
        found = self.tables[table]
        self._enter("remove_gone", table, snapshot_id, fence)
        if found.schema is not None and found.schema.is_by_all_columns:
            return TableApplied(table=table)
        there = found.read[f"{generation}/{snapshot_id}"]
        gone = [
            key
            for key, (_, scn, _) in found.rows.items()
            if key not in there and scn <= scn_lowest and found.touched.get(key, -1) <= scn_lowest
        ]
        for key in gone:
            values = found.rows.pop(key)[0]
            row = {**_read_row(None, scn_lowest), "before": values, "_cdc_op": "d"}
            found.history.append(row | {"_cdc_snapshot": f"{snapshot_id}/gone"})
        return TableApplied(table=table, changes=len(gone), rows_deleted=len(gone))

    def beside(self, name: BesideName, *, fence: Fence = no_fence) -> MemoryBeside:
        del fence
        return self.besides.setdefault(name, MemoryBeside(_BESIDE[name]))

    def count_events(self, table: TableId, window: ScnWindow) -> pa.Table:
        found = Counter(
            (one["_cdc_xid"], one["_cdc_commit_scn"])
            for one in self.tables[table].changes
            if window.scn_low < one["_cdc_window"] <= window.scn_high
            and not one["_cdc_skipped"]
            and one["_cdc_op"] != "t"
        )
        rows = [{"xid": xid, "commit_scn": scn, "events": n} for (xid, scn), n in found.items()]
        kinds = pa.schema(
            [("xid", pa.string()), ("commit_scn", pa.int64()), ("events", pa.int64())]
        )
        return pa.Table.from_pylist(rows, kinds)

    def rebuild_mirror(
        self,
        table: TableId,
        schema: TableSchema,
        generation: int = 0,
        *,
        is_inexact: bool = False,
        fence: Fence = no_fence,
    ) -> int:
        """The mirror by the whole change log."""
        del is_inexact
        self._enter("rebuild_mirror", table, str(generation), fence)
        found = self.tables[table]
        derived = _derived_from(found)
        self.derive(derived, schema, [], read_scn=found.read_scn)
        found.rows = derived.rows
        return len(found.rows)

    def comparison(self, table: TableId, schema: TableSchema, version: int) -> MirrorComparison:
        """It takes Spark to compare."""
        raise LakeError("a lake in memory has no versions", table=table, schema=schema, scn=version)

    def mirror_version_at(self, table: TableId, scn: int, *, is_in_stream: bool = True) -> int:
        """There is none."""
        del is_in_stream
        raise LakeError("a lake in memory has no versions", table=table, scn=scn)

    def publish(self, positions: Positions) -> None:
        """Nobody reads it from elsewhere."""
        self.published = positions

    def register(
        self,
        table: TableId,
        wanted: Registration,
        known: Registration | None,
        *,
        fence: Fence = no_fence,
    ) -> bool:
        """No catalog has what is in memory."""
        raise LakeError("a lake in memory has no names", table=table)

    def gone_files(self, table: TableId) -> dict[DeltaLayer, list[str]]:
        """What has no files lacks none."""
        del table
        return {"changelog": [], "mirror": []}

    def position(self, table: TableId, generation: int = 0) -> DeltaPosition:
        """By the transaction identifiers."""
        done = self.tables[table].transactions.get(f"{generation}")
        return DeltaPosition(done, done, self.tables[table].truncated_scn)

    def layer_without(
        self,
        table: TableId,
        snapshot_id: str,
        chunks: Collection[tuple[str, int]],
        *,
        generation: int,
    ) -> DeltaLayer | None:
        """By the transaction identifiers: both tables are one here."""
        assert snapshot_id
        done = self.tables[table].transactions
        has = all(f"{generation}/chunk/{name}/{number}" in done for name, number in chunks)
        return None if has else "mirror"

    def taken(self, table: TableId, generation: int = 0) -> AppliedInDelta:
        """By the transaction identifiers too."""
        found = self.tables[table]
        prefix = f"{generation}/chunk/"
        chunks = [
            app.removeprefix(prefix).rsplit("/", 1)
            for app in found.transactions
            if app.startswith(prefix)
        ]
        return AppliedInDelta(
            window_scn=found.transactions.get(f"{generation}"),
            schema_scn=found.schema.scn_from if found.schema else None,
            truncated_scn=max(found.truncated_scn, found.partitions_scn),
            chunks={(snapshot_id, int(number)): None for snapshot_id, number in chunks},
            windows=dict(found.brought),
        )

    def _begun(self, table: TableId, generation: int) -> MemoryTable:
        """The table's tables, begun anew where the generation is newer than theirs."""
        if self.tables[table].generation < generation:
            self.tables[table] = MemoryTable(generation=generation)
        if self.tables[table].generation > max(generation, 1):
            raise LakeError("a later snapshot has replaced this Delta table", table=table)
        return self.tables[table]

    def _enter(self, call: str, table: TableId, what: str, fence: Fence) -> None:
        self.before(call, table)
        if self.failures[table]:
            raise self.failures[table].pop(0)
        fence()
        self.calls.append((call, table.name, what))


def _derived_from(found: MemoryTable) -> MemoryTable:
    """A table with the same change log, and no mirror yet."""
    return MemoryTable(
        history=found.history, truncated_scn=found.truncated_scn, quarantine=found.quarantine
    )


def _of_partitions(
    truncation: Truncation, rows: dict[Key, dict[str, Any]], schema: TableSchema
) -> dict[Key, dict[str, Any]]:
    return {
        key: values
        for key, values in rows.items()
        if any(_is_in(one, values, schema) for one in truncation.partitions)
    }


def _is_in(rows: PartitionRows, values: dict[str, Any], schema: TableSchema) -> bool:
    """Does a row belong to a partition, and to its subpartition?"""
    if rows.sub is not None and not _is_in(rows.sub, values, schema):
        return False
    column = schema.held(rows.column)
    value, kind = values[column.name], arrow_type(column)
    if value is None:
        return rows.has_null
    low, high = (None if one is None else bound_value(one, kind) for one in (rows.low, rows.high))
    return (
        (low is None or value >= low)
        and (high is None or value < high)
        and (rows.listed is None or value in [bound_value(one, kind) for one in rows.listed])
        and value not in [bound_value(one, kind) for one in rows.unlisted or ()]
    )


def _settled(found: MemoryTable, schema: TableSchema) -> TableSchema:
    """The version that the tables have from here on, as ``lake.definitions.evolution`` settles it."""
    known = found.schema
    if known is None:
        return schema
    other = holding(schema, known)
    has_all = {*other.stored_names.values()} <= {*known.stored_names.values()}
    if other.scn_from <= known.scn_from and has_all:
        return known
    evolution = judge(known, other)
    if evolution.refusal is not None:
        raise SchemaMismatchError(evolution.refusal, table=known.table)
    followed = holding(evolution.followed(known, schema), known)
    if not evolution.is_new_version:
        return known
    _rename(found, known, followed)
    _widen(found, followed, evolution.widened)
    _add(found, known, followed)
    return followed


def _as_held(rows: pa.Table, own: TableSchema, schema: TableSchema) -> pa.Table:
    """A chunk's rows under the names, and in the types, that the tables have."""
    stored = own.stored_names
    named = rows.rename_columns([schema.held(stored[name]).name for name in rows.column_names])
    return pa.table(
        {
            name: widened(named[name].combine_chunks(), arrow_type(schema.column(name)))
            for name in named.column_names
        }
    )


def _rename(found: MemoryTable, known: TableSchema, schema: TableSchema) -> None:
    """What the tables have, under the names that columns have now."""

    names = {one.name: schema.held(one.stored_as).name for one in known.columns}

    def named(values: dict[str, Any] | None) -> dict[str, Any] | None:
        return values and {names.get(name, name): value for name, value in values.items()}

    found.rows = {
        key: (named(values) or {}, scn, ordinal)
        for key, (values, scn, ordinal) in found.rows.items()
    }
    for change in found.history:
        absent = [names.get(name, name) for name in change["_cdc_absent"]]
        change |= {"before": named(change["before"]), "after": named(change["after"])}
        change["_cdc_absent"] = absent


def _add(found: MemoryTable, known: TableSchema, schema: TableSchema) -> None:
    """Rows that are there have the default of columns that are added; what the change log says of them stays as it is."""
    there = {*known.stored_names.values()}
    defaults = {
        column.name: scalar.cast(arrow_type(column)).as_py()
        for column in schema.columns
        if column.stored_as not in there and (scalar := scalar_of_older_rows(column)) is not None
    }
    if not defaults:
        return
    for values, _, _ in found.rows.values():
        values |= {name: value for name, value in defaults.items() if name not in values}
    for place, change in enumerate(found.history):
        images = {side: change[side] and defaults | change[side] for side in ("before", "after")}
        found.history[place] = change | images


def _widen(found: MemoryTable, schema: TableSchema, columns: Sequence[str]) -> None:
    """What the tables have, in the wider types of some columns."""
    images = [values for values, _, _ in found.rows.values()]
    images += [one[side] for one in found.history for side in ("before", "after") if one[side]]
    for name in columns:
        known = schema.column(name)
        own = {id(one): one for one in images if one.get(name) is not None}
        for values in own.values():
            values[name] = _in_type_of(known, values[name])
    if set(columns) & set(schema.key):
        found.rows = {_key(schema, one[0]): one for one in found.rows.values()}
        found.touched = {
            tuple(
                value if name not in columns else _in_type_of(schema.column(name), value)
                for name, value in zip(schema.key, key, strict=True)
            ): scn
            for key, scn in found.touched.items()
        }


def _in_type_of(column: Column, value: Any) -> Any:
    kind = arrow_type(column)
    own = pa.array([value])
    if isinstance(value, datetime):
        own = own.cast(pa.timestamp("us"))
    return value if own.type == kind else widened(own, kind)[0].as_py()


def _in_order(batches: Iterable[pa.RecordBatch], schema: TableSchema) -> list[dict[str, Any]]:
    """Changes as they are read back from a change log."""
    rows = pa.Table.from_batches(batches, change_schema(schema))
    names, changes = schema.present_names, rows.to_pylist()
    for change in changes:
        for image in ("before", "after"):
            values = change[image]
            change[image] = values and {names[name]: value for name, value in values.items()}
        for lists in LISTS:
            change[lists] = [names.get(name, name) for name in change[lists]]
    return sorted(changes, key=lambda one: (one["_cdc_commit_scn"], one["_cdc_ordinal"]))


def _read_row(
    values: dict[str, Any] | None, scn: int, ordinal: int = CHUNK_ORDINAL
) -> dict[str, Any]:
    """A chunk's row in the change log."""
    place = {"_cdc_commit_scn": scn, "_cdc_ordinal": ordinal, "_cdc_absent": list[str]()}
    return {"before": None, "after": values, "_cdc_op": "r", **place}


def _differs(
    there: tuple[dict[str, Any], int, int] | None,
    derived: tuple[dict[str, Any], int, int] | None,
    covered_scn: int,
) -> bool:
    """Is a row not what the change log says? One that a snapshot saw gone may have its deletion in a later window."""
    if there is None:
        return derived is not None and derived[1] > covered_scn
    return derived is None or there[0] != derived[0]


def _take(
    found: MemoryTable,
    schema: TableSchema,
    change: dict[str, Any],
    covered_scn: int,
    read_scn: int,
) -> None:
    place = (change["_cdc_commit_scn"], change["_cdc_ordinal"])
    before, after = change["before"], change["after"]
    old = None if before is None else _key(schema, before)
    new = None if after is None else _key(schema, after)
    known: dict[str, Any] = {}
    if old is not None:
        found.touched[old] = max(found.touched.get(old, -1), place[0])
        values, scn, ordinal = found.rows.get(old, ({}, -1, -1))
        known = found.displaced.pop(old, {})
        if not known:
            known = values
            if place > (scn, ordinal) and old != new:
                found.rows.pop(old, None)
    if new is not None and after is not None:
        found.touched[new] = max(found.touched.get(new, -1), place[0])
        values, scn, ordinal = found.rows.get(new, ({}, -1, -1))
        if (place > (scn, ordinal)) and (scn >= 0 or place[0] > covered_scn):
            if old is not None and change["_cdc_absent"] and not (values or known):
                if old == new and place[0] <= read_scn:
                    return  # a chunk saw the row gone; a later window deletes it
                raise LakeError(
                    "a change does not carry all columns, and the mirror does not have its row"
                )
            moved = old is not None and old != new
            if moved and values:
                found.displaced[new] = values
            kept_from = known if moved else values or known
            kept = {name: kept_from.get(name) for name in change["_cdc_absent"]}
            found.rows[new] = ({**after, **kept}, *place)


def _key(schema: TableSchema, row: dict[str, Any]) -> Key:
    return tuple(row[name] for name in schema.key)
