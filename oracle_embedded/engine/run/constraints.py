"""How are constraints and new column types checked against rows that exist?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.charsets import CharacterSets
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.compile.dml import RowPlan, compile_row_plan
from oracle_embedded.engine.compile.from_items import columns_in
from oracle_embedded.engine.compile.plan import blob, quoted
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.datatypes.types import DOCUMENTS, SqlType
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.functions.context import NLS_DEFAULTS
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.run.query_run import evaluate
from oracle_embedded.engine.run.row_run import over_row
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.expressions import read_condition
from oracle_embedded.engine.sql.queries import parse_condition, parse_expression, query_stream
from oracle_embedded.engine.storage.catalog import ColumnDef, Constraint, TableDef
from oracle_embedded.engine.storage.fitting import fitter
from oracle_embedded.engine.storage.keys import text_columns
from oracle_embedded.engine.storage.rows import CheckRow, Image
from oracle_embedded.engine.storage.store import Store


def row_checker(session: SessionState) -> CheckRow:
    """What checks a row against CHECK constraints (ORA-02290)."""
    plans = session.database.check_plans

    def check(table: TableDef, values: Image) -> None:
        key = (table.object_id, table.object_version)
        plan = plans.get(key)
        if plan is None:
            plan = _conditions(session, table, [item.condition or "" for item in table.checks])
            plans[key] = plan
        verdicts = over_row(session, plan, text_columns(table), 0, values, (), table.ids)
        for constraint, verdict in zip(table.checks, verdicts, strict=True):
            if verdict == 0:
                raise OracleError(
                    2290, f"check constraint ({table.owner}.{constraint.name}) violated"
                )

    return check


def check_columns(session: SessionState, table: TableDef, condition: str) -> tuple[int, ...]:
    """The columns that a CHECK condition names; refuses one that does not compile."""
    _conditions(session, table, [condition])
    words = {column.name for column in columns_in(parse_condition(condition))}
    return tuple(column.internal_id for column in table.columns if (column.name,) in words)


def check_rows(session: SessionState, table: TableDef, constraint: Constraint) -> None:
    """Refuse a constraint that existing rows violate."""
    store = session.database.store
    sqlite = store.writer.sqlite
    rows = f"t{table.object_id}"
    columns = [f"c{internal_id}" for internal_id in constraint.columns]
    full = f"{table.owner}.{constraint.name}"
    if constraint.kind in "PU":
        check_unique_rows(store, table, constraint.columns, double_keys(table, constraint))
        if constraint.kind == "P" and _any(
            store,
            f"SELECT 1 FROM {rows} WHERE " + " OR ".join(f"{name} IS NULL" for name in columns),
        ):
            raise OracleError(1449, "column contains NULL values; cannot alter to NOT NULL")
    elif constraint.not_null:
        if _any(store, f"SELECT 1 FROM {rows} WHERE {columns[0]} IS NULL"):
            raise OracleError(2296, f"cannot enable ({full}) - null values found")
    elif constraint.kind == "R":
        # A table that refers to itself may get its key by the same statement.
        own = constraint.referenced == table.object_id
        parent = table if own else store.catalog.by_id(constraint.referenced)
        assert isinstance(parent, TableDef)
        key = next(
            item for item in parent.constraints if item.name == constraint.referenced_constraint
        )
        pairs = " AND ".join(f"p.c{b} = k.{a}" for a, b in zip(columns, key.columns, strict=True))
        present = " AND ".join(f"k.{name} IS NOT NULL" for name in columns)
        if _any(
            store,
            f"SELECT 1 FROM {rows} k WHERE {present} AND NOT EXISTS (SELECT 1 FROM t{parent.object_id} p WHERE {pairs})",
        ):
            raise OracleError(2298, f"cannot validate ({full}) - parent keys not found")
    else:
        plan = _conditions(session, table, [constraint.condition or ""])
        for row in sqlite.execute(f"SELECT {table.storage} FROM {rows}").fetchall():
            image = dict(zip(table.ids, row, strict=True))
            if over_row(session, plan, text_columns(table), 0, image, (), table.ids)[0] == 0:
                raise OracleError(2293, f"cannot validate ({full}) - check constraint violated")


def double_keys(table: TableDef, constraint: Constraint) -> OracleError:
    """The error for a key that rows share."""
    full = f"{table.owner}.{constraint.name}"
    if constraint.kind == "P":
        return OracleError(2437, f"cannot validate ({full}) - primary key violated")
    return OracleError(2299, f"cannot validate ({full}) - duplicate keys found")


def _any(store: Store, sql: str) -> bool:
    return store.writer.sqlite.execute(sql + " LIMIT 1").fetchone() is not None


def check_unique_rows(
    store: Store, table: TableDef, columns: tuple[int, ...], error: OracleError
) -> None:
    """Raise the error if two rows have the same key; keys of NULLs only do not count."""
    names = tuple(f"c{internal_id}" for internal_id in columns)
    _refuse_double(store, table, names, error)


def check_unique_values(
    session: SessionState, table: TableDef, values: tuple[str, ...], error: OracleError
) -> None:
    """Raise the error if two rows have the same values of compiled expressions; those of which all
    are NULL do not count."""
    session.enter(session.database.store.writer.context)
    _refuse_double(session.database.store, table, values, error)


def _refuse_double(
    store: Store, table: TableDef, values: tuple[str, ...], error: OracleError
) -> None:
    present = " OR ".join(f"{value} IS NOT NULL" for value in values)
    rows = f"SELECT 1 FROM t{table.object_id} WHERE {present}"
    if _any(store, f"{rows} GROUP BY {', '.join(values)} HAVING count(*) > 1"):
        raise error


def constant_default(session: SessionState, table: TableDef, column: ColumnDef) -> str | None:
    """SQLite text of the value that existing rows show for a column that is added with a
    default."""
    state = compilation(session, None)
    parsed = parse_expression(column.default_text or "NULL")
    if _has_sequence(parsed):
        raise unsupported("adding a column whose default is a sequence")
    value = convert(state.value(parsed, Scope()), column.type.family)
    connection = session.database.store.writer
    session.enter(connection.context)
    found = evaluate(connection, value.text, [])
    if found is None:
        return None
    fitted = fitter(table, column, session.database.character_sets)(found)
    if fitted is None:
        return None
    return quoted(fitted.decode()) if column.internal_id in text_columns(table) else blob(fitted)


def check_new_type(
    store: Store, table: TableDef, column: ColumnDef, kind: SqlType, sets: CharacterSets
) -> None:
    """May MODIFY give a column this type?

    A DATE may become a TIMESTAMP or a TIMESTAMP WITH LOCAL TIME ZONE, and the latter a DATE,
    whatever the column holds; a TIMESTAMP no DATE.

    Raises:
        OracleError: ORA-01439 for another datatype and ORA-01440/01441 for a smaller one, unless
            the column is empty.

    Source:
        SQL Language Reference 19c, ALTER TABLE, modify_column_clauses.
    """
    old = column.type
    empty = not _any(
        store, f"SELECT 1 FROM t{table.object_id} WHERE c{column.internal_id} IS NOT NULL"
    )
    if old != kind and DOCUMENTS & {old.family, kind.family}:
        raise unsupported("changing the type of a column to or from JSON and VECTOR")
    if old.family != kind.family:
        if {old.family, kind.family} == {"date", "ltz"} and not empty:
            raise unsupported("changing a DATE column with values to TIMESTAMP WITH LOCAL TIME ZONE or back")  # fmt: skip
        if not empty and (old.family, kind.family) != ("date", "timestamp"):
            raise OracleError(1439, "column to be modified must be empty to change datatype")
        if "clob" in (old.family, kind.family) or "blob" in (old.family, kind.family):
            raise OracleError(22858, "invalid alteration of datatype")
        return
    if empty:
        return
    if kind.family == "number" and _narrower(old, kind):
        raise OracleError(
            1440, "column to be modified must be empty to decrease precision or scale"
        )
    if kind.family in ("text", "raw"):
        if kind.is_char != old.is_char:
            raise unsupported("changing CHAR to VARCHAR2 or back in a column with values")
        probe = fitter(table, replace(column, type=kind), sets)
        rows = store.writer.sqlite.execute(
            f"SELECT c{column.internal_id} FROM t{table.object_id} WHERE c{column.internal_id} IS NOT NULL"
        )
        if kind.length < old.length or kind.char_length < old.char_length:
            try:
                for (value,) in rows:
                    probe(value)
            except OracleError as error:
                raise OracleError(
                    1441, "cannot decrease column length because some value is too big"
                ) from error
        if kind.is_char and kind.char_length != old.char_length:
            raise unsupported("changing the length of a CHAR column with values")
    if kind.family in ("timestamp", "tz", "ltz") and (kind.scale or 0) < (old.scale or 0):
        raise OracleError(
            30082,
            "datetime/interval column to be modified must be empty to decrease fractional second or leading field precision",
        )


def _narrower(old: SqlType, new: SqlType) -> bool:
    if new.precision is None and new.scale is None:
        return False
    if old.precision is None and old.scale is None:
        return True
    old_precision, new_precision = old.precision or 38, new.precision or 38
    old_scale, new_scale = old.scale or 0, new.scale or 0
    return new_scale < old_scale or new_precision - new_scale < old_precision - old_scale


def _conditions(session: SessionState, table: TableDef, texts: list[str]) -> RowPlan:
    state = compilation(session, (), nls=NLS_DEFAULTS)  # the same for every session
    parsed = []
    for text in texts:
        stream = query_stream(text)
        parsed.append(read_condition(stream))
        if stream.bind_names:
            raise OracleError(2436, "date or system variable wrongly specified in CHECK constraint")
    for expr in parsed:
        for column in columns_in(expr):
            if column.name in (("SYSDATE",), ("USER",), ("ROWNUM",), ("SYSTIMESTAMP",)):
                raise OracleError(
                    2436, "date or system variable wrongly specified in CHECK constraint"
                )
    return compile_row_plan(state, table, parsed, conditions=True)


def _has_sequence(node: ast.Expr) -> bool:
    return any(column.name[-1] in ("NEXTVAL", "CURRVAL") for column in columns_in(node))
