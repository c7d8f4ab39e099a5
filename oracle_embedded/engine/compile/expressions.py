"""How do expressions and conditions become SQLite SQL?"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.compile.base import Scope, blob, quoted
from oracle_embedded.engine.compile.conditions import NUMERIC_RANK, ZONED, ConditionCompiler
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.datatypes import numbers, types
from oracle_embedded.engine.datatypes.literals import interval_literal, temporal_literal
from oracle_embedded.engine.datatypes.types import FAMILY_NAMES, TEMPORAL, SqlType
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.values import (
    binary_float_from_float,
    double_from_float,
    number_from_text,
)

if TYPE_CHECKING:
    from oracle_embedded.engine.compile.base import Source

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


class ExpressionCompiler(ConditionCompiler):
    """Compiles values (``value``) and conditions (``condition``)."""

    # --- supplied by subclasses --------------------------------------------------------------------------------------

    @abstractmethod
    def call(self, node: ast.Call, scope: Scope) -> Sql:
        """A function call."""

    # --- values ------------------------------------------------------------------------------------------------------

    def value(self, node: ast.Expr, scope: Scope) -> Sql:
        """Compile an expression."""
        match node:
            case ast.Column():
                return self._column(node, scope)
            case ast.Bind():
                return self._bind(node)
            case ast.Null():
                return Sql("NULL", types.NULL, constant=True)
            case ast.Number():
                return _number(node)
            case ast.String():
                return text_literal(node.text, national=node.national)
            case ast.Temporal():
                packed, kind = temporal_literal(node.kind, node.text, node.pos)
                return self._temporal(packed, kind)
            case ast.Interval():
                packed, kind = interval_literal(node.text, node.first, node.last, node.pos)
                return Sql(blob(packed), kind, nullable=False, constant=True)
            case ast.Binary():
                return self._binary(node, scope)
            case ast.Unary():
                return self._unary(node, scope)
            case ast.Case():
                return self._case(node, scope)
            case ast.Cast():
                return self.cast(self.value(node.operand, scope), node.type, node.pos)
            case ast.Scalar():
                return self._scalar(node, scope)
            case ast.AtZone():
                return self._at_zone(node, scope)
            case ast.Call():
                return self.call(node, scope)
            case ast.Row():
                raise ora(907, offset=node.pos)
            case ast.Default():
                raise ora(936, offset=node.pos)
        raise ora(936, offset=node.pos)

    def _temporal(self, packed: bytes, kind: SqlType) -> Sql:
        return Sql(blob(packed), kind, nullable=False, constant=True)

    def _bind(self, node: ast.Bind) -> Sql:
        kind = types.varchar(4000)
        if self.bind_types is not None:
            if node.index >= len(self.bind_types):
                raise ora(1008, offset=node.pos)
            kind = self.bind_types[node.index]
        return Sql(self.parameter(node.index, kind), kind, constant=True)

    def _column(self, node: ast.Column, scope: Scope) -> Sql:
        found = self.resolve(node, scope)
        if found is not None:
            return found
        pseudo = self._pseudo(node, scope)
        if pseudo is not None:
            return pseudo
        printed = ".".join(f'"{part}"' for part in node.name)
        raise ora(904, printed, offset=node.pos)

    def variable(self, _name: str) -> Sql | None:
        """A PL/SQL variable; SQL outside of blocks has none."""
        return None

    def _pseudo(self, node: ast.Column, scope: Scope) -> Sql | None:
        *qualifier, name = node.name
        variable = None if qualifier else self.variable(name)
        if variable is not None:
            return variable
        if name == "ROWID" or name == "ORA_ROWSCN":
            source = self.rowid_source(tuple(qualifier), scope, node.pos)
            if source is None:
                return None
            return self.rowid_of(source) if name == "ROWID" else _rowscn(source)
        if name in ("NEXTVAL", "CURRVAL") and qualifier:
            return self.sequence_value(tuple(qualifier), name, node.pos)
        plain = node.name[1:] if node.name[0] == "SYS" else node.name
        if len(plain) == 2 and (plain[0], plain[1]) in self.environment.constants:
            return _constant(self.environment.constants[plain[0], plain[1]])
        if qualifier:
            if qualifier in (["SYS"], ["STANDARD"]) or len(qualifier) <= 2:
                return self._call_without_arguments(node, scope)
            return None
        if name == "ROWNUM":
            if scope.rownum is None:
                raise unsupported("ROWNUM in this place", node.pos)
            return Sql(scope.rownum, types.NUMBER, nullable=False)
        if name == "LEVEL" and scope.level is not None:
            return Sql(scope.level, types.NUMBER, nullable=False)
        return self._call_without_arguments(node, scope)

    def _call_without_arguments(self, node: ast.Column, scope: Scope) -> Sql | None:
        try:
            return self.call(ast.Call(node.name, (), pos=node.pos), scope)
        except OracleError as error:
            if error.code in (904, 909, 938):
                return None
            raise

    def sequence_value(self, qualifier: tuple[str, ...], name: str, pos: int) -> Sql:
        """NEXTVAL or CURRVAL of a sequence."""
        from oracle_embedded.engine.storage.catalog import SequenceDef

        owner = qualifier[0] if len(qualifier) == 2 else self.environment.schema
        found = self.environment.find(owner, qualifier[-1])
        if not isinstance(found, SequenceDef):
            raise ora(2289, offset=pos)
        function = "o_nextval" if name == "NEXTVAL" else "o_currval"
        return Sql(f"{function}({found.object_id})", types.NUMBER, nullable=False)

    def rowid_of(self, source: Source) -> Sql:
        """The ROWID of a source's row."""
        if source.use is None:
            return Sql(source.rowid or "NULL", types.ROWID)
        text = f"o_rowid({source.use.table.data_object_id}, {source.rowid})"
        return Sql(
            text, types.ROWID, nullable=False, base=source.use, is_rowid=True, column=source.rowid
        )

    def _unary(self, node: ast.Unary, scope: Scope) -> Sql:
        operand = self.value(node.operand, scope)
        if operand.family in ("ids", "iym"):
            if node.op == "+":
                return operand
            return Sql(
                f"o_interval_scale({operand.text}, {blob(numbers.encode(-1))}, 0)", operand.type
            )
        operand = self.numeric(operand, node.pos)
        if node.op == "+":
            return operand
        function = "o_dneg" if operand.family == "double" else "o_neg"
        kind = types.NUMBER if operand.family == "number" else types.DOUBLE
        return Sql(f"{function}({operand.text})", kind, operand.nullable, constant=operand.constant)

    def _binary(self, node: ast.Binary, scope: Scope) -> Sql:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if node.op == "||":
            return self.concatenate(left, right, node.pos)
        constant = left.constant and right.constant
        result = self._date_arithmetic(node, left, right)
        if result is None:
            left, right = self.numeric(left, node.left.pos), self.numeric(right, node.right.pos)
            prefix, kind = "o_", types.NUMBER
            if "double" in (left.family, right.family):
                left, right = self.convert(left, "double"), self.convert(right, "double")
                prefix, kind = "o_d", types.DOUBLE
            text = f"{prefix}{_ARITHMETIC[node.op]}({left.text}, {right.text})"
            result = Sql(text, kind, left.nullable or right.nullable)
        result.constant = constant
        return result

    def _date_arithmetic(self, node: ast.Binary, left: Sql, right: Sql) -> Sql | None:
        lf, rf = left.family, right.family
        intervals = ("ids", "iym")
        sign = {"+": 1, "-": -1}.get(node.op)
        if (
            lf not in TEMPORAL
            and lf not in intervals
            and rf not in TEMPORAL
            and rf not in intervals
        ):
            return None
        if lf in TEMPORAL and rf in TEMPORAL:
            if node.op != "-":
                raise OracleError(975, "date + date not allowed", node.pos)
            if lf == rf == "date":
                return Sql(f"o_date_diff({left.text}, {right.text})", types.NUMBER)
            target = "tz" if lf in ZONED or rf in ZONED else "timestamp"
            left, right = self.convert(left, target), self.convert(right, target)
            return Sql(f"o_ts_diff({left.text}, {right.text})", types.INTERVAL_DS)
        if sign is not None and lf in TEMPORAL and rf in intervals:
            return Sql(f"o_plus_interval({left.text}, {right.text}, {sign})", left.type)
        if sign == 1 and lf in intervals and rf in TEMPORAL:
            return Sql(f"o_plus_interval({right.text}, {left.text}, 1)", right.type)
        if sign is not None and lf in TEMPORAL:
            days = self.convert(right, "number", node.right.pos)
            date = self.convert(left, "date")
            return Sql(f"o_plus_days({date.text}, {days.text}, {sign})", types.DATE)
        if sign == 1 and rf in TEMPORAL:
            days = self.convert(left, "number", node.left.pos)
            date = self.convert(right, "date")
            return Sql(f"o_plus_days({date.text}, {days.text}, 1)", types.DATE)
        if sign is not None and lf == rf:
            return Sql(f"o_interval_add({left.text}, {right.text}, {sign})", left.type)
        if node.op == "*" and lf in intervals:
            return Sql(
                f"o_interval_scale({left.text}, {self.convert(right, 'number').text}, 0)", left.type
            )
        if node.op == "*" and rf in intervals:
            return Sql(
                f"o_interval_scale({right.text}, {self.convert(left, 'number').text}, 0)",
                right.type,
            )
        if node.op == "/" and lf in intervals:
            return Sql(
                f"o_interval_scale({left.text}, {self.convert(right, 'number').text}, 1)", left.type
            )
        raise ora(932, "NUMBER", FAMILY_NAMES[lf if lf in TEMPORAL else rf], offset=node.pos)

    def concatenate(self, left: Sql, right: Sql, pos: int = 0) -> Sql:
        """``||``: a NULL counts as nothing."""
        if left.family == "raw" and right.family == "raw":
            text = f"o_raw_concat({left.text}, {right.text})"
            return Sql(text, types.raw(left.type.length + right.type.length))
        clob = left.family == "clob" or right.family == "clob"
        national = 2 in (left.type.form, right.type.form)
        lt, rt = self.convert(left, "text", pos), self.convert(right, "text", pos)
        length, characters = (
            lt.type.length + rt.type.length,
            lt.type.char_length + rt.type.char_length,
        )
        kind = (
            types.CLOB
            if clob
            else types.varchar(min(length, 4000), min(characters, 4000), 2 if national else 1)
        )
        if left.type.is_char and right.type.is_char and not clob and length <= 2000:
            kind = types.char(length, characters, kind.form)
        nullable = left.nullable and right.nullable
        parts = [
            part.text if not part.nullable else f"ifnull({part.text}, '')" for part in (lt, rt)
        ]
        text = f"({parts[0]} || {parts[1]})"
        return Sql(
            f"nullif({text}, '')" if nullable else text,
            kind,
            nullable,
            constant=left.constant and right.constant,
        )

    def _case(self, node: ast.Case, scope: Scope) -> Sql:
        results = [self.value(then, scope) for _, then in node.whens]
        if node.otherwise is not None:
            results.append(self.value(node.otherwise, scope))
        unified = self.unify(results, node.pos, strict=True)
        parts = []
        for (when, _), then in zip(node.whens, unified, strict=False):
            condition = (
                when if node.operand is None else ast.Compare("=", node.operand, when, pos=when.pos)
            )
            parts.append(f"WHEN {self.condition(condition, scope)} THEN {then.text}")
        otherwise = f" ELSE {unified[-1].text}" if node.otherwise is not None else ""
        nullable = node.otherwise is None or any(item.nullable for item in unified)
        return Sql(f"(CASE {' '.join(parts)}{otherwise} END)", unified[0].type, nullable)

    def unify(self, values: list[Sql], pos: int, *, strict: bool = False) -> list[Sql]:
        """Give several values one type: that of the first which has one, wide enough for all.

        With ``strict`` (CASE) families must be equal but for numbers; otherwise the later ones are converted.
        """
        typed = [value for value in values if value.family != "null"]
        if not typed:
            return values
        family = typed[0].family
        numbers_only = all(value.family in NUMERIC_RANK for value in typed)
        if numbers_only:
            family = max((value.family for value in typed), key=lambda name: NUMERIC_RANK[name])
        elif family == "text" and any(value.family == "clob" for value in typed):
            family = "clob"
        elif strict and any(value.family != family for value in typed):
            odd = next(value for value in typed if value.family != family)
            raise ora(932, FAMILY_NAMES[family], FAMILY_NAMES[odd.family], offset=pos)
        converted = [self.convert(value, family, pos) for value in values]
        kind = common_type(
            family, [value.type for value in converted if value.type is not types.NULL]
        )
        return [
            Sql(value.text, kind, value.nullable, constant=value.constant) for value in converted
        ]

    def _scalar(self, node: ast.Scalar, scope: Scope) -> Sql:
        text, columns, single = self.subquery(node.query, scope)
        if len(columns) != 1:
            raise ora(913, offset=node.pos)
        kind = columns[0].type
        if single:
            return Sql(f"({text})", kind)
        alias = self.new_alias()
        return Sql(f"(SELECT o_single({alias}.c1) FROM ({text}) {alias})", kind)

    def _at_zone(self, node: ast.AtZone, scope: Scope) -> Sql:
        operand = self.convert(self.value(node.operand, scope), "tz", node.pos)
        kind = SqlType(
            OraType.TIMESTAMP_TZ, scale=operand.type.scale if operand.type.scale is not None else 9
        )
        if node.zone is None:
            return Sql(f"o_at_local({operand.text})", kind, operand.nullable)
        zone = self.convert(self.value(node.zone, scope), "text", node.pos)
        return Sql(f"o_at_zone({operand.text}, {zone.text})", kind)

    def cast(self, value: Sql, kind: SqlType, pos: int = 0) -> Sql:
        """CAST: conversion, then fitting into the type's size."""
        converted = self.convert(value, kind.family, pos)
        text = converted.text
        match kind.family:
            case "number" if kind.float_bits is not None:
                text = f"o_fit_float({text}, {kind.float_bits})"
            case "number" if kind.precision is not None or kind.scale is not None:
                precision = "NULL" if kind.precision is None else kind.precision
                text = (
                    f"o_fit({text}, {precision}, {kind.scale or 0})"
                    if kind.precision
                    else f"o_fit({text}, 38, {kind.scale or 0})"
                )
            case "text":
                text = (
                    f"o_cast_text({text}, {kind.char_length}, {kind.length}, {int(kind.is_char)})"
                )
            case "timestamp" | "tz" | "ltz":
                text = f"o_fit_timestamp({text}, {kind.scale if kind.scale is not None else 9})"
            case "clob" | "blob":
                raise ora(932, "CHAR", FAMILY_NAMES[kind.family], offset=pos)
        return Sql(text, kind, converted.nullable, constant=converted.constant)

    # --- conditions --------------------------------------------------------------------------------------------------


def common_type(family: str, kinds: list[SqlType]) -> SqlType:
    """The type that holds values of all these types of one family."""
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if family == "text":
        length = max(kind.length for kind in kinds)
        characters = max(kind.char_length for kind in kinds)
        form = max(kind.form for kind in kinds)
        if all(kind.is_char for kind in kinds) and len({kind.char_length for kind in kinds}) == 1:
            return types.char(length, characters, form)
        return types.varchar(length, characters, form)
    if family == "raw":
        return types.raw(max(kind.length for kind in kinds))
    return types.family_type(family)


def text_literal(text: str, *, national: bool = False) -> Sql:
    """A text literal; the empty one is NULL."""
    if not text:
        return Sql("NULL", types.char(1, 0), constant=True)
    size = len(text) * 2 if national else len(text.encode())
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
