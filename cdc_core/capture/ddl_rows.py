"""How is a DDL of a captured table, met in the redo, followed?

The dictionary as of the DDL's commit says what the table has become, and ``schema.evolution`` whether that is followed. Where Oracle shows
that dictionary no more, the DDL's text and the present definition say it, or nothing does.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from cdc_core.config import TableConfig
from cdc_core.decode.defaults import default_scalar
from cdc_core.errors import ConfigError, PreflightError, SchemaMismatchError, UnsupportedTypeError
from cdc_core.landing.manifest import SchemaChange
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd, Trouble
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.ddl_reading import empties_table, moves_rows, removes_rows, removes_table
from cdc_core.schema.ddl_text import version_after
from cdc_core.schema.dictionary import AlteredAfter, read_table_schema
from cdc_core.schema.evolution import judge, knowing_rename
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema

_TEXT_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlRow:
    """A DDL row of a captured table. ``scn`` is where it committed, None if it has not within the window."""

    table: TableId
    ordinal: int
    row_scn: int
    scn: int | None
    text: str


def follow_ddl(
    session: OracleSession,
    rows: Sequence[DdlRow],
    history: SchemaHistory,
    configs: Sequence[TableConfig],
    altered_after: AlteredAfter,
    follows_truncate: Set[TableId] = frozenset(),
) -> tuple[list[SchemaChange], list[StreamEnd]]:
    """Add the new versions to ``history``; return them in the order of the redo, and the tables that a DDL ends the stream of.

    A DDL from before the version that the snapshot saw is skipped, and so is one that leaves the captured columns and the
    key as they were (indexes, grants, comments, supplemental logging, other constraints, partitions whose rows stay the table's).

    Args:
        altered_after: Asked where neither the dictionary nor its times tell whether another DDL came right after one.
        follows_truncate: Tables whose TRUNCATE is followed. It locks the table: whoever changed a row has committed before, and whoever
            changes one later commits behind it (SQL Language Reference 19c, TRUNCATE TABLE). One whose commit lies behind the window ends
            the stream all the same: what a chunk saw in between, nothing tells.
    """
    changes: list[SchemaChange] = []
    ends: dict[TableId, StreamEnd] = {}
    for at, row in enumerate(rows):
        old = history.latest(row.table)
        if row.table in ends or (row.scn is not None and row.scn <= old.scn_from):
            continue
        if row.table in follows_truncate and row.scn is not None and empties_table(row.text):
            changes.append(SchemaChange(row.scn, row.ordinal, row.text, old, empties=True))
            continue
        is_last = all(other.table != row.table for other in rows[at + 1 :])
        new = _followed(session, row, old, configs, altered_after if is_last else _always)
        if isinstance(new, StreamEnd):
            ends[row.table] = new
            continue
        if new is not None:
            history.add(new)
            changes.append(SchemaChange(new.scn_from, row.ordinal, row.text, new))
    return changes, list(ends.values())


def _followed(
    session: OracleSession,
    row: DdlRow,
    old: TableSchema,
    configs: Sequence[TableConfig],
    altered_after: AlteredAfter,
) -> TableSchema | StreamEnd | None:
    """The version that the DDL made, or the end of the stream; None if what is captured stayed as it was."""
    if removes_rows(row.text):
        return _end(row, "truncate", "rows were removed without redo for each")
    if old.is_by_row_id and moves_rows(row.text):
        return _end(
            row,
            "unsupported_ddl",
            "it gives rows other ROWIDs, by which the table's rows are known",
        )
    config = next(config for config in configs if config.table == row.table)
    # A DDL whose commit lies behind the window is not in the dictionary as of its row: the present has it.
    at = Scn(row.scn) if row.scn is not None else current_scn(session)
    try:
        new = read_table_schema(session, config, scn=at, altered_after=altered_after)
        arrow_schema(new)
    except SchemaMismatchError as error:
        by_text = _by_its_text(session, row, old, config)
        if by_text is None:
            return StreamEnd(
                row.table, _scn(row) - 1, error.what_happened, error.hint, "unsupported_ddl"
            )
        new = by_text
    except (ConfigError, PreflightError, UnsupportedTypeError) as error:
        trouble: Trouble = "drop" if removes_table(row.text) else "unsupported_ddl"
        return _end(row, trouble, error.message)
    if _brings_lobs(old, new):
        return _end(
            row,
            "unsupported_ddl",
            "it brings the first LOB of a table whose rows are known by their ROWIDs, and what shows them then was not read so far",
        )
    # A column that was left out so far joins with a snapshot only: nothing else knows its values.
    new = replace(new, scn_from=_scn(row)).without(old.excluded)
    new = knowing_rename(old, new, row.text)
    evolution = judge(old, new)
    if evolution.refusal is not None:
        return _end(row, evolution.trouble, evolution.refusal)
    for column in evolution.added:
        try:
            default_scalar(column)
        except (
            SchemaMismatchError
        ) as error:  # an identity column, a clock: rows got values, and no redo
            return _end(row, "unsupported_ddl", error.what_happened)
    return evolution.followed(old, new) if evolution.is_new_version else None


def _brings_lobs(old: TableSchema, new: TableSchema) -> bool:
    has_lobs = new.has_lobs or any(column.is_lob for column in new.columns)
    return old.is_by_row_id and has_lobs and not old.has_lobs


def _by_its_text(
    session: OracleSession, row: DdlRow, old: TableSchema, config: TableConfig
) -> TableSchema | None:
    """The version after a DDL that the dictionary shows no more; None where the text does not suffice."""
    try:
        present = read_table_schema(session, config)
        new = version_after(old, row.text, present, config.columns_exclude)
        if new is not None:
            arrow_schema(new)
    except (ConfigError, PreflightError, UnsupportedTypeError):
        return None
    # One that came and went in between is not told from one that is left out: the newest has it, or nothing does.
    return None if new is None else replace(new, has_lobs=old.has_lobs or present.has_lobs)


def _always(_table: TableId, _scn: Scn) -> bool:
    """The redo has another DDL of the table."""
    return True


def _end(row: DdlRow, trouble: Trouble | None, reason: str) -> StreamEnd:
    ddl = " ".join(row.text.split())[:_TEXT_MAX]
    return StreamEnd(
        row.table,
        _scn(row) - 1,
        f"a DDL of a captured table cannot be followed: {reason} (table={row.table}, scn={_scn(row)}, ddl={ddl})",
        f"`redolake table resnapshot {row.table.argument}` adds the table back as it is now.",
        trouble,
    )


def _scn(row: DdlRow) -> Scn:
    return Scn(row.scn if row.scn is not None else row.row_scn)
