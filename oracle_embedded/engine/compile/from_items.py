"""How do FROM items become SQLite SQL?"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from oracle_embedded.api import OracleError, VirtualTable
from oracle_embedded.engine.compile.base import (
    CteSource,
    Scope,
    Source,
    SourceColumn,
    matches,
    table_source,
    type_from_meta,
)
from oracle_embedded.engine.compile.calls import CallCompiler
from oracle_embedded.engine.compile.plan import (
    FIRST_SLOT,
    Flashback,
    OutputColumn,
    Slot,
    Sql,
    TableUse,
    VirtualUse,
)
from oracle_embedded.engine.datatypes import types
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import Definition, SynonymDef, TableDef, ViewDef

_VIEW_DEPTH_MAX = 20
_SYNONYM_DEPTH_MAX = 10


class FromCompiler(CallCompiler):
    """Compiles tables, views, subqueries and joins in FROM."""

    flashback: Flashback | None = None

    @abstractmethod
    def compile_query(
        self, node: ast.Query, parent: Scope | None
    ) -> tuple[str, list[OutputColumn], bool]:
        """A query: text with columns c1…, their types, and whether it gives one row at most."""

    def from_item(self, item: ast.FromItem, scope: Scope) -> str:
        """Add the item's sources to the scope and give its text."""
        match item:
            case ast.FromTable():
                source, text = self.table(item, scope)
                scope.sources.append(source)
                return text
            case ast.FromQuery():
                source, text = self.derived(item, scope)
                scope.sources.append(source)
                return text
            case ast.Join():
                return self._join(item, scope)

    def derived(self, item: ast.FromQuery, scope: Scope) -> tuple[Source, str]:
        """A subquery in FROM; it sees the names of enclosing queries, not of its neighbours."""
        alias = self.new_alias()
        outer = Scope(parent=scope.parent, ctes=scope.ctes)
        text, columns, _ = self.compile_query(item.query, outer)
        return output_source(alias, item.alias, columns), f"({text}) {alias}"

    def table(self, item: ast.FromTable, scope: Scope) -> tuple[Source, str]:
        """A table, view, CTE or computed view by name."""
        alias = self.new_alias()
        if len(item.name) == 1 and item.as_of is None:
            cte = self._cte(item.name[0], scope)
            if cte is not None:
                columns = {
                    column.name: replace(column, text=f"{alias}.{column.text}")
                    for column in cte.columns
                }
                return Source(
                    alias, item.alias or item.name[0], None, columns
                ), f"{cte.table} {alias}"
        if item.name in (("DUAL",), ("SYS", "DUAL")):
            columns = {"DUMMY": SourceColumn("DUMMY", f"{alias}.c1", types.varchar(1))}
            return Source(
                alias, item.alias or "DUAL", "SYS", columns
            ), f"(SELECT 'X' AS c1) {alias}"
        flashback = self._flashback(item, scope)
        found = self.find_relation(item.name, item.pos)
        if isinstance(found, tuple):
            return self._virtual(alias, item, found, flashback)
        if (
            flashback is not None
            and not self.view_depth
            and not self.environment.may_flashback(found)
        ):
            raise ora(1031, offset=item.pos)
        if isinstance(found, ViewDef):
            return self._view(alias, item, found, flashback)
        if not isinstance(found, TableDef):
            raise ora(942, offset=item.pos)
        use = self.use_table(found, flashback)
        source = table_source(alias, item.alias or item.name[-1], use)
        return source, f"{use.marker} {alias}"

    def use_table(self, table: TableDef, flashback: Flashback | None = None) -> TableUse:
        """Note one more appearance of a stored table."""
        use = TableUse(len(self.plan.tables), table, flashback)
        self.plan.tables.append(use)
        return use

    def _cte(self, name: str, scope: Scope) -> CteSource | None:
        current: Scope | None = scope
        while current is not None:
            if name in current.ctes:
                return current.ctes[name]
            current = current.parent
        return None

    def _flashback(self, item: ast.FromTable, scope: Scope) -> Flashback | None:
        if item.as_of is None:
            return self.flashback
        family = "number" if item.as_of.kind == "SCN" else "timestamp"
        value = self.convert(
            self.value(item.as_of.value, Scope(parent=None, ctes=scope.ctes)),
            family,
            item.as_of.value.pos,
        )
        self.plan.slots.append(Slot(-1, types.NUMBER))
        return Flashback(item.as_of.kind, value.text, FIRST_SLOT + len(self.plan.slots) - 1)

    def find_relation(self, name: ast.Name, pos: int) -> Definition | tuple[VirtualTable, bool]:
        """What a name in FROM means; synonyms are followed.

        Raises:
            OracleError: ORA-00942 when there is nothing, or nothing that the user may read.
        """
        owner = name[0] if len(name) > 1 else None
        environment = self.environment
        for _ in range(_SYNONYM_DEPTH_MAX):
            found = environment.find(owner or environment.schema, name[-1])
            if found is None and owner is None:
                found = environment.find("PUBLIC", name[-1])
            if found is None:
                virtual = environment.virtual(name[-1], owner)
                if virtual is None:
                    raise ora(942, offset=pos)
                return virtual
            if not isinstance(found, SynonymDef):
                if not self.view_depth and not environment.may_select(found):
                    raise ora(942, offset=pos)
                return found
            owner, name = found.target_owner, (found.target_name,)
        raise OracleError(1775, "looping chain of synonyms", pos)

    def _view(
        self, alias: str, item: ast.FromTable, view: ViewDef, flashback: Flashback | None
    ) -> tuple[Source, str]:
        if self.view_depth >= _VIEW_DEPTH_MAX:
            raise OracleError(1731, "circular view definition encountered", item.pos)
        outer_environment, outer_flashback = self.environment, self.flashback
        self.environment = replace(outer_environment, schema=view.owner)
        self.flashback = flashback
        self.view_depth += 1
        try:
            text, columns, _ = self.compile_query(self.environment.parse_view(view.text), None)
        except OracleError as error:
            if error.code in (904, 942):
                raise OracleError(
                    4063, f'view "{view.owner}.{view.name}" has errors', item.pos
                ) from error
            raise
        finally:
            self.environment, self.flashback = outer_environment, outer_flashback
            self.view_depth -= 1
        if view.columns:
            columns = [
                replace(column, name=name)
                for column, name in zip(columns, view.columns, strict=True)
            ]
        source = output_source(alias, item.alias or view.name, columns)
        source.owner = view.owner
        return source, f"({text}) {alias}"

    def _virtual(
        self,
        alias: str,
        item: ast.FromTable,
        found: tuple[VirtualTable, bool],
        flashback: Flashback | None,
    ) -> tuple[Source, str]:
        view, dictionary = found
        if flashback is not None and not dictionary:
            raise unsupported("AS OF on this view", item.pos)
        use = VirtualUse(self.new_alias("v"), view, dictionary, flashback)
        self.plan.virtuals.append(use)
        columns = {
            meta.name: SourceColumn(
                meta.name, f"{alias}.c{number}", type_from_meta(meta), meta.nullable
            )
            for number, meta in enumerate(view.columns, 1)
        }
        source = Source(alias, item.alias or item.name[-1], "SYS", columns, virtual=use)
        return source, f"{use.name} {alias}"

    # --- joins -------------------------------------------------------------------------------------------------------

    def _join(self, item: ast.Join, scope: Scope) -> str:
        before = len(scope.sources)
        left = self.from_item(item.left, scope)
        middle = len(scope.sources)
        right = self.from_item(item.right, scope)
        if isinstance(item.right, ast.Join):
            right = f"({right})"
        if item.kind == "CROSS":
            return f"{left} JOIN {right}"
        lefts, rights = scope.sources[before:middle], scope.sources[middle:]
        if item.using or item.natural:
            condition = self._using(item, scope, lefts, rights)
        elif item.on is not None:
            inner = Scope(lefts + rights, scope.parent, scope.ctes, dict(scope.merged))
            condition = self.condition(item.on, inner)
        else:
            condition = "1"
        kind = "" if item.kind == "INNER" else f"{item.kind} "
        if item.kind in ("LEFT", "FULL"):
            _make_nullable(rights)
        if item.kind in ("RIGHT", "FULL"):
            _make_nullable(lefts)
        return f"{left} {kind}JOIN {right} ON {condition}"

    def _using(
        self, item: ast.Join, scope: Scope, lefts: list[Source], rights: list[Source]
    ) -> str:
        names = item.using
        if item.natural:
            offered = [name for source in lefts for name in source.columns]
            names = tuple(
                name for name in offered if any(name in source.columns for source in rights)
            )
        conditions = []
        for name in names:
            a = self._one_of(name, lefts, scope)
            b = self._one_of(name, rights, scope)
            conditions.append(self.compare("=", a, b))
            kept = b if item.kind == "RIGHT" else a
            text = f"coalesce({a.text}, {b.text})" if item.kind == "FULL" else kept.text
            scope.merged[name] = Sql(text, kept.type, a.nullable or b.nullable)
        return " AND ".join(conditions) or "1"

    def _one_of(self, name: str, sources: list[Source], scope: Scope) -> Sql:
        if name in scope.merged:
            return scope.merged[name]
        found = [source for source in sources if name in source.columns]
        if len(found) != 1:
            raise ora(918) if found else ora(904, f'"{name}"')
        return self.column_of(found[0], name)

    # --- the old outer join sign -------------------------------------------------------------------------------------

    def outer_joined(
        self, texts: list[str], scope: Scope, conjuncts: list[ast.Expr]
    ) -> tuple[str, list[ast.Expr]]:
        """FROM text for conditions with ``(+)``, and the conditions that stay in WHERE."""
        by_source: dict[str, list[ast.Expr]] = {}
        needs: dict[str, set[str]] = {}
        rest = []
        for conjunct in conjuncts:
            marked = {
                self._source_of(column, scope).alias
                for column in columns_in(conjunct)
                if column.outer
            }
            if not marked:
                rest.append(conjunct)
                continue
            if len(marked) > 1:
                raise OracleError(
                    1468, "a predicate may reference only one outer-joined table", conjunct.pos
                )
            if isinstance(conjunct, ast.Logical) and conjunct.op == "OR":
                raise OracleError(
                    1719, "outer join operator (+) not allowed in operand of OR or IN", conjunct.pos
                )
            (alias,) = marked
            by_source.setdefault(alias, []).append(conjunct)
            others = {
                self._source_of(column, scope).alias
                for column in columns_in(conjunct)
                if not column.outer
            }
            needs.setdefault(alias, set()).update(others - {alias})
        order = [source.alias for source in scope.sources]
        by_alias = dict(zip(order, texts, strict=True))
        placed = [alias for alias in order if alias not in by_source]
        if not placed:
            raise OracleError(1416, "two tables cannot be outer-joined to each other")
        text = " JOIN ".join(by_alias[alias] for alias in placed)
        waiting = [alias for alias in order if alias in by_source]
        sources = {source.alias: source for source in scope.sources}
        while waiting:
            ready = next((alias for alias in waiting if needs[alias] <= set(placed)), None)
            if ready is None:
                raise OracleError(1416, "two tables cannot be outer-joined to each other")
            condition = " AND ".join(self.condition(item, scope) for item in by_source[ready])
            text += f" LEFT JOIN {by_alias[ready]} ON {condition}"
            waiting.remove(ready)
            placed.append(ready)
        for alias in by_source:
            _make_nullable([sources[alias]])
        return text, rest

    def _source_of(self, column: ast.Column, scope: Scope) -> Source:
        *qualifier, name = column.name
        for source in scope.sources:
            if (name in source.columns or name == "ROWID") and matches(source, tuple(qualifier)):
                return source
        raise ora(904, ".".join(f'"{part}"' for part in column.name), offset=column.pos)


def columns_in(node: ast.Expr) -> list[ast.Column]:
    """All column names of a condition, subqueries left out."""
    if isinstance(node, ast.Column):
        return [node]
    found = []
    for child in children(node):
        found.extend(columns_in(child))
    return found


def children(node: ast.Expr) -> list[ast.Expr]:
    """Direct operands of an expression, subqueries left out."""
    found: list[ast.Expr] = []
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        if isinstance(value, ast.Expr):
            found.append(value)
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, ast.Expr):
                    found.append(item)
                elif isinstance(item, ast.OrderItem):
                    found.append(item.expr)
                elif isinstance(item, tuple):
                    found.extend(part for part in item if isinstance(part, ast.Expr))
        elif isinstance(value, ast.Window):
            found.extend(value.partition)
            found.extend(item.expr for item in value.order)
    return found


def _make_nullable(sources: list[Source]) -> None:
    for source in sources:
        source.columns = {
            name: replace(column, nullable=True) for name, column in source.columns.items()
        }


def output_source(alias: str, name: str | None, columns: list[OutputColumn]) -> Source:
    """A compiled query as FROM item. Of columns with one name only the first can be named."""
    offered: dict[str, SourceColumn] = {}
    for number, column in enumerate(columns, 1):
        key = column.name if column.name not in offered else f"{column.name}\x00{number}"
        offered[key] = SourceColumn(column.name, f"{alias}.c{number}", column.type, column.nullable)
    return Source(alias, name, None, offered)
