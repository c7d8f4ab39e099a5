"""The other V$ views."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle_embedded.api import OraType, TableVersion
from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.conftest import World, num


def test_every_view_has_a_gv_twin_with_inst_id(world: World) -> None:
    tables = {table.name: table for table in world.redo.virtual_tables}
    for name, table in tables.items():
        if not name.startswith("GV$"):
            twin = tables[f"G{name}"]
            assert [c.name for c in twin.columns] == ["INST_ID", *(c.name for c in table.columns)]


def test_every_row_fits_its_columns(world: World, people: TableVersion) -> None:
    world.begin()
    world.redo.switch_log()
    world.add_all_logs()
    world.start("DICT_FROM_ONLINE_CATALOG")
    sizes = {OraType.NUMBER: 22, OraType.DATE: 7}
    for table in world.redo.virtual_tables:
        for row in table.rows(world.session, (), None):
            for meta, value in zip(table.columns, row, strict=True):
                limit = sizes.get(meta.type, meta.size)
                assert value is None or len(value) <= limit, (table.name, meta.name)


def test_v_database(world: World) -> None:
    (row,) = world.view("V$DATABASE")
    assert row["NAME"] == "ORCLCDB"
    assert row["LOG_MODE"] == "ARCHIVELOG"
    assert row["CURRENT_SCN"] == world.db.scn
    assert (row["OPEN_MODE"], row["DATABASE_ROLE"], row["CDB"]) == ("READ WRITE", "PRIMARY", "YES")


def test_v_transaction_shows_open_transactions(world: World, people: TableVersion) -> None:
    assert world.view("V$TRANSACTION") == []
    tx = world.begin()
    (row,) = world.view("V$TRANSACTION")
    assert (row["XID"], row["START_SCN"], row["STATUS"]) == (tx.xid, tx.start_scn, "ACTIVE")
    assert (row["XIDUSN"], row["XIDSLOT"], row["XIDSQN"]) == (5, 17, 1001)
    assert row["START_SCNB"] + (row["START_SCNW"] << 32) == tx.start_scn
    assert row["START_TIME"] == "11/14/23 22:13:20"
    world.insert(tx, people, {"ID": num(1), "NAME": None, "AGE": None})
    world.commit(tx)
    assert world.view("V$TRANSACTION") == []


def test_a_start_scn_may_not_be_assigned_yet(tmp_path: Path) -> None:
    world = World(tmp_path / "ora.db", warts=frozenset({Wart.UNASSIGNED_START_SCNS}))
    tx = world.begin()
    looks = [world.view("V$TRANSACTION") for _ in range(2)]
    assert [(one["XID"], one["START_SCN"]) for (one,) in looks] == [(tx.xid, 0), (tx.xid, tx.start_scn)]  # fmt: skip
    assert [one["USED_UREC"] > 0 for (one,) in looks] == [True, True]
    world.db.close()


def test_only_the_first_destination_is_valid(world: World) -> None:
    for view in ("V$ARCHIVE_DEST", "V$ARCHIVE_DEST_STATUS"):
        rows = world.view(view)
        assert len(rows) == 31
        assert [row["DEST_NAME"] for row in rows if row["STATUS"] == "VALID"] == [
            "LOG_ARCHIVE_DEST_1"
        ]
    assert world.view("V$ARCHIVE_DEST_STATUS")[0]["TYPE"] == "LOCAL"


def test_memory_statistics_join_by_number(world: World) -> None:
    names = {row["STATISTIC#"]: row["NAME"] for row in world.view("V$STATNAME")}
    found = {names[row["STATISTIC#"]]: row["VALUE"] for row in world.view("V$MYSTAT")}
    assert found["session pga memory max"] > 0


@pytest.mark.parametrize("statement", ["ARCHIVELOG", "NOARCHIVELOG"])
def test_the_log_mode_cannot_change_while_open(world: World, statement: str) -> None:
    with pytest.raises(Exception, match="ORA-01126"):
        world.db.database[statement](world.session)
