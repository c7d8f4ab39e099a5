"""How do expressions become SQLite SQL?"""

from __future__ import annotations

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.charsets import CharacterSet
from oracle_embedded.engine.compile.calls import compile_call
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.conversions import (
    ZONED,
    cast,
    client_form,
    concatenate,
    convert,
    numeric,
    unify,
)
from oracle_embedded.engine.compile.objects import attribute
from oracle_embedded.engine.compile.plan import Sql, blob, quoted
from oracle_embedded.engine.compile.scopes import Scope, Source, resolve, rowid_source
from oracle_embedded.engine.datatypes import numbers, types
from oracle_embedded.engine.datatypes.types import FAMILY_NAMES, TEMPORAL, SqlType
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.formats.literals import interval_literal, temporal_literal
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import SequenceDef
from oracle_embedded.values import (
    binary_float_from_float,
    double_from_float,
    number_from_text,
    packed,
)

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_OPERANDS_MAX = 100


def compile_value(state: Compilation, node: ast.Expr, scope: Scope) -> Sql:
    """Compile an expression."""
    match node:
        case ast.Column():
            return _column(state, node, scope)
        case ast.Bind():
            return _bind(state, node)
        case ast.Null():
            return Sql("NULL", types.NULL, constant=True)
        case ast.Number():
            return _number(node)
        case ast.String():
            own = state.environment.character_sets.of(2 if node.national else 1)
            return text_literal(node.text, own, national=node.national)
        case ast.Temporal():
            packed, kind = temporal_literal(node.kind, node.text, node.pos)
            return _temporal(packed, kind)
        case ast.Interval():
            return _interval(node)
        case ast.Binary():
            return _binary(state, node, scope)
        case ast.Unary():
            return _unary(state, node, scope)
        case ast.Case():
            return _case(state, node, scope)
        case ast.Cast():
            return cast(state.value(node.operand, scope), node.type, node.pos)
        case ast.Scalar():
            return _scalar(state, node, scope)
        case ast.CursorQuery():
            raise OracleError(22902, "CURSOR expression not allowed", node.pos)
        case ast.AtZone():
            return _at_zone(state, node, scope)
        case ast.Call():
            return compile_call(state, node, scope)
        case ast.Row():
            raise ora(907, offset=node.pos)
        case ast.Default():
            raise ora(936, offset=node.pos)
    raise ora(936, offset=node.pos)


def _temporal(packed: bytes, kind: SqlType) -> Sql:
    return Sql(blob(packed), kind, nullable=False, constant=True)


def _bind(state: Compilation, node: ast.Bind) -> Sql:
    kind = types.UNTOLD
    if state.bind_types is not None:
        if node.index >= len(state.bind_types):
            raise ora(1008, offset=node.pos)
        kind = state.bind_types[node.index]
    return Sql(state.parameter(node.index, kind), kind, constant=True)


def _column(state: Compilation, node: ast.Column, scope: Scope) -> Sql:
    found = resolve(node, scope)
    if found is not None:
        if found.mask is not None:
            state.masks.append(found.mask)
        return found
    if len(node.name) > 2:
        inside = attribute(node, scope)
        if inside is not None:
            return inside
    pseudo = _pseudo(state, node, scope)
    if pseudo is not None:
        return pseudo
    printed = ".".join(f'"{part}"' for part in node.name)
    raise ora(904, printed, offset=node.pos)


def _pseudo(state: Compilation, node: ast.Column, scope: Scope) -> Sql | None:
    *qualifier, name = node.name
    variable = state.variable(node.name)
    if variable is not None:
        return variable
    if name in ("TRUE", "FALSE") and not qualifier and state.environment.is_23ai:
        text = "x'01'" if name == "TRUE" else "x'00'"
        return Sql(text, types.BOOLEAN, nullable=False, constant=True)
    if name == "ROWID" or name == "ORA_ROWSCN":
        source = rowid_source(tuple(qualifier), scope, node.pos)
        if source is None:
            return None
        return _rowid_of(source) if name == "ROWID" else _rowscn(source)
    if name in ("NEXTVAL", "CURRVAL") and qualifier:
        return _sequence_value(state, tuple(qualifier), name, node.pos)
    plain = node.name[1:] if node.name[0] == "SYS" else node.name
    if len(plain) == 2 and (plain[0], plain[1]) in state.environment.constants:
        return _constant(state.environment.constants[plain[0], plain[1]])
    if qualifier:
        if qualifier in (["SYS"], ["STANDARD"]) or len(qualifier) <= 2:
            return _call_without_arguments(state, node, scope)
        return None
    if name == "ROWNUM":
        if scope.rownum is None:
            raise unsupported("ROWNUM in this place", node.pos)
        return Sql(scope.rownum, types.NUMBER, nullable=False)
    if name == "LEVEL" and scope.level is not None:
        return Sql(scope.level, types.NUMBER, nullable=False)
    return _call_without_arguments(state, node, scope)


def _call_without_arguments(state: Compilation, node: ast.Column, scope: Scope) -> Sql | None:
    try:
        return compile_call(state, ast.Call(node.name, (), pos=node.pos), scope)
    except OracleError as error:
        if error.code in (904, 909, 938):
            return None
        raise


def _sequence_value(state: Compilation, qualifier: tuple[str, ...], name: str, pos: int) -> Sql:
    """NEXTVAL or CURRVAL of a sequence."""
    owner = qualifier[0] if len(qualifier) == 2 else state.environment.schema
    found = state.environment.find(owner, qualifier[-1])
    if not isinstance(found, SequenceDef):
        raise ora(2289, offset=pos)
    function = "o_nextval" if name == "NEXTVAL" else "o_currval"
    return Sql(f"{function}({found.object_id})", types.NUMBER, nullable=False)


def _rowid_of(source: Source) -> Sql:
    """The ROWID of a source's row."""
    if source.use is None:
        return Sql(source.rowid or "NULL", types.ROWID)
    table = source.use.table
    if table.is_index_organized and table.key is not None:
        key = [table.by_id[internal_id] for internal_id in table.key.columns]
        given = [f"{item.type.form or 0}, {source.columns[item.name].text}" for item in key]
        return Sql(f"o_rowid_logical({', '.join(given)})", types.UROWID, nullable=False)
    number = str(table.data_object_id)
    if table.partitioning is not None:
        number = f"{source.alias}.dobj"
    text = f"o_rowid({number}, {source.rowid})"
    return Sql(
        text, types.ROWID, nullable=False, base=source.use, is_rowid=True, column=source.rowid
    )


def _interval(node: ast.Interval) -> Sql:
    try:
        packed, kind = interval_literal(
            node.text, node.first, node.last, node.precision, node.digits
        )
    except OracleError as error:
        error.offset = node.pos
        raise
    return Sql(blob(packed), kind, nullable=False, constant=True)


def _unary(state: Compilation, node: ast.Unary, scope: Scope) -> Sql:
    operand = state.value(node.operand, scope)
    if operand.family in ("ids", "iym"):
        if node.op == "+":
            return operand
        return Sql(f"o_interval_scale({operand.text}, {blob(numbers.encode(-1))}, 0)", operand.type)
    operand = numeric(operand, node.pos)
    if node.op == "+":
        return operand
    function = "o_dneg" if operand.family == "double" else "o_neg"
    kind = types.NUMBER if operand.family == "number" else types.DOUBLE
    return Sql(f"{function}({operand.text})", kind, operand.nullable, constant=operand.constant)


def _binary(state: Compilation, node: ast.Binary, scope: Scope) -> Sql:
    chain = [node]
    while isinstance(chain[-1].left, ast.Binary):
        chain.append(chain[-1].left)
    value = state.value(chain[-1].left, scope)
    for one in reversed(chain):
        value = _combined(one, value, state.value(one.right, scope))
    return value


def _combined(node: ast.Binary, left: Sql, right: Sql) -> Sql:
    if node.op == "||":
        return concatenate(left, right, node.pos)
    if types.UNTOLD in (left.type, right.type):
        return Sql("NULL", types.UNTOLD)
    constant = left.constant and right.constant
    result = _date_arithmetic(node, left, right)
    if result is None:
        left, right = numeric(left, node.left.pos), numeric(right, node.right.pos)
        prefix, kind = "o_", types.NUMBER
        if "double" in (left.family, right.family):
            left, right = convert(left, "double"), convert(right, "double")
            prefix, kind = "o_d", types.DOUBLE
        function = f"{prefix}{_ARITHMETIC[node.op]}"
        # SQLite's parser takes few calls inside each other.
        operands = left.operands if left.chain == function else (left.text,)
        if len(operands) >= _OPERANDS_MAX:
            operands = (left.text,)
        operands = (*operands, right.text)
        called = function if len(operands) == 2 else f"{function}_all"
        text = f"{called}({', '.join(operands)})"
        nullable = left.nullable or right.nullable
        result = Sql(text, kind, nullable, chain=function, operands=operands)
    result.constant = constant
    return result


def _date_arithmetic(node: ast.Binary, left: Sql, right: Sql) -> Sql | None:
    lf, rf = left.family, right.family
    intervals = ("ids", "iym")
    sign = {"+": 1, "-": -1}.get(node.op)
    if lf not in TEMPORAL and lf not in intervals and rf not in TEMPORAL and rf not in intervals:
        return None
    if lf in TEMPORAL and rf in TEMPORAL:
        if node.op != "-":
            raise OracleError(975, "date + date not allowed", node.pos)
        if lf == rf == "date":
            return Sql(f"o_date_diff({left.text}, {right.text})", types.NUMBER)
        target = "tz" if lf in ZONED or rf in ZONED else "timestamp"
        left, right = convert(left, target), convert(right, target)
        return Sql(f"o_ts_diff({left.text}, {right.text})", types.INTERVAL_DS)
    if sign is not None and lf in TEMPORAL and rf in intervals:
        return Sql(f"o_plus_interval({left.text}, {right.text}, {sign})", left.type)
    if sign == 1 and lf in intervals and rf in TEMPORAL:
        return Sql(f"o_plus_interval({right.text}, {left.text}, 1)", right.type)
    if sign is not None and lf in TEMPORAL:
        days = convert(right, "number", node.right.pos)
        date = convert(left, "date")
        return Sql(f"o_plus_days({date.text}, {days.text}, {sign})", types.DATE)
    if sign == 1 and rf in TEMPORAL:
        days = convert(left, "number", node.left.pos)
        date = convert(right, "date")
        return Sql(f"o_plus_days({date.text}, {days.text}, 1)", types.DATE)
    if sign is not None and lf == rf:
        return Sql(f"o_interval_add({left.text}, {right.text}, {sign})", left.type)
    if node.op == "*" and lf in intervals:
        return Sql(f"o_interval_scale({left.text}, {convert(right, 'number').text}, 0)", left.type)
    if node.op == "*" and rf in intervals:
        return Sql(
            f"o_interval_scale({right.text}, {convert(left, 'number').text}, 0)",
            right.type,
        )
    if node.op == "/" and lf in intervals:
        return Sql(f"o_interval_scale({left.text}, {convert(right, 'number').text}, 1)", left.type)
    raise ora(932, "NUMBER", FAMILY_NAMES[lf if lf in TEMPORAL else rf], offset=node.pos)


def _case(state: Compilation, node: ast.Case, scope: Scope) -> Sql:
    results = [state.value(then, scope) for _, then in node.whens]
    if node.otherwise is not None:
        results.append(state.value(node.otherwise, scope))
    unified = unify(results, node.pos, strict=True)
    parts = []
    for (when, _), then in zip(node.whens, unified, strict=False):
        condition = (
            when if node.operand is None else ast.Compare("=", node.operand, when, pos=when.pos)
        )
        parts.append(f"WHEN {state.condition(condition, scope)} THEN {then.text}")
    otherwise = f" ELSE {unified[-1].text}" if node.otherwise is not None else ""
    nullable = node.otherwise is None or any(item.nullable for item in unified)
    return Sql(f"(CASE {' '.join(parts)}{otherwise} END)", unified[0].type, nullable)


def _scalar(state: Compilation, node: ast.Scalar, scope: Scope) -> Sql:
    text, columns, single = state.subquery(node.query, scope)
    if len(columns) != 1:
        raise ora(913, offset=node.pos)
    kind = columns[0].type
    if single:
        return Sql(f"({text})", kind)
    alias = state.new_alias()
    return Sql(f"(SELECT o_single({alias}.c1) FROM ({text}) {alias})", kind)


def compile_cursor(state: Compilation, node: ast.CursorQuery, scope: Scope) -> Sql:
    """CURSOR(query): the image of its rows, which are made when the row around them is.

    Source:
        Oracle SQL Language Reference 19c, CURSOR Expressions.
    """
    text, columns, _ = state.query(node.query, scope)
    alias = state.new_alias()
    cells = [
        client_form(f"{alias}.c{number}", column.type) for number, column in enumerate(columns, 1)
    ]
    row = tuple((column.name, column.type, column.nullable) for column in columns)
    kind = SqlType(OraType.CURSOR, row=row)
    # SQLite does not call the aggregate for no rows.
    rows = f"(SELECT o_rows({', '.join(cells)}) FROM ({text}) {alias})"
    return Sql(f"ifnull({rows}, {blob(packed(()))})", kind)


def _at_zone(state: Compilation, node: ast.AtZone, scope: Scope) -> Sql:
    operand = convert(state.value(node.operand, scope), "tz", node.pos)
    kind = SqlType(
        OraType.TIMESTAMP_TZ, scale=operand.type.scale if operand.type.scale is not None else 9
    )
    if node.zone is None:
        return Sql(f"o_at_local({operand.text})", kind, operand.nullable)
    zone = convert(state.value(node.zone, scope), "text", node.pos)
    return Sql(f"o_at_zone({operand.text}, {zone.text})", kind)

    # --- conditions -------------------------------------------------------------------------------


def text_literal(text: str, own: CharacterSet, *, national: bool = False) -> Sql:
    """A text literal; the empty one is NULL."""
    if not text:
        return Sql("NULL", types.char(1, 0), constant=True)
    size = len(own.encode(text))
    return Sql(
        quoted(text),
        types.char(size, len(text), 2 if national else 1),
        nullable=False,
        constant=True,
    )


def _constant(value: int) -> Sql:
    return Sql(blob(numbers.encode(value)), types.NUMBER, nullable=False, constant=True)


def _number(node: ast.Number) -> Sql:
    text = node.text
    if text[-1] in "dD":
        packed, kind = double_from_float(float(text[:-1])), types.DOUBLE
    elif text[-1] in "fF":
        packed, kind = binary_float_from_float(float(text[:-1])), types.FLOAT
    else:
        packed, kind = number_from_text(text), types.NUMBER
    return Sql(blob(packed), kind, nullable=False, constant=True)


def _rowscn(source: Source) -> Sql:
    return Sql(f"o_rowscn({source.rowscn})", types.NUMBER)
