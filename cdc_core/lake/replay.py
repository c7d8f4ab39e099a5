"""What should a mirror hold by its whole change log, and how is it made so again?

Replaying an old window derives its keys from everything the change log has of them, compares, and commits only if something
differs: no transaction identifier is needed, since doing it twice changes nothing. Rebuilding does so for all keys.
"""

from __future__ import annotations

import time
from typing import Any

from cdc_core.errors import LakeError, WindowOrderError
from cdc_core.lake.carry import carried_sql, history_origin
from cdc_core.lake.changes import change_facts, window_view
from cdc_core.lake.evolution import added_columns, settle_schema
from cdc_core.lake.history import read_commits, read_log
from cdc_core.lake.merge import merge_sql
from cdc_core.lake.reduce import reduced_sql
from cdc_core.lake.spark import translated
from cdc_core.lake.tables import (
    COMMIT_SCN,
    ORDINAL,
    create_sql,
    delta,
    mirror_ddl,
    mirror_properties,
    quote_name,
    string_literal,
)
from cdc_core.lake.windows import report
from cdc_core.lake.work import TableWork
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.reports import TableApplied
from cdc_core.schema.table import TableSchema


def replay_window(
    work: TableWork, manifest: WindowManifest, schema: TableSchema, *, covered_scn: int
) -> TableApplied:
    """Derive the window's keys again and mend the mirror where it differs; ``skipped`` if it does not.

    Raises:
        WindowOrderError: The mirror has not taken the window yet.
    """
    started = time.monotonic()
    position = work.position().mirror_scn
    if position is None or position < manifest.window.scn_high:
        raise WindowOrderError(
            "only a window that was applied can be replayed",
            hint="Apply it first.",
            **work.facts(window=manifest.window.key, mirror_scn=position),
        )
    session = work.open_session()
    schema = settle_schema(work, session, schema)
    view = window_view(session, work.changelog, manifest.window.scn_high)
    changes = change_facts(session, view, schema).changes
    if changes == 0:
        return TableApplied(table=work.table, seconds=time.monotonic() - started, skipped=True)
    keys = " UNION ".join(
        f"SELECT {_keys(schema, image)} FROM {view} WHERE {image} IS NOT NULL"
        for image in ("before", "after")
    )
    with translated("deriving a window's keys", **work.facts()):
        session.sql(keys).createOrReplaceTempView("wanted")
        missing = _derive(work, session, schema, position, wanted="wanted")
        session.sql(_different_sql(work, schema, covered_scn)).createOrReplaceTempView("reduced")
        same = session.sql("SELECT 1 FROM reduced LIMIT 1").isEmpty()
    if same:
        return TableApplied(
            table=work.table, changes=changes, seconds=time.monotonic() - started, skipped=True
        )
    sql = merge_sql(work.mirror, "reduced", schema, absent=missing, force=True)
    metadata = work.metadata("replay", position, window=manifest.window.key)
    with work.commit(session, "mending the mirror", metadata):
        counts = session.sql(sql).collect()
    return report(work.table, counts, changes, started)


def rebuild_mirror(work: TableWork, schema: TableSchema) -> int:
    """Write the mirror anew from the change log alone, in one commit; returns its number of rows.

    Raises:
        LakeError: There is no change log, or it does not hold the beginning of every row.
    """
    if read_log(work.changelog) is None:
        raise LakeError(
            "there is no change log to rebuild from",
            hint="Take a new snapshot of the table.",
            **work.facts(path=work.changelog),
        )
    session = work.open_session()
    if read_log(work.mirror) is None:
        work.fence()
        properties = mirror_properties(work.source, schema, work.generation)
        with translated("creating a Delta table", **work.facts(path=work.mirror)):
            session.sql(create_sql(work.mirror, mirror_ddl(schema), properties))
    schema = settle_schema(work, session, schema)
    done = work.position()
    position = max(done.changelog_scn or 0, done.mirror_scn or 0)
    with translated("deriving the mirror", **work.facts()):
        _derive(work, session, schema, position, wanted=None)
        columns = ", ".join(
            quote_name(column) for column in (*schema.column_names, COMMIT_SCN, ORDINAL)
        )
        rows = session.sql(f"SELECT {columns} FROM derived WHERE _cdc_kind = 'row'")
        counts = session.sql(
            "SELECT COUNT_IF(_cdc_kind = 'row') AS n, COUNT_IF(SIZE(_cdc_missing) > 0) AS missing FROM derived"
        ).collect()[0]
    if counts["missing"]:
        raise LakeError(
            "the change log does not hold the beginning of all rows",
            hint="Take a new snapshot of the table.",
            **work.facts(rows=counts["missing"]),
        )
    said = (commit.metadata.get("scn_high", 0) for commit in read_commits(work.changelog))
    scn = position or max(said, default=0)
    work.fence()
    with translated("writing the mirror anew", **work.facts()):
        writer = rows.write.format("delta").mode("overwrite")
        writer = writer.option("userMetadata", work.metadata("rebuild", scn))
        if done.changelog_scn is not None and done.changelog_scn > (done.mirror_scn or -1):
            writer = writer.option("txnAppId", work.window_app)
            writer = writer.option("txnVersion", done.changelog_scn)
        writer.save(work.mirror)
    return int(counts["n"])


def _derive(
    work: TableWork, session: Any, schema: TableSchema, position: int, *, wanted: str | None
) -> tuple[str, ...]:
    """Make the view ``derived`` (columns of ``reduce.reduced_sql``) from the change log up to ``position``.

    Returns the columns that some change lacks. ``wanted`` is a view of keys, None for all.
    """
    history = _history_sql(work, schema, position)
    session.sql(history).createOrReplaceTempView("whole_history")
    near = "whole_history"
    if wanted is not None:
        session.sql(_near_sql(schema, near, wanted)).createOrReplaceTempView("near_history")
        near = "near_history"
    facts = change_facts(session, near, schema)
    defaults = added_columns(read_log(work.changelog))
    if facts.moved_absent:
        # Following rows over their changes of key may lead to keys outside the window.
        facts = change_facts(session, "whole_history", schema)
        origin = history_origin("whole_history", schema, facts.absent)
        carried = carried_sql("whole_history", schema, facts.absent, defaults, origin)
        session.sql(carried).createOrReplaceTempView("carried_history")
        near = "carried_history"
    reduced = reduced_sql(near, schema, absent=facts.absent, defaults=defaults)
    if wanted is not None:
        same = " AND ".join(f"d.{quote_name(key)} = w.{quote_name(key)}" for key in schema.key)
        reduced = f"SELECT d.* FROM ({reduced}) d LEFT SEMI JOIN {wanted} w ON {same}"
    session.sql(reduced).createOrReplaceTempView("derived")
    return facts.absent


def _history_sql(work: TableWork, schema: TableSchema, position: int) -> str:
    """The change log up to the mirror's position; rows written before a column was added have its default."""
    added = added_columns(read_log(work.changelog))
    source = f"{delta(work.changelog)} WHERE _cdc_snapshot IS NOT NULL OR _cdc_window <= {position}"
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
    """Rows of the history that touch a wanted key before or after, each once; joins by equality alone, so they scale."""
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


def _different_sql(work: TableWork, schema: TableSchema, covered_scn: int) -> str:
    """Derived rows that the mirror has otherwise, compared with NULL equal to NULL and NaN equal to NaN."""
    same = " AND ".join(f"d.{quote_name(key)} = m.{quote_name(key)}" for key in schema.key)
    equal = " AND ".join(
        f"(ARRAY_CONTAINS(d._cdc_missing, {string_literal(column)}) OR d.{quote_name(column)} <=> m.{quote_name(column)})"
        for column in (*schema.column_names, COMMIT_SCN, ORDINAL)
        if column not in schema.key
    )
    there = f"m.{COMMIT_SCN} IS NOT NULL"
    return f"""
        SELECT d.* FROM derived d LEFT JOIN {delta(work.mirror)} m ON {same}
        WHERE (d._cdc_kind = 'del' AND {there})
           OR (d._cdc_kind = 'row' AND {there} AND NOT ({equal}))
           OR (d._cdc_kind = 'row' AND NOT {there} AND d.{COMMIT_SCN} > {covered_scn})
    """


def _keys(schema: TableSchema, image: str) -> str:
    return ", ".join(f"{image}.{quote_name(key)} AS {quote_name(key)}" for key in schema.key)
