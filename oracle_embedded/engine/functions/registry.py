"""Which Python functions serve SQLite statements, and how do they get there?

Names start with ``o_``. Unless declared otherwise a function gives NULL when an argument is NULL, is deterministic
within a statement, and sees text as ``str`` and everything else as ``bytes`` in Oracle's encoding.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oracle_embedded.engine.functions.context import CallContext

Implementation = Callable[..., Any]
Entries = tuple[tuple[str, Implementation, int], ...]
Overloads = tuple[tuple[str, Implementation, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Registered:
    """One function as SQLite gets it; ``with_context`` passes the connection's context first."""

    name: str
    run: Implementation
    arguments: int
    with_context: bool
    takes_nulls: bool
    deterministic: bool


REGISTRY: dict[tuple[str, int], Registered] = {}
AGGREGATES: dict[str, tuple[type, int]] = {}
WINDOWS: dict[str, tuple[type, int]] = {}


def register(
    name: str,
    run: Implementation,
    arguments: int,
    *,
    with_context: bool = False,
    takes_nulls: bool = False,
    deterministic: bool = True,
) -> None:
    """Declare a function; ``arguments`` -1 accepts any number."""
    REGISTRY[name, arguments] = Registered(
        name, run, arguments, with_context, takes_nulls, deterministic
    )


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
    for name, (cls, arguments) in AGGREGATES.items():
        connection.create_aggregate(name, arguments, _with_error(cls, context))
    for name, (cls, arguments) in WINDOWS.items():
        connection.create_window_function(name, arguments, _with_error(cls, context))


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
