"""Mining goes on while others write and switch logs."""

from __future__ import annotations

import threading

from oracle_embedded.api import OracleError, TableVersion
from tests.oracle_embedded.redo.conftest import FakeSession, World, num


def test_windows_mined_while_writing_hold_each_row_once(world: World, people: TableVersion) -> None:
    world.supplemental("")
    written: list[int] = []

    def write() -> None:
        for key in range(1, 301):
            tx = world.begin()
            written.append(world.insert(tx, people, {"ID": num(key), "NAME": b"x", "AGE": None}))
            world.commit(tx)
            if key % 50 == 0:
                world.redo.switch_log()

    writer = threading.Thread(target=write)
    writer.start()
    mined: list[int] = []
    low = 1000
    session = FakeSession()
    while writer.is_alive() or low < written[-1]:
        high = world.view("V$THREAD")[0]["LAST_REDO_CHANGE#"] - 1
        if high <= low:
            continue
        try:
            rows = world.mine(startscn=low, endscn=high, session=session)
        except OracleError as error:
            # The views are read one after the other: a switch between them leaves a gap, as on Oracle.
            if error.code not in (310, 1291):
                raise
            continue
        mined += [r["SCN"] for r in rows if r["OPERATION"] == "INSERT" and r["SCN"] > low]
        low = high
    writer.join()
    assert mined == written
