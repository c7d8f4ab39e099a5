"""How do function calls become SQLite SQL?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.compile.aggregates import AGGREGATE_NAMES, AggregateCompiler
from oracle_embedded.engine.compile.base import Scope, quoted
from oracle_embedded.engine.compile.expressions import ExpressionCompiler
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.compile.signatures import SIGNATURES, Signature, same_text
from oracle_embedded.engine.datatypes import types
from oracle_embedded.engine.datatypes.types import TEMPORAL, SqlType
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast

_FAMILY_CODES = {
    "T": "text", "N": "number", "D": "date", "S": "timestamp", "Z": "tz", "R": "raw", "O": "rowid", "F": "double",
}  # fmt: skip


class CallCompiler(AggregateCompiler, ExpressionCompiler):
    """Compiles scalar functions; aggregates and windows are the base's."""

    def call(self, node: ast.Call, scope: Scope) -> Sql:
        """A function call.

        Raises:
            OracleError: ORA-00904 for an unknown function, ORA-00909/00938/00939 for the number of arguments.
        """
        name = ".".join(
            node.name[1:]
            if node.name[0] in ("SYS", "STANDARD") and len(node.name) > 1
            else node.name
        )
        if node.named:
            raise unsupported("named arguments in SQL", node.pos)
        if node.window is not None:
            return self.window(name, node, scope)
        if name in AGGREGATE_NAMES:
            return self.aggregate(name, node, scope)
        if node.star or node.distinct or node.within:
            raise ora(904, f'"{name}"', offset=node.pos)
        special = getattr(self, "_fn_" + name.replace(".", "_").lower(), None)
        if special is not None:
            result: Sql = special(node, [self.value(arg, scope) for arg in node.args])
            return result
        signature = SIGNATURES.get(name)
        if signature is None:
            raise ora(904, ".".join(f'"{part}"' for part in node.name), offset=node.pos)
        return self._by_signature(signature, node, [self.value(arg, scope) for arg in node.args])

    def _by_signature(self, signature: Signature, node: ast.Call, args: list[Sql]) -> Sql:
        required, _, optional = signature.codes.partition("?")
        _check_count(node, args, len(required), len(required) + len(optional))
        converted = [
            arg if code == "A" else self.convert(arg, _FAMILY_CODES[code], node.args[at].pos)
            for at, (arg, code) in enumerate(zip(args, required + optional, strict=False))
        ]
        kind = signature.result if isinstance(signature.result, SqlType) else signature.result(args)
        text = f"{signature.function}({', '.join(item.text for item in converted)})"
        nullable = signature.nullable and (
            not converted or any(item.nullable for item in converted) or kind.family == "text"
        )
        return Sql(text, kind, nullable, constant=all(item.constant for item in converted))

    # --- choice ------------------------------------------------------------------------------------------------------

    def _fn_nvl(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 2, 2)
        first, second = self.unify(args, node.pos)
        return Sql(
            f"ifnull({first.text}, {second.text})",
            _varying(first.type),
            second.nullable and first.nullable,
        )

    def _fn_coalesce(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 2, 1000)
        unified = self.unify(args, node.pos, strict=True)
        text = ", ".join(item.text for item in unified)
        return Sql(
            f"coalesce({text})", _varying(unified[0].type), all(item.nullable for item in unified)
        )

    def _fn_nvl2(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 3, 3)
        yes, no = self.unify(args[1:], node.pos)
        text = f"(CASE WHEN {args[0].text} IS NOT NULL THEN {yes.text} ELSE {no.text} END)"
        return Sql(text, _varying(yes.type), yes.nullable or no.nullable)

    def _fn_nullif(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 2, 2)
        test = self.compare("=", args[0], args[1], node.pos)
        return Sql(f"(CASE WHEN {test} THEN NULL ELSE {args[0].text} END)", args[0].type)

    def _fn_decode(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 3, 255)
        subject, rest = args[0], args[1:]
        pairs = [(rest[at], rest[at + 1]) for at in range(0, len(rest) - 1, 2)]
        results = [result for _, result in pairs] + ([rest[-1]] if len(rest) % 2 else [])
        unified = self.unify(results, node.pos)
        family = pairs[0][0].family if pairs[0][0].family != "null" else subject.family
        parts = []
        for (search, _), result in zip(pairs, unified, strict=False):
            if search.family == "null":
                test = f"{subject.text} IS NULL"
            else:
                a, b = (
                    self.convert(subject, family, node.pos),
                    self.convert(search, family, node.pos),
                )
                test = self.compare("=", a, b, node.pos)
                if search.nullable and subject.nullable:
                    test = f"({test} OR ({subject.text} IS NULL AND {search.text} IS NULL))"
            parts.append(f"WHEN {test} THEN {result.text}")
        otherwise = f" ELSE {unified[-1].text}" if len(rest) % 2 else ""
        return Sql(f"(CASE {' '.join(parts)}{otherwise} END)", _varying(unified[0].type))

    def _extreme(self, node: ast.Call, args: list[Sql], function: str) -> Sql:
        _check_count(node, args, 1, 1000)
        unified = self.unify(args, node.pos)
        if len(unified) == 1:
            return unified[0]
        text = f"{function}({', '.join(item.text for item in unified)})"
        return Sql(text, _varying(unified[0].type), any(item.nullable for item in unified))

    def _fn_greatest(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._extreme(node, args, "max")

    def _fn_least(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._extreme(node, args, "min")

    # --- conversions -------------------------------------------------------------------------------------------------

    def _fn_to_char(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 3)
        value = args[0]
        if len(args) == 1:
            if value.family == "clob":
                return Sql(value.text, types.TEXT, value.nullable)
            converted = self.convert(value, "text", node.pos)
            return replace(converted, type=_varying(converted.type))
        if value.family == "text":
            value = self.convert(value, "number", node.pos)
        model = self.convert(args[1], "text", node.pos)
        third = f", {self.convert(args[2], 'text', node.pos).text}" if len(args) == 3 else ""
        if value.family in ("number", "float", "double"):
            number = self.convert(value, "number", node.pos)
            return Sql(f"o_format_number({number.text}, {model.text})", types.varchar(64))
        if value.family in ("ids", "iym"):
            return self.convert(value, "text", node.pos)
        if value.family not in TEMPORAL:
            raise OracleError(1722, "invalid number", node.pos)
        zoned = self.convert(value, "tz") if value.family == "ltz" else value
        return Sql(f"o_format_date({zoned.text}, {model.text}{third})", types.varchar(75))

    def _to_temporal(self, node: ast.Call, args: list[Sql], family: str) -> Sql:
        _check_count(node, args, 1, 3)
        kind = types.family_type(family)
        if args[0].family in TEMPORAL and len(args) == 1:
            return self.convert(args[0], family, node.pos)
        text = self.convert(args[0], "text", node.pos)
        if len(args) == 1:
            return Sql(f"cv_text_{family}({text.text})", kind, text.nullable)
        model = self.convert(args[1], "text", node.pos)
        return Sql(
            f"o_to_{family}({text.text}, {model.text})",
            kind,
            text.nullable or model.nullable,
            constant=text.constant and model.constant,
        )

    def _fn_to_date(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._to_temporal(node, args, "date")

    def _fn_to_timestamp(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._to_temporal(node, args, "timestamp")

    def _fn_to_timestamp_tz(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._to_temporal(node, args, "tz")

    def _fn_to_number(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 3)
        if len(args) == 1 or args[0].family != "text":
            return self.convert(self.numeric(args[0], node.pos), "number", node.pos)
        model = self.convert(args[1], "text", node.pos)
        return Sql(f"o_to_number({args[0].text}, {model.text})", types.NUMBER)

    def _fn_to_binary_double(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 1)
        return self.convert(args[0], "double", node.pos)

    def _fn_to_binary_float(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 1)
        return self.convert(args[0], "float", node.pos)

    def _fn_to_clob(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 2)
        return self.convert(self.convert(args[0], "text", node.pos), "clob", node.pos)

    def _fn_to_nclob(self, node: ast.Call, args: list[Sql]) -> Sql:
        return replace(
            self._fn_to_clob(node, args), type=SqlType(OraType.CLOB, length=4000, form=2)
        )

    def _fn_to_blob(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 2)
        return self.convert(args[0], "blob", node.pos)

    def _fn_to_nchar(self, node: ast.Call, args: list[Sql]) -> Sql:
        converted = self._fn_to_char(node, args)
        length = converted.type.char_length
        return replace(converted, type=types.varchar(length * 2, length, 2))

    def _fn_empty_clob(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 0, 0)
        return Sql("''", types.CLOB, nullable=False)

    def _fn_empty_blob(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 0, 0)
        return Sql("x''", types.BLOB, nullable=False)

    # --- text and numbers with several forms -------------------------------------------------------------------------

    def _fn_trim(self, node: ast.Call, args: list[Sql]) -> Sql:
        side, characters, value = args
        text = self.convert(value, "text", node.pos)
        mark = self.convert(characters, "text", node.pos)
        return Sql(f"o_trim({side.text}, {mark.text}, {text.text})", same_text([value]))

    def _fn_concat(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 2, 2)
        return self.concatenate(args[0], args[1], node.pos)

    def _fn_length(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 1)
        if args[0].family == "blob":
            return Sql(f"o_raw_length({args[0].text})", types.NUMBER)
        return Sql(f"o_length({self.convert(args[0], 'text', node.pos).text})", types.NUMBER)

    def _fn_abs(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._numeric_call(node, args, "o_abs")

    def _fn_floor(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._numeric_call(node, args, "o_floor")

    def _fn_ceil(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._numeric_call(node, args, "o_ceil")

    def _numeric_call(self, node: ast.Call, args: list[Sql], function: str) -> Sql:
        _check_count(node, args, 1, 1)
        value = self.numeric(args[0], node.pos)
        number = self.convert(value, "number", node.pos)
        result = Sql(f"{function}({number.text})", types.NUMBER, value.nullable)
        return self.convert(result, value.family) if value.family != "null" else result

    def _fn_round(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._rounded(node, args, "round")

    def _fn_trunc(self, node: ast.Call, args: list[Sql]) -> Sql:
        return self._rounded(node, args, "trunc")

    def _rounded(self, node: ast.Call, args: list[Sql], function: str) -> Sql:
        _check_count(node, args, 1, 2)
        value = args[0]
        if value.family in TEMPORAL:
            date = self.convert(value, "date", node.pos)
            model = self.convert(args[1], "text", node.pos).text if len(args) == 2 else "'DD'"
            return Sql(f"o_{function}_date({date.text}, {model})", types.DATE, date.nullable)
        number = self.convert(self.numeric(value, node.pos), "number", node.pos)
        places = self.convert(args[1], "number", node.pos).text if len(args) == 2 else "x'80'"
        result = Sql(f"o_{function}({number.text}, {places})", types.NUMBER, number.nullable)
        return (
            self.convert(result, "double")
            if value.family == "double" and len(args) == 1
            else result
        )

    def _fn_extract(self, node: ast.Call, args: list[Sql]) -> Sql:
        field, value = args
        if value.family == "ltz":
            value = self.convert(value, "tz")
        if value.family not in TEMPORAL and value.family not in ("ids", "iym"):
            raise OracleError(30076, "invalid extract field for extract source", node.pos)
        return Sql(f"o_extract({field.text}, {value.text}, {quoted(value.family)})", types.NUMBER)

    def _fn_dump(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 4)
        value = args[0]
        code = {"null": 0}.get(value.family, int(value.type.ora))
        rest = [self.convert(arg, "number", node.pos).text for arg in args[1:]] + ["NULL"] * (
            4 - len(args)
        )
        return Sql(f"o_dump({value.text}, {code}, {', '.join(rest)})", types.TEXT, nullable=False)

    def _fn_vsize(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 1)
        return Sql(f"o_vsize({args[0].text})", types.NUMBER)

    def _fn_ora_hash(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 3)
        rest = [self.convert(arg, "number", node.pos).text for arg in args[1:]] + ["NULL"] * (
            3 - len(args)
        )
        return Sql(f"o_hash({args[0].text}, {', '.join(rest)})", types.NUMBER, nullable=False)

    def _fn_dbms_lob_getlength(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 1)
        return Sql(f"o_lob_length({args[0].text})", types.NUMBER)

    def _fn_dbms_lob_substr(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 1, 3)
        amount = self.convert(args[1], "number", node.pos).text if len(args) > 1 else "x'c3044444'"
        start = self.convert(args[2], "number", node.pos).text if len(args) > 2 else "x'c102'"
        kind = types.RAW if args[0].family in ("blob", "raw") else types.TEXT
        return Sql(f"o_lob_substr({args[0].text}, {amount}, {start})", kind)

    def _fn_dbms_lob_instr(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 2, 4)
        return self._by_signature(SIGNATURES["INSTR"], node, args)

    def _fn_dbms_lob_compare(self, node: ast.Call, args: list[Sql]) -> Sql:
        _check_count(node, args, 2, 2)
        return Sql(f"o_lob_compare({args[0].text}, {args[1].text})", types.NUMBER)


def _varying(kind: SqlType) -> SqlType:
    return types.varchar(kind.length, kind.char_length, kind.form or 1) if kind.is_char else kind


def _check_count(node: ast.Call, args: list[Sql], least: int, most: int) -> None:
    if len(args) < least:
        raise ora(909 if len(args) == 0 or least == most else 938, offset=node.pos)
    if len(args) > most:
        raise ora(939 if most and least != most else 909, offset=node.pos)
