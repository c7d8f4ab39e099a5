"""How are expressions over one given row evaluated?"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from oracle_embedded.api import Value
from oracle_embedded.engine.compile.dml import RowPlan
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.query_run import parameters, translated
from oracle_embedded.engine.storage.rows import Image


def over_row(
    session: SessionState,
    plan: RowPlan,
    texts: frozenset[int],
    rid: int,
    image: Image,
    binds: Sequence[Value],
    ids: Sequence[int],
) -> tuple[Any, ...]:
    """Evaluate a :class:`RowPlan` on the writer's connection."""
    connection = session.database.store.writer
    params = parameters(plan.slots, binds, 0, 0, session.time_zone)
    params.append(rid)
    for internal_id in ids:
        value = image[internal_id]
        params.append(value.decode() if value is not None and internal_id in texts else value)
    try:
        row: tuple[Any, ...] = connection.sqlite.execute(plan.text, params[: plan.count]).fetchone()
    except sqlite3.Error as error:
        raise translated(error, connection) from error
    return row
