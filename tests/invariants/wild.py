"""The load of the prover's long life: the seeded load and what breaks rules more easily.

TPC-C's tables with its consistency conditions, keys that shift by one, a table that grows columns, one that is truncated, one
whose key only the configuration knows, one without a key, those of other shapes and names (:mod:`tests.invariants.shapes`), and transactions that last over windows with savepoints
rolled back in them. Every event
draws from a seed of its own, so that it does the same kind of thing whatever events before it are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from random import Random
from typing import Any

import oracledb

from tests.invariants.load import EPOCH, TABLES, Committed, Load
from tests.invariants.shapes import DDL as SHAPES_DDL
from tests.invariants.shapes import PARTS, Shapes, quoted
from tests.invariants.shapes import TABLES as SHAPED

WILD_DDL = (
    "CREATE TABLE WAREHOUSE (W_ID NUMBER(4) PRIMARY KEY, W_YTD NUMBER(12,2))",
    """CREATE TABLE DISTRICT (D_W_ID NUMBER(4), D_ID NUMBER(2), D_YTD NUMBER(12,2), D_NEXT_O_ID NUMBER(8),
        PRIMARY KEY (D_W_ID, D_ID))""",
    """CREATE TABLE ORDERS (O_W_ID NUMBER(4), O_D_ID NUMBER(2), O_ID NUMBER(8), O_OL_CNT NUMBER(2), O_CARRIER_ID NUMBER(2),
        PRIMARY KEY (O_W_ID, O_D_ID, O_ID))""",
    """CREATE TABLE NEW_ORDER (NO_W_ID NUMBER(4), NO_D_ID NUMBER(2), NO_O_ID NUMBER(8),
        PRIMARY KEY (NO_W_ID, NO_D_ID, NO_O_ID))""",
    """CREATE TABLE ORDER_LINE (OL_W_ID NUMBER(4), OL_D_ID NUMBER(2), OL_O_ID NUMBER(8), OL_NUMBER NUMBER(2),
        OL_AMOUNT NUMBER(6,2), OL_DELIVERY_D DATE, PRIMARY KEY (OL_W_ID, OL_D_ID, OL_O_ID, OL_NUMBER))""",
    "CREATE TABLE SHIFTED (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(30))",
    "CREATE TABLE GROWING (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE PASSING (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE LOOSE (K NUMBER(9) NOT NULL, L VARCHAR2(10) NOT NULL, V NUMBER(9))",
    "CREATE TABLE BARE (N NUMBER(9), V VARCHAR2(20))",
    *SHAPES_DDL,
)
TPCC = ("WAREHOUSE", "DISTRICT", "ORDERS", "NEW_ORDER", "ORDER_LINE")
WILD_TABLES = (*TABLES, *TPCC, "SHIFTED", "GROWING", "PASSING", "LOOSE", "BARE", *SHAPED)
OTHER_DDL = (
    ("CREATE INDEX GROWING_V ON GROWING (V)", "DROP INDEX GROWING_V"),
    ("COMMENT ON TABLE GROWING IS 'it grows'",),
    ("GRANT SELECT ON GROWING TO PUBLIC",),
    ("ALTER TABLE GROWING MODIFY (V DEFAULT 'none')",),
)
WAREHOUSES = range(1, 13)
DISTRICTS = [(warehouse, district) for warehouse in WAREHOUSES for district in (1, 2)]
FIRST_ROWS = 30
PASSING_ROWS = 12
Image = list[dict[str, Any]]


class WildLoad(Load):
    """The seeded load on more tables."""

    def __init__(
        self, connection: oracledb.Connection, seed: int, clock: Callable[[], int]
    ) -> None:
        super().__init__(connection, seed, clock)
        self.long: dict[int, oracledb.Connection] = {}
        self._long_changes: dict[int, Counter[tuple[str, str]]] = {}
        self._next_row = 1000
        self._columns = 0
        self._added: list[str] = []
        self._digits: dict[str, int] = {}
        self.dropped: dict[str, list[tuple[int, str]]] = {}
        """Columns that went, by table, each with an SCN behind the DDL and before the next change."""
        self.renamed: dict[str, list[tuple[str | None, str]]] = {}
        """Columns that were called otherwise, and names that others got, by table."""
        self.shapes = Shapes(self)
        self.emptied: list[Committed] = []
        """What the record has of rows that went with a partition of PARTS."""

    def draw(self, event: str) -> None:
        """Draw from the seed of an event from now on."""
        self.random = Random(f"{self.seed}/{event}")
        self.shapes.dice = Random(f"{self.seed}/{event}/shapes")

    def create(self, rows: int) -> None:
        """Create all tables with ALL COLUMN logging and fill them."""
        super().create(rows)
        for statement in WILD_DDL:
            self._sql(statement)
        for table in WILD_TABLES[len(TABLES) :]:
            self._sql(f"ALTER TABLE {quoted(table)} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
        for warehouse in WAREHOUSES:
            self._one("WAREHOUSE", "c", f"INSERT INTO WAREHOUSE VALUES ({warehouse}, 0)")
        for warehouse, district in DISTRICTS:
            self._one("DISTRICT", "c", f"INSERT INTO DISTRICT VALUES ({warehouse}, {district}, 0, 1)")  # fmt: skip
        for table in ("SHIFTED", "GROWING", "PASSING"):
            for number in range(FIRST_ROWS):
                self._one(table, "c", f"INSERT INTO {table} (ID, V) VALUES ({number}, 'first')")
        for number in range(FIRST_ROWS):
            self._one("LOOSE", "c", f"INSERT INTO LOOSE VALUES ({number}, 'l', 0)")
            self._insert("BARE", number)
        self.shapes.dice = Random(f"{self.seed}/shapes")
        self.shapes.fill()
        for place in DISTRICTS:
            self._new_order(*place)
        self._commit(self.connection, self._pending)

    # -- transactions of their own -----------------------------------------------------------------------------------

    def tpcc(self) -> None:
        """One of TPC-C's transactions, with changes of the tables of other shapes besides."""
        place = self.random.choice(DISTRICTS)
        kind = self.random.choice((self._new_order, self._new_order, self._payment, self._delivery))
        kind(*place)
        self.shapes.change()
        if self.random.random() < 0.1:
            self._roll_back()
            return
        self._commit(self.connection, self._pending)

    def shift(self) -> None:
        """Each key moves to its neighbour's place; a row goes and another comes in its stead."""
        by = self.random.choice(("+ 1", "- 1"))
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT MIN(ID), MAX(ID) FROM SHIFTED")
            [(low, high)] = cursor.fetchall()
        self._many("SHIFTED", "u", f"UPDATE SHIFTED SET ID = ID {by}")
        if self.random.random() < 0.5:
            end = (high if by == "+ 1" else low) + (1 if by == "+ 1" else -1)
            self._one("SHIFTED", "d", f"DELETE FROM SHIFTED WHERE ID = {end}")
            self._one("SHIFTED", "c", f"INSERT INTO SHIFTED VALUES ({end}, 'again')")
        self._commit(self.connection, self._pending)

    def again(self) -> None:
        """A key is deleted and inserted again, within a transaction and over two of them; another row gets its ROWID."""
        table = self.random.choice(("GROWING", "PASSING", "LOOSE"))
        self._again(table, "K" if table == "LOOSE" else "ID")
        self._again("BARE", "N")

    def _again(self, table: str, key: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT {key} FROM {table} ORDER BY {key}")
            keys = [row[0] for row in cursor]
        for number in self.random.sample(keys, min(3, len(keys))):
            self._one(table, "d", f"DELETE FROM {table} WHERE {key} = {number}")
            if self.random.random() < 0.4:
                self._commit(self.connection, self._pending)
            self._insert(table, number)
        self._next_row += 1
        self._insert(table, self._next_row)
        self._many(table, "u", f"UPDATE {table} SET V = {self._next_row} WHERE {key} < 4")
        self._commit(self.connection, self._pending)

    def _insert(self, table: str, number: int) -> None:
        values = f"({number}, 'l', 1)" if table == "LOOSE" else f"({number}, 'again')"
        names = "" if table in {"LOOSE", "BARE"} else " (ID, V)"
        self._one(table, "c", f"INSERT INTO {table}{names} VALUES {values}")

    def grow(self) -> None:
        """A column more (or a wider one), and rows that use it."""
        self._columns += 1
        name = f"C{self._columns}"
        kind = self.random.choice(("NUMBER(9)", "VARCHAR2(30)", "DATE"))
        self._sql(f"ALTER TABLE GROWING ADD ({name} {kind})")
        self._added.append(name)
        if kind == "NUMBER(9)":
            self._digits[name] = 9
        value = {"NUMBER(9)": "42", "VARCHAR2(30)": "'it''s'"}.get(kind, "DATE '2013-01-01'")
        self._many("GROWING", "u", f"UPDATE GROWING SET {name} = {value} WHERE MOD(ID, 2) = 0")
        self._next_row += 1
        self._one("GROWING", "c", f"INSERT INTO GROWING (ID, {name}) VALUES ({self._next_row}, {value})")  # fmt: skip
        self._commit(self.connection, self._pending)
        if self._columns % 2:
            self._sql(f"ALTER TABLE GROWING MODIFY (V VARCHAR2({20 + self._columns}))")
            self._many("GROWING", "u", f"UPDATE GROWING SET V = RPAD('w', {20 + self._columns}, 'w') WHERE MOD(ID, 3) = 0")  # fmt: skip
            self._commit(self.connection, self._pending)

    def reshape(self) -> None:
        """A column that was added is called otherwise, or goes, or another one takes its name, or numbers get more digits; rows before and
        behind it."""
        if not self._added:
            self.grow()
        if self._digits and self.random.random() < 0.5:
            self._widen(self.random.choice(sorted(self._digits)))
            return
        old = self._added.pop(self.random.randrange(len(self._added)))
        how = self.random.choice(("RENAME", "RENAME", "DROP", "SWAP", "ONTO", "CROSS"))
        digits = self._digits.pop(old, None)
        self._many("GROWING", "u", f"UPDATE GROWING SET {old} = {old}, V = 'old' WHERE MOD(ID, 2) = 1")  # fmt: skip
        self._commit(self.connection, self._pending)
        if how in {"RENAME", "CROSS"}:
            name = self._new_name("R")
            self._call(old, name, digits)
            if how == "CROSS" and len(self._added) > 1:
                self._added.remove(name)
                other = self._added.pop(self.random.randrange(len(self._added)))
                digits = self._digits.pop(name, None)
                self._call(other, old, self._digits.pop(other, None))
                self._call(name, other, digits)
        else:
            name = self._new_name("N")
            if how == "ONTO":
                self._sql(f"ALTER TABLE GROWING ADD ({name} VARCHAR2(30))")
                self._many("GROWING", "u", f"UPDATE GROWING SET {name} = 'onto' WHERE MOD(ID, 3) = 0")  # fmt: skip
                self._commit(self.connection, self._pending)
            self._sql(f"ALTER TABLE GROWING DROP COLUMN {old}")
            self.dropped.setdefault("GROWING", []).append((self.clock(), old))
            if how == "ONTO":
                self._call(name, old, None)
        if how == "SWAP":
            self._sql(f"ALTER TABLE GROWING ADD ({old} VARCHAR2(30))")
            self.renamed.setdefault("GROWING", []).append((None, old))
            self._added.append(old)
        if how in {"SWAP", "ONTO"}:
            self._many("GROWING", "u", f"UPDATE GROWING SET {old} = 'other' WHERE MOD(ID, 3) = 0")
            self._commit(self.connection, self._pending)
        self._again("GROWING", "ID")

    def _new_name(self, letter: str) -> str:
        self._columns += 1
        return f"{letter}{self._columns}"

    def _call(self, old: str, new: str, digits: int | None) -> None:
        """Rename a column of GROWING; some rows change behind it."""
        self._sql(f"ALTER TABLE GROWING RENAME COLUMN {old} TO {new}")
        self.renamed.setdefault("GROWING", []).append((old, new))
        self._added.append(new)
        if digits is not None:
            self._digits[new] = digits
        self._many("GROWING", "u", f"UPDATE GROWING SET V = 'called' WHERE MOD(ID, 4) = {self._columns % 4}")  # fmt: skip
        self._commit(self.connection, self._pending)

    def _widen(self, column: str) -> None:
        """BIGINT becomes a decimal, a wider one, and text."""
        self._many("GROWING", "u", f"UPDATE GROWING SET {column} = 7, V = 'narrow' WHERE MOD(ID, 2) = 1")  # fmt: skip
        self._commit(self.connection, self._pending)
        digits = self._digits[column] + 12
        kind = f"NUMBER({digits})" if digits <= 33 else "NUMBER"
        self._sql(f"ALTER TABLE GROWING MODIFY ({column} {kind})")
        self._digits[column] = digits
        value = "1" + "0" * (min(digits, 39) - 2) + "7"
        self._many("GROWING", "u", f"UPDATE GROWING SET {column} = {value} WHERE MOD(ID, 3) = 0")
        self._commit(self.connection, self._pending)
        self._again("GROWING", "ID")

    def other_ddl(self) -> None:
        """DDL that changes no column of GROWING, and rows behind it."""
        for statements in self.random.sample(OTHER_DDL, 2):
            for statement in statements:
                self._sql(statement)
        self._again("GROWING", "ID")

    def passing_rows(self) -> None:
        """Some rows come into PASSING."""
        for _ in range(PASSING_ROWS):
            self._next_row += 1
            self._insert("PASSING", self._next_row)
        self._commit(self.connection, self._pending)

    def truncate(self) -> None:
        """All rows of PASSING go at once, and some come."""
        self._sql("TRUNCATE TABLE PASSING")
        self.passing_rows()

    def partitions(self) -> None:
        """The rows of a partition go at once, without redo of their own, or change places with those of another table; rows that move and come
        before and behind it."""
        self.shapes.change()
        self._commit(self.connection, self._pending)
        emptied = self.shapes.empty_partition()
        for statement in emptied.before:
            self._sql(statement)
        self._commit(self.connection, self._pending)
        before = self.clock()
        self._sql(emptied.ddl)
        rows = Counter({(PARTS, "d"): emptied.rows})
        gone = Committed(before, self.clock(), rows, unseen=emptied.came)
        self.committed.append(gone)
        self.emptied.append(gone)
        for statement in emptied.behind:
            self._sql(statement)
        self.shapes.refill()
        self.shapes.change()
        self._commit(self.connection, self._pending)

    # -- transactions that last --------------------------------------------------------------------------------------

    def long_part(self, number: int, connect: Callable[[], oracledb.Connection]) -> None:
        """A part of a transaction that lasts, on keys of its own; with a savepoint that is rolled back."""
        connection, changes, base = self._lasting(number, connect)
        with connection.cursor() as cursor:
            for offset in range(3):
                self._event(cursor, base + offset)
            changes["EVENTS", "c"] += 3
            cursor.execute("SAVEPOINT part")
            for offset in range(3, 6):
                self._event(cursor, base + offset)
            cursor.execute("UPDATE EVENTS SET AMOUNT = 7 WHERE EVENT_ID = :1", [base])
            cursor.execute("ROLLBACK TO SAVEPOINT part")
            if self.random.random() < 0.5:
                cursor.execute("UPDATE EVENTS SET AMOUNT = 8 WHERE EVENT_ID = :1", [base])
                cursor.execute("DELETE FROM EVENTS WHERE EVENT_ID = :1", [base + 1])
                changes["EVENTS", "u"] += 1
                changes["EVENTS", "d"] += 1

    def long_rows(self, number: int, connect: Callable[[], oracledb.Connection], rows: int) -> None:
        """Some rows of a transaction that lasts, at most ten."""
        connection, changes, base = self._lasting(number, connect)
        with connection.cursor() as cursor:
            for offset in range(rows):
                self._event(cursor, base + offset)
        changes["EVENTS", "c"] += rows

    def _lasting(
        self, number: int, connect: Callable[[], oracledb.Connection]
    ) -> tuple[oracledb.Connection, Counter[tuple[str, str]], int]:
        """The session of a transaction that lasts, what it has changed, and the first of ten keys."""
        if number not in self.long:
            self.long[number] = connect()
            self._long_changes[number] = Counter()
        self._next_row += 10
        return self.long[number], self._long_changes[number], 20_000_000 + self._next_row

    def long_end(self, number: int, *, commits: bool) -> None:
        """End a transaction that lasts."""
        if number not in self.long:
            return
        connection, changes = self.long.pop(number), self._long_changes.pop(number)
        if commits:
            self._commit(connection, changes)
        else:
            connection.rollback()
        connection.close()

    @contextmanager
    def through(self, connection: oracledb.Connection) -> Iterator[None]:
        """What the block does goes through another session."""
        own, self.connection = self.connection, connection
        yield
        self.connection = own

    def forget_open(self, connection: oracledb.Connection) -> None:
        """The database has died: what was open is gone."""
        self.connection = connection
        self.long.clear()
        self._long_changes.clear()
        self._pending.clear()

    def _event(self, cursor: oracledb.Cursor, key: int) -> None:
        sql = "INSERT INTO EVENTS (EVENT_ID, KIND, AT, AMOUNT) VALUES (:1, 'long', :2, 1)"
        cursor.execute(sql, [key, EPOCH])

    # -- TPC-C -------------------------------------------------------------------------------------------------------

    def _new_order(self, warehouse: int, district: int) -> None:
        where = f"D_W_ID = {warehouse} AND D_ID = {district}"
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT D_NEXT_O_ID FROM DISTRICT WHERE {where}")
            [(order,)] = cursor.fetchall()
        self._one("DISTRICT", "u", f"UPDATE DISTRICT SET D_NEXT_O_ID = D_NEXT_O_ID + 1 WHERE {where}")  # fmt: skip
        lines = self.random.randint(1, 5)
        key = f"{warehouse}, {district}, {order}"
        self._one("ORDERS", "c", f"INSERT INTO ORDERS VALUES ({key}, {lines}, NULL)")
        self._one("NEW_ORDER", "c", f"INSERT INTO NEW_ORDER VALUES ({key})")
        for line in range(lines):
            amount = Decimal(self.random.randrange(100, 99999)) / 100
            self._one("ORDER_LINE", "c", f"INSERT INTO ORDER_LINE VALUES ({key}, {line}, {amount}, NULL)")  # fmt: skip

    def _payment(self, warehouse: int, district: int) -> None:
        amount = Decimal(self.random.randrange(100, 500000)) / 100
        self._one("WAREHOUSE", "u", f"UPDATE WAREHOUSE SET W_YTD = W_YTD + {amount} WHERE W_ID = {warehouse}")  # fmt: skip
        self._one("DISTRICT", "u", f"UPDATE DISTRICT SET D_YTD = D_YTD + {amount} WHERE D_W_ID = {warehouse} AND D_ID = {district}")  # fmt: skip

    def _delivery(self, warehouse: int, district: int) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(
                f"SELECT MIN(NO_O_ID), COUNT(*) FROM NEW_ORDER WHERE NO_W_ID = {warehouse} AND NO_D_ID = {district}"
            )
            [(order, left)] = cursor.fetchall()
        if left < 2:  # so that no district is without one, and each condition says something
            return

        def where(prefix: str, name: str) -> str:
            return f"{prefix}_W_ID = {warehouse} AND {prefix}_D_ID = {district} AND {name} = {order}"  # fmt: skip

        self._one("NEW_ORDER", "d", f"DELETE FROM NEW_ORDER WHERE {where('NO', 'NO_O_ID')}")
        self._one("ORDERS", "u", f"UPDATE ORDERS SET O_CARRIER_ID = 3 WHERE {where('O', 'O_ID')}")
        self._many("ORDER_LINE", "u", f"UPDATE ORDER_LINE SET OL_DELIVERY_D = DATE '2013-05-01' WHERE {where('OL', 'OL_O_ID')}")  # fmt: skip

    # -- statements --------------------------------------------------------------------------------------------------

    def one(self, table: str, op: str, sql: str) -> None:
        """A statement that changes one row."""
        self._one(table, op, sql)

    def many(self, table: str, op: str, sql: str) -> None:
        """A statement that changes any number of rows."""
        self._many(table, op, sql)

    def count(self, changes: Counter[tuple[str, str]]) -> None:
        """Changes of a statement that counts them otherwise."""
        self._pending.update(changes)

    def run(self, sql: str) -> int:
        """Any statement; the number of its rows."""
        return self._sql(sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query finds."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What the block changes is rolled back to a savepoint."""
        pending = Counter(self._pending)
        self._sql("SAVEPOINT undone")
        yield
        self._sql("ROLLBACK TO SAVEPOINT undone")
        self._pending = pending

    def _sql(self, statement: str) -> int:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return int(cursor.rowcount)

    def _one(self, table: str, op: str, sql: str) -> None:
        self._run(self.connection, table, op, sql, [])

    def _many(self, table: str, op: str, sql: str) -> None:
        self._pending[table, op] += self._sql(sql)

    def _roll_back(self) -> None:
        self.connection.rollback()
        self._pending.clear()


def inconsistencies(images: dict[str, Image]) -> list[str]:
    """TPC-C's consistency conditions 1 to 4 (3.3.2 of its specification), on the mirrors as of one SCN."""
    found = []
    district = images["DISTRICT"]
    for warehouse in images["WAREHOUSE"]:
        own = [one["D_YTD"] for one in district if one["D_W_ID"] == warehouse["W_ID"]]
        if warehouse["W_YTD"] != sum(own):
            found.append("TPC-C 1: a warehouse's total is not that of its districts")
    for one in district:
        place = (one["D_W_ID"], one["D_ID"])
        orders = _of(images["ORDERS"], "O", place)
        new = [row["NO_O_ID"] for row in _of(images["NEW_ORDER"], "NO", place)]
        lines = _of(images["ORDER_LINE"], "OL", place)
        newest = one["D_NEXT_O_ID"] - 1
        if {newest} != {max(row["O_ID"] for row in orders), max(new)}:
            found.append("TPC-C 2: a district's newest order is not there")
        if max(new) - min(new) + 1 != len(new):
            found.append("TPC-C 3: the new orders have a gap")
        if sum(row["O_OL_CNT"] for row in orders) != len(lines):
            found.append("TPC-C 4: the order lines are not as many as the orders say")
    return found


def _of(rows: Image, prefix: str, place: tuple[Any, Any]) -> Image:
    return [row for row in rows if (row[f"{prefix}_W_ID"], row[f"{prefix}_D_ID"]) == place]
