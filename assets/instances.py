"""Which of Dagster's storages does a tick ask?

Dagster opens its instance anew for each tick that asks for it, which costs as much as all that a
tick of an idle source does otherwise. A code location is told of one instance all its life, so it
is opened once.
"""

from __future__ import annotations

from threading import Lock

import dagster as dg

_opened: list[tuple[object, dg.DagsterInstance]] = []
_lock = Lock()


def instance_of(
    context: dg.SensorEvaluationContext | dg.ScheduleEvaluationContext,
) -> dg.DagsterInstance:
    """The instance of a tick, opened by the first one."""
    ref = context.instance_ref
    if ref is None:
        return context.instance
    with _lock:
        if not _opened or _opened[0][0] != ref:
            _opened[:] = [(ref, dg.DagsterInstance.from_ref(ref))]
        # The context opens one for its own log, unless it has one.
        context._instance = _opened[0][1]
        return _opened[0][1]
