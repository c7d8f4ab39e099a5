"""LOBs as LogMiner splits them."""

from __future__ import annotations

import pytest

from oracle_embedded.api import OraType, RowOp, TableVersion, Value
from tests.oracle_embedded.redo.conftest import World, column, num, table


@pytest.fixture
def documents() -> TableVersion:
    return table(
        column(1, "ID", OraType.NUMBER),
        column(2, "TITLE", OraType.VARCHAR),
        column(3, "BODY", OraType.CLOB),
        column(4, "IMAGE", OraType.BLOB),
    )


@pytest.fixture
def full(world: World) -> World:
    world.supplemental("", " (ALL) COLUMNS")
    return world


def row(body: bytes | None, image: bytes | None = None) -> dict[str, Value]:
    return {"ID": num(1), "TITLE": b"t", "BODY": body, "IMAGE": image}


WHERE = " where \"ID\" = '1' and \"TITLE\" = 't'"
COLUMNS = 'insert into "APP"."T"("ID","TITLE","BODY","IMAGE") values'


def test_small_lobs_of_an_insert_follow_in_updates(full: World, documents: TableVersion) -> None:
    full.insert(full.begin(), documents, row(b"it's", b"\x00\xff"))
    assert full.redo_texts() == [
        f"{COLUMNS} ('1','t',EMPTY_CLOB(),EMPTY_BLOB());",
        f'update "APP"."T" set "BODY" = \'it\'\'s\'{WHERE};',
        f'update "APP"."T" set "IMAGE" = HEXTORAW(\'00ff\'){WHERE};',
    ]


def test_null_and_empty_lobs_of_an_insert_have_no_update(
    full: World, documents: TableVersion
) -> None:
    full.insert(full.begin(), documents, row(b""))
    assert full.redo_texts() == [f"{COLUMNS} ('1','t',EMPTY_CLOB(),NULL);"]


def test_an_update_of_a_small_lob_has_the_literal(full: World, documents: TableVersion) -> None:
    tx = full.begin()
    full.change(tx, documents, RowOp.UPDATE, row(b"old"), {"TITLE": b"u", "BODY": b"new"})
    full.change(tx, documents, RowOp.UPDATE, row(b"old"), {"BODY": None, "IMAGE": b""})
    assert full.redo_texts() == [
        f'update "APP"."T" set "TITLE" = \'u\', "BODY" = \'new\'{WHERE};',
        f'update "APP"."T" set "BODY" = NULL, "IMAGE" = EMPTY_BLOB(){WHERE};',
    ]


def test_lobs_never_stand_in_where(full: World, documents: TableVersion) -> None:
    full.change(full.begin(), documents, RowOp.DELETE, row(b"old", b"x"))
    assert full.redo_texts() == [f'delete from "APP"."T"{WHERE};']


def test_a_large_lob_is_written_through_a_locator(full: World, documents: TableVersion) -> None:
    text = "x'y" * 2000
    full.insert(full.begin(), documents, row(text.encode()))
    rows = [r for r in full.mine("NO_ROWID_IN_STMT") if r["OPERATION_CODE"] not in (6, 7)]
    joined: list[list[object]] = []
    begun = True
    for found in rows:
        if begun:
            joined.append([found["OPERATION"], ""])
        joined[-1][1] = str(joined[-1][1]) + found["SQL_REDO"]
        begun = found["CSF"] == 0
    operations = [operation for operation, _ in joined]
    assert operations == ["INSERT", "SELECT_LOB_LOCATOR", "LOB_WRITE", "LOB_WRITE", "LOB_TRIM"]
    assert joined[1][1] == (
        "DECLARE \n loc_c CLOB; \n buf_c VARCHAR2(6150); \n loc_b BLOB; \n buf_b RAW(6150); \n"
        " loc_nc NCLOB; \n buf_nc NVARCHAR2(6150); \nBEGIN\n"
        f' select "BODY" into loc_c from "APP"."T"{WHERE} for update;\n'
    )
    first, second = text[:4066].replace("'", "''"), text[4066:].replace("'", "''")
    assert joined[2][1] == (
        f" buf_c := '{first}'; \n  dbms_lob.write(loc_c, 4066, 1, buf_c);\nEND;"
    )
    assert joined[3][1] == (
        f" buf_c := '{second}'; \n  dbms_lob.write(loc_c, 1934, 4067, buf_c);\nEND;"
    )
    assert len({r["RS_ID"] for r in rows}) == len(operations)


def test_a_large_blob_of_an_update_is_written_alone(full: World, documents: TableVersion) -> None:
    image = bytes(5000)
    full.change(full.begin(), documents, RowOp.UPDATE, row(None), {"IMAGE": image})
    rows = [r for r in full.mine("NO_ROWID_IN_STMT") if r["OPERATION_CODE"] != 6]
    assert [(r["OPERATION"], r["CSF"]) for r in rows] == [
        ("SELECT_LOB_LOCATOR", 0),
        ("LOB_WRITE", 1),
        ("LOB_WRITE", 1),
        ("LOB_WRITE", 0),
        ("LOB_TRIM", 0),
    ]
    text = "".join(r["SQL_REDO"] for r in rows if r["OPERATION"] == "LOB_WRITE")
    assert text.startswith(f" buf_b := HEXTORAW('{image.hex()}'); \n")
    assert text.endswith("dbms_lob.write(loc_b, 5000, 1, buf_b);\nEND;")


@pytest.mark.parametrize(
    ("characters", "large"),
    [pytest.param(1982, False, id="fits-in-the-row"), pytest.param(1983, True, id="one-more")],
)
def test_the_limit_of_a_clob_in_the_row_is_3964_bytes_of_utf16(
    full: World, documents: TableVersion, characters: int, large: bool
) -> None:
    full.insert(full.begin(), documents, row(b"x" * characters))
    operations = {r["OPERATION"] for r in full.mine()}
    assert ("LOB_WRITE" in operations, "UPDATE" in operations) == (large, not large)


def test_each_row_of_an_insert_with_lobs_is_undone_by_one_of_its_own(
    full: World, documents: TableVersion
) -> None:
    tx = full.begin()
    full.insert(tx, documents, row(b"small", b"\x01"))
    full.change(tx, documents, RowOp.DELETE, row(b"small", b"\x01"), None, rollback=True)
    rows = full.mine("NO_ROWID_IN_STMT")[1:]
    assert [(r["OPERATION"], r["ROLLBACK"]) for r in rows] == [
        ("INSERT", 0),
        ("UPDATE", 0),
        ("UPDATE", 0),
        ("UPDATE", 1),
        ("UPDATE", 1),
        ("DELETE", 1),
    ]
