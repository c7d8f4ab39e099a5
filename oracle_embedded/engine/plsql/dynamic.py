"""How do programs run statements that they put together as text?"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.api import BindMeta, OracleError, OraType, Outcome, StatementKind, Value
from oracle_embedded.engine.datatypes.types import SqlType, bind_type, varchar
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql import cursors
from oracle_embedded.engine.plsql.state import Frame
from oracle_embedded.engine.plsql.values import assign, evaluate, type_of_target
from oracle_embedded.engine.run.contracts import OpenCursor
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import plsql_nodes as nodes

_OUT_BYTES = 32767
_STATEMENT = varchar(32767)


def open_query_text(frame: Frame, text: ast.Expr, using: Sequence[nodes.Using]) -> OpenCursor:
    """``OPEN cursor FOR text USING …``.

    Raises:
        OracleError: ORA-06539 if the text is no query.
    """
    outcome = _run_text(frame, text, using)
    if outcome.rows is None:
        raise OracleError(6539, "target of OPEN must be a query")
    return OpenCursor(outcome.rows, list(outcome.rows.columns))


def execute_immediate(frame: Frame, node: nodes.ExecuteImmediate) -> None:
    """EXECUTE IMMEDIATE with INTO, USING and RETURNING INTO."""
    outcome = _run_text(frame, node.text, node.using)
    frame.row_count = outcome.row_count
    for out in outcome.out_binds:
        target = node.using[out.position].value
        values = out.values[0] if out.values else []
        if len(values) > 1:
            raise ora(1422)
        if values and node.using[out.position].is_out:
            content: Value = values[0]
            if out.has_handles and content is not None:
                content = cursors.lob_of(frame, content)
            assign(frame, target, (content, bind_type(out.meta)))
    if outcome.rows is None:
        return
    opened = OpenCursor(outcome.rows, list(outcome.rows.columns))
    try:
        if not node.into:
            return
        rows = (
            cursors.all_rows(frame, opened) if node.bulk else cursors.fetch_rows(frame, opened, 2)
        )
    finally:
        outcome.rows.close()
    if node.bulk:
        cursors.into_collections(frame, opened, node.into, rows)
        return
    if len(rows) != 1:
        raise ora(1403 if not rows else 1422)
    cursors.into_targets(frame, opened, node.into, rows[0])


def _run_text(frame: Frame, text: ast.Expr, using: Sequence[nodes.Using]) -> Outcome:
    sql, _ = evaluate(frame, text, _STATEMENT)
    if sql is None:
        raise OracleError(6535, "statement string in EXECUTE IMMEDIATE is NULL or 0 length")
    assert isinstance(sql, bytes)
    values: list[Value] = []
    bind_metas = []
    for item in using:
        value: object = None
        if item.is_in:
            value, kind = evaluate(frame, item.value)
        else:
            kind = type_of_target(frame, item.value)
        if not isinstance(kind, SqlType):
            raise OracleError(457, "expressions have to be of SQL types")
        values.append(value)  # type: ignore[arg-type]
        meta = kind.meta("")
        size = (
            _OUT_BYTES if item.is_out and meta.type in (OraType.VARCHAR, OraType.RAW) else meta.size
        )
        bind_metas.append(BindMeta(meta.type, max(size, 1), meta.charset_form))
    session = frame.session
    statement = session.parse(sql.decode())
    if frame.in_query and statement.kind in (StatementKind.DML, StatementKind.DDL):
        raise OracleError(14551, "cannot perform a DML operation inside a query ")
    return session.execute(statement, [values] if values else (), bind_metas=bind_metas)
