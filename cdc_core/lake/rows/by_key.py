"""How do the rules of ``stage`` run over a change log of any size? By key, in Spark's tasks.

Spark brings all rows of a key to one task, next to each other; a change of key goes to both of its
keys. A task takes as many whole keys as :data:`PART_BYTES` hold, lets the rule's Arrow functions
say what becomes of them, and goes on. So a task holds such a part; of a key that has more, what
decides, and the values that can still count. The mirror's rows of the same keys may come along, and
what is right already stays out of the answer then.

Where the executors' Python cannot run Redolake, this process does the same from files, part by
part.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.delta.history import filesystem_of
from cdc_core.delta.storage import storing
from cdc_core.errors import PreflightError, RowCountError
from cdc_core.lake.rows.spark_reading import layer_sql
from cdc_core.lake.rows.staging import ddl_of, found_rows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import quote_name, string_literal
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.spark.tasks import map_rows
from cdc_core.stage.changes import LIGHT, AddedColumns, ChangeFacts, Flags, HeldChanges
from cdc_core.stage.difference import different_rows
from cdc_core.stage.layout import COMMIT_SCN, mirror_schema
from cdc_core.stage.reduction import merge_source, reduce_changes, settled_values, source_schema

PART_BYTES = 64 * 1024 * 1024
"""A task begins with a part when it has rows of so many bytes."""

ROWS_AT_ONCE = 10_000
"""So many rows go back to Spark at once."""

_HASH, _MIRROR = "_cdc_hash", "_cdc_mirror"
_IMAGES = "before", "after"
_DERIVING, _SORTED = "deriving rows from the change log", "rows_by_key"

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reduction:
    """One row per key, by :mod:`cdc_core.stage.reduction`. Keys that are not in the mirror are
    known to be gone as of ``covered_scn``. It is pickled."""

    schema: TableSchema
    has_gaps: bool
    covered_scn: int = 0

    @property
    def compared(self) -> pa.Schema:
        """The columns of the mirror's rows that it asks for."""
        return mirror_schema(self.schema)

    def settled(self, changes: HeldChanges) -> dict[str, Flags]:
        """Per column, which of the changes of one key, of which more follow, have values that do
        not count any more."""
        columns = [one for one in self.schema.column_names if one not in self.schema.key]
        return settled_values(changes.light(), columns)

    def __call__(self, changes: HeldChanges, mirror: pa.Table | None) -> pa.Table:
        """One row per key, in the columns of ``stage.reduction.source_schema``, from all of its
        changes; if the mirror's rows are given, of those keys alone that it has otherwise."""
        light = changes.light()
        absent, _ = light.kinds(self.schema.column_names)
        in_order = [one for one in self.schema.column_names if one in absent]
        reduced = reduce_changes(light, self.schema, in_order, has_gaps=self.has_gaps)
        derived = merge_source(changes, reduced, self.schema)
        if mirror is None:
            return derived
        found = different_rows(derived, mirror, self.schema, covered_scn=self.covered_scn)
        if found is None:
            raise _double(self.schema)
        return found


def _double(schema: TableSchema) -> RowCountError:
    return RowCountError(
        "the mirror has more than one row of a key; it was not changed",
        hint="`redolake table rebuild OWNER.TABLE` rewrites the mirror from its change log.",
        table=schema.table,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedChanges:
    """Changes of a table, by their keys.

    Attributes:
        work: The table's tools.
        session: Spark.
        rows: A relation of SQL with the change log's columns, under the names of ``schema``.
        schema: The table, with the columns that matter.
        added: Columns that were added to it.
        wanted: A relation of SQL of the keys that are looked at, None for all.
    """

    work: TableWork
    session: Any
    rows: str
    schema: TableSchema
    added: AddedColumns
    wanted: str | None

    def derived(self, rule: Reduction, *, is_compared: bool = False) -> Any:
        """A DataFrame of what the rule says, computed already; ``is_compared``: of the keys that
        the mirror has otherwise.

        Raises:
            CdcError: As the rule raises, and :func:`cdc_core.spark.tasks.map_rows`.
        """
        sql = self._sql(self.schema.column_names)
        if is_compared:
            compared = self._mirror_sql(rule.compared)
            sql = f"SELECT *, NULL AS {_MIRROR} FROM ({sql}) UNION ALL {compared}"
        with translated(_DERIVING, **self.work.facts()):
            frame = self.session.sql(sql).repartition(_HASH).sortWithinPartitions(_HASH, COMMIT_SCN)
        task = _KeyTask(rule, self.schema, self.added)
        return self._made(frame, task, source_schema(self.schema))

    def kinds(self) -> ChangeFacts:
        """What kinds of changes there are; a change of key counts twice."""
        task = _KindsTask(self.schema, self.added)
        with translated(_DERIVING, **self.work.facts()):
            frame = self.session.sql(self._sql(self.schema.key))
            found = self._made(frame, task, _KINDS).toArrow()
        names = set(pc.unique(pc.list_flatten(found["absent"])).to_pylist())
        return ChangeFacts(
            changes=pc.sum(found["changes"]).as_py() or 0,
            absent=tuple(one for one in self.schema.column_names if one in names),
            moved_absent=bool(pc.any(found["moved_absent"]).as_py()),
        )

    def _made(self, frame: Any, task: _Task, columns: pa.Schema) -> Any:
        """A DataFrame of what a task makes of the rows of each partition, computed already."""
        if not self.work.executor_python.lacks_redolake:
            try:
                return map_rows(
                    frame, task, ddl_of(columns), doing=_DERIVING, facts=self.work.facts()
                )
            except PreflightError as error:
                self.work.executor_python.lacks_redolake = True
                _LOG.warning("this process derives rows, since %s", error.what_happened)
        return self._made_here(frame, task, columns)

    def _made_here(self, frame: Any, task: _Task, columns: pa.Schema) -> Any:
        """The same by this process, from a file of each partition."""
        folder_url = f"{self.work.staging}/sorted/made"
        filesystem, folder = filesystem_of(folder_url)
        with translated(_DERIVING, **self.work.facts()):
            frame.createOrReplaceTempView(_SORTED)
        sql = f"SELECT * FROM {_SORTED}"
        with found_rows(self.work, self.session, sql, doing=_DERIVING, part="sorted") as found:
            with storing(_DERIVING, **self.work.facts()):
                filesystem.create_dir(folder, recursive=True)
                with pq.ParquetWriter(
                    f"{folder}/1.parquet", columns, filesystem=filesystem
                ) as file:
                    for batch in task(found.batches()):
                        file.write_batch(batch.cast(columns))
            with translated(_DERIVING, **self.work.facts()):
                made = self.session.read.schema(ddl_of(columns)).parquet(folder_url)
                return made.localCheckpoint()

    def _sql(self, columns: Sequence[str]) -> str:
        """The changes, of whose ``after`` some columns are read: once for each key, with its
        hash."""
        light = ", ".join(one for one in LIGHT if one != "_cdc_absent")
        images = {"before": self.schema.key, "after": columns}
        structs = ", ".join(_struct(image, names) for image, names in images.items())
        same = " AND ".join(
            f"before.{name} <=> after.{name}" for name in map(quote_name, self.schema.key)
        )
        sides = (
            "CASE WHEN before IS NULL THEN ARRAY(FALSE) WHEN after IS NULL THEN ARRAY(TRUE)"
            f" WHEN {same} THEN ARRAY(FALSE) ELSE ARRAY(TRUE, FALSE) END"
        )
        keys = [
            f"IF(c.is_old, c.before.{quote_name(key)}, c.after.{quote_name(key)})"
            for key in self.schema.key
        ]
        return (
            f"SELECT XXHASH64({', '.join(keys)}) AS {_HASH}, {light},"
            f" COALESCE(_cdc_absent, ARRAY()) AS _cdc_absent, is_old, NOT is_old AS is_new, {structs}"
            f" FROM (SELECT *, EXPLODE({sides}) AS is_old FROM {self.rows}) c{self._among(keys)}"
        )

    def _mirror_sql(self, columns: pa.Schema) -> str:
        """The mirror's rows of the same keys, beside no change."""
        mirror = layer_sql(self.work, self.session, "mirror", columns)
        light = ", ".join(f"NULL AS {one}" for one in LIGHT)
        keys = [f"m.{quote_name(key)}" for key in self.schema.key]
        fields = ", ".join(f"{string_literal(one)}, m.{quote_name(one)}" for one in columns.names)
        return (
            f"SELECT XXHASH64({', '.join(keys)}) AS {_HASH}, {light}, FALSE AS is_old,"
            f" FALSE AS is_new, NULL AS before, NULL AS after, NAMED_STRUCT({fields}) AS {_MIRROR}"
            f" FROM {mirror} m{self._among(keys)}"
        )

    def _among(self, keys: Sequence[str]) -> str:
        if self.wanted is None:
            return ""
        same = " AND ".join(
            f"{own} = w.{quote_name(key)}" for own, key in zip(keys, self.schema.key, strict=True)
        )
        return f" LEFT SEMI JOIN {self.wanted} w ON {same}"


def _struct(image: str, names: Sequence[str]) -> str:
    fields = ", ".join(f"{string_literal(one)}, {image}.{quote_name(one)}" for one in names)
    return f"IF({image} IS NULL, NULL, NAMED_STRUCT({fields})) AS {image}"


@dataclass(frozen=True, slots=True)
class _KeyTask:
    """What runs in an executor's Python over the rows of a partition."""

    rule: Reduction
    schema: TableSchema
    added: AddedColumns

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in whole_keys(batches, self.thinned):
            yield from self._of(rows).to_batches(max_chunksize=ROWS_AT_ONCE)

    def _of(self, rows: pa.Table) -> pa.Table:
        mirrors, rows = _apart(rows)
        mirror = None
        if mirrors is not None:
            own, kinds = whole(mirrors[_MIRROR]), self.rule.compared
            mirror = pa.Table.from_arrays(own.flatten(), kinds.names).cast(kinds)
        return self.rule(HeldChanges(rows, self.schema, self.added), mirror)

    def thinned(self, rows: pa.Table) -> pa.Table:
        """Rows of one key without the values that do not count any more, whatever follows."""
        mirrors, rows = _apart(rows)
        rows = rows.combine_chunks()
        keys = [
            pc.if_else(rows["is_old"], *(pc.struct_field(rows[one], name) for one in _IMAGES))
            for name in self.schema.key
        ]
        if rows.num_rows and all(len(one.unique()) == 1 for one in keys):
            settled = self.rule.settled(HeldChanges(rows, self.schema, self.added))
            after = whole(rows["after"])
            fields = [
                pc.if_else(pa.array(~settled[one.name]), values, None)
                if one.name in settled
                else values
                for one, values in zip(after.type, after.flatten(), strict=True)
            ]
            after = pa.StructArray.from_arrays(
                fields, fields=list(after.type), mask=after.is_null()
            )
            rows = rows.set_column(rows.schema.get_field_index("after"), "after", after)
        return rows if mirrors is None else pa.concat_tables([mirrors, rows])


@dataclass(frozen=True, slots=True)
class _KindsTask:
    """The same, for what kinds of changes there are."""

    schema: TableSchema
    added: AddedColumns

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            light = HeldChanges(pa.table(batch), self.schema, self.added).light()
            absent, moved_absent = light.kinds(self.schema.column_names)
            found = {
                "changes": pa.array([batch.num_rows]),
                "absent": pa.array([sorted(absent)], pa.list_(pa.string())),
                "moved_absent": pa.array([moved_absent]),
            }
            yield pa.RecordBatch.from_pydict(found)


_Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_KINDS = pa.schema(
    [("changes", pa.int64()), ("absent", pa.list_(pa.string())), ("moved_absent", pa.bool_())]
)


def _apart(rows: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    """The mirror's rows, if they were asked for, and the changes."""
    if _MIRROR not in rows.column_names:
        return None, rows
    is_mirrors = rows[_MIRROR].is_valid()
    return rows.filter(is_mirrors), rows.filter(pc.invert(is_mirrors))


def whole_keys(
    batches: Iterator[pa.RecordBatch], thinned: Callable[[pa.Table], pa.Table]
) -> Iterator[pa.Table]:
    """Rows that are sorted by the hash of their key, in parts of whole keys: of about
    :data:`PART_BYTES`, or of one hash, whose rows are ``thinned`` whenever they have doubled."""
    held: list[pa.RecordBatch] = []
    size, thinned_from = 0, PART_BYTES
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(batch)
        size += batch.nbytes
        first, last = held[0][_HASH][0].as_py(), batch[_HASH][-1].as_py()
        if size < PART_BYTES:
            continue
        if first == last:
            if size >= thinned_from:
                held = thinned(pa.Table.from_batches(held)).to_batches()
                size = sum(one.nbytes for one in held)
                thinned_from = max(PART_BYTES, 2 * size)
            continue
        thinned_from = PART_BYTES
        rows = pa.Table.from_batches(held)
        end = int(np.flatnonzero(rows[_HASH].to_numpy() != last)[-1]) + 1
        yield rows.slice(0, end)
        held = rows.slice(end).to_batches()
        size = sum(one.nbytes for one in held)
    if held:
        yield pa.Table.from_batches(held)
