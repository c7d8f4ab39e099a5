"""How are stored procedures, functions, packages and triggers written?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.sql import plsql_nodes
from oracle_embedded.engine.sql.blocks import AS_CALLER, BlockReader, ColumnType
from oracle_embedded.engine.sql.expressions import read_condition
from oracle_embedded.engine.sql.plsql_nodes import Declaration, Unit
from oracle_embedded.engine.sql.queries import read_query
from oracle_embedded.engine.sql.stream import TokenStream

_EVENTS = ("INSERT", "UPDATE", "DELETE")


def parse_unit(text: str, column_type: ColumnType) -> Unit:
    """Parse a stored unit's text, which begins with its kind (``PROCEDURE``, ``PACKAGE BODY`` …).

    Raises:
        OracleError: ORA-06550 with what the compiler of PL/SQL would say.
    """
    stream = TokenStream(text, read_query, plsql=True)
    reader = BlockReader(stream, column_type)
    try:
        unit = _read_unit(reader)
    except OracleError as error:
        raise reader.as_compiler(error) from error
    if stream.is_op("/"):
        stream.next()
    if stream.token.kind != "end":
        raise reader.unexpected()
    return unit


def _read_unit(reader: BlockReader) -> Unit:
    stream = reader.stream
    if stream.is_word("PROCEDURE") or stream.is_word("FUNCTION"):
        return reader.routine()
    if stream.take_word("TRIGGER"):
        return _read_trigger(reader)
    reader.need("PACKAGE")
    stream.take_word("BODY")
    stream.name()
    as_caller = AS_CALLER in reader.routine_options()
    if stream.take_any("IS", "AS") is None:
        raise reader.unexpected()
    declarations: list[Declaration] = []
    while not stream.is_word("END") and not stream.is_word("BEGIN"):
        declarations.append(reader.declaration())
    body = None
    if stream.is_word("BEGIN"):
        body = reader.body((), stream.token.start)
    else:
        reader.need("END")
        if stream.token.kind in ("word", "quoted"):
            stream.next()
    reader.semicolon()
    return plsql_nodes.Package(tuple(declarations), body, as_caller)


def _read_trigger(reader: BlockReader) -> plsql_nodes.Trigger:
    stream = reader.stream
    stream.name()
    timing = stream.take_any("BEFORE", "AFTER")
    if timing is None:
        raise OracleError(
            4070, "invalid trigger name or an unsupported kind of trigger", stream.token.start
        )
    events, columns = _read_events(reader)
    reader.need("ON")
    table = stream.name()
    old, new = "OLD", "NEW"
    while stream.take_word("REFERENCING") or stream.is_word("OLD") or stream.is_word("NEW"):
        which = stream.take_any("OLD", "NEW")
        stream.take_word("AS")
        if which == "OLD":
            old = stream.identifier()
        elif which == "NEW":
            new = stream.identifier()
    for_each_row = stream.take_word("FOR", "EACH", "ROW")
    enabled = stream.take_any("ENABLE", "DISABLE") != "DISABLE"
    condition = None
    if stream.take_word("WHEN"):
        stream.need_op("(")
        condition = read_condition(stream)
        stream.need_op(")")
    stream.row_names = frozenset((old, new))
    body: plsql_nodes.Block | plsql_nodes.Node
    if stream.is_word("CALL"):
        raise OracleError(3001, "unimplemented feature: CALL in a trigger", stream.token.start)
    body = reader.block()
    reader.semicolon()
    return plsql_nodes.Trigger(
        timing, events, columns, table, for_each_row, old, new, condition, body, enabled
    )


def _read_events(reader: BlockReader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    stream = reader.stream
    events: list[str] = []
    columns: list[str] = []
    while True:
        event = stream.take_any(*_EVENTS)
        if event is None:
            raise OracleError(
                3001, "unimplemented feature: triggers of other events", stream.token.start
            )
        events.append(event)
        if event == "UPDATE" and stream.take_word("OF"):
            columns.append(stream.identifier())
            while stream.take_op(","):
                columns.append(stream.identifier())
        if not stream.take_word("OR"):
            return tuple(events), tuple(columns)
