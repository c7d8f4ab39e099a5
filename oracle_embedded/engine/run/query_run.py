"""How does a compiled query run: which rows does its snapshot see, and on which connection?"""

from __future__ import annotations

import decimal
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from oracle_embedded.api import ColumnMeta, OracleError, OraType, Value
from oracle_embedded.engine.compile.plan import Flashback, Plan, Slot, TableUse, VirtualUse
from oracle_embedded.engine.datatypes import numbers, temporal
from oracle_embedded.engine.datatypes.rowids import packed_from_text
from oracle_embedded.engine.datatypes.scns import SCN_MAX
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.errors import ora, too_deep
from oracle_embedded.engine.run.contracts import LobPlace, OpenCursor, SessionState
from oracle_embedded.engine.storage.catalog import TableDef
from oracle_embedded.engine.storage.store import Connection
from oracle_embedded.values import unpacked

_PARAMETER = re.compile(r"\?(\d+)")
_MARKER = re.compile(r"\x01(\d+)\x02")
_STRING = re.compile(r"'(?:[^']|'')*'|x'[0-9a-f]*'")
_BATCH = 1000

Parameters = list[object]


_TOO_DEEP = ("parser stack overflow", "Expression tree is too large", "too many terms in compound")


def translated(error: Exception, connection: Connection) -> OracleError:
    """The Oracle error behind an exception that came out of SQLite."""
    inner = connection.context.error
    connection.context.error = None
    if isinstance(inner, OracleError):
        return inner
    if isinstance(inner, decimal.DecimalException | OverflowError):
        return ora(1426)
    if isinstance(error, sqlite3.OperationalError) and "interrupted" in str(error):
        return ora(1013)
    if any(words in str(error) for words in _TOO_DEEP):
        return too_deep()
    return OracleError(600, f"internal error code, arguments: [{inner or error}]")


def bound_value(value: Value, slot: Slot, time_zone: str) -> object:
    """A bind value as SQLite parameter."""
    if slot.unit:
        return _offset(value, slot.unit)
    if value is None:
        return None
    family = slot.type.family
    if family in ("text", "clob"):
        if not value and family == "text":
            return None
        return value.decode()
    if family == "timestamp":
        return value.ljust(11, b"\0")
    if family == "tz":
        return (
            temporal.zoned_from_local(value.ljust(11, b"\0"), time_zone)
            if len(value) < 13
            else value
        )
    if family == "ltz":
        return temporal.timestamp_of(temporal.utc_from_local(temporal.instant(value), time_zone))
    if family == "rowid":
        return packed_from_text(value.decode())
    if family == "raw" and not value:
        return None
    return value


def _offset(value: Value, unit: int) -> int:
    """By how much a window's frame begins or ends beside its row.

    Raises:
        OracleError: ORA-01428 for nothing, and for less than 0.
    """
    number = None if value is None else numbers.decode(value)
    if number is None or number < 0:
        raise OracleError(
            1428, f"argument '{'NULL' if number is None else number}' is out of range"
        )
    return int(number * unit)


def parameters(
    plan_slots: Sequence[Slot], binds: Sequence[Value], snapshot: int, own: int, time_zone: str
) -> Parameters:
    """All SQLite parameters of a statement; AS OF parameters are filled later."""
    found: Parameters = [snapshot, own]
    for slot in plan_slots:
        found.append(
            None if slot.position < 0 else bound_value(binds[slot.position], slot, time_zone)
        )
    return found


def highest_parameter(text: str) -> int:
    """The highest parameter number that a SQLite text uses."""
    return max((int(number) for number in _PARAMETER.findall(_STRING.sub("''", text))), default=0)


def _history_sql(use: TableUse, snapshot: str, own: str | None) -> str:
    table = use.table
    columns = f"rid, vf, {table.row_storage}"
    mine = f" OR vf = {own}" if own else ""
    not_mine = f" AND vt <> {own}" if own else ""
    return (
        f"(SELECT {columns} FROM t{table.object_id} WHERE vf <= {snapshot}{mine} UNION ALL SELECT {columns}"
        f" FROM h{table.object_id} WHERE vt > {snapshot} AND vf <= {snapshot}{not_mine})"
    )


def _versions_sql(table: TableDef, low: str, high: str) -> str:
    """All committed versions of a table's rows between two SCNs, each with where it begins (``vs``)
    and ends (``ve``), and how it came about (``vop``). A deleted row has its last values once
    more."""
    now, past, columns = f"t{table.object_id}", f"h{table.object_id}", table.row_storage
    came = f"EXISTS (SELECT 1 FROM {past} p WHERE p.rid = x.rid AND p.vt = x.vf)"
    goes_on = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {one} n WHERE n.rid = d.rid AND n.vf = d.vt)"
        for one in (now, past)
    )
    return (
        f"(SELECT rid, vf, {columns}, CASE WHEN vf >= {low} THEN vf END AS vs, CASE WHEN vt <= {high} THEN vt END AS ve,"
        f" CASE WHEN vf < {low} THEN NULL WHEN {came} THEN 'U' ELSE 'I' END AS vop FROM"
        f" (SELECT rid, vf, NULL AS vt, {columns} FROM {now} WHERE vf <= {high} UNION ALL"
        f" SELECT rid, vf, vt, {columns} FROM {past} WHERE vf <= {high} AND vt > {low}) x"
        f" UNION ALL SELECT rid, vt, {columns}, vt, NULL, 'D' FROM {past} d WHERE vt BETWEEN {low} AND {high} AND {goes_on})"
    )


class Snapshot:
    """What one statement sees: an SCN, its own transaction's mark, and the tables' states at that
    moment.

    Made under the store's lock.
    """

    def __init__(self, session: SessionState) -> None:
        self.session = session
        self.store = session.database.store
        self.scn = session.snapshot_scn() or self.store.clock.value
        self.own = session.transaction.mark if session.transaction is not None else 0

    def text(self, plan: Plan, params: Parameters, connection: Connection) -> tuple[str, int]:
        """SQLite text with all tables in place, and how many parameters it takes.

        Raises:
            OracleError: ORA-08181, ORA-01466 or ORA-01555 for an AS OF that cannot be answered.
        """
        shapes = []
        for use in plan.tables:
            if use.versions is not None:
                self._check_versions(use, params, connection)
                shapes.append(False)
            elif use.flashback is None:
                shapes.append(self._sees_all(use.table, self.scn, self.own))
            else:
                scn = self.flashback_scn(use.flashback, params, connection)
                self._check_flashback(use.table, scn)
                shapes.append(self._sees_all(use.table, scn, 0))
        key = tuple(shapes)
        cached = plan.variants.get(key)
        if cached is None:
            text = _MARKER.sub(
                lambda match: self._place(
                    plan.tables[int(match.group(1))], key[int(match.group(1))]
                ),
                plan.text,
            )
            cached = (text, highest_parameter(text))
            plan.variants[key] = cached
        return cached

    def reads(self, plan: Plan, params: Parameters) -> list[tuple[TableDef, int]]:
        """The tables of a query, each with the SCN as of which it is read; known behind
        :meth:`text`."""
        found: list[tuple[TableDef, int]] = []
        for use in plan.tables:
            asked = use.flashback or (use.versions and use.versions[0])
            scn = params[asked.parameter - 1] if asked else self.scn
            assert isinstance(scn, int)
            found.append((use.table, scn))
        return found

    def _place(self, use: TableUse, whole: bool) -> str:
        if whole:
            return f"t{use.table.object_id}"
        if use.versions is not None:
            return _versions_sql(use.table, *(f"?{end.parameter}" for end in use.versions))
        if use.flashback is None:
            return _history_sql(use, "?1", "?2")
        return _history_sql(use, f"?{use.flashback.parameter}", None)

    def _sees_all(self, table: TableDef, scn: int, own: int) -> bool:
        """Are exactly the current rows visible?"""
        activity = self.store.activity.get(table.object_id)
        if activity is None:
            raise OracleError(8103, "object no longer exists")
        if activity.last_commit > scn:
            return False
        return not activity.writers - {own - SCN_MAX}

    def flashback_scn(
        self, flashback: Flashback, params: Parameters, connection: Connection
    ) -> int:
        """The SCN of an AS OF clause, put into its parameter as well."""
        if flashback.kind in ("MINVALUE", "MAXVALUE"):
            whole = flashback.kind == "MAXVALUE"
            scn = self.store.clock.value if whole else self.session.database.first_scn
            params[flashback.parameter - 1] = scn
            return scn
        value = evaluate(connection, flashback.text, params)
        if value is None:
            raise ora(8181 if flashback.kind == "SCN" else 8180)
        if flashback.kind == "SCN":
            scn = int(numbers.decode(value))
        else:
            zone = self.session.time_zone
            moment = temporal.epoch_from_nanos(
                temporal.utc_from_local(temporal.instant(value), zone)
            )
            found = self.store.clock.at_time(moment)
            if found is None or moment > self.store.now():
                raise ora(8180)
            scn = found
        if not self.session.database.first_scn <= scn <= self.store.clock.value:
            raise ora(8181)
        params[flashback.parameter - 1] = scn
        return scn

    def _check_versions(self, use: TableUse, params: Parameters, connection: Connection) -> None:
        """Put both ends of VERSIONS BETWEEN into their parameters."""
        assert use.versions is not None
        low, high = (self.flashback_scn(end, params, connection) for end in use.versions)
        if low > high:
            raise OracleError(30052, "invalid lower limit snapshot expression")
        if use.versions[0].kind == "MINVALUE":
            params[use.versions[0].parameter - 1] = max(low, use.table.structure_scn)
        else:
            self._check_flashback(use.table, low)

    def _check_flashback(self, table: TableDef, scn: int) -> None:
        if scn < table.structure_scn:
            raise ora(1466)
        require_undo(self.session, table, scn)


def require_undo(session: SessionState, table: TableDef, scn: int) -> None:
    """Is what a table's rows were as of an SCN still there? Asked at the start of a query, and with
    each fetch.

    Raises:
        OracleError: ORA-01555: it is not.
    """
    store = session.database.store
    activity = store.activity.get(table.object_id)
    if activity is None or activity.last_commit <= scn:
        return
    floor = session.database.transactions.retention_floor()
    lost = activity.purged > scn
    if not lost and scn < floor:
        sql = f"SELECT 1 FROM h{table.object_id} WHERE vt > ? AND vt <= ? LIMIT 1"
        with store.lock:
            lost = store.writer.sqlite.execute(sql, (scn, floor)).fetchone() is not None
    if lost:
        raise ora(1555, 9, "_SYSSMU9_1126410412$")


def evaluate(connection: Connection, text: str, params: Parameters) -> Any:
    """One constant expression over a statement's parameters."""
    try:
        row = connection.sqlite.execute(
            f"SELECT {text}", params[: highest_parameter(text)]
        ).fetchone()
    except sqlite3.Error as error:
        raise translated(error, connection) from error
    return row[0]


def _places_read(use: VirtualUse) -> tuple[int, ...]:
    """The places of the columns that a query reads of a view, or the first."""
    places = [at for at, meta in enumerate(use.view.columns) if meta.name in use.columns]
    return tuple(places or [0])


def make_ready(use: VirtualUse, connection: Connection) -> None:
    """Have the empty temporary table that a view is filled into, before the SQLite transaction that
    fills it."""
    read = _places_read(use)
    if connection.filled.get(use.name) == read:
        return
    connection.filled.pop(use.name, None)
    names = ", ".join(f"c{at + 1}" for at in read)
    connection.sqlite.execute(f"DROP TABLE IF EXISTS temp.{use.name}")
    connection.sqlite.execute(f"CREATE TEMP TABLE {use.name} ({names})")
    connection.filled[use.name] = read


def fill_virtual(
    use: VirtualUse,
    session: SessionState,
    connection: Connection,
    params: Parameters,
    scn: int | None,
) -> None:
    """Compute the columns that a query reads of a view into its temporary table; the end of the
    SQLite transaction takes the rows away."""
    filters: list[tuple[str, str, Value]] = []
    for column, op, text in use.filters:
        value = evaluate(connection, text, params)
        filters.append((column, op, value.encode() if isinstance(value, str) else value))
    read = _places_read(use)
    texts = (OraType.VARCHAR, OraType.CHAR, OraType.CLOB, OraType.LONG)
    places = ["CAST(? AS TEXT)" if use.view.columns[at].type in texts else "?" for at in read]
    statement = f"INSERT INTO {use.name} VALUES ({', '.join(places)})"
    chosen: Iterator[Sequence[Value]]
    if use.dictionary:
        chosen = session.database.dictionary_rows(use.view.name, session, scn, filters, read)
    else:
        rows = use.view.rows(session, filters, frozenset(use.columns))
        one = read[0]
        chosen = map(itemgetter(*read), rows) if len(read) > 1 else ((row[one],) for row in rows)
    try:
        connection.sqlite.executemany(statement, chosen)
    except sqlite3.Error as error:
        raise translated(error, connection) from error


class QueryRows:
    """Rows of an open query on a connection of its own."""

    def __init__(
        self,
        session: SessionState,
        connection: Connection,
        cursor: sqlite3.Cursor,
        columns: Sequence[ColumnMeta],
        plan: Plan,
        reads: Sequence[tuple[TableDef, int]],
    ) -> None:
        self.columns = columns
        self._plan = plan
        self._reads = reads
        self._nested = {at: item.type for at, item in enumerate(plan.columns) if item.type.row}
        self._session = session
        self._connection: Connection | None = connection
        self._cursor = cursor
        self._lobs = [
            at for at, column in enumerate(columns) if column.type in (OraType.CLOB, OraType.BLOB)
        ]

    def keep_contents(self) -> None:
        """Give out LOB contents themselves instead of handles."""
        self._lobs = []

    def fetch(self, count: int) -> list[Sequence[Value]]:
        """Up to ``count`` further rows."""
        connection = self._connection
        if connection is None:
            return []
        try:
            for table, scn in self._reads:
                require_undo(self._session, table, scn)
        except OracleError:
            self.close()
            raise
        with self._session.running(connection):
            try:
                rows: list[Sequence[Value]] = self._cursor.fetchmany(count)
            except sqlite3.Error as error:
                raised = translated(error, connection)
                self.close()
                raise raised from error
        if len(rows) < count:
            self.close()
        places: Sequence[Mapping[int, LobPlace]] = ()
        if self._plan.places and self._lobs:
            places = [lob_places(self._plan, row) for row in rows]
            rows = [row[: len(self.columns)] for row in rows]
        if self._nested:
            rows = [_with_cursors(self._session, row, self._nested) for row in rows]
        return self._session.with_handles(rows, self._lobs, self.columns, places)

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._cursor.close()
            self._session.open_rows.discard(self)
            self._session.database.store.give_back(connection)


class ListRows:
    """Rows that are all in memory (SELECT … FOR UPDATE)."""

    def __init__(self, rows: list[Sequence[Value]], columns: Sequence[ColumnMeta]) -> None:
        self.columns = columns
        self._rows = rows
        self._at = 0

    def fetch(self, count: int) -> list[Sequence[Value]]:
        """Up to ``count`` further rows."""
        rows = self._rows[self._at : self._at + count]
        self._at += len(rows)
        return rows

    def close(self) -> None:
        """Forget the rows."""
        self._rows = []


def lob_places(plan: Plan, row: Sequence[Any]) -> dict[int, LobPlace]:
    """Where the LOBs of a row are kept, by their position."""
    uses = plan.locks or plan.places
    found = {}
    for at, (number, column) in plan.locators.items():
        rid = row[len(plan.columns) + number]
        if rid is not None:
            found[at] = LobPlace(uses[number].table, column, rid)
    return found


def _with_cursors(
    session: SessionState, row: Sequence[Value], nested: Mapping[int, SqlType]
) -> Sequence[Value]:
    """A row with handles of open queries in place of the images of their rows."""
    cells = list(row)
    for at, kind in nested.items():
        image = cells[at]
        if image is not None:
            cells[at] = _cursor_over(session, image, kind)
    return cells


def _cursor_over(session: SessionState, image: bytes, kind: SqlType) -> bytes:
    columns = [item.meta(name[:128], nullable) for name, item, nullable in kind.row]
    inner = {at: item for at, (_, item, _) in enumerate(kind.row) if item.row}
    lobs = [at for at, column in enumerate(columns) if column.type in (OraType.CLOB, OraType.BLOB)]
    rows = [_with_cursors(session, unpacked(item or b""), inner) for item in unpacked(image)]
    opened = ListRows(session.with_handles(rows, lobs, columns), columns)
    return session.keep_cursor(OpenCursor(opened, columns))


def open_query(
    session: SessionState, plan: Plan, binds: Sequence[Value], columns: Sequence[ColumnMeta]
) -> QueryRows:
    """Start a query on its own read connection."""
    store = session.database.store
    connection = store.take_reader()
    try:
        session.enter(connection.context)
        with store.lock:
            store.flush()
            snapshot = Snapshot(session)
            params = parameters(plan.slots, binds, snapshot.scn, snapshot.own, session.time_zone)
            text, count = snapshot.text(plan, params, connection)
            reads = snapshot.reads(plan, params)
            scns = [
                snapshot.flashback_scn(use.flashback, params, connection) if use.flashback else None
                for use in plan.virtuals
            ]
            for use in plan.virtuals:
                make_ready(use, connection)
            connection.sqlite.execute("BEGIN")
            connection.sqlite.execute("SELECT 1 FROM scn_ceiling").fetchone()
        with session.running(connection):
            for use, scn in zip(plan.virtuals, scns, strict=True):
                fill_virtual(use, session, connection, params, scn)
            cursor = connection.sqlite.execute(text, params[:count])
    except sqlite3.Error as error:
        raised = translated(error, connection)
        store.give_back(connection)
        raise raised from error
    except BaseException:
        store.give_back(connection)
        raise
    rows = QueryRows(session, connection, cursor, columns, plan, reads)
    session.open_rows.add(rows)
    return rows
