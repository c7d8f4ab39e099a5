"""How does PL/SQL evaluate expressions, and assign to variables, elements and fields?"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from oracle_embedded.api import OracleError, OraType, Value
from oracle_embedded.charsets import CharacterSets
from oracle_embedded.engine.compile.conversions import client_form, convert
from oracle_embedded.engine.datatypes import numbers, types
from oracle_embedded.engine.datatypes.types import BOOLEAN, NUMBER, SqlType
from oracle_embedded.engine.plsql.compile import Compiled, boolean_value
from oracle_embedded.engine.plsql.composites import (
    PlType,
    PlValue,
    Record,
    RecordType,
    Table,
    TableType,
    check_index,
    copied,
    initial,
    listed,
)
from oracle_embedded.engine.plsql.objects import image_of, pl_type, sql_type, value_of
from oracle_embedded.engine.plsql.state import Cell, Frame, KeptLob, Named, Overloads
from oracle_embedded.engine.run.query_run import highest_parameter, parameters, translated
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef
from oracle_embedded.engine.storage.fitting import fitter

_NOWHERE = TableDef(object_id=0, data_object_id=0, object_version=0, owner="", name="", columns=())
_METHODS = frozenset({"COUNT", "FIRST", "LAST", "NEXT", "PRIOR", "EXISTS", "LIMIT"})
Found = tuple[PlValue, PlType]
_ROWID_LENGTH = 18
"""Shorter texts become a ROWID, but no UROWID."""
_NATIONAL = 2
_BUFFER_MAX = 32767
"""Clients that announce more than this take what comes."""
_CONVERSIONS = {
    1722: "character to number conversion error",
    932: "character to number conversion error",
    1465: "hex to raw conversion error",
}
"""Errors of SQL's conversions, as PL/SQL calls them."""


# --- expressions ----------------------------------------------------------------------------------


def evaluate(frame: Frame, node: ast.Expr, wanted: PlType | None = None) -> Found:
    """Evaluate an expression; as a value of a type, if one is told."""
    found = look(frame, node)
    if found is None:
        computed = None if wanted is None else sql_type(wanted)
        if wanted is not None and computed is None:
            raise frame.error(node.pos, 382, "expression is of wrong type")
        found = as_composite(_computed(frame, node, computed))
    value, kind = found
    if wanted is None or wanted is kind:
        return value, kind
    return coerce(frame, value, kind, wanted, node.pos), wanted


def test(frame: Frame, node: ast.Expr) -> bool | None:
    """Evaluate a condition; what decides first, decides."""
    match node:
        case ast.Logical():
            result: bool | None = node.op == "AND"
            for item in node.items:
                one = test(frame, item)
                if one is (node.op == "OR"):
                    return one
                if one is None:
                    result = None
            return result
        case ast.Not():
            inner = test(frame, node.operand)
            return None if inner is None else not inner
        case ast.IsNull():
            found = look(frame, node.operand)
            if found is not None:
                value, kind = found
                is_record = isinstance(kind, RecordType) and not kind.is_object
                is_null = value is None and not is_record
                return is_null != node.negated
    value, _ = evaluate(frame, node, BOOLEAN)
    return None if value is None else value == b"\x01"


def as_composite(found: tuple[Value, SqlType]) -> Found:
    """What SQL gives, an object or a collection as PL/SQL has it."""
    value, kind = found
    return value_of(value, pl_type(kind)), pl_type(kind)


def integer(frame: Frame, node: ast.Expr) -> int:
    """Evaluate a whole number.

    Raises:
        OracleError: ORA-06502 for NULL.
    """
    value, _ = evaluate(frame, node, NUMBER)
    if value is None:
        raise OracleError(6502, "PL/SQL: numeric or value error")
    assert isinstance(value, bytes)
    return int(numbers.decode(value).to_integral_value())


def _computed(frame: Frame, node: ast.Expr, wanted: SqlType | None) -> tuple[Value, SqlType]:
    compiled = Compiled(frame, look, is_sql=False)
    state = compiled.state
    sql = boolean_value(state, node)
    if isinstance(wanted, SqlType) and wanted.family != sql.family:
        sql = convert(sql, wanted.family, node.pos)
    if state.plan.tables or state.plan.virtuals:
        raise frame.error(node.pos, 405, "subquery not allowed in this context")
    session = frame.session
    text = f"SELECT {client_form(sql.text, sql.type)}"
    with session.database.store.lock:
        connection = session.database.store.writer
        session.enter(connection.context)
        connection.context.is_program = True
        params = parameters(state.plan.slots, compiled.values, 0, 0, session.time_zone)
        try:
            row = connection.sqlite.execute(text, params[: highest_parameter(text)]).fetchone()
        except sqlite3.Error as error:
            raise translated(error, connection) from error
    return row[0], sql.type


def look(frame: Frame, node: ast.Expr) -> Found | None:
    """The value of what PL/SQL itself knows; None for what has to be computed."""
    match node:
        case ast.Null():
            return None, types.NULL
        case ast.Bind():
            cell = frame.binds[node.index]
            frame.read_binds.add(node.index)
            return cell.value, cell.type
        case ast.Column():
            return _look_name(frame, node)
        case ast.Call():
            return _look_call(frame, node)
        case ast.Element():
            return _element(frame, _need(frame, node.operand), node.args, node.pos)
        case ast.Member():
            return _member(frame, _need(frame, node.operand), node.name, node.pos)
        case ast.Case():
            return _case(frame, node)
    return None


def _case(frame: Frame, node: ast.Case) -> Found:
    for when, then in node.whens:
        is_so = test(
            frame,
            when if node.operand is None else ast.Compare("=", node.operand, when, pos=when.pos),
        )
        if is_so:
            return evaluate(frame, then)
    return (None, types.NULL) if node.otherwise is None else evaluate(frame, node.otherwise)


def _need(frame: Frame, node: ast.Expr) -> Found:
    found = look(frame, node)
    if found is None:
        raise frame.error(node.pos, 487, "Invalid reference")
    return found


def _look_name(frame: Frame, node: ast.Column) -> Found | None:
    held, rest = named(frame, node.name)
    if isinstance(held, Cell):
        found: Found = held.value, held.type
        for part in rest:
            found = _member(frame, found, part, node.pos)
        return found
    if isinstance(held, Overloads) and not rest:
        return frame.services.call(frame, ast.Call(node.name, (), pos=node.pos), held)
    return None


def named(frame: Frame, name: ast.Name) -> tuple[Named | None, ast.Name]:
    """What the beginning of a name means, and the rest of the name."""
    held = frame.names.get(name[0])
    if held is not None:
        return held, name[1:]
    for length in range(len(name), 0, -1):
        held = frame.services.find(frame, name[:length])
        if held is not None:
            return held, name[length:]
    return None, ()


def _look_call(frame: Frame, node: ast.Call) -> Found | None:
    if node.name[0].startswith("%"):
        return _cursor_fact(frame, node)
    if node.name[-2:] in frame.services.special:
        return frame.services.special[node.name[-2:]](frame, node)
    held, rest = named(frame, node.name)
    if node.name == ("UPDATING",) and isinstance(held, Cell):
        column, _ = evaluate(frame, node.args[0], types.TEXT)
        assigned = isinstance(column, bytes) and column.decode().upper() in frame.updated
        return (b"\x01" if held.value == b"\x01" and assigned else b"\x00"), BOOLEAN
    match held:
        case Cell():
            found: Found = held.value, held.type
            if rest and rest[-1] in _METHODS:
                for part in rest[:-1]:
                    found = _member(frame, found, part, node.pos)
                if isinstance(found[1], TableType):
                    return _method(frame, found, rest[-1], node.args)
                rest = rest[-1:]
            for part in rest:
                found = _member(frame, found, part, node.pos)
            return _element(frame, found, node.args, node.pos)
        case TableType() if not rest:
            return _constructed(frame, held, node)
        case RecordType() if held.is_object and not rest:
            return _constructed_object(frame, held, node)
        case Overloads() if not rest:
            return frame.services.call(frame, node, held)
    return None


def _constructed(frame: Frame, kind: TableType, node: ast.Call) -> Found:
    values = [copied(evaluate(frame, item, kind.element)[0]) for item in node.args]
    if kind.limit is not None and len(values) > kind.limit:
        raise OracleError(22165, f"given index [{len(values)}] must be in the range of [1] to [{kind.limit}]")  # fmt: skip
    return listed(values), kind


def _constructed_object(frame: Frame, kind: RecordType, node: ast.Call) -> Found:
    if len(node.args) != len(kind.fields):
        raise frame.error(node.pos, 306, f"wrong number or types of arguments in call to '{kind.name}'")  # fmt: skip
    values = {
        name: copied(evaluate(frame, argument, item)[0])
        for (name, item), argument in zip(kind.fields, node.args, strict=True)
    }
    return Record(values), kind


def _element(frame: Frame, found: Found, args: Sequence[ast.Expr], pos: int) -> Found:
    value, kind = found
    if not isinstance(kind, TableType) or len(args) != 1:
        raise frame.error(pos, 222, "no function with this name exists in this scope")
    assert value is None or isinstance(value, Table)
    key = key_of(frame, kind, args[0])
    table = check_index(kind, value, key)
    if key not in table.elements:
        raise OracleError(1403, "no data found")
    return table.elements[key], kind.element


def key_of(frame: Frame, kind: TableType, node: ast.Expr) -> int | str:
    """An index of a collection."""
    if kind.index != "TEXT":
        return integer(frame, node)
    value, _ = evaluate(frame, node, types.TEXT)
    if not isinstance(value, bytes):
        raise OracleError(6502, "PL/SQL: numeric or value error: NULL index table key value")
    return value.decode()


def _member(frame: Frame, found: Found, name: str, pos: int) -> Found:
    value, kind = found
    if isinstance(kind, TableType) and name in _METHODS:
        return _method(frame, found, name, ())
    if not isinstance(kind, RecordType):
        raise frame.error(pos, 487, f"Invalid reference to variable '{name}'")
    item = dict(kind.fields).get(name)
    if item is None:
        raise frame.error(pos, 302, f"component '{name}' must be declared")
    if value is None:
        return None, item
    assert isinstance(value, Record)
    return value.fields[name], item


def _method(frame: Frame, found: Found, name: str, args: Sequence[ast.Expr]) -> Found:
    table, kind = found
    assert isinstance(kind, TableType)
    if name == "EXISTS":
        key = key_of(frame, kind, args[0])
        there = isinstance(table, Table) and key in table.elements
        return (b"\x01" if there else b"\x00"), BOOLEAN
    if table is None:
        raise OracleError(6531, "Reference to uninitialized collection")
    assert isinstance(table, Table)
    key_or_none: int | str | None
    match name:
        case "COUNT":
            key_or_none = len(table.keys)
        case "LIMIT":
            key_or_none = kind.limit
        case "FIRST":
            key_or_none = table.keys[0] if table.keys else None
        case "LAST":
            key_or_none = table.keys[-1] if table.keys else None
        case "NEXT":
            key_or_none = table.after(key_of(frame, kind, args[0]))
        case _:
            key_or_none = table.before(key_of(frame, kind, args[0]))
    if isinstance(key_or_none, str):
        return key_or_none.encode(), types.TEXT
    return (None if key_or_none is None else numbers.encode(key_or_none)), NUMBER


def _cursor_fact(frame: Frame, node: ast.Call) -> Found:
    opened = frame.services.open_cursor(frame, node.args[0])
    fact = node.name[0]
    if fact == "%ISOPEN":
        return (b"\x00" if opened is None else b"\x01"), BOOLEAN
    if opened is None:
        raise OracleError(1001, "invalid cursor")
    if fact == "%ROWCOUNT":
        return numbers.encode(opened.count), NUMBER
    if opened.found is None:
        return None, BOOLEAN
    return (b"\x01" if opened.found is (fact == "%FOUND") else b"\x00"), BOOLEAN


# --- types ----------------------------------------------------------------------------------------


def coerce(frame: Frame, value: PlValue, kind: PlType, wanted: PlType, pos: int = 0) -> PlValue:
    """A value as a variable of another type holds it.

    Raises:
        OracleError: ORA-06502 when it does not fit, PLS-00382 for types that do not go together.
    """
    if isinstance(kind, SqlType) and kind.user is not None:
        assert value is None or isinstance(value, bytes)
        value, kind = as_composite((value, kind))
    if isinstance(wanted, SqlType) and wanted.user is not None:
        whole = pl_type(wanted)
        return image_of(coerce(frame, value, kind, whole, pos), whole)
    match wanted:
        case SqlType() if isinstance(kind, SqlType) and _go_together(kind, wanted):
            assert value is None or isinstance(value, bytes)
            return _scalar(frame, value, kind, wanted)
        case TableType() if value is None:
            return Table() if wanted.index else None
        case TableType() if isinstance(kind, TableType) and isinstance(value, Table):
            elements = {
                key: coerce(frame, item, kind.element, wanted.element, pos)
                for key, item in value.elements.items()
            }
            return Table(elements, list(value.keys))
        case RecordType() if kind is types.NULL:
            return initial(wanted)
        case RecordType() if wanted.is_object and value is None:
            return None
        case RecordType() if isinstance(kind, RecordType) and isinstance(value, Record):
            if len(kind.fields) == len(wanted.fields):
                return Record(
                    {
                        name: coerce(frame, value.fields[source], source_kind, item, pos)
                        for (name, item), (source, source_kind) in zip(
                            wanted.fields, kind.fields, strict=True
                        )
                    }
                )
    raise frame.error(pos, 382, "expression is of wrong type")


def _go_together(kind: SqlType, wanted: SqlType) -> bool:
    """Cursors go with cursors only."""
    return "cursor" not in (kind.family, wanted.family) or kind.family in ("null", wanted.family)


def _scalar(frame: Frame, value: Value, kind: SqlType, wanted: SqlType) -> Value:
    if value is None:
        return None
    if kind.family != wanted.family:
        if (
            wanted.ora == OraType.UROWID
            and len(value) < _ROWID_LENGTH
            and not value.startswith(b"*")
        ):
            raise OracleError(1410, "invalid ROWID")
        cell = Cell(kind, value)
        outer = frame.names.get("$value")
        frame.names["$value"] = cell
        try:
            converted, _ = _computed(frame, _VALUE, wanted)
        except OracleError as error:
            detail = _CONVERSIONS.get(error.code)
            if detail is None:
                raise
            raise OracleError(6502, f"PL/SQL: numeric or value error: {detail}") from error
        finally:
            if outer is None:
                del frame.names["$value"]
            else:
                frame.names["$value"] = outer
        assert converted is None or isinstance(converted, bytes)
        value = converted
    if value is None:
        return None
    held = fitted(wanted, value, frame.session.database.character_sets)
    return value if isinstance(value, KeptLob) and held == value else held


_VALUE = ast.Column(("$value",))


def fitted(kind: SqlType, value: bytes, sets: CharacterSets) -> Value:
    """A value as a variable of its type holds it.

    Raises:
        OracleError: ORA-06502 when it does not fit, ORA-01873 for an interval.
    """
    if kind.family == "raw" and kind.ora == OraType.LONG_RAW:
        return value
    try:
        return fitter(_NOWHERE, ColumnDef(internal_id=0, name="", type=kind), sets)(value)
    except OracleError as error:
        if error.code == 1873:
            raise
        detail = (
            "number precision too large"
            if error.code == 1438
            else "character string buffer too small"
        )
        raise OracleError(6502, f"PL/SQL: numeric or value error: {detail}") from error


# --- assignments ----------------------------------------------------------------------------------


def assign(frame: Frame, target: ast.Expr, found: Found) -> None:
    """Give a target a value.

    Raises:
        OracleError: PLS-00201, PLS-00363, PLS-00382, or that the value does not fit.
    """
    value, kind = found
    match target:
        case ast.Bind():
            cell = frame.binds[target.index]
            frame.assigned_binds.add(target.index)
            cell.value = _for_bind(frame, value, kind, cell.type, target.pos)
            return
        case ast.Column():
            cell, rest = _writable(frame, target.name, target.pos)
            if not rest:
                cell.value = coerce(frame, copied(value), kind, cell.type, target.pos)
                return
            holder = ast.Column(target.name[:-1], pos=target.pos)
            _assign_field(frame, holder, target.name[-1], found, target.pos)
            return
        case ast.Member():
            _assign_field(frame, target.operand, target.name, found, target.pos)
            return
        case ast.Call() | ast.Element():
            operand = ast.Column(target.name, pos=target.pos) if isinstance(target, ast.Call) else target.operand  # fmt: skip
            container, container_kind = _container(frame, operand)
            if isinstance(container_kind, TableType) and len(target.args) == 1:
                key = key_of(frame, container_kind, target.args[0])
                table = check_index(container_kind, container, key)  # type: ignore[arg-type]
                wanted = container_kind.element
                table.put(key, coerce(frame, copied(value), kind, wanted, target.pos))
                return
    raise frame.error(target.pos, 363, "expression cannot be used as an assignment target")


def _for_bind(frame: Frame, value: PlValue, kind: PlType, wanted: PlType, pos: int) -> PlValue:
    """A value for a bind, whose size the client knows."""
    if isinstance(wanted, SqlType) and isinstance(kind, SqlType):
        if value is not None and kind.family != wanted.family:
            value = coerce(frame, value, kind, types.family_type(wanted.family), pos)
        is_sized = wanted.family in ("text", "raw") and wanted.form != _NATIONAL
        if is_sized and isinstance(value, bytes) and wanted.length < min(len(value), _BUFFER_MAX):
            raise OracleError(6502, "PL/SQL: numeric or value error: character string buffer too small")  # fmt: skip
        return value
    return coerce(frame, value, kind, wanted, pos)


def _assign_field(frame: Frame, holder: ast.Expr, name: str, found: Found, pos: int) -> None:
    record, kind = _container(frame, holder)
    if isinstance(kind, RecordType) and record is None:
        raise OracleError(6530, "Reference to uninitialized composite")
    if not isinstance(kind, RecordType) or not isinstance(record, Record):
        raise frame.error(pos, 302, f"component '{name}' must be declared")
    item = dict(kind.fields).get(name)
    if item is None:
        raise frame.error(pos, 302, f"component '{name}' must be declared")
    record.fields[name] = coerce(frame, copied(found[0]), found[1], item, pos)


def _writable(frame: Frame, name: ast.Name, pos: int) -> tuple[Cell, ast.Name]:
    held, rest = named(frame, name)
    if not isinstance(held, Cell):
        raise frame.undeclared(pos, name)
    if held.constant:
        raise frame.error(
            pos, 363, f"expression '{'.'.join(name)}' cannot be used as an assignment target"
        )
    return held, rest


def _container(frame: Frame, node: ast.Expr) -> Found:
    """A record or collection of which a part is about to change; elements of associative arrays are
    made."""
    match node:
        case ast.Bind():
            frame.assigned_binds.add(node.index)
            cell = frame.binds[node.index]
            return cell.value, cell.type
        case ast.Column():
            cell, rest = _writable(frame, node.name, node.pos)
            found: Found = cell.value, cell.type
            for part in rest:
                found = _member(frame, found, part, node.pos)
            return found
        case ast.Member():
            return _member(frame, _container(frame, node.operand), node.name, node.pos)
        case ast.Call() | ast.Element():
            operand = ast.Column(node.name, pos=node.pos) if isinstance(node, ast.Call) else node.operand  # fmt: skip
            table, kind = _container(frame, operand)
            if isinstance(kind, TableType) and len(node.args) == 1:
                key = key_of(frame, kind, node.args[0])
                held = check_index(kind, table, key)  # type: ignore[arg-type]
                if key not in held.elements:
                    if not kind.index:
                        raise OracleError(1403, "no data found")
                    held.put(key, initial(kind.element))
                return held.elements[key], kind.element
    raise frame.error(node.pos, 363, "expression cannot be used as an assignment target")


def collection_of(frame: Frame, node: ast.Expr) -> tuple[Table | None, TableType]:
    """The collection that a target names."""
    table, kind = _container(frame, node)
    if not isinstance(kind, TableType):
        raise frame.error(node.pos, 382, "expression is of wrong type")
    assert table is None or isinstance(table, Table)
    return table, kind


def type_of_target(frame: Frame, target: ast.Expr) -> PlType:
    """The type of what a target names."""
    match target:
        case ast.Bind():
            return frame.binds[target.index].type
        case ast.Column():
            return _container(frame, target)[1]
        case ast.Member():
            kind = type_of_target(frame, target.operand)
            if isinstance(kind, RecordType) and target.name in dict(kind.fields):
                return dict(kind.fields)[target.name]
        case ast.Call() | ast.Element():
            operand = ast.Column(target.name, pos=target.pos) if isinstance(target, ast.Call) else target.operand  # fmt: skip
            kind = type_of_target(frame, operand)
            if isinstance(kind, TableType):
                return kind.element
    raise frame.error(target.pos, 363, "expression cannot be used as an assignment target")
