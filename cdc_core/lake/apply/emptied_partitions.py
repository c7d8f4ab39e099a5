"""How do the rows of a partition that was dropped or truncated leave a table: deletions in the
change log, then out of the mirror?

The mirror has taken everything that committed before the DDL, and nothing that committed behind it
but chunks that were read there. So the rows that the partition had are those of the mirror, from
before the DDL, whose values lie within the partition's bounds. Each becomes a ``d`` row of the
change log at the SCN of the DDL, under one transaction identifier, which carries the key alone;
from then on the log alone gives the mirror again. Then the mirror takes them, as it takes a
window's changes, under the same identifier, and a property of the change log notes that it is done.

Where a chunk was read at or behind the DDL, the mirror lacks rows that the chunk found gone, or has
what the chunk read in their place, and the change log has them all the same. Of the keys that the
mirror does not have from before the DDL, the change log says which had a row within the bounds
right before it, by the changes below its SCN; these get their ``d`` row too.

Where rows of the table are in quarantine, the mirror may have the value from before such a row's
change: it does not say which rows were the partition's. That, too, is refused.

What comes later from before the DDL (a chunk that was read before it, a commit that came to light
late) may hold rows of the partition that
the mirror did not have: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import pyarrow.compute as pc

from cdc_core.delta.history import DeltaLog, read_log
from cdc_core.errors import RESNAPSHOT_HINT, DecodeError, RowsGoneError
from cdc_core.lake.apply.truncation import Truncation, change_values, refuse_equal
from cdc_core.lake.definitions.altering import commit_properties
from cdc_core.lake.definitions.defaults import sql_literal
from cdc_core.lake.definitions.evolution import known_schema
from cdc_core.lake.mirror.merge import KeyRule
from cdc_core.lake.mirror.merge_audit import SentReplacement
from cdc_core.lake.mirror.write import MirrorCommit, write
from cdc_core.lake.rows.derivation import derived_before
from cdc_core.lake.rows.logged_changes import files_of, logged_changes
from cdc_core.lake.rows.spark_reading import layer_sql
from cdc_core.lake.rows.staging import FoundRows, found_rows
from cdc_core.lake.rows.window_rows import WindowRows
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    PARTITIONS_PROPERTY,
    listed,
    quote_name,
    same_key,
    string_literal,
)
from cdc_core.model.identifiers import TableId
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.model.reports import TableApplied
from cdc_core.schema.partition_bounds import bound_value, rows_condition
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.spark.session import translated
from cdc_core.stage.changes import of_window
from cdc_core.stage.layout import COMMIT_SCN, mirror_schema
from cdc_core.stage.snapshot import absent_of_keys, image_rows, key_images


def empty_partitions(
    work: TableWork, truncation: Truncation, transactions_paths: Sequence[str], *, read_scn: int
) -> TableApplied:
    """Take a DROP or TRUNCATE of partitions into change log and mirror, each once; the window's
    transactions before it were taken. ``read_scn`` is the highest SCN as of which a chunk of the
    table was read. Repeatable.

    Raises:
        RowsGoneError: A transaction committed at its SCN, so nothing says which came first, or rows
            in quarantine count still, or the change log does not say whether a row that a chunk
            found gone was the partition's.
        LakeError: A Delta table is missing, or Delta refused.
    """
    work.require_tables()
    changelog = read_log(work.changelog)
    schema = known_schema(changelog)
    assert changelog is not None
    assert schema is not None
    scn = truncation.scn
    if emptied_scn(changelog) >= scn:
        return TableApplied(table=work.table, skipped=True)
    refuse_equal(work, scn, transactions_paths)
    metadata, session = work.metadata("partitions", scn), work.session_for()
    found: int | None = None
    mirrored_rows: int | None = None
    if changelog.transactions.get(work.partitions_app, 0) < scn:
        refuse_stale(work.table, QuarantineTable(work).count_unresolved(), scn)
        where = " OR ".join(f"({rows_sql(one, schema)})" for one in truncation.partitions)
        keys = listed(schema.key)
        mirror = layer_sql(work, session, "mirror", mirror_schema(schema))
        sql = f"SELECT {keys} FROM {mirror} WHERE {COMMIT_SCN} < {scn} AND ({where})"
        with ExitStack() as held:
            parts = [held.enter_context(found_rows(work, session, sql, doing=_LOOKING))]
            mirrored_rows = parts[0].rows
            if read_scn >= scn:
                unmirrored = _unmirrored(work, session, truncation, schema, where, mirror)
                parts.append(held.enter_context(unmirrored))
            found = sum(part.rows for part in parts)
            if found:
                gone = chain.from_iterable(part.batches(list(schema.key)) for part in parts)
                absent = absent_of_keys(schema)
                values = change_values(truncation, schema, work) | {
                    "_cdc_op": "d",
                    "_cdc_absent": absent,
                    "_cdc_before_absent": absent,
                    "_cdc_skipped": truncation.skipped,
                }
                changes = image_rows("before", key_images(gone, schema), values, schema)
                doing = "appending deletions to the change log"
                info = work.info(doing, metadata, (work.partitions_app, scn))
                work.append_changes(schema, changes, info, rows=found)
    written = None if mirrored_rows == 0 else _delete(work, schema, scn, metadata)
    if written is not None:
        sent = SentReplacement(schema, work.facts(scn=scn), there=mirrored_rows or 0)
        sent.check(written.counts)
    deleted = written.deleted if written else 0
    info = work.info("altering a Delta table", metadata)
    commit_properties(work, work.changelog, {PARTITIONS_PROPERTY: str(scn)}, info)
    return TableApplied(
        table=work.table,
        changes=found or 0,
        operations={"d": found or 0},
        rows_deleted=deleted,
        write=written.how if written and deleted else None,
    )


def _delete(work: TableWork, schema: TableSchema, scn: int, metadata: str) -> MirrorCommit | None:
    """Delete what the change log's deletions name from the mirror: they are changes as others are.
    None if an earlier attempt has done so."""
    if work.require_mirror().transactions.get(work.partitions_app, 0) >= scn:
        return None
    files = files_of(work, scn)
    with logged_changes(work.changelog, schema, of_window(scn), files) as changes:
        found = changes.facts()
        rows = WindowRows(
            work=work,
            changes=changes,
            files=files,
            found=found,
            scn_high=scn,
            rule=KeyRule(schema=schema, absent=found.absent, covered_scn=scn),
            has_gaps=True,
            facts=work.facts(scn=scn),
        )
        info = work.info("deleting the rows of partitions", metadata, (work.partitions_app, scn))
        return write(work, rows.change(info))


@contextmanager
def _unmirrored(
    work: TableWork,
    session: Any,
    truncation: Truncation,
    schema: TableSchema,
    where: str,
    mirror: str,
) -> Iterator[FoundRows]:
    """Keys of rows that were the partitions' by the change log, of those that the mirror does not
    have from before the DDL.

    Raises:
        RowsGoneError: The change log lacks the value that says whether such a row was the
            partitions'.
    """
    columns = sorted({name for one in truncation.partitions for name in _columns_of(one, schema)})
    keys = listed(schema.key, "d")
    same = same_key(schema, "d", "m")
    names = ", ".join(map(string_literal, columns))
    unknown = RowsGoneError(
        "rows were removed with a partition, and the change log does not say whether a row that a snapshot found gone was one of them",
        hint=RESNAPSHOT_HINT,
        **work.facts(scn=truncation.scn),
    )
    sql = (
        f"SELECT {keys}, ARRAYS_OVERLAP(d._cdc_missing, ARRAY({names})) AS {_IS_UNKNOWN}"
        f" FROM {_DERIVED} d LEFT ANTI JOIN (SELECT * FROM {mirror} WHERE {COMMIT_SCN} < {truncation.scn}) m ON {same}"
        f" WHERE d._cdc_kind = 'row' AND (ARRAYS_OVERLAP(d._cdc_missing, ARRAY({names})) OR {where})"
    )
    with ExitStack() as held:
        try:
            derived = derived_before(
                work, session, schema, truncation.scn, columns=columns, within=where
            )
            with translated(_LOOKING, **work.facts()):
                derived.createOrReplaceTempView(_DERIVED)
            rows = found_rows(work, session, sql, doing=_LOOKING, part="unmirrored")
            found = held.enter_context(rows)
        except DecodeError as error:
            raise unknown from error
        if any(pc.any(batch[_IS_UNKNOWN]).as_py() for batch in found.batches([_IS_UNKNOWN])):
            raise unknown
        yield found


_LOOKING, _IS_UNKNOWN = "looking for the rows of partitions", "_cdc_unknown"
_DERIVED = "rows_before"


def _columns_of(rows: PartitionRows, schema: TableSchema) -> list[str]:
    """The columns whose values say which rows are a partition's."""
    own = [schema.held(rows.column).name]
    return own if rows.sub is None else [*own, *_columns_of(rows.sub, schema)]


def emptied_scn(changelog: DeltaLog | None) -> int:
    """The SCN of the last DDL whose partitions' rows went, 0 without one."""
    return int(changelog.properties.get(PARTITIONS_PROPERTY, 0)) if changelog else 0


def refuse_stale(table: TableId, quarantined: int, scn: int) -> None:
    """Refuse to say by the mirror's values which rows went, where redo rows in quarantine make some
    of these values stale.

    Raises:
        RowsGoneError: ``quarantined`` such rows count still.
    """
    if quarantined:
        raise RowsGoneError(
            "rows were removed with a partition, and the mirror may have old values of rows that are in quarantine",
            hint=RESNAPSHOT_HINT,
            table=table,
            scn=scn,
            rows=quarantined,
        )


def refuse_older(work: TableWork, scn: int, what: str) -> None:
    """Refuse what was read, or committed, before rows were removed with a partition.

    Raises:
        RowsGoneError: ``scn`` lies before that.
    """
    emptied = emptied_scn(read_log(work.changelog))
    if scn < emptied:
        raise RowsGoneError(
            f"{what} is from before rows of the table were removed with a partition, and may contain such rows",
            hint=RESNAPSHOT_HINT,
            **work.facts(scn=scn, partitions_scn=emptied),
        )


def rows_sql(rows: PartitionRows, schema: TableSchema) -> str:
    """The condition of the rows of a partition in Spark SQL."""

    def literal(column: Column, text: str) -> str:
        kind = arrow_type(column)
        return sql_literal(bound_value(text, kind), kind)

    return rows_condition(rows, schema, quote_name, literal)
