"""What do rows hold by the whole change log?

A key's state is derived from everything that the change log has of it, in commit order, whatever
the mirror holds and in whatever order the changes got there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdc_core.delta.history import read_log
from cdc_core.lake.carry import carried_sql, carried_view, history_origin
from cdc_core.lake.changes import change_facts, files_of, logged_changes, rows_sql
from cdc_core.lake.counting_copies import copies_sql, different_copies_sql
from cdc_core.lake.evolution import added_columns, in_mirror
from cdc_core.lake.quarantine import QuarantineTable
from cdc_core.lake.reduce import reduced_sql
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import delta, quote_name, string_literal
from cdc_core.lake.truncating import truncated_scn
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.carrying import carry_columns
from cdc_core.stage.changes import OwnRows, below, since, up_to
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL


def rederived_sql(
    work: TableWork,
    session: Any,
    changes: str,
    schema: TableSchema,
    *,
    position: int,
    covered_scn: int,
    is_late: bool = False,
    has_gaps: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """SELECT of the rows that the mirror has otherwise than the change log up to ``position`` says,
    of the keys that ``changes`` (a relation of SQL) touch; for a MERGE that takes it as the truth.
    The second result are the columns that some change lacks.

    Where changes came to light late (``is_late``), later changes of key may have carried a column
    along that a late one set. All keys are then looked at if any change of key lacks a column.
    Others may come to light later still (``has_gaps``), which counted rows have to know.
    """
    keys = " UNION ".join(
        f"SELECT {_keys(schema, image)} FROM {changes} WHERE {image} IS NOT NULL"
        for image in ("before", "after")
    )
    if schema.is_by_all_columns:
        derived, _ = derived_sql(
            work, session, schema, position, wanted=f"({keys})", has_gaps=has_gaps
        )
        return different_copies_sql(derived, work.mirror, f"({keys})", schema), ()
    wanted = None if is_late and _carries(work, session, schema, position) else f"({keys})"
    derived, missing = derived_sql(work, session, schema, position, wanted=wanted)
    return _different_sql(work, derived, in_mirror(work, schema), covered_scn), missing


def derived_sql(
    work: TableWork,
    session: Any,
    schema: TableSchema,
    position: int,
    *,
    wanted: str | None,
    has_gaps: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """SELECT with the columns of ``reduce.reduced_sql`` from the change log up to ``position``, and
    the columns of the mirror that some change lacks. ``wanted`` is a relation of keys, None for
    all; ``has_gaps`` is about counted rows."""
    whole = f"({_history_sql(work, schema, position)})"
    if schema.is_by_all_columns:
        read_scn = _read_scn(session, whole, schema)
        return copies_sql(whole, schema, read_scn, wanted, has_gaps=has_gaps), ()
    held, has_gaps = in_mirror(work, schema), QuarantineTable(work).exists
    own = _own_rows(work, position)
    return _reduced_sql(work, session, schema, held, whole, own, wanted, has_gaps=has_gaps)


def derived_before_sql(
    work: TableWork,
    session: Any,
    schema: TableSchema,
    scn: int,
    *,
    columns: Sequence[str],
    within: str,
) -> str:
    """SELECT with the columns of ``reduce.reduced_sql``: what was there right before ``scn`` by the
    changes below it, of the keys that may have had a row that fulfils ``within``, a condition on
    ``columns``. Other columns than these and the key's say nothing."""
    history = _history_sql(work, schema, scn)
    whole = f"(SELECT * FROM ({history}) WHERE {COMMIT_SCN} < {scn})"
    listed = ", ".join(map(string_literal, columns))
    keys = ", ".join(map(quote_name, schema.key))
    wanted = (
        f"(SELECT DISTINCT {keys} FROM (SELECT after.*, _cdc_absent FROM {whole} WHERE after IS NOT NULL)"
        f" WHERE ({within}) OR ARRAYS_OVERLAP(_cdc_absent, ARRAY({listed})))"
    )
    needed = (*schema.key, *columns)
    held = schema.lacking([one for one in schema.column_names if one not in needed])
    # Rows that a snapshot found gone may have changes behind it: their end is what is looked for.
    own = below(scn, _own_rows(work, scn))
    sql, _ = _reduced_sql(work, session, schema, held, whole, own, wanted, has_gaps=True)
    return sql


def _reduced_sql(
    work: TableWork,
    session: Any,
    schema: TableSchema,
    held: TableSchema,
    whole: str,
    own: OwnRows,
    wanted: str | None,
    *,
    has_gaps: bool,
) -> tuple[str, tuple[str, ...]]:
    """As :func:`derived_sql`, from the relation ``whole``, whose rows ``own`` picks; ``held`` is
    the table with the columns that matter."""
    near = whole if wanted is None else f"({_near_sql(schema, whole, wanted)})"
    facts = change_facts(session, near, held)
    defaults = added_columns(read_log(work.changelog))
    if facts.moved_absent:
        # Following rows over their changes of key may lead to keys outside the window.
        facts = change_facts(session, whole, held)
        absent = facts.absent
        with logged_changes(work.changelog, held, own, files_of(work)) as changes:
            carried = carry_columns(changes, held, absent, has_gaps=has_gaps)
        view = carried_view(work, session, carried, has_mirror=False)
        origin = history_origin(whole, schema, absent)
        near = f"({carried_sql(whole, schema, absent, defaults, origin, view)})"
    reduced = reduced_sql(near, schema, absent=facts.absent, defaults=defaults, has_gaps=has_gaps)
    if wanted is not None:
        same = " AND ".join(f"d.{quote_name(key)} = w.{quote_name(key)}" for key in schema.key)
        reduced = f"SELECT d.* FROM ({reduced}) d LEFT SEMI JOIN {wanted} w ON {same}"
    return reduced, facts.absent


def _read_scn(session: Any, changes: str, schema: TableSchema) -> int:
    """The SCN of the snapshot whose rows are among changes; 0 if there are none."""
    with translated("reading the change log", table=schema.table):
        query = f"SELECT MAX({COMMIT_SCN}) AS scn FROM {changes} WHERE _cdc_op = 'r'"
        return int(session.sql(query).collect()[0]["scn"] or 0)


def _carries(work: TableWork, session: Any, schema: TableSchema, position: int) -> bool:
    """Has the table a change of key that does not carry all columns?"""
    whole = f"({_history_sql(work, schema, position)})"
    return change_facts(session, whole, in_mirror(work, schema)).moved_absent > 0


def _own_rows(work: TableWork, position: int) -> OwnRows:
    """The rows of :func:`_history_sql`."""
    counts_from, known = truncated_scn(work, read_log(work.changelog)), up_to(position)
    return since(counts_from, known) if counts_from else known


def _history_sql(work: TableWork, schema: TableSchema, position: int) -> str:
    """The change log up to the mirror's position, since its last TRUNCATE; rows written before a
    column was added have its default."""
    log = read_log(work.changelog)
    added, counts_from = added_columns(log), truncated_scn(work, log)
    source = f"{rows_sql(work.changelog, schema)} WHERE (_cdc_snapshot IS NOT NULL OR _cdc_window <= {position})"
    if counts_from:
        source += f" AND _cdc_op <> 't' AND {COMMIT_SCN} >= {counts_from}"
    if not added:
        return f"SELECT * FROM {source}"
    images = []
    for image in ("before", "after"):
        fields = ", ".join(
            f"{string_literal(column)}, "
            + (
                f"IF(_cdc_columns <= {index}, {added[column]}, {image}.{quote_name(column)})"
                if column in added
                else f"{image}.{quote_name(column)}"
            )
            for index, column in enumerate(schema.column_names)
        )
        images.append(f"IF({image} IS NULL, NULL, NAMED_STRUCT({fields})) AS {image}")
    return f"SELECT * EXCEPT (before, after), {', '.join(images)} FROM {source}"


def _near_sql(schema: TableSchema, history: str, wanted: str) -> str:
    """Rows of the history that touch a wanted key before or after, each once; joins by equality
    alone, so they scale."""
    before, after = (
        " AND ".join(f"h.{image}.{quote_name(key)} = w.{quote_name(key)}" for key in schema.key)
        for image in ("before", "after")
    )
    return f"""
        SELECT h.* FROM {history} h LEFT SEMI JOIN {wanted} w ON {after}
        UNION ALL
        SELECT h.* FROM (SELECT h.* FROM {history} h LEFT SEMI JOIN {wanted} w ON {before}) h
        LEFT ANTI JOIN {wanted} w ON {after}
    """


def _different_sql(work: TableWork, derived: str, schema: TableSchema, covered_scn: int) -> str:
    """Derived rows that the mirror has otherwise, compared with NULL equal to NULL and NaN equal to
    NaN."""
    same = " AND ".join(f"d.{quote_name(key)} = m.{quote_name(key)}" for key in schema.key)
    equal = " AND ".join(
        f"(ARRAY_CONTAINS(d._cdc_missing, {string_literal(column)}) OR d.{quote_name(column)} <=> m.{quote_name(column)})"
        for column in (*schema.column_names, COMMIT_SCN, ORDINAL)
        if column not in schema.key
    )
    there = f"m.{COMMIT_SCN} IS NOT NULL"
    return f"""
        SELECT d.* FROM ({derived}) d LEFT JOIN {delta(work.mirror)} m ON {same}
        WHERE (d._cdc_kind = 'del' AND {there})
           OR (d._cdc_kind = 'row' AND {there} AND NOT ({equal}))
           OR (d._cdc_kind = 'row' AND NOT {there} AND d.{COMMIT_SCN} > {covered_scn})
    """


def _keys(schema: TableSchema, image: str) -> str:
    return ", ".join(f"{image}.{quote_name(key)} AS {quote_name(key)}" for key in schema.key)
