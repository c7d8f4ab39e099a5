"""Markers, undo rows, order, and COMMITTED_DATA_ONLY."""

from __future__ import annotations

from typing import Any

from oracle_embedded.api import RowOp, TableVersion, Value
from tests.oracle_embedded.redo.conftest import World, num

ROW: dict[str, Value] = {"ID": num(1), "NAME": b"a", "AGE": None}


def ops(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(row["OPERATION"], row["SCN"]) for row in rows]


def test_rows_are_in_redo_order_not_in_commit_order(world: World, people: TableVersion) -> None:
    first, second = world.begin(), world.begin("OTHER", "client-7")
    world.insert(first, people, ROW)
    world.insert(second, people, ROW)
    world.commit(second)
    world.commit(first)
    rows = world.mine()
    assert ops(rows) == [
        ("START", 1001),
        ("START", 1002),
        ("INSERT", 1003),
        ("INSERT", 1004),
        ("COMMIT", 1005),
        ("COMMIT", 1006),
    ]
    assert [row["XID"] for row in rows] == [
        first.xid, second.xid, first.xid, second.xid, second.xid, first.xid,
    ]  # fmt: skip
    assert {(row["USERNAME"], row["CLIENT_ID"]) for row in rows} == {
        ("APP", None),
        ("OTHER", "client-7"),
    }
    assert [row["COMMIT_SCN"] for row in rows] == [None] * 4 + [1005, 1006]
    assert [row["SQL_REDO"] for row in rows if row["TABLE_NAME"] is None] == [
        "set transaction read write;",
        "set transaction read write;",
        "commit;",
        "commit;",
    ]


def test_xid_parts_and_positions(world: World, people: TableVersion) -> None:
    tx = world.begin()
    world.insert(tx, people, ROW)
    row = world.mine()[1]
    assert (row["XIDUSN"], row["XIDSLT"], row["XIDSQN"]) == (5, 17, 1001)
    assert row["RS_ID"] == f" 0x{row['RBASQN']:06x}.{row['RBABLK']:08x}.{row['RBABYTE']:04x} "
    assert row["RS_ID"] == " 0x000001.00000002.0090 "
    assert (row["SSN"], row["THREAD#"], row["SRC_CON_NAME"]) == (0, 1, "ORCLPDB1")
    assert (row["SEG_OWNER"], row["TABLE_NAME"], row["SEG_TYPE_NAME"]) == ("APP", "T", "TABLE")
    assert (row["DATA_OBJ#"], row["DATA_OBJV#"], row["DATA_OBJD#"]) == (71000, 1, 71000)


def test_undoing_shows_rollback_rows_by_rowid(world: World, people: TableVersion) -> None:
    world.supplemental("", " (ALL) COLUMNS")
    tx = world.begin()
    new: dict[str, Value] = {**ROW, "NAME": b"b"}
    world.insert(tx, people, ROW, row_id="AAAR3sAAEAAAACXAAB")
    world.change(tx, people, RowOp.UPDATE, ROW, {"NAME": b"b"}, row_id="AAAR3sAAEAAAACXAAB")
    world.change(tx, people, RowOp.DELETE, new, row_id="AAAR3sAAEAAAACXAAB")
    undo: dict[str, Any] = {"row_id": "AAAR3sAAEAAAACXAAB", "rollback": True}
    world.change(tx, people, RowOp.INSERT, None, new, **undo)
    world.change(tx, people, RowOp.UPDATE, new, {"NAME": b"a"}, **undo)
    world.change(tx, people, RowOp.DELETE, ROW, None, **undo)
    world.rollback(tx)
    rows = [row for row in world.mine() if row["ROLLBACK"]]
    assert [row["ROW_ID"] for row in rows] == ["AAAR3sAAEAAAACXAAB"] * 3
    assert [row["SQL_UNDO"] for row in rows] == [None] * 3
    assert [row["SQL_REDO"] for row in rows] == [
        'insert into "APP"."T"("ID","NAME","AGE") values (\'1\',\'b\',NULL);',
        'update "APP"."T" set "NAME" = \'a\' where ROWID = \'AAAR3sAAEAAAACXAAB\';',
        'delete from "APP"."T" where ROWID = \'AAAR3sAAEAAAACXAAB\';',
    ]
    assert world.redo_texts()[-2:] == [
        'update "APP"."T" set "NAME" = \'a\';',
        'delete from "APP"."T" where ROWID = \'AAAR3sAAEAAAACXAAB\';',
    ]
    last = world.mine()[-1]
    assert (last["OPERATION"], last["SQL_REDO"]) == ("ROLLBACK", "rollback;")


def test_ddl_is_shown_as_typed_in_a_transaction_of_its_own(world: World) -> None:
    world.ddl("CREATE TABLE t (id NUMBER)")
    world.ddl("grant create session to app;", "APP", None, 0)
    rows = world.mine()
    assert [row["OPERATION"] for row in rows] == ["START", "DDL", "COMMIT"] * 2
    first, second = rows[1], rows[4]
    assert (first["START_SCN"], first["START_TIMESTAMP"]) == (None, None)
    assert rows[0]["START_SCN"] is not None
    assert first["SQL_REDO"] == "CREATE TABLE t (id NUMBER);"
    assert first["INFO"] == "USER DDL (PlSql=0 RecDep=0)"
    assert (first["SEG_OWNER"], first["TABLE_NAME"], first["DATA_OBJ#"]) == ("APP", "T", 71000)
    assert (second["SQL_REDO"], second["TABLE_NAME"]) == ("grant create session to app;", None)


def test_committed_data_only_groups_whole_transactions_by_commit(
    world: World, people: TableVersion
) -> None:
    world.supplemental("")
    first, second, gone, still = (world.begin() for _ in range(4))
    for tx, key in ((first, 1), (second, 2), (gone, 3), (still, 4)):
        world.insert(tx, people, {**ROW, "ID": num(key)}, row_id=f"AAAR3sAAEAAAACXAA{key}")
    world.insert(first, people, {**ROW, "ID": num(9)}, row_id="AAAR3sAAEAAAACXAA9")
    undone = {**ROW, "ID": num(9)}
    world.change(
        first, people, RowOp.DELETE, undone, None, row_id="AAAR3sAAEAAAACXAA9", rollback=True
    )
    world.rollback(gone)
    ended = [world.commit(second), world.commit(first)]
    rows = world.mine("COMMITTED_DATA_ONLY", "NO_ROWID_IN_STMT")
    assert [(row["OPERATION"], row["COMMIT_SCN"]) for row in rows] == [
        (operation, scn) for scn in ended for operation in ("START", "INSERT", "COMMIT")
    ]
    assert [row["START_SCN"] for row in rows] == [1002] * 3 + [1001] * 3
    assert [row["SEQUENCE#"] for row in rows] == [1, 2, 3, 1, 2, 3]
    assert [row["SQL_REDO"] for row in rows if row["OPERATION"] == "INSERT"] == [
        'insert into "APP"."T"("ID","NAME","AGE") values (\'2\',\'a\',NULL);',
        'insert into "APP"."T"("ID","NAME","AGE") values (\'1\',\'a\',NULL);',
    ]


def test_committed_data_only_needs_the_start_in_the_range(
    world: World, people: TableVersion
) -> None:
    early = world.begin()
    world.insert(early, people, ROW)
    late = world.begin()
    world.insert(late, people, ROW)
    world.commit(early)
    scn = world.commit(late)
    rows = world.mine("COMMITTED_DATA_ONLY", startscn=late.start_scn)
    assert {row["COMMIT_SCN"] for row in rows} == {scn}


def test_names_are_unknown_when_the_start_is_not_mined(world: World, people: TableVersion) -> None:
    tx = world.begin("APP", "me")
    scn = world.insert(tx, people, ROW)
    world.commit(tx)
    rows = world.mine(startscn=scn)
    assert {(row["USERNAME"], row["CLIENT_ID"], row["START_SCN"]) for row in rows} == {
        ("UNKNOWN", None, None)
    }
