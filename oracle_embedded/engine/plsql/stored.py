"""How do SQL and changes of rows reach stored programs: functions in queries, triggers?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.compile.compilation import StoredFunction
from oracle_embedded.engine.datatypes.types import BOOLEAN
from oracle_embedded.engine.plsql.composites import Record, RecordType
from oracle_embedded.engine.plsql.declaring import declare, resolve_type
from oracle_embedded.engine.plsql.objects import (
    image_of,
    pl_type,
    shown_type,
    sql_type,
    value_of,
)
from oracle_embedded.engine.plsql.programs import find_stored
from oracle_embedded.engine.plsql.run import new_frame
from oracle_embedded.engine.plsql.state import Cell, Closure, Overloads
from oracle_embedded.engine.plsql.values import coerce, test
from oracle_embedded.engine.run.contracts import Firing, SessionState
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import plsql_nodes as nodes
from oracle_embedded.engine.sql.units import parse_unit
from oracle_embedded.engine.storage.catalog import Catalog, ProgramDef, TableDef

Image = dict[int, Value]
_EVENTS = {"INSERT": "INSERTING", "UPDATE": "UPDATING", "DELETE": "DELETING"}


class StoredPrograms:
    """The stored programs of a database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._triggers: dict[int, tuple[ProgramDef, nodes.Trigger]] = {}

    def function(self, session: SessionState, name: ast.Name) -> StoredFunction | None:
        """A stored function that SQL may call: one whose types SQL knows."""
        frame = new_frame(session, "", [])
        held = find_stored(frame, name)
        if not isinstance(held, Overloads):
            return None
        for closure in held.routines:
            routine = closure.routine
            if routine.returns is None or any(item.is_out for item in routine.parameters):
                continue
            inner = frame.inner(closure.text, closure.names)
            resolved = [sql_type(resolve_type(inner, item.type)) for item in routine.parameters]
            kinds = tuple(kind for kind in resolved if kind is not None)
            returns = shown_type(resolve_type(inner, routine.returns))
            if returns is not None and len(kinds) == len(resolved):
                names = tuple(item.name for item in routine.parameters)
                required = next(
                    (at for at, item in enumerate(routine.parameters) if item.default is not None),
                    len(names),
                )
                return StoredFunction(name, names, required, kinds, returns)
        return None

    def call(
        self, session: SessionState, name: str, given: Mapping[str, Value]
    ) -> bytes | str | None:
        """Call a function for a row of a query, which sees that no data change."""
        parts = tuple(name.split("."))
        frame = new_frame(session, "", [])
        frame.in_query = True
        held = find_stored(frame, parts)
        found = self.function(session, parts)
        if not isinstance(held, Overloads) or found is None:
            raise OracleError(904, f'"{name}": invalid identifier')
        types_by_name = dict(zip(found.parameters, found.types, strict=True))
        named = []
        for number, (parameter, value) in enumerate(given.items()):
            kind = pl_type(types_by_name[parameter])
            frame.names[f"$a{number}"] = Cell(kind, value_of(value, kind))
            named.append((parameter, ast.Column((f"$a{number}",))))
        node = ast.Call(parts, (), named=tuple(named))
        returned = image_of(*frame.services.call(frame, node, held))
        if returned is not None and found.returns.family in ("text", "clob"):
            return returned.decode() or None
        return returned

    # --- triggers ---------------------------------------------------------------------------------

    def firing(self, table: TableDef, event: str, columns: Collection[int]) -> Firing | None:
        """The triggers that a change fires; None if there are none."""
        definitions = self._catalog.triggers_of(table.object_id)
        if not definitions:
            return None
        chosen = []
        for definition in definitions:
            trigger = self._parsed(definition)
            named = {
                table.by_name[name].internal_id for name in trigger.columns if name in table.by_name
            }
            if event in trigger.events and (event != "UPDATE" or not named or named & set(columns)):
                chosen.append((definition, trigger))
        if not chosen:
            return None
        updated = frozenset(table.by_id[number].name for number in columns)

        def pick(timing: str, *, rows: bool) -> list[partial[None]]:
            return [
                partial(_fire, definition, trigger, table, event, updated)
                for definition, trigger in chosen
                if trigger.timing == timing and trigger.for_each_row is rows
            ]

        return Firing(
            pick("BEFORE", rows=False), pick("BEFORE", rows=True),
            pick("AFTER", rows=True), pick("AFTER", rows=False),
        )  # fmt: skip

    def _parsed(self, definition: ProgramDef) -> nodes.Trigger:
        kept = self._triggers.get(definition.object_id)
        if kept is not None and kept[0] is definition:
            return kept[1]
        if definition.errors:
            raise OracleError(
                4098,
                f"trigger '{definition.owner}.{definition.name}' is invalid and failed re-validation",
            )
        unit = parse_unit(definition.text, lambda _name: None)
        assert isinstance(unit, nodes.Trigger)
        self._triggers[definition.object_id] = (definition, unit)
        return unit


def _fire(
    definition: ProgramDef,
    trigger: nodes.Trigger,
    table: TableDef,
    event: str,
    updated: frozenset[str],
    session: SessionState,
    old: Image | None = None,
    new: Image | None = None,
) -> None:
    """Run one trigger; what it assigns to the new row goes into its image."""
    frame = new_frame(session, definition.text, [])
    kind = RecordType("", tuple((column.name, column.type) for column in table.columns))
    for name, image in ((trigger.old, old), (trigger.new, new)):
        fields = {
            column.name: None if image is None else image.get(column.internal_id)
            for column in table.columns
        }
        frame.names[name] = Cell(kind, Record(fields), constant=name == trigger.old)  # type: ignore[arg-type]
    for word, flag in _EVENTS.items():
        frame.names[flag] = Cell(BOOLEAN, b"\x01" if word == event else b"\x00", constant=True)
    frame.updated = updated
    place = f"{definition.owner}.{definition.name}"
    assert isinstance(trigger.block, nodes.Block)
    routine = nodes.Routine("", (), None, trigger.block)
    closure = Closure(
        routine, frame.names, definition.text, definition.owner, definition.owner, place
    )
    before = session.rights, session.schema
    session.rights, session.schema = definition.owner, definition.owner
    try:
        if trigger.condition is not None and not test(frame, trigger.condition):
            return
        declare(frame, trigger.block.declarations, like=closure)
        frame.services.execute(frame, closure)
    except OracleError as error:
        if "ORA-04088" not in error.text:
            error.text += f"\nORA-04088: error during execution of trigger '{place}'"
            error.args = (error.code, error.text, error.offset)
        raise
    finally:
        session.rights, session.schema = before
    if new is None or trigger.timing != "BEFORE":
        return
    cell = frame.names[trigger.new]
    assert isinstance(cell, Cell)
    assert isinstance(cell.value, Record)
    for column in table.columns:
        value = coerce(frame, cell.value.fields[column.name], column.type, column.type)
        new[column.internal_id] = value  # type: ignore[assignment]
