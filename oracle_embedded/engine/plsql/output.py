"""Which packaged procedures see their caller's frame: DBMS_OUTPUT, DBMS_SQL.RETURN_RESULT, …?"""

from __future__ import annotations

from collections.abc import Callable

from oracle_embedded.api import COMPATIBLE, VERSIONS, OracleError
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.types import NUMBER, TEXT
from oracle_embedded.engine.plsql.calls import wrong_arguments
from oracle_embedded.engine.plsql.composites import TableType, listed
from oracle_embedded.engine.plsql.lobs import PROCEDURES as LOB_PROCEDURES
from oracle_embedded.engine.plsql.state import Frame
from oracle_embedded.engine.plsql.values import assign, evaluate, integer
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import TableDef

_LINES = TableType("CHARARR", TEXT, "NUMBER")


def _text(frame: Frame, node: ast.Call) -> str:
    if len(node.args) != 1:
        raise wrong_arguments(frame, node.pos, node.name[-1])
    value, _ = evaluate(frame, node.args[0], TEXT)
    return value.decode() if isinstance(value, bytes) else ""


def _put(frame: Frame, node: ast.Call) -> None:
    text = _text(frame, node)
    if frame.session.output.lines is not None:
        frame.session.output.partial += text


def _new_line(frame: Frame, _node: ast.Call) -> None:
    output = frame.session.output
    if output.lines is not None:
        output.lines.append(output.partial)
        output.partial = ""


def _put_line(frame: Frame, node: ast.Call) -> None:
    _put(frame, node)
    _new_line(frame, node)


def _enable(frame: Frame, _node: ast.Call) -> None:
    if frame.session.output.lines is None:
        frame.session.output.lines = []


def _disable(frame: Frame, _node: ast.Call) -> None:
    frame.session.output.lines, frame.session.output.partial = None, ""


def _get_line(frame: Frame, node: ast.Call) -> None:
    lines = frame.session.output.lines or []
    line = lines.pop(0) if lines else None
    assign(frame, node.args[0], (line.encode() or None if line is not None else None, TEXT))
    assign(frame, node.args[1], (numbers.encode(0 if line is not None else 1), NUMBER))


def _get_lines(frame: Frame, node: ast.Call) -> None:
    wanted = integer(frame, node.args[1])
    lines = frame.session.output.lines or []
    taken, lines[:wanted] = lines[:wanted], []
    values = listed(line.encode() or None for line in taken)
    assign(frame, node.args[0], (values, _LINES))
    assign(frame, node.args[1], (numbers.encode(len(taken)), NUMBER))


def _return_result(frame: Frame, node: ast.Call) -> None:
    value, kind = evaluate(frame, node.args[0])
    if kind.__class__ is not type(NUMBER) or not isinstance(value, bytes):
        raise OracleError(1001, "invalid cursor")
    frame.session.results.append(value)


def _refresh(frame: Frame, node: ast.Call) -> None:
    """DBMS_MVIEW.REFRESH: all rows are made again, and committed."""
    if not node.args and not node.named:
        raise wrong_arguments(frame, node.pos, node.name[-1])
    value, _ = evaluate(frame, node.args[0] if node.args else node.named[0][1], TEXT)
    session = frame.session
    for text in (value.decode() if isinstance(value, bytes) else "").upper().split(","):
        *owner, name = text.strip().split(".")
        found = session.database.find(session, owner[0] if owner else session.schema, name)
        if not isinstance(found, TableDef) or found.query is None:
            raise OracleError(23401, f'materialized view "{text.strip()}" does not exist')
        session.commit()
        session.filling = found.object_id
        try:
            session.run(f'DELETE FROM "{found.owner}"."{found.name}"')
            session.run(f'INSERT INTO "{found.owner}"."{found.name}" {found.query}')
        finally:
            session.filling = 0
        session.commit()


def _db_version(frame: Frame, node: ast.Call) -> None:
    """DBMS_UTILITY.DB_VERSION: the release, and what COMPATIBLE is."""
    if len(node.args) != 2:
        raise wrong_arguments(frame, node.pos, node.name[-1])
    version = VERSIONS[frame.session.database.release]
    assign(frame, node.args[0], (version.encode(), TEXT))
    assign(frame, node.args[1], (COMPATIBLE.encode(), TEXT))


SPECIAL: dict[ast.Name, Callable[[Frame, ast.Call], None]] = {
    ("DBMS_OUTPUT", "PUT"): _put,
    ("DBMS_OUTPUT", "PUT_LINE"): _put_line,
    ("DBMS_OUTPUT", "NEW_LINE"): _new_line,
    ("DBMS_OUTPUT", "ENABLE"): _enable,
    ("DBMS_OUTPUT", "DISABLE"): _disable,
    ("DBMS_OUTPUT", "GET_LINE"): _get_line,
    ("DBMS_OUTPUT", "GET_LINES"): _get_lines,
    ("DBMS_SQL", "RETURN_RESULT"): _return_result,
    ("DBMS_MVIEW", "REFRESH"): _refresh,
    ("DBMS_UTILITY", "DB_VERSION"): _db_version,
    **LOB_PROCEDURES,
}
"""Procedures by name that see the frame of their caller."""
