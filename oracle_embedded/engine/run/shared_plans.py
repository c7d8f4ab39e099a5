"""Which plans serve every database? Those of queries on computed views alone: a client asks the
dictionary and V$ views of each database the same things, and a DDL changes nothing of it.

A plan is kept beside what its compilation asked of names. It serves another time where the same
names are nothing but views with the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oracle_embedded.api import VirtualTable
from oracle_embedded.engine.compile.compilation import Environment
from oracle_embedded.engine.compile.plan import Plan

_PLANS_MAX = 2000
_LOOKUPS = ("find", "routine", "user_type", "virtual")


@dataclass(frozen=True, slots=True)
class _Shared:
    """A plan and what was asked for it: the kind of question, its arguments, the answer."""

    plan: Plan
    asked: Sequence[tuple[str, tuple[Any, ...], Any]]

    def of(self, environment: Environment) -> Plan | None:
        """The plan for a database, None where the names mean something else there."""
        views: dict[str, VirtualTable] = {}
        for kind, names, known in self.asked:
            found = getattr(environment, kind)(*names)
            if known is None or found is None:
                if found is not known:
                    return None
            elif found[1] != known[1] or found[0].columns != known[0].columns:
                return None
            else:
                views[known[0].name] = found[0]
        uses = [replace(one, view=views[one.view.name]) for one in self.plan.virtuals]
        return replace(self.plan, virtuals=uses, variants={})


_KEPT: dict[Hashable, _Shared] = {}


def shared_plan(key: Hashable, environment: Environment, compiled: Callable[[], Plan], /) -> Plan:
    """A kept plan, or the one that is compiled now.

    Args:
        key: All that the plan depends on but names: text, types, user, settings.
        environment: Of the session; what is asked of it meanwhile is noted.
        compiled: Compiles the plan in that environment.
    """
    kept = _KEPT.get(key)
    plan = None if kept is None else kept.of(environment)
    if plan is not None:
        return plan
    asked: list[tuple[str, tuple[Any, ...], Any]] = []
    for kind in _LOOKUPS:
        setattr(environment, kind, _noting(kind, getattr(environment, kind), asked))
    plan = compiled()
    if not plan.tables and all(found is None for kind, _, found in asked if kind != "virtual"):
        if len(_KEPT) >= _PLANS_MAX:
            _KEPT.clear()
        _KEPT[key] = _Shared(plan, asked)
    return plan


def _noting(
    kind: str, ask: Callable[..., Any], asked: list[tuple[str, tuple[Any, ...], Any]]
) -> Callable[..., Any]:
    def noted(*names: Any) -> Any:
        found = ask(*names)
        asked.append((kind, names, found))
        return found

    return noted
