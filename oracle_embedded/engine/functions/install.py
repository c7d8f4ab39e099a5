"""How do the Python functions get into a SQLite connection?"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from oracle_embedded.engine.functions import (
    convert,
    dates,
    documents,
    mined,
    misc,
    numbers,
    objects,
    redaction,
    sorting,
    text,
)
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.registry import (
    AGGREGATES,
    COLLATIONS,
    REGISTRY,
    WINDOWS,
    CollationKey,
    Implementation,
    Registered,
)

DECLARING = (convert, dates, documents, mined, misc, numbers, objects, redaction, sorting, text)
"""The modules that fill the registry."""


def _bound(function: Registered, context: CallContext) -> Implementation:
    run = function.run
    with_context, takes_nulls = function.with_context, function.takes_nulls

    def call(*values: Any) -> Any:
        if not takes_nulls and None in values:
            return None
        try:
            return run(context, *values) if with_context else run(*values)
        except Exception as error:
            context.error = error
            raise

    return call


def install(connection: sqlite3.Connection, context: CallContext) -> None:
    """Register everything on a connection."""
    for function in REGISTRY.values():
        connection.create_function(
            function.name,
            function.arguments,
            _bound(function, context),
            deterministic=function.deterministic,
        )
    for name, key in COLLATIONS.items():
        connection.create_collation(name, _collation(key, context))
    for name, (cls, arguments) in AGGREGATES.items():
        connection.create_aggregate(name, arguments, _with_error(cls, context))
    for name, (cls, arguments) in WINDOWS.items():
        connection.create_window_function(name, arguments, _with_error(cls, context))


def _collation(key: CollationKey, context: CallContext) -> Callable[[str, str], int]:
    def compare(left: str, right: str) -> int:
        a, b = key(context, left), key(context, right)
        return (a > b) - (a < b)

    return compare


def _with_error(cls: type, context: CallContext) -> type:
    """The aggregate, keeping its error where the statement finds it."""

    def guarded(name: str) -> Implementation:
        method = getattr(cls, name)

        def call(self: object, *values: Any) -> Any:
            try:
                return method(self, *values)
            except Exception as error:
                context.error = error
                raise

        return call

    methods = [name for name in ("step", "finalize", "value", "inverse") if hasattr(cls, name)]
    return type(cls.__name__, (cls,), {name: guarded(name) for name in methods})
