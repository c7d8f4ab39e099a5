"""How do function calls become SQLite SQL?"""

from __future__ import annotations

from oracle_embedded.engine.compile.aggregates import (
    AGGREGATE_NAMES,
    compile_aggregate,
    compile_window,
)
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.functions import FUNCTIONS
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.compile.signatures import SIGNATURES, by_signature
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast


def compile_call(state: Compilation, node: ast.Call, scope: Scope) -> Sql:
    """A function call.

    Raises:
        OracleError: ORA-00904 for an unknown function, ORA-00909/00938/00939 for the number of arguments.
    """
    name = ".".join(
        node.name[1:] if node.name[0] in ("SYS", "STANDARD") and len(node.name) > 1 else node.name
    )
    if node.named:
        raise unsupported("named arguments in SQL", node.pos)
    if node.window is not None:
        return compile_window(state, name, node, scope)
    if name in AGGREGATE_NAMES:
        return compile_aggregate(state, name, node, scope)
    if node.star or node.distinct or node.within:
        raise ora(904, f'"{name}"', offset=node.pos)
    special, signature = FUNCTIONS.get(name), SIGNATURES.get(name)
    if special is not None:
        return special(node, [state.value(arg, scope) for arg in node.args])
    if signature is None:
        raise ora(904, ".".join(f'"{part}"' for part in node.name), offset=node.pos)
    return by_signature(signature, node, [state.value(arg, scope) for arg in node.args])
