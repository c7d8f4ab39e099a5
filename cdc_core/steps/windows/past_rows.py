"""How are single rows of a table read as of many commits, whatever DDL comes meanwhile?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_core.errors import AlteredMeanwhileError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.oracle.hidden_rows import seeing_all
from cdc_core.oracle.session import OracleSession
from cdc_core.snapshot.present_names import steady_names
from cdc_core.steps.context import Context

R = TypeVar("R")

ROWS_AT_ONCE = 1000
"""A list of one statement takes no more (ORA-01795)."""
COMMITS_AT_ONCE = 100
VALUES_AT_ONCE = 10
"""Large values of so many rows are held at once; a LOB has to fit into memory anyway."""
_ATTEMPTS = 3
"""How often rows are asked for of a table whose columns get other names meanwhile."""


def attempts() -> Retrying:
    """Reads again where a table's columns got other names meanwhile (:func:`reading_past`)."""
    return Retrying(
        retry=retry_if_exception_type(AlteredMeanwhileError),
        stop=stop_after_attempt(_ATTEMPTS),
        reraise=True,
    )


@contextmanager
def reading_past(
    ctx: Context, table: TableId, what: str
) -> Iterator[tuple[OracleSession, Sequence[str]]]:
    """For a block that reads ``what`` of a table: a session that sees all of its rows, and the
    names that its columns have now.

    Raises:
        AlteredMeanwhileError: They have other names behind the block.
    """
    hint = "Capture the window again."
    with (
        ctx.database.session() as session,
        seeing_all(session, table),
        steady_names(session, table, what=what, hint=hint) as present,
    ):
        yield session, present


def parts_of(rows: Iterable[R], scn_of: Callable[[R], int]) -> Iterator[list[tuple[Scn, list[R]]]]:
    """Rows, which are ordered by their commits, as the parts of one statement after the other:
    each as of one commit, of at most :data:`ROWS_AT_ONCE` rows and :data:`COMMITS_AT_ONCE` commits
    in all."""
    parts: list[tuple[Scn, list[R]]] = []
    room = ROWS_AT_ONCE
    for scn, own in groupby(rows, key=scn_of):
        left = list(own)
        while left:
            if not room or len(parts) == COMMITS_AT_ONCE:
                yield parts
                parts, room = [], ROWS_AT_ONCE
            part, left = left[:room], left[room:]
            parts.append((Scn(scn), part))
            room -= len(part)
    if parts:
        yield parts
