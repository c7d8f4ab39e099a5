"""Many sessions move amounts between rows; every snapshot, then and later, has the same total."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

from oracle_embedded.api import OracleError

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client, Connect

ROWS = 30
TOTAL = ROWS * 100
MAY_FAIL = {1, 60}


def transfer(client: Any, seed: int) -> None:
    """Forty transactions, some rolled back, some to a savepoint; deadlocks and taken keys start anew."""
    chance = random.Random(seed)
    for _ in range(40):
        source, target = chance.sample(range(ROWS), 2)
        amount = chance.randint(1, 9)
        try:
            client("update t set amount = amount - :1 where id = :2", amount, source)
            if chance.random() < 0.3:
                client("savepoint s")
                client("delete from t where id = :1", chance.randrange(ROWS))
                client("rollback to s")
            if chance.random() < 0.3:
                client("insert into t values (:1, 0)", chance.randrange(ROWS, ROWS + 3))
                client("delete from t where id >= :1 and amount = 0", ROWS)
            client("update t set amount = amount + :1 where id = :2", amount, target)
        except OracleError as error:
            if error.code not in MAY_FAIL:
                raise
            client.session.rollback()
            continue
        if chance.random() < 0.3:
            client.session.rollback()
        else:
            client.session.commit()


def test_every_snapshot_is_consistent_and_repeatable(sql: Client, connect: Connect) -> None:
    sql("create table t (id number primary key, amount number not null)")
    sql.many("insert into t values (:1, 100)", [(n,) for n in range(ROWS)])
    sql.session.commit()
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            transfer(connect(), seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    seen = []
    while any(thread.is_alive() for thread in threads):
        assert sql.one("select sum(amount) from t") == str(TOTAL)
        scn = sql.scn()
        seen.append((scn, sql("select id, amount from t as of scn :1 order by id", scn)))
    for thread in threads:
        thread.join()
    assert failures == []
    for scn, rows in seen:
        assert sum(int(amount) for _, amount in rows) == TOTAL
        assert sql("select id, amount from t as of scn :1 order by id", scn) == rows
    assert sql.session.database.transactions.open == {}
