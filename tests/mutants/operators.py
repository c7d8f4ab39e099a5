"""Which small changes may any function meet? Made on its syntax tree, whatever it is about.

The libraries for this (cosmic-ray, mutmut) choose modules, not functions, drop no statements, and
bring a runner, a database or a terminal interface of their own, with twelve to twenty packages;
what is wanted of them is this module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.mutants.edits import Change, Definition, is_docstring, with_operator

NEGATED = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.GtE: "<",
    ast.Gt: "<=",
    ast.LtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
SHIFTED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
OTHER = {ast.Add: "-", ast.Sub: "+", ast.And: "or", ast.Or: "and", ast.BitAnd: "|", ast.BitOr: "&"}
EMPTY = {
    "str": "''",
    "bytes": "b''",
    "bool": "False",
    "int": "0",
    "list": "[]",
    "tuple": "()",
    "dict": "{}",
    "set": "set()",
    "frozenset": "frozenset()",
    "Sequence": "()",
    "Mapping": "{}",
}
"""What a function of this type returns when it returns nothing."""


def changes(definition: Definition) -> Iterator[tuple[str, Change]]:
    """What is done, as ``before -> after``, and the change; in the order of the source.

    Left alone: texts of errors, annotations, defaults of arguments, asserts.
    """
    returns = definition.returns if isinstance(definition, ast.FunctionDef) else None
    body = [definition] if isinstance(definition, ast.Assign | ast.AnnAssign) else definition.body
    for node in _code(body):
        for one in node.ifs if isinstance(node, ast.comprehension) else ():
            yield f"if {ast.unparse(one)} -> if True", Change(((one, ast.Constant(True)),))
        for after in filter(None, _afters(node, returns)):
            before = ast.unparse(node)
            text = f"{before.splitlines()[0]} -> {ast.unparse(after).splitlines()[0]}"
            yield text, Change(((node, after),))


def _code(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Nodes that do something, parents first."""
    for node in nodes:
        if isinstance(node, ast.Assert) or is_docstring(node):
            continue
        yield node
        if isinstance(node, ast.Raise):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _code(node.body)
            continue
        fields = (value for name, value in ast.iter_fields(node) if name != "annotation")
        for value in fields:
            inner = value if isinstance(value, list) else [value]
            yield from _code([one for one in inner if isinstance(one, ast.AST)])


def _afters(node: ast.AST, returns: ast.expr | None) -> Iterator[ast.AST | None]:
    match node:
        case ast.Compare(ops=[op]):
            yield with_operator(node, NEGATED[type(op)])
            if shifted := SHIFTED.get(type(op)):
                yield with_operator(node, shifted)
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if other := OTHER.get(type(op)):
            yield with_operator(node, other)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            yield ast.Constant(number + 1)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != _empty(returns):
            yield ast.parse(f"return {_empty(returns)}").body[0]
        case (
            ast.Expr(value=ast.Call())
            | ast.Raise()
            | ast.AugAssign()
            | ast.Continue()
            | ast.Break()
        ):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.If() | ast.IfExp():
            for fixed in (True, False):
                yield _with_test(node, fixed)


def _with_test(node: ast.If | ast.IfExp, value: bool) -> ast.AST:
    test = ast.Constant(value)
    if isinstance(node, ast.If):
        return ast.If(test, node.body, node.orelse)
    return ast.IfExp(test, node.body, node.orelse)


def _empty(returns: ast.expr | None) -> str:
    text = ast.unparse(returns) if returns is not None else "None"
    return "None" if "None" in text else EMPTY.get(text.partition("[")[0], "None")
