"""What do the dictionary views of stored programs show?"""

from __future__ import annotations

from collections.abc import Iterator

from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.dictionary.registry import Row, View, Views
from oracle_embedded.engine.sql import ast, plsql_nodes
from oracle_embedded.engine.sql.queries import parse_query
from oracle_embedded.engine.sql.units import parse_unit
from oracle_embedded.engine.storage.catalog import (
    Definition,
    ProgramDef,
    SynonymDef,
    TableDef,
    UserDef,
    ViewDef,
)

VIEWS = Views()


def _programs(view: View) -> Iterator[ProgramDef]:
    for item in view.definitions():
        if isinstance(item, ProgramDef):
            yield item


@VIEWS.family(
    "PROCEDURES",
    "OWNER:v128 OBJECT_NAME:v128 PROCEDURE_NAME:v128 OBJECT_ID:n SUBPROGRAM_ID:n OVERLOAD:v40 OBJECT_TYPE:v13",
    object_name="OBJECT_NAME",
)
def _procedures(view: View) -> Iterator[Row]:
    for item in _programs(view):
        row: Row = {
            "OWNER": item.owner, "OBJECT_NAME": item.name, "OBJECT_ID": item.object_id, "SUBPROGRAM_ID": 1,
            "OBJECT_TYPE": item.kind,
        }  # fmt: skip
        if item.kind in ("PROCEDURE", "FUNCTION", "TRIGGER"):
            yield row
        elif item.kind == "PACKAGE":
            for number, routine in enumerate(_routines(item), 1):
                yield {**row, "PROCEDURE_NAME": routine.name, "SUBPROGRAM_ID": number}


@VIEWS.family(
    "ARGUMENTS",
    "OWNER:v128 OBJECT_NAME:v128 PACKAGE_NAME:v128 OBJECT_ID:n OVERLOAD:v40 SUBPROGRAM_ID:n ARGUMENT_NAME:v128 POSITION:n SEQUENCE:n"
    " DATA_LEVEL:n DATA_TYPE:v30 DEFAULTED:v1 DEFAULT_VALUE:v4000 DEFAULT_LENGTH:n IN_OUT:v9 DATA_LENGTH:n DATA_PRECISION:n"
    " DATA_SCALE:n RADIX:n CHARACTER_SET_NAME:v44 TYPE_OWNER:v128 TYPE_NAME:v128 TYPE_SUBNAME:v128"
    " TYPE_LINK:v128 TYPE_OBJECT_TYPE:v7 PLS_TYPE:v128 CHAR_LENGTH:n CHAR_USED:v1 ORIGIN_CON_ID:n",
    object_name="OBJECT_NAME",
)
def _arguments(view: View) -> Iterator[Row]:
    """Parameters, a function's result at position 0; types of a package and of ``%TYPE`` have no
    name here."""
    for item in _programs(view):
        package = item.name if item.kind == "PACKAGE" else None
        for number, routine in enumerate(_routines(item), 1):
            row: Row = {
                "OWNER": item.owner, "OBJECT_NAME": routine.name, "PACKAGE_NAME": package, "OBJECT_ID": item.object_id,
                "SUBPROGRAM_ID": number, "DATA_LEVEL": 0, "DEFAULTED": "N", "ORIGIN_CON_ID": 3,
            }  # fmt: skip
            sequence = 0
            if routine.returns is not None:
                sequence = 1
                yield (
                    row | _typed(routine.returns) | {"POSITION": 0, "SEQUENCE": 1, "IN_OUT": "OUT"}
                )
            for position, one in enumerate(routine.parameters, 1):
                way = "IN/OUT" if one.is_in and one.is_out else "OUT" if one.is_out else "IN"
                yield row | _typed(one.type) | {
                    "ARGUMENT_NAME": one.name, "POSITION": position, "SEQUENCE": position + sequence, "IN_OUT": way,
                    "DEFAULTED": "N" if one.default is None else "Y",
                }  # fmt: skip


def _routines(item: ProgramDef) -> list[plsql_nodes.Routine]:
    """The procedures and functions that a program offers."""
    if item.errors or item.kind not in ("PROCEDURE", "FUNCTION", "PACKAGE"):
        return []
    unit = parse_unit(item.text, lambda _name: None)
    offered = unit.declarations if isinstance(unit, plsql_nodes.Package) else (unit,)
    return [one for one in offered if isinstance(one, plsql_nodes.Routine)]


def _typed(kind: plsql_nodes.TypeSpec) -> Row:
    if not isinstance(kind, SqlType):
        return {"DATA_TYPE": None, "TYPE_NAME": None if kind.attribute else kind.name[-1]}
    name = "REF CURSOR" if kind.family == "cursor" else kind.data_type()
    return {
        "DATA_TYPE": name,
        "DATA_PRECISION": kind.precision,
        "DATA_SCALE": kind.scale,
        "PLS_TYPE": name,
    }


@VIEWS.family(
    "SOURCE",
    "OWNER:v128 NAME:v128 TYPE:v12 LINE:n TEXT:v4000 ORIGIN_CON_ID:n",
    object_name="NAME",
)
def _source(view: View) -> Iterator[Row]:
    for item in _programs(view):
        for number, line in enumerate(item.text.splitlines(keepends=True), 1):
            yield {"OWNER": item.owner, "NAME": item.name, "TYPE": item.kind, "LINE": number, "TEXT": line}  # fmt: skip


@VIEWS.family(
    "ERRORS",
    "OWNER:v128 NAME:v128 TYPE:v13 SEQUENCE:n LINE:n POSITION:n TEXT:v4000 ATTRIBUTE:v9 MESSAGE_NUMBER:n",
    object_name="NAME",
)
def _errors(view: View) -> Iterator[Row]:
    for item in _programs(view):
        for number, (line, column, text) in enumerate(item.errors, 1):
            yield {
                "OWNER": item.owner, "NAME": item.name, "TYPE": item.kind, "SEQUENCE": number, "LINE": line, "POSITION": column,
                "TEXT": text, "ATTRIBUTE": "ERROR", "MESSAGE_NUMBER": 103,
            }  # fmt: skip


def _trigger_units(view: View) -> Iterator[tuple[ProgramDef, plsql_nodes.Trigger, TableDef]]:
    """The triggers that were compiled, each with its table."""
    for item in _programs(view):
        if item.kind != "TRIGGER" or item.errors:
            continue
        unit = parse_unit(item.text, lambda _name: None)
        assert isinstance(unit, plsql_nodes.Trigger)
        table = view.database.store.catalog.by_id(item.table)
        assert isinstance(table, TableDef)
        yield item, unit, table


@VIEWS.family(
    "TRIGGERS",
    "OWNER:v128 TRIGGER_NAME:v128 TRIGGER_TYPE:v16 TRIGGERING_EVENT:v246 TABLE_OWNER:v128 BASE_OBJECT_TYPE:v18 TABLE_NAME:v128"
    " STATUS:v8 TRIGGER_BODY:c",
    object_name="TRIGGER_NAME",
)
def _triggers(view: View) -> Iterator[Row]:
    for item, unit, table in _trigger_units(view):
        level = "EACH ROW" if unit.for_each_row else "STATEMENT"
        yield {
            "OWNER": item.owner, "TRIGGER_NAME": item.name, "TRIGGER_TYPE": f"{unit.timing} {level}",
            "TRIGGERING_EVENT": " OR ".join(unit.events), "TABLE_OWNER": table.owner, "BASE_OBJECT_TYPE": "TABLE",
            "TABLE_NAME": table.name, "STATUS": "ENABLED" if item.enabled else "DISABLED",
            "TRIGGER_BODY": item.text[unit.block.pos :],
        }  # fmt: skip


@VIEWS.family(
    "TRIGGER_COLS",
    "TRIGGER_OWNER:v128 TRIGGER_NAME:v128 TABLE_OWNER:v128 TABLE_NAME:v128 COLUMN_NAME:v4000 COLUMN_LIST:v3 COLUMN_USAGE:v17",
    owner="TRIGGER_OWNER",
    object_name="TRIGGER_NAME",
)
def _trigger_columns(view: View) -> Iterator[Row]:
    """The columns of UPDATE OF. What a trigger's body does with columns is not shown."""
    for item, unit, table in _trigger_units(view):
        for column in unit.columns:
            yield {
                "TRIGGER_OWNER": item.owner, "TRIGGER_NAME": item.name, "TABLE_OWNER": table.owner, "TABLE_NAME": table.name,
                "COLUMN_NAME": column, "COLUMN_LIST": "YES",
            }  # fmt: skip


@VIEWS.family(
    "DEPENDENCIES",
    "OWNER:v128 NAME:v128 TYPE:v19 REFERENCED_OWNER:v128 REFERENCED_NAME:v128 REFERENCED_TYPE:v19 REFERENCED_LINK_NAME:v128"
    " DEPENDENCY_TYPE:v4",
    object_name="NAME",
)
def _dependencies(view: View) -> Iterator[Row]:
    """Of views and materialized views, those that their queries name; of a trigger its table, of a
    package's body the package, of a synonym what it stands for."""
    for item in view.definitions():
        if isinstance(item, UserDef):
            continue
        for kind, name in _named_by(view, item):
            other = view.database.store.catalog.find(*name)
            if other is not None and not isinstance(other, UserDef):
                yield {
                    "OWNER": item.owner, "NAME": item.name, "TYPE": kind, "REFERENCED_OWNER": other.owner, "REFERENCED_NAME": other.name,
                    "REFERENCED_TYPE": _kind(other), "DEPENDENCY_TYPE": "HARD",
                }  # fmt: skip


def _named_by(view: View, item: Definition) -> Iterator[tuple[str, tuple[str, str]]]:
    """Kind of an object, and owner and name of each that it needs."""
    match item:
        case ViewDef(text=query) | TableDef(query=str(query)):
            kind = "VIEW" if isinstance(item, ViewDef) else "MATERIALIZED VIEW"
            for name in sorted(set(_tables_in(parse_query(query)))):
                yield kind, (name[0] if len(name) > 1 else item.owner, name[-1])
        case SynonymDef():
            yield "SYNONYM", (item.target_owner, item.target_name)
        case ProgramDef(kind="PACKAGE BODY"):
            yield item.kind, (item.owner, item.name)
        case ProgramDef(kind="TRIGGER"):
            table = view.definition(item.table)
            if isinstance(table, TableDef):
                yield item.kind, (table.owner, table.name)


def _tables_in(node: object) -> Iterator[ast.Name]:
    if isinstance(node, ast.FromTable):
        yield node.name
    elif isinstance(node, tuple):
        for item in node:
            yield from _tables_in(item)
    else:
        for name in getattr(node, "__dataclass_fields__", ()):
            yield from _tables_in(getattr(node, name))


def _kind(item: Definition) -> str:
    if isinstance(item, ProgramDef):
        return item.kind.removesuffix(" BODY")
    return type(item).__name__.removesuffix("Def").upper()
