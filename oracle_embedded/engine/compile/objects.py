"""How do constructors, attributes and elements of objects become SQLite SQL?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.conversions import cast, convert
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.compile.scopes import Scope, Source, SourceColumn, resolve
from oracle_embedded.engine.datatypes.types import TEXT, UNTOLD, SqlType
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ast

_ARGUMENTS_MAX = 120
"""Arguments of one SQLite function; a longer collection is made of parts."""


def construct(state: Compilation, node: ast.Call, kind: SqlType, scope: Scope) -> Sql:
    """A call of a type's constructor.

    Raises:
        OracleError: ORA-02315 for another number of attributes, ORA-22909 for too many elements of
            a VARRAY.
    """
    user = kind.user
    assert user is not None
    if user.element is None:
        kinds = [item for _, item in user.attributes]
        if len(node.args) != len(kinds):
            raise OracleError(2315, "incorrect number of arguments for default constructor", node.pos)  # fmt: skip
    else:
        kinds = [user.element] * len(node.args)
        if user.limit is not None and len(kinds) > user.limit:
            raise OracleError(22909, "exceeded maximum VARRAY limit", node.pos)
    parts = [
        assignable(state.value(argument, scope), wanted, node.pos).text
        for argument, wanted in zip(node.args, kinds, strict=True)
    ]
    texts = [
        f"o_object({', '.join(parts[at : at + _ARGUMENTS_MAX])})"
        for at in range(0, max(len(parts), 1), _ARGUMENTS_MAX)
    ]
    text = texts[0] if len(texts) == 1 else f"o_joined({', '.join(texts)})"
    return Sql(text, kind, nullable=False)


def assignable(value: Sql, wanted: SqlType, pos: int = 0) -> Sql:
    """A value as an attribute, an element or a column of a type holds it.

    Raises:
        OracleError: ORA-00932 for another type of objects, and where there is no conversion.
    """
    if value.type is UNTOLD and wanted.family == "object":
        return Sql(value.text, wanted)
    converted = convert(value, wanted.family, pos)
    if wanted.family == "object":
        user = value.type.user
        if value.family == "object" and user is not None and user != wanted.user:
            raise ora(932, _name(wanted), _name(value.type), offset=pos)
        return Sql(converted.text, wanted, value.nullable)
    if wanted.family == "text":
        characters = wanted.char_length if wanted.char_used == "C" else 0
        text = f"o_fit_text({converted.text}, {characters}, {wanted.length}, {int(wanted.is_char)}, {wanted.form or 1})"
        return Sql(text, wanted, value.nullable)
    if wanted.family == "raw":
        return Sql(f"o_fit_raw({converted.text}, {wanted.length})", wanted, value.nullable)
    if wanted.family in ("clob", "blob"):
        return converted
    return cast(converted, wanted, pos)


def _name(kind: SqlType) -> str:
    return "UDT" if kind.user is None else f"{kind.user.owner}.{kind.user.name}"


def attribute(node: ast.Column, scope: Scope) -> Sql | None:
    """An attribute of an object column, which its table's alias qualifies; None if the name means
    something else."""
    for length in range(len(node.name) - 1, 1, -1):
        found = resolve(ast.Column(node.name[:length], pos=node.pos), scope)
        if found is not None and found.family == "object":
            for name in node.name[length:]:
                found = _attribute_of(found, name, node.pos)
            return found
    return None


def _attribute_of(value: Sql, name: str, pos: int) -> Sql:
    attributes = () if value.type.user is None else value.type.user.attributes
    for place, (known, kind) in enumerate(attributes):
        if known == name:
            return part(f"o_part({value.text}, {place})", kind)
    raise ora(904, f'"{name}"', offset=pos)


def part(text: str, kind: SqlType) -> Sql:
    """A part of an image in the form in which SQLite has its family."""
    if kind.family in ("text", "clob"):
        text = f"CAST({text} AS TEXT)"
    return Sql(text, kind)


def elements_source(
    state: Compilation, item: ast.FromCollection, scope: Scope
) -> tuple[Source, str]:
    """TABLE(collection): a row per element. Its columns are the attributes of objects, or
    COLUMN_VALUE.

    Raises:
        OracleError: ORA-22905 for what is no collection.
    """
    alias = state.new_alias()
    operand = state.value(item.operand, scope)
    element = None if operand.type.user is None else operand.type.user.element
    if element is None and state.bind_types is None and isinstance(item.operand, ast.Bind):
        element = TEXT  # only described: the bind's type comes with its value
    if element is None:
        raise OracleError(22905, "cannot access rows from a non-nested table item", item.pos)
    value = f"o_unhex({alias}.value)"
    columns: dict[str, SourceColumn] = {}
    if element.user is not None and element.user.element is None:
        for place, (name, kind) in enumerate(element.user.attributes):
            columns[name] = SourceColumn(name, part(f"o_part({value}, {place})", kind).text, kind)
    else:
        columns["COLUMN_VALUE"] = SourceColumn("COLUMN_VALUE", part(value, element).text, element)
    source = Source(alias, item.alias, None, columns)
    return source, f"json_each(o_elements({operand.text})) {alias}"
