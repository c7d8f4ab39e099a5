"""How does an edit find its place in a function, however the function is worded and moved?

An edit belongs to a definition (``module:Class.method``, ``module:function``, ``module:CONSTANT``)
and works on its syntax tree. *Words* are names, or words of a text, that the place holds: the
smallest place that holds them all is meant, and there must be exactly one.

============  =============================  ===================================================
form          value                          what the definition does then
============  =============================  ===================================================
``never``     words                          a condition is False: of an if, a filter, a
                                             comparison, a part of and/or, what ``not`` negates
``always``    words                          a condition is True
``drop``      words                          a statement does nothing; of a ``with``, the body
                                             alone is left
``call``      words, an expression           a call gives this instead
``returns``   an expression                  the function returns this at once
``operator``  words, an operator             a comparison, a calculation, an and/or has another
``replace``   a piece of code, another one   one is the other, wherever the definition has it
``text``      a part of a text, another one  a text (SQL, mostly) has other words
============  =============================  ===================================================
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FORMS = ("never", "always", "drop", "call", "returns", "operator", "replace", "text")
FOLDERS = ("cdc_core", "diagnosis", "assets", "pipelines", "oracle_embedded", "tests")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
_SIMPLE = (
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.Raise,
    ast.Delete,
    ast.Assert,
    ast.Continue,
    ast.Break,
)


class UnplacedEdit(ValueError):
    """An edit has no place in the sources any more; the message says how to mend the entry."""


@dataclass(frozen=True, slots=True)
class Place:
    """A definition: where it is, its syntax tree, and that of its module."""

    path: Path
    name: str
    node: Definition
    module: ast.Module


@dataclass(frozen=True, slots=True)
class Change:
    """Nodes of a tree, and what stands for each."""

    places: tuple[tuple[ast.AST, ast.AST | list[ast.stmt]], ...]

    def of(self, node: ast.AST) -> ast.AST:
        """A copy of a tree with the change."""
        left = {id(old): new for old, new in self.places}
        changed = _rebuilt(node, left)
        assert isinstance(changed, ast.AST)
        assert not left, "one place is inside another"
        return ast.fix_missing_locations(changed)

    @property
    def line(self) -> int:
        """Of the first place."""
        return min(getattr(old, "lineno", 0) for old, _ in self.places)


def find(root: Path, at: str) -> Place:
    """The definition ``module:name``.

    If the module lost it, the only one of its name is meant: in the module under another class or
    without its underscore, or else in another module.

    Raises:
        UnplacedEdit: There is none, or there are several.
    """
    module, _, name = at.partition(":")
    path = root / f"{module.replace('.', '/')}.py"
    known = _definitions(path) if path.is_file() else {}
    if name in known:
        return Place(path, name, known[name], _parsed(path))
    bare = _bare(name)
    found = [(path, other) for other in known if _bare(other) == bare]
    if not found:
        paths = [one for folder in FOLDERS for one in sorted((root / folder).rglob("*.py"))]
        holding = [one for one in paths if bare in one.read_text()]
        found = [(one, other) for one in holding for other in _definitions(one) if other == name]
    if len(found) == 1:
        path, name = found[0]
        return Place(path, name, _definitions(path)[name], _parsed(path))
    if found:
        texts = ", ".join(f"{one.relative_to(root)}:{other}" for one, other in found)
        raise UnplacedEdit(f"{module} has no {name}; write `at` with one of {texts}")
    alike = ", ".join(difflib.get_close_matches(name, known)) or "none"
    raise UnplacedEdit(
        f"no module defines {name}, which was in {module} (names like it there: {alike});"
        " write `at` with the definition that does its work now, or delete the entry"
    )


def _bare(name: str) -> str:
    return name.rpartition(".")[2].lstrip("_")


def change_of(place: Place, form: str, value: str | Sequence[str]) -> Change:
    """What an entry's edit does to a definition.

    Raises:
        UnplacedEdit: The definition holds no such place, or several.
    """
    words, new = (value, "") if isinstance(value, str) else value
    node = place.node
    if form == "returns":
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        return Change(
            (
                (node.body[-1], _statement(f"return {words}")),
                *((one, ast.Pass()) for one in node.body[:-1]),
            )
        )
    if form == "replace":
        return _replaced(place, words, new)
    if form == "text":
        docstrings = [one.value for one in ast.walk(node) if isinstance(one, ast.Expr)]
        texts = [
            one
            for one in ast.walk(node)
            if isinstance(one, ast.Constant)
            and isinstance(one.value, str)
            and words in one.value
            and one not in docstrings
        ]
        old = _only(texts, place, f"text with {words!r}")
        return Change(((old, ast.Constant(old.value.replace(words, new))),))
    if form in ("never", "always"):
        old = _smallest(conditions(node), words, place, "condition")
        return Change(((old, ast.Constant(form == "always")),))
    if form == "call":
        calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
        old = _smallest(calls, words, place, "call")
        return Change(((old, ast.parse(new, mode="eval").body),))
    if form == "operator":
        after = {one: with_operator(one, new) for one in ast.walk(node)}
        old = _smallest(iter(one for one in after if after[one]), words, place, "operation")
        return Change(((old, after[old] or old),))
    statements = (
        one
        for one in ast.walk(node)
        if isinstance(one, (*_SIMPLE, ast.With)) and one is not node and not is_docstring(one)
    )
    dropped = _smallest(statements, words, place, "statement")
    left = dropped.body if isinstance(dropped, ast.With) else ast.Pass()
    return Change(((dropped, left),))


def conditions(node: ast.AST) -> Iterator[ast.expr]:
    """What is true or false in a tree: tests, filters, guards, comparisons, operands."""
    for one in ast.walk(node):
        match one:
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                yield one.test
            case ast.comprehension():
                yield from one.ifs
            case ast.match_case() if one.guard is not None:
                yield one.guard
            case ast.BoolOp():
                yield from one.values
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                yield from (one.left, one.right)
            case ast.UnaryOp(op=ast.Not()):
                yield one.operand
            case ast.Compare():
                yield one


def with_operator(node: ast.AST, operator: str) -> ast.expr | ast.stmt | None:
    """An operation with another operator; None for what cannot have it."""
    sample = ast.parse(f"a {operator} b", mode="eval").body
    match node, sample:
        case ast.Compare(), ast.Compare():
            return ast.Compare(node.left, [*sample.ops, *node.ops[1:]], node.comparators)
        case ast.BoolOp(), ast.BoolOp():
            return ast.BoolOp(sample.op, node.values)
        case ast.BinOp(), ast.BinOp():
            return ast.BinOp(node.left, sample.op, node.right)
        case ast.AugAssign(), ast.BinOp():
            return ast.AugAssign(node.target, sample.op, node.value)
    return None


def is_docstring(node: ast.AST) -> bool:
    """Is it a text that stands for itself?"""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _replaced(place: Place, old: str, new: str) -> Change:
    first, after = ast.parse(old).body[0], ast.parse(new).body or [ast.Pass()]
    wanted: ast.AST = first
    stands: ast.AST | list[ast.stmt] = after
    if isinstance(first, ast.Expr) and len(after) == 1 and isinstance(after[0], ast.Expr):
        wanted, stands = first.value, after[0].value
    text = ast.unparse(wanted)
    found = [
        one
        for one in ast.walk(place.node)
        if isinstance(one, type(wanted))
        and not isinstance(getattr(one, "ctx", None), ast.Store)
        and ast.unparse(one) == text
    ]
    if not found:
        raise UnplacedEdit(f"{_where(place)} does not hold the code {old!r} any more")
    return Change(tuple((one, stands) for one in found))


def _smallest(nodes: Iterator[ast.AST], words: str, place: Place, what: str) -> Any:
    wanted = set(words.split())
    holding = list({id(one): one for one in nodes if wanted <= _words(one)}.values())
    ids = {id(one) for one in holding}
    smallest = [
        one
        for one in holding
        if not ids & {id(child) for child in ast.walk(one) if child is not one}
    ]
    return _only(smallest, place, f"{what} with {words!r}")


def _only(found: Sequence[Any], place: Place, what: str) -> Any:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnplacedEdit(f"{_where(place)} has no {what} any more; name what is in its place")
    texts = " | ".join(f"line {one.lineno}: {ast.unparse(one)[:80]}" for one in found)
    raise UnplacedEdit(
        f"{_where(place)} has more than one {what}, add a word that tells one: {texts}"
    )


def _where(place: Place) -> str:
    return f"{place.name} ({place.path.name}:{place.node.lineno})"


def _words(node: ast.AST) -> set[str]:
    """Of a statement with a body, the words of its head."""
    parts = [item.context_expr for item in node.items] if isinstance(node, ast.With) else [node]
    return set(re.findall(r"\w+", " ".join(ast.unparse(one) for one in parts)))


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _rebuilt(node: Any, places: dict[int, ast.AST | list[ast.stmt]]) -> Any:
    """A copy with the new nodes; ``places`` loses those that it has met."""
    if id(node) in places:
        return places.pop(id(node))
    if isinstance(node, list):
        parts = [_rebuilt(one, places) for one in node]
        return [one for part in parts for one in (part if isinstance(part, list) else [part])]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: _rebuilt(value, places) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _definitions(path: Path) -> dict[str, Definition]:
    """By qualified name; of a name that is defined twice, the first."""
    found: dict[str, Definition] = {}

    def note(nodes: Sequence[ast.stmt], prefix: str, *, is_code: bool) -> None:
        for one in nodes:
            match one:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    found.setdefault(prefix + one.name, one)
                    note(
                        one.body, f"{prefix}{one.name}.", is_code=not isinstance(one, ast.ClassDef)
                    )
                case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                    if not is_code and one.value is not None:
                        found.setdefault(prefix + name, one)
                case ast.If() | ast.Try() | ast.With() | ast.For():
                    note([*one.body, *getattr(one, "orelse", [])], prefix, is_code=is_code)

    note(_parsed(path).body, "", is_code=False)
    return found
