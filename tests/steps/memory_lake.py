"""A lake in memory: what the steps ask of :class:`cdc_core.lake.lake.Lake`, without a JVM.

Change logs and mirrors are Python values under the names that columns have for life, as Delta's files have them. What becomes of a
mirror's rows, the product says: the rows by ``stage.reduction`` and ``stage.carried_columns``, what they do by the rules of
``lake.mirror.write.MirrorChange``. It is as strict about order and repetition as Delta is. ``fail`` makes the next calls for a
table raise; ``calls`` is what was asked, in order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from inspect import isfunction, signature
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.config import LakeConfig, MaintenanceConfig, UnityConfig
from cdc_core.decode.defaults import scalar_of_older_rows
from cdc_core.decode.widened import widened
from cdc_core.errors import (
    CdcError,
    DecodeError,
    LakeError,
    NotYetError,
    RowsGoneError,
    SchemaMismatchError,
)
from cdc_core.lake.applied_in_delta import AppliedInDelta
from cdc_core.lake.apply.emptied_partitions import refuse_stale
from cdc_core.lake.apply.truncation import Truncation
from cdc_core.lake.catalog import Registration
from cdc_core.lake.comparison.sides import MirrorComparison
from cdc_core.lake.lake import Lake, TableLake
from cdc_core.lake.mirror.merge import KeyRule, MergeRule, TruncationRule
from cdc_core.lake.side_tables.positions import Positions
from cdc_core.lake.side_tables.source_tables import SideTableName
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
from cdc_core.schema.types import arrow_schema, arrow_type
from cdc_core.stage.absent_names import LISTS
from cdc_core.stage.carried_columns import NOTHING_CARRIED, carry_columns
from cdc_core.stage.changes import LIGHT, AddedColumn, HeldChanges, LightChanges, LoggedChanges
from cdc_core.stage.committed import read_committed
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.definitions import SCHEMA_CHANGES
from cdc_core.stage.difference import different_rows, rows_of_keys, touching
from cdc_core.stage.layout import (
    CHANGE_FIELDS,
    COMMIT_SCN,
    OPTIONAL,
    ORDINAL,
    change_schema,
    chunk_ordinal,
    mirror_schema,
)
from cdc_core.stage.merge import lacking_row
from cdc_core.stage.quarantine import (
    QUARANTINE_SCHEMA,
    Sieve,
    Suspects,
)
from cdc_core.stage.reduction import merge_source, reduce_changes
from cdc_core.stage.snapshot import ChunkRows, deletions
from cdc_core.stage.transactions import TRANSACTIONS
from cdc_core.stage.window import staged_changes

Key = tuple[Any, ...]


@dataclass
class MemoryTable:
    """Change log and mirror of one table, all values by what their columns are stored as. ``rows`` maps a key to (values, commit SCN,
    ordinal); ``history`` are the change log's rows, those of chunks included; ``added`` are columns that came later, with the default of
    older rows."""

    rows: dict[Key, tuple[dict[str, Any], int, int]] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    added: dict[str, pa.Scalar | None] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    brought: dict[int, TableApplied] = field(default_factory=dict)
    quarantine: dict[int, pa.Table] = field(default_factory=dict)
    schema: TableSchema | None = None
    generation: int = 1
    read_scn: int = 0
    truncated_scn: int = 0
    partitions_scn: int = 0

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The change log's rows that no snapshot brought."""
        return [one for one in self.history if one["_cdc_snapshot"] is None]

    @property
    def in_quarantine(self) -> pa.Table:
        """The rows in quarantine that count still."""
        rows = pa.concat_tables([QUARANTINE_SCHEMA.empty_table(), *self.quarantine.values()])
        return rows.filter(pc.is_null(rows["resolved_scn"]))

    def counting(self, more: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
        """The change log's rows since the last TRUNCATE, and some that come now."""
        return [
            one
            for one in (*self.history, *more)
            if one["_cdc_op"] != "t" and one[COMMIT_SCN] >= self.truncated_scn
        ]

    def keys_above(self, schema: TableSchema, scn: int) -> set[Key]:
        """The keys that something above an SCN touches."""
        later = (one for one in self.history if one[COMMIT_SCN] > scn)
        images = (one[side] for one in later for side in ("before", "after"))
        return {_key(schema, image) for image in images if image}

    def mirror(self, schema: TableSchema) -> pa.Table:
        """The mirror's rows, in the columns of ``stage.layout.mirror_schema``."""
        names = schema.stored_names
        rows = [
            {name: values.get(own) for name, own in names.items()} | {COMMIT_SCN: scn, ORDINAL: at}
            for values, scn, at in self.rows.values()
        ]
        return pa.Table.from_pylist(rows, mirror_schema(schema))

    def put(self, rows: pa.Table, schema: TableSchema) -> None:
        """Let the mirror have rows in these columns, in the place of those of their keys."""
        names = schema.stored_names
        for row in rows.to_pylist():
            values = {own: row[name] for name, own in names.items()}
            self.rows[_key(schema, values)] = (values, row[COMMIT_SCN], row[ORDINAL])

    def take(self, rule: MergeRule, rows: pa.Table) -> int:
        """Let rows change the mirror by their rule; how many it deleted."""
        merge, mirror = rule.in_arrow(rows), self.mirror(rule.columns)
        merged = merge.merged(mirror, merge.effects(mirror))
        assert merge.rows_inserted <= rows.num_rows
        self.rows.clear()
        self.put(pa.concat_tables([merged, merge.inserted()]), rule.columns)
        return merge.rows_deleted


class _Changes(HeldChanges):
    """Changes of a lake in memory, as a task of Spark has those of its keys, under the names of a definition."""

    def __init__(
        self, found: MemoryTable, changes: Sequence[dict[str, Any]], schema: TableSchema
    ) -> None:
        self.schema, columns = schema, arrow_schema(schema)
        stored, present = schema.stored_names, schema.present_names
        kinds = {name: kind for name, kind in CHANGE_FIELDS if name in LIGHT}
        arrays = {name: pa.array([one[name] for one in changes], kinds[name]) for name in LIGHT}
        lists = [[present.get(one, one) for one in row["_cdc_absent"]] for row in changes]
        arrays["_cdc_absent"] = pa.array(lists, kinds["_cdc_absent"])
        for image, names in (("before", schema.key), ("after", schema.column_names)):
            values = [
                one[image] and {name: one[image].get(stored[name]) for name in names}
                for one in changes
            ]
            arrays[image] = pa.array(values, pa.struct([columns.field(name) for name in names]))
        arrays |= {"is_old": arrays["before"].is_valid(), "is_new": arrays["after"].is_valid()}
        added = {
            column.name: AddedColumn(place, default.cast(arrow_type(column)))
            for place, column in enumerate(schema.columns)
            if (default := found.added.get(column.stored_as)) is not None
        }
        super().__init__(pa.table(arrays), schema, added)

    def light_of_moves(self) -> LightChanges:
        """All of them."""
        return self.light()

    @cached_property
    def absent(self) -> tuple[list[str], bool]:
        """The columns that some change lacks, and whether a change of key is among these changes."""
        named, moved_absent = self.light().kinds(self.schema.column_names)
        return [one for one in self.schema.column_names if one in named], moved_absent

    def rows(self, mirror: pa.Table, near: LightChanges, *, has_gaps: bool) -> pa.Table:
        """One row per key of changes that are looked at."""
        absent, moved_absent = self.absent
        carried = NOTHING_CARRIED
        if moved_absent:
            own = cast("LoggedChanges", self)
            followed = carry_columns(own, self.schema, absent, has_gaps=has_gaps)
            carried = followed.values(mirror, self.schema)
        reduced = reduce_changes(near, self.schema, absent, has_gaps=has_gaps, carried=carried)
        return merge_source(self, reduced, self.schema, carried)


_SIDE_TABLES = {"transactions": TRANSACTIONS, "schema_changes": SCHEMA_CHANGES}


@dataclass
class MemorySideTable:
    """A side table. ``puts`` are the windows that brought rows, in order."""

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
        takes = _PARAMETERS[name]
        given = {"generation": self.generation, "fence": self.fence}
        options = {one: value for one, value in given.items() if one in takes}
        return partial(getattr(self.lake, name), *[self.table] * ("table" in takes), **options)


@dataclass
class MemoryLake:
    """The tables of one source."""

    tables: dict[TableId, MemoryTable] = field(default_factory=lambda: defaultdict(MemoryTable))
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    failures: dict[TableId, list[CdcError]] = field(default_factory=lambda: defaultdict(list))
    side_tables: dict[str, MemorySideTable] = field(default_factory=dict)
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

    def fail(self, table: TableId, error: CdcError, *, times: int = 1) -> None:
        """Let the next calls for the table raise."""
        self.failures[table] += [error] * times

    def image(self, table: TableId, *, of_oracle: bool = False) -> list[tuple[Any, ...]]:
        """The mirror's rows as sorted tuples of all columns, in the table's order; ``of_oracle``: without those that Oracle
        does not have any more."""
        found = self.tables[table]
        schema = found.schema.in_oracle() if found.schema and of_oracle else found.schema
        names = schema.stored_names.values() if schema else ()
        rows = [tuple(values.get(name) for name in names) for values, _, _ in found.rows.values()]
        return sorted(rows, key=repr)

    def rows_by_name(self, table: TableId) -> list[dict[str, Any]]:
        """The mirror's rows, each value by the name of its column."""
        found = self.tables[table]
        names = found.schema.stored_names if found.schema else {}
        return [
            {name: values.get(own) for name, own in names.items()}
            for values, _, _ in found.rows.values()
        ]

    # -- what the steps call -----------------------------------------------------------------------------------------

    def prepare_schema(
        self,
        change: SchemaChange | TableSchema,
        generation: int = 0,
        *,
        fence: Fence = no_fence,
    ) -> None:
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
        if state.in_quarantine and not found.quarantine:
            raise LakeError(
                "the quarantine, which records the uncertain rows of the mirror, does not exist",
                table=table,
            )
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
        has_gaps = bool(found.quarantine) or part.is_inexact
        if any(change[COMMIT_SCN] <= window.scn_low for change in changes):
            late_scn = part.manifest.late_scn
            if late_scn is not None and late_scn < found.partitions_scn:
                raise RowsGoneError("a commit is from before rows were removed with a partition")
            every, covered = found.counting(changes), state.covered_scn
            self.repair(found, schema, every, covered_scn=covered)
        else:
            read_scn = window.scn_high if part.is_inexact else read_scn
            self.merge(found, schema, changes, state.covered_scn, read_scn, has_gaps=has_gaps)
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
        read_scn: int | None,
        *,
        has_gaps: bool,
    ) -> int:
        """Bring changes into the mirror; how many rows went."""
        if not changes:
            return 0
        held = _Changes(found, changes, schema)
        rows = held.rows(found.mirror(schema), held.light(), has_gaps=has_gaps)
        rule = KeyRule(
            schema=schema, absent=held.absent[0], covered_scn=covered_scn, read_scn=read_scn
        )
        return found.take(rule, rows)

    def repair(
        self,
        found: MemoryTable,
        schema: TableSchema,
        every: Sequence[dict[str, Any]],
        changes: Sequence[dict[str, Any]] | None = None,
        *,
        covered_scn: int = 0,
    ) -> int:
        """Let the mirror have what the whole change log says of the keys that some changes touch, or of all; how many rows it had
        otherwise."""
        held, mirror = _Changes(found, every, schema), found.mirror(schema)
        near = held.light()
        if changes is not None:
            near = touching(near, _Changes(found, changes, schema).light())
        nothing = mirror.slice(0, 0)
        derived = held.rows(nothing, near, has_gaps=bool(found.quarantine))
        mirror = rows_of_keys([mirror], derived.select(list(schema.key)))
        rows = different_rows(derived, mirror, schema, covered_scn=covered_scn)
        assert rows is not None
        for row in rows.to_pylist():
            names = schema.stored_names
            values = {own: row[name] for name, own in names.items()}
            was = found.rows.pop(_key(schema, values), None)
            if row["_cdc_kind"] == "row":
                if row["_cdc_missing"] and was is None:
                    if not row["_cdc_lost"] and row[COMMIT_SCN] <= found.read_scn:
                        continue  # a chunk saw the row gone; a later window deletes it
                    raise lacking_row(schema)
                values |= {names[one]: was[0][names[one]] for one in row["_cdc_missing"] if was}
                found.rows[_key(schema, values)] = (values, row[COMMIT_SCN], row[ORDINAL])
        return rows.num_rows

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
        found.history.append(_row("t", truncation))
        found.truncated_scn = scn
        assert found.schema is not None
        row = pa.table({COMMIT_SCN: pa.array([scn], pa.int64())})
        gone = found.take(TruncationRule(found.schema, scn), row)
        self.resolve_quarantine(table, scn)
        return TableApplied(table=table, changes=1, rows_deleted=gone)

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
        mirror = [one for one in found.mirror(schema).to_pylist() if one[COMMIT_SCN] < scn]
        if read_scn >= scn:
            mirror += self._logged_before(found, schema, truncation, mirror)
        absent = [one.stored_as for one in schema.columns if one.name not in schema.key]
        names, rows = schema.stored_names, []
        for values in mirror:
            if any(_is_in(one, values, schema) for one in truncation.partitions):
                row = _row("d", truncation, {names[name]: values[name] for name in schema.key})
                rows.append(row | dict.fromkeys(LISTS, absent))
        gone = self.merge(found, schema, rows, scn, None, has_gaps=True)
        found.history += rows
        found.partitions_scn = scn
        return TableApplied(table=table, changes=len(rows), rows_deleted=gone)

    def _logged_before(
        self,
        found: MemoryTable,
        schema: TableSchema,
        truncation: Truncation,
        mirror: list[dict[str, Any]],
    ) -> list[dict[str, Any]]:
        """The rows from right before a DDL by the change log alone: their keys, and what says whose partition they are."""
        needed = set(schema.key)
        for one in truncation.partitions:
            needed |= {schema.held(part.column).name for part in (one, one.sub) if part}
        narrow = schema.lacking([one for one in schema.column_names if one not in needed])
        changes = [one for one in found.counting() if one[COMMIT_SCN] < truncation.scn]
        known = {tuple(row[name] for name in schema.key) for row in mirror}
        try:
            held = _Changes(found, changes, narrow)
            rows = held.rows(mirror_schema(narrow).empty_table(), held.light(), has_gaps=True)
        except DecodeError as error:
            raise RowsGoneError("a row that may have been a partition's is not known") from error
        others = [
            row
            for row in rows.to_pylist()
            if row["_cdc_kind"] == "row" and tuple(row[name] for name in schema.key) not in known
        ]
        if any(row["_cdc_missing"] for row in others):
            raise RowsGoneError("a row that may have been a partition's is not known")
        return others

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
        fence: Fence = no_fence,
    ) -> TableApplied:
        """The window's keys by the whole change log; an undamaged mirror stays as it is."""
        del generation, applied_scn
        self._enter("replay_window", table, manifest.window.key, fence)
        found, window = self.tables[table], manifest.window
        own = [one for one in found.changes if window.scn_low < one[COMMIT_SCN] <= window.scn_high]
        every = found.counting()
        wrong = self.repair(found, schema, every, own, covered_scn=covered_scn)
        return TableApplied(table=table, changes=wrong, skipped=not wrong)

    def apply_chunk(
        self,
        manifest: ChunkManifest,
        paths: Sequence[str],
        *,
        generation: int = 0,
        position: int | None = None,
        asked: Sequence[Sequence[Any]] | None = None,
        fence: Fence = no_fence,
    ) -> TableApplied:
        del position, asked  # a mirror in memory keeps what a chunk was asked for and lacks
        table = manifest.schema.table
        found = self._begun(table, generation)
        app = f"{generation}/chunk/{manifest.snapshot_id}/{manifest.number}"
        if app in found.transactions:
            return TableApplied(table=table, skipped=True)
        if manifest.scn < found.partitions_scn:
            raise RowsGoneError("a chunk is from before rows were removed with a partition")
        self._enter("apply_chunk", table, f"{manifest.snapshot_id}:{manifest.number}", fence)
        found.schema = _settled(found, manifest.schema)
        found.read_scn = max(found.read_scn, manifest.read_up_to)
        held, ordinal = found.schema, chunk_ordinal(manifest.scn, manifest.scn_high)
        chunk = ChunkRows(paths, manifest.schema, held)
        name = f"{manifest.snapshot_id}/{manifest.number}"
        logged = chunk.as_changes(name, manifest.scn, moment_of(manifest.landed), ordinal=ordinal)
        rows = pa.Table.from_batches(logged, change_schema(held)).to_pylist()
        found.history += rows
        columns, there = mirror_schema(held), dict(found.rows)
        found.put(
            pa.Table.from_batches(chunk.as_mirror(manifest.scn, ordinal=ordinal), columns), held
        )
        later = found.keys_above(held, manifest.scn)
        is_emptied = found.truncated_scn > manifest.scn
        for key in [one for one in found.rows if is_emptied or one in later]:
            found.rows.pop(key)
        found.rows |= {key: one for key, one in there.items() if is_emptied or key in later}
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
        schema = self.tables[table].schema
        assert schema is not None
        for values, _, _ in self.tables[table].rows.values():
            values[schema.column(column).stored_as] = None
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

    def delete_missing_keys(
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
        self._enter("delete_missing_keys", table, snapshot_id, fence)
        assert found.schema is not None
        schema, key = found.schema, list(found.schema.key)
        prefix = f"{snapshot_id}/"
        read = {
            _key(schema, one["after"])
            for one in found.history
            if one["_cdc_op"] == "r" and one["_cdc_snapshot"].startswith(prefix)
        }
        read |= found.keys_above(schema, scn_lowest)
        gone = [
            at for at, (_, scn, _) in found.rows.items() if at not in read and scn <= scn_lowest
        ]
        kinds = pa.schema([arrow_schema(schema).field(name) for name in key])
        keys = pa.Table.from_pylist([dict(zip(key, one, strict=True)) for one in gone], kinds)
        for batch in deletions(keys.to_batches(), f"{prefix}gone", scn_lowest, schema):
            found.history += batch.to_pylist()
        for one in gone:
            del found.rows[one]
        return TableApplied(table=table, changes=len(gone), rows_deleted=len(gone))

    def side_table(self, name: SideTableName, *, fence: Fence = no_fence) -> MemorySideTable:
        del fence
        return self.side_tables.setdefault(name, MemorySideTable(_SIDE_TABLES[name]))

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
        fence: Fence = no_fence,
    ) -> int:
        """The mirror by the whole change log."""
        self._enter("rebuild_mirror", table, str(generation), fence)
        found = self.tables[table]
        found.rows.clear()
        self.repair(found, schema, found.counting())
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
        unity: UnityConfig | None = None,
        fence: Fence = no_fence,
    ) -> bool:
        """No catalog has what is in memory."""
        raise LakeError("a lake in memory has no names", table=table)

    def missing_files(self, table: TableId) -> dict[DeltaLayer, list[str] | None]:
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

    def applied(self, table: TableId, generation: int = 0) -> AppliedInDelta:
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


def _row(op: str, truncation: Truncation, before: dict[str, Any] | None = None) -> dict[str, Any]:
    """A row of the change log that a DDL brings."""
    row: dict[str, Any] = {name: None for name, _ in CHANGE_FIELDS} | {key: [] for key in LISTS}
    scn = truncation.scn
    row |= {"_cdc_op": op, COMMIT_SCN: scn, ORDINAL: truncation.ordinal, "_cdc_window": scn}
    row |= {"_cdc_xid": truncation.xid, "_cdc_skipped": truncation.skipped if op == "d" else None}
    return row | {"before": before, "after": None}


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
    _widen(found, followed, evolution.widened)
    _add(found, known, followed)
    return followed


def _add(found: MemoryTable, known: TableSchema, schema: TableSchema) -> None:
    """Rows that are there have the default of columns that are added; what the change log says of them stays as it is."""
    there = {*known.stored_names.values()}
    for column in schema.columns:
        if column.stored_as not in there:
            default = scalar_of_older_rows(column)
            found.added[column.stored_as] = default
            if default is not None:
                value = default.cast(arrow_type(column)).as_py()
                for values, _, _ in found.rows.values():
                    values.setdefault(column.stored_as, value)


def _widen(found: MemoryTable, schema: TableSchema, columns: Sequence[str]) -> None:
    """What the tables have, in the wider types of some columns."""
    images = [values for values, _, _ in found.rows.values()]
    images += [one[side] for one in found.history for side in ("before", "after") if one[side]]
    for column in map(schema.column, columns):
        own = {id(one): one for one in images if one.get(column.stored_as) is not None}
        for values in own.values():
            values[column.stored_as] = _in_type_of(column, values[column.stored_as])
    found.rows = {_key(schema, one[0]): one for one in found.rows.values()}


def _in_type_of(column: Column, value: Any) -> Any:
    kind = arrow_type(column)
    own = pa.array([value])
    if isinstance(value, datetime):
        own = own.cast(pa.timestamp("us"))
    return value if own.type == kind else widened(own, kind)[0].as_py()


def _in_order(batches: Iterable[pa.RecordBatch], schema: TableSchema) -> list[dict[str, Any]]:
    """Changes as they are read back from a change log."""
    changes = pa.Table.from_batches(batches, change_schema(schema)).to_pylist()
    return sorted(changes, key=lambda one: (one[COMMIT_SCN], one[ORDINAL]))


def _key(schema: TableSchema, row: dict[str, Any]) -> Key:
    names = schema.stored_names
    return tuple(row[names[name]] for name in schema.key)


_PARAMETERS = {
    name: signature(method).parameters
    for name, method in vars(MemoryLake).items()
    if isfunction(method)
}
"""Of each method, whatever a test has put around it."""
