"""What is a statement between parsing and running?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oracle_embedded.api import ColumnMeta, StatementKind
from oracle_embedded.engine.compile.dml import DmlPlan
from oracle_embedded.engine.compile.plan import Plan


@dataclass(slots=True)
class PreparedStatement:
    """The engine's :class:`~oracle_embedded.api.Statement`."""

    sql: str
    kind: StatementKind
    node: Any
    bind_names: Sequence[str]
    columns: Sequence[ColumnMeta] = ()
    returning: Sequence[int] = ()
    plans: dict[object, Plan | DmlPlan] = field(default_factory=dict)
    parses: int = 1
    executions: int = 0
    loaded_at: float = 0.0
    active_at: float = 0.0
    """When it was parsed first, and run last; in seconds since 1970."""
