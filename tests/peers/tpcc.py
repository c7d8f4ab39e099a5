"""How much CPU do the five transactions of TPC-C take in the embedded Oracle, through the driver?

``python -m tests.peers.tpcc [COUNT]`` makes one warehouse, a tenth of the size that the standard asks
for, runs COUNT transactions of its mix in one session, and prints the seconds of CPU that server and
client took together, which other processes disturb less than time. To compare two versions, run it
from either checkout in turn.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence

import oracledb

from oracle_embedded.testing import oracle

DISTRICTS, CUSTOMERS, ITEMS, SEED = 10, 30, 1000, 4711
TABLES = (
    "CREATE TABLE WAREHOUSE (W_ID NUMBER(9) PRIMARY KEY, W_YTD NUMBER(12,2))",
    "CREATE TABLE DISTRICT (D_ID NUMBER(9) PRIMARY KEY, D_TAX NUMBER(4,4), D_YTD NUMBER(12,2), D_NEXT_O_ID NUMBER(9))",
    "CREATE TABLE CUSTOMER (C_D_ID NUMBER(9), C_ID NUMBER(9), C_LAST VARCHAR2(16), C_BALANCE NUMBER(12,2), C_DATA VARCHAR2(500),"
    " PRIMARY KEY (C_D_ID, C_ID))",
    "CREATE TABLE ITEM (I_ID NUMBER(9) PRIMARY KEY, I_PRICE NUMBER(5,2), I_NAME VARCHAR2(24))",
    "CREATE TABLE STOCK (S_I_ID NUMBER(9) PRIMARY KEY, S_QUANTITY NUMBER(4), S_YTD NUMBER(8))",
    "CREATE TABLE ORDERS (O_D_ID NUMBER(9), O_ID NUMBER(9), O_C_ID NUMBER(9), O_ENTRY_D DATE, O_CARRIER_ID NUMBER(2),"
    " PRIMARY KEY (O_D_ID, O_ID))",
    "CREATE TABLE NEW_ORDER (NO_D_ID NUMBER(9), NO_O_ID NUMBER(9), PRIMARY KEY (NO_D_ID, NO_O_ID))",
    "CREATE TABLE ORDER_LINE (OL_D_ID NUMBER(9), OL_O_ID NUMBER(9), OL_NUMBER NUMBER(2), OL_I_ID NUMBER(9), OL_AMOUNT NUMBER(6,2),"
    " OL_DELIVERY_D DATE, PRIMARY KEY (OL_D_ID, OL_O_ID, OL_NUMBER))",
    "CREATE INDEX CUSTOMER_LAST ON CUSTOMER (C_D_ID, C_LAST)",
    "CREATE INDEX ORDERS_CUSTOMER ON ORDERS (O_D_ID, O_C_ID)",
)  # fmt: skip


def load(cursor: oracledb.Cursor) -> None:
    """Make the warehouse."""
    for table in TABLES:
        cursor.execute(table)
    cursor.execute("INSERT INTO WAREHOUSE VALUES (1, 0)")
    cursor.executemany("INSERT INTO DISTRICT VALUES (:1, 0.1, 0, 1)", [(d,) for d in range(1, DISTRICTS + 1)])  # fmt: skip
    people = [
        (d, c, f"NAME{c % 10}", "x" * 300)
        for d in range(1, DISTRICTS + 1)
        for c in range(1, CUSTOMERS + 1)
    ]
    cursor.executemany("INSERT INTO CUSTOMER VALUES (:1, :2, :3, -10, :4)", people)
    goods = [(i, i % 90 + 1, f"item {i}") for i in range(1, ITEMS + 1)]
    cursor.executemany("INSERT INTO ITEM VALUES (:1, :2, :3)", goods)
    cursor.executemany("INSERT INTO STOCK VALUES (:1, 50, 0)", [(i,) for i in range(1, ITEMS + 1)])
    cursor.connection.commit()


def new_order(cursor: oracledb.Cursor, chance: random.Random, d: int, c: int) -> None:
    """An order of 5 to 15 items."""
    number = cursor.var(int)
    cursor.execute("UPDATE DISTRICT SET D_NEXT_O_ID = D_NEXT_O_ID + 1 WHERE D_ID = :1 RETURNING D_NEXT_O_ID INTO :2", [d, number])  # fmt: skip
    [order] = number.getvalue()
    cursor.execute("INSERT INTO ORDERS VALUES (:1, :2, :3, SYSDATE, NULL)", [d, order, c])
    cursor.execute("INSERT INTO NEW_ORDER VALUES (:1, :2)", [d, order])
    lines = []
    for line, item in enumerate(chance.sample(range(1, ITEMS + 1), chance.randint(5, 15)), 1):
        cursor.execute("SELECT I_PRICE FROM ITEM WHERE I_ID = :1", [item])
        (price,) = cursor.fetchone()
        cursor.execute("SELECT S_QUANTITY FROM STOCK WHERE S_I_ID = :1 FOR UPDATE", [item])
        cursor.fetchone()
        cursor.execute("UPDATE STOCK SET S_QUANTITY = CASE WHEN S_QUANTITY > 15 THEN S_QUANTITY - 5 ELSE S_QUANTITY + 86 END, S_YTD = S_YTD + 5 WHERE S_I_ID = :1", [item])  # fmt: skip
        lines.append((d, order, line, item, 5 * price))
    cursor.executemany("INSERT INTO ORDER_LINE VALUES (:1, :2, :3, :4, :5, NULL)", lines)


def payment(cursor: oracledb.Cursor, chance: random.Random, d: int, c: int) -> None:
    """A customer, found by name more often than by number, pays."""
    if chance.random() < 0.6:
        cursor.execute("SELECT C_ID FROM CUSTOMER WHERE C_D_ID = :1 AND C_LAST = :2 ORDER BY C_ID", [d, f"NAME{c % 10}"])  # fmt: skip
        found = cursor.fetchall()
        (c,) = found[len(found) // 2]
    cursor.execute("UPDATE WAREHOUSE SET W_YTD = W_YTD + 7 WHERE W_ID = 1")
    cursor.execute("UPDATE DISTRICT SET D_YTD = D_YTD + 7 WHERE D_ID = :1", [d])
    cursor.execute("UPDATE CUSTOMER SET C_BALANCE = C_BALANCE - 7 WHERE C_D_ID = :1 AND C_ID = :2", [d, c])  # fmt: skip


def order_status(cursor: oracledb.Cursor, _chance: random.Random, d: int, c: int) -> None:
    """The lines of a customer's last order."""
    cursor.execute("SELECT MAX(O_ID) FROM ORDERS WHERE O_D_ID = :1 AND O_C_ID = :2", [d, c])
    cursor.execute("SELECT OL_I_ID, OL_AMOUNT, OL_DELIVERY_D FROM ORDER_LINE WHERE OL_D_ID = :1 AND OL_O_ID = :2", [d, *cursor.fetchone()])  # fmt: skip
    cursor.fetchall()


def delivery(cursor: oracledb.Cursor, chance: random.Random, _d: int, _c: int) -> None:
    """The oldest new order of each district goes out."""
    for d in range(1, DISTRICTS + 1):
        cursor.execute("SELECT MIN(NO_O_ID) FROM NEW_ORDER WHERE NO_D_ID = :1", [d])
        (order,) = cursor.fetchone()
        if order is not None:
            cursor.execute("DELETE FROM NEW_ORDER WHERE NO_D_ID = :1 AND NO_O_ID = :2", [d, order])
            cursor.execute("UPDATE ORDERS SET O_CARRIER_ID = :1 WHERE O_D_ID = :2 AND O_ID = :3", [chance.randint(1, 10), d, order])  # fmt: skip
            cursor.execute("UPDATE ORDER_LINE SET OL_DELIVERY_D = SYSDATE WHERE OL_D_ID = :1 AND OL_O_ID = :2", [d, order])  # fmt: skip
            cursor.execute("UPDATE CUSTOMER SET C_BALANCE = C_BALANCE + (SELECT SUM(OL_AMOUNT) FROM ORDER_LINE WHERE OL_D_ID = :1 AND OL_O_ID = :2)"
                           " WHERE C_D_ID = :1 AND C_ID = (SELECT O_C_ID FROM ORDERS WHERE O_D_ID = :1 AND O_ID = :2)", [d, order, d, d, order])  # fmt: skip


def stock_level(cursor: oracledb.Cursor, _chance: random.Random, d: int, _c: int) -> None:
    """Items of the last 20 orders that run out."""
    cursor.execute("SELECT COUNT(DISTINCT S_I_ID) FROM ORDER_LINE, STOCK, DISTRICT WHERE D_ID = :1 AND OL_D_ID = D_ID AND OL_O_ID > D_NEXT_O_ID - 20 AND S_I_ID = OL_I_ID AND S_QUANTITY < 15", [d])  # fmt: skip
    cursor.fetchone()


MIX = {new_order: 45, payment: 43, order_status: 4, delivery: 4, stock_level: 4}
"""Percent, as the standard's least shares."""


def main(arguments: Sequence[str] = ()) -> None:
    """Run the mix and print what it took."""
    count, chance = int(arguments[0]) if arguments else 600, random.Random(SEED)
    with oracle() as database, database.connect() as connection, connection.cursor() as cursor:
        load(cursor)
        chosen = chance.choices(list(MIX), list(MIX.values()), k=count)
        cpu, wall = time.process_time(), time.monotonic()
        for transaction in chosen:
            transaction(cursor, chance, chance.randint(1, DISTRICTS), chance.randint(1, CUSTOMERS))
            connection.commit()
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    print(
        f"{count} transactions: {cpu:.2f} s of CPU ({1000 * cpu / count:.1f} ms each), {wall:.2f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
