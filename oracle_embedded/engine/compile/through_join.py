"""How is a table changed through a join that it is a part of?

``UPDATE (SELECT … FROM a JOIN b …) SET …`` becomes a MERGE of the table whose columns are assigned
with that query, by ROWIDs. The table has to be key-preserved: no row of it may come twice, which is
so where each other table is joined by a whole unique key. Hibernate writes such changes for bulk
updates over associations.

Source: Oracle Database Administrator's Guide 19c, "Updating a Join View"; SQL Language Reference
19c, "CREATE VIEW", Notes on Updatable Views.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.from_items import columns_in, find_relation
from oracle_embedded.engine.compile.rownum import conjuncts_of
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import TableDef

_TARGET, _SOURCE, _ROWID = "TARGET$", "SOURCE$", "ROWID$"


@dataclass(slots=True)
class _Join:
    """The tables of a join by their aliases, in order, and what joins them. ``optional`` are those
    of which a row may be missing."""

    tables: dict[str, TableDef] = field(default_factory=dict)
    items: dict[str, ast.FromTable] = field(default_factory=dict)
    conditions: list[ast.Expr] = field(default_factory=list)
    optional: set[str] = field(default_factory=set)

    def add(self, state: Compilation, item: ast.FromItem) -> list[str]:
        """Take up an item of FROM; gives the aliases in it."""
        if isinstance(item, ast.Join):
            if item.kind not in ("INNER", "LEFT", "CROSS") or item.natural or item.using:
                raise unsupported("data changes through such a join")
            left, right = self.add(state, item.left), self.add(state, item.right)
            self.conditions += conjuncts_of(item.on)
            if item.kind == "LEFT":
                self.optional.update(right)
            return left + right
        if not isinstance(item, ast.FromTable) or item.as_of is not None:
            raise unsupported("data changes through a join with something else than a table")
        table = find_relation(state, item.name, item.pos)
        if not isinstance(table, TableDef):
            raise unsupported("data changes through a join with something else than a table")
        alias = item.alias or item.name[-1]
        self.tables[alias], self.items[alias] = table, item
        return [alias]

    def place_of(self, name: ast.Name) -> tuple[str, str] | None:
        """Alias and column that a name means; None for what is no column."""
        *qualifier, column = name
        for alias, table in self.tables.items():
            is_meant = not qualifier or qualifier[-1] == alias
            if is_meant and any(column == one.name for one in table.named):
                return alias, column
        return None

    def preserves(self, target: str) -> bool:
        """Does no row of a table come more than once? Table by table, what is joined by a whole
        unique key to what is known has at most one row for each of these."""
        known, waiting = {target}, set(self.tables) - {target}
        while waiting:
            found = {alias for alias in waiting if self._is_found(alias, known)}
            if not found:
                return False
            known |= found
            waiting -= found
        return target not in self.optional

    def _is_found(self, alias: str, known: set[str]) -> bool:
        table = self.tables[alias]
        equal = set()
        for condition in self.conditions:
            if not isinstance(condition, ast.Compare) or condition.op != "=":
                continue
            for one, other in (
                (condition.left, condition.right),
                (condition.right, condition.left),
            ):
                place = self.place_of(one.name) if isinstance(one, ast.Column) else None
                places = [self.place_of(column.name) for column in columns_in(other)]
                if place is not None and place[0] == alias and all(
                    at is None or at[0] in known for at in places
                ):  # fmt: skip
                    equal.add(table.by_name[place[1]].internal_id)
        return any(equal.issuperset(columns) for _, columns in table.unique_keys)

    def outputs(self, select: ast.Select) -> dict[str, tuple[str, str] | None]:
        """What each column of the query is: alias and column, None for an expression."""
        found: dict[str, tuple[str, str] | None] = {}
        for item in select.items:
            if item.star is not None:
                for alias, table in self.tables.items():
                    if not item.star or item.star[-1] == alias:
                        found |= {one.name: (alias, one.name) for one in table.shown}
            elif isinstance(item.expr, ast.Column):
                found[item.alias or item.expr.name[-1]] = self.place_of(item.expr.name)
            elif item.alias is not None:
                found[item.alias] = None
        return found

    def items_of(self, select: ast.Select) -> tuple[ast.SelectItem, ...]:
        """The select list, ``*`` as one star for each table, so that more may stand beside it."""
        found: list[ast.SelectItem] = []
        for item in select.items:
            if item.star == ():
                found += (replace(item, star=(alias,)) for alias in self.tables)
            else:
                found.append(item)
        return tuple(found)


def through_join(state: Compilation, node: ast.Update, select: ast.Select) -> ast.Merge:
    """The update as a MERGE.

    Raises:
        OracleError: ORA-01779 for a table that is not key-preserved, ORA-01776 for columns of
            several tables, ORA-00904 for one that the query does not give, ORA-01733 for one that
            it computes.
    """
    join = _Join()
    for item in select.sources:
        join.add(state, item)
    join.conditions += conjuncts_of(select.where)
    outputs = join.outputs(select)
    targets: list[tuple[str, str]] = []
    for assignment in node.assignments:
        for name in assignment.columns:
            if name not in outputs:
                raise ora(904, f'"{name}"', offset=assignment.pos)
            place = outputs[name]
            if place is None:
                raise ora(1733, offset=assignment.pos)
            targets.append(place)
    aliases = {alias for alias, _ in targets}
    if len(aliases) > 1:
        text = "cannot modify more than one base table through a join view"
        raise OracleError(1776, text, node.table.pos)
    [target] = aliases
    if not join.preserves(target):
        text = "cannot modify a column which maps to a non key-preserved table"
        raise OracleError(1779, text, node.table.pos)
    if node.returning is not None or any(len(one.columns) > 1 for one in node.assignments):
        raise unsupported("RETURNING and several columns at once through a join", node.table.pos)
    rowid = ast.SelectItem(ast.Column((target, "ROWID")), _ROWID)
    given = ast.Query(replace(select, items=(*join.items_of(select), rowid)))
    changed = _values(node, ast.FromQuery(given, node.table.alias, node.table.pos))
    by_rowid = ast.Compare("=", ast.Column((_TARGET, "ROWID")), ast.Column((_SOURCE, _ROWID)))
    assignments = tuple(
        ast.Assignment((column,), _given(one, at), one.pos)
        for at, ((_, column), one) in enumerate(zip(targets, node.assignments, strict=True))
    )
    return ast.Merge(
        replace(join.items[target], alias=_TARGET),
        ast.FromQuery(changed, _SOURCE, node.table.pos),
        by_rowid,
        assignments,
        None,
        None,
        (),
        None,
        None,
    )


def _given(assignment: ast.Assignment, at: int) -> ast.Expr:
    if isinstance(assignment.value, ast.Default):
        return assignment.value
    return ast.Column((_SOURCE, f"VALUE{at}$"), pos=assignment.pos)


def _values(node: ast.Update, source: ast.FromQuery) -> ast.Query:
    """The rows to change, each with what its columns get."""
    rowid = ast.SelectItem(ast.Column((_ROWID,)), _ROWID)
    values = [
        ast.SelectItem(one.value, f"VALUE{at}$")
        for at, one in enumerate(node.assignments)
        if not isinstance(one.value, ast.Default)
    ]
    select = ast.Select((rowid, *values), False, (source,), node.where, None, None, None)
    return ast.Query(select)
