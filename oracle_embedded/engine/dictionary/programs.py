"""What do the dictionary views of stored programs show?"""

from __future__ import annotations

from collections.abc import Iterator

from oracle_embedded.engine.dictionary.registry import Row, View, Views
from oracle_embedded.engine.sql import plsql_nodes
from oracle_embedded.engine.sql.units import parse_unit
from oracle_embedded.engine.storage.catalog import ProgramDef, TableDef

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
        elif item.kind == "PACKAGE" and not item.errors:
            unit = parse_unit(item.text, lambda _name: None)
            assert isinstance(unit, plsql_nodes.Package)
            routines = [one for one in unit.declarations if isinstance(one, plsql_nodes.Routine)]
            for number, routine in enumerate(routines, 1):
                yield {**row, "PROCEDURE_NAME": routine.name, "SUBPROGRAM_ID": number}


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


@VIEWS.family(
    "TRIGGERS",
    "OWNER:v128 TRIGGER_NAME:v128 TRIGGER_TYPE:v16 TRIGGERING_EVENT:v246 TABLE_OWNER:v128 BASE_OBJECT_TYPE:v18 TABLE_NAME:v128"
    " STATUS:v8 TRIGGER_BODY:c",
    object_name="TRIGGER_NAME",
)
def _triggers(view: View) -> Iterator[Row]:
    for item in _programs(view):
        if item.kind != "TRIGGER" or item.errors:
            continue
        unit = parse_unit(item.text, lambda _name: None)
        assert isinstance(unit, plsql_nodes.Trigger)
        table = view.database.store.catalog.by_id(item.table)
        assert isinstance(table, TableDef)
        level = "EACH ROW" if unit.for_each_row else "STATEMENT"
        yield {
            "OWNER": item.owner, "TRIGGER_NAME": item.name, "TRIGGER_TYPE": f"{unit.timing} {level}",
            "TRIGGERING_EVENT": " OR ".join(unit.events), "TABLE_OWNER": table.owner, "BASE_OBJECT_TYPE": "TABLE",
            "TABLE_NAME": table.name, "STATUS": "ENABLED" if item.enabled else "DISABLED",
            "TRIGGER_BODY": item.text[unit.block.pos :],
        }  # fmt: skip
