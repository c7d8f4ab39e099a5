"""Which Python functions serve SQLite statements, and how do they get there?

Names start with ``o_``. Unless declared otherwise a function gives NULL when an argument is NULL,
is deterministic within a statement, and sees text as ``str`` and everything else as ``bytes`` in
Oracle's encoding.
"""

from __future__ import annotations

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
CollationKey = Callable[[CallContext, str], bytes]
COLLATIONS: dict[str, CollationKey] = {}
"""Orders of texts that are not that of their code points: what gives the bytes by which one is
ordered."""


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
