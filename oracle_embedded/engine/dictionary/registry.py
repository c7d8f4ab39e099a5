"""Which dictionary views are there, and how are their rows made, now or as of an SCN?

A view family such as TABLES gives DBA_TABLES, ALL_TABLES (what the user may see), USER_TABLES
(without OWNER) and CDB_TABLES (with CON_ID).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from oracle_embedded.api import ColumnMeta, EngineSession, OraType, Value, VirtualTable
from oracle_embedded.engine.datatypes import numbers, temporal
from oracle_embedded.engine.run.contracts import DatabaseState, SessionState
from oracle_embedded.engine.storage.catalog import Definition, UserDef

Cell = str | int | float | None
Row = dict[str, Cell]


@dataclass(slots=True)
class View:
    """What a view's rows are made from: the database, the session, and the definitions of the
    moment."""

    database: DatabaseState
    session: SessionState
    scn: int | None
    wanted: Mapping[str, str]
    """Columns that must have a value: rows with another need not be made."""
    listed: Mapping[str, frozenset[str]]
    """Columns that must have one of some values, likewise."""

    def wants(self, column: str, value: str) -> bool:
        """May rows be asked for that have this value?"""
        if column in self.listed and value not in self.listed[column]:
            return False
        return self.wanted.get(column, value) == value

    def definitions(self, named: str | None = None) -> Iterator[Definition]:
        """Definitions of the moment, as the session's container has them: all, or those of one
        name."""
        for item in self.database.store.catalog.all(self.scn, named):
            if self.session.container == "CDB$ROOT":
                owner = item.name if isinstance(item, UserDef) else item.owner
                user = self.database.store.catalog.user(owner)
                if user is not None and not user.common:
                    continue
            yield item

    def definition(self, identifier: int) -> Definition | None:
        """The definition of the moment with a number."""
        catalog = self.database.store.catalog
        return catalog.by_id(identifier) if self.scn is None else catalog.at(identifier, self.scn)


Maker = Callable[[View], Iterator[Row]]


@dataclass(frozen=True, slots=True)
class Family:
    """Columns (``NAME:type``) and maker of a family; ``owner`` is the column that USER_ leaves out,
    ``also`` must be visible."""

    columns: str
    make: Maker
    owner: str | None = "OWNER"
    name: str | None = None


class Views:
    """The views that one module declares."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}
        self.singles: dict[str, Family] = {}
        self.synonyms: dict[str, str] = {}

    def family(
        self,
        name: str,
        columns: str,
        *,
        owner: str | None = "OWNER",
        object_name: str | None = None,
    ) -> Callable[[Maker], Maker]:
        """Declare a family by its maker."""

        def declare(make: Maker) -> Maker:
            self.families[name] = Family(columns, make, owner, object_name)
            return make

        return declare

    def single(self, name: str, columns: str) -> Callable[[Maker], Maker]:
        """Declare one view by its maker."""

        def declare(make: Maker) -> Maker:
            self.singles[name] = Family(columns, make, None)
            return make

        return declare


@lru_cache(maxsize=4096)
def _meta(spec: str) -> ColumnMeta:
    name, _, kind = spec.partition(":")
    if kind.startswith("v"):
        size = int(kind[1:])
        return ColumnMeta(name, OraType.VARCHAR, size=size, char_size=size, charset_form=1)
    if kind == "d":
        return ColumnMeta(name, OraType.DATE, size=7)
    if kind == "t":
        return ColumnMeta(name, OraType.TIMESTAMP, scale=9, size=11)
    if kind.startswith("r"):
        return ColumnMeta(name, OraType.RAW, size=int(kind[1:]))
    if kind == "c":
        return ColumnMeta(name, OraType.CLOB, size=4000, charset_form=1)
    return ColumnMeta(name, OraType.NUMBER, precision=0, scale=-127)


def _no_rows(
    _session: EngineSession,
    _filters: Sequence[tuple[str, str, Value]],
    _columns: frozenset[str] | None,
) -> Iterator[Sequence[Value]]:
    return iter(())


@lru_cache(maxsize=4096)
def _reader(columns: tuple[ColumnMeta, ...]) -> Callable[[Row], tuple[Value, ...]]:
    """What makes a row of these columns, kept for the queries that come again."""
    encoders = [(meta.name, encoder(meta)) for meta in columns]
    return lambda row: tuple([encode(row.get(name)) for name, encode in encoders])


def encoder(meta: ColumnMeta) -> Callable[[Cell], Value]:
    """What turns a plain value into Oracle's encoding."""
    if meta.type == OraType.NUMBER:
        return lambda cell: numbers.encode(int(cell)) if cell is not None else None
    if meta.type == OraType.DATE:
        return lambda cell: date_from_epoch(float(cell)) if cell is not None else None
    if meta.type == OraType.RAW:
        return lambda cell: bytes.fromhex(str(cell)) if cell is not None else None
    if meta.type == OraType.TIMESTAMP:
        return lambda cell: (
            temporal.timestamp_of(temporal.nanos_from_epoch(float(cell)))
            if cell is not None
            else None
        )
    return lambda cell: str(cell).encode() if cell is not None and cell != "" else None


@lru_cache(maxsize=4096)
def date_from_epoch(seconds: float) -> bytes:
    """The DATE of seconds since 1970. A dictionary has few, and shows each of them many times."""
    return temporal.date_of(temporal.nanos_from_epoch(seconds))


class Dictionary:
    """All dictionary views of a database."""

    def __init__(self, declared: Sequence[Views]) -> None:
        self.views: dict[str, VirtualTable] = {}
        self._makers: dict[str, tuple[Family, str]] = {}
        for views in declared:
            for name, item in views.families.items():
                for prefix in ("DBA", "ALL", "USER", "CDB"):
                    self._add(f"{prefix}_{name}", item, prefix)
            for name, item in views.singles.items():
                self._add(name, item, "")
        for synonym, name in (pair for views in declared for pair in views.synonyms.items()):
            self.views[synonym] = replace(self.views[name], name=synonym)
            self._makers[synonym] = self._makers[name]

    def _add(self, name: str, item: Family, prefix: str) -> None:
        specs = item.columns.split()
        if prefix == "USER" and item.owner is not None:
            specs = [spec for spec in specs if not spec.startswith(item.owner + ":")]
        if prefix == "CDB":
            specs.append("CON_ID:n")
        self.views[name] = VirtualTable(name, [_meta(spec) for spec in specs], _no_rows)
        self._makers[name] = (item, prefix)

    def rows(
        self,
        name: str,
        session: SessionState,
        scn: int | None,
        filters: Sequence[tuple[str, str, Value]],
        read: Sequence[int],
    ) -> Iterator[Sequence[Value]]:
        """Rows of a view in its natural order, each with the columns at the places ``read``;
        filters may leave some out."""
        item, prefix = self._makers[name]
        columns = self.views[name].columns
        texts = {meta.name for meta in columns if meta.type == OraType.VARCHAR} if filters else ()
        wanted = [
            (column, value.decode())
            for column, op, value in filters
            if op == "=" and column in texts and value is not None
        ]
        listed: dict[str, frozenset[str]] = {}
        for column, op, value in filters:
            if op == "in" and column in texts:
                own = frozenset(() if value is None else (value.decode(),))
                listed[column] = listed.get(column, frozenset()) | own
        reader = _reader(tuple(columns[at] for at in read))
        for row in item.make(View(session.database, session, scn, dict(wanted), listed)):
            if prefix == "CDB":
                row = {**row, "CON_ID": 1 if session.container == "CDB$ROOT" else 3}
            if wanted and any(str(row.get(column)) != value for column, value in wanted):
                continue
            if listed and any(row.get(column) not in values for column, values in listed.items()):
                continue
            if self._visible(item, prefix, row, session):
                yield reader(row)

    def _visible(self, item: Family, prefix: str, row: Row, session: SessionState) -> bool:
        if item.owner is None or prefix in ("DBA", "CDB", ""):
            return True
        owner = row.get(item.owner)
        if prefix == "USER":
            return owner == session.username
        if owner in (session.username, "PUBLIC", "SYS") or item.name is None:
            return True
        found = session.database.store.catalog.find(str(owner), str(row.get(item.name)))
        return found is None or session.database.security.may_select(session.username, found)
