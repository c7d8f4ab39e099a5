"""How do function calls become SQLite SQL?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.aggregates import (
    AGGREGATE_NAMES,
    compile_aggregate,
    compile_window,
)
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.compile.functions import FUNCTIONS
from oracle_embedded.engine.compile.objects import construct
from oracle_embedded.engine.compile.plan import Sql, quoted
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.compile.signatures import SIGNATURES, by_signature
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast

_MISSING = frozenset(
    ("JSON_ARRAYAGG", "JSON_OBJECTAGG", "JSON_TRANSFORM", "JSON_MERGEPATCH", "PERCENTILE_CONT", "PERCENTILE_DISC", "XMLAGG")
)  # fmt: skip
_MISSING_PACKAGES = frozenset(("DBMS_ASSERT", "DBMS_XPLAN", "DBMS_CRYPTO", "UTL_FILE", "UTL_HTTP"))
"""Functions and packages that Oracle has, and this database has not."""
_OF_23AI = frozenset({"JSON", "TO_VECTOR", "VECTOR_SERIALIZE"})


def compile_call(state: Compilation, node: ast.Call, scope: Scope) -> Sql:
    """A function call.

    Raises:
        OracleError: ORA-00904 for an unknown function, ORA-00909/00938/00939 for the number of
            arguments.
    """
    name = ".".join(
        node.name[1:] if node.name[0] in ("SYS", "STANDARD") and len(node.name) > 1 else node.name
    )
    if node.window is not None:
        return compile_window(state, name, node, scope)
    if name in AGGREGATE_NAMES:
        return compile_aggregate(state, name, node, scope)
    if node.star or node.distinct or node.within:
        raise _unknown(name, node)
    special, signature = FUNCTIONS.get(name), SIGNATURES.get(name)
    if name in _OF_23AI and not state.environment.is_23ai:
        special = None
    if special is None and signature is None:
        routine = state.routine(node, scope)
        if routine is not None:
            return routine
        kind = state.environment.user_type(node.name)
        if kind is not None:
            return construct(state, node, kind, scope)
    if node.named:
        raise unsupported("named arguments in SQL", node.pos)
    if special is not None:
        return special(node, [state.value(arg, scope) for arg in node.args])
    if signature is None:
        raise _unknown(name, node)
    return by_signature(signature, node, [state.value(arg, scope) for arg in node.args])


def _unknown(name: str, node: ast.Call) -> OracleError:
    """ORA-03001 for what Oracle has and this database has not, ORA-00904 for what is nowhere."""
    if name in _MISSING or name.partition(".")[0] in _MISSING_PACKAGES:
        return unsupported(name, node.pos)
    return ora(904, ".".join(f'"{part}"' for part in node.name), offset=node.pos)


def stored_call(state: Compilation, node: ast.Call, scope: Scope) -> Sql | None:
    """A call of a stored function, for each row; None if there is no such function.

    Raises:
        OracleError: ORA-06553 with PLS-00306 for wrong arguments.
    """
    found = state.environment.routine(node.name)
    if found is None:
        return None
    given = dict(zip(found.parameters, node.args, strict=False)) | dict(node.named)
    wrong = len(node.args) > len(found.parameters) or set(given) - set(found.parameters)
    if wrong or any(name not in given for name in found.parameters[: found.required]):
        raise OracleError(
            6553,
            f"PLS-306: wrong number or types of arguments in call to '{node.name[-1]}'",
            node.pos,
        )
    parts = []
    for name, kind in zip(found.parameters, found.types, strict=True):
        if name in given:
            value = convert(state.value(given[name], scope), kind.family, node.pos)
            parts += [quoted(name), value.text]
    arguments = ", ".join([quoted(".".join(found.name)), *parts])
    return Sql(f"o_stored({arguments})", found.returns)
