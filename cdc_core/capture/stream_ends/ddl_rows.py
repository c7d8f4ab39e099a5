"""How is a DDL of a captured table, met in the redo, followed?

The dictionary as of the DDL's commit says what the table has become, and ``schema.evolution``
whether that is followed. Where Oracle shows that dictionary no more, the DDL's text and the present
definition say it, or a definition that a signal brought, or nothing does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.stream_ends.emptied_partitions import rows_of_partitions
from cdc_core.config import TableConfig
from cdc_core.decode.defaults import unfilled
from cdc_core.errors import (
    ConfigError,
    ConverterError,
    PreflightError,
    SchemaMismatchError,
    UnsupportedTypeError,
)
from cdc_core.landing.manifest import NO_ROW, SchemaChange, SignalOutcome
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd, Trouble
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.ddl_reading import (
    EmptiedPartitions,
    emptied_partitions,
    empties_table,
    exchanged_partition,
    moves_rows,
    removes_rows,
    removes_table,
)
from cdc_core.schema.ddl_text import differing, version_after
from cdc_core.schema.dictionary import AlteredAfter, read_table_schema
from cdc_core.schema.dictionary_rows import omitted_among
from cdc_core.schema.evolution import (
    BRINGS_LOBS,
    MOVES_ROWS,
    Evolution,
    brings_lobs,
    identified,
    judge,
    key_after,
    rename_refusal,
)
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.signalled_definitions import GivenTable, version_given
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema

_TEXT_MAX = 300
_EXCHANGED = "other rows came into a partition without redo for each; on_truncate: follow_or_resnapshot reads them from Oracle"


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlRow:
    """A DDL row of a captured table. ``scn`` is where it committed, None if it has not within the
    window."""

    table: TableId
    ordinal: int
    row_scn: int
    scn: int | None
    text: str


@dataclass(frozen=True, slots=True)
class _Misread:
    """The dictionary shows that the version before a DDL, which texts say, is not what the table
    was."""

    reason: str


@dataclass(frozen=True, slots=True)
class FollowedDdl:
    """What became of the tables' definitions: new versions in the order of the redo, the tables
    whose stream a DDL ends, and what became of the definitions that signals brought."""

    changes: list[SchemaChange]
    ends: list[StreamEnd]
    signals: list[SignalOutcome]


def follow_ddl(
    session: OracleSession,
    rows: Sequence[DdlRow],
    history: SchemaHistory,
    rules: CaptureRules,
    altered_after: AlteredAfter,
    *,
    given: Sequence[GivenTable] = (),
    scn_low: int = 0,
) -> FollowedDdl:
    """Add the new versions to ``history``; return them, and the tables that a DDL ends the stream
    of.

    A DDL from before the version that the snapshot saw is skipped, and so is one that leaves the
    captured columns and the key as they were (indexes, grants, comments, supplemental logging,
    other constraints, partitions whose rows stay the table's).

    Args:
        altered_after: Asked where neither the dictionary nor its times tell whether another DDL
            came right after one.
        given: What tables are by signals, each as of an SCN inside the window. It takes effect
            there, behind the DDL that was met up to there. Where Oracle does not show what the last
            of that DDL made of the table, the definition says it, from that DDL on.
        scn_low: The window's lower end, where a table leaves whose definition is found to be wrong
            from an earlier window on.
    """
    changes: list[SchemaChange] = []
    ends: dict[TableId, StreamEnd] = {}
    outcomes: list[SignalOutcome] = []

    def take(one: GivenTable) -> None:
        end = ends.get(one.table)
        change, outcome = _take_given(session, one, history, rules, altered_after, end)
        outcomes.append(outcome)
        changes.extend([change] if change is not None else ())

    waiting = sorted(given, key=lambda one: one.scn)
    for at, row in enumerate(rows):
        while waiting and waiting[0].scn < _scn(row):
            take(waiting.pop(0))
        old = history.latest(row.table)
        if row.table in ends or (row.scn is not None and row.scn <= old.scn_from):
            continue
        emptied = _emptied(session, row, old, rules)
        if isinstance(emptied, StreamEnd):
            ends[row.table] = emptied
            continue
        if emptied is not None:
            changes.append(emptied)
            continue
        later = [other for other in rows[at + 1 :] if other.table == row.table]
        stands_in = _standing_in(row, later, waiting)
        new, text = _followed(session, row, old, rules, altered_after, stands_in, later)
        if isinstance(new, _Misread):
            scn = Scn(max(scn_low, old.scn_from - 1))
            ends[row.table] = replace(_end(row, "unsupported_ddl", new.reason), scn=scn)
            changes = [one for one in changes if one.schema.table != row.table or one.scn <= scn]
            continue
        if isinstance(new, TableSchema) and row.table not in rules.rewrites_wider:
            new = _unless_wider(row, old, new)
        if isinstance(new, StreamEnd):
            ends[row.table] = new
            continue
        if new is not None:
            history.add(new)
            changes.append(SchemaChange(new.scn_from, row.ordinal, text, new))
    for one in waiting:
        take(one)
    return FollowedDdl(changes, list(ends.values()), outcomes)


def _followed(
    session: OracleSession,
    row: DdlRow,
    old: TableSchema,
    rules: CaptureRules,
    altered_after: AlteredAfter,
    stands_in: GivenTable | None,
    later: Sequence[DdlRow],
) -> tuple[TableSchema | StreamEnd | _Misread | None, str]:
    """The version that the DDL made, or the end of the stream, or why the version before it is not
    right; None if what is captured stayed as it was. With it the DDL's text, which names the signal
    where its definition stands in for the dictionary."""
    text = row.text
    if removes_rows(row.text):
        return _end(row, "truncate", "rows were removed without redo for each"), text
    if old.is_by_row_id and moves_rows(row.text):
        return _end(row, "unsupported_ddl", MOVES_ROWS), text
    config = rules.entry(row.table)
    # A DDL whose commit lies behind the window is not in the dictionary as of its row: the present
    # has it.
    at = Scn(row.scn) if row.scn is not None else current_scn(session)
    asked = _always if later else altered_after
    try:
        new = read_table_schema(
            session, config, scn=at, altered_after=asked, after=_under_key_of(old, [row])
        )
        arrow_schema(new)
        if old.is_by_text and (differs := _contradicted_by(new, [row], old, config)):
            return _Misread(_misread(old, differs)), text
    except SchemaMismatchError as error:
        known = _by_its_text(session, row, later, old, config)
        if known is not None and _is_contradicted(
            session, [row, *later], old, config, altered_after
        ):
            other = "what its text and those behind it say is not what Oracle shows behind them"
            return _end(row, "unsupported_ddl", other), text
        known = known and replace(known, is_by_text=True)
        if known is None and stands_in is not None:
            known = _version_given(old, stands_in, config)
            text = f"{row.text} /* {_origin(stands_in)} */"
        if known is None:
            end = StreamEnd(
                row.table, _scn(row) - 1, error.what_happened, error.hint, "unsupported_ddl"
            )
            return end, text
        new = known
    except (ConfigError, ConverterError, PreflightError, UnsupportedTypeError) as error:
        last = _before_it_went(row, later, old, config)
        if last is None:
            trouble: Trouble = "drop" if removes_table(row.text) else "unsupported_ddl"
            return _end(row, trouble, error.message), text
        new = replace(last, is_by_text=True)
    if brings_lobs(old, new):
        return _end(row, "unsupported_ddl", BRINGS_LOBS), text
    # A column that was left out so far joins with a snapshot only: nothing else knows its values.
    new = replace(new, scn_from=_scn(row)).without(old.excluded)
    # Of a table that gets its first LOB this pass was not asked for the rows that close statements.
    new = replace(new, closes_shown=new.closes_shown and old.closes_shown)
    if (refusal := rename_refusal(old, new, row.text)) is not None:
        return _end(row, "unsupported_ddl", refusal), text
    new = identified(old, new, row.text)
    evolution = judge(old, new)
    if evolution.refusal is not None:
        return _end(row, evolution.trouble, evolution.refusal), text
    if (no_default := unfilled(evolution.added)) is not None:
        return _end(row, "unsupported_ddl", no_default), text
    return (evolution.followed(old, new) if evolution.is_new_version else None), text


def _captured(schema: TableSchema, config: TableConfig) -> TableSchema:
    """The version without columns of types that are not captured, where the table leaves such
    out.

    Raises:
        UnsupportedTypeError: It has such columns otherwise, or in its key.
    """
    others = omitted_among(config, schema.columns, schema.key)
    named = tuple((one.name, one.data_type) for one in others)
    schema = replace(schema, omitted=(*schema.omitted, *named)).without(
        [one.name for one in others]
    )
    arrow_schema(schema)
    return schema


def _emptied(
    session: OracleSession, row: DdlRow, old: TableSchema, rules: CaptureRules
) -> SchemaChange | StreamEnd | None:
    """A TRUNCATE that is followed, of the table or of partitions of which it can be said which rows
    they had; None if it is none.

    It locks the table: whoever changed a row has committed before, and whoever changes one later
    commits behind it (SQL Language Reference 19c, TRUNCATE TABLE). One whose commit lies behind the
    window ends the stream all the same: what a chunk saw in between, nothing tells.
    """
    if row.table not in rules.follows_truncate:
        return None
    if row.scn is not None and empties_table(row.text):
        return SchemaChange(row.scn, row.ordinal, row.text, old, empties=True)
    if chosen := emptied_partitions(row.text):
        return _partitions_emptied(session, row, old, rules.entry(row.table), chosen)
    if not (exchanged := exchanged_partition(row.text)):
        return None
    if row.table not in rules.rereads_partitions:
        return _end(row, "truncate", _EXCHANGED)
    emptied = _partitions_emptied(session, row, old, rules.entry(row.table), exchanged)
    return emptied if isinstance(emptied, StreamEnd) else replace(emptied, has_new_rows=True)


def _partitions_emptied(
    session: OracleSession,
    row: DdlRow,
    old: TableSchema,
    config: TableConfig,
    chosen: EmptiedPartitions,
) -> SchemaChange | StreamEnd:
    """A DROP, TRUNCATE or EXCHANGE of partitions with the rows that go, or the end of the stream
    where nothing says which they are."""
    if row.scn is None:
        return _end(
            row, "truncate", "rows were removed with a partition, and it commits behind the window"
        )
    try:
        rows = rows_of_partitions(
            session, config, old, chosen, row_scn=Scn(row.row_scn), scn=Scn(row.scn)
        )
    except SchemaMismatchError as error:
        reason = (
            f"rows were removed with a partition, and nothing says which: {error.what_happened}"
        )
        return _end(row, "truncate", reason)
    return SchemaChange(row.scn, row.ordinal, row.text, old, empties=True, partitions=rows)


def _standing_in(
    row: DdlRow, later: Sequence[DdlRow], waiting: Sequence[GivenTable]
) -> GivenTable | None:
    """The definition of the table as of an SCN at or behind its DDL, with no other DDL of it in
    between."""
    own = (one for one in waiting if one.table == row.table and one.as_of >= _scn(row))
    first = next(own, None)
    if first is None or any(_scn(other) <= first.scn for other in later):
        return None
    return first


def _version_given(old: TableSchema, given: GivenTable, config: TableConfig) -> TableSchema | None:
    try:
        return version_given(old, given, config)
    except (ConfigError, SchemaMismatchError, UnsupportedTypeError):
        return None


def _take_given(
    session: OracleSession,
    given: GivenTable,
    history: SchemaHistory,
    rules: CaptureRules,
    altered_after: AlteredAfter,
    end: StreamEnd | None,
) -> tuple[SchemaChange | None, SignalOutcome]:
    """Let a definition hold from its SCN on, or say why it does not: whatever it is, it stops no
    table."""

    def refused(reason: str) -> tuple[None, SignalOutcome]:
        return None, SignalOutcome(
            id=given.signal, scn=given.scn, refusal=f"{given.table}: {reason}"
        )

    if given.table not in history.tables:
        return refused("the window does not hold the table's redo")
    if end is not None:
        return refused(f"its stream ended at SCN {end.scn}")
    old = history.latest(given.table)
    config = rules.entry(given.table)
    try:
        new = identified(old, version_given(old, given, config))
    except (ConfigError, SchemaMismatchError, UnsupportedTypeError) as error:
        return refused(error.message)
    evolution = judge(old, new)
    reason = evolution.refusal or unfilled(evolution.added)
    if reason is None and evolution.widened and given.table not in rules.rewrites_wider:
        reason = _too_wide(evolution)
    if reason is not None:
        return refused(reason)
    taken = SignalOutcome(id=given.signal, scn=given.scn)
    if not evolution.is_new_version:
        return None, taken
    if given.as_of <= old.scn_from:
        return refused(f"its definition as of SCN {old.scn_from} is known, which is newer")
    if _is_shown(session, new, config, altered_after):
        return refused("Oracle shows another definition of it as of this SCN")
    new = evolution.followed(old, new)
    history.add(new)
    return SchemaChange(new.scn_from, NO_ROW, _origin(given), new), taken


def _is_shown(
    session: OracleSession, given: TableSchema, config: TableConfig, altered_after: AlteredAfter
) -> bool:
    """Does Oracle show the dictionary of the definition's SCN, with another definition?"""
    try:
        shown = read_table_schema(
            session, config, scn=given.scn_from, altered_after=altered_after, after=given
        ).without(given.excluded)
        evolution = judge(given, identified(given, shown))
    except (ConfigError, PreflightError, SchemaMismatchError, UnsupportedTypeError):
        return False
    return evolution.refusal is not None or evolution.is_new_version


def _origin(given: GivenTable) -> str:
    return f"definition of signal {given.signal}"


def _unless_wider(row: DdlRow, old: TableSchema, new: TableSchema) -> TableSchema | StreamEnd:
    """The end of the stream where columns of the new version need wider types in Delta."""
    evolution = judge(old, new)
    return _end(row, "widened_column", _too_wide(evolution)) if evolution.widened else new


def _too_wide(evolution: Evolution) -> str:
    return f"columns have types that Delta's do not hold: {', '.join(evolution.widened)}"


def _under_key_of(old: TableSchema, rows: Sequence[DdlRow]) -> TableSchema:
    """The version with the names that its key has behind some DDL, by which the dictionary's keys
    are looked through."""
    for row in rows:
        old = replace(old, key=key_after(old.key, row.text))
    return old


def _by_its_text(
    session: OracleSession,
    row: DdlRow,
    later: Sequence[DdlRow],
    old: TableSchema,
    config: TableConfig,
) -> TableSchema | None:
    """The version after a DDL that the dictionary shows no more; None where the text does not
    suffice."""
    try:
        present = read_table_schema(session, config, after=_under_key_of(old, [row, *later]))
        new = version_after(old, row.text, present, config)
        new = new and _captured(new, config)
    except (ConfigError, PreflightError, UnsupportedTypeError):
        return None
    # One that came and went in between is not told from one that is left out: the newest has it, or
    # nothing does.
    return None if new is None else replace(new, has_lobs=new.has_lobs or present.has_lobs)


def _before_it_went(
    row: DdlRow, later: Sequence[DdlRow], old: TableSchema, config: TableConfig
) -> TableSchema | None:
    """The version after a DDL, by its text, of a table that a later DDL dropped or renamed, so that
    no definition of the present is its own; None where the text does not suffice, or nothing says
    that it went."""
    if removes_table(row.text) or not any(removes_table(other.text) for other in later):
        return None
    new = version_after(old, row.text, None, config)
    try:
        return new and _captured(new, config)
    except UnsupportedTypeError:
        return None


def _is_contradicted(
    session: OracleSession,
    rows: Sequence[DdlRow],
    old: TableSchema,
    config: TableConfig,
    altered_after: AlteredAfter,
) -> bool:
    """Does Oracle show, as of the last of a table's DDLs in this window, other columns than their
    texts say from ``old`` on? No answer is none."""
    try:
        shown = read_table_schema(
            session,
            config,
            scn=_scn(rows[-1]),
            altered_after=altered_after,
            after=_under_key_of(old, rows),
        )
    except (ConfigError, PreflightError, SchemaMismatchError, UnsupportedTypeError):
        return False
    return bool(_contradicted_by(shown, rows, old, config))


def _contradicted_by(
    shown: TableSchema, rows: Sequence[DdlRow], old: TableSchema, config: TableConfig
) -> tuple[str, ...]:
    """The columns of which Oracle shows something else, behind some DDL, than ``old`` and the texts
    say."""
    shown, version, unread = shown.without(old.excluded), old, []
    for row in rows:
        after = version_after(version, row.text, shown, config)
        if after is None:
            unread.append(row.text)
        else:
            version = after
    try:
        return differing(_captured(version, config), shown, "\n".join(unread))
    except UnsupportedTypeError:
        return ()


def _misread(old: TableSchema, differs: Sequence[str]) -> str:
    return (
        f"Oracle shows other columns than the texts of DDL say, by which rows were decoded from SCN {old.scn_from} on, when Oracle "
        f"did not show the dictionary: {', '.join(differs)}"
    )


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
