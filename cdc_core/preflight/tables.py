"""What do tables lack before they can be read from Oracle? All of it at once, each with its remedy.

What keeps their changes from being read is asked of the source of changes
(:meth:`cdc_core.change_reader.ChangeReader.check`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_core.config import MatchedTable, Reading, TableConfig
from cdc_core.errors import (
    CdcError,
    ConfigError,
    PreflightError,
    SchemaMismatchError,
    UnsupportedTypeError,
)
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.patterns import is_name_pattern
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.preflight.checks import Check, CheckInput, found_by
from cdc_core.preflight.rows import ROW_CHECKS
from cdc_core.schema.catalog import kinds_that_cannot_be_captured
from cdc_core.schema.dictionary import read_each_schema
from cdc_core.schema.dictionary_queries import OF_ROWS, by_table, rows_about
from cdc_core.schema.keys import near_names
from cdc_core.schema.names import check_names
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema, is_number_text, is_unbounded_number

_OBJECT_KINDS = "SELECT OBJECT_TYPE FROM ALL_OBJECTS WHERE OWNER = :owner AND OBJECT_NAME = :name"
_UNDO = "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'undo_retention'"
_NUMBER_BYTES = "SELECT SYS.UTL_RAW.CAST_FROM_NUMBER(0) FROM DUAL"
_COLLATED = f"""
SELECT OWNER, TABLE_NAME, COLUMN_NAME, COLLATION FROM ALL_TAB_COLS
 WHERE {{tables}} AND {OF_ROWS} AND COLLATION NOT IN ('BINARY', 'USING_NLS_COMP', 'USING_NLS_SORT', 'USING_NLS_SORT_CS')
 ORDER BY OWNER, TABLE_NAME, INTERNAL_COLUMN_ID"""
_COLUMNS = "SELECT OWNER, TABLE_NAME, COLUMN_NAME FROM ALL_TAB_COLS WHERE {tables}"
_OF_KINDS = "Leave it out of `tables`; name the relational table that its rows are loaded into, or belong to"
_PROBES_MAX = 100
_REFUSED = (ConfigError, PreflightError, SchemaMismatchError, UnsupportedTypeError)
_NO_SUCH_COLUMN = "ORA-00904"
_NO_SUCH_FUNCTION = frozenset({"ORA-00904", "ORA-01031"})


def check_tables(
    session: OracleSession, tables: Sequence[TableConfig], reading: Reading = "flashback"
) -> list[Finding]:
    """Look at the tables and at what reading them needs; an empty list means that nothing is to be
    said. ``reading`` is how rows are read of tables that do not say it themselves.

    Only failures to look are raised: a lost session, a database that is down.
    """
    findings = []
    scn: Scn | None = None
    try:
        scn = current_scn(session)
    except PreflightError:
        findings.append(
            Finding(
                "the capture user may not read V$DATABASE",
                f"GRANT SELECT ON SYS.V_$DATABASE TO {session.user}",
            )
        )
    refused = kinds_that_cannot_be_captured(session, [table.table for table in tables])
    findings += [
        Finding(f"{table} cannot be captured: {reason}", _OF_KINDS, table)
        for table, reason in refused.items()
    ]
    tables = [table for table in tables if table.table not in refused]
    if not tables:
        return findings
    found = read_each_schema(session, tables)
    schemas = []
    for config in tables:
        try:
            schemas.append(_usable(found[config.table]))
        except _REFUSED as error:
            findings.append(_refused(session, config.table, error))
    return [*findings, *found_by(TABLE_CHECKS, CheckInput(session, tables, schemas, scn, reading))]


def _usable(found: TableSchema | CdcError) -> TableSchema:
    """A definition whose rows the lake can hold."""
    if isinstance(found, CdcError):
        raise found
    arrow_schema(found)
    check_names(found)
    return found


def _refused(session: OracleSession, table: TableId, error: CdcError) -> Finding:
    if _is_view(session, table):
        return Finding(
            f"{table} is a view, not a table",
            "Capture the tables that it reads; a view has no redo",
            table,
        )
    return Finding(error.what_happened, error.hint, table)


def _check_named_columns(given: CheckInput) -> Iterator[Finding]:
    """Are there columns of the names that the configuration leaves out, masks or gives types? They
    may be added later; one that is there in other letters is a mistake, by which its values
    would land."""
    named = {
        one.table: {
            field: names
            for field in ("columns_include", "columns_exclude", "columns_mask", "columns_as")
            if (names := [name for name in getattr(one, field) if not is_name_pattern(name)])
        }
        for one in given.configs
        if not isinstance(one, MatchedTable)
    }
    named = {table: fields for table, fields in named.items() if fields}
    known = by_table(rows_about(given.session, _COLUMNS, named))
    for table, fields in named.items():
        for field, names in fields.items():
            columns = [column for column, *_ in known.get(table, ())]
            unknown = [one for one in names if one not in columns]
            if not unknown or not columns:
                continue
            is_there = bool({one.upper() for one in unknown} & {*map(str.upper, columns)})
            near = near_names(unknown[0], columns)
            later = "" if is_there else "If they are added later, the entry holds from then on"
            yield Finding(
                f"{field} of {table} names columns that the table does not have: {', '.join(unknown)}",
                f"{near} {later}".strip(),
                table,
                is_problem=is_there,
            )


def _check_omitted(given: CheckInput) -> Iterator[Finding]:
    """Which columns are left out since nobody can capture their types?"""
    for schema in given.schemas:
        if schema.omitted:
            listed = ", ".join(map(" ".join, schema.omitted))
            yield Finding(
                f"{schema.table} is captured without {listed}: these types are not captured",
                "columns_exclude says the same without this line; a LONG, LONG RAW or UROWID can be read by snapshots (`columns_as: snapshot`)",
                schema.table,
                is_problem=False,
            )


def _check_collations(given: CheckInput) -> Iterator[Finding]:
    """Does Oracle tell keys apart by their characters? A column's own collation counts whatever a
    session sorts by (12.2 and later).

    Source: Globalization Support Guide 19c, "Data-Bound Collation"; Oracle Database Reference 19c,
    ALL_TAB_COLS.
    """
    keys = {schema.table: schema.key for schema in given.schemas}
    try:
        rows = rows_about(given.session, _COLLATED, keys)
    except CdcError as error:
        if error.facts.get("ora") != _NO_SUCH_COLUMN:
            raise
        return
    for table, column, collation in rows:
        if column in keys[table]:
            yield Finding(
                f"{table}: its key column {column} has the collation {collation}: keys that differ in case or accents are one in Oracle, "
                "and two in the lake",
                "Name another key, or set identity: rowid in the table's own entry",
                table,
            )


def _probe_number_bytes(given: CheckInput) -> Iterator[Finding]:
    """Can chunks read NUMBERs without a scale? Everyone may run UTL_RAW, unless it was revoked from
    PUBLIC."""
    tables = [one.table for one in given.schemas if any(map(is_number_text, one.columns))]
    if not tables:
        return
    try:
        given.session.fetch_all(_NUMBER_BYTES)
    except CdcError as error:
        if error.facts.get("ora") not in _NO_SUCH_FUNCTION:
            raise
        for table in tables:
            yield Finding(
                f"the capture user may not run UTL_RAW, which reads the NUMBER columns without a scale of {table}",
                f"GRANT EXECUTE ON SYS.UTL_RAW TO {given.session.user}",
                table,
            )


def _check_key_numbers(given: CheckInput) -> Iterator[Finding]:
    """Which keys will be text? Text sorts and joins as text; what is there already stays so until
    new Delta tables begin."""
    for schema in given.schemas:
        texts = [
            column.name
            for column in schema.columns
            if column.name in schema.key and is_unbounded_number(column) and not column.held_as
        ]
        if texts:
            forms = ", ".join(f"{name}: 'decimal(38,0)'" for name in texts)
            yield Finding(
                f"{schema.table}: {', '.join(texts)} of its key {'are' if len(texts) > 1 else 'is'}"
                " NUMBER without precision, and will be text in the lake",
                f"If the values are whole numbers, set columns_as: {{{forms}}} before the first "
                f"snapshot; later also `redolake table resnapshot --fresh {schema.table.argument}`",
                schema.table,
                is_problem=False,
            )


def _probes(table: TableId, scn: Scn | None) -> list[tuple[str, str]]:
    """Rights, and queries that take them: of the past only as of an SCN."""
    probes = [("SELECT", f"SELECT 1 FROM {table.sql} WHERE ROWNUM = 0")]
    if scn is not None:
        past = f"SELECT 1 FROM {table.sql} AS OF SCN :scn WHERE ROWNUM = 0"
        probes.append(("FLASHBACK", past))
    return probes


def _can_read_all(given: CheckInput) -> bool:
    """Is there every right on every table? Some are asked for at once; which one lacks, is asked
    for by itself."""
    probes = [sql for one in given.schemas for _, sql in _probes(one.table, given.scn)]
    binds = {} if given.scn is None else {"scn": given.scn}
    try:
        for at in range(0, len(probes), _PROBES_MAX):
            asked = " UNION ALL ".join(probes[at : at + _PROBES_MAX])
            given.session.fetch_all(asked, binds if ":scn" in asked else {})
    except CdcError:
        return False
    return True


def _check_rights(
    session: OracleSession, table: TableId, scn: Scn | None, reading: Reading
) -> Iterator[Finding]:
    """A right that the table can do without is no problem."""
    for privilege, sql in _probes(table, scn):
        binds = {"scn": scn} if ":scn" in sql else {}
        is_needed = privilege == "SELECT" or reading == "flashback"
        means = "" if is_needed else ", so its rows are read between watermarks"
        try:
            session.fetch_all(sql, binds)
        except PreflightError:
            yield Finding(
                f"the capture user lacks {privilege} on {table}{means}",
                f"GRANT {privilege} ON {table.sql} TO {session.user}"
                + ("" if is_needed else ", which `redolake reconcile` needs"),
                table,
                is_problem=is_needed,
            )
            return
        except CdcError as error:
            yield Finding(
                f"{table} cannot be read as of an SCN{means}: {error.what_happened}",
                error.hint,
                table,
                is_problem=is_needed,
            )
            return


def _check_each(given: CheckInput) -> Iterator[Finding]:
    if _can_read_all(given):
        return
    for schema in given.schemas:
        [config] = [one for one in given.configs if one.table == schema.table]
        reading = config.read or given.reading
        yield from _check_rights(given.session, schema.table, given.scn, reading)


def read_undo_seconds(session: OracleSession) -> int | None:
    """How long the database is asked to keep undo; None where that cannot be seen."""
    try:
        rows = session.fetch_all(_UNDO)
    except PreflightError:
        return None
    return int(rows[0][0]) if rows else None


def _check_undo(given: CheckInput) -> Iterator[Finding]:
    seconds = read_undo_seconds(given.session)
    if seconds is not None:
        yield Finding(
            f"undo is kept for {seconds} seconds",
            "Chunks and reconciliation must finish while their undo is kept; ALTER SYSTEM SET UNDO_RETENTION makes that longer",
            is_problem=False,
        )


def _is_view(session: OracleSession, table: TableId) -> bool:
    binds = {"owner": table.owner, "name": table.name}
    return any("VIEW" in kind for (kind,) in session.fetch_all(_OBJECT_KINDS, binds))


TABLE_CHECKS: tuple[Check[CheckInput], ...] = (
    Check(
        "columns that the configuration names",
        "Write names as the dictionary has them",
        "reference/configuration.md",
        _check_named_columns,
    ),
    Check(
        "columns of types that are not captured",
        "Name them under `columns_exclude`, or set `unsupported_columns: omit`",
        "reference/types.md",
        _check_omitted,
    ),
    Check(
        "linguistic collations of key columns",
        "Name another key, or set `identity: rowid`",
        "concepts/tables.md",
        _check_collations,
    ),
    Check(
        "UTL_RAW, which reads NUMBER columns without a scale",
        "GRANT EXECUTE ON SYS.UTL_RAW",
        "reference/types.md",
        _probe_number_bytes,
    ),
    Check(
        "key columns of type NUMBER without precision, which become text",
        "`columns_as: {ID: 'decimal(38,0)'}`",
        "reference/types.md",
        _check_key_numbers,
    ),
    Check(
        "rights on each table",
        "GRANT SELECT, FLASHBACK",
        "how-to/oracle-on-premises.md",
        _check_each,
    ),
    *ROW_CHECKS,
    Check(
        "how long undo is kept",
        "ALTER SYSTEM SET UNDO_RETENTION",
        "how-to/faults.md",
        _check_undo,
    ),
)
"""What is asked of tables beside their kind and their definition."""
