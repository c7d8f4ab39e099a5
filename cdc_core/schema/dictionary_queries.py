"""Which rows of a dictionary view are about some tables?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from cdc_core.model.identifiers import TableId

LIST_MAX = 1000
"""So many values may stand in one IN list (ORA-01795); since 23ai 65,535.

Source: Oracle Database SQL Language Reference 19c, "Expression Lists"; Error Help, ORA-01795.
"""
OF_ROWS = "(VIRTUAL_COLUMN = 'NO' OR USER_GENERATED = 'YES')"
"""Of ALL_TAB_COLS: not a column that Oracle derives for itself, for an index on an expression or in
descending order (SYS_NC0000n$) or for extended statistics (SYS_STS…). No row has those and no
change of redo names them; those for statistics come and go by ALTER TABLE."""


class Queries(Protocol):
    """What Oracle is asked through: a session in the container of the tables."""

    def fetch_all(self, sql: str, binds: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a query."""


class UserQueries(Queries, Protocol):
    """The same, of a session that says who is logged on, and remembers what stays."""

    user: str
    """The user to whom rights would have to be granted."""

    def fetch_once(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query about what stays while the instance runs."""


def tables_condition(
    tables: Iterable[TableId], owner: str, name: str, prefix: str = ""
) -> tuple[str, dict[str, Any]]:
    """A predicate that holds for rows of ``tables``, and its binds, whose names begin with
    ``prefix``.

    One term per owner, with its tables in lists that are no longer than Oracle takes: the predicate
    of 1,000 tables is as deep as that of one.
    """
    by_owner: dict[str, list[str]] = {}
    for table in sorted(set(tables)):
        by_owner.setdefault(table.owner, []).append(table.name)
    terms: list[str] = []
    binds: dict[str, Any] = {}
    named = 0
    for number, (of, names) in enumerate(by_owner.items()):
        own = {f"{prefix}n{named + at}": one for at, one in enumerate(names)}
        named += len(own)
        lists = (f"{name} IN ({listed})" for listed in in_lists(f":{one}" for one in own))
        terms.append(f"{owner} = :{prefix}o{number} AND ({' OR '.join(lists)})")
        binds |= {f"{prefix}o{number}": of, **own}
    return f"({' OR '.join(terms)})", binds


def rows_about(
    session: Queries,
    sql: str,
    tables: Iterable[TableId],
    binds: Mapping[str, Any] | None = None,
    *,
    owner: str = "OWNER",
    name: str = "TABLE_NAME",
) -> list[tuple[Any, ...]]:
    """The rows of a query that begin with a table's owner and name: of each the table, the rest.

    Args:
        session: Asked nothing where there is no table.
        sql: Has ``{tables}`` in its condition.
        tables: Those that the rows are about.
        binds: Further ones of the query.
        owner: The column of the view with the owner; ``name`` that with the table's name.
    """
    wanted = list(tables)
    if not wanted:
        return []
    condition, named = tables_condition(wanted, owner, name)
    rows = session.fetch_all(sql.format(tables=condition), {**named, **(binds or {})})
    return [(TableId(of, called), *rest) for of, called, *rest in rows]


def by_table(rows: Iterable[tuple[Any, ...]]) -> dict[TableId, list[tuple[Any, ...]]]:
    """Rows behind their tables (:func:`rows_about`), by these."""
    found: dict[TableId, list[tuple[Any, ...]]] = {}
    for table, *rest in rows:
        found.setdefault(table, []).append(tuple(rest))
    return found


def in_lists(values: Iterable[object]) -> Iterator[str]:
    """The values in texts for IN lists, in their order, of which Oracle takes no longer ones."""
    listed = list(values)
    for at in range(0, len(listed), LIST_MAX):
        yield ", ".join(map(str, listed[at : at + LIST_MAX]))
